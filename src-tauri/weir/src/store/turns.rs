//! Turns, one row each.
//!
//! The local day is fixed when a row is written: the sums of a day must not change because the user travelled.
//!
//! **Invariant**: a turn that has an outcome keeps one; no late news of its start makes it run again.

use rusqlite::{Connection, Result, Row, named_params};

use super::facts::TurnRow;
use super::words;

pub(super) const V1: &str = "
CREATE TABLE turns (
    id               TEXT PRIMARY KEY NOT NULL,
    day              TEXT NOT NULL,
    started_at       INTEGER NOT NULL,
    conversation     TEXT NOT NULL,
    parent           TEXT,
    client           TEXT NOT NULL,
    model            TEXT NOT NULL,
    mode             TEXT NOT NULL,
    dialect          TEXT NOT NULL,
    mode_reason      TEXT NOT NULL,
    account          TEXT,
    account_reason   TEXT,
    moves            INTEGER NOT NULL,
    transport        TEXT NOT NULL,
    accepted_ms      INTEGER,
    first_event_ms   INTEGER,
    committed_ms     INTEGER,
    ended_ms         INTEGER,
    request_bytes    INTEGER NOT NULL,
    upstream_bytes   INTEGER NOT NULL,
    input_tokens     INTEGER,
    cached_tokens    INTEGER,
    output_tokens    INTEGER,
    reasoning_tokens INTEGER,
    outcome          TEXT,
    error_code       TEXT,
    error_message    TEXT
) STRICT;
CREATE INDEX turns_by_start ON turns (started_at);
CREATE INDEX turns_by_day ON turns (day, model);
";

/// How a turn's input travelled.
pub(super) const V2: &str = "
ALTER TABLE turns ADD COLUMN socket TEXT;
ALTER TABLE turns ADD COLUMN input_items INTEGER;
ALTER TABLE turns ADD COLUMN new_items INTEGER;
ALTER TABLE turns ADD COLUMN whole_reason TEXT;
";

const PUT: &str = "
INSERT INTO turns (
    id, day, started_at, conversation, parent, client, model, mode, dialect, mode_reason, account, account_reason, moves,
    transport, socket, input_items, new_items, whole_reason, accepted_ms, first_event_ms, committed_ms, ended_ms,
    request_bytes, upstream_bytes, input_tokens, cached_tokens, output_tokens, reasoning_tokens, outcome, error_code, error_message)
VALUES (
    :id, date(:started_at / 1000, 'unixepoch', 'localtime'), :started_at, :conversation, :parent, :client, :model, :mode,
    :dialect, :mode_reason, :account, :account_reason, :moves, :transport, :socket, :input_items, :new_items,
    :whole_reason, :accepted_ms, :first_event_ms, :committed_ms, :ended_ms, :request_bytes, :upstream_bytes, :input_tokens, :cached_tokens, :output_tokens, :reasoning_tokens,
    :outcome, :error_code, :error_message)
ON CONFLICT (id) DO UPDATE SET
    day = excluded.day, started_at = excluded.started_at, conversation = excluded.conversation, parent = excluded.parent,
    client = excluded.client, model = excluded.model, mode = excluded.mode, dialect = excluded.dialect,
    mode_reason = excluded.mode_reason, account = excluded.account, account_reason = excluded.account_reason,
    moves = excluded.moves, transport = excluded.transport, socket = excluded.socket,
    input_items = excluded.input_items, new_items = excluded.new_items, whole_reason = excluded.whole_reason,
    accepted_ms = excluded.accepted_ms,
    first_event_ms = excluded.first_event_ms, committed_ms = excluded.committed_ms, ended_ms = excluded.ended_ms,
    request_bytes = excluded.request_bytes, upstream_bytes = excluded.upstream_bytes,
    input_tokens = excluded.input_tokens, cached_tokens = excluded.cached_tokens,
    output_tokens = excluded.output_tokens, reasoning_tokens = excluded.reasoning_tokens,
    outcome = excluded.outcome, error_code = excluded.error_code, error_message = excluded.error_message
WHERE excluded.outcome IS NOT NULL OR turns.outcome IS NULL
";

/// Inserts a turn, or replaces what was known of it.
pub(super) fn put(db: &Connection, turn: &TurnRow) -> Result<()> {
    db.prepare_cached(PUT)?.execute(named_params! {
        ":id": turn.id,
        ":started_at": turn.started_at,
        ":conversation": turn.conversation,
        ":parent": turn.parent,
        ":client": turn.client,
        ":model": turn.model,
        ":mode": words::of_mode(turn.mode),
        ":dialect": words::of_dialect(turn.dialect),
        ":mode_reason": turn.mode_reason,
        ":account": turn.account,
        ":account_reason": turn.account_reason,
        ":moves": turn.moves,
        ":transport": turn.transport,
        ":socket": turn.socket,
        ":input_items": turn.input_items,
        ":new_items": turn.new_items,
        ":whole_reason": turn.whole_reason,
        ":accepted_ms": turn.accepted_ms,
        ":first_event_ms": turn.first_event_ms,
        ":committed_ms": turn.committed_ms,
        ":ended_ms": turn.ended_ms,
        ":request_bytes": turn.request_bytes,
        ":upstream_bytes": turn.upstream_bytes,
        ":input_tokens": turn.input_tokens,
        ":cached_tokens": turn.cached_tokens,
        ":output_tokens": turn.output_tokens,
        ":reasoning_tokens": turn.reasoning_tokens,
        ":outcome": turn.outcome,
        ":error_code": turn.error_code,
        ":error_message": turn.error_message,
    })?;
    Ok(())
}

/// Gives every turn without an outcome the outcome "lost", and says how many there were. Only right while no program
/// runs turns on this database.
pub(super) fn close_lost(db: &Connection) -> Result<usize> {
    db.execute("UPDATE turns SET outcome = 'lost' WHERE outcome IS NULL", [])
}

pub(super) fn newest(db: &Connection, limit: usize) -> Result<Vec<TurnRow>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    db.prepare_cached("SELECT * FROM turns ORDER BY started_at DESC, rowid DESC LIMIT ?1")?
        .query_map([limit], read)?
        .collect()
}

/// The turn of that id, else up to two of those whose ids begin with it: two are enough to know that it is ambiguous.
pub(super) fn by_prefix(db: &Connection, prefix: &str) -> Result<Vec<TurnRow>> {
    // Ids that share a beginning are neighbours in the index, and no character sorts after the last of Unicode.
    let mut found: Vec<TurnRow> = db
        .prepare_cached(
            "SELECT * FROM turns WHERE id >= ?1 AND id <= ?1 || ?2 ORDER BY id LIMIT 2",
        )?
        .query_map([prefix, "\u{10ffff}"], read)?
        .collect::<Result<_>>()?;
    if found.first().is_some_and(|turn| turn.id == prefix) {
        found.truncate(1);
    }
    Ok(found)
}

fn read(row: &Row<'_>) -> Result<TurnRow> {
    Ok(TurnRow {
        id: row.get("id")?,
        started_at: row.get("started_at")?,
        conversation: row.get("conversation")?,
        parent: row.get("parent")?,
        client: row.get("client")?,
        model: row.get("model")?,
        mode: words::mode(row, "mode")?,
        dialect: words::dialect(row, "dialect")?,
        mode_reason: row.get("mode_reason")?,
        account: row.get("account")?,
        account_reason: row.get("account_reason")?,
        moves: row.get("moves")?,
        transport: row.get("transport")?,
        socket: row.get("socket")?,
        input_items: row.get("input_items")?,
        new_items: row.get("new_items")?,
        whole_reason: row.get("whole_reason")?,
        accepted_ms: row.get("accepted_ms")?,
        first_event_ms: row.get("first_event_ms")?,
        committed_ms: row.get("committed_ms")?,
        ended_ms: row.get("ended_ms")?,
        request_bytes: row.get("request_bytes")?,
        upstream_bytes: row.get("upstream_bytes")?,
        input_tokens: row.get("input_tokens")?,
        cached_tokens: row.get("cached_tokens")?,
        output_tokens: row.get("output_tokens")?,
        reasoning_tokens: row.get("reasoning_tokens")?,
        outcome: row.get("outcome")?,
        error_code: row.get("error_code")?,
        error_message: row.get("error_message")?,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use weir_core::dialect::mode::{Dialect, ServingMode};

    use super::*;
    use crate::store::{Fact, Store, StoreError};

    /// A turn that has just started.
    pub(in crate::store) fn started(id: &str, started_at: i64) -> TurnRow {
        TurnRow {
            conversation: "talk".to_owned(),
            client: "opencode".to_owned(),
            model: "practice-lite".to_owned(),
            dialect: Dialect::Lite,
            mode_reason: "the catalog says Lite".to_owned(),
            request_bytes: 1200,
            upstream_bytes: 1300,
            ..TurnRow::begun(id.to_owned(), started_at)
        }
    }

    /// The same turn, ended well, with a different value in every column that may change.
    pub(in crate::store) fn ended(id: &str, started_at: i64) -> TurnRow {
        TurnRow {
            parent: Some("parent talk".to_owned()),
            mode: ServingMode::Full,
            dialect: Dialect::Full,
            account: Some("alice".to_owned()),
            account_reason: Some("most headroom".to_owned()),
            moves: 1,
            transport: "ws".to_owned(),
            socket: Some("reused".to_owned()),
            input_items: Some(24),
            new_items: Some(3),
            whole_reason: Some("a reason".to_owned()),
            accepted_ms: Some(11),
            first_event_ms: Some(12),
            committed_ms: Some(13),
            ended_ms: Some(14),
            input_tokens: Some(100),
            cached_tokens: Some(60),
            output_tokens: Some(20),
            reasoning_tokens: Some(5),
            outcome: Some("completed".to_owned()),
            error_code: Some("a code".to_owned()),
            error_message: Some("a sentence".to_owned()),
            ..started(id, started_at)
        }
    }

    fn store_of(turns: impl IntoIterator<Item = TurnRow>) -> Store {
        let store = Store::in_memory();
        turns.into_iter().for_each(|turn| store.record(Fact::Turn(turn)));
        store.flush();
        store
    }

    #[test]
    fn every_column_is_read_as_it_was_written_and_the_end_wins() {
        let store = store_of([started("t1", 1_000), started("t2", 2_000), ended("t1", 1_000)]);
        let expected = vec![started("t2", 2_000), ended("t1", 1_000)];
        assert_eq!(store.turns(10).expect("read"), expected);
    }

    #[test]
    fn the_end_wins_even_when_the_start_comes_after_it() {
        let store = store_of([ended("t1", 1_000), started("t1", 1_000)]);
        assert_eq!(store.turns(10).expect("read"), [ended("t1", 1_000)]);
    }

    #[test]
    fn newest_come_first_and_equals_in_the_order_recorded() {
        let store = store_of([started("b", 2), started("a", 3), started("c", 3), started("d", 1)]);
        let ids: Vec<_> = store.turns(3).expect("read").into_iter().map(|turn| turn.id).collect();
        assert_eq!(ids, ["c", "a", "b"]);
        assert_eq!(store.turns(usize::MAX).expect("read").len(), 4);
    }

    #[test]
    fn a_unique_beginning_of_an_id_is_enough() {
        let store = store_of(["turn_ab", "turn_abc", "turn_b%", "Turn_x"].map(|id| started(id, 1)));
        let find = |prefix: &str| match store.turn(prefix) {
            Ok(found) => found.map(|(turn, _)| turn.id),
            Err(StoreError::Ambiguous(prefix)) => Some(format!("ambiguous {prefix}")),
            Err(error) => panic!("{error}"),
        };
        let expect = |prefix: &str, id: &str| assert_eq!(find(prefix).as_deref(), Some(id));
        expect("turn_ab", "turn_ab");
        expect("turn_abc", "turn_abc");
        expect("turn_b", "turn_b%");
        expect("T", "Turn_x");
        expect("turn_a", "ambiguous turn_a");
        expect("", "ambiguous ");
        assert_eq!(find("turn_c"), None);
        assert_eq!(find("%"), None);
    }
}
