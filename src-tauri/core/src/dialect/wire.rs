//! Every constant of the backend's undocumented wire, in one place.
//!
//! The backend changes weekly; what follows it is changed here and nowhere else.
//!
//! **Invariant**: no other module spells a header, path or marker of the backend.

/// Where the Codex backend lives unless `WEIR_CODEX_BASE_URL` says otherwise.
pub const CODEX_BASE_URL: &str = "https://chatgpt.com/backend-api/codex";

/// Paths below a base URL.
pub const RESPONSES_PATH: &str = "/responses";
pub const MODELS_PATH: &str = "/models";

/// The Lite marker of an HTTP request. Only the value `true` is ever sent.
pub const LITE_HEADER: &str = "x-openai-internal-codex-responses-lite";
/// The same marker inside `client_metadata` of a WebSocket frame.
pub const LITE_METADATA_KEY: &str = "ws_request_header_x_openai_internal_codex_responses_lite";

pub const ACCOUNT_HEADER: &str = "chatgpt-account-id";
pub const ORIGINATOR_HEADER: &str = "originator";
/// Our own originator: Weir does not pass as another client.
pub const ORIGINATOR: &str = "weir";
/// The client version that the catalog is asked for; it decides which models are listed.
pub const CATALOG_CLIENT_VERSION: &str = "0.171.0";
/// Changed by the backend when the catalog changed.
pub const MODELS_ETAG_HEADER: &str = "x-models-etag";
/// Sticky routing state, valid within one turn of one account.
pub const TURN_STATE_HEADER: &str = "x-codex-turn-state";
