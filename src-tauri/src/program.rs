//! The program that tray and window speak to: one inside this process, or a `weir serve` that runs already.
//!
//! Both take the same commands and tell the same messages; whoever holds a [`Program`] need not know which one it is.
//! [`crate::life`] finds or starts it.
//!
//! **Invariant**: nothing is decided here; commands and messages pass as they are.

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, unfold};
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;
use weir::api::watch::Watcher;
use weir::api::{Api, Command, dispatch};
use weir::app::remote::{Remote, RemoteError};

/// A program that answers on this machine has answered by then.
const PATIENCE: Duration = Duration::from_secs(3);

/// A running program.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// In this process.
    Inside(Api),
    /// In another one, which runs on the same data folder.
    Attached(Remote),
}

/// Why a command got no reply: a code to branch on, a sentence to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Refused {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Refused {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

impl From<RemoteError> for Refused {
    fn from(error: RemoteError) -> Self {
        let code = match error {
            RemoteError::NotRunning => "not_running",
            RemoteError::Refused(_) => "refused",
            RemoteError::Broken(_) => "unreachable",
        };
        Self::new(code, error.to_string())
    }
}

impl Program {
    /// The program that runs on a data folder, if it answers.
    ///
    /// # Errors
    /// [`RemoteError::NotRunning`] when there is none; another one when there seems to be one that does not answer.
    pub(crate) async fn find(folder: &Path) -> Result<Self, RemoteError> {
        let remote = Remote::find(folder)?;
        match timeout(PATIENCE, remote.call(&Command::Status)).await {
            Ok(answer) => answer.map(|_| Self::Attached(remote)),
            Err(_) => Err(RemoteError::Broken(format!(
                "Weir runs at {} but does not answer. Look at its log, or restart it.",
                remote.origin()
            ))),
        }
    }

    pub(crate) fn is_attached(&self) -> bool {
        matches!(self, Self::Attached(_))
    }

    /// Sends one command, as the contract writes it in JSON, and gives back the reply.
    ///
    /// # Errors
    /// When the program does not know the command, refuses it, or has gone.
    pub(crate) async fn call(&self, command: Value) -> Result<Value, Refused> {
        let command: Command = serde_json::from_value(command).map_err(|error| {
            Refused::new(
                "unknown_command",
                format!("This is not a command that Weir knows: {error}."),
            )
        })?;
        match self {
            Self::Inside(api) => match dispatch(api, command).await {
                Ok(reply) => serde_json::to_value(reply).map_err(|error| {
                    Refused::new("unreadable", format!("The reply could not be written: {error}."))
                }),
                Err(refusal) => Err(Refused::new(refusal.code, refusal.message)),
            },
            Self::Attached(remote) => Ok(remote.call(&command).await?),
        }
    }

    /// The event stream, each message as JSON text; `after`, as `EPOCH:NUMBER`, resumes behind a message that was heard.
    /// It ends when the program does.
    ///
    /// # Errors
    /// When an attached program cannot be reached.
    pub(crate) async fn watch(
        &self,
        after: Option<&str>,
    ) -> Result<BoxStream<'static, String>, Refused> {
        match self {
            Self::Inside(api) => Ok(inside(api, after).boxed()),
            Self::Attached(remote) => Ok(remote.watch(after).await?.boxed()),
        }
    }
}

fn inside(api: &Api, after: Option<&str>) -> impl futures_util::Stream<Item = String> + use<> {
    let seen = after
        .and_then(|after| after.split_once(':'))
        .and_then(|(epoch, number)| Some((epoch, number.parse().ok()?)));
    let closing = api.closing.clone();
    unfold((Watcher::new(api, seen), closing), async |(mut watcher, closing)| {
        let message = tokio::select! {
            biased;
            () = closing.cancelled() => return None,
            message = watcher.next() => message,
        };
        let text = serde_json::to_string(&message).ok()?;
        Some((text, (watcher, closing)))
    })
}
