//! Weir in the tray.
//!
//! The desktop adds three things to the headless program and nothing else: an icon with a short menu, a window that is
//! built when it is asked for, and an orderly end. What the window shows is the page that a browser shows as well,
//! spoken to over the same `/api`; see [`program`] for where it comes from.
//!
//! **Invariant**: closing the window ends the window, never the program; only the menu's last entry ends the program.

#![cfg_attr(all(windows, not(debug_assertions)), windows_subsystem = "windows")]

mod program;
mod tray;
mod window;

use std::process::ExitCode;

use tauri::{AppHandle, RunEvent};
use tracing::error;
use tracing_subscriber::EnvFilter;

use crate::program::Program;
use crate::tray::Action;

fn main() -> ExitCode {
    let filter =
        EnvFilter::try_from_env("WEIR_LOG").unwrap_or_else(|_| EnvFilter::new("warn,weir=info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();

    match run() {
        Ok(code) => code,
        Err(cause) => {
            error!("Weir cannot start: {cause:#}");
            // 3 is the exit code of every program of ours that cannot start.
            ExitCode::from(3)
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let program = Program::find_or_start();
    let menu = tray::describe(&program);

    let app = tauri::Builder::default()
        .setup(move |app| {
            let shown = program.clone();
            tray::draw(app.handle(), &menu, move |app, action| perform(app, &shown, action))?;
            window::open(app.handle(), &program)?;
            Ok(())
        })
        .build(context())?;

    let code = app.run_return(|_, event| {
        // Without a code the request comes from the last window being closed: the tray stays.
        if let RunEvent::ExitRequested { code: None, api, .. } = event {
            api.prevent_exit();
        }
    });
    Ok(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// What the build embedded: the page, the icons, `tauri.conf.json`.
#[allow(clippy::disallowed_methods, reason = "the macro's own code calls `exit`; ours does not")]
fn context() -> tauri::Context {
    tauri::generate_context!()
}

fn perform(app: &AppHandle, program: &Program, action: Action) {
    match action {
        Action::Open => {
            if let Err(cause) = window::open(app, program) {
                error!("the window does not open: {cause:#}");
            }
        }
        Action::Quit => app.exit(0),
    }
}
