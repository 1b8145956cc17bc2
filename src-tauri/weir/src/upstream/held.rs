//! A turn over the connection that its conversation keeps.
//!
//! The connection is claimed, or opened; the turn goes out as one frame, with only what is new where the backend has the
//! rest; the first words of the answer show whether it has. A connection that gave a complete answer goes back to its place,
//! with what the backend has seen; any other is closed.
//!
//! **Invariant**: a frame that left this machine is followed by another way only when the backend said that it did nothing
//! with it.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use weir_core::dialect::body::Body;
use weir_core::dialect::continuation::{self, Seen, Step};
use weir_core::dialect::event::{Event, Role};
use weir_core::dialect::frame::frame;
use weir_core::dialect::item::Item;
use weir_core::dialect::mode::Dialect;
use weir_core::dialect::wire;

use super::failure::Failure;
use super::headers;
use super::open::{Input, Opened, Outgoing, Sent, Socket, Transport, Upstream};
use super::sockets::pace::{self, NotNow};
use super::sockets::wire::{Heard, Refused, Wire};
use super::sockets::{Key, Place};
use super::stream::{Broken, Events};

const POLICY: u16 = 1008;
const TOO_LONG: u16 = 1009;

/// Why a turn did not go this way.
pub(super) enum Otherwise {
    /// The backend has nothing of it, or has done nothing with it.
    NotNow(NotNow),
    Failed(Failure),
}

/// What one frame came to, where it came to no answer.
enum Missed {
    /// The connection is of no use any more; a new one may be.
    Stale(Place),
    Otherwise(Otherwise),
}

/// A connection in a turn's hands.
struct Held {
    place: Place,
    wire: Wire,
    seen: Option<Seen>,
    /// What the handshake told, where it was for this turn.
    told: Option<HeaderMap>,
}

/// The first words of an answer.
enum Opening {
    /// An answer, with all that was said so far.
    Begun(VecDeque<String>),
    /// The backend has done nothing: the connection is too old, or it has forgotten what is continued.
    Again,
    /// It said goodbye at once, with a code that refuses the frame.
    Unwanted(u16),
    Failed(Failure),
}

/// Sends a turn over its conversation's connection.
pub(super) async fn open(
    upstream: &Upstream,
    turn: &Outgoing<'_>,
    key: &Key,
    sent: &mut Sent,
) -> Result<Opened, Otherwise> {
    let (place, parked) = upstream.sockets().claim(key).map_err(Otherwise::NotNow)?;
    let kept = match parked {
        Some(parked) => parked.take(turn.account.token.expose()).await,
        None => None,
    };
    let mut held = match kept {
        Some((wire, seen)) => Held { place, wire, seen, told: None },
        None => dial(upstream, turn, place).await?,
    };
    // A connection of an earlier turn may turn out to be of no use; a new one is not tried twice.
    loop {
        let new = held.told.is_some();
        match attempt(held, turn, sent).await {
            Ok(opened) => return Ok(opened),
            Err(Missed::Stale(place)) if !new => held = dial(upstream, turn, place).await?,
            Err(Missed::Stale(_)) => {
                let cause = "the backend dropped a new one".to_owned();
                return Err(Otherwise::NotNow(NotNow::Failed(cause)));
            }
            Err(Missed::Otherwise(otherwise)) => return Err(otherwise),
        }
    }
}

async fn dial(upstream: &Upstream, turn: &Outgoing<'_>, place: Place) -> Result<Held, Otherwise> {
    let account = turn.account;
    let sockets = upstream.sockets();
    sockets.gate(&account.id, |gate, now| gate.dial(now)).map_err(Otherwise::NotNow)?;
    let headers = handshake(turn).map_err(|_| NotNow::Failed("a header cannot be sent".into()));
    let headers = headers.map_err(Otherwise::NotNow)?;
    let url = format!("{}{}", account.base_url, wire::RESPONSES_PATH);
    let client = upstream.handshakes(&account.base_url);
    match Wire::dial(client, &url, headers, account.token.expose()).await {
        Ok((wire, told)) => {
            sockets.gate(&account.id, |gate, _| gate.opened());
            Ok(Held { place, wire, seen: None, told: Some(told) })
        }
        Err(refused) => {
            tracing::info!(account = account.name, ?refused, "no WebSocket was opened");
            let cause = match refused {
                Refused::Status(426) => {
                    sockets.gate(&account.id, |gate, now| gate.shut(now, pace::UNWANTED));
                    NotNow::Unwanted
                }
                Refused::Status(status) => {
                    sockets.gate(&account.id, |gate, now| gate.failed(now));
                    NotNow::Failed(format!("the backend answered with status {status}"))
                }
                Refused::Failed(cause) => {
                    sockets.gate(&account.id, |gate, now| gate.failed(now));
                    NotNow::Failed(cause)
                }
            };
            Err(Otherwise::NotNow(cause))
        }
    }
}

/// The headers of a handshake: those of a request, without what belongs to a single turn of it.
fn handshake(turn: &Outgoing<'_>) -> Result<HeaderMap, http::header::InvalidHeaderValue> {
    let mut headers =
        headers::for_turn(turn.account, turn.client_headers, turn.names, Dialect::Full)?;
    for name in [CONTENT_TYPE, ACCEPT, HeaderName::from_static(wire::TURN_STATE_HEADER)] {
        headers.remove(name);
    }
    let beta = HeaderValue::from_static(wire::RESPONSES_WEBSOCKETS_BETA);
    headers.insert(HeaderName::from_static(wire::BETA_HEADER), beta);
    Ok(headers)
}

/// One frame and the beginning of its answer.
async fn attempt(held: Held, turn: &Outgoing<'_>, sent: &mut Sent) -> Result<Opened, Missed> {
    let Held { place, mut wire, seen, told } = held;
    let step = continuation::step(seen.as_ref(), turn.body);
    let continues = matches!(step, Step::Incremental { .. });
    let frame = text(turn, &step, seen.as_ref());
    let bytes = frame.len();
    let (sockets, account) = (place.sockets(), &turn.account.id);
    let not_now = |why| Missed::Otherwise(Otherwise::NotNow(why));
    if let Err(too_long) = sockets.gate(account, |gate, _| gate.takes(bytes)) {
        wire.close().await;
        return Err(not_now(too_long));
    }
    let socket = if told.is_some() { Socket::New } else { Socket::Reused };
    sent.note(Transport::Ws, Some(socket), input(&step, turn.body), bytes);
    if let Err(cause) = wire.send(frame).await {
        tracing::info!(cause, "a frame could not be sent");
        return Err(Missed::Stale(place));
    }
    match opening(&mut wire, continues).await {
        Opening::Begun(first) => {
            let told = told.unwrap_or_default();
            let etag = told.get(wire::MODELS_ETAG_HEADER).and_then(|tag| tag.to_str().ok());
            Ok(Opened {
                windows: headers::windows(&told),
                models_etag: etag.map(str::to_owned),
                passed_on: passed_on(&told, &first),
                events: Answer::events(place, wire, turn.body.clone(), first),
            })
        }
        Opening::Again => {
            wire.close().await;
            Err(Missed::Stale(place))
        }
        Opening::Unwanted(TOO_LONG) => {
            sockets.gate(account, |gate, _| gate.refused_frame(bytes));
            Err(not_now(NotNow::TooLong(bytes)))
        }
        Opening::Unwanted(_) => {
            sockets.gate(account, |gate, now| gate.shut(now, pace::POLICY));
            Err(not_now(NotNow::Unwanted))
        }
        Opening::Failed(failure) => Err(Missed::Otherwise(Otherwise::Failed(failure))),
    }
}

/// Reads until it is clear that the backend took the frame, or that it did not.
async fn opening(wire: &mut Wire, continues: bool) -> Opening {
    let mut said = VecDeque::new();
    loop {
        let text = match wire.hear().await {
            Heard::Text(text) => text,
            Heard::Closed(Some(code @ (POLICY | TOO_LONG))) => return Opening::Unwanted(code),
            Heard::Closed(code) => return Opening::Failed(lost(&format!("closed with {code:?}"))),
            Heard::Broken(Broken::Lost(cause)) => return Opening::Failed(lost(&cause)),
            Heard::Broken(Broken::TooLong) => {
                return Opening::Failed(lost("a message is too long"));
            }
        };
        let event = Event::read(&text);
        let role = event.as_ref().map(Event::role);
        if let Some(event) = event.filter(|_| role == Some(Role::Error)) {
            let code = event.failure().and_then(|failure| failure.code);
            let undone = |code: &str| {
                code == wire::CONNECTION_TOO_OLD || continues && code == wire::PREVIOUS_NOT_FOUND
            };
            if code.is_some_and(|code| undone(&code)) {
                return Opening::Again;
            }
        }
        said.push_back(text.as_str().to_owned());
        if role != Some(Role::Control) {
            return Opening::Begun(said);
        }
    }
}

fn lost(cause: &str) -> Failure {
    tracing::warn!(cause, "a connection broke before the answer began");
    Failure::connection_lost()
}

fn text(turn: &Outgoing<'_>, step: &Step, seen: Option<&Seen>) -> Utf8Bytes {
    let state = turn.client_headers.get(wire::TURN_STATE_HEADER);
    let state = state.and_then(|state| state.to_str().ok());
    let frame = frame(turn.body, step, seen, turn.dialect, state);
    Utf8Bytes::try_from(Bytes::from(frame)).expect("a body is written as text")
}

fn input(step: &Step, body: &Body) -> Input {
    match step {
        Step::Incremental { from } => Input::New { items: body.items().len() - from },
        Step::Full(why) => Input::Whole(why.sentence()),
    }
}

/// What of the handshake, and of what was said before the answer, goes to the client as headers.
fn passed_on(told: &HeaderMap, first: &VecDeque<String>) -> HeaderMap {
    // A handshake's own routing state belongs to no turn.
    let mut headers = headers::for_client(told);
    headers.remove(wire::TURN_STATE_HEADER);
    for text in first.iter().filter(|text| text.contains("\"headers\"")) {
        let Ok(Value::Object(event)) = serde_json::from_str(text) else { continue };
        headers.extend(headers::for_client(&headers::of_event(&event)));
    }
    headers
}

/// The events of one answer, and what becomes of the connection after it.
struct Answer {
    /// None once the connection is given back.
    held: Option<(Place, Wire)>,
    body: Body,
    output: Vec<Item>,
    first: VecDeque<String>,
}

impl Answer {
    fn events(place: Place, wire: Wire, body: Body, first: VecDeque<String>) -> Events {
        let arrival = wire.arrival();
        let answer = Self { held: Some((place, wire)), body, output: Vec::new(), first };
        let events = stream::unfold(answer, |mut answer| async move {
            let event = answer.next().await?;
            Some((event, answer))
        });
        Events::of(events, arrival)
    }

    async fn next(&mut self) -> Option<Result<String, Broken>> {
        let text = match self.first.pop_front() {
            Some(text) => text,
            None => {
                let (place, wire) = self.held.as_mut()?;
                match wire.hear().await {
                    Heard::Text(text) => text.as_str().to_owned(),
                    Heard::Closed(code) => {
                        if code == Some(POLICY) {
                            let account = place.key().account.clone();
                            place
                                .sockets()
                                .gate(&account, |gate, now| gate.shut(now, pace::POLICY));
                        }
                        self.held = None;
                        return None;
                    }
                    Heard::Broken(broken) => {
                        self.held = None;
                        return Some(Err(broken));
                    }
                }
            }
        };
        self.saw(&text);
        Some(Ok(text))
    }

    /// Collects the items of the answer. With its end the connection is free for the next turn.
    fn saw(&mut self, text: &str) {
        // Most events are pieces of text, which need no second reading.
        if !["output_item.done", "response.completed", "response.done"]
            .iter()
            .any(|kind| text.contains(kind))
        {
            return;
        }
        let Some(event) = Event::read(text) else { return };
        self.output.extend(event.completed_item());
        if event.role() == Role::Completed
            && let Some((place, wire)) = self.held.take()
        {
            let id = event.response_id().unwrap_or_default();
            let output = std::mem::take(&mut self.output);
            place.park(wire, Some(Seen::new(&self.body, output, id)));
        }
    }
}
