//! What a terminal event says about cost and about what went wrong.
//!
//! The backend says "failed" in four shapes: a nested `error`, a flat one, a `response` with an error or a reason in it, and
//! a typeless body that is no event at all.
//!
//! **Invariant**: a number that was not sent is absent, never zero, and nothing is concluded from a message's wording.

use serde::Serialize;
use serde_json::value::RawValue;

use super::raw;

/// Tokens of one turn, as the backend counted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    pub input: u64,
    /// The part of `input` that was read from the cache.
    pub cached: Option<u64>,
    pub output: u64,
    /// The part of `output` that nobody sees.
    pub reasoning: Option<u64>,
    pub total: Option<u64>,
}

impl Usage {
    /// From a response's `usage`. None when it lacks input or output: half a number would be taken for a whole one.
    pub(super) fn of(usage: &RawValue) -> Option<Self> {
        let within = |details: &str, name: &str| {
            raw::field(usage, details)
                .and_then(|details| raw::field(details, name))
                .and_then(raw::count)
        };
        Some(Self {
            input: raw::field(usage, "input_tokens").and_then(raw::count)?,
            cached: within("input_tokens_details", "cached_tokens"),
            output: raw::field(usage, "output_tokens").and_then(raw::count)?,
            reasoning: within("output_tokens_details", "reasoning_tokens"),
            total: raw::field(usage, "total_tokens").and_then(raw::count),
        })
    }
}

/// Why a turn did not end well, in the backend's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `error.type`, for example `usage_limit_reached`.
    pub kind: Option<String>,
    pub code: Option<String>,
    /// The backend's message, or a sentence that says that there was none.
    pub message: String,
    /// The HTTP status that the event claims.
    pub status: Option<u16>,
    /// `incomplete_details.reason`.
    pub reason: Option<String>,
    /// Unix seconds at which the limit that was hit is lifted.
    pub resets_at: Option<i64>,
    pub plan_type: Option<String>,
}

impl Failure {
    /// From an `error` event or a typeless body. `error` and `detail` are those fields of it, `top` is all of it.
    pub(super) fn of_error(
        top: &RawValue,
        error: Option<&RawValue>,
        detail: Option<&RawValue>,
    ) -> Self {
        let error = error.filter(|error| !raw::is_null(error));
        let said = match error {
            // `"error": "words"` is seen from proxies on the way.
            Some(error) => raw::text(error).map(|text| text.into_owned()),
            None => detail.map(|detail| {
                raw::text(detail).map_or_else(|| detail.get().to_owned(), |text| text.into_owned())
            }),
        };
        // A flat event has its own `type`, "error", which is no kind of failure.
        let mut failure = Self::read(error.unwrap_or(top), said);
        if error.is_none() {
            failure.kind = None;
        }
        failure.status = ["status_code", "status"]
            .iter()
            .find_map(|name| status(raw::field(top, name)?))
            .or(failure.status);
        failure
    }

    /// From the `response` of a failed or incomplete one.
    pub(super) fn of_response(response: &RawValue) -> Self {
        let error = raw::field(response, "error").filter(|error| !raw::is_null(error));
        let details = raw::field(response, "incomplete_details");
        let reason = details
            .and_then(|details| raw::field(details, "reason"))
            .and_then(raw::text)
            .map(|text| text.into_owned());
        let said = error
            .and_then(raw::text)
            .or_else(|| {
                details.and_then(|details| raw::field(details, "message")).and_then(raw::text)
            })
            .map(|text| text.into_owned())
            .or_else(|| {
                reason
                    .as_ref()
                    .filter(|_| error.is_none())
                    .map(|reason| format!("The answer is incomplete: {reason}."))
            });
        let mut failure = match error {
            Some(error) => Self::read(error, said),
            None => Self::without_error(said),
        };
        failure.reason = reason;
        failure
    }

    fn read(error: &RawValue, said: Option<String>) -> Self {
        let text =
            |name: &str| raw::field(error, name).and_then(raw::text).map(|text| text.into_owned());
        let mut failure = Self::without_error(text("message").or(said));
        failure.kind = text("type");
        failure.code = text("code");
        failure.status =
            ["status_code", "status"].iter().find_map(|name| status(raw::field(error, name)?));
        failure.resets_at = raw::field(error, "resets_at").and_then(raw::integer);
        failure.plan_type = text("plan_type");
        failure
    }

    fn without_error(said: Option<String>) -> Self {
        Self {
            kind: None,
            code: None,
            message: said
                .unwrap_or_else(|| "The backend reported a failure and gave no reason.".to_owned()),
            status: None,
            reason: None,
            resets_at: None,
            plan_type: None,
        }
    }
}

fn status(value: &RawValue) -> Option<u16> {
    value.get().parse().ok().filter(|status| (100..=599).contains(status))
}

#[cfg(test)]
mod tests {
    use super::super::event::{Event, Role};
    use super::*;

    fn failure(data: &str) -> Failure {
        Event::read(data).expect("an event").failure().expect("a failure")
    }

    fn of(kind: Option<&str>, code: Option<&str>, message: &str) -> Failure {
        let mut failure = Failure::without_error(Some(message.to_owned()));
        failure.kind = kind.map(str::to_owned);
        failure.code = code.map(str::to_owned);
        failure
    }

    #[test]
    fn every_shape_of_an_error_is_read() {
        let limit = Failure {
            status: Some(429),
            resets_at: Some(1_777_936_568),
            plan_type: Some("plus".to_owned()),
            ..of(Some("usage_limit_reached"), None, "The usage limit has been reached")
        };
        for (data, expected) in [
            (
                r#"{"type":"error","error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":1777936568,"resets_in_seconds":13872,"eligible_promo":null},"status_code":429,"headers":{"X-Codex-Primary-Used-Percent":"100"}}"#,
                limit,
            ),
            (
                r#"{"type":"error","sequence_number":3,"code":"server_error","message":"Flat","param":null}"#,
                of(None, Some("server_error"), "Flat"),
            ),
            (
                r#"{"type":"error","error":{"type":"t","code":null,"message":"Nested"}}"#,
                of(Some("t"), None, "Nested"),
            ),
            (
                r#"{"type":"error","error":{"message":"Within.","status":503},"status":null}"#,
                Failure { status: Some(503), ..of(None, None, "Within.") },
            ),
            (r#"{"type":"error","error":"only words"}"#, of(None, None, "only words")),
            (
                r#"{"detail":"Store must be set to false"}"#,
                of(None, None, "Store must be set to false"),
            ),
            (r#"{"detail":[{"loc":["x"]}]}"#, of(None, None, r#"[{"loc":["x"]}]"#)),
            (
                r#"{"error":{"message":"Invalidated.","type":"invalid_request_error","code":"token_invalidated","param":null},"status":401}"#,
                Failure {
                    status: Some(401),
                    ..of(Some("invalid_request_error"), Some("token_invalidated"), "Invalidated.")
                },
            ),
            (
                r#"{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"invalid_prompt","message":"No."}}}"#,
                of(None, Some("invalid_prompt"), "No."),
            ),
            (
                r#"{"type":"response.failed","error":{"code":"c","message":"Beside."}}"#,
                of(None, Some("c"), "Beside."),
            ),
            (
                r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"},"error":null}}"#,
                Failure {
                    reason: Some("content_filter".to_owned()),
                    ..of(None, None, "The answer is incomplete: content_filter.")
                },
            ),
            (
                r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"usage_limit_reached","message":"The usage limit has been reached"}}}"#,
                Failure {
                    reason: Some("usage_limit_reached".to_owned()),
                    ..of(None, None, "The usage limit has been reached")
                },
            ),
            (
                r#"{"type":"response.failed","response":{"error":null}}"#,
                of(None, None, "The backend reported a failure and gave no reason."),
            ),
            (
                r#"{"type":"error"}"#,
                of(None, None, "The backend reported a failure and gave no reason."),
            ),
        ] {
            assert_eq!(failure(data), expected, "{data}");
        }
    }

    #[test]
    fn what_ended_well_is_no_failure() {
        for data in [
            r#"{"type":"response.completed","response":{"error":{"code":"c"}}}"#,
            r#"{"type":"response.output_text.delta","delta":"error","error":{"code":"c"}}"#,
        ] {
            assert_eq!(Event::read(data).expect("an event").failure(), None, "{data}");
        }
    }

    #[test]
    fn usage_is_whole_or_absent() {
        let usage = |usage: &str| {
            let data = format!(r#"{{"type":"response.completed","response":{{"usage":{usage}}}}}"#);
            Event::read(&data).expect("an event").usage()
        };
        let whole = r#"{"input_tokens":100,"input_tokens_details":{"cached_tokens":40},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":12},"total_tokens":130}"#;
        assert_eq!(
            usage(whole),
            Some(Usage {
                input: 100,
                cached: Some(40),
                output: 30,
                reasoning: Some(12),
                total: Some(130)
            })
        );
        assert_eq!(
            usage(r#"{"input_tokens":0,"output_tokens":0,"input_tokens_details":null}"#),
            Some(Usage { input: 0, cached: None, output: 0, reasoning: None, total: None })
        );
        for half in [
            "null",
            "{}",
            r#"{"input_tokens":1}"#,
            r#"{"output_tokens":1}"#,
            r#"{"input_tokens":null,"output_tokens":1}"#,
        ] {
            assert_eq!(usage(half), None, "{half}");
        }
        let early = r#"{"type":"response.created","response":{"usage":{"input_tokens":1,"output_tokens":1}}}"#;
        let early = Event::read(early).expect("an event");
        assert_eq!((early.role(), early.usage()), (Role::Preamble, None));
    }
}
