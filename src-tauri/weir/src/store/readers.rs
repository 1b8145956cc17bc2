//! Connections that only read.
//!
//! A read takes an idle connection or opens one, so a long list never holds up a short question, and gives it back.
//!
//! **Invariant**: nothing here can write, and no transaction outlives the read that began it: a reader that lingers would
//! keep the write-ahead log from ever being folded into the file.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::StoreError;

/// More than this many would only hold files open.
const IDLE: usize = 4;

/// How long a read waits for another program that holds the whole database.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Readers {
    /// A path, or the name of a database in memory as a URI.
    database: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn of(database: &Path) -> Self {
        Self { database: database.into(), idle: Mutex::default() }
    }

    /// Reads, seeing one state of the database however many questions `read` asks.
    pub(super) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let idle = self.idle().pop();
        let db = idle.map_or_else(|| self.connect(), Ok)?;
        let snapshot = db.unchecked_transaction()?;
        let found = read(&snapshot)?;
        drop(snapshot);
        let mut idle = self.idle();
        if idle.len() < IDLE {
            idle.push(db);
        }
        Ok(found)
    }

    /// Closes the idle connections.
    pub(super) fn rest(&self) {
        self.idle().clear();
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let db = Connection::open_with_flags(&self.database, flags)?;
        db.busy_timeout(PATIENCE)?;
        db.pragma_update(None, "query_only", true)?;
        Ok(db)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use crate::store::Store;

    #[test]
    fn a_reader_cannot_write() {
        let folder = tempfile::tempdir().expect("a folder");
        for store in [Store::open(folder.path()).expect("opened"), Store::in_memory()] {
            let refused = store.0.readers.with(|db| db.execute("DELETE FROM settings", []));
            assert!(refused.is_err());
        }
    }
}
