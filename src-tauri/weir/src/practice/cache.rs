//! A model of the prompt cache: what a session already sent to an account is cheaper.
//!
//! A request is a head (model, instructions, tools) and a list of items. The longest beginning that this account has
//! already seen in this session counts as cached, so a changed head, a reordered item or a moved conversation shows in
//! the numbers, as it does in a user's quota.
//!
//! **Invariant**: nothing is cached across accounts or across sessions.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Hashes of every beginning seen, by account and session.
    seen: Mutex<HashMap<(String, String), HashSet<u64>>>,
}

impl Cache {
    /// Bytes of `body` that were already sent; remembers the rest.
    pub(super) fn cached_bytes(&self, account: &str, session: Option<&str>, body: &Value) -> usize {
        let Some(session) = session else { return 0 };
        let mut seen = self.seen.lock().expect("no holder of this lock panics");
        let seen = seen.entry((account.to_owned(), session.to_owned())).or_default();
        let head = ["model", "instructions", "tools"].map(|field| body.get(field));
        let head = head.into_iter().flatten().map(Value::to_string).collect::<String>();
        let items = body.get("input").and_then(Value::as_array);
        let items = items.into_iter().flatten().map(Value::to_string);
        let (mut beginning, mut bytes, mut cached) = (0_u64, 0, 0);
        for part in std::iter::once(head).chain(items) {
            let mut hasher = DefaultHasher::new();
            (beginning, &part).hash(&mut hasher);
            beginning = hasher.finish();
            bytes += part.len();
            // Beginnings are nested: once one is new, all longer ones are.
            if !seen.insert(beginning) {
                cached = bytes;
            }
        }
        cached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_longest_known_beginning_is_cached() {
        let cache = Cache::default();
        let body = |items: &[&str]| json!({ "model": "m", "tools": [], "input": items });
        let ask = |account, body: &Value| cache.cached_bytes(account, Some("s"), body);
        assert_eq!(ask("one", &body(&["a", "b"])), 0);
        let head = r#""m"[]"#.len();
        assert_eq!(ask("one", &body(&["a", "b", "c"])), head + r#""a""b""#.len());
        assert_eq!(ask("one", &body(&["a", "x", "c"])), head + r#""a""#.len());
        assert_eq!(ask("one", &json!({ "model": "m", "input": ["a", "b"] })), 0, "another head");
        assert_eq!(ask("two", &body(&["a", "b"])), 0, "another account");
        assert_eq!(cache.cached_bytes("one", None, &body(&["a"])), 0, "no session");
    }
}
