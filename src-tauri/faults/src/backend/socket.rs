//! A WebSocket of the fake backend, which plays answers as messages.
//!
//! It keeps the last response of each connection, as the real backend does, so that a request which continues one can be
//! judged: what continues a response that is not known here is told so.
//!
//! **Invariant**: what is kept of a response is what was written of it, never what was meant.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{State, http};
use crate::check::said::{Role, Said};
use crate::fault::{Attempt, End, Road};
use crate::frames::{self, Form};
use crate::transcript::{BackendEnd, BackendSaw, Line, now};
use crate::wire::page;

/// A response that can be continued, and all that the backend has up to its end.
struct Kept {
    id: String,
    items: Vec<Value>,
}

/// What a handshake comes to, for an account and with the handshake's key.
pub(super) async fn shake_hands(
    mut socket: TcpStream,
    state: Arc<State>,
    account: usize,
    key: &str,
) {
    match state.road(account) {
        Road::Refused(status) => {
            drop(socket.write_all(&page(status, "application/json", b"{}")).await);
            // Whoever is refused closes first.
            drop(timeout(http::BOUND, socket.read(&mut [0; 16])).await);
        }
        Road::Hangs => drop(timeout(http::BOUND, socket.read(&mut [0; 16])).await),
        Road::Open => {
            let accept = derive_accept_key(key.as_bytes());
            let yes = format!(
                "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n\r\n"
            );
            let number = state.opened(account);
            if socket.write_all(yes.as_bytes()).await.is_ok() {
                serve(&mut socket, &state, account, number).await;
            }
            drop(socket);
            state.closed(number);
        }
    }
}

async fn serve(socket: &mut TcpStream, state: &State, account: usize, number: usize) {
    let mut bytes = Vec::new();
    let mut kept: Option<Kept> = None;
    let mut place = 0;
    while let Some(message) = next(socket, &mut bytes).await {
        let body: Value = serde_json::from_slice(&message).unwrap_or_default();
        let previous = body["previous_response_id"].as_str();
        let known = kept.take().filter(|kept| previous == Some(&*kept.id)).map(|kept| kept.items);
        let Some((model, turn, mut attempt)) = state.next(&message, true) else { return };
        if previous.is_some() && known.is_none() {
            attempt = unknown();
        }
        let input = body["input"].as_array().cloned().unwrap_or_default();
        let items = [known.clone().unwrap_or_default(), input].concat();
        let line = Line { socket: number, place, known };
        place += 1;
        let begun = Instant::now();
        let at = state.begin(&model, saw(turn, account, line, message));
        let mut late = Vec::new();
        let end = http::play(socket, &attempt, &mut late, |bytes| {
            state.with(&model, at, |saw| saw.writes.push((begun.elapsed(), bytes.to_vec())));
        })
        .await;
        let mut written = None;
        state.with(&model, at, |saw| {
            saw.end = end;
            saw.over = begun.elapsed();
            written = (end == BackendEnd::Kept).then(|| saw.clone());
        });
        bytes.extend(late);
        if end != BackendEnd::Kept {
            // A message that came while the connection was being closed: nobody answers it, but it was sent.
            while let Some(message) = take(&mut bytes) {
                let Some((model, turn, _)) = state.next(&message, true) else { return };
                let line = Line { socket: number, place, known: None };
                let late =
                    BackendSaw { end: BackendEnd::Closed, ..saw(turn, account, line, message) };
                state.begin(&model, late);
            }
            return;
        }
        kept = written.and_then(|saw| keep(&Said::of(&saw), items));
    }
}

fn saw(turn: usize, account: usize, line: Line, body: Vec<u8>) -> BackendSaw {
    BackendSaw {
        turn,
        account,
        line: Some(line),
        body,
        came: now(),
        writes: Vec::new(),
        end: BackendEnd::Abandoned,
        over: Duration::ZERO,
    }
}

/// What is left of a whole answer.
fn keep(said: &Said, mut items: Vec<Value>) -> Option<Kept> {
    let end = said.terminal().filter(|end| end.role == Role::Completed)?;
    let id = end.value["response"]["id"].as_str()?.to_owned();
    let done =
        said.events.iter().filter(|event| event.value["type"] == "response.output_item.done");
    items.extend(done.map(|event| event.value["item"].clone()));
    Some(Kept { id, items })
}

fn unknown() -> Attempt {
    let error = json!({"type": "error", "status": 400, "error": {"type": "invalid_request_error",
        "code": "previous_response_not_found", "message": "Previous response not found."}});
    let plain = Form { split: false, pings: false };
    let bytes = plain.message(&error.to_string(), &mut crate::chance::Chance::of(0));
    Attempt { writes: vec![(0, bytes)], end: End::Keep }
}

/// The next message of the other side; none where it left or said goodbye.
async fn next(socket: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if let Some(message) = take(bytes) {
            return Some(message);
        }
        match socket.read(&mut buffer).await {
            Ok(read @ 1..) => bytes.extend_from_slice(&buffer[..read]),
            _ => return None,
        }
    }
}

/// Takes a message from the bytes, once it is whole. Answers to pings are read and not wanted.
fn take(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut at = 0;
    let mut text = Vec::new();
    while let Some((frame, used)) = frames::asked(&bytes[at..]) {
        at += used;
        if frame.kind == frames::TEXT || frame.kind == frames::CONTINUATION {
            text.extend(frame.payload);
            if frame.last {
                bytes.drain(..at);
                return Some(text);
            }
        }
    }
    None
}
