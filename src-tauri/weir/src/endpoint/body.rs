//! Reads a request's body under a bound, whatever it is compressed with.
//!
//! Codex sends zstd, other clients gzip, deflate or br. The bound holds for what arrives and for what it unpacks to, so a
//! small bomb costs no more than a large request.
//!
//! **Invariant**: of one body never more than [`LIMIT`] bytes are read, nor held unpacked.

use std::io;

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, header};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::io::StreamReader;
use weir_core::dialect::refusal::looks_retryable;

use super::error::Problem;

/// The largest body, in bytes, as sent and as unpacked.
pub const LIMIT: u64 = 64 * 1024 * 1024;

pub async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .and_then(|kind| kind.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    if !json {
        return Err(Problem::new(
            415,
            "not_json",
            "Send the request as JSON, with `Content-Type: application/json`.",
        ));
    }
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > LIMIT) {
        return Err(too_large());
    }
    // Counted as sent too: a packed body can go on without end and unpack to nothing.
    let mut room = LIMIT;
    let stream = body.into_data_stream().map(move |piece| {
        let piece = piece.map_err(io::Error::other)?;
        room = room
            .checked_sub(piece.len() as u64)
            .ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        Ok::<_, io::Error>(piece)
    });
    let packed = StreamReader::new(stream);
    let encoding = encoding(headers)?;
    match encoding.as_str() {
        "" | "identity" => bounded(packed, &encoding).await,
        "zstd" => {
            let mut unpacked = ZstdDecoder::new(packed);
            unpacked.multiple_members(true);
            bounded(unpacked, &encoding).await
        }
        "gzip" | "x-gzip" => {
            let mut unpacked = GzipDecoder::new(packed);
            unpacked.multiple_members(true);
            bounded(unpacked, &encoding).await
        }
        "deflate" => bounded(ZlibDecoder::new(packed), &encoding).await,
        "br" => bounded(BrotliDecoder::new(packed), &encoding).await,
        other => Err(unknown_encoding(other)),
    }
}

/// The one encoding of a body, empty where none is named. Several in a row are not undone.
fn encoding(headers: &HeaderMap) -> Result<String, Problem> {
    let mut named = headers.get_all(header::CONTENT_ENCODING).iter();
    match (named.next().map(|value| value.to_str()), named.next()) {
        (None, _) => Ok(String::new()),
        (Some(Ok(name)), None) => Ok(name.trim().to_ascii_lowercase()),
        (Some(Ok(_)), Some(_)) => Err(unknown_encoding("several encodings")),
        (Some(Err(_)), _) => Err(unknown_encoding("that")),
    }
}

async fn bounded(reader: impl AsyncRead + Unpin, encoding: &str) -> Result<Bytes, Problem> {
    let mut unpacked = Vec::new();
    match reader.take(LIMIT + 1).read_to_end(&mut unpacked).await {
        Ok(_) if unpacked.len() as u64 > LIMIT => Err(too_large()),
        Ok(_) => Ok(unpacked.into()),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(too_large()),
        Err(error) => {
            tracing::debug!(%error, encoding, "a body could not be read");
            let what = if encoding.is_empty() {
                "The body ended early".to_owned()
            } else {
                format!("The body is not valid {encoding}, or it ended early")
            };
            Err(Problem::new(
                400,
                "unreadable_body",
                format!("{what}. Send the request again, uncompressed if this repeats."),
            ))
        }
    }
}

fn too_large() -> Problem {
    Problem::new(
        413,
        "body_too_large",
        "The request is larger than 64 MiB. Compact the conversation or send smaller images.",
    )
}

fn unknown_encoding(name: &str) -> Problem {
    let plain = |c: char| c.is_ascii_graphic() || c == ' ';
    let mut name: String = name.chars().filter(|c| plain(*c)).take(40).collect();
    if looks_retryable(&name) {
        name = "that encoding".into();
    }
    Problem::new(
        415,
        "unknown_encoding",
        format!(
            "Weir cannot unpack `{name}`. Send the body as zstd, gzip, deflate, br or uncompressed."
        ),
    )
}
