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
