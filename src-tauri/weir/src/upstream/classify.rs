//! What the backend says of a failure, whatever its shape, and what follows from it.
//!
//! A limit is told as a status, as an error event, as a failed or an incomplete response, as a JSON document where a stream
//! was asked for, and at times in words only. Codes are believed first, then the status, and words only where there is no
//! code that is known.
//!
//! **Invariant**: `retryable` is false wherever the backend may have begun to work on the request and did not say that it
//! failed.

use serde_json::Value;
use weir_core::dialect::{event, wire};

use super::failure::{Failure, Source};

const LIMIT: [&str; 10] = [
    "billing_hard_limit_reached",
    "insufficient_quota",
    "quota_exceeded",
    "rate_limit_reached",
    "usage_limit_exceeded",
    "usage_limit_reached",
    "workspace_member_credits_depleted",
    "workspace_member_usage_limit_reached",
    "workspace_owner_credits_depleted",
    "workspace_owner_usage_limit_reached",
];
const PACE: [&str; 2] = ["rate_limit_exceeded", "too_many_requests"];
const LOGIN: [&str; 4] = ["invalid_api_key", "token_expired", "token_invalidated", "token_revoked"];
const ACCOUNT: [&str; 2] = ["account_deactivated", "usage_not_included"];
const ENTITLEMENT: [&str; 2] = ["model_not_found", "model_not_available"];
/// The model or the whole backend is busy, or a connection came to its age; no account is at fault.
const BUSY: [&str; 7] = [
    "internal_error",
    "internal_server_error",
    "overloaded_error",
    "server_error",
    "server_is_overloaded",
    "slow_down",
    wire::CONNECTION_TOO_OLD,
];
const REQUEST: [&str; 8] = [
    "context_length_exceeded",
    "cyber_policy",
    "invalid_encrypted_content",
    "invalid_prompt",
    "message_too_big",
    wire::PREVIOUS_NOT_FOUND,
    "string_above_max_length",
    "unsupported_value",
];

/// Sentences that only a limit is told in, in small letters.
const LIMIT_WORDS: [&str; 7] = [
    "exceeded your current quota",
    "hit your usage limit",
    "out of credits",
    "quota has been exceeded",
    "reached your usage limit",
    "usage limit has been reached",
    "usage limit reached",
];
const BUSY_WORDS: [&str; 3] = ["at capacity", "currently overloaded", "servers are overloaded"];

/// What a body or an event says.
#[derive(Debug, Default)]
pub(super) struct Said {
    kind: Option<String>,
    code: Option<String>,
    message: Option<String>,
    reason: Option<String>,
    param: Option<String>,
    resets_at: Option<i64>,
    resets_in: Option<i64>,
    plan: Option<String>,
    /// It came in the shape of an error, not as mere text.
    shaped: bool,
}

impl Said {
    /// From the body of an answer: an envelope, a bare `detail`, a text, or nothing that can be read.
    pub(super) fn in_body(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(body) => Self::in_json(&body),
            // A page says nothing of use, and its words are not for a sentence.
            Err(_) => {
                let text = String::from_utf8_lossy(body);
                let text = text.trim();
                let plain = !text.is_empty() && text.len() <= 400 && !text.starts_with('<');
                Self { message: plain.then(|| one_line(text)), ..Self::default() }
            }
        }
    }

    fn in_json(body: &Value) -> Self {
        let field = |name: &str| body.get(name).filter(|value| !value.is_null());
        let error = field("error").unwrap_or(body);
        let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            kind: text("type"),
            code: text("code"),
            message: text("message").or_else(|| {
                let detail = field("detail").or_else(|| field("error"))?;
                Some(detail.as_str().map_or_else(|| detail.to_string(), str::to_owned))
            }),
            reason: None,
            param: text("param"),
            resets_at: error.get("resets_at").and_then(whole),
            resets_in: error.get("resets_in_seconds").and_then(whole),
            plan: text("plan_type"),
            shaped: true,
        }
    }

    pub(super) fn in_event(said: &event::Failure) -> Self {
        Self {
            kind: said.kind.clone(),
            code: said.code.clone(),
            message: Some(said.message.clone()),
            reason: said.reason.clone(),
            param: None,
            resets_at: said.resets_at,
            resets_in: None,
            plan: said.plan_type.clone(),
            shaped: true,
        }
    }

    /// Whether this tells of a failure though no status does: by its shape, or in words that are known.
    pub(super) fn is_a_failure(&self) -> bool {
        self.shaped && (self.message.is_some() || self.code.is_some())
            || self.words(&LIMIT_WORDS)
            || self.words(&BUSY_WORDS)
    }

    fn names(&self, known: &[&str]) -> bool {
        let fields = [&self.code, &self.kind, &self.reason];
        fields.into_iter().flatten().any(|said| known.contains(&said.as_str()))
    }

    fn words(&self, known: &[&str]) -> bool {
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        known.iter().any(|words| message.contains(words))
    }

    /// The source, whether another account may be asked, and the status where none was told.
    fn verdict(&self, status: Option<u16>) -> (Source, bool, u16) {
        if self.names(&LIMIT) {
            return (Source::Limit, true, 429);
        }
        let by_name = [
            (&BUSY[..], (Source::Backend, true, 503)),
            (&PACE, (Source::Pace, true, 429)),
            (&LOGIN, (Source::Login, true, 401)),
            (&ACCOUNT, (Source::Account, true, 403)),
            (&ENTITLEMENT, (Source::Entitlement, true, 404)),
            (&REQUEST, (Source::Request, false, 400)),
        ];
        // A code says more than a type, and a type more than a reason.
        let said = [&self.code, &self.kind, &self.reason];
        let known = said
            .into_iter()
            .flatten()
            .find_map(|said| by_name.iter().find(|(names, _)| names.contains(&said.as_str())));
        if let Some((_, verdict)) = known {
            return *verdict;
        }
        if self.words(&LIMIT_WORDS) {
            return (Source::Limit, true, 429);
        }
        if self.words(&BUSY_WORDS) {
            return (Source::Backend, true, 503);
        }
        let no_model = self.param.as_deref() == Some("model");
        match status {
            Some(429) => (Source::Pace, true, 429),
            Some(401) => (Source::Login, true, 401),
            Some(402 | 403) => (Source::Account, true, 403),
            Some(404) if no_model => (Source::Entitlement, true, 404),
            Some(status) if status >= 500 => (Source::Backend, true, 503),
            Some(400..500) => (Source::Request, false, 400),
            _ if self.names(&["invalid_request_error"]) => (Source::Request, false, 400),
            _ => (Source::Backend, false, 502),
        }
    }

    /// The failure. `status` is the one that came with it.
    pub(super) fn classify(self, status: Option<u16>) -> Failure {
        let (source, retryable, told) = self.verdict(status);
        // A limit has one status; others keep what the backend gave, if it is one of a failure.
        let status = match source {
            Source::Limit => 429,
            Source::Backend => status.filter(|status| *status >= 500).unwrap_or(told),
            _ => status.filter(|status| *status >= 400).unwrap_or(told),
        };
        let wait = match source {
            Source::Pace => self.message.as_deref().and_then(asked_to_wait),
            Source::Limit => self.resets_in,
            _ => None,
        };
        let code = self.code.or_else(|| self.kind.clone()).or(self.reason);
        Failure {
            source,
            retryable,
            status,
            code: code.unwrap_or_else(|| "upstream_error".into()),
            kind: self.kind.unwrap_or_else(|| "upstream_error".into()),
            message: self.message.filter(|message| !message.is_empty()).unwrap_or_else(|| {
                "The backend refused the request without saying why. Send it again, or look at `weir turns`.".into()
            }),
            resets_at: self.resets_at,
            retry_after: wait,
            plan: self.plan,
            ours: false,
            body: None,
        }
    }
}

/// A whole number, written as one, with a fraction or as text.
fn whole(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| {
            value.as_f64().filter(|number| number.abs() < 9.0e15).map(|number| number as i64)
        })
        .or_else(|| value.as_str()?.trim().parse().ok())
}

/// Seconds, rounded up, from "Please try again in 1.5s", which is where the backend says for how long.
fn asked_to_wait(message: &str) -> Option<i64> {
    let message = message.to_ascii_lowercase();
    let rest = message.split_once("try again in ")?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let number: f64 = rest[..end].parse().ok()?;
    let seconds = match rest[end..].trim_start() {
        unit if unit.starts_with("ms") || unit.starts_with("milli") => number / 1_000.0,
        unit if unit.starts_with('s') => number,
        unit if unit.starts_with('m') => number * 60.0,
        unit if unit.starts_with('h') => number * 3_600.0,
        _ => return None,
    };
    (seconds < 1.0e9).then_some(seconds.ceil() as i64)
}

/// Text without line breaks and other signs that are not for a sentence.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
