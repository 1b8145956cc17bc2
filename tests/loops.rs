use std::time::Duration;

use serde_json::json;
use weir::turn::Timers;
use weir::turn::loops::Bounds;
use weir_core::dialect::refusal::looks_retryable;

use crate::support::{Weir, plain, user};

/// However slow the machine, a re-send of these tests comes within the moment.
fn timers() -> Timers {
    let loops = Bounds { moment: Duration::from_secs(3_600), ..Bounds::default() };
    Timers { loops, ..Timers::default() }
}

const CUT: &str = "[[rule]]\nreply = { text = \"half an answer\", cut_after_event = 6 }\n";

#[tokio::test]
async fn a_client_that_never_stops_is_stopped_and_the_window_says_why() {
    let weir = Weir::with(CUT, timers()).await;
    let again = plain("practice-full");
    for n in 0..6 {
        let events = weir.turn("c", &again).await.events();
        assert_eq!(events.last()["response"]["error"]["code"], "stream_lost", "{n}");
    }
    for _ in 0..2 {
        let got = weir.turn("c", &again).await;
        assert_eq!((got.status, got.code().as_str()), (400, "request_loop"), "{}", got.text);
        assert!(!looks_retryable(&got.text), "{}", got.text);
    }
    assert_eq!(weir.upstream().len(), 6, "what is stopped costs nothing");
    let turn = weir.turns().await.remove(0);
    assert_eq!(
        (&turn["outcome"], &turn["error_code"]),
        (&json!("refused"), &json!("request_loop"))
    );
    let said = turn["error_message"].as_str().unwrap_or_default();
    assert!(said.contains("stopped a loop"), "{said}");
    // Another conversation, and another request of this one, are not concerned.
    assert_eq!(weir.turn("d", &again).await.status, 200);
    let other = json!({"model": "practice-full", "input": [user("and now?")], "stream": true});
    assert_eq!(weir.turn("c", &other).await.status, 200);
    weir.finish().await;
}

#[tokio::test]
async fn a_client_that_keeps_the_broken_piece_asks_the_same_again() {
    let weir = Weir::with(CUT, timers()).await;
    let mut input = vec![user("hello")];
    let mut statuses = Vec::new();
    for _ in 0..8 {
        let body = json!({"model": "practice-full", "input": input, "stream": true});
        statuses.push(weir.turn("c", &body).await.status);
        input.push(
            json!({"role": "assistant", "content": [{"type": "output_text", "text": "half"}]}),
        );
    }
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 400, 400]);
    weir.finish().await;
}

#[tokio::test]
async fn a_program_that_wants_many_answers_gets_them() {
    let weir = Weir::with("", timers()).await;
    for _ in 0..12 {
        assert_eq!(weir.post(&plain("practice-full")).await.events().terminals(), 1);
    }
    weir.finish().await;
}

#[tokio::test]
async fn a_client_of_an_exhausted_or_refusing_pool_hears_that_each_time() {
    for (reply, status) in [("status = 429", 429), ("status = 503", 503)] {
        let weir = Weir::with(&format!("[[rule]]\nreply = {{ {reply} }}\n"), timers()).await;
        for n in 0..9 {
            assert_eq!(weir.turn("c", &plain("practice-full")).await.status, status, "{n}");
        }
        weir.finish().await;
    }
}
