//! The backend's strictness, as a table of rules.
//!
//! Each rule looks at one request and gives the refusal that the backend would. All of them are asked, so that a
//! record names every fault of a request; the first is the answer. Where the backend's behaviour is not known a
//! rule does not exist.
//!
//! **Invariant**: a rule depends on the request alone, never on the script, the account or the time.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::errors::Refusal;
use super::request::{Ask, answer_of, is_output, kind};

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
    marker_value,
    marker_missing,
    frame_marker,
    lite_parallel,
    lite_context,
    lite_tools_place,
    lite_instructions_place,
    lite_tools_item,
    lite_tool_kinds,
    lite_image_detail,
    choice_without_tools,
    item_ids,
    call_ids,
    calls_and_outputs,
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

const LITE: &str = "X-OpenAI-Internal-Codex-Responses-Lite";

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

fn marker_value(ask: Ask<'_>) -> Option<Refusal> {
    let value = ask.marker.filter(|value| *value != "true")?;
    Some(Refusal::invalid(format!("Invalid value for {LITE}: '{value}'."), LITE, UNSUPPORTED_VALUE))
}

/// A body in the Lite form without the marker is a full request with an item that full does not know.
fn marker_missing(ask: Ask<'_>) -> Option<Refusal> {
    let at = ask.input().iter().position(|item| kind(item) == "additional_tools")?;
    ask.marker.is_none().then(|| {
        let param = format!("input[{at}].type");
        Refusal::invalid("Invalid value: 'additional_tools'.", &param, Some("invalid_value"))
    })
}

fn frame_marker(ask: Ask<'_>) -> Option<Refusal> {
    ask.has_frame_marker().then(|| {
        Refusal::invalid(
            format!("{LITE} must be sent as a header over HTTP."),
            "client_metadata",
            UNSUPPORTED_VALUE,
        )
    })
}

const UNSUPPORTED_VALUE: Option<&str> = Some("unsupported_value");

fn lite_refusal(rest: &str, param: &str) -> Refusal {
    Refusal::invalid(format!("{LITE} {rest}"), param, UNSUPPORTED_VALUE)
}

fn lite_parallel(ask: Ask<'_>) -> Option<Refusal> {
    let off = ask.body.get("parallel_tool_calls") == Some(&Value::Bool(false));
    (ask.lite() && !off)
        .then(|| lite_refusal("requires `parallel_tool_calls` to be false.", "parallel_tool_calls"))
}

fn lite_context(ask: Ask<'_>) -> Option<Refusal> {
    let context = ask.body.get("reasoning").and_then(|reasoning| reasoning.get("context"));
    let all = context.is_some_and(|context| context == "all_turns");
    (ask.lite() && !all).then(|| {
        lite_refusal("requires `reasoning.context` to be `all_turns`.", "reasoning.context")
    })
}

fn lite_tools_place(ask: Ask<'_>) -> Option<Refusal> {
    (ask.lite() && ask.body.get("tools").is_some())
        .then(|| lite_refusal("requires `tools` to be sent in `additional_tools`.", "tools"))
}

fn lite_instructions_place(ask: Ask<'_>) -> Option<Refusal> {
    (ask.lite() && ask.body.get("instructions").is_some())
        .then(|| lite_refusal("requires `instructions` to be sent in `input`.", "instructions"))
}

fn lite_tools_item(ask: Ask<'_>) -> Option<Refusal> {
    let first = ask.input().first().is_some_and(|item| {
        kind(item) == "additional_tools"
            && item.get("role").is_some_and(|role| role == "developer")
            && item.get("tools").is_some_and(Value::is_array)
    });
    (ask.lite() && !first)
        .then(|| lite_refusal("requires `input[0]` to be `additional_tools`.", "input[0]"))
}

fn lite_tool_kinds(ask: Ask<'_>) -> Option<Refusal> {
    fn known(tool: &Value) -> bool {
        match kind(tool) {
            "function" | "custom" => true,
            "tool_search" => tool.get("execution").is_some_and(|e| e == "client"),
            "namespace" => match tool.get("tools").and_then(Value::as_array) {
                Some(inner) => inner.iter().all(known),
                None => false,
            },
            _ => false,
        }
    }
    let items = ask.input().iter().filter(|item| kind(item) == "additional_tools");
    let mut tools = items.filter_map(|item| item.get("tools")?.as_array()).flatten();
    (ask.lite() && !tools.all(known)).then(|| {
        lite_refusal(
            "only supports function tools, custom tools, and client-executed tool search.",
            "tools",
        )
    })
}

fn lite_image_detail(ask: Ask<'_>) -> Option<Refusal> {
    fn detailed(content: &Value) -> bool {
        match content {
            Value::Array(parts) => {
                parts.iter().any(|part| kind(part) == "input_image" && part.get("detail").is_some())
            }
            Value::Object(fields) => fields.get("content").is_some_and(detailed),
            _ => false,
        }
    }
    if !ask.lite() {
        return None;
    }
    let at = ask.input().iter().position(|item| {
        ["content", "output"].iter().filter_map(|field| item.get(field)).any(detailed)
    })?;
    let param = format!("input[{at}].detail");
    Some(Refusal::invalid(
        format!("Unknown parameter: '{param}'."),
        &param,
        Some("unknown_parameter"),
    ))
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

/// Ids are typed by their prefix; an item without one is fine.
fn item_ids(ask: Ask<'_>) -> Option<Refusal> {
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

fn call_ids(ask: Ask<'_>) -> Option<Refusal> {
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
fn calls_and_outputs(ask: Ask<'_>) -> Option<Refusal> {
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
    use super::*;
    use serde_json::json;

    fn full() -> Value {
        json!({ "model": "practice-full", "store": false, "stream": true, "input": [] })
    }

    fn lite() -> Value {
        json!({
            "model": "practice-lite", "store": false, "stream": true, "parallel_tool_calls": false,
            "reasoning": { "context": "all_turns" },
            "input": [{ "type": "additional_tools", "role": "developer", "tools": [] }],
        })
    }

    /// The first complaint about `base` after `change`, as `status message`.
    fn complaint(base: Value, marker: Option<&str>, change: impl FnOnce(&mut Value)) -> String {
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

    fn with(base: Value, field: &str, value: Value, expected: &str) {
        let marker = (base["model"] == "practice-lite").then_some("true");
        assert_eq!(complaint(base, marker, |body| body[field] = value), expected, "{field}");
    }

    fn without(base: Value, field: &str, expected: &str) {
        let marker = (base["model"] == "practice-lite").then_some("true");
        let found = complaint(base, marker, |body| {
            body.as_object_mut().map(|fields| fields.shift_remove(field));
        });
        assert_eq!(found, expected, "{field}");
    }

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
    fn the_lite_lane() {
        const L: &str = "400 X-OpenAI-Internal-Codex-Responses-Lite";
        without(lite(), "nothing", "accepted");
        let parallel = format!("{L} requires `parallel_tool_calls` to be false.");
        without(lite(), "parallel_tool_calls", &parallel);
        with(lite(), "parallel_tool_calls", json!(true), &parallel);
        let context = format!("{L} requires `reasoning.context` to be `all_turns`.");
        without(lite(), "reasoning", &context);
        with(lite(), "reasoning", json!({ "context": "auto" }), &context);
        with(
            lite(),
            "tools",
            json!([]),
            &format!("{L} requires `tools` to be sent in `additional_tools`."),
        );
        with(
            lite(),
            "instructions",
            json!(""),
            &format!("{L} requires `instructions` to be sent in `input`."),
        );
        with(
            lite(),
            "input",
            json!([]),
            &format!("{L} requires `input[0]` to be `additional_tools`."),
        );
        let hosted = format!(
            "{L} only supports function tools, custom tools, and client-executed tool search."
        );
        let tools = |tool: Value| json!([{ "type": "additional_tools", "role": "developer", "tools": [tool] }]);
        with(lite(), "input", tools(json!({ "type": "web_search" })), &hosted);
        let nested = json!({ "type": "namespace", "name": "functions", "tools": [{ "type": "web_search" }] });
        with(lite(), "input", tools(nested), &hosted);
        let search = json!({ "type": "tool_search", "execution": "client" });
        with(lite(), "input", tools(search), "accepted");
    }

    #[test]
    fn the_marker() {
        assert_eq!(
            complaint(lite(), Some("false"), |_| {}),
            "400 Invalid value for X-OpenAI-Internal-Codex-Responses-Lite: 'false'."
        );
        assert_eq!(complaint(lite(), None, |_| {}), "400 Invalid value: 'additional_tools'.");
        // Known to be tolerated in full.
        with(full(), "reasoning", json!({ "context": "all_turns" }), "accepted");
        let metadata =
            json!({ "ws_request_header_x_openai_internal_codex_responses_lite": "true" });
        with(
            full(),
            "client_metadata",
            metadata,
            "400 X-OpenAI-Internal-Codex-Responses-Lite must be sent as a header over HTTP.",
        );
    }

    #[test]
    fn images_have_no_detail_in_lite() {
        let image = json!({ "type": "input_image", "image_url": "data:,", "detail": "high" });
        let items = |head: Value| json!([head, { "role": "user", "content": [image] }]);
        with(
            lite(),
            "input",
            items(lite()["input"][0].clone()),
            "400 Unknown parameter: 'input[1].detail'.",
        );
        with(full(), "input", items(json!({ "role": "user", "content": "x" })), "accepted");
    }

    #[test]
    fn a_forced_choice_needs_tools() {
        let complaint = "400 tool_choice is only allowed when tools are specified";
        with(full(), "tool_choice", json!({ "type": "function", "name": "a" }), complaint);
        with(full(), "tool_choice", json!("required"), complaint);
        with(full(), "tool_choice", json!("auto"), "accepted");
    }

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
