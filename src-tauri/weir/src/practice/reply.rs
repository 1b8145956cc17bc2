//! One scripted reply: what is answered, and how it is delivered.
//!
//! **Invariant**: a reply that passed its check says one thing: a refusal, a stream with one ending, or nothing.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What is answered, and how it is delivered.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// The answer; with `calls`, the answer once all of them have outputs.
    pub text: Option<String>,
    /// Commentary before the calls.
    pub say: Option<String>,
    /// Calls: all in one response where calls may be parallel, one per response where not.
    pub calls: Vec<Call>,
    /// Further output items, sent as they are, after the others.
    pub items: Vec<toml::Table>,
    /// Further events, sent as they are, before the terminal one.
    pub events: Vec<toml::Table>,

    /// Milliseconds of thought before the first output item, times the pace.
    pub think_ms: Option<u64>,
    /// Waits for [`super::Server::open_gate`].
    pub gate: Option<String>,
    /// Waits until so many responses of the same parent are in flight.
    pub hold_until_in_flight: Option<usize>,
    /// Where gate and hold wait.
    pub at: Point,
    /// Milliseconds before the status line; not paced.
    pub delay_headers_ms: u64,
    /// Never answers.
    pub silent: bool,

    /// A refusal instead of a stream.
    pub status: Option<u16>,
    /// Its body: a table, or a string that is sent as it is.
    pub json: Option<toml::Value>,
    /// Its body, as a page of whatever stands in front of the backend.
    pub html: Option<String>,
    /// Headers of the answer, refusal or stream.
    pub headers: BTreeMap<String, String>,

    /// Breaks the connection after so many events.
    pub cut_after_event: Option<usize>,
    /// Breaks the connection after so many bytes. Over a WebSocket the frame in which they end is not sent.
    pub cut_after_bytes: Option<usize>,
    /// Says nothing more after so many events.
    pub stall_after_event: Option<usize>,
    /// Ends with an `error` event that has these fields.
    pub error_event: Option<toml::Table>,
    /// Ends with an `error` event for the account's usage limit.
    pub usage_limit_event: bool,
    /// Ends with `response.failed`; the fields are those of `response.error`.
    pub failed_event: Option<toml::Table>,
    /// Ends with `response.incomplete` for this reason.
    pub incomplete: Option<String>,
    /// Ends without any terminal event, but in good order: over a WebSocket with the close code 1000.
    pub no_terminal: bool,
    /// `response.completed` carries no usage.
    pub no_usage: bool,
    /// Lines end with CR LF. HTTP only.
    pub crlf: bool,
    /// Bytes per write, so that events come in pieces. HTTP only.
    pub chunk_bytes: Option<usize>,

    /// Refuses the handshake of a WebSocket with this status.
    pub ws_refuse: Option<u16>,
    /// Closes the socket with this code: where the reply is cut, otherwise once everything was said.
    pub ws_close: Option<u16>,
    /// Once everything was said the socket stays open, but nothing is read any more and no ping is answered.
    pub ws_deaf: bool,
}

/// A place in an answer where it can wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Point {
    /// Before the status line.
    Headers,
    /// After `response.created`, before the first output item.
    #[default]
    Output,
    /// Before the terminal event.
    End,
}

impl Reply {
    /// Whether it can be played, or a sentence that says why not.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let speaks = self.text.is_some()
            || self.say.is_some()
            || !self.calls.is_empty()
            || !self.items.is_empty()
            || !self.events.is_empty();
        let breaks = [self.cut_after_event, self.cut_after_bytes, self.stall_after_event];
        let breaks = breaks.iter().flatten().count();
        let ends = [
            self.error_event.is_some(),
            self.usage_limit_event,
            self.failed_event.is_some(),
            self.incomplete.is_some(),
            self.no_terminal,
        ];
        let ends = ends.iter().filter(|end| **end).count();
        let streams = speaks || breaks + ends > 0;
        match () {
            () if breaks > 1 => Err("a reply can be cut or stalled in one place only"),
            () if ends > 1 => Err("a reply has one ending only"),
            () if self.status.is_some() && streams => {
                Err("a reply with `status` has no stream: only `json`, `html`, `headers` and waits")
            }
            () if self.status.is_some_and(|status| !(400..600).contains(&status)) => {
                Err("`status` is a refusal, from 400 to 599")
            }
            () if self.status.is_none() && (self.json.is_some() || self.html.is_some()) => {
                Err("`json` and `html` are bodies of a `status`")
            }
            () if self.json.is_some() && self.html.is_some() => Err("one body: `json` or `html`"),
            () if self.silent && (streams || self.status.is_some()) => {
                Err("a silent reply says nothing else")
            }
            () if self.chunk_bytes == Some(0) => Err("`chunk_bytes` is at least 1"),
            () if self.ws_refuse.is_some_and(|status| !(400..600).contains(&status)) => {
                Err("`ws_refuse` is a refusal, from 400 to 599")
            }
            () if self.ws_refuse.is_some() && (streams || self.status.is_some() || self.silent) => {
                Err("a refused handshake has no reply: only `headers`")
            }
            () if self.ws_close.is_some_and(|code| !sendable(code)) => {
                Err("`ws_close` is a code that a close frame can carry")
            }
            () if self.ws_deaf && self.ws_close.is_some() => {
                Err("a socket is closed or deaf, not both")
            }
            () => Ok(()),
        }
    }
}

/// The codes that RFC 6455 leaves for close frames.
fn sendable(code: u16) -> bool {
    (1000..5000).contains(&code) && !matches!(code, 1004..=1006 | 1015)
}

/// One call that the scripted model makes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "CallEntry")]
pub struct Call {
    pub name: String,
    /// Absent: that of the offered tool.
    pub namespace: Option<String>,
    /// The text of the arguments, which need not be JSON.
    pub arguments: String,
    /// A custom tool call with this input, instead of a function call.
    pub input: Option<String>,
    /// Absent: a fresh one.
    pub call_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallEntry {
    name: String,
    namespace: Option<String>,
    arguments: Option<toml::Value>,
    input: Option<String>,
    call_id: Option<String>,
}

impl From<CallEntry> for Call {
    fn from(entry: CallEntry) -> Self {
        let arguments = match entry.arguments {
            None => "{}".to_owned(),
            Some(toml::Value::String(text)) => text,
            Some(value) => json(&value).to_string(),
        };
        Self {
            name: entry.name,
            namespace: entry.namespace,
            arguments,
            input: entry.input,
            call_id: entry.call_id,
        }
    }
}

/// A TOML value as JSON.
pub(super) fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}
