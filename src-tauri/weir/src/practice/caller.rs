//! Who asks, and as what a request is taken down.
//!
//! Over HTTP every request says who it is; over a WebSocket the handshake says it for all frames that follow. Both are
//! read here, so that a conversation has the same name on either road.
//!
//! **Invariant**: nothing of a bearer is kept; a record shows the account's name in its place.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use serde_json::Value;
use weir_core::dialect::wire;

use super::accounts::{Account, Accounts};
use super::cache::Place;
use super::errors::Refusal;
use super::http::text;
use super::record::Received;
use super::request::Ask;

/// The account whose token came along.
pub(super) fn account<'a>(accounts: &'a Accounts, headers: &HeaderMap) -> Option<&'a Arc<Account>> {
    let bearer = text(headers, header::AUTHORIZATION.as_str());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    accounts.by_token(bearer)
}

/// A known token beside its own account id.
pub(super) fn signed_in<'a>(
    account: Option<&'a Arc<Account>>,
    headers: &HeaderMap,
) -> Result<&'a Arc<Account>, Refusal> {
    let account = account.ok_or_else(Refusal::token_invalidated)?;
    match text(headers, wire::ACCOUNT_HEADER) {
        Some(id) if id == account.account_id => Ok(account),
        other => Err(Refusal::wrong_account(other)),
    }
}

/// What is taken down of a request with these headers and this body.
pub(super) fn received(
    headers: &HeaderMap,
    path: &str,
    ask: Ask<'_>,
    bytes: usize,
    account: Option<&Account>,
) -> Received {
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
        path: path.to_owned(),
        headers: shown.collect(),
        account,
        bytes,
        model: ask.model().to_owned(),
        lite: ask.lite(),
        conversation: conversation.or_else(|| ask.str("prompt_cache_key")).map(str::to_owned),
        parent: parent.map(str::to_owned),
        body: ask.body.clone(),
        input_items: ask.input().len(),
        history_items: ask.input().len(),
        ..Received::default()
    }
}

/// Where the backend keeps what an HTTP request shares with those before it.
pub(super) fn session(headers: &HeaderMap, body: &Value) -> Option<Place> {
    let key = body.get("prompt_cache_key").and_then(Value::as_str);
    let key = key.or_else(|| text(headers, "session-id"))?;
    Some(Place::Session(key.to_owned()))
}
