//! Tries both dialects of a model and compares: the experiment behind the serving modes.
//!
//! Three trials each way with the same account, prompt and tool; what is counted is whether the backend takes the form and
//! how many calls the model makes in one response. A probe spends quota, so it only runs when the user asks for it.
//!
//! **Invariant**: a probe changes no setting.

use std::sync::Arc;

use http::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};
use weir_core::dialect::body::Body;
use weir_core::dialect::mode::Dialect;

use super::Refusal;
use crate::accounts::account::AccountId;
use crate::turn::caller::Caller;
use crate::turn::sink::Head;
use crate::turn::{self, Order, Shared, Trial};

const TRIALS: usize = 3;

const PROMPT: &str = "Launch 3 subagents at once with the `task` tool, all in this one response, without waiting for one before \
the next: ask each to reply with the single word alpha, bravo and charlie.";

#[derive(Clone, Debug, Serialize, ts_rs::TS)]
pub struct Report {
    pub model: String,
    pub account: String,
    pub trials: Vec<TrialRow>,
}

#[derive(Clone, Debug, Serialize, ts_rs::TS)]
pub struct TrialRow {
    #[ts(type = "Dialect")]
    pub dialect: Dialect,
    pub trial: usize,
    /// `accepted`, or the backend's code.
    pub answer: String,
    /// Calls in the one response, where there was one.
    pub calls: Option<usize>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// What the backend said when it refused.
    pub message: Option<String>,
}

pub async fn run(shared: &Arc<Shared>, model: &str) -> Result<Report, Refusal> {
    let account = shared
        .pool
        .accounts()
        .into_iter()
        .next()
        .ok_or_else(|| Refusal { code: "no_account", message: "Weir has no account that could probe. Start `weir serve --practice` to try it without one.".into() })?;
    let mut trials = Vec::new();
    for dialect in [Dialect::Lite, Dialect::Full] {
        for trial in 1..=TRIALS {
            trials.push(one(shared, model, &account.id, dialect, trial).await);
        }
    }
    Ok(Report { model: model.to_owned(), account: account.name.clone(), trials })
}

async fn one(
    shared: &Arc<Shared>,
    model: &str,
    account: &AccountId,
    dialect: Dialect,
    trial: usize,
) -> TrialRow {
    let body = Body::parse(request(model).to_string().as_bytes())
        .expect("the probe's request is well formed");
    let conversation = format!("probe_{dialect}_{trial}");
    let order = Order {
        caller: Caller {
            client: "weir-probe".into(),
            codex: false,
            conversation,
            named: false,
            parent: None,
            group: None,
            headers: HeaderMap::new(),
        },
        request_bytes: body.to_bytes().len(),
        body,
        whole: true,
        trial: Some(Trial { dialect, account: Some(account.clone()) }),
    };
    let blank = TrialRow {
        dialect,
        trial,
        answer: "no answer".into(),
        calls: None,
        input_tokens: None,
        output_tokens: None,
        message: None,
    };
    match turn::start(shared, order).head.await {
        Ok(Head::Whole(answer)) => {
            let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
            let output = answer["output"].as_array().map_or(&[][..], Vec::as_slice);
            let calls = output.iter().filter(|item| item["type"] == "function_call").count();
            let tokens = |name: &str| answer["usage"][name].as_u64();
            TrialRow {
                answer: "accepted".into(),
                calls: Some(calls),
                input_tokens: tokens("input_tokens"),
                output_tokens: tokens("output_tokens"),
                ..blank
            }
        }
        Ok(Head::Refused(refused)) => {
            let said: Value = serde_json::from_slice(&refused.body).unwrap_or_default();
            let text = |name: &str| said["error"][name].as_str().map(str::to_owned);
            TrialRow {
                answer: text("code").unwrap_or_else(|| refused.status.to_string()),
                message: text("message"),
                ..blank
            }
        }
        Ok(Head::Stream(_)) | Err(_) => blank,
    }
}

fn request(model: &str) -> Value {
    json!({
        "model": model,
        "instructions": "You are a careful assistant that follows the user's instructions exactly.",
        "input": PROMPT,
        "tools": [{
            "type": "function",
            "name": "task",
            "description": "Launches a subagent. Launch several at once by calling it several times in one response.",
            "strict": false,
            "parameters": {
                "type": "object",
                "properties": {"description": {"type": "string"}, "prompt": {"type": "string"}, "subagent_type": {"type": "string"}},
                "required": ["description", "prompt", "subagent_type"],
            },
        }],
        "tool_choice": "auto",
        "reasoning": {"effort": "low"},
    })
}
