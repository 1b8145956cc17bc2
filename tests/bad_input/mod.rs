//! Requests that cannot become a turn, and their neighbours that can.
//!
//! Each row is sent to one running Weir; whatever is wrong with it, the client reads one sentence that names the way
//! out, and the backend hears nothing.

/// Bodies that are not what their encoding says, and bombs.
mod packed;
/// Bodies that are too large, and the end of their connections.
mod size;
/// Requests that look alike and are fine.
mod welcome;

use serde_json::{Value, json};
use weir_core::dialect::refusal::looks_retryable;

use crate::support::client::read;
use crate::support::{Got, Weir};

/// What a refused request is answered with.
struct Expected {
    status: u16,
    code: &'static str,
    /// What the sentence must say.
    says: &'static [&'static str],
}

impl Expected {
    const fn new(status: u16, code: &'static str, says: &'static [&'static str]) -> Self {
        Self { status, code, says }
    }

    /// Checks one answer, and that nothing went upstream.
    fn check(&self, weir: &Weir, what: &str, got: &Got) {
        assert_eq!(
            (got.status, got.code().as_str()),
            (self.status, self.code),
            "{what}: {}",
            got.text
        );
        for part in self.says {
            assert!(got.message().contains(part), "{what}: {}", got.message());
        }
        is_a_sentence_in_the_envelope(what, got);
        assert!(weir.upstream().is_empty(), "{what} reached the backend");
    }
}

/// What every refusal of a request has in common, whichever it is.
fn is_a_sentence_in_the_envelope(what: &str, got: &Got) {
    assert_eq!(got.headers["content-type"], "application/json", "{what}");
    let answer = got.json();
    let error = answer["error"].as_object().unwrap_or_else(|| panic!("{what}: {answer}"));
    let keys: Vec<&str> = error.keys().map(String::as_str).collect();
    assert_eq!(keys, ["message", "type", "code", "param"], "{what}");
    assert!(error["type"].as_str().is_some_and(|kind| !kind.is_empty()), "{what}: {answer}");
    let message = got.message();
    assert!(message.len() > 20 && message.ends_with('.'), "{what}: {message:?}");
    assert!(!looks_retryable(&got.text), "{what} looks like a reason to try again: {}", got.text);
}

/// Sends raw bytes as JSON.
async fn send(weir: &Weir, body: impl Into<reqwest::Body>) -> Got {
    read(weir.request().header("content-type", "application/json").body(body)).await
}

#[tokio::test]
async fn what_is_no_request_is_refused_in_words() {
    const JSON: Expected = Expected::new(400, "invalid_json", &[]);
    const EMPTY: Expected = Expected::new(400, "invalid_json", &["empty"]);
    const NO_OBJECT: Expected = Expected::new(400, "invalid_type", &["one JSON object"]);
    const INPUT: Expected = Expected::new(400, "invalid_type", &["`input`"]);
    const TOOLS: Expected = Expected::new(400, "invalid_type", &["`tools` must be a list"]);
    const STREAM: Expected =
        Expected::new(400, "invalid_type", &["`stream` must be true or false"]);
    const NO_MODEL: Expected =
        Expected::new(400, "missing_required_parameter", &["names no model", "weir models"]);
    const MODEL: Expected = Expected::new(400, "invalid_type", &["`model`", "weir models"]);
    const UNKNOWN: Expected =
        Expected::new(400, "model_not_found", &["practice-full", "practice-lite"]);
    const NO_TOOLS: Expected = Expected::new(400, "unsupported_value", &["`tool_choice`"]);
    const SEVERAL: Expected = Expected::new(400, "unsupported_value", &["`n`"]);
    let deep = format!("{{\"model\":\"practice-full\",\"input\":[{}]}}", "[".repeat(100_000));
    let closed = format!(
        "{{\"model\":\"practice-full\",\"input\":[{}{}]}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let rows: &[(&[u8], Expected)] = &[
        (b"{\"model\":", JSON),
        (b"{\"model\":\"practice-full\",}", JSON),
        (b"{\"model\":\"practice-full\"} {}", JSON),
        (b"{'model':'practice-full'}", JSON),
        (b"{\"model\":\"practice-\xff\xfe\"}", JSON),
        (b"data: {}", JSON),
        (deep.as_bytes(), JSON),
        (b"", EMPTY),
        (b" \r\n\t", EMPTY),
        (b"[1]", NO_OBJECT),
        (b"\"practice-full\"", NO_OBJECT),
        (b"null", NO_OBJECT),
        (b"7", NO_OBJECT),
        (br#"{"model":"practice-full","input":7}"#, INPUT),
        (br#"{"model":"practice-full","input":{"role":"user"}}"#, INPUT),
        (br#"{"model":"practice-full","input":true}"#, INPUT),
        (br#"{"model":"practice-full","input":null}"#, INPUT),
        (br#"{"model":"practice-full","input":["hello"]}"#, INPUT),
        (br#"{"model":"practice-full","input":[{"role":"user","content":"a"},7]}"#, INPUT),
        (br#"{"model":"practice-full","input":[null]}"#, INPUT),
        (closed.as_bytes(), INPUT),
        (br#"{"model":"practice-full","input":"a","tools":{}}"#, TOOLS),
        (br#"{"model":"practice-full","input":"a","tools":"bash"}"#, TOOLS),
        (br#"{"model":"practice-full","input":"a","tools":1}"#, TOOLS),
        (br#"{"model":"practice-full","input":"a","stream":"yes"}"#, STREAM),
        (br#"{"model":"practice-full","input":"a","stream":1}"#, STREAM),
        (br#"{"input":"a"}"#, NO_MODEL),
        (b"{}", NO_MODEL),
        (br#"{"model":"","input":"a"}"#, MODEL),
        (br#"{"model":"  ","input":"a"}"#, MODEL),
        (br#"{"model":null,"input":"a"}"#, MODEL),
        (br#"{"model":["practice-full"],"input":"a"}"#, MODEL),
        (br#"{"model":"practice-fool","input":"a"}"#, UNKNOWN),
        (br#"{"model":"practice-fool","input":"a","stream":true}"#, UNKNOWN),
        (br#"{"model":"PRACTICE-FULL","input":"a"}"#, UNKNOWN),
        (br#"{"model":"practice-full","input":"a","tool_choice":"required"}"#, NO_TOOLS),
        (br#"{"model":"practice-full","input":"a","n":2}"#, SEVERAL),
        (br#"{"model":"practice-lite","input":"a","n":2,"stream":true}"#, SEVERAL),
    ];
    let weir = Weir::start("").await;
    for (body, expected) in rows {
        let what: String = String::from_utf8_lossy(body).chars().take(80).collect();
        expected.check(&weir, &what, &send(&weir, body.to_vec()).await);
    }
    weir.finish().await;
}

#[tokio::test]
async fn what_lite_cannot_carry_names_the_toggle() {
    let tool = json!({"type": "function", "name": "f", "parameters": {"type": "object"}});
    let forced = json!({"type": "function", "name": "f"});
    let allowed = json!({"type": "allowed_tools", "mode": "required", "tools": [forced]});
    let nested = json!({"type": "namespace", "name": "n", "tools": [{"type": "web_search"}]});
    let hidden = json!({"type": "additional_tools", "tools": [{"type": "web_search"}]});
    let rows: [(&str, Value); 8] = [
        ("tools", json!({"tools": [tool, {"type": "web_search"}]})),
        ("tools", json!({"tools": [{"type": "web_search_preview_2025_03_11"}]})),
        ("tools", json!({"tools": [{"type": "image_generation"}], "stream": true})),
        (
            "tools",
            json!({"tools": [{"type": "mcp", "server_label": "x", "server_url": "https://a.example"}]}),
        ),
        ("tools", json!({"tools": [nested]})),
        ("tools", json!({"input": [hidden, {"role": "user", "content": "a"}]})),
        ("tool_choice", json!({"tools": [tool], "tool_choice": forced})),
        ("tool_choice", json!({"tools": [tool], "tool_choice": allowed})),
    ];
    const EXPECTED: Expected =
        Expected::new(400, "lite_cannot_carry", &["Lite", "`weir mode practice-lite full`"]);
    let weir = Weir::start("").await;
    for (param, fields) in rows {
        let mut body = json!({"model": "practice-lite", "input": "a"});
        for (name, value) in fields.as_object().expect("fields") {
            body[name] = value.clone();
        }
        let got = weir.post(&body).await;
        EXPECTED.check(&weir, &body.to_string(), &got);
        assert_eq!(got.json()["error"]["param"], param, "{body}");
    }
    weir.finish().await;
}

#[tokio::test]
async fn what_is_not_said_to_be_json_is_refused() {
    const EXPECTED: Expected =
        Expected::new(415, "not_json", &["`Content-Type: application/json`"]);
    let body = json!({"model": "practice-full", "input": "a"}).to_string();
    let weir = Weir::start("").await;
    let none = read(weir.request().body(body.clone())).await;
    EXPECTED.check(&weir, "no content type", &none);
    for kind in [
        "",
        "text/plain",
        "text/plain; charset=application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json",
        "application/jsonx",
        "application",
        "json",
    ] {
        let got = read(weir.request().header("content-type", kind).body(body.clone())).await;
        EXPECTED.check(&weir, kind, &got);
    }
    weir.finish().await;
}
