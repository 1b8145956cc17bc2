//! What one request asks, as the scripted model reads it.
//!
//! Both dialects are read here: tools are at the top level in full and inside `additional_tools` items in Lite, and a
//! request may have parallel calls or not. Everything else works on this view.
//!
//! **Invariant**: it only borrows; nothing of a request is changed or completed.

use serde_json::Value;
use weir_core::dialect::wire;

/// A request body beside the headers that change its meaning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    pub(super) body: &'a Value,
    /// The value of the Lite marker, if it was sent.
    pub(super) marker: Option<&'a str>,
}

/// One tool that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Offered<'a> {
    pub(super) name: &'a str,
    pub(super) namespace: Option<&'a str>,
    pub(super) definition: &'a Value,
}

impl<'a> Ask<'a> {
    pub(super) fn lite(&self) -> bool {
        self.marker == Some("true")
    }

    /// May the model write several calls into one response? Absent means yes, as in the API.
    pub(super) fn parallel(&self) -> bool {
        !self.lite() && self.body.get("parallel_tool_calls") != Some(&Value::Bool(false))
    }

    pub(super) fn model(&self) -> &'a str {
        self.str("model").unwrap_or_default()
    }

    pub(super) fn str(&self, field: &str) -> Option<&'a str> {
        self.body.get(field)?.as_str()
    }

    pub(super) fn input(&self) -> &'a [Value] {
        self.body.get("input").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn tools(&self) -> Vec<Offered<'a>> {
        let top = self.body.get("tools");
        let items = self.input().iter().filter(|item| kind(item) == "additional_tools");
        let lists = top.into_iter().chain(items.filter_map(|item| item.get("tools")));
        let mut found = Vec::new();
        for tool in lists.filter_map(Value::as_array).flatten() {
            collect(tool, None, &mut found);
        }
        found
    }

    pub(super) fn tool(&self, name: &str) -> Option<Offered<'a>> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    /// The text of the last user message.
    pub(super) fn prompt(&self) -> String {
        self.last_user().map(|at| text(&self.input()[at])).unwrap_or_default()
    }

    /// Everything that users wrote, oldest first.
    pub(super) fn user_texts(&self) -> impl Iterator<Item = String> {
        self.input().iter().filter(|item| is_user(item)).map(text)
    }

    /// The tool outputs that came in after the last user message, in their order.
    pub(super) fn outputs(&self) -> Vec<String> {
        let from = self.last_user().map_or(0, |at| at + 1);
        let outputs = self.input()[from..].iter().filter(|item| is_output(item));
        outputs.map(|item| item.get("output").map(flatten).unwrap_or_default()).collect()
    }

    /// Whether the last item asks for compaction.
    pub(super) fn wants_compaction(&self) -> bool {
        self.input().last().is_some_and(|item| kind(item) == "compaction_trigger")
    }

    pub(super) fn wants_ciphertext(&self) -> bool {
        let include = self.body.get("include").and_then(Value::as_array);
        include.is_some_and(|list| list.iter().any(|v| v == "reasoning.encrypted_content"))
    }

    /// `client_metadata[key]`.
    pub(super) fn metadata(&self, key: &str) -> Option<&'a str> {
        self.body.get("client_metadata")?.get(key)?.as_str()
    }

    /// The Lite marker of a WebSocket frame, which has no business in an HTTP body.
    pub(super) fn has_frame_marker(&self) -> bool {
        self.body.get("client_metadata").and_then(|m| m.get(wire::LITE_METADATA_KEY)).is_some()
    }

    fn last_user(&self) -> Option<usize> {
        self.input().iter().rposition(is_user)
    }
}

/// An item's type; a bare `{role, content}` is a message.
pub(super) fn kind(item: &Value) -> &str {
    item.get("type").and_then(Value::as_str).unwrap_or("message")
}

/// The output type that answers a call type, for calls that a client runs.
pub(super) fn answer_of(item: &Value) -> Option<&'static str> {
    match kind(item) {
        "function_call" => Some("function_call_output"),
        "custom_tool_call" => Some("custom_tool_call_output"),
        "local_shell_call" => Some("local_shell_call_output"),
        "tool_search_call" if item.get("execution").is_some_and(|e| e == "client") => {
            Some("tool_search_output")
        }
        _ => None,
    }
}

pub(super) fn is_output(item: &Value) -> bool {
    match kind(item) {
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => true,
        "tool_search_output" => item.get("execution").is_some_and(|e| e == "client"),
        _ => false,
    }
}

fn is_user(item: &Value) -> bool {
    kind(item) == "message" && item.get("role").is_some_and(|role| role == "user")
}

fn text(item: &Value) -> String {
    item.get("content").map(flatten).unwrap_or_default()
}

/// A string, or the texts of a list of parts.
fn flatten(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Object(fields) => fields.get("content").map(flatten).unwrap_or_default(),
        _ => String::new(),
    }
}

fn collect<'a>(tool: &'a Value, namespace: Option<&'a str>, into: &mut Vec<Offered<'a>>) {
    let name = tool.get("name").and_then(Value::as_str);
    if kind(tool) == "namespace" {
        for inner in tool.get("tools").and_then(Value::as_array).into_iter().flatten() {
            collect(inner, name, into);
        }
    } else if let Some(name) = name {
        into.push(Offered { name, namespace, definition: tool });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tools_are_found_in_both_dialects() {
        let full =
            json!({ "tools": [{ "type": "function", "name": "task" }, { "type": "web_search" }] });
        let lite = json!({ "input": [{ "type": "additional_tools", "tools": [
            { "type": "namespace", "name": "functions", "tools": [{ "type": "function", "name": "task" }] },
            { "type": "function", "name": "flat" } ] }] });
        let full = Ask { body: &full, marker: None };
        let lite = Ask { body: &lite, marker: Some("true") };
        assert_eq!(full.tool("task").and_then(|t| t.namespace), None);
        assert_eq!(lite.tool("task").and_then(|t| t.namespace), Some("functions"));
        assert_eq!(lite.tool("flat").and_then(|t| t.namespace), None);
        assert_eq!(full.tools().len(), 1);
    }

    #[test]
    fn outputs_count_from_the_last_prompt() {
        let body = json!({ "input": [
            { "role": "user", "content": "one" },
            { "type": "function_call_output", "call_id": "a", "output": "old" },
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "two" }] },
            { "type": "function_call_output", "call_id": "b", "output": [{ "type": "input_text", "text": "new" }] },
        ] });
        let ask = Ask { body: &body, marker: None };
        assert_eq!(ask.prompt(), "two");
        assert_eq!(ask.outputs(), ["new"]);
    }

    #[test]
    fn parallel_is_the_default_and_lite_never_is() {
        let check = |body: Value, marker, parallel| {
            assert_eq!(Ask { body: &body, marker }.parallel(), parallel, "{body}");
        };
        check(json!({}), None, true);
        check(json!({ "parallel_tool_calls": true }), None, true);
        check(json!({ "parallel_tool_calls": false }), None, false);
        check(json!({ "parallel_tool_calls": true }), Some("true"), false);
    }
}
