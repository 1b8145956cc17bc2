//! What every answer has in common, whoever asked for whatever.

use super::{Guarded, ROUTES};
use crate::guard::wire::{Wire, ask};

#[tokio::test]
async fn no_answer_lets_a_page_of_another_origin_read_it() {
    let guarded = Guarded::start().await;
    let port = guarded.port();
    let [data, control] = guarded.keys();
    let host = format!("host: 127.0.0.1:{port}");
    let askers = [
        vec![],
        vec![format!("origin: http://127.0.0.1:{port}")],
        vec!["origin: https://evil.example".to_owned()],
        vec![
            format!("origin: http://127.0.0.1:{port}"),
            "access-control-request-method: POST".to_owned(),
            "access-control-request-headers: authorization, content-type".to_owned(),
            "access-control-request-private-network: true".to_owned(),
        ],
    ];
    let routes = ROUTES.into_iter().chain(["OPTIONS /api", "OPTIONS /", "OPTIONS /v1/models"]);
    for route in routes {
        for key in [&data, &control] {
            for asker in &askers {
                let headers = [vec![host.clone(), key.clone()], asker.clone()].concat();
                let answer = guarded.ask(route, &headers).await;
                assert!(!answer.head.contains("\naccess-control-"), "{route}: {}", answer.head);
                if route.starts_with("OPTIONS") {
                    assert!(answer.status >= 400, "{route} was allowed: {}", answer.head);
                }
            }
        }
    }
    guarded.weir.finish().await;
}

#[tokio::test]
async fn unknown_paths_and_wrong_methods_are_answered_in_json() {
    let guarded = Guarded::start().await;
    let [data, control] = guarded.keys();
    for (route, key, status) in [
        ("GET /v1", &data, 404),
        ("GET /v1/", &data, 404),
        ("GET /v1/unknown", &data, 404),
        ("POST /v1/chat/completions", &data, 404),
        ("POST /v1/responses/", &data, 404),
        ("GET /v1/responses/resp_500", &data, 404),
        ("POST /v1/responses/compact", &data, 404),
        ("GET /V1/MODELS", &data, 404),
        ("GET /backend-api/unknown", &data, 404),
        ("GET /api/unknown", &control, 404),
        ("GET /assets", &data, 404),
        ("GET /assets/", &data, 404),
        ("GET /assets/x", &data, 404),
        ("GET /assets/%ff", &data, 404),
        ("GET /assets/..%2findex.html", &data, 404),
        ("GET /assets/../../Cargo.toml", &data, 404),
        ("GET /index.html", &data, 404),
        ("GET /%00", &data, 404),
        ("GET /metrics-timeout", &data, 404),
        ("POST /v1/models", &data, 405),
        ("DELETE /v1/models", &data, 405),
        ("PUT /v1/responses", &data, 405),
        ("PATCH /backend-api/codex/responses", &data, 405),
        ("GET /api", &control, 405),
        ("DELETE /api", &control, 405),
        ("POST /", &control, 405),
        ("POST /healthz", &data, 405),
    ] {
        let headers = ["host: 127.0.0.1".to_owned(), key.clone()];
        let answer = guarded.ask(route, &headers).await;
        assert_eq!(answer.status, status, "{route}: {}", answer.body);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{route}");
        let code = if status == 404 { "unknown_path" } else { "wrong_method" };
        assert_eq!(answer.code(), code, "{route}");
        assert!(
            !weir_core::dialect::refusal::looks_retryable(&answer.body),
            "{route} looks like a reason to try again: {}",
            answer.body
        );
    }
    guarded.weir.finish().await;
}

/// C95: Codex goes on over HTTP when it reads this status, and only then without a word.
#[tokio::test]
async fn a_websocket_is_not_offered() {
    let guarded = Guarded::start().await;
    let [key, _] = guarded.keys();
    for path in ["/v1/responses", "/backend-api/codex/responses"] {
        let headers = [
            "host: 127.0.0.1".to_owned(),
            key.clone(),
            "connection: Upgrade".to_owned(),
            "upgrade: websocket".to_owned(),
            "sec-websocket-version: 13".to_owned(),
            "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==".to_owned(),
        ];
        let answer = guarded.ask(&format!("GET {path}"), &headers).await;
        assert_eq!((answer.status, answer.code().as_str()), (426, "no_websocket"), "{path}");
        assert_eq!(answer.header("connection"), Some("close"), "{path}");
        let plain = guarded.ask(&format!("GET {path}"), &headers[..2]).await;
        assert_eq!((plain.status, plain.code().as_str()), (426, "no_websocket"), "{path}");
    }
    guarded.weir.finish().await;
}

#[tokio::test]
async fn a_request_of_an_older_protocol_is_answered() {
    let guarded = Guarded::start().await;
    let origin = guarded.weir.origin();
    for (request, status) in [
        ("GET /v1/models HTTP/1.0\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.0\r\n\r\n".to_owned(), 400),
        ("GET /healthz HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n".to_owned(), 200),
        (
            format!(
                "GET /v1/models HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
                guarded.data
            ),
            200,
        ),
    ] {
        let answer =
            ask(origin, &request).await.unwrap_or_else(|| panic!("no answer to {request}"));
        assert_eq!(answer.status, status, "{request}: {}", answer.body);
    }
    // What is no HTTP at all ends its own connection and nothing else.
    for noise in
        ["\x16\x03\x01\x02\x00\x01\x00\x01", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\r\n\r\n\0"]
    {
        let mut wire = Wire::to(origin).await;
        wire.send(noise).await;
        wire.finish().await;
        if let Some(answer) = wire.answer().await {
            assert!((400..600).contains(&answer.status), "{noise:?}: {}", answer.head);
        }
    }
    let [key, _] = guarded.keys();
    let answer = guarded.ask("GET /v1/models", &["host: localhost".to_owned(), key]).await;
    assert_eq!(answer.status, 200, "it still answers");
    guarded.weir.finish().await;
}

#[tokio::test]
async fn the_page_allows_itself_nothing_from_elsewhere() {
    let guarded = Guarded::start().await;
    let answer = guarded.ask("GET /", &["host: 127.0.0.1".to_owned()]).await;
    assert_eq!(answer.status, 200, "it needs no key, and holds none");
    let policy = answer.header("content-security-policy").expect("a policy");
    for part in
        ["default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")));
    for key in [&guarded.data, &guarded.control] {
        assert!(!answer.body.contains(key.as_str()), "a key is in the page");
    }
    let health = guarded.ask("GET /healthz", &["host: 127.0.0.1".to_owned()]).await;
    assert_eq!(health.status, 200);
    assert!(health.body.contains("\"product\":\"weir\""), "{}", health.body);
    guarded.weir.finish().await;
}
