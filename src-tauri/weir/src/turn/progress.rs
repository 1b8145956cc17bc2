//! How far one attempt has come: what is held, what is open, what it would take to end it.
//!
//! **Invariant**: plain memory, no waiting; a frame given out once is never given again.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use weir_core::dialect::event::{Event, Role};
use weir_core::dialect::item::Item;
use weir_core::dialect::rebuild::Rebuild;

/// An estimate of tokens from bytes, for answers whose count never came.
const BYTES_PER_TOKEN: u64 = 4;

/// What may be held before the commit point, in bytes.
const HELD: usize = 8 * 1024 * 1024;

pub struct Progress {
    held: Vec<Bytes>,
    committed: bool,
    next_sequence: u64,
    response_id: Option<String>,
    /// Items that were added and are not done.
    open: BTreeSet<u64>,
    done: Vec<Box<RawValue>>,
    done_bytes: u64,
    /// One of the items done is something that a client goes on with: a call, or an answer.
    answered: bool,
    /// One of them is a call, which its client has begun to run.
    called: bool,
    held_bytes: usize,
    /// The last event said that the backend works on the turn.
    works: bool,
    whole: Option<Rebuild>,
}

impl Progress {
    pub fn new(whole: bool) -> Self {
        Self {
            held: Vec::new(),
            committed: false,
            next_sequence: 0,
            response_id: None,
            open: BTreeSet::new(),
            done: Vec::new(),
            done_bytes: 0,
            answered: false,
            called: false,
            held_bytes: 0,
            works: false,
            whole: whole.then(Rebuild::default),
        }
    }

    pub fn committed(&self) -> bool {
        self.committed
    }

    /// The number that an event of ours would carry.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    pub fn response_id(&self) -> &str {
        self.response_id.as_deref().unwrap_or("resp_weir")
    }

    /// The last event said that the backend works on the turn.
    pub fn works(&self) -> bool {
        self.works
    }

    /// Takes note of an event. False: more is held before the commit point than an answer's opening can be.
    pub fn saw(&mut self, event: &Event<'_>) -> bool {
        self.works = event.role() == Role::Preamble;
        if let Some(number) = event.sequence_number {
            self.next_sequence = number + 1;
        }
        if self.response_id.is_none() {
            self.response_id = event.response_id();
        }
        match (event.kind.as_ref(), event.output_index) {
            ("response.output_item.added", Some(index)) => {
                self.open.insert(index);
            }
            ("response.output_item.done", index) => {
                index.map(|index| self.open.remove(&index));
                if let Some(item) = event.item {
                    self.done_bytes += item.get().len() as u64;
                    self.done.push(item.to_owned());
                }
                if let Some(item) = event.completed_item() {
                    self.called |= item.is_call();
                    self.answered |= item.is_call() || is_answer(&item);
                }
            }
            _ => {}
        }
        if let Some(whole) = &mut self.whole {
            whole.push(event);
        }
        !self.holds_too_much()
    }

    /// Passes the commit point; what was held comes out the first time.
    pub fn commit(&mut self) -> Option<Vec<Bytes>> {
        if self.committed {
            return None;
        }
        self.committed = true;
        Some(std::mem::take(&mut self.held))
    }

    /// Before the commit point a frame is held, after it it is given back to be written.
    pub fn hold_or_give(&mut self, frame: Bytes) -> Option<Bytes> {
        if self.committed {
            return Some(frame);
        }
        self.held_bytes += frame.len();
        self.held.push(frame);
        None
    }

    /// More is held before the commit point than an answer's opening can be.
    pub fn holds_too_much(&self) -> bool {
        !self.committed && self.held_bytes > HELD
    }

    /// Every item that was begun is complete, and one of them is a call or an answer. A thought or a comment alone is not
    /// an end: an agent would stop without a word.
    pub fn all_complete(&self) -> bool {
        self.committed && self.open.is_empty() && self.answered
    }

    /// The same, and a call is among them: told of a failure now, a client would ask again and run it twice.
    pub fn all_complete_and_called(&self) -> bool {
        self.all_complete() && self.called
    }

    /// Usage as far as bytes tell it, for clients that take an answer without usage for an unfinished one.
    pub fn estimate(&self, upstream_bytes: usize) -> Value {
        let input = upstream_bytes as u64 / BYTES_PER_TOKEN;
        let output = self.done_bytes / BYTES_PER_TOKEN;
        json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output})
    }

    /// The end that the backend did not send: as a frame, and as a whole answer.
    pub fn completed_by_weir(&self, upstream_bytes: usize) -> (Bytes, String) {
        let output: Vec<&str> = self.done.iter().map(|item| item.get()).collect();
        let response = format!(
            "{{\"id\":{},\"object\":\"response\",\"status\":\"completed\",\"output\":[{}],\"usage\":{},\"weir\":{}}}",
            json!(self.response_id()),
            output.join(","),
            self.estimate(upstream_bytes),
            json!({"completed_by_weir": true, "usage_estimated": true}),
        );
        let number = self.next_sequence;
        let event = format!(
            "{{\"type\":\"response.completed\",\"sequence_number\":{number},\"response\":{response}}}"
        );
        (frame(Some("response.completed"), &event), response)
    }

    /// The whole answer, once its terminal event was seen.
    pub fn take_whole(&mut self) -> Option<String> {
        self.whole.take()?.finish_text()
    }
}

/// A message of the assistant that is not a comment on the way.
fn is_answer(item: &Item) -> bool {
    let phase = serde_json::from_str::<Phase>(item.raw().get()).ok().and_then(|item| item.phase);
    item.kind() == "message" && phase.as_deref() != Some("commentary")
}

#[derive(Deserialize)]
struct Phase {
    phase: Option<String>,
}

/// One event in the form in which it is sent.
pub fn frame(kind: Option<&str>, data: &str) -> Bytes {
    let mut frame = String::with_capacity(data.len() + 64);
    if let Some(kind) = kind.filter(|kind| !kind.contains(['\n', '\r'])) {
        frame.push_str("event: ");
        frame.push_str(kind);
        frame.push('\n');
    }
    // Data of several lines came as several `data:` fields and leaves as such.
    for line in data.split('\n') {
        frame.push_str("data: ");
        frame.push_str(line);
        frame.push('\n');
    }
    frame.push('\n');
    Bytes::from(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saw(progress: &mut Progress, event: Value) {
        let text = event.to_string();
        assert!(progress.saw(&Event::read(&text).expect("an event")));
    }

    #[test]
    fn an_item_that_is_only_begun_keeps_the_answer_open() {
        let mut progress = Progress::new(false);
        progress.commit();
        assert!(!progress.all_complete(), "nothing was said");
        saw(
            &mut progress,
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}),
        );
        saw(
            &mut progress,
            json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "message"}}),
        );
        assert!(progress.all_complete());
        saw(
            &mut progress,
            json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message"}}),
        );
        assert!(!progress.all_complete());
    }

    #[test]
    fn an_end_of_ours_continues_the_numbers_and_marks_its_estimate() {
        let mut progress = Progress::new(false);
        progress.commit();
        saw(
            &mut progress,
            json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1"}}),
        );
        saw(
            &mut progress,
            json!({"type": "response.output_item.done", "sequence_number": 6, "output_index": 0, "item": {"type": "message"}}),
        );
        let (_, answer) = progress.completed_by_weir(400);
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(progress.next_sequence(), 7);
        assert_eq!(
            (&answer["id"], &answer["usage"]["input_tokens"]),
            (&json!("resp_1"), &json!(100))
        );
        assert_eq!(answer["weir"]["usage_estimated"], true);
    }

    #[test]
    fn a_thought_or_a_comment_alone_is_no_answer() {
        let mut progress = Progress::new(false);
        progress.commit();
        let done =
            |item| json!({"type": "response.output_item.done", "output_index": 0, "item": item});
        saw(&mut progress, done(json!({"type": "reasoning", "encrypted_content": "x"})));
        saw(
            &mut progress,
            done(json!({"type": "message", "role": "assistant", "phase": "commentary"})),
        );
        assert!(!progress.all_complete());
        saw(&mut progress, done(json!({"type": "message", "role": "assistant"})));
        assert!(progress.all_complete() && !progress.all_complete_and_called());
        saw(
            &mut progress,
            done(json!({"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"})),
        );
        assert!(progress.all_complete_and_called());
    }

    #[test]
    fn numbers_of_an_item_survive_an_end_of_ours() {
        let mut progress = Progress::new(false);
        progress.commit();
        let text = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","n":[1e400,12345678901234567890123,0.10]}}"#;
        assert!(progress.saw(&Event::read(text).expect("an event")));
        let (frame, _) = progress.completed_by_weir(0);
        assert!(String::from_utf8_lossy(&frame).contains("[1e400,12345678901234567890123,0.10]"));
    }

    #[test]
    fn an_opening_without_end_is_too_long() {
        let mut progress = Progress::new(false);
        let text = json!({"type": "response.in_progress", "pad": "x".repeat(HELD / 4)}).to_string();
        let event = Event::read(&text).expect("an event");
        let mut hold = || {
            let good = progress.saw(&event);
            assert!(progress.hold_or_give(frame(None, &text)).is_none());
            good
        };
        assert_eq!([(); 6].map(|()| hold()), [true, true, true, true, false, false]);
        // What is passed on at once was never held.
        let large =
            json!({"type": "response.output_item.done", "pad": "x".repeat(2 * HELD)}).to_string();
        assert!(Progress::new(false).saw(&Event::read(&large).expect("an event")));
    }

    #[test]
    fn what_is_held_comes_out_once_and_in_order() {
        let mut progress = Progress::new(false);
        assert!(progress.hold_or_give(frame(None, "1")).is_none());
        assert!(progress.hold_or_give(frame(None, "2")).is_none());
        assert_eq!(progress.commit(), Some(vec![frame(None, "1"), frame(None, "2")]));
        assert_eq!(progress.commit(), None);
        assert_eq!(progress.hold_or_give(frame(None, "3")), Some(frame(None, "3")));
    }

    #[test]
    fn data_of_two_lines_stays_two_lines() {
        assert_eq!(&frame(Some("a"), "1\n2")[..], b"event: a\ndata: 1\ndata: 2\n\n");
    }
}
