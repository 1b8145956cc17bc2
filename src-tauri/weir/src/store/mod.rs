//! What Weir remembers: the user's choices, one row per turn, and the journal of calls, in one SQLite file.
//!
//! Facts are handed to a thread that owns the only connection that writes, so a turn never waits for the disk; rows are
//! read on connections of their own that cannot write. Everything here blocks for as long as the disk takes, except
//! [`Store::record`]: from async code call the rest inside `spawn_blocking`.
//!
//! **Invariant**: no secret, prompt, answer or argument is ever a column, and no fact that was recorded is dropped.

mod error;
pub mod facts;
mod journal;
mod lock;
mod modes;
mod open;
mod readers;
mod rollup;
mod schema;
mod settings;
mod today;
mod turns;
mod version;
mod words;
mod writer;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use weir_core::dialect::mode::ServingMode;

pub use self::error::{OpenError, StoreError};
pub use self::facts::{CallRow, Fact, TurnRow};
use self::lock::FolderLock;
use self::readers::Readers;
pub use self::rollup::DayUsage;
pub use self::settings::RETENTION_DAYS;
use self::writer::Writer;

/// The history and the settings of one data folder. Clones share it; the last one to go closes it.
#[derive(Clone)]
pub struct Store(Arc<Parts>);

struct Parts {
    readers: Readers,
    writer: Writer,
    /// None for a store in memory, which nobody else can reach.
    lock: Option<FolderLock>,
}

impl Store {
    /// Opens `folder/weir.db`, creating the folder (for the user alone) and the file if they are missing, bringing an
    /// older database up to date after a copy of it was made, and closing as "lost" the turns that were running when the
    /// program last died. The folder belongs to this store until it is closed or its last clone is gone.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        open::open(folder, open::now(), schema::VERSIONS)
    }

    /// A store that ends with its last clone and touches no disk, for tests.
    pub fn in_memory() -> Self {
        open::in_memory().expect("SQLite can always keep an empty database in memory")
    }

    /// The models whose serving mode the user chose, each lite or full. A model that is not there is auto.
    pub fn modes(&self) -> Result<BTreeMap<String, ServingMode>, StoreError> {
        self.0.readers.with(modes::all)
    }

    /// Chooses the serving mode of a model; auto forgets the choice. On disk when it returns.
    pub fn set_mode(&self, model: &str, mode: ServingMode) -> Result<(), StoreError> {
        let model = model.to_owned();
        self.0.writer.write(move |db| modes::set(db, &model, mode))
    }

    /// The value of a setting, or None if it was never set.
    pub fn setting(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.0.readers.with(|db| settings::get(db, name))
    }

    /// Sets a setting. On disk when it returns.
    pub fn set_setting(&self, name: &str, value: &str) -> Result<(), StoreError> {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.0.writer.write(move |db| settings::set(db, &name, &value))
    }

    /// Hands a fact to the writer and returns at once. After [`Store::close`] it is logged and ignored.
    pub fn record(&self, fact: Fact) {
        self.0.writer.record(fact);
    }

    /// Waits until everything that was recorded before is on disk. While the disk refuses (it is full, or another program
    /// holds the file) it returns after one attempt, and the writer keeps the facts and tries again.
    pub fn flush(&self) {
        self.0.writer.flush();
    }

    /// Writes what was recorded, stops the writer and gives the folder free. Reading still works, writing does not.
    pub fn close(&self) {
        self.0.close();
    }

    /// The newest turns, newest first.
    pub fn turns(&self, limit: usize) -> Result<Vec<TurnRow>, StoreError> {
        self.0.readers.with(|db| turns::newest(db, limit))
    }

    /// One turn with its calls in emitted order, by its id or by any beginning of it that no other turn shares.
    pub fn turn(&self, id: &str) -> Result<Option<(TurnRow, Vec<CallRow>)>, StoreError> {
        self.0.readers.with(|db| {
            let mut turns = turns::by_prefix(db, id)?;
            if turns.len() > 1 {
                return Ok(Err(StoreError::Ambiguous(id.to_owned())));
            }
            let Some(turn) = turns.pop() else { return Ok(Ok(None)) };
            let calls = journal::calls(db, &turn.id)?;
            Ok(Ok(Some((turn, calls))))
        })?
    }

    /// What each model used on each local day, newest day first, for at most `days` days that saw a turn. Days whose turns
    /// were forgotten (see [`RETENTION_DAYS`]) are still there.
    pub fn usage_by_day(&self, days: usize) -> Result<Vec<DayUsage>, StoreError> {
        self.0.readers.with(|db| rollup::by_day(db, days))
    }

    /// What each model used since local midnight.
    pub fn usage_today(&self) -> Result<Vec<DayUsage>, StoreError> {
        self.0.readers.with(today::usage)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Parts {
    fn close(&self) {
        // The readers go first, so that the writer's connection is the last one and leaves a single file behind.
        self.readers.rest();
        self.writer.close();
        if let Some(lock) = &self.lock {
            lock.release();
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.close();
    }
}
