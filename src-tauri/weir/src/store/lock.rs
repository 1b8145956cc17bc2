//! One program per data folder.
//!
//! SQLite would let two programs write in turns, but each would take the other's running turns for lost ones and not hear
//! of its settings. A lock on an empty file beside the database is held for as long as a store is open; the system lets go
//! of it when the program dies.
//!
//! **Invariant**: while it is held no other store can be open on the folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use super::error::OpenError;

const NAME: &str = "weir.lock";

pub(super) struct FolderLock(File);

impl FolderLock {
    /// Takes a folder that a Weir has used before, as [`FolderLock::take`], and leaves any other as it is.
    pub(super) fn take_if_used(folder: &Path, database: &Path) -> Result<Option<Self>, OpenError> {
        if folder.join(NAME).exists() { Self::take(folder, database).map(Some) } else { Ok(None) }
    }

    /// Takes the folder, or says that `database` is in use.
    pub(super) fn take(folder: &Path, database: &Path) -> Result<Self, OpenError> {
        let path = folder.join(NAME);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|source| OpenError::at(&path, source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked(database.into())),
            // Some network file systems have no locks. Weir is more use there without one than not at all.
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%error, "the data folder cannot be locked; run only one Weir on it");
            }
        }
        Ok(Self(file))
    }

    /// Lets go. Said outright, because a child process that was just started may still share the open file for a moment.
    pub(super) fn release(&self) {
        if let Err(error) = self.0.unlock() {
            tracing::debug!(%error, "the lock of the data folder ends with the program");
        }
    }
}
