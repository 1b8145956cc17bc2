//! The events of the fixed upstream's answer.
//!
//! They have the shape of the real backend's, so that a proxy which looks into them has its real work. Each piece of text
//! carries the moment at which it was written, which the load generator subtracts when it arrives.
//!
//! **Invariant**: an answer is complete: what it begins it ends, with usage.

use memchr::memmem;

/// Events around the pieces of text.
pub(crate) const AROUND: u64 = 8;

const STAMP: &str = r#""delta":"@"#;
const DIGITS: usize = 16;

/// One event as JSON with its type, which an event stream repeats.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) kind: &'static str,
    pub(crate) json: String,
}

impl Event {
    /// The event in an event stream.
    pub(crate) fn frame(&self) -> String {
        format!("event: {}\ndata: {}\n\n", self.kind, self.json)
    }
}

/// What comes before the text.
pub(crate) fn opening() -> [Event; 4] {
    let response = r#"{"id":"resp_bench","object":"response","status":"in_progress","model":"bench","output":[],"usage":null}"#;
    let event = |kind: &'static str, number: u32, rest: &str| Event {
        kind,
        json: format!(r#"{{"type":"{kind}","sequence_number":{number},{rest}}}"#),
    };
    [
        event("response.created", 0, &format!(r#""response":{response}"#)),
        event("response.in_progress", 1, &format!(r#""response":{response}"#)),
        event(
            "response.output_item.added",
            2,
            r#""output_index":0,"item":{"id":"msg_bench","type":"message","status":"in_progress","content":[],"role":"assistant"}"#,
        ),
        event(
            "response.content_part.added",
            3,
            r#""item_id":"msg_bench","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}"#,
        ),
    ]
}

/// A piece of text with the moment at which it is written, in nanoseconds.
pub(crate) fn delta(number: u32, now: u64) -> Event {
    let kind = "response.output_text.delta";
    let number = number + 4;
    let json = format!(
        r#"{{"type":"{kind}","content_index":0,"delta":"@{now:016} ","item_id":"msg_bench","logprobs":[],"obfuscation":"kXw29QbTz","output_index":0,"sequence_number":{number}}}"#
    );
    Event { kind, json }
}

/// What comes after `deltas` pieces.
pub(crate) fn closing(deltas: u32) -> [Event; 4] {
    let item = r#"{"id":"msg_bench","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"bench"}],"role":"assistant"}"#;
    let first = deltas + 4;
    let event = |kind: &'static str, after: u32, rest: &str| Event {
        kind,
        json: format!(r#"{{"type":"{kind}","sequence_number":{},{rest}}}"#, first + after),
    };
    [
        event(
            "response.output_text.done",
            0,
            r#""item_id":"msg_bench","output_index":0,"content_index":0,"logprobs":[],"text":"bench""#,
        ),
        event(
            "response.content_part.done",
            1,
            r#""item_id":"msg_bench","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":"bench"}"#,
        ),
        event("response.output_item.done", 2, &format!(r#""output_index":0,"item":{item}"#)),
        event(
            "response.completed",
            3,
            &format!(
                r#""response":{{"id":"resp_bench","object":"response","status":"completed","model":"bench","output":[{item}],"usage":{{"input_tokens":1000,"input_tokens_details":{{"cached_tokens":0}},"output_tokens":{deltas},"output_tokens_details":{{"reasoning_tokens":0}},"total_tokens":{}}}}}"#,
                1_000 + deltas
            ),
        ),
    ]
}

/// The moment in a piece of text.
pub(crate) fn stamp(event: &[u8]) -> Option<u64> {
    let from = memmem::find(event, STAMP.as_bytes())? + STAMP.len();
    let digits = event.get(from..from + DIGITS)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_json_and_counted() {
        let all = opening().into_iter().chain([delta(0, 42)]).chain(closing(1));
        let mut number = 0;
        for event in all {
            let json: serde_json::Value = serde_json::from_str(&event.json).expect("JSON");
            assert_eq!(json["type"], event.kind);
            assert_eq!(json["sequence_number"], number);
            number += 1;
        }
        assert_eq!(number, AROUND + 1);
    }

    #[test]
    fn the_moment_is_read_back() {
        assert_eq!(stamp(delta(3, 1_234_567).frame().as_bytes()), Some(1_234_567));
        assert_eq!(stamp(opening()[0].frame().as_bytes()), None);
    }
}
