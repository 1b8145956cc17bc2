//! The practice upstream over real HTTP.
//!
//! **Invariant**: no test waits for time to pass; gates, gatherings and watched records decide.

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use super::{Options, PracticeWindow, Received, Scenario, Server};

pub(super) async fn serve(scenario: &str) -> Server {
    let scenario = Scenario::from_toml(&format!("pace = 0.0\n{scenario}")).expect("a scenario");
    start(Options { scenario, ..Options::default() }).await
}

pub(super) async fn start(options: Options) -> Server {
    Server::start(options).await.expect("a free port")
}

pub(super) fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

pub(super) fn signed(request: RequestBuilder, account: usize) -> RequestBuilder {
    request
        .bearer_auth(format!("practice-token-{account}"))
        .header("chatgpt-account-id", format!("practice-account-{account}"))
}

pub(super) fn post(server: &Server, account: usize, body: &Value) -> RequestBuilder {
    signed(client().post(format!("{}/responses", server.base_url())).json(body), account)
}

pub(super) fn full(input: Value) -> Value {
    json!({
        "model": "practice-full", "store": false, "stream": true, "prompt_cache_key": "s",
        "tools": [{ "type": "function", "name": "task" }], "input": input,
    })
}

pub(super) fn lite(input: &[Value]) -> Value {
    let tools = json!({ "type": "additional_tools", "role": "developer",
                        "tools": [{ "type": "function", "name": "task" }] });
    let input: Vec<Value> = std::iter::once(tools).chain(input.iter().cloned()).collect();
    json!({
        "model": "practice-lite", "store": false, "stream": true, "prompt_cache_key": "s",
        "parallel_tool_calls": false, "reasoning": { "context": "all_turns" }, "input": input,
    })
}

pub(super) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

pub(super) async fn sent(request: RequestBuilder) -> Response {
    request.send().await.expect("an answer")
}

/// The events of an answer that ended in good order.
pub(super) async fn events(request: RequestBuilder) -> Vec<Value> {
    let response = sent(request).await;
    assert_eq!(response.status(), 200);
    parse(&response.text().await.expect("a whole stream"))
}

fn parse(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

pub(super) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}

pub(super) fn items(events: &[Value]) -> Vec<Value> {
    let done = events.iter().filter(|event| event["type"] == "response.output_item.done");
    done.map(|event| event["item"].clone()).collect()
}

async fn json_of(request: RequestBuilder) -> (u16, Value) {
    let response = sent(request).await;
    (response.status().as_u16(), response.json().await.expect("JSON"))
}

#[tokio::test]
async fn three_siblings_in_full_and_one_by_one_in_lite() {
    let server = serve("").await;
    let prompt = user("Launch three subagents");
    let in_full = items(&events(post(&server, 1, &full(json!([prompt])))).await);
    assert_eq!(in_full.len(), 3);

    let marked = |body: &Value| {
        post(&server, 1, body).header("x-openai-internal-codex-responses-lite", "true")
    };
    let mut history = vec![prompt];
    let mut calls = Vec::new();
    for word in ["alpha", "bravo", "charlie"] {
        let said = items(&events(marked(&lite(&history))).await);
        let [_, call] = &said[..] else { panic!("a thought and a call, not {said:?}") };
        assert!(call["arguments"].as_str().is_some_and(|text| text.contains(word)));
        calls.push(call.clone());
        history.push(call.clone());
        let call_id = &call["call_id"];
        history.push(json!({ "type": "function_call_output", "call_id": call_id, "output": word }));
    }
    let end = items(&events(marked(&lite(&history))).await);
    let text = &end[1]["content"][0]["text"];
    assert_eq!(text, "Practice upstream: 3 calls came back: alpha, bravo, charlie.");
    let argued = |calls: &[Value]| calls.iter().map(|c| c["arguments"].clone()).collect::<Vec<_>>();
    assert_eq!(argued(&in_full), argued(&calls));
    assert_eq!(server.violations(), [""; 0]);
    let seen: Vec<bool> = server.requests().iter().map(|request| request.lite).collect();
    assert_eq!(seen, [false, true, true, true, true]);
}

#[tokio::test]
async fn who_is_it() {
    let server = serve("").await;
    let body = full(json!([user("hello")]));
    let url = format!("{}/responses", server.base_url());
    let (status, answer) = json_of(client().post(&url).json(&body)).await;
    assert_eq!((status, &answer["error"]["code"]), (401, &json!("token_invalidated")));
    assert_eq!(server.violations(), [""; 0], "a stale token is nobody's fault");
    let other = client().post(&url).json(&body).bearer_auth("practice-token-1");
    let (status, _) = json_of(other.header("chatgpt-account-id", "practice-account-2")).await;
    assert_eq!(status, 401);
    assert_eq!(server.violations(), ["request 2: chatgpt-account-id is not the token's account"]);
    let requests = server.requests();
    let shown = |request: &Received| {
        let found = request.headers.iter().find(|(name, _)| name == "authorization");
        found.map(|(_, value)| value.clone())
    };
    assert_eq!(shown(&requests[0]), None);
    assert_eq!(shown(&requests[1]).as_deref(), Some("practice 1"));
    assert!(requests.iter().all(|request| request.outcome == "refused"));
}

#[tokio::test]
async fn a_broken_rule_is_answered_and_kept() {
    let server = serve("").await;
    let mut body =
        full(json!([{ "type": "function_call_output", "call_id": "call_x", "output": "" }]));
    body["temperature"] = json!(1);
    let (status, answer) = json_of(post(&server, 1, &body)).await;
    assert_eq!((status, &answer["detail"]), (400, &json!("Unsupported parameter: temperature")));
    assert_eq!(
        server.violations(),
        [
            "request 1: Unsupported parameter: temperature",
            "request 1: No tool call found for function call output with call_id call_x."
        ]
    );
    // What circumstances cause is refused without blame.
    for (model, status) in [("nobody", 400), ("practice-full", 400)] {
        let mut body = lite(&[user("hello")]);
        body["model"] = json!(model);
        let marked =
            post(&server, 1, &body).header("x-openai-internal-codex-responses-lite", "true");
        assert_eq!(json_of(marked).await.0, status, "{model}");
    }
    assert_eq!(server.violations().len(), 2);
}

#[tokio::test]
async fn ciphertext_and_turn_state_belong_to_their_account() {
    let server = serve("").await;
    let mut body = full(json!([user("hello")]));
    body["reasoning"] = json!({ "effort": "low" });
    body["include"] = json!(["reasoning.encrypted_content"]);
    let response = sent(post(&server, 1, &body)).await;
    let state = response.headers()["x-codex-turn-state"].clone();
    let mut said = items(&parse(&response.text().await.expect("a stream")));
    said.truncate(1);
    assert_eq!(said[0]["type"], "reasoning");
    body["input"] = json!([user("hello"), said[0]]);
    let again = |account| post(&server, account, &body).header("x-codex-turn-state", &state);
    assert_eq!(sent(again(1)).await.status(), 200);
    assert_eq!(server.violations(), [""; 0]);
    let (status, answer) = json_of(again(2)).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("invalid_encrypted_content")));
    assert_eq!(server.violations(), ["request 3: x-codex-turn-state is another account's"]);
}

#[tokio::test]
async fn quota_counts_down_to_the_limit() {
    let mut options = Options { scenario: Scenario::instant(), ..Options::default() };
    options.accounts[0].windows =
        vec![PracticeWindow { minutes: 300, used_percent: 98.5, resets_in_s: 600, step: 1.0 }];
    let server = start(options).await;
    let body = full(json!([user("hello")]));
    for used in ["99.5", "100"] {
        let response = sent(post(&server, 1, &body)).await;
        assert_eq!(response.headers()["x-codex-primary-used-percent"], used);
        let said = parse(&response.text().await.expect("a stream"));
        let limits = said.iter().find(|event| event["type"] == "codex.rate_limits");
        let told = limits.map(|event| event["rate_limits"]["primary"]["used_percent"].to_string());
        assert_eq!(told.map(|t| t.trim_end_matches(".0").to_owned()).as_deref(), Some(used));
    }
    let response = sent(post(&server, 1, &body)).await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["x-codex-primary-used-percent"], "100");
    let answer: Value = response.json().await.expect("JSON");
    assert_eq!(answer["error"]["type"], "usage_limit_reached");
    assert_eq!(answer["error"]["plan_type"], "practice");
    assert!(answer["error"].get("code").is_none());
    let usage = server.base_url().replace("/codex", "/wham/usage");
    let (status, usage) = json_of(signed(client().get(usage), 1)).await;
    assert_eq!((status, &usage["rate_limit"]["limit_reached"]), (200, &json!(true)));
    assert_eq!(usage["rate_limit"]["primary_window"]["limit_window_seconds"], 18_000);
    assert_eq!(sent(post(&server, 2, &body)).await.status(), 200, "the others go on");
}

#[tokio::test]
async fn the_other_paths() {
    let server = serve("").await;
    let get = |path: &str| signed(client().get(format!("{}{path}", server.base_url())), 1);
    let models = sent(get("/models?client_version=0.171.0")).await;
    let etag = models.headers()["etag"].clone();
    let models: Value = models.json().await.expect("JSON");
    assert_eq!(models["models"][1]["slug"], "practice-lite");
    let turn = sent(post(&server, 1, &full(json!([])))).await;
    assert_eq!(turn.headers()["x-models-etag"], etag);
    assert_eq!(json_of(get("/models")).await.0, 400);
    let upgrade = get("/responses").header("connection", "upgrade").header("upgrade", "websocket");
    assert_eq!(json_of(upgrade).await.0, 426);
    assert_eq!(json_of(get("/elsewhere")).await, (404, json!({ "detail": "Not Found" })));
}

#[tokio::test]
async fn the_second_time_is_cached() {
    let server = serve("").await;
    let ask = async |account, input: Value| {
        let said = events(post(&server, account, &full(input))).await;
        let usage = said.last().expect("a terminal event")["response"]["usage"].clone();
        let number = |value: &Value| value.as_u64().expect("a number");
        (number(&usage["input_tokens"]), number(&usage["input_tokens_details"]["cached_tokens"]))
    };
    let (whole, cached) = ask(1, json!([user("hello")])).await;
    assert!(whole > 20 && cached == 0);
    let (whole, cached) = ask(1, json!([user("hello"), user("again")])).await;
    assert!(cached > 0 && cached < whole);
    assert_eq!(ask(2, json!([user("hello")])).await.1, 0, "not on another account");
}

#[tokio::test]
async fn a_gathering_proves_that_requests_overlap() {
    let server = serve(
        "[[rule]]\nwhen = { prompt = 'single word' }\nreply = { text = 'alpha', hold_until_in_flight = 3 }",
    )
    .await;
    let child = || {
        let body = full(json!([user("Reply with the single word alpha")]));
        events(post(&server, 1, &body).header("x-parent-session-id", "parent"))
    };
    let lonely = async {
        server.wait_for(|all| all.len() == 1).await;
        assert_eq!(server.requests()[0].ended_ms, None, "one alone is not answered");
    };
    tokio::select! {
        _ = child() => panic!("one alone is not answered"),
        () = lonely => {}
    }
    server.wait_for(|all| all.iter().all(|request| request.outcome == "cancelled")).await;
    let (a, b, c) = tokio::join!(child(), child(), child());
    assert!([a, b, c].iter().all(|said| kinds(said).last() == Some(&"response.completed")));
    let mut in_flight: Vec<usize> =
        server.requests().iter().skip(1).map(|request| request.in_flight).collect();
    in_flight.sort_unstable();
    assert_eq!(in_flight, [1, 2, 3]);
}

#[tokio::test]
async fn a_gate_holds_where_the_script_says() {
    let server = serve(
        "[[rule]]\nwhen = { prompt = 'head' }\nreply = { text = 'x', gate = 'a', at = 'headers' }\n\
         [[rule]]\nreply = { text = 'x', gate = 'b', at = 'end' }",
    )
    .await;
    let head = tokio::spawn(sent(post(&server, 1, &full(json!([user("head")])))));
    let mut tail = sent(post(&server, 1, &full(json!([user("tail")])))).await;
    let mut heard = String::new();
    while !heard.contains("output_item.done") {
        let chunk = tail.chunk().await.expect("in good order").expect("more");
        heard.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(!heard.contains("response.completed"));
    server.wait_for(|all| all.len() == 2).await;
    assert!(!head.is_finished());
    assert!(server.requests().iter().all(|request| request.ended_ms.is_none()));
    server.open_gate("a");
    assert_eq!(head.await.expect("no panic").status(), 200);
    server.open_gate("b");
    assert!(tail.text().await.expect("the rest").contains("response.completed"));
}

#[tokio::test]
async fn cuts_come_after_what_was_said() {
    let server = serve(
        "[[rule]]\nwhen = { prompt = 'event' }\nreply = { text = 'x', cut_after_event = 4 }\n\
         [[rule]]\nwhen = { prompt = 'bytes' }\nreply = { text = 'x', cut_after_bytes = 300, chunk_bytes = 7 }\n\
         [[rule]]\nwhen = { prompt = 'eof' }\nreply = { text = 'x', no_terminal = true, crlf = true }",
    )
    .await;
    let heard = async |prompt: &str| {
        let mut response = sent(post(&server, 1, &full(json!([user(prompt)])))).await;
        let mut heard = String::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => heard.push_str(&String::from_utf8_lossy(&chunk)),
                Ok(None) => return (heard, true),
                Err(_) => return (heard, false),
            }
        }
    };
    let (text, whole) = heard("event").await;
    assert_eq!((parse(&text).len(), whole), (4, false));
    let (text, whole) = heard("bytes").await;
    assert_eq!((text.len(), whole), (300, false));
    let (text, whole) = heard("eof").await;
    assert!(whole && text.contains("\r\n\r\n") && !text.contains("response.completed"));
    assert!(server.requests().iter().all(|request| request.outcome == "cut"));
}

#[tokio::test]
async fn refusals_and_endings_of_a_script() {
    let server = serve(
        r#"
        [[rule]]
        when = { prompt = "twice" }
        [[rule.replies]]
        status = 503
        headers = { retry-after = "2" }
        [[rule.replies]]
        status = 403
        html = "<html>challenge</html>"
        [[rule]]
        when = { account = "practice 2" }
        reply = { status = 429 }
        [[rule]]
        when = { prompt = "failed" }
        reply = { failed_event = { code = "server_is_overloaded", message = "busy" } }
        [[rule]]
        when = { prompt = "limit" }
        reply = { usage_limit_event = true }
        [[rule]]
        when = { prompt = "items" }
        reply = { items = [{ type = "odd_item", id = "odd_1" }], events = [{ type = "odd.event" }] }
        "#,
    )
    .await;
    let ask = |account, prompt: &str| post(&server, account, &full(json!([user(prompt)])));
    let first = sent(ask(1, "twice")).await;
    assert_eq!(
        (first.status().as_u16(), &first.headers()["retry-after"]),
        (503, &"2".parse().expect("a value"))
    );
    let second = sent(ask(1, "twice")).await;
    assert_eq!(second.status(), 403);
    assert_eq!(second.text().await.expect("a page"), "<html>challenge</html>");
    assert_eq!(sent(ask(1, "twice")).await.status(), 200, "then the rule is used up");
    let (status, answer) = json_of(ask(2, "hello")).await;
    assert_eq!((status, &answer["error"]["type"]), (429, &json!("usage_limit_reached")));
    let failed = events(ask(1, "failed")).await;
    assert_eq!(failed.last().expect("an end")["response"]["error"]["code"], "server_is_overloaded");
    let limit = events(ask(1, "limit")).await;
    let limit = limit.last().expect("an end");
    assert_eq!((&limit["type"], &limit["status_code"]), (&json!("error"), &json!(429)));
    assert_eq!(limit["headers"]["x-codex-plan-type"], "practice");
    let odd = events(ask(1, "items")).await;
    assert_eq!(items(&odd)[0], json!({ "type": "odd_item", "id": "odd_1" }));
    assert!(kinds(&odd).contains(&"odd.event"));
}

#[tokio::test]
async fn a_client_that_goes_away_cancels() {
    let server = serve(
        "[[rule]]\nwhen = { prompt = 'silent' }\nreply = { silent = true }\n\
         [[rule]]\nreply = { text = 'x', stall_after_event = 3 }",
    )
    .await;
    let stalled = sent(post(&server, 1, &full(json!([user("stall")])))).await;
    let silent = tokio::spawn(post(&server, 1, &full(json!([user("silent")]))).send());
    server.wait_for(|all| all.len() == 2).await;
    assert!(server.requests().iter().all(|request| request.ended_ms.is_none()));
    drop(stalled);
    silent.abort();
    server.wait_for(|all| all.iter().all(|request| request.outcome == "cancelled")).await;
    let status: Vec<u16> = server.requests().iter().map(|request| request.status).collect();
    assert_eq!(status, [200, 0]);
}

#[tokio::test]
async fn stopping_breaks_what_is_under_way() {
    let server = serve("[[rule]]\nreply = { text = 'x', stall_after_event = 3 }").await;
    let url = format!("{}/models", server.base_url());
    let stalled = sent(post(&server, 1, &full(json!([user("stall")])))).await;
    server.stop().await;
    assert!(stalled.text().await.is_err(), "a cut, not an end in good order");
    assert!(client().get(url).send().await.is_err());
}
