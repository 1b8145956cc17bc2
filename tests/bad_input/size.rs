//! Bodies beyond the bound, however they arrive, and what becomes of a connection whose body nobody wanted.

use bytes::Bytes;
use futures_util::stream;
use serde_json::json;

use super::{Expected, send};
use crate::guard::wire::{Wire, ask};
use crate::support::client::read;
use crate::support::{Weir, plain};

const MIB: usize = 1024 * 1024;
const LIMIT: usize = 64 * MIB;
const TOO_LARGE: Expected = Expected::new(413, "body_too_large", &["64 MiB", "Compact"]);

/// A request of exactly so many bytes; what it says is short.
fn padded(length: usize) -> Bytes {
    let mut body = plain("practice-full").to_string().into_bytes();
    body.resize(length, b' ');
    body.into()
}

/// A body whose length is not announced.
fn chunked(body: &Bytes) -> reqwest::Body {
    let pieces: Vec<_> =
        body.chunks(MIB).map(|piece| Ok::<_, std::io::Error>(body.slice_ref(piece))).collect();
    reqwest::Body::wrap_stream(stream::iter(pieces))
}

/// The head of a request to `/v1/responses`, without its last line.
fn head(key: &str, more: &str) -> String {
    format!(
        "POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n{more}\r\n"
    )
}

#[tokio::test]
async fn the_largest_body_passes_and_one_byte_more_does_not() {
    let weir = Weir::start("").await;
    let over = padded(LIMIT + 1);
    TOO_LARGE.check(&weir, "announced", &send(&weir, over.clone()).await);
    TOO_LARGE.check(&weir, "not announced", &send(&weir, chunked(&over)).await);
    let most = padded(LIMIT);
    assert_eq!(send(&weir, most.clone()).await.events().terminals(), 1);
    assert_eq!(send(&weir, chunked(&most)).await.events().terminals(), 1);
    weir.finish().await;
}

#[tokio::test]
async fn a_length_that_is_too_large_is_refused_before_the_body_is_asked_for() {
    let weir = Weir::start("").await;
    for length in [LIMIT + 1, 1 << 40, usize::MAX / 2] {
        let more = format!("content-length: {length}\r\nexpect: 100-continue\r\n");
        let answer = ask(weir.origin(), head(weir.key(), &more)).await.expect("an answer");
        assert_eq!((answer.status, answer.code().as_str()), (413, "body_too_large"), "{length}");
    }
    assert!(weir.upstream().is_empty());
    weir.finish().await;
}

#[tokio::test]
async fn a_packed_body_that_unpacks_to_nothing_is_bounded_too() {
    let weir = Weir::start("").await;
    // Stored blocks of no bytes, without end.
    let blocks = b"\x00\x00\x00\xff\xff".repeat(MIB / 5);
    let pieces = std::iter::once(Bytes::from_static(b"\x78\x01"))
        .chain(std::iter::repeat_n(Bytes::from(blocks), 66));
    let body = reqwest::Body::wrap_stream(stream::iter(pieces.map(Ok::<_, std::io::Error>)));
    let request = weir.request().header("content-type", "application/json");
    let got = read(request.header("content-encoding", "deflate").body(body)).await;
    TOO_LARGE.check(&weir, "empty blocks", &got);
    weir.finish().await;
}

#[tokio::test]
async fn a_body_that_ends_early_is_not_sent_in_part() {
    let weir = Weir::start("").await;
    let body = plain("practice-full").to_string();
    for more in [
        format!("content-length: {}\r\n", body.len() + 1),
        "transfer-encoding: chunked\r\n".to_owned(),
    ] {
        let mut wire = Wire::to(weir.origin()).await;
        wire.send(head(weir.key(), &more)).await;
        let chunk = if more.starts_with("transfer") {
            format!("{:x}\r\n{body}\r\n", body.len())
        } else {
            body.clone()
        };
        wire.send(chunk).await;
        wire.finish().await;
        if let Some(answer) = wire.answer().await {
            assert_eq!((answer.status, answer.code().as_str()), (400, "unreadable_body"));
        }
        assert!(weir.upstream().is_empty(), "half a request reached the backend");
    }
    weir.finish().await;
}

/// A server that closes while its client still writes makes the client lose the answer: what it reads then is a reset
/// connection, not the sentence. So what is refused is read to its end.
#[tokio::test]
async fn a_client_that_is_still_sending_reads_why_it_is_refused() {
    let weir = Weir::start("").await;
    let body = vec![b' '; 12 * MIB];
    let announced = format!("content-length: {}\r\n", body.len());
    let packed = format!("{announced}content-encoding: lzma\r\n");
    let foreign = format!("{announced}origin: https://evil.example\r\n");
    for (key, more, status) in
        [("weir_wrong", &announced, 401), (weir.key(), &packed, 415), (weir.key(), &foreign, 403)]
    {
        let mut wire = Wire::to(weir.origin()).await;
        wire.send(head(key, more)).await;
        let answer = wire.answer().await.expect("an answer");
        assert_eq!(answer.status, status, "{}", answer.body);
        wire.send(&body).await;
        wire.send(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await;
        let next = wire.answer().await.expect("the connection is still good");
        assert_eq!(next.status, 200, "{}", next.body);
    }
    assert!(weir.upstream().is_empty());
    weir.finish().await;
}

/// C32: the largest requests that clients really send are histories with images in them.
#[tokio::test]
async fn inline_images_of_thirty_megabytes_pass() {
    let weir = Weir::start("").await;
    let image = |bytes: usize| {
        let url = format!(
            "data:image/png;base64,{}",
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB".repeat(bytes / 32)
        );
        json!({"type": "input_image", "image_url": url})
    };
    let body = |bytes: usize| {
        let text = json!({"type": "input_text", "text": "see"});
        let input =
            json!([{"role": "user", "content": [text, image(bytes / 2), image(bytes / 2)]}]);
        json!({"model": "practice-full", "input": input, "stream": true})
    };
    let (large, packed) = (body(30 * MIB), body(3 * MIB));
    let got = send(&weir, large.to_string()).await;
    assert_eq!(got.events().last()["type"], "response.completed");
    let zstd = super::packed::pack("zstd", packed.to_string().as_bytes()).await;
    let got = super::packed::send(&weir, "zstd", zstd).await;
    assert_eq!(got.events().last()["type"], "response.completed");
    let upstream = weir.upstream();
    assert_eq!(upstream.len(), 2);
    for (request, sent) in upstream.iter().zip([large, packed]) {
        // Compared without printing thirty megabytes.
        assert!(request.body["input"] == sent["input"], "the images changed");
    }
    weir.finish().await;
}
