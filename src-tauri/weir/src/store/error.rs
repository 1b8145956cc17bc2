//! Why a store cannot be opened, read or written.
//!
//! Each says one sentence and one thing to do; what SQLite said is the source, for the log.
//!
//! **Invariant**: no message repeats a value that was stored.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why a data folder cannot be used.
#[derive(Debug)]
pub enum OpenError {
    /// A newer Weir wrote the database. Nothing in the folder was changed.
    Newer {
        found: u32,
        known: u32,
    },
    /// Another program has it, most likely a running Weir. The path is the file that is held.
    Locked(PathBuf),
    /// The file or folder cannot be written.
    ReadOnly(PathBuf),
    /// The file is something else, or damaged.
    NotADatabase(PathBuf),
    Io {
        path: PathBuf,
        source: io::Error,
    },
    Sql(Box<dyn Error + Send + Sync>),
}

impl OpenError {
    /// What an error of SQLite means for the database at `path`.
    pub(super) fn of(path: &Path, error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked(path.into()),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly(path.into()),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Self::NotADatabase(path.into())
            }
            Some(ErrorCode::CannotOpen | ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
                Self::Io { path: path.into(), source: io::Error::other(error) }
            }
            _ => Self::Sql(Box::new(error)),
        }
    }

    /// What an error of the file system means for `path`.
    pub(super) fn at(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly(path.into())
            }
            _ => Self::Io { path: path.into(), source },
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { found, known } => write!(
                f,
                "A newer Weir wrote this data folder (its database has version {found}, this program knows up to {known}). \
                 Update Weir, or choose another folder with --data."
            ),
            Self::Locked(path) => write!(
                f,
                "{} is in use by another program. Stop the other Weir, or choose another folder with --data.",
                path.display()
            ),
            Self::ReadOnly(path) => write!(
                f,
                "{} cannot be written. Give yourself permission to write there, or choose another folder with --data.",
                path.display()
            ),
            Self::NotADatabase(path) => write!(
                f,
                "{} is not a database that Weir can read. Move it away to start with an empty history.",
                path.display()
            ),
            Self::Io { path, source } => write!(
                f,
                "{} cannot be opened ({source}). Make room or repair it, or choose another folder with --data.",
                path.display()
            ),
            Self::Sql(_) => write!(
                f,
                "The history database cannot be used. See the log for the cause, or choose another folder with --data."
            ),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Sql(source) => Some(&**source),
            Self::Newer { .. } | Self::Locked(_) | Self::ReadOnly(_) | Self::NotADatabase(_) => {
                None
            }
        }
    }
}

/// Why something could not be read or written in an open store.
#[derive(Debug)]
pub enum StoreError {
    /// The store was closed; Weir is stopping.
    Closed,
    /// Several turns begin with this.
    Ambiguous(String),
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => write!(f, "Weir is stopping. Start it again and repeat the command."),
            Self::Ambiguous(prefix) => {
                write!(f, "Several turns begin with `{prefix}`. Give more of the id.")
            }
            Self::Sql(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => {
                    write!(
                        f,
                        "The disk of the data folder is full. Make room and repeat the command."
                    )
                }
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => write!(
                    f,
                    "Another program holds the history database. Close it and repeat the command."
                ),
                _ => write!(
                    f,
                    "The history database refused. See the log for the cause and repeat the command."
                ),
            },
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Sql(error) => Some(error),
            Self::Closed | Self::Ambiguous(_) => None,
        }
    }
}
