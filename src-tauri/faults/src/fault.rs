//! A fault: what the backend and the client of one conversation will do.
//!
//! **Invariant**: plain data; whoever plays it decides nothing.

/// One conversation with a model and accounts of its own, so that no fault disturbs another.
#[derive(Clone, Debug)]
pub struct Fault {
    pub seed: u64,
    /// A word for the summary.
    pub kind: &'static str,
    /// How many accounts offer its model.
    pub accounts: usize,
    /// Its catalog says Lite, and calls come in a namespace.
    pub lite: bool,
    pub road: Road,
    pub memory: Memory,
    pub turns: Vec<Turn>,
}

/// What becomes of a WebSocket that Weir wants to open for this conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Road {
    /// It is opened.
    Open,
    /// The backend answers with this status.
    Refused(u16),
    /// Nobody answers.
    Hangs,
}

impl Road {
    /// A word for the summary. A backend that knows no WebSocket answers with 426.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "socket",
            Self::Refused(426) => "SSE",
            Self::Refused(403) => "refused with 403",
            Self::Refused(_) => "refused with 500",
            Self::Hangs => "no handshake",
        }
    }
}

/// What a client, which keeps the conversation, sends back of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Every item as it came.
    Whole,
    /// Every item without id and status, its arguments written anew.
    Rewritten,
    /// Only the calls, so that the conversation's beginning is another one each time.
    Calls,
}

impl Fault {
    pub fn name(&self) -> String {
        format!("fault-{}", self.seed)
    }
}

#[derive(Clone, Debug)]
pub struct Turn {
    /// What the first, second, … request of this turn meets. Further ones meet the last of [`Turn::attempts`] again.
    pub attempts: Vec<Attempt>,
    /// The same for requests that come over a WebSocket: what is written is in its frames.
    pub framed: Vec<Attempt>,
    pub client: Manner,
    /// The client wants one document.
    pub whole: bool,
    /// It closes its connection after the answer instead of leaving that to the answer's framing.
    pub close: bool,
    /// Bytes that make the request longer.
    pub padding: usize,
    /// The order of the outputs that it brings for the calls of the turn before.
    pub shuffle: u64,
}

/// One answer of the backend.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Milliseconds to wait, then bytes to write.
    pub writes: Vec<(u64, Vec<u8>)>,
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A clean close.
    Close,
    /// A reset, which may take along bytes that were not read yet.
    Reset,
    /// Says no more and waits for the other side to leave.
    Hold,
    /// Serves the next request on the same connection.
    Keep,
}

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Reads to the end: so many bytes at once, then a pause of so many milliseconds, at most forty times.
    Reads { bytes: usize, pause: u64 },
    /// Leaves after so many bytes of the answer.
    BreaksAt { byte: usize, reset: bool },
    /// Leaves after so many milliseconds.
    Leaves { after: u64, reset: bool },
    /// Leaves in the middle of its request; so many percent of it are sent.
    Stutters { percent: usize, reset: bool },
}

impl Manner {
    pub const PLAIN_BYTES: usize = 64 * 1024;
    pub const PLAIN: Self = Self::Reads { bytes: Self::PLAIN_BYTES, pause: 0 };
}
