//! The localhost server that clients know.
//!
//! A request passes the [`guard`] (Host, Origin, key), its body is read under a bound ([`body`]), its caller is derived
//! ([`caller`]), and it becomes a turn ([`responses`]). [`models`] serves the catalog in both shapes that clients read.
//!
//! **Invariant**: nothing is sent upstream for a request that did not pass the guard and parse as JSON.

pub mod body;
pub mod caller;
pub mod error;
pub mod guard;
pub mod holder;
pub mod listen;
pub mod models;
pub mod page;
pub mod responses;
pub mod rest;
pub mod sessions;

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use serde_json::json;
use weir_core::dialect::refusal::looks_retryable;

use crate::accounts::secret::Secret;
use crate::turn::Shared;
use error::Problem;
use guard::Keys;
use sessions::Sessions;

/// What the routes share.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub turns: Arc<Shared>,
    /// Runs turns.
    pub data_key: Secret,
    /// Changes Weir.
    pub control_key: Secret,
    /// Keys of open pages, which change Weir too.
    pub sessions: Arc<Sessions>,
}

/// The routes for clients, guarded. `control` are routes that ask for the control key, `open` ask for none.
pub fn router(endpoint: &Endpoint, control: Router, open: Router) -> Router {
    let codex = Router::new()
        .route("/responses", post(responses::create).get(responses::upgrade))
        .route("/models", get(models::list));
    let clients = Router::new()
        .nest("/v1", codex.clone())
        .nest("/backend-api/codex", codex)
        .layer(from_fn_with_state(Keys::data(endpoint), guard::key))
        .with_state(endpoint.clone());
    let control = control.layer(from_fn_with_state(Keys::control(endpoint), guard::key));
    Router::new()
        .merge(clients)
        .merge(control)
        .merge(open)
        .route("/healthz", get(health))
        .merge(page::router())
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(axum::middleware::from_fn(guard::origin))
        .layer(axum::middleware::from_fn(rest::swallow))
}

/// Says what listens here, so that a port in use can be explained.
async fn health() -> Json<serde_json::Value> {
    Json(json!({"product": "weir", "version": env!("CARGO_PKG_VERSION"), "status": "ok"}))
}

async fn unknown(uri: axum::http::Uri) -> Problem {
    not_served(404, "unknown_path", uri.path())
}

async fn wrong_method(method: Method, uri: axum::http::Uri) -> Problem {
    not_served(405, "wrong_method", &format!("{method} {}", uri.path()))
}

/// Repeats what was asked for, unless a client would take something in it for a sign to try again.
fn not_served(status: u16, code: &'static str, asked: &str) -> Problem {
    let asked = if looks_retryable(asked) { "this path" } else { asked };
    Problem::new(
        status,
        code,
        format!("Weir does not serve {asked}. It serves POST /v1/responses and GET /v1/models."),
    )
}
