//! The serving modes that the user chose, one row per model.
//!
//! **Invariant**: auto is the absence of a row, so a model that Weir has never seen and one that was reset are the same.

use std::collections::BTreeMap;

use rusqlite::{Connection, Result, params};
use weir_core::dialect::mode::ServingMode;

use super::words;

pub(super) const V1: &str = "
CREATE TABLE modes (
    model TEXT PRIMARY KEY NOT NULL,
    mode  TEXT NOT NULL CHECK (mode IN ('lite', 'full'))
) STRICT, WITHOUT ROWID;
";

pub(super) fn all(db: &Connection) -> Result<BTreeMap<String, ServingMode>> {
    db.prepare_cached("SELECT model, mode FROM modes")?
        .query_map([], |row| Ok((row.get("model")?, words::mode(row, "mode")?)))?
        .collect()
}

pub(super) fn set(db: &Connection, model: &str, mode: ServingMode) -> Result<()> {
    match mode {
        ServingMode::Auto => db.execute("DELETE FROM modes WHERE model = ?1", [model])?,
        ServingMode::Lite | ServingMode::Full => db.execute(
            "INSERT INTO modes (model, mode) VALUES (?1, ?2)
             ON CONFLICT (model) DO UPDATE SET mode = excluded.mode",
            params![model, words::of_mode(mode)],
        )?,
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn only_a_choice_has_a_row() {
        let store = Store::in_memory();
        store.set_mode("a", ServingMode::Lite).expect("written");
        store.set_mode("b", ServingMode::Lite).expect("written");
        store.set_mode("c", ServingMode::Auto).expect("written");
        store.set_mode("b", ServingMode::Full).expect("written");
        store.set_mode("a", ServingMode::Auto).expect("written");
        let expected = BTreeMap::from([("b".to_owned(), ServingMode::Full)]);
        assert_eq!(store.modes().expect("read"), expected);
    }

    #[test]
    fn a_restart_keeps_modes() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).expect("opened");
        store.set_mode("gpt-5.5", ServingMode::Full).expect("written");
        drop(store);
        let store = Store::open(folder.path()).expect("opened again");
        let expected = BTreeMap::from([("gpt-5.5".to_owned(), ServingMode::Full)]);
        assert_eq!(store.modes().expect("read"), expected);
    }
}
