//! Who asks: derives the [`Caller`] of a request, here and nowhere else.
//!
//! The conversation is named by the first of: `thread-id`, `x-session-id`, `session-id`, the body's `prompt_cache_key`, a hash
//! of how the conversation opens. `x-codex-window-id` changes on compaction and names nothing.
//!
//! **Invariant**: the same request always gives the same caller.

use http::{HeaderMap, header};
use sha2::{Digest as _, Sha256};
use weir_core::dialect::body::Body;

use crate::turn::caller::Caller;
use crate::upstream::headers::is_codex;

/// Longer names, and names that cannot be header values, are kept as a hash.
const LONGEST_NAME: usize = 200;

pub fn derive(headers: &HeaderMap, body: &Body) -> Caller {
    let header = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?.trim();
        (!value.is_empty()).then(|| bounded(value))
    };
    let cache_key =
        || body.text("prompt_cache_key").filter(|key| !key.is_empty()).map(|key| bounded(&key));
    let said =
        header("thread-id").or_else(|| header("x-session-id")).or_else(|| header("session-id"));
    let named = said.is_some();
    let conversation = said.or_else(cache_key).unwrap_or_else(|| opening(body));
    let parent = header("x-parent-session-id").or_else(|| header("x-codex-parent-thread-id"));
    Caller {
        client: client(headers),
        codex: is_codex(headers),
        parent: parent.filter(|parent| *parent != conversation),
        conversation,
        named,
        group: header("session-id").or_else(cache_key),
        headers: headers.clone(),
    }
}

fn bounded(name: &str) -> String {
    let plain = name.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if plain && name.len() <= LONGEST_NAME {
        name.to_owned()
    } else {
        format!("h_{}", hash([name.as_bytes()]))
    }
}

/// A conversation without a name is known by its instructions and its first two items, which it repeats in every turn.
fn opening(body: &Body) -> String {
    let instructions = body.text("instructions").unwrap_or_default();
    let items = body.items().iter().take(2).map(|item| item.raw().get().as_bytes());
    let parts = [body.model().as_bytes(), instructions.as_bytes()].into_iter().chain(items);
    format!("o_{}", hash(parts))
}

fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize()[..12].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The kind of client, for people.
fn client(headers: &HeaderMap) -> String {
    if is_codex(headers) {
        return "codex".into();
    }
    let agent =
        headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    if agent.starts_with("OpenAI/Python") || agent.starts_with("AsyncOpenAI/Python") {
        return "openai-python".into();
    }
    if agent.starts_with("OpenAI/JS") {
        return "openai-node".into();
    }
    let product = agent.split(['/', ' ']).next().unwrap_or_default().to_ascii_lowercase();
    let fits = (1..=32).contains(&product.len())
        && product.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if fits { product } else { "unknown".into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn body(text: &str) -> Body {
        Body::parse(text.as_bytes()).expect("a request")
    }

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    const PLAIN: &str = r#"{"model":"m","input":"hi"}"#;

    #[test]
    fn the_first_name_that_is_there_names_the_conversation() {
        let named = r#"{"model":"m","input":"hi","prompt_cache_key":"key"}"#;
        let all = [("thread-id", "t"), ("x-session-id", "x"), ("session-id", "s")];
        for (skip, name) in [(0, "t"), (1, "x"), (2, "s"), (3, "key")] {
            let caller = derive(&headers(&all[skip..]), &body(named));
            assert_eq!((caller.conversation.as_str(), caller.named), (name, skip < 3));
        }
    }

    #[test]
    fn an_unnamed_conversation_keeps_its_name_while_it_grows() {
        let grown = r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}"#;
        let longer = grown.replace(
            r#"{"role":"user","content":"c"}"#,
            r#"{"role":"user","content":"c"},{"role":"user","content":"d"}"#,
        );
        let none = HeaderMap::new();
        let name = derive(&none, &body(grown)).conversation;
        assert_eq!(name, derive(&none, &body(&longer)).conversation);
        assert_ne!(name, derive(&none, &body(PLAIN)).conversation);
        assert!(name.starts_with("o_"));
    }

    #[test]
    fn the_window_names_nothing_and_a_child_names_its_parent() {
        let one =
            derive(&headers(&[("x-codex-window-id", "w:0"), ("thread-id", "t")]), &body(PLAIN));
        let two =
            derive(&headers(&[("x-codex-window-id", "w:1"), ("thread-id", "t")]), &body(PLAIN));
        assert_eq!(one.conversation, two.conversation);
        let child =
            derive(&headers(&[("x-session-id", "c"), ("x-parent-session-id", "p")]), &body(PLAIN));
        assert_eq!(child.parent.as_deref(), Some("p"));
    }

    #[test]
    fn a_name_that_is_no_header_value_is_kept_as_a_hash() {
        for odd in ["schlüssel", "a\\nb", &"x".repeat(300)] {
            let body = body(&format!(r#"{{"model":"m","input":"hi","prompt_cache_key":"{odd}"}}"#));
            let name = derive(&HeaderMap::new(), &body).conversation;
            assert!(name.starts_with("h_") && HeaderValue::from_str(&name).is_ok(), "{name}");
        }
    }

    #[test]
    fn clients_are_known_by_what_they_say() {
        let kind = |name, value| derive(&headers(&[(name, value)]), &body(PLAIN)).client;
        assert_eq!(kind("originator", "codex_exec"), "codex");
        assert_eq!(kind("user-agent", "opencode/1.18.33 ai-sdk/x"), "opencode");
        assert_eq!(kind("user-agent", "OpenAI/Python 2.0"), "openai-python");
        assert_eq!(kind("user-agent", "<script>"), "unknown");
    }
}
