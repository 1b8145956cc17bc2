//! Reads what is left of a request that was answered before its body was read.
//!
//! A server that closes a connection on which its client still writes makes the client lose the answer: it sees a broken
//! connection instead of the sentence that says what to change. So the rest of a body that nobody wanted is read and
//! thrown away, within bounds, while the answer is on its way.
//!
//! **Invariant**: a body that was read to its end costs nothing more, and no rest is kept.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::{Stream, StreamExt as _};
use http::header;
use tokio::runtime::Handle;

use super::body::LIMIT;

/// How much of a rest is read, in bytes, and for how long. A client that sends more loses its connection.
const MOST: u64 = 4 * LIMIT;
const LONGEST: Duration = Duration::from_secs(5);

/// Puts a body that reads its own rest into every request.
pub async fn swallow(request: Request, next: Next) -> Response {
    // A client that asks before it sends has nothing on the way unless it is told to go on.
    let waits = request.headers().contains_key(header::EXPECT);
    if waits || request.body().is_end_stream() {
        return next.run(request).await;
    }
    next.run(request.map(|body| Body::from_stream(Rest::of(body)))).await
}

/// A body. Dropped before its end, it is read on by a task of its own.
struct Rest(Option<BodyDataStream>);

impl Rest {
    fn of(body: Body) -> Self {
        Self(Some(body.into_data_stream()))
    }
}

impl Stream for Rest {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let next = std::task::ready!(body.poll_next_unpin(cx));
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(next)
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        let (Some(mut body), Ok(runtime)) = (self.0.take(), Handle::try_current()) else { return };
        runtime.spawn(tokio::time::timeout(LONGEST, async move {
            let mut room = MOST;
            while let Some(Ok(piece)) = body.next().await {
                match room.checked_sub(piece.len() as u64) {
                    Some(left) => room = left,
                    None => break,
                }
            }
        }));
    }
}
