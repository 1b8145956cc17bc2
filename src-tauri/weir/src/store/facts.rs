//! The facts that are recorded and the rows that are read.
//!
//! They are plain data, so that whoever records them needs to know nothing of SQL, and the window and the command line can
//! show them as they are.
//!
//! **Invariant**: a number that is not known is None, never zero.

use serde::{Deserialize, Serialize};
use weir_core::dialect::mode::{Dialect, ServingMode};

/// Something that happened, to be kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "facts are moved once, into the writer's queue")]
pub enum Fact {
    /// A turn as it is known now: recorded once when it starts, without an outcome, and once when it ends. It replaces
    /// what was recorded under the same id, except that a turn with an outcome is never made to run again.
    Turn(TurnRow),
    /// The model wrote a call. A second one at the same place of the same turn is ignored.
    Emitted {
        turn: String,
        /// The place among the calls of this turn, from 0.
        index: u32,
        call_id: String,
        tool: String,
        /// The item's type on the wire, such as `function_call`.
        kind: String,
        /// Unix milliseconds.
        at: i64,
    },
    /// The result of a call entered the history of its conversation. Clients resend all results with every turn, so only
    /// the first booking of a call counts, and one whose call was never emitted here is ignored. Should an id have been
    /// emitted twice, as by a turn that failed and was repeated, its latest call is meant.
    Booked {
        conversation: String,
        call_id: String,
        /// Unix milliseconds.
        at: i64,
        /// The turn whose request carried the result.
        by_turn: String,
    },
}

/// One turn: who asked, what was decided and why, when things happened, what it cost, how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ts_rs::TS)]
pub struct TurnRow {
    pub id: String,
    /// Unix milliseconds.
    pub started_at: i64,
    pub conversation: String,
    /// The conversation that started this one, for a subagent.
    pub parent: Option<String>,
    pub client: String,
    pub model: String,
    /// What the user had chosen for the model when the turn was decided.
    #[ts(type = "Mode")]
    pub mode: ServingMode,
    /// The form in which the turn was sent upstream.
    #[ts(type = "Dialect")]
    pub dialect: Dialect,
    pub mode_reason: String,
    /// The account's name, if one was found to pay.
    pub account: Option<String>,
    pub account_reason: Option<String>,
    /// How often the turn moved to another account before its commit point.
    pub moves: u32,
    /// `ws`: over the connection that the conversation keeps; `sse`: as a request of its own.
    pub transport: String,
    /// `new` or `reused`, for a turn over a connection.
    pub socket: Option<String>,
    /// How many items the turn's input has, once it was sent.
    pub input_items: Option<i64>,
    /// How many of them were sent, where the backend had the others.
    pub new_items: Option<i64>,
    /// Why all of them were sent, where there is a reason.
    pub whole_reason: Option<String>,
    /// Milliseconds after `started_at`: the backend's status said yes.
    pub accepted_ms: Option<i64>,
    /// Milliseconds after `started_at`: the backend's first event.
    pub first_event_ms: Option<i64>,
    /// Milliseconds after `started_at`: the commit point.
    pub committed_ms: Option<i64>,
    /// Milliseconds after `started_at`: the outcome. Unknown for a lost turn.
    pub ended_ms: Option<i64>,
    /// The client's body, decoded.
    pub request_bytes: i64,
    /// What was sent upstream, of all tries together.
    pub upstream_bytes: i64,
    pub input_tokens: Option<i64>,
    /// The part of `input_tokens` that the backend had cached.
    pub cached_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    /// The part of `output_tokens` that was reasoning.
    pub reasoning_tokens: Option<i64>,
    /// None while it runs, then `completed`, `incomplete`, `failed`, `refused`, `cancelled`, or `lost` if the program died.
    pub outcome: Option<String>,
    pub error_code: Option<String>,
    /// The sentence that the client saw; never text of the request or the answer.
    pub error_message: Option<String>,
}

impl TurnRow {
    /// A turn of which nothing is known but when it began.
    pub fn begun(id: String, started_at: i64) -> Self {
        Self {
            id,
            started_at,
            conversation: String::new(),
            parent: None,
            client: String::new(),
            model: String::new(),
            mode: ServingMode::Auto,
            dialect: Dialect::Full,
            mode_reason: String::new(),
            account: None,
            account_reason: None,
            moves: 0,
            transport: "sse".into(),
            socket: None,
            input_items: None,
            new_items: None,
            whole_reason: None,
            accepted_ms: None,
            first_event_ms: None,
            committed_ms: None,
            ended_ms: None,
            request_bytes: 0,
            upstream_bytes: 0,
            input_tokens: None,
            cached_tokens: None,
            output_tokens: None,
            reasoning_tokens: None,
            outcome: None,
            error_code: None,
            error_message: None,
        }
    }
}

/// One call of a turn, as emitted and as booked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct CallRow {
    /// The place among the calls of this turn, from 0.
    pub index: u32,
    pub call_id: String,
    pub tool: String,
    pub kind: String,
    /// Unix milliseconds.
    pub emitted_at: i64,
    /// Unix milliseconds, None until a result came back.
    pub booked_at: Option<i64>,
    /// The place among the booked calls of this turn, from 0.
    pub booked_position: Option<u32>,
    /// The turn whose request carried the result.
    pub booked_by: Option<String>,
}
