//! Every constant of the backend's undocumented wire, in one place.
//!
//! The backend changes weekly; what follows it is changed here and nowhere else.
//!
//! **Invariant**: no other module spells a header, path or marker of the backend.

/// Where the Codex backend lives unless `WEIR_CODEX_BASE_URL` says otherwise.
pub const CODEX_BASE_URL: &str = "https://chatgpt.com/backend-api/codex";
/// Where usage is read unless `WEIR_USAGE_BASE_URL` says otherwise.
pub const USAGE_BASE_URL: &str = "https://chatgpt.com/backend-api";

/// Paths below a base URL.
pub const RESPONSES_PATH: &str = "/responses";
pub const MODELS_PATH: &str = "/models";
/// The end of a Codex base URL that the usage probe's base does not have.
pub const CODEX_SEGMENT: &str = "/codex";
/// Below [`USAGE_BASE_URL`].
pub const USAGE_PATH: &str = "/wham/usage";

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
/// The query parameter that carries it.
pub const CATALOG_VERSION_PARAMETER: &str = "client_version";
/// Changed by the backend when the catalog changed.
pub const MODELS_ETAG_HEADER: &str = "x-models-etag";
/// Sticky routing state, valid within one turn of one account.
pub const TURN_STATE_HEADER: &str = "x-codex-turn-state";

/// Asked for by a WebSocket upgrade; plain HTTP carries no beta at all.
pub const BETA_HEADER: &str = "openai-beta";
pub const RESPONSES_WEBSOCKETS_BETA: &str = "responses_websockets=2026-02-06";

/// The type of a request's frame.
pub const CREATE_FRAME: &str = "response.create";
/// Codes of errors with which the backend says of a frame that it did nothing with it: the connection is too old, and what the
/// frame continues is not there.
pub const CONNECTION_TOO_OLD: &str = "websocket_connection_limit_reached";
pub const PREVIOUS_NOT_FOUND: &str = "previous_response_not_found";

/// Who asks, as clients say it.
pub const THREAD_ID_HEADER: &str = "thread-id";
pub const SESSION_ID_HEADER: &str = "session-id";
pub const X_SESSION_ID_HEADER: &str = "x-session-id";
pub const PARENT_SESSION_HEADER: &str = "x-parent-session-id";
pub const PARENT_THREAD_HEADER: &str = "x-codex-parent-thread-id";
/// Says which kind of subagent asks, for example `collab_spawn`.
pub const SUBAGENT_HEADER: &str = "x-openai-subagent";
/// Changes when a conversation is compacted; identifies nothing.
pub const WINDOW_ID_HEADER: &str = "x-codex-window-id";
/// A JSON object as a string.
pub const TURN_METADATA_HEADER: &str = "x-codex-turn-metadata";
pub const INSTALLATION_ID_HEADER: &str = "x-codex-installation-id";

/// What an answer says about the account that served it. A quota header is this prefix, a slot, and a suffix such as
/// `-used-percent`, `-window-minutes`, `-reset-at`.
pub const QUOTA_HEADER_PREFIX: &str = "x-codex-";
pub const PLAN_TYPE_HEADER: &str = "x-codex-plan-type";
pub const LIMIT_REACHED_HEADER: &str = "x-codex-rate-limit-reached-type";
/// What to quote when asking the provider about a request.
pub const REQUEST_ID_HEADERS: [&str; 2] = ["x-request-id", "x-oai-request-id"];

/// `error.type` of an account that has used up a window. Clients know no other name for it.
pub const USAGE_LIMIT_REACHED: &str = "usage_limit_reached";

/// The catalog's field that says which dialect a model wants.
pub const CATALOG_LITE_FIELD: &str = "use_responses_lite";

/// Input item that carries tools in Lite.
pub const ADDITIONAL_TOOLS: &str = "additional_tools";
/// The namespace that Lite puts a caller's flat tools in.
pub const FUNCTIONS_NAMESPACE: &str = "functions";
/// What Lite demands of `reasoning.context`.
pub const LITE_REASONING_CONTEXT: &str = "all_turns";
/// Without this entry of `include` the model forgets its thoughts between turns, since nothing is stored.
pub const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// Parameters of the public APIs that the backend refuses by name. What Weir can honour it honours; these it cannot.
pub const REJECTED_PARAMETERS: [&str; 16] = [
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "metadata",
    "n",
    "presence_penalty",
    "prompt_cache_retention",
    "safety_identifier",
    "stop",
    "temperature",
    "top_p",
    "truncation",
    "user",
];

/// Tools that the backend itself runs. Lite knows functions, custom tools and the client's tool search only. A type counts
/// with its dated variants, for example `web_search_preview_2025_03_11`.
pub const HOSTED_TOOLS: [&str; 9] = [
    "code_interpreter",
    "computer",
    "computer_use",
    "computer_use_preview",
    "file_search",
    "image_generation",
    "mcp",
    "web_search",
    "web_search_preview",
];

/// Calls that the backend ran itself: nobody owes them an output.
pub const HOSTED_CALLS: [&str; 5] = [
    "code_interpreter_call",
    "file_search_call",
    "image_generation_call",
    "mcp_call",
    "web_search_call",
];

/// How the id of an item must begin, by the item's type. Types that are not listed are not looked at.
pub const ITEM_ID_PREFIXES: [(&str, &str); 10] = [
    ("additional_tools", "at_"),
    ("agent_message", "amsg_"),
    ("compaction", "cmp_"),
    ("custom_tool_call", "ctc_"),
    ("custom_tool_call_output", "ctco_"),
    ("function_call", "fc_"),
    ("function_call_output", "fco_"),
    ("message", "msg_"),
    ("reasoning", "rs_"),
    ("tool_search_output", "tso_"),
];

/// Events about the connection or the account, not about the answer.
pub const CONTROL_EVENTS: [&str; 7] = [
    "codex.rate_limits",
    "codex.response.metadata",
    "keepalive",
    "ping",
    "response.keepalive",
    "response.metadata",
    "responsesapi.websocket_timing",
];
