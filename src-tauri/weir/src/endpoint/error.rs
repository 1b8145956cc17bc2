//! A request that ends at the endpoint, in the envelope that OpenAI clients read.
//!
//! **Invariant**: each carries a code and a sentence that says what to change; causes go to the log only.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use weir_core::dialect::refusal::{Refusal, envelope};

use crate::turn::sink::Refused;

#[derive(Debug)]
pub struct Problem {
    pub status: u16,
    pub code: &'static str,
    pub param: Option<String>,
    pub message: String,
}

impl Problem {
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, param: None, message: message.into() }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let Refusal { status, code, param, message } = refusal;
        Self { status, code, param, message }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body =
            envelope("invalid_request_error", self.code, self.param.as_deref(), &self.message);
        json(self.status, body.to_string().into_bytes())
    }
}

pub fn json(status: u16, body: Vec<u8>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (status, [kind], body).into_response()
}

/// A turn that could not be served.
pub fn refused(refused: Refused) -> Response {
    let mut response = json(refused.status, refused.body);
    if let Some(seconds) = refused.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}
