//! The practice upstream over a real WebSocket.
//!
//! **Invariant**: no test waits for time to pass; gates, watched records and what the other side says decide.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Bytes, Error, Message, protocol::WebSocketConfig};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use crate::practice::tests::{events, full, items, kinds, lite, post, serve, start, user};
use crate::practice::{Options, PracticeWindow, Received, Scenario, Server, Transport};

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

type Head = http::Response<Option<Vec<u8>>>;

/// A handshake as a good client makes it.
fn handshake(server: &Server, account: usize) -> http::Request<()> {
    let url = format!("{}/responses", server.base_url().replace("http", "ws"));
    let mut request = url.into_client_request().expect("an address");
    let own = [
        ("authorization", format!("Bearer practice-token-{account}")),
        ("chatgpt-account-id", format!("practice-account-{account}")),
        ("openai-beta", "responses_websockets=2026-02-06".to_owned()),
        ("thread-id", "thread".to_owned()),
        ("sec-websocket-extensions", "permessage-deflate; client_max_window_bits".to_owned()),
    ];
    for (name, value) in own {
        request.headers_mut().insert(name, value.parse().expect("a value"));
    }
    request
}

async fn connect(request: http::Request<()>) -> Result<(Client, Head), Error> {
    // The limits of this side must not hide those of the other.
    let config = WebSocketConfig::default().max_frame_size(None).max_message_size(None);
    let (stream, head) = connect_async_with_config(request, Some(config), true).await?;
    Ok((Client(stream), head))
}

async fn dial(server: &Server) -> Client {
    connect(handshake(server, 1)).await.expect("an open socket").0
}

async fn refused(request: http::Request<()>) -> (u16, Value) {
    match connect(request).await {
        Err(Error::Http(response)) => {
            let body = response.body().as_deref().unwrap_or_default();
            (response.status().as_u16(), serde_json::from_slice(body).unwrap_or_default())
        }
        Err(error) => panic!("a refusal, not {error}"),
        Ok(_) => panic!("a refusal, not a socket"),
    }
}

impl Client {
    async fn say(&mut self, frame: &Value) {
        self.0.send(Message::text(frame.to_string())).await.expect("an open socket");
    }

    async fn hear(&mut self) -> Heard {
        match self.0.next().await {
            Some(Ok(Message::Text(text))) => {
                Heard::Event(serde_json::from_str(&text).expect("JSON in a frame"))
            }
            Some(Ok(Message::Close(frame))) => {
                Heard::Close(frame.map_or(0, |frame| frame.code.into()))
            }
            Some(Ok(Message::Pong(payload))) => Heard::Pong(payload),
            Some(Ok(other)) => panic!("not {other:?}"),
            Some(Err(_)) | None => Heard::Cut,
        }
    }

    async fn event(&mut self) -> Value {
        match self.hear().await {
            Heard::Event(event) => event,
            other => panic!("an event, not {other:?}"),
        }
    }

    /// The events of one response, without what is told about the connection first.
    async fn answer(&mut self) -> Vec<Value> {
        let (mut said, end) = self.until_end().await;
        assert_eq!(end, None);
        assert_eq!(said.remove(0)["type"], "response.metadata");
        said
    }

    /// Everything up to a terminal event, or up to the end of the socket.
    async fn until_end(&mut self) -> (Vec<Value>, Option<Heard>) {
        let mut said = Vec::new();
        loop {
            match self.hear().await {
                Heard::Event(event) => said.push(event),
                end => return (said, Some(end)),
            }
            if matches!(
                kinds(&said).last(),
                Some(&("response.completed" | "response.failed" | "response.incomplete" | "error"))
            ) {
                return (said, None);
            }
        }
    }

    async fn ask(&mut self, frame: &Value) -> Vec<Value> {
        self.say(frame).await;
        self.answer().await
    }

    async fn refused(&mut self, frame: &Value) -> Value {
        self.say(frame).await;
        let frame = self.event().await;
        assert_eq!(frame["type"], "error", "{frame}");
        frame
    }
}

#[derive(Debug, PartialEq)]
enum Heard {
    Event(Value),
    Close(u16),
    Pong(Bytes),
    Cut,
}

fn create(mut body: Value) -> Value {
    body["type"] = json!("response.create");
    body
}

fn after(previous: &[Value], mut body: Value) -> Value {
    body["previous_response_id"] = id(previous).clone();
    create(body)
}

fn id(said: &[Value]) -> &Value {
    &said.last().expect("a terminal event")["response"]["id"]
}

fn usage(said: &[Value]) -> (u64, u64) {
    let usage = &said.last().expect("a terminal event")["response"]["usage"];
    let number = |value: &Value| value.as_u64().expect("a number");
    (number(&usage["input_tokens"]), number(&usage["input_tokens_details"]["cached_tokens"]))
}

fn output(call: &Value, text: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": call["call_id"], "output": text })
}

#[tokio::test]
async fn the_same_events_as_frames() {
    let server = serve("").await;
    let body = full(json!([user("Launch three subagents")]));
    let over_http = events(post(&server, 1, &body)).await;
    let (mut client, head) = connect(handshake(&server, 1)).await.expect("an open socket");
    let over_ws = client.ask(&create(body.clone())).await;
    let sorted = |events: &[Value]| {
        let mut kinds: Vec<String> = kinds(events).into_iter().map(str::to_owned).collect();
        kinds.sort();
        kinds
    };
    assert_eq!(sorted(&over_http), sorted(&over_ws));
    assert!(kinds(&over_ws).contains(&"codex.rate_limits"));
    assert_eq!(items(&over_ws).len(), 3);

    let told = |name: &str| head.headers().get(name).and_then(|value| value.to_str().ok());
    assert_eq!(told("x-codex-primary-window-minutes"), Some("300"));
    assert!(told("x-models-etag").is_some() && told("x-codex-turn-state").is_some());
    assert_eq!(told("sec-websocket-extensions"), None, "compression is declined");

    let requests = server.requests();
    let road = |request: &Received| (request.transport, request.socket);
    assert_eq!(road(&requests[0]), (Transport::Http, None));
    assert_eq!(road(&requests[1]), (Transport::Ws, Some(1)));
    assert_eq!(requests[1].body, create(body));
    assert_eq!(requests[1].path, requests[0].path);
    assert_eq!(requests[1].conversation.as_deref(), Some("thread"));
    assert_eq!((requests[1].status, requests[1].outcome.as_str()), (200, "completed"));
    let shown = serde_json::to_value(&requests[1]).expect("a line of the record");
    assert_eq!((&shown["transport"], &shown["socket"]), (&json!("ws"), &json!(1)));
    assert_eq!(server.violations(), [""; 0]);
}

#[tokio::test]
async fn only_what_is_new_has_to_be_said() {
    let server = serve("").await;
    let mut client = dial(&server).await;
    let first = client.ask(&create(full(json!([user("Launch two subagents")])))).await;
    let calls = items(&first);
    let outputs = json!([output(&calls[0], "alpha"), output(&calls[1], "bravo")]);
    let second = client.ask(&after(&first, full(outputs))).await;
    let text = &items(&second)[0]["content"][0]["text"];
    assert_eq!(text, "Practice upstream: 2 calls came back: alpha, bravo.");
    assert_eq!(&second[1]["response"]["previous_response_id"], id(&first));
    let third = client.ask(&after(&second, full(json!([user("Thanks")])))).await;
    assert_eq!(server.violations(), [""; 0]);

    let requests = server.requests();
    let counted = |request: &Received| (request.input_items, request.history_items);
    assert_eq!(requests.iter().map(counted).collect::<Vec<_>>(), [(1, 1), (2, 5), (1, 7)]);
    assert_eq!(requests[2].previous_response_id.as_deref(), id(&second).as_str());
    assert_eq!(usage(&first).1, 0);
    let (whole, cached) = usage(&third);
    assert!(cached > usage(&second).1 && cached < whole, "{cached} of {whole}");
    assert!(whole > usage(&first).0, "a model reads the whole history");
    // Over HTTP the same history has to be said, and what was answered was never said before.
    events(post(&server, 1, &full(json!([user("Launch two subagents")])))).await;
    let said = [user("Launch two subagents"), calls[0].clone(), calls[1].clone()];
    let outputs = [output(&calls[0], "alpha"), output(&calls[1], "bravo")];
    let over_http = post(&server, 1, &full(json!([&said[..], &outputs[..]].concat())));
    let over_http = usage(&events(over_http).await);
    assert!(usage(&second).1 > over_http.1, "{} and {}", usage(&second).1, over_http.1);
}

#[tokio::test]
async fn rules_hold_for_the_whole_history() {
    let server = serve("").await;
    let mut client = dial(&server).await;
    let opening = create(full(json!([user("Launch one subagents")])));
    let first = client.ask(&opening).await;
    let call = items(&first)[0].clone();
    let complaint = |frame: Value| frame["error"]["message"].as_str().unwrap_or("?").to_owned();
    // The call is held and has no output yet.
    let forgotten = client.refused(&after(&first, full(json!([user("and?")])))).await;
    let call_id = call["call_id"].as_str().expect("an id");
    assert_eq!(complaint(forgotten), format!("No tool output found for function call {call_id}."));
    // What failed has to be said again as a whole.
    let whole = client.refused(&after(&first, full(json!([output(&call, "x")])))).await;
    assert_eq!(
        (&whole["status"], &whole["error"]["code"]),
        (&json!(400), &json!("previous_response_not_found"))
    );
    assert_eq!(server.violations().len(), 1, "that it was dropped is nobody's fault");
    // What the socket holds is said a second time.
    let again = client.ask(&opening).await;
    let call = items(&again)[0].clone();
    let said_twice = json!([call, output(&call, "x")]);
    let twice = client.refused(&after(&again, full(said_twice))).await;
    let id = call["id"].as_str().expect("an id");
    assert!(complaint(twice).starts_with(&format!("Duplicate item found with id {id}")));
    assert_eq!(server.violations().len(), 3, "its id and its call id");
    let mut wrong = opening.clone();
    wrong["temperature"] = json!(1);
    let wrong = client.refused(&wrong).await;
    assert_eq!(complaint(wrong), "Unsupported parameter: temperature");
    // The socket is as good as before.
    assert_eq!(items(&client.ask(&opening).await).len(), 1);
}

#[tokio::test]
async fn a_response_belongs_to_its_socket() {
    let server = serve("").await;
    let mut client = dial(&server).await;
    let first = client.ask(&create(full(json!([user("hello")])))).await;
    let more = after(&first, full(json!([user("again")])));
    let elsewhere = dial(&server).await.refused(&more).await;
    assert_eq!(elsewhere["error"]["code"], "previous_response_not_found");
    assert_eq!(elsewhere["error"]["param"], "previous_response_id");
    let id = id(&first).as_str().expect("an id");
    assert_eq!(
        server.violations(),
        [format!("request 2: Previous response with id '{id}' not found.")]
    );
    // It was only asked for elsewhere, so it is still held here; over HTTP it never is.
    client.ask(&more).await;
    let mut body = full(json!([user("again")]));
    body["previous_response_id"] = json!(id);
    assert_eq!(post(&server, 1, &body).send().await.expect("an answer").status(), 400);
    let requests = server.requests();
    let sockets: Vec<_> = requests.iter().map(|request| request.socket).collect();
    assert_eq!(sockets, [Some(1), Some(2), Some(1), None]);
}

#[tokio::test]
async fn a_warm_up_says_nothing_and_can_be_gone_on_from() {
    let server = serve("[[rule]]\nwhen = { nth = 1 }\nreply = { text = 'the first turn' }").await;
    let mut client = dial(&server).await;
    let mut warm_up = create(full(json!([user("context")])));
    warm_up["generate"] = json!(false);
    client.say(&warm_up).await;
    let (said, _) = client.until_end().await;
    assert_eq!(kinds(&said), ["response.created", "response.completed"]);
    assert!(id(&said).as_str().is_some_and(|id| id.starts_with("resp_")));
    let turn = client.ask(&after(&said, full(json!([user("hello")])))).await;
    assert_eq!(items(&turn)[0]["content"][0]["text"], "the first turn");
    let (whole, cached) = usage(&turn);
    assert!(cached > 0 && cached < whole);
    let in_flight: Vec<usize> = server.requests().iter().map(|request| request.in_flight).collect();
    assert_eq!(in_flight, [0, 1], "nothing is in flight for it");
}

#[tokio::test]
async fn each_frame_says_its_dialect() {
    let server = serve("").await;
    let mut client = dial(&server).await;
    let marker = json!({ "ws_request_header_x_openai_internal_codex_responses_lite": "true" });
    let marked = |mut body: Value| {
        body["client_metadata"] = marker.clone();
        body
    };
    let first = client.ask(&create(marked(lite(&[user("Launch two subagents")])))).await;
    let call = items(&first).pop().expect("a call");
    // The tools are part of what is held.
    let mut more = marked(lite(&[]));
    more["input"] = json!([output(&call, "alpha")]);
    let second = client.ask(&after(&first, more.clone())).await;
    let call = items(&second).pop().expect("the next call");
    assert!(call["arguments"].as_str().is_some_and(|text| text.contains("bravo")));
    more["input"] = json!([output(&call, "bravo")]);
    more["client_metadata"] = json!({});
    let unmarked = client.refused(&after(&second, more)).await;
    assert_eq!(unmarked["error"]["message"], "Invalid value: 'additional_tools'.");
    client.ask(&create(full(json!([user("hello")])))).await;
    let lanes: Vec<bool> = server.requests().iter().map(|request| request.lite).collect();
    assert_eq!(lanes, [true, true, false, false]);
}

#[tokio::test]
async fn one_response_at_a_time() {
    let server =
        serve("[[rule]]\nwhen = { prompt = 'wait' }\nreply = { text = 'x', gate = 'g' }").await;
    let mut client = dial(&server).await;
    client.say(&create(full(json!([user("wait")])))).await;
    while client.event().await["type"] != "response.in_progress" {}
    let second = client.refused(&create(full(json!([user("hello")])))).await;
    assert_eq!(second["error"]["code"], "conversation_already_has_active_response");
    server.open_gate("g");
    let (said, end) = client.until_end().await;
    assert_eq!((kinds(&said).last(), end), (Some(&"response.completed"), None));
    assert_eq!(server.violations().len(), 1);
    assert_eq!(server.violations().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_may_ask_again_as_soon_as_it_has_seen_the_end() {
    let server = serve("").await;
    let mut client = dial(&server).await;
    for _ in 0..150 {
        client.ask(&create(full(json!([user("hello")])))).await;
    }
    assert_eq!(server.violations(), [""; 0]);
}

#[tokio::test]
async fn turn_state_travels_in_the_metadata() {
    let server = serve("").await;
    let mut client = dial(&server).await;
    let mut frame = create(full(json!([user("hello")])));
    client.say(&frame).await;
    let told = client.event().await["headers"].clone();
    assert_eq!(told["openai-model"], "practice-full");
    client.until_end().await;
    frame["client_metadata"] = json!({ "x-codex-turn-state": told["x-codex-turn-state"] });
    client.ask(&frame).await;
    assert_eq!(server.violations(), [""; 0]);
    let (mut other, _) = connect(handshake(&server, 2)).await.expect("an open socket");
    other.ask(&frame).await;
    assert_eq!(server.violations(), ["request 3: x-codex-turn-state is another account's"]);
}

#[tokio::test]
async fn what_is_no_frame_closes_the_socket() {
    let server = serve("").await;
    let mut client = dial(&server).await;
    client.0.send(Message::binary(vec![1])).await.expect("an open socket");
    assert_eq!(client.hear().await, Heard::Close(1003));
    let mut client = dial(&server).await;
    let frame = |length: usize| {
        let empty = json!({ "type": "odd", "x": "" }).to_string().len();
        json!({ "type": "odd", "x": "x".repeat(length - empty) })
    };
    let read = client.refused(&frame((16 << 20) - 1)).await;
    assert_eq!(read["error"]["param"], "type");
    client.say(&frame(16 << 20)).await;
    assert_eq!(client.hear().await, Heard::Close(1009));
    assert_eq!(
        server.violations(),
        [
            "request 1: a frame is binary",
            "request 2: Invalid value: \"odd\". Supported values are: 'response.create'.",
            "request 3: a frame of 16777216 bytes is too big",
        ]
    );
    server.wait_for_sockets(0).await;
}

#[tokio::test]
async fn a_socket_grows_old() {
    let server = serve("socket_limit_after = 2").await;
    let mut client = dial(&server).await;
    let frame = create(full(json!([user("hello")])));
    client.ask(&frame).await;
    client.ask(&frame).await;
    let limit = client.refused(&frame).await;
    assert_eq!(
        (&limit["status"], &limit["error"]["code"]),
        (&json!(400), &json!("websocket_connection_limit_reached"))
    );
    assert_eq!(client.hear().await, Heard::Close(1000));
    dial(&server).await.ask(&frame).await;
    assert_eq!(server.violations(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_socket_lives_for_an_hour() {
    let server = serve("").await;
    let mut client = dial(&server).await;
    let opened = tokio::time::Instant::now();
    // The only clock that anybody waits for is the socket's.
    let limit = client.event().await;
    assert_eq!(opened.elapsed().as_secs(), 60 * 60);
    assert_eq!(limit["error"]["code"], "websocket_connection_limit_reached");
    assert_eq!(client.hear().await, Heard::Close(1000));
}

#[tokio::test]
async fn who_may_open_a_socket() {
    let server = serve(
        "[[rule]]\nwhen = { account = 'practice 3' }\nreplies = [{ ws_refuse = 403 }, { ws_refuse = 500 }]\n\
         [[rule]]\nwhen = { account = 'practice 2', nth = 1 }\nreply = { ws_refuse = 426 }",
    )
    .await;
    let mut stale = handshake(&server, 1);
    stale.headers_mut().insert("authorization", "Bearer stale".parse().expect("a value"));
    let (status, body) = refused(stale).await;
    assert_eq!((status, &body["error"]["code"]), (401, &json!("token_invalidated")));
    let mut plain = handshake(&server, 1);
    plain.headers_mut().remove("openai-beta");
    assert_eq!(refused(plain).await.0, 400);
    assert_eq!(server.violations(), ["request 2: Missing or unsupported OpenAI-Beta header: ''."]);
    let third = async || refused(handshake(&server, 3)).await.0;
    assert_eq!((third().await, third().await), (403, 500));
    assert!(connect(handshake(&server, 3)).await.is_ok(), "then the rule is used up");
    let mut named = handshake(&server, 2);
    named.headers_mut().insert("thread-id", "fresh".parse().expect("a value"));
    assert_eq!(refused(named.clone()).await.0, 426);
    let (mut second, _) = connect(named).await.expect("an open socket");
    let requests = server.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.transport == Transport::Ws && request.outcome == "refused")
    );
    assert_eq!(requests.len(), 5, "those that were accepted are known by their frames");
    let said = second.ask(&create(full(json!([user("hello")])))).await;
    assert_eq!(items(&said).len(), 1, "such a rule says nothing to a turn");
}

#[tokio::test]
async fn faults_of_a_script() {
    let server = serve(
        "[[rule]]\nwhen = { prompt = 'cut' }\nreply = { text = 'x', cut_after_event = 4 }\n\
         [[rule]]\nwhen = { prompt = 'bytes' }\nreply = { text = 'x', cut_after_bytes = 1 }\n\
         [[rule]]\nwhen = { prompt = 'early' }\nreply = { text = 'x', cut_after_event = 0, ws_close = 1011 }\n\
         [[rule]]\nwhen = { prompt = 'middle' }\nreply = { text = 'x', cut_after_event = 4, ws_close = 1012 }\n\
         [[rule]]\nwhen = { prompt = 'late' }\nreply = { text = 'x', ws_close = 1001 }\n\
         [[rule]]\nwhen = { prompt = 'open' }\nreply = { text = 'x', no_terminal = true }",
    )
    .await;
    let fate = async |prompt: &str| {
        let mut client = dial(&server).await;
        client.say(&create(full(json!([user(prompt)])))).await;
        let (said, mut end) = client.until_end().await;
        if end.is_none() {
            end = Some(client.hear().await);
        }
        let counted = said.iter().filter(|event| event["type"] != "response.metadata").count();
        let whole = kinds(&said).contains(&"response.completed");
        (counted, whole, end.expect("an end"))
    };
    assert_eq!(fate("cut").await, (4, false, Heard::Cut));
    assert_eq!(fate("bytes").await, (0, false, Heard::Cut));
    assert_eq!(fate("early").await, (0, false, Heard::Close(1011)));
    assert_eq!(fate("middle").await, (4, false, Heard::Close(1012)));
    let (_, whole, end) = fate("late").await;
    assert_eq!((whole, end), (true, Heard::Close(1001)));
    let (_, whole, end) = fate("open").await;
    assert_eq!((whole, end), (false, Heard::Close(1000)));
    let outcomes: Vec<_> = server.requests().iter().map(|r| r.outcome.clone()).collect();
    assert_eq!(outcomes, ["cut", "cut", "cut", "cut", "completed", "cut"]);
}

#[tokio::test]
async fn endings_inside_a_stream() {
    let server = serve(
        r#"
        [[rule]]
        when = { prompt = "failed" }
        reply = { failed_event = { code = "server_is_overloaded", message = "busy" } }
        [[rule]]
        when = { prompt = "refused", only = "http" }
        reply = { status = 503 }
        [[rule]]
        when = { prompt = "refused", only = "ws" }
        reply = { status = 502, json = { error = { code = "odd" } }, headers = { retry-after = "2" } }
        [[rule]]
        when = { prompt = "limit" }
        reply = { status = 429 }
        "#,
    )
    .await;
    let mut client = dial(&server).await;
    let frame = |prompt: &str| create(full(json!([user(prompt)])));
    let good = client.ask(&frame("hello")).await;
    let failed = client.ask(&after(&good, full(json!([user("failed")])))).await;
    assert_eq!(failed.last().expect("an end")["type"], "response.failed");
    let gone = client.refused(&after(&failed, full(json!([user("more")])))).await;
    assert_eq!(gone["error"]["code"], "previous_response_not_found");
    let odd = client.refused(&frame("refused")).await;
    assert_eq!((&odd["status"], &odd["error"]["code"]), (&json!(502), &json!("odd")));
    assert_eq!(odd["headers"]["retry-after"], "2");
    let over_http = post(&server, 1, &full(json!([user("refused")]))).send().await;
    assert_eq!(over_http.expect("an answer").status(), 503);
    let limit = client.refused(&frame("limit")).await;
    assert_eq!(
        (&limit["status_code"], &limit["error"]["type"]),
        (&json!(429), &json!("usage_limit_reached"))
    );
    assert_eq!(limit["headers"]["x-codex-primary-window-minutes"], "300");
    client.ask(&frame("hello")).await;
    let status: Vec<u16> = server.requests().iter().map(|request| request.status).collect();
    assert_eq!(status, [200, 200, 400, 502, 503, 429, 200]);
}

#[tokio::test]
async fn quota_counts_down_on_a_socket_too() {
    let mut options = Options { scenario: Scenario::instant(), ..Options::default() };
    options.accounts[0].windows =
        vec![PracticeWindow { minutes: 300, used_percent: 98.5, resets_in_s: 600, step: 1.5 }];
    let server = start(options).await;
    let mut client = dial(&server).await;
    let frame = create(full(json!([user("hello")])));
    let mut warm_up = frame.clone();
    warm_up["generate"] = json!(false);
    client.say(&warm_up).await;
    client.until_end().await;
    let said = client.ask(&frame).await;
    let limits = said.iter().find(|event| event["type"] == "codex.rate_limits");
    assert_eq!(limits.expect("it is told")["rate_limits"]["limit_reached"], true);
    assert_eq!(client.refused(&frame).await["error"]["type"], "usage_limit_reached");
}

#[tokio::test]
async fn a_silent_socket_still_answers_pings_and_a_deaf_one_does_not() {
    let server = serve(
        "[[rule]]\nwhen = { prompt = 'silent' }\nreply = { silent = true }\n\
         [[rule]]\nwhen = { prompt = 'deaf' }\nreply = { text = 'x', ws_deaf = true }",
    )
    .await;
    let mut client = dial(&server).await;
    client.say(&create(full(json!([user("silent")])))).await;
    client.0.send(Message::Ping("a".into())).await.expect("an open socket");
    assert_eq!(client.hear().await, Heard::Pong("a".into()));
    drop(client);
    server.wait_for(|all| all.iter().all(|request| request.outcome == "cancelled")).await;
    server.wait_for_sockets(0).await;

    let mut client = dial(&server).await;
    client.ask(&create(full(json!([user("deaf")])))).await;
    client.0.send(Message::Ping("b".into())).await.expect("an open socket");
    // Had it listened it would have answered before another socket's whole turn was over.
    let mut other = dial(&server).await;
    other.ask(&create(full(json!([user("hello")])))).await;
    assert_eq!(server.open_sockets(), 2);
    server.stop().await;
    assert_eq!(client.hear().await, Heard::Cut);
}

#[tokio::test]
async fn a_client_that_goes_away_cancels() {
    let server = serve("[[rule]]\nreply = { text = 'x', stall_after_event = 3 }").await;
    let mut client = dial(&server).await;
    client.say(&create(full(json!([user("stall")])))).await;
    server.wait_for(|all| all.iter().any(|request| request.status == 200)).await;
    assert_eq!(server.open_sockets(), 1);
    client.0.close(None).await.expect("an open socket");
    server.wait_for(|all| all.iter().all(|request| request.outcome == "cancelled")).await;
    server.wait_for_sockets(0).await;
    let mut client = dial(&server).await;
    client.say(&create(full(json!([user("stall")])))).await;
    server.wait_for(|all| all.len() == 2 && all[1].status == 200).await;
    server.stop().await;
    let (_, end) = client.until_end().await;
    assert_eq!(end, Some(Heard::Cut));
}
