//! Which version of the schema a database has, asked before anything is done to it.
//!
//! Opening a database with SQLite may already write beside it. So the file is read as a file; only when a log lies beside
//! it, which may say something newer, SQLite is asked, on a connection that cannot write.
//!
//! **Invariant**: a database that is refused is left as it was, byte for byte, so that the program it belongs to still
//! finds it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::OpenError;
use super::open::{NAME, PATIENCE};
use super::schema;

/// The version of an open database, 0 for a new one.
pub(super) fn of(db: &Connection) -> rusqlite::Result<u32> {
    let version: i64 = db.query_one("PRAGMA user_version", [], |row| row.get(0))?;
    // A negative one was not written by any Weir; taken for a newer one, it is left alone.
    Ok(u32::try_from(version).unwrap_or(u32::MAX))
}

/// The version of the database at `path`, 0 when there is none, leaving it and its folder as they are.
pub(super) fn untouched(path: &Path) -> Result<u32, OpenError> {
    let at = |source| OpenError::at(path, source);
    let mut head = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(100).read_to_end(&mut head).map_err(at)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(at(error)),
    };
    if head.is_empty() {
        return Ok(0);
    }
    // The first hundred bytes of a database are laid down in SQLite's file format.
    let number = |offset: usize| -> Option<i32> {
        Some(i32::from_be_bytes(head.get(offset..offset + 4)?.try_into().ok()?))
    };
    let ours = head.starts_with(b"SQLite format 3\0") && number(68) == Some(schema::APPLICATION);
    let Some(version) = number(60).filter(|_| ours) else {
        return Err(OpenError::NotADatabase(path.into()));
    };
    let log = path.with_file_name(format!("{NAME}-wal"));
    if !fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return Ok(u32::try_from(version).unwrap_or(u32::MAX));
    }
    // Its program died, or runs: the log beside it may say something newer than the file. The log must also outlive this
    // connection, on a system that would let a reader fold it.
    let error_of = |error| OpenError::of(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(error_of)?;
    db.busy_timeout(PATIENCE).map_err(error_of)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(error_of)?;
    self::of(&db).map_err(error_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::store::open::tests::{contents, file, folder, refused, written};

    #[test]
    fn a_newer_database_is_refused_and_left_alone() {
        for (version, found) in [(3, 3), (99, 99), (-1, u32::MAX)] {
            let folder = folder();
            let db = written(&folder);
            db.pragma_update(None, "user_version", version).expect("written");
            drop(db);
            let before = contents(&folder);
            let error = refused(&folder);
            assert!(
                matches!(error, OpenError::Newer { found: f, known: 2 } if f == found),
                "{error:?}"
            );
            assert!(error.to_string().contains("Update Weir"), "{error}");
            assert_eq!(contents(&folder), before);
        }
    }

    #[test]
    fn a_newer_version_that_is_only_in_the_log_is_seen() {
        let folder = folder();
        let db = written(&folder);
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).expect("configured");
        db.pragma_update(None, "user_version", 7).expect("written");
        drop(db);
        let mut before = contents(&folder);
        let log = folder.path().join("weir.db-wal");
        assert!(!before[&log].is_empty());
        assert!(matches!(refused(&folder), OpenError::Newer { found: 7, known: 2 }));
        // The index of the log is rebuilt by whoever reads; it says nothing of its own.
        let mut after = contents(&folder);
        let index = folder.path().join("weir.db-shm");
        before.remove(&index);
        after.remove(&index);
        assert_eq!(after, before);
    }

    #[test]
    fn what_is_no_database_of_weir_is_refused_and_left_alone() {
        let other = {
            let folder = folder();
            let db = Connection::open(file(&folder)).expect("opened");
            db.execute_batch("CREATE TABLE theirs (a); PRAGMA user_version = 1").expect("written");
            drop(db);
            fs::read(file(&folder)).expect("read")
        };
        let garbage = b"{\"not\": \"a database\"}".repeat(100);
        for bytes in [other, garbage, b"short".to_vec(), b"SQLite format 3\0".to_vec()] {
            let folder = folder();
            fs::write(file(&folder), bytes).expect("written");
            let before = contents(&folder);
            let error = refused(&folder);
            assert!(matches!(&error, OpenError::NotADatabase(path) if *path == file(&folder)));
            assert_eq!(contents(&folder), before);
        }
    }

    #[test]
    fn an_empty_file_is_a_new_database() {
        let folder = folder();
        fs::write(file(&folder), b"").expect("written");
        let store = Store::open(folder.path()).expect("opened");
        assert_eq!(store.turns(1).expect("read"), []);
    }

    #[test]
    fn a_damaged_database_is_refused() {
        let folder = folder();
        drop(written(&folder));
        let mut bytes = fs::read(file(&folder)).expect("read");
        bytes[100..].fill(0x5a);
        fs::write(file(&folder), bytes).expect("written");
        assert!(matches!(refused(&folder), OpenError::NotADatabase(_)));
    }
}
