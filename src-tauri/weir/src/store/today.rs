//! What was used since local midnight.
//!
//! **Invariant**: the day is the one that the rows were written under.

use rusqlite::{Connection, Result};

use super::rollup::{DayUsage, by_day};

pub(super) fn usage(db: &Connection) -> Result<Vec<DayUsage>> {
    let today: String = db.query_row("SELECT date('now', 'localtime')", [], |row| row.get(0))?;
    let newest = by_day(db, 1)?;
    Ok(newest.into_iter().filter(|usage| usage.day == today).collect())
}
