use serde_json::{Value, json};
use weir::api::Command;
use weir::turn::Timers;
use weir_core::dialect::mode::ServingMode;

use crate::support::{Got, Weir, plain, task_request, user};

const LITE: &str = "x-openai-internal-codex-responses-lite";

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Plays a client that keeps no state: asks, runs every call, sends the whole history again, until an answer has no calls.
/// Returns how many calls each answer had.
async fn converse(weir: &Weir, model: &str, prompt: &str) -> Vec<usize> {
    let mut history = vec![user(prompt)];
    let mut calls_per_turn = Vec::new();
    loop {
        let events = weir.turn("parent", &task_request(model, json!(history))).await.events();
        assert_eq!(
            (events.terminals(), events.last()["type"].as_str()),
            (1, Some("response.completed"))
        );
        let calls = events.calls();
        calls_per_turn.push(calls.len());
        if calls.is_empty() {
            return calls_per_turn;
        }
        for call in &calls {
            let (id, name, arguments) = (&call["call_id"], &call["name"], &call["arguments"]);
            history.push(json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments}));
        }
        let outputs = calls.iter().map(|call| json!({"type": "function_call_output", "call_id": call["call_id"], "output": "done"}));
        history.extend(outputs);
    }
}

#[tokio::test]
async fn three_subagents_come_one_by_one_in_lite_and_together_in_full() {
    let weir = Weir::start("").await;
    let prompt = "Launch 3 subagents, please";
    assert_eq!(converse(&weir, "practice-lite", prompt).await, [1, 1, 1, 0]);
    weir.set_mode("practice-lite", ServingMode::Full).await;
    assert_eq!(converse(&weir, "practice-lite", prompt).await, [3, 0]);
    weir.finish().await;
}

#[tokio::test]
async fn eight_subagents_cost_nine_turns_in_lite_and_two_in_full() {
    let weir = Weir::start("").await;
    assert_eq!(converse(&weir, "practice-lite", "use eight subagents").await.len(), 9);
    assert_eq!(converse(&weir, "practice-full", "use eight subagents").await, [8, 0]);
    weir.finish().await;
}

#[tokio::test]
async fn what_reaches_the_backend_has_the_form_that_was_decided() {
    let weir = Weir::start("").await;
    let body = task_request("practice-lite", json!([user("hello")]));
    weir.post(&body).await.events();
    let full = task_request("practice-full", json!([user("hello")]));
    weir.post(&full).await.events();
    let seen = weir.upstream();
    let (lite, full) = (&seen[0], &seen[1]);
    assert!(lite.lite && !full.lite);
    assert_eq!(lite.body["parallel_tool_calls"], json!(false));
    assert_eq!(lite.body["reasoning"]["context"], json!("all_turns"));
    assert_eq!(lite.body["input"][0]["type"], json!("additional_tools"));
    assert_eq!(lite.body["input"][0]["tools"][0]["name"], json!("task"));
    assert_eq!(lite.body.get("tools"), None);
    assert_eq!(full.body["tools"][0]["name"], json!("task"));
    assert_eq!(full.body.get("parallel_tool_calls"), None);
    weir.finish().await;
}

#[tokio::test]
async fn in_full_the_clients_word_on_parallel_calls_stands() {
    let weir = Weir::start("").await;
    for said in [Some(true), Some(false), None] {
        let mut body = task_request("practice-full", json!([user("hello")]));
        if let Some(said) = said {
            body["parallel_tool_calls"] = json!(said);
        }
        weir.post(&body).await.events();
        let seen = weir.upstream().pop().expect("it arrived");
        assert_eq!(seen.body.get("parallel_tool_calls").and_then(Value::as_bool), said);
    }
    weir.finish().await;
}

#[tokio::test]
async fn a_running_turn_keeps_its_form_when_the_mode_changes() {
    let weir = Weir::start("[[rule]]\nwhen = { account = \"practice 2\" }\nreply = { status = 503, gate = \"go\", at = \"headers\" }").await;
    // The turn waits at the first account while the mode changes, then moves to the second one.
    let request = weir.request().json(&plain("practice-lite")).send();
    let change = async {
        weir.practice()
            .wait_for(|seen| seen.iter().any(|request| request.path.ends_with("/responses")))
            .await;
        weir.set_mode("practice-lite", ServingMode::Full).await;
        weir.practice().open_gate("go");
    };
    let (answer, ()) = tokio::join!(request, change);
    answer.expect("an answer").text().await.expect("a whole stream");
    weir.post(&plain("practice-lite")).await.events();
    let lite: Vec<bool> = weir.upstream().iter().map(|request| request.lite).collect();
    assert_eq!(lite[..2], [true, true], "both attempts of the first turn");
    assert!(!lite[lite.len() - 1], "the next turn");
    let turns = weir.turns().await;
    let modes: Vec<_> =
        turns.iter().map(|turn| (turn["mode"].as_str(), turn["dialect"].as_str())).collect();
    assert_eq!(modes, [(Some("full"), Some("full")), (Some("auto"), Some("lite"))]);
    weir.finish().await;
}

#[tokio::test]
async fn a_choice_survives_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Weir::on(folder.path(), "", Timers::default()).await;
    first.set_mode("practice-lite", ServingMode::Full).await;
    first.finish().await;
    let second = Weir::on(folder.path(), "", Timers::default()).await;
    second.post(&plain("practice-lite")).await.events();
    assert!(!second.upstream()[0].lite);
    second.finish().await;
}

#[tokio::test]
async fn no_request_can_choose_the_form() {
    let weir = Weir::start("").await;
    let plain = plain("practice-full");
    weir.request()
        .header(LITE, "true")
        .json(&plain)
        .send()
        .await
        .expect("an answer")
        .text()
        .await
        .expect("a stream");
    weir.request()
        .header("x-weir-mode", "lite")
        .json(&plain)
        .send()
        .await
        .expect("an answer")
        .text()
        .await
        .expect("a stream");
    let mut bodies = vec![
        json!({"client_metadata": {"ws_request_header_x_openai_internal_codex_responses_lite": "true"}}),
    ];
    bodies.push(json!({"use_responses_lite": true, "serving_mode": "lite", "mode": "lite"}));
    bodies.push(json!({"reasoning": {"effort": "low", "context": "all_turns"}}));
    for extra in bodies {
        let mut body = plain.clone();
        body.as_object_mut()
            .expect("an object")
            .extend(extra.as_object().expect("an object").clone());
        weir.post(&body).await.events();
    }
    // A whole Lite body of a Codex client, marker and all.
    let lite_body = json!({"model": "practice-full", "stream": true, "parallel_tool_calls": false, "reasoning": {"context": "all_turns"}, "input": [
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "namespace", "name": "functions", "description": "", "tools": [
            {"type": "function", "name": "task", "parameters": {"type": "object"}}]}]},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are careful."}]}, user("hello")]});
    weir.request()
        .header(LITE, "true")
        .header("originator", "codex_exec")
        .json(&lite_body)
        .send()
        .await
        .expect("an answer")
        .text()
        .await
        .expect("a stream");
    let data_key = weir.http().post(format!("{}/api", weir.origin())).bearer_auth(weir.key());
    let refused = data_key
        .json(&Command::SetMode { model: "practice-full".into(), mode: ServingMode::Lite })
        .send()
        .await;
    assert_eq!(refused.expect("an answer").status(), 401);

    let seen = weir.upstream();
    assert_eq!(seen.len(), 6);
    for request in &seen {
        assert!(!request.lite, "{:?}", request.body);
        assert_eq!(header(&request.headers, LITE), None);
        let metadata = request.body["client_metadata"].as_object().cloned().unwrap_or_default();
        assert!(metadata.keys().all(|key| !key.contains("lite")), "{metadata:?}");
    }
    let hoisted = &seen[5].body;
    assert_eq!(
        (&hoisted["tools"][0]["name"], hoisted["instructions"].as_str()),
        (&json!("task"), Some("You are careful."))
    );
    assert_eq!(hoisted["reasoning"].get("context"), None);
    weir.finish().await;
}

#[tokio::test]
async fn a_form_that_the_backend_refuses_is_not_changed_behind_the_users_back() {
    let weir = Weir::start("").await;
    weir.set_mode("practice-full", ServingMode::Lite).await;
    let got = weir.post(&plain("practice-full")).await;
    assert_eq!(got.status, 400);
    assert!(got.message().contains("Responses-Lite"), "the backend's own words: {}", got.message());
    assert!(
        got.message().contains("weir mode practice-full auto"),
        "the way out: {}",
        got.message()
    );
    let seen = weir.upstream();
    assert!(seen.len() == 1 && seen[0].lite, "asked once, in the form that was chosen");
    weir.finish().await;
}

#[tokio::test]
async fn a_probe_compares_both_forms_and_changes_nothing() {
    let weir = Weir::start("").await;
    let report = weir.ask(Command::Probe { model: "practice-lite".into() }).await;
    let trials = report["trials"].as_array().expect("trials");
    let rows: Vec<_> =
        trials.iter().map(|trial| (trial["dialect"].as_str(), trial["calls"].as_u64())).collect();
    let (lite, full) = ((Some("lite"), Some(1)), (Some("full"), Some(3)));
    assert_eq!(rows, [lite, lite, lite, full, full, full]);
    let accounts: Vec<_> = weir.upstream().into_iter().map(|request| request.account).collect();
    assert!(accounts.iter().all(|account| *account == accounts[0]), "{accounts:?}");
    let models = weir.ask(Command::Models).await;
    assert_eq!(models["models"][1]["mode"], "auto");
    weir.finish().await;
}

#[tokio::test]
async fn a_namespace_that_the_caller_does_not_know_comes_off_and_goes_back_on() {
    let item = r#"{ type = "function_call", id = "fc_1", call_id = "call_1", name = "task", namespace = "functions", arguments = "{}", status = "completed" }"#;
    let scenario = format!(
        "[[rule]]\nwhen = {{ has_outputs = false }}\nreply = {{ items = [{item}] }}\n[[rule]]\nwhen = {{ has_outputs = true }}\nreply = {{ text = \"end\" }}"
    );
    let weir = Weir::start(&scenario).await;
    let mut history = vec![user("go")];
    let got: Got = weir.turn("c", &task_request("practice-lite", json!(history))).await;
    let call = got.events().calls().remove(0);
    assert_eq!(call.get("namespace"), None, "{call}");
    history.push(
        json!({"type": "function_call", "call_id": "call_1", "name": "task", "arguments": "{}"}),
    );
    history.push(json!({"type": "function_call_output", "call_id": "call_1", "output": "done"}));
    weir.turn("c", &task_request("practice-lite", json!(history))).await.events();
    let replay = weir.upstream()[1].body["input"].as_array().expect("a list").clone();
    let call = replay.iter().find(|item| item["type"] == "function_call").expect("the call");
    assert_eq!(call["namespace"], "functions", "{call}");
    weir.finish().await;
}
