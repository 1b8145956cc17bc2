//! Opening a database: is it one, is it ours, may we, and what must be done before the first turn.
//!
//! The questions that can be answered without touching anything come first. A database that is refused is left as it was,
//! byte for byte, so that the program it belongs to still finds it.
//!
//! **Invariant**: after it returns, the schema is current, no turn is open, and the folder is locked.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags};

use super::error::OpenError;
use super::lock::FolderLock;
use super::readers::Readers;
use super::writer::Writer;
use super::{Parts, Store, rollup, schema, settings, turns, version};

pub(super) const NAME: &str = "weir.db";

/// How long to wait for another program that holds the database before saying so.
pub(super) const PATIENCE: Duration = Duration::from_millis(250);

/// The clock that [`open`] is given outside tests, in Unix milliseconds.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn open(folder: &Path, now: i64, versions: &[&[&str]]) -> Result<Store, OpenError> {
    create_folder(folder).map_err(|source| OpenError::at(folder, source))?;
    let path = folder.join(NAME);
    let of = |error| OpenError::of(&path, error);

    // The lock comes before the first look: on Unix, closing a file gives up every lock that this process has on it,
    // those of a store that is open in it included.
    let lock = FolderLock::take_if_used(folder, &path)?;
    let found = version::untouched(&path)?;
    let known = schema::known(versions);
    if found > known {
        return Err(OpenError::Newer { found, known });
    }
    // Asked of the file itself, because the superuser may write what its owner wanted left alone.
    if fs::metadata(&path).is_ok_and(|file| file.permissions().readonly()) {
        return Err(OpenError::ReadOnly(path));
    }
    let lock = lock.map_or_else(|| FolderLock::take(folder, &path), Ok)?;

    schema::create_private(&path).map_err(|source| OpenError::at(&path, source))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(&path, flags).map_err(of)?;
    configure(&db).map_err(of)?;
    // Asked again under the lock: another program may have been faster.
    let found = version::of(&db).map_err(of)?;
    schema::migrate(&mut db, &path, found, versions)?;

    let lost = turns::close_lost(&db).map_err(of)?;
    if lost > 0 {
        tracing::warn!(
            lost,
            "these turns were running when Weir last died; they are closed as lost"
        );
    }
    let days = settings::retention_days(&db).map_err(of)?;
    let forgotten = rollup::forget(&mut db, days, now).map_err(of)?;
    if forgotten > 0 {
        tracing::info!(forgotten, days, "old turns were added up by day and forgotten");
    }
    let writer = Writer::start(db).map_err(|source| OpenError::at(&path, source))?;
    Ok(Store(Arc::new(Parts { readers: Readers::of(&path), writer, lock: Some(lock) })))
}

pub(super) fn in_memory() -> Result<Store, OpenError> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // A name that begins with a slash is what makes connections of one process share it.
    let name = format!("file:/weir-{count}?vfs=memdb");
    let name = Path::new(&name);
    let of = |error| OpenError::of(name, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let mut db = Connection::open_with_flags(name, flags).map_err(of)?;
    db.busy_timeout(Duration::from_secs(5)).map_err(of)?;
    db.pragma_update_and_check(None, "journal_mode", "memory", |_| Ok(())).map_err(of)?;
    schema::apply(&mut db, schema::VERSIONS).map_err(|error| OpenError::Sql(Box::new(error)))?;
    let writer = Writer::start(db).map_err(|source| OpenError::at(name, source))?;
    Ok(Store(Arc::new(Parts { readers: Readers::of(name), writer, lock: None })))
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn configure(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(PATIENCE)?;
    // First of all, so that even a file on which nothing else was done yet is known as ours.
    let application: i32 = db.query_one("PRAGMA application_id", [], |row| row.get(0))?;
    if application != schema::APPLICATION {
        db.pragma_update(None, "application_id", schema::APPLICATION)?;
    }
    let journal: String =
        db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if journal != "wal" {
        tracing::warn!(
            journal,
            "the file system has no write-ahead log; reading will wait for writing"
        );
    }
    // A turn's cost and a user's choice must survive a power cut; batches make that cheap.
    db.pragma_update(None, "synchronous", "full")?;
    // Cut back after a burst, which else would stay as big as it ever was.
    db.pragma_update_and_check(None, "journal_size_limit", 4 << 20, |_| Ok(()))
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::env;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    use tempfile::TempDir;
    use weir_core::dialect::mode::ServingMode;

    use super::*;
    use crate::store::journal::tests::{booked, emitted};
    use crate::store::turns::tests::{ended, started};
    use crate::store::{Fact, StoreError, TurnRow};

    /// A noon in UTC.
    const NOW: i64 = 1_787_054_400_000;

    pub(in crate::store) fn folder() -> TempDir {
        tempfile::tempdir().expect("a folder")
    }

    pub(in crate::store) fn file(folder: &TempDir) -> PathBuf {
        folder.path().join(NAME)
    }

    pub(in crate::store) fn written(folder: &TempDir) -> Connection {
        let store = Store::open(folder.path()).expect("opened");
        store.set_mode("kept", ServingMode::Lite).expect("written");
        drop(store);
        Connection::open(file(folder)).expect("opened")
    }

    pub(in crate::store) fn refused(folder: &TempDir) -> OpenError {
        Store::open(folder.path()).expect_err("refused")
    }

    /// Every file of a folder, with what is in it.
    pub(in crate::store) fn contents(folder: &TempDir) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(folder.path()).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.map(|path| (path.clone(), fs::read(path).expect("read"))).collect()
    }

    /// One test of this module, to be run in another process.
    fn this_test(name: &str) -> Command {
        let mut command = Command::new(env::current_exe().expect("this test program"));
        command.args(["--nocapture", "--exact"]).arg(format!("store::open::tests::{name}"));
        command
    }

    #[test]
    fn a_file_that_may_not_be_written_is_refused() {
        let folder = folder();
        drop(written(&folder));
        let mut permissions = fs::metadata(file(&folder)).expect("there").permissions();
        permissions.set_readonly(true);
        fs::set_permissions(file(&folder), permissions).expect("set");
        let before = contents(&folder);
        assert!(matches!(refused(&folder), OpenError::ReadOnly(path) if path == file(&folder)));
        assert_eq!(contents(&folder), before);
    }

    #[test]
    fn a_folder_that_is_a_file_is_refused() {
        let folder = folder();
        fs::write(file(&folder), b"").expect("written");
        let error = Store::open(&file(&folder)).expect_err("refused");
        assert!(
            matches!(&error, OpenError::Io { path, .. } if *path == file(&folder)),
            "{error:?}"
        );
    }

    #[test]
    fn one_store_at_a_time_has_a_folder() {
        let folder = folder();
        let store = Store::open(folder.path()).expect("opened");
        store.record(Fact::Turn(started("running", NOW)));
        store.flush();
        assert!(matches!(refused(&folder), OpenError::Locked(path) if path == file(&folder)));
        let (running, _) = store.turn("running").expect("read").expect("there");
        assert_eq!(
            running.outcome, None,
            "the second must not take the first one's turns for lost"
        );

        store.close();
        let second = Store::open(folder.path()).expect("the first was closed");
        drop(store);
        assert!(matches!(refused(&folder), OpenError::Locked(_)), "the second still has it");
        drop(second);
        Store::open(folder.path()).expect("the second is gone");
    }

    /// Set for the child of the test below: the folder to hold, and how.
    const HOLD: &str = "WEIR_TEST_HOLD";
    const HOLD_HOW: &str = "WEIR_TEST_HOLD_HOW";

    #[test]
    fn a_database_that_another_program_holds_is_refused() {
        if let (Some(folder), Ok(how)) = (env::var_os(HOLD), env::var(HOLD_HOW)) {
            let db = Connection::open(Path::new(&folder).join(NAME)).expect("opened");
            db.execute_batch(&how).expect("held");
            io::stdout().write_all(b"\nheld\n").expect("the parent listens");
            let _ = io::stdin().read(&mut [0]);
            return;
        }
        for how in ["BEGIN EXCLUSIVE", "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE"] {
            let folder = folder();
            drop(written(&folder));
            let mut child = this_test("a_database_that_another_program_holds_is_refused")
                .env(HOLD, folder.path())
                .env(HOLD_HOW, how)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a child");
            let mut said = BufReader::new(child.stdout.take().expect("piped")).lines();
            assert!(said.by_ref().map_while(Result::ok).any(|line| line == "held"));
            let error = refused(&folder);
            assert!(
                matches!(&error, OpenError::Locked(path) if *path == file(&folder)),
                "{error:?}"
            );

            drop(child.stdin.take());
            assert!(child.wait().expect("the child ended").success());
            let store = Store::open(folder.path()).expect("nobody holds it");
            assert_eq!(store.modes().expect("read").len(), 1);
        }
    }

    #[cfg(unix)]
    #[test]
    fn folder_and_files_are_the_users_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder();
        let inner = folder.path().join("weir");
        let store = Store::open(&inner).expect("opened");
        store.set_setting("a", "b").expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&inner), 0o700);
        for name in ["weir.db", "weir.db-wal", "weir.db-shm", "weir.lock"] {
            assert_eq!(mode(&inner.join(name)), 0o600, "{name}");
        }
    }

    /// Set for the child of the test below: the folder in which it must die.
    const DIE_IN: &str = "WEIR_TEST_DIE_IN";

    #[test]
    fn a_crash_loses_nothing_that_was_flushed_and_ends_what_ran() {
        if let Some(folder) = env::var_os(DIE_IN) {
            let store = Store::open(Path::new(&folder)).expect("opened");
            store.set_mode("m", ServingMode::Full).expect("written");
            store.record(Fact::Turn(started("ran", NOW)));
            store.record(Fact::Turn(started("ended", NOW - 1)));
            (0..1_000).for_each(|place| store.record(emitted("ran", place, "call")));
            store.record(Fact::Turn(ended("ended", NOW - 1)));
            store.flush();
            std::process::abort();
        }
        let folder = folder();
        let died = this_test("a_crash_loses_nothing_that_was_flushed_and_ends_what_ran")
            .env(DIE_IN, folder.path())
            .output()
            .expect("the child ran");
        assert!(!died.status.success());
        let log = fs::metadata(folder.path().join("weir.db-wal")).expect("it died with its log");
        assert!(log.len() > 0);

        let store = open(folder.path(), NOW, schema::VERSIONS).expect("opened");
        let lost = TurnRow { outcome: Some("lost".to_owned()), ..started("ran", NOW) };
        assert_eq!(store.turns(10).expect("read"), [lost, ended("ended", NOW - 1)]);
        assert_eq!(store.turn("ran").expect("read").expect("there").1.len(), 1_000);
        assert_eq!(store.modes().expect("read")["m"], ServingMode::Full);
    }

    fn fixture(version: u32) -> PathBuf {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
        tests.join(format!("fixtures/db/v{version}.db"))
    }

    /// What every fixture holds, whatever version wrote it.
    fn fill(store: &Store) -> Result<(), StoreError> {
        store.set_mode("practice-lite", ServingMode::Full)?;
        store.set_setting("port", "8788")?;
        store.record(Fact::Turn(ended("turn_a", NOW - 1_000)));
        store.record(Fact::Turn(started("turn_b", NOW)));
        (0..3).for_each(|place| store.record(emitted("turn_a", place, &format!("call_{place}"))));
        store.record(booked("talk", "call_0", "turn_b"));
        store.record(booked("talk", "call_1", "turn_b"));
        store.flush();
        Ok(())
    }

    /// Writes the fixture of the current version when `WEIR_WRITE_FIXTURES` is set, which is right once per version: on
    /// the day it is released.
    #[test]
    fn a_fixture_is_written_when_asked_for() {
        if env::var_os("WEIR_WRITE_FIXTURES").is_none() {
            return;
        }
        let folder = folder();
        fill(&open(folder.path(), NOW, schema::VERSIONS).expect("opened")).expect("filled");
        fs::copy(file(&folder), fixture(schema::known(schema::VERSIONS))).expect("copied");
    }

    /// A turn as a fixture of that version can tell it.
    fn as_of(version: u32, turn: TurnRow) -> TurnRow {
        match version {
            1 => TurnRow {
                transport: "sse".to_owned(),
                socket: None,
                input_items: None,
                new_items: None,
                whole_reason: None,
                ..turn
            },
            _ => turn,
        }
    }

    #[test]
    fn the_database_of_every_version_is_opened() {
        for version in 1..=schema::known(schema::VERSIONS) {
            let folder = folder();
            fs::copy(fixture(version), file(&folder)).expect("a fixture of every version");
            let store = open(folder.path(), NOW, schema::VERSIONS).expect("opened");
            assert_eq!(store.modes().expect("read")["practice-lite"], ServingMode::Full);
            assert_eq!(store.setting("port").expect("read").as_deref(), Some("8788"));
            let lost = TurnRow { outcome: Some("lost".to_owned()), ..started("turn_b", NOW) };
            let whole = as_of(version, ended("turn_a", NOW - 1_000));
            assert_eq!(store.turns(10).expect("read"), [lost, whole]);
            let (_, calls) = store.turn("turn_a").expect("read").expect("there");
            let places: Vec<_> = calls.iter().map(|call| call.booked_position).collect();
            assert_eq!(places, [Some(0), Some(1), None]);
            let usage = store.usage_by_day(10).expect("read");
            assert_eq!(usage.iter().map(|used| used.turns).sum::<u32>(), 2);
        }
    }
}
