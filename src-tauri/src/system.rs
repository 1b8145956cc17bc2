//! What differs between the operating systems.
//!
//! Everything else of the desktop is the same on all three.
//!
//! **Invariant**: a system that does not answer is taken for one that lacks the thing asked about.

use crate::icon::Look;

/// macOS tints the icons of its menu bar by itself.
pub(crate) const LOOK: Look = if cfg!(target_os = "macos") { Look::Template } else { Look::Colour };

/// Edge of the icon in pixels: 22 points at twice the density on macOS.
pub(crate) const ICON_SIZE: u32 = if cfg!(target_os = "macos") { 44 } else { 32 };

/// Whether what starts at login is one line of text, split at spaces.
pub(crate) const LOGIN_IS_A_LINE: bool = cfg!(not(target_os = "macos"));

/// Whether something on this desktop shows icons of programs that run in the background. Blocks for a moment.
#[cfg(target_os = "linux")]
pub(crate) fn shows_tray() -> bool {
    use gio::glib::ToVariant as _;
    let asked = gio::bus_get_sync(gio::BusType::Session, gio::Cancellable::NONE).and_then(|bus| {
        bus.call_sync(
            Some("org.freedesktop.DBus"),
            "/org/freedesktop/DBus",
            "org.freedesktop.DBus",
            "NameHasOwner",
            Some(&("org.kde.StatusNotifierWatcher",).to_variant()),
            None,
            gio::DBusCallFlags::NONE,
            1_000,
            gio::Cancellable::NONE,
        )
    });
    match asked {
        Ok(reply) => reply.get::<(bool,)>() == Some((true,)),
        Err(error) => {
            tracing::debug!(%error, "the session bus does not answer");
            false
        }
    }
}

/// Windows and macOS always do.
#[cfg(not(target_os = "linux"))]
pub(crate) fn shows_tray() -> bool {
    true
}

/// Settles when the system asks the process to end.
#[cfg(unix)]
pub(crate) async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminate = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(error) => {
                tracing::warn!(%error, "the system's wish to end is not heard");
                std::future::pending().await
            }
        }
    };
    tokio::select! {
        () = terminate => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

#[cfg(not(unix))]
pub(crate) async fn asked_to_end() {
    drop(tokio::signal::ctrl_c().await);
}
