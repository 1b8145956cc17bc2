//! Takes a client's own dialect markers out of a request.
//!
//! The marker of a turn is set by whoever sends it upstream, from the decision and from nothing else. A client that says
//! "Lite" in its metadata would otherwise switch the backend behind the decision's back.
//!
//! **Invariant**: no spelling of the Lite marker that a client wrote reaches the backend, in either dialect.

use super::body::Body;
use super::object::Object;
use super::wire;

/// Removes the marker from `client_metadata`, and from the top level where it has no meaning at all.
pub(super) fn scrub(body: &mut Body) {
    body.retain(|name| !is_marker(name));
    let Some(mut metadata) = body.get("client_metadata").and_then(Object::of) else { return };
    if metadata.retain(|name| !is_marker(name)) {
        body.set_raw("client_metadata", metadata.to_raw());
    }
}

/// Header names have no case, and metadata keys carry them with underscores under a prefix.
fn is_marker(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    debug_assert!(wire::LITE_METADATA_KEY.replace('_', "-").ends_with(wire::LITE_HEADER));
    name.ends_with(wire::LITE_HEADER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_go_and_all_else_stays() {
        let scrubbed = |text: &str| {
            let mut body = Body::parse(text.as_bytes()).expect("a request");
            scrub(&mut body);
            String::from_utf8(body.to_bytes()).expect("UTF-8")
        };
        for (before, after) in [
            (
                r#"{"model":"m","client_metadata":{"a":"1","ws_request_header_x_openai_internal_codex_responses_lite":"true","b":0.10}}"#,
                r#"{"model":"m","client_metadata":{"a":"1","b":0.10}}"#,
            ),
            (
                r#"{"model":"m","client_metadata":{"WS_Request_Header_X_OpenAI_Internal_Codex_Responses_Lite":"true"}}"#,
                r#"{"model":"m","client_metadata":{}}"#,
            ),
            (
                r#"{"model":"m","client_metadata":{"ws_request_header_x_openai_internal_codex_responses_l\u0069te":"true"}}"#,
                r#"{"model":"m","client_metadata":{}}"#,
            ),
            (
                r#"{"model":"m","client_metadata":{"x-openai-internal-codex-responses-lite":"true"},"X-OpenAI-Internal-Codex-Responses-Lite":"true"}"#,
                r#"{"model":"m","client_metadata":{}}"#,
            ),
            (
                r#"{"model":"m","client_metadata":{ "a" : "1" }}"#,
                r#"{"model":"m","client_metadata":{ "a" : "1" }}"#,
            ),
            (
                r#"{"model":"m","client_metadata":"odd"}"#,
                r#"{"model":"m","client_metadata":"odd"}"#,
            ),
        ] {
            assert_eq!(scrubbed(before), after);
        }
    }
}
