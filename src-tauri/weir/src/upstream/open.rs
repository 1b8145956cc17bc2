//! Sends one turn and returns its events.
//!
//! **Invariant**: a request is sent once; whether it is sent again is the turn's decision.

use http::HeaderMap;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use weir_core::dialect::mode::Dialect;
use weir_core::dialect::wire;

use super::failure::{Failure, Source};
use super::headers::{self, Names};
use super::stream::{Events, error_text};
use crate::accounts::account::Account;
use crate::accounts::quota::{self, Window};

/// The most that is read of an answer that is not a stream.
const ERROR_BODY_LIMIT: usize = 256 * 1024;

/// The clients' connection pool towards backends.
#[derive(Clone, Debug)]
pub struct Upstream {
    client: reqwest::Client,
    /// For backends on this machine, to which no proxy leads.
    local: reqwest::Client,
}

/// One turn on its way out.
#[derive(Debug)]
pub struct Outgoing<'a> {
    pub account: &'a Account,
    /// The client's headers; only those that may leave do.
    pub client_headers: &'a HeaderMap,
    pub names: Names<'a>,
    pub dialect: Dialect,
    pub body: bytes::Bytes,
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
        Ok(Self { client: builder().build()?, local: builder().no_proxy().build()? })
    }

    /// The client that reaches a backend.
    pub(super) fn client(&self, base_url: &str) -> &reqwest::Client {
        let loopback = ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"];
        if loopback.iter().any(|start| base_url.starts_with(start)) {
            &self.local
        } else {
            &self.client
        }
    }

    pub async fn open(&self, turn: Outgoing<'_>) -> Result<Opened, Failure> {
        let url = format!("{}{}", turn.account.base_url, wire::RESPONSES_PATH);
        let headers =
            headers::for_turn(turn.account, turn.client_headers, turn.names, turn.dialect)
                .map_err(|_| unusable_token(turn.account))?;
        let sent = self
            .client(&turn.account.base_url)
            .post(url)
            .headers(headers)
            .body(turn.body)
            .send()
            .await;
        let answer = sent.map_err(|error| not_sent(&error))?;
        let status = answer.status();
        let windows = windows(answer.headers());
        if !status.is_success() {
            let retry_after =
                answer.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
            let mut failure = Failure::from_status(status.as_u16(), &beginning(answer).await);
            failure.retry_after = retry_after;
            if failure.source == Source::Limit && failure.resets_at.is_none() {
                let used_up = windows.iter().filter(|window| window.used_percent >= 100.0);
                failure.resets_at = used_up.filter_map(|window| window.resets_at).max();
            }
            return Err(failure);
        }
        let text = |name: &str| Some(answer.headers().get(name)?.to_str().ok()?.to_owned());
        let stream_like =
            text(CONTENT_TYPE.as_str()).is_none_or(|kind| kind.starts_with("text/event-stream"));
        if !stream_like {
            tracing::warn!(
                content_type = text(CONTENT_TYPE.as_str()),
                "the backend answered with something that is no event stream"
            );
            return Err(Failure::new(
                Source::Backend,
                true,
                502,
                "not_a_stream",
                "The backend answered with a page instead of a stream. Something between this machine and the backend may be in the way; open the backend's site in a browser, then send the request again.",
            ));
        }
        Ok(Opened {
            windows,
            models_etag: text(wire::MODELS_ETAG_HEADER),
            passed_on: headers::for_client(answer.headers()),
            events: Events::new(answer.bytes_stream()),
        })
    }
}

fn windows(headers: &HeaderMap) -> Vec<Window> {
    quota::from_headers(|name| headers.get(name)?.to_str().ok())
}

/// As much of an answer's body as an error message can be.
async fn beginning(mut answer: reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = answer.chunk().await {
        body.extend_from_slice(&chunk);
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
    // The request may have been read, so it is not sent again by us.
    Failure::new(
        Source::Backend,
        false,
        502,
        "connection_lost",
        "The connection to the backend broke before it answered. Send the request again.",
    )
}

fn unusable_token(account: &Account) -> Failure {
    let message = format!(
        "The token of account {} cannot be sent. Sign that account in again.",
        account.name
    );
    Failure::new(Source::Login, true, 401, "unusable_token", &message)
}
