//! The commands: tables and JSON, choices that survive, and ends that say what to do.

use serde_json::{Value, json};

use super::{Ended, Serving, done, run};
use crate::support::plain;

/// The row of a model in a printed table.
fn row<'a>(table: &'a Ended, model: &str) -> &'a str {
    let mut rows =
        table.stdout.lines().filter(|line| line.split_whitespace().next() == Some(model));
    let row = rows.next().unwrap_or_else(|| panic!("no row of {model} in {table:?}"));
    assert!(rows.next().is_none(), "two rows of {model} in {table:?}");
    row
}

#[tokio::test]
async fn the_table_of_modes_says_what_is_sent_and_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let serving = Serving::start(folder.path()).await;
    let table = done(folder.path(), &["mode"]).await;
    assert!(row(&table, "practice-full").contains("auto → full"), "{table:?}");
    assert!(row(&table, "practice-lite").contains("auto → lite"), "{table:?}");
    assert!(row(&table, "practice-lite").len() > "practice-lite  auto → lite  ".len(), "{table:?}");
    let one = done(folder.path(), &["mode", "practice-lite"]).await;
    assert!(
        row(&one, "practice-lite").contains("auto → lite") && !one.stdout.contains("practice-full")
    );
    let rows = done(folder.path(), &["mode", "--json"]).await.json();
    assert_eq!((&rows[1]["model"], &rows[1]["mode"]), (&json!("practice-lite"), &json!("auto")));
    assert_eq!(rows[1]["dialect"], "lite");
    serving.stop().await;
}

/// The toggle that this program exists for.
#[tokio::test]
async fn a_mode_counts_from_the_next_turn_and_survives() {
    let folder = tempfile::tempdir().expect("a folder");
    let serving = Serving::start(folder.path()).await;
    assert_eq!(serving.calls_at_once("practice-lite").await, 1);
    let set = done(folder.path(), &["mode", "practice-lite", "full"]).await;
    assert!(set.stdout.contains("full from the next turn on"), "{set:?}");
    assert!(set.stdout.contains("`weir mode practice-lite auto`"), "{set:?}");
    assert_eq!(serving.calls_at_once("practice-lite").await, 3);
    assert!(row(&done(folder.path(), &["mode"]).await, "practice-lite").contains("  full"));
    serving.stop().await;

    // Not running: what was chosen is known, and can be chosen anew.
    let stored = done(folder.path(), &["mode"]).await;
    assert!(stored.stdout.contains("Weir is not running"), "{stored:?}");
    assert!(row(&stored, "practice-lite").ends_with("full"), "{stored:?}");
    let serving = Serving::start(folder.path()).await;
    assert_eq!(serving.calls_at_once("practice-lite").await, 3, "after a restart");
    serving.stop().await;

    done(folder.path(), &["mode", "practice-lite", "auto"]).await;
    let set = done(folder.path(), &["mode", "practice-full", "lite"]).await;
    assert!(set.stdout.contains("from the next start of Weir on"), "{set:?}");
    let rows = done(folder.path(), &["mode", "--json"]).await.json();
    assert_eq!(rows, json!([{"model": "practice-full", "mode": "lite"}]));
    let serving = Serving::start(folder.path()).await;
    assert_eq!(serving.calls_at_once("practice-lite").await, 1);
    assert!(row(&done(folder.path(), &["mode"]).await, "practice-full").contains("  lite"));
    serving.stop().await;
}

/// A program that was killed leaves its note behind, which must mislead nobody.
#[tokio::test]
async fn after_a_crash_the_commands_work_and_the_next_start_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut serving = Serving::start(folder.path()).await;
    serving.child.kill().await.expect("it runs");
    assert!(folder.path().join("data/running.json").exists());
    done(folder.path(), &["mode", "practice-lite", "full"]).await;
    run(folder.path(), &["status"]).await.refused(1, &["not running", "`weir serve`"]);
    let serving = Serving::start(folder.path()).await;
    assert_eq!(serving.calls_at_once("practice-lite").await, 3);
    serving.stop().await;
}

/// Its port may be a stranger's by then, who must not be shown the control key.
#[tokio::test]
async fn after_a_crash_the_control_key_goes_to_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut serving = Serving::start(folder.path()).await;
    let port = serving.port();
    serving.child.kill().await.expect("it runs");
    let stranger = std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    stranger.set_nonblocking(true).expect("a socket");
    done(folder.path(), &["mode", "practice-lite", "full"]).await;
    run(folder.path(), &["status"]).await.refused(1, &["not running"]);
    let asked = stranger.accept().map_err(|error| error.kind());
    assert!(matches!(asked, Err(std::io::ErrorKind::WouldBlock)), "the stranger was asked");
}

#[tokio::test]
async fn what_the_pool_does_not_offer_is_refused_with_a_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let serving = Serving::start(folder.path()).await;
    let names: &[&str] = &["practice-fool", "practice-lite"];
    run(folder.path(), &["mode", "practice-fool", "full"]).await.refused(1, names);
    run(folder.path(), &["mode", "practice-fool", "--probe"]).await.refused(1, names);
    run(folder.path(), &["mode", "practice-fool"])
        .await
        .refused(1, &["practice-fool", "`weir models`"]);
    run(folder.path(), &["turns", "show", "none"]).await.refused(1, &["`weir turns`"]);
    serving.stop().await;
}

#[tokio::test]
async fn what_needs_a_running_program_says_how_to_start_one() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in [
        &["status"][..],
        &["accounts"],
        &["models"],
        &["turns"],
        &["turns", "show", "0"],
        &["mode", "practice-lite", "--probe"],
    ] {
        run(folder.path(), command).await.refused(1, &["not running", "`weir serve"]);
    }
}

#[tokio::test]
async fn wrong_usage_is_two_and_says_what_is_right() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in [
        &[][..],
        &["no-such-command"],
        &["--no-such-flag"],
        &["serve", "--no-such-flag"],
        &["serve", "--port", "70000"],
        &["serve", "--port", "eighty"],
        &["serve", "--scenario", "x.toml"],
        &["serve", "--record", "x.jsonl"],
        &["serve", "more"],
        &["key", "more"],
        &["mode", "practice-lite", "fast"],
        &["mode", "practice-lite", "FULL "],
        &["mode", "practice-lite", "full", "--probe"],
        &["mode", "--probe"],
        &["turns", "--limit", "many"],
        &["turns", "show"],
        &["status", "--yaml"],
    ] {
        let ended = run(folder.path(), command).await;
        assert_eq!(ended.code, Some(2), "{command:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{command:?}");
        assert!(
            ended.stderr.contains("Usage:") || ended.stderr.contains("--help"),
            "{command:?}: {ended:?}"
        );
    }
    let wrong = run(folder.path(), &["mode", "practice-lite", "fast"]).await;
    assert!(["auto", "lite", "full"].iter().all(|mode| wrong.stderr.contains(mode)), "{wrong:?}");
    assert!(!folder.path().join("data").exists(), "nothing was made");
}

#[tokio::test]
async fn every_help_shows_an_example() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = done(folder.path(), &["--help"]).await.stdout;
    assert!(whole.contains("Examples:"), "{whole}");
    let listed = whole.split_once("Commands:").and_then(|(_, rest)| rest.split_once("\n\n"));
    let listed: Vec<&str> = listed
        .expect("a list of commands")
        .0
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(listed.len() >= 7 && listed.contains(&"serve"), "{listed:?}");
    let commands = listed.iter().map(|name| vec![*name]).chain([vec!["turns", "show"]]);
    for command in commands {
        let help = done(folder.path(), &[&command[..], &["--help"]].concat()).await.stdout;
        assert!(
            help.contains(&format!("Example: weir {}", command.join(" ")))
                || help.contains("$(weir key)") && command == ["key"],
            "{command:?}: {help}"
        );
    }
    let version = done(folder.path(), &["--version"]).await.stdout;
    assert_eq!(version, format!("weir {}\n", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn what_runs_can_be_seen_as_tables_and_as_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let serving = Serving::start(folder.path()).await;
    assert_eq!(serving.calls_at_once("practice-full").await, 3);
    serving.turn(&plain("practice-lite")).await;
    let status = done(folder.path(), &["status"]).await.stdout;
    assert!(status.contains(&serving.base_url) && status.contains("Practice"), "{status}");
    let accounts = done(folder.path(), &["accounts"]).await.stdout;
    assert!(accounts.contains("practice 1") && accounts.contains("week"), "{accounts}");
    let models = done(folder.path(), &["models"]).await;
    assert!(row(&models, "practice-lite").contains("lite"), "{models:?}");
    let turns = done(folder.path(), &["turns", "--json"]).await.json();
    let turns = turns["turns"].as_array().expect("a list");
    assert_eq!(turns.len(), 2);
    let id = turns[1]["id"].as_str().expect("text");
    let shown = done(folder.path(), &["turns", "show", id, "--json"]).await.json();
    assert_eq!(shown["calls"].as_array().map(Vec::len), Some(3));
    let text = done(folder.path(), &["turns", "show", id]).await.stdout;
    assert!(
        text.contains("practice-full in the full form") && text.contains("completed"),
        "{text}"
    );
    let one = done(folder.path(), &["turns", "--limit", "1", "--json"]).await.json();
    assert_eq!(one["turns"].as_array().map(Vec::len), Some(1));
    for command in ["status", "accounts", "models"] {
        let said = done(folder.path(), &[command, "--json"]).await.json();
        assert!(said.as_object().is_some_and(|said| !said.is_empty()), "{command}: {said}");
    }
    serving.stop().await;
}

#[tokio::test]
async fn a_probe_compares_both_forms() {
    let folder = tempfile::tempdir().expect("a folder");
    let serving = Serving::start(folder.path()).await;
    let probe = done(folder.path(), &["mode", "practice-lite", "--probe", "--json"]).await.json();
    let calls = |dialect: &str| -> Vec<Value> {
        let trials = probe["trials"].as_array().expect("a list").iter();
        trials
            .filter(|trial| trial["dialect"] == dialect)
            .map(|trial| trial["calls"].clone())
            .collect()
    };
    assert_eq!((calls("full"), calls("lite")), (vec![json!(3); 3], vec![json!(1); 3]));
    let table = done(folder.path(), &["mode", "practice-lite", "--probe"]).await.stdout;
    assert_eq!(table.matches("accepted").count(), 6, "{table}");
    // Nothing was chosen by that.
    assert!(row(&done(folder.path(), &["mode"]).await, "practice-lite").contains("auto → lite"));
    serving.stop().await;
}
