//! Asks the running program on behalf of a command.

use std::path::PathBuf;

use serde_json::Value;

use super::{Failed, Place};
use crate::api::Command;
use crate::app::folder;
use crate::app::remote::{Remote, RemoteError};

pub(super) fn folder(place: &Place) -> Result<PathBuf, Failed> {
    match &place.data {
        Some(path) => Ok(path.clone()),
        None => folder::default_path().map_err(|error| Failed::Command(error.to_string())),
    }
}

/// What the running program answers, or nothing where none runs on this folder.
pub(super) async fn running(place: &Place, command: &Command) -> Result<Option<Value>, Failed> {
    let asked = async {
        Remote::find(&folder(place)?).map_err(Asked::Not)?.call(command).await.map_err(Asked::Not)
    };
    match asked.await {
        Ok(reply) => Ok(Some(reply)),
        Err(Asked::Not(RemoteError::NotRunning)) => Ok(None),
        Err(Asked::Not(error)) => Err(Failed::Command(error.to_string())),
        Err(Asked::Failed(failed)) => Err(failed),
    }
}

enum Asked {
    Not(RemoteError),
    Failed(Failed),
}

impl From<Failed> for Asked {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

/// Like [`running`], for commands that need a running program.
pub(super) async fn must(place: &Place, command: &Command) -> Result<Value, Failed> {
    running(place, command)
        .await?
        .ok_or_else(|| Failed::Command(RemoteError::NotRunning.to_string()))
}

pub(super) fn print_json(value: &Value) {
    println!("{value:#}");
}
