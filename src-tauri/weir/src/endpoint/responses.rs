//! `POST /v1/responses`: a request becomes a turn, a turn becomes an answer.
//!
//! **Invariant**: a client that drops its connection drops the answer, and with it the turn.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};
use weir_core::dialect::body::Body as Asked;
use weir_core::dialect::wire;

use super::error::Problem;
use super::{Endpoint, body, caller, error, models};
use crate::turn::sink::Head;
use crate::turn::{self, Order};

pub async fn create(
    State(endpoint): State<Endpoint>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts.headers, body).await?;
    let asked = Asked::parse(&bytes)?;
    let order = Order {
        caller: caller::derive(&parts.headers, &asked),
        whole: asked.flag("stream") != Some(true),
        request_bytes: bytes.len(),
        body: asked,
        trial: None,
    };
    let codex = order.caller.codex;
    let answer = turn::start(&endpoint.turns, order);
    let Ok(head) = answer.head.await else {
        tracing::error!("a turn ended without a head");
        return Err(Problem::new(
            502,
            "turn_lost",
            "The turn ended before it was answered. Send the request again, and look at `weir turns`.",
        ));
    };
    Ok(match head {
        Head::Refused(refused) => error::refused(refused),
        Head::Whole(answer) => error::json(200, answer.into_bytes()),
        Head::Stream(headers) => {
            let mut response = Body::from_stream(answer.body).into_response();
            let sent = response.headers_mut();
            sent.extend(headers);
            sent.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            sent.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            if codex {
                // Codex reads its catalog again when this tag changes, and so learns of a mode that was changed.
                let etag = models::served(&endpoint.turns).etag;
                if let Ok(etag) = HeaderValue::from_str(&etag) {
                    sent.insert(wire::MODELS_ETAG_HEADER, etag);
                }
            }
            response
        }
    })
}

/// A WebSocket is not offered; 426 is the answer that lets Codex go on over HTTP without a word.
pub async fn upgrade() -> Response {
    let problem = Problem::new(
        426,
        "no_websocket",
        "Weir does not offer WebSockets here. Send POST requests to this path.",
    );
    // A client that waits for another protocol on this connection sees that there is none.
    ([(header::CONNECTION, HeaderValue::from_static("close"))], problem).into_response()
}
