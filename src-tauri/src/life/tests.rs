//! Lives on real folders and ports: found, started, refused, lost, ended.

use std::net::TcpListener;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::*;

fn args(data: &Path, port: u16) -> Args {
    Args { data: Some(data.to_owned()), port, practice: true, hidden: true, quit: false }
}

fn begin(data: &TempDir, port: u16) -> Life {
    Life::begin(&Handle::current(), &args(data.path(), port))
}

/// A program as `weir serve --practice` starts it.
async fn serve(data: &TempDir) -> App {
    let config = Config {
        data: Some(data.path().to_owned()),
        port: 0,
        practice: Some(practice::Options::default()),
        timers: Timers::default(),
        log: false,
    };
    App::start(config).await.expect("a free port")
}

/// Waits until the tray would show such a picture.
async fn shows(life: &Life, what: impl Fn(&Picture) -> bool) -> Picture {
    let mut pictures = life.pictures();
    let seen = timeout(Duration::from_secs(60), pictures.wait_for(what)).await;
    seen.expect("it comes to that").expect("the life goes on").clone()
}

fn listens(picture: &Picture) -> bool {
    matches!(picture.endpoint, Endpoint::Listening { .. })
}

#[tokio::test]
async fn what_does_not_run_is_started_inside_and_ends_with_the_life() {
    let data = tempfile::tempdir().expect("a folder");
    let life = begin(&data, 0);
    let picture = shows(&life, |picture| listens(picture) && !picture.models.is_empty()).await;
    let Endpoint::Listening { base_url, practice: true, elsewhere: false } = &picture.endpoint
    else {
        panic!("{picture:?}");
    };
    assert_eq!(picture.accounts.len(), 3);
    assert!(life.data_key().expect("made").starts_with("weir_"));
    let port = base_url.trim_end_matches("/v1").rsplit(':').next().expect("a port").to_owned();
    let program = life.program().await.expect("it runs");

    let set = json!({"command": "set_mode", "model": "practice-lite", "mode": "full"});
    program.call(set).await.expect("a known model");
    let flipped = |picture: &Picture| picture.models.iter().any(|model| model.mode == "full");
    shows(&life, flipped).await;
    let refused = program.call(json!({"command": "dance"})).await.expect_err("unknown");
    assert_eq!(refused.code, "unknown_command");

    life.end().await;
    TcpListener::bind(format!("127.0.0.1:{port}")).expect("the port is free again");
    assert_eq!(life.program().await.expect_err("it has ended").code, "ending");
}

#[tokio::test]
async fn what_runs_on_the_folder_is_attached_to_and_left_running() {
    let data = tempfile::tempdir().expect("a folder");
    let other = serve(&data).await;
    let life = begin(&data, 0);
    let picture = shows(&life, listens).await;
    let there =
        Endpoint::Listening { base_url: other.base_url.clone(), practice: true, elsewhere: true };
    assert_eq!(picture.endpoint, there);
    let program = life.program().await.expect("it runs");
    assert!(program.is_attached());

    // A stream that is resumed behind a position begins with a delta.
    let mut messages = program.watch(None).await.expect("it runs");
    let first: serde_json::Value =
        serde_json::from_str(&messages.next().await.expect("a snapshot")).expect("JSON");
    let after = format!("{}:{}", first["epoch"].as_str().expect("text"), first["number"]);
    let mut resumed = program.watch(Some(&after)).await.expect("it runs");
    assert!(resumed.next().await.expect("a delta").starts_with("{\"kind\":\"delta\""));

    let unknown = json!({"command": "set_mode", "model": "nobody's", "mode": "full"});
    let refused = program.call(unknown).await.expect_err("no such model");
    assert!(refused.message.contains("practice-lite"), "{}", refused.message);

    life.end().await;
    Program::find(data.path()).await.expect("the other goes on");
    other.drain().await;
}

#[tokio::test]
async fn when_the_other_ends_the_life_goes_on_inside() {
    let data = tempfile::tempdir().expect("a folder");
    let other = serve(&data).await;
    let life = begin(&data, 0);
    shows(&life, listens).await;
    other.drain().await;
    let inside = |picture: &Picture| {
        matches!(picture.endpoint, Endpoint::Listening { elsewhere: false, .. })
    };
    shows(&life, inside).await;
    assert!(!life.program().await.expect("it runs").is_attached());
    life.end().await;
}

#[tokio::test]
async fn a_port_in_use_is_said_and_tried_again_when_asked() {
    let data = tempfile::tempdir().expect("a folder");
    let holder = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = holder.local_addr().expect("bound").port();
    let life = begin(&data, port);
    let down = |picture: &Picture| matches!(picture.endpoint, Endpoint::Down(_));
    let Endpoint::Down(sentence) = shows(&life, down).await.endpoint else { unreachable!() };
    assert!(sentence.starts_with(&format!("Port {port} is already used by ")), "{sentence}");
    let refused = life.program().await.expect_err("nothing runs");
    assert_eq!(refused, Refused::new("not_running", sentence));

    drop(holder);
    life.try_again();
    let picture = shows(&life, listens).await;
    let base_url = format!("http://127.0.0.1:{port}/v1");
    assert_eq!(
        picture.endpoint,
        Endpoint::Listening { base_url, practice: true, elsewhere: false }
    );
    life.end().await;
}

#[tokio::test]
async fn a_life_that_is_down_can_be_ended() {
    let data = tempfile::tempdir().expect("a folder");
    std::fs::write(data.path().join("data.key"), "weir_").expect("written");
    let life = begin(&data, 0);
    let down = |picture: &Picture| matches!(picture.endpoint, Endpoint::Down(_));
    let Endpoint::Down(sentence) = shows(&life, down).await.endpoint else { unreachable!() };
    assert!(sentence.contains("does not hold a key"), "{sentence}");
    life.end().await;
}
