//! The `functions` namespace: taken off calls for callers that never sent one, put back when those calls return.
//!
//! A caller that offered flat tools does not know a namespace and may refuse a call that carries one. The backend, though,
//! should see the history it wrote.
//!
//! **Invariant**: the namespace is put back only where Weir took it off; other calls of a history are not touched.

use serde_json::value::RawValue;

use super::body::Body;
use super::item::Item;
use super::object::{self, Object};
use super::{raw, tools, wire};

/// Whether the caller groups tools in namespaces, and so understands calls that name one.
pub(super) fn is_known_to_caller(body: &Body) -> bool {
    tools::all(body).into_iter().any(tools::Tool::is_namespace)
}

/// Puts the namespace back onto the calls that lost it.
pub(super) fn restore(body: &mut Body, stripped: &dyn Fn(&str) -> bool) {
    let lost = |item: &Item| {
        item.is_call() && item.namespace().is_none() && item.call_id().is_some_and(stripped)
    };
    if !body.items().iter().any(lost) {
        return;
    }
    for item in body.items_mut() {
        if !lost(item) {
            continue;
        }
        if let Some(mut call) = item.object() {
            call.set("namespace", name());
            *item = Item::parse(call.to_raw());
        }
    }
}

/// The item without the namespace, and its call id. None: the item does not carry it.
pub(super) fn strip(item: &RawValue) -> Option<(Box<RawValue>, Option<String>)> {
    let text = |name: &str| raw::field(item, name).and_then(raw::text);
    if text("namespace").as_deref() != Some(wire::FUNCTIONS_NAMESPACE) {
        return None;
    }
    let mut call = Object::of(item)?;
    call.remove("namespace");
    Some((call.to_raw(), text("call_id").map(|id| id.into_owned())))
}

/// A list of items without the namespace, and the call ids touched. None: nothing had to change.
pub(super) fn strip_all(items: &RawValue) -> Option<(Box<RawValue>, Vec<String>)> {
    let mut touched = Vec::new();
    let mut changed = false;
    let mut written: Vec<Box<RawValue>> = Vec::new();
    for item in raw::list(items)? {
        match strip(item) {
            Some((item, call_id)) => {
                changed = true;
                touched.extend(call_id);
                written.push(item);
            }
            None => written.push(item.to_owned()),
        }
    }
    changed.then(|| (object::list(written.iter().map(|item| &**item)), touched))
}

fn name() -> Box<RawValue> {
    serde_json::value::to_raw_value(wire::FUNCTIONS_NAMESPACE).expect("a string is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(items: &str) -> Body {
        Body::parse(format!(r#"{{"model":"m","input":{items}}}"#).as_bytes()).expect("a request")
    }

    #[test]
    fn put_back_only_where_taken_off() {
        let mut body = body(
            r#"[{"type":"function_call","call_id":"a","name":"f","arguments":"{ }"},
                {"type":"function_call","call_id":"b","name":"f"},
                {"type":"custom_tool_call","call_id":"c","name":"g","namespace":"own"},
                {"type":"function_call_output","call_id":"a"}]"#,
        );
        restore(&mut body, &|id| id == "a" || id == "c");
        let raw: Vec<_> = body.items().iter().map(|item| item.raw().get()).collect();
        assert_eq!(
            raw,
            [
                r#"{"type":"function_call","call_id":"a","name":"f","arguments":"{ }","namespace":"functions"}"#,
                r#"{"type":"function_call","call_id":"b","name":"f"}"#,
                r#"{"type":"custom_tool_call","call_id":"c","name":"g","namespace":"own"}"#,
                r#"{"type":"function_call_output","call_id":"a"}"#,
            ]
        );
    }

    #[test]
    fn taken_off_and_put_back_is_the_same_call() {
        let call = r#"{"type":"function_call","call_id":"a","n":0.10,"namespace":"functions"}"#;
        let raw = RawValue::from_string(call.to_owned()).expect("test JSON");
        let (stripped, id) = strip(&raw).expect("carries the namespace");
        assert_eq!(stripped.get(), r#"{"type":"function_call","call_id":"a","n":0.10}"#);
        assert_eq!(id.as_deref(), Some("a"));
        assert!(strip(&stripped).is_none());
        let mut body = body(&format!("[{}]", stripped.get()));
        restore(&mut body, &|_| true);
        assert_eq!(body.items()[0].raw().get(), call);
    }

    #[test]
    fn callers_know_namespaces_when_they_send_one() {
        for (tools, known) in [
            ("[]", false),
            (r#"[{"type":"function","name":"namespace"}]"#, false),
            (
                r#"[{"type":"function","name":"f"},{"type":"namespace","name":"collaboration","tools":[]}]"#,
                true,
            ),
        ] {
            let flat = format!(r#"{{"model":"m","tools":{tools}}}"#);
            let lite = format!(
                r#"{{"model":"m","input":[{{"type":"additional_tools","tools":{tools}}}]}}"#
            );
            for text in [flat, lite] {
                let body = Body::parse(text.as_bytes()).expect("a request");
                assert_eq!(is_known_to_caller(&body), known, "{text}");
            }
        }
    }
}
