//! Asks the running program.
//!
//! **Invariant**: the control key is sent to the loopback address that the data folder names, and nowhere else.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::{Failed, Place};
use crate::api::Command;
use crate::app::folder::{self, Running};

pub(super) fn folder(place: &Place) -> Result<PathBuf, Failed> {
    match &place.data {
        Some(path) => Ok(path.clone()),
        None => folder::default_path().map_err(|error| Failed::Command(error.to_string())),
    }
}

/// What the running program answers, or nothing where none runs on this folder.
pub(super) async fn running(place: &Place, command: &Command) -> Result<Option<Value>, Failed> {
    let folder = folder(place)?;
    let Some(Running { origin, .. }) = folder::running(&folder) else { return Ok(None) };
    if !origin.starts_with("http://127.0.0.1:") {
        return Err(Failed::Command(
            "The note of the running program names a foreign address. Restart Weir.".into(),
        ));
    }
    let key = folder::read_key(&folder, true).map_err(|error| {
        Failed::Command(format!(
            "The control key of {} cannot be read ({error}). Run this as the user who runs Weir.",
            folder.display()
        ))
    })?;
    let client =
        reqwest::Client::builder().no_proxy().connect_timeout(Duration::from_secs(5)).build();
    let client = client.map_err(|error| {
        Failed::Command(format!("The system's HTTP client could not be set up ({error})."))
    })?;
    let sent =
        client.post(format!("{origin}/api")).bearer_auth(key.expose()).json(command).send().await;
    let answer = match sent {
        Ok(answer) => answer,
        // A program that was killed leaves its note behind.
        Err(error) if error.is_connect() => return Ok(None),
        Err(_) => {
            return Err(Failed::Command(
                "Weir did not answer. Look at its log, or restart it.".into(),
            ));
        }
    };
    let good = answer.status().is_success();
    let said: Value = answer.json().await.map_err(|_| {
        Failed::Command("The program on Weir's port does not answer as Weir. Restart Weir.".into())
    })?;
    if good {
        return Ok(Some(said));
    }
    let message = said["error"]["message"].as_str().unwrap_or("Weir refused without saying why.");
    Err(Failed::Command(message.to_owned()))
}

/// Like [`running`], for commands that need a running program.
pub(super) async fn must(place: &Place, command: &Command) -> Result<Value, Failed> {
    running(place, command).await?.ok_or_else(|| Failed::Command("Weir is not running. Start it with `weir serve`, or `weir serve --practice` to try it.".into()))
}

pub(super) fn print_json(value: &Value) {
    println!("{value:#}");
}
