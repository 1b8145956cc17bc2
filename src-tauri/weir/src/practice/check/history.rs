//! What the backend asks of the items of a request: ids with a shape, calls with outputs, outputs with calls.
//!
//! **Invariant**: every call that a client runs is answered exactly once, after it was made.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::practice::errors::Refusal;
use crate::practice::request::{Ask, answer_of, is_output, kind};

/// Ids are typed by their prefix; an item without one is fine.
pub(super) fn item_ids(ask: Ask<'_>) -> Option<Refusal> {
    ask.input().iter().enumerate().find_map(|(at, item)| {
        let id = item.get("id").and_then(Value::as_str)?;
        let param = format!("input[{at}].id");
        let wanted = match kind(item) {
            "message" => Some("msg"),
            "function_call" => Some("fc"),
            "custom_tool_call" => Some("ctc"),
            "reasoning" => Some("rs"),
            _ => None,
        };
        let message = match (wanted, id.split_once('_')) {
            (Some(prefix), _) if !id.starts_with(prefix) => {
                format!("Invalid '{param}': '{id}'. Expected an ID that begins with '{prefix}'.")
            }
            (_, Some((prefix, rest))) if !prefix.is_empty() && !rest.is_empty() => return None,
            _ => format!("Invalid '{param}': '{id}'. Expected an ID with a prefix."),
        };
        Some(Refusal::invalid(message, &param, Some("invalid_value")))
    })
}

/// An id names one item of a history. What a socket holds and what a frame says again of it meet here.
pub(super) fn twice(ask: Ask<'_>) -> Option<Refusal> {
    let mut seen = HashSet::new();
    let ids = ask.input().iter().filter_map(|item| item.get("id")?.as_str());
    let id = ids.filter(|id| !id.is_empty()).find(|id| !seen.insert(*id))?;
    let message = format!(
        "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
    );
    Some(Refusal::invalid(message, "input", None))
}

pub(super) fn call_ids(ask: Ask<'_>) -> Option<Refusal> {
    let items = ask.input().iter().enumerate();
    let mut with_id = items.filter(|(_, item)| answer_of(item).is_some() || is_output(item));
    with_id.find_map(|(at, item)| {
        let param = format!("input[{at}].call_id");
        match item.get("call_id").and_then(Value::as_str) {
            None | Some("") => Some(Refusal::invalid(
                format!("Missing required parameter: '{param}'."),
                &param,
                Some("missing_required_parameter"),
            )),
            Some(id) if id.chars().count() > 64 => Some(Refusal::invalid(
                format!(
                    "Invalid '{param}': string too long. Expected a string with maximum length 64."
                ),
                &param,
                Some("string_above_max_length"),
            )),
            Some(_) => None,
        }
    })
}

/// Every call is answered once, by an output of its kind that comes after it; every output has such a call.
pub(super) fn calls_and_outputs(ask: Ask<'_>) -> Option<Refusal> {
    let invalid = |message: String| Some(Refusal::invalid(message, "input", None));
    let mut open: HashMap<&str, (&str, usize)> = HashMap::new();
    let mut seen = HashSet::new();
    for (at, item) in ask.input().iter().enumerate() {
        let Some(id) = item.get("call_id").and_then(Value::as_str) else { continue };
        if let Some(answer) = answer_of(item) {
            if !seen.insert(id) {
                return invalid(format!("Duplicate call_id {id}"));
            }
            open.insert(id, (answer, at));
        } else if is_output(item) {
            match open.remove(id) {
                Some((answer, _)) if answer == kind(item) => {}
                _ if seen.contains(id) => return invalid(format!("Duplicate call_id {id}")),
                _ => {
                    let what = spoken(kind(item));
                    return invalid(format!("No tool call found for {what} with call_id {id}."));
                }
            }
        }
    }
    let (id, (_, at)) = open.into_iter().min_by_key(|(_, (_, at))| *at)?;
    let what = spoken(kind(&ask.input()[at]));
    invalid(format!("No tool output found for {what} {id}."))
}

fn spoken(kind: &str) -> String {
    kind.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use crate::practice::check::fixture::*;
    use serde_json::{Value, json};

    fn call(id: &str) -> Value {
        json!({ "type": "function_call", "call_id": id, "name": "a", "arguments": "{}" })
    }

    fn output(id: &str) -> Value {
        json!({ "type": "function_call_output", "call_id": id, "output": "" })
    }

    fn history(items: &[Value], expected: &str) {
        with(full(), "input", json!(items), expected);
    }

    #[test]
    fn calls_have_outputs_and_outputs_have_calls() {
        history(&[call("a"), call("b"), output("b"), output("a")], "accepted");
        history(&[call("call_x")], "400 No tool output found for function call call_x.");
        history(
            &[output("call_x")],
            "400 No tool call found for function call output with call_id call_x.",
        );
        history(
            &[output("call_x"), call("call_x")],
            "400 No tool call found for function call output with call_id call_x.",
        );
        history(&[call("a"), output("a"), call("a"), output("a")], "400 Duplicate call_id a");
        history(&[call("a"), output("a"), output("a")], "400 Duplicate call_id a");
        let custom =
            json!({ "type": "custom_tool_call", "call_id": "c", "name": "p", "input": "" });
        history(&[custom], "400 No tool output found for custom tool call c.");
    }

    #[test]
    fn an_item_is_said_once() {
        let message = |id: &str| json!({ "role": "user", "id": id, "content": "x" });
        history(&[message("msg_1"), message("msg_2")], "accepted");
        history(
            &[message("msg_1"), message("msg_1")],
            "400 Duplicate item found with id msg_1. Remove duplicate items from your input and try again.",
        );
    }

    #[test]
    fn ids_have_a_shape() {
        let long = "c".repeat(65);
        history(
            &[call("a"), call(&long), output("a"), output(&long)],
            "400 Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64.",
        );
        history(&[call("")], "400 Missing required parameter: 'input[0].call_id'.");
        let message = |id: &str| json!({ "role": "user", "id": id, "content": "x" });
        history(
            &[message("item_1")],
            "400 Invalid 'input[0].id': 'item_1'. Expected an ID that begins with 'msg'.",
        );
        history(&[message("msg_1")], "accepted");
        let other = |id: &str| json!({ "type": "something", "id": id });
        history(&[other("x1")], "400 Invalid 'input[0].id': 'x1'. Expected an ID with a prefix.");
        history(&[other("zz_1")], "accepted");
    }
}
