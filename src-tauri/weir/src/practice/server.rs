//! The practice upstream as an HTTP server on loopback.
//!
//! It is started on any port, answers until it is stopped, and can be asked what it saw. One function answers
//! everything, so that everything is recorded, paths that do not exist included.
//!
//! **Invariant**: it listens on loopback only, and nothing of a bearer is kept.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header, request::Parts};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use weir_core::dialect::wire;

use super::accounts::{Account, Accounts};
use super::cache::Cache;
use super::catalog::Catalog;
use super::errors::Refusal;
use super::http::{put, refusal, refuse, text};
use super::play::Gates;
use super::record::{Entry, Received, Record};
use super::reply::Reply;
use super::request::Ask;
use super::script::{Rule, Scenario, Transport};
use super::turn::Turn;
use super::{Options, caller, handshake, http};

pub(super) const BASE: &str = "/backend-api/codex";
const USAGE: &str = "/backend-api/wham/usage";
/// What the backend takes at most, decoded.
const BODY_LIMIT: usize = 128 << 20;

/// A running practice upstream. Dropping it stops it; [`Server::stop`] also waits.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    practice: Arc<Practice>,
    serving: JoinHandle<()>,
}

/// What all requests share.
#[derive(Debug)]
pub(super) struct Practice {
    pub(super) accounts: Accounts,
    pub(super) catalog: Catalog,
    pub(super) cache: Cache,
    pub(super) scenario: Scenario,
    pub(super) record: Arc<Record>,
    pub(super) gates: Arc<Gates>,
    pub(super) stop: CancellationToken,
    /// The tasks of open sockets, which outlive their handshakes.
    pub(super) sockets: TaskTracker,
}

impl Server {
    /// Binds to loopback and serves. Fails if the port is taken or the record cannot be created.
    pub async fn start(options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let address = listener.local_addr()?;
        let practice = Arc::new(Practice {
            accounts: Accounts::new(&options.accounts),
            catalog: Catalog::new(&options.scenario),
            cache: Cache::default(),
            record: Arc::new(Record::new(options.record.as_deref())?),
            scenario: options.scenario,
            gates: Arc::new(Gates::default()),
            stop: CancellationToken::new(),
            sockets: TaskTracker::new(),
        });
        let router = Router::new().fallback(answer).with_state(practice.clone());
        let stop = practice.stop.clone();
        let serving = tokio::spawn(async move {
            let listener = listener.tap_io(|stream| {
                let _ = stream.set_nodelay(true);
            });
            let serve =
                axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
            if let Err(error) = serve.await {
                tracing::warn!(%error, "the practice upstream ended");
            }
        });
        Ok(Self { address, practice, serving })
    }

    /// `http://127.0.0.1:PORT/backend-api/codex`.
    pub fn base_url(&self) -> String {
        format!("http://{}{BASE}", self.address)
    }

    /// Every request so far, on any path, and every frame that asked for a response, in order of arrival. A handshake is
    /// among them if it was refused.
    pub fn requests(&self) -> Vec<Received> {
        self.practice.record.requests()
    }

    /// Every broken rule of every request, as `request N: …`.
    pub fn violations(&self) -> Vec<String> {
        self.practice.record.violations()
    }

    /// Lets the replies go on that wait for this gate, now and later.
    pub fn open_gate(&self, name: &str) {
        self.practice.gates.open(name);
    }

    /// Waits until the condition holds; it is asked again on every change. The condition must not call the server.
    pub async fn wait_for(&self, what: impl Fn(&[Received]) -> bool) {
        self.practice.record.wait_for(what).await;
    }

    /// How many WebSockets are open.
    pub fn open_sockets(&self) -> usize {
        self.practice.record.open_sockets()
    }

    /// Waits until exactly so many WebSockets are open.
    pub async fn wait_for_sockets(&self, open: usize) {
        self.practice.record.wait_for_sockets(open).await;
    }

    /// Breaks what is under way and returns when nothing listens any more and no socket is open.
    pub async fn stop(mut self) {
        self.practice.stop.cancel();
        self.practice.sockets.close();
        let ended = async {
            let _ = (&mut self.serving).await;
            self.practice.sockets.wait().await;
        };
        if tokio::time::timeout(Duration::from_secs(5), ended).await.is_err() {
            self.serving.abort();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.practice.stop.cancel();
    }
}

async fn answer(State(practice): State<Arc<Practice>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let below = parts.uri.path().strip_prefix(BASE).map(str::to_owned);
    let responses = below.as_deref() == Some(wire::RESPONSES_PATH);
    if responses && parts.method == Method::GET && parts.headers.contains_key(header::UPGRADE) {
        return handshake::answer(&practice, &mut parts).await;
    }
    let bytes = match read(&parts.headers, body).await {
        Ok(bytes) => bytes,
        Err(error) => {
            tracing::debug!(%error, "a request to the practice upstream could not be read");
            return refusal(Refusal::detail("Invalid body"), &[]);
        }
    };
    let body = serde_json::from_slice::<Value>(&bytes).unwrap_or_default();
    let post = responses && parts.method == Method::POST;
    let ask = Ask { body: &body, marker: text(&parts.headers, wire::LITE_HEADER) };
    let account = caller::account(&practice.accounts, &parts.headers);
    let known = account.map(|account| &**account);
    let received = caller::received(&parts.headers, parts.uri.path(), ask, bytes.len(), known);
    let conversation = received.conversation.clone();
    let entry = practice.record.arrive(received, post);
    let account = match caller::signed_in(account, &parts.headers) {
        Ok(account) => account,
        Err(refused) => return refuse(entry, refused),
    };
    if post {
        let turn = Turn {
            practice: &practice,
            account,
            ask,
            bytes: bytes.len(),
            conversation: conversation.as_deref(),
            place: caller::session(&parts.headers, &body),
            turn_state: text(&parts.headers, wire::TURN_STATE_HEADER),
            transport: Transport::Http,
            held: 0,
            previous: None,
        };
        return http::answer(turn, entry).await;
    }
    practice.look_up(entry, account, &parts)
}

impl Practice {
    /// What a rule says to this conversation, unless it is used up; counts as a use.
    pub(super) fn reply_of<'a>(
        &self,
        at: usize,
        rule: &'a Rule,
        conversation: Option<&str>,
    ) -> Option<&'a Reply> {
        let uses = self.record.use_rule(at, conversation);
        rule.replies.get(if rule.again { 0 } else { uses })
    }

    /// Everything that is not a response.
    fn look_up(&self, entry: Entry, account: &Account, parts: &Parts) -> Response {
        let path = parts.uri.path();
        let below = path.strip_prefix(BASE);
        let get = parts.method == Method::GET;
        let (body, etag) = if get && below == Some(wire::MODELS_PATH) {
            let query = parts.uri.query().unwrap_or_default();
            let version = query.split('&').find_map(|pair| pair.strip_prefix("client_version="));
            if version.is_none_or(str::is_empty) {
                let refused = Refusal::detail("Missing query parameter: client_version");
                return refuse(entry, refused);
            }
            let (body, etag) = self.catalog.listing(&account.name);
            (body, Some(etag))
        } else if get && path == USAGE {
            (self.accounts.usage(account), None)
        } else {
            return refuse(entry, Refusal::not_found());
        };
        entry.status(200);
        entry.end("completed");
        let mut response = axum::Json(body).into_response();
        put(
            response.headers_mut(),
            &etag.map(|etag| ("etag".to_owned(), etag)).into_iter().collect::<Vec<_>>(),
        );
        response
    }
}

/// The whole body, decoded.
async fn read(headers: &HeaderMap, body: Body) -> io::Result<Vec<u8>> {
    use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
    use tokio::io::{AsyncRead, AsyncReadExt};

    let bytes = to_bytes(body, BODY_LIMIT).await.map_err(io::Error::other)?;
    let decoder: Box<dyn AsyncRead + Unpin + Send> = match text(headers, "content-encoding") {
        None | Some("identity") => return Ok(bytes.into()),
        Some("zstd") => Box::new(ZstdDecoder::new(&bytes[..])),
        Some("gzip") => Box::new(GzipDecoder::new(&bytes[..])),
        Some(other) => return Err(io::Error::other(format!("content-encoding {other}"))),
    };
    let mut decoded = Vec::new();
    decoder.take(BODY_LIMIT as u64).read_to_end(&mut decoded).await?;
    Ok(decoded)
}
