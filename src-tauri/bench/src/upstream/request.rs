//! The requests of one connection, as far as a fixed upstream needs to know them.
//!
//! **Invariant**: a body is read to its end before it is answered, so that the next request is found.

use anyhow::{Result, bail};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const MOST_HEADERS: usize = 64;

/// A connection with what was read ahead.
pub(super) struct Incoming {
    pub(super) stream: TcpStream,
    pub(super) ahead: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum Request {
    /// A turn, with its body.
    Turn(Vec<u8>),
    Models,
    /// A WebSocket is asked for, with its key.
    Upgrade(String),
    Other,
}

/// A head: what it asks for, the bytes that it takes, and the length of the body behind it.
struct Head {
    post: bool,
    path: String,
    key: Option<String>,
    bytes: usize,
    body: usize,
}

impl Incoming {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, ahead: Vec::with_capacity(64 * 1024) }
    }

    /// The next request, or None when the connection was closed.
    pub(super) async fn next(&mut self) -> Result<Option<Request>> {
        let head = loop {
            if let Some(head) = read(&self.ahead)? {
                break head;
            }
            if self.stream.read_buf(&mut self.ahead).await? == 0 {
                return Ok(None);
            }
        };
        while self.ahead.len() < head.bytes + head.body {
            if self.stream.read_buf(&mut self.ahead).await? == 0 {
                return Ok(None);
            }
        }
        let body = self.ahead[head.bytes..head.bytes + head.body].to_vec();
        self.ahead.drain(..head.bytes + head.body);
        let turns = head.path.ends_with("/responses");
        Ok(Some(match head.key {
            Some(key) if turns => Request::Upgrade(key),
            _ if head.post && turns => Request::Turn(body),
            _ if head.path.ends_with("/models") => Request::Models,
            _ => Request::Other,
        }))
    }

    pub(super) async fn say(&mut self, status: &str, headers: &str, body: &str) -> Result<()> {
        let text = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        Ok(self.stream.write_all(text.as_bytes()).await?)
    }
}

fn read(bytes: &[u8]) -> Result<Option<Head>> {
    if memmem::find(bytes, b"\r\n\r\n").is_none() {
        return Ok(None);
    }
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(length) = request.parse(bytes)? else { return Ok(None) };
    let mut head = Head {
        post: request.method == Some("POST"),
        path: request.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned(),
        key: None,
        bytes: length,
        body: 0,
    };
    for header in request.headers.iter() {
        let value = std::str::from_utf8(header.value)?;
        if header.name.eq_ignore_ascii_case("content-length") {
            head.body = value.parse()?;
        } else if header.name.eq_ignore_ascii_case("sec-websocket-key") {
            head.key = Some(value.to_owned());
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            bail!("a request in chunks is not expected here");
        }
    }
    Ok(Some(head))
}
