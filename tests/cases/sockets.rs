use serde_json::{Value, json};

use super::fixture;
use crate::support::bare::{KEY, endpoint};
use crate::support::client::{Got, http, read};
use crate::support::raw::MODEL;
use crate::support::raw_socket::{RawSockets, lines};
use crate::support::user;

/// A conversation that says everything every time.
struct Talk {
    base: String,
    input: Vec<Value>,
}

impl Talk {
    fn new(base: &str) -> Self {
        Self { base: base.to_owned(), input: vec![user("ping")] }
    }

    async fn turn(&mut self) -> Got {
        let body = json!({"model": MODEL, "input": self.input, "stream": true});
        let url = format!("{}/v1/responses", self.base);
        let request = http().post(url).bearer_auth(KEY).header("x-session-id", "talk");
        let got = read(request.json(&body)).await;
        if got.status == 200 {
            self.input.extend(got.events().items());
        }
        self.input.push(user("and then?"));
        got
    }
}

/// On which connection each frame came, and what it continued.
fn went(backend: &RawSockets) -> Vec<(usize, bool, usize)> {
    let frames = backend.frames().into_iter();
    let facts = frames.map(|(connection, frame)| {
        let items = frame["input"].as_array().map_or(0, Vec::len);
        (connection, frame.get("previous_response_id").is_some(), items)
    });
    facts.collect()
}

#[tokio::test]
async fn c98_a_connection_at_its_age_is_replaced_and_the_client_sees_nothing_of_it() {
    let limit = lines(fixture!("C98/upstream.limit.ws.jsonl"));
    let first = vec![lines(fixture!("C98/upstream.1.ws.jsonl")), limit.clone()];
    let second = vec![lines(fixture!("C98/upstream.2.ws.jsonl"))];
    let backend = RawSockets::start(vec![first.clone(), second], Vec::new()).await;
    let (base, _turns) = endpoint([backend.account("a")]).await;
    let mut talk = Talk::new(&base);
    talk.turn().await.events();
    let got = talk.turn().await;
    assert!(got.text.contains("fresh socket"), "{}", got.text);
    assert!(!got.text.contains("websocket_connection_limit_reached"));
    assert_eq!(went(&backend), [(1, false, 1), (1, true, 1), (2, false, 3)]);

    // A backend that says so for ever gets no third connection, and the client one clear error.
    let backend = RawSockets::start(vec![first, vec![limit.clone()]], limit).await;
    let (base, _turns) = endpoint([backend.account("a")]).await;
    let mut talk = Talk::new(&base);
    talk.turn().await.events();
    let got = talk.turn().await;
    assert_ne!(got.status, 200, "{}", got.text);
    assert_eq!(got.code(), "websocket_connection_limit_reached");
    let connections: Vec<_> =
        went(&backend).into_iter().map(|(connection, ..)| connection).collect();
    assert_eq!(connections, [1, 1, 2, 0]);
}

#[tokio::test]
async fn c99_what_the_backend_does_not_find_is_said_again_whole() {
    let first = vec![
        lines(fixture!("C98/upstream.1.ws.jsonl")),
        lines(fixture!("C99/upstream.1.ws.jsonl")),
    ];
    let second = vec![lines(fixture!("C99/upstream.2.ws.jsonl"))];
    let backend = RawSockets::start(vec![first, second], Vec::new()).await;
    let (base, _turns) = endpoint([backend.account("a")]).await;
    let mut talk = Talk::new(&base);
    talk.turn().await.events();
    let got = talk.turn().await;
    assert!(got.text.contains("full resend ok"), "{}", got.text);
    assert!(!got.text.contains("previous_response_not_found"));
    assert_eq!(went(&backend)[2], (2, false, 3));
}

#[tokio::test]
async fn c102_a_conversation_leaves_an_exhausted_account_with_everything_it_said() {
    let used_up = lines(fixture!("C102/upstream.A2.ws.jsonl"));
    let script = vec![lines(fixture!("C102/upstream.A1.ws.jsonl")), used_up];
    let first = RawSockets::start(vec![script], Vec::new()).await;
    let script = vec![lines(fixture!("C102/upstream.B.ws.jsonl"))];
    let second = RawSockets::start(vec![script], Vec::new()).await;
    let (base, _turns) = endpoint([first.account("a"), second.account("b")]).await;
    let mut talk = Talk::new(&base);
    talk.turn().await.events();
    let got = talk.turn().await;
    assert!(got.text.contains("B took over"), "{}", got.text);
    assert_eq!(went(&first), [(1, false, 1), (1, true, 1)], "asked once after its limit");
    let (_, frame) = second.frames().remove(0);
    assert_eq!(frame.get("previous_response_id"), None);
    assert_eq!(frame["input"].as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn c104_a_hand_off_between_agents_arrives_as_it_was_sent() {
    let script = vec![lines(fixture!("C104/upstream.ws.jsonl"))];
    let backend = RawSockets::start(vec![script], Vec::new()).await;
    let (base, _turns) = endpoint([backend.account("a")]).await;
    let case: Value = serde_json::from_slice(fixture!("C104/request.json")).expect("a request");
    let mut asked = case["frames"][0].clone();
    asked.as_object_mut().expect("a frame").remove("type");
    asked["model"] = json!(MODEL);
    let url = format!("{base}/v1/responses");
    read(http().post(url).bearer_auth(KEY).json(&asked)).await.events();
    let (connection, frame) = backend.frames().remove(0);
    assert_eq!((connection, &frame["input"][0]), (1, &asked["input"][0]));
}

#[tokio::test]
async fn a_limit_in_an_answer_stands_until_the_reset_that_its_headers_tell() {
    let begun = lines(fixture!("C98/upstream.1.ws.jsonl")).into_iter().take(6);
    let limit = r#"{"type":"error","status":429,"error":{"type":"usage_limit_reached","message":"m"},"headers":{"X-Codex-Primary-Used-Percent":"100","X-Codex-Primary-Window-Minutes":"300","X-Codex-Primary-Reset-At":"4000000000"}}"#;
    let script = vec![begun.chain([limit.to_owned()]).collect()];
    let backend = RawSockets::start(vec![script], Vec::new()).await;
    let (base, turns) = endpoint([backend.account("a")]).await;
    let got = Talk::new(&base).turn().await;
    assert_eq!(got.events().last()["type"], "response.failed");
    assert_eq!(turns.pool.views()[0].blocked_until, Some(4_000_000_000));
}
