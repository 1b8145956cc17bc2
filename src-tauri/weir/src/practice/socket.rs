//! The life of one WebSocket: frames in, frames out, one response at a time.
//!
//! It reads while a response is under way, so it answers pings, notices that its client left, and refuses a second
//! request. The request itself is answered by an exchange, whose parts are passed on here.
//!
//! **Invariant**: what belongs to one response is written before anything of the next.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use axum::http::HeaderMap;
use bytes::Bytes;
use tokio::sync::mpsc;
use weir_core::dialect::wire;

use super::accounts::Account;
use super::caller;
use super::chain::Chain;
use super::errors::Refusal;
use super::exchange::Exchange;
use super::frames::{self, Frame};
use super::http;
use super::play::Part;
use super::record::{Entry, OpenSocket, Received};
use super::request::Ask;
use super::script::Transport;
use super::server::{BASE, Practice};

/// The backend takes messages below this.
const TOO_BIG: usize = 16 << 20;
/// What is too big to be read and judged.
pub(super) const UNREADABLE: usize = 256 << 20;
/// How long the backend keeps a socket.
const LIFE: Duration = Duration::from_secs(60 * 60);

const NORMAL: u16 = 1000;
const UNSUPPORTED: u16 = 1003;
const TOO_BIG_CODE: u16 = 1009;

/// A socket and what it knows.
pub(super) struct Socket {
    practice: Arc<Practice>,
    account: Arc<Account>,
    headers: HeaderMap,
    open: OpenSocket,
    chain: Chain,
    /// Turns that were begun.
    turns: usize,
    running: Option<Running>,
}

/// The response that is under way.
struct Running {
    number: u64,
    parts: mpsc::Receiver<Part>,
}

/// Whether the socket lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Lives,
    Closes(u16),
    Drops,
}

enum Step {
    Said(Option<Part>),
    Heard(Option<Result<Message, axum::Error>>),
    Old,
}

impl Socket {
    pub(super) fn new(
        practice: Arc<Practice>,
        account: Arc<Account>,
        headers: HeaderMap,
        open: OpenSocket,
    ) -> Self {
        let chain = Chain::default();
        Self { practice, account, headers, open, chain, turns: 0, running: None }
    }

    /// Serves until either side ends it, or the server stops.
    pub(super) async fn serve(mut self, mut wire: WebSocket) {
        let stop = self.practice.stop.clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.live(&mut wire) => {}
        }
    }

    async fn live(&mut self, wire: &mut WebSocket) {
        let mut old = std::pin::pin!(tokio::time::sleep(LIFE));
        loop {
            let idle = self.running.is_none();
            let step = tokio::select! {
                part = next(&mut self.running) => Step::Said(part),
                heard = wire.recv() => Step::Heard(heard),
                () = &mut old, if idle => Step::Old,
            };
            let fate = match step {
                Step::Said(Some(part)) => pass(part, wire).await,
                Step::Said(None) => {
                    self.running = None;
                    Fate::Lives
                }
                Step::Heard(Some(Ok(message))) => self.hear(message, wire).await,
                Step::Heard(Some(Err(_)) | None) => Fate::Drops,
                Step::Old => {
                    let told = frames::error(&Refusal::socket_too_old()).to_string();
                    say(Bytes::from(told), wire).await;
                    Fate::Closes(NORMAL)
                }
            };
            match fate {
                Fate::Lives => {}
                Fate::Closes(code) => return close(code, wire).await,
                Fate::Drops => return,
            }
        }
    }

    async fn hear(&mut self, message: Message, wire: &mut WebSocket) -> Fate {
        match message {
            Message::Text(text) if text.len() >= TOO_BIG => {
                let rule = format!("a frame of {} bytes is too big", text.len());
                self.reject(text.len(), &rule);
                Fate::Closes(TOO_BIG_CODE)
            }
            Message::Text(text) => self.request(&text, wire).await,
            Message::Binary(bytes) => {
                self.reject(bytes.len(), "a frame is binary");
                Fate::Closes(UNSUPPORTED)
            }
            // The library answers both by itself.
            Message::Ping(_) | Message::Pong(_) => Fate::Lives,
            Message::Close(_) => {
                // Reading on sends the answer.
                while let Some(Ok(_)) = wire.recv().await {}
                Fate::Drops
            }
        }
    }

    async fn request(&mut self, text: &str, wire: &mut WebSocket) -> Fate {
        if let Some(running) = &mut self.running {
            if !self.practice.record.is_over(running.number) {
                // Not resolved: what the socket holds belongs to the response that is under way.
                let (frame, _) = Frame::read(text, &Chain::default());
                let entry = self.arrive(&frame, text.len(), false);
                say(frames::refuse(entry, &Refusal::already_answering()), wire).await;
                return Fate::Lives;
            }
            // It is over but not all of it was written.
            while let Some(part) = running.parts.recv().await {
                let fate = pass(part, wire).await;
                if fate != Fate::Lives {
                    return fate;
                }
            }
            self.running = None;
        }
        let (frame, verdict) = Frame::read(text, &self.chain);
        if frame.acknowledges() {
            return Fate::Lives;
        }
        let entry = self.arrive(&frame, text.len(), frame.generate);
        let limit = self.practice.scenario.socket_limit_after;
        if limit.is_some_and(|limit| self.turns >= limit) {
            say(frames::refuse(entry, &Refusal::socket_too_old()), wire).await;
            return Fate::Closes(NORMAL);
        }
        if let Err(refused) = verdict {
            say(frames::refuse(entry, &refused), wire).await;
            return Fate::Lives;
        }
        self.turns += usize::from(frame.generate);
        let number = entry.number;
        let exchange = Exchange {
            practice: self.practice.clone(),
            account: self.account.clone(),
            socket: self.open.number,
            conversation: self.received(&frame, 0).conversation,
            turn_state: http::text(&self.headers, wire::TURN_STATE_HEADER).map(str::to_owned),
            frame,
            chain: self.chain.clone(),
        };
        self.running = Some(Running { number, parts: exchange.start(entry) });
        Fate::Lives
    }

    fn received(&self, frame: &Frame, bytes: usize) -> Received {
        let ask = Ask { body: &frame.sent, marker: frame.marker.as_deref() };
        let path = format!("{BASE}{}", wire::RESPONSES_PATH);
        Received {
            transport: Transport::Ws,
            socket: Some(self.open.number),
            previous_response_id: frame.previous.clone(),
            history_items: frame.input().len(),
            whole: Some(frame.body.clone()),
            ..caller::received(&self.headers, &path, ask, bytes, Some(&self.account))
        }
    }

    fn arrive(&self, frame: &Frame, bytes: usize, response: bool) -> Entry {
        self.practice.record.arrive(self.received(frame, bytes), response)
    }

    /// Takes down a message that is not even a frame.
    fn reject(&self, bytes: usize, rule: &str) {
        let (frame, _) = Frame::read("", &self.chain);
        let entry = self.arrive(&frame, bytes, false);
        entry.violation(rule);
        entry.end("refused");
    }
}

async fn next(running: &mut Option<Running>) -> Option<Part> {
    match running {
        Some(running) => running.parts.recv().await,
        None => std::future::pending().await,
    }
}

async fn pass(part: Part, wire: &mut WebSocket) -> Fate {
    match part {
        Part::Bytes(text) => {
            say(text, wire).await;
            Fate::Lives
        }
        Part::Broken(None) => Fate::Drops,
        Part::Broken(Some(code)) => Fate::Closes(code),
        Part::Deaf => std::future::pending().await,
    }
}

async fn say(text: Bytes, wire: &mut WebSocket) {
    if let Ok(text) = Utf8Bytes::try_from(text) {
        // A client that left is noticed by reading.
        let _ = wire.send(Message::Text(text)).await;
    }
}

/// Says goodbye and waits for the answer, so that nothing that was written is lost.
async fn close(code: u16, wire: &mut WebSocket) {
    let goodbye = CloseFrame { code, reason: Utf8Bytes::default() };
    if wire.send(Message::Close(Some(goodbye))).await.is_ok() {
        let answered = async { while let Some(Ok(_)) = wire.recv().await {} };
        let _ = tokio::time::timeout(Duration::from_secs(5), answered).await;
    }
}

#[cfg(test)]
mod tests;
