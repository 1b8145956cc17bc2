//! One ready line, and an endpoint on every loopback name the machine has.

use std::net::Ipv6Addr;

use serde_json::Value;
use tokio::net::TcpListener;

use super::{Serving, done, run, weir, within};
use crate::support::client::{http, read};
use crate::support::plain;

#[tokio::test]
async fn one_line_says_all_that_a_client_needs() {
    let folder = tempfile::tempdir().expect("a folder");
    let serving = Serving::start(folder.path()).await;
    assert_eq!(serving.base_url, format!("http://127.0.0.1:{}/v1", serving.port()));
    assert_eq!(done(folder.path(), &["key"]).await.stdout, format!("{}\n", serving.key));
    let got = serving.turn(&plain("practice-full")).await;
    assert_eq!(got.events().last()["type"], "response.completed");
    // `stop` checks that nothing followed the line.
    serving.stop().await;
}

/// C111: a client that says `localhost` may mean either family.
#[tokio::test]
async fn every_loopback_name_leads_to_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let serving = Serving::start(folder.path()).await;
    let mut names = vec!["127.0.0.1", "localhost"];
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok() {
        names.push("[::1]");
    }
    for name in names {
        let url = format!("http://{name}:{}/v1/responses", serving.port());
        let request = http().post(url).bearer_auth(&serving.key).json(&plain("practice-lite"));
        let got = within("a turn", read(request)).await;
        assert_eq!(got.events().last()["type"], "response.completed", "{name}");
    }
    serving.stop().await;
}

#[tokio::test]
async fn the_key_stays_and_can_be_had_before_the_first_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = done(folder.path(), &["key"]).await.stdout;
    for _ in 0..2 {
        let serving = Serving::start(folder.path()).await;
        assert_eq!(format!("{}\n", serving.key), key);
        serving.stop().await;
    }
}

#[tokio::test]
async fn a_given_folder_counts_more_than_the_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("ö and spaces").join("deeper");
    let serving =
        Serving::with(folder.path(), &["--data", other.to_str().expect("UTF-8")], &[]).await;
    assert!(other.join("weir.db").exists() && !folder.path().join("data").exists());
    let asked = ["--data", other.to_str().expect("UTF-8"), "status", "--json"];
    let status = done(folder.path(), &asked).await.json();
    assert_eq!(status["base_url"], serving.base_url.as_str());
    assert_eq!(status["practice"], true);
    serving.stop().await;
}

/// For people the same start says how to go on.
#[tokio::test]
async fn without_json_it_prints_what_to_paste() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let folder = tempfile::tempdir().expect("a folder");
    let mut child =
        weir(folder.path(), &["serve", "--practice", "--port", "0"]).spawn().expect("built");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut said = String::new();
    while !said.contains("Ctrl-C ends Weir.") {
        let line = within("the greeting", lines.next_line()).await.expect("UTF-8");
        said.push_str(&line.expect("it goes on"));
        said.push('\n');
    }
    let key = done(folder.path(), &["key"]).await.stdout;
    assert!(said.contains("Practice: the answers are scripted"), "{said}");
    assert!(said.contains(key.trim()), "{said}");
    let config = said.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
    let config: Value =
        serde_json::from_str(&format!("{{{}}}", config.expect("a config").0)).expect("JSON");
    assert!(config.to_string().contains(key.trim()), "{config}");
    child.kill().await.expect("it runs");
}

/// Keys, the database and the note of a running program are for their owner alone.
#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_what_is_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).expect("there").permissions().mode() & 0o777
    };
    let serving = Serving::start(folder.path()).await;
    serving.turn(&plain("practice-full")).await;
    let data = folder.path().join("data");
    assert_eq!(mode(&data), 0o700);
    for file in std::fs::read_dir(&data).expect("a folder") {
        let path = file.expect("a file").path();
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
    serving.stop().await;

    // A folder that was there before keeps the rights that its owner gave it: others may live in it.
    let shared = folder.path().join("shared");
    std::fs::create_dir(&shared).expect("made");
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o755)).expect("set");
    let asked = ["--data", shared.to_str().expect("UTF-8"), "key"];
    assert_eq!(run(folder.path(), &asked).await.code, Some(0));
    assert_eq!(mode(&shared), 0o755);
}
