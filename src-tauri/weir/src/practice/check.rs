//! The backend's strictness, as a table of rules.
//!
//! Each rule looks at one request and gives the refusal that the backend would. All of them are asked, so that a
//! record names every fault of a request; the first is the answer. Where the backend's behaviour is not known a
//! rule does not exist.
//!
//! **Invariant**: a rule depends on the request alone, never on the script, the account or the time.

mod history;
mod lane;

use serde_json::Value;

use super::errors::Refusal;
use super::request::Ask;

type Rule = fn(Ask<'_>) -> Option<Refusal>;

/// In the order in which the backend was seen to complain: the layer in front, the lane, the history.
const RULES: &[Rule] = &[
    object,
    store,
    stream,
    input_list,
    instructions_text,
    parameters,
    system_role,
    lane::marker_value,
    lane::marker_missing,
    lane::frame_marker,
    lane::parallel_off,
    lane::all_turns,
    lane::tools_place,
    lane::instructions_place,
    lane::tools_item,
    lane::tool_kinds,
    lane::image_detail,
    choice_without_tools,
    history::item_ids,
    history::twice,
    history::call_ids,
    history::calls_and_outputs,
];

/// Names that the layer in front refuses; it has no such knobs.
const UNSUPPORTED: &[&str] = &[
    "max_output_tokens",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "n",
    "user",
    "metadata",
    "truncation",
    "safety_identifier",
    "prompt_cache_retention",
    "previous_response_id",
];

/// Every rule that this request breaks, the answered one first.
pub(super) fn broken(ask: Ask<'_>) -> Vec<Refusal> {
    RULES.iter().filter_map(|rule| rule(ask)).collect()
}

fn object(ask: Ask<'_>) -> Option<Refusal> {
    (!ask.body.is_object()).then(|| Refusal::detail("Invalid JSON body"))
}

fn store(ask: Ask<'_>) -> Option<Refusal> {
    (ask.body.get("store") != Some(&Value::Bool(false)))
        .then(|| Refusal::detail("Store must be set to false"))
}

fn stream(ask: Ask<'_>) -> Option<Refusal> {
    (ask.body.get("stream") != Some(&Value::Bool(true)))
        .then(|| Refusal::detail("Stream must be set to true"))
}

fn input_list(ask: Ask<'_>) -> Option<Refusal> {
    let list = ask.body.get("input").is_some_and(Value::is_array);
    (!list).then(|| Refusal::detail("Input must be a list"))
}

/// Absent is fine (current Codex never sends it), another type is not.
fn instructions_text(ask: Ask<'_>) -> Option<Refusal> {
    let instructions = ask.body.get("instructions")?;
    (!instructions.is_string()).then(|| Refusal::detail("Instructions are required"))
}

fn parameters(ask: Ask<'_>) -> Option<Refusal> {
    let name = UNSUPPORTED.iter().find(|name| ask.body.get(name).is_some())?;
    Some(Refusal::detail(format!("Unsupported parameter: {name}")))
}

fn system_role(ask: Ask<'_>) -> Option<Refusal> {
    let system = |item: &Value| item.get("role").is_some_and(|role| role == "system");
    ask.input().iter().any(system).then(|| Refusal::detail("System messages are not allowed"))
}

fn choice_without_tools(ask: Ask<'_>) -> Option<Refusal> {
    let choice = ask.body.get("tool_choice")?;
    let free = choice == "auto" || choice == "none" || choice.is_null();
    let tools =
        ask.body.get("tools").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    (!ask.lite() && !free && !tools).then(|| {
        Refusal::invalid(
            "tool_choice is only allowed when tools are specified",
            "tool_choice",
            None,
        )
    })
}

#[cfg(test)]
mod fixture {
    //! Good requests, and what is complained about after a change.

    use super::*;
    use serde_json::json;

    pub(super) fn full() -> Value {
        json!({ "model": "practice-full", "store": false, "stream": true, "input": [] })
    }

    pub(super) fn lite() -> Value {
        json!({
            "model": "practice-lite", "store": false, "stream": true, "parallel_tool_calls": false,
            "reasoning": { "context": "all_turns" },
            "input": [{ "type": "additional_tools", "role": "developer", "tools": [] }],
        })
    }

    /// The first complaint about `base` after `change`, as `status message`.
    pub(super) fn complaint(
        base: Value,
        marker: Option<&str>,
        change: impl FnOnce(&mut Value),
    ) -> String {
        let mut body = base;
        change(&mut body);
        match broken(Ask { body: &body, marker }).first() {
            None => "accepted".to_owned(),
            Some(refusal) => {
                let error = &refusal.body["error"]["message"];
                let text = error.as_str().or(refusal.body["detail"].as_str());
                assert!(refusal.violation.is_some());
                format!("{} {}", refusal.status, text.unwrap_or("?"))
            }
        }
    }

    pub(super) fn with(base: Value, field: &str, value: Value, expected: &str) {
        let marker = (base["model"] == "practice-lite").then_some("true");
        assert_eq!(complaint(base, marker, |body| body[field] = value), expected, "{field}");
    }

    pub(super) fn without(base: Value, field: &str, expected: &str) {
        let marker = (base["model"] == "practice-lite").then_some("true");
        let found = complaint(base, marker, |body| {
            body.as_object_mut().map(|fields| fields.shift_remove(field));
        });
        assert_eq!(found, expected, "{field}");
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::*;
    use serde_json::json;

    #[test]
    fn the_layer_in_front() {
        without(full(), "nothing", "accepted");
        with(full(), "store", json!(true), "400 Store must be set to false");
        without(full(), "store", "400 Store must be set to false");
        without(full(), "stream", "400 Stream must be set to true");
        with(full(), "input", json!("hello"), "400 Input must be a list");
        without(full(), "input", "400 Input must be a list");
        with(full(), "instructions", json!(null), "400 Instructions are required");
        with(full(), "instructions", json!(""), "accepted");
        with(full(), "temperature", json!(0.5), "400 Unsupported parameter: temperature");
        with(
            full(),
            "previous_response_id",
            json!("r"),
            "400 Unsupported parameter: previous_response_id",
        );
        with(full(), "something_new", json!({ "a": 1 }), "accepted");
        with(
            full(),
            "input",
            json!([{ "role": "system", "content": "x" }]),
            "400 System messages are not allowed",
        );
        assert_eq!(complaint(json!([]), None, |_| {}), "400 Invalid JSON body");
    }

    #[test]
    fn a_forced_choice_needs_tools() {
        let complaint = "400 tool_choice is only allowed when tools are specified";
        with(full(), "tool_choice", json!({ "type": "function", "name": "a" }), complaint);
        with(full(), "tool_choice", json!("required"), complaint);
        with(full(), "tool_choice", json!("auto"), "accepted");
    }
}
