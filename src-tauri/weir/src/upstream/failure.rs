//! What went wrong upstream: whose fault it is, and whether another account may be asked.
//!
//! The backend tells of limits and refusals in many shapes (a status, an `error` event, a `response.failed`, an
//! `incomplete` that is really a quota); all of them become one [`Failure`] here.
//!
//! **Invariant**: `retryable` is false wherever the backend may have begun to work on the request and did not say that it
//! failed.

use serde_json::Value;
use weir_core::dialect::event;

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
        let said = serde_json::from_slice::<Value>(body).ok();
        let facts = said.as_ref().map(Facts::read).unwrap_or_default();
        let mut failure = facts.classify(Some(status));
        // A redirect is no answer that a client could use.
        failure.status = if status >= 400 { status } else { 502 };
        failure.body = said.is_some().then(|| body.to_vec());
        failure
    }

    /// A limit that does not say when it ends ends with the window that is used up.
    pub fn learn_from(&mut self, windows: &[Window]) {
        if self.source == Source::Limit && self.resets_at.is_none() {
            let used_up = windows.iter().filter(|window| window.used_percent >= 100.0);
            self.resets_at = used_up.filter_map(|window| window.resets_at).max();
        }
    }

    /// A failure that arrived inside a stream.
    pub fn from_event(said: &event::Failure) -> Self {
        let facts = Facts {
            kind: said.kind.clone(),
            code: said.code.clone(),
            message: Some(said.message.clone()),
            reason: said.reason.clone(),
            param: None,
            resets_at: said.resets_at,
            plan: said.plan_type.clone(),
        };
        facts.classify(said.status)
    }
}

/// What a body or an event says of a failure, whatever its shape.
#[derive(Debug, Default)]
struct Facts {
    kind: Option<String>,
    code: Option<String>,
    message: Option<String>,
    reason: Option<String>,
    param: Option<String>,
    resets_at: Option<i64>,
    plan: Option<String>,
}

impl Facts {
    fn read(body: &Value) -> Self {
        let error = body.get("error").unwrap_or(body);
        let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            kind: text("type"),
            code: text("code"),
            message: text("message").or_else(|| {
                let detail = body.get("detail").or_else(|| body.get("error"))?;
                Some(detail.as_str().map_or_else(|| detail.to_string(), str::to_owned))
            }),
            reason: None,
            param: text("param"),
            resets_at: error.get("resets_at").and_then(Value::as_i64),
            plan: text("plan_type"),
        }
    }

    fn says(&self, words: &[&str]) -> bool {
        let fields = [&self.kind, &self.code, &self.reason];
        fields.into_iter().flatten().any(|said| words.contains(&said.as_str()))
    }

    fn classify(self, status: Option<u16>) -> Failure {
        const LIMITS: [&str; 5] = [
            "usage_limit_reached",
            "usage_limit_exceeded",
            "insufficient_quota",
            "workspace_owner_credits_depleted",
            "workspace_member_credits_depleted",
        ];
        let (source, retryable, told) = if self.says(&LIMITS) {
            (Source::Limit, true, 429)
        } else if self.says(&["rate_limit_exceeded"]) || status == Some(429) {
            (Source::Pace, true, 429)
        } else if self.says(&["token_invalidated", "token_revoked", "invalid_api_key"])
            || status == Some(401)
        {
            (Source::Login, true, 401)
        } else if self.says(&["usage_not_included"]) || matches!(status, Some(402 | 403)) {
            (Source::Account, true, 403)
        } else if self.says(&["model_not_found"])
            || (status == Some(404) && self.param.as_deref() == Some("model"))
        {
            (Source::Entitlement, true, 404)
        } else if self.says(&[
            "server_error",
            "server_is_overloaded",
            "overloaded_error",
            "slow_down",
        ]) || status.is_some_and(|status| status >= 500)
        {
            (Source::Backend, true, 503)
        } else if status.is_some_and(|status| (400..500).contains(&status))
            || self.says(&["invalid_request_error", "context_length_exceeded", "invalid_prompt"])
        {
            (Source::Request, false, 400)
        } else {
            (Source::Backend, false, 502)
        };
        Failure {
            source,
            retryable,
            status: status.filter(|status| *status >= 400).unwrap_or(told),
            code: self.code.or_else(|| self.kind.clone()).or(self.reason).unwrap_or_else(|| "upstream_error".into()),
            kind: self.kind.unwrap_or_else(|| "upstream_error".into()),
            message: self.message.filter(|message| !message.is_empty()).unwrap_or_else(|| {
                "The backend refused the request without saying why. Send it again, or look at `weir turns`.".into()
            }),
            resets_at: self.resets_at,
            retry_after: None,
            plan: self.plan,
            ours: false,
            body: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_answer_has_its_source() {
        let cases: [(u16, &str, Source, bool); 11] = [
            (
                429,
                r#"{"error":{"type":"usage_limit_reached","resets_at":5,"plan_type":"plus"}}"#,
                Source::Limit,
                true,
            ),
            (429, "", Source::Pace, true),
            (402, r#"{"error":{"message":"pay"}}"#, Source::Account, true),
            (403, "<html>challenge</html>", Source::Account, true),
            (
                401,
                r#"{"error":{"code":"token_invalidated","type":"invalid_request_error"}}"#,
                Source::Login,
                true,
            ),
            (403, r#"{"error":{"type":"usage_not_included"}}"#, Source::Account, true),
            (
                404,
                r#"{"error":{"type":"invalid_request_error","param":"model"}}"#,
                Source::Entitlement,
                true,
            ),
            (400, r#"{"detail":"Unsupported parameter: top_p"}"#, Source::Request, false),
            (
                400,
                r#"{"error":{"type":"invalid_request_error","code":"unsupported_value"}}"#,
                Source::Request,
                false,
            ),
            (503, r#"{"error":{"code":"server_is_overloaded"}}"#, Source::Backend, true),
            (502, "<html>bad gateway</html>", Source::Backend, true),
        ];
        for (status, body, source, retryable) in cases {
            let failure = Failure::from_status(status, body.as_bytes());
            assert_eq!((failure.source, failure.retryable), (source, retryable), "{status} {body}");
            assert_eq!(failure.status, status);
        }
    }

    #[test]
    fn a_limit_keeps_its_reset_and_a_detail_its_words() {
        let body = br#"{"error":{"type":"usage_limit_reached","message":"no more","resets_at":1777936568}}"#;
        assert_eq!(Failure::from_status(429, body).resets_at, Some(1_777_936_568));
        let body = br#"{"detail":"Store must be set to false"}"#;
        assert_eq!(Failure::from_status(400, body).message, "Store must be set to false");
    }

    #[test]
    fn a_quota_that_arrives_as_incomplete_is_a_limit() {
        let said = event::Failure {
            kind: None,
            code: None,
            message: String::new(),
            status: None,
            reason: Some("usage_limit_reached".into()),
            resets_at: None,
            plan_type: None,
        };
        let failure = Failure::from_event(&said);
        assert_eq!((failure.source, failure.retryable, failure.status), (Source::Limit, true, 429));
    }
}
