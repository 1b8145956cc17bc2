//! How a turn went out, as the database tells it, against what the backend saw.
//!
//! **Invariant**: only the last request counts, since a row tells of that one.

use super::asked;
use super::said::Said;
use crate::fault::Road;
use crate::transcript::{ClientEnd, Row, Rows, TurnSaw};

pub(super) fn check(
    turn: &TurnSaw,
    road: Road,
    rows: &Rows,
    note: &mut impl FnMut(&'static str, String),
) {
    let Some(row) = rows.turns.iter().find(|row| row.mark == turn.mark) else { return };
    let Some(last) = turn.attempts.last() else { return };
    // A client that left may have done so while another way was being taken.
    if turn.client.end == ClientEnd::Left {
        return;
    }
    // A request that ran into a connection which was just being reset leaves no trace at the backend; the way there is that
    // an earlier one was told to go elsewhere.
    let continued = asked::body(last)["previous_response_id"].is_string();
    if row.error_code.as_deref() == Some("connection_lost") && Said::of(last).undone(continued) {
        return;
    }
    let kept = told(row);
    let line = last.line.as_ref();
    let place = line.map(|line| if line.place == 0 { "new" } else { "reused" });
    let body = asked::body(last);
    let continues = body["previous_response_id"].is_string();
    let sent = body["input"].as_array().map_or(0, Vec::len);
    let all = asked::items(last).len();
    let seen = (
        if line.is_some() { "ws" } else { "sse" },
        place,
        Some(all as i64),
        continues.then_some(sent as i64),
    );
    // What continues an unknown response is judged elsewhere, and its items cannot be counted.
    if kept != seen && (!continues || line.is_some_and(|line| line.known.is_some())) {
        note(
            "road",
            format!("{kept:?} in the row ({:?}), {seen:?} at the backend", row.error_code),
        );
    }
    let reason = row.whole_reason.as_deref().unwrap_or_default();
    if reason.is_empty() != continues {
        note("road", format!("the reason for sending everything is {reason:?}"));
    }
    if road != Road::Open && line.is_some() {
        note("road", "a WebSocket that was refused".into());
    }
    let bytes: usize = turn.attempts.iter().map(|attempt| attempt.body.len()).sum();
    if row.upstream_bytes < bytes as i64 {
        note("road", format!("{} bytes in the row, {bytes} at the backend", row.upstream_bytes));
    }
}

type Told<'a> = (&'a str, Option<&'a str>, Option<i64>, Option<i64>);

fn told(row: &Row) -> Told<'_> {
    (&row.transport, row.socket.as_deref(), row.input_items, row.new_items)
}
