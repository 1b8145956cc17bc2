//! How it ends: what runs is let to end, then the port and the folder are free.

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::net::TcpListener;

use super::{Serving, within};
use crate::support::plain;

/// An answer of a dozen words, which takes a while, so that a signal meets it on its way; and one that never ends.
const PACED: &str = "pace = 2.0\n\
    [[rule]]\nwhen = { prompt = 'forever' }\nreply = { text = 'one two', stall_after_event = 6 }\n\
    [[rule]]\nwhen = { prompt = 'slowly' }\n\
    reply = { text = 'one two three four five six seven eight nine ten eleven twelve' }\n";

/// Looks again until it holds.
async fn until(what: &str, holds: impl Fn() -> bool) {
    within(what, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

async fn paced(folder: &Path) -> Serving {
    let scenario = folder.join("paced.toml");
    std::fs::write(&scenario, PACED).expect("a writable folder");
    Serving::with(folder, &["--scenario", scenario.to_str().expect("UTF-8")], &[]).await
}

#[tokio::test]
async fn a_running_turn_is_let_to_end() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().expect("a folder");
        let serving = paced(folder.path()).await;
        let (port, note) = (serving.port(), folder.path().join("data/running.json"));
        let mut body = plain("practice-full");
        body["input"] = "slowly".into();
        let answer = within("the head", serving.request(&body).send()).await.expect("an answer");
        assert_eq!(answer.status(), 200);
        let mut stream = answer.bytes_stream();
        let mut text = String::new();
        let first = within("the first event", stream.next()).await.expect("a piece");
        text.push_str(std::str::from_utf8(&first.expect("bytes")).expect("UTF-8"));
        serving.signal(signal).await;
        until("the note to be withdrawn", || !note.exists()).await;
        while let Some(piece) = within("the rest of the stream", stream.next()).await {
            text.push_str(std::str::from_utf8(&piece.expect("no broken stream")).expect("UTF-8"));
        }
        assert!(
            text.contains("one two three four five six seven eight nine ten eleven twelve"),
            "{text}"
        );
        assert_eq!(text.matches("event: response.completed").count(), 1, "{text}");
        let ended = serving.ended().await;
        assert_eq!(
            (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
            (Some(0), "", ""),
            "{signal}"
        );
        TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
        assert!(!note.exists());
        // The turn that was let to end is in the history as it ended.
        let again = Serving::start(folder.path()).await;
        let turns = super::done(folder.path(), &["turns", "--json"]).await.json();
        assert_eq!(turns["turns"][0]["outcome"], "completed", "{turns}");
        again.stop().await;
    }
}

/// A client of a turn that does not end hears of the end of the program, and the program does not wait for ever.
#[tokio::test]
async fn a_turn_that_does_not_end_is_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let serving = paced(folder.path()).await;
    let mut body = plain("practice-full");
    body["input"] = "forever".into();
    let answer = within("the head", serving.request(&body).send()).await.expect("an answer");
    assert_eq!(answer.status(), 200);
    serving.signal("TERM").await;
    let text = within("the end of the stream", answer.text()).await.expect("a whole body");
    assert_eq!(text.matches("event: response.failed").count(), 1, "{text}");
    assert!(!text.contains("response.completed"), "{text}");
    let ended = serving.ended().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let again = Serving::start(folder.path()).await;
    let turns = super::done(folder.path(), &["turns", "--json"]).await.json();
    assert_eq!(turns["turns"][0]["outcome"], "failed", "{turns}");
    again.stop().await;
}

/// Whoever starts it may stop it again at once.
#[tokio::test]
async fn a_signal_right_after_the_ready_line_is_heard() {
    for signal in ["TERM", "INT"].repeat(4) {
        let folder = tempfile::tempdir().expect("a folder");
        let serving = Serving::start(folder.path()).await;
        serving.signal(signal).await;
        let ended = serving.ended().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{signal}");
        assert!(!folder.path().join("data/running.json").exists());
    }
}

/// A client keeps its connection for the next request; that must not keep the program.
#[tokio::test]
async fn an_idle_connection_does_not_keep_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let serving = Serving::start(folder.path()).await;
    let client = crate::support::client::http();
    let url = format!("{}/models", serving.base_url);
    let got = crate::support::client::read(client.get(&url).bearer_auth(&serving.key)).await;
    assert_eq!(got.status, 200);
    let idle =
        tokio::net::TcpStream::connect(("127.0.0.1", serving.port())).await.expect("a connection");
    let port = serving.port();
    serving.stop().await;
    drop((idle, client));
    TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
}
