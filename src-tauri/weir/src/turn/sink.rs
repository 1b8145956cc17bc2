//! The client's end of a turn: a head, and a body under a byte budget.
//!
//! The turn writes, the endpoint reads. When the client reads slowly the budget runs out, the turn waits, and so does the
//! upstream connection. When the client goes away the endpoint drops its end, and the turn sees that at once.
//!
//! **Invariant**: one head; no more than [`BUDGET`] bytes wait between upstream and client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Bytes that may wait for the client.
pub const BUDGET: usize = 256 * 1024;

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
}

/// What the endpoint reads from.
#[derive(Debug)]
pub struct Answer {
    pub head: oneshot::Receiver<Head>,
    pub body: Pieces,
}

/// The body of a streamed answer.
#[derive(Debug)]
pub struct Pieces(mpsc::UnboundedReceiver<Piece>);

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
    let sink = Sink { stop, head: Some(head), body, budget, whole };
    (sink, Answer { head: head_end, body: Pieces(body_end) })
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
        let room = tokio::select! {
            biased;
            () = self.body.closed() => return Err(Gone),

            room = Arc::clone(&self.budget).acquire_many_owned(wanted) => room.ok(),
            () = self.stop.cancelled() => return Err(Gone),
            () = tokio::time::sleep(PATIENCE) => return Err(Gone),
        };
        self.body.send(Piece { bytes, _room: room }).map_err(|_| Gone)
    }

    /// A comment keeps the connection alive; a client that has bytes waiting needs none.
    pub fn comment(&self) {
        if self.budget.available_permits() == BUDGET {
            drop(self.body.send(Piece { bytes: Bytes::from_static(b": weir\n\n"), _room: None }));
        }
    }

    /// Resolves when the client has gone away.
    pub async fn gone(&self) {
        self.body.closed().await;
    }
}

impl Stream for Pieces {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(piece.bytes)))
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
    async fn a_waiting_writer_hears_that_the_client_went() {
        let (sink, answer) = channel(false, CancellationToken::new());
        sink.write(Bytes::from(vec![b'x'; BUDGET])).await.expect("room");
        let mut waiting = std::pin::pin!(sink.write(Bytes::from_static(b"y")));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(answer);
        assert!(waiting.await.is_err());
    }
}
