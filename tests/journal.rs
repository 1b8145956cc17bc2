use serde_json::{Value, json};
use weir::api::Command;

use crate::support::client::{http, read};
use crate::support::raw::{MODEL, RawBackend, stream};
use crate::support::{Weir, bare, task_request, user};

fn call(call: &Value) -> Value {
    json!({"type": "function_call", "call_id": call["call_id"], "name": call["name"], "arguments": call["arguments"]})
}

fn output(call: &Value, text: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call["call_id"], "output": text})
}

async fn first_turn_calls(weir: &Weir) -> Vec<Value> {
    let turns = weir.turns().await;
    let first = turns.last().expect("a turn")["id"].as_str().expect("an id").to_owned();
    weir.ask(Command::Turn { id: first }).await["calls"].as_array().expect("calls").clone()
}

#[tokio::test]
async fn calls_are_emitted_as_the_model_wrote_them_and_booked_as_their_outputs_come_back() {
    let weir = Weir::start("").await;
    let mut history = vec![user("Launch 3 subagents")];
    let calls =
        weir.turn("p", &task_request("practice-full", json!(history))).await.events().calls();
    history.extend(calls.iter().map(call));
    history.extend([2, 0, 1].iter().map(|index| output(&calls[*index], "done")));
    weir.turn("p", &task_request("practice-full", json!(history))).await.events();
    // The whole history comes again with the next prompt; what is booked stays booked once.
    history.push(user("thanks"));
    weir.turn("p", &task_request("practice-full", json!(history))).await.events();

    let rows = first_turn_calls(&weir).await;
    let emitted: Vec<_> =
        rows.iter().map(|row| (row["index"].as_u64(), row["call_id"].clone())).collect();
    let expected: Vec<_> =
        (0..3).map(|index| (Some(index as u64), calls[index]["call_id"].clone())).collect();
    assert_eq!(emitted, expected);
    let booked: Vec<_> = rows.iter().map(|row| row["booked_position"].as_u64()).collect();
    assert_eq!(booked, [Some(1), Some(2), Some(0)]);
    let second = &weir.turns().await[1]["id"];
    assert!(rows.iter().all(|row| row["booked_by"] == *second));
    weir.finish().await;
}

#[tokio::test]
async fn an_output_of_another_conversation_books_nothing() {
    let weir = Weir::start("").await;
    let mut history = vec![user("Launch 1 subagents")];
    let calls =
        weir.turn("p", &task_request("practice-full", json!(history))).await.events().calls();
    history.extend([call(&calls[0]), output(&calls[0], "done")]);
    weir.turn("another", &task_request("practice-full", json!(history))).await.events();
    assert_eq!(first_turn_calls(&weir).await[0]["booked_at"], Value::Null);
    weir.finish().await;
}

#[tokio::test]
async fn subagents_name_their_parent() {
    let weir = Weir::start("").await;
    let body = task_request("practice-full", json!([user("Reply with the single word alpha")]));
    let child =
        weir.request().header("x-session-id", "child").header("x-parent-session-id", "parent");
    child.json(&body).send().await.expect("an answer").text().await.expect("a stream");
    let turn = weir.turns().await.remove(0);
    assert_eq!((&turn["conversation"], &turn["parent"]), (&json!("child"), &json!("parent")));
    weir.finish().await;
}

#[tokio::test]
async fn nothing_that_was_said_is_written_to_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::on(
        folder.path(),
        "[[rule]]\nwhen = { has_outputs = true }\nreply = { text = \"CANARY-ANSWER\" }",
        weir::turn::Timers::default(),
    )
    .await;
    let mut body = task_request("practice-full", json!([user("Launch 2 subagents CANARY-PROMPT")]));
    body["instructions"] = json!("CANARY-INSTRUCTIONS");
    let calls = weir.turn("p", &body).await.events().calls();
    let arguments = calls[0]["arguments"].as_str().expect("arguments").to_owned();
    assert!(arguments.contains("single word"), "{arguments}");
    let mut history = vec![user("Launch 2 subagents CANARY-PROMPT")];
    history.extend(calls.iter().map(call));
    history.extend(calls.iter().map(|one| output(one, "CANARY-OUTPUT")));
    body["input"] = json!(history);
    let answer = weir.turn("p", &body).await;
    assert!(
        answer.text.contains("CANARY-ANSWER") || answer.text.contains("CANARY"),
        "{}",
        answer.text
    );
    let key = weir.key().to_owned();
    weir.finish().await;

    for entry in std::fs::read_dir(folder.path()).expect("the folder").flatten() {
        let bytes = std::fs::read(entry.path()).expect("a file");
        let holds =
            |needle: &str| bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
        for said in ["CANARY", "single word", "practice-token"] {
            assert!(!holds(said), "{said} is in {:?}", entry.file_name());
        }
        assert!(
            entry.file_name() == "data.key" || !holds(&key),
            "the key is in {:?}",
            entry.file_name()
        );
    }
}

#[tokio::test]
async fn a_call_whose_end_never_came_is_emitted_to_whoever_gets_it_in_a_document() {
    let item = |index: u32, kind: &str| {
        json!({"type": format!("response.output_item.{kind}"), "output_index": index,
            "item": {"type": "function_call", "call_id": format!("call_{index}"), "name": "task", "arguments": if kind == "done" { "{}" } else { "" }}})
    };
    let end = json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}});
    let piece =
        json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{}"});
    let events = [item(0, "added"), item(0, "done"), item(1, "added"), piece, end];
    let wire: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let backend = RawBackend::start(vec![vec![stream(&wire)]]).await;
    let (base, turns) = bare::endpoint([backend.account("a")]).await;
    let body = json!({"model": MODEL, "input": "ping", "stream": false});
    let got =
        read(http().post(format!("{base}/v1/responses")).bearer_auth(bare::KEY).json(&body)).await;
    let calls = got.json()["output"].as_array().map_or(0, Vec::len);
    turns.store.flush();
    let id = turns.store.turns(1).expect("read")[0].id.clone();
    let (_, rows) = turns.store.turn(&id).expect("read").expect("the turn");
    let emitted: Vec<_> = rows.iter().map(|row| (row.index, row.call_id.as_str())).collect();
    assert_eq!((calls, emitted), (2, vec![(0, "call_0"), (1, "call_1")]));
}
