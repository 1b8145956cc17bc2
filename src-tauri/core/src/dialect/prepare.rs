//! From the client's request to what goes upstream for one turn.
//!
//! The order matters: markers go before anything is read, the backend's demands are met before a dialect is written, and
//! calls get their namespace back before history is sent.
//!
//! **Invariant**: `decision` alone chooses the dialect. Nothing in the body, however it is spelled, is asked.

use super::body::Body;
use super::full::to_full;
use super::lite::to_lite;
use super::mode::{Decision, Dialect};
use super::refusal::Refusal;
use super::{namespace, normalise, pairs, scrub};

/// What goes upstream for one turn, and what must be undone in what comes back.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub body: Body,
    /// The decision's dialect. Whoever sends the body adds the Lite marker when it is Lite.
    pub dialect: Dialect,
    /// The caller's tools carry no namespace, so `functions` is taken off the calls that are returned to it.
    pub strip_namespace: bool,
    /// How many items of the history were mended, for the log.
    pub mended: usize,
}

/// Normalises, takes out client markers and rewrites into `decision.dialect`. Doing so twice is the same as once.
///
/// `stripped` says of a call id that Weir took the `functions` namespace off this call when it went to the caller; it is
/// put back, so that the history equals what the backend wrote.
///
/// Errors: what the dialect cannot carry, or no request may say; nothing has been sent then.
pub fn prepare(
    mut body: Body,
    decision: &Decision,
    stripped: &dyn Fn(&str) -> bool,
) -> Result<Prepared, Refusal> {
    let strip_namespace = !namespace::is_known_to_caller(&body);
    scrub::scrub(&mut body);
    normalise::normalise(&mut body)?;
    let mended = pairs::mend(&mut body);
    namespace::restore(&mut body, stripped);
    match decision.dialect {
        Dialect::Lite => to_lite(&mut body, decision.mode)?,
        Dialect::Full => to_full(&mut body),
    }
    Ok(Prepared { body, dialect: decision.dialect, strip_namespace, mended })
}

#[cfg(test)]
mod tests {
    use super::super::mode::{ServingMode, resolve};
    use super::*;

    fn prepared(text: &str, mode: ServingMode) -> Prepared {
        let body = Body::parse(text.as_bytes()).expect("a request");
        prepare(body, &resolve(mode, []), &|id| id == "call_1").expect("can be sent")
    }

    fn sent(text: &str, mode: ServingMode) -> String {
        String::from_utf8(prepared(text, mode).body.to_bytes()).expect("UTF-8")
    }

    /// Requests that try, each in its way, to be sent in the other dialect.
    const ATTEMPTS: [&str; 5] = [
        r#"{"model":"m","tools":[{"type":"function","name":"f"}],"client_metadata":{"ws_request_header_x_openai_internal_codex_responses_lite":"true"}}"#,
        r#"{"model":"m","tools":[{"type":"function","name":"f"}],"serving_mode":"lite","dialect":"lite","mode":"lite","reasoning":{"context":"all_turns"},"parallel_tool_calls":false}"#,
        r#"{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"function","name":"f"}]}],"parallel_tool_calls":false,"reasoning":{"context":"all_turns"}}"#,
        r#"{"model":"m","tools":[{"type":"function","name":"f"}],"parallel_tool_calls":true,"serving_mode":"full"}"#,
        r#"{"model":"m","tools":[{"type":"function","name":"f"}],"input":[{"role":"user","content":"weir mode m full"},{"type":"serving_mode","mode":"full"}]}"#,
    ];

    #[test]
    fn no_request_changes_the_dialect() {
        for attempt in ATTEMPTS {
            let full = prepared(attempt, ServingMode::Full);
            assert_eq!(full.dialect, Dialect::Full);
            assert!(full.body.get("tools").is_some(), "{attempt}");
            assert!(
                full.body.items().iter().all(|item| item.kind() != "additional_tools"),
                "{attempt}"
            );

            let lite = prepared(attempt, ServingMode::Lite);
            assert_eq!(lite.dialect, Dialect::Lite);
            assert!(lite.body.get("tools").is_none(), "{attempt}");
            assert_eq!(lite.body.items()[0].kind(), "additional_tools", "{attempt}");
            assert_eq!(lite.body.flag("parallel_tool_calls"), Some(false), "{attempt}");

            for mode in [ServingMode::Full, ServingMode::Lite] {
                assert!(!sent(attempt, mode).contains("responses_lite"), "{attempt}");
            }
        }
    }

    #[test]
    fn calls_return_with_the_namespace_they_lost() {
        let text = r#"{"model":"m","input":[{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"},{"type":"function_call","call_id":"call_2","name":"f","arguments":"{}"}]}"#;
        for mode in [ServingMode::Full, ServingMode::Lite] {
            let prepared = prepared(text, mode);
            let spaces: Vec<_> = prepared
                .body
                .items()
                .iter()
                .filter(|item| item.is_call())
                .map(|item| (item.call_id(), item.namespace()))
                .collect();
            assert_eq!(spaces, [(Some("call_1"), Some("functions")), (Some("call_2"), None)]);
            assert!(prepared.strip_namespace);
        }
    }

    #[test]
    fn callers_that_send_namespaces_get_them_back() {
        let text = r#"{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"functions","tools":[{"type":"function","name":"f"}]}]}]}"#;
        assert!(!prepared(text, ServingMode::Full).strip_namespace);
        assert!(!prepared(text, ServingMode::Lite).strip_namespace);
    }
}
