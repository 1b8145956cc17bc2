//! The practice upstream as an HTTP server on loopback.
//!
//! One function answers everything, so that everything is recorded. For a response it asks in the backend's order: who
//! is it, is the request well formed, is the model served in this lane, can this account read the ciphertext, what
//! does the script say, is there quota left.
//!
//! **Invariant**: every rule that a request breaks is recorded, whatever the script answers.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header, request::Parts};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use weir_core::dialect::wire;

use super::accounts::{Account, Accounts, hex};
use super::cache::Cache;
use super::catalog::Catalog;
use super::errors::Refusal;
use super::play::{Delivery, Gates};
use super::record::{Entry, Received, Record};
use super::request::{Ask, kind};
use super::script::{Point, Reply, Scenario, json};
use super::stream::{Composition, Ending};
use super::{Options, check, rules};

const BASE: &str = "/backend-api/codex";
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

#[derive(Debug)]
struct Practice {
    accounts: Accounts,
    catalog: Catalog,
    cache: Cache,
    scenario: Scenario,
    record: Arc<Record>,
    gates: Arc<Gates>,
    stop: CancellationToken,
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

    /// Every request so far, on any path, in order of arrival.
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

    /// Breaks what is under way and returns when nothing listens any more.
    pub async fn stop(mut self) {
        self.practice.stop.cancel();
        if tokio::time::timeout(Duration::from_secs(5), &mut self.serving).await.is_err() {
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
    let (parts, body) = request.into_parts();
    let bytes = match read(&parts.headers, body).await {
        Ok(bytes) => bytes,
        Err(error) => {
            tracing::debug!(%error, "a request to the practice upstream could not be read");
            return refusal(Refusal::detail("Invalid body"), &[]);
        }
    };
    let body = serde_json::from_slice::<Value>(&bytes).unwrap_or_default();
    let path = parts.uri.path().to_owned();
    let post =
        parts.method == Method::POST && path.strip_prefix(BASE) == Some(wire::RESPONSES_PATH);
    let bearer = text(&parts.headers, header::AUTHORIZATION.as_str());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    let account = practice.accounts.by_token(bearer);
    let received = received(&parts, path, &body, bytes.len(), account);
    let conversation = received.conversation.clone();
    let entry = practice.record.arrive(received, post);
    let account = match signed_in(account, &parts.headers) {
        Ok(account) => account,
        Err(refused) => return refuse(entry, refused),
    };
    if post {
        let marker = text(&parts.headers, wire::LITE_HEADER);
        let turn = Turn {
            practice: &practice,
            account,
            ask: Ask { body: &body, marker },
            bytes: bytes.len(),
            conversation: conversation.as_deref(),
            session: session(&parts.headers, &body),
            turn_state: text(&parts.headers, wire::TURN_STATE_HEADER),
        };
        return turn.answer(entry).await;
    }
    practice.look_up(entry, account, &parts)
}

/// What one response is answered from.
struct Turn<'a> {
    practice: &'a Practice,
    account: &'a Account,
    ask: Ask<'a>,
    bytes: usize,
    conversation: Option<&'a str>,
    session: Option<&'a str>,
    turn_state: Option<&'a str>,
}

impl Turn<'_> {
    async fn answer(self, entry: Entry) -> Response {
        if self.turn_state.is_some_and(|state| !self.account.opens(state)) {
            entry.violation("x-codex-turn-state is another account's");
        }
        if let Err(refused) = self.admit(&entry) {
            return refuse(entry, refused);
        }
        let reply = self.reply(&entry);
        let delivery = Delivery {
            reply,
            pace: self.practice.scenario.pace,
            gates: self.practice.gates.clone(),
            stop: self.practice.stop.clone(),
        };
        let stop = self.practice.stop.clone();
        tokio::select! {
            biased;
            response = self.deliver(delivery, entry) => response,
            () = stop.cancelled() => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        }
    }

    async fn deliver(self, delivery: Delivery, entry: Entry) -> Response {
        let Delivery { reply, .. } = &delivery;
        delivery.hold(Point::Headers, &entry).await;
        if reply.delay_headers_ms > 0 {
            tokio::time::sleep(Duration::from_millis(reply.delay_headers_ms)).await;
        }
        if reply.silent {
            return std::future::pending().await;
        }
        if let Some(status) = reply.status {
            return self.scripted_refusal(status, reply, entry);
        }
        if let Err(refused) = self.practice.accounts.charge(self.account) {
            return refuse(entry, refused);
        }
        let pieces = self.compose(reply, &entry).pieces();
        let headers = self.headers(reply, &entry);
        entry.status(200);
        let mut response = Body::from_stream(delivery.start(pieces, entry)).into_response();
        put(response.headers_mut(), &headers);
        response
    }

    /// Whether the backend would take this request from this account.
    fn admit(&self, entry: &Entry) -> Result<(), Refusal> {
        let broken = check::broken(self.ask);
        for rule in broken.iter().filter_map(|refusal| refusal.violation.as_deref()) {
            entry.violation(rule);
        }
        if let Some(mut first) = broken.into_iter().next() {
            // It is recorded already.
            first.violation = None;
            return Err(first);
        }
        self.practice.catalog.admit(&self.account.name, self.ask)?;
        for item in self.ask.input() {
            let sealed = matches!(kind(item), "reasoning" | "compaction");
            let content = item.get("encrypted_content").and_then(Value::as_str).filter(|_| sealed);
            if let Some(content) = content.filter(|content| !self.account.opens(content)) {
                return Err(Refusal::foreign_ciphertext(content));
            }
        }
        Ok(())
    }

    fn reply(&self, entry: &Entry) -> Reply {
        for (at, rule) in self.practice.scenario.rules.iter().enumerate() {
            if !rule.when.holds(self.ask, &self.account.name, entry.nth) {
                continue;
            }
            let uses = self.practice.record.use_rule(at, self.conversation);
            let turn = if rule.again { 0 } else { uses };
            if let Some(reply) = rule.replies.get(turn) {
                return reply.clone();
            }
        }
        rules::built_in(self.ask)
    }

    fn compose<'a>(&'a self, reply: &Reply, entry: &Entry) -> Composition<'a> {
        let body = self.ask.body;
        let cached = self.practice.cache.cached_bytes(&self.account.name, self.session, body);
        let number = entry.number.to_le_bytes();
        let ending = match reply {
            Reply { error_event: Some(fields), .. } => Ending::Error(json(fields)),
            Reply { failed_event: Some(error), .. } => Ending::Failed(json(error)),
            Reply { incomplete: Some(reason), .. } => Ending::Incomplete(reason.clone()),
            Reply { usage_limit_event: true, .. } => Ending::Error(self.limit_fields()),
            Reply { no_terminal: true, .. } => Ending::Nothing,
            _ => Ending::Completed { usage: !reply.no_usage },
        };
        let input_tokens = self.bytes.div_ceil(4);
        Composition {
            ask: self.ask,
            account: self.account,
            seed: hex(&[body.to_string().as_bytes(), &number], 16),
            created_at: self.practice.accounts.now(),
            limits: self.practice.accounts.event(self.account),
            limits_first: entry.number.is_multiple_of(2),
            input_tokens,
            cached_tokens: (cached / 4).min(input_tokens),
            items: rules::items(reply, self.ask),
            extra_events: reply.events.iter().map(json).collect(),
            think_ms: reply.think_ms.unwrap_or(400),
            ending,
        }
    }

    /// The fields of the usage limit inside a stream: the refusal's body beside what its head would say.
    fn limit_fields(&self) -> Value {
        let refused = self.practice.accounts.limit(self.account, None);
        let headers = refused.headers.into_iter().map(|(name, value)| (name, Value::from(value)));
        let mut fields = refused.body;
        fields["status_code"] = refused.status.into();
        fields["headers"] = Value::Object(headers.collect());
        fields
    }

    fn scripted_refusal(&self, status: u16, reply: &Reply, entry: Entry) -> Response {
        let mut refused = match status {
            401 => Refusal::token_invalidated(),
            429 => self.practice.accounts.limit(self.account, None),
            _ => Refusal::server(status),
        };
        refused.headers.extend(reply.headers.clone());
        let (content_type, text) = match (&reply.json, &reply.html) {
            (Some(toml::Value::String(text)), _) => ("application/json", text.clone()),
            (Some(value), _) => ("application/json", json(value).to_string()),
            (None, Some(page)) => ("text/html; charset=UTF-8", page.clone()),
            (None, None) => return refuse(entry, refused),
        };
        entry.status(status);
        entry.end("refused");
        let mut response = (code(status), text).into_response();
        put(response.headers_mut(), &refused.headers);
        put(response.headers_mut(), &[("content-type".to_owned(), content_type.to_owned())]);
        response
    }

    fn headers(&self, reply: &Reply, entry: &Entry) -> Vec<(String, String)> {
        let account = self.account;
        let request = format!("practice-{}", entry.number);
        let turn = format!("{} {}", self.conversation.unwrap_or_default(), self.ask.prompt());
        let mut headers = self.practice.accounts.headers(account);
        let own = [
            ("content-type", "text/event-stream; charset=utf-8".to_owned()),
            ("cache-control", "no-cache".to_owned()),
            ("x-request-id", request.clone()),
            ("x-oai-request-id", request),
            ("openai-model", self.ask.model().to_owned()),
            (wire::MODELS_ETAG_HEADER, self.practice.catalog.listing(&account.name).1),
            (wire::TURN_STATE_HEADER, account.seal(&turn)),
        ];
        headers.extend(own.map(|(name, value)| (name.to_owned(), value)));
        headers.extend(reply.headers.clone());
        headers
    }
}

impl Practice {
    /// Everything that is not a response.
    fn look_up(&self, entry: Entry, account: &Account, parts: &Parts) -> Response {
        let path = parts.uri.path();
        let below = path.strip_prefix(BASE);
        let get = parts.method == Method::GET;
        if get && below == Some(wire::RESPONSES_PATH) && parts.headers.contains_key(header::UPGRADE)
        {
            return refuse(entry, Refusal::no_websocket());
        }
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

fn signed_in<'a>(
    account: Option<&'a Account>,
    headers: &HeaderMap,
) -> Result<&'a Account, Refusal> {
    let account = account.ok_or_else(Refusal::token_invalidated)?;
    match text(headers, wire::ACCOUNT_HEADER) {
        Some(id) if id == account.account_id => Ok(account),
        other => Err(Refusal::wrong_account(other)),
    }
}

fn received(
    parts: &Parts,
    path: String,
    body: &Value,
    bytes: usize,
    account: Option<&Account>,
) -> Received {
    let headers = &parts.headers;
    let ask = Ask { body, marker: text(headers, wire::LITE_HEADER) };
    let account = account.map(|account| account.name.clone());
    let shown = headers.iter().map(|(name, value)| {
        let value = match *name == header::AUTHORIZATION {
            true => account.as_deref().unwrap_or("unknown").to_owned(),
            false => String::from_utf8_lossy(value.as_bytes()).into_owned(),
        };
        (name.to_string(), value)
    });
    let first = |names: &[&str]| names.iter().find_map(|name| text(headers, name));
    let conversation = first(&["thread-id", "x-session-id", "session-id"]);
    let parents = ["x-parent-session-id", "x-codex-parent-thread-id"];
    let parent = first(&parents).or_else(|| parents.iter().find_map(|name| ask.metadata(name)));
    Received {
        path,
        headers: shown.collect(),
        account,
        bytes,
        model: ask.model().to_owned(),
        lite: ask.lite(),
        conversation: conversation.or_else(|| ask.str("prompt_cache_key")).map(str::to_owned),
        parent: parent.map(str::to_owned),
        body: body.clone(),
        ..Received::default()
    }
}

/// The key under which the backend caches.
fn session<'a>(headers: &'a HeaderMap, body: &'a Value) -> Option<&'a str> {
    let key = body.get("prompt_cache_key").and_then(Value::as_str);
    key.or_else(|| text(headers, "session-id"))
}

fn refuse(entry: Entry, refused: Refusal) -> Response {
    if let Some(rule) = &refused.violation {
        entry.violation(rule);
    }
    entry.status(refused.status);
    let request = [("x-request-id".to_owned(), format!("practice-{}", entry.number))];
    entry.end("refused");
    refusal(refused, &request)
}

fn refusal(refused: Refusal, headers: &[(String, String)]) -> Response {
    let mut response = (code(refused.status), axum::Json(refused.body)).into_response();
    put(response.headers_mut(), &refused.headers);
    put(response.headers_mut(), headers);
    response
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Adds headers; one that HTTP cannot carry is left out.
fn put(headers: &mut HeaderMap, more: &[(String, String)]) {
    for (name, value) in more {
        if let (Ok(name), Ok(value)) = (name.parse::<header::HeaderName>(), value.parse()) {
            headers.insert(name, value);
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
