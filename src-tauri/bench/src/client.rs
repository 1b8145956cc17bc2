//! The load generator's end: one kept connection that runs one turn after another.
//!
//! **Invariant**: a turn that does not arrive whole, with every event that the upstream sent, is an error and no figure.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail, ensure};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::answer;
use crate::chunks::Chunks;
use crate::clock;
use crate::plan::Plan;

const MOST_HEADERS: usize = 64;

/// Where turns are sent.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) address: SocketAddr,
    /// The path of a turn.
    pub(crate) path: String,
    pub(crate) key: String,
    /// Bytes of instructions in each request.
    pub(crate) padding: usize,
}

/// One connection, which is one conversation.
pub(crate) struct Client {
    way: Way,
    stream: TcpStream,
    name: String,
    turns: u64,
    /// Read and not yet taken apart.
    ahead: Vec<u8>,
    /// The body so far, from the first event that is not complete.
    body: Vec<u8>,
}

/// What one turn was like, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Turn {
    /// From the request to the head of the answer.
    pub(crate) headers: u64,
    pub(crate) events: u64,
}

impl Client {
    pub(crate) async fn connect(way: &Way, name: String) -> Result<Self> {
        let stream = TcpStream::connect(way.address)
            .await
            .with_context(|| format!("{} does not take a connection", way.address))?;
        stream.set_nodelay(true)?;
        let (ahead, body) = (Vec::with_capacity(64 * 1024), Vec::with_capacity(64 * 1024));
        Ok(Self { way: way.clone(), stream, name, turns: 0, ahead, body })
    }

    /// Runs a turn; `arrived` is given the delay of each stamped piece, in nanoseconds.
    pub(crate) async fn turn(&mut self, plan: Plan, mut arrived: impl FnMut(u64)) -> Result<Turn> {
        let request = self.request(plan);
        let begun = clock::now();
        self.stream.write_all(&request).await?;
        self.head().await?;
        let headers = clock::now() - begun;
        let mut chunks = Chunks::default();
        let (mut events, mut completed) = (0, false);
        loop {
            let end = chunks.take(&self.ahead, &mut self.body)?;
            self.ahead.drain(..end.unwrap_or(self.ahead.len()));
            let now = clock::now();
            let mut from = 0;
            while let Some(length) = memmem::find(&self.body[from..], b"\n\n") {
                let event = &self.body[from..from + length];
                from += length + 2;
                if event.starts_with(b":") {
                    continue;
                }
                events += 1;
                if !plan.gap.is_zero()
                    && let Some(sent) = answer::stamp(event)
                {
                    arrived(now.saturating_sub(sent));
                }
                completed = event.starts_with(b"event: response.completed");
            }
            self.body.drain(..from);
            if end.is_some() {
                break;
            }
            self.read().await?;
        }
        ensure!(completed, "the answer ended without its last event");
        ensure!(events == plan.events(), "{events} of {} events arrived", plan.events());
        Ok(Turn { headers, events })
    }

    /// No two requests are the same: a proxy may take a request that is sent again for a client that runs wild.
    fn request(&mut self, plan: Plan) -> Vec<u8> {
        self.turns += 1;
        let body = format!(
            r#"{{"model":"bench","stream":true,"store":false,"prompt_cache_key":"{}","instructions":"{:x<padding$}","tools":[],"input":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"turn {} {}"}}]}}]}}"#,
            self.name,
            "",
            self.turns,
            plan.mark(),
            padding = self.way.padding,
        );
        format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
            self.way.path,
            self.way.address,
            self.way.key,
            body.len()
        )
        .into_bytes()
    }

    async fn read(&mut self) -> Result<()> {
        ensure!(self.stream.read_buf(&mut self.ahead).await? > 0, "the connection was closed");
        Ok(())
    }

    /// Reads the head of an answer and leaves what follows it.
    async fn head(&mut self) -> Result<()> {
        let length = loop {
            if let Some(end) = memmem::find(&self.ahead, b"\r\n\r\n") {
                break end + 4;
            }
            self.read().await?;
        };
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut answer = httparse::Response::new(&mut headers);
        answer.parse(&self.ahead)?;
        let chunked = answer.headers.iter().any(|header| {
            header.name.eq_ignore_ascii_case("transfer-encoding") && header.value == b"chunked"
        });
        if answer.code != Some(200) || !chunked {
            bail!("answered with {}", String::from_utf8_lossy(&self.ahead));
        }
        self.ahead.drain(..length);
        Ok(())
    }
}
