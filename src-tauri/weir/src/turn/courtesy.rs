//! Waiting for the backend without keeping the client waiting.
//!
//! Whatever the turn waits for, the client's going away ends the wait, the status goes out after a while, and a comment
//! is sent now and then.
//!
//! **Invariant**: every wait for the backend goes through [`Courtesy::attend`].

use std::future::Future;
use std::time::Duration;

use http::HeaderMap;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Timers;
use super::sink::Sink;

/// After a limit passed, the time for what has come already. When the whole program stood still (a suspended machine, a
/// stopped process), limits are over before anybody had a chance to read what waits in the sockets.
const MOMENT: Duration = Duration::from_secs(1);

/// What came of a wait.
#[derive(Debug)]
pub enum Waited<T> {
    Got(T),
    /// The client went away.
    Gone,
    /// The limit passed.
    Silent,
    /// The program is stopping.
    Stopping,
}

#[derive(Debug)]
pub struct Courtesy {
    timers: Timers,
    stop: CancellationToken,
    next: Instant,
}

impl Courtesy {
    pub fn new(timers: Timers, stop: CancellationToken) -> Self {
        Self { timers, stop, next: Instant::now() + timers.status }
    }

    /// Bytes have just been written, so that no comment is due for a while.
    pub fn wrote(&mut self) {
        self.next = Instant::now() + self.timers.comment;
    }

    /// Waits for `what`, at most `limit` long and a moment.
    pub async fn attend<T>(
        &mut self,
        sink: &mut Sink,
        limit: Duration,
        what: impl Future<Output = T>,
    ) -> Waited<T> {
        let mut what = std::pin::pin!(what);
        let mut silent = Instant::now() + limit;
        let mut moment = Some(MOMENT);
        loop {
            tokio::select! {
                biased;
                () = sink.gone() => return Waited::Gone,
                () = self.stop.cancelled() => return Waited::Stopping,
                got = &mut what => return Waited::Got(got),
                () = sleep_until(silent) => match moment.take() {
                    Some(moment) => silent = Instant::now() + moment,
                    None => return Waited::Silent,
                },
                () = sleep_until(self.next) => {
                    if !sink.begun() {
                        sink.accept(HeaderMap::new());
                    }
                    if sink.begun() {
                        sink.comment();
                    }
                    self.wrote();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::sink::{self, Head};
    use futures_util::StreamExt as _;

    fn courtesy() -> Courtesy {
        Courtesy::new(Timers::default(), CancellationToken::new())
    }

    #[tokio::test(start_paused = true)]
    async fn the_status_goes_out_after_fifteen_seconds_and_comments_follow() {
        let (mut sink, answer) = sink::channel(false, CancellationToken::new());
        let begun = Instant::now();
        let client = tokio::spawn(async move {
            let head = answer.head.await.expect("a head");
            assert!(matches!(head, Head::Stream(_)));
            let mut at = vec![begun.elapsed().as_secs()];
            let mut body = answer.body;
            while let Some(piece) = body.next().await {
                assert_eq!(&piece.expect("bytes")[..], b": weir\n\n");
                at.push(begun.elapsed().as_secs());
            }
            at
        });
        let waited = courtesy()
            .attend(&mut sink, Duration::from_secs(90), std::future::pending::<()>())
            .await;
        assert!(matches!(waited, Waited::Silent));
        assert_eq!(begun.elapsed(), Duration::from_secs(90) + MOMENT);
        drop(sink);
        let at = client.await.expect("no panic");
        assert_eq!(at, [15, 15, 25, 35, 45, 55, 65, 75, 85]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_had_come_before_the_limit_is_not_silence() {
        let (mut sink, _answer) = sink::channel(false, CancellationToken::new());
        let limit = Duration::from_secs(90);
        // The connection's own task hands over a little late what it found when the program woke.
        let late = tokio::time::sleep(limit + Duration::from_millis(500));
        let waited = courtesy().attend(&mut sink, limit, late).await;
        assert!(matches!(waited, Waited::Got(())), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_wants_one_document_gets_no_head_before_it() {
        let (mut sink, mut answer) = sink::channel(true, CancellationToken::new());
        let waited = courtesy()
            .attend(&mut sink, Duration::from_secs(60), std::future::pending::<()>())
            .await;
        assert!(matches!(waited, Waited::Silent));
        assert!(answer.head.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_ends_the_wait_at_once() {
        let (mut sink, answer) = sink::channel(false, CancellationToken::new());
        let begun = Instant::now();
        drop(answer);
        let waited = courtesy()
            .attend(&mut sink, Duration::from_secs(90), std::future::pending::<()>())
            .await;
        assert!(matches!(waited, Waited::Gone));
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
