//! What the two ends saw and what the database holds: the evidence that the checker reads.
//!
//! **Invariant**: bytes and times as they were, nothing that Weir said about itself but its rows.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::fault::Road;

static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Since this program began: the one clock of both ends.
pub fn now() -> Duration {
    BEGUN.elapsed()
}

/// What the client of one turn saw.
#[derive(Clone, Debug)]
pub struct ClientSaw {
    /// Its request went out whole.
    pub sent_whole: bool,
    /// It wanted one document instead of a stream.
    pub whole: bool,
    /// The conversation as it sent it.
    pub input: Vec<Value>,
    /// The calls whose outputs the request brought for the first time, in their order.
    pub outputs: Vec<String>,
    /// The answer, head and framing included.
    pub raw: Vec<u8>,
    pub end: ClientEnd,
    /// When it was done, by [`now`].
    pub done: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEnd {
    /// The answer was whole by its framing, or the other side closed.
    Ended,
    /// The connection was reset.
    Reset,
    /// The client left on purpose.
    Left,
    /// Nothing ended within the bound.
    Hung,
}

/// What the backend saw of one request for a response.
#[derive(Clone, Debug)]
pub struct BackendSaw {
    /// Which turn of its conversation the request says it is.
    pub turn: usize,
    /// The number of the account whose token it carried.
    pub account: usize,
    /// The WebSocket over which it came; none for a request of its own.
    pub line: Option<Line>,
    /// The body of the request, or the message.
    pub body: Vec<u8>,
    /// When its last byte was read, by [`now`].
    pub came: Duration,
    /// What was written, and when each write ended, counted from the request's last byte.
    pub writes: Vec<(Duration, Vec<u8>)>,
    pub end: BackendEnd,
    /// When the exchange was over for the backend.
    pub over: Duration,
}

/// A request's place among those of its WebSocket.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub socket: usize,
    /// How many requests came before it over the same one.
    pub place: usize,
    /// What the backend has of the response that the request continues. None: it continues none, or none that is known.
    pub known: Option<Vec<Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendEnd {
    /// Closed cleanly once all was written.
    Closed,
    Reset,
    /// All was written and the connection kept.
    Kept,
    /// The other side left before all was written.
    LeftEarly,
    /// The other side left after all was written.
    Left,
    /// The other side was still there when the bound passed.
    Abandoned,
}

/// A row of the table of turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub id: String,
    pub conversation: String,
    /// The parent that the client named, which is made unique for each turn.
    pub mark: String,
    pub account: Option<String>,
    /// Why this account, and what went before.
    pub reason: Option<String>,
    pub moves: i64,
    pub transport: String,
    pub socket: Option<String>,
    pub input_items: Option<i64>,
    pub new_items: Option<i64>,
    pub whole_reason: Option<String>,
    pub outcome: Option<String>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub upstream_bytes: i64,
    pub input_tokens: Option<i64>,
    pub cached_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub reasoning_tokens: Option<i64>,
}

/// The database after the program has ended.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub turns: Vec<Row>,
    /// Turn, place, call.
    pub emitted: Vec<(String, i64, String)>,
    /// The turn that brought the output, the position within the emitting turn, call; in the order of their writing.
    pub booked: Vec<(String, i64, String)>,
}

/// What one turn left behind.
#[derive(Clone, Debug)]
pub struct TurnSaw {
    pub mark: String,
    pub client: ClientSaw,
    pub attempts: Vec<BackendSaw>,
}

#[derive(Clone, Debug)]
pub struct FaultSaw {
    pub seed: u64,
    pub kind: &'static str,
    pub road: Road,
    pub turns: Vec<TurnSaw>,
}

/// The process before the faults and after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footing {
    pub sockets: usize,
    pub files: usize,
    pub resident_kib: u64,
    pub in_flight: u64,
}

#[derive(Clone, Debug)]
pub struct ProcessSaw {
    pub before: Footing,
    pub after: Footing,
    /// The accounts of the WebSockets that were open when nothing was under way any more. An account has one conversation.
    pub kept: Vec<usize>,
    /// How many of them were open when the program had ended.
    pub left_open: usize,
    pub exit: Option<i32>,
    /// How long it took to end when it was asked to.
    pub drain: Duration,
    /// What it wrote to its log, stderr included.
    pub log: String,
}
