//! Public cases of streams that gateways got wrong: each row is a whole kind, with the bytes of the report.
//!
//! The request side of the cases is tested where requests are prepared, in the core's dialect.
//!
//! **Invariant**: a row is checked for every shape in which its answer can be asked for and every way in which it can arrive.

/// Failures in a stream, and what they mean for the pool.
mod endings;
/// Size, silence and speed.
mod flow;
/// The connection that a conversation keeps.
mod sockets;

use serde_json::{Value, json};

use crate::support::bare::{KEY, endpoint};
use crate::support::client::{Got, http, read};
use crate::support::raw::{MODEL, RawBackend, stream};

/// The bytes of a fixture.
macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../fixtures/cases/", $name))
    };
}
use fixture;

/// Asks for a stream, or for one document.
async fn ask(base: &str, streamed: bool) -> Got {
    let body = json!({"model": MODEL, "input": "ping", "stream": streamed});
    read(http().post(format!("{base}/v1/responses")).bearer_auth(KEY).json(&body)).await
}

/// An answer of the backend: a head, then the body in pieces of a size.
fn writes(body: &[u8], size: usize) -> Vec<Vec<u8>> {
    let pieces = body.chunks(size).map(<[u8]>::to_vec);
    std::iter::once(stream("")).chain(pieces).collect()
}

/// All text that the client was given, in the deltas of a stream or in the messages of a document.
fn text(got: &Got) -> String {
    let streamed = !got.text.starts_with('{');
    let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if streamed {
        let events = got.events();
        let deltas = events.0.iter().filter(|event| event["type"] == "response.output_text.delta");
        return deltas.map(|event| of(&event["delta"])).collect();
    }
    let answer = got.json();
    let messages = answer["output"].as_array().expect("a list").iter();
    let parts = messages.flat_map(|item| item["content"].as_array().into_iter().flatten());
    parts.map(|part| of(&part["text"])).collect()
}

/// An answer that is well, whatever it looks like on the wire.
struct Row {
    case: &'static str,
    wire: &'static [u8],
    text: &'static str,
    /// How the stream ends for its client.
    last: &'static str,
    status: &'static str,
    /// What must not reach the client.
    forbid: &'static [&'static str],
}

impl Row {
    const fn well(case: &'static str, wire: &'static [u8], text: &'static str) -> Self {
        let (last, status) = ("response.completed", "completed");
        Self { case, wire, text, last, status, forbid: &["\u{fffd}", "[error]", "\"error\":{"] }
    }
}

const ROWS: [Row; 12] = [
    Row::well("C01", fixture!("C01/upstream.sse"), "阴气渐重，露凝而白 🐉🧪 — naïve “ok”"),
    Row::well("C02", fixture!("C02/upstream.sse"), "first second third"),
    Row {
        forbid: &["data: keepalive", "data: connected", "data: {}", "retry:", "id:"],
        ..Row::well("C04", fixture!("C04/upstream.sse"), "alpha beta gamma")
    },
    Row::well("C05", fixture!("C05/upstream.sse"), "multi-line"),
    Row::well("C09", fixture!("C09/upstream.sse"), "done without marker"),
    Row::well("C09 with a marker", fixture!("C09/upstream.done.sse"), "done without marker"),
    Row::well("C11", fixture!("C11/upstream.sse"), "I will look."),
    Row::well("C17", fixture!("C17/upstream.sse"), "after a long think"),
    Row {
        last: "response.incomplete",
        status: "incomplete",
        ..Row::well("C23 cut by length", fixture!("C23/upstream.max.sse"), "")
    },
    Row {
        last: "response.incomplete",
        status: "incomplete",
        ..Row::well("C23 cut by a filter", fixture!("C23/upstream.filter.sse"), "partial")
    },
    Row::well("C43", fixture!("C43/upstream.sse"), "known text"),
    Row::well("C53", fixture!("C53/upstream.sse"), ""),
];

#[tokio::test]
async fn a_good_answer_is_a_good_answer_however_it_is_framed_and_cut() {
    for row in &ROWS {
        let sizes = [1, 7, usize::MAX];
        let answers: Vec<_> = sizes
            .iter()
            .flat_map(|size| [writes(row.wire, *size), writes(row.wire, *size)])
            .collect();
        let backend = RawBackend::start(answers).await;
        let (base, _turns) = endpoint([backend.account("a")]).await;
        let mut streams = Vec::new();
        for size in sizes {
            let what = format!("{} in pieces of {size}", row.case);
            let streamed = ask(&base, true).await;
            let events = streamed.events();
            assert_eq!(
                (events.terminals(), events.last()["type"].as_str()),
                (1, Some(row.last)),
                "{what}"
            );
            assert_eq!(
                events.kinds().iter().filter(|kind| **kind == "response.created").count(),
                1,
                "{what}"
            );
            assert_eq!(text(&streamed), row.text, "{what}");
            let whole = ask(&base, false).await;
            assert_eq!(
                (whole.status, whole.json()["status"].as_str()),
                (200, Some(row.status)),
                "{what}: {}",
                whole.text
            );
            assert_eq!(text(&whole), row.text, "{what}");
            assert!(whole.json()["usage"]["input_tokens"].is_u64(), "{what}");
            for word in row.forbid {
                assert!(!streamed.text.contains(word), "{what}: {word}");
            }
            streams.push(streamed.text);
        }
        assert!(
            streams.windows(2).all(|two| two[0] == two[1]),
            "{}: the pieces can be seen",
            row.case
        );
    }
}

/// The kinds of the events of a fixture, as its own reader sees them.
fn kinds(wire: &[u8]) -> Vec<String> {
    let wire = String::from_utf8_lossy(wire);
    let data = wire.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    events.filter_map(|event| event["type"].as_str().map(str::to_owned)).collect()
}

async fn both(wire: &[u8]) -> (Got, Got) {
    let backend = RawBackend::start(vec![writes(wire, 100), writes(wire, 100)]).await;
    let (base, _turns) = endpoint([backend.account("a")]).await;
    (ask(&base, true).await, ask(&base, false).await)
}

#[tokio::test]
async fn c43_events_that_nobody_knows_arrive_in_their_places() {
    let wire = fixture!("C43/upstream.sse");
    let (streamed, _) = both(wire).await;
    assert_eq!(streamed.events().kinds(), kinds(wire));
    assert_eq!(streamed.text.as_bytes(), wire);
}

#[tokio::test]
async fn c51_arguments_of_parallel_calls_stay_apart() {
    let wire = fixture!("C51/upstream.sse");
    let (streamed, whole) = both(wire).await;
    assert_eq!(streamed.text.as_bytes(), wire, "a client that streams puts them together itself");
    let answer = whole.json();
    let calls: Vec<_> = answer["output"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|item| item["type"] == "function_call")
        .collect();
    let facts: Vec<_> =
        calls.iter().map(|call| (call["call_id"].as_str(), call["arguments"].as_str())).collect();
    assert_eq!(
        facts,
        [
            (Some("call_a"), Some("{\"p\":\"A_ONLY\"}")),
            (Some("call_b"), Some("{\"q\":\"B_ONLY\"}"))
        ]
    );
    assert!(!whole.text.contains("STALE"));
}

#[tokio::test]
async fn c11_and_c53_a_document_has_the_items_that_went_by() {
    let (_, whole) = both(fixture!("C11/upstream.sse")).await;
    let answer = whole.json();
    let kinds: Vec<_> =
        answer["output"].as_array().expect("a list").iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(answer["output"][2]["arguments"], "{\"path\":\"a.txt\"}");
    assert_eq!(answer["usage"]["total_tokens"], 130);
    let (streamed, whole) = both(fixture!("C53/upstream.sse")).await;
    let patch = std::str::from_utf8(fixture!("C53/patch.txt")).expect("UTF-8");
    let call =
        |items: &[Value]| items.iter().find(|item| item["type"] == "custom_tool_call").cloned();
    for items in
        [streamed.events().items(), whole.json()["output"].as_array().expect("a list").clone()]
    {
        assert_eq!(call(&items).expect("a call")["input"], patch);
    }
}
