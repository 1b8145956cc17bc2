//! A delivery as the body of an HTTP answer.
//!
//! **Invariant**: what was said before a cut reaches the client before the cut does.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::mpsc;

use super::play::Part;

/// The body of a streamed answer.
#[derive(Debug)]
pub(super) struct Body {
    receiver: mpsc::Receiver<Part>,
    broken: bool,
}

impl Body {
    pub(super) fn new(receiver: mpsc::Receiver<Part>) -> Self {
        Self { receiver, broken: false }
    }
}

impl Stream for Body {
    type Item = Result<Bytes, io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.broken) {
            let error = io::Error::other("the scenario cuts here");
            return Poll::Ready(Some(Err(error)));
        }
        match self.receiver.poll_recv(context) {
            Poll::Ready(Some(Part::Bytes(bytes))) => Poll::Ready(Some(Ok(bytes))),
            // The connection writes what it has when a body pauses, and forgets it when a body fails. A cut must come
            // after the bytes before it, so it pauses first.
            Poll::Ready(Some(Part::Broken(_) | Part::Deaf)) => {
                self.broken = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
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
        let mut body = Body::new(receiver);
        sender.send(Part::Bytes(Bytes::from_static(b"said"))).await.expect("room");
        sender.send(Part::Broken(None)).await.expect("room");
        assert!(matches!(poll!(body.next()), Poll::Ready(Some(Ok(_)))));
        assert!(poll!(body.next()).is_pending());
        assert!(matches!(poll!(body.next()), Poll::Ready(Some(Err(_)))));
    }
}
