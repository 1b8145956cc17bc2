//! A turn's request as the one message that carries it on a WebSocket.
//!
//! It is the body of an HTTP request and its type, without what the connection has seen; what HTTP says in headers of a single
//! request is said in the metadata.
//!
//! **Invariant**: the dialect's marker and the routing state are the ones given here, whatever the body says of them.

use serde_json::value::to_raw_value;

use super::body::Body;
use super::continuation::{self, Seen, Step};
use super::mode::Dialect;
use super::object::Object;
use super::wire;

const METADATA: &str = "client_metadata";

/// The message for a prepared body. `turn_state` is the routing state of this turn and account, where there is one.
pub fn frame(
    body: &Body,
    step: &Step,
    seen: Option<&Seen>,
    dialect: Dialect,
    turn_state: Option<&str>,
) -> Vec<u8> {
    let mut frame = match (step, seen) {
        (Step::Incremental { from }, Some(seen)) => {
            continuation::incremental(body, *from, seen.response_id())
        }
        _ => body.clone(),
    };
    frame.set("type", wire::CREATE_FRAME);
    let lite = (dialect == Dialect::Lite).then_some("true");
    say(&mut frame, &[(wire::LITE_METADATA_KEY, lite), (wire::TURN_STATE_HEADER, turn_state)]);
    frame.to_bytes()
}

/// Puts these entries into the metadata, or takes them out.
fn say(frame: &mut Body, entries: &[(&str, Option<&str>)]) {
    let mut metadata = frame.get(METADATA).and_then(Object::of).unwrap_or_default();
    let mut changed = false;
    for (name, value) in entries {
        let before = metadata.remove(name);
        changed |= before.is_some() || value.is_some();
        if let Some(value) = value {
            metadata.set(name, to_raw_value(value).expect("a string is JSON"));
        }
    }
    if changed {
        frame.set(METADATA, &metadata.to_raw());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::continuation::step;
    use super::super::item::Item;
    use super::*;

    fn body(value: Value) -> Body {
        Body::parse(value.to_string().as_bytes()).expect("a body")
    }

    fn read(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).expect("JSON")
    }

    #[test]
    fn a_first_frame_is_the_body_and_its_type() {
        let request = json!({"model": "m", "input": [{"role": "user", "content": "a"}], "client_metadata": {"k": "v"}});
        let body = body(request.clone());
        let full = read(&frame(&body, &step(None, &body), None, Dialect::Full, None));
        let mut expected = request;
        expected["type"] = json!("response.create");
        assert_eq!(full, expected);
        let lite = read(&frame(&body, &step(None, &body), None, Dialect::Lite, Some("state")));
        expected["client_metadata"] =
            json!({"k": "v", wire::LITE_METADATA_KEY: "true", "x-codex-turn-state": "state"});
        assert_eq!(lite, expected);
    }

    #[test]
    fn what_the_body_says_of_marker_and_state_does_not_count() {
        let metadata =
            json!({"k": "v", wire::LITE_METADATA_KEY: "true", "x-codex-turn-state": "old"});
        let body = body(json!({"model": "m", "input": [], "client_metadata": metadata}));
        let sent = read(&frame(&body, &step(None, &body), None, Dialect::Full, None));
        assert_eq!(sent["client_metadata"], json!({"k": "v"}));
    }

    #[test]
    fn a_later_frame_says_only_what_is_new() {
        let first = body(json!({"model": "m", "input": [{"role": "user", "content": "a"}]}));
        let answer = json!({"type": "message", "role": "assistant", "content": []});
        let answer = Item::parse(serde_json::value::to_raw_value(&answer).expect("JSON"));
        let seen = Seen::new(&first, vec![answer.clone()], "resp_1".into());
        let mut next = first;
        next.items_mut().push(answer);
        let new = json!({"role": "user", "content": "b"});
        next.items_mut().push(Item::parse(serde_json::value::to_raw_value(&new).expect("JSON")));
        let step = step(Some(&seen), &next);
        let sent = read(&frame(&next, &step, Some(&seen), Dialect::Full, None));
        assert_eq!(sent["input"], json!([new]));
        assert_eq!(sent["previous_response_id"], "resp_1");
    }
}
