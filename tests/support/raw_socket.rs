//! A backend that answers each frame of a WebSocket with given events.
//!
//! Connections are counted from one; each has its own script, and says nothing once that is over. What is asked as a
//! request of its own gets the model list, or the one answer given for it.

use std::sync::{Arc, Mutex};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use weir::accounts::account::Account;

use super::raw::{account, model_list, stream};

/// For each frame of a connection, the events that answer it.
pub(crate) type Script = Vec<Vec<String>>;

pub(crate) struct RawSockets {
    address: String,
    seen: Arc<Mutex<Vec<(usize, Value)>>>,
}

/// The lines of a fixture.
pub(crate) fn lines(fixture: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(fixture).expect("UTF-8");
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

impl RawSockets {
    /// `posted` answers every request of its own for a response.
    pub(crate) async fn start(scripts: Vec<Script>, posted: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let seen = Arc::<Mutex<Vec<_>>>::default();
        let kept = Arc::clone(&seen);
        tokio::spawn(async move {
            let mut scripts = scripts.into_iter();
            let mut number = 0;
            while let Ok((socket, _)) = listener.accept().await {
                let asked = beginning(&socket).await;
                if asked.to_ascii_lowercase().contains("upgrade: websocket") {
                    number += 1;
                    let script = scripts.next().unwrap_or_default();
                    tokio::spawn(talk(socket, number, script, Arc::clone(&kept)));
                } else {
                    tokio::spawn(answer(socket, asked, posted.clone(), Arc::clone(&kept)));
                }
            }
        });
        Self { address, seen }
    }

    /// The frames that arrived, with the number of their connection; 0 for a request of its own.
    pub(crate) fn frames(&self) -> Vec<(usize, Value)> {
        self.seen.lock().expect("no panic").clone()
    }

    pub(crate) fn account(&self, id: &str) -> Account {
        account(&self.address, id)
    }
}

/// The head of a request, which stays to be read.
async fn beginning(socket: &TcpStream) -> String {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let count = socket.peek(&mut bytes).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes[..count]);
        if count == 0 || text.contains("\r\n\r\n") {
            return text.into_owned();
        }
        tokio::task::yield_now().await;
    }
}

type Seen = Arc<Mutex<Vec<(usize, Value)>>>;

async fn talk(socket: TcpStream, number: usize, script: Script, seen: Seen) {
    let mut wire = tokio_tungstenite::accept_async(socket).await.expect("a handshake");
    let mut script = script.into_iter();
    while let Some(Ok(message)) = wire.next().await {
        let Message::Text(text) = message else { continue };
        let frame = serde_json::from_str(&text).expect("a frame is JSON");
        seen.lock().expect("no panic").push((number, frame));
        for event in script.next().unwrap_or_default() {
            if wire.send(Message::Text(event.into())).await.is_err() {
                return;
            }
        }
    }
}

async fn answer(mut socket: TcpStream, asked: String, posted: Vec<String>, seen: Seen) {
    let mut taken = vec![0; 256 * 1024];
    let _ = socket.read(&mut taken).await;
    let reply = if asked.starts_with("POST ") {
        seen.lock().expect("no panic").push((0, Value::Null));
        stream(&posted.iter().map(|event| format!("data: {event}\n\n")).collect::<String>())
    } else {
        model_list()
    };
    let _ = socket.write_all(&reply).await;
    let _ = socket.shutdown().await;
}
