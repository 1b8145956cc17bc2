//! The event stream of the contract: a snapshot, then what changed.
//!
//! Each message carries the number of the latest change it covers and the number it follows, so a watcher that missed one
//! sees the gap and asks for a snapshot. Changes are gathered for a moment, so a burst is one message.
//!
//! **Invariant**: a delta applied to the state before it gives the state that a snapshot would show.

use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch::Receiver;
use tokio::time::{sleep, timeout};

use super::Api;
use super::view::{self, AccountRow, ModelRow, Status, Today, TurnView};

/// How long changes are gathered.
const GATHER: Duration = Duration::from_millis(100);

/// How long a watcher waits before it looks for what changed by itself.
const LOOK_AGAIN: Duration = Duration::from_secs(20);

/// One message to a watcher.
#[derive(Clone, Debug, Serialize, ts_rs::TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Message {
    Snapshot(Box<Snapshot>),
    Delta(Box<Delta>),
}

/// Everything that is shown.
#[derive(Clone, Debug, Serialize, ts_rs::TS)]
pub struct Snapshot {
    /// One start of the program; numbers of another start mean nothing here.
    pub epoch: String,
    pub number: u64,
    pub status: Status,
    pub accounts: Vec<AccountRow>,
    pub models: Vec<ModelRow>,
    pub today: Today,
    /// Newest first.
    pub turns: Vec<TurnView>,
}

/// What changed. A part that is null did not.
#[derive(Clone, Debug, Serialize, ts_rs::TS)]
pub struct Delta {
    pub epoch: String,
    pub number: u64,
    /// The number that the watcher must have seen last.
    pub after: u64,
    pub status: Option<Status>,
    pub accounts: Option<Vec<AccountRow>>,
    pub models: Option<Vec<ModelRow>>,
    pub today: Option<Today>,
    /// Turns that are new or changed, oldest first; each replaces the one of its id.
    pub turns: Vec<TurnView>,
}

/// One watcher.
#[derive(Debug)]
pub struct Watcher {
    api: Api,
    changed: Receiver<u64>,
    /// The number last told; none before the first message.
    told: Option<u64>,
    /// What was last told beside the turns, to leave out what is the same.
    last: Option<Beside>,
}

/// Everything but the turns, as it was told.
#[derive(Debug, PartialEq)]
struct Beside {
    status: Status,
    accounts: Vec<AccountRow>,
    models: Vec<ModelRow>,
    today: Today,
}

impl Watcher {
    /// `seen` is the epoch and number of the last message that this watcher got before.
    pub fn new(api: &Api, seen: Option<(&str, u64)>) -> Self {
        let told = seen.filter(|(epoch, _)| *epoch == api.epoch).map(|(_, number)| number);
        Self { api: api.clone(), changed: api.turns.live.watch(), told, last: None }
    }

    /// The next message; waits until something changed.
    pub async fn next(&mut self) -> Message {
        if self.told.is_none() {
            return self.snapshot().await;
        }
        // Who resumes is told at once what it missed.
        if self.last.is_some() {
            loop {
                // Windows reset and days end without anybody saying so, hence the look now and then.
                drop(timeout(LOOK_AGAIN, self.changed.changed()).await);
                sleep(GATHER).await;
                if let Some(delta) = self.delta().await {
                    return delta;
                }
            }
        }
        match self.delta().await {
            Some(delta) => delta,
            None => self.snapshot().await,
        }
    }

    async fn beside(&self) -> Beside {
        let api = &self.api;
        Beside {
            status: view::status(api),
            accounts: view::accounts(api),
            models: view::models(api),
            today: view::today(api).await,
        }
    }

    async fn snapshot(&mut self) -> Message {
        self.changed.mark_unchanged();
        let (number, turns) = self.api.turns.live.all();
        let Beside { status, accounts, models, today } = self.beside().await;
        let snapshot = Snapshot {
            epoch: self.api.epoch.clone(),
            number,
            status: status.clone(),
            accounts: accounts.clone(),
            models: models.clone(),
            today: today.clone(),
            turns: turns.into_iter().rev().map(TurnView::from).collect(),
        };
        self.told = Some(number);
        self.last = Some(Beside { status, accounts, models, today });
        Message::Snapshot(Box::new(snapshot))
    }

    /// What changed since the last message, if anything that is shown did.
    async fn delta(&mut self) -> Option<Message> {
        self.changed.mark_unchanged();
        let after = self.told?;
        let (number, turns) = self.api.turns.live.since(after);
        // A number from the future was told by nobody.
        if number < after {
            return None;
        }
        let now = self.beside().await;
        let told = self.last.as_ref();
        let delta = Delta {
            epoch: self.api.epoch.clone(),
            number,
            after,
            status: (told.map(|last| &last.status) != Some(&now.status))
                .then(|| now.status.clone()),
            accounts: (told.map(|last| &last.accounts) != Some(&now.accounts))
                .then(|| now.accounts.clone()),
            models: (told.map(|last| &last.models) != Some(&now.models))
                .then(|| now.models.clone()),
            today: (told.map(|last| &last.today) != Some(&now.today)).then(|| now.today.clone()),
            turns: turns.into_iter().map(TurnView::from).collect(),
        };
        self.told = Some(number);
        self.last = Some(now);
        let says = delta.status.is_some()
            || delta.accounts.is_some()
            || delta.models.is_some()
            || delta.today.is_some();
        if says || !delta.turns.is_empty() {
            return Some(Message::Delta(Box::new(delta)));
        }
        // Nothing that is shown changed; the next delta follows the number that the watcher knows.
        self.told = Some(after);
        None
    }
}
