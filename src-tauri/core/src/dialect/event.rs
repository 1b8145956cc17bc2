//! One server event, looked at without building a tree.
//!
//! Most events of a stream are small pieces of text that nobody here needs to understand; they are read in one pass over
//! borrowed text and passed on as they came.
//!
//! **Invariant**: reading never changes an event, and an event of an unknown type is content like any other.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

pub use super::failure::{Failure, Usage};

use super::item::Item;
use super::object::Object;
use super::{namespace, raw, wire};

/// What an event means for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// About the connection or the account, not the answer.
    Control,
    /// The answer is about to begin; nothing a client needs has been said.
    Preamble,
    /// Anything else, unknown types included.
    Content,
    /// Terminal: the answer is whole.
    Completed,
    /// Terminal: the answer was cut off, by a limit or a filter.
    Incomplete,
    /// Terminal: there is no answer.
    Failed,
    /// Terminal: there may not even have been a response.
    Error,
}

impl Role {
    /// Whether nothing follows.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Incomplete | Self::Failed | Self::Error)
    }
}

/// An event. All raw values are slices of `raw`.
#[derive(Clone)]
pub struct Event<'a> {
    /// `type`; "error" for a typeless body that says what went wrong.
    pub kind: Cow<'a, str>,
    pub sequence_number: Option<u64>,
    pub output_index: Option<u64>,
    pub item: Option<&'a RawValue>,
    pub response: Option<&'a RawValue>,
    /// The event as it came.
    pub raw: &'a str,
    pub(super) parts: Parts<'a>,
}

/// What only some events have.
#[derive(Clone, Copy, Default)]
pub(super) struct Parts<'a> {
    whole: Option<&'a RawValue>,
    response_id: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    detail: Option<&'a RawValue>,
    pub(super) item_id: Option<&'a RawValue>,
    pub(super) content_index: Option<&'a RawValue>,
    pub(super) delta: Option<&'a RawValue>,
    pub(super) text: Option<&'a RawValue>,
    pub(super) arguments: Option<&'a RawValue>,
}

impl<'a> Event<'a> {
    /// Reads the data of one event. None: not a JSON object with a string `type`, so it passes through untouched. A typeless
    /// `{"detail":…}` or `{"error":…}` body is what the backend says instead of an event, and reads as an error.
    pub fn read(data: &'a str) -> Option<Self> {
        let mut kind = None;
        let mut sequence_number = None;
        let mut output_index = None;
        let mut item = None;
        let mut response = None;
        let mut parts = Parts::default();
        raw::fields(data, |key, value| match &*raw::name(key) {
            "type" => kind = raw::text(value),
            "sequence_number" => sequence_number = raw::count(value),
            "output_index" => output_index = raw::count(value),
            "item" => item = Some(value),
            "response" => response = Some(value),
            "response_id" => parts.response_id = Some(value),
            "error" => parts.error = Some(value),
            "detail" => parts.detail = Some(value),
            "item_id" => parts.item_id = Some(value),
            "content_index" => parts.content_index = Some(value),
            "delta" => parts.delta = Some(value),
            "text" => parts.text = Some(value),
            "arguments" => parts.arguments = Some(value),
            _ => {}
        })
        .ok()?;
        let says_error =
            parts.detail.is_some() || parts.error.is_some_and(|error| !raw::is_null(error));
        let kind = kind.or_else(|| says_error.then_some(Cow::Borrowed("error")))?;
        if kind == "error" {
            parts.whole = serde_json::from_str(data).ok();
        }
        Some(Self { kind, sequence_number, output_index, item, response, raw: data, parts })
    }

    /// What the event means for the turn, by its type alone.
    pub fn role(&self) -> Role {
        match &*self.kind {
            "response.created" | "response.in_progress" | "response.queued" => Role::Preamble,
            "response.completed" | "response.done" => Role::Completed,
            "response.incomplete" => Role::Incomplete,
            "response.failed" => Role::Failed,
            "error" => Role::Error,
            kind if wire::CONTROL_EVENTS.contains(&kind) => Role::Control,
            _ => Role::Content,
        }
    }

    /// The item that a `response.output_item.done` completes.
    pub fn completed_item(&self) -> Option<Item> {
        let item = self.item.filter(|item| raw::is_object(item))?;
        (self.kind == "response.output_item.done").then(|| Item::parse(item.to_owned()))
    }

    pub fn response_id(&self) -> Option<String> {
        let of_response = self.response.and_then(|response| raw::field(response, "id"));
        of_response.or(self.parts.response_id).and_then(raw::text).map(|id| id.into_owned())
    }

    /// `response.usage` of a terminal. None when it is missing, null or half there.
    pub fn usage(&self) -> Option<Usage> {
        if !self.role().is_terminal() {
            return None;
        }
        Usage::of(raw::field(self.response?, "usage")?)
    }

    /// What went wrong, in an error, a failed or an incomplete response. None for any other event.
    pub fn failure(&self) -> Option<Failure> {
        match self.role() {
            Role::Error => {
                Some(Failure::of_error(self.parts.whole?, self.parts.error, self.parts.detail))
            }
            Role::Failed | Role::Incomplete => match self.response {
                Some(response) => Some(Failure::of_response(response)),
                None => Some(Failure::of_error(
                    serde_json::from_str(self.raw).ok()?,
                    self.parts.error,
                    None,
                )),
            },
            _ => None,
        }
    }

    /// The event with the `functions` namespace taken off its item and off `response.output`, and the ids of the calls that
    /// lost it. None: nothing had to change. A changed event is one line, whatever it was before.
    pub fn without_namespace(&self) -> Option<(String, Vec<String>)> {
        let mut touched = Vec::new();
        let item = self.item.and_then(namespace::strip);
        let output = self
            .response
            .and_then(|response| raw::field(response, "output"))
            .and_then(namespace::strip_all);
        if item.is_none() && output.is_none() {
            return None;
        }
        let mut event = Object::parse(self.raw).ok()?;
        if let Some((item, call_id)) = item {
            event.set("item", item);
            touched.extend(call_id);
        }
        if let Some((output, call_ids)) = output {
            let mut response = self.response.and_then(Object::of)?;
            response.set("output", output);
            event.set("response", response.to_raw());
            touched.extend(call_ids);
        }
        Some((event.to_raw().get().to_owned(), touched))
    }
}

impl fmt::Debug for Event<'_> {
    /// Prints no contents: answers are private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({}, {} bytes)", self.kind, self.raw.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: &str) -> Event<'_> {
        Event::read(data).expect("an event")
    }

    #[test]
    fn roles() {
        for (kind, role) in [
            ("codex.rate_limits", Role::Control),
            ("codex.response.metadata", Role::Control),
            ("response.metadata", Role::Control),
            ("keepalive", Role::Control),
            ("response.created", Role::Preamble),
            ("response.in_progress", Role::Preamble),
            ("response.queued", Role::Preamble),
            ("response.output_item.added", Role::Content),
            ("response.output_text.delta", Role::Content),
            ("response.brand_new", Role::Content),
            ("codex.brand_new", Role::Content),
            ("", Role::Content),
            ("response.completed", Role::Completed),
            ("response.done", Role::Completed),
            ("response.incomplete", Role::Incomplete),
            ("response.failed", Role::Failed),
            ("error", Role::Error),
        ] {
            let data = format!(r#"{{"type":"{kind}"}}"#);
            assert_eq!(event(&data).role(), role, "{kind}");
        }
    }

    #[test]
    fn what_is_no_event_is_told_apart() {
        for data in [
            "",
            "[DONE]",
            "null",
            "[]",
            "\"x\"",
            "{}",
            r#"{"type":7}"#,
            r#"{"type":"x""#,
            r#"{"error":null}"#,
            r#"{"id":"resp_1"}"#,
        ] {
            assert!(Event::read(data).is_none(), "{data}");
        }
        for data in
            [r#"{"detail":"no"}"#, r#"{"error":{"message":"no"}}"#, r#"{"type":null,"error":"no"}"#]
        {
            assert_eq!(event(data).role(), Role::Error, "{data}");
        }
    }

    #[test]
    fn reading_borrows() {
        let data = r#"{ "type":"response.output_item.done", "output_index":2,"sequence_number":18446744073709551615,"item":{"type":"function_call","call_id":"c","x":0.10},"new":{"deep":[1e400]} }"#;
        let event = event(data);
        assert!(matches!(event.kind, Cow::Borrowed(_)));
        assert!(
            data.as_bytes().as_ptr_range().contains(&event.item.expect("an item").get().as_ptr())
        );
        assert_eq!((event.output_index, event.sequence_number), (Some(2), Some(u64::MAX)));
        assert_eq!(event.raw, data);
        let item = event.completed_item().expect("completed");
        assert_eq!((item.kind(), item.call_id()), ("function_call", Some("c")));
    }

    #[test]
    fn numbers_that_are_not_there_are_absent() {
        let event = event(r#"{"type":"x","sequence_number":null,"output_index":-1}"#);
        assert_eq!((event.sequence_number, event.output_index), (None, None));
    }

    #[test]
    fn only_done_completes_an_item() {
        for data in [
            r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c"}}"#,
            r#"{"type":"response.output_item.done"}"#,
            r#"{"type":"response.output_item.done","item":null}"#,
        ] {
            assert!(event(data).completed_item().is_none(), "{data}");
        }
    }

    #[test]
    fn response_ids() {
        for (data, id) in [
            (r#"{"type":"response.created","response":{"id":"resp_1"}}"#, Some("resp_1")),
            (r#"{"type":"response.output_text.delta","response_id":"resp_2"}"#, Some("resp_2")),
            (r#"{"type":"response.created","response":{}}"#, None),
            (r#"{"type":"x"}"#, None),
        ] {
            assert_eq!(event(data).response_id().as_deref(), id, "{data}");
        }
    }

    #[test]
    fn the_namespace_goes_and_nothing_else() {
        let data = r#"{"type":"response.output_item.done","n":0.10,"item":{"type":"function_call","namespace":"functions","call_id":"a","arguments":"{ }"},"big":1e400}"#;
        let (text, ids) = event(data).without_namespace().expect("changed");
        assert_eq!(
            text,
            r#"{"type":"response.output_item.done","n":0.10,"item":{"type":"function_call","call_id":"a","arguments":"{ }"},"big":1e400}"#
        );
        assert_eq!(ids, ["a"]);
        assert!(event(&text).without_namespace().is_none());

        let data = r#"{"type":"response.completed","response":{"id":"r","output":[{"type":"message","n":0.10},{"type":"function_call","call_id":"a","namespace":"functions"},{"type":"custom_tool_call","call_id":"b","namespace":"functions"},{"type":"function_call","call_id":"c","namespace":"own"}],"usage":null},"sequence_number":4}"#;
        let (text, ids) = event(data).without_namespace().expect("changed");
        assert_eq!(text, data.replace(r#","namespace":"functions""#, ""));
        assert_eq!(ids, ["a", "b"]);
    }

    #[test]
    fn events_without_the_namespace_are_left_alone() {
        for data in [
            r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"a","namespace":"own"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"a","arguments":"{\"namespace\":\"functions\"}"}}"#,
            r#"{"type":"response.output_text.delta","delta":"\"namespace\":\"functions\""}"#,
            r#"{"type":"response.completed","response":{"output":[]}}"#,
            r#"{"type":"response.completed","response":{"output":null}}"#,
        ] {
            assert!(event(data).without_namespace().is_none(), "{data}");
        }
    }

    #[test]
    fn debug_keeps_the_contents_private() {
        assert_eq!(
            format!("{:?}", event(r#"{"type":"x","delta":"secret"}"#)),
            "Event(x, 29 bytes)"
        );
    }
}
