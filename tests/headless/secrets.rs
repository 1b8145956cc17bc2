//! What is never written down: keys, tokens and prompts, however talkative the log is.

use std::path::Path;

use serde_json::json;

use super::{Serving, done};
use crate::support::client::{http, read};
use crate::support::task_request;

const PROMPT: &str = "MARK-PROMPT-7f3a";
const INSTRUCTIONS: &str = "MARK-INSTRUCTIONS-91c2";
const ARGUMENT: &str = "MARK-ARGUMENT-44d0";
const OUTPUT: &str = "MARK-OUTPUT-5b8e";
const ANSWER: &str = "MARK-ANSWER-e6a1";
const WRONG: &str = "weir_MARK-WRONG-KEY-0c9d";

const SCENARIO: &str = "pace = 0.0\n\
    [[rule]]\nwhen = { prompt = 'MARK-PROMPT', has_outputs = false }\n\
    reply = { calls = [{ name = 'task', arguments = { prompt = 'MARK-ARGUMENT-44d0' }, call_id = 'call_mark' }] }\n\
    [[rule]]\nwhen = { prompt = 'MARK-PROMPT' }\nreply = { text = 'MARK-ANSWER-e6a1' }\n\
    [[rule]]\nwhen = { prompt = 'refused' }\nreply = { status = 400, json = { detail = 'MARK-DETAIL' } }\n\
    [[rule]]\nwhen = { prompt = 'broken' }\nreply = { text = 'MARK-ANSWER-e6a1', cut_after_event = 6 }\n";

/// Everything that a program says, in every way a turn can go.
async fn everything(folder: &Path, level: &str) -> (Vec<(String, String)>, String) {
    let scenario = folder.join("scenario.toml");
    std::fs::write(&scenario, SCENARIO).expect("a writable folder");
    let file = scenario.to_str().expect("UTF-8");
    let serving = Serving::with(folder, &["--scenario", file], &[("WEIR_LOG", level)]).await;
    let data = folder.join("data");
    let control =
        std::fs::read_to_string(data.join("control.key")).expect("made").trim().to_owned();
    for model in ["practice-full", "practice-lite"] {
        let mut body = task_request(model, json!([{"role": "user", "content": PROMPT}]));
        body["instructions"] = INSTRUCTIONS.into();
        let calls = serving.turn(&body).await.events().calls();
        assert!(calls[0].to_string().contains(ARGUMENT), "{calls:?}");
        let output =
            json!({"type": "function_call_output", "call_id": "call_mark", "output": OUTPUT});
        body["input"].as_array_mut().expect("a list").extend([calls[0].clone(), output]);
        assert!(serving.turn(&body).await.text.contains(ANSWER));
        for prompt in ["refused", "broken"] {
            body["input"] = json!([{"role": "user", "content": format!("{prompt} {OUTPUT}")}]);
            serving.turn(&body).await;
        }
        let bad =
            serving.request(&body).body(format!("{{\"model\":\"{model}\",\"input\":\"{PROMPT}\""));
        assert_eq!(read(bad).await.status, 400);
        let wrong = serving.request(&body).header("authorization", format!("Bearer {WRONG}"));
        assert!(read(wrong).await.status < 500);
        let wrong =
            http().post(format!("{}/responses", serving.base_url)).bearer_auth(WRONG).json(&body);
        assert_eq!(read(wrong).await.status, 401);
    }
    done(folder, &["mode", "practice-lite", "full"]).await;
    done(folder, &["accounts"]).await;
    let key = serving.key.clone();
    serving.signal("TERM").await;
    let ended = serving.ended().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    let secrets = [
        ("the data key", key.trim_start_matches("weir_")),
        ("the control key", control.trim_start_matches("weirctl_")),
        ("a token of an account", "practice-token"),
        ("a wrong key", &WRONG["weir_".len()..]),
        ("a prompt", PROMPT),
        ("instructions", INSTRUCTIONS),
        ("an argument", ARGUMENT),
        ("an output", OUTPUT),
        ("an answer", ANSWER),
    ];
    let secrets = secrets.map(|(what, text)| (what.to_owned(), text.to_owned()));
    (secrets.to_vec(), ended.stderr)
}

#[tokio::test]
async fn the_most_talkative_log_holds_no_secret_and_no_prompt() {
    let folder = tempfile::tempdir().expect("a folder");
    let (secrets, log) = everything(folder.path(), "trace").await;
    assert!(log.contains("TRACE") && log.lines().count() > 20, "or this test shows nothing: {log}");
    for (what, text) in &secrets {
        let line = log.lines().find(|line| line.contains(text.as_str()));
        assert!(line.is_none(), "{what} is in the log: {line:?}");
    }
}

/// Only the key files hold a key, and nothing holds what was said.
#[tokio::test]
async fn no_file_holds_what_was_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let (secrets, _) = everything(folder.path(), "warn").await;
    let data = folder.path().join("data");
    // Read again while the log of the database is still beside it.
    let serving = Serving::start(folder.path()).await;
    let files =
        std::fs::read_dir(&data).expect("a folder").map(|file| file.expect("a file").path());
    let mut read = 0;
    for path in files.filter(|path| path.extension().is_none_or(|end| end != "key")) {
        let bytes = std::fs::read(&path).expect("readable");
        read += bytes.len();
        for (what, text) in &secrets {
            let found = bytes.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!found, "{what} is in {}", path.display());
        }
    }
    assert!(read > 10_000, "or this test shows nothing");
    serving.stop().await;
}
