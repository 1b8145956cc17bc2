//! Public cases of requests that gateways got wrong, as tests of `prepare`.
//!
//! Each fixture is what a client sends, with variants; the rules are those of a backend that refuses what it dislikes.
//!
//! **Invariant**: a case is one row; what it checks is said by the names of its rules.

use serde_json::Value;

use super::body::Body;
use super::mode::{Dialect, ServingMode, resolve};
use super::prepare::prepare;
use super::refusal::Refusal;

const CASES: [(&str, &str); 16] = [
    ("C25", include_str!("../../../../tests/fixtures/cases/C25/request.json")),
    ("C26", include_str!("../../../../tests/fixtures/cases/C26/request.json")),
    ("C27", include_str!("../../../../tests/fixtures/cases/C27/request.json")),
    ("C28", include_str!("../../../../tests/fixtures/cases/C28/request.json")),
    ("C29", include_str!("../../../../tests/fixtures/cases/C29/request.json")),
    ("C33", include_str!("../../../../tests/fixtures/cases/C33/request.json")),
    ("C35", include_str!("../../../../tests/fixtures/cases/C35/request.json")),
    ("C37", include_str!("../../../../tests/fixtures/cases/C37/request.json")),
    ("C39", include_str!("../../../../tests/fixtures/cases/C39/request.json")),
    ("C41", include_str!("../../../../tests/fixtures/cases/C41/request.json")),
    ("C47", include_str!("../../../../tests/fixtures/cases/C47/request.json")),
    ("C48", include_str!("../../../../tests/fixtures/cases/C48/request.json")),
    ("C53", include_str!("../../../../tests/fixtures/cases/C53/request.json")),
    ("C55", include_str!("../../../../tests/fixtures/cases/C55/request.json")),
    ("C57", include_str!("../../../../tests/fixtures/cases/C57/request.json")),
    ("C104", include_str!("../../../../tests/fixtures/cases/C104/request.json")),
];

/// The Responses bodies of a case: its own, its variants', those of its frames. Chat bodies are another protocol.
fn bodies(case: &str) -> Vec<Value> {
    let (_, text) = CASES.iter().find(|(name, _)| *name == case).expect("a known case");
    let fixture: Value = serde_json::from_str(text).expect("a fixture");
    let variants = fixture["variants"].as_array().cloned().unwrap_or_default();
    std::iter::once(fixture)
        .chain(variants)
        .flat_map(|request| {
            let frames = request["frames"].as_array().cloned().unwrap_or_default();
            std::iter::once(request["body"].clone()).chain(frames)
        })
        .filter(|body| body["model"].is_string() && body.get("messages").is_none())
        .collect()
}

fn send(body: &Value, mode: ServingMode) -> Result<Value, Refusal> {
    let body = Body::parse(body.to_string().as_bytes())?;
    let prepared = prepare(body, &resolve(mode, []), &|_| false)?;
    Ok(serde_json::from_slice(&prepared.body.to_bytes()).expect("JSON"))
}

/// What the backend refuses, whichever case it is.
fn complaint(sent: &Value, dialect: Dialect) -> Option<&'static str> {
    let items = sent["input"].as_array();
    let tools = sent["tools"].as_array().map_or(0, Vec::len);
    let item_tools = items
        .into_iter()
        .flatten()
        .filter_map(|item| item["tools"].as_array())
        .map(Vec::len)
        .sum::<usize>();
    let id_fits = |item: &Value, kind: &str, prefix: &str| {
        item["type"] != kind || item["id"].as_str().is_none_or(|id| id.starts_with(prefix))
    };
    let rejected = [
        "max_output_tokens",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "stop",
        "presence_penalty",
        "frequency_penalty",
        "n",
        "user",
    ];
    let rules = [
        ("store is false", sent["store"] == false),
        ("stream is true", sent["stream"] == true),
        ("input is a list", items.is_some()),
        ("no rejected parameter", rejected.iter().all(|name| sent.get(name).is_none())),
        ("no system role", items.into_iter().flatten().all(|item| item["role"] != "system")),
        ("message ids", items.into_iter().flatten().all(|item| id_fits(item, "message", "msg"))),
        ("call ids", items.into_iter().flatten().all(|item| id_fits(item, "function_call", "fc"))),
        ("reasoning ids", items.into_iter().flatten().all(|item| id_fits(item, "reasoning", "rs"))),
        (
            "short call ids",
            items
                .into_iter()
                .flatten()
                .all(|item| item["call_id"].as_str().is_none_or(|id| id.chars().count() <= 64)),
        ),
        ("each call is answered once", pairs(sent)),
        ("a choice needs tools", sent.get("tool_choice").is_none() || tools + item_tools > 0),
    ];
    let of_dialect = match dialect {
        Dialect::Full => [
            ("full: instructions are a string", sent["instructions"].is_string()),
            ("full: no additional tools", item_tools == 0),
            ("full: reasoning is not forced", sent["reasoning"].get("context").is_none()),
            ("full: no empty list of tools", sent.get("tools").is_none() || tools > 0),
        ],
        Dialect::Lite => [
            ("lite: one call at a time", sent["parallel_tool_calls"] == false),
            ("lite: thoughts of all turns", sent["reasoning"]["context"] == "all_turns"),
            ("lite: tools lead the input", sent["input"][0]["type"] == "additional_tools"),
            (
                "lite: nothing at the top",
                sent.get("tools").is_none() && sent.get("instructions").is_none(),
            ),
        ],
    };
    rules.into_iter().chain(of_dialect).find(|(_, kept)| !kept).map(|(rule, _)| rule)
}

/// Whether every call is followed by one output of its family, and every output has its call.
fn pairs(sent: &Value) -> bool {
    let mut open: Vec<(&str, &str)> = Vec::new();
    for item in sent["input"].as_array().into_iter().flatten() {
        let kind = item["type"].as_str().unwrap_or_default();
        let id = item["call_id"].as_str().unwrap_or_default();
        if let Some(family) = kind.strip_suffix("_output") {
            let Some(place) = open.iter().position(|call| *call == (family, id)) else {
                return false;
            };
            open.remove(place);
        } else if kind.ends_with("_call") {
            open.push((kind, id));
        }
    }
    open.is_empty()
}

#[test]
fn every_case_is_accepted_in_both_dialects() {
    for (case, _) in CASES {
        let bodies = bodies(case);
        assert!(!bodies.is_empty(), "{case}");
        for (place, body) in bodies.iter().enumerate() {
            for (mode, dialect) in
                [(ServingMode::Full, Dialect::Full), (ServingMode::Lite, Dialect::Lite)]
            {
                let sent = send(body, mode).expect(case);
                assert_eq!(complaint(&sent, dialect), None, "{case}[{place}] in {dialect}: {sent}");
            }
        }
    }
}

#[test]
fn c28_a_string_is_one_user_message() {
    let bodies = bodies("C28");
    let sent = send(&bodies[0], ServingMode::Full).expect("sent");
    assert_eq!(
        (&sent["input"][0]["role"], &sent["input"][0]["content"][0]["text"]),
        (&"user".into(), &"Hello!".into())
    );
    assert_eq!(send(&bodies[1], ServingMode::Full).expect("sent")["instructions"], "Keep me.");
}

#[test]
fn c29_each_text_is_sent_once_and_in_order() {
    for body in bodies("C29") {
        for mode in [ServingMode::Full, ServingMode::Lite] {
            let sent = send(&body, mode).expect("sent").to_string();
            for text in ["SYS-ONE", "SYS-TWO", "SYS-MID", "first", "second", "You are a test."] {
                assert_eq!(sent.matches(text).count(), 1, "{text}");
            }
            assert!(sent.find("SYS-ONE") < sent.find("SYS-TWO"));
        }
    }
}

#[test]
fn c33_long_ids_stay_apart_and_the_same_in_every_turn() {
    let ids = |body: &Value| -> Vec<String> {
        let sent = send(body, ServingMode::Full).expect("sent");
        let items = sent["input"].as_array().expect("a list");
        items.iter().filter_map(|item| item["call_id"].as_str().map(str::to_owned)).collect()
    };
    let turns = bodies("C33");
    let (first, second) = (ids(&turns[0]), ids(&turns[1]));
    assert!(first[0] == first[2] && first[1] == first[3] && first[0] != first[1], "{first:?}");
    assert_eq!(first[4], "call_short");
    assert_eq!(first[..5], second[..5]);
}

#[test]
fn c37_an_output_without_its_call_keeps_its_words_and_c39_a_call_is_answered_in_its_family() {
    for (place, words) in [(0, "orphan text"), (1, "delegated: do the thing")] {
        let sent = send(&bodies("C37")[place], ServingMode::Full).expect("sent");
        assert_eq!(sent.to_string().matches(words).count(), 1, "{sent}");
    }
    let sent = send(&bodies("C39")[0], ServingMode::Full).expect("sent");
    let kinds: Vec<_> =
        sent["input"].as_array().expect("a list").iter().map(|item| &item["type"]).collect();
    assert_eq!(
        kinds,
        [
            "message",
            "function_call",
            "custom_tool_call",
            "function_call",
            "function_call_output",
            "custom_tool_call_output",
            "function_call_output",
            "message"
        ]
    );
    let whole = |body: &Value| body["input"].as_array().expect("a list").last().cloned();
    assert_eq!(whole(&sent), whole(&bodies("C39")[0]));
}

#[test]
fn c41_and_c104_items_that_nobody_knows_keep_their_place() {
    // Where the dialect has another place for tools they move; what is not known never does.
    for (case, mode) in
        [("C41", ServingMode::Lite), ("C104", ServingMode::Full), ("C104", ServingMode::Lite)]
    {
        for body in bodies(case) {
            let sent = send(&body, mode).expect("sent");
            let client = body["input"].as_array().expect("a list");
            let strangers: Vec<_> = sent["input"]
                .as_array()
                .expect("a list")
                .iter()
                .filter(|item| client.contains(item))
                .collect();
            assert_eq!(strangers, client.iter().collect::<Vec<_>>(), "{case} {mode:?}");
        }
    }
    let sent = send(&bodies("C41")[0], ServingMode::Full).expect("sent");
    assert_eq!(
        sent["input"],
        Value::from(bodies("C41")[0]["input"].as_array().expect("a list")[1..].to_vec())
    );
    assert_eq!(sent["tools"], bodies("C41")[0]["input"][0]["tools"]);
}

#[test]
fn c53_and_c55_tools_are_sent_as_they_were_offered() {
    for case in ["C53", "C55"] {
        for body in bodies(case) {
            let full = send(&body, ServingMode::Full).expect("sent");
            assert_eq!(full["tools"], body["tools"], "{case}");
            assert_eq!(full["text"], body["text"], "{case}");
            assert_eq!(full["input"], body["input"], "{case}");
            let lite = send(&body, ServingMode::Lite).expect("sent");
            assert_eq!(lite["input"][0]["tools"], body["tools"], "{case}");
            assert_eq!(lite["text"], body["text"], "{case}");
        }
    }
}

#[test]
fn c35_call_ids_and_texts_stay() {
    let sent = send(&bodies("C35")[0], ServingMode::Full).expect("sent");
    let items = sent["input"].as_array().expect("a list");
    let ids: Vec<_> = items.iter().filter_map(|item| item["call_id"].as_str()).collect();
    assert_eq!(ids, ["call_35", "call_35"]);
    assert_eq!(items[6]["id"], "msg_valid35");
    for text in ["yo", "more", "good one", "next"] {
        assert!(sent.to_string().contains(&format!("\"text\":\"{text}\"")), "{text}");
    }
}

#[test]
fn c47_the_lite_contract() {
    let bodies = bodies("C47");
    let lite = send(&bodies[0], ServingMode::Lite).expect("sent");
    assert_eq!(lite["input"][0]["tools"][0]["name"], "shell");
    assert_eq!(lite["reasoning"]["effort"], "medium");
    let full = send(&bodies[0], ServingMode::Full).expect("sent");
    assert_eq!(
        (&full["tools"][0]["name"], &full["parallel_tool_calls"]),
        (&"shell".into(), &true.into())
    );
    // Already Lite: everything that the client sent is sent, and only `include` joins it.
    let mut sent = send(&bodies[1], ServingMode::Lite).expect("sent");
    sent.as_object_mut()
        .expect("an object")
        .retain(|name, _| name != "include" && name != "instructions");
    let mut client = bodies[1].clone();
    let instructions = client.as_object_mut().expect("an object").remove("instructions");
    assert!(instructions.is_some());
    let moved = sent["input"].as_array_mut().expect("a list").remove(1);
    assert_eq!(moved["content"][0]["text"], "You are a test.");
    assert_eq!(sent, client);
}

#[test]
fn c57_the_trio_goes_together() {
    for body in bodies("C57") {
        let sent = send(&body, ServingMode::Full).expect("sent");
        for name in ["tools", "tool_choice", "parallel_tool_calls"] {
            assert!(sent.get(name).is_none(), "{name} in {sent}");
        }
        let mut required = body.clone();
        required["tool_choice"] = "required".into();
        assert_eq!(send(&required, ServingMode::Full).expect_err("nothing to choose").status, 400);
    }
}
