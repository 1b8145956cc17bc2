//! The HTTP adapter of the contract.
//!
//! `POST /api` carries one command, `GET /api/events` the event stream; whoever calls them has shown the control key or a session's.
//! `POST /api/enter` turns the one-time ticket of `weir open` into a session's key.
//!
//! **Invariant**: nothing is decided here.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, Request, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Deserialize;
use serde_json::json;

use super::watch::Watcher;
use super::{Api, Command, dispatch};
use crate::endpoint::body;
use crate::endpoint::error::{Problem, json as answer};

/// Routes that ask for the control key or a session's.
pub fn control(api: Api) -> Router {
    Router::new().route("/api", post(command)).route("/api/events", get(events)).with_state(api)
}

/// The one route that takes a ticket instead.
pub fn entrance(api: Api) -> Router {
    Router::new().route("/api/enter", post(enter)).with_state(api)
}

async fn command(State(api): State<Api>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts.headers, body).await?;
    let command: Command = serde_json::from_slice(&bytes).map_err(|error| {
        Problem::new(
            400,
            "unknown_command",
            format!("This is not a command that Weir knows: {error}."),
        )
    })?;
    Ok(match dispatch(&api, command).await {
        Ok(reply) => axum::Json(reply).into_response(),
        Err(refusal) => answer(400, json!({"error": refusal}).to_string().into_bytes()),
    })
}

/// `?after=EPOCH:NUMBER` resumes where a lost stream ended.
async fn events(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let query = query.unwrap_or_default();
    let after = query.split('&').find_map(|pair| pair.strip_prefix("after="));
    let seen = after
        .and_then(|after| after.split_once(':'))
        .and_then(|(epoch, number)| Some((epoch, number.parse().ok()?)));
    let stop = api.turns.stop.clone();
    let stream =
        unfold((Watcher::new(&api, seen), api.closing.clone()), move |(mut watcher, closing)| {
            let stop = stop.clone();
            async move {
                let message = tokio::select! {
                    biased;
                    () = closing.cancelled() => return None,
                    () = stop.cancelled() => return None,
                    message = watcher.next() => message,
                };
                let event = Event::default().json_data(&message).unwrap_or_default();
                Some((Ok(event), (watcher, closing)))
            }
        });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
}

#[derive(Deserialize)]
struct Ticket {
    ticket: String,
}

async fn enter(State(api): State<Api>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts.headers, body).await?;
    let ticket: Ticket = serde_json::from_slice(&bytes).map_err(|error| {
        Problem::new(400, "no_ticket", format!("Send the ticket of `weir open`: {error}."))
    })?;
    let key = api.sessions.enter(&ticket.ticket).ok_or_else(|| {
        Problem::new(
            401,
            "used_ticket",
            "This address was used before or is too old. Run `weir open` for a new one.",
        )
    })?;
    Ok(axum::Json(json!({"key": key.expose()})).into_response())
}
