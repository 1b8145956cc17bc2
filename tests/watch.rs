use futures_util::StreamExt as _;
use serde_json::Value;
use weir::api::watch::{Message, Watcher};
use weir_core::dialect::mode::ServingMode;

use crate::support::{Weir, plain, task_request, user};

fn json(message: &Message) -> Value {
    serde_json::to_value(message).expect("a message is JSON")
}

/// Applies a delta as the page does.
fn apply(state: &mut Value, delta: &Value) {
    assert_eq!(state["number"], delta["after"], "no gap");
    for part in ["status", "accounts", "models", "today"] {
        if !delta[part].is_null() {
            state[part] = delta[part].clone();
        }
    }
    let turns = state["turns"].as_array_mut().expect("turns");
    for turn in delta["turns"].as_array().expect("turns") {
        match turns.iter_mut().find(|known| known["id"] == turn["id"]) {
            Some(known) => *known = turn.clone(),
            None => turns.insert(0, turn.clone()),
        }
    }
    state["number"] = delta["number"].clone();
}

#[tokio::test]
async fn deltas_lead_to_what_a_snapshot_shows() {
    let weir = Weir::start("").await;
    weir.post(&plain("practice-full")).await.events();
    let mut watcher = Watcher::new(weir.api(), None);
    let mut state = json(&watcher.next().await);
    assert_eq!(
        (state["kind"].as_str(), state["turns"].as_array().map(Vec::len)),
        (Some("snapshot"), Some(1))
    );

    let mut history = vec![user("Launch 3 subagents")];
    let calls = weir
        .turn("p", &task_request("practice-full", Value::Array(history.clone())))
        .await
        .events()
        .calls();
    for call in &calls {
        let mut replay = call.clone();
        replay
            .as_object_mut()
            .expect("an item")
            .retain(|field, _| field != "id" && field != "status");
        history.push(replay);
    }
    for call in calls.iter().rev() {
        history.push(serde_json::json!({"type": "function_call_output", "call_id": call["call_id"], "output": "done"}));
    }
    weir.turn("p", &task_request("practice-full", Value::Array(history))).await.events();
    weir.set_mode("practice-lite", ServingMode::Full).await;
    let booked = |state: &Value| {
        let calls = state["turns"][1]["calls"].as_array().cloned().unwrap_or_default();
        calls.iter().map(|call| call["booked_position"].as_u64()).collect::<Vec<_>>()
    };
    let done = |state: &Value| {
        state["models"][1]["mode"] == "full"
            && state["turns"][0]["outcome"] == "completed"
            && state["today"]["turns"] == 3
    };
    while !done(&state) {
        apply(&mut state, &json(&watcher.next().await));
    }
    assert_eq!(booked(&state), [Some(2), Some(1), Some(0)]);
    let mut fresh = json(&Watcher::new(weir.api(), None).next().await);
    for part in [&mut state, &mut fresh] {
        part["number"] = Value::Null;
    }
    assert_eq!(state, fresh);
    weir.finish().await;
}

#[tokio::test]
async fn a_watcher_that_comes_back_is_told_what_it_missed() {
    let weir = Weir::start("").await;
    let first = json(&Watcher::new(weir.api(), None).next().await);
    weir.post(&plain("practice-full")).await.events();
    let (epoch, number) =
        (first["epoch"].as_str().expect("an epoch"), first["number"].as_u64().expect("a number"));
    let missed = json(&Watcher::new(weir.api(), Some((epoch, number))).next().await);
    assert_eq!((missed["kind"].as_str(), missed["after"].as_u64()), (Some("delta"), Some(number)));
    assert_eq!(missed["turns"].as_array().map(Vec::len), Some(1));
    for strange in [("another", number), (epoch, u64::MAX)] {
        let fresh = json(&Watcher::new(weir.api(), Some(strange)).next().await);
        assert_eq!(fresh["kind"], "snapshot", "{strange:?}");
    }
    weir.finish().await;
}

#[tokio::test]
async fn a_page_enters_with_a_ticket_and_watches_with_its_own_key() {
    let weir = Weir::start("").await;
    let url =
        weir.ask(weir::api::Command::Open).await["url"].as_str().expect("an address").to_owned();
    let (origin, ticket) = url.split_once("/#ticket=").expect("a ticket in the fragment");
    assert_eq!(origin, weir.origin());
    let enter = || {
        weir.http()
            .post(format!("{origin}/api/enter"))
            .json(&serde_json::json!({"ticket": ticket}))
            .send()
    };
    let first = enter().await.expect("an answer");
    let key =
        first.json::<Value>().await.expect("a key")["key"].as_str().expect("a key").to_owned();
    assert_eq!(enter().await.expect("an answer").status(), 401, "a ticket is good once");
    let watch = weir
        .http()
        .get(format!("{origin}/api/events"))
        .bearer_auth(&key)
        .send()
        .await
        .expect("an answer");
    assert_eq!(watch.status(), 200);
    let first = watch.bytes_stream().next().await.expect("a message").expect("bytes");
    assert!(String::from_utf8_lossy(&first).contains("\"kind\":\"snapshot\""));
    let models = weir
        .http()
        .get(format!("{origin}/v1/models"))
        .bearer_auth(&key)
        .send()
        .await
        .expect("an answer");
    assert_eq!(models.status(), 401, "a page's key runs no turns");
    weir.finish().await;
}
