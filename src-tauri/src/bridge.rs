//! The two commands that the page in the window may call: one forwards a command, one hears the event stream.
//!
//! They carry the contract of `weir::api`, as `/api` and `/api/events` do for a browser; no key is needed, since only the page of
//! this window is on this way.
//!
//! **Invariant**: `watch` is pending for as long as its channel may bring messages, and at most one is pending.

use std::sync::{Mutex, PoisonError};

use futures_util::StreamExt as _;
use serde_json::Value;
use tauri::State;
use tauri::ipc::Channel;
use tokio_util::sync::CancellationToken;

use crate::life::Life;
use crate::program::Refused;

/// The one watch of the window.
#[derive(Debug, Default)]
pub(crate) struct Watching(Mutex<CancellationToken>);

impl Watching {
    /// Ends the watch before, of which nobody hears any more once the page has begun another or the window has gone.
    pub(crate) fn end(&self) -> CancellationToken {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.cancel();
        *current = CancellationToken::new();
        current.clone()
    }
}

/// One command of the contract; resolves to its reply, rejects with `{code, message}`.
#[tauri::command]
pub(crate) async fn call(life: State<'_, Life>, command: Value) -> Result<Value, Refused> {
    life.program().await?.call(command).await
}

/// Sends each message of the event stream, as JSON text, until the program or the window goes; rejects with
/// `{code, message}` where there is no program, which is then looked for again.
#[tauri::command]
pub(crate) async fn watch(
    life: State<'_, Life>,
    watching: State<'_, Watching>,
    on_message: Channel<String>,
    after: Option<String>,
) -> Result<(), Refused> {
    let ended = watching.end();
    let program = match life.program().await {
        Ok(program) => program,
        Err(refused) => {
            life.try_again();
            return Err(refused);
        }
    };
    let mut messages = program.watch(after.as_deref()).await?;
    loop {
        let message = tokio::select! {
            biased;
            () = ended.cancelled() => return Ok(()),
            message = messages.next() => message,
        };
        let Some(message) = message else { return Ok(()) };
        if on_message.send(message).is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_watch_ends_the_one_before_and_a_window_that_goes_the_last() {
        let watching = Watching::default();
        let first = watching.end();
        assert!(!first.is_cancelled());
        let second = watching.end();
        assert!(first.is_cancelled() && !second.is_cancelled());
        watching.end();
        assert!(second.is_cancelled());
    }
}
