use std::time::Duration;

use serde_json::json;
use weir::practice::{Options, Received, Scenario};
use weir::turn::Timers;

use crate::support::client::read;
use crate::support::{Weir, plain, task_request, user};

/// The account with the most left, which is asked first.
const FIRST: &str = "when = { account = \"practice 2\" }";

/// A first account that answers so, and others that serve.
fn first_account(reply: &str) -> String {
    format!("[[rule]]\n{FIRST}\nreply = {{ {reply} }}\n")
}

fn accounts(weir: &Weir) -> Vec<String> {
    weir.upstream().into_iter().map(|request| request.account.unwrap_or_default()).collect()
}

async fn a_turn_moves_before_the_commit_point_and_the_client_sees_nothing_of_it(road: &str) {
    let cases = [
        ("a limit as a status", "status = 429", "usage_limit_reached"),
        ("a limit in the stream", "usage_limit_event = true", "usage_limit_reached"),
        (
            "a limit as an incomplete answer",
            "incomplete = \"usage_limit_reached\"",
            "usage_limit_reached",
        ),
        ("a login that is refused", "status = 401", "token_invalidated"),
        ("a backend that is at its capacity", "status = 503", ""),
        (
            "a failure in the stream",
            "failed_event = { code = \"server_error\", message = \"oh\" }",
            "server_error",
        ),
        ("a page instead of a stream", "html = \"<html>challenge</html>\"\nstatus = 403", ""),
    ];
    for (what, reply, code) in cases {
        let scenario = format!("[[rule]]\n{FIRST}\n[rule.reply]\n{reply}\n");
        let weir = Weir::start_on(road, &scenario).await;
        let got = weir.post(&plain("practice-full")).await;
        let events = got.events();
        assert_eq!(
            (events.terminals(), events.last()["type"].as_str()),
            (1, Some("response.completed")),
            "{what}"
        );
        assert_eq!(
            events.kinds().iter().filter(|kind| **kind == "response.created").count(),
            1,
            "{what}"
        );
        let asked = accounts(&weir);
        assert!(
            asked.len() == 2 && asked[0] == "practice 2" && asked[1] != "practice 2",
            "{what}: {asked:?}"
        );
        let turn = weir.turns().await.remove(0);
        assert_eq!((&turn["moves"], &turn["outcome"]), (&json!(1), &json!("completed")), "{what}");
        let reason = turn["account_reason"].as_str().unwrap_or_default();
        assert!(reason.contains(&format!("moved after {code}")), "{what}: {reason}");
        weir.finish().await;
    }
}

async fn an_account_at_its_limit_is_left_alone_by_the_next_conversation(road: &str) {
    let weir = Weir::start_on(road, &first_account("status = 429")).await;
    weir.turn("one", &plain("practice-full")).await.events();
    weir.turn("two", &plain("practice-full")).await.events();
    let asked = accounts(&weir);
    assert_eq!(asked.iter().filter(|account| *account == "practice 2").count(), 1, "{asked:?}");
    weir.finish().await;
}

async fn a_fault_of_the_request_is_told_at_once(road: &str) {
    let weir = Weir::start_on(
        road,
        &first_account("status = 400, json = { detail = \"Unsupported value: x\" }"),
    )
    .await;
    let got = weir.post(&plain("practice-full")).await;
    assert_eq!((got.status, got.message().as_str()), (400, "Unsupported value: x"));
    assert_eq!(accounts(&weir).len(), 1);
    weir.finish().await;
}

async fn a_turn_moves_twice_at_most(road: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("pace = 0.0\n[[rule]]\nreply = {{ status = 503 }}\n{road}");
    let scenario = Scenario::from_toml(&text).expect("a scenario");
    let mut practice = Options { scenario, ..Options::default() };
    // Five accounts, so that it is not the pool that ends the moves.
    for n in 4..=5 {
        let mut account = practice.accounts[0].clone();
        (account.name, account.account_id, account.token) =
            (format!("practice {n}"), format!("account-{n}"), format!("token-{n}"));
        practice.accounts.push(account);
    }
    let weir = Weir::of(folder.path(), practice, Timers::default()).await;
    let got = weir.post(&plain("practice-full")).await;
    assert_eq!((got.status, accounts(&weir).len()), (503, 3));
    assert_eq!(weir.turns().await[0]["moves"], 2);
    weir.finish().await;
}

async fn a_pool_at_its_limit_says_when_it_opens(road: &str) {
    let weir = Weir::start_on(road, "[[rule]]\nreply = { status = 429 }\n").await;
    for attempt in ["found out", "known before"] {
        let got = weir.post(&plain("practice-full")).await;
        assert_eq!(got.status, 429, "{attempt}");
        let error = got.json()["error"].clone();
        assert_eq!(error["type"], "usage_limit_reached", "{attempt}");
        let (at, wait) = (
            error["resets_at"].as_i64().expect("a time"),
            error["resets_in_seconds"].as_i64().expect("a span"),
        );
        assert!(at > wait && wait > 0, "{error}");
        assert_eq!(
            got.headers["retry-after"].to_str().ok(),
            Some(wait.to_string().as_str()),
            "{attempt}"
        );
    }
    assert_eq!(accounts(&weir).len(), 3, "the second turn asked nobody");
    weir.finish().await;
}

async fn after_the_commit_point_a_broken_stream_fails_in_the_stream_and_nothing_is_sent_again(
    road: &str,
) {
    let weir = Weir::start_on(
        road,
        &first_account("text = \"half an answer that is cut\", cut_after_event = 6"),
    )
    .await;
    let events = weir.post(&plain("practice-full")).await.events();
    assert_eq!(events.terminals(), 1);
    let last = events.last();
    assert_eq!(
        (last["type"].as_str(), last["response"]["error"]["code"].as_str()),
        (Some("response.failed"), Some("stream_lost"))
    );
    let before = events.0[events.0.len() - 2]["sequence_number"].as_u64().expect("a number");
    assert_eq!(last["sequence_number"].as_u64(), Some(before + 1));
    assert_eq!(accounts(&weir).len(), 1);
    let turn = weir.turns().await.remove(0);
    assert_eq!((&turn["outcome"], &turn["error_code"]), (&json!("failed"), &json!("stream_lost")));
    weir.finish().await;
}

async fn a_request_that_may_have_been_worked_on_is_not_sent_twice(road: &str) {
    // The stream breaks right after the backend said that it began.
    let weir = Weir::start_on(road, &first_account("text = \"x\", cut_after_event = 2")).await;
    let got = weir.post(&plain("practice-full")).await;
    assert_eq!(got.status, 200, "created proves acceptance");
    assert_eq!(got.events().last()["response"]["error"]["code"], "stream_lost");
    assert_eq!(accounts(&weir).len(), 1);
    weir.finish().await;
}

async fn an_answer_whose_items_are_all_complete_is_completed_by_weir_and_marked(road: &str) {
    let weir = Weir::start_on(road, &first_account("text = \"whole\", no_terminal = true")).await;
    let events = weir.post(&plain("practice-full")).await.events();
    let last = events.last();
    assert_eq!((events.terminals(), last["type"].as_str()), (1, Some("response.completed")));
    assert_eq!(
        last["response"]["weir"],
        json!({"completed_by_weir": true, "usage_estimated": true})
    );
    assert!(
        last["response"]["usage"]["input_tokens"].is_u64(),
        "OpenCode repeats a turn without usage"
    );
    let turn = weir.turns().await.remove(0);
    assert_eq!(
        (&turn["outcome"], &turn["error_code"]),
        (&json!("completed"), &json!("completed_by_weir"))
    );
    assert_eq!(turn["input_tokens"], json!(null), "an estimate is not stored as a count");
    weir.finish().await;
}

async fn calls_that_are_complete_are_not_run_twice_because_the_backend_fails_late(road: &str) {
    let calls = "calls = [{ name = \"task\", arguments = \"{}\" }, { name = \"task\", arguments = \"{}\" }]";
    for (late, completes) in [
        ("no_terminal = true", true),
        ("failed_event = { code = \"server_error\", message = \"oh\" }", true),
        ("error_event = { code = \"server_error\", message = \"oh\" }", true),
        ("usage_limit_event = true", true),
        ("incomplete = \"usage_limit_reached\"", true),
        // Asking again would not help, and the client must know why.
        ("failed_event = { code = \"invalid_prompt\", message = \"no\" }", false),
    ] {
        let weir = Weir::start_on(road, &first_account(&format!("{calls}, {late}"))).await;
        let asked = task_request("practice-full", json!([user("go")]));
        let events = weir.turn("c", &asked).await.events();
        assert_eq!((events.terminals(), events.calls().len()), (1, 2), "{late}");
        let end = if completes { "response.completed" } else { "response.failed" };
        assert_eq!(events.last()["type"], end, "{late}");
        let whole = events.last()["response"]["output"].as_array().map(Vec::len);
        assert!(!completes || whole >= Some(2), "{late}");
        assert_eq!(accounts(&weir).len(), 1, "{late}");
        weir.finish().await;
    }
}

async fn a_completed_answer_without_usage_gets_a_marked_estimate(road: &str) {
    let weir = Weir::start_on(road, &first_account("text = \"whole\", no_usage = true")).await;
    let last = weir.post(&plain("practice-full")).await.events().last().clone();
    assert!(last["response"]["usage"]["output_tokens"].is_u64());
    assert_eq!(last["response"]["weir"]["usage_estimated"], true);
    assert_eq!(weir.turns().await[0]["output_tokens"], json!(null));
    weir.finish().await;
}

async fn an_error_event_after_output_reaches_the_client_as_a_failure_with_a_number(road: &str) {
    let weir = Weir::start_on(
        road,
        &first_account(
            "text = \"some\", error_event = { code = \"server_error\", message = \"oh\" }",
        ),
    )
    .await;
    let events = weir.post(&plain("practice-full")).await.events();
    let last = events.last();
    assert_eq!((events.terminals(), last["type"].as_str()), (1, Some("response.failed")));
    assert!(last["sequence_number"].is_u64(), "clients ignore a failure without one");
    assert_eq!(last["response"]["error"]["code"], "server_error");
    weir.finish().await;
}

async fn a_silent_backend_is_left_for_the_next_account(road: &str) {
    let timers = Timers { silence: Duration::from_millis(50), ..Timers::default() };
    for reply in ["silent = true", "text = \"x\", stall_after_event = 2"] {
        let weir = Weir::with_on(road, &first_account(reply), timers).await;
        let events = weir.post(&plain("practice-full")).await.events();
        assert_eq!(
            (events.terminals(), events.last()["type"].as_str()),
            (1, Some("response.completed")),
            "{reply}"
        );
        assert_eq!(accounts(&weir).len(), 2, "{reply}");
        weir.finish().await;
    }
}

async fn a_backend_that_falls_silent_in_an_answer_ends_it(road: &str) {
    let timers = Timers { idle: Duration::from_millis(50), ..Timers::default() };
    let weir = Weir::with_on(
        road,
        &first_account("text = \"half an answer\", stall_after_event = 6"),
        timers,
    )
    .await;
    let last = weir.post(&plain("practice-full")).await.events().last().clone();
    assert_eq!(last["response"]["error"]["code"], "backend_silent");
    weir.finish().await;
}

async fn a_pool_that_is_exhausted_after_the_status_fails_in_the_stream(road: &str) {
    // Each account says that it began, and then that its limit is reached.
    let weir = Weir::start_on(road, "[[rule]]\nreply = { usage_limit_event = true }\n").await;
    let got = weir.post(&plain("practice-full")).await;
    assert_eq!(got.status, 200);
    let events = got.events();
    assert_eq!(events.kinds(), ["response.failed"], "nothing of the failed attempts is shown");
    assert!(events.last()["sequence_number"].is_u64());
    assert_eq!(events.last()["response"]["error"]["code"], "usage_limit_reached");
    weir.finish().await;
}

async fn a_client_without_a_stream_gets_one_document_or_one_error(road: &str) {
    let weir = Weir::start_on(road, &first_account("status = 429")).await;
    let body =
        json!({"model": "practice-full", "input": [user("Reply with the single word alpha")]});
    let got = weir.post(&body).await;
    let answer = got.json();
    assert_eq!(
        (got.status, &answer["object"], &answer["status"]),
        (200, &json!("response"), &json!("completed"))
    );
    assert_eq!(
        answer["output"][0]["content"][0]["text"], "alpha",
        "the backend's own output list is empty"
    );
    assert!(answer["usage"]["input_tokens"].is_u64());
    weir.finish().await;
    let weir =
        Weir::start_on(road, &first_account("text = \"half an answer\", cut_after_event = 6"))
            .await;
    let got = weir.post(&body).await;
    assert_eq!((got.status, got.code().as_str()), (502, "stream_lost"));
    weir.finish().await;
}

/// A request says it in a header, a frame in its metadata.
fn turn_state(request: &Received) -> Option<String> {
    const NAME: &str = "x-codex-turn-state";
    let header = request.headers.iter().find(|(name, _)| name == NAME);
    let said = request.body["client_metadata"][NAME].as_str();
    header.map(|(_, value)| value.as_str()).or(said).map(str::to_owned)
}

async fn a_routing_state_goes_back_to_the_account_that_gave_it_and_to_no_other(road: &str) {
    let weir = Weir::start_on(road, &first_account("status = 429")).await;
    let sent = |state: &str| {
        weir.request().header("x-session-id", "c").header("x-codex-turn-state", state.to_owned())
    };
    let first = read(sent("of-somebody-else").json(&plain("practice-full"))).await;
    let state = first.headers["x-codex-turn-state"].to_str().expect("text").to_owned();
    read(sent(&state).json(&plain("practice-full"))).await;
    let states: Vec<_> = weir.upstream().iter().map(turn_state).collect();
    assert_eq!(states, [None, None, Some(state)]);
    weir.finish().await;
}

on_both_roads! {
    a_turn_moves_before_the_commit_point_and_the_client_sees_nothing_of_it,
    an_account_at_its_limit_is_left_alone_by_the_next_conversation,
    a_fault_of_the_request_is_told_at_once,
    a_turn_moves_twice_at_most,
    a_pool_at_its_limit_says_when_it_opens,
    after_the_commit_point_a_broken_stream_fails_in_the_stream_and_nothing_is_sent_again,
    a_request_that_may_have_been_worked_on_is_not_sent_twice,
    an_answer_whose_items_are_all_complete_is_completed_by_weir_and_marked,
    calls_that_are_complete_are_not_run_twice_because_the_backend_fails_late,
    a_completed_answer_without_usage_gets_a_marked_estimate,
    an_error_event_after_output_reaches_the_client_as_a_failure_with_a_number,
    a_silent_backend_is_left_for_the_next_account,
    a_backend_that_falls_silent_in_an_answer_ends_it,
    a_pool_that_is_exhausted_after_the_status_fails_in_the_stream,
    a_client_without_a_stream_gets_one_document_or_one_error,
    a_routing_state_goes_back_to_the_account_that_gave_it_and_to_no_other,
}
