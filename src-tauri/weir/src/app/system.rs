//! What differs between the operating systems, as far as the headless program goes.
//!
//! On Unix, files are made for their owner alone and SIGTERM ends the program; elsewhere the profile's own rights and
//! Ctrl-C have to do.
//!
//! **Invariant**: everything else of the headless program is the same on all systems.

use std::fs::{DirBuilder, OpenOptions};
use std::future::Future;
use std::io;

/// Options that make a file for its owner alone.
#[cfg(unix)]
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600)
}

#[cfg(not(unix))]
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Makes a folder for its owner alone. One that was there before keeps its rights: others may live in it.
pub fn private_dir() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Listens from now on; the future resolves when the program is asked to end.
#[cfg(unix)]
pub fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "listening may fail on the other systems")]
pub fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}
