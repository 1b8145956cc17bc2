//! Reads a request's body under a bound, whatever it is compressed with.
//!
//! Codex sends zstd, other clients gzip, deflate or br. The bound holds for what arrives and for what it unpacks to, so a
//! small bomb costs no more than a large request.
//!
//! **Invariant**: never more than [`LIMIT`] bytes of one body are held unpacked.

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use axum::body::Body;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::{HeaderMap, header};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::io::StreamReader;

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
    let stream = body.into_data_stream().map_err(std::io::Error::other);
    let packed = StreamReader::new(stream);
    let encoding = match headers.get(header::CONTENT_ENCODING).map(|value| value.to_str()) {
        None => String::new(),
        Some(Ok(name)) => name.trim().to_ascii_lowercase(),
        Some(Err(_)) => return Err(unknown_encoding("that")),
    };
    match encoding.as_str() {
        "" | "identity" => bounded(packed, &encoding).await,
        "zstd" => bounded(ZstdDecoder::new(packed), &encoding).await,
        "gzip" | "x-gzip" => bounded(GzipDecoder::new(packed), &encoding).await,
        "deflate" => bounded(ZlibDecoder::new(packed), &encoding).await,
        "br" => bounded(BrotliDecoder::new(packed), &encoding).await,
        other => Err(unknown_encoding(other)),
    }
}

async fn bounded(reader: impl AsyncRead + Unpin, encoding: &str) -> Result<Bytes, Problem> {
    let mut unpacked = Vec::new();
    // The bound on what is unpacked bounds what is read: no encoding here expands its input.
    match reader.take(LIMIT + 1).read_to_end(&mut unpacked).await {
        Ok(_) if unpacked.len() as u64 > LIMIT => Err(too_large()),
        Ok(_) => Ok(unpacked.into()),
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
    let name: String = name.chars().filter(|c| c.is_ascii_graphic()).take(40).collect();
    Problem::new(
        415,
        "unknown_encoding",
        format!(
            "Weir cannot unpack `{name}`. Send the body as zstd, gzip, deflate, br or uncompressed."
        ),
    )
}
