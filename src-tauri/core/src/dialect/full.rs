//! Lite into full: tools and instructions of the input move to where the public API has them.
//!
//! A client that believes in Lite writes Lite, also when the user has switched the model to full. What Lite forced on it
//! (one call at a time, the thoughts of all turns) is undone then, and only then: a client that wrote full meant it.
//!
//! **Invariant**: a request without `additional_tools` keeps its `tools`, its `parallel_tool_calls` beside them and its
//! `reasoning`, byte for byte.

use serde_json::value::RawValue;

use super::body::Body;
use super::item::Item;
use super::object::Object;
use super::tools::{Merged, Tool};
use super::{raw, tools};

/// Rewrites a normalised request into full.
pub(super) fn to_full(body: &mut Body) {
    if body.items().iter().any(tools::is_additional) {
        raise_instructions(body);
        raise_tools(body);
        undo_what_lite_forced(body);
    }
    if tools::of_request(body).is_empty() {
        // Refused beside an empty list, and without meaning there.
        body.remove("parallel_tool_calls");
    }
    if body.get("instructions").is_none_or(raw::is_null) {
        // The backend has at times insisted on a string.
        body.set("instructions", "");
    }
}

/// The developer message that directly follows the leading tools is what Lite made of the instructions, when it has their
/// shape and there are none.
fn raise_instructions(body: &mut Body) {
    let blank = |value: &RawValue| {
        raw::is_null(value) || raw::text(value).is_some_and(|text| text.trim().is_empty())
    };
    if body.get("instructions").is_some_and(|value| !blank(value)) {
        return;
    }
    let lead = body.items().iter().take_while(|item| tools::is_additional(item)).count();
    let text = body.items().get(lead).filter(|_| lead > 0).and_then(sole_text);
    if let Some(text) = text {
        body.set_raw("instructions", text);
        body.items_mut().remove(lead);
    }
}

/// The raw text of a developer message that says one text and nothing else. Anything unknown in it keeps it a message.
fn sole_text(item: &Item) -> Option<Box<RawValue>> {
    let only = |object: &Object, known: &[&str]| object.names().all(|name| known.contains(&name));
    let message = item.object()?;
    if item.kind() != "message"
        || item.role() != Some("developer")
        || !only(&message, &["type", "id", "role", "content", "status"])
    {
        return None;
    }
    let parts = raw::list(message.get("content")?)?;
    let [part] = parts.as_slice() else { return None };
    let part = Object::of(part)?;
    let is_text = part.get("type").and_then(raw::text).as_deref() == Some("input_text");
    let text = part.get("text").filter(|text| text.get().starts_with('"'))?;
    (is_text && only(&part, &["type", "text"])).then(|| text.to_owned())
}

/// Gathers the tools of the whole thread, those of the namespace that Lite made up taken out of it.
fn raise_tools(body: &mut Body) {
    let mut merged = Merged::default();
    for tool in tools::all(body) {
        if tool.is_wrapper() {
            tool.inner().into_iter().for_each(|inner: Tool<'_>| merged.add(inner));
        } else {
            merged.add(tool);
        }
    }
    body.items_mut().retain(|item| !tools::is_additional(item));
    if merged.is_empty() {
        body.remove("tools");
    } else {
        body.set_raw("tools", merged.into_list());
    }
}

fn undo_what_lite_forced(body: &mut Body) {
    if body.flag("parallel_tool_calls") == Some(false) {
        body.remove("parallel_tool_calls");
    }
    let Some(mut reasoning) = body.get("reasoning").and_then(Object::of) else { return };
    if reasoning.remove("context").is_none() {
        return;
    }
    if reasoning.is_empty() {
        body.remove("reasoning");
    } else {
        body.set_raw("reasoning", reasoning.to_raw());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(text: &str) -> String {
        let mut body = Body::parse(text.as_bytes()).expect("a request");
        to_full(&mut body);
        String::from_utf8(body.to_bytes()).expect("UTF-8")
    }

    const TOOL: &str = r#"{"type":"function","name":"f","x":0.10}"#;

    #[test]
    fn parallel_tool_calls_of_a_full_request_is_the_clients_own() {
        for parallel in [
            "",
            r#","parallel_tool_calls":true"#,
            r#","parallel_tool_calls":false"#,
            r#","parallel_tool_calls":null"#,
        ] {
            let text = format!(
                r#"{{"model":"m","instructions":"I","tools":[{TOOL}]{parallel},"reasoning":{{"context":"all_turns"}},"input":[{{"role":"developer","content":[{{"type":"input_text","text":"x"}}]}}]}}"#
            );
            assert_eq!(full(&text), text);
        }
    }

    #[test]
    fn nothing_is_said_about_tools_where_there_are_none() {
        assert_eq!(
            full(r#"{"model":"m","instructions":"I","parallel_tool_calls":true}"#),
            r#"{"model":"m","instructions":"I"}"#
        );
    }

    #[test]
    fn instructions_are_always_a_string() {
        assert_eq!(full(r#"{"model":"m"}"#), r#"{"model":"m","instructions":""}"#);
        assert_eq!(
            full(r#"{"instructions":null,"model":"m"}"#),
            r#"{"instructions":"","model":"m"}"#
        );
    }

    #[test]
    fn a_lite_request_becomes_full() {
        let sent = full(
            r#"{"model":"m","input":[{"type":"additional_tools","id":"at_1","role":"developer","tools":[{"type":"namespace","name":"functions","description":"","tools":[{"type":"function","name":"f","x":0.10},{"type":"custom","name":"exec"}]},{"type":"namespace","name":"collaboration","tools":[{"type":"function","name":"f"}]},{"type":"tool_search","execution":"client"}]},{"type":"message","id":"msg_1","role":"developer","content":[{"type":"input_text","text":"You \u00e9"}]},{"role":"user","content":"x"},{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f","v":2},{"type":"function","name":"late"}]},{"role":"user","content":"y"}],"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"medium","context":"all_turns"}}"#,
        );
        assert_eq!(
            sent,
            r#"{"model":"m","input":[{"role":"user","content":"x"},{"role":"user","content":"y"}],"tool_choice":"auto","reasoning":{"effort":"medium"},"instructions":"You \u00e9","tools":[{"type":"function","name":"f","v":2},{"type":"custom","name":"exec"},{"type":"namespace","name":"collaboration","tools":[{"type":"function","name":"f"}]},{"type":"tool_search","execution":"client"},{"type":"function","name":"late"}]}"#
        );
        assert_eq!(full(&sent), sent);
    }

    #[test]
    fn only_a_message_in_the_shape_of_instructions_becomes_them() {
        let at = format!(r#"{{"type":"additional_tools","tools":[{TOOL}]}}"#);
        let developer = r#"{"role":"developer","content":[{"type":"input_text","text":"D"}]}"#;
        let raised = |instructions: &str, items: &str| {
            let sent = full(&format!(r#"{{"model":"m"{instructions},"input":[{items}]}}"#));
            let body = Body::parse(sent.as_bytes()).expect("a request");
            (body.text("instructions").expect("always a string"), body.items().len())
        };
        for (instructions, items, expected) in [
            ("", format!("{at},{developer}"), ("D", 0)),
            ("", format!("{at},{at},{developer}"), ("D", 0)),
            (r#","instructions":"  ""#, format!("{at},{developer}"), ("D", 0)),
            (r#","instructions":"I""#, format!("{at},{developer}"), ("I", 1)),
            ("", format!("{developer},{at}"), ("", 1)),
            ("", format!(r#"{at},{{"role":"user","content":[]}},{developer}"#), ("", 2)),
            ("", format!(r#"{at},{{"role":"developer","content":"D"}}"#), ("", 1)),
            (
                "",
                format!(r#"{at},{{"role":"user","content":[{{"type":"input_text","text":"D"}}]}}"#),
                ("", 1),
            ),
            (
                "",
                format!(
                    r#"{at},{{"role":"developer","content":[{{"type":"input_text","text":"D"}},{{"type":"input_text","text":"E"}}]}}"#
                ),
                ("", 1),
            ),
            (
                "",
                format!(
                    r#"{at},{{"role":"developer","content":[{{"type":"input_text","text":"D","cache":1}}]}}"#
                ),
                ("", 1),
            ),
            (
                "",
                format!(
                    r#"{at},{{"role":"developer","passthrough":{{}},"content":[{{"type":"input_text","text":"D"}}]}}"#
                ),
                ("", 1),
            ),
            (
                "",
                format!(
                    r#"{at},{{"role":"developer","content":[{{"type":"input_image","text":"D"}}]}}"#
                ),
                ("", 1),
            ),
        ] {
            let (text, left) = raised(instructions, &items);
            assert_eq!((text.as_str(), left), expected, "{instructions} {items}");
        }
    }

    #[test]
    fn empty_tools_of_lite_leave_nothing_behind() {
        assert_eq!(
            full(
                r#"{"model":"m","instructions":"I","tools":null,"input":[{"type":"additional_tools","tools":[]}],"parallel_tool_calls":false,"reasoning":{"context":"all_turns"}}"#
            ),
            r#"{"model":"m","instructions":"I","input":[]}"#
        );
    }
}
