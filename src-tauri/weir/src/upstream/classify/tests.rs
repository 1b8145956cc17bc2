//! Each shape in which a failure is told, and what it means.

use weir_core::dialect::event::Event;

use super::super::failure::{Failure, Source};

/// How a failure arrives.
enum Came<'a> {
    /// As a status with a body.
    Status(u16, &'a str),
    /// As an event of a stream that was well until then.
    Event(&'a str),
    /// As a document where a stream was asked for.
    Document(&'a str),
}
use Came::{Document, Event as Ev, Status};

fn failure(came: &Came<'_>) -> Failure {
    match came {
        Status(status, body) => Failure::from_status(*status, body.as_bytes()),
        Document(body) => Failure::from_document(body.as_bytes()),
        Ev(data) => {
            let event = Event::read(data).expect("an event");
            Failure::from_event(&event.failure().expect("a failure"))
        }
    }
}

#[test]
fn each_known_failure_has_its_source_whatever_its_shape() {
    use Source::{Account, Backend, Entitlement, Limit, Login, Pace, Request};
    let rows: [(Came<'_>, Source, bool, u16); 49] = [
        // A limit of the account.
        (
            Status(
                429,
                r#"{"error":{"type":"usage_limit_reached","resets_at":5,"plan_type":"plus"}}"#,
            ),
            Limit,
            true,
            429,
        ),
        (
            Status(402, r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#),
            Limit,
            true,
            429,
        ),
        (Status(403, r#"{"error":{"type":"workspace_owner_credits_depleted"}}"#), Limit, true, 429),
        (Status(400, r#"{"detail":"The usage limit has been reached"}"#), Limit, true, 429),
        (Status(500, "You've hit your usage limit. Upgrade to go on."), Limit, true, 429),
        (
            Document(r#"{"error":{"type":"usage_limit_reached","message":"no more"}}"#),
            Limit,
            true,
            429,
        ),
        (Document("You've hit your usage limit."), Limit, true, 429),
        (
            Ev(
                r#"{"type":"error","error":{"type":"usage_limit_reached","message":"m"},"status_code":429}"#,
            ),
            Limit,
            true,
            429,
        ),
        (Ev(r#"{"type":"error","code":"insufficient_quota","message":"m"}"#), Limit, true, 429),
        (Ev(r#"{"error":{"type":"usage_limit_reached"}}"#), Limit, true, 429),
        (Ev(r#"{"detail":"You have reached your usage limit."}"#), Limit, true, 429),
        (
            Ev(
                r#"{"type":"response.failed","response":{"error":{"code":"usage_limit_reached","message":"m"}}}"#,
            ),
            Limit,
            true,
            429,
        ),
        (
            Ev(
                r#"{"type":"response.failed","response":{"error":{"code":"quota_exceeded","message":"m"}}}"#,
            ),
            Limit,
            true,
            429,
        ),
        (
            Ev(
                r#"{"type":"response.failed","response":{"error":{"code":null,"message":"You exceeded your current quota."}}}"#,
            ),
            Limit,
            true,
            429,
        ),
        (
            Ev(
                r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"usage_limit_reached"}}}"#,
            ),
            Limit,
            true,
            429,
        ),
        (
            Ev(
                r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"insufficient_quota"}}}"#,
            ),
            Limit,
            true,
            429,
        ),
        // A pace, which is over in moments.
        (Status(429, ""), Pace, true, 429),
        (Status(429, "<html>slow</html>"), Pace, true, 429),
        (Ev(r#"{"type":"error","error":{"message":"m"},"status":429}"#), Pace, true, 429),
        (
            Ev(
                r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Please try again in 1.5s."}}}"#,
            ),
            Pace,
            true,
            429,
        ),
        // The backend is busy, which is no account's fault, whatever the status says.
        (Status(429, r#"{"error":{"code":"slow_down"}}"#), Backend, true, 503),
        (Status(503, r#"{"error":{"code":"server_is_overloaded"}}"#), Backend, true, 503),
        (
            Status(
                400,
                r#"{"error":{"message":"Selected model is at capacity. Please try another."}}"#,
            ),
            Backend,
            true,
            503,
        ),
        (Status(502, "<html>bad gateway</html>"), Backend, true, 502),
        (Status(500, "line one\rline two\r\ndata: injected\n\n"), Backend, true, 500),
        (
            Ev(
                r#"{"type":"error","error":{"type":"server_error","code":"server_error","message":"m"}}"#,
            ),
            Backend,
            true,
            503,
        ),
        (
            Ev(
                r#"{"type":"response.failed","response":{"error":{"code":"server_is_overloaded","message":"m"}}}"#,
            ),
            Backend,
            true,
            503,
        ),
        // A connection came to its age; the request is as good as before.
        (
            Ev(
                r#"{"type":"error","status":400,"error":{"type":"invalid_request_error","code":"websocket_connection_limit_reached","message":"m"}}"#,
            ),
            Backend,
            true,
            503,
        ),
        // A page, and an answer that was worked on: the first came to nobody.
        (Document("<html>challenge</html>"), Backend, true, 502),
        (Document(""), Backend, true, 502),
        (Document("upstream connect error"), Backend, true, 502),
        (
            Document(r#"{"id":"resp_1","object":"response","error":null,"status":"completed"}"#),
            Backend,
            false,
            502,
        ),
        // Nobody knows whether anything was done.
        (Ev(r#"{"type":"error","message":"what"}"#), Backend, false, 502),
        (
            Ev(
                r#"{"type":"response.failed","response":{"error":{"code":"brand_new","message":"m"}}}"#,
            ),
            Backend,
            false,
            502,
        ),
        // The login and what it may.
        (Status(401, ""), Login, true, 401),
        (
            Status(401, r#"{"error":{"code":"token_invalidated","type":"invalid_request_error"}}"#),
            Login,
            true,
            401,
        ),
        (
            Ev(r#"{"error":{"code":"token_invalidated","message":"m"},"status":401}"#),
            Login,
            true,
            401,
        ),
        (Status(402, r#"{"error":{"message":"pay"}}"#), Account, true, 402),
        (Status(403, "<html>challenge</html>"), Account, true, 403),
        (Status(403, r#"{"error":{"type":"usage_not_included"}}"#), Account, true, 403),
        (Status(429, r#"{"error":{"type":"usage_not_included"}}"#), Account, true, 429),
        (
            Status(404, r#"{"error":{"type":"invalid_request_error","param":"model"}}"#),
            Entitlement,
            true,
            404,
        ),
        (Status(400, r#"{"error":{"code":"model_not_found"}}"#), Entitlement, true, 400),
        // The request itself.
        (Status(400, r#"{"detail":"Unsupported parameter: top_p"}"#), Request, false, 400),
        (
            Status(400, r#"{"error":{"type":"invalid_request_error","code":"unsupported_value"}}"#),
            Request,
            false,
            400,
        ),
        (Status(413, ""), Request, false, 413),
        (
            Ev(
                r#"{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","type":"server_error","message":"m"}}}"#,
            ),
            Request,
            false,
            400,
        ),
        (
            Ev(
                r#"{"type":"error","status":400,"error":{"type":"invalid_request_error","code":"previous_response_not_found","message":"m"}}"#,
            ),
            Request,
            false,
            400,
        ),
        (
            Ev(r#"{"type":"error","error":{"type":"invalid_request_error","message":"m"}}"#),
            Request,
            false,
            400,
        ),
    ];
    for (came, source, retryable, status) in rows {
        let failure = failure(&came);
        let what = match came {
            Status(status, body) => format!("{status} {body}"),
            Ev(text) | Document(text) => text.to_owned(),
        };
        assert_eq!(
            (failure.source, failure.retryable, failure.status),
            (source, retryable, status),
            "{what}"
        );
        assert!(!failure.message.is_empty() && !failure.code.is_empty(), "{what}");
        assert!(!failure.message.contains(['\n', '\r', '<']), "{what}: {}", failure.message);
    }
}

#[test]
fn a_code_is_kept_by_its_name() {
    for (came, code) in [
        (
            Status(400, r#"{"error":{"code":"previous_response_not_found","type":"t"}}"#),
            "previous_response_not_found",
        ),
        (
            Status(429, r#"{"error":{"type":"usage_limit_reached","code":null}}"#),
            "usage_limit_reached",
        ),
        (
            Ev(
                r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"quota_exceeded"}}}"#,
            ),
            "quota_exceeded",
        ),
        (Status(500, ""), "upstream_error"),
    ] {
        assert_eq!(failure(&came).code, code);
    }
}

#[test]
fn times_are_read_where_they_are_told_and_absent_where_not() {
    for (came, resets_at, wait) in [
        (
            Status(429, r#"{"error":{"type":"usage_limit_reached","resets_at":1777936568}}"#),
            Some(1_777_936_568),
            None,
        ),
        (
            Status(
                429,
                r#"{"error":{"type":"usage_limit_reached","resets_at":"1777936568","resets_in_seconds":13872.0}}"#,
            ),
            Some(1_777_936_568),
            Some(13_872),
        ),
        (Status(429, r#"{"error":{"type":"usage_limit_reached","resets_at":null}}"#), None, None),
        (
            Status(
                429,
                r#"{"error":{"code":"rate_limit_exceeded","message":"Please try again in 1.5s."}}"#,
            ),
            None,
            Some(2),
        ),
        (
            Ev(
                r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Try again in 350ms"}}}"#,
            ),
            None,
            Some(1),
        ),
        (
            Ev(
                r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"try again in 2 minutes"}}}"#,
            ),
            None,
            Some(120),
        ),
        (
            Status(
                429,
                r#"{"error":{"code":"rate_limit_exceeded","message":"try again in a while"}}"#,
            ),
            None,
            None,
        ),
        (Status(400, r#"{"error":{"message":"try again in 3s"}}"#), None, None),
    ] {
        let failure = failure(&came);
        assert_eq!(
            (failure.resets_at, failure.retry_after),
            (resets_at, wait),
            "{}",
            failure.message
        );
    }
}
