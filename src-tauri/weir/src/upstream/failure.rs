//! What went wrong upstream: whose fault it is, and whether another account may be asked.
//!
//! The backend tells of limits and refusals in many shapes; all of them become one [`Failure`], by the rules of
//! [`super::classify`].
//!
//! **Invariant**: `retryable` is false wherever the backend may have begun to work on the request and did not say that it
//! failed.

use weir_core::dialect::event;

use super::classify::Said;
use crate::accounts::quota::Window;

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The request itself; no account would do better.
    Request,
    /// The account's usage limit: it cools until the reset.
    Limit,
    /// The account was asked too fast: it rests for a moment.
    Pace,
    /// The backend refuses the account as such: not paid for, deactivated, challenged.
    Account,
    /// The account's login was refused.
    Login,
    /// This account may not use this model.
    Entitlement,
    /// The backend.
    Backend,
    /// This machine's network, before a connection stood.
    Machine,
}

#[derive(Clone, Debug)]
pub struct Failure {
    pub source: Source,
    /// Whether the same turn may be sent with another account, as far as this failure is concerned.
    pub retryable: bool,
    /// The status that the client is told.
    pub status: u16,
    /// `error.type` for the client.
    pub kind: String,
    pub code: String,
    pub message: String,
    /// When a limit ends, in unix seconds.
    pub resets_at: Option<i64>,
    /// Seconds after which asking again makes sense, where the backend says so.
    pub retry_after: Option<i64>,
    pub plan: Option<String>,
    /// The sentence is Weir's own; the backend's may repeat what was asked.
    pub ours: bool,
    /// The backend's own answer, passed on as it came where there was one.
    pub body: Option<Vec<u8>>,
}

impl Failure {
    pub fn new(source: Source, retryable: bool, status: u16, code: &str, message: &str) -> Self {
        Self {
            source,
            retryable,
            status,
            kind: "upstream_error".into(),
            code: code.into(),
            message: message.into(),
            resets_at: None,
            retry_after: None,
            plan: None,
            ours: true,
            body: None,
        }
    }

    /// An answer with a status other than success.
    pub fn from_status(status: u16, body: &[u8]) -> Self {
        let mut failure = Said::in_body(body).classify(Some(status));
        // A redirect is no answer that a client could use.
        if status < 400 {
            failure.status = 502;
        }
        if serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() {
            failure.body = Some(body.to_vec());
        }
        failure
    }

    /// The request or frame was sent and what became of it is not known, so it is not sent again by us.
    pub(super) fn connection_lost() -> Self {
        Self::new(
            Source::Backend,
            false,
            502,
            "connection_lost",
            "The connection to the backend broke before it answered. Send the request again.",
        )
    }

    /// A limit that does not say when it ends ends with the window that is used up.
    pub fn learn_from(&mut self, windows: &[Window]) {
        if self.source == Source::Limit && self.resets_at.is_none() {
            let used_up = windows.iter().filter(|window| window.used_percent >= 100.0);
            self.resets_at = used_up.filter_map(|window| window.resets_at).max();
        }
    }

    /// An answer that says it is well and is no event stream: a failure as a document, or a page of something on the way.
    pub fn from_document(body: &[u8]) -> Self {
        let said = Said::in_body(body);
        if said.is_a_failure() {
            return said.classify(None);
        }
        // A whole answer was worked on; a page shows that the request came to nobody who could.
        let answered = body.trim_ascii_start().starts_with(b"{");
        Self::new(
            Source::Backend,
            !answered,
            502,
            "not_a_stream",
            "The backend answered with a page instead of a stream. Something between this machine and the backend may be in the way; open the backend's site in a browser, then send the request again.",
        )
    }

    /// A failure that arrived inside a stream.
    pub fn from_event(said: &event::Failure) -> Self {
        Said::in_event(said).classify(said.status)
    }
}
