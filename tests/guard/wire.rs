//! A connection on which a test writes bytes that no HTTP client would.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Reached by a broken program only.
const BOUND: Duration = Duration::from_secs(60);

pub(crate) struct Wire {
    socket: TcpStream,
    /// Read, and not yet part of an answer.
    rest: Vec<u8>,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The status line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    pub(crate) fn code(&self) -> String {
        let said: serde_json::Value = serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.head, self.body));
        said["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Wire {
    /// Connects to an origin such as `http://127.0.0.1:8788`.
    pub(crate) async fn to(origin: &str) -> Self {
        let address = origin.trim_start_matches("http://");
        let socket = TcpStream::connect(address).await.expect("a connection");
        Self { socket, rest: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = timeout(BOUND, self.socket.write_all(bytes.as_ref())).await;
        sent.expect("the other end reads").expect("the other end still reads");
    }

    /// Says that nothing more will be sent.
    pub(crate) async fn finish(&mut self) {
        self.socket.shutdown().await.expect("an open connection");
    }

    /// The next answer, or nothing if the other end closes first.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        let end = loop {
            match self.rest.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(end) => break end,
                None if !self.more().await => return None,
                None => {}
            }
        };
        let head = String::from_utf8_lossy(&self.rest[..end]).to_ascii_lowercase();
        self.rest.drain(..end + 4);
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut answer = Answer { status: status.expect("a status"), head, body: String::new() };
        let length = answer.header("content-length").and_then(|length| length.parse().ok());
        while length.is_none_or(|length: usize| self.rest.len() < length) && self.more().await {}
        let length = length.unwrap_or(self.rest.len()).min(self.rest.len());
        let body: Vec<u8> = self.rest.drain(..length).collect();
        answer.body = String::from_utf8_lossy(&body).into_owned();
        Some(answer)
    }

    /// Reads on; false at the end.
    async fn more(&mut self) -> bool {
        let read = timeout(BOUND, self.socket.read_buf(&mut self.rest)).await;
        let read = read.expect("the other end answers or closes").unwrap_or(0);
        read > 0
    }
}

/// One request on a connection of its own.
pub(crate) async fn ask(origin: &str, request: impl AsRef<[u8]>) -> Option<Answer> {
    let mut wire = Wire::to(origin).await;
    wire.send(request).await;
    wire.answer().await
}
