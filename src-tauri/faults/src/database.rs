//! Reads what the program wrote down.
//!
//! **Invariant**: read after the program has ended, and never changed, unless a sabotage is asked for.

use std::path::Path;

use rusqlite::{Connection, Result};

use crate::transcript::{Row, Rows};

pub fn read(path: &Path) -> Result<Rows> {
    let db = Connection::open(path)?;
    let turns = db
        .prepare("SELECT * FROM turns ORDER BY id")?
        .query_map([], |row| {
            Ok(Row {
                id: row.get("id")?,
                conversation: row.get("conversation")?,
                mark: row.get::<_, Option<String>>("parent")?.unwrap_or_default(),
                account: row.get("account")?,
                reason: row.get("account_reason")?,
                moves: row.get("moves")?,
                transport: row.get("transport")?,
                socket: row.get("socket")?,
                input_items: row.get("input_items")?,
                new_items: row.get("new_items")?,
                whole_reason: row.get("whole_reason")?,
                outcome: row.get("outcome")?,
                error_code: row.get("error_code")?,
                error_message: row.get("error_message")?,
                upstream_bytes: row.get("upstream_bytes")?,
                input_tokens: row.get("input_tokens")?,
                cached_tokens: row.get("cached_tokens")?,
                output_tokens: row.get("output_tokens")?,
                reasoning_tokens: row.get("reasoning_tokens")?,
            })
        })?
        .collect::<Result<_>>()?;
    let triples = |sql: &str| -> Result<Vec<(String, i64, String)>> {
        db.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
    };
    Ok(Rows {
        turns,
        emitted: triples("SELECT turn, place, call_id FROM emitted ORDER BY seq")?,
        booked: triples(
            "SELECT b.by_turn, b.position, e.call_id FROM booked AS b JOIN emitted AS e ON e.seq = b.emitted ORDER BY b.seq",
        )?,
    })
}

/// Does what a broken store would have done.
pub fn spoil(path: &Path, sql: &str) -> Result<()> {
    Connection::open(path)?.execute_batch(sql)
}
