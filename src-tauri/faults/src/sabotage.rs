//! Bugs on purpose, each built in where a real one would sit, to prove that the checker sees it.
//!
//! Some sit between Weir and its client or its backend, as a proxy that does what a broken relay would do; some in the
//! database, some in the process.
//!
//! **Invariant**: each names the rule that must catch it.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::check::{http, sse};
use crate::frames;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    DropEvent,
    DoubleEvent,
    SwapEvents,
    DamageEvent,
    DoubleEnd,
    EventAfterEnd,
    NoEnd,
    CutFrame,
    SendTwice,
    LoseRow,
    DoubleRow,
    OpenRow,
    WrongOutcome,
    WrongTokens,
    LoseCall,
    DoubleBooking,
    LeaveSockets,
    IgnoreLeaving,
    SendFrameTwice,
    ChangeHistory,
    LeaveUpstream,
    WrongRoad,
}

impl Sabotage {
    pub const ALL: [Self; 22] = [
        Self::DropEvent,
        Self::DoubleEvent,
        Self::SwapEvents,
        Self::DamageEvent,
        Self::DoubleEnd,
        Self::EventAfterEnd,
        Self::NoEnd,
        Self::CutFrame,
        Self::SendTwice,
        Self::LoseRow,
        Self::DoubleRow,
        Self::OpenRow,
        Self::WrongOutcome,
        Self::WrongTokens,
        Self::LoseCall,
        Self::DoubleBooking,
        Self::LeaveSockets,
        Self::IgnoreLeaving,
        Self::SendFrameTwice,
        Self::ChangeHistory,
        Self::LeaveUpstream,
        Self::WrongRoad,
    ];

    /// The rule that must catch it.
    pub fn rule(self) -> &'static str {
        match self {
            Self::DropEvent | Self::DoubleEvent | Self::SwapEvents | Self::DamageEvent => {
                "foreign-event"
            }
            Self::DoubleEnd | Self::NoEnd => "one-terminal",
            Self::EventAfterEnd => "after-terminal",
            Self::CutFrame => "framing",
            Self::SendTwice | Self::SendFrameTwice => "sent-twice",
            Self::ChangeHistory => "changed-request",
            Self::WrongRoad => "road",
            Self::LoseRow => "row-lost",
            Self::DoubleRow => "row-doubled",
            Self::OpenRow => "row-open",
            Self::WrongOutcome => "outcome",
            Self::WrongTokens => "tokens",
            Self::LoseCall => "emitted",
            Self::DoubleBooking => "booked",
            Self::LeaveSockets | Self::LeaveUpstream => "orphan-socket",
            Self::IgnoreLeaving => "not-cancelled",
        }
    }

    /// What it does to the database once the program has ended.
    pub fn sql(self) -> Option<&'static str> {
        Some(match self {
            Self::LoseRow => "DELETE FROM turns WHERE id IN (SELECT id FROM turns ORDER BY id LIMIT 1)",
            Self::DoubleRow => {
                "CREATE TEMP TABLE t AS SELECT * FROM turns LIMIT 1; UPDATE t SET id = 'again'; INSERT INTO turns SELECT * FROM t"
            }
            Self::OpenRow => "UPDATE turns SET outcome = NULL WHERE id IN (SELECT id FROM turns LIMIT 1)",
            Self::WrongOutcome => "UPDATE turns SET outcome = 'failed' WHERE outcome = 'completed'",
            Self::WrongRoad => {
                "UPDATE turns SET new_items = new_items + 1 WHERE new_items IS NOT NULL"
            }
            Self::WrongTokens => "UPDATE turns SET input_tokens = 0 WHERE input_tokens IS NOT NULL",
            Self::LoseCall => "DELETE FROM emitted WHERE seq IN (SELECT max(seq) FROM emitted)",
            Self::DoubleBooking => {
                "INSERT INTO booked (emitted, turn, position, by_turn, at) SELECT max(e.seq) + 1000, b.turn, 1000, b.by_turn, 0 FROM booked b, emitted e;
                 INSERT INTO emitted SELECT max(b.emitted), e.turn, 1000, e.call_id, e.tool, e.kind, 0 FROM booked b, emitted e WHERE e.seq = (SELECT min(emitted) FROM booked)"
            }
            _ => return None,
        })
    }

    /// It needs a WebSocket.
    pub fn is_framed(self) -> bool {
        self.spoils_frames() || self == Self::WrongRoad
    }

    fn spoils_frames(self) -> bool {
        matches!(self, Self::SendFrameTwice | Self::ChangeHistory | Self::LeaveUpstream)
    }

    fn spoils_answers(self) -> bool {
        self.sql().is_none()
            && !self.spoils_frames()
            && !matches!(self, Self::SendTwice | Self::LeaveSockets)
    }

    /// Where clients shall send their turns instead.
    pub async fn before_client(self, weir: &str) -> io::Result<Option<String>> {
        if !self.spoils_answers() {
            return Ok(None);
        }
        proxy(weir, move |socket, weir| async move { self.relay(socket, &weir).await })
            .await
            .map(Some)
    }

    /// Where Weir shall send its turns instead.
    pub async fn before_backend(self, backend: &str) -> io::Result<Option<String>> {
        if self.spoils_frames() {
            return proxy(backend, move |socket, backend| async move {
                self.pass_frames(socket, &backend).await
            })
            .await
            .map(Some);
        }
        if self != Self::SendTwice {
            return Ok(None);
        }
        proxy(backend, |socket, backend| async move { send_twice(socket, &backend).await })
            .await
            .map(Some)
    }

    /// A connection to the backend, whose frames are spoilt once it is a WebSocket.
    async fn pass_frames(self, mut weir: TcpStream, backend: &str) -> io::Result<()> {
        let first = request(&mut weir).await?;
        let mut server = TcpStream::connect(backend).await?;
        server.write_all(&first).await?;
        if !String::from_utf8_lossy(&first).to_ascii_lowercase().contains("sec-websocket-key") {
            return copy_bidirectional(&mut weir, &mut server).await.map(drop);
        }
        let (mut from_weir, mut to_weir) = weir.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let answers = tokio::spawn(async move { copy(&mut from_server, &mut to_weir).await });
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        while let Ok(read @ 1..) = from_weir.read(&mut buffer).await {
            bytes.extend_from_slice(&buffer[..read]);
            while let Some((frame, used)) = frames::asked(&bytes) {
                bytes.drain(..used);
                to_server.write_all(&self.spoilt(frame)).await?;
            }
        }
        if self == Self::LeaveUpstream {
            // Longer than anybody waits for it.
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        }
        answers.abort();
        to_server.shutdown().await
    }

    fn spoilt(self, frame: frames::Asked) -> Vec<u8> {
        let text = String::from_utf8_lossy(&frame.payload).into_owned();
        let spoilt = frame.kind == frames::TEXT;
        match self {
            Self::SendFrameTwice if spoilt => frames::masked(frame.kind, &frame.payload).repeat(2),
            Self::ChangeHistory if spoilt && text.contains("previous_response_id") => {
                frames::masked(frame.kind, text.replace("do it", "do no").as_bytes())
            }
            // A connection that is left does not say goodbye.
            Self::LeaveUpstream if frame.kind == frames::CLOSE => Vec::new(),
            _ => frames::masked(frame.kind, &frame.payload),
        }
    }

    /// A turn through a relay that spoils it.
    async fn relay(self, mut client: TcpStream, weir: &str) -> io::Result<()> {
        let request = request(&mut client).await?;
        let mut raw = ask(weir, &request).await?;
        let streams =
            http::read(&raw).filter(|answer| answer.content_type.starts_with("text/event-stream"));
        if let Some(answer) = streams {
            let mut frames: Vec<String> = sse::read(&answer.body)
                .events
                .into_iter()
                .map(|event| format!("data: {}\n\n", event.data))
                .collect();
            self.spoil(&mut frames);
            raw =
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
                    .to_vec();
            raw.extend(frames.concat().into_bytes());
        }
        client.write_all(&raw).await?;
        client.shutdown().await
    }

    fn spoil(self, frames: &mut Vec<String>) {
        let Some(last) = frames.len().checked_sub(1).filter(|last| *last > 2) else { return };
        match self {
            Self::DropEvent => drop(frames.remove(last / 2)),
            Self::DoubleEvent => frames.insert(last / 2, frames[last / 2].clone()),
            Self::SwapEvents => frames.swap(1, 2),
            Self::DamageEvent => frames[last / 2] = frames[last / 2].replacen('e', "\u{fffd}", 1),
            Self::DoubleEnd => frames.push(frames[last].clone()),
            Self::EventAfterEnd => frames.push(frames[last - 1].clone()),
            Self::NoEnd => drop(frames.pop()),
            Self::CutFrame => drop(frames[last].pop()),
            _ => {}
        }
    }
}

async fn proxy<F, W>(to: &str, each: F) -> io::Result<String>
where
    F: Fn(TcpStream, String) -> W + Send + Sync + 'static,
    W: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let to = to.to_owned();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let work = each(socket, to.clone());
            // Whoever breaks off is judged by the checker, not here.
            tokio::spawn(async move { drop(work.await) });
        }
    });
    Ok(address)
}

/// Sends every turn to the backend twice and shows Weir one answer.
async fn send_twice(mut weir: TcpStream, backend: &str) -> io::Result<()> {
    loop {
        let request = request(&mut weir).await?;
        let answer = ask(backend, &request).await?;
        if request.starts_with(b"POST") {
            ask(backend, &request).await?;
        }
        weir.write_all(&answer).await?;
        if http::read(&answer).is_none_or(|answer| answer.until_close) {
            return weir.shutdown().await;
        }
    }
}

/// Sends a request and reads its answer to the end.
async fn ask(address: &str, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(address).await?;
    server.write_all(request).await?;
    let mut raw = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while http::read(&raw).is_none_or(|answer| !answer.whole) {
        match server.read(&mut buffer).await? {
            0 => break,
            read => raw.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(raw)
}

/// The bytes of one request.
async fn request(socket: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut raw = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let head = raw.windows(4).position(|four: &[u8]| four == b"\r\n\r\n");
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&raw[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| {
                line.strip_prefix("content-length:")?.trim().parse::<usize>().ok()
            });
            if raw.len() >= head + 4 + length.unwrap_or(0) {
                return Ok(raw);
            }
        }
        match socket.read(&mut buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => raw.extend_from_slice(&buffer[..read]),
        }
    }
}
