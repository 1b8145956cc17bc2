//! Sums of a day, which outlive the turns they were made of.
//!
//! A turn is kept for as long as the user wants; then its whole day is added up per model and its rows go. Days are the
//! user's own, not UTC's.
//!
//! **Invariant**: what was used on a day reads the same before and after its turns are forgotten.

use rusqlite::{Connection, Result, params};
use serde::{Deserialize, Serialize};

use super::journal;

pub(super) const V1: &str = "
CREATE TABLE usage_day (
    day              TEXT NOT NULL,
    model            TEXT NOT NULL,
    turns            INTEGER NOT NULL,
    reported         INTEGER NOT NULL,
    input_tokens     INTEGER,
    cached_tokens    INTEGER,
    output_tokens    INTEGER,
    reasoning_tokens INTEGER,
    PRIMARY KEY (day, model)
) STRICT, WITHOUT ROWID;
";

/// What one model used on one local day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct DayUsage {
    /// `2026-08-17`.
    pub day: String,
    pub model: String,
    pub turns: u32,
    /// How many of the turns said what they used. The sums are of these; they are None when there were none.
    pub reported: u32,
    pub input_tokens: Option<i64>,
    /// The part of `input_tokens` that the backend had cached.
    pub cached_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    /// The part of `output_tokens` that was reasoning.
    pub reasoning_tokens: Option<i64>,
}

/// Adds up and forgets the turns of all days that ended more than `days` days before `now` (Unix milliseconds), in one
/// transaction, and says how many there were.
pub(super) fn forget(db: &mut Connection, days: u32, now: i64) -> Result<usize> {
    let tx = db.transaction()?;
    let before: Option<String> = tx.query_one(
        "SELECT date(?1 / 1000, 'unixepoch', 'localtime', '-' || ?2 || ' days')",
        params![now, days],
        |row| row.get(0),
    )?;
    // So many days ago there was no calendar: everything is kept.
    let Some(before) = before else { return Ok(0) };
    tx.execute(
        "INSERT INTO usage_day (day, model, turns, reported, input_tokens, cached_tokens, output_tokens, reasoning_tokens)
         SELECT day, model, count(*), count(coalesce(input_tokens, output_tokens)), sum(input_tokens), sum(cached_tokens),
                sum(output_tokens), sum(reasoning_tokens)
         FROM turns WHERE day < ?1 GROUP BY day, model
         ON CONFLICT (day, model) DO UPDATE SET
             turns = turns + excluded.turns,
             reported = reported + excluded.reported,
             input_tokens = coalesce(input_tokens + excluded.input_tokens, input_tokens, excluded.input_tokens),
             cached_tokens = coalesce(cached_tokens + excluded.cached_tokens, cached_tokens, excluded.cached_tokens),
             output_tokens = coalesce(output_tokens + excluded.output_tokens, output_tokens, excluded.output_tokens),
             reasoning_tokens =
                 coalesce(reasoning_tokens + excluded.reasoning_tokens, reasoning_tokens, excluded.reasoning_tokens)",
        [&before],
    )?;
    let forgotten = tx.execute("DELETE FROM turns WHERE day < ?1", [&before])?;
    journal::forget_orphans(&tx)?;
    tx.commit()?;
    Ok(forgotten)
}

/// Columns of one day's usage, from what is kept of old days and from the turns.
const USED: &str = "WITH used AS (
         SELECT day, model, turns, reported, input_tokens, cached_tokens, output_tokens, reasoning_tokens FROM usage_day
         UNION ALL
         SELECT day, model, 1, coalesce(input_tokens, output_tokens) IS NOT NULL, input_tokens, cached_tokens,
                output_tokens, reasoning_tokens FROM turns)
     SELECT day, model, sum(turns) AS turns, sum(reported) AS reported, sum(input_tokens) AS input_tokens,
            sum(cached_tokens) AS cached_tokens, sum(output_tokens) AS output_tokens,
            sum(reasoning_tokens) AS reasoning_tokens
     FROM used";

/// The usage of the newest `days` days that saw a turn, newest first, models by name.
pub(super) fn by_day(db: &Connection, days: usize) -> Result<Vec<DayUsage>> {
    let days = i64::try_from(days).unwrap_or(i64::MAX);
    let newest = "WHERE day IN (SELECT day FROM used GROUP BY day ORDER BY day DESC LIMIT ?1)";
    db.prepare_cached(&format!("{USED} {newest} GROUP BY day, model ORDER BY day DESC, model"))?
        .query_map([days], read)?
        .collect()
}

/// The usage of one day, models by name.
pub(super) fn of_day(db: &Connection, day: &str) -> Result<Vec<DayUsage>> {
    db.prepare_cached(&format!("{USED} WHERE day = ?1 GROUP BY day, model ORDER BY model"))?
        .query_map([day], read)?
        .collect()
}

fn read(row: &rusqlite::Row<'_>) -> Result<DayUsage> {
    Ok(DayUsage {
        day: row.get("day")?,
        model: row.get("model")?,
        turns: row.get("turns")?,
        reported: row.get("reported")?,
        input_tokens: row.get("input_tokens")?,
        cached_tokens: row.get("cached_tokens")?,
        output_tokens: row.get("output_tokens")?,
        reasoning_tokens: row.get("reasoning_tokens")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::journal::tests::{booked, emitted};
    use crate::store::turns::tests::{ended, started};
    use crate::store::{Fact, RETENTION_DAYS, Store, TurnRow, open, schema};

    const DAY: i64 = 86_400_000;
    /// A noon in UTC.
    const NOW: i64 = 1_787_054_400_000;

    fn open_at(folder: &tempfile::TempDir, now: i64) -> Store {
        open::open(folder.path(), now, schema::VERSIONS).expect("opened")
    }

    fn record(store: &Store, facts: impl IntoIterator<Item = Fact>) {
        facts.into_iter().for_each(|fact| store.record(fact));
        store.flush();
    }

    fn tokens(id: &str, at: i64, input: Option<i64>) -> Fact {
        let output = input.map(|input| input / 10);
        let of = |tokens: Option<i64>, part: i64| tokens.map(|tokens| tokens / part);
        Fact::Turn(TurnRow {
            input_tokens: input,
            cached_tokens: of(input, 2),
            output_tokens: output,
            reasoning_tokens: of(output, 2),
            ..ended(id, at)
        })
    }

    fn ids(store: &Store) -> Vec<String> {
        store.turns(100).expect("read").into_iter().map(|turn| turn.id).collect()
    }

    #[test]
    fn sums_are_of_the_turns_that_said_what_they_used() {
        let store = Store::in_memory();
        let other = TurnRow { model: "other".to_owned(), ..started("d", NOW) };
        let facts = [
            tokens("a", NOW, Some(100)),
            tokens("b", NOW, Some(300)),
            tokens("c", NOW, None),
            Fact::Turn(other),
            tokens("e", NOW - 2 * DAY, Some(0)),
        ];
        record(&store, facts);
        let usage = store.usage_by_day(10).expect("read");
        let show = |used: &DayUsage| {
            (used.turns, used.reported, used.input_tokens, used.cached_tokens, used.output_tokens)
        };
        let shown: Vec<_> = usage.iter().map(show).collect();
        assert_eq!(usage[0].model, "other");
        let expected = [
            (1, 0, None, None, None),
            (3, 2, Some(400), Some(200), Some(40)),
            (1, 1, Some(0), Some(0), Some(0)),
        ];
        assert_eq!(shown, expected);
        assert_eq!(store.usage_by_day(1).expect("read"), usage[..2]);
    }

    #[test]
    fn old_turns_go_with_their_calls_and_their_sums_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open_at(&folder, NOW);
        store.set_setting(RETENTION_DAYS, "30").expect("written");
        let facts = [
            tokens("old", NOW - 31 * DAY, Some(100)),
            tokens("silent", NOW - 31 * DAY, None),
            emitted("old", 0, "a"),
            booked("talk", "a", "old"),
            tokens("edge", NOW - 30 * DAY, Some(10)),
            emitted("edge", 0, "b"),
            booked("talk", "b", "new"),
            tokens("new", NOW, Some(1)),
        ];
        record(&store, facts);
        let before = store.usage_by_day(100).expect("read");
        drop(store);

        let store = open_at(&folder, NOW);
        assert_eq!(ids(&store), ["new", "edge"]);
        assert_eq!(store.usage_by_day(100).expect("read"), before);
        assert_eq!(before.len(), 3);
        let (_, calls) = store.turn("edge").expect("read").expect("there");
        assert_eq!(calls[0].booked_by.as_deref(), Some("new"));
        let rows = |table: &str| {
            let count = format!("SELECT count(*) FROM {table}");
            store.0.readers.with(|db| db.query_one(&count, [], |row| row.get::<_, i64>(0)))
        };
        assert_eq!(rows("emitted").expect("read"), 1);
        assert_eq!(rows("booked").expect("read"), 1);
    }

    #[test]
    fn a_day_that_is_added_to_keeps_what_it_had() {
        let folder = tempfile::tempdir().expect("a folder");
        let old = NOW - 200 * DAY;
        // Each round finds the day rolled up already: a sum and a sum, a sum and nothing, nothing and a sum.
        for (round, input) in [None, Some(5), None, Some(7)].into_iter().enumerate() {
            let store = open_at(&folder, NOW);
            record(&store, [tokens(&round.to_string(), old, input)]);
        }
        let store = open_at(&folder, NOW);
        assert_eq!(ids(&store), Vec::<String>::new());
        let usage = store.usage_by_day(1).expect("read");
        assert_eq!((usage[0].turns, usage[0].reported, usage[0].input_tokens), (4, 2, Some(12)));
    }

    #[test]
    fn a_retention_longer_than_the_calendar_keeps_everything() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open_at(&folder, NOW);
        store.set_setting(RETENTION_DAYS, &u32::MAX.to_string()).expect("written");
        record(&store, [tokens("old", 0, None)]);
        drop(store);
        assert_eq!(ids(&open_at(&folder, NOW)), ["old"]);
    }

    #[test]
    fn without_a_setting_ninety_days_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open_at(&folder, NOW);
        record(
            &store,
            [tokens("kept", NOW - 90 * DAY, None), tokens("gone", NOW - 91 * DAY, None)],
        );
        drop(store);
        assert_eq!(ids(&open_at(&folder, NOW)), ["kept"]);
    }
}
