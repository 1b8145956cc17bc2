//! The journal of calls: one row for each call that a model emitted, one for each that was booked.
//!
//! Rows are only ever appended; a call is the join of the two. That keeps the order in which things happened even when the
//! program dies between them.
//!
//! **Invariant**: a call is booked at most once, and the bookings of a turn are numbered without a gap in the order they
//! came.

use rusqlite::{Connection, Result, named_params, params};

use super::facts::CallRow;

/// `seq` is the order in which rows were appended.
pub(super) const V1: &str = "
CREATE TABLE emitted (
    seq     INTEGER PRIMARY KEY,
    turn    TEXT NOT NULL,
    place   INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    tool    TEXT NOT NULL,
    kind    TEXT NOT NULL,
    at      INTEGER NOT NULL,
    UNIQUE (turn, place)
) STRICT;
CREATE INDEX emitted_by_call ON emitted (call_id);
CREATE TABLE booked (
    seq      INTEGER PRIMARY KEY,
    emitted  INTEGER NOT NULL UNIQUE,
    turn     TEXT NOT NULL,
    position INTEGER NOT NULL,
    by_turn  TEXT NOT NULL,
    at       INTEGER NOT NULL,
    UNIQUE (turn, position)
) STRICT;
";

pub(super) fn emit(
    db: &Connection,
    turn: &str,
    index: u32,
    call_id: &str,
    tool: &str,
    kind: &str,
    at: i64,
) -> Result<()> {
    let added = db
        .prepare_cached(
            "INSERT INTO emitted (turn, place, call_id, tool, kind, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (turn, place) DO NOTHING",
        )?
        .execute(params![turn, index, call_id, tool, kind, at])?;
    if added == 0 {
        tracing::warn!(turn, index, "a call was emitted twice at the same place; the first stays");
    }
    Ok(())
}

/// Books the call that was emitted last under this id in this conversation, unless it is booked or there is none.
pub(super) fn book(
    db: &Connection,
    conversation: &str,
    call_id: &str,
    at: i64,
    by_turn: &str,
) -> Result<()> {
    db.prepare_cached(
        "INSERT INTO booked (emitted, turn, position, by_turn, at)
         SELECT e.seq, e.turn, (SELECT count(*) FROM booked AS b WHERE b.turn = e.turn), :by_turn, :at
         FROM emitted AS e JOIN turns AS t ON t.id = e.turn
         WHERE e.call_id = :call_id AND t.conversation = :conversation
         ORDER BY e.seq DESC LIMIT 1
         ON CONFLICT (emitted) DO NOTHING",
    )?
    .execute(named_params! {
        ":conversation": conversation,
        ":call_id": call_id,
        ":at": at,
        ":by_turn": by_turn,
    })?;
    Ok(())
}

/// The calls of a turn in emitted order.
pub(super) fn calls(db: &Connection, turn: &str) -> Result<Vec<CallRow>> {
    db.prepare_cached(
        "SELECT e.place, e.call_id, e.tool, e.kind, e.at AS emitted_at, b.at AS booked_at, b.position, b.by_turn
         FROM emitted AS e LEFT JOIN booked AS b ON b.emitted = e.seq
         WHERE e.turn = ?1 ORDER BY e.place",
    )?
    .query_map([turn], |row| {
        Ok(CallRow {
            index: row.get("place")?,
            call_id: row.get("call_id")?,
            tool: row.get("tool")?,
            kind: row.get("kind")?,
            emitted_at: row.get("emitted_at")?,
            booked_at: row.get("booked_at")?,
            booked_position: row.get("position")?,
            booked_by: row.get("by_turn")?,
        })
    })?
    .collect()
}

/// Removes the rows whose turn is no more.
pub(super) fn forget_orphans(db: &Connection) -> Result<()> {
    db.execute("DELETE FROM booked WHERE turn NOT IN (SELECT id FROM turns)", [])?;
    db.execute("DELETE FROM emitted WHERE turn NOT IN (SELECT id FROM turns)", [])?;
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::store::turns::tests::started;
    use crate::store::{Fact, Store, TurnRow};

    pub(in crate::store) fn emitted(turn: &str, index: u32, call_id: &str) -> Fact {
        Fact::Emitted {
            turn: turn.to_owned(),
            index,
            call_id: call_id.to_owned(),
            tool: "task".to_owned(),
            kind: "function_call".to_owned(),
            at: 100 + i64::from(index),
        }
    }

    pub(in crate::store) fn booked(conversation: &str, call_id: &str, by_turn: &str) -> Fact {
        Fact::Booked {
            conversation: conversation.to_owned(),
            call_id: call_id.to_owned(),
            at: 200,
            by_turn: by_turn.to_owned(),
        }
    }

    fn store_of(facts: impl IntoIterator<Item = Fact>) -> Store {
        let store = Store::in_memory();
        facts.into_iter().for_each(|fact| store.record(fact));
        store.flush();
        store
    }

    /// `index call_id position by_turn` of each call of a turn.
    fn orders(store: &Store, turn: &str) -> Vec<String> {
        let (_, calls) = store.turn(turn).expect("read").expect("the turn is there");
        let show = |call: CallRow| match (call.booked_position, call.booked_by) {
            (Some(position), Some(by)) => {
                format!("{} {} {position} {by}", call.index, call.call_id)
            }
            _ => format!("{} {} -", call.index, call.call_id),
        };
        calls.into_iter().map(show).collect()
    }

    fn turn(id: &str) -> Fact {
        Fact::Turn(started(id, 1))
    }

    #[test]
    fn a_call_is_read_with_both_its_rows() {
        let store = store_of([turn("t1"), emitted("t1", 0, "a"), booked("talk", "a", "t2")]);
        let expected = CallRow {
            index: 0,
            call_id: "a".to_owned(),
            tool: "task".to_owned(),
            kind: "function_call".to_owned(),
            emitted_at: 100,
            booked_at: Some(200),
            booked_position: Some(0),
            booked_by: Some("t2".to_owned()),
        };
        assert_eq!(store.turn("t1").expect("read").expect("there").1, [expected]);
    }

    #[test]
    fn bookings_are_numbered_in_the_order_they_came() {
        let store = store_of([
            turn("t1"),
            emitted("t1", 0, "a"),
            emitted("t1", 1, "b"),
            emitted("t1", 2, "c"),
            booked("talk", "b", "t2"),
            booked("talk", "a", "t2"),
        ]);
        assert_eq!(orders(&store, "t1"), ["0 a 1 t2", "1 b 0 t2", "2 c -"]);
    }

    #[test]
    fn a_call_is_booked_once_however_often_the_history_is_sent() {
        let store = store_of([
            turn("t1"),
            emitted("t1", 0, "a"),
            emitted("t1", 1, "b"),
            booked("talk", "a", "t2"),
            turn("t2"),
            emitted("t2", 0, "c"),
            booked("talk", "a", "t3"),
            booked("talk", "b", "t3"),
            booked("talk", "c", "t3"),
        ]);
        assert_eq!(orders(&store, "t1"), ["0 a 0 t2", "1 b 1 t3"]);
        assert_eq!(orders(&store, "t2"), ["0 c 0 t3"]);
    }

    #[test]
    fn what_nobody_emitted_here_is_not_booked() {
        let elsewhere = TurnRow { conversation: "other".to_owned(), ..started("t9", 1) };
        let store = store_of([
            turn("t1"),
            emitted("t1", 0, "a"),
            Fact::Turn(elsewhere),
            emitted("t9", 0, "z"),
            booked("talk", "unknown", "t2"),
            booked("talk", "z", "t2"),
            booked("other", "a", "t2"),
        ]);
        assert_eq!(orders(&store, "t1"), ["0 a -"]);
        assert_eq!(orders(&store, "t9"), ["0 z -"]);
    }

    #[test]
    fn of_two_calls_with_one_id_the_later_is_meant() {
        let store = store_of([
            turn("t1"),
            emitted("t1", 0, "a"),
            turn("t2"),
            emitted("t2", 0, "a"),
            booked("talk", "a", "t3"),
            booked("talk", "a", "t4"),
        ]);
        assert_eq!(orders(&store, "t1"), ["0 a -"]);
        assert_eq!(orders(&store, "t2"), ["0 a 0 t3"]);
    }

    #[test]
    fn the_first_call_at_a_place_stays() {
        let store = store_of([turn("t1"), emitted("t1", 0, "a"), emitted("t1", 0, "b")]);
        assert_eq!(orders(&store, "t1"), ["0 a -"]);
    }
}
