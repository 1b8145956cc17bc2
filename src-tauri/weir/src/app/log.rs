//! The log: a file in the data folder, and stderr.
//!
//! It is opened before the database, so that a database that cannot be opened is in it. It says which turn went where and
//! how it ended, and why something failed; never what was said.
//!
//! **Invariant**: bounded; the oldest lines go first.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use file_rotate::suffix::AppendCount;
use file_rotate::{ContentLimit, FileRotate, compression::Compression};
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use super::folder::{Folder, FolderError};

/// The file of the headless program, and of the tray: two programs never turn over one file.
pub const HEADLESS: &str = "weir.log";
pub const DESKTOP: &str = "weir-desktop.log";

/// Bytes of one file, and how many older ones are kept.
const LIMIT: usize = 2 * 1024 * 1024;
const OLDER: usize = 3;

/// What goes to the file.
const FILE_FILTER: &str = "warn,weir=info";

/// Starts logging; a second call in one process changes nothing. `WEIR_LOG` sets what goes to stderr (default: `warn`).
pub fn start(folder: &Folder, name: &str) -> Result<(), FolderError> {
    let path = folder.path().join(name);
    let file = open(&path).map_err(|error| FolderError::File { path, error })?;
    let to_stderr = EnvFilter::try_from_env("WEIR_LOG").unwrap_or_else(|_| "warn".into());
    let stderr = fmt::layer().with_writer(io::stderr).with_ansi(false).with_filter(to_stderr);
    let file = fmt::layer()
        .with_writer(Mutex::new(file))
        .with_ansi(false)
        .with_filter(EnvFilter::new(FILE_FILTER));
    drop(tracing_subscriber::registry().with(stderr).with(file).try_init());
    Ok(())
}

fn open(path: &Path) -> io::Result<FileRotate<AppendCount>> {
    // The library opens lazily and panics where it cannot; opening once here gives a sentence instead.
    let mut options = OpenOptions::new();
    let options = super::system::private(options.read(true).create(true).append(true));
    drop(options.open(path)?);
    let limit = ContentLimit::Bytes(LIMIT);
    Ok(FileRotate::new(
        path,
        AppendCount::new(OLDER),
        limit,
        Compression::None,
        Some(options.clone()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn the_log_is_bounded_and_keeps_its_newest_lines() {
        let home = tempfile::tempdir().expect("a folder");
        let mut log = open(&home.path().join(HEADLESS)).expect("opened");
        let line = [b'x'; 1024];
        (0..(OLDER + 3) * LIMIT / line.len()).for_each(|_| log.write_all(&line).expect("written"));
        log.write_all(b"last").expect("written");
        let files: Vec<_> = std::fs::read_dir(home.path()).expect("there").flatten().collect();
        let bytes: u64 = files.iter().map(|file| file.metadata().expect("there").len()).sum();
        assert!(
            files.len() <= OLDER + 1 && bytes <= ((OLDER + 1) * LIMIT) as u64,
            "{} files, {bytes} bytes",
            files.len()
        );
        assert!(std::fs::read(home.path().join(HEADLESS)).expect("there").ends_with(b"last"));
    }

    #[test]
    fn a_log_that_cannot_be_written_is_an_error_and_no_panic() {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(home.path().join(HEADLESS)).expect("a folder in its place");
        assert!(open(&home.path().join(HEADLESS)).is_err());
    }
}
