//! Weir in the tray.
//!
//! The desktop adds to the headless program an icon with a menu, a window that is built when it is asked for, and an
//! orderly end. What it speaks to is found or started by [`life`]; the tray is drawn from a [`picture`] of it, and the
//! window shows the same page as a browser, over [`bridge`].
//!
//! **Invariant**: closing the window ends the window, never the program; what ends the program drains it first.

#![cfg_attr(all(windows, not(debug_assertions)), windows_subsystem = "windows")]

mod args;
mod bridge;
mod choices;
mod difference;
mod icon;
mod life;
mod menu;
mod picture;
mod program;
mod shown;
mod system;
mod tray;
mod window;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use clap::Parser as _;
use tauri::{AppHandle, Manager as _, RunEvent};
use tokio::runtime::Runtime;
use tracing::{error, info, warn};
use weir::app::folder::Folder;
use weir::app::log;

use crate::args::Args;
use crate::life::Life;

fn main() -> ExitCode {
    let args = Args::parse();
    let logs = Folder::open(args.data.clone()).and_then(|folder| log::start(&folder, log::DESKTOP));
    // A panic is the log's business; where one is expected, the sentence follows.
    std::panic::set_hook(Box::new(|panic| error!("{panic}")));

    if let Err(cause) = logs {
        warn!("no log is kept: {cause}");
    }
    match run(args) {
        Ok(code) => code,
        Err(cause) => {
            error!("Weir cannot start: {cause:#}");
            // 3 is the exit code of every program of ours that cannot start.
            ExitCode::from(3)
        }
    }
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the system gives it no threads")?;
    tauri::async_runtime::set(runtime.handle().clone());

    let builder = tauri::Builder::default()
        // The first plugin, so that a second start ends before it has done anything.
        .plugin(tauri_plugin_single_instance::init(|app, argv, _| started_again(app, argv)))
        .plugin(
            tauri_plugin_autostart::Builder::new()
                .args(args.at_login(system::LOGIN_IS_A_LINE))
                .build(),
        )
        .invoke_handler(tauri::generate_handler![bridge::call, bridge::watch]);
    // On Linux the toolkit panics where it finds no display.
    let app = catch_unwind(AssertUnwindSafe(|| builder.build(context())))
        .map_err(|_| anyhow!("no display can be used; `weir serve` needs none"))??;
    if args.quit {
        info!("no Weir runs in the tray, so none was ended");
        return Ok(ExitCode::SUCCESS);
    }
    begin(app.handle(), &runtime, &args);

    let code = app.run_return(|app, event| match event {
        RunEvent::Ready => shown::begin(app),
        // Without a code the request comes from the last window being closed: the tray stays.
        RunEvent::ExitRequested { code: None, api, .. } => api.prevent_exit(),
        // A click on the icon in the Dock.
        #[cfg(target_os = "macos")]
        RunEvent::Reopen { .. } => choices::open(app),
        _ => {}
    });
    runtime.shutdown_background();
    Ok(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// What the build embedded: the page, the icons, `tauri.conf.json`.
#[allow(clippy::disallowed_methods, reason = "the macro's own code calls `exit`; ours does not")]
fn context() -> tauri::Context {
    tauri::generate_context!()
}

/// Starts everything that does not need the display's event loop to run.
fn begin(app: &AppHandle, runtime: &Runtime, args: &Args) {
    app.manage(Life::begin(runtime.handle(), args));
    app.manage(args.clone());
    app.manage(bridge::Watching::default());
    app.manage(window::Note::default());
    app.manage(choices::Copied::default());
    app.manage(shown::Shown::default());
    let app = app.clone();
    runtime.spawn(async move {
        system::asked_to_end().await;
        choices::quit(&app);
    });
}

/// A second start hands its arguments to this one and ends.
fn started_again(app: &AppHandle, argv: Vec<String>) {
    match Args::of(argv) {
        Some(again) if again.quit => choices::quit(app),
        Some(again) if again.hidden => {}
        _ => choices::open(app),
    }
}
