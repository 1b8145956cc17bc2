//! What the entries of the menu do when they are chosen.
//!
//! What does not succeed is said in the menu itself, since a tray has no other place for it, and in the log.
//!
//! **Invariant**: a choice changes what is shown only through the picture, after it has been carried out.

use std::sync::{Mutex, PoisonError};

use arboard::Clipboard;
use serde_json::json;
use tauri::async_runtime::spawn;
use tauri::{AppHandle, Manager as _};
use tauri_plugin_autostart::ManagerExt as _;
use tracing::{error, info, warn};

use crate::life::Life;
use crate::menu::Action;
use crate::picture::Endpoint;
use crate::shown::Shown;
use crate::window;

/// The clipboard after something was copied: some systems ask its owner for the text only when it is pasted.
#[derive(Default)]
pub(crate) struct Copied(Mutex<Option<Clipboard>>);

/// Carries out the choice of the entry `key`.
pub(crate) fn perform(app: &AppHandle, key: &str, action: Action) {
    let life = app.state::<Life>();
    match action {
        Action::CopyUrl => {
            let url = match &life.pictures().borrow().endpoint {
                Endpoint::Listening { base_url, .. } => Ok(base_url.clone()),
                _ => Err("Nothing was copied, because Weir does not listen.".to_owned()),
            };
            say(app, url.and_then(|url| copy(app, url)));
        }
        Action::CopyKey => say(app, life.data_key().and_then(|key| copy(app, key))),
        Action::TryAgain => life.try_again(),
        Action::SetMode { model, mode } => {
            app.state::<Shown>().turned(key);
            set_mode(app.clone(), model, mode);
        }
        Action::Login => {
            app.state::<Shown>().turned(key);
            say(app, turn_login(app));
        }
        Action::Open => open(app),
        Action::Quit => quit(app),
    }
}

/// Shows the window.
pub(crate) fn open(app: &AppHandle) {
    if let Err(cause) = window::open(app) {
        error!("the window does not open: {cause:#}");
    }
}

/// Lets running turns end, within a bound, then ends the process.
pub(crate) fn quit(app: &AppHandle) {
    let life = app.try_state::<Life>().map(|life| life.inner().clone());
    let app = app.clone();
    spawn(async move {
        if let Some(life) = life {
            life.end().await;
        }
        app.exit(0);
    });
}

/// Shows what a choice came to: nothing where it succeeded.
fn say(app: &AppHandle, outcome: Result<(), String>) {
    if let Err(sentence) = &outcome {
        warn!("{sentence}");
    }
    app.state::<Life>().add(|picture| picture.notice = outcome.err());
    app.state::<Shown>().again();
}

fn set_mode(app: AppHandle, model: String, mode: String) {
    let life = app.state::<Life>().inner().clone();
    spawn(async move {
        let command = json!({"command": "set_mode", "model": model, "mode": mode});
        let done = match life.program().await {
            Ok(program) => program.call(command).await,
            Err(refused) => Err(refused),
        };
        if done.is_ok() {
            info!(model, mode, "the mode was set from the tray");
        }
        let outcome = done
            .map(drop)
            .map_err(|refused| format!("{model} stays as it is. {}", refused.message));
        say(&app, outcome);
    });
}

fn copy(app: &AppHandle, text: String) -> Result<(), String> {
    let copied = app.state::<Copied>();
    let mut kept = copied.0.lock().unwrap_or_else(PoisonError::into_inner);
    let clipboard = match &mut *kept {
        Some(clipboard) => Ok(clipboard),
        none => Clipboard::new().map(|clipboard| none.insert(clipboard)),
    };
    clipboard
        .and_then(|clipboard| clipboard.set_text(text))
        .map_err(|error| format!("Nothing was copied: the clipboard does not answer ({error})."))
}

/// Turns the start at login on or off.
fn turn_login(app: &AppHandle) -> Result<(), String> {
    let login = app.autolaunch();
    let turned = match login.is_enabled() {
        Ok(true) => login.disable(),
        Ok(false) => login.enable(),
        Err(error) => Err(error),
    };
    app.state::<Life>().add(|picture| picture.at_login = login.is_enabled().ok());
    turned.map_err(|error| format!("The start at login stays as it is ({error})."))
}
