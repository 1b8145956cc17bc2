//! How the practice upstream speaks HTTP: turns and refusals as answers, headers in and out.
//!
//! **Invariant**: a refusal is recorded as ended before it is sent.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::body::Body;
use super::errors::Refusal;
use super::record::Entry;
use super::reply::Reply;
use super::turn::{Answer, Turn};

/// Answers a turn with an event stream, or with a refusal.
pub(super) async fn answer(turn: Turn<'_>, entry: Entry) -> Response {
    if let Err(refused) = turn.admit(&entry) {
        return refuse(entry, refused);
    }
    let delivery = turn.delivery(turn.reply(&entry));
    let answer = tokio::select! {
        biased;
        answer = turn.decide(&delivery, &entry) => answer,
        () = delivery.stop.cancelled() => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
    };
    match answer {
        Answer::Refused(refused) => refuse(entry, refused),
        Answer::Scripted(refused, content_type, text) => {
            entry.status(refused.status);
            entry.end("refused");
            let mut response = (code(refused.status), text).into_response();
            put(response.headers_mut(), &refused.headers);
            put(response.headers_mut(), &[("content-type".to_owned(), content_type.to_owned())]);
            response
        }
        Answer::Stream(pieces) => {
            let headers = headers(&turn, &delivery.reply, &entry);
            entry.status(200);
            let body = Body::new(delivery.start(pieces, entry));
            let mut response = axum::body::Body::from_stream(body).into_response();
            put(response.headers_mut(), &headers);
            response
        }
    }
}

fn headers(turn: &Turn<'_>, reply: &Reply, entry: &Entry) -> Vec<(String, String)> {
    let request = format!("practice-{}", entry.number);
    let mut headers = turn.practice.accounts.headers(turn.account);
    let own = [
        ("content-type", "text/event-stream; charset=utf-8".to_owned()),
        ("cache-control", "no-cache".to_owned()),
        ("x-request-id", request.clone()),
        ("x-oai-request-id", request),
    ];
    headers.extend(own.into_iter().chain(turn.told()).map(|(name, v)| (name.to_owned(), v)));
    headers.extend(reply.headers.clone());
    headers
}

pub(super) fn refuse(entry: Entry, refused: Refusal) -> Response {
    if let Some(rule) = &refused.violation {
        entry.violation(rule);
    }
    entry.status(refused.status);
    let request = [("x-request-id".to_owned(), format!("practice-{}", entry.number))];
    entry.end("refused");
    refusal(refused, &request)
}

pub(super) fn refusal(refused: Refusal, headers: &[(String, String)]) -> Response {
    let mut response = (code(refused.status), axum::Json(refused.body)).into_response();
    put(response.headers_mut(), &refused.headers);
    put(response.headers_mut(), headers);
    response
}

pub(super) fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Adds headers; one that HTTP cannot carry is left out.
pub(super) fn put(headers: &mut HeaderMap, more: &[(String, String)]) {
    for (name, value) in more {
        if let (Ok(name), Ok(value)) = (name.parse::<header::HeaderName>(), value.parse()) {
            headers.insert(name, value);
        }
    }
}

/// A header, if it is there and is text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
