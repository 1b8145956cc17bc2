//! Answers one request for a response.
//!
//! The questions come in the backend's order: is the request well formed, is the model served in this lane, can this
//! account read the ciphertext, what does the script say, is there quota left. Then the events are composed. Whether
//! they travel as an event stream or as frames is not decided here.
//!
//! **Invariant**: every rule that a request breaks is recorded, whatever the script answers.

use std::time::Duration;

use serde_json::{Value, json as object};
use weir_core::dialect::wire;

use super::accounts::{Account, hex};
use super::cache::Place;
use super::errors::Refusal;
use super::play::Delivery;
use super::record::Entry;
use super::reply::{Point, Reply, json};
use super::request::{Ask, kind};
use super::script::Transport;
use super::server::Practice;
use super::stream::{Composition, Ending, Piece};
use super::{check, rules};

/// What one response is answered from.
pub(super) struct Turn<'a> {
    pub(super) practice: &'a Practice,
    pub(super) account: &'a Account,
    /// The whole request; over a WebSocket with the history that the socket holds.
    pub(super) ask: Ask<'a>,
    /// Length of the whole request.
    pub(super) bytes: usize,
    pub(super) conversation: Option<&'a str>,
    /// What it shares its cache with.
    pub(super) place: Option<Place>,
    pub(super) turn_state: Option<&'a str>,
    pub(super) transport: Transport,
    /// How many items the socket held already.
    pub(super) held: usize,
    /// The response that they come from.
    pub(super) previous: Option<&'a str>,
}

/// What is answered.
pub(super) enum Answer {
    Refused(Refusal),
    /// A refusal whose body the script wrote: its type and its text.
    Scripted(Refusal, &'static str, String),
    Stream(Vec<Piece>),
}

impl Turn<'_> {
    pub(super) fn delivery(&self, reply: Reply) -> Delivery {
        Delivery {
            reply,
            pace: self.practice.scenario.pace,
            gates: self.practice.gates.clone(),
            stop: self.practice.stop.clone(),
        }
    }

    /// The answer, once the script lets it out; a silent reply never does.
    pub(super) async fn decide(&self, delivery: &Delivery, entry: &Entry) -> Answer {
        let reply = &delivery.reply;
        delivery.hold(Point::Headers, entry).await;
        if reply.delay_headers_ms > 0 {
            tokio::time::sleep(Duration::from_millis(reply.delay_headers_ms)).await;
        }
        if reply.silent {
            return std::future::pending().await;
        }
        if let Some(status) = reply.status {
            return self.scripted_refusal(status, reply);
        }
        if let Err(refused) = self.practice.accounts.charge(self.account) {
            return Answer::Refused(refused);
        }
        let mut pieces = self.compose(reply, entry).pieces();
        if self.transport == Transport::Ws {
            // What headers say over HTTP: nothing else tells it to a socket that lives for many turns.
            let told: serde_json::Map<_, _> = self
                .told()
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect();
            pieces
                .insert(0, Piece::Aside(object!({ "type": "response.metadata", "headers": told })));
        }
        Answer::Stream(pieces)
    }

    /// The events of a request that only wants its history known. Nothing is charged for it.
    pub(super) fn warm_up(&self, entry: &Entry) -> Vec<Piece> {
        let mut composition = self.compose(&Reply::default(), entry);
        composition.items.clear();
        composition.warm_up()
    }

    /// Whether the backend would take this request from this account.
    pub(super) fn admit(&self, entry: &Entry) -> Result<(), Refusal> {
        if self.turn_state.is_some_and(|state| !self.account.opens(state)) {
            entry.violation("x-codex-turn-state is another account's");
        }
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

    /// What the script says to it.
    pub(super) fn reply(&self, entry: &Entry) -> Reply {
        let rules = self.practice.scenario.rules.iter().enumerate();
        let mut asked = rules.filter(|(_, rule)| {
            let when = &rule.when;
            !rule.at_handshake()
                && when.holds(self.ask, &self.account.name, entry.nth, self.transport)
        });
        let found =
            asked.find_map(|(at, rule)| self.practice.reply_of(at, rule, self.conversation));
        found.cloned().unwrap_or_else(|| rules::built_in(self.ask))
    }

    fn compose<'a>(&'a self, reply: &Reply, entry: &Entry) -> Composition<'a> {
        let body = self.ask.body;
        let (cache, place) = (&self.practice.cache, self.place.as_ref());
        let cached = cache.cached_bytes(&self.account.name, place, body, self.held);
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
            previous: self.previous,
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

    fn scripted_refusal(&self, status: u16, reply: &Reply) -> Answer {
        let mut refused = match status {
            401 => Refusal::token_invalidated(),
            429 => self.practice.accounts.limit(self.account, None),
            _ => Refusal::server(status),
        };
        refused.headers.extend(reply.headers.clone());
        match (&reply.json, &reply.html) {
            (Some(toml::Value::String(text)), _) => {
                Answer::Scripted(refused, "application/json", text.clone())
            }
            (Some(value), _) => {
                Answer::Scripted(refused, "application/json", json(value).to_string())
            }
            (None, Some(page)) => {
                Answer::Scripted(refused, "text/html; charset=UTF-8", page.clone())
            }
            (None, None) => Answer::Refused(refused),
        }
    }

    /// What every answer tells beside its events.
    pub(super) fn told(&self) -> [(&'static str, String); 3] {
        let turn = format!("{} {}", self.conversation.unwrap_or_default(), self.ask.prompt());
        [
            ("openai-model", self.ask.model().to_owned()),
            (wire::MODELS_ETAG_HEADER, self.practice.catalog.listing(&self.account.name).1),
            (wire::TURN_STATE_HEADER, self.account.seal(&turn)),
        ]
    }
}
