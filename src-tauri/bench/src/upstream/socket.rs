//! The same answers over a WebSocket: a `response.create` frame in, one text frame for each event out.
//!
//! **Invariant**: one answer at a time on a socket, as on the real one.

use anyhow::Result;
use futures_util::{SinkExt as _, StreamExt as _};
use std::sync::atomic::Ordering;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::request::Incoming;
use super::{Pace, State, piece};
use crate::answer::{self, Event};
use crate::plan::Plan;

pub(super) async fn serve(state: &State, incoming: Incoming, key: &str) -> Result<()> {
    let Incoming { mut stream, ahead } = incoming;
    let accepted = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {}\r\n\r\n",
        derive_accept_key(key.as_bytes())
    );
    stream.write_all(accepted.as_bytes()).await?;
    let mut socket = WebSocketStream::from_partially_read(stream, ahead, Role::Server, None).await;
    while let Some(message) = socket.next().await {
        if let Message::Text(frame) = message? {
            turn(state, &mut socket, Plan::find(frame.as_bytes())).await?;
        }
    }
    Ok(())
}

async fn turn(state: &State, socket: &mut WebSocketStream<TcpStream>, plan: Plan) -> Result<()> {
    let _running = state.begin(plan).await;
    state.over_socket.fetch_add(1, Ordering::AcqRel);
    for event in answer::opening() {
        socket.feed(text(event)).await?;
    }
    socket.flush().await?;
    let mut pace = Pace::of(plan.gap);
    for number in 0..plan.deltas {
        if plan.gap.is_zero() {
            socket.feed(text(answer::delta(number, 0))).await?;
        } else {
            pace.next().await;
            socket.send(text(piece(number))).await?;
        }
    }
    for event in answer::closing(plan.deltas) {
        socket.feed(text(event)).await?;
    }
    Ok(socket.flush().await?)
}

fn text(event: Event) -> Message {
    Message::text(event.json)
}
