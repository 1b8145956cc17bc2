//! What was sent of a request: together with what the backend has, it must be the conversation that the client sent.
//!
//! **Invariant**: items are compared by what a model reads of them, so that no form of a client's or Weir's counts.

use serde_json::{Value, json};

use crate::transcript::{BackendSaw, TurnSaw};

pub(super) fn body(attempt: &BackendSaw) -> Value {
    serde_json::from_slice(&attempt.body).unwrap_or_default()
}

/// All that the backend has with this request.
pub(super) fn items(attempt: &BackendSaw) -> Vec<Value> {
    let known = attempt.line.as_ref().and_then(|line| line.known.clone()).unwrap_or_default();
    [known, body(attempt)["input"].as_array().cloned().unwrap_or_default()].concat()
}

pub(super) fn check(turn: &TurnSaw, note: &mut impl FnMut(&'static str, String)) {
    let wanted: Vec<Value> = turn.client.input.iter().map(read).collect();
    let mut first: Option<Value> = None;
    for (at, attempt) in turn.attempts.iter().enumerate() {
        let body = body(attempt);
        let continues = body["previous_response_id"].is_string();
        let known = attempt.line.as_ref().is_some_and(|line| line.known.is_some());
        if continues && !known {
            // Messages that nobody read are not judged: the backend had closed the connection.
            if !attempt.writes.is_empty() {
                note("changed-request", format!("request {at} continues an unknown response"));
            }
            continue;
        }
        // Lite puts tools and instructions in front.
        let items = items(attempt);
        let items = items
            .iter()
            .filter(|item| item["type"] != "additional_tools" && item["role"] != "developer");
        let sent: Vec<Value> = items.map(read).collect();
        if sent != wanted {
            let differs = (0..).find(|at| sent.get(*at) != wanted.get(*at)).unwrap_or(0);
            note(
                "changed-request",
                format!(
                    "request {at}: item {differs} of {} is not the client's of {}",
                    sent.len(),
                    wanted.len()
                ),
            );
        }
        let mut rest = body;
        for field in ["type", "input", "previous_response_id", "client_metadata"] {
            rest.as_object_mut().map(|fields| fields.remove(field));
        }
        if first.get_or_insert_with(|| rest.clone()) != &rest {
            note("changed-request", format!("request {at} differs from the one before"));
        }
    }
}

/// What a model reads of an item.
fn read(item: &Value) -> Value {
    let parsed = |text: &Value| match text.as_str().and_then(|text| serde_json::from_str(text).ok())
    {
        Some(value) => value,
        None => text.clone(),
    };
    match item["type"].as_str().unwrap_or("message") {
        "message" => {
            let parts = item["content"].as_array();
            let text: String = parts
                .into_iter()
                .flatten()
                .filter_map(|part| part["text"].as_str())
                .chain(item["content"].as_str())
                .collect();
            json!({"role": item["role"], "text": text})
        }
        "function_call" => {
            json!({"call": item["call_id"], "name": item["name"], "says": parsed(&item["arguments"])})
        }
        "custom_tool_call" => {
            json!({"call": item["call_id"], "name": item["name"], "says": parsed(&item["input"])})
        }
        "reasoning" => json!({"thought": item["encrypted_content"]}),
        _ => {
            let mut rest = item.clone();
            for field in ["id", "status"] {
                rest.as_object_mut().map(|fields| fields.remove(field));
            }
            rest
        }
    }
}
