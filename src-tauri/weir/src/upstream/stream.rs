//! The events of one answer, framed by the library and bounded by us.
//!
//! Line endings, comments and chunk borders are the parser's business; a size limit per event is ours, since the parser
//! has none.
//!
//! **Invariant**: an event's data reaches the caller byte for byte.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use sse_stream::SseByteStream;
use tokio::time::Instant;

use super::arrival::Arrival;

/// The longest event that is taken from the backend, in bytes. Inline images come as one line.
pub const EVENT_LIMIT: usize = 32 * 1024 * 1024;

/// Why a stream ended before its end.
#[derive(Debug)]
pub enum Broken {
    /// The connection failed or the bytes are not an event stream; the cause is for the log.
    Lost(String),
    /// One event exceeds [`EVENT_LIMIT`].
    TooLong,
}

/// One event as it came: the JSON of its `data` lines.
pub struct Events {
    inner: BoxStream<'static, Result<String, Broken>>,
    arrival: Arc<Arrival>,
}

impl Events {
    pub fn new<E>(bytes: impl Stream<Item = Result<Bytes, E>> + Send + 'static) -> Self
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let arrival = Arc::new(Arrival::default());
        let (counted, whole) = (Arc::clone(&arrival), Arc::clone(&arrival));
        let bounded = bytes.map(move |chunk| {
            let chunk = chunk.map_err(|error| std::io::Error::other(error_text(&error)))?;
            if counted.piece(chunk.len()) > EVENT_LIMIT {
                return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "event"));
            }
            Ok(chunk)
        });
        let events = SseByteStream::new(bounded.boxed()).filter_map(move |event| {
            whole.whole();
            async move {
                match event {
                    Ok(event) => event.data.map(Ok),
                    Err(sse_stream::Error::Body(error)) => {
                        let too_long = error
                            .downcast_ref::<std::io::Error>()
                            .is_some_and(|io| io.kind() == std::io::ErrorKind::FileTooLarge);
                        Some(Err(if too_long {
                            Broken::TooLong
                        } else {
                            Broken::Lost(error.to_string())
                        }))
                    }
                    Err(error) => Some(Err(Broken::Lost(error.to_string()))),
                }
            }
        });
        Self { inner: events.boxed(), arrival }
    }

    /// Events that are framed already, by whoever notes in `arrival` what comes of the next one.
    pub fn of(
        events: impl Stream<Item = Result<String, Broken>> + Send + 'static,
        arrival: Arc<Arrival>,
    ) -> Self {
        Self { inner: events.boxed(), arrival }
    }

    /// When the last piece of the event came that is on its way, if one is.
    pub fn arriving(&self) -> Option<Instant> {
        self.arrival.last()
    }

    pub async fn next(&mut self) -> Option<Result<String, Broken>> {
        self.inner.next().await
    }
}

/// An error with its causes, which reqwest keeps apart.
pub fn error_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    async fn read(chunks: Vec<Vec<u8>>) -> Vec<Result<String, Broken>> {
        let bytes =
            stream::iter(chunks.into_iter().map(|chunk| Ok::<_, std::io::Error>(chunk.into())));
        let mut events = Events::new(bytes);
        let mut all = Vec::new();
        while let Some(event) = events.next().await {
            all.push(event);
        }
        all
    }

    #[tokio::test]
    async fn every_cut_and_every_line_ending_gives_the_same_events() {
        let text = "event: a\ndata: {\"t\":\"héllo 🌊\"}\n\n: note\n\ndata: two\ndata: lines\n\n";
        for ending in ["\n", "\r\n", "\r"] {
            // A character after a lone CR tells the parser that no LF follows.
            let bytes = format!("{}:end{ending}", text.replace('\n', ending)).into_bytes();
            for cut in 0..=bytes.len() {
                let events = read(vec![bytes[..cut].to_vec(), bytes[cut..].to_vec()]).await;
                let events: Vec<_> =
                    events.into_iter().map(|event| event.expect("no error")).collect();
                assert_eq!(
                    events,
                    ["{\"t\":\"héllo 🌊\"}", "two\nlines"],
                    "{ending:?} cut at {cut}"
                );
            }
        }
    }

    #[tokio::test]
    async fn an_endless_event_is_refused_and_a_long_stream_is_not() {
        let chunk = vec![b'x'; 1024 * 1024];
        let endless =
            [b"data: ".to_vec()].into_iter().chain(std::iter::repeat_n(chunk.clone(), 33));
        let all = read(endless.collect()).await;
        assert!(matches!(all.as_slice(), [Err(Broken::TooLong)]), "{}", all.len());
        let mut long = Vec::new();
        for _ in 0..40 {
            long.extend([b"data: ".to_vec(), chunk.clone(), b"\n\n".to_vec()]);
        }
        assert_eq!(read(long.clone()).await.into_iter().filter(Result::is_ok).count(), 40);
        // The same with each blank line cut in two.
        let cut: Vec<_> = long.concat().chunks(1024 * 1024 + 7).map(<[u8]>::to_vec).collect();
        assert_eq!(read(cut).await.into_iter().filter(Result::is_ok).count(), 40);
    }
}
