//! What was used since local midnight.
//!
//! **Invariant**: the day is the one that the rows were written under.

use rusqlite::{Connection, Result};

use super::rollup::{DayUsage, of_day};

pub(super) fn usage(db: &Connection) -> Result<Vec<DayUsage>> {
    let today: String = db.query_row("SELECT date('now', 'localtime')", [], |row| row.get(0))?;
    of_day(db, &today)
}
