//! How long the next event of an answer is waited for.
//!
//! Before the commit point the backend has the shorter limit, since the turn may still move; after it the longer one. A long
//! event on a slow line is no silence, although nothing can be passed on until it is whole.
//!
//! **Invariant**: before the commit point there is an end to every wait, whatever comes.

use tokio::time::Instant;

use super::Timers;
use super::courtesy::{Courtesy, Waited};
use super::sink::Sink;
use crate::upstream::stream::{Broken, Events};

#[derive(Debug)]
pub struct Patience {
    timers: Timers,
    begun: Instant,
    /// When the backend last said that it works on the turn.
    heard: Instant,
}

impl Patience {
    pub fn new(timers: Timers) -> Self {
        let begun = Instant::now();
        Self { timers, begun, heard: begun }
    }

    /// The backend says that it works on the turn.
    pub fn heard(&mut self) {
        self.heard = Instant::now();
    }

    /// Waits for the next event.
    pub async fn next(
        &self,
        events: &mut Events,
        committed: bool,
        courtesy: &mut Courtesy,
        sink: &mut Sink,
    ) -> Waited<Option<Result<String, Broken>>> {
        loop {
            let (now, arriving) = (Instant::now(), events.arriving());
            let until = self.until(committed, now, arriving);
            let limit = until.saturating_duration_since(now);
            match courtesy.attend(sink, limit, events.next()).await {
                Waited::Silent
                    if self.until(committed, now, events.arriving()) > Instant::now() => {}
                waited => return waited,
            }
        }
    }

    /// The end of a wait that began at `now`, when the last piece of an event on its way came at `arriving`.
    fn until(&self, committed: bool, now: Instant, arriving: Option<Instant>) -> Instant {
        let Timers { silence, idle, .. } = self.timers;
        if committed {
            return arriving.unwrap_or(now) + idle;
        }
        // Control events and comments do not prove that the backend works on the turn; `in_progress` does, but not for ever.
        let heard = arriving.map_or(self.heard, |piece| piece.max(self.heard));
        (heard + silence).min(self.begun + idle.max(silence))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use futures_util::{StreamExt as _, stream};
    use tokio_util::sync::CancellationToken;

    use super::super::sink;
    use super::*;

    /// An event that comes in pieces, a minute apart, and is whole after so many of them; then nothing more comes.
    fn slowly(pieces: usize, bytes: usize) -> Events {
        let piece = move |at| async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let text = match at {
                0 => format!("data: {}", "x".repeat(bytes)),
                at if at + 1 == pieces => "\n\n".to_owned(),
                _ => "x".repeat(bytes),
            };
            Ok::<_, std::io::Error>(Bytes::from(text))
        };
        Events::new(stream::iter(0..pieces).then(piece).chain(stream::pending()))
    }

    async fn waited(mut events: Events, committed: bool) -> (bool, Duration) {
        let (mut sink, _answer) = sink::channel(false, CancellationToken::new());
        let mut courtesy = Courtesy::new(Timers::default(), CancellationToken::new());
        let patience = Patience::new(Timers::default());
        let waited = patience.next(&mut events, committed, &mut courtesy, &mut sink).await;
        (matches!(waited, Waited::Got(Some(Ok(_)))), patience.begun.elapsed())
    }

    fn minutes(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_event_on_a_slow_line_is_no_silence() {
        assert_eq!(waited(slowly(20, 64 * 1024), true).await, (true, minutes(20)));
        assert_eq!(waited(slowly(4, 64 * 1024), false).await, (true, minutes(4)));
        // Nobody waits for ever for an answer that has not begun.
        let (got, after) = waited(slowly(20, 64 * 1024), false).await;
        assert!(!got && (minutes(5)..minutes(6)).contains(&after), "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_the_last_piece_and_little_bytes_are_silence() {
        let second = Duration::from_secs(1);
        let endless = Events::new(
            stream::iter([Ok::<_, std::io::Error>(Bytes::from(format!(
                "data: {}",
                "x".repeat(64 * 1024)
            )))])
            .chain(stream::pending()),
        );
        assert_eq!(waited(endless, true).await, (false, minutes(5) + second));
        assert_eq!(waited(slowly(20, 10), true).await, (false, minutes(5) + second));
        assert_eq!(waited(slowly(20, 10), false).await, (false, minutes(1) + 31 * second));
    }
}
