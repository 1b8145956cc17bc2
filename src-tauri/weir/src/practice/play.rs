//! Delivers the events of a response: in time, held by gates, cut where the script says so.
//!
//! The delivery is a task that writes into a channel of one; the connection reads from it. A client that goes away
//! closes the channel and ends the task at its next breath, wherever it waits.
//!
//! **Invariant**: a response is recorded as ended before a client can see that it ended.

use std::collections::HashSet;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::record::Entry;
use super::reply::{Point, Reply};
use super::stream::{Piece, encode};

/// Named gates that a test opens.
#[derive(Debug, Default)]
pub(super) struct Gates(watch::Sender<HashSet<String>>);

impl Gates {
    pub(super) fn open(&self, name: &str) {
        self.0.send_modify(|open| {
            open.insert(name.to_owned());
        });
    }

    async fn pass(&self, name: &str) {
        let mut open = self.0.subscribe();
        let _ = open.wait_for(|open| open.contains(name)).await;
    }
}

/// How a reply is delivered.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) reply: Reply,
    pub(super) pace: f64,
    pub(super) gates: Arc<Gates>,
    pub(super) stop: CancellationToken,
}

impl Delivery {
    /// Waits for the reply's gate and siblings if this is where they hold.
    pub(super) async fn hold(&self, here: Point, entry: &Entry) {
        if self.reply.at != here {
            return;
        }
        if let Some(wanted) = self.reply.hold_until_in_flight {
            entry.siblings(wanted).await;
        }
        if let Some(gate) = &self.reply.gate {
            self.gates.pass(gate).await;
        }
    }

    /// Starts the delivery; the stream is the body of the answer.
    pub(super) fn start(self, pieces: Vec<Piece>, entry: Entry) -> Body {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut writer = Writer { sender: &sender, entry: Some(entry), sent: 0, events: 0 };
            tokio::select! {
                biased;
                // The entry is dropped with the writer, and so recorded as cancelled.
                () = sender.closed() => {}
                () = self.stop.cancelled() => writer.cut().await,
                () = self.play(pieces, &mut writer) => {}
            }
        });
        Body { receiver, broken: None }
    }

    async fn play(&self, pieces: Vec<Piece>, writer: &mut Writer<'_>) {
        let last = pieces.iter().rposition(|piece| matches!(piece, Piece::Event(_)));
        if self.reply.cut_after_event == Some(0) || self.reply.cut_after_bytes == Some(0) {
            return writer.cut().await;
        }
        for (at, piece) in pieces.iter().enumerate() {
            let event = match piece {
                Piece::Wait(ms) => {
                    self.wait(*ms).await;
                    continue;
                }
                Piece::At(point) => {
                    if let Some(entry) = &writer.entry {
                        self.hold(*point, entry).await;
                    }
                    continue;
                }
                Piece::Event(event) => event,
            };
            let mut bytes = Bytes::from(encode(event, self.reply.crlf));
            let room = self.reply.cut_after_bytes.map(|limit| limit - writer.sent);
            let cut = room.is_some_and(|room| room <= bytes.len());
            bytes.truncate(room.unwrap_or(usize::MAX));
            if Some(at) == last && !cut {
                let outcome = if self.reply.no_terminal { "cut" } else { "completed" };
                writer.end(outcome);
            }
            writer.send(bytes, self.reply.chunk_bytes).await;
            if cut || self.reply.cut_after_event == Some(writer.events) {
                return writer.cut().await;
            }
            if self.reply.stall_after_event == Some(writer.events) {
                return std::future::pending().await;
            }
        }
    }

    async fn wait(&self, ms: u64) {
        let wait = Duration::from_millis(ms).mul_f64(self.pace);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }
}

type Chunk = Result<Bytes, io::Error>;

struct Writer<'a> {
    sender: &'a mpsc::Sender<Chunk>,
    entry: Option<Entry>,
    sent: usize,
    events: usize,
}

impl Writer<'_> {
    async fn send(&mut self, bytes: Bytes, size: Option<usize>) {
        self.sent += bytes.len();
        self.events += 1;
        let mut rest = bytes;
        while !rest.is_empty() {
            let chunk = rest.split_to(size.unwrap_or(rest.len()).min(rest.len()));
            // A closed channel is noticed by the task itself.
            let _ = self.sender.send(Ok(chunk)).await;
        }
    }

    fn end(&mut self, outcome: &str) {
        if let Some(entry) = self.entry.take() {
            entry.end(outcome);
        }
    }

    async fn cut(&mut self) {
        self.end("cut");
        let _ = self.sender.send(Err(io::Error::other("the scenario cuts here"))).await;
    }
}

/// The body of a streamed answer.
#[derive(Debug)]
pub(super) struct Body {
    receiver: mpsc::Receiver<Chunk>,
    broken: Option<io::Error>,
}

impl Stream for Body {
    type Item = Chunk;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Chunk>> {
        if let Some(error) = self.broken.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match self.receiver.poll_recv(context) {
            // The connection writes what it has when a body pauses, and forgets it when a body fails. A cut must come
            // after the bytes before it, so it pauses first.
            Poll::Ready(Some(Err(error))) => {
                self.broken = Some(error);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, poll};

    #[tokio::test]
    async fn a_cut_pauses_so_that_what_was_said_is_written() {
        let (sender, receiver) = mpsc::channel(2);
        let mut body = Body { receiver, broken: None };
        sender.send(Ok(Bytes::from_static(b"said"))).await.expect("room");
        sender.send(Err(io::Error::other("cut"))).await.expect("room");
        assert!(matches!(poll!(body.next()), Poll::Ready(Some(Ok(_)))));
        assert!(poll!(body.next()).is_pending());
        assert!(matches!(poll!(body.next()), Poll::Ready(Some(Err(_)))));
    }
}
