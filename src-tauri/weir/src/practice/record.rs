//! What arrived, what was wrong with it, and how each response ended.
//!
//! Everything lives in one watched state, so a test can wait for a condition instead of sleeping, and a reply can wait
//! until enough of its siblings are in flight.
//!
//! **Invariant**: an entry ends exactly once; one that is dropped without an end was cancelled by its client.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::script::Transport;

/// One request, or one frame of a WebSocket, and what became of it. Also the format of a line in
/// [`super::Options::record`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Received {
    /// Counts from 1 in order of arrival (when the whole body was there).
    pub number: u64,
    /// The path without its query.
    pub path: String,
    /// The account whose token it carried.
    pub account: Option<String>,
    /// As received, for a frame those of its handshake; `authorization` is replaced by the account's name.
    pub headers: Vec<(String, String)>,
    /// Length of the decoded body, or of the frame.
    pub bytes: usize,
    /// The body; null when there was none or it was not JSON.
    pub body: Value,
    /// The whole request that a frame stands for, as a request of its own would say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<Value>,
    /// `model` of the body, or empty.
    pub model: String,
    /// Whether it carried the Lite marker.
    pub lite: bool,
    /// `thread-id`, else `x-session-id`, else `session-id`, else the body's `prompt_cache_key`.
    pub conversation: Option<String>,
    /// `x-parent-session-id` or `x-codex-parent-thread-id`, as a header or in `client_metadata`.
    pub parent: Option<String>,
    /// The road it came on.
    pub transport: Transport,
    /// The number of its WebSocket, counted from 1.
    pub socket: Option<u64>,
    /// What the frame went on from.
    pub previous_response_id: Option<String>,
    /// Items of `input` as sent.
    pub input_items: usize,
    /// Items of the whole history that they stand for.
    pub history_items: usize,
    /// Milliseconds since the server started.
    pub arrived_ms: u64,
    /// Absent while the response is under way.
    pub ended_ms: Option<u64>,
    /// Responses in flight with the same `parent` when it arrived, itself included; 0 for other paths.
    pub in_flight: usize,
    /// The status sent; 0 while none was.
    pub status: u16,
    /// `completed`, `cut`, `cancelled` (the client went away) or `refused`; empty while under way.
    pub outcome: String,
}

#[derive(Debug, Default)]
struct State {
    received: Vec<Received>,
    violations: Vec<String>,
    families: HashMap<Option<String>, Family>,
    /// Responses asked for, by conversation.
    turns: HashMap<Option<String>, u64>,
    /// Uses of one rule by one conversation.
    uses: HashMap<(usize, Option<String>), usize>,
    /// Handshakes, by conversation.
    dials: HashMap<Option<String>, u64>,
    /// Sockets ever opened.
    sockets: u64,
    /// Sockets that are open.
    open: usize,
}

/// The responses in flight of one parent.
#[derive(Clone, Copy, Debug, Default)]
struct Family {
    now: usize,
    /// The most at once since the family was last idle. A sibling that ends early must not hold the others back.
    peak: usize,
}

#[derive(Debug)]
pub(super) struct Record {
    state: watch::Sender<State>,
    file: Option<Mutex<File>>,
    started: Instant,
}

/// A record holds prompts, so only its owner may read it.
fn create(path: &Path) -> std::io::Result<File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl Record {
    pub(super) fn new(file: Option<&Path>) -> std::io::Result<Self> {
        let file = file.map(create).transpose()?.map(Mutex::new);
        Ok(Self { state: watch::Sender::default(), file, started: Instant::now() })
    }

    /// Takes down a request; `response` says that it asks for one.
    pub(super) fn arrive(self: &Arc<Self>, mut request: Received, response: bool) -> Entry {
        let family = response.then(|| request.parent.clone());
        let conversation = request.conversation.clone();
        let mut number = 0;
        let mut nth = 0;
        request.arrived_ms = self.now();
        self.state.send_modify(|state| {
            number = state.received.len() as u64 + 1;
            request.number = number;
            if let Some(parent) = &family {
                let family = state.families.entry(parent.clone()).or_default();
                family.now += 1;
                family.peak = family.peak.max(family.now);
                request.in_flight = family.now;
                let turns = state.turns.entry(conversation).or_default();
                *turns += 1;
                nth = *turns;
            }
            state.received.push(request);
        });
        Entry { record: self.clone(), number, nth, family, ended: false }
    }

    pub(super) fn requests(&self) -> Vec<Received> {
        self.state.borrow().received.clone()
    }

    pub(super) fn violations(&self) -> Vec<String> {
        self.state.borrow().violations.clone()
    }

    pub(super) async fn wait_for(&self, what: impl Fn(&[Received]) -> bool) {
        let mut state = self.state.subscribe();
        // The sender lives in `self`, so this cannot end before the condition holds.
        let _ = state.wait_for(|state| what(&state.received)).await;
    }

    /// How often a conversation used a rule before; counts this time.
    pub(super) fn use_rule(&self, rule: usize, conversation: Option<&str>) -> usize {
        let mut before = 0;
        self.state.send_modify(|state| {
            let uses = state.uses.entry((rule, conversation.map(str::to_owned))).or_default();
            before = *uses;
            *uses += 1;
        });
        before
    }

    /// Which handshake of its conversation this is, counted from 1.
    pub(super) fn dialled(&self, conversation: Option<&str>) -> u64 {
        let mut nth = 0;
        self.state.send_modify(|state| {
            let dials = state.dials.entry(conversation.map(str::to_owned)).or_default();
            *dials += 1;
            nth = *dials;
        });
        nth
    }

    /// Counts a socket as open for as long as what is returned lives.
    pub(super) fn open_socket(self: &Arc<Self>) -> OpenSocket {
        let mut number = 0;
        self.state.send_modify(|state| {
            state.sockets += 1;
            state.open += 1;
            number = state.sockets;
        });
        OpenSocket { record: self.clone(), number }
    }

    pub(super) fn open_sockets(&self) -> usize {
        self.state.borrow().open
    }

    pub(super) async fn wait_for_sockets(&self, open: usize) {
        let mut state = self.state.subscribe();
        let _ = state.wait_for(|state| state.open == open).await;
    }

    /// Whether the response to this request is over.
    pub(super) fn is_over(&self, number: u64) -> bool {
        let at = usize::try_from(number - 1).unwrap_or(usize::MAX);
        self.state.borrow().received.get(at).is_some_and(|request| request.ended_ms.is_some())
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn write(&self, request: &Received) {
        let Some(file) = &self.file else { return };
        let mut file = file.lock().expect("no holder of this lock panics");
        let line = serde_json::to_string(request).expect("every field has a JSON form");
        if let Err(error) = writeln!(file, "{line}") {
            tracing::warn!(%error, "the practice record could not be written");
        }
    }
}

/// A socket that is open.
#[derive(Debug)]
pub(super) struct OpenSocket {
    record: Arc<Record>,
    pub(super) number: u64,
}

impl Drop for OpenSocket {
    fn drop(&mut self) {
        self.record.state.send_modify(|state| state.open -= 1);
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Entry {
    record: Arc<Record>,
    pub(super) number: u64,
    /// Which response of its conversation this is, counted from 1.
    pub(super) nth: u64,
    /// `Some(parent)` for a response.
    family: Option<Option<String>>,
    ended: bool,
}

impl Entry {
    pub(super) fn violation(&self, rule: &str) {
        let line = format!("request {}: {rule}", self.number);
        self.record.state.send_modify(|state| state.violations.push(line));
    }

    pub(super) fn status(&self, status: u16) {
        self.change(|request| request.status = status);
    }

    pub(super) fn end(mut self, outcome: &str) {
        self.finish(outcome);
    }

    /// Waits until `wanted` responses of the same parent were in flight at once.
    pub(super) async fn siblings(&self, wanted: usize) {
        let Some(parent) = &self.family else { return };
        let mut state = self.record.state.subscribe();
        let together = |state: &State| state.families.get(parent).is_some_and(|f| f.peak >= wanted);
        let _ = state.wait_for(together).await;
    }

    fn change(&self, act: impl FnOnce(&mut Received)) {
        // Numbers count from 1 without gaps, so this is the request's place.
        let at = usize::try_from(self.number - 1).unwrap_or(usize::MAX);
        self.record.state.send_modify(|state| {
            if let Some(request) = state.received.get_mut(at) {
                act(request);
            }
        });
    }

    fn finish(&mut self, outcome: &str) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let now = self.record.now();
        let written = self.record.file.is_some();
        let mut line = None;
        // The count falls before a client can see the end, so its next request never meets its own ghost.
        let family = self.family.take();
        self.record.state.send_modify(|state| {
            if let Some(family) = family.and_then(|parent| state.families.get_mut(&parent)) {
                family.now -= 1;
                family.peak = if family.now == 0 { 0 } else { family.peak };
            }
        });
        self.change(|request| {
            request.ended_ms = Some(now);
            request.outcome = outcome.to_owned();
            line = written.then(|| request.clone());
        });
        if let Some(line) = line {
            self.record.write(&line);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.finish("cancelled");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(parent: &str) -> Received {
        Received { parent: Some(parent.to_owned()), ..Received::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn siblings_wait_for_each_other() {
        let record = Arc::new(Record::new(None).expect("no file"));
        let first = record.arrive(from("p"), true);
        let other = record.arrive(from("q"), true);
        let waits = |entry: &Entry| {
            let waiting = entry.siblings(2);
            futures_util::FutureExt::now_or_never(waiting).is_none()
        };
        assert!(waits(&first));
        assert!(waits(&other));
        let second = record.arrive(from("p"), true);
        assert!(!waits(&first));
        second.end("completed");
        assert!(!waits(&first), "one that ended early was there");
        assert!(waits(&other));
        first.end("completed");
        assert!(waits(&record.arrive(from("p"), true)), "a new gathering");
        let in_flight: Vec<usize> = record.requests().iter().map(|r| r.in_flight).collect();
        assert_eq!(in_flight, [1, 1, 2, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_entry_was_cancelled_and_is_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("record.jsonl");
        let record = Arc::new(Record::new(Some(&path)).expect("a file"));
        let entry = record.arrive(Received::default(), true);
        entry.status(200);
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "");
        drop(entry);
        record.arrive(Received::default(), false).end("refused");
        record.wait_for(|all| all.iter().all(|r| r.ended_ms.is_some())).await;
        let text = std::fs::read_to_string(&path).expect("text");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines[0]["outcome"], "cancelled");
        assert_eq!(lines[0]["status"], 200);
        assert_eq!(lines[1]["outcome"], "refused");
    }
}
