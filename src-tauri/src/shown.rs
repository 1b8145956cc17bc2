//! What the user sees from the start on: the tray, kept up with the picture, and the window where there is no tray.
//!
//! The tray is drawn at most once a second, and now and then without news because "resets in" moves on by itself.
//!
//! **Invariant**: the tray is only touched on the main thread; a desktop without one gets a window and a sentence.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tauri::async_runtime::{spawn, spawn_blocking};
use tauri::{AppHandle, Manager as _};
use tauri_plugin_autostart::ManagerExt as _;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tracing::{error, warn};

use crate::args::Args;
use crate::life::Life;
use crate::picture::Picture;
use crate::system;
use crate::tray::Tray;
use crate::window::Note;
use crate::{choices, window};

/// The least time between two drawings.
const MOMENT: Duration = Duration::from_secs(1);
/// The most.
const WHILE: Duration = Duration::from_secs(20);
/// A panel has come up by then, also one that comes after us at login.
const PANEL: Duration = Duration::from_secs(3);
const PANEL_AT_LOGIN: Duration = Duration::from_secs(15);

const NO_TRAY: &str = "this desktop has no tray: Weir goes on when the window is closed, and starting it again shows it";

/// The tray, once it is there.
#[derive(Default)]
pub(crate) struct Shown {
    tray: Mutex<Option<Tray>>,
    again: Notify,
}

impl Shown {
    fn tray(&self) -> MutexGuard<'_, Option<Tray>> {
        self.tray.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The operating system turned a check mark over, which the next drawing puts right.
    pub(crate) fn turned(&self, key: &str) {
        if let Some(tray) = &mut *self.tray() {
            tray.turned(key);
        }
    }

    /// Draws without waiting for the moment to pass.
    pub(crate) fn again(&self) {
        self.again.notify_one();
    }
}

/// Shows everything; on the main thread, when its event loop runs.
pub(crate) fn begin(app: &AppHandle) {
    let (life, args) = (app.state::<Life>(), app.state::<Args>());
    life.add(|picture| picture.at_login = app.autolaunch().is_enabled().ok());
    let picture = life.pictures().borrow().clone();
    match Tray::place(app, &picture, now(), choices::perform) {
        Ok(tray) => {
            *app.state::<Shown>().tray() = Some(tray);
            spawn(keep(app.clone()));
            spawn(look_for_panel(app.clone(), args.hidden));
        }
        Err(cause) => {
            error!("there is no icon in the tray: {cause:#}");
            without_tray(app);
        }
    }
    if !args.hidden {
        choices::open(app);
    }
}

/// Keeps the tray up with the picture.
async fn keep(app: AppHandle) {
    let mut pictures = app.state::<Life>().pictures();
    let again = || async { app.state::<Shown>().again.notified().await };
    loop {
        let picture = pictures.borrow_and_update().clone();
        let shown = app.clone();
        // Fails only when the event loop has ended, and then nothing is shown any more.
        if app.run_on_main_thread(move || draw(&shown, &picture)).is_err() {
            return;
        }
        let asked = tokio::select! {
            () = sleep(MOMENT) => false,
            () = again() => true,
        };
        if asked {
            continue;
        }
        tokio::select! {
            changed = pictures.changed() => if changed.is_err() { return },
            () = sleep(WHILE) => {}
            () = again() => {}
        }
    }
}

fn draw(app: &AppHandle, picture: &Picture) {
    if let Some(tray) = &mut *app.state::<Shown>().tray()
        && let Err(error) = tray.show(app, picture, now())
    {
        warn!(%error, "the tray could not be brought up to date");
    }
}

/// Opens the window where nothing shows the tray.
async fn look_for_panel(app: AppHandle, at_login: bool) {
    let until = Instant::now() + if at_login { PANEL_AT_LOGIN } else { PANEL };
    loop {
        if spawn_blocking(system::shows_tray).await.unwrap_or(false) {
            return;
        }
        if Instant::now() >= until {
            return without_tray(&app);
        }
        sleep(PANEL / 6).await;
    }
}

fn without_tray(app: &AppHandle) {
    warn!("{NO_TRAY}");
    app.state::<Note>().set(NO_TRAY);
    choices::open(app);
    window::retitle(app);
}

/// Unix seconds.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
