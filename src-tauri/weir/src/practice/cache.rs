//! A model of the prompt cache: what a session or a socket already sent to an account is cheaper.
//!
//! A request is a head (model, instructions, tools) and a list of items. The longest beginning that this account has
//! already seen in this place counts as cached, so a changed head, a reordered item or a moved conversation shows in
//! the numbers, as it does in a user's quota. What a socket holds from its last response counts as seen too.
//!
//! **Invariant**: nothing is cached across accounts or across places.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Hashes of every beginning seen, by account and place.
    seen: Mutex<HashMap<(String, Place), HashSet<u64>>>,
}

/// What shares one cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// HTTP requests of one session id.
    Session(String),
    /// Frames of one socket, by its number.
    Socket(u64),
}

impl Cache {
    /// Bytes of `body` that were already sent; remembers the rest. The first `held` items are those that the place holds
    /// from a response before, which are cached as long as the head in front of them is.
    pub(super) fn cached_bytes(
        &self,
        account: &str,
        place: Option<&Place>,
        body: &Value,
        held: usize,
    ) -> usize {
        let Some(place) = place else { return 0 };
        let mut seen = self.seen.lock().expect("no holder of this lock panics");
        let seen = seen.entry((account.to_owned(), place.clone())).or_default();
        let head = ["model", "instructions", "tools"].map(|field| body.get(field));
        let head = head.into_iter().flatten().map(Value::to_string).collect::<String>();
        let items = body.get("input").and_then(Value::as_array);
        let items = items.into_iter().flatten().map(Value::to_string);
        let (mut beginning, mut bytes, mut cached) = (0_u64, 0, 0);
        for (at, part) in std::iter::once(head).chain(items).enumerate() {
            let mut hasher = DefaultHasher::new();
            (beginning, &part).hash(&mut hasher);
            beginning = hasher.finish();
            let known = at > 0 && at <= held && cached == bytes;
            bytes += part.len();
            // Beginnings are nested: once one is new, all longer ones are.
            if !seen.insert(beginning) || known {
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
        let place = Place::Session("s".to_owned());
        let ask = |account, body: &Value| cache.cached_bytes(account, Some(&place), body, 0);
        assert_eq!(ask("one", &body(&["a", "b"])), 0);
        let head = r#""m"[]"#.len();
        assert_eq!(ask("one", &body(&["a", "b", "c"])), head + r#""a""b""#.len());
        assert_eq!(ask("one", &body(&["a", "x", "c"])), head + r#""a""#.len());
        assert_eq!(ask("one", &json!({ "model": "m", "input": ["a", "b"] })), 0, "another head");
        assert_eq!(ask("two", &body(&["a", "b"])), 0, "another account");
        assert_eq!(cache.cached_bytes("one", None, &body(&["a"]), 0), 0, "no session");
        let socket = Place::Socket(1);
        assert_eq!(cache.cached_bytes("one", Some(&socket), &body(&["a"]), 0), 0, "another place");
    }

    #[test]
    fn what_a_socket_holds_was_seen() {
        let cache = Cache::default();
        let body = |model: &str, items: &[&str]| json!({ "model": model, "input": items });
        let place = Place::Socket(1);
        let ask = |body: &Value, held| cache.cached_bytes("one", Some(&place), body, held);
        assert_eq!(ask(&body("m", &["a"]), 0), 0);
        // "b" is what was answered, "c" is new.
        assert_eq!(ask(&body("m", &["a", "b", "c"]), 2), r#""m""a""b""#.len());
        assert_eq!(ask(&body("n", &["a", "b", "c", "d"]), 3), 0, "another head in front of it");
        assert_eq!(ask(&body("n", &["a", "b", "c", "d"]), 3), r#""n""a""b""c""d""#.len());
    }
}
