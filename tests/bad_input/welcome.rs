//! Requests close to the refused ones that must reach the backend, unchanged in what they say.

use serde_json::{Value, json};

use super::packed;
use crate::support::client::read;
use crate::support::{Weir, plain};

/// The models of the public cases: one full, one Lite.
const MODELS: &str =
    "[[model]]\nslug = 'gpt-5.5'\n[[model]]\nslug = 'gpt-5.6-sol'\nuse_responses_lite = true";

#[tokio::test]
async fn the_same_request_arrives_in_every_encoding() {
    let weir = Weir::start("").await;
    let text = "é 漢字 🦀 \"quoted\" \\ and again; ".repeat(500);
    let body = json!({"model": "practice-full", "input": [{"role": "user", "content": text}], "stream": true});
    let plain = body.to_string().into_bytes();
    let mut names: Vec<String> = packed::ENCODINGS.iter().map(|name| (*name).to_owned()).collect();
    names.push("identity".into());
    names.push("x-gzip".into());
    names.extend(packed::ENCODINGS.iter().map(|name| format!(" {} ", name.to_uppercase())));
    for name in &names {
        let encoding = name.trim().to_lowercase();
        let packed = packed::pack(encoding.trim_start_matches("x-"), &plain).await;
        let got = packed::send(&weir, name, packed).await;
        assert_eq!(got.events().last()["type"], "response.completed", "{name}");
    }
    let bare = read(weir.request().header("content-type", "application/json").body(plain)).await;
    assert_eq!(bare.events().last()["type"], "response.completed");
    let upstream = weir.upstream();
    assert_eq!(upstream.len(), names.len() + 1);
    for (request, name) in upstream.iter().zip(&names) {
        assert_eq!(request.body, upstream[names.len()].body, "{name}");
        assert!(request.headers.iter().all(|(name, _)| name != "content-encoding"), "{name}");
    }
    assert_eq!(upstream[0].body["input"], body["input"]);
    weir.finish().await;
}

/// A packed body may come in several members, one after another.
#[tokio::test]
async fn members_of_a_packed_body_are_joined() {
    let weir = Weir::start("").await;
    let body = plain("practice-full").to_string().into_bytes();
    let (first, second) = body.split_at(body.len() / 2);
    for encoding in ["gzip", "zstd"] {
        let mut packed = packed::pack(encoding, first).await;
        packed.extend(packed::pack(encoding, second).await);
        let got = packed::send(&weir, encoding, packed).await;
        assert_eq!(got.status, 200, "{encoding}: {}", got.text);
    }
    weir.finish().await;
}

#[tokio::test]
async fn a_content_type_may_carry_parameters() {
    let weir = Weir::start("").await;
    let kinds = [
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "application/json ; x=y",
        "Application/JSON",
    ];
    for kind in kinds {
        let body = plain("practice-full").to_string();
        let got = read(weir.request().header("content-type", kind).body(body)).await;
        assert_eq!(got.events().last()["type"], "response.completed", "{kind}");
    }
    assert_eq!(weir.upstream().len(), kinds.len());
    weir.finish().await;
}

/// C30: bodies as the clients of the public reports packed them.
#[tokio::test]
async fn packed_bodies_of_other_programs_are_read() {
    const REQUEST: &str = include_str!("../fixtures/cases/C30/request.json");
    let file = |name: &str| match name {
        "body.json" => &include_bytes!("../fixtures/cases/C30/body.json")[..],
        "body.json.gz" => include_bytes!("../fixtures/cases/C30/body.json.gz"),
        "body.json.zst" => include_bytes!("../fixtures/cases/C30/body.json.zst"),
        other => panic!("no file {other}"),
    };
    let said: Value = serde_json::from_slice(file("body.json")).expect("JSON");
    let case: Value = serde_json::from_str(REQUEST).expect("a fixture");
    let variants = case["variants"].as_array().cloned().unwrap_or_default();
    let weir = Weir::start(MODELS).await;
    for sent in std::iter::once(&case).chain(&variants) {
        let body = file(sent["body_file"].as_str().expect("a name"));
        let mut request = weir.request().header("content-type", "application/json").body(body);
        if let Some(encoding) = sent["headers"]["content-encoding"].as_str() {
            request = request.header("content-encoding", encoding);
        }
        let got = read(request).await;
        assert_eq!(got.status, 200, "{sent}: {}", got.text);
    }
    let upstream = weir.upstream();
    assert_eq!(upstream.len(), 3);
    for request in upstream {
        assert_eq!(request.body["input"], said["input"]);
        assert!(request.headers.iter().all(|(name, _)| name != "content-encoding"));
    }
    weir.finish().await;
}

/// C29: the backend refuses the role `system`, which clients send anywhere in the history.
#[tokio::test]
async fn system_messages_arrive_once_each_and_under_a_name_the_backend_takes() {
    let case: Value = serde_json::from_str(include_str!("../fixtures/cases/C29/request.json"))
        .expect("a fixture");
    let variants = case["variants"].as_array().cloned().unwrap_or_default();
    let bodies = std::iter::once(&case).chain(&variants).map(|request| &request["body"]);
    let responses = bodies.filter(|body| body["input"].is_array());
    let weir = Weir::start(MODELS).await;
    for body in responses {
        let got = weir.post(body).await;
        assert_eq!(got.status, 200, "{}", got.text);
        let upstream = weir.upstream();
        let sent = &upstream.last().expect("it was sent").body;
        let roles = sent["input"].as_array().expect("a list").iter().map(|item| &item["role"]);
        assert!(roles.into_iter().all(|role| role != "system"), "{sent}");
        let text = sent.to_string();
        for part in ["SYS-ONE", "SYS-TWO", "SYS-MID", "first", "second", "You are a test."] {
            assert_eq!(
                text.matches(part).count(),
                body.to_string().matches(part).count(),
                "{part}: {text}"
            );
        }
        assert!(text.find("SYS-ONE") < text.find("SYS-TWO"), "{text}");
    }
    assert!(weir.upstream().len() >= 2, "the full and the Lite variant");
    weir.finish().await;
}
