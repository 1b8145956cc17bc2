//! A backend that sends given bytes, for what a well-behaved one never sends.
//!
//! It answers `/models` with one model and each `/responses` with the next of its scripted answers; the requests it
//! got are kept.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use weir::accounts::account::Account;
use weir::accounts::secret::Secret;

/// The model that it lists; not Lite.
pub(crate) const MODEL: &str = "raw-model";

pub(crate) struct RawBackend {
    address: String,
    seen: Arc<Mutex<Vec<String>>>,
    gate: Arc<Semaphore>,
}

/// The head of an event stream whose length is told by its end.
pub(crate) fn stream(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
        .into_bytes()
}

/// The same, of a connection that breaks: more was announced than comes.
pub(crate) fn broken(body: &[u8]) -> Vec<u8> {
    let length = body.len() + 1;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// A write that waits for [`RawBackend::release`].
pub(crate) const GATE: Vec<u8> = Vec::new();

impl RawBackend {
    /// Each answer is a list of writes.
    pub(crate) async fn start(answers: Vec<Vec<Vec<u8>>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answers, kept) = (Arc::new(Mutex::new(answers.into_iter())), Arc::clone(&seen));
        let gate = Arc::new(Semaphore::new(0));
        let held = Arc::clone(&gate);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let held = Arc::clone(&held);
                tokio::spawn(answer(socket, Arc::clone(&answers), Arc::clone(&kept), held));
            }
        });
        Self { address, seen, gate }
    }

    /// Lets one write pass that waits.
    pub(crate) fn release(&self) {
        self.gate.add_permits(1);
    }

    /// The bodies of the turns that arrived.
    pub(crate) fn turns(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").clone()
    }

    pub(crate) fn account(&self, id: &str) -> Account {
        account(&self.address, id)
    }
}

/// An account that is served at this address.
pub(crate) fn account(address: &str, id: &str) -> Account {
    Account {
        id: id.into(),
        name: id.into(),
        plan: None,
        base_url: format!("http://{address}"),
        backend_account_id: None,
        token: Secret::new("raw-token"),
    }
}

/// The answer that lists [`MODEL`].
pub(crate) fn model_list() -> Vec<u8> {
    let list = format!("{{\"models\":[{{\"slug\":\"{MODEL}\",\"use_responses_lite\":false}}]}}");
    let length = list.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{list}")
        .into_bytes()
}

type Answers = Arc<Mutex<std::vec::IntoIter<Vec<Vec<u8>>>>>;

async fn answer(
    mut socket: TcpStream,
    answers: Answers,
    seen: Arc<Mutex<Vec<String>>>,
    gate: Arc<Semaphore>,
) {
    let request = read_request(&mut socket).await;
    let writes = if request.starts_with("GET ") {
        vec![model_list()]
    } else {
        let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        seen.lock().expect("no panic").push(body.to_owned());
        answers.lock().expect("no panic").next().unwrap_or_default()
    };
    for bytes in writes {
        if bytes == GATE {
            gate.acquire().await.expect("never closed").forget();
            continue;
        }
        if socket.write_all(&bytes).await.is_err() {
            return;
        }
        drop(socket.flush().await);
        // Another task gets the chance to read, so that writes arrive apart.
        tokio::task::yield_now().await;
    }
    drop(socket.shutdown().await);
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = socket.read(&mut buffer).await.unwrap_or(0);
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
            });
            if body.len() >= length.unwrap_or(0) {
                return text.into_owned();
            }
        }
        if read == 0 {
            return text.into_owned();
        }
    }
}
