//! How a turn that cannot be served ends for its client.
//!
//! Before the status is out that is a status with an envelope; after it, a `response.failed` in the stream. Both carry
//! a sentence that says what to do.
//!
//! **Invariant**: wording stays clear of what OpenCode takes for a reason to try again, unless trying again is right.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use weir_core::dialect::mode::{Decision, Dialect, Source as ModeSource};
use weir_core::dialect::object::Object;
use weir_core::dialect::refusal;

use super::clock::now_s;
use super::journal::{End, Outcome};
use super::progress;
use super::sink::{Refused, Sink};
use crate::accounts::choose::Nobody;
use crate::upstream::failure::{Failure, Source};

/// A turn's bad end: what the journal and the client are told.
#[derive(Debug)]
pub struct Bad {
    pub outcome: Outcome,
    pub refused: Refused,
    pub code: String,
    pub message: String,
    /// The sentence is Weir's own and may be kept.
    pub ours: bool,
}

pub fn refused(status: u16, kind: &str, code: &str, message: &str) -> Refused {
    let body = refusal::envelope(kind, code, None, message).to_string().into_bytes();
    Refused { status, body, retry_after: None }
}

impl Bad {
    fn new(outcome: Outcome, status: u16, kind: &str, code: &str, message: String) -> Self {
        let refused = refused(status, kind, code, &message);
        Self { outcome, refused, code: code.to_owned(), message, ours: true }
    }

    /// The request itself cannot be sent.
    pub fn request(refusal: &refusal::Refusal) -> Self {
        Self {
            outcome: Outcome::Refused,
            refused: Refused {
                status: refusal.status,
                body: refusal.envelope().to_string().into_bytes(),
                retry_after: None,
            },
            code: refusal.code.to_owned(),
            message: refusal.message.clone(),
            ours: true,
        }
    }

    /// No account can serve.
    pub fn nobody(nobody: &Nobody, model: &str, decision: &Decision, known: &[String]) -> Self {
        let model = refusal::word(model, "this model");
        let bad = |status, code, message| {
            Self::new(Outcome::Refused, status, "invalid_request_error", code, message)
        };
        match nobody {
            Nobody::NoAccounts => bad(
                403,
                "no_account",
                "Weir has no account yet. Start `weir serve --practice` to try it without one."
                    .into(),
            ),
            Nobody::ModelUnknown => {
                let list = known.join(", ");
                bad(
                    400,
                    "model_not_found",
                    format!(
                        "No account of the pool offers the model `{model}`. Choose one of: {list}."
                    ),
                )
            }
            Nobody::DialectNotCarried => {
                let dialect = name(decision.dialect);
                bad(
                    400,
                    "dialect_not_carried",
                    format!(
                        "`{model}` resolved to {dialect}, and no account of the pool offers it in that form. Choose another form with `weir mode {model} lite` or `weir mode {model} full`."
                    ),
                )
            }
            Nobody::CatalogUnknown => Self::new(
                Outcome::Refused,
                503,
                "upstream_error",
                "no_model_list",
                "No account's list of models could be read. `weir accounts` says why.".into(),
            ),
            Nobody::Resting => bad(403, "accounts_refused", "The backend refuses every account that could serve this turn. `weir accounts` says why.".into()),
            Nobody::AllTried => Self::new(
                Outcome::Failed,
                503,
                "upstream_error",
                "all_accounts_refused",
                "Every account that could serve this turn refused it. `weir accounts` says why."
                    .into(),
            ),
            Nobody::Exhausted { resets_at } => Self::exhausted(*resets_at, None),
        }
    }

    /// The whole pool is at its limit, in the form that Codex and OpenCode understand.
    fn exhausted(resets_at: Option<i64>, plan: Option<&str>) -> Self {
        let message = "Every account of the pool has reached its usage limit. `weir accounts` shows when each one resets.";
        let mut error = json!({"type": "usage_limit_reached", "code": "usage_limit_reached", "message": message});
        let mut retry_after = None;
        if let Some(at) = resets_at {
            let wait = (at - now_s()).max(0);
            error["resets_at"] = json!(at);
            error["resets_in_seconds"] = json!(wait);
            retry_after = Some(wait);
        }
        if let Some(plan) = plan {
            error["plan_type"] = json!(plan);
        }
        Self {
            outcome: Outcome::Refused,
            refused: Refused {
                status: 429,
                body: json!({"error": error}).to_string().into_bytes(),
                retry_after,
            },
            code: "usage_limit_reached".into(),
            message: message.into(),
            ours: true,
        }
    }

    /// Three accounts were found at their limits in one turn, and others were not asked.
    pub fn still_others() -> Self {
        let message = "Three accounts turned out to be at their limits. Send the request again; others are left.";
        Self::new(Outcome::Failed, 503, "upstream_error", "accounts_at_limit", message.into())
    }

    /// The last account that was asked failed, and no other may be.
    pub fn failure(failure: &Failure, model: &str, decision: &Decision) -> Self {
        if failure.source == Source::Limit {
            return Self {
                outcome: Outcome::Failed,
                ..Self::exhausted(failure.resets_at, failure.plan.as_deref())
            };
        }
        let message = match hint(failure, model, decision) {
            Some(hint) => format!("{} {hint}", failure.message),
            None => failure.message.clone(),
        };
        let mut bad =
            Self::new(Outcome::Failed, failure.status, &failure.kind, &failure.code, message);
        if bad.message == failure.message
            && let Some(body) = failure.body.as_ref().filter(|body| has_envelope(body))
        {
            bad.refused.body.clone_from(body);
        }
        bad.ours = failure.ours;
        bad.refused.retry_after = failure.retry_after;
        bad
    }

    /// Tells the client and returns what the journal is told.
    pub async fn tell(self, sink: &mut Sink) -> End {
        let end = if self.ours {
            End::with(self.outcome, &self.code, &self.message)
        } else {
            End::theirs(self.outcome, &self.code, &self.message)
        };
        if sink.begun() {
            let failed = refusal::failed_event("resp_weir", 0, &self.code, &self.message);
            let frame = progress::frame(Some("response.failed"), &failed.to_string());
            // A client that has gone needs no ending.
            drop(sink.write(frame).await);
        } else {
            sink.refuse(self.refused);
        }
        end
    }
}

/// What to do when the backend refuses a form that the user chose against its catalog.
fn hint(failure: &Failure, model: &str, decision: &Decision) -> Option<String> {
    let model = refusal::word(model, "MODEL");
    let overridden = decision.source == ModeSource::Override;
    let about_the_form =
        matches!(failure.source, Source::Request | Source::Entitlement | Source::Account);
    (overridden && about_the_form).then(|| {
        let dialect = name(decision.dialect);
        format!("(`{model}` is set to {dialect} in Weir, which the backend does not promise to accept; `weir mode {model} auto` goes back to what its catalog says.)")
    })
}

fn name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Lite => "Lite",
        Dialect::Full => "Full",
    }
}

fn has_envelope(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|body| body["error"]["message"].is_string())
}

/// A completed event as clients know it: under its usual name, and with usage. OpenCode sends a turn again without end
/// when usage is missing, so an estimate takes its place and says so.
pub fn completed(data: &str, kind: &str, estimate: Option<&Value>) -> String {
    let known = kind == "response.completed";
    if known && estimate.is_none() {
        return data.to_owned();
    }
    let Ok(mut event) = Object::parse(data) else { return data.to_owned() };
    if !known {
        event.set("type", raw(&json!("response.completed")));
    }
    if let (Some(estimate), Some(mut response)) =
        (estimate, event.get("response").and_then(Object::of))
    {
        response.set("usage", raw(estimate));
        response.set("weir", raw(&json!({"usage_estimated": true})));
        event.set("response", response.to_raw());
    }
    event.to_raw().get().to_owned()
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("a JSON value")
}
