//! Who may ask at all.
//!
//! A page in the user's browser can send requests to this machine, and a foreign name can be made to point at it. So the
//! `Host` must be a loopback name, an `Origin` must be our own, and every route but the public ones asks for a key.
//!
//! **Invariant**: no route answers a foreign `Host` or `Origin`, whatever key it brings; no CORS header is ever sent.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, header};

use std::sync::Arc;

use super::Endpoint;
use super::error::Problem;
use super::sessions::Sessions;
use crate::accounts::secret::Secret;

/// Checks `Host` and `Origin` of every request.
pub async fn origin(request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(header::HOST).iter().map(HeaderValue::to_str);
    let host = match (hosts.next(), hosts.next()) {
        (Some(Ok(host)), None) => host,
        _ => {
            return Problem::new(
                400,
                "no_host",
                "The request does not name one host. Send one Host header such as 127.0.0.1.",
            )
            .into_response();
        }
    };
    let asked = request.uri().authority().map(http::uri::Authority::as_str);
    if !is_loopback(host) || !asked.is_none_or(is_loopback) {
        return Problem::new(403, "foreign_host", "Weir answers only under a loopback name. Use http://127.0.0.1 or http://localhost with its port.").into_response();
    }
    let mut origins = request.headers().get_all(header::ORIGIN).iter();
    if origins.any(|origin| !same_origin(origin, host)) {
        return Problem::new(403, "foreign_origin", "Weir does not answer requests of other pages. Ask from a program, or from Weir's own page.").into_response();
    }
    next.run(request).await
}

/// The keys that open a group of routes.
#[derive(Clone, Debug)]
pub struct Keys {
    key: Secret,
    sessions: Option<Arc<Sessions>>,
}

impl Keys {
    pub fn data(endpoint: &Endpoint) -> Self {
        Self { key: endpoint.data_key.clone(), sessions: None }
    }

    pub fn control(endpoint: &Endpoint) -> Self {
        Self { key: endpoint.control_key.clone(), sessions: Some(Arc::clone(&endpoint.sessions)) }
    }

    fn open_to(&self, offered: &str) -> bool {
        self.key.matches(offered)
            || self.sessions.as_ref().is_some_and(|sessions| sessions.knows(offered))
    }
}

/// Asks for a key of a group of routes.
pub async fn key(State(keys): State<Keys>, request: Request, next: Next) -> Response {
    match bearer(request.headers()) {
        Some(offered) if keys.open_to(offered) => next.run(request).await,
        Some(_) => Problem::new(
            401,
            "wrong_key",
            "This key is not the one for this path. `weir key` prints the key for clients.",
        )
        .into_response(),
        None => Problem::new(
            401,
            "no_key",
            "Send `Authorization: Bearer KEY`. `weir key` prints the key for clients.",
        )
        .into_response(),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

/// Whether an authority is a loopback name, with or without a port.
fn is_loopback(authority: &str) -> bool {
    let name = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if port.is_empty() || is_port(port) => return address == "::1",
            _ => return false,
        },
        None => match authority.split_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            Some(_) => return false,
            None => authority,
        },
    };
    name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn same_origin(origin: &HeaderValue, host: &str) -> bool {
    let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
    origin.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_and_nothing_that_looks_like_one() {
        for good in
            ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8788", "[::1]", "[::1]:8788"]
        {
            assert!(is_loopback(good), "{good}");
        }
        for bad in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:8788",
            "0.0.0.0:8788",
            "[::2]",
            "[::1].evil.example",
            "localhost@evil.example",
            "127.0.0.1:8788@evil",
            "",
            "::1",
        ] {
            assert!(!is_loopback(bad), "{bad}");
        }
    }

    #[test]
    fn only_our_own_page_is_our_origin() {
        let same =
            |origin: &'static str| same_origin(&HeaderValue::from_static(origin), "127.0.0.1:8788");
        assert!(same("http://127.0.0.1:8788"));
        for foreign in [
            "http://127.0.0.1:3000",
            "https://127.0.0.1:8788",
            "null",
            "http://evil.example",
            "http://localhost:8788",
        ] {
            assert!(!same(foreign), "{foreign}");
        }
    }
}
