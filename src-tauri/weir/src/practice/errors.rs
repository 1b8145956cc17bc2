//! The refusals of the Codex backend, with its own bodies.
//!
//! Some are `{"detail": …}` (the layer in front), some `{"error": {…}}` (the API behind it), and the usage limit has a
//! type but no code. Clients and pools branch on these differences, so they are kept.
//!
//! **Invariant**: a refusal that the sender could have avoided carries a violation; one that circumstances cause does not.

use serde_json::{Value, json};

/// An answer instead of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) body: Value,
    pub(super) headers: Vec<(String, String)>,
    /// The broken rule, when the sender is to blame.
    pub(super) violation: Option<Box<str>>,
}

impl Refusal {
    fn new(status: u16, body: Value) -> Self {
        Self { status, body, headers: Vec::new(), violation: None }
    }

    /// A 400 of the layer in front.
    pub(super) fn detail(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(400, json!({ "detail": text })).blame(text)
    }

    /// A 400 of the API. `code` is null for some of them.
    pub(super) fn invalid(message: impl Into<String>, param: &str, code: Option<&str>) -> Self {
        let message = message.into();
        let error = json!({
            "message": message, "type": "invalid_request_error", "param": param, "code": code,
        });
        Self::new(400, json!({ "error": error })).blame(message)
    }

    fn blame(mut self, violation: String) -> Self {
        self.violation = Some(violation.into());
        self
    }

    /// The same refusal as nobody's fault.
    pub(super) fn blameless(mut self) -> Self {
        self.violation = None;
        self
    }

    pub(super) fn token_invalidated() -> Self {
        let error = json!({
            "message": "Your authentication token has been invalidated. Please try signing in again.",
            "type": "invalid_request_error", "code": "token_invalidated", "param": null,
        });
        Self::new(401, json!({ "error": error, "status": 401 }))
    }

    pub(super) fn wrong_account(found: Option<&str>) -> Self {
        let mut refusal = Self::token_invalidated();
        refusal.violation = Some(match found {
            Some(_) => "chatgpt-account-id is not the token's account".into(),
            None => "chatgpt-account-id is missing".into(),
        });
        refusal
    }

    pub(super) fn unknown_model(model: &str) -> Self {
        Self::detail(format!(
            "The '{model}' model is not supported when using Codex with a ChatGPT account."
        ))
        .blameless()
    }

    /// What a Lite-only model answers on the full lane.
    pub(super) fn model_not_found(model: &str) -> Self {
        let error = json!({
            "message": format!("Model not found {model}"), "type": "invalid_request_error",
            "param": "model", "code": "model_not_found",
        });
        Self::new(404, json!({ "error": error }))
    }

    pub(super) fn not_for_lite() -> Self {
        Self::invalid(
            "This model is not supported when using X-OpenAI-Internal-Codex-Responses-Lite.",
            "model",
            Some("unsupported_value"),
        )
        .blameless()
    }

    /// Ciphertext of another account, or none of ours.
    pub(super) fn foreign_ciphertext(content: &str) -> Self {
        let head: String = content.chars().take(4).collect();
        let from = content.char_indices().rev().nth(2).map_or(0, |(at, _)| at);
        Self::invalid(
            format!(
                "The encrypted content {head}...{} could not be verified. Reason: Encrypted content could not be \
                 decrypted or parsed.",
                &content[from..]
            ),
            "input",
            Some("invalid_encrypted_content"),
        )
        .blameless()
    }

    /// The usage limit: `type` and no `code`.
    pub(super) fn usage_limit(plan: &str, resets_at: i64, resets_in: i64) -> Self {
        let error = json!({
            "type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": plan,
            "resets_at": resets_at, "resets_in_seconds": resets_in, "eligible_promo": null,
        });
        Self::new(429, json!({ "error": error }))
    }

    pub(super) fn not_found() -> Self {
        Self::new(404, json!({ "detail": "Not Found" }))
    }

    pub(super) fn no_websocket() -> Self {
        Self::new(426, json!({ "detail": "Upgrade Required" }))
    }

    /// What a handshake is refused with when a scenario says so.
    pub(super) fn handshake(status: u16) -> Self {
        match status {
            401 => Self::token_invalidated(),
            426 => Self::no_websocket(),
            400..500 => Self::new(status, json!({ "detail": "Forbidden" })),
            _ => Self::server(status),
        }
    }

    /// The response that a frame goes on from is not held. It is the sender's fault unless this socket gave out the id.
    pub(super) fn previous_response_not_found(id: &str, given: bool) -> Self {
        let refused = Self::invalid(
            format!("Previous response with id '{id}' not found."),
            "previous_response_id",
            Some("previous_response_not_found"),
        );
        if given { refused.blameless() } else { refused }
    }

    /// A socket lives for an hour.
    pub(super) fn socket_too_old() -> Self {
        let error = json!({
            "type": "invalid_request_error", "code": "websocket_connection_limit_reached",
            "message": "Responses websocket connection limit reached (60 minutes). Create a new websocket connection \
                        to continue.",
        });
        Self::new(400, json!({ "error": error }))
    }

    /// A socket answers one request at a time. The sentence is that of the API's other socket; what this one says is not
    /// known.
    pub(super) fn already_answering() -> Self {
        Self::invalid(
            "Conversation already has an active response in progress. Wait until the response is finished before \
             creating a new one.",
            "type",
            Some("conversation_already_has_active_response"),
        )
    }

    /// What a 5xx looks like when a scenario names the status only.
    pub(super) fn server(status: u16) -> Self {
        let error = match status {
            503 => json!({
                "message": "Our servers are currently overloaded. Please try again later.",
                "type": "service_unavailable_error", "code": "server_is_overloaded", "param": null,
            }),
            _ => json!({
                "message": "An error occurred while processing your request.",
                "type": "server_error", "code": "server_error", "param": null,
            }),
        };
        Self::new(status, json!({ "error": error }))
    }
}
