//! Full into Lite: tools and instructions become the first items of the input.
//!
//! The backend's Lite lane demands one call at a time and the thoughts of all turns, takes no hosted tools, no forced choice
//! and no detail of images. Tools are sent flat, as callers know them; a request that a client already wrote in Lite is left
//! as it is but for what is demanded.
//!
//! **Invariant**: what Lite cannot carry is refused with the way out; it is never dropped and the dialect never changed.

use serde_json::value::RawValue;

use super::body::Body;
use super::item::Item;
use super::mode::ServingMode;
use super::normalise::force;
use super::object::{self, Object};
use super::refusal::{Refusal, word};
use super::{raw, tools, wire};

/// Rewrites a normalised request into Lite. `mode` is only needed to name the ways out.
///
/// Errors: hosted tools or a forced tool choice (`lite_cannot_carry`), `instructions` that are no string, `reasoning` that
/// is no object.
pub(super) fn to_lite(body: &mut Body, mode: ServingMode) -> Result<(), Refusal> {
    refuse_hosted_tools(body, mode)?;
    refuse_forced_choice(body, mode)?;
    lead_with_tools(body);
    follow_with_instructions(body)?;
    force(body, "parallel_tool_calls", false);
    keep_thoughts_of_all_turns(body)?;
    body.items_mut().iter_mut().for_each(drop_image_detail);
    Ok(())
}

fn refuse_hosted_tools(body: &Body, mode: ServingMode) -> Result<(), Refusal> {
    let nested = |tool: tools::Tool<'_>| {
        tool.inner().into_iter().find_map(|inner| inner.hosted().map(|kind| kind.into_owned()))
    };
    let hosted = tools::all(body)
        .into_iter()
        .find_map(|tool| tool.hosted().map(|kind| kind.into_owned()).or_else(|| nested(tool)));
    match hosted {
        Some(kind) => Err(cannot_carry(
            "tools",
            &format!("the tool `{kind}`, which the backend would run itself"),
            "remove the tool",
            body.model(),
            mode,
        )),
        None => Ok(()),
    }
}

fn refuse_forced_choice(body: &Body, mode: ServingMode) -> Result<(), Refusal> {
    match body.get("tool_choice") {
        Some(choice) if raw::is_object(choice) => Err(cannot_carry(
            "tool_choice",
            "a `tool_choice` that names tools",
            "set `tool_choice` to \"auto\"",
            body.model(),
            mode,
        )),
        _ => Ok(()),
    }
}

fn cannot_carry(param: &str, what: &str, change: &str, model: &str, mode: ServingMode) -> Refusal {
    let model = word(model, "MODEL");
    // Auto is a way out only for a user who chose Lite; otherwise auto is what led here.
    let auto = if mode == ServingMode::Lite {
        format!(" (or `weir mode {model} auto`)")
    } else {
        String::new()
    };
    Refusal::of_field(
        "lite_cannot_carry",
        param,
        format!(
            "This model is served in the Lite dialect, which cannot carry {what}; run `weir mode {model} full`{auto}, or {change}."
        ),
    )
}

/// Puts top-level tools into an item of their own at the very front. One is always there, even empty: the backend wants it.
fn lead_with_tools(body: &mut Body) {
    let tools =
        body.remove("tools").filter(|tools| raw::list(tools).is_some_and(|list| !list.is_empty()));
    let leads = body.items().first().is_some_and(tools::is_additional);
    if leads && tools.is_none() {
        return;
    }
    let list = tools.as_deref().map_or("[]", RawValue::get);
    let kind = wire::ADDITIONAL_TOOLS;
    let item = format!(r#"{{"type":"{kind}","role":"developer","tools":{list}}}"#);
    body.items_mut().insert(0, Item::parse(raw::made(item)));
}

/// Instructions become a developer message behind the tools, verbatim. Blank ones say nothing and go.
fn follow_with_instructions(body: &mut Body) -> Result<(), Refusal> {
    let Some(instructions) = body.remove("instructions").filter(|value| !raw::is_null(value))
    else {
        return Ok(());
    };
    if !instructions.get().starts_with('"') {
        let noun = raw::noun(&instructions);
        return Err(Refusal::of_field(
            "invalid_type",
            "instructions",
            format!("`instructions` must be a string, not {noun}."),
        ));
    }
    if raw::text(&instructions).is_some_and(|text| text.trim().is_empty()) {
        return Ok(());
    }
    let text = instructions.get();
    let item = format!(
        r#"{{"type":"message","role":"developer","content":[{{"type":"input_text","text":{text}}}]}}"#
    );
    body.items_mut().insert(1, Item::parse(raw::made(item)));
    Ok(())
}

fn keep_thoughts_of_all_turns(body: &mut Body) -> Result<(), Refusal> {
    let mut reasoning = match body.get("reasoning").filter(|value| !raw::is_null(value)) {
        None => Object::default(),
        Some(value) => Object::of(value).ok_or_else(|| {
            let noun = raw::noun(value);
            Refusal::of_field(
                "invalid_type",
                "reasoning",
                format!("`reasoning` must be an object, not {noun}."),
            )
        })?,
    };
    let set = |value: &RawValue| raw::text(value).as_deref() == Some(wire::LITE_REASONING_CONTEXT);
    if !reasoning.get("context").is_some_and(set) {
        reasoning.set("context", raw::made(format!("\"{}\"", wire::LITE_REASONING_CONTEXT)));
        body.set_raw("reasoning", reasoning.to_raw());
    }
    Ok(())
}

/// Images stand in a message's `content`, and in an output's `output` or its `content`. An item without any is not copied.
fn drop_image_detail(item: &mut Item) {
    let rewritten: Vec<_> = ["content", "output"]
        .into_iter()
        .filter_map(|field| Some((field, without_detail(raw::field(item.raw(), field)?)?)))
        .collect();
    if rewritten.is_empty() {
        return;
    }
    let Some(mut object) = item.object() else { return };
    for (field, value) in rewritten {
        object.set(field, value);
    }
    *item = Item::parse(object.to_raw());
}

/// A list of parts, or an object with one in `content`, without any image's detail. None: nothing had to change.
fn without_detail(value: &RawValue) -> Option<Box<RawValue>> {
    if raw::is_object(value) {
        let content =
            without_detail(raw::field(value, "content").filter(|content| raw::is_list(content))?)?;
        let mut object = Object::of(value)?;
        object.set("content", content);
        return Some(object.to_raw());
    }
    let has_detail = |part: &RawValue| {
        raw::field(part, "type").and_then(raw::text).as_deref() == Some("input_image")
            && raw::field(part, "detail").is_some()
    };
    let parts = raw::list(value)?;
    if !parts.iter().any(|part| has_detail(part)) {
        return None;
    }
    let parts: Vec<_> = parts
        .into_iter()
        .map(|part| match Object::of(part).filter(|_| has_detail(part)) {
            Some(mut image) => {
                image.remove("detail");
                image.to_raw()
            }
            None => part.to_owned(),
        })
        .collect();
    Some(object::list(parts.iter().map(|part| &**part)))
}

#[cfg(test)]
mod tests {
    use super::super::refusal::looks_retryable;
    use super::*;

    fn lite(text: &str) -> Result<String, Refusal> {
        let mut body = Body::parse(text.as_bytes()).expect("a request");
        to_lite(&mut body, ServingMode::Auto)?;
        Ok(String::from_utf8(body.to_bytes()).expect("UTF-8"))
    }

    const DEMANDED: &str = r#""parallel_tool_calls":false,"reasoning":{"context":"all_turns"}"#;
    const AT: &str = r#"{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f","x":0.10}]}"#;

    #[test]
    fn tools_and_instructions_lead_the_input() {
        let sent = lite(
            r#"{"model":"m","instructions":" Do \u00e9. ","parallel_tool_calls":true,"reasoning":{"effort":"high","n":1e400},"tools":[{"type":"function","name":"f","x":0.10}],"tool_choice":"auto","input":[{"role":"user","content":"x"}]}"#,
        );
        assert_eq!(
            sent.expect("fine"),
            format!(
                r#"{{"model":"m","parallel_tool_calls":false,"reasoning":{{"effort":"high","n":1e400,"context":"all_turns"}},"tool_choice":"auto","input":[{AT},{{"type":"message","role":"developer","content":[{{"type":"input_text","text":" Do \u00e9. "}}]}},{{"role":"user","content":"x"}}]}}"#
            )
        );
    }

    #[test]
    fn the_leading_item_is_there_even_without_tools() {
        for tools in ["", r#""tools":[],"#, r#""tools":null,"#] {
            let sent = lite(&format!(r#"{{"model":"m",{tools}"instructions":" ","input":[]}}"#))
                .expect("fine");
            assert_eq!(
                sent,
                format!(
                    r#"{{"model":"m","input":[{{"type":"additional_tools","role":"developer","tools":[]}}],{DEMANDED}}}"#
                )
            );
        }
        assert!(
            lite(r#"{"model":"m"}"#)
                .expect("fine")
                .contains(r#""input":[{"type":"additional_tools""#)
        );
    }

    #[test]
    fn a_request_in_lite_is_left_as_it_is() {
        let codex = r#"{"model":"m","input":[{"type":"additional_tools","id":"at_1","role":"developer","tools":[{"type":"namespace","name":"functions","description":"","tools":[{"type":"custom","name":"exec"}]},{"type":"tool_search","execution":"client"}]},{"type":"message","id":"msg_1","role":"developer","content":[{"type":"input_text","text":"You"}]}],"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"medium","context":"all_turns"},"unknown":0.10}"#;
        assert_eq!(lite(codex).expect("fine"), codex);
        // Forced fields are set even there.
        let sent =
            lite(&codex.replace("calls\":false", "calls\":true").replace("all_turns", "none"))
                .expect("fine");
        assert_eq!(sent, codex);
    }

    #[test]
    fn top_level_tools_of_a_lite_request_go_in_front() {
        let sent = lite(&format!(
            r#"{{"model":"m","tools":[{{"type":"custom","name":"g"}}],"instructions":"I","input":[{AT}],{DEMANDED}}}"#
        ));
        assert_eq!(
            sent.expect("fine"),
            format!(
                r#"{{"model":"m","input":[{{"type":"additional_tools","role":"developer","tools":[{{"type":"custom","name":"g"}}]}},{{"type":"message","role":"developer","content":[{{"type":"input_text","text":"I"}}]}},{AT}],{DEMANDED}}}"#
            )
        );
    }

    #[test]
    fn detail_of_images_goes_and_of_nothing_else() {
        for (given, sent) in [
            (
                r#"{"role":"user","detail":"keep","content":[{"type":"input_image","image_url":"data:","detail":"high"},{"type":"input_text","text":"t","detail":"keep"}]}"#,
                r#"{"role":"user","detail":"keep","content":[{"type":"input_image","image_url":"data:"},{"type":"input_text","text":"t","detail":"keep"}]}"#,
            ),
            (
                r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","detail":"low"}]}"#,
                r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_image"}]}"#,
            ),
            (
                r#"{"type":"custom_tool_call_output","call_id":"c","output":{"content":[{"type":"input_image","detail":"low"}],"detail":"keep"}}"#,
                r#"{"type":"custom_tool_call_output","call_id":"c","output":{"content":[{"type":"input_image"}],"detail":"keep"}}"#,
            ),
            (
                r#"{"type":"function_call_output", "call_id":"c","output":"{\"type\":\"input_image\",\"detail\":\"x\"}"}"#,
                r#"{"type":"function_call_output", "call_id":"c","output":"{\"type\":\"input_image\",\"detail\":\"x\"}"}"#,
            ),
        ] {
            let text = lite(&format!(r#"{{"model":"m","input":[{given}]}}"#)).expect("fine");
            assert!(text.contains(&format!(r#""tools":[]}},{sent}]"#)), "{text}");
        }
    }

    #[test]
    fn what_lite_cannot_carry_is_refused_with_both_ways_out() {
        for (field, param, names, change) in [
            (
                r#""tools":[{"type":"function","name":"f"},{"type":"web_search"}]"#,
                "tools",
                "`web_search`",
                "remove the tool",
            ),
            (
                r#""input":[{"type":"additional_tools","tools":[{"type":"image_generation"}]}]"#,
                "tools",
                "`image_generation`",
                "remove the tool",
            ),
            (
                r#""tools":[{"type":"namespace","name":"n","tools":[{"type":"file_search"}]}]"#,
                "tools",
                "`file_search`",
                "remove the tool",
            ),
            (
                r#""tool_choice":{"type":"function","name":"f"}"#,
                "tool_choice",
                "`tool_choice`",
                "\"auto\"",
            ),
        ] {
            for (mode, auto) in [(ServingMode::Lite, true), (ServingMode::Auto, false)] {
                let text = format!(r#"{{"model":"gpt-5.6-sol",{field}}}"#);
                let mut body = Body::parse(text.as_bytes()).expect("a request");
                let refusal = to_lite(&mut body, mode).expect_err(field);
                assert_eq!(
                    (refusal.status, refusal.code, refusal.param.as_deref()),
                    (400, "lite_cannot_carry", Some(param))
                );
                let message = &refusal.message;
                assert!(message.contains(names) && message.contains(change), "{message}");
                assert!(message.contains("`weir mode gpt-5.6-sol full`"), "{message}");
                assert_eq!(message.contains("`weir mode gpt-5.6-sol auto`"), auto, "{message}");
                assert!(!looks_retryable(&refusal.envelope().to_string()), "{message}");
            }
        }
    }

    #[test]
    fn odd_shapes_are_refused_in_words() {
        let refusal = lite(r#"{"model":"m","instructions":["x"]}"#).expect_err("a list");
        assert_eq!(refusal.message, "`instructions` must be a string, not a list.");
        let refusal = lite(r#"{"model":"m","reasoning":"high"}"#).expect_err("a string");
        assert_eq!(refusal.message, "`reasoning` must be an object, not a string.");
    }
}
