use futures_util::StreamExt as _;
use serde_json::json;

use crate::support::{Weir, plain};

/// Waits until the one turn of this Weir has its outcome.
async fn outcome(weir: &Weir) -> String {
    weir.practice()
        .wait_for(|seen| seen.iter().any(|request| request.outcome == "cancelled"))
        .await;
    loop {
        if let Some(outcome) = weir.turns().await[0]["outcome"].as_str() {
            return outcome.to_owned();
        }
        tokio::task::yield_now().await;
    }
}

async fn a_client_that_leaves_before_the_answer_cancels_the_upstream_turn(road: &str) {
    let weir = Weir::start_on(
        road,
        "[[rule]]\nreply = { text = \"late\", gate = \"never\", at = \"headers\" }",
    )
    .await;
    let request = tokio::spawn(weir.request().json(&plain("practice-full")).send());
    weir.practice()
        .wait_for(|seen| seen.iter().any(|request| request.path.ends_with("/responses")))
        .await;
    request.abort();
    assert_eq!(outcome(&weir).await, "cancelled");
    assert_eq!(weir.upstream().len(), 1, "nobody else is asked for a client that has gone");
    weir.finish().await;
}

async fn a_client_that_waits_for_a_document_and_leaves_cancels_the_upstream_turn(road: &str) {
    let weir = Weir::start_on(
        road,
        "[[rule]]\nreply = { text = \"an answer\", gate = \"never\", at = \"end\" }",
    )
    .await;
    let whole = json!({"model": "practice-full", "input": "hello"});
    let request = tokio::spawn(weir.request().json(&whole).send());
    weir.practice()
        .wait_for(|seen| {
            seen.iter().any(|request| request.path.ends_with("/responses") && request.status != 426)
        })
        .await;
    request.abort();
    assert_eq!(outcome(&weir).await, "cancelled");
    assert_eq!(weir.turns().await[0]["error_code"], json!("client_gone"));
    weir.finish().await;
}

async fn a_client_that_leaves_in_the_middle_cancels_the_upstream_turn(road: &str) {
    let weir = Weir::start_on(
        road,
        "[[rule]]\nreply = { text = \"an answer\", gate = \"never\", at = \"end\" }",
    )
    .await;
    let answer = weir.request().json(&plain("practice-full")).send().await.expect("an answer");
    let mut body = answer.bytes_stream();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("output_item.done") {
        seen.extend(body.next().await.expect("more").expect("bytes"));
    }
    drop(body);
    assert_eq!(outcome(&weir).await, "cancelled");
    let turn = weir.turns().await.remove(0);
    assert_eq!(turn["error_code"], json!("client_gone"));
    weir.finish().await;
}

async fn a_client_that_leaves_frees_its_account(road: &str) {
    let weir = Weir::start_on(
        road,
        "[[rule]]\nreply = { text = \"late\", gate = \"never\", at = \"headers\" }",
    )
    .await;
    let request = tokio::spawn(weir.request().json(&plain("practice-full")).send());
    weir.practice()
        .wait_for(|seen| seen.iter().any(|request| request.path.ends_with("/responses")))
        .await;
    assert_eq!(weir.ask(weir::api::Command::Status).await["in_flight"], 1);
    request.abort();
    outcome(&weir).await;
    assert_eq!(weir.ask(weir::api::Command::Status).await["in_flight"], 0);
    weir.finish().await;
}

on_both_roads! {
    a_client_that_waits_for_a_document_and_leaves_cancels_the_upstream_turn,
    a_client_that_leaves_before_the_answer_cancels_the_upstream_turn,
    a_client_that_leaves_in_the_middle_cancels_the_upstream_turn,
    a_client_that_leaves_frees_its_account,
}
