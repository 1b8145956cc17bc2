//! What Weir says about itself, and what it passes on of what a client said.
//!
//! Towards the backend Weir is honest: its own originator and user agent, unless the client is itself a Codex client, whose
//! own are then passed on. A client's credentials and Lite marker never are.
//!
//! **Invariant**: only headers named here leave; a client cannot add one.

use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use weir_core::dialect::mode::Dialect;
use weir_core::dialect::wire;

use crate::accounts::account::Account;
use crate::accounts::quota::{self, Window};

/// The user agent of Weir's own requests.
pub const WEIR_USER_AGENT: &str = concat!("weir/", env!("CARGO_PKG_VERSION"));

/// The client's headers that belong to its conversation and reach the backend as they are.
const PASSED_ON: [&str; 14] = [
    "session-id",
    "thread-id",
    "x-client-request-id",
    "x-codex-beta-features",
    "x-codex-installation-id",
    "x-codex-parent-thread-id",
    "x-codex-turn-metadata",
    "x-codex-turn-state",
    "x-codex-window-id",
    "x-openai-subagent",
    "x-parent-session-id",
    "x-responsesapi-include-timing-metrics",
    "x-session-affinity",
    "x-session-id",
];

/// Identity headers that only a Codex client's own values replace.
const IDENTITY: [&str; 3] = ["originator", "user-agent", "version"];

/// Whether a request comes from a Codex client, by the originator that it names.
pub fn is_codex(client: &HeaderMap) -> bool {
    client
        .get(wire::ORIGINATOR_HEADER)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|originator| originator.to_ascii_lowercase().starts_with("codex"))
}

/// What of a client's headers goes upstream with its turn.
pub fn passed_on(client: &HeaderMap) -> HeaderMap {
    let identity: &[&str] = if is_codex(client) { &IDENTITY } else { &[] };
    let mut headers = HeaderMap::new();
    for name in PASSED_ON.iter().chain(identity) {
        if let Some(value) = client.get(*name) {
            headers.insert(HeaderName::from_static(name), value.clone());
        }
    }
    headers
}

/// What of the backend's answer goes to the client: the serving account's windows, which Codex shows, and what
/// belongs to the turn.
pub fn for_client(answer: &HeaderMap) -> HeaderMap {
    let wanted = |name: &str| {
        name == "openai-model"
            || name == "x-reasoning-included"
            || name == wire::TURN_STATE_HEADER
            || (name.starts_with("x-codex-")
                && [
                    "-used-percent",
                    "-window-minutes",
                    "-reset-at",
                    "-limit-name",
                    "-reached-type",
                ]
                .iter()
                .any(|end| name.ends_with(end)))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in answer.iter().filter(|(name, _)| wanted(name.as_str())) {
        headers.insert(name.clone(), value.clone());
    }
    headers
}

/// What an answer's headers tell of the account's windows.
pub fn windows(answer: &HeaderMap) -> Vec<Window> {
    quota::from_headers(|name| answer.get(name)?.to_str().ok())
}

/// The headers that an event carries, where no answer's head could.
pub fn of_event(event: &serde_json::Map<String, serde_json::Value>) -> HeaderMap {
    let said = event.get("headers").and_then(serde_json::Value::as_object);
    let pairs = said.into_iter().flatten().filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value.as_str()?).ok()?))
    });
    pairs.collect()
}

/// The headers of one request of `account`. Errors: the token or the account id is not a header value.
pub fn for_account(account: &Account) -> Result<HeaderMap, http::header::InvalidHeaderValue> {
    let mut headers = HeaderMap::new();
    let mut bearer = HeaderValue::from_str(&format!("Bearer {}", account.token.expose()))?;
    bearer.set_sensitive(true);
    headers.insert(AUTHORIZATION, bearer);
    if let Some(id) = &account.backend_account_id {
        headers.insert(wire::ACCOUNT_HEADER, HeaderValue::from_str(id)?);
    }
    headers.insert(wire::ORIGINATOR_HEADER, HeaderValue::from_static(wire::ORIGINATOR));
    headers.insert(USER_AGENT, HeaderValue::from_static(WEIR_USER_AGENT));
    Ok(headers)
}

/// The names under which the backend keeps a conversation's cache warm.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Shared by the conversations of one session.
    pub session: &'a str,
    pub thread: &'a str,
}

/// The headers of a turn: the account's, what the client passes on, the conversation's names where the client gave none,
/// and the dialect's marker. A name that changes from turn to turn would cost the cache, so none is ever made up anew.
pub fn for_turn(
    account: &Account,
    client: &HeaderMap,
    names: Names<'_>,
    dialect: Dialect,
) -> Result<HeaderMap, http::header::InvalidHeaderValue> {
    let mut headers = for_account(account)?;
    headers.extend(passed_on(client));
    let derived = [
        ("session-id", names.session),
        ("thread-id", names.thread),
        ("x-client-request-id", names.thread),
    ];
    for (name, value) in derived {
        if !headers.contains_key(name) {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value)?);
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if dialect == Dialect::Lite {
        headers.insert(wire::LITE_HEADER, HeaderValue::from_static("true"));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::secret::Secret;

    const NAMES: Names<'static> = Names { session: "group", thread: "conversation" };

    #[test]
    fn a_conversation_keeps_its_names_and_the_clients_own_stand() {
        let none =
            for_turn(&account(), &HeaderMap::new(), NAMES, Dialect::Full).expect("valid values");
        assert_eq!(none["session-id"], "group");
        assert_eq!(none["thread-id"], "conversation");
        let own = client(&[("session-id", "s"), ("thread-id", "t"), ("x-client-request-id", "r")]);
        let own = for_turn(&account(), &own, NAMES, Dialect::Full).expect("valid values");
        assert_eq!(own["session-id"], "s");
        assert_eq!(own["thread-id"], "t");
        assert_eq!(own["x-client-request-id"], "r");
    }

    fn account() -> Account {
        Account {
            id: "a".into(),
            name: "a".into(),
            plan: None,
            base_url: "http://127.0.0.1:1".into(),
            backend_account_id: Some("acct".into()),
            token: Secret::new("ours"),
        }
    }

    fn client(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn a_client_can_neither_pay_with_its_own_token_nor_choose_the_dialect() {
        let client = client(&[
            ("authorization", "Bearer theirs"),
            ("chatgpt-account-id", "theirs"),
            ("x-openai-internal-codex-responses-lite", "true"),
            ("cookie", "a=b"),
            ("session-id", "s"),
        ]);
        let headers = for_turn(&account(), &client, NAMES, Dialect::Full).expect("valid values");
        assert_eq!(headers["authorization"], "Bearer ours");
        assert_eq!(headers["chatgpt-account-id"], "acct");
        assert_eq!(headers["session-id"], "s");
        assert!(!headers.contains_key(wire::LITE_HEADER));
        assert!(!headers.contains_key("cookie"));
        let lite =
            for_turn(&account(), &HeaderMap::new(), NAMES, Dialect::Lite).expect("valid values");
        assert_eq!(lite[wire::LITE_HEADER], "true");
    }

    #[test]
    fn only_a_codex_client_speaks_for_itself() {
        let opencode = client(&[("originator", "opencode"), ("user-agent", "opencode/1")]);
        let headers = for_turn(&account(), &opencode, NAMES, Dialect::Full).expect("valid values");
        assert_eq!(headers["originator"], "weir");
        assert_eq!(headers["user-agent"], WEIR_USER_AGENT);
        let codex = client(&[("originator", "codex_exec"), ("user-agent", "codex_exec/0.171.0")]);
        let headers = for_turn(&account(), &codex, NAMES, Dialect::Full).expect("valid values");
        assert_eq!(headers["originator"], "codex_exec");
        assert_eq!(headers["user-agent"], "codex_exec/0.171.0");
    }
}
