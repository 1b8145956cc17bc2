//! How the practice upstream speaks HTTP: refusals as answers, headers in and out.
//!
//! **Invariant**: a refusal is recorded as ended before it is sent.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::errors::Refusal;
use super::record::Entry;

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
