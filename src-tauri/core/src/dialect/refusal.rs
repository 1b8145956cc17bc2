//! What a client is told when its request cannot be sent, or a turn failed.
//!
//! One sentence for a person, in the envelope that SDKs read. Clients search these sentences for signs that a retry might
//! help, digits included, so a sentence that means "change your request" must not look like one.
//!
//! **Invariant**: no message that is made here contains what a client takes for a sign to retry.

use serde_json::{Value, json};

/// A request that cannot be sent, in words for the person who sent it. `message` says what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status to answer with.
    pub status: u16,
    /// What programs may branch on.
    pub code: &'static str,
    /// The field at fault, where there is one.
    pub param: Option<String>,
    /// One sentence, and what to do.
    pub message: String,
}

impl Refusal {
    /// A 400 about one field of the request.
    pub fn of_field(code: &'static str, param: &str, message: impl Into<String>) -> Self {
        Self { status: 400, code, param: Some(param.to_owned()), message: message.into() }
    }

    /// A 400 about the request as a whole.
    pub fn of_request(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: 400, code, param: None, message: message.into() }
    }

    /// The body of the answer: `{"error":{"message","type":"invalid_request_error","code","param"}}`.
    pub fn envelope(&self) -> Value {
        envelope("invalid_request_error", self.code, self.param.as_deref(), &self.message)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// The error envelope of the Responses API. `kind` is `error.type`.
pub fn envelope(kind: &str, code: &str, param: Option<&str>, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "code": code, "param": param}})
}

/// `response.failed`, for a stream that has begun. Clients ignore the event when `sequence_number` is missing.
pub fn failed_event(response_id: &str, sequence_number: u64, code: &str, message: &str) -> Value {
    json!({
        "type": "response.failed",
        "sequence_number": sequence_number,
        "response": {
            "id": response_id,
            "object": "response",
            "status": "failed",
            "error": {"code": code, "message": message},
            "incomplete_details": null,
            "output": [],
        },
    })
}

/// Whether a client would take `text` for a sign to retry (OpenCode's patterns, any case).
pub fn looks_retryable(text: &str) -> bool {
    const SIGNS: [&str; 12] = [
        "429",
        "500",
        "502",
        "503",
        "504",
        "524",
        "rate limit",
        "server_error",
        "internal error",
        "overloaded",
        "try again later",
        "timeout",
    ];
    let text = text.to_ascii_lowercase();
    SIGNS.iter().any(|sign| text.contains(sign))
}

/// A position in a document, moved back to the nearest number that no client takes for a status.
pub(super) fn near(mut position: usize) -> usize {
    while position > 0 && looks_retryable(&position.to_string()) {
        // Stepping over the digits at fault at once matters for numbers such as 500_123_456.
        let digits = position.to_string();
        let step =
            (0..digits.len()).rev().find(|&end| !looks_retryable(&digits[..end])).unwrap_or(0);
        let place = 10_usize.saturating_pow((digits.len() - step - 1) as u32);
        position = position - position % place - 1;
    }
    position
}

/// A client's own word for use in a sentence, unless it would make the sentence look retryable.
pub fn word<'a>(theirs: &'a str, instead: &'a str) -> &'a str {
    let plain = theirs.chars().all(|c| c.is_ascii_alphanumeric() || "._-:/".contains(c));
    if plain && theirs.len() <= 128 && !looks_retryable(theirs) { theirs } else { instead }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelope_has_the_four_keys() {
        let refusal = Refusal::of_field("invalid_type", "tools", "`tools` must be a list.");
        assert_eq!(
            refusal.envelope().to_string(),
            r#"{"error":{"message":"`tools` must be a list.","type":"invalid_request_error","code":"invalid_type","param":"tools"}}"#
        );
        assert_eq!(Refusal::of_request("x", "y").envelope()["error"]["param"], Value::Null);
    }

    #[test]
    fn failed_event_is_what_clients_need() {
        let event = failed_event("resp_1", 7, "upstream_gone", "The backend closed the stream.");
        assert_eq!(event["sequence_number"], 7);
        assert_eq!(event["response"]["error"]["code"], "upstream_gone");
        assert_eq!(event["response"]["status"], "failed");
    }

    #[test]
    fn positions_never_look_like_a_status() {
        for (position, expected) in [
            (1, 1),
            (499, 499),
            (500, 499),
            (504, 501),
            (1_500, 1_499),
            (42_999, 42_899),
            (500_123_456, 499_999_999),
        ] {
            assert_eq!(near(position), expected, "{position}");
        }
        for position in (0..70_000).chain(50_000_000..50_001_000) {
            assert!(!looks_retryable(&near(position).to_string()), "{position}");
        }
    }

    #[test]
    fn words_of_a_client_are_repeated_only_when_harmless() {
        assert_eq!(word("gpt-5.6-sol", "MODEL"), "gpt-5.6-sol");
        assert_eq!(word("gpt-500", "MODEL"), "MODEL");
        assert_eq!(word("a\nb", "MODEL"), "MODEL");
        assert_eq!(word("Rate Limit", "MODEL"), "MODEL");
    }
}
