//! The catalog: both shapes, entries as they came, the mode laid over them, and the tag that tells of it.

/// A backend whose catalog is given as bytes.
mod backend;

use backend::{Backend, Served};
use serde_json::Value;
use weir_core::dialect::mode::ServingMode;

use crate::support::client::read;
use crate::support::{Weir, plain};

const CASE: &str = include_str!("../fixtures/cases/C110/request.json");
const CATALOG: &[u8] = include_bytes!("../fixtures/cases/C110/upstream.models.http");

/// How a Codex client asks.
const CODEX: &str = "/v1/models?client_version=0.154.0";

/// The text of the catalog's one entry, byte for byte.
fn entry() -> &'static str {
    let text = std::str::from_utf8(CATALOG).expect("text");
    let (_, list) = text.split_once("[{\"slug\"").expect("one entry");
    let start = text.len() - list.len() - "{\"slug\"".len();
    text[start..].strip_suffix("]}").expect("the end of the list")
}

/// C110: the OpenAI SDKs read `data`, Codex reads `models` with the backend's own entries and tag.
#[tokio::test]
async fn both_shapes_are_served_as_the_public_case_says() {
    let case: Value = serde_json::from_str(CASE).expect("a fixture");
    let backend = Backend::start(CATALOG).await;
    let weir = Served::start([backend.account("a")]).await;
    let requests = case["requests"].as_array().expect("a list");
    let mut answers = Vec::new();
    for request in requests {
        let path = request["path"].as_str().expect("a path");
        let got = read(weir.get(path).header("content-type", "application/json")).await;
        assert_eq!(got.status, 200, "{path}: {}", got.text);
        assert_eq!(got.headers["etag"], "\"m-110\"", "{path}");
        answers.push(got);
    }
    let [sdk, codex, below] = &answers[..] else { panic!("three requests") };

    let list = sdk.json();
    assert_eq!((&list["object"], &list["data"][0]["id"]), (&"list".into(), &"gpt-5.5".into()));
    assert_eq!(list["data"][0]["object"], "model");
    assert!(list["data"][0]["created"].is_u64() && list["data"][0]["owned_by"].is_string());
    // The backend does not say how long its context is, so nothing does.
    assert!(list["data"][0].get("context_length").is_none(), "{list}");

    for got in [codex, below] {
        assert_eq!(got.json()["models"][0]["slug"], "gpt-5.5");
        assert_eq!(got.json()["models"][0]["future_field"]["a"], 1);
        assert!(got.text.contains(entry()), "the entry was changed: {}", got.text);
    }
    let asked = backend.asked();
    assert!(asked[0].starts_with("get /models?client_version="), "{}", asked[0]);
    assert!(asked[0].contains("authorization: bearer raw-token"), "{}", asked[0]);
    let lists = asked.iter().filter(|head| head.starts_with("get /models")).count();
    assert_eq!(lists, 1, "the list is kept, not read for every asker");
}

#[tokio::test]
async fn a_mode_changes_the_field_and_the_tag_and_changes_both_back() {
    let backend = Backend::start(CATALOG).await;
    let weir = Served::start([backend.account("a")]).await;
    let seen = async || {
        let got = read(weir.get(CODEX)).await;
        let tag = got.headers["etag"].to_str().expect("text").to_owned();
        (tag, got.json()["models"][0].clone(), got.text)
    };
    let (own, before, text) = seen().await;

    weir.set_mode("gpt-5.5", ServingMode::Lite).await;
    let (lite, mut changed, _) = seen().await;
    assert_eq!(changed["use_responses_lite"], true);
    assert_ne!(lite, own);
    changed.as_object_mut().expect("an entry").shift_remove("use_responses_lite");
    assert_eq!(changed, before, "nothing else of the entry changes");
    assert_eq!(seen().await.0, lite, "the tag stands while the catalog does");

    // full is what the catalog says of this model anyway, so there is nothing to lay over it.
    weir.set_mode("gpt-5.5", ServingMode::Full).await;
    assert_eq!(seen().await, (own.clone(), before.clone(), text.clone()));
    weir.set_mode("gpt-5.5", ServingMode::Auto).await;
    assert_eq!(seen().await, (own, before, text));
}

#[tokio::test]
async fn a_lite_model_that_is_set_to_full_says_so() {
    let weir = Weir::start("").await;
    let seen = async || {
        let url = format!("{}{CODEX}", weir.origin());
        let got = read(weir.http().get(url).bearer_auth(weir.key())).await;
        let models = got.json()["models"].clone();
        let flags: Vec<(String, Value)> = models
            .as_array()
            .expect("a list")
            .iter()
            .map(|model| {
                (
                    model["slug"].as_str().expect("text").to_owned(),
                    model["use_responses_lite"].clone(),
                )
            })
            .collect();
        (got.headers["etag"].clone(), flags)
    };
    let flags = |full: bool, lite: bool| {
        vec![
            ("practice-full".to_owned(), Value::Bool(full)),
            ("practice-lite".to_owned(), Value::Bool(lite)),
        ]
    };
    let (first, before) = seen().await;
    assert_eq!(before, flags(false, true));
    weir.set_mode("practice-lite", ServingMode::Full).await;
    let (second, after) = seen().await;
    assert_eq!(after, flags(false, false));
    weir.set_mode("practice-full", ServingMode::Lite).await;
    let (third, both) = seen().await;
    assert_eq!(both, flags(true, false));
    assert!(first != second && second != third && first != third);
    weir.set_mode("practice-lite", ServingMode::Auto).await;
    weir.set_mode("practice-full", ServingMode::Auto).await;
    assert_eq!(seen().await, (first, before));
    weir.finish().await;
}

/// Codex reads its catalog anew when the tag on an answer is not the one it knows, and so learns of a mode.
#[tokio::test]
async fn only_codex_is_told_of_the_tag_and_it_is_that_of_the_catalog() {
    let weir = Weir::start("").await;
    let catalog = async || {
        let url = format!("{}{CODEX}", weir.origin());
        read(weir.http().get(url).bearer_auth(weir.key())).await.headers["etag"].clone()
    };
    let turn = async |originator: Option<&'static str>| {
        let mut request = weir.request().json(&plain("practice-lite"));
        if let Some(originator) = originator {
            request = request.header("originator", originator);
        }
        let got = read(request).await;
        assert_eq!(got.events().last()["type"], "response.completed");
        got.headers.get("x-models-etag").cloned()
    };
    let first = catalog().await;
    assert_eq!(turn(Some("codex_exec")).await.as_ref(), Some(&first));
    assert_eq!(turn(Some("codex_cli_rs")).await.as_ref(), Some(&first));
    weir.set_mode("practice-lite", ServingMode::Full).await;
    let second = catalog().await;
    assert_ne!(first, second);
    assert_eq!(turn(Some("codex_exec")).await.as_ref(), Some(&second));
    for other in [None, Some("opencode"), Some("my-codex")] {
        assert_eq!(turn(other).await, None, "{other:?}");
    }
    weir.finish().await;
}

/// Clients compact when the context is full, so they must know the share of it that is theirs.
#[tokio::test]
async fn the_context_length_is_what_a_client_may_use() {
    let weir = Weir::start("").await;
    let get = async |path: &str| {
        read(weir.http().get(format!("{}{path}", weir.origin())).bearer_auth(weir.key()))
            .await
            .json()
    };
    let (list, codex) = (get("/v1/models").await, get(CODEX).await);
    let models = codex["models"].as_array().expect("a list");
    assert_eq!(models.len(), 2);
    for (entry, listed) in models.iter().zip(list["data"].as_array().expect("a list")) {
        assert_eq!(entry["slug"], listed["id"]);
        assert_eq!(entry["display_name"], listed["display_name"]);
        let window = entry["context_window"].as_u64().expect("practice models say it");
        let percent = entry["effective_context_window_percent"].as_u64().unwrap_or(95);
        assert!(percent < 100, "or this test shows nothing");
        assert_eq!(listed["context_length"], window * percent / 100);
    }
    weir.finish().await;
}

#[tokio::test]
async fn a_catalog_is_read_again_when_the_backend_says_that_it_changed() {
    let backend = Backend::start(CATALOG).await;
    let weir = Served::start([backend.account("a")]).await;
    assert_eq!(read(weir.get(CODEX)).await.headers["etag"], "\"m-110\"");
    let other = r#"{"models":[{"slug":"gpt-5.5"},{"slug":"gpt-6-sol","use_responses_lite":true}]}"#;
    backend.list(200, "\"m-111\"", other);
    let got = read(weir.turn("gpt-5.5")).await;
    assert_eq!(got.status, 200, "{}", got.text);
    backend.asked_for_models(2).await;
    weir.settle().await;
    let got = read(weir.get(CODEX)).await;
    assert_eq!((got.headers["etag"].as_bytes(), got.text.as_str()), (&b"\"m-111\""[..], other));

    // A list that cannot be read leaves the one known before in place.
    for (status, body) in [(500, "{}"), (401, "{}"), (200, "<html>"), (200, "{\"detail\":\"no\"}")]
    {
        backend.list(status, "\"m-112\"", body);
        let before = backend.asked().iter().filter(|head| head.starts_with("get /models")).count();
        assert_eq!(read(weir.turn("gpt-5.5")).await.status, 200);
        backend.asked_for_models(before + 1).await;
        weir.settle().await;
        let got = read(weir.get(CODEX)).await;
        assert_eq!(got.text, other, "after {status} {body}");
    }
}

#[tokio::test]
async fn without_any_list_the_sentence_names_where_to_look() {
    let backend = Backend::start(CATALOG).await;
    backend.list(500, "\"x\"", "{}");
    let weir = Served::start([backend.account("a")]).await;
    for path in ["/v1/models", CODEX] {
        let got = read(weir.get(path)).await;
        assert_eq!((got.status, got.code().as_str()), (503, "no_model_list"), "{path}");
        assert!(got.message().contains("`weir accounts`"), "{}", got.message());
    }
    // It is asked again, and the next answer counts.
    backend.list(200, "\"m-1\"", "{\"models\":[]}");
    let got = read(weir.get(CODEX)).await;
    assert_eq!((got.status, got.text.as_str()), (200, "{\"models\":[]}"));
}

#[tokio::test]
async fn accounts_with_different_lists_are_served_as_one_with_a_tag_of_its_own() {
    let one = Backend::start(CATALOG).await;
    let two = Backend::start(CATALOG).await;
    let agreeing = Served::start([one.account("a"), two.account("b")]).await;
    let got = read(agreeing.get(CODEX)).await;
    assert_eq!(got.headers["etag"], "\"m-110\"");
    assert_eq!(got.json()["models"].as_array().map(Vec::len), Some(1), "one model, not two");

    two.list(200, "\"m-2\"", r#"{"models":[{"slug":"only-b"}]}"#);
    let differing = Served::start([one.account("a"), two.account("b")]).await;
    let got = read(differing.get(CODEX)).await;
    let slugs: Vec<_> = got.json()["models"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|m| m["slug"].clone())
        .collect();
    assert_eq!(slugs, ["gpt-5.5", "only-b"]);
    let tag = got.headers["etag"].to_str().expect("text");
    assert!(tag != "\"m-110\"" && tag != "\"m-2\"", "{tag}");
    assert_eq!(read(differing.get(CODEX)).await.headers["etag"], tag);
}
