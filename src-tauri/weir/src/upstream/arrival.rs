//! What has come of an event that is not whole yet.
//!
//! A backend that sends an image is not silent while a slow line carries it, although no event comes out for minutes. So the
//! connection notes its bytes here, and whoever waits for the event asks before giving up. Little bytes do not count: comments
//! and pings come from whatever stands in between, also when nobody works on the turn.
//!
//! **Invariant**: only bytes after the last whole event count, and only once there are more of them than a sign of life has.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// So many bytes are no comment and no ping.
const ENOUGH: usize = 16 * 1024;

#[derive(Debug, Default)]
pub struct Arrival(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    at: Option<Instant>,
}

impl Arrival {
    /// So many bytes have come. Returns how many there are since the last event.
    pub(super) fn piece(&self, bytes: usize) -> usize {
        let mut state = self.lock();
        state.bytes += bytes;
        if state.bytes >= ENOUGH && bytes > 0 {
            state.at = Some(Instant::now());
        }
        state.bytes
    }

    /// An event is whole. What followed it in its piece is not counted, which a bound can spare.
    pub(super) fn whole(&self) {
        *self.lock() = State::default();
    }

    /// When the last piece of the event came that is on its way, if one is.
    pub fn last(&self) -> Option<Instant> {
        self.lock().at
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_event_arrives_and_a_comment_does_not() {
        let arrival = Arrival::default();
        arrival.piece(14);
        assert_eq!(arrival.last(), None);
        arrival.piece(ENOUGH);
        let first = Instant::now();
        assert_eq!(arrival.last(), Some(first));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(arrival.piece(1), ENOUGH + 15);
        assert_eq!(arrival.last(), Some(first + Duration::from_secs(60)));
        arrival.whole();
        assert_eq!((arrival.last(), arrival.piece(1)), (None, 1));
    }
}
