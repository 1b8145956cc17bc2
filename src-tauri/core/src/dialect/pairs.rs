//! Calls and their outputs: each call has one, each output has its call, and the id that ties them is short enough.
//!
//! The backend refuses a history in which a call was interrupted, or from which a client cut a call and left its output; the
//! conversation would be lost, for its client sends the same history again. An interrupted call gets the output that Codex
//! gives one. An output without a call keeps its text, as something said before.
//!
//! **Invariant**: pairs that are whole keep their bytes and places, and the same history is always mended the same way.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::body::Body;
use super::item::Item;
use super::raw;

/// The most characters that the backend takes for a call id.
const LONGEST_ID: usize = 64;

/// What Codex says of a call that did not come to its end, so that models know it.
const ABORTED: &str = "aborted";

/// Calls of which it is known that the backend wants an output, and what that is.
const ANSWERED: [(&str, &str); 2] =
    [("function_call", "function_call_output"), ("custom_tool_call", "custom_tool_call_output")];

/// Items that stand for others, calls among them: who is missing cannot be told.
const STAND_INS: [&str; 3] = ["compaction", "compaction_summary", "item_reference"];

/// Mends all pairs; returns how many items it wrote or rewrote.
pub(super) fn mend(body: &mut Body) -> usize {
    shorten_ids(body) + answer_calls_and_free_outputs(body)
}

/// A call id that is too long is replaced by one that follows from it alone, on the call and on its output, in every turn.
fn shorten_ids(body: &mut Body) -> usize {
    let mut shortened = 0;
    for item in body.items_mut() {
        let Some(short) = item.call_id().and_then(short_id) else { continue };
        if let Some(mut object) = item.object() {
            object.set("call_id", text(&short));
            *item = Item::parse(object.to_raw());
            shortened += 1;
        }
    }
    shortened
}

/// The beginning, for people, and a hash of the whole, since names of one tool begin alike. None: short enough.
fn short_id(id: &str) -> Option<String> {
    if id.len() <= LONGEST_ID || id.chars().count() <= LONGEST_ID {
        return None;
    }
    let begin: String = id.chars().take(LONGEST_ID - 33).collect();
    Some(format!("{begin}_{:032x}", fnv(id.as_bytes())))
}

/// FNV-1a of 128 bits: the same in every process, which the standard library's hashes do not promise.
fn fnv(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

fn answer_calls_and_free_outputs(body: &mut Body) -> usize {
    let items = body.items();
    if items.iter().any(|item| STAND_INS.contains(&item.kind())) {
        return 0;
    }
    let answered = answered(items);
    let mut calls = HashSet::new();
    // Each item's place, and what is wrong with it.
    let mut faults = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let kind = item.kind();
        let is_output = ANSWERED.iter().any(|(_, output)| *output == kind);
        if is_output && !item.call_id().is_some_and(|id| calls.contains(id)) {
            faults.push((place, None));
        }
        if !item.is_call() {
            continue;
        }
        let Some(id) = item.call_id() else { continue };
        let first = calls.insert(id);
        let output = ANSWERED.iter().find(|(call, _)| *call == kind);
        if let Some((_, output)) = output.filter(|_| first && !answered.contains(id)) {
            faults.push((place, Some(output_of(output, id))));
        }
    }
    if faults.is_empty() {
        return 0;
    }
    let mended = faults.len();
    let mut faults = faults.into_iter().peekable();
    // Outputs are booked behind the last thing the model said with their call, as those of its siblings are.
    let mut due: Vec<Item> = Vec::new();
    let mut written = Vec::with_capacity(items.len() + mended);
    for (place, item) in items.iter().enumerate() {
        if !item.is_said_by_model() {
            written.append(&mut due);
        }
        match faults.next_if(|(at, _)| *at == place) {
            Some((_, None)) => written.extend(as_words(item)),
            Some((_, Some(output))) => {
                written.push(item.clone());
                due.push(output);
            }
            None => written.push(item.clone()),
        }
    }
    written.append(&mut due);
    *body.items_mut() = written;
    mended
}

/// The ids of the calls that an output follows.
fn answered(items: &[Item]) -> HashSet<&str> {
    let mut calls = HashSet::new();
    let mut answered = HashSet::new();
    for item in items {
        if item.is_call() {
            calls.extend(item.call_id());
        } else if item.is_output() {
            answered.extend(item.call_id().filter(|id| calls.contains(id)));
        }
    }
    answered
}

fn output_of(kind: &str, call_id: &str) -> Item {
    let id = text(call_id);
    let item = format!(r#"{{"type":"{kind}","call_id":{id},"output":"{ABORTED}"}}"#);
    Item::parse(raw::made(item))
}

/// What an output says, as a message of the assistant: a tool's words must not pass for the user's. None: it says nothing.
fn as_words(output: &Item) -> Option<Item> {
    let value = raw::field(output.raw(), "output")?;
    let said = match raw::text(value) {
        Some(said) => said.into_owned(),
        None => {
            let parts = raw::list(value)?;
            let texts =
                parts.iter().filter_map(|part| raw::field(part, "text")).filter_map(raw::text);
            texts.collect::<Vec<_>>().join("\n")
        }
    };
    if said.trim().is_empty() {
        return None;
    }
    let said = text(&format!("(Output of an earlier tool call that is no longer shown:) {said}"));
    let item = format!(
        r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":{said}}}]}}"#
    );
    Some(Item::parse(raw::made(item)))
}

fn text(text: &str) -> Box<RawValue> {
    serde_json::value::to_raw_value(text).expect("a string is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of the items; a second time nothing more.
    fn mended(items: &str) -> (String, usize) {
        let text = format!(r#"{{"model":"m","input":[{items}]}}"#);
        let mut body = Body::parse(text.as_bytes()).expect("a request");
        let count = mend(&mut body);
        let written = String::from_utf8(body.to_bytes()).expect("UTF-8");
        assert_eq!(mend(&mut body), 0, "{written}");
        let inner = written
            .strip_prefix(r#"{"model":"m","input":["#)
            .and_then(|text| text.strip_suffix("]}"));
        (inner.expect("the same shape").to_owned(), count)
    }

    const USER: &str = r#"{"role":"user","content":"go"}"#;

    fn call(id: &str) -> String {
        format!(
            r#"{{"type":"function_call","call_id":"{id}","name":"f","arguments":"{{}}","n":0.10}}"#
        )
    }

    fn output(id: &str, said: &str) -> String {
        format!(r#"{{"type":"function_call_output","call_id":"{id}","output":{said}}}"#)
    }

    fn joined(items: &[String]) -> String {
        items.join(",")
    }

    #[test]
    fn whole_pairs_keep_their_bytes() {
        let spaced =
            r#"{ "type" : "custom_tool_call" , "call_id" : "c" , "input" : "\u00e9" }"#.to_owned();
        let spaced_output =
            r#"{ "type":"custom_tool_call_output", "call_id":"c", "output":[] }"#.to_owned();
        let shell = r#"{"type":"local_shell_call","call_id":"s"}"#.to_owned();
        for items in [
            USER.to_owned(),
            joined(&[call("a"), call("b"), output("b", "\"2\""), output("a", "\"1\"")]),
            joined(&[spaced, spaced_output]),
            // Codex answers a shell call with the output of a function.
            joined(&[shell.clone(), output("s", "\"1\"")]),
            // Nobody owes these an output, or it is not known who does.
            shell,
            r#"{"type":"web_search_call","id":"ws_1","call_id":"w"},{"type":"brand_new_call","call_id":"x"}"#.to_owned(),
            // What stands for other items may stand for the call.
            joined(&[r#"{"type":"compaction","encrypted_content":"e"}"#.to_owned(), output("gone", "\"1\"")]),
            joined(&[r#"{"type":"item_reference","id":"fc_1"}"#.to_owned(), output("gone", "\"1\"")]),
        ] {
            assert_eq!(mended(&items), (items.clone(), 0));
        }
    }

    #[test]
    fn an_interrupted_call_gets_an_output_behind_what_was_said_with_it() {
        let custom =
            r#"{"type":"custom_tool_call","call_id":"c","name":"p","input":"x"}"#.to_owned();
        let custom_output =
            r#"{"type":"custom_tool_call_output","call_id":"c","output":"aborted"}"#.to_owned();
        let aborted = |id: &str| output(id, "\"aborted\"");
        let user = USER.to_owned();
        assert_eq!(
            mended(&joined(&[
                call("a"),
                custom.clone(),
                call("b"),
                output("b", "\"ok\""),
                user.clone()
            ])),
            (
                joined(&[
                    call("a"),
                    custom,
                    call("b"),
                    aborted("a"),
                    custom_output,
                    output("b", "\"ok\""),
                    user
                ]),
                2
            )
        );
        assert_eq!(mended(&call("a")), (joined(&[call("a"), aborted("a")]), 1), "at the end too");
    }

    #[test]
    fn an_output_without_its_call_keeps_its_words() {
        let words = |said: &str| {
            format!(
                r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"(Output of an earlier tool call that is no longer shown:) {said}"}}]}}"#
            )
        };
        let nameless = r#"{"type":"function_call_output","name":"create_thread","output":"do it"}"#;
        let parts = r#"[{"type":"input_text","text":"one"},{"type":"input_image","image_url":"data:x"},{"type":"input_text","text":"two"}]"#;
        for (given, sent) in [
            (output("gone", r#""an \"old\" text""#), words(r#"an \"old\" text"#)),
            (output("gone", parts), words(r"one\ntwo")),
            (nameless.to_owned(), words("do it")),
            (output("gone", "\"\""), String::new()),
            (output("gone", "[]"), String::new()),
        ] {
            let (user, comma) = (USER, if sent.is_empty() { "" } else { "," });
            assert_eq!(mended(&format!("{given},{user}")), (format!("{sent}{comma}{user}"), 1));
        }
        let early = joined(&[output("a", "\"x\""), call("a")]);
        assert!(
            mended(&early).0.starts_with(&words("x")),
            "an output before its call answers nothing"
        );
    }

    #[test]
    fn long_ids_are_shortened_alike_and_apart() {
        let (one, two) = (format!("{}1", "n".repeat(70)), format!("{}2", "n".repeat(70)));
        let (written, count) = mended(&joined(&[
            call(&one),
            call(&two),
            output(&one, "\"1\""),
            output(&two, "\"2\""),
        ]));
        let list: Vec<serde_json::Value> =
            serde_json::from_str(&format!("[{written}]")).expect("JSON");
        let ids: Vec<_> =
            list.iter().map(|item| item["call_id"].as_str().expect("an id")).collect();
        assert!(ids.iter().all(|id| id.chars().count() == LONGEST_ID), "{ids:?}");
        assert!(ids[0] == ids[2] && ids[1] == ids[3] && ids[0] != ids[1], "{ids:?}");
        assert_eq!(count, 4);
        // The same in every process and version, or a conversation would lose its cache.
        assert_eq!(short_id(&one).as_deref(), Some(KNOWN));
        assert_eq!(short_id(&"é".repeat(64)), None, "characters count, not bytes");
        assert!(short_id(&"é".repeat(65)).is_some_and(|id| id.chars().count() == LONGEST_ID));
    }

    const KNOWN: &str = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn_beca4456e63284da3b15b3b837b5a40c";

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
