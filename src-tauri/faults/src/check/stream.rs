//! What a streaming client saw against what the backend said.
//!
//! **Invariant**: what Weir may add is listed here and nowhere else: comments, an end of its own, a usage that it marks.

use serde_json::Value;

use super::said::{self, Event, Role, Said, event, flat};
use super::{http, sse};
use crate::transcript::{BackendEnd, ClientEnd, TurnSaw};

pub(super) fn check(turn: &TurnSaw, said: &[Said], note: &mut impl FnMut(&'static str, String)) {
    let client = &turn.client;
    if client.end == ClientEnd::Hung {
        note("hung", "the answer did not end".into());
        return;
    }
    let over = client.end == ClientEnd::Ended;
    let Some(answer) = http::read(&client.raw) else {
        if client.sent_whole && client.end != ClientEnd::Left {
            note("no-answer", format!("{:?} after {} bytes", client.end, client.raw.len()));
        }
        return;
    };
    if answer.status >= 400 {
        refused(&answer, over, turn, said, note);
        return;
    }
    if client.whole {
        return;
    }
    if answer.status != 200 || !answer.content_type.starts_with("text/event-stream") {
        note("framing", format!("status {} with {}", answer.status, answer.content_type));
        return;
    }
    let read = sse::read(&answer.body);
    if over && (!answer.whole && !answer.until_close || answer.excess) {
        note("framing", "the connection ended before its framing did".into());
    }
    if client.end == ClientEnd::Reset {
        note("framing", "the connection was reset".into());
    }
    if let Some(broken) = read.broken.filter(|_| over) {
        note("framing", broken.into());
    }
    let events: Vec<Event> = read.events.iter().map(|read| event(&read.data)).collect();
    for (read, event) in read.events.iter().zip(&events) {
        if let (Some(name), Some(kind)) = (&read.name, event.value["type"].as_str())
            && name != kind
        {
            note("framing", format!("an event of type {kind} is named {name}"));
        }
    }
    let ends = events.iter().filter(|event| event.role.is_terminal()).count();
    let end = events.iter().position(|event| event.role.is_terminal());
    if ends > 1 || (over && ends == 0) {
        note("one-terminal", format!("{ends} terminal events"));
    }
    if end.is_some_and(|end| end + 1 < events.len()) {
        note(
            "after-terminal",
            format!("{} events after the end", events.len() - 1 - end.unwrap_or(0)),
        );
    }
    let passed = &events[..end.unwrap_or(events.len())];
    let Some((last, attempt)) = said.last().zip(turn.attempts.last()) else {
        if !passed.is_empty() {
            note("foreign-event", "events without a backend".into());
        }
        return;
    };
    for (at, event) in passed.iter().enumerate() {
        let theirs = last.events.get(at);
        let unfinished = at == last.events.len() && last.unfinished.as_ref() == Some(&event.data);
        let same = theirs.is_some_and(|theirs| match flat(theirs) {
            Some(flat) => flat == event.value,
            None => theirs.data == event.data,
        });
        if !same && !unfinished {
            let was = theirs.map(|theirs| short(&theirs.data));
            note("foreign-event", format!("event {at} is {} and was {was:?}", short(&event.data)));
            return;
        }
    }
    let Some(end) = end.map(|end| &events[end]) else { return };
    let next = last.events.get(passed.len());
    match next.filter(|next| next.role.is_terminal()) {
        Some(theirs) => relayed(theirs, end, passed, note),
        None => ours(end, passed, last, attempt.end, note),
    }
}

/// The backend's end, as Weir may pass it on.
fn relayed(
    theirs: &Event,
    end: &Event,
    passed: &[Event],
    note: &mut impl FnMut(&'static str, String),
) {
    if theirs.data == end.data {
        return;
    }
    // Told of a failure after its last call, a client would run that call a second time.
    if end.role == Role::Completed && excused(theirs) && all_called(passed) {
        return completed(end, passed, note);
    }
    let allowed = match theirs.role {
        Role::Completed if theirs.value["response"].is_object() => {
            let whole = usage(&theirs.value["response"]).is_some();
            let (mut was, mut is) = (theirs.value.clone(), end.value.clone());
            let marked = is["response"]["weir"]["usage_estimated"] == true;
            for value in [&mut was, &mut is] {
                value["type"] = Value::Null;
                if !whole && let Some(response) = value["response"].as_object_mut() {
                    response.remove("usage");
                    response.remove("weir");
                }
            }
            was == is && end.role == Role::Completed && (whole || marked)
        }
        Role::Completed | Role::Failed => end.value["type"] == "response.failed",
        Role::Incomplete => {
            let reason = theirs.value["response"]["incomplete_details"]["reason"].as_str();
            let length = matches!(reason, Some("max_output_tokens" | "content_filter"));
            !length && end.value["type"] == "response.failed"
        }
        _ => false,
    };
    if !allowed {
        note(
            "foreign-event",
            format!("the end was {} and is {}", short(&theirs.data), short(&end.data)),
        );
    }
}

/// An end that says late that there is no answer.
pub(super) fn excused(theirs: &Event) -> bool {
    let reason = theirs.value["response"]["incomplete_details"]["reason"].as_str();
    match theirs.role {
        Role::Failed => true,
        Role::Completed => !theirs.value["response"].is_object(),
        Role::Incomplete => !matches!(reason, Some("max_output_tokens" | "content_filter")),
        _ => false,
    }
}

/// Every item that was begun is complete, and a call is among them.
pub(super) fn all_called(events: &[Event]) -> bool {
    open_items(events) == 0 && !said::calls(events.iter().map(|event| &event.value)).is_empty()
}

/// An end that the backend did not send.
fn ours(
    end: &Event,
    passed: &[Event],
    last: &Said,
    how: BackendEnd,
    note: &mut impl FnMut(&'static str, String),
) {
    // A reset may take along what was not read yet.
    let lossy = matches!(how, BackendEnd::Reset | BackendEnd::LeftEarly) || last.spoilt;
    let lost = if passed.is_empty() {
        // Nothing was committed, so the opening may be left out.
        last.has_content() || last.terminal().is_some_and(|end| end.role == Role::Completed)
    } else {
        passed.len() < last.events.len()
    };
    if lost && !lossy {
        let (passed, said, code) =
            (passed.len(), last.events.len(), &end.value["response"]["error"]["code"]);
        note("lost-event", format!("{passed} of {said} events were passed on, then came {code}"));
    }
    if end.value["sequence_number"].as_u64().is_none() {
        note("own-end", "an end without a sequence number, which clients ignore".into());
    }
    let open = open_items(passed);
    let answered = passed
        .iter()
        .filter(|event| event.value["type"] == "response.output_item.done")
        .any(|event| {
            let item = &event.value["item"];
            let call = item["type"].as_str().is_some_and(|kind| kind.ends_with("_call"));
            call || (item["type"] == "message" && item["phase"] != "commentary")
        });
    match end.role {
        Role::Completed => {
            if open > 0 || !answered {
                note("own-end", format!("completed with {open} items open, answered: {answered}"));
            }
            completed(end, passed, note);
        }
        // Every item was complete: a client that is told otherwise runs finished calls a second time.
        _ if how == BackendEnd::Closed && open == 0 && answered && !last.spoilt => {
            note("own-end", "failed although every item was complete".into());
        }
        _ => {}
    }
}

/// A completion that is Weir's own.
fn completed(end: &Event, passed: &[Event], note: &mut impl FnMut(&'static str, String)) {
    let response = &end.value["response"];
    if response["weir"]["completed_by_weir"] != true || response["weir"]["usage_estimated"] != true
    {
        note("own-end", "a completion that the backend did not send and that is not marked".into());
    }
    let done: Vec<&Value> = passed
        .iter()
        .filter(|event| event.value["type"] == "response.output_item.done")
        .map(|event| &event.value["item"])
        .collect();
    let output: Vec<&Value> = response["output"].as_array().into_iter().flatten().collect();
    if done != output {
        note("own-end", format!("an output of {} items for {}", output.len(), done.len()));
    }
}

pub(super) fn open_items(events: &[Event]) -> usize {
    let mut open = std::collections::BTreeSet::new();
    for event in events {
        let index = event.value["output_index"].as_u64();
        match event.value["type"].as_str() {
            Some("response.output_item.added") => drop(open.insert(index)),
            Some("response.output_item.done") => drop(open.remove(&index)),
            _ => {}
        }
    }
    open.len()
}

fn refused(
    answer: &http::Answer,
    over: bool,
    turn: &TurnSaw,
    said: &[Said],
    note: &mut impl FnMut(&'static str, String),
) {
    if over {
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let error = &body["error"];
        if error["message"].as_str().is_none_or(str::is_empty) || !answer.whole {
            let body = String::from_utf8_lossy(&answer.body);
            note("refusal", format!("status {} with {}", answer.status, short(&body)));
        }
    }
    let read = said.last().is_some_and(|last| last.has_content() && !last.spoilt);
    let lossy = turn
        .attempts
        .last()
        .is_some_and(|attempt| matches!(attempt.end, BackendEnd::Reset | BackendEnd::LeftEarly));
    if read && !lossy && !turn.client.whole {
        note("lost-event", format!("status {} although the backend had answered", answer.status));
    }
}

/// Input and output tokens, where both are told.
pub(super) fn usage(response: &Value) -> Option<(i64, i64)> {
    let usage = &response["usage"];
    Some((usage["input_tokens"].as_i64()?, usage["output_tokens"].as_i64()?))
}

pub(super) fn short(text: &str) -> String {
    text.chars().take(160).collect()
}
