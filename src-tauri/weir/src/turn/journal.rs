//! What the store is told of a turn: how it ran, what it emitted, what it booked.
//!
//! Calls that a client runs are journalled from both ends: emitted when the model's item is complete, booked when the
//! client's next request brings the output.
//!
//! **Invariant**: scheduling facts only; no argument, prompt, answer or token passes through here.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use weir_core::dialect::body::Body;
use weir_core::dialect::event::Usage;
use weir_core::dialect::item::{Item, fresh_outputs};
use weir_core::dialect::mode::Decision;

use super::Shared;
use super::caller::Caller;
use super::clock::now_ms;
use super::live::Live;
use crate::store::{CallRow, Fact, Store, TurnRow};
use crate::upstream::open::{Input, Sent, Socket, Transport};

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    Incomplete,
    Failed,
    /// Nothing was sent upstream, or nobody could serve it.
    Refused,
    /// The client went away.
    Cancelled,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The terminal outcome of a turn, with a code and a sentence where something went wrong.
#[derive(Clone, Debug)]
pub struct End {
    pub outcome: Outcome,
    pub error: Option<(String, String)>,
    /// The sentence is the backend's, which may repeat what was asked, so it is told and not kept.
    theirs: bool,
}

impl End {
    pub fn well(outcome: Outcome) -> Self {
        Self { outcome, error: None, theirs: false }
    }

    pub fn with(outcome: Outcome, code: &str, message: &str) -> Self {
        Self { outcome, error: Some((code.to_owned(), message.to_owned())), theirs: false }
    }
}

impl End {
    /// An end in the backend's words.
    pub fn theirs(outcome: Outcome, code: &str, message: &str) -> Self {
        Self { theirs: true, ..Self::with(outcome, code, message) }
    }
}

/// The one row of a turn while it runs.
#[derive(Debug)]
pub struct Journal {
    store: Store,
    live: Arc<Live>,
    row: TurnRow,
    begun: Instant,
    /// The ids of the calls that were emitted.
    calls: HashSet<String>,
}

impl Journal {
    /// Opens a turn's row and books the outputs that came with its request, in the order in which they came.
    pub fn open(
        shared: &Shared,
        caller: &Caller,
        body: &Body,
        request_bytes: usize,
        decision: &Decision,
    ) -> Self {
        let started_at = now_ms();
        let row = TurnRow {
            conversation: caller.conversation.clone(),
            parent: caller.parent.clone(),
            client: caller.client.clone(),
            model: body.model().to_owned(),
            mode: decision.mode,
            dialect: decision.dialect,
            mode_reason: decision.reason.clone(),
            request_bytes: count(request_bytes),
            ..TurnRow::begun(turn_id(started_at), started_at)
        };
        let (store, live) = (shared.store.clone(), Arc::clone(&shared.live));
        store.record(Fact::Turn(row.clone()));
        live.turn(&row);
        for call_id in fresh_outputs(body.items()) {
            live.booked(&row.conversation, call_id, started_at, &row.id);
            store.record(Fact::Booked {
                conversation: row.conversation.clone(),
                call_id: call_id.to_owned(),
                at: started_at,
                by_turn: row.id.clone(),
            });
        }
        Self { store, live, row, begun: Instant::now(), calls: HashSet::new() }
    }

    fn elapsed_ms(&self) -> Option<i64> {
        i64::try_from(self.begun.elapsed().as_millis()).ok()
    }

    /// The turn goes out with an account; a second time is a move.
    pub fn leased(&mut self, account: &str, reason: &str) {
        if self.row.account.is_some() {
            self.row.moves += 1;
        }
        self.row.account = Some(account.to_owned());
        self.row.account_reason = Some(match self.row.error_code.take() {
            Some(code) => format!("{reason}; moved after {code}"),
            None => reason.to_owned(),
        });
        self.live.turn(&self.row);
    }

    /// The turn's `items` left in this way.
    pub fn sent(&mut self, sent: &Sent, items: usize) {
        self.row.upstream_bytes += count(sent.bytes);
        self.row.input_items = Some(count(items));
        let (transport, socket) = (sent.transport, sent.socket);
        self.row.transport = if transport == Transport::Ws { "ws" } else { "sse" }.into();
        self.row.socket =
            socket.map(|socket| if socket == Socket::New { "new" } else { "reused" }.into());
        (self.row.new_items, self.row.whole_reason) = match &sent.input {
            Input::New { items } => (Some(count(*items)), None),
            Input::Whole(why) => (None, Some(why.clone()).filter(|why| !why.is_empty())),
        };
        self.live.turn(&self.row);
    }

    /// An attempt failed before the commit point.
    pub fn attempt_failed(&mut self, code: &str) {
        self.row.error_code = Some(code.to_owned());
    }

    pub fn accepted(&mut self) {
        if self.row.accepted_ms.is_none() {
            self.row.accepted_ms = self.elapsed_ms();
            self.live.turn(&self.row);
        }
    }

    /// The backend began to work on the turn.
    pub fn worked_on(&self) -> bool {
        self.row.accepted_ms.is_some()
    }

    pub fn first_event(&mut self) {
        if self.row.first_event_ms.is_none() {
            self.row.first_event_ms = self.elapsed_ms();
            self.live.turn(&self.row);
        }
    }

    pub fn committed(&mut self) {
        if self.row.committed_ms.is_none() {
            self.row.committed_ms = self.elapsed_ms();
            self.live.turn(&self.row);
        }
    }

    /// A call of this turn is complete; its place in emitted order is the order in which this is said first.
    pub fn emitted(&mut self, item: &Item) {
        let Some(call_id) = item.call_id() else { return };
        if !self.calls.insert(call_id.to_owned()) {
            return;
        }
        let call = CallRow {
            index: u32::try_from(self.calls.len() - 1).unwrap_or(u32::MAX),
            call_id: call_id.to_owned(),
            tool: item.name().unwrap_or(item.kind()).to_owned(),
            kind: item.kind().to_owned(),
            emitted_at: now_ms(),
            booked_at: None,
            booked_position: None,
            booked_by: None,
        };
        self.store.record(Fact::Emitted {
            turn: self.row.id.clone(),
            index: call.index,
            call_id: call.call_id.clone(),
            tool: call.tool.clone(),
            kind: call.kind.clone(),
            at: call.emitted_at,
        });
        self.live.emitted(&self.row.id, call);
    }

    /// The calls of a whole answer that were not noted yet: one that was begun, and whose end never came, is in the document
    /// all the same.
    pub fn emitted_in(&mut self, answer: &str) {
        calls_of(answer).iter().for_each(|call| self.emitted(call));
    }

    pub fn used(&mut self, usage: Option<Usage>) {
        let Some(usage) = usage else { return };
        let count = |tokens: u64| i64::try_from(tokens).ok();
        self.row.input_tokens = count(usage.input);
        self.row.cached_tokens = usage.cached.and_then(count);
        self.row.output_tokens = count(usage.output);
        self.row.reasoning_tokens = usage.reasoning.and_then(count);
    }

    /// Closes the turn, once.
    pub fn close(mut self, end: &End) {
        self.row.ended_ms = self.elapsed_ms();
        self.row.outcome = Some(end.outcome.name().into());
        self.row.error_code = end.error.as_ref().map(|(code, _)| code.clone());
        let ours = end.error.as_ref().filter(|_| !end.theirs);
        self.row.error_message = ours.map(|(_, message)| message.clone());
        tracing::info!(
            turn = self.row.id,
            model = self.row.model,
            dialect = ?self.row.dialect,
            account = self.row.account,
            outcome = end.outcome.name(),
            code = self.row.error_code,
            ms = self.row.ended_ms,
            "turn ended"
        );
    }
}

impl Drop for Journal {
    /// Writes the closing row. A turn whose task ended without closing it was lost, and says so.
    fn drop(&mut self) {
        self.row.outcome.get_or_insert_with(|| "lost".into());
        self.store.record(Fact::Turn(self.row.clone()));
        self.live.turn(&self.row);
    }
}

/// The calls in a whole answer.
fn calls_of(answer: &str) -> Vec<Item> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        output: Option<Vec<&'a RawValue>>,
    }
    let output = serde_json::from_str::<Answer<'_>>(answer).ok().and_then(|answer| answer.output);
    let items = output.unwrap_or_default().into_iter().map(|item| Item::parse(item.to_owned()));
    items.filter(Item::is_call).collect()
}

/// Ids sort by time; the random end keeps turns of one millisecond apart.
fn turn_id(at_ms: i64) -> String {
    let mut chance = [0; 4];
    getrandom::fill(&mut chance).expect("the system has randomness");
    format!("{at_ms:011x}{:08x}", u32::from_be_bytes(chance))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
