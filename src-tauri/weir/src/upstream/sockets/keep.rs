//! What happens to a connection between two turns.
//!
//! A task reads it, so that pings are answered and a goodbye is noticed, and closes it before the backend would. The next turn
//! asks that task for it, and looks first whether it is still the same network and the same login.
//!
//! **Invariant**: one owner at a time: the task that keeps a connection gives it away whole, or closes it.

use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;
use tokio::time::Instant;
use weir_core::dialect::continuation::Seen;

use super::wire::Wire;

/// The backend ends a connection after an hour.
const LIFE: Duration = Duration::from_secs(55 * 60);
/// A connection that was silent for longer is asked whether it lives.
const SURE: Duration = Duration::from_secs(20);
/// How long its answer is waited for.
const PONG: Duration = Duration::from_secs(2);
/// A wall clock that went on this much further than the machine's own was away with the machine asleep.
const NAP: Duration = Duration::from_secs(10);

/// A connection that waits for its conversation's next turn.
#[derive(Debug)]
pub(in crate::upstream) struct Parked {
    ask: oneshot::Sender<()>,
    given: oneshot::Receiver<Wire>,
    since: Instant,
    wall: SystemTime,
    seen: Option<Seen>,
}

impl Parked {
    /// `ended` is called when the connection ends before anybody asked for it.
    pub(super) fn new(
        wire: Wire,
        seen: Option<Seen>,
        ended: impl FnOnce() + Send + 'static,
    ) -> Self {
        let (ask, asked) = oneshot::channel();
        let (give, given) = oneshot::channel();
        tokio::spawn(keep(wire, asked, give, ended));
        Self { ask, given, since: Instant::now(), wall: SystemTime::now(), seen }
    }

    /// The connection, if it still is what it was for the login with this `token`.
    pub(in crate::upstream) async fn take(self, token: &str) -> Option<(Wire, Option<Seen>)> {
        let idle = self.since.elapsed();
        let wall = SystemTime::now().duration_since(self.wall).unwrap_or_default();
        if slept(idle, wall) {
            return None;
        }
        self.ask.send(()).ok()?;
        let mut wire = self.given.await.ok()?;
        // Whoever kept it may not have been run since the backend said goodbye, or said more than was asked.
        if wire.is_over() {
            return None;
        }
        if wire.age() >= LIFE || !wire.is_of(token) || wire.network_changed() {
            wire.close().await;
            return None;
        }
        if idle > SURE && !wire.answers_within(PONG).await {
            return None;
        }
        Some((wire, self.seen))
    }

    /// Says goodbye.
    pub(super) async fn close(self) {
        drop(self.ask);
        // The task holds the other end until it has said it.
        drop(self.given.await);
    }
}

async fn keep(
    mut wire: Wire,
    mut asked: oneshot::Receiver<()>,
    give: oneshot::Sender<Wire>,
    ended: impl FnOnce(),
) {
    let left = LIFE.saturating_sub(wire.age());
    let mut old = std::pin::pin!(tokio::time::sleep(left));
    loop {
        tokio::select! {
            biased;
            asked = &mut asked => {
                match asked {
                    // Whoever asked may have gone; the connection then ends with this.
                    Ok(()) => drop(give.send(wire)),
                    Err(_) => wire.close().await,
                }
                return;
            }
            () = &mut old => {
                wire.close().await;
                return ended();
            }
            lives = wire.listens() => {
                if !lives {
                    return ended();
                }
            }
        }
    }
}

/// Whether the machine slept in between, after which no connection can be trusted.
fn slept(monotonic: Duration, wall: Duration) -> bool {
    wall.saturating_sub(monotonic) > NAP
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio::task::yield_now;
    use tokio_tungstenite::tungstenite::Message;

    use super::super::wire::Heard;
    use super::super::wire::tests::{TOKEN, connected};
    use super::*;

    fn parked(wire: Wire) -> Parked {
        Parked::new(wire, None, || ())
    }

    #[test]
    fn a_sleep_is_told_from_a_long_silence() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert!(!slept(minutes(30), minutes(30)));
        assert!(!slept(minutes(30), minutes(30) + Duration::from_secs(9)));
        assert!(slept(minutes(1), minutes(30)));
        // A clock that was set back says nothing.
        assert!(!slept(minutes(30), minutes(1)));
    }

    #[tokio::test]
    async fn a_ping_is_answered_while_it_waits() {
        let (ours, mut theirs) = connected().await;
        let parked = parked(ours);
        theirs.send(Message::Ping("x".into())).await.expect("sent");
        let answer = theirs.next().await.expect("open").expect("read");
        assert_eq!(answer, Message::Pong("x".into()));
        assert!(parked.take(TOKEN).await.is_some());
    }

    #[tokio::test]
    async fn another_login_gets_no_connection_and_the_old_one_is_closed() {
        let (ours, mut theirs) = connected().await;
        assert!(parked(ours).take("another").await.is_none());
        assert!(matches!(theirs.next().await, Some(Ok(Message::Close(_)))));
    }

    #[tokio::test]
    async fn a_goodbye_that_came_while_it_waited_is_noticed() {
        let (ours, mut theirs) = connected().await;
        let (tell, told) = oneshot::channel();
        let parked = Parked::new(ours, None, move || tell.send(()).expect("heard"));
        theirs.close(None).await.expect("closed");
        told.await.expect("told");
        assert!(parked.take(TOKEN).await.is_none());
    }

    #[tokio::test]
    async fn a_goodbye_that_nobody_has_read_yet_is_noticed() {
        let (ours, mut theirs) = connected().await;
        let parked = parked(ours);
        theirs.close(None).await.expect("closed");
        assert!(parked.take(TOKEN).await.is_none());
    }

    #[tokio::test]
    async fn what_is_said_after_an_answer_is_not_taken_for_the_next_one() {
        let (ours, mut theirs) = connected().await;
        let parked = parked(ours);
        theirs.send(Message::Text("late".into())).await.expect("sent");
        let (mut wire, _) = parked.take(TOKEN).await.expect("lives");
        theirs.send(Message::Text("next".into())).await.expect("sent");
        assert!(matches!(wire.hear().await, Heard::Text(text) if text == "next"));
    }

    #[tokio::test]
    async fn one_that_nobody_wants_any_more_is_closed() {
        let (ours, mut theirs) = connected().await;
        drop(parked(ours));
        assert!(matches!(theirs.next().await, Some(Ok(Message::Close(_)))));
    }

    #[tokio::test]
    async fn after_twenty_silent_seconds_it_must_answer_first() {
        let (ours, mut theirs) = connected().await;
        let deaf = parked(ours);
        let (ours, mut alive) = connected().await;
        let lives = parked(ours);
        tokio::time::pause();
        tokio::time::advance(SURE + Duration::from_secs(1)).await;
        let answering = tokio::spawn(async move {
            let ping = alive.next().await.expect("open").expect("read");
            alive.flush().await.expect("answered");
            (ping.is_ping(), alive)
        });
        assert!(lives.take(TOKEN).await.is_some());
        assert!(answering.await.expect("no panic").0, "it was asked");
        assert!(deaf.take(TOKEN).await.is_none(), "nobody answered for it");
        assert!(theirs.next().await.expect("open").expect("read").is_ping());
    }

    #[tokio::test]
    async fn it_is_closed_before_the_backend_would() {
        let (ours, mut theirs) = connected().await;
        let (tell, told) = oneshot::channel();
        let _parked = Parked::new(ours, None, move || tell.send(()).expect("heard"));
        yield_now().await;
        tokio::time::pause();
        tokio::time::advance(LIFE).await;
        assert!(matches!(theirs.next().await, Some(Ok(Message::Close(_)))));
        told.await.expect("told");
    }
}
