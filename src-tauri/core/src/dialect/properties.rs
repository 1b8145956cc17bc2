//! What must hold for any request: both rewrites are idempotent, undo each other, and leave strangers alone.
//!
//! **Invariant**: the generators know the protocol only as far as the rewrites do; everything else they make up.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;

use super::body::Body;
use super::mode::{ServingMode, resolve};
use super::prepare::prepare;

/// Raw values that a round trip through numbers, maps or decoded strings would change.
fn stranger() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("1e400".to_owned()),
        Just("0.10".to_owned()),
        Just("-0".to_owned()),
        Just("18446744073709551616".to_owned()),
        Just(r#""\u00e9\/\ud83d\ude00""#.to_owned()),
        Just(r#""\ud800""#.to_owned()),
        Just(r#"{"k":1,"k":2.50,"k":{"k":1,"k":1}}"#.to_owned()),
        Just("[ [ ] , { } ]".to_owned()),
        "[a-z]{0,6}".prop_map(|text| format!("\"{text}\"")),
    ]
}

fn tool() -> impl Strategy<Value = (&'static str, String)> {
    prop_oneof![
        3 => stranger().prop_map(|x| ("function", format!(r#""strict":false,"parameters":{x}"#))),
        1 => stranger().prop_map(|x| ("custom", format!(r#""format":{x}"#))),
        1 => stranger().prop_map(|x| ("namespace", format!(r#""description":{x},"tools":[{{"type":"function","name":"inner"}}]"#))),
        1 => stranger().prop_map(|x| ("unheard_of", format!(r#""x":{x}"#))),
    ]
}

/// Tools with distinct names: two of one name in one list mean nothing in either dialect.
fn tools(least: usize, prefix: &'static str) -> impl Strategy<Value = String> {
    vec(tool(), least..4).prop_map(move |tools| {
        let tools: Vec<_> = tools
            .iter()
            .enumerate()
            .map(|(n, (kind, rest))| format!(r#"{{"type":"{kind}","name":"{prefix}{n}",{rest}}}"#))
            .collect();
        format!("[{}]", tools.join(","))
    })
}

fn lite_tools() -> impl Strategy<Value = String> {
    (tools(0, "late"), any::<bool>()).prop_map(|(tools, wrapped)| {
        let tools = if wrapped {
            format!(
                r#"[{{"type":"namespace","name":"functions","description":"","tools":{tools}}}]"#
            )
        } else {
            tools
        };
        format!(r#"{{"type":"additional_tools","id":"at_1","role":"developer","tools":{tools}}}"#)
    })
}

fn item() -> impl Strategy<Value = String> {
    prop_oneof![
        stranger().prop_map(|x| format!(
            r#"{{"role":"user","content":[{{"type":"input_text","text":"t"}}],"x":{x}}}"#
        )),
        stranger().prop_map(|x| format!(
            r#"{{"type":"brand_new","id":"item_1","x":{x},"role":"system"}}"#
        )),
        stranger().prop_map(|x| format!(
            r#"{{"type":"function_call","call_id":"c","name":"f","arguments":"{{ }}","x":{x}}}"#
        )),
        stranger().prop_map(|x| format!(
            r#"{{"type":"function_call_output","call_id":"c","output":"o","x":{x}}}"#
        )),
        stranger().prop_map(|x| format!(
            r#"{{"type":"reasoning","id":"item_1","encrypted_content":{x}}}"#
        )),
        Just(r#"{"role":"developer","content":[{"type":"input_text","text":"D"}]}"#.to_owned()),
        Just(r#"{"type":"message","id":"msg_1","role":"developer","content":"D"}"#.to_owned()),
        Just(r#"{"role":"system","content":[{"type":"input_text","text":"S"}]}"#.to_owned()),
    ]
}

fn image() -> impl Strategy<Value = String> {
    Just(
        r#"{"role":"user","content":[{"type":"input_image","image_url":"data:","detail":"high"}]}"#
            .to_owned(),
    )
}

/// A request in full or in Lite, or in something between that no client should write.
fn request(item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let head = (
        option::of(stranger()),
        option::of(prop_oneof![Just("\"Do.\""), Just("\" \""), Just("null")]),
    );
    let switches = (
        option::of(prop_oneof![Just("true"), Just("false")]),
        option::of(prop_oneof![
            Just(r#"{"effort":"high"}"#),
            Just(r#"{"effort":"high","context":"all_turns"}"#),
            Just(r#"{"n":0.10}"#),
            Just("null"),
        ]),
        option::of(prop_oneof![Just("true"), Just("null")]),
    );
    let input = (option::of(lite_tools()), vec(prop_oneof![8 => item, 1 => lite_tools()], 0..5));
    (head, option::of(tools(0, "f")), switches, input, stranger()).prop_map(
        |((x, instructions), tools, (parallel, reasoning, store), (lead, items), y)| {
            let items: Vec<_> = lead.into_iter().chain(items).collect();
            let mut fields = vec![r#""model":"m""#.to_owned()];
            let mut field = |name: &str, value: Option<String>| {
                fields.extend(value.map(|value| format!("\"{name}\":{value}")))
            };
            field("x", x);
            field("instructions", instructions.map(str::to_owned));
            field("input", Some(format!("[{}]", items.join(","))));
            field("tools", tools);
            field("tool_choice", Some("\"auto\"".to_owned()));
            field("parallel_tool_calls", parallel.map(str::to_owned));
            field("reasoning", reasoning.map(str::to_owned));
            field("store", store.map(str::to_owned));
            field("y", Some(y));
            format!("{{{}}}", fields.join(","))
        },
    )
}

fn send(text: &str, mode: ServingMode) -> String {
    let body = Body::parse(text.as_bytes()).expect("a request");
    let prepared = prepare(body, &resolve(mode, []), &|_| false).expect("can be sent");
    String::from_utf8(prepared.body.to_bytes()).expect("UTF-8")
}

/// What a full request means. A lone developer text at the very front and instructions are two ways to say one thing.
fn meaning(full: &str) -> (Vec<String>, Option<String>) {
    let body = Body::parse(full.as_bytes()).expect("a request");
    let mut said: Vec<_> =
        body.text("instructions").filter(|text| !text.trim().is_empty()).into_iter().collect();
    for item in body.items() {
        let lone = serde_json::from_str::<Value>(item.raw().get())
            .ok()
            .filter(|item| {
                item["role"] == "developer"
                    && item["content"].as_array().is_some_and(|parts| parts.len() == 1)
            })
            .and_then(|item| item["content"][0]["text"].as_str().map(str::to_owned));
        said.push(lone.unwrap_or_else(|| item.raw().get().to_owned()));
    }
    (said, body.get("tools").map(|tools| tools.get().to_owned()))
}

/// The same requests on every run; `PROPTEST_CASES` asks for more of them.
fn config() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(20_260_901),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn lite_twice_is_lite_once(text in request(prop_oneof![8 => item(), 1 => image()])) {
        let once = send(&text, ServingMode::Lite);
        prop_assert_eq!(send(&once, ServingMode::Lite), once);
    }

    #[test]
    fn full_twice_is_full_once(text in request(prop_oneof![8 => item(), 1 => image()])) {
        let once = send(&text, ServingMode::Full);
        prop_assert_eq!(send(&once, ServingMode::Full), once);
    }

    #[test]
    fn full_of_lite_means_what_full_means(text in request(item())) {
        let direct = meaning(&send(&text, ServingMode::Full));
        let around = meaning(&send(&send(&text, ServingMode::Lite), ServingMode::Full));
        prop_assert_eq!(direct, around);
    }

    #[test]
    fn strangers_keep_their_bytes(x in stranger(), y in stranger(), items in vec(item(), 0..4)) {
        let text = format!(r#"{{"x":{x},"model":"m","input":[{}],"y":{y}}}"#, items.join(","));
        let written = Body::parse(text.as_bytes()).expect("a request").to_bytes();
        prop_assert_eq!(std::str::from_utf8(&written), Ok(text.as_str()));
        for mode in [ServingMode::Full, ServingMode::Lite] {
            let sent = Body::parse(send(&text, mode).as_bytes()).expect("a request");
            prop_assert_eq!(sent.get("x").map(|raw| raw.get()), Some(x.as_str()));
            prop_assert_eq!(sent.get("y").map(|raw| raw.get()), Some(y.as_str()));
        }
    }

    #[test]
    fn no_bytes_at_all_make_it_panic(bytes in vec(any::<u8>(), 0..64), text in r#"[\{\}\[\]":,a-z0-9\\ ]{0,64}"#) {
        let _ = Body::parse(&bytes);
        let _ = Body::parse(text.as_bytes());
        let _ = super::event::Event::read(&text);
    }
}
