//! The window: built when it is asked for, destroyed when it is closed.
//!
//! A hidden window keeps some 200 MB of web engine alive for nothing, so there is none until somebody wants to look. The
//! page is the embedded one and may not leave its origin.
//!
//! **Invariant**: there is at most one window; asking for a second brings the first to the front.

use std::sync::OnceLock;

use tauri::{AppHandle, Manager, Url, WebviewUrl, WebviewWindowBuilder, WindowEvent};

use crate::bridge::Watching;

const LABEL: &str = "main";

/// What the user must know about this desktop; the window's title says it.
#[derive(Debug, Default)]
pub(crate) struct Note(OnceLock<&'static str>);

impl Note {
    pub(crate) fn set(&self, sentence: &'static str) {
        self.0.get_or_init(|| sentence);
    }

    fn title(&self) -> String {
        self.0.get().map_or_else(|| "Weir".to_owned(), |sentence| format!("Weir — {sentence}"))
    }
}

/// Shows the page.
///
/// # Errors
/// When the operating system refuses a window or the web engine does not start.
pub(crate) fn open(app: &AppHandle) -> tauri::Result<()> {
    if let Some(window) = app.get_webview_window(LABEL) {
        window.unminimize()?;
        window.show()?;
        return window.set_focus();
    }
    let window = WebviewWindowBuilder::new(app, LABEL, WebviewUrl::App("index.html".into()))
        .title(app.state::<Note>().title())
        .inner_size(1120.0, 780.0)
        .min_inner_size(360.0, 400.0)
        .on_navigation(stays_home)
        .build()?;
    let app = app.clone();
    window.on_window_event(move |event| {
        if matches!(event, WindowEvent::Destroyed) {
            app.state::<Watching>().end();
        }
    });
    Ok(())
}

/// Brings the title of a window that is open up to date.
pub(crate) fn retitle(app: &AppHandle) {
    if let Some(window) = app.get_webview_window(LABEL)
        && let Err(error) = window.set_title(&app.state::<Note>().title())
    {
        tracing::debug!(%error, "the window keeps its title");
    }
}

/// Whether a link leads to the page's own origin. Anything else would show a stranger in our window.
fn stays_home(to: &Url) -> bool {
    // The embedded page has a scheme of its own on Linux and macOS, and a host of its own on Windows.
    to.scheme() == "tauri" || to.host_str() == Some("tauri.localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pages_own_origin_is_shown() {
        let stays = |text: &str| stays_home(&text.parse().expect("a literal URL"));
        assert!(stays("tauri://localhost/"));
        assert!(stays("http://tauri.localhost/#turns"));
        for stranger in [
            "http://127.0.0.1:8788/",
            "https://example.com/",
            "https://tauri.localhost.example.com/",
            "file:///etc/hostname",
            "data:text/html,x",
        ] {
            assert!(!stays(stranger), "{stranger}");
        }
    }
}
