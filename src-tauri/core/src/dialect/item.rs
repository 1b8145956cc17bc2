//! One element of `input`, or of a response's output: raw text and the few facts that are needed.
//!
//! **Invariant**: an item that nobody rewrote is sent on byte for byte; facts are read from it and never written back.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::object::Object;
use super::{raw, wire};

/// Cheap to clone: a turn that moves to another account keeps its history without copying it.
#[derive(Clone)]
pub struct Item(Arc<Inner>);

struct Inner {
    raw: Box<RawValue>,
    facts: Facts,
}

#[derive(Default)]
struct Facts {
    kind: Option<String>,
    role: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    execution: Option<String>,
}

impl Item {
    /// Never fails: what is no object, or says nothing, is an item without facts.
    pub fn parse(raw: Box<RawValue>) -> Self {
        let mut facts = Facts::default();
        // An item that is no object leaves the facts empty, which is all there is to know about it.
        let _ = raw::fields(raw.get(), |key, value| {
            let place = match &*raw::name(key) {
                "type" => &mut facts.kind,
                "role" => &mut facts.role,
                "call_id" => &mut facts.call_id,
                "name" => &mut facts.name,
                "namespace" => &mut facts.namespace,
                "execution" => &mut facts.execution,
                _ => return,
            };
            *place = raw::text(value).map(|text| text.into_owned());
        });
        Self(Arc::new(Inner { raw, facts }))
    }

    /// The item as it came, or as it was last rewritten.
    pub fn raw(&self) -> &RawValue {
        &self.0.raw
    }

    /// `type`; "message" when that is absent and there is a role; else empty.
    pub fn kind(&self) -> &str {
        let facts = &self.0.facts;
        match &facts.kind {
            Some(kind) => kind,
            None if facts.role.is_some() => "message",
            None => "",
        }
    }

    /// What ties a call to its output. An empty one ties nothing and counts as absent.
    pub fn call_id(&self) -> Option<&str> {
        self.0.facts.call_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Whether this is a call that the client (or Weir for it) runs and answers with an output.
    pub fn is_call(&self) -> bool {
        self.call_id().is_some()
            && self.kind().ends_with("_call")
            && !wire::HOSTED_CALLS.contains(&self.kind())
            && self.0.facts.execution.as_deref().is_none_or(|by| by == "client")
    }

    /// Whether this is the result of a call.
    pub fn is_output(&self) -> bool {
        self.call_id().is_some() && self.kind().ends_with("_output")
    }

    /// The tool that a call names.
    pub fn name(&self) -> Option<&str> {
        self.0.facts.name.as_deref()
    }

    /// The namespace that a call names its tool in.
    pub fn namespace(&self) -> Option<&str> {
        self.0.facts.namespace.as_deref()
    }

    /// Who speaks, in a message.
    pub fn role(&self) -> Option<&str> {
        self.0.facts.role.as_deref()
    }

    /// Whether the model wrote this: an answer, a thought, a call (hosted ones too).
    pub fn is_said_by_model(&self) -> bool {
        self.role() == Some("assistant")
            || self.kind() == "reasoning"
            || self.kind().ends_with("_call")
    }

    /// The item with some of its fields changed, the rest as it is. None when it is no object.
    pub(super) fn object(&self) -> Option<Object> {
        Object::of(self.raw())
    }
}

impl fmt::Debug for Item {
    /// Prints no contents: prompts are private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({}, {} bytes)", self.kind(), self.raw().get().len())
    }
}

/// Call ids whose outputs arrive with this request: the outputs at the tail of the input, after the last thing the model
/// said. What a user or another agent said among them does not matter.
pub fn fresh_outputs(items: &[Item]) -> Vec<&str> {
    let tail = items.iter().rposition(Item::is_said_by_model).map_or(0, |last| last + 1);
    items[tail..].iter().filter(|item| item.is_output()).filter_map(Item::call_id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> Item {
        Item::parse(RawValue::from_string(text.to_owned()).expect("test JSON"))
    }

    #[test]
    fn kinds() {
        for (text, kind) in [
            (r#"{"type":"function_call"}"#, "function_call"),
            (r#"{"role":"user","content":"x"}"#, "message"),
            (r#"{"content":"x"}"#, ""),
            (r#"{"type":7,"role":"user"}"#, "message"),
            (r#"{"type":"a","type":"b"}"#, "b"),
            ("[]", ""),
        ] {
            assert_eq!(item(text).kind(), kind, "{text}");
        }
    }

    #[test]
    fn calls_and_outputs() {
        for (text, call, output) in [
            (r#"{"type":"function_call","call_id":"c"}"#, true, false),
            (r#"{"type":"custom_tool_call","call_id":"c"}"#, true, false),
            (r#"{"type":"local_shell_call","call_id":"c"}"#, true, false),
            (r#"{"type":"computer_call","call_id":"c"}"#, true, false),
            (r#"{"type":"unheard_of_call","call_id":"c"}"#, true, false),
            (r#"{"type":"tool_search_call","call_id":"c","execution":"client"}"#, true, false),
            (r#"{"type":"tool_search_call","call_id":"c"}"#, true, false),
            (r#"{"type":"tool_search_call","call_id":"c","execution":"server"}"#, false, false),
            (r#"{"type":"tool_search_call","call_id":null,"execution":"client"}"#, false, false),
            (r#"{"type":"web_search_call","call_id":"c"}"#, false, false),
            (r#"{"type":"web_search_call","id":"ws_1"}"#, false, false),
            (r#"{"type":"function_call"}"#, false, false),
            (r#"{"type":"function_call","call_id":""}"#, false, false),
            (r#"{"type":"function_call_output","call_id":"c"}"#, false, true),
            (r#"{"type":"custom_tool_call_output","call_id":"c"}"#, false, true),
            (r#"{"type":"unheard_of_output","call_id":"c"}"#, false, true),
            (r#"{"type":"function_call_output"}"#, false, false),
            (r#"{"type":"message","role":"user"}"#, false, false),
        ] {
            assert_eq!((item(text).is_call(), item(text).is_output()), (call, output), "{text}");
        }
    }

    #[test]
    fn facts_survive_an_undecodable_neighbour() {
        let item = item(
            r#"{"name":"\ud800","type":"function_call","call_id":"c","namespace":"functions"}"#,
        );
        assert_eq!(
            (item.name(), item.call_id(), item.namespace()),
            (None, Some("c"), Some("functions"))
        );
    }

    #[test]
    fn fresh_outputs_are_those_after_the_last_word_of_the_model() {
        let call = |id: &str| item(&format!(r#"{{"type":"function_call","call_id":"{id}"}}"#));
        let output =
            |id: &str| item(&format!(r#"{{"type":"function_call_output","call_id":"{id}"}}"#));
        let user = || item(r#"{"role":"user","content":[]}"#);
        let assistant = || item(r#"{"role":"assistant","content":[]}"#);
        let hosted = || item(r#"{"type":"web_search_call","id":"ws_1"}"#);

        for (items, expected) in [
            (vec![], vec![]),
            (vec![user()], vec![]),
            (vec![user(), call("a"), call("b"), output("a"), output("b")], vec!["a", "b"]),
            (vec![call("a"), output("a"), call("b"), output("b")], vec!["b"]),
            (vec![call("a"), output("a"), user()], vec!["a"]),
            (vec![call("a"), output("a"), assistant(), user()], vec![]),
            (vec![call("a"), output("a"), hosted()], vec![]),
            // With `previous_response_id` the outputs may be all there is.
            (vec![output("a"), output("b")], vec!["a", "b"]),
        ] {
            assert_eq!(fresh_outputs(&items), expected);
        }
    }

    #[test]
    fn debug_keeps_the_contents_private() {
        assert_eq!(
            format!("{:?}", item(r#"{"role":"user","content":"secret"}"#)),
            "Item(message, 34 bytes)"
        );
    }
}
