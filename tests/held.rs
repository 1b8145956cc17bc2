use std::time::Duration;

use serde_json::{Value, json};
use weir::turn::Timers;
use weir_core::dialect::mode::ServingMode;

use crate::support::{Got, Weir, task_request, user};

/// A conversation as a client without memory in the backend holds it: everything, every time.
struct Talk {
    body: Value,
}

impl Talk {
    fn about(model: &str) -> Self {
        Self { body: task_request(model, json!([user("hello")])) }
    }

    fn input(&mut self) -> &mut Vec<Value> {
        self.body["input"].as_array_mut().expect("a list")
    }

    /// One turn, after which the answer is part of the conversation.
    async fn turn(&mut self, weir: &Weir) -> Got {
        let got = weir.turn("talk", &self.body).await;
        if got.status == 200 {
            self.input().extend(got.events().items());
        }
        self.input().push(user("and then?"));
        got
    }

    /// Turns that must end well.
    async fn turns(&mut self, weir: &Weir, how_many: usize) {
        for _ in 0..how_many {
            completed(&self.turn(weir).await);
        }
    }
}

fn completed(got: &Got) {
    let events = got.events();
    let ends = (events.terminals(), events.last()["type"].as_str());
    assert_eq!(ends, (1, Some("response.completed")), "{}", got.text);
}

/// How each request for a response came: on which socket, and how many of its items were sent.
fn ways(weir: &Weir) -> Vec<(Option<u64>, usize, usize)> {
    let requests = weir.upstream().into_iter();
    requests.map(|request| (request.socket, request.input_items, request.history_items)).collect()
}

/// The journal's words on each turn, oldest first.
async fn told(weir: &Weir) -> Vec<(String, String, String)> {
    let turns = weir.turns().await;
    let word = |turn: &Value, name: &str| turn[name].as_str().unwrap_or("-").to_owned();
    let rows = turns.iter().rev();
    rows.map(|turn| (word(turn, "transport"), word(turn, "socket"), word(turn, "whole_reason")))
        .collect()
}

#[tokio::test]
async fn a_conversation_keeps_its_connection_and_sends_only_what_is_new() {
    for (model, mode) in [
        ("practice-full", ServingMode::Auto),
        ("practice-lite", ServingMode::Auto),
        ("practice-lite", ServingMode::Full),
    ] {
        let weir = Weir::start("").await;
        weir.set_mode(model, mode).await;
        Talk::about(model).turns(&weir, 4).await;
        let ways = ways(&weir);
        assert!(ways.iter().all(|(socket, ..)| *socket == Some(1)), "{model} {mode:?}: {ways:?}");
        let sent: Vec<_> = ways.iter().map(|(_, sent, _)| *sent).collect();
        assert_eq!(sent[1..], [1, 1, 1], "{model} {mode:?}");
        let histories: Vec<_> = ways.iter().map(|(_, _, history)| *history).collect();
        assert!(histories.is_sorted_by(|a, b| a < b), "{histories:?}");
        let rows = weir.turns().await;
        let last = &rows[0];
        assert_eq!(
            (&last["transport"], &last["socket"], &last["new_items"]),
            (&json!("ws"), &json!("reused"), &json!(1))
        );
        assert_eq!(last["input_items"], json!(histories[3]));
        assert!(last["cached_tokens"].as_i64() > rows[3]["cached_tokens"].as_i64());
        weir.finish().await;
    }
}

#[tokio::test]
async fn a_changed_past_is_sent_whole_and_the_first_difference_is_named() {
    let weir = Weir::start("").await;
    let mut talk = Talk::about("practice-full");
    talk.turns(&weir, 2).await;
    talk.input()[0] = user("hallo");
    talk.turns(&weir, 1).await;
    talk.body["instructions"] = json!("Be brief.");
    talk.turns(&weir, 2).await;
    let reasons: Vec<_> =
        told(&weir).await.into_iter().map(|(_, socket, why)| (socket, why)).collect();
    assert_eq!(reasons[2].1, "item 0 (message) differs in `content/0/text`");
    assert_eq!(reasons[3].1, "`instructions` changed");
    assert_eq!(reasons[4], ("reused".into(), "-".into()));
    assert!(ways(&weir).iter().all(|(socket, ..)| *socket == Some(1)));
    weir.finish().await;
}

#[tokio::test]
async fn a_backend_without_sockets_is_asked_once() {
    let weir = Weir::start("[[rule]]\nreply = { ws_refuse = 426 }\n").await;
    Talk::about("practice-full").turns(&weir, 3).await;
    assert_eq!(weir.refused_handshakes(), 1);
    let told = told(&weir).await;
    assert!(
        told.iter().all(|(transport, socket, why)| transport == "sse"
            && socket == "-"
            && why == "the backend takes no WebSocket from this account"),
        "{told:?}"
    );
    weir.finish().await;
}

#[tokio::test]
async fn a_handshake_that_fails_is_no_word_for_ever() {
    let weir = Weir::start("[[rule]]\nreplies = [{ ws_refuse = 403 }]\n").await;
    let mut talk = Talk::about("practice-full");
    talk.turns(&weir, 2).await;
    let told = told(&weir).await;
    assert_eq!(told[0].2, "no connection could be opened: the backend answered with status 403");
    assert_eq!(told[1].2, "opening a connection failed a short while ago");
    weir.finish().await;
}

#[tokio::test]
async fn a_connection_that_grew_too_old_is_replaced_unnoticed() {
    let weir = Weir::start("socket_limit_after = 2\n").await;
    Talk::about("practice-full").turns(&weir, 5).await;
    let sockets: Vec<_> =
        ways(&weir).into_iter().map(|(socket, sent, history)| (socket, sent == history)).collect();
    let (whole, new) = (true, false);
    assert_eq!(
        sockets,
        [
            (Some(1), whole),
            (Some(1), new),
            (Some(1), new),
            (Some(2), whole),
            (Some(2), new),
            (Some(2), new),
            (Some(3), whole),
        ]
    );
    weir.finish().await;
}

#[tokio::test]
async fn what_the_backend_forgot_is_said_again_unnoticed() {
    let forgot = "[[rule]]\nwhen = { nth = 2, only = \"ws\" }\n[[rule.replies]]\nstatus = 400\njson = { error = { type = \"invalid_request_error\", code = \"previous_response_not_found\", message = \"Not found.\", param = \"previous_response_id\" } }\n";
    let weir = Weir::start(forgot).await;
    Talk::about("practice-full").turns(&weir, 3).await;
    let ways = ways(&weir);
    assert_eq!((ways.len(), ways[1].0, ways[2].0), (4, Some(1), Some(2)));
    assert_eq!(ways[2].1, ways[2].2, "everything was said again");
    assert!(ways[3].1 < ways[3].2, "and then no more");
    weir.finish().await;
}

#[tokio::test]
async fn a_goodbye_between_two_turns_costs_no_turn() {
    let weir = Weir::start(
        "[[rule]]\nwhen = { nth = 1 }\nreplies = [{ text = \"bye\", ws_close = 1001 }]\n",
    )
    .await;
    let mut talk = Talk::about("practice-full");
    talk.turns(&weir, 1).await;
    weir.practice().wait_for_sockets(0).await;
    talk.turns(&weir, 2).await;
    let sockets: Vec<_> = ways(&weir).into_iter().map(|(socket, ..)| socket).collect();
    assert_eq!(sockets, [Some(1), Some(2), Some(2)]);
    weir.finish().await;
}

#[tokio::test]
async fn a_frame_that_is_refused_for_its_size_or_by_policy_goes_the_other_way() {
    for (code, why) in [
        (1009, "a frame of 0 MiB is more than the backend takes"),
        (1008, "the backend takes no WebSocket from this account"),
    ] {
        let scenario = format!(
            "[[rule]]\nwhen = {{ nth = 1, only = \"ws\" }}\nreplies = [{{ cut_after_event = 0, ws_close = {code} }}]\n"
        );
        let weir = Weir::start(&scenario).await;
        Talk::about("practice-full").turns(&weir, 2).await;
        let ways = ways(&weir);
        let sockets: Vec<_> = ways.iter().map(|(socket, ..)| *socket).collect();
        assert_eq!(sockets, [Some(1), None, None], "{code}: the word counts for the next turn");
        let expected = ("sse".into(), "-".into(), why.into());
        assert_eq!(told(&weir).await, [expected.clone(), expected], "{code}");
        weir.finish().await;
    }
}

#[tokio::test]
async fn a_frame_that_may_have_been_read_is_not_sent_again() {
    let scenario =
        "[[rule]]\nwhen = { nth = 1, only = \"ws\" }\nreplies = [{ cut_after_event = 0 }]\n";
    let weir = Weir::start(scenario).await;
    let got = Talk::about("practice-full").turn(&weir).await;
    assert_eq!((got.status, got.code().as_str()), (502, "connection_lost"), "{}", got.text);
    assert_eq!(ways(&weir).len(), 1);
    weir.finish().await;
}

#[tokio::test]
async fn a_request_above_the_frame_limit_does_not_even_dial() {
    let weir = Weir::start("").await;
    let mut talk = Talk::about("practice-full");
    talk.turns(&weir, 1).await;
    talk.input().push(user(&"x".repeat(15 * 1024 * 1024)));
    talk.turns(&weir, 1).await;
    let ways = ways(&weir);
    assert_eq!((ways.len(), ways[1].0), (2, None));
    assert_eq!(told(&weir).await[1].2, "a frame of 15 MiB is more than the backend takes");
    weir.practice().wait_for_sockets(0).await;
    weir.finish().await;
}

#[tokio::test]
async fn a_second_turn_at_the_same_time_goes_as_a_request_of_its_own() {
    let weir =
        Weir::start("[[rule]]\nwhen = { nth = 1 }\nreply = { text = \"one\", gate = \"open\" }\n")
            .await;
    let body = task_request("practice-full", json!([user("hello")]));
    let (first, second) = tokio::join!(weir.turn("talk", &body), async {
        weir.practice()
            .wait_for(|requests| requests.iter().any(|request| request.socket.is_some()))
            .await;
        let second = weir.turn("talk", &body).await;
        weir.practice().open_gate("open");
        second
    });
    completed(&first);
    completed(&second);
    assert_eq!(told(&weir).await[1].2, "another turn of this conversation is on its connection");
    weir.finish().await;
}

#[tokio::test]
async fn requests_of_another_kind_do_not_push_the_conversation_off() {
    let weir = Weir::start("").await;
    let mut talk = Talk::about("practice-full");
    talk.turns(&weir, 1).await;
    let title = json!({"model": "practice-full", "input": [user("a title, please")], "stream": true, "store": false});
    completed(&weir.turn("talk", &title).await);
    talk.turns(&weir, 1).await;
    let ways = ways(&weir);
    assert_eq!((ways[1].0, ways[2]), (Some(2), (Some(1), 1, 3)));
    weir.finish().await;
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_connection_with_it() {
    let weir = Weir::start(
        "[[rule]]\nwhen = { nth = 1 }\nreply = { text = \"one\", stall_after_event = 4 }\n",
    )
    .await;
    let mut talk = Talk::about("practice-full");
    let request = weir.request().header("x-session-id", "talk").json(&talk.body);
    let mut answer = request.send().await.expect("an answer");
    answer.chunk().await.expect("read").expect("bytes");
    drop(answer);
    weir.practice().wait_for_sockets(0).await;
    talk.turns(&weir, 1).await;
    assert_eq!(ways(&weir)[1].0, Some(2));
    weir.finish().await;
}

#[tokio::test]
async fn twelve_at_once_are_twelve_in_flight_and_few_wait_for_no_connection() {
    let weir =
        Weir::start("[[rule]]\nreply = { text = \"one\", hold_until_in_flight = 12 }\n").await;
    let turns = (0..12).map(|n| {
        let body = task_request("practice-full", json!([user(&format!("child {n}"))]));
        let request = weir.request().header("x-session-id", format!("child-{n}"));
        let request = request.header("x-parent-session-id", "parent").json(&body);
        crate::support::client::read(request)
    });
    for got in futures_util::future::join_all(turns).await {
        completed(&got);
    }
    let told = told(&weir).await;
    let over = |way: &str| told.iter().filter(|(transport, ..)| transport == way).count();
    assert!(over("ws") >= 4 && over("ws") + over("sse") == 12, "{told:?}");
    weir.finish().await;
}

#[tokio::test]
async fn a_limit_on_a_connection_moves_the_turn_and_is_remembered_with_its_end() {
    let weir =
        Weir::start("[[rule]]\nwhen = { account = \"practice 2\" }\nreply = { status = 429 }\n")
            .await;
    let mut talk = Talk::about("practice-full");
    talk.turns(&weir, 2).await;
    let turns = weir.turns().await;
    assert_eq!((&turns[1]["moves"], &turns[0]["moves"]), (&json!(1), &json!(0)));
    let accounts: Vec<_> =
        weir.upstream().into_iter().filter_map(|request| request.account).collect();
    assert_eq!(
        accounts.iter().filter(|account| *account == "practice 2").count(),
        1,
        "{accounts:?}"
    );
    weir.finish().await;
}

#[tokio::test]
async fn a_connection_that_went_deaf_is_left_after_the_silence() {
    let timers = Timers { silence: Duration::from_millis(300), ..Timers::default() };
    let scenario = "[[rule]]\nwhen = { account = \"practice 2\", nth = 1 }\nreply = { text = \"one\", ws_deaf = true }\n";
    let weir = Weir::with(scenario, timers).await;
    let mut talk = Talk::about("practice-full");
    talk.turns(&weir, 2).await;
    let turns = weir.turns().await;
    let reason = turns[0]["account_reason"].as_str().unwrap_or_default();
    assert!(turns[0]["moves"] == 1 && reason.contains("moved after backend_silent"), "{reason}");
    weir.finish().await;
}

#[tokio::test]
async fn nothing_stays_open_when_the_program_ends() {
    let weir = Weir::start("").await;
    Talk::about("practice-full").turns(&weir, 1).await;
    assert_eq!(weir.practice().open_sockets(), 1);
    weir.close_upstream().await;
    weir.practice().wait_for_sockets(0).await;
    weir.finish().await;
}
