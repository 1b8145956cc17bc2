use super::{ask, fixture, text, writes};
use crate::support::bare::endpoint;
use crate::support::raw::{RawBackend, broken, stream};

/// An answer that is only an HTTP message, head and all.
fn message(wire: &[u8]) -> Vec<Vec<u8>> {
    vec![wire.to_vec()]
}

#[tokio::test]
async fn c13_a_stream_that_ends_in_the_middle_is_no_answer() {
    let wire = fixture!("C13/upstream.sse");
    for end in [writes(wire, 100), vec![broken(wire)]] {
        let backend = RawBackend::start(vec![end.clone(), end]).await;
        let (base, _turns) = endpoint([backend.account("a"), backend.account("b")]).await;
        let got = ask(&base, true).await;
        let events = got.events();
        let last = events.last();
        assert_eq!((events.terminals(), last["type"].as_str()), (1, Some("response.failed")));
        assert_eq!(last["response"]["error"]["code"], "stream_lost");
        assert!(!got.text.contains("[error]"), "a failure is no text of the model");
        let whole = ask(&base, false).await;
        assert_eq!((whole.status, whole.code().as_str()), (502, "stream_lost"));
        assert_ne!(whole.json()["error"]["type"], "invalid_request_error");
        assert_eq!(backend.turns().len(), 2, "once each");
    }
}

#[tokio::test]
async fn c15_an_error_before_any_output_moves_the_turn() {
    let good = fixture!("C15/upstream.B.sse");
    let bad: [&[u8]; 3] = [
        fixture!("C15/upstream.A.sse"),
        fixture!("C15/upstream.A2.sse"),
        fixture!("C15/upstream.A3.sse"),
    ];
    for wire in bad {
        for streamed in [true, false] {
            let (a, b) = (
                RawBackend::start(vec![writes(wire, 100)]).await,
                RawBackend::start(vec![writes(good, 100), writes(good, 100)]).await,
            );
            let (base, turns) = endpoint([a.account("a"), b.account("b")]).await;
            // The first of two that know nothing of their usage is asked first.
            let got = ask(&base, streamed).await;
            assert_eq!((a.turns().len(), b.turns().len()), (1, 1), "{streamed}");
            assert_eq!((got.status, text(&got).as_str()), (200, "from B"));
            for word in ["resp_c15a", "temporary upstream failure", "overloaded"] {
                assert!(!got.text.contains(word), "{word}");
            }
            if streamed {
                let created =
                    got.events().kinds().iter().filter(|kind| **kind == "response.created").count();
                assert_eq!(created, 1);
            }
            assert!(
                turns.pool.views().iter().all(|view| view.blocked_until.is_none()),
                "none of these is a limit"
            );
        }
        let alone = RawBackend::start(vec![writes(wire, 100), writes(wire, 100)]).await;
        let (base, _turns) = endpoint([alone.account("a")]).await;
        assert_eq!(ask(&base, true).await.events().last()["type"], "response.failed");
        assert!(ask(&base, false).await.status >= 400);
    }
}

#[tokio::test]
async fn c16_what_a_client_has_seen_is_not_sent_again() {
    let good = fixture!("C16/upstream.B.sse");
    let bad: [(&[u8], &str); 2] = [
        (fixture!("C16/upstream.A.sse"), "visible prefix "),
        (fixture!("C16/upstream.A2.sse"), ""),
    ];
    for (wire, seen) in bad {
        let (a, b) = (
            RawBackend::start(vec![vec![broken(wire)]]).await,
            RawBackend::start(vec![writes(good, 100)]).await,
        );
        let (base, _turns) = endpoint([a.account("a"), b.account("b")]).await;
        let got = ask(&base, true).await;
        let events = got.events();
        assert_eq!(
            (events.terminals(), events.last()["type"].as_str()),
            (1, Some("response.failed"))
        );
        assert_eq!(text(&got), seen);
        assert_eq!((a.turns().len(), b.turns().len()), (1, 0));
    }
}

#[tokio::test]
async fn c44_a_packed_answer_is_unpacked_before_it_is_read() {
    let packed = fixture!("C44/upstream.sse.gz");
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n";
    let stream: Vec<Vec<u8>> =
        std::iter::once(head.to_vec()).chain(packed.chunks(64).map(<[u8]>::to_vec)).collect();
    let refusal = message(fixture!("C44/upstream.gz.http"));
    let backend = RawBackend::start(vec![refusal, stream.clone(), stream]).await;
    let (base, turns) = endpoint([backend.account("a"), backend.account("b")]).await;
    let refused = ask(&base, true).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_function_parameters"));
    assert_eq!(backend.turns().len(), 1, "a fault of the request is told once");
    assert!(turns.pool.views().iter().all(|view| view.blocked_until.is_none()));
    for streamed in [true, false] {
        let got = ask(&base, streamed).await;
        assert_eq!(text(&got), "inflated");
        for header in ["content-encoding", "keep-alive"] {
            assert!(!got.headers.contains_key(header), "{header}");
        }
    }
}

#[tokio::test]
async fn c99_an_id_that_the_backend_forgot_keeps_its_name() {
    let backend = RawBackend::start(vec![message(fixture!("C99/upstream.1.http"))]).await;
    let (base, turns) = endpoint([backend.account("a"), backend.account("b")]).await;
    let got = ask(&base, true).await;
    assert_eq!((got.status, got.code().as_str()), (400, "previous_response_not_found"));
    assert_eq!(backend.turns().len(), 1);
    assert!(turns.pool.views().iter().all(|view| view.blocked_until.is_none()));
}

#[tokio::test]
async fn c118_odd_text_of_a_failure_makes_no_events() {
    let failed = message(fixture!("C118/upstream.http"));
    let odd = writes(fixture!("C118/upstream.sse"), 7);
    let good = fixture!("C15/upstream.B.sse");
    let backend = RawBackend::start(vec![failed, odd, writes(good, 100)]).await;
    let (base, _turns) = endpoint([backend.account("a")]).await;
    let got = ask(&base, true).await;
    assert_eq!(
        (got.status, &got.headers["content-type"]),
        (500, &"application/json".parse().expect("a value"))
    );
    assert!(!got.message().contains(['\r', '\n']), "{:?}", got.message());
    let got = ask(&base, true).await;
    let events = got.events();
    assert_eq!((events.terminals(), events.last()["type"].as_str()), (1, Some("response.failed")));
    assert!(
        got.text.lines().all(|line| line.is_empty()
            || line.starts_with("event: ")
            || line.starts_with("data: "))
    );
    assert_eq!(text(&ask(&base, true).await), "from B", "the next request is served");
}

#[tokio::test]
async fn a_failure_that_comes_as_a_document_is_the_same_failure() {
    let document = |kind: &str, body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    };
    let limit =
        r#"{"error":{"type":"usage_limit_reached","message":"no more","resets_in_seconds":600}}"#;
    for (first, blocked) in [
        (document("application/json", limit), true),
        (document("text/plain", "You've hit your usage limit."), true),
        (document("text/html", "<html>challenge</html>"), false),
    ] {
        let good = std::str::from_utf8(fixture!("C15/upstream.B.sse")).expect("UTF-8");
        let backend = RawBackend::start(vec![vec![first], vec![stream(good)]]).await;
        let (base, turns) = endpoint([backend.account("a"), backend.account("b")]).await;
        assert_eq!(text(&ask(&base, true).await), "from B");
        let rests = turns.pool.views().iter().filter(|view| view.blocked_until.is_some()).count();
        assert_eq!(rests, usize::from(blocked));
    }
}
