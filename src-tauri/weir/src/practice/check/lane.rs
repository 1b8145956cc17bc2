//! What the Lite lane asks of a request, and what marks a request as Lite.
//!
//! The sentences about `parallel_tool_calls`, `reasoning.context` and the kinds of tools are the backend's own; the
//! others are built like them, since it is only known that the backend refuses.
//!
//! **Invariant**: without the marker a request is a full one, however it looks.

use serde_json::Value;

use crate::practice::errors::Refusal;
use crate::practice::request::{Ask, kind};

const LITE: &str = "X-OpenAI-Internal-Codex-Responses-Lite";

pub(super) fn marker_value(ask: Ask<'_>) -> Option<Refusal> {
    let value = ask.marker.filter(|value| *value != "true")?;
    Some(Refusal::invalid(format!("Invalid value for {LITE}: '{value}'."), LITE, UNSUPPORTED_VALUE))
}

/// A body in the Lite form without the marker is a full request with an item that full does not know.
pub(super) fn marker_missing(ask: Ask<'_>) -> Option<Refusal> {
    let at = ask.input().iter().position(|item| kind(item) == "additional_tools")?;
    ask.marker.is_none().then(|| {
        let param = format!("input[{at}].type");
        Refusal::invalid("Invalid value: 'additional_tools'.", &param, Some("invalid_value"))
    })
}

pub(super) fn frame_marker(ask: Ask<'_>) -> Option<Refusal> {
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

pub(super) fn parallel_off(ask: Ask<'_>) -> Option<Refusal> {
    let off = ask.body.get("parallel_tool_calls") == Some(&Value::Bool(false));
    (ask.lite() && !off)
        .then(|| lite_refusal("requires `parallel_tool_calls` to be false.", "parallel_tool_calls"))
}

pub(super) fn all_turns(ask: Ask<'_>) -> Option<Refusal> {
    let context = ask.body.get("reasoning").and_then(|reasoning| reasoning.get("context"));
    let all = context.is_some_and(|context| context == "all_turns");
    (ask.lite() && !all).then(|| {
        lite_refusal("requires `reasoning.context` to be `all_turns`.", "reasoning.context")
    })
}

pub(super) fn tools_place(ask: Ask<'_>) -> Option<Refusal> {
    (ask.lite() && ask.body.get("tools").is_some())
        .then(|| lite_refusal("requires `tools` to be sent in `additional_tools`.", "tools"))
}

pub(super) fn instructions_place(ask: Ask<'_>) -> Option<Refusal> {
    (ask.lite() && ask.body.get("instructions").is_some())
        .then(|| lite_refusal("requires `instructions` to be sent in `input`.", "instructions"))
}

pub(super) fn tools_item(ask: Ask<'_>) -> Option<Refusal> {
    let first = ask.input().first().is_some_and(|item| {
        kind(item) == "additional_tools"
            && item.get("role").is_some_and(|role| role == "developer")
            && item.get("tools").is_some_and(Value::is_array)
    });
    (ask.lite() && !first)
        .then(|| lite_refusal("requires `input[0]` to be `additional_tools`.", "input[0]"))
}

pub(super) fn tool_kinds(ask: Ask<'_>) -> Option<Refusal> {
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

pub(super) fn image_detail(ask: Ask<'_>) -> Option<Refusal> {
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

#[cfg(test)]
mod tests {
    use crate::practice::check::fixture::*;
    use serde_json::{Value, json};

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
}
