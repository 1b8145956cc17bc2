//! `GET /v1/models`: the catalog, in the shape that the asker reads.
//!
//! Codex asks with `client_version` and reads `models`, entries as the backend wrote them; the OpenAI SDKs read `data`. The mode
//! in force is laid over each entry, so that Codex builds the dialect that Weir will send.
//!
//! **Invariant**: the tag changes when, and only when, the served catalog does.

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use weir_core::dialect::mode::Dialect;

use super::Endpoint;
use super::error::Problem;
use crate::accounts::catalog::USE_RESPONSES_LITE;
use crate::turn::{Shared, catalogs, decide};

/// The catalog as clients see it.
#[derive(Debug)]
pub struct Served {
    /// Entries in the order of the accounts, each with its effective context where it is known.
    entries: Vec<(String, Option<u64>, Value)>,
    pub etag: String,
}

pub async fn list(
    State(endpoint): State<Endpoint>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let shared = &endpoint.turns;
    catalogs::ensure(shared).await;
    let accounts = shared.pool.accounts().len();
    if accounts > 0 && shared.pool.without_catalog().len() == accounts {
        return Err(Problem::new(
            503,
            "no_model_list",
            "No account's list of models could be read. `weir accounts` says why.",
        ));
    }
    let served = served(shared);
    let codex =
        query.unwrap_or_default().split('&').any(|pair| pair.starts_with("client_version="));
    let body = if codex { served.for_codex() } else { served.for_sdks() };
    let mut response = axum::Json(body).into_response();
    if let Ok(etag) = HeaderValue::from_str(&served.etag) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    Ok(response)
}

/// The catalog with the modes in force laid over it.
pub fn served(shared: &Shared) -> Served {
    let mut changed = false;
    let entries: Vec<_> = shared
        .pool
        .models()
        .into_iter()
        .map(|(model, _)| {
            let context = model.effective_context();
            let lite = decide::decide(shared, &model.slug).dialect == Dialect::Lite;
            let mut entry = model.entry;
            if (entry.get(USE_RESPONSES_LITE) == Some(&Value::Bool(true))) != lite {
                entry[USE_RESPONSES_LITE] = Value::Bool(lite);
                changed = true;
            }
            (model.slug, context, entry)
        })
        .collect();
    let backend_etag = if changed { None } else { shared.pool.common_etag() };
    let etag = backend_etag.unwrap_or_else(|| {
        let mut hash = Sha256::new();
        entries.iter().for_each(|(_, _, entry)| hash.update(entry.to_string()));
        let hex: String = hash.finalize()[..12].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("W/\"weir-{hex}\"")
    });
    Served { entries, etag }
}

impl Served {
    fn for_codex(&self) -> Value {
        json!({"models": self.entries.iter().map(|(_, _, entry)| entry).collect::<Vec<_>>()})
    }

    fn for_sdks(&self) -> Value {
        let data = self.entries.iter().map(|(slug, context, entry)| {
            let mut model =
                json!({"id": slug, "object": "model", "created": 0, "owned_by": "openai"});
            if let Some(name) = entry.get("display_name") {
                model["display_name"] = name.clone();
            }
            if let Some(context) = context {
                model["context_length"] = json!(context);
            }
            model
        });
        json!({"object": "list", "data": data.collect::<Vec<_>>()})
    }
}
