//! The bytes of an answer as they were before something on the way packed them.
//!
//! Weir asks for no compression, since a stream of small events gains nothing by it, but a proxy may pack an answer all the
//! same. Read as they come, such bytes would be neither events nor the reason for a refusal.
//!
//! **Invariant**: what is not packed is passed on as it is, without another buffer.

use std::io;

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use http::{HeaderMap, header};
use tokio::io::AsyncRead;
use tokio_util::io::{ReaderStream, StreamReader};

pub(super) type Pieces = BoxStream<'static, io::Result<Bytes>>;

/// The unpacked pieces. None: packed in a way that is not known, or twice.
pub(super) fn unpacked<E>(
    headers: &HeaderMap,
    packed: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> Option<Pieces>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let packed = packed.map(|piece| piece.map_err(io::Error::other));
    let mut named = headers.get_all(header::CONTENT_ENCODING).iter();
    let encoding = match named.next() {
        Some(encoding) => encoding.to_str().ok()?.trim().to_ascii_lowercase(),
        None => String::new(),
    };
    if named.next().is_some() {
        return None;
    }
    if matches!(encoding.as_str(), "" | "identity") {
        return Some(packed.boxed());
    }
    let packed = StreamReader::new(packed.boxed());
    match encoding.as_str() {
        "gzip" | "x-gzip" => {
            let mut unpacked = GzipDecoder::new(packed);
            unpacked.multiple_members(true);
            Some(pieces(unpacked))
        }
        "zstd" => {
            let mut unpacked = ZstdDecoder::new(packed);
            unpacked.multiple_members(true);
            Some(pieces(unpacked))
        }
        "deflate" => Some(pieces(ZlibDecoder::new(packed))),
        "br" => Some(pieces(BrotliDecoder::new(packed))),
        _ => None,
    }
}

fn pieces(unpacked: impl AsyncRead + Send + 'static) -> Pieces {
    ReaderStream::new(unpacked).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_compression::tokio::bufread::{BrotliEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
    use futures_util::{TryStreamExt as _, stream};
    use http::HeaderValue;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    fn headers(encodings: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for encoding in encodings {
            headers.append(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        headers
    }

    async fn packed(encoding: &str, text: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        let read = match encoding {
            "gzip" | "x-gzip" | "GZIP" => GzipEncoder::new(text).read_to_end(&mut packed).await,
            "zstd" => ZstdEncoder::new(text).read_to_end(&mut packed).await,
            "deflate" => ZlibEncoder::new(text).read_to_end(&mut packed).await,
            "br" => BrotliEncoder::new(text).read_to_end(&mut packed).await,
            _ => (&mut &*text).read_to_end(&mut packed).await,
        };
        read.expect("packed");
        packed
    }

    #[tokio::test]
    async fn every_known_packing_is_undone_whatever_the_chunks() {
        let text = "data: {\"t\":\"héllo 🌊\"}\n\n".repeat(50).into_bytes();
        for encoding in ["gzip", "x-gzip", "GZIP", "zstd", "deflate", "br", "identity", ""] {
            let packed = packed(encoding, &text).await;
            for size in [1, 7, packed.len()] {
                let chunks: Vec<_> = packed
                    .chunks(size)
                    .map(|chunk| Ok::<_, io::Error>(Bytes::copy_from_slice(chunk)))
                    .collect();
                let named: &[_] = if encoding.is_empty() { &[] } else { &[encoding] };
                let pieces = unpacked(&headers(named), stream::iter(chunks)).expect("known");
                let got: Vec<Bytes> = pieces.try_collect().await.expect("unpacked");
                assert_eq!(got.concat(), text, "{encoding} in pieces of {size}");
            }
        }
    }

    #[tokio::test]
    async fn an_event_comes_out_before_the_packed_stream_ends() {
        let mut packed = Vec::new();
        let mut encoder = async_compression::tokio::write::GzipEncoder::new(&mut packed);
        encoder.write_all(b"data: first\n\n").await.expect("packed");
        encoder.flush().await.expect("flushed");
        let open = stream::iter([Ok::<_, io::Error>(Bytes::from(packed))]).chain(stream::pending());
        let mut pieces = unpacked(&headers(&["gzip"]), open).expect("known");
        assert_eq!(pieces.next().await.expect("a piece").expect("bytes"), "data: first\n\n");
    }

    #[tokio::test]
    async fn what_is_not_known_or_damaged_is_no_answer() {
        let none = || stream::empty::<io::Result<Bytes>>();
        assert!(unpacked(&headers(&["lzma"]), none()).is_none());
        assert!(unpacked(&headers(&["gzip, br"]), none()).is_none());
        assert!(unpacked(&headers(&["gzip", "gzip"]), none()).is_none());
        let junk = stream::iter([Ok::<_, io::Error>(Bytes::from_static(b"no gzip at all"))]);
        let pieces = unpacked(&headers(&["gzip"]), junk).expect("known");
        assert!(pieces.try_collect::<Vec<_>>().await.is_err());
    }
}
