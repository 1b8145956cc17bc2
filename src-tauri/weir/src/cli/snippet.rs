//! What a user pastes into a client.
//!
//! The same files are shown in the README and used by the end-to-end tests, so that what is documented is what was run.
//!
//! **Invariant**: the only things filled in are the base URL and the key.

const OPENCODE: &str = include_str!("../../../../tests/e2e/snippets/opencode.json");

pub(super) fn opencode(base_url: &str, key: &str) -> String {
    OPENCODE.trim_end().replace("http://127.0.0.1:8788/v1", base_url).replace("WEIR-KEY", key)
}
