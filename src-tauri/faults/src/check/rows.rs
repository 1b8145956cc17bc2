//! The database against what both ends saw.
//!
//! **Invariant**: every turn has one row, and nothing in it that neither end saw.

use std::collections::BTreeSet;

use serde_json::Value;

use super::said::{self, Role, Said};
use super::{http, sse, stream};
use crate::transcript::{ClientEnd, FaultSaw, Row, Rows, TurnSaw};

/// What clients take for a reason to send a turn again.
const SIGNS: [&str; 12] = [
    "429",
    "500",
    "502",
    "503",
    "504",
    "524",
    "rate limit",
    "server_error",
    "internal error",
    "overloaded",
    "try again later",
    "timeout",
];

/// `owed` are the outputs of earlier turns that nobody has booked.
pub(super) fn check(
    turn: &TurnSaw,
    said: &[Said],
    rows: &Rows,
    owed: &mut Vec<String>,
    note: &mut impl FnMut(&'static str, String),
) {
    let client = &turn.client;
    owed.extend(client.outputs.iter().cloned());
    let mine: Vec<&Row> = rows.turns.iter().filter(|row| row.mark == turn.mark).collect();
    if mine.len() > 1 {
        note("row-doubled", format!("{} rows", mine.len()));
    }
    let Some(row) = mine.first() else {
        // A client that left before it heard anything may have left before its request was read.
        let unheard =
            client.end == ClientEnd::Left && client.raw.is_empty() && turn.attempts.is_empty();
        if client.sent_whole && !unheard {
            note("row-lost", "the turn has no row".into());
        }
        return;
    };
    if !client.sent_whole {
        note("row-invented", "half a request has a row".into());
    }
    let outcome = row.outcome.as_deref().unwrap_or("none");
    if matches!(outcome, "none" | "lost") {
        note("row-open", format!("the outcome is {outcome}"));
        return;
    }
    outcome_fits(turn, row, outcome, note);
    let accounts: BTreeSet<usize> = turn.attempts.iter().map(|attempt| attempt.account).collect();
    let moves = accounts.len().saturating_sub(1) as i64;
    // A lease whose request never reached the backend leaves no trace there; a client that left may cause one.
    if row.moves != moves && !(client.end == ClientEnd::Left && row.moves >= moves) {
        note(
            "moves",
            format!("{} moves in the row ({:?}), {moves} at the backend", row.moves, row.reason),
        );
    }
    if let Some(last) = turn.attempts.last() {
        let name = format!("practice {}", last.account + 1);
        if client.end != ClientEnd::Left && row.account.as_deref() != Some(&name) {
            note("account", format!("{:?} in the row, {name} at the backend", row.account));
        }
    }
    let words = row.error_message.as_deref().unwrap_or_default().to_ascii_lowercase();
    if let Some(sign) = SIGNS.iter().find(|sign| words.contains(**sign)) {
        note("wording", format!("a sentence of Weir's own says {sign:?}"));
    }
    tokens(said, row, outcome, note);
    calls(turn, said, row, rows, note);
    booked(turn, row, rows, owed, note);
}

fn outcome_fits(
    turn: &TurnSaw,
    row: &Row,
    outcome: &str,
    note: &mut impl FnMut(&'static str, String),
) {
    let client = &turn.client;
    if client.end == ClientEnd::Left {
        return;
    }
    let Some(answer) = http::read(&client.raw) else { return };
    let seen = if answer.status >= 400 {
        "a refusal".to_owned()
    } else if client.whole {
        let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        document["status"].as_str().unwrap_or("nothing").to_owned()
    } else {
        let events = sse::read(&answer.body).events;
        let kinds = events.iter().rev().map(|event| said::event(&event.data));
        let end = kinds.into_iter().find(|event| event.role.is_terminal());
        end.and_then(|end| end.value["type"].as_str().map(str::to_owned))
            .unwrap_or_else(|| "nothing".into())
    };
    let right: &[&str] = match seen.as_str() {
        "response.completed" | "completed" => &["completed"],
        "response.incomplete" | "incomplete" => &["incomplete"],
        "response.failed" | "a refusal" => &["failed", "refused"],
        _ => &[],
    };
    if !right.contains(&outcome) {
        note(
            "outcome",
            format!("the row says {outcome} ({:?}), the client saw {seen}", row.error_code),
        );
    }
}

/// Numbers are the backend's or absent.
fn tokens(said: &[Said], row: &Row, outcome: &str, note: &mut impl FnMut(&'static str, String)) {
    let told =
        said.last().and_then(Said::terminal).and_then(|end| stream::usage(&end.value["response"]));
    let kept = row.input_tokens.zip(row.output_tokens);
    let right = match outcome {
        "completed" | "incomplete" => kept == told,
        _ => kept.is_none() || kept == told,
    };
    let half = row.input_tokens.is_some() != row.output_tokens.is_some();
    let loose = kept.is_none() && (row.cached_tokens.is_some() || row.reasoning_tokens.is_some());
    if !right || half || loose {
        note("tokens", format!("{kept:?} in the row, {told:?} from the backend"));
    }
}

fn calls(
    turn: &TurnSaw,
    said: &[Said],
    row: &Row,
    rows: &Rows,
    note: &mut impl FnMut(&'static str, String),
) {
    let mut emitted: Vec<(i64, &str)> = rows
        .emitted
        .iter()
        .filter(|(id, ..)| *id == row.id)
        .map(|(_, place, call)| (*place, call.as_str()))
        .collect();
    emitted.sort_unstable();
    if emitted.iter().enumerate().any(|(at, (place, _))| at as i64 != *place) {
        note("emitted", format!("the places have gaps: {emitted:?}"));
    }
    let emitted: Vec<&str> = emitted.into_iter().map(|(_, call)| call).collect();
    let mut backend = said.last().map(Said::calls).unwrap_or_default();
    // A document also has calls that were begun and whose end never came, as far as they came.
    let begun: Vec<String> =
        document_calls(turn).into_iter().filter(|call| !backend.contains(call)).collect();
    backend.extend(begun);
    if !starts_with(&backend, &emitted) {
        note("emitted", format!("{emitted:?} in the journal, {backend:?} from the backend"));
    }
    let client = &turn.client;
    if !client.whole {
        let body = http::read(&client.raw).map(|answer| answer.body).unwrap_or_default();
        let events: Vec<_> =
            sse::read(&body).events.iter().map(|event| said::event(&event.data)).collect();
        let seen = said::calls(events.iter().map(|event| &event.value));
        let right = if client.end == ClientEnd::Left {
            seen.len() <= emitted.len()
                && seen.iter().zip(&emitted).all(|(seen, kept)| seen == kept)
        } else {
            seen == emitted
        };
        if !right {
            note("emitted", format!("{emitted:?} in the journal, {seen:?} at the client"));
        }
    } else if client.end != ClientEnd::Left
        && said.last().and_then(Said::terminal).is_some_and(|end| end.role != Role::Failed)
        && backend != emitted
    {
        note("emitted", format!("{emitted:?} in the journal, {backend:?} for the client"));
    }
}

/// The outputs that a turn brings are booked by it, in their order.
fn booked(
    turn: &TurnSaw,
    row: &Row,
    rows: &Rows,
    owed: &mut Vec<String>,
    note: &mut impl FnMut(&'static str, String),
) {
    let booked: Vec<&str> = rows
        .booked
        .iter()
        .filter(|(by, ..)| *by == row.id)
        .map(|(_, _, call)| call.as_str())
        .collect();
    // A client that left may have sent its next request before this one was looked at, which then found nothing new.
    if turn.client.end == ClientEnd::Left && booked.is_empty() {
        return;
    }
    if booked != *owed {
        note("booked", format!("{booked:?} in the journal, {owed:?} came"));
    }
    owed.clear();
}

fn document_calls(turn: &TurnSaw) -> Vec<String> {
    let answer = http::read(&turn.client.raw).filter(|_| turn.client.whole);
    let document: Value =
        answer.and_then(|answer| serde_json::from_slice(&answer.body).ok()).unwrap_or_default();
    let items = document["output"].as_array().into_iter().flatten();
    items.filter_map(|item| Some(item["call_id"].as_str()?.to_owned())).collect()
}

fn starts_with(all: &[String], beginning: &[&str]) -> bool {
    beginning.len() <= all.len() && all.iter().zip(beginning).all(|(all, one)| all == one)
}

/// Rows that belong to no turn, and calls that are booked twice.
pub(super) fn strays(
    faults: &[FaultSaw],
    rows: &Rows,
    note: &mut impl FnMut(&'static str, String),
) {
    let marks: BTreeSet<&str> =
        faults.iter().flat_map(|fault| &fault.turns).map(|turn| turn.mark.as_str()).collect();
    for row in rows.turns.iter().filter(|row| !marks.contains(row.mark.as_str())) {
        note("row-invented", format!("{} of {} belongs to no turn", row.id, row.conversation));
    }
    let ids: BTreeSet<&str> = rows.turns.iter().map(|row| row.id.as_str()).collect();
    for (turn, _, call) in rows.emitted.iter().filter(|(turn, ..)| !ids.contains(turn.as_str())) {
        note("emitted", format!("{call} of {turn}, which has no row"));
    }
    let mut once = BTreeSet::new();
    for (_, _, call) in rows.booked.iter().filter(|(_, _, call)| !once.insert(call)) {
        note("booked", format!("{call} was booked twice"));
    }
}
