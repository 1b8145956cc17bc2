//! The whole answer, rebuilt from a stream.
//!
//! The backend's completed response has an empty `output`, so a client that does not stream is owed the items that went by.
//! They are kept as raw text; pieces of text are only needed for an item that was begun and never completed.
//!
//! **Invariant**: what was not streamed is not in the answer, and an output that the backend did fill is left alone.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::event::{Event, Role};
use super::object::{self, Object};
use super::raw;

/// Collects a stream's items. Push every event; ask at the end.
#[derive(Default)]
pub struct Rebuild {
    places: Vec<Place>,
    /// The terminal's response, and its role.
    terminal: Option<(Box<RawValue>, Role)>,
}

/// What is known of one output item.
#[derive(Default)]
struct Place {
    index: Option<u64>,
    id: Option<String>,
    done: Option<Box<RawValue>>,
    added: Option<Box<RawValue>>,
    /// Text by content index.
    texts: BTreeMap<u64, String>,
    arguments: String,
}

impl Rebuild {
    /// Takes note of one event; most leave no trace.
    pub fn push(&mut self, event: &Event<'_>) {
        match &*event.kind {
            "response.output_item.added" => {
                if let Some(item) = event.item.filter(|item| raw::is_object(item)) {
                    self.place(event).added = Some(item.to_owned());
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item.filter(|item| raw::is_object(item)) {
                    let place = self.place(event);
                    place.done = Some(item.to_owned());
                    place.added = None;
                    place.texts.clear();
                    place.arguments.clear();
                }
            }
            "response.output_text.delta" => self.piece(event, |place, part, delta| {
                place.texts.entry(part).or_default().push_str(delta);
            }),
            "response.output_text.done" => self.piece(event, |place, part, text| {
                place.texts.insert(part, text.to_owned());
            }),
            "response.function_call_arguments.delta" => self.piece(event, |place, _, delta| {
                place.arguments.push_str(delta);
            }),
            "response.function_call_arguments.done" => self.piece(event, |place, _, arguments| {
                arguments.clone_into(&mut place.arguments);
            }),
            _ => {
                let role = event.role();
                if let Some(response) =
                    event.response.filter(|response| role.is_terminal() && raw::is_object(response))
                {
                    self.terminal = Some((response.to_owned(), role));
                }
            }
        }
    }

    /// The answer. None: no terminal with a response was seen (an `error` event has none), or a number in it is beyond what
    /// a tree can hold; [`Rebuild::finish_text`] has no such limit and changes no number.
    pub fn finish(self) -> Option<Value> {
        serde_json::from_str(&self.finish_text()?).ok()
    }

    /// The answer as JSON text, the backend's bytes where nothing had to be filled in. None: no terminal with a response.
    pub fn finish_text(self) -> Option<String> {
        let (response, role) = self.terminal.as_ref()?;
        match self.filled(response, *role) {
            Some(filled) => Some(filled.get().to_owned()),
            None => Some(response.get().to_owned()),
        }
    }

    /// The text of a terminal event with `response.output` filled from the items that went by, where the backend left it
    /// empty. None: nothing to change.
    pub fn fill(&self, terminal: &Event<'_>) -> Option<String> {
        let role = terminal.role();
        let response = self.filled(terminal.response.filter(|_| role.is_terminal())?, role)?;
        let mut event = Object::parse(terminal.raw).ok()?;
        event.set("response", response);
        Some(event.to_raw().get().to_owned())
    }

    /// Whether any item was completed.
    pub fn has_items(&self) -> bool {
        self.places.iter().any(|place| place.done.is_some())
    }

    fn filled(&self, response: &RawValue, role: Role) -> Option<Box<RawValue>> {
        let mut object = Object::of(response)?;
        let given = object.get("output").filter(|output| !raw::is_null(output));
        if given.is_some_and(|output| raw::list(output).is_none_or(|items| !items.is_empty())) {
            return None;
        }
        let items = self.items(role);
        if given.is_some() && items.is_empty() {
            return None;
        }
        object.set("output", object::list(items.iter().map(|item| &**item)));
        Some(object.to_raw())
    }

    /// The items in the order of their output index. Without one on each, in the order in which they appeared.
    fn items(&self, role: Role) -> Vec<Box<RawValue>> {
        let mut places: Vec<&Place> = self.places.iter().collect();
        if places.iter().all(|place| place.index.is_some()) {
            places.sort_by_key(|place| place.index);
        }
        places.into_iter().filter_map(|place| place.item(role)).collect()
    }

    /// Where the event's item is kept: found by output index, else by the item's id, else a new place.
    fn place(&mut self, event: &Event<'_>) -> &mut Place {
        let id = event.item.and_then(|item| raw::field(item, "id")).or(event.parts.item_id);
        let id = id.and_then(raw::text).map(|id| id.into_owned());
        let found = self.places.iter().position(|place| match event.output_index {
            Some(_) => place.index == event.output_index,
            None => id.is_some() && place.id == id,
        });
        let place = found.unwrap_or_else(|| {
            self.places.push(Place { index: event.output_index, id, ..Place::default() });
            self.places.len() - 1
        });
        &mut self.places[place]
    }

    /// Hands a piece of text to the place it belongs to, unless that item is complete or cannot be known.
    fn piece(&mut self, event: &Event<'_>, add: impl FnOnce(&mut Place, u64, &str)) {
        let parts = event.parts;
        let Some(piece) = parts.delta.or(parts.text).or(parts.arguments).and_then(raw::text) else {
            return;
        };
        if event.output_index.is_none() && parts.item_id.is_none() {
            return;
        }
        let part = parts.content_index.and_then(raw::count).unwrap_or(0);
        let place = self.place(event);
        if place.done.is_none() {
            add(place, part, &piece);
        }
    }
}

impl Place {
    /// The item as completed, else what its pieces amount to.
    fn item(&self, role: Role) -> Option<Box<RawValue>> {
        if let Some(done) = &self.done {
            return Some(done.clone());
        }
        let mut item = match &self.added {
            Some(added) => Object::of(added)?,
            None if self.texts.is_empty() => return None,
            None => self.unannounced_message(),
        };
        let kind = item.get("type").and_then(raw::text)?.into_owned();
        match kind.as_str() {
            "message" if !self.texts.is_empty() => {
                let status = if role == Role::Completed { "completed" } else { "incomplete" };
                item.set("status", json(status));
                item.set("content", object::list(self.parts().iter().map(|part| &**part)));
            }
            // Half the arguments of a call would be run as if they were all; a response that completed left none out.
            "function_call" if role == Role::Completed && !self.arguments.is_empty() => {
                item.set("status", json("completed"));
                item.set("arguments", json(&self.arguments));
            }
            _ => return None,
        }
        Some(item.to_raw())
    }

    fn unannounced_message(&self) -> Object {
        let mut message = Object::default();
        if let Some(id) = &self.id {
            message.set("id", json(id));
        }
        message.set("type", json("message"));
        message.set("role", json("assistant"));
        message
    }

    fn parts(&self) -> Vec<Box<RawValue>> {
        let part = |text: &String| {
            raw::made(format!(r#"{{"type":"output_text","text":{},"annotations":[]}}"#, json(text)))
        };
        self.texts.values().map(part).collect()
    }
}

fn json(text: &str) -> Box<RawValue> {
    to_raw_value(text).expect("a string is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json as value;

    const C11: &str = include_str!("../../../../tests/fixtures/cases/C11/upstream.sse");
    const FILTERED: &str = include_str!("../../../../tests/fixtures/cases/C23/upstream.filter.sse");
    const CUT: &str = include_str!("../../../../tests/fixtures/cases/C23/upstream.max.sse");

    fn rebuild<'a>(events: impl IntoIterator<Item = &'a str>) -> Rebuild {
        let mut rebuild = Rebuild::default();
        events.into_iter().filter_map(Event::read).for_each(|event| rebuild.push(&event));
        rebuild
    }

    fn data(stream: &str) -> impl Iterator<Item = &str> {
        stream.lines().filter_map(|line| line.strip_prefix("data: "))
    }

    fn output<'a>(events: impl IntoIterator<Item = &'a str>) -> Value {
        rebuild(events).finish().expect("a terminal")["output"].take()
    }

    const COMPLETED: &str =
        r#"{"type":"response.completed","response":{"id":"r","output":[],"usage":{"n":0.10}}}"#;

    #[test]
    fn an_empty_output_is_filled_from_the_items() {
        let answer = rebuild(data(C11)).finish().expect("a terminal");
        assert_eq!(answer["output"][0]["type"], "reasoning");
        assert_eq!(answer["output"][0]["encrypted_content"], "encA.c3ludGhldGlj");
        assert_eq!(answer["output"][1]["content"][0]["text"], "I will look.");
        assert_eq!(answer["output"][2]["arguments"], "{\"path\":\"a.txt\"}");
        assert_eq!(answer["output"].as_array().map(Vec::len), Some(3));
        assert_eq!(
            (&answer["status"], &answer["usage"]["total_tokens"]),
            (&value!("completed"), &value!(130))
        );
    }

    #[test]
    fn a_filled_output_is_left_alone() {
        for stream in [FILTERED, CUT] {
            let terminal = data(stream)
                .find(|data| data.contains("response.incomplete"))
                .expect("in the fixture");
            let response =
                Event::read(terminal).and_then(|event| event.response).expect("a response").get();
            assert_eq!(rebuild(data(stream)).finish_text().as_deref(), Some(response));
            assert!(
                rebuild(data(stream)).fill(&Event::read(terminal).expect("an event")).is_none()
            );
        }
    }

    #[test]
    fn items_come_in_output_order_with_their_bytes() {
        let events = [
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"b","n":18446744073709551616}}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"a","n":0.10}}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"b","n":1e400}}"#,
            COMPLETED,
        ];
        let expected = r#"{"id":"r","output":[{"type":"a","n":0.10},{"type":"b","n":1e400}],"usage":{"n":0.10}}"#;
        assert_eq!(rebuild(events).finish_text().as_deref(), Some(expected));
        assert_eq!(rebuild(events).finish(), None, "a tree cannot hold 1e400");
        let filled = rebuild(events).fill(&Event::read(COMPLETED).expect("an event"));
        assert_eq!(
            filled,
            Some(format!(r#"{{"type":"response.completed","response":{expected}}}"#))
        );
    }

    #[test]
    fn without_an_index_items_come_as_they_came() {
        let events = [
            r#"{"type":"response.output_item.done","item":{"type":"a"}}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"b"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"a"}}"#,
            COMPLETED,
        ];
        assert_eq!(output(events), value!([{"type": "a"}, {"type": "b"}, {"type": "a"}]));
    }

    #[test]
    fn nothing_is_invented() {
        assert_eq!(
            rebuild([COMPLETED]).finish_text(),
            Some(r#"{"id":"r","output":[],"usage":{"n":0.10}}"#.to_owned())
        );
        assert_eq!(output([r#"{"type":"response.completed","response":{"id":"r"}}"#]), value!([]));
        assert_eq!(
            rebuild(data(C11).filter(|data| !data.contains("response.completed"))).finish(),
            None
        );
        assert_eq!(rebuild([r#"{"type":"error","error":{"message":"no"}}"#]).finish(), None);
        let begun = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1"}}"#;
        assert_eq!(output([begun, COMPLETED]), value!([]));
    }

    #[test]
    fn pieces_stand_in_for_an_item_that_was_never_completed() {
        let message = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}}"#;
        let call = r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"","status":"in_progress"}}"#;
        let pieces = [
            message,
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hel"}"#,
            r#"{"type":"response.output_text.delta","item_id":"msg_1","content_index":0,"delta":"lo \u00e9"}"#,
            call,
            r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"a\":"}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"1}"}"#,
        ];
        let text = |status: &str| {
            value!({"type": "message", "id": "msg_1", "role": "assistant", "status": status,
                "content": [{"type": "output_text", "text": "Hello é", "annotations": []}]})
        };
        let whole = value!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"a\":1}", "status": "completed"});
        assert_eq!(
            output(pieces.into_iter().chain([COMPLETED])),
            value!([text("completed"), whole])
        );
        // A call may be half there when the answer was cut; it would be run as if it were whole.
        let cut = r#"{"type":"response.incomplete","response":{"id":"r","output":[]}}"#;
        assert_eq!(output(pieces.into_iter().chain([cut])), value!([text("incomplete")]));
    }

    #[test]
    fn a_completed_item_is_not_doubled_by_its_pieces() {
        let late = r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"again"}"#;
        let events: Vec<_> = data(C11).collect();
        let (terminal, before) = events.split_last().expect("not empty");
        let all = before.iter().copied().chain([late, terminal]);
        assert_eq!(output(all), output(data(C11)));
    }

    #[test]
    fn text_without_an_announcement_is_a_message() {
        let events = [
            r#"{"type":"response.output_text.done","output_index":0,"item_id":"msg_9","text":"Hi"}"#,
            COMPLETED,
        ];
        assert_eq!(
            output(events),
            value!([{"id": "msg_9", "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}])
        );
    }
}
