//! Waiting for the backend without keeping the client waiting.
//!
//! Whatever the turn waits for, the client's going away ends the wait, the status goes out after a while, and a comment
//! is sent now and then.
//!
//! **Invariant**: every wait for the backend goes through [`Courtesy::attend`].

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::HeaderMap;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

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

/// The waits that a turn has again and again. They are begun once and kept, because an answer has thousands of events and
/// each of them is a wait.
#[derive(Debug)]
pub struct Courtesy {
    timers: Timers,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    next: Instant,
    /// Rings at the next moment that matters, or before it: a moment that moves away leaves it as it is.
    alarm: Pin<Box<Sleep>>,
}

impl Courtesy {
    pub fn new(timers: Timers, stop: CancellationToken) -> Self {
        let next = Instant::now() + timers.status;
        let (stop, alarm) = (Box::pin(stop.cancelled_owned()), Box::pin(sleep_until(next)));
        Self { timers, stop, next, alarm }
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
        poll_fn(|cx| {
            if sink.is_gone() {
                return Poll::Ready(Waited::Gone);
            }
            if self.stop.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Waited::Stopping);
            }
            if let Poll::Ready(got) = what.as_mut().poll(cx) {
                return Poll::Ready(Waited::Got(got));
            }
            if sink.poll_gone(cx).is_ready() {
                return Poll::Ready(Waited::Gone);
            }
            while self.until(silent, sink, cx).is_ready() {
                match moment.take() {
                    Some(moment) => silent = Instant::now() + moment,
                    None => return Poll::Ready(Waited::Silent),
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Ready at `silent`; until then says something to the client whenever that is due.
    fn until(&mut self, silent: Instant, sink: &mut Sink, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let due = silent.min(self.next);
            if self.alarm.deadline() > due || self.alarm.is_elapsed() {
                self.alarm.as_mut().reset(due);
            }
            if self.alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            if now >= silent {
                return Poll::Ready(());
            }
            if now >= self.next {
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
    async fn what_is_written_puts_the_next_comment_off() {
        let (mut sink, mut answer) = sink::channel(false, CancellationToken::new());
        sink.accept(HeaderMap::new());
        let mut courtesy = courtesy();
        let limit = Duration::from_secs(90);
        for _ in 0..30 {
            let second = tokio::time::sleep(Duration::from_secs(1));
            assert!(matches!(courtesy.attend(&mut sink, limit, second).await, Waited::Got(())));
            courtesy.wrote();
        }
        assert!(futures_util::poll!(answer.body.next()).is_pending(), "no comment was due");
        let wait = tokio::time::sleep(Duration::from_millis(10_500));
        courtesy.attend(&mut sink, limit, wait).await;
        let comment = answer.body.next().await.expect("ten silent seconds passed");
        assert_eq!(&comment.expect("bytes")[..], b": weir\n\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_is_kept_after_a_longer_one() {
        let (mut sink, _answer) = sink::channel(false, CancellationToken::new());
        let mut courtesy = courtesy();
        let begun = Instant::now();
        // Each is over a moment after it passed.
        for (limit, at) in [(300, 301), (2, 304), (90, 395)] {
            let limit = Duration::from_secs(limit);
            let waited = courtesy.attend(&mut sink, limit, std::future::pending::<()>()).await;
            assert!(matches!(waited, Waited::Silent));
            assert_eq!(begun.elapsed(), Duration::from_secs(at));
        }
    }

    #[tokio::test]
    async fn a_backend_that_never_pauses_does_not_hold_up_the_end() {
        let stop = CancellationToken::new();
        let (mut sink, _answer) = sink::channel(false, stop.clone());
        let mut courtesy = Courtesy::new(Timers::default(), stop.clone());
        let limit = Duration::from_secs(90);
        assert!(matches!(courtesy.attend(&mut sink, limit, async {}).await, Waited::Got(())));
        stop.cancel();
        assert!(matches!(courtesy.attend(&mut sink, limit, async {}).await, Waited::Stopping));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_during_a_wait_ends_it() {
        let (mut sink, answer) = sink::channel(false, CancellationToken::new());
        let begun = Instant::now();
        let leaves = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(7)).await;
            drop(answer);
        });
        let mut courtesy = courtesy();
        let limit = Duration::from_secs(90);
        let waited = courtesy.attend(&mut sink, limit, std::future::pending::<()>()).await;
        assert!(matches!(waited, Waited::Gone));
        assert_eq!(begun.elapsed(), Duration::from_secs(7));
        leaves.await.expect("no panic");
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
