//! What a request offers as tools, wherever it says so.
//!
//! In full they stand in `tools`; in Lite in `additional_tools` items, of which a thread may hold several.
//!
//! **Invariant**: a tool's definition is never opened further than its type and names; it travels as raw text.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use super::body::Body;
use super::item::Item;
use super::object::{self, Object};
use super::{raw, wire};

/// One entry of a list of tools.
#[derive(Clone, Copy)]
pub(super) struct Tool<'a>(pub(super) &'a RawValue);

impl<'a> Tool<'a> {
    pub(super) fn kind(self) -> Option<Cow<'a, str>> {
        raw::field(self.0, "type").and_then(raw::text)
    }

    pub(super) fn name(self) -> Option<Cow<'a, str>> {
        raw::field(self.0, "name").and_then(raw::text)
    }

    pub(super) fn is_namespace(self) -> bool {
        self.kind().as_deref() == Some("namespace")
    }

    /// Whether this is the namespace that Lite wraps flat tools in.
    pub(super) fn is_wrapper(self) -> bool {
        self.is_namespace() && self.name().as_deref() == Some(wire::FUNCTIONS_NAMESPACE)
    }

    /// The tools inside a namespace.
    pub(super) fn inner(self) -> Vec<Self> {
        raw::field(self.0, "tools").map(tools_in).unwrap_or_default()
    }

    /// The tool's type, when it is one that the backend runs itself.
    pub(super) fn hosted(self) -> Option<Cow<'a, str>> {
        let kind = self.kind()?;
        let dated = |known: &str| {
            kind.strip_prefix(known)
                .is_some_and(|rest| rest.chars().all(|c| c == '_' || c.is_ascii_digit()))
        };
        if wire::HOSTED_TOOLS.iter().any(|known| dated(known)) {
            return Some(kind);
        }
        // A tool search is carried only when the client executes it.
        let by = raw::field(self.0, "execution").and_then(raw::text);
        (kind == "tool_search" && by.is_some_and(|by| by != "client")).then_some(kind)
    }

    /// What makes two definitions the same tool.
    fn identity(self) -> Option<String> {
        let kind = self.kind()?;
        if let Some(name) = self.name() {
            let space = if kind == "namespace" { "namespace" } else { "tool" };
            return Some(format!("{space} {name}"));
        }
        let label = raw::field(self.0, "server_label").and_then(raw::text).unwrap_or_default();
        Some(format!("type {kind} {label}"))
    }
}

fn tools_in(list: &RawValue) -> Vec<Tool<'_>> {
    raw::list(list).unwrap_or_default().into_iter().map(Tool).collect()
}

/// The tools in top-level `tools`.
pub(super) fn of_request(body: &Body) -> Vec<Tool<'_>> {
    body.get("tools").map(tools_in).unwrap_or_default()
}

/// The tools in one `additional_tools` item.
pub(super) fn of_item(item: &Item) -> Vec<Tool<'_>> {
    raw::field(item.raw(), "tools").map(tools_in).unwrap_or_default()
}

pub(super) fn is_additional(item: &Item) -> bool {
    item.kind() == wire::ADDITIONAL_TOOLS
}

/// All tools a request offers, in the order in which it says so.
pub(super) fn all(body: &Body) -> Vec<Tool<'_>> {
    let mut tools = of_request(body);
    tools.extend(body.items().iter().filter(|item| is_additional(item)).flat_map(of_item));
    tools
}

/// Whether there is anything to call. Lite's wrapper around nothing is nothing.
pub(super) fn offers_any(body: &Body) -> bool {
    all(body).into_iter().any(|tool| !tool.is_wrapper() || !tool.inner().is_empty())
}

/// Tools merged by name: the later definition wins at the earlier one's place. Two namespaces of one name are merged
/// inside in the same manner, since a later item adds to a thread's tools.
#[derive(Default)]
pub(super) struct Merged {
    tools: Vec<Box<RawValue>>,
    places: HashMap<String, usize>,
}

impl Merged {
    pub(super) fn add(&mut self, tool: Tool<'_>) {
        let Some(identity) = tool.identity() else {
            self.tools.push(tool.0.to_owned());
            return;
        };
        match self.places.get(&identity) {
            Some(&place) => self.tools[place] = succeed(Tool(&self.tools[place]), tool),
            None => {
                self.places.insert(identity, self.tools.len());
                self.tools.push(tool.0.to_owned());
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    pub(super) fn into_list(self) -> Box<RawValue> {
        object::list(self.tools.iter().map(|tool| &**tool))
    }
}

fn succeed(earlier: Tool<'_>, later: Tool<'_>) -> Box<RawValue> {
    let namespace = if later.is_namespace() { Object::of(later.0) } else { None };
    let Some(mut namespace) = namespace else { return later.0.to_owned() };
    let mut inner = Merged::default();
    earlier.inner().into_iter().chain(later.inner()).for_each(|tool| inner.add(tool));
    namespace.set("tools", inner.into_list());
    namespace.to_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(tools: &str) -> String {
        let list = RawValue::from_string(tools.to_owned()).expect("test JSON");
        let mut merged = Merged::default();
        tools_in(&list).into_iter().for_each(|tool| merged.add(tool));
        merged.into_list().get().to_owned()
    }

    #[test]
    fn the_later_definition_wins_at_the_earlier_place() {
        assert_eq!(
            merged(
                r#"[{"type":"function","name":"a","v":1},{"type":"custom","name":"b"},{"type":"function","name":"a","v":0.20}]"#
            ),
            r#"[{"type":"function","name":"a","v":0.20},{"type":"custom","name":"b"}]"#
        );
        assert_eq!(
            merged(
                r#"[{"type":"tool_search","v":1},{"type":"tool_search","v":2},{"type":"mcp","server_label":"x"},{"type":"mcp","server_label":"y"}]"#
            ),
            r#"[{"type":"tool_search","v":2},{"type":"mcp","server_label":"x"},{"type":"mcp","server_label":"y"}]"#
        );
        assert_eq!(merged(r#"[7,{},7]"#), "[7,{},7]", "what has no identity is never merged");
    }

    #[test]
    fn namespaces_of_one_name_are_merged_inside() {
        assert_eq!(
            merged(
                r#"[{"type":"namespace","name":"n","tools":[{"type":"function","name":"a","v":1},{"type":"function","name":"b"}]},
                    {"type":"function","name":"n"},
                    {"type":"namespace","name":"n","description":"new","tools":[{"type":"function","name":"a","v":2},{"type":"function","name":"c"}]}]"#
            ),
            r#"[{"type":"namespace","name":"n","description":"new","tools":[{"type":"function","name":"a","v":2},{"type":"function","name":"b"},{"type":"function","name":"c"}]},{"type":"function","name":"n"}]"#
        );
    }

    #[test]
    fn hosted_tools_are_known_with_their_dated_variants() {
        for (tool, hosted) in [
            (r#"{"type":"web_search"}"#, true),
            (r#"{"type":"web_search_preview_2025_03_11"}"#, true),
            (r#"{"type":"web_search_2025_08_26"}"#, true),
            (r#"{"type":"image_generation"}"#, true),
            (r#"{"type":"mcp","server_label":"x"}"#, true),
            (r#"{"type":"tool_search","execution":"server"}"#, true),
            (r#"{"type":"tool_search","execution":"client"}"#, false),
            (r#"{"type":"tool_search"}"#, false),
            (r#"{"type":"function","name":"web_search"}"#, false),
            (r#"{"type":"web_search_of_mine"}"#, false),
            (r#"{"type":"namespace","name":"mcp"}"#, false),
            (r#"{}"#, false),
        ] {
            let raw = RawValue::from_string(tool.to_owned()).expect("test JSON");
            assert_eq!(Tool(&raw).hosted().is_some(), hosted, "{tool}");
        }
    }
}
