//! The handshake of a WebSocket: who may open one, and what the answer tells.
//!
//! It asks the same of a caller as HTTP does, and the beta header besides. No extension is ever accepted, which is how an
//! offer of compression is declined. What an accepted handshake told is not told again while the socket lives.
//!
//! **Invariant**: a refused handshake is a request like any other and is recorded; an accepted one is recorded by its
//! frames.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::{HeaderMap, request::Parts};
use axum::response::Response;
use weir_core::dialect::wire;

use super::accounts::Account;
use super::caller;
use super::errors::Refusal;
use super::http::{put, refuse, text};
use super::request::Ask;
use super::script::Transport;
use super::server::Practice;
use super::socket::{Socket, UNREADABLE};

/// Opens a socket, or says why not.
pub(super) async fn answer(practice: &Arc<Practice>, parts: &mut Parts) -> Response {
    let account = caller::account(&practice.accounts, &parts.headers).cloned();
    let ask = Ask { body: &serde_json::Value::Null, marker: None };
    let known = account.as_deref();
    let mut received = caller::received(&parts.headers, parts.uri.path(), ask, 0, known);
    received.transport = Transport::Ws;
    let conversation = received.conversation.clone();
    let upgrade = WebSocketUpgrade::from_request_parts(parts, &()).await;
    let admitted = admit(practice, account.as_ref(), &parts.headers, conversation.as_deref());
    let refused = |refused| refuse(practice.record.arrive(received, false), refused);
    let (upgrade, account) = match (admitted, upgrade) {
        (Ok(account), Ok(upgrade)) => (upgrade, account),
        (Err(reason), _) => return refused(reason),
        (_, Err(_)) => return refused(Refusal::no_websocket()),
    };
    if let Err(reason) = beta(&parts.headers) {
        return refused(reason);
    }
    let open = practice.record.open_socket();
    let mut headers = practice.accounts.headers(&account);
    let state = account.seal(&format!("socket {}", open.number));
    let own = [
        ("x-request-id", format!("practice-socket-{}", open.number)),
        (wire::MODELS_ETAG_HEADER, practice.catalog.listing(&account.name).1),
        (wire::TURN_STATE_HEADER, state),
    ];
    headers.extend(own.map(|(name, value)| (name.to_owned(), value)));
    let socket = Socket::new(practice.clone(), account, parts.headers.clone(), open);
    let tracker = practice.sockets.clone();
    // The backend's own limit is judged by the socket, once it has the whole frame and can say goodbye in good order.
    let upgrade = upgrade.max_message_size(UNREADABLE).max_frame_size(UNREADABLE);
    let mut response = upgrade.on_upgrade(move |wire| tracker.track_future(socket.serve(wire)));
    put(response.headers_mut(), &headers);
    response
}

fn admit(
    practice: &Practice,
    account: Option<&Arc<Account>>,
    headers: &HeaderMap,
    conversation: Option<&str>,
) -> Result<Arc<Account>, Refusal> {
    let nth = practice.record.dialled(conversation);
    let account = caller::signed_in(account, headers)?;
    if let Some(refused) = scripted(practice, account, conversation, nth) {
        return Err(refused);
    }
    Ok(account.clone())
}

/// A socket is asked for by the name of its protocol.
fn beta(headers: &HeaderMap) -> Result<(), Refusal> {
    let beta = text(headers, wire::BETA_HEADER).unwrap_or_default();
    if beta.split(',').any(|part| part.trim() == wire::RESPONSES_WEBSOCKETS_BETA) {
        return Ok(());
    }
    let message = format!("Missing or unsupported OpenAI-Beta header: '{beta}'.");
    Err(Refusal::invalid(message, "OpenAI-Beta", Some("invalid_beta")))
}

/// What the script has against this handshake.
fn scripted(
    practice: &Practice,
    account: &Account,
    conversation: Option<&str>,
    nth: u64,
) -> Option<Refusal> {
    let ask = Ask { body: &serde_json::Value::Null, marker: None };
    let rules = practice.scenario.rules.iter().enumerate();
    let mut asked = rules.filter(|(_, rule)| {
        rule.at_handshake() && rule.when.holds(ask, &account.name, nth, Transport::Ws)
    });
    asked.find_map(|(at, rule)| {
        let reply = practice.reply_of(at, rule, conversation)?;
        let status = reply.ws_refuse?;
        let mut refused = match status {
            429 => practice.accounts.limit(account, None),
            _ => Refusal::handshake(status),
        };
        refused.headers.extend(reply.headers.clone());
        Some(refused)
    })
}
