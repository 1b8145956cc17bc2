//! Settings by name, as text.
//!
//! **Invariant**: a setting that was never set is absent; its default lives in the code that reads it.

use rusqlite::{Connection, OptionalExtension, Result};

pub(super) const V1: &str = "
CREATE TABLE settings (
    name  TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// The setting that says for how many days single turns are kept, a whole number from 1; without it 90. What they used
/// stays as sums of their days.
pub const RETENTION_DAYS: &str = "retention_days";

const DEFAULT_RETENTION_DAYS: u32 = 90;

pub(super) fn get(db: &Connection, name: &str) -> Result<Option<String>> {
    db.prepare_cached("SELECT value FROM settings WHERE name = ?1")?
        .query_one([name], |row| row.get(0))
        .optional()
}

pub(super) fn set(db: &Connection, name: &str, value: &str) -> Result<()> {
    db.execute(
        "INSERT INTO settings (name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [name, value],
    )?;
    Ok(())
}

/// What [`RETENTION_DAYS`] says. History is not thrown away on the word of a setting that makes no sense.
pub(super) fn retention_days(db: &Connection) -> Result<u32> {
    let Some(text) = get(db, RETENTION_DAYS)? else { return Ok(DEFAULT_RETENTION_DAYS) };
    Ok(match text.trim().parse() {
        Ok(days) if days >= 1 => days,
        _ => {
            tracing::warn!(
                "setting {RETENTION_DAYS} is not a number of days; using {DEFAULT_RETENTION_DAYS}"
            );
            DEFAULT_RETENTION_DAYS
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn a_setting_is_read_as_it_was_set() {
        let store = Store::in_memory();
        assert_eq!(store.setting("port").expect("read"), None);
        store.set_setting("port", "8788").expect("written");
        store.set_setting("port", "8789").expect("written");
        assert_eq!(store.setting("port").expect("read").as_deref(), Some("8789"));
    }

    #[test]
    fn a_retention_that_makes_no_sense_is_the_default() {
        let db = Connection::open_in_memory().expect("a database");
        db.execute_batch(V1).expect("a table");
        assert_eq!(retention_days(&db), Ok(90));
        for (text, days) in [("30", 30), (" 7 ", 7), ("0", 90), ("-1", 90), ("soon", 90), ("", 90)]
        {
            set(&db, RETENTION_DAYS, text).expect("written");
            assert_eq!(retention_days(&db), Ok(days), "{text:?}");
        }
    }
}
