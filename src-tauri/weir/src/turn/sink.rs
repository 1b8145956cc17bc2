//! The client's end of a turn: a head, and a body under a byte budget.
//!
//! The turn writes, the endpoint reads. When the client reads slowly the budget runs out, the turn waits, and so does the
//! upstream connection. When the client goes away the endpoint drops its end, and the turn sees that at once.
//!
//! **Invariant**: one head; no more than [`BUDGET`] bytes wait between upstream and client.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, ReusableBoxFuture};

/// Bytes that may wait for the client.
pub const BUDGET: usize = 256 * 1024;

/// Bytes from which on pieces that wait are no longer put together, about what a socket takes at once.
const TOGETHER: usize = 16 * 1024;

/// How often others get a turn before a write, and how often in a row for nothing.
const LOOKS: u32 = 16;
const QUIET: u32 = 4;

/// What comes so soon after a write is one of many. What comes later is alone, and goes out at once.
const SOON: Duration = Duration::from_millis(1);

/// A client that takes nothing for so long has gone, whatever its connection says.
const PATIENCE: Duration = Duration::from_secs(600);

/// How an answer begins.
#[derive(Debug)]
pub enum Head {
    /// A stream follows; these headers of the backend's answer go with it.
    Stream(HeaderMap),
    /// The whole answer as JSON text, for a client that did not ask for a stream.
    Whole(String),
    /// No answer: a status and the body that explains it.
    Refused(Refused),
}

#[derive(Debug)]
pub struct Refused {
    pub status: u16,
    pub body: Vec<u8>,
    /// Seconds after which asking again makes sense.
    pub retry_after: Option<i64>,
}

/// The client has gone away.
#[derive(Debug)]
pub struct Gone;

/// What the turn writes to.
#[derive(Debug)]
pub struct Sink {
    /// Ends a wait for a client that does not read.
    stop: CancellationToken,
    head: Option<oneshot::Sender<Head>>,
    body: mpsc::UnboundedSender<Piece>,
    budget: Arc<Semaphore>,
    whole: bool,
    /// The wait for the client's going away, once it was begun.
    gone: Option<ReusableBoxFuture<'static, ()>>,
}

/// What the endpoint reads from.
#[derive(Debug)]
pub struct Answer {
    pub head: oneshot::Receiver<Head>,
    pub body: Pieces,
}

/// The body of a streamed answer.
#[derive(Debug)]
pub struct Pieces {
    pieces: mpsc::UnboundedReceiver<Piece>,
    /// Taken out, to go in one write.
    taken: Vec<Piece>,
    looks: u32,
    /// Looks in a row that brought nothing.
    quiet: u32,
    /// When bytes were last given out.
    wrote: Option<Instant>,
}

#[derive(Debug)]
struct Piece {
    bytes: Bytes,
    /// Given back when the client's connection takes the bytes.
    _room: Option<OwnedSemaphorePermit>,
}

pub fn channel(whole: bool, stop: CancellationToken) -> (Sink, Answer) {
    let (head, head_end) = oneshot::channel();
    let (body, body_end) = mpsc::unbounded_channel();
    let budget = Arc::new(Semaphore::new(BUDGET));
    let sink = Sink { stop, head: Some(head), body, budget, whole, gone: None };
    (sink, Answer { head: head_end, body: Pieces::new(body_end) })
}

impl Sink {
    /// Whether the client wants one document instead of a stream.
    pub fn whole(&self) -> bool {
        self.whole
    }

    /// Whether the head is out, so that a status can be told no more.
    pub fn begun(&self) -> bool {
        self.head.is_none()
    }

    fn send_head(&mut self, head: Head) {
        if let Some(end) = self.head.take() {
            // A client that has gone does not need its head; the next write finds out.
            drop(end.send(head));
        }
    }

    /// The status is out, a stream follows.
    pub fn accept(&mut self, headers: HeaderMap) {
        if !self.whole {
            self.send_head(Head::Stream(headers));
        }
    }

    pub fn answer_whole(&mut self, answer: String) {
        self.send_head(Head::Whole(answer));
    }

    pub fn refuse(&mut self, refused: Refused) {
        self.send_head(Head::Refused(refused));
    }

    /// Waits until there is room, then hands the bytes over.
    pub async fn write(&self, bytes: Bytes) -> Result<(), Gone> {
        let wanted = u32::try_from(bytes.len().min(BUDGET)).unwrap_or(u32::MAX);
        // Nearly always there is room, and then nothing has to be waited for.
        let room = match Arc::clone(&self.budget).try_acquire_many_owned(wanted) {
            Ok(room) => room,
            Err(_) => self.wait(wanted).await?,
        };
        self.body.send(Piece { bytes, _room: Some(room) }).map_err(|_| Gone)
    }

    async fn wait(&self, wanted: u32) -> Result<OwnedSemaphorePermit, Gone> {
        tokio::select! {
            biased;
            () = self.body.closed() => Err(Gone),
            room = Arc::clone(&self.budget).acquire_many_owned(wanted) => room.map_err(|_| Gone),
            () = self.stop.cancelled() => Err(Gone),
            () = tokio::time::sleep(PATIENCE) => Err(Gone),
        }
    }

    /// A comment keeps the connection alive; a client that has bytes waiting needs none.
    pub fn comment(&self) {
        if self.budget.available_permits() == BUDGET {
            drop(self.body.send(Piece { bytes: Bytes::from_static(b": weir\n\n"), _room: None }));
        }
    }

    /// Ready when the client has gone away. One wait serves the whole turn, however often it is looked at.
    pub fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.body.is_closed() {
            return Poll::Ready(());
        }
        let body = &self.body;
        let gone = self.gone.get_or_insert_with(|| {
            let body = body.clone();
            ReusableBoxFuture::new(async move { body.closed().await })
        });
        gone.poll(cx)
    }

    /// Whether the client has gone away, as far as is known without waiting.
    pub fn is_gone(&self) -> bool {
        self.body.is_closed()
    }
}

impl Pieces {
    fn new(pieces: mpsc::UnboundedReceiver<Piece>) -> Self {
        Self { pieces, taken: Vec::new(), looks: 0, quiet: 0, wrote: None }
    }

    /// Takes what is there. Ready: nothing more can follow.
    fn take(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.size() < TOGETHER {
            match ready!(self.pieces.poll_recv(cx)) {
                Some(piece) => self.taken.push(piece),
                None => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }

    fn size(&self) -> usize {
        self.taken.iter().map(|piece| piece.bytes.len()).sum()
    }

    /// Whether more may come within moments.
    fn more(&self) -> bool {
        self.looks < LOOKS
            && self.quiet < QUIET
            && self.size() < TOGETHER
            && self.wrote.is_none_or(|at| at.elapsed() < SOON)
    }

    fn joined(&mut self) -> Bytes {
        (self.looks, self.quiet, self.wrote) = (0, 0, Some(Instant::now()));
        if let [only] = &self.taken[..] {
            let bytes = only.bytes.clone();
            self.taken.clear();
            return bytes;
        }
        let mut all = BytesMut::with_capacity(self.size());
        self.taken.drain(..).for_each(|piece| all.extend_from_slice(&piece.bytes));
        all.freeze()
    }
}

impl Stream for Pieces {
    type Item = Result<Bytes, std::convert::Infallible>;

    /// Each write is a call to the system and a wake-up of the client, and the connection to the backend hands over one
    /// chunk at a time. So in a burst the others get a turn before a write, and as long as they bring more it waits for
    /// them. They may be at work on another thread, so it looks more than once.
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let before = self.taken.len();
        let over = self.take(cx).is_ready();
        if self.taken.is_empty() {
            return if over { Poll::Ready(None) } else { Poll::Pending };
        }
        self.quiet = if self.taken.len() > before { 0 } else { self.quiet + 1 };
        if !over && self.more() {
            self.looks += 1;
            // Its first look always waits, and wakes this task again once the others have run.
            _ = std::pin::pin!(tokio::task::yield_now()).poll(cx);
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(self.joined())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt as _;

    #[tokio::test]
    async fn a_client_that_does_not_read_stops_the_writer_at_the_budget() {
        let (sink, mut answer) = channel(false, CancellationToken::new());
        let half = Bytes::from(vec![b'x'; BUDGET / 2]);
        sink.write(half.clone()).await.expect("room");
        sink.write(half.clone()).await.expect("room");
        let mut third = std::pin::pin!(sink.write(half));
        assert!(futures_util::poll!(&mut third).is_pending(), "the budget is used up");
        answer.body.next().await;
        assert!(futures_util::poll!(&mut third).is_ready(), "reading makes room");
    }

    #[tokio::test]
    async fn one_event_larger_than_the_budget_passes_alone() {
        let (sink, mut answer) = channel(false, CancellationToken::new());
        sink.write(Bytes::from(vec![b'x'; BUDGET * 3])).await.expect("room");
        let mut second = std::pin::pin!(sink.write(Bytes::from_static(b"y")));
        assert!(futures_util::poll!(&mut second).is_pending());
        assert_eq!(
            answer.body.next().await.map(|piece| piece.expect("bytes").len()),
            Some(BUDGET * 3)
        );
        assert!(futures_util::poll!(&mut second).is_ready());
    }

    #[tokio::test]
    async fn what_waits_comes_together_in_order_and_gives_its_room_back() {
        let (sink, mut answer) = channel(false, CancellationToken::new());
        for text in ["a", "bc", "d"] {
            sink.write(Bytes::from(text)).await.expect("room");
        }
        let piece = answer.body.next().await.expect("a piece").expect("bytes");
        assert_eq!(&piece[..], b"abcd");
        assert_eq!(sink.budget.available_permits(), BUDGET);
        sink.write(Bytes::from("e")).await.expect("room");
        drop(sink);
        assert_eq!(&answer.body.next().await.expect("a piece").expect("bytes")[..], b"e");
        assert!(answer.body.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn in_a_burst_a_write_waits_for_others_that_bring_more_and_not_for_long() {
        let (sink, mut answer) = channel(false, CancellationToken::new());
        sink.write(Bytes::from("a")).await.expect("room");
        assert!(futures_util::poll!(answer.body.next()).is_pending(), "others get a turn");
        assert!(sink.budget.available_permits() < BUDGET, "what is taken out still waits");
        sink.write(Bytes::from("b")).await.expect("room");
        for look in 0..QUIET {
            assert!(futures_util::poll!(answer.body.next()).is_pending(), "more came; {look}");
        }
        let got = futures_util::poll!(answer.body.next());
        assert!(matches!(got, Poll::Ready(Some(Ok(bytes))) if &bytes[..] == b"ab"));
        assert!(futures_util::poll!(answer.body.next()).is_pending(), "nothing is left");
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_alone_goes_out_at_once() {
        let (sink, mut answer) = channel(false, CancellationToken::new());
        for _ in 0..3 {
            sink.write(Bytes::from("a")).await.expect("room");
            answer.body.next().await;
            tokio::time::advance(SOON).await;
            sink.write(Bytes::from("b")).await.expect("room");
            let got = futures_util::poll!(answer.body.next());
            assert!(matches!(got, Poll::Ready(Some(Ok(bytes))) if &bytes[..] == b"b"));
        }
    }

    #[tokio::test]
    async fn a_writer_without_a_pause_does_not_hold_its_bytes_back() {
        let (sink, mut answer) = channel(false, CancellationToken::new());
        for looks in 0.. {
            assert!(looks <= LOOKS, "the bytes go out");
            sink.write(Bytes::from("a")).await.expect("room");
            if futures_util::poll!(answer.body.next()).is_ready() {
                break;
            }
        }
    }

    #[tokio::test]
    async fn a_waiting_writer_hears_that_the_client_went() {
        let (sink, answer) = channel(false, CancellationToken::new());
        sink.write(Bytes::from(vec![b'x'; BUDGET])).await.expect("room");
        let mut waiting = std::pin::pin!(sink.write(Bytes::from_static(b"y")));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(answer);
        assert!(waiting.await.is_err());
    }
}
