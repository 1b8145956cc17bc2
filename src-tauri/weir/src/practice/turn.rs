//! Answers one request for a response.
//!
//! The questions come in the backend's order: is the request well formed, is the model served in this lane, can this
//! account read the ciphertext, what does the script say, is there quota left. Then the events are composed and their
//! delivery starts.
//!
//! **Invariant**: every rule that a request breaks is recorded, whatever the script answers.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use weir_core::dialect::wire;

use super::accounts::{Account, hex};
use super::errors::Refusal;
use super::http::{code, put, refuse};
use super::play::Delivery;
use super::record::Entry;
use super::reply::{Point, Reply, json};
use super::request::{Ask, kind};
use super::server::Practice;
use super::stream::{Composition, Ending};
use super::{check, rules};

/// What one response is answered from.
pub(super) struct Turn<'a> {
    pub(super) practice: &'a Practice,
    pub(super) account: &'a Account,
    pub(super) ask: Ask<'a>,
    pub(super) bytes: usize,
    pub(super) conversation: Option<&'a str>,
    pub(super) session: Option<&'a str>,
    pub(super) turn_state: Option<&'a str>,
}

impl Turn<'_> {
    pub(super) async fn answer(self, entry: Entry) -> Response {
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
