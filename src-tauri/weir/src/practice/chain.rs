//! What a socket holds between two frames: its last response, with everything that led to it.
//!
//! Nothing is stored on this backend, so a response can be gone on from only on the socket that gave it, only while it
//! is the last one, and only if it completed. A request that goes on from it takes it: if that request fails, the next
//! one has to say everything again.
//!
//! **Invariant**: at most one response is held, and its history is what the model has really read and said.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::errors::Refusal;
use super::stream::Piece;

/// Shared by a socket and the exchange that is under way on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    last: Option<Link>,
    /// Every id that was ever held.
    given: HashSet<String>,
}

/// A response that can be gone on from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Link {
    id: String,
    /// Its input and its output.
    history: Vec<Value>,
}

impl Chain {
    /// The history of this response, which is then no longer held.
    pub(super) fn take(&self, id: &str) -> Result<Vec<Value>, Refusal> {
        let mut memory = self.0.lock().expect("no holder of this lock panics");
        match memory.last.take_if(|link| link.id == id) {
            Some(link) => Ok(link.history),
            None => Err(Refusal::previous_response_not_found(id, memory.given.contains(id))),
        }
    }

    pub(super) fn keep(&self, link: Link) {
        let mut memory = self.0.lock().expect("no holder of this lock panics");
        memory.given.insert(link.id.clone());
        memory.last = Some(link);
    }
}

impl Link {
    /// What these events leave behind after this input, if they complete.
    pub(super) fn of(input: &[Value], pieces: &[Piece]) -> Option<Self> {
        let events = pieces.iter().filter_map(|piece| match piece {
            Piece::Event(event) => Some(event),
            _ => None,
        });
        let kind =
            |event: &Value, wanted: &str| event.get("type").is_some_and(|kind| kind == wanted);
        let last = events.clone().next_back().filter(|event| kind(event, "response.completed"))?;
        let id = last.pointer("/response/id")?.as_str()?.to_owned();
        let done = events.filter(|event| kind(event, "response.output_item.done"));
        let output = done.filter_map(|event| event.get("item").cloned());
        Some(Self { id, history: input.iter().cloned().chain(output).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_last_completed_response_can_be_gone_on_from() {
        let chain = Chain::default();
        let link = |id: &str, end: &str| {
            let done = json!({ "type": "response.output_item.done", "item": { "id": "msg_1" } });
            let end = json!({ "type": end, "response": { "id": id } });
            Link::of(&[json!("asked")], &[Piece::Event(done), Piece::Wait(1), Piece::Event(end)])
        };
        assert_eq!(link("r", "response.failed"), None);
        chain.keep(link("r1", "response.completed").expect("it completed"));
        chain.keep(link("r2", "response.completed").expect("it completed"));
        let blamed = |id: &str| chain.take(id).expect_err("not held").violation.is_some();
        assert!(blamed("elsewhere"));
        assert!(!blamed("r1"), "it was given out here once");
        assert_eq!(chain.take("r2"), Ok(vec![json!("asked"), json!({ "id": "msg_1" })]));
        assert!(!blamed("r2"), "it was taken");
    }
}
