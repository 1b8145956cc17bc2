//! What the backend demands of every request, in both dialects.
//!
//! It stores nothing, only streams, refuses parameters of the public API by name, knows no `system` role and wants item ids
//! of its own making. Each rule is one function, and each touches a field only when it must.
//!
//! **Invariant**: a request that already satisfies the backend keeps the bytes of every field.

use serde_json::value::RawValue;

use super::body::Body;
use super::item::Item;
use super::refusal::Refusal;
use super::{object, raw, tools, wire};

/// Applies all rules that hold in both dialects.
///
/// Errors: what cannot be said upstream and must not be dropped in silence: `n` above one, an `include` that is no list, a
/// forced tool choice without tools.
pub(super) fn normalise(body: &mut Body) -> Result<(), Refusal> {
    refuse_several_choices(body)?;
    body.retain(|name| !wire::REJECTED_PARAMETERS.contains(&name));
    refuse_continuation(body)?;
    force(body, "store", false);
    force(body, "stream", true);
    include_reasoning(body)?;
    drop_choice_without_tools(body)?;
    for item in body.items_mut() {
        name_developer(item);
        drop_foreign_id(item);
    }
    Ok(())
}

/// Sets a boolean field unless it has that value already.
pub(super) fn force(body: &mut Body, field: &str, value: bool) {
    if body.flag(field) != Some(value) {
        body.set(field, &value);
    }
}

/// One answer passed off as several would be a lie.
fn refuse_several_choices(body: &Body) -> Result<(), Refusal> {
    match body.get("n").and_then(raw::integer) {
        Some(n) if n > 1 => Err(Refusal::of_field(
            "unsupported_value",
            "n",
            "The backend gives one answer per request; remove `n` and send the request once per answer.",
        )),
        _ => Ok(()),
    }
}

/// The backend keeps nothing between plain HTTP requests, so there is nothing that an id could continue: leaving it out in
/// silence would answer without the history that it stands for. The code is the one at which clients send it whole.
fn refuse_continuation(body: &mut Body) -> Result<(), Refusal> {
    match body.remove("previous_response_id") {
        Some(id) if id.get() != "null" => Err(Refusal::of_field(
            wire::PREVIOUS_NOT_FOUND,
            "previous_response_id",
            "The backend keeps no responses; remove `previous_response_id` and send the whole conversation in `input`.",
        )),
        _ => Ok(()),
    }
}

/// `include` gets the model's encrypted thoughts exactly once; other entries stay.
fn include_reasoning(body: &mut Body) -> Result<(), Refusal> {
    let wanted = |entry: &RawValue| raw::text(entry).as_deref() == Some(wire::ENCRYPTED_REASONING);
    let Some(include) = body.get("include").filter(|include| !raw::is_null(include)) else {
        body.set("include", &[wire::ENCRYPTED_REASONING]);
        return Ok(());
    };
    let Some(mut entries) = raw::list(include) else {
        return Err(Refusal::of_field(
            "invalid_type",
            "include",
            format!("`include` must be a list of strings, not {}.", raw::noun(include)),
        ));
    };
    let times = entries.iter().filter(|entry| wanted(entry)).count();
    if times == 1 {
        return Ok(());
    }
    let mut first = true;
    entries.retain(|entry| !wanted(entry) || std::mem::take(&mut first));
    let missing =
        serde_json::value::to_raw_value(wire::ENCRYPTED_REASONING).expect("a string is JSON");
    if times == 0 {
        entries.push(&missing);
    }
    let list = object::list(entries);
    body.set_raw("include", list);
    Ok(())
}

/// The backend refuses a tool choice where there is nothing to choose from.
fn drop_choice_without_tools(body: &mut Body) -> Result<(), Refusal> {
    if tools::offers_any(body) {
        return Ok(());
    }
    let forced = body.get("tool_choice").is_some_and(|choice| {
        raw::is_object(choice) || raw::text(choice).as_deref() == Some("required")
    });
    if forced {
        return Err(Refusal::of_field(
            "unsupported_value",
            "tool_choice",
            "`tool_choice` forces a tool call but the request offers no tools; add `tools` or remove `tool_choice`.",
        ));
    }
    body.remove("tools");
    body.remove("tool_choice");
    Ok(())
}

fn name_developer(item: &mut Item) {
    if item.kind() != "message" || item.role() != Some("system") {
        return;
    }
    if let Some(mut message) = item.object() {
        message.set("role", raw::made("\"developer\"".to_owned()));
        *item = Item::parse(message.to_raw());
    }
}

/// Ids are optional; one that another program made up is refused, and content and call id do not depend on it.
fn drop_foreign_id(item: &mut Item) {
    let Some((_, prefix)) = wire::ITEM_ID_PREFIXES.iter().find(|(kind, _)| *kind == item.kind())
    else {
        return;
    };
    let Some(id) = raw::field(item.raw(), "id") else { return };
    if raw::text(id).is_some_and(|id| id.starts_with(prefix)) {
        return;
    }
    if let Some(mut object) = item.object() {
        object.remove("id");
        *item = Item::parse(object.to_raw());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(text: &str) -> Result<String, Refusal> {
        let mut body = Body::parse(text.as_bytes()).expect("a request");
        normalise(&mut body)?;
        Ok(String::from_utf8(body.to_bytes()).expect("UTF-8"))
    }

    const DONE: &str = r#""store":false,"stream":true,"include":["reasoning.encrypted_content"]"#;

    #[test]
    fn what_needs_nothing_keeps_its_bytes() {
        let text = format!(
            r#"{{"model":"m",{DONE},"n_":1e400,"service_tier":"fast","text":{{ "verbosity" : "low" }},"prompt_cache_key":"\u00e9","tools":[{{"type":"function","name":"f","temperature":0.10}}],"tool_choice":"auto","parallel_tool_calls":true,"input":[{{"type":"message","role":"user","id":"msg_1","content":[{{"type":"input_text","text":"x"}}]}},{{"type":"brand_new","id":"item_1","role":"system"}}],"reasoning":{{"context":"x"}}}}"#
        );
        assert_eq!(normalised(&text).expect("fine"), text);
    }

    #[test]
    fn store_and_stream_are_set_in_place() {
        for (given, sent) in [
            (r#""store":true,"stream":false"#, r#""store":false,"stream":true"#),
            (r#""store":null,"stream":null"#, r#""store":false,"stream":true"#),
            (r#""store":"false","stream":true"#, r#""store":false,"stream":true"#),
        ] {
            let text = normalised(&format!(r#"{{{given},"model":"m"}}"#)).expect("fine");
            assert!(text.starts_with(&format!("{{{sent},\"model\"")), "{text}");
        }
        assert_eq!(
            normalised(r#"{"model":"m"}"#).expect("fine"),
            format!(r#"{{"model":"m",{DONE}}}"#)
        );
    }

    #[test]
    fn rejected_parameters_go_and_only_at_the_top() {
        let fields: Vec<_> =
            wire::REJECTED_PARAMETERS.iter().map(|name| format!("\"{name}\":1")).collect();
        let text = format!(
            r#"{{"model":"m",{},"previous_response_id":null,{DONE},"text":{{"temperature":1}}}}"#,
            fields.join(",")
        );
        assert_eq!(
            normalised(&text).expect("fine"),
            format!(r#"{{"model":"m",{DONE},"text":{{"temperature":1}}}}"#)
        );
    }

    #[test]
    fn a_continuation_that_nobody_keeps_is_refused_and_not_forgotten() {
        let refusal =
            normalised(r#"{"model":"m","previous_response_id":"resp_1"}"#).expect_err("no history");
        assert_eq!(refusal.param.as_deref(), Some("previous_response_id"));
        assert_eq!((refusal.status, refusal.code), (400, "previous_response_not_found"));
    }

    #[test]
    fn several_answers_are_refused() {
        assert_eq!(
            normalised(r#"{"model":"m","n":2}"#).expect_err("two").param.as_deref(),
            Some("n")
        );
        assert!(normalised(r#"{"model":"m","n":1}"#).is_ok());
    }

    #[test]
    fn include_has_the_thoughts_exactly_once() {
        let e = wire::ENCRYPTED_REASONING;
        for (given, sent) in [
            ("null".to_owned(), format!(r#"["{e}"]"#)),
            ("[]".to_owned(), format!(r#"["{e}"]"#)),
            (r#"["other"]"#.to_owned(), format!(r#"["other","{e}"]"#)),
            (format!(r#"[ "{e}" , "other" ]"#), format!(r#"[ "{e}" , "other" ]"#)),
            (
                format!(r#"["a","{e}","b","reasoning.encrypted\u005fcontent"]"#),
                format!(r#"["a","{e}","b"]"#),
            ),
        ] {
            let text = normalised(&format!(r#"{{"model":"m","include":{given}}}"#)).expect("fine");
            assert!(text.contains(&format!(r#""include":{sent},"store""#)), "{text}");
        }
        let refusal = normalised(r#"{"model":"m","include":"x"}"#).expect_err("a string");
        assert_eq!(refusal.message, "`include` must be a list of strings, not a string.");
    }

    #[test]
    fn a_choice_without_tools_goes_or_is_refused() {
        let wrapper = r#""tools":[{"type":"namespace","name":"functions","tools":[]}],"#;
        for tools in ["", r#""tools":[],"#, r#""tools":null,"#, wrapper] {
            let request =
                |choice: &str| format!(r#"{{"model":"m",{tools}"tool_choice":{choice},{DONE}}}"#);
            for choice in [r#""auto""#, r#""none""#, "null"] {
                assert_eq!(
                    normalised(&request(choice)).expect("fine"),
                    format!(r#"{{"model":"m",{DONE}}}"#)
                );
            }
            for choice in [r#""required""#, r#"{"type":"function","name":"f"}"#] {
                let refusal = normalised(&request(choice)).expect_err(choice);
                assert_eq!(refusal.param.as_deref(), Some("tool_choice"));
            }
        }
        let lite = format!(
            r#"{{"model":"m","input":[{{"type":"additional_tools","tools":[{{"name":"f"}}]}}],"tool_choice":"required",{DONE}}}"#
        );
        assert_eq!(normalised(&lite).expect("has tools"), lite);
    }

    #[test]
    fn system_becomes_developer_and_foreign_ids_go() {
        for (given, sent) in [
            (
                r#"{"type":"message","role":"system","content":"S"}"#,
                r#"{"type":"message","role":"developer","content":"S"}"#,
            ),
            (r#"{"role":"system","content":[]}"#, r#"{"role":"developer","content":[]}"#),
            (
                r#"{"type":"message","id":"item_1","role":"assistant"}"#,
                r#"{"type":"message","role":"assistant"}"#,
            ),
            (r#"{"role":"assistant","id":"019f629b-43ee"}"#, r#"{"role":"assistant"}"#),
            (
                r#"{"type":"message","id":null,"role":"user"}"#,
                r#"{"type":"message","role":"user"}"#,
            ),
            (
                r#"{"type":"message","id":"msg_1","role":"user"}"#,
                r#"{"type":"message","id":"msg_1","role":"user"}"#,
            ),
            (r#"{"type":"reasoning","id":"item_1","n":0.10}"#, r#"{"type":"reasoning","n":0.10}"#),
            (
                r#"{"type":"function_call","call_id":"item_1","id":"msg_1"}"#,
                r#"{"type":"function_call","call_id":"item_1"}"#,
            ),
            (
                r#"{"type":"function_call","call_id":"c","id":"fc_1"}"#,
                r#"{"type":"function_call","call_id":"c","id":"fc_1"}"#,
            ),
            (
                r#"{"type":"item_reference","id":"item_1"}"#,
                r#"{"type":"item_reference","id":"item_1"}"#,
            ),
            (
                r#"{"type":"web_search_call","id":"odd"}"#,
                r#"{"type":"web_search_call","id":"odd"}"#,
            ),
        ] {
            let text = normalised(&format!(r#"{{"model":"m","input":[{given}]}}"#)).expect("fine");
            assert!(text.starts_with(&format!(r#"{{"model":"m","input":[{sent}]"#)), "{text}");
        }
    }
}
