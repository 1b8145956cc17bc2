//! How OpenCode, Codex and SDKs return a history, and what a held socket may then leave out.
//!
//! Each side goes through `prepare` as it would on its way upstream; answers are as the backend writes them.

use serde_json::value::RawValue;

use super::super::body::Body;
use super::super::item::Item;
use super::super::mode::{ServingMode, resolve};
use super::super::prepare::prepare;
use super::*;

fn items(list: &str) -> Vec<Item> {
    let list: Vec<Box<RawValue>> =
        serde_json::from_str(&format!("[{list}]")).expect("a list of items");
    list.into_iter().map(Item::parse).collect()
}

fn request(text: &str, mode: ServingMode) -> Body {
    let body = Body::parse(text.as_bytes()).expect("a request");
    prepare(body, &resolve(mode, []), &|_| false).expect("can be sent").body
}

fn differs(index: usize, kind: &str, field: &str) -> Step {
    Step::Full(Why::PrefixDiffers { index, kind: kind.to_owned(), field: field.to_owned() })
}

/// OpenCode's request around its input.
fn opencode(input: &str) -> String {
    format!(
        r#"{{"model":"gpt-5.5","input":[{input}],"text":{{"verbosity":"low"}},"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"ses_1","reasoning":{{"effort":"medium","summary":"auto"}},"tools":[{{"type":"function","name":"bash","description":"Run.","parameters":{{"type":"object","properties":{{"command":{{"type":"string"}}}}}},"strict":false}}],"tool_choice":"auto","stream":true}}"#
    )
}

const ASKED: &str = r#"{"role":"developer","content":"You are a coding agent."},{"role":"user","content":[{"type":"input_text","text":"Look around."}]}"#;

/// What the backend answers to it: a thought in two parts, a word on what comes, two calls.
const ANSWERED: &str = r#"{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAA1","summary":[{"type":"summary_text","text":"**First**"},{"type":"summary_text","text":"**Then**"}],"content":[]},
    {"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Looking.","annotations":[],"logprobs":[]}]},
    {"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"bash","arguments":"{ \"command\": \"ls \\u002d\\u002dall\", \"timeout\" : 120000 }","internal_note":"x"},
    {"id":"fc_2","type":"function_call","status":"completed","call_id":"call_2","name":"bash","namespace":"functions","arguments":"{\"command\":\"pwd\"}"}"#;

/// The same, as OpenCode sends it back.
const RETURNED: [&str; 4] = [
    r#"{"type":"reasoning","encrypted_content":"gAAAA1","summary":[{"type":"summary_text","text":"**Then**"}]}"#,
    r#"{"role":"assistant","content":[{"type":"output_text","text":"Looking."}],"phase":"commentary"}"#,
    r#"{"type":"function_call","call_id":"call_1","name":"bash","arguments":"{\"command\":\"ls --all\",\"timeout\":120000}"}"#,
    r#"{"type":"function_call","call_id":"call_2","name":"bash","arguments":"{\"command\":\"pwd\"}"}"#,
];

const RESULTS: &str = r#"{"type":"function_call_output","call_id":"call_1","output":"a b"},{"type":"function_call_output","call_id":"call_2","output":"/"}"#;

/// The second request of OpenCode with one returned item written otherwise.
fn opencode_step(changed: Option<(usize, &str)>) -> Step {
    let mut returned = RETURNED;
    if let Some((place, item)) = changed {
        returned[place] = item;
    }
    let next = opencode(&format!("{ASKED},{},{RESULTS}", returned.join(",")));
    let sent = request(&opencode(ASKED), ServingMode::Full);
    let seen = Seen::new(&sent, items(ANSWERED), "resp_1".to_owned());
    step(Some(&seen), &request(&next, ServingMode::Full))
}

#[test]
fn opencode_goes_on() {
    assert_eq!(opencode_step(None), Step::Incremental { from: 6 });
}

#[test]
fn what_a_client_may_leave_out_or_write_anew() {
    for (place, item) in [
        // No summary, the whole of it, and the thought itself as text.
        (0, r#"{"type":"reasoning","encrypted_content":"gAAAA1","summary":[]}"#),
        (0, r#"{"type":"reasoning","encrypted_content":"gAAAA1"}"#),
        (
            0,
            r#"{"type":"reasoning","id":"rs_1","encrypted_content":"gAAAA1","content":null,"summary":[{"type":"summary_text","text":"**First**"},{"type":"summary_text","text":"**Then**"}]}"#,
        ),
        // An id that is not the backend's is taken off on the way.
        (
            1,
            r#"{"id":"item_7","role":"assistant","content":[{"type":"output_text","text":"Looking."}],"phase":"commentary"}"#,
        ),
        // A client that does not know `phase`, and one that writes all that it knows.
        (
            1,
            r#"{"type":"message","status":null,"role":"assistant","content":[{"text":"L\u006foking.","type":"output_text"}]}"#,
        ),
        (
            1,
            r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Looking.","annotations":[{"type":"url_citation"}]}]}"#,
        ),
        (
            2,
            r#"{"type":"function_call","id":"fc_1","status":"incomplete","call_id":"call_1","name":"bash","namespace":"functions","arguments":"{\"timeout\":120000,\"command\":\"ls --all\"}","internal_chat_message_metadata_passthrough":{"turn_id":"t"}}"#,
        ),
    ] {
        assert_eq!(opencode_step(Some((place, item))), Step::Incremental { from: 6 }, "{item}");
    }
}

#[test]
fn what_differs_is_named() {
    for (place, item, kind, field) in [
        (
            0,
            r#"{"type":"reasoning","encrypted_content":"gAAAA2","summary":[]}"#,
            "reasoning",
            "encrypted_content",
        ),
        (0, r#"{"type":"reasoning","summary":[]}"#, "reasoning", "encrypted_content"),
        (
            0,
            r#"{"type":"reasoning","encrypted_content":"gAAAA1","summary":[{"type":"summary_text","text":"**First**"}]}"#,
            "reasoning",
            "summary/1",
        ),
        (
            0,
            r#"{"type":"reasoning","encrypted_content":"gAAAA1","summary":[],"content":[{"type":"reasoning_text","text":"x"}]}"#,
            "reasoning",
            "content/0",
        ),
        (0, r#"{"type":"reasoning","id":"rs_2","encrypted_content":"gAAAA1"}"#, "reasoning", "id"),
        (
            1,
            r#"{"role":"assistant","content":[{"type":"output_text","text":"Looking"}]}"#,
            "message",
            "content/0/text",
        ),
        (
            1,
            r#"{"role":"assistant","content":[{"type":"output_text","text":"Looking."},{"type":"output_text","text":""}]}"#,
            "message",
            "content/1",
        ),
        (
            1,
            r#"{"role":"assistant","content":[{"type":"refusal","text":"Looking."}]}"#,
            "message",
            "content/0/type",
        ),
        (
            1,
            r#"{"role":"assistant","content":[{"type":"output_text","text":"Looking.","new":1}]}"#,
            "message",
            "content/0/new",
        ),
        (
            1,
            r#"{"role":"assistant","content":[{"type":"output_text","text":"Looking."}],"phase":"final_answer"}"#,
            "message",
            "phase",
        ),
        (
            1,
            r#"{"role":"user","content":[{"type":"output_text","text":"Looking."}]}"#,
            "message",
            "role",
        ),
        (
            1,
            r#"{"type":7,"role":"assistant","content":[{"type":"output_text","text":"Looking."}]}"#,
            "message",
            "type",
        ),
        // OpenCode's way of returning a call of a tool that it does not have.
        (
            2,
            r#"{"type":"function_call","call_id":"call_1","name":"invalid","arguments":"{}"}"#,
            "function_call",
            "name",
        ),
        (
            2,
            r#"{"type":"function_call","call_id":"call_1","name":"bash","arguments":"{\"command\":\"ls --all\",\"timeout\":120000.0}"}"#,
            "function_call",
            "arguments",
        ),
        (
            2,
            r#"{"type":"function_call","call_id":"call_1","name":"bash","arguments":"{\"command\":\"ls --all\",\"timeout\":120000"}"#,
            "function_call",
            "arguments",
        ),
        (
            2,
            r#"{"type":"function_call","call_id":"call_1","name":"bash","arguments":{"command":"ls --all","timeout":120000}}"#,
            "function_call",
            "arguments",
        ),
        (
            2,
            r#"{"type":"function_call","call_id":"call_3","name":"bash","arguments":"{}"}"#,
            "function_call",
            "call_id",
        ),
        (
            2,
            r#"{"type":"function_call","call_id":"call_1","name":"bash","namespace":"other","arguments":"{\"command\":\"ls --all\",\"timeout\":120000}"}"#,
            "function_call",
            "namespace",
        ),
        (
            2,
            r#"{"type":"function_call","call_id":"call_1","name":"bash","arguments":"{\"command\":\"ls --all\",\"timeout\":120000}","internal_note":"y"}"#,
            "function_call",
            "internal_note",
        ),
        (
            2,
            r#"{"type":"function_call","call_id":"call_1","name":"bash","arguments":"{\"command\":\"ls --all\",\"timeout\":120000}","added":1}"#,
            "function_call",
            "added",
        ),
        (2, r#"{"type":"what the user said","call_id":"call_1"}"#, "item", "type"),
    ] {
        assert_eq!(opencode_step(Some((place, item))), differs(place + 2, kind, field), "{item}");
    }
}

#[test]
fn a_thought_without_ciphertext_may_be_missing_but_not_changed() {
    let thought = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm"}],"encrypted_content":null}"#;
    let said = r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[]}]}"#;
    let back = r#"{"role":"assistant","content":[{"type":"output_text","text":"Hi"}]}"#;
    let user = r#"{"role":"user","content":"More."}"#;
    let other = r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"Hmm"}]}"#;
    let kept = r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm"}]}"#;
    let sealed = r#"{"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"g"}"#;
    for (answer, returned, expected) in [
        (format!("{thought},{said}"), format!("{back},{user}"), Step::Incremental { from: 3 }),
        (
            format!("{thought},{said}"),
            format!("{kept},{back},{user}"),
            Step::Incremental { from: 4 },
        ),
        (
            format!("{thought},{sealed},{thought}"),
            format!(r#"{{"type":"reasoning","encrypted_content":"g","summary":[]}},{user}"#),
            Step::Incremental { from: 3 },
        ),
        (
            format!("{},{said}", thought.replace("null", r#""""#)),
            format!("{back},{user}"),
            Step::Incremental { from: 3 },
        ),
        (format!("{said},{thought}"), back.to_owned(), Step::Full(Why::NothingNew)),
        (format!("{thought},{said}"), String::new(), Step::Full(Why::Shorter)),
        (
            format!("{said},{thought}"),
            format!("{back},{other},{user}"),
            differs(3, "reasoning", "summary/0/text"),
        ),
        (
            format!("{thought},{said}"),
            format!("{other},{back}"),
            differs(2, "reasoning", "summary/0/text"),
        ),
    ] {
        let sent = request(&opencode(ASKED), ServingMode::Full);
        let seen = Seen::new(&sent, items(&answer), "resp_1".to_owned());
        let comma = if returned.is_empty() { "" } else { "," };
        let next = opencode(&format!("{ASKED}{comma}{returned}"));
        assert_eq!(
            step(Some(&seen), &request(&next, ServingMode::Full)),
            expected,
            "{answer} {returned}"
        );
    }
    // A client that sent the thought and takes it back has changed its history.
    let sent = request(&opencode(&format!("{ASKED},{kept},{back}")), ServingMode::Full);
    let seen = Seen::new(&sent, Vec::new(), "resp_1".to_owned());
    let next = request(&opencode(&format!("{ASKED},{back},{user}")), ServingMode::Full);
    assert_eq!(step(Some(&seen), &next), differs(2, "message", "type"));
}

/// Codex's request in Lite around its history.
fn codex_lite(tools: &str, id: u8, history: &str) -> String {
    format!(
        r#"{{"model":"gpt-6-sol","stream":true,"input":[{{"type":"additional_tools","id":"at_{id}","role":"developer","tools":[{tools}]}},{{"type":"message","id":"msg_{id}","role":"developer","content":[{{"type":"input_text","text":"You are Codex."}}]}},{history}],"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{{"effort":"medium","context":"all_turns"}},"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"s","text":{{"verbosity":"low"}},"client_metadata":{{"turn_id":"{id}"}}}}"#
    )
}

const CODEX_TOOLS: &str = r#"{"type":"namespace","name":"functions","description":"","tools":[{"type":"custom","name":"exec","format":{"type":"grammar","syntax":"lark"}}]}"#;
const CODEX_ASKED: &str = r#"{"type":"message","id":"msg_u","role":"user","content":[{"type":"input_text","text":"Go."}],"internal_chat_message_metadata_passthrough":{"turn_id":"1"}}"#;
const CODEX_ANSWERED: [&str; 4] = [
    r#"{"type":"reasoning","id":"rs_1","summary":[],"content":null,"encrypted_content":"gAAAA"}"#,
    r#"{"type":"custom_tool_call","id":"ctc_1","status":"completed","call_id":"c1","name":"exec","namespace":"functions","input":"text(1 + 1)"}"#,
    r#"{"type":"function_call","id":"fc_1","call_id":"c2","name":"wait","arguments":"{\"cell\":\"a\"}","status":"completed"}"#,
    r#"{"type":"tool_search_call","id":"tsc_1","call_id":"c3","execution":"client","status":"completed","arguments":{"query":"x","limit":8}}"#,
];
const CODEX_RESULTS: &str = r#"{"type":"custom_tool_call_output","id":"ctco_1","call_id":"c1","output":[{"type":"input_text","text":"2"}]},{"type":"function_call_output","id":"fco_1","call_id":"c2","output":"ok"},{"type":"tool_search_output","id":"tso_1","call_id":"c3","execution":"client","status":"completed","tools":[]}"#;

#[test]
fn codex_goes_on_in_lite_with_its_ids() {
    let turn = |tools: &str, id: u8, answer: &str, more: &str| {
        let text = codex_lite(tools, id, &format!("{CODEX_ASKED},{answer},{CODEX_RESULTS}{more}"));
        request(&text, ServingMode::Lite)
    };
    let sent = request(&codex_lite(CODEX_TOOLS, 1, CODEX_ASKED), ServingMode::Lite);
    let answered = CODEX_ANSWERED.join(",");
    let seen = Seen::new(&sent, items(&answered), "resp_1".to_owned());
    let back = answered.replace(r#","content":null"#, "").replace(r#""status":"completed","#, "");

    // The prefix has other ids and the metadata another turn; nothing else has changed.
    let second = turn(CODEX_TOOLS, 2, &back, "");
    assert_eq!(step(Some(&seen), &second), Step::Incremental { from: 7 });

    // Its third request, after a last word of the second.
    let last = r#"{"type":"message","id":"msg_a","role":"assistant","status":"completed","phase":"final_answer","content":[{"type":"output_text","text":"Done.","annotations":[],"logprobs":[]}]}"#;
    let seen_then = Seen::new(&second, items(last), "resp_2".to_owned());
    let third = turn(
        CODEX_TOOLS,
        3,
        &back,
        r#",{"type":"message","id":"msg_a","role":"assistant","content":[{"type":"output_text","text":"Done."}],"phase":"final_answer"},{"type":"message","id":"msg_v","role":"user","content":[{"type":"input_text","text":"Thanks."}]}"#,
    );
    assert_eq!(step(Some(&seen_then), &third), Step::Incremental { from: 11 });

    for (next, expected) in [
        // Ids other than those of the prefix are compared.
        (back.replace("ctc_1", "ctc_2"), differs(4, "custom_tool_call", "id")),
        (back.replace("1 + 1", "1+1"), differs(4, "custom_tool_call", "input")),
        (back.replace("\"limit\":8", "\"limit\":9"), differs(6, "tool_search_call", "arguments")),
    ] {
        assert_eq!(step(Some(&seen), &turn(CODEX_TOOLS, 2, &next, "")), expected, "{next}");
    }
    let renamed = CODEX_TOOLS.replace("exec", "run");
    assert_eq!(
        step(Some(&seen), &turn(&renamed, 2, &back, "")),
        differs(0, "additional_tools", "tools/0/tools/0/name")
    );
    let rewritten = codex_lite(CODEX_TOOLS, 2, CODEX_ASKED).replace("You are", "You were");
    assert_eq!(
        step(Some(&seen), &request(&rewritten, ServingMode::Lite)),
        differs(1, "message", "content/0/text")
    );
}

#[test]
fn codex_goes_on_from_its_prewarm() {
    let text = |input: &str, generate: &str| {
        format!(
            r#"{{"model":"gpt-5.5","stream":true,"input":[{{"type":"message","id":"msg_0","role":"developer","content":[{{"type":"input_text","text":"You are Codex."}}]}}{input}],"tools":[{{"type":"function","name":"exec_command"}}],"tool_choice":"auto","parallel_tool_calls":true,"store":false{generate},"client_metadata":{{}}}}"#
        )
    };
    let sent = request(&text("", r#","generate":false"#), ServingMode::Full);
    let seen = Seen::new(&sent, Vec::new(), "resp_0".to_owned());
    let next = request(&text(&format!(",{CODEX_ASKED}"), ""), ServingMode::Full);
    assert_eq!(step(Some(&seen), &next), Step::Incremental { from: 1 });
    assert_eq!(step(Some(&seen), &sent), Step::Full(Why::NothingNew));
}

#[test]
fn kinds_are_compared_by_what_they_are() {
    let with = |item: &str| request(&opencode(&format!("{ASKED},{item}")), ServingMode::Full);
    for (seen, next, field) in [
        // A kind that nobody knows counts whole, but for what every client drops.
        (
            r#"{"type":"new_thing","id":"n_1","status":"done","x":{"a":[1,2]}}"#,
            r#"{"type":"new_thing","x":{ "a":[1,2] }}"#,
            None,
        ),
        (r#"{"type":"new_thing","x":1}"#, r#"{"type":"new_thing"}"#, Some("x")),
        (r#"{"type":"new_thing","x":null}"#, r#"{"type":"new_thing"}"#, Some("x")),
        (r#"{"type":"new_thing","id":"n_1"}"#, r#"{"type":"new_thing","id":"n_2"}"#, Some("id")),
        (r#"{"type":"new_thing"}"#, r#"{"type":"newer_thing"}"#, Some("type")),
        (r#"{"x":1}"#, r#"{"x":2}"#, Some("x")),
        (r#"{"type":7}"#, r#"{"type":"7"}"#, Some("type")),
        (
            r#"{"type":"item_reference","id":"a"}"#,
            r#"{"type":"item_reference","id":"b"}"#,
            Some("id"),
        ),
        (r#"{"type":"item_reference","id":"a"}"#, r#"{"type":"item_reference"}"#, Some("id")),
        (
            r#"{"type":"compaction","id":"cmp_1","encrypted_content":"g"}"#,
            r#"{"type":"compaction","encrypted_content":"g"}"#,
            None,
        ),
        (
            r#"{"type":"compaction","encrypted_content":"g"}"#,
            r#"{"type":"compaction","encrypted_content":"h"}"#,
            Some("encrypted_content"),
        ),
        (
            r#"{"type":"agent_message","author":"/root","recipient":"/root/a","content":[{"type":"encrypted_content","encrypted_content":"g"}]}"#,
            r#"{"type":"agent_message","author":"/root","recipient":"/root/a","content":[{"type":"encrypted_content","encrypted_content":"h"}]}"#,
            Some("content/0/encrypted_content"),
        ),
        (
            r#"{"type":"function_call_output","call_id":"c","output":"a"}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"b"}"#,
            Some("output"),
        ),
        (
            r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}]}"#,
            r#"{"type":"function_call_output","call_id":"c","output":[{"text":"a","type":"input_text"}],"status":"completed"}"#,
            None,
        ),
        (
            r#"{"type":"function_call_output","call_id":"c","output":"{}"}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"{ }"}"#,
            Some("output"),
        ),
        (
            r#"{"type":"custom_tool_call","call_id":"c","name":"n","input":"{\"a\":1}"}"#,
            r#"{"type":"custom_tool_call","call_id":"c","name":"n","input":"{ \"a\" : 1 }","namespace":"functions"}"#,
            None,
        ),
        // A phase that the backend never gave.
        (
            r#"{"role":"assistant","content":[]}"#,
            r#"{"role":"assistant","content":[],"phase":"commentary"}"#,
            Some("phase"),
        ),
        // Without ciphertext a thought is its summary, all of it.
        (
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}"#,
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"b"}]}"#,
            Some("summary/0/text"),
        ),
        // What the client itself wrote it may not take back.
        (r#"{"role":"user","content":"a","x":1}"#, r#"{"role":"user","content":"a"}"#, Some("x")),
        (
            r#"{"role":"user","content":"a","x":null}"#,
            r#"{"type":"message","role":"user","content":"a"}"#,
            None,
        ),
        (
            r#"{"role":"user","content":[{"type":"input_text","text":"a"}]}"#,
            r#"{"role":"user","content":"a"}"#,
            Some("content"),
        ),
        (
            r#"{"role":"user","content":[{"type":"input_image","image_url":"data:a"}]}"#,
            r#"{"role":"user","content":[{"type":"input_image","image_url":"data:b"}]}"#,
            Some("content/0/image_url"),
        ),
        (
            r#"{"role":"user","id":"msg_1","content":"a"}"#,
            r#"{"role":"user","id":"msg_2","content":"a"}"#,
            Some("id"),
        ),
        (
            r#"{"role":"system","id":"msg_1","content":"a"}"#,
            r#"{"role":"developer","id":"msg_2","content":"a"}"#,
            None,
        ),
    ] {
        // A call and its output come together, or the request would be mended.
        let (call, output) = match seen {
            seen if seen.contains("_call_output") => (FUNCTION_CALL, ""),
            seen if seen.contains("_call\"") => ("", CUSTOM_OUTPUT),
            _ => ("", ""),
        };
        let place = if call.is_empty() { 2 } else { 3 };
        let end = if output.is_empty() { place + 1 } else { place + 2 };
        let whole = |item: &str| format!("{call}{item}{output}");
        let before = Seen::new(&with(&whole(seen)), Vec::new(), "resp_1".to_owned());
        let more = format!(r#"{},{{"role":"user","content":"More."}}"#, whole(next));
        match (step(Some(&before), &with(&more)), field) {
            (Step::Incremental { from }, None) => assert_eq!(from, end, "{seen} {next}"),
            (Step::Full(Why::PrefixDiffers { index, field, .. }), Some(expected)) => {
                assert_eq!((index, field.as_str()), (place, expected), "{seen} {next}");
            }
            (step, _) => panic!("{step:?} for {seen} {next}"),
        }
    }
}

const FUNCTION_CALL: &str =
    r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},"#;
const CUSTOM_OUTPUT: &str = r#",{"type":"custom_tool_call_output","call_id":"c","output":"done"}"#;

#[test]
fn properties_must_be_the_same_but_for_those_of_one_request() {
    let with = |fields: &str| {
        let text = opencode(ASKED).replacen('{', &format!("{{{fields}"), 1);
        Body::parse(text.as_bytes()).expect("a request")
    };
    let seen = Seen::new(&with(r#""x":{"a":1,"b":2},"#), Vec::new(), "resp_1".to_owned());
    let goes_on = |fields: &str| {
        let mut next = with(fields);
        next.items_mut().extend(items(r#"{"role":"user","content":"More."}"#));
        match step(Some(&seen), &next) {
            Step::Incremental { from: 2 } => None,
            Step::Full(Why::PropertyChanged(field)) => Some(field),
            step => panic!("{step:?}"),
        }
    };
    for (fields, changed) in [
        (r#""x":{ "b":2, "a":1 },"#, None),
        (
            r#""x":{"a":1,"b":2},"client_metadata":{"turn_id":"2"},"stream_options":{},"access_programs":[],"previous_response_id":"resp_0","generate":true,"#,
            None,
        ),
        (r#""x":{"a":1,"b":2.0},"#, Some("x")),
        ("", Some("x")),
        (r#""x":{"a":1,"b":2},"service_tier":"priority","#, Some("service_tier")),
        (r#""x":{"a":1,"b":2},"what she said":1,"#, Some("?")),
    ] {
        assert_eq!(goes_on(fields).as_deref(), changed, "{fields}");
    }
    // An input that was absent, as in a prewarm, is an empty one.
    let bare = Body::parse(br#"{"model":"m"}"#).expect("a request");
    let begun = Seen::new(&bare, Vec::new(), "resp_1".to_owned());
    let next = Body::parse(br#"{"model":"m","input":"Go."}"#).expect("a request");
    assert_eq!(step(Some(&begun), &next), Step::Incremental { from: 0 });

    let mut next = with("");
    next.set_model("other");
    assert_eq!(step(Some(&seen), &next), Step::Full(Why::PropertyChanged("model".to_owned())));
}

#[test]
fn a_socket_that_completed_nothing_gets_everything() {
    let body = request(&opencode(ASKED), ServingMode::Full);
    assert_eq!(step(None, &body), Step::Full(Why::First));
    let seen = Seen::new(&body, items(ANSWERED), String::new());
    assert_eq!(step(Some(&seen), &body), Step::Full(Why::First));
    let seen = Seen::new(&body, items(ANSWERED), "resp_1".to_owned());
    assert_eq!(step(Some(&seen), &body), Step::Full(Why::Shorter));
}

#[test]
fn an_incremental_frame_keeps_all_but_the_input() {
    let text = r#"{"z":0.10,"model":"m","input":[{"role":"user","content":"a"},{"role":"user","content":"\u00e9"}],"tools":[ {"type":"function","n":1e400} ]}"#;
    let body = Body::parse(text.as_bytes()).expect("a request");
    for (from, input) in [(1, r#"{"role":"user","content":"\u00e9"}"#), (2, ""), (9, "")] {
        assert_eq!(
            String::from_utf8(incremental(&body, from, "resp_1").to_bytes()).expect("UTF-8"),
            format!(
                r#"{{"z":0.10,"model":"m","input":[{input}],"tools":[ {{"type":"function","n":1e400}} ],"previous_response_id":"resp_1"}}"#
            )
        );
    }
    assert_eq!(body.items().len(), 2);
}

#[test]
fn reasons_are_sentences_without_values() {
    let Step::Full(why) = opencode_step(Some((
        2,
        r#"{"type":"function_call","call_id":"call_1","name":"bash","arguments":"{\"command\":\"secret\"}"}"#,
    ))) else {
        panic!("differs");
    };
    assert_eq!(why.sentence(), "item 4 (function_call) differs in `arguments`");
    assert!(!format!("{why:?}").contains("secret"));
    assert_eq!(Why::PropertyChanged("tools".to_owned()).sentence(), "`tools` changed");

    let sent = request(&opencode(ASKED), ServingMode::Full);
    let seen = Seen::new(&sent, items(ANSWERED), "resp_1".to_owned());
    assert_eq!(format!("{seen:?}"), "Seen(2 items sent, 4 answered)");
    assert_eq!((seen.items(), seen.response_id()), (6, "resp_1"));
}
