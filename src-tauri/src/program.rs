//! The program that the tray stands for: where its endpoint listens, and which page the window shows.
//!
//! This is the one seam between the desktop and the headless library. Today the desktop carries the page and knows of
//! no running program, so the page says how to get one.
//!
//! **Invariant**: tray and window learn the address from here and from nowhere else.

use tauri::WebviewUrl;

/// What the tray and the window need to know of the program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// What a client is configured with, such as `http://127.0.0.1:8788/v1`; absent while nothing listens.
    pub(crate) base_url: Option<String>,
    /// What the window loads: the running program's own page with a one-time key in the fragment, else the page that
    /// is embedded here.
    pub(crate) page: WebviewUrl,
}

impl Program {
    /// Attaches to the running program of this data folder, else starts one inside this process.
    pub(crate) fn find_or_start() -> Self {
        Self { base_url: None, page: WebviewUrl::App("index.html".into()) }
    }
}
