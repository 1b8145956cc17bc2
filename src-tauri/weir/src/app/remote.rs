//! The contract from another process: what the command line and an attached window speak to a running program.
//!
//! **Invariant**: the control key is sent to the loopback address that the data folder names, and nowhere else.

use std::path::Path;
use std::time::Duration;

use futures_util::Stream;
use serde_json::Value;

use super::folder::{self, Running};
use crate::accounts::secret::Secret;
use crate::api::Command;
use crate::upstream::stream::Events;

/// A running program as another process reaches it.
#[derive(Clone, Debug)]
pub struct Remote {
    origin: String,
    key: Secret,
    http: reqwest::Client,
}

/// Why a program cannot be asked.
#[derive(Debug)]
pub enum RemoteError {
    /// Nothing runs on this folder.
    NotRunning,
    /// It runs, and refused: its own sentence.
    Refused(String),
    /// It cannot be spoken to: a sentence for the user.
    Broken(String),
}

impl std::fmt::Display for RemoteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotRunning => f.write_str("Weir is not running. Start it with `weir serve`, or `weir serve --practice` to try it."),
            Self::Refused(message) | Self::Broken(message) => f.write_str(message),
        }
    }
}

impl Remote {
    /// The program that runs on a data folder, as far as its note says; asking shows whether it still does.
    pub fn find(folder: &Path) -> Result<Self, RemoteError> {
        let Some(Running { origin, .. }) = folder::running(folder) else {
            return Err(RemoteError::NotRunning);
        };
        if !origin.starts_with("http://127.0.0.1:") {
            return Err(RemoteError::Broken(
                "The note of the running program names a foreign address. Restart Weir.".into(),
            ));
        }
        let key = folder::read_key(folder, true)
            .map_err(|error| RemoteError::Broken(error.to_string()))?;
        let key = key.ok_or_else(|| {
            RemoteError::Broken(format!(
                "There is no control key in {}. Restart Weir, which makes one.",
                folder.display()
            ))
        })?;
        let http =
            reqwest::Client::builder().no_proxy().connect_timeout(Duration::from_secs(5)).build();
        let http = http.map_err(|error| {
            RemoteError::Broken(format!("The system's HTTP client could not be set up ({error})."))
        })?;
        Ok(Self { origin, key, http })
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Sends a command and returns its reply as JSON.
    pub async fn call(&self, command: &Command) -> Result<Value, RemoteError> {
        // A probe waits for six turns of a model.
        let patience = match command {
            Command::Probe { .. } => Duration::from_secs(600),
            _ => Duration::from_secs(60),
        };
        let sent = self
            .http
            .post(format!("{}/api", self.origin))
            .timeout(patience)
            .bearer_auth(self.key.expose())
            .json(command)
            .send()
            .await;
        let answer = sent.map_err(|error| lost(&error))?;
        let good = answer.status().is_success();
        let said: Value = answer.json().await.map_err(|_| {
            RemoteError::Broken(
                "The program on Weir's port does not answer as Weir. Restart Weir.".into(),
            )
        })?;
        if good {
            return Ok(said);
        }
        let message =
            said["error"]["message"].as_str().unwrap_or("Weir refused without saying why.");
        Err(RemoteError::Refused(message.to_owned()))
    }

    /// The event stream: each item is one message as JSON text. `after`, as `EPOCH:NUMBER`, resumes behind a message that was
    /// heard before. It ends when the program does.
    pub async fn watch(
        &self,
        after: Option<&str>,
    ) -> Result<impl Stream<Item = String> + Send + use<>, RemoteError> {
        let mut address = format!("{}/api/events", self.origin);
        // Anything else is no position, and the stream then begins with a snapshot.
        let is_position = |text: &&str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == ':');
        if let Some(after) = after.filter(is_position) {
            address = format!("{address}?after={after}");
        }
        let sent = self.http.get(address).bearer_auth(self.key.expose()).send().await;
        let answer =
            sent.and_then(reqwest::Response::error_for_status).map_err(|error| lost(&error))?;
        let events = Events::new(answer.bytes_stream());
        Ok(futures_util::stream::unfold(events, |mut events| async move {
            let message = events.next().await?.ok()?;
            Some((message, events))
        }))
    }
}

fn lost(error: &reqwest::Error) -> RemoteError {
    // A program that was killed leaves its note behind.
    if error.is_connect() {
        RemoteError::NotRunning
    } else {
        RemoteError::Broken("Weir did not answer. Look at its log, or restart it.".into())
    }
}
