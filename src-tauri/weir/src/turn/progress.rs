//! How far one attempt has come: what is held, what is open, what it would take to end it.
//!
//! **Invariant**: plain memory, no waiting; a frame given out once is never given again.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Value, json};
use weir_core::dialect::event::Event;
use weir_core::dialect::rebuild::Rebuild;

/// An estimate of tokens from bytes, for answers whose count never came.
const BYTES_PER_TOKEN: u64 = 4;

pub struct Progress {
    held: Vec<Bytes>,
    committed: bool,
    next_sequence: u64,
    response_id: Option<String>,
    /// Items that were added and are not done.
    open: BTreeSet<u64>,
    done: Vec<Value>,
    done_bytes: u64,
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

    pub fn saw(&mut self, event: &Event<'_>) {
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
                    self.done.extend(serde_json::from_str(item.get()));
                }
            }
            _ => {}
        }
        if let Some(whole) = &mut self.whole {
            whole.push(event);
        }
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
        self.held.push(frame);
        None
    }

    /// Every item that was begun is complete, and there is at least one.
    pub fn all_complete(&self) -> bool {
        self.committed && self.open.is_empty() && !self.done.is_empty()
    }

    /// Usage as far as bytes tell it, for clients that take an answer without usage for an unfinished one.
    pub fn estimate(&self, upstream_bytes: usize) -> Value {
        let input = upstream_bytes as u64 / BYTES_PER_TOKEN;
        let output = self.done_bytes / BYTES_PER_TOKEN;
        json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output})
    }

    /// The end that the backend did not send: as a frame, and as a whole answer.
    pub fn completed_by_weir(&self, upstream_bytes: usize) -> (Bytes, Value) {
        let response = json!({
            "id": self.response_id(),
            "object": "response",
            "status": "completed",
            "output": self.done,
            "usage": self.estimate(upstream_bytes),
            "weir": {"completed_by_weir": true, "usage_estimated": true},
        });
        let event = json!({
            "type": "response.completed",
            "sequence_number": self.next_sequence,
            "response": response,
        });
        (frame(Some("response.completed"), &event.to_string()), response)
    }

    /// The whole answer, once its terminal event was seen.
    pub fn take_whole(&mut self) -> Option<String> {
        self.whole.take()?.finish_text()
    }
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
        progress.saw(&Event::read(&text).expect("an event"));
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
        assert_eq!(progress.next_sequence(), 7);
        assert_eq!(
            (&answer["id"], &answer["usage"]["input_tokens"]),
            (&json!("resp_1"), &json!(100))
        );
        assert_eq!(answer["weir"]["usage_estimated"], true);
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
