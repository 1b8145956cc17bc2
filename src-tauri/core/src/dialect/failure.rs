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
