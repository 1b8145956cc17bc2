//! The window: built when it is asked for, destroyed when it is closed.
//!
//! A hidden window keeps some 200 MB of web engine alive for nothing, so there is none until somebody wants to look.
//! The page gets no commands of the desktop and may not leave its own origin.
//!
//! **Invariant**: there is at most one window; asking for a second brings the first to the front.

use tauri::{AppHandle, Manager, Url, WebviewUrl, WebviewWindowBuilder};

use crate::program::Program;

const LABEL: &str = "main";

/// Shows the page of the program.
///
/// # Errors
/// When the operating system refuses a window or the web engine does not start.
pub(crate) fn open(app: &AppHandle, program: &Program) -> tauri::Result<()> {
    if let Some(window) = app.get_webview_window(LABEL) {
        window.unminimize()?;
        window.show()?;
        return window.set_focus();
    }
    let page = program.page.clone();
    let home = page.clone();
    WebviewWindowBuilder::new(app, LABEL, page)
        .title("Weir")
        .inner_size(1120.0, 780.0)
        .min_inner_size(480.0, 400.0)
        .on_navigation(move |to| stays_home(&home, to))
        .build()?;
    Ok(())
}

/// Whether a link leads to the page's own origin. Anything else would show a stranger in our window.
fn stays_home(home: &WebviewUrl, to: &Url) -> bool {
    match home {
        WebviewUrl::External(home) => to.origin() == home.origin(),
        // The embedded page has a scheme of its own on Linux and macOS, and a host of its own on Windows.
        _ => to.scheme() == "tauri" || to.host_str() == Some("tauri.localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect("a literal URL")
    }

    #[test]
    fn only_the_pages_own_origin_is_shown() {
        let served = WebviewUrl::External(url("http://127.0.0.1:8788/"));
        assert!(stays_home(&served, &url("http://127.0.0.1:8788/#key=k")));
        assert!(!stays_home(&served, &url("http://127.0.0.1:8789/")));
        assert!(!stays_home(&served, &url("https://example.com/")));

        let embedded = WebviewUrl::App("index.html".into());
        assert!(stays_home(&embedded, &url("tauri://localhost/")));
        assert!(stays_home(&embedded, &url("http://tauri.localhost/")));
        assert!(!stays_home(&embedded, &url("http://127.0.0.1:8788/")));
    }
}
