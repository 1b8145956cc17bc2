//! Host, Origin and the two keys: who is answered at all.
//!
//! A page in the user's browser can send requests to this machine, and a foreign name can be made to point at it, so
//! every route is asked with every key under every name.

/// What an answer never carries, and what it always does.
mod answers;
/// The data key and the control key.
mod keys;
/// Raw bytes over a connection.
pub(crate) mod wire;

use serde_json::Value;
use wire::{Answer, ask};

use crate::support::Weir;

/// Every route there is, and some that are none.
const ROUTES: [&str; 14] = [
    "GET /v1/models",
    "GET /v1/models?client_version=0.154.0",
    "POST /v1/responses",
    "GET /v1/responses",
    "GET /backend-api/codex/models",
    "POST /backend-api/codex/responses",
    "POST /api",
    "GET /api",
    "GET /healthz",
    "GET /",
    "GET /assets/x",
    "GET /assets/%ff",
    "GET /v1/unknown",
    "OPTIONS /v1/responses",
];

/// The control key, which no client is given.
fn control_key(folder: &std::path::Path) -> String {
    let key = std::fs::read_to_string(folder.join("control.key")).expect("made at the start");
    key.trim().to_owned()
}

/// A running Weir with its two keys.
struct Guarded {
    weir: Weir,
    data: String,
    control: String,
    _folder: tempfile::TempDir,
}

impl Guarded {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let weir = Weir::on(folder.path(), "", weir::turn::Timers::default()).await;
        let (data, control) = (weir.key().to_owned(), control_key(folder.path()));
        Self { weir, data, control, _folder: folder }
    }

    /// One raw request: a method and a path, its further header lines, an empty JSON object where it is a POST.
    async fn ask(&self, route: &str, headers: &[String]) -> Answer {
        let body = if route.starts_with("POST") { "{}" } else { "" };
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let request = format!(
            "{route} HTTP/1.1\r\n{lines}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        ask(self.weir.origin(), &request).await.unwrap_or_else(|| panic!("no answer to {request}"))
    }

    /// Header lines of both keys.
    fn keys(&self) -> [String; 2] {
        [&self.data, &self.control].map(|key| format!("authorization: Bearer {key}"))
    }

    fn port(&self) -> &str {
        self.weir.origin().rsplit(':').next().expect("a port")
    }
}

/// C106: raw requests under foreign and own names, as the public case gives them.
#[tokio::test]
async fn foreign_hosts_are_refused_as_the_public_case_says() {
    let case: Value = serde_json::from_str(include_str!("../fixtures/cases/C106/request.json"))
        .expect("a fixture");
    let guarded = Guarded::start().await;
    for request in case["requests"].as_array().expect("a list") {
        let text = request["send"].as_str().expect("text");
        for key in [&guarded.data, &guarded.control] {
            let text = text.replace("{port}", guarded.port()).replace("local-test-key", key);
            let answer = ask(guarded.weir.origin(), &text).await;
            let status = answer.as_ref().map(|answer| answer.status);
            match request["allowed"].as_bool() {
                Some(true) if *key == guarded.data => assert_eq!(status, Some(200), "{text}"),
                Some(true) => assert_eq!(status, Some(401), "{text}"),
                Some(false) => assert_eq!(status, Some(403), "{text}"),
                // An answer of any kind: it was no crash.
                None => assert!(status.is_some_and(|status| status < 500), "{text}"),
            }
        }
    }
    guarded.weir.finish().await;
}

#[tokio::test]
async fn every_route_refuses_a_foreign_host_whatever_the_key() {
    let guarded = Guarded::start().await;
    let hosts = [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8788",
        "0.0.0.0",
        "[::2]",
        "localhost@evil.example",
        "",
    ];
    for route in ROUTES {
        for key in guarded.keys() {
            for host in hosts {
                let answer = guarded.ask(route, &[format!("host: {host}"), key.clone()]).await;
                assert_eq!(
                    (answer.status, answer.code().as_str()),
                    (403, "foreign_host"),
                    "{route} under {host:?}"
                );
            }
        }
    }
    assert!(guarded.weir.upstream().is_empty());
    guarded.weir.finish().await;
}

#[tokio::test]
async fn a_request_with_two_hosts_has_none() {
    let guarded = Guarded::start().await;
    let [key, _] = guarded.keys();
    for (first, second) in [("127.0.0.1", "evil.example"), ("evil.example", "127.0.0.1")] {
        let headers = [format!("host: {first}"), format!("host: {second}"), key.clone()];
        let answer = guarded.ask("GET /v1/models", &headers).await;
        assert!([400, 403].contains(&answer.status), "{first}, {second}: {}", answer.status);
    }
    guarded.weir.finish().await;
}

/// A request may name its target in full; then that counts, not the header.
#[tokio::test]
async fn a_foreign_target_is_refused_under_any_host() {
    let guarded = Guarded::start().await;
    let [key, _] = guarded.keys();
    let own = format!("http://127.0.0.1:{}", guarded.port());
    for (target, host, status) in [
        ("http://evil.example", "127.0.0.1", 403),
        ("http://127.0.0.1.evil.example", "localhost", 403),
        ("http://127.0.0.1@evil.example", "localhost", 403),
        (own.as_str(), "evil.example", 403),
        (own.as_str(), "127.0.0.1", 200),
    ] {
        let headers = [format!("host: {host}"), key.clone()];
        let answer = guarded.ask(&format!("GET {target}/v1/models"), &headers).await;
        assert_eq!(answer.status, status, "{target} under {host}: {}", answer.body);
    }
    for request in
        ["CONNECT evil.example:443", "OPTIONS *", "GET *", "GET //evil.example/v1/models"]
    {
        let headers = ["host: 127.0.0.1".to_owned(), key.clone()];
        let answer = guarded.ask(request, &headers).await;
        assert!((400..500).contains(&answer.status), "{request}: {}", answer.head);
    }
    guarded.weir.finish().await;
}

#[tokio::test]
async fn every_route_refuses_a_foreign_origin_whatever_the_key() {
    let guarded = Guarded::start().await;
    let port = guarded.port();
    let origins = [
        "https://evil.example".to_owned(),
        "http://evil.example".to_owned(),
        "null".to_owned(),
        "http://127.0.0.1:1".to_owned(),
        "http://127.0.0.1".to_owned(),
        format!("https://127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
        format!("http://127.0.0.1:{port}.evil.example"),
        format!("http://127.0.0.1:{port}/"),
        "file://".to_owned(),
        "tauri://localhost".to_owned(),
        String::new(),
    ];
    for route in ROUTES {
        for key in guarded.keys() {
            for origin in &origins {
                let host = format!("host: 127.0.0.1:{port}");
                let answer =
                    guarded.ask(route, &[host, format!("origin: {origin}"), key.clone()]).await;
                assert_eq!(
                    (answer.status, answer.code().as_str()),
                    (403, "foreign_origin"),
                    "{route} from {origin:?}"
                );
            }
        }
    }
    let two =
        [format!("origin: http://127.0.0.1:{port}"), "origin: https://evil.example".to_owned()];
    let host = format!("host: 127.0.0.1:{port}");
    let answer = guarded.ask("GET /healthz", &[vec![host], two.to_vec()].concat()).await;
    assert_eq!(answer.status, 403, "two origins");
    assert!(guarded.weir.upstream().is_empty());
    guarded.weir.finish().await;
}

#[tokio::test]
async fn our_own_page_is_answered() {
    let guarded = Guarded::start().await;
    let port = guarded.port();
    let [data, control] = guarded.keys();
    for name in ["127.0.0.1", "localhost", "[::1]"] {
        let own = [format!("host: {name}:{port}"), format!("origin: http://{name}:{port}")];
        for (route, key, status) in [
            ("GET /v1/models", &data, 200),
            ("GET /healthz", &data, 200),
            ("GET /", &control, 200),
            // It is let in, and then its body says nothing.
            ("POST /api", &control, 400),
            ("POST /v1/responses", &data, 400),
        ] {
            let headers = [own.to_vec(), vec![key.clone()]].concat();
            let answer = guarded.ask(route, &headers).await;
            assert_eq!(answer.status, status, "{route} from {name}: {}", answer.body);
        }
    }
    guarded.weir.finish().await;
}
