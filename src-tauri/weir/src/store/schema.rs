//! The versions of the schema, and how an older database becomes a current one.
//!
//! Each table's SQL stands beside the code that uses it; here is only which pieces make which version. A version that was
//! released never changes: what comes later is another entry.
//!
//! **Invariant**: an existing database is copied before it is migrated, and a newer one is never touched.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

use super::error::OpenError;
use super::{journal, modes, rollup, settings, turns};

/// What each version added, the first one first.
pub(super) const VERSIONS: &[&[&str]] =
    &[&[settings::V1, modes::V1, turns::V1, journal::V1, rollup::V1], &[turns::V2]];

/// Marks a database file as one of Weir's: `Weir` in ASCII.
pub(super) const APPLICATION: i32 = 0x5765_6972;

/// The newest version in `versions`.
pub(super) fn known(versions: &[&[&str]]) -> u32 {
    u32::try_from(versions.len()).unwrap_or(u32::MAX)
}

/// Brings the database at `path`, which has version `found`, up to date. A failed step leaves it as it was.
pub(super) fn migrate(
    db: &mut Connection,
    path: &Path,
    found: u32,
    versions: &[&[&str]],
) -> Result<(), OpenError> {
    let known = known(versions);
    if found > known {
        return Err(OpenError::Newer { found, known });
    }
    if found == known {
        return Ok(());
    }
    if found > 0 {
        copy(db, path, known)?;
        tracing::info!(found, known, "migrating the history database");
    }
    apply(db, versions).map_err(|error| match error {
        rusqlite_migration::Error::RusqliteError { err, .. } => OpenError::of(path, err),
        other => OpenError::Sql(Box::new(other)),
    })
}

/// Runs the steps that the database lacks, in one transaction.
pub(super) fn apply(db: &mut Connection, versions: &[&[&str]]) -> rusqlite_migration::Result<()> {
    let steps: Vec<String> = versions.iter().map(|pieces| pieces.concat()).collect();
    Migrations::new(steps.iter().map(|sql| M::up(sql)).collect()).to_latest(db)
}

/// Writes all that the database holds, its write-ahead log included, to `weir.db.before-vN`. The copy appears whole or
/// not at all.
fn copy(db: &Connection, path: &Path, version: u32) -> Result<(), OpenError> {
    let target = path.with_added_extension(format!("before-v{version}"));
    let draft = target.with_added_extension("draft");
    let at = |source: io::Error| OpenError::at(&draft, source);

    // SQLite writes into an empty file as it is, so the permissions of the draft are those of the copy.
    let _ = fs::remove_file(&draft);
    create_private(&draft).map_err(at)?;
    let name = draft.to_str().ok_or_else(|| at(io::Error::other("its name is not text")))?;
    db.execute("VACUUM INTO ?1", [name]).map_err(|error| OpenError::of(&draft, error))?;
    OpenOptions::new().write(true).open(&draft).and_then(|file| file.sync_all()).map_err(at)?;
    fs::rename(&draft, &target).map_err(|source| OpenError::at(&target, source))
}

/// Creates a file that only the user can read, unless it exists.
pub(super) fn create_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::open::open;
    use crate::store::turns::tests::{ended, started};
    use crate::store::{Fact, Store};

    const NOW: i64 = 1_787_054_400_000;
    const NEXT: &[&[&str]] = &[
        VERSIONS[0],
        VERSIONS[1],
        &["ALTER TABLE turns ADD COLUMN colour TEXT;", "CREATE TABLE colours (name TEXT) STRICT;"],
    ];
    const BROKEN: &[&[&str]] =
        &[VERSIONS[0], VERSIONS[1], &["CREATE TABLE half (name TEXT);", "NONSENSE;"]];

    fn folder_with_a_turn() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path(), NOW, VERSIONS).expect("opened");
        store.record(Fact::Turn(ended("t1", NOW)));
        drop(store);
        folder
    }

    fn version(path: &Path) -> u32 {
        let db = Connection::open(path).expect("opened");
        db.query_one("PRAGMA user_version", [], |row| row.get(0)).expect("a version")
    }

    fn only_turn(store: &Store) -> String {
        let turns = store.turns(10).expect("read");
        assert_eq!(turns.len(), 1);
        turns[0].id.clone()
    }

    #[test]
    fn a_migration_leaves_a_copy_of_what_was() {
        let folder = folder_with_a_turn();
        let store = open(folder.path(), NOW, NEXT).expect("migrated");
        assert_eq!(only_turn(&store), "t1");
        store.record(Fact::Turn(started("t2", NOW)));
        store.flush();
        drop(store);
        assert_eq!(version(&folder.path().join("weir.db")), 3);

        let copy = folder.path().join("weir.db.before-v3");
        assert_eq!(version(&copy), 2);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&copy).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        // The way back for the user: put the copy in the place of the database.
        let back = tempfile::tempdir().expect("a folder");
        fs::copy(&copy, back.path().join("weir.db")).expect("copied");
        assert_eq!(only_turn(&open(back.path(), NOW, VERSIONS).expect("opened")), "t1");
    }

    #[test]
    fn what_is_only_in_the_log_is_in_the_copy() {
        let folder = folder_with_a_turn();
        let path = folder.path().join("weir.db");
        // A reader that stays keeps the write-ahead log from being folded into the file.
        let reader = Connection::open(&path).expect("opened");
        reader.execute_batch("BEGIN; SELECT * FROM turns").expect("reading");
        let store = open(folder.path(), NOW, VERSIONS).expect("opened");
        store.record(Fact::Turn(ended("t2", NOW)));
        drop(store);
        assert!(fs::metadata(folder.path().join("weir.db-wal")).expect("there").len() > 0);

        drop(open(folder.path(), NOW, NEXT).expect("migrated"));
        let copy = Connection::open(folder.path().join("weir.db.before-v3")).expect("opened");
        let turns: i64 =
            copy.query_one("SELECT count(*) FROM turns", [], |row| row.get(0)).expect("read");
        assert_eq!(turns, 2);
    }

    #[test]
    fn a_migration_that_fails_changes_nothing() {
        let folder = folder_with_a_turn();
        let refused = open(folder.path(), NOW, BROKEN).expect_err("refused");
        assert!(matches!(refused, OpenError::Sql(_)), "{refused:?}");
        assert_eq!(version(&folder.path().join("weir.db")), 2);
        assert_eq!(only_turn(&open(folder.path(), NOW, VERSIONS).expect("opened")), "t1");
    }

    #[test]
    fn a_new_database_needs_no_copy() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(open(folder.path(), NOW, NEXT).expect("opened"));
        drop(open(folder.path(), NOW, NEXT).expect("opened"));
        assert!(!folder.path().join("weir.db.before-v3").exists());
    }
}
