//! Sends one turn and returns its events: over its conversation's connection where it can, else as a request of its own.
//!
//! **Invariant**: the backend gets a turn once, unless it says that it did nothing with it; whether it is sent again then is
//! the turn's decision.

use std::sync::Arc;

use futures_util::StreamExt as _;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use weir_core::dialect::body::Body;
use weir_core::dialect::mode::Dialect;
use weir_core::dialect::wire;

use super::failure::{Failure, Source};
use super::headers::{self, Names};
use super::held::{self, Otherwise};
use super::sockets::{Key, Sockets};
use super::stream::{Events, error_text};
use super::unpack::{Pieces, unpacked};
use crate::accounts::account::Account;
use crate::accounts::quota::Window;

/// The most that is read of an answer that is not a stream.
const ERROR_BODY_LIMIT: usize = 256 * 1024;

/// The clients' connection pool towards backends.
#[derive(Clone, Debug)]
pub struct Upstream {
    client: reqwest::Client,
    /// For backends on this machine, to which no proxy leads.
    local: reqwest::Client,
    /// The same two for handshakes, which HTTP/2 does not know.
    handshakes: reqwest::Client,
    local_handshakes: reqwest::Client,
    sockets: Arc<Sockets>,
}

/// One turn on its way out.
#[derive(Debug)]
pub struct Outgoing<'a> {
    pub account: &'a Account,
    /// The client's headers; only those that may leave do.
    pub client_headers: &'a HeaderMap,
    pub names: Names<'a>,
    pub dialect: Dialect,
    pub body: &'a Body,
    /// Whose connection it may use. None: it goes as a request of its own.
    pub key: Option<&'a Key>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Sse,
    Ws,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Socket {
    New,
    Reused,
}

/// What was sent of a turn's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Only the last `items` of all.
    New { items: usize },
    /// Everything, and why, in words.
    Whole(String),
}

/// How a turn went out, as far as it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub transport: Transport,
    pub socket: Option<Socket>,
    pub input: Input,
    /// Of all tries together.
    pub bytes: usize,
}

impl Sent {
    /// Nothing was sent yet.
    pub fn nothing() -> Self {
        let input = Input::Whole(String::new());
        Self { transport: Transport::Sse, socket: None, input, bytes: 0 }
    }

    pub(super) fn note(
        &mut self,
        transport: Transport,
        socket: Option<Socket>,
        input: Input,
        bytes: usize,
    ) {
        *self = Self { transport, socket, input, bytes: self.bytes + bytes };
    }
}

/// A stream that the backend has begun.
pub struct Opened {
    pub events: Events,
    /// What the answer's headers tell of the account's windows.
    pub windows: Vec<Window>,
    /// The tag of the model list that the backend now has.
    pub models_etag: Option<String>,
    /// Headers of the answer that the client may use.
    pub passed_on: HeaderMap,
}

impl Upstream {
    /// Errors: the machine's certificate store or resolver cannot be used.
    pub fn new() -> Result<Self, reqwest::Error> {
        let builder = || {
            reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .tcp_nodelay(true)
                .connect_timeout(std::time::Duration::from_secs(15))
        };
        let handshakes = || builder().http1_only().pool_max_idle_per_host(0);
        Ok(Self {
            client: builder().build()?,
            local: builder().no_proxy().build()?,
            handshakes: handshakes().build()?,
            local_handshakes: handshakes().no_proxy().build()?,
            sockets: Arc::default(),
        })
    }

    /// The client that reaches a backend.
    pub(super) fn client(&self, base_url: &str) -> &reqwest::Client {
        if is_loopback(base_url) { &self.local } else { &self.client }
    }

    /// The client that shakes hands with a backend.
    pub(super) fn handshakes(&self, base_url: &str) -> &reqwest::Client {
        if is_loopback(base_url) { &self.local_handshakes } else { &self.handshakes }
    }

    pub(super) fn sockets(&self) -> &Arc<Sockets> {
        &self.sockets
    }

    /// Closes what is kept open between turns.
    pub async fn close(&self) {
        self.sockets.close().await;
    }

    /// Sends a turn, and waits until the backend has taken it or not. `sent` is told what leaves before it does.
    pub async fn open(&self, turn: Outgoing<'_>, sent: &mut Sent) -> Result<Opened, Failure> {
        let why = match turn.key {
            Some(key) => match held::open(self, &turn, key, sent).await {
                Ok(opened) => return Ok(opened),
                Err(Otherwise::Failed(failure)) => return Err(failure),
                Err(Otherwise::NotNow(why)) => why.sentence(),
            },
            None => String::new(),
        };
        self.request(turn, why, sent).await
    }

    /// Sends a turn as a request of its own.
    async fn request(
        &self,
        turn: Outgoing<'_>,
        why: String,
        sent: &mut Sent,
    ) -> Result<Opened, Failure> {
        let url = format!("{}{}", turn.account.base_url, wire::RESPONSES_PATH);
        let headers =
            headers::for_turn(turn.account, turn.client_headers, turn.names, turn.dialect)
                .map_err(|_| unusable_token(turn.account))?;
        let body = bytes::Bytes::from(turn.body.to_bytes());
        sent.note(Transport::Sse, None, Input::Whole(why), body.len());
        let answer =
            self.client(&turn.account.base_url).post(url).headers(headers).body(body).send().await;
        let answer = answer.map_err(|error| not_sent(&error))?;
        let (status, head) = (answer.status(), answer.headers().clone());
        let windows = headers::windows(&head);
        let text = |name: &str| Some(head.get(name)?.to_str().ok()?.to_owned());
        // What cannot be unpacked cannot be read: it is treated as a page would be.
        let bytes = unpacked(&head, answer.bytes_stream());
        let known = bytes.is_some();
        let bytes = bytes.unwrap_or_else(|| futures_util::stream::empty().boxed());
        if !status.is_success() {
            let mut failure = Failure::from_status(status.as_u16(), &beginning(bytes).await);
            let told = text(RETRY_AFTER.as_str()).and_then(|wait| wait.parse().ok());
            failure.retry_after = told.or(failure.retry_after);
            failure.learn_from(&windows);
            return Err(failure);
        }
        let kind = text(CONTENT_TYPE.as_str());
        let stream_like =
            known && kind.as_ref().is_none_or(|kind| kind.starts_with("text/event-stream"));
        if !stream_like {
            tracing::warn!(
                content_type = kind,
                content_encoding = text(CONTENT_ENCODING.as_str()),
                "the backend answered with something that is no event stream"
            );
            return Err(Failure::from_document(&beginning(bytes).await));
        }
        Ok(Opened {
            windows,
            models_etag: text(wire::MODELS_ETAG_HEADER),
            passed_on: headers::for_client(&head),
            events: Events::new(bytes),
        })
    }
}

fn is_loopback(base_url: &str) -> bool {
    let loopback = ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"];
    loopback.iter().any(|start| base_url.starts_with(start))
}

/// As much of an answer's body as an error message can be.
async fn beginning(mut bytes: Pieces) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(Ok(piece)) = bytes.next().await {
        body.extend_from_slice(&piece);
        if body.len() > ERROR_BODY_LIMIT {
            body.truncate(ERROR_BODY_LIMIT);
            break;
        }
    }
    body
}

fn not_sent(error: &reqwest::Error) -> Failure {
    tracing::warn!(error = error_text(error), "the backend could not be asked");
    if error.is_connect() {
        return Failure::new(
            Source::Machine,
            false,
            503,
            "backend_unreachable",
            "Weir could not connect to the backend. Check this machine's network; no account is at fault.",
        );
    }
    Failure::connection_lost()
}

fn unusable_token(account: &Account) -> Failure {
    let message = format!(
        "The token of account {} cannot be sent. Sign that account in again.",
        account.name
    );
    Failure::new(Source::Login, true, 401, "unusable_token", &message)
}
