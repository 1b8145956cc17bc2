//! The fake backend: plays what each fault says and writes down what arrived.
//!
//! One listener stands in for the Codex backend: model lists, usage, and responses over HTTP ([`http`]) or over a WebSocket
//! ([`socket`]), as each fault says.
//!
//! **Invariant**: it judges nothing and answers only from the fault's own words.

mod http;
mod socket;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::fault::{Attempt, Fault, Road};
use crate::transcript::BackendSaw;

pub struct Backend {
    pub base_url: String,
    state: Arc<State>,
    /// Counts up when waiting connections shall be closed; zero closes the listener as well.
    hush: watch::Sender<u64>,
}

struct State {
    /// By model.
    faults: HashMap<String, Part>,
    /// How many accounts there are.
    accounts: usize,
    saw: Mutex<HashMap<String, Vec<BackendSaw>>>,
    /// How many requests of each (model, turn) have come.
    came: Mutex<HashMap<(String, usize), usize>>,
    /// Accounts whose usage was read, which is the last thing that Weir asks before it knows an account.
    met: Mutex<HashSet<usize>>,
    /// How many WebSockets were opened, and the accounts of those that are open.
    sockets: Mutex<(usize, BTreeMap<usize, usize>)>,
}

struct Part {
    /// Over HTTP, and over a WebSocket.
    turns: Vec<[Vec<Attempt>; 2]>,
    road: Road,
    accounts: std::ops::Range<usize>,
    lite: bool,
}

fn open<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Backend {
    pub async fn start(faults: &[Fault]) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base_url = format!("http://{}/backend-api/codex", listener.local_addr()?);
        let mut accounts = 0;
        let mut parts = HashMap::new();
        for fault in faults {
            let range = accounts..accounts + fault.accounts;
            accounts = range.end;
            let turns = fault.turns.iter().map(|turn| [turn.attempts.clone(), turn.framed.clone()]);
            let turns = turns.collect();
            parts.insert(
                fault.name(),
                Part { turns, road: fault.road, accounts: range, lite: fault.lite },
            );
        }
        let state = Arc::new(State {
            faults: parts,
            accounts,
            saw: Mutex::default(),
            came: Mutex::default(),
            met: Mutex::default(),
            sockets: Mutex::default(),
        });
        let (hush, watcher) = watch::channel(1);
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            let mut closed = watcher.clone();
            loop {
                tokio::select! {
                    _ = closed.wait_for(|hush| *hush == 0) => return,
                    came = listener.accept() => {
                        let Ok((socket, _)) = came else { continue };
                        drop(socket.set_nodelay(true));
                        tokio::spawn(http::serve(socket, Arc::clone(&shared), watcher.clone()));
                    }
                }
            }
        });
        Ok(Self { base_url, state, hush })
    }

    pub fn accounts(&self) -> usize {
        self.state.accounts
    }

    /// Whether Weir has met every account.
    pub fn met_all(&self) -> bool {
        open(&self.state.met).len() == self.state.accounts
    }

    /// Closes every connection that waits for a request.
    pub fn hush(&self) {
        self.hush.send_modify(|hush| *hush += 1);
    }

    /// The same, and takes no new one.
    pub fn close(&self) {
        self.hush.send_replace(0);
    }

    /// The account of each WebSocket that is open.
    pub fn open_sockets(&self) -> Vec<usize> {
        open(&self.state.sockets).1.values().copied().collect()
    }

    /// What was seen of a fault's model, in the order in which the requests came.
    pub fn take(&self, model: &str) -> Vec<BackendSaw> {
        open(&self.state.saw).remove(model).unwrap_or_default()
    }
}

impl State {
    fn models(&self, account: usize) -> Value {
        let offered = self.faults.iter().filter(|(_, part)| part.accounts.contains(&account));
        let models: Vec<Value> = offered
            .map(|(model, part)| json!({"slug": model, "display_name": model, "use_responses_lite": part.lite}))
            .collect();
        json!({"models": models})
    }

    fn usage(&self, account: usize) -> Value {
        open(&self.met).insert(account);
        json!({"plan_type": "plus", "rate_limit": {"allowed": true, "limit_reached": false,
            "primary_window": {"used_percent": 10, "limit_window_seconds": 18_000, "reset_after_seconds": 9_000,
                "reset_at": 4_000_000_000_u64}, "secondary_window": null}})
    }

    fn road(&self, account: usize) -> Road {
        let mut parts = self.faults.values();
        parts.find(|part| part.accounts.contains(&account)).map_or(Road::Hangs, |part| part.road)
    }

    fn opened(&self, account: usize) -> usize {
        let mut sockets = open(&self.sockets);
        sockets.0 += 1;
        let number = sockets.0;
        sockets.1.insert(number, account);
        number
    }

    fn closed(&self, number: usize) {
        open(&self.sockets).1.remove(&number);
    }

    /// The next answer for a request, and the turn that it belongs to: the last one of which it carries the mark.
    fn next(&self, body: &[u8], framed: bool) -> Option<(String, usize, Attempt)> {
        let text = std::str::from_utf8(body).ok()?;
        let body: Value = serde_json::from_str(text).ok()?;
        let model = body["model"].as_str()?.to_owned();
        let part = self.faults.get(&model)?;
        let marks = text.split("weir-mark-").skip(1);
        let turn = marks.filter_map(|rest| rest.split('.').next()?.parse::<usize>().ok()).max()?;
        let attempts = &part.turns.get(turn)?[usize::from(framed)];
        let mut came = open(&self.came);
        let count = came.entry((model.clone(), turn)).or_default();
        let attempt = attempts.get(*count).or(attempts.last())?.clone();
        *count += 1;
        Some((model, turn, attempt))
    }

    /// A place in the transcript, in the order of arrival.
    fn begin(&self, model: &str, saw: BackendSaw) -> usize {
        let mut all = open(&self.saw);
        let list = all.entry(model.to_owned()).or_default();
        list.push(saw);
        list.len() - 1
    }

    fn with(&self, model: &str, at: usize, change: impl FnOnce(&mut BackendSaw)) {
        if let Some(saw) = open(&self.saw).get_mut(model).and_then(|list| list.get_mut(at)) {
            change(saw);
        }
    }
}
