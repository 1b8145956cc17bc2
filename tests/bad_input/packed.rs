//! Bodies that cannot be unpacked: unknown or stacked encodings, damage, and bombs of a few kilobytes.

use async_compression::tokio::bufread::{BrotliEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
use async_compression::tokio::write;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::Expected;
use crate::support::client::read;
use crate::support::{Got, Weir};

/// What the endpoint unpacks, as `Content-Encoding` names it.
pub(super) const ENCODINGS: [&str; 4] = ["zstd", "gzip", "deflate", "br"];

const UNKNOWN: Expected =
    Expected::new(415, "unknown_encoding", &["zstd, gzip, deflate, br or uncompressed"]);
const UNREADABLE: Expected = Expected::new(400, "unreadable_body", &["Send the request again"]);

/// Packs bytes as a client would.
pub(super) async fn pack(encoding: &str, bytes: &[u8]) -> Vec<u8> {
    let mut encoder: Box<dyn AsyncRead + Unpin + Send + '_> = match encoding {
        "zstd" => Box::new(ZstdEncoder::new(bytes)),
        "gzip" => Box::new(GzipEncoder::new(bytes)),
        "deflate" => Box::new(ZlibEncoder::new(bytes)),
        "br" => Box::new(BrotliEncoder::new(bytes)),
        "identity" => Box::new(bytes),
        other => panic!("no encoder for {other}"),
    };
    let mut packed = Vec::new();
    encoder.read_to_end(&mut packed).await.expect("memory can be read");
    packed
}

/// Sends packed bytes under the name of an encoding.
pub(super) async fn send(weir: &Weir, encoding: &str, packed: Vec<u8>) -> Got {
    let request = weir.request().header("content-type", "application/json");
    read(request.header("content-encoding", encoding).body(packed)).await
}

fn request() -> Vec<u8> {
    let text = "a sentence that is there many times; ".repeat(200);
    json!({"model": "practice-full", "input": text}).to_string().into_bytes()
}

#[tokio::test]
async fn an_encoding_that_is_not_known_is_named() {
    let weir = Weir::start("").await;
    for name in
        ["lzma", "compress", "aws-chunked", "gzip, zstd", "zstd,identity", "*", "timeout", "x-500"]
    {
        UNKNOWN.check(&weir, name, &send(&weir, name, request()).await);
    }
    weir.finish().await;
}

#[tokio::test]
async fn two_encodings_are_not_unpacked_halfway() {
    let weir = Weir::start("").await;
    let twice = pack("zstd", &pack("gzip", &request()).await).await;
    UNKNOWN.check(&weir, "one header", &send(&weir, "gzip, zstd", twice.clone()).await);
    for (first, second, packed) in [
        ("gzip", "zstd", twice),
        ("identity", "gzip", pack("gzip", &request()).await),
        ("gzip", "identity", pack("gzip", &request()).await),
    ] {
        let request = weir.request().header("content-type", "application/json");
        let request = request.header("content-encoding", first).header("content-encoding", second);
        let what = format!("{first} and {second} in two headers");
        UNKNOWN.check(&weir, &what, &read(request.body(packed)).await);
    }
    weir.finish().await;
}

#[tokio::test]
async fn a_damaged_body_is_not_sent_in_part() {
    let weir = Weir::start("").await;
    for encoding in ENCODINGS {
        let whole = pack(encoding, &request()).await;
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 0x55;
        let rows = [
            ("plain JSON", request()),
            ("noise", b"\x13\x37 no such stream \xff\xff\xff\xff".to_vec()),
            ("only the first byte", whole[..1].to_vec()),
            ("the first half", whole[..whole.len() / 2].to_vec()),
            ("all but the last byte", whole[..whole.len() - 1].to_vec()),
        ];
        for (what, body) in rows {
            let what = format!("{encoding}: {what}");
            UNREADABLE.check(&weir, &what, &send(&weir, encoding, body).await);
        }
        // Damage in the middle may leave something that unpacks, but nothing that is the request.
        let got = send(&weir, encoding, flipped).await;
        assert_eq!(got.status, 400, "{encoding}: {}", got.text);
        assert!(weir.upstream().is_empty(), "{encoding}: a damaged body reached the backend");
    }
    weir.finish().await;
}

/// A packed body of a few kilobytes that unpacks to more spaces than may be unpacked. One packed megabyte is repeated,
/// because packing them all takes long.
async fn bomb(encoding: &str) -> Vec<u8> {
    let mut packer: Box<dyn Packer> = match encoding {
        "zstd" => Box::new(write::ZstdEncoder::new(Vec::new())),
        "gzip" => Box::new(write::GzipEncoder::new(Vec::new())),
        "deflate" => Box::new(write::ZlibEncoder::new(Vec::new())),
        "br" => Box::new(write::BrotliEncoder::new(Vec::new())),
        other => panic!("no encoder for {other}"),
    };
    let spaces = vec![b' '; 1024 * 1024];
    let mut ends = Vec::new();
    for _ in 0..2 {
        packer.write_all(&spaces).await.expect("memory can be written");
        // Ends a block, so that what follows could follow again.
        packer.flush().await.expect("memory can be written");
        ends.push(packer.packed().len());
    }
    let (head, again) = packer.packed()[..ends[1]].split_at(ends[0]);
    [head, &again.repeat(66)].concat()
}

trait Packer: AsyncWrite + Unpin + Send {
    fn packed(&self) -> &[u8];
}

macro_rules! packer {
    ($($encoder:ident)*) => {
        $(impl Packer for write::$encoder<Vec<u8>> {
            fn packed(&self) -> &[u8] {
                self.get_ref()
            }
        })*
    };
}

packer!(ZstdEncoder GzipEncoder ZlibEncoder BrotliEncoder);

#[tokio::test]
async fn a_bomb_costs_no_more_than_a_large_request() {
    const TOO_LARGE: Expected = Expected::new(413, "body_too_large", &["64 MiB"]);
    let weir = Weir::start("").await;
    for encoding in ENCODINGS {
        let bomb = bomb(encoding).await;
        assert!(bomb.len() < 128 * 1024, "{encoding}: {} bytes", bomb.len());
        TOO_LARGE.check(&weir, encoding, &send(&weir, encoding, bomb).await);
    }
    weir.finish().await;
}
