//! How often an account may open a connection, and when it had better not try.
//!
//! Backends refuse accounts that shake hands too often, and some networks let no WebSocket through at all. A turn never waits
//! for either: it takes the other way, and the next one may ask again.
//!
//! **Invariant**: plain arithmetic on the time that is passed in; only what says that WebSockets as such are unwanted shuts
//! the gate for long.

use std::time::Duration;

use tokio::time::Instant;

/// Handshakes that may follow each other at once; after them one a second.
const BURST: f64 = 4.0;
const PER_SECOND: f64 = 1.0;

/// How long the way is not tried after a first failure; twice as long after each further one.
const FIRST_REST: Duration = Duration::from_secs(5);
const LONGEST_REST: Duration = Duration::from_secs(300);

/// How long the backend's word counts that it wants no WebSocket (426).
pub(in crate::upstream) const UNWANTED: Duration = Duration::from_secs(60 * 60);
/// How long a close for reasons of policy (1008) counts.
pub(in crate::upstream) const POLICY: Duration = Duration::from_secs(10 * 60);

/// The longest frame that is sent, in bytes. The backend takes less than 16 MiB and closes the connection otherwise.
pub(in crate::upstream) const FRAME_LIMIT: usize = 15 * 1024 * 1024;

/// Why a turn goes over SSE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::upstream) enum NotNow {
    /// Another turn is on the conversation's connection.
    Busy,
    /// The account has as many connections as it may, all in use.
    Full,
    /// Too many handshakes at once.
    Paced,
    /// The last attempts failed.
    Resting,
    /// The backend said that it wants no WebSocket from this account.
    Unwanted,
    /// The frame would be longer than the backend takes.
    TooLong(usize),
    /// It was tried and failed, with the cause.
    Failed(String),
}

impl NotNow {
    /// The reason in words, for the window and the journal.
    pub(in crate::upstream) fn sentence(&self) -> String {
        match self {
            Self::Busy => "another turn of this conversation is on its connection".into(),
            Self::Full => "every connection that the account may have is in use".into(),
            Self::Paced => "connections are opened one a second, and others were first".into(),
            Self::Resting => "opening a connection failed a short while ago".into(),
            Self::Unwanted => "the backend takes no WebSocket from this account".into(),
            Self::TooLong(bytes) => {
                format!("a frame of {} MiB is more than the backend takes", bytes / (1024 * 1024))
            }
            Self::Failed(cause) => format!("no connection could be opened: {cause}"),
        }
    }
}

/// One account's way to new connections.
#[derive(Debug)]
pub(in crate::upstream) struct Gate {
    tokens: f64,
    filled_at: Instant,
    shut: Option<(Instant, NotNow)>,
    failures: u32,
    /// Frames of this length and more go another way, in bytes.
    limit: usize,
}

impl Gate {
    pub(super) fn new(now: Instant) -> Self {
        Self { tokens: BURST, filled_at: now, shut: None, failures: 0, limit: FRAME_LIMIT }
    }

    /// Whether a connection may be opened now; it then counts as one.
    pub(in crate::upstream) fn dial(&mut self, now: Instant) -> Result<(), NotNow> {
        self.is_open(now)?;
        let since = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + since * PER_SECOND).min(BURST);
        self.filled_at = now;
        if self.tokens < 1.0 {
            return Err(NotNow::Paced);
        }
        self.tokens -= 1.0;
        Ok(())
    }

    pub(in crate::upstream) fn opened(&mut self) {
        self.failures = 0;
    }

    pub(in crate::upstream) fn failed(&mut self, now: Instant) {
        let rest = FIRST_REST.saturating_mul(1 << self.failures.min(8)).min(LONGEST_REST);
        self.failures += 1;
        self.shut = Some((now + rest, NotNow::Resting));
    }

    /// No connection is used for that long.
    pub(in crate::upstream) fn shut(&mut self, now: Instant, long: Duration) {
        self.shut = Some((now + long, NotNow::Unwanted));
    }

    /// The backend closed a connection because of a frame of that many bytes.
    pub(in crate::upstream) fn refused_frame(&mut self, bytes: usize) {
        self.limit = self.limit.min(bytes);
    }

    pub(in crate::upstream) fn takes(&self, bytes: usize) -> Result<(), NotNow> {
        if bytes < self.limit { Ok(()) } else { Err(NotNow::TooLong(bytes)) }
    }

    fn is_open(&self, now: Instant) -> Result<(), NotNow> {
        match &self.shut {
            Some((until, why)) if now < *until => Err(why.clone()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later(now: Instant, seconds: f64) -> Instant {
        now + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_few_at_once_and_then_one_a_second() {
        let now = Instant::now();
        let mut gate = Gate::new(now);
        for _ in 0..4 {
            assert_eq!(gate.dial(now), Ok(()));
        }
        assert_eq!(gate.dial(now), Err(NotNow::Paced));
        assert_eq!(gate.dial(later(now, 0.9)), Err(NotNow::Paced));
        assert_eq!(gate.dial(later(now, 1.0)), Ok(()));
        assert_eq!(gate.dial(later(now, 1.5)), Err(NotNow::Paced));
        // A long silence saves up no more than one burst.
        let next_day = later(now, 86_400.0);
        let opened = (0..10).filter(|_| gate.dial(next_day).is_ok()).count();
        assert_eq!(opened, 4);
    }

    #[test]
    fn failures_double_the_rest_and_success_forgets_them() {
        let mut now = Instant::now();
        let mut gate = Gate::new(now);
        for rest in [5, 10, 20, 40, 80, 160, 300, 300] {
            gate.failed(now);
            let just_before = now + Duration::from_secs(rest) - Duration::from_millis(1);
            assert_eq!(gate.dial(just_before), Err(NotNow::Resting), "{rest}");
            now += Duration::from_secs(rest);
            assert_eq!(gate.dial(now), Ok(()), "{rest}");
        }
        gate.opened();
        gate.failed(now);
        assert_eq!(gate.dial(later(now, 5.0)), Ok(()));
    }

    #[test]
    fn a_word_of_the_backend_counts_for_long_but_not_for_ever() {
        let now = Instant::now();
        let mut gate = Gate::new(now);
        gate.shut(now, UNWANTED);
        assert_eq!(gate.dial(later(now, 3599.0)), Err(NotNow::Unwanted));
        assert_eq!(gate.dial(later(now, 3600.0)), Ok(()));
    }

    #[test]
    fn a_frame_that_was_refused_is_the_new_limit() {
        let mut gate = Gate::new(Instant::now());
        assert_eq!(gate.takes(FRAME_LIMIT - 1), Ok(()));
        assert_eq!(gate.takes(FRAME_LIMIT), Err(NotNow::TooLong(FRAME_LIMIT)));
        gate.refused_frame(1000);
        gate.refused_frame(2000);
        assert_eq!(gate.takes(999), Ok(()));
        assert_eq!(gate.takes(1000), Err(NotNow::TooLong(1000)));
    }
}
