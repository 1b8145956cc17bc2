//! What a client saw that asked for one document.
//!
//! **Invariant**: a document holds every item that the backend completed, in their order, and no other.

use serde_json::Value;

use super::http;
use super::said::{Role, Said, flat};
use super::stream::{self, short};
use crate::transcript::{ClientEnd, TurnSaw};

pub(super) fn check(turn: &TurnSaw, said: &[Said], note: &mut impl FnMut(&'static str, String)) {
    let client = &turn.client;
    if !client.whole || client.end != ClientEnd::Ended {
        return;
    }
    let Some(answer) = http::read(&client.raw).filter(|answer| answer.status < 400) else { return };
    let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status != 200 || !answer.whole || !document["output"].is_array() {
        note(
            "document",
            format!(
                "status {} with {}",
                answer.status,
                short(&String::from_utf8_lossy(&answer.body))
            ),
        );
        return;
    }
    let Some(last) = said.last() else {
        note("document", "a document without a backend".into());
        return;
    };
    let done =
        last.events.iter().filter(|event| event.value["type"] == "response.output_item.done");
    let done: Vec<Value> = done
        .map(|event| flat(event).unwrap_or_else(|| event.value.clone())["item"].clone())
        .collect();
    let mut done = done.iter().peekable();
    // What was begun and not ended may stand there as far as it came.
    let mut begun = stream::open_items(&last.events);
    for item in document["output"].as_array().into_iter().flatten() {
        if done.next_if_eq(&item).is_none() {
            let Some(less) = begun.checked_sub(1) else {
                note(
                    "document",
                    format!("an item that the backend did not send: {}", short(&item.to_string())),
                );
                return;
            };
            begun = less;
        }
    }
    if let Some(item) = done.next() {
        note("document", format!("it lacks {}", short(&item.to_string())));
    }
    let status = document["status"].as_str();
    let ours = status == Some("completed") && document["weir"]["completed_by_weir"] == true;
    let right = match last.terminal().map(|end| end.role) {
        _ if ours && last.terminal().is_some_and(stream::excused) => {
            stream::all_called(&last.events)
        }
        Some(Role::Completed) => status == Some("completed"),
        Some(Role::Incomplete) => status == Some("incomplete"),
        Some(_) => false,
        None => ours,
    };
    if !right {
        note("document", format!("a document with status {status:?}"));
    }
}
