//! Two keys, each good for its own routes and for nothing else.

use serde_json::{Value, json};

use super::Guarded;
use crate::support::client::read;
use crate::support::{Weir, plain};

/// What needs the data key.
const CLIENTS: [&str; 6] = [
    "GET /v1/models",
    "POST /v1/responses",
    "GET /v1/responses",
    "GET /backend-api/codex/models",
    "POST /backend-api/codex/responses",
    "GET /backend-api/codex/responses",
];

#[tokio::test]
async fn a_request_without_the_right_key_is_not_served() {
    let guarded = Guarded::start().await;
    let (data, control) = (&guarded.data, &guarded.control);
    let half = &data[..data.len() - 1];
    let none: [(&str, &str); 7] = [
        ("", "no_key"),
        ("authorization: ", "no_key"),
        (&format!("authorization: {data}"), "no_key"),
        (&format!("authorization: Basic {data}"), "no_key"),
        (&format!("authorization: Bearer{data}"), "no_key"),
        (&format!("x-api-key: {data}"), "no_key"),
        (&format!("cookie: key={data}"), "no_key"),
    ];
    let wrong: [(&str, &str); 6] = [
        ("authorization: Bearer ", "no_key"),
        ("authorization: Bearer weir_wrong", "wrong_key"),
        (&format!("authorization: Bearer {half}"), "wrong_key"),
        (&format!("authorization: Bearer {data}0"), "wrong_key"),
        (&format!("authorization: Bearer {}", data.to_uppercase()), "wrong_key"),
        (&format!("authorization: Bearer {data} {control}"), "wrong_key"),
    ];
    for route in CLIENTS.into_iter().chain(["POST /api"]) {
        for (line, code) in none.iter().chain(&wrong) {
            let headers = [vec!["host: 127.0.0.1".to_owned()], lines(line)].concat();
            let answer = guarded.ask(route, &headers).await;
            assert_eq!(answer.status, 401, "{route} with {line:?}: {}", answer.body);
            let said = answer.code();
            assert!(said == *code || line.ends_with("Bearer "), "{route} with {line:?}: {said}");
            assert!(answer.body.contains("`weir key`"), "{}", answer.body);
        }
    }
    assert!(guarded.weir.upstream().is_empty());
    guarded.weir.finish().await;
}

fn lines(line: &str) -> Vec<String> {
    if line.is_empty() { Vec::new() } else { vec![line.to_owned()] }
}

#[tokio::test]
async fn the_control_key_runs_no_turns() {
    let guarded = Guarded::start().await;
    let [_, control] = guarded.keys();
    for route in CLIENTS {
        let answer = guarded.ask(route, &["host: 127.0.0.1".to_owned(), control.clone()]).await;
        assert_eq!((answer.status, answer.code().as_str()), (401, "wrong_key"), "{route}");
    }
    assert!(guarded.weir.upstream().is_empty());
    guarded.weir.finish().await;
}

/// Whoever has only the data key can look at nothing and change nothing.
#[tokio::test]
async fn the_data_key_gives_no_command() {
    let guarded = Guarded::start().await;
    let weir = &guarded.weir;
    let before = modes(weir, &guarded.control).await;
    for command in [
        json!({"command": "status"}),
        json!({"command": "models"}),
        json!({"command": "set_mode", "model": "practice-lite", "mode": "full"}),
        json!({"command": "accounts"}),
        json!({"command": "turns", "limit": 5}),
        json!({"command": "turn", "id": "0"}),
        json!({"command": "probe", "model": "practice-full"}),
        json!({"command": "no_such_thing"}),
    ] {
        let got = read(api(weir).bearer_auth(&guarded.data).json(&command)).await;
        assert_eq!((got.status, got.code().as_str()), (401, "wrong_key"), "{command}");
        let got = read(api(weir).json(&command)).await;
        assert_eq!((got.status, got.code().as_str()), (401, "no_key"), "{command}");
    }
    assert_eq!(modes(weir, &guarded.control).await, before);
    assert!(weir.upstream().is_empty(), "a probe was run");
    guarded.weir.finish().await;
}

#[tokio::test]
async fn the_scheme_may_be_written_in_any_case() {
    let guarded = Guarded::start().await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let key = format!("authorization: {scheme} {}", guarded.data);
        let answer = guarded.ask("GET /v1/models", &["host: localhost".to_owned(), key]).await;
        assert_eq!(answer.status, 200, "{scheme}");
    }
    let turn = guarded.weir.post(&plain("practice-full")).await;
    assert_eq!(turn.events().last()["type"], "response.completed");
    guarded.weir.finish().await;
}

fn api(weir: &Weir) -> reqwest::RequestBuilder {
    weir.http().post(format!("{}/api", weir.origin()))
}

async fn modes(weir: &Weir, control: &str) -> Value {
    let got = read(api(weir).bearer_auth(control).json(&json!({"command": "models"}))).await;
    assert_eq!(got.status, 200, "{}", got.text);
    got.json()
}
