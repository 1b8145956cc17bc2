//! How often a request was sent, and whether it might be.
//!
//! **Invariant**: after an answer that may have been worked on, the request is not sent again.

use std::collections::BTreeSet;

use super::said::{Role, Said, content_at};
use super::{Terms, asked};
use crate::transcript::{BackendEnd, BackendSaw, ClientEnd, TurnSaw};

/// One account and two moves.
const MOST: usize = 3;

/// A kept connection, a new one, and a request of its own.
const MOST_OF_ACCOUNT: usize = 3;

pub(super) fn check(
    turn: &TurnSaw,
    said: &[Said],
    terms: &Terms,
    note: &mut impl FnMut(&'static str, String),
) {
    let attempts = &turn.attempts;
    let accounts: BTreeSet<usize> = attempts.iter().map(|attempt| attempt.account).collect();
    if accounts.len() > MOST {
        note("sent-twice", format!("{} accounts for one turn", accounts.len()));
    }
    for (at, attempt) in attempts.iter().enumerate() {
        let before = &attempts[..at];
        let again = before.iter().filter(|earlier| earlier.account == attempt.account).count();
        // The same account is asked again only when it said that it did nothing, and at once.
        let asked_to = at > 0
            && before[at - 1].account == attempt.account
            && said[at - 1].undone(continues(&before[at - 1]));
        if again > 0 && (!asked_to || again >= MOST_OF_ACCOUNT) {
            note("sent-twice", format!("account {} was asked again", attempt.account));
        }
        if attempt.end == BackendEnd::Abandoned {
            note("orphan-socket", format!("request {at}: the connection was never closed"));
        }
        let moved = at + 1 < attempts.len();
        if moved && let Some(why) = forbidden(attempt, &said[at], terms) {
            note("sent-twice", format!("request {at} was followed by another, although {why}"));
        }
    }
    // What a client's going away does not end is paid for and read by nobody.
    if let Some(last) = attempts.last().filter(|_| turn.client.end == ClientEnd::Left) {
        let left = last.end == BackendEnd::Left || last.end == BackendEnd::LeftEarly;
        let late = (last.came + last.over).saturating_sub(turn.client.done);
        if left && late > terms.leaving {
            note(
                "not-cancelled",
                format!("the backend was left {late:?} after the client had gone"),
            );
        }
    }
    // Nobody pays for an answer that nobody waits for.
    if !turn.client.sent_whole && !attempts.is_empty() {
        note("sent-unasked", "half a request was sent on".into());
    }
}

fn continues(attempt: &BackendSaw) -> bool {
    asked::body(attempt)["previous_response_id"].is_string()
}

/// Why the backend must not be asked again after this answer.
fn forbidden(attempt: &BackendSaw, said: &Said, terms: &Terms) -> Option<&'static str> {
    // The two ends begin to count at different moments; a program that repeats for no reason does so at once.
    let patient = terms.silence.mul_f64(0.3);
    let waited = content_at(attempt).unwrap_or(attempt.over) >= patient;
    if said.has_content() {
        return (!waited).then_some("it had begun to answer");
    }
    if said.undone(continues(attempt)) {
        return None;
    }
    let Some(status) = said.status else {
        return (!waited).then_some("nobody knows what became of it");
    };
    if status != 200 || !said.stream {
        return None;
    }
    match said.terminal().map(|end| end.role) {
        Some(Role::Failed | Role::Incomplete) => None,
        Some(_) => Some("it was complete"),
        None => (!waited).then_some("its stream had been accepted"),
    }
}
