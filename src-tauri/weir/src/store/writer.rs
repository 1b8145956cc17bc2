//! The one thread that writes.
//!
//! Facts are gathered for a moment and written many to a transaction, in the order they came, because a transaction costs
//! more than what is in it; whoever waits for the disk ends the moment. When the disk refuses (it is full, another program
//! holds the file) they are kept and tried again; a fact that the schema refuses is logged and left out, so that it cannot
//! hold up the others.
//!
//! **Invariant**: what was recorded before a flush, a write or the end is written before it, or still kept.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::error::StoreError;
use super::facts::{Fact, TurnRow};
use super::{journal, turns};

/// Facts per transaction.
const BATCH: usize = 256;

/// How long facts are gathered before they are written.
const GATHER: Duration = Duration::from_millis(25);

/// How long the disk is left alone after it refused, unless someone waits.
const PAUSE: Duration = Duration::from_secs(1);

/// The thread has no runtime, so no test can pause its time, and none depends on it: whoever waits ends the moment.
#[expect(clippy::disallowed_methods, reason = "a plain thread waits by the plain clock")]
fn now() -> Instant {
    Instant::now()
}

type Write = Box<dyn FnOnce(&Connection) -> rusqlite::Result<()> + Send>;

enum Task {
    Fact(Box<Fact>),
    Write(Write, SyncSender<rusqlite::Result<()>>),
    Flush(SyncSender<()>),
}

/// The way to the thread.
pub(super) struct Writer {
    /// None once closed. The thread ends when it has taken all that was sent before.
    tasks: Mutex<Option<Sender<Task>>>,
    /// Held while waiting for the end, so that everyone who closes waits for it.
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The thread while it gathers: it sleeps then, and only who waits wakes it.
    gathers: Thread,
}

impl Writer {
    pub(super) fn start(db: Connection) -> io::Result<Self> {
        let (sender, tasks) = mpsc::channel();
        let desk = Desk { db, tasks, kept: VecDeque::new(), due: now(), refused: false };
        let thread = thread::Builder::new().name("store".to_owned()).spawn(|| desk.run())?;
        let gathers = thread.thread().clone();
        Ok(Self { tasks: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)), gathers })
    }

    pub(super) fn record(&self, fact: Fact) {
        if !self.send(Task::Fact(Box::new(fact))) {
            tracing::warn!("a fact came after the store was closed and is not kept");
        }
    }

    /// Runs `write` on the thread and waits until it is on disk.
    pub(super) fn write(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<()> + Send + 'static,
    ) -> Result<(), StoreError> {
        let (reply, done) = mpsc::sync_channel(1);
        if !self.send(Task::Write(Box::new(write), reply)) {
            return Err(StoreError::Closed);
        }
        self.gathers.unpark();
        Ok(done.recv().map_err(|_| StoreError::Closed)??)
    }

    pub(super) fn flush(&self) {
        let (reply, done) = mpsc::sync_channel(1);
        if self.send(Task::Flush(reply)) {
            self.gathers.unpark();
            let _ = done.recv();
        }
    }

    pub(super) fn close(&self) {
        drop(lock(&self.tasks).take());
        self.gathers.unpark();
        if let Some(thread) = lock(&self.thread).take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that writes the history panicked");
        }
    }

    fn send(&self, task: Task) -> bool {
        lock(&self.tasks).as_ref().is_some_and(|tasks| tasks.send(task).is_ok())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the thread works on.
struct Desk {
    db: Connection,
    tasks: Receiver<Task>,
    /// Facts that are not on disk yet, oldest first.
    kept: VecDeque<Fact>,
    /// When they are written at the latest.
    due: Instant,
    /// The last transaction failed.
    refused: bool,
}

impl Desk {
    fn run(mut self) {
        while let Some(task) = self.next() {
            match task {
                Task::Fact(fact) => self.keep(*fact),
                Task::Write(write, reply) => {
                    self.save();
                    let _ = reply.send(write(&self.db));
                }
                Task::Flush(reply) => {
                    self.save();
                    let _ = reply.send(());
                }
            }
        }
        self.save();
        if !self.kept.is_empty() {
            tracing::error!(lost = self.kept.len(), "the disk refused these facts to the end");
        }
        // The log is folded into the file, so that a closed store is one file that can be copied.
        let fold = self.db.query_one("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = fold {
            tracing::debug!(%error, "the write-ahead log stays beside the database");
        }
    }

    /// Takes a fact. What is newly known of a turn takes the place of what was not yet written of it.
    fn keep(&mut self, fact: Fact) {
        if self.kept.is_empty() {
            self.due = now() + GATHER;
        }
        let fact = match fact {
            Fact::Turn(news) => match self.latest_of(&news.id) {
                // As in the database, an outcome is not taken back.
                Some(turn) if turn.outcome.is_none() || news.outcome.is_some() => {
                    *turn = news;
                    return;
                }
                _ => Fact::Turn(news),
            },
            other => other,
        };
        self.kept.push_back(fact);
        if self.kept.len().is_multiple_of(BATCH) {
            self.save();
        }
    }

    /// What is kept of a turn, if that was not long ago.
    fn latest_of(&mut self, id: &str) -> Option<&mut TurnRow> {
        self.kept.iter_mut().rev().take(BATCH).find_map(|kept| match kept {
            Fact::Turn(turn) if turn.id == id => Some(turn),
            _ => None,
        })
    }

    /// The next task, or None at the end. What is kept is saved when its moment is over.
    fn next(&mut self) -> Option<Task> {
        loop {
            match self.tasks.try_recv() {
                Ok(task) => return Some(task),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            if self.kept.is_empty() {
                return self.tasks.recv().ok();
            }
            if self.refused {
                match self.tasks.recv_timeout(PAUSE) {
                    Ok(task) => return Some(task),
                    Err(RecvTimeoutError::Disconnected) => return None,
                    Err(RecvTimeoutError::Timeout) => self.save(),
                }
                continue;
            }
            let left = self.due.saturating_duration_since(now());
            if left.is_zero() {
                self.save();
            } else {
                thread::park_timeout(left);
            }
        }
    }

    /// Writes what is kept, batch by batch, until nothing is left or the disk refuses.
    fn save(&mut self) {
        while !self.kept.is_empty() {
            let count = self.kept.len().min(BATCH);
            match commit(&mut self.db, self.kept.range(..count)) {
                Ok(()) => {
                    self.kept.drain(..count);
                    if self.refused {
                        tracing::info!("the history can be written again");
                    }
                    self.refused = false;
                }
                Err(error) => {
                    if !self.refused {
                        tracing::error!(%error, "the history cannot be written; it is kept and tried again");
                    }
                    self.refused = true;
                    return;
                }
            }
        }
    }
}

fn commit<'a>(db: &mut Connection, facts: impl Iterator<Item = &'a Fact>) -> rusqlite::Result<()> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for fact in facts {
        match put(&tx, fact) {
            Err(error) if is_about_the_fact(&error) => {
                tracing::error!(%error, "a fact does not fit the history and is left out");
            }
            other => other?,
        }
    }
    tx.commit()
}

fn put(db: &Connection, fact: &Fact) -> rusqlite::Result<()> {
    match fact {
        Fact::Turn(turn) => turns::put(db, turn),
        Fact::Emitted { turn, index, call_id, tool, kind, at } => {
            journal::emit(db, turn, *index, call_id, tool, kind, *at)
        }
        Fact::Booked { conversation, call_id, at, by_turn } => {
            journal::book(db, conversation, call_id, *at, by_turn)
        }
    }
}

/// Would this fact be refused whatever the state of the disk?
fn is_about_the_fact(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => matches!(
            code,
            ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig
        ),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weir_core::dialect::mode::ServingMode;

    use super::*;
    use crate::store::Store;
    use crate::store::journal::tests::emitted;
    use crate::store::turns::tests::{ended, started};

    fn ids(store: &Store) -> Vec<String> {
        store.turns(100).expect("read").into_iter().map(|turn| turn.id).collect()
    }

    /// Opens as if it were the moment of the turns below, so that none is old.
    fn open(folder: &Path) -> Store {
        crate::store::open::open(folder, 1, crate::store::schema::VERSIONS).expect("opened")
    }

    /// Another program that is in the middle of writing.
    fn holder(folder: &Path) -> Connection {
        let db = Connection::open(folder.join("weir.db")).expect("opened");
        db.execute_batch("BEGIN IMMEDIATE").expect("held");
        db
    }

    #[test]
    fn a_burst_loses_nothing_and_keeps_its_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path());
        thread::scope(|scope| {
            for turn in ["t0", "t1", "t2", "t3"] {
                let store = store.clone();
                scope.spawn(move || {
                    store.record(Fact::Turn(started(turn, 1)));
                    // Backwards, so that the order recorded is not the order of the places.
                    (0..2_500).rev().for_each(|place| store.record(emitted(turn, place, "call")));
                });
            }
        });
        store.flush();
        let of = |turn: &str| {
            let turn = turn.to_owned();
            store.0.readers.with(move |db| {
                db.prepare("SELECT place FROM emitted WHERE turn = ?1 ORDER BY seq")?
                    .query_map([turn], |row| row.get(0))?
                    .collect::<rusqlite::Result<Vec<u32>>>()
            })
        };
        let expected: Vec<u32> = (0..2_500).rev().collect();
        for turn in ["t0", "t1", "t2", "t3"] {
            assert_eq!(of(turn).expect("read"), expected, "{turn}");
        }
        assert_eq!(ids(&store).len(), 4);
    }

    #[test]
    fn what_was_recorded_is_there_after_the_last_clone_went() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path());
        (0..100).for_each(|n| store.record(Fact::Turn(ended(&n.to_string(), 1))));
        drop(store);
        assert!(!folder.path().join("weir.db-wal").exists(), "a closed store is one file");
        assert_eq!(ids(&open(folder.path())).len(), 100);
    }

    #[test]
    fn facts_wait_for_a_disk_that_refuses() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path());
        let held = holder(folder.path());
        (0..300).for_each(|n| store.record(Fact::Turn(ended(&format!("t{n}"), n))));
        store.flush();
        assert_eq!(ids(&store), Vec::<String>::new());
        let refused = store.set_mode("m", ServingMode::Lite).expect_err("held");
        assert!(refused.to_string().starts_with("Another program holds"), "{refused}");
        store.record(Fact::Turn(ended("last", 300)));

        drop(held);
        store.flush();
        assert_eq!(store.turns(1_000).expect("read").len(), 301);
        assert_eq!(ids(&store)[..2], ["last", "t299"]);
        store.set_mode("m", ServingMode::Lite).expect("written");
    }

    #[test]
    fn facts_that_waited_are_written_at_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path());
        let held = holder(folder.path());
        store.record(Fact::Turn(ended("t", 1)));
        store.flush();
        drop(held);
        drop(store);
        assert_eq!(ids(&open(folder.path())), ["t"]);
    }

    #[test]
    fn what_nobody_waits_for_is_written_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path());
        store.record(Fact::Turn(ended("t", 1)));
        while ids(&store).is_empty() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_turn_that_is_short_is_one_row_that_keeps_its_outcome_and_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path());
        let held = holder(folder.path());
        for fact in [started("a", 1), started("b", 1), ended("a", 1), started("a", 1)] {
            store.record(Fact::Turn(fact));
        }
        store.flush();
        drop(held);
        store.flush();
        let turns = store.turns(9).expect("read");
        let turns: Vec<_> =
            turns.iter().map(|turn| (turn.id.as_str(), turn.outcome.is_some())).collect();
        assert_eq!(turns, [("b", false), ("a", true)]);
    }

    #[test]
    fn a_fact_that_does_not_fit_holds_up_nobody() {
        let store = Store::in_memory();
        store.record(Fact::Turn(ended("before", 1)));
        store.record(Fact::Turn(ended("beyond any calendar", i64::MAX)));
        store.record(Fact::Turn(ended("after", 2)));
        store.flush();
        assert_eq!(ids(&store), ["after", "before"]);
    }

    #[test]
    fn after_the_end_reading_works_and_writing_does_not() {
        for folder in [None, Some(tempfile::tempdir().expect("a folder"))] {
            let store = folder.as_ref().map_or_else(Store::in_memory, |folder| open(folder.path()));
            store.record(Fact::Turn(ended("before", 1)));
            assert!(store.modes().expect("read").is_empty());
            let clone = store.clone();
            clone.close();
            clone.close();
            store.record(Fact::Turn(ended("after", 2)));
            store.flush();
            let refused = store.set_setting("a", "b");
            assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
            if folder.is_some() {
                assert_eq!(ids(&store), ["before"]);
            }
        }
    }
}
