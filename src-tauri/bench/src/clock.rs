//! One clock for both ends, which live in one process.
//!
//! **Invariant**: it never runs backwards.

use std::sync::OnceLock;

use tokio::time::Instant;

static BEGAN: OnceLock<Instant> = OnceLock::new();

/// Nanoseconds since the clock was first read.
pub(crate) fn now() -> u64 {
    let began = BEGAN.get_or_init(Instant::now);
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
