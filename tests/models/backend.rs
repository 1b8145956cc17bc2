//! A backend whose catalog is given as bytes, and an endpoint over accounts of it.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use weir::accounts::account::Account;
use weir::accounts::secret::Secret;
use weir::turn::Shared;
use weir_core::dialect::mode::ServingMode;

use crate::support::bare::{KEY, endpoint};
use crate::support::raw::stream;

/// What the backend answers, and the heads of what it was asked, in lower case.
#[derive(Clone, Default)]
struct State {
    models: Vec<u8>,
    etag: String,
    asked: Vec<String>,
}

/// Answers `/models` with the bytes that it was given, and every turn with "pong" and the tag of its list.
pub(super) struct Backend {
    address: String,
    state: Arc<watch::Sender<State>>,
}

impl Backend {
    /// `models` is a whole HTTP answer.
    pub(super) async fn start(models: &[u8]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let head = String::from_utf8_lossy(models).into_owned();
        let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap_or_default();
        let first = State { models: models.to_vec(), etag: etag.to_owned(), asked: Vec::new() };
        let state = Arc::new(watch::Sender::new(first));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(answer(socket, Arc::clone(&shared)));
            }
        });
        Self { address, state }
    }

    /// From now on the list is this one.
    pub(super) fn list(&self, status: u16, etag: &str, body: &str) {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\netag: {etag}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.state.send_modify(|state| {
            state.models = answer.into_bytes();
            state.etag = etag.to_owned();
        });
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.state.borrow().asked.clone()
    }

    /// Waits until the list was asked for so often.
    pub(super) async fn asked_for_models(&self, times: usize) {
        let lists = |state: &State| {
            state.asked.iter().filter(|head| head.starts_with("get /models")).count()
        };
        let mut state = self.state.subscribe();
        let asked = state.wait_for(|state| lists(state) >= times);
        let asked = tokio::time::timeout(Duration::from_secs(60), asked).await;
        asked.expect("the list is asked for").expect("the sender lives in self");
    }

    pub(super) fn account(&self, id: &str) -> Account {
        Account {
            id: id.into(),
            name: id.into(),
            plan: None,
            base_url: format!("http://{}", self.address),
            backend_account_id: None,
            token: Secret::new("raw-token"),
        }
    }
}

async fn answer(mut socket: TcpStream, state: Arc<watch::Sender<State>>) {
    let mut read = Vec::new();
    loop {
        if !socket.read_buf(&mut read).await.is_ok_and(|length| length > 0) {
            return;
        }
        let text = String::from_utf8_lossy(&read).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() < length.unwrap_or(0) {
            continue;
        }
        let now = state.borrow().clone();
        let bytes = if head.starts_with("get /models") {
            let text = String::from_utf8_lossy(&now.models).into_owned();
            text.replacen("\r\n", "\r\nconnection: close\r\n", 1).into_bytes()
        } else {
            let tag = format!("\r\nx-models-etag: {}\r\n", now.etag);
            let text = String::from_utf8_lossy(&stream(PONG)).into_owned();
            text.replacen("\r\n", &tag, 1).into_bytes()
        };
        let head = head.to_owned();
        state.send_modify(|state| state.asked.push(head));
        drop(socket.write_all(&bytes).await);
        drop(socket.shutdown().await);
        return;
    }
}

const PONG: &str = concat!(
    "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"output\":[]},\"sequence_number\":0}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"msg_1\",\"type\":\"message\",",
    "\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"pong\"}]},\"sequence_number\":1}\n\n",
    "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"output\":[],\"usage\":",
    "{\"input_tokens\":1,\"output_tokens\":1,\"total_tokens\":2}},\"sequence_number\":2}\n\n",
);

/// An endpoint over given accounts.
pub(super) struct Served {
    origin: String,
    shared: Arc<Shared>,
    http: reqwest::Client,
}

impl Served {
    pub(super) async fn start<const N: usize>(accounts: [Account; N]) -> Self {
        let (origin, shared) = endpoint(accounts).await;
        Self { origin, shared, http: crate::support::client::http() }
    }

    pub(super) fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.http.get(format!("{}{path}", self.origin)).bearer_auth(KEY)
    }

    pub(super) fn turn(&self, model: &str) -> reqwest::RequestBuilder {
        let body = crate::support::plain(model);
        self.http.post(format!("{}/v1/responses", self.origin)).bearer_auth(KEY).json(&body)
    }

    pub(super) async fn set_mode(&self, model: &str, mode: ServingMode) {
        let (shared, model) = (Arc::clone(&self.shared), model.to_owned());
        let set = tokio::task::spawn_blocking(move || shared.modes.set(&model, mode)).await;
        set.expect("no panic").expect("it is written");
    }

    /// Waits until no task works on anything any more.
    pub(super) async fn settle(&self) {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        self.shared.tasks.reopen();
    }
}
