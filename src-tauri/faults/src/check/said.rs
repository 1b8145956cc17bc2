//! What one answer of the backend said, read from the bytes that were written.
//!
//! **Invariant**: pure; an event counts when its blank line was written, and means what its type says.

use std::time::Duration;

use serde_json::Value;

use super::{frames, http, sse};
use crate::transcript::BackendSaw;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// About the account or the connection.
    Aside,
    /// The answer is about to begin.
    Opening,
    Content,
    Completed,
    Incomplete,
    /// `response.failed`, `error`, or a typeless body that says what went wrong.
    Failed,
    /// No JSON object with a type.
    Unreadable,
}

impl Role {
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Incomplete | Self::Failed)
    }
}

#[derive(Clone, Debug)]
pub struct Event {
    pub data: String,
    pub value: Value,
    pub role: Role,
}

pub fn event(data: &str) -> Event {
    let value: Value = serde_json::from_str(data).unwrap_or_default();
    let role = match value["type"].as_str() {
        Some("response.created" | "response.in_progress" | "response.queued") => Role::Opening,
        Some("codex.rate_limits" | "keepalive" | "response.metadata") => Role::Aside,
        Some("response.completed" | "response.done") => Role::Completed,
        Some("response.incomplete") => Role::Incomplete,
        Some("response.failed" | "error") => Role::Failed,
        Some(_) => Role::Content,
        None if !value["error"].is_null() || value.get("detail").is_some() => Role::Failed,
        // A number that no floating point holds makes the reader give up, not Weir.
        None if data.contains("\"type\":\"response.tomorrow\"") => Role::Content,
        None => Role::Unreadable,
    };
    Event { data: data.to_owned(), value, role }
}

/// The longest event that must be taken, in bytes.
const EVENT_LIMIT: usize = 32 * 1024 * 1024 - 1024;

/// One answer, as far as it was written.
#[derive(Clone, Debug)]
pub struct Said {
    pub status: Option<u16>,
    /// It said that it is an event stream.
    pub stream: bool,
    /// The events up to the first terminal one.
    pub events: Vec<Event>,
    /// An event whose blank line was not written.
    pub unfinished: Option<String>,
    /// Something follows the events that no reader has to take: bytes that are no text, or an event beyond the limit.
    pub spoilt: bool,
    /// The code of a WebSocket's goodbye.
    pub closed: Option<u16>,
}

impl Said {
    pub fn of(attempt: &BackendSaw) -> Self {
        let raw: Vec<u8> =
            attempt.writes.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        if attempt.line.is_some() { Self::framed(&raw) } else { Self::read(&raw) }
    }

    /// What came over a WebSocket.
    fn framed(raw: &[u8]) -> Self {
        let read = frames::read(raw);
        let mut said = Self {
            status: (!read.texts.is_empty()).then_some(200),
            stream: true,
            events: read.texts.iter().map(|text| event(text)).collect(),
            unfinished: None,
            spoilt: false,
            closed: read.closed.flatten(),
        };
        said.end();
        said
    }

    fn read(raw: &[u8]) -> Self {
        let Some(answer) = http::read(raw) else {
            return Self {
                status: None,
                stream: false,
                events: Vec::new(),
                unfinished: None,
                spoilt: false,
                closed: None,
            };
        };
        let stream = answer.status == 200 && answer.content_type.starts_with("text/event-stream");
        let read = if stream { sse::read(&answer.body) } else { sse::Stream::default() };
        let mut said = Self {
            status: Some(answer.status),
            stream,
            events: read.events.iter().map(|read| event(&read.data)).collect(),
            unfinished: read.unfinished,
            spoilt: read.broken == Some(sse::NO_TEXT),
            closed: None,
        };
        said.end();
        said
    }

    /// Forgets what follows the end, or an event that is too long.
    fn end(&mut self) {
        let events = &mut self.events;
        if let Some(long) = events.iter().position(|event| event.data.len() > EVENT_LIMIT) {
            events.truncate(long);
            self.spoilt = true;
        }
        if let Some(end) = events.iter().position(|event| event.role.is_terminal()) {
            events.truncate(end + 1);
            self.spoilt = false;
            self.unfinished = None;
        }
    }

    /// The backend says that it has done nothing with the request, and wants it over another connection or another way.
    /// `continues`: the request named a response before it.
    pub fn undone(&self, continues: bool) -> bool {
        match self.events.iter().find(|event| event.role != Role::Aside) {
            Some(first) if first.role == Role::Failed => {
                let value = &first.value;
                match value["error"]["code"].as_str().or(value["code"].as_str()) {
                    Some("websocket_connection_limit_reached") => true,
                    Some("previous_response_not_found") => continues,
                    _ => false,
                }
            }
            Some(_) => false,
            None => matches!(self.closed, Some(1008 | 1009)),
        }
    }

    /// Something was said that a client can see.
    pub fn has_content(&self) -> bool {
        self.events.iter().any(|event| event.role == Role::Content)
    }

    pub fn terminal(&self) -> Option<&Event> {
        self.events.last().filter(|event| event.role.is_terminal())
    }

    /// The ids of the calls that it completed, in order.
    pub fn calls(&self) -> Vec<String> {
        calls(self.events.iter().map(|event| &event.value))
    }
}

/// When the first event that a client can see was written.
pub fn content_at(attempt: &BackendSaw) -> Option<Duration> {
    let mut raw = Vec::new();
    let read = if attempt.line.is_some() { Said::framed } else { Said::read };
    attempt.writes.iter().find_map(|(at, bytes)| {
        raw.extend_from_slice(bytes);
        read(&raw).has_content().then_some(*at)
    })
}

pub fn calls<'a>(events: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let done = events.filter(|event| event["type"] == "response.output_item.done");
    let items = done.map(|event| &event["item"]);
    let calls =
        items.filter(|item| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call")));
    calls.filter_map(|item| Some(item["call_id"].as_str()?.to_owned())).collect()
}

/// The event as a client gets it that does not know the namespace of its own tools, where it stood in one.
pub fn flat(event: &Event) -> Option<Value> {
    let mut value = event.value.clone();
    let strip = |item: &mut Value| item.as_object_mut()?.remove("namespace");
    let of_item = value.get_mut("item").and_then(strip);
    let output = value.pointer_mut("/response/output").and_then(Value::as_array_mut);
    let of_output = output.into_iter().flatten().filter_map(strip).last();
    (of_item.is_some() || of_output.is_some()).then_some(value)
}
