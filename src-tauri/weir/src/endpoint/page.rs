//! The page, as it was built into the program.
//!
//! The files hold no secret and need no key; what they show they ask `/api` for, which does.
//!
//! **Invariant**: everything the page loads comes from here; the policy in its headers allows nothing else.

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use http::{HeaderValue, header};
use rust_embed::RustEmbed;

use super::error::Problem;

const POLICY: &str =
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Built by `npm run build` in `ui`; a program built without it serves a page that says so.
#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Dist;

const UNBUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Weir</title>\
<h1>The page is not built into this program</h1>\
<p>The endpoint works. For the page, run <code>npm ci &amp;&amp; npm run build</code> in <code>ui</code>, then build Weir again.</p></html>";

pub fn router() -> Router {
    Router::new().route("/", get(index)).route("/assets/{*path}", get(asset))
}

async fn index() -> Response {
    match Dist::get("index.html") {
        Some(file) => guarded(Html(file.data).into_response(), "no-cache"),
        None => guarded(Html(UNBUILT).into_response(), "no-cache"),
    }
}

async fn asset(path: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    let file = path.ok().and_then(|Path(path)| Dist::get(&format!("assets/{path}")));
    let file = file.ok_or_else(|| {
        Problem::new(404, "unknown_path", "This file is not part of the page. Open / again.")
    })?;
    let kind = HeaderValue::from_str(file.metadata.mimetype())
        .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
    // Names carry a hash of their content, so that a file under one name never changes.
    Ok(guarded(
        ([(header::CONTENT_TYPE, kind)], file.data).into_response(),
        "public, max-age=31536000, immutable",
    ))
}

fn guarded(mut response: Response, caching: &'static str) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    response
}
