use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use weir::turn::{Timers, catalogs};

use super::{ask, fixture};
use crate::support::bare::{KEY, endpoint, with};
use crate::support::client::http;
use crate::support::raw::{GATE, MODEL, RawBackend, stream};

const MIB: usize = 1024 * 1024;

/// The place behind the nth event.
fn behind(wire: &[u8], nth: usize, end: &[u8]) -> usize {
    let ends = wire.windows(end.len()).enumerate().filter(|(_, bytes)| *bytes == end);
    ends.map(|(at, _)| at + end.len()).nth(nth - 1).expect("so many events")
}

/// Reads a stream until it shows `word`, then goes on to its end; `seen` is called in between.
async fn read_past(base: &str, word: &str, seen: impl FnOnce()) -> String {
    let body = json!({"model": MODEL, "input": "ping", "stream": true});
    let sent = http().post(format!("{base}/v1/responses")).bearer_auth(KEY).json(&body).send();
    let mut pieces = sent.await.expect("an answer").bytes_stream();
    let mut got = Vec::new();
    while !String::from_utf8_lossy(&got).contains(word) {
        got.extend(pieces.next().await.expect("more").expect("bytes"));
    }
    seen();
    while let Some(piece) = pieces.next().await {
        got.extend(piece.expect("bytes"));
    }
    String::from_utf8(got).expect("UTF-8")
}

#[tokio::test]
async fn c02_an_event_is_passed_on_when_its_last_line_is_there() {
    let wire = fixture!("C02/upstream.sse");
    let (head, tail) = wire.split_at(behind(wire, 5, b"\r\n\r\n"));
    let answer = vec![stream(""), head.to_vec(), GATE, tail.to_vec()];
    let backend = RawBackend::start(vec![answer]).await;
    let (base, _turns) = endpoint([backend.account("a")]).await;
    // Waits for ever where the event waits for what comes after it.
    let got = read_past(&base, "first ", || backend.release()).await;
    assert!(got.contains("third") && got.contains("response.completed"));
}

#[tokio::test]
async fn c17_a_client_hears_comments_between_whole_events_while_the_backend_thinks() {
    let wire = fixture!("C17/upstream.sse");
    let (head, tail) = wire.split_at(behind(wire, 2, b"\n\n"));
    // The silence falls between two events, and in the middle of one.
    for (head, tail) in [(head, tail), wire.split_at(head.len() + 40)] {
        let answer = vec![stream(""), head.to_vec(), GATE, tail.to_vec()];
        let backend = RawBackend::start(vec![answer]).await;
        let timers = Timers { comment: Duration::from_millis(5), ..Timers::default() };
        let (base, _turns) = with([backend.account("a")], timers).await;
        let got = read_past(&base, ": weir\n\n: weir\n\n", || backend.release()).await;
        let events: String =
            got.split_inclusive("\n\n").filter(|block| !block.starts_with(':')).collect();
        assert_eq!(events.as_bytes(), wire, "comments stand between events, and nothing is lost");
        assert!(
            got.split_terminator("\n\n")
                .all(|block| block == ": weir" || block.starts_with("event: "))
        );
    }
}

fn image(bytes: usize) -> String {
    "iVBORw0KGgoAAAAN".repeat(bytes / 16)
}

#[tokio::test]
async fn c07_a_line_of_thirty_one_megabytes_passes_and_an_endless_one_fails_in_words() {
    let created = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"},\"sequence_number\":0}\n\n";
    let done = |size: usize| {
        format!(
            "data: {{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{{\"id\":\"ig_1\",\"type\":\"image_generation_call\",\"result\":\"{}\"}},\"sequence_number\":1}}\n\n",
            image(size)
        )
    };
    let completed = "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":5,\"output_tokens\":9,\"total_tokens\":14}},\"sequence_number\":2}\n\n";
    for size in [3 * MIB, 31 * MIB] {
        let answer = || vec![stream(created), done(size).into_bytes(), completed.into()];
        let backend = RawBackend::start(vec![answer(), answer()]).await;
        let (base, _turns) = endpoint([backend.account("a")]).await;
        let events = ask(&base, true).await.events();
        assert_eq!(
            events.kinds(),
            ["response.created", "response.output_item.done", "response.completed"]
        );
        assert!(events.items()[0]["result"] == image(size), "changed on the way");
        let whole = ask(&base, false).await.json();
        assert!(whole["output"][0]["result"] == image(size), "changed on the way");
    }
    let begun = "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\"},\"sequence_number\":1}\n\n";
    let answer = vec![stream(created), begun.into(), done(33 * MIB).into_bytes(), completed.into()];
    let backend = RawBackend::start(vec![answer]).await;
    let (base, _turns) = endpoint([backend.account("a")]).await;
    let events = ask(&base, true).await.events();
    assert_eq!((events.terminals(), events.last()["type"].as_str()), (1, Some("response.failed")));
    assert_eq!(events.last()["response"]["error"]["code"], "event_too_long");
}

/// What a backend without WebSockets answers to a handshake.
const NO_SOCKETS: &[u8] =
    b"HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Answers each turn with numbered events for as long as they are taken, `count` of them, and counts the bytes.
async fn fire_hose(count: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&taken);
    tokio::spawn(async move {
        let mut socket = loop {
            let (mut socket, _) = listener.accept().await.expect("a client");
            let mut buffer = vec![0; 64 * 1024];
            let read = socket.read(&mut buffer).await.expect("a request");
            if buffer[..read].starts_with(b"POST ") {
                break socket;
            }
            socket.write_all(NO_SOCKETS).await.expect("an answer");
        };
        socket.write_all(&stream("")).await.expect("a head");
        for n in 0..count {
            let event = format!(
                "data: {{\"type\":\"response.output_text.delta\",\"delta\":\"{}\",\"sequence_number\":{n}}}\n\n",
                "y".repeat(16 * 1024)
            );
            socket.write_all(event.as_bytes()).await.expect("taken");
            counted.fetch_add(event.len(), Ordering::Relaxed);
        }
        let end = format!(
            "data: {{\"type\":\"response.completed\",\"response\":{{\"id\":\"r\",\"usage\":{{\"input_tokens\":1,\"output_tokens\":1}}}},\"sequence_number\":{count}}}\n\n"
        );
        socket.write_all(end.as_bytes()).await.expect("taken");
    });
    (address, taken)
}

#[tokio::test]
async fn c22_a_client_that_does_not_read_holds_the_backend_back() {
    let count = 4_096;
    let lists = RawBackend::start(Vec::new()).await;
    let (address, taken) = fire_hose(count).await;
    let listed = lists.account("a");
    let (_, listing) = endpoint([listed.clone()]).await;
    catalogs::ensure(&listing).await;
    let account =
        weir::accounts::account::Account { base_url: format!("http://{address}"), ..listed };
    let (base, turns) = endpoint([account]).await;
    let list = json!({"models": [{"slug": MODEL, "use_responses_lite": false}]});
    let catalog = weir::accounts::catalog::Catalog::read(None, &list).expect("a list");
    turns.pool.set_catalog("a", catalog);
    let body = json!({"model": MODEL, "input": "ping", "stream": true});
    let sent = http().post(format!("{base}/v1/responses")).bearer_auth(KEY).json(&body).send();
    let answer = sent.await.expect("an answer");
    // Nothing is read until the backend has not got rid of a byte for a while. That can only be too early, never too late:
    // without back-pressure it gets rid of all 64 MiB.
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = taken.load(Ordering::Relaxed);
        if now == before && now > 0 {
            break;
        }
        before = now;
    }
    assert!(before < 16 * MIB + 8 * MIB, "{before} bytes were taken for a client that reads none");
    let text = answer.text().await.expect("the rest");
    let numbers = text.split("\"sequence_number\":").skip(1);
    let numbers: Vec<usize> =
        numbers.filter_map(|rest| rest.split('}').next()?.parse().ok()).collect();
    assert!(numbers.iter().copied().eq(0..=count), "in order and without a gap");
    assert!(text.contains("response.completed"));
}
