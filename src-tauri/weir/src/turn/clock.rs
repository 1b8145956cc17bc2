//! The wall clock, as the journal and the accounts count it.
//!
//! **Invariant**: durations are measured with tokio's clock, which tests may pause; this one only dates things.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix milliseconds.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Unix seconds.
pub fn now_s() -> i64 {
    now_ms() / 1000
}
