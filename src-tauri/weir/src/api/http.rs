//! The HTTP adapter: `POST /api` carries one command. Whoever calls it has shown the control key.
//!
//! **Invariant**: nothing is decided here.

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::json;

use super::{Api, Command, dispatch};
use crate::endpoint::body;
use crate::endpoint::error::{Problem, json as answer};

pub fn router(api: Api) -> Router {
    Router::new().route("/api", post(command)).with_state(api)
}

async fn command(State(api): State<Api>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts.headers, body).await?;
    let command: Command = serde_json::from_slice(&bytes).map_err(|error| {
        Problem::new(
            400,
            "unknown_command",
            format!("This is not a command that Weir knows: {error}."),
        )
    })?;
    Ok(match dispatch(&api, command).await {
        Ok(reply) => axum::Json(reply).into_response(),
        Err(refusal) => answer(400, json!({"error": refusal}).to_string().into_bytes()),
    })
}
