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
