//! Frames: a request that came as one, brought into the form of an HTTP request, and refusals as error frames.
//!
//! A frame says less than a request: what the socket holds is left out, `store` and `stream` go without saying, and the
//! Lite marker travels in the metadata. With all that put back it is judged by the same rules as a request, whole
//! history and all.
//!
//! **Invariant**: the frame as it was sent is kept beside the request that it stands for.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use weir_core::dialect::wire;

use super::chain::Chain;
use super::errors::Refusal;
use super::record::Entry;

/// One `response.create`.
#[derive(Debug)]
pub(super) struct Frame {
    /// As it was sent; null if it was not JSON.
    pub(super) sent: Value,
    /// The whole request that it stands for.
    pub(super) body: Value,
    pub(super) marker: Option<String>,
    /// The response that it goes on from.
    pub(super) previous: Option<String>,
    /// How many items of the request the socket held.
    pub(super) held: usize,
    /// Whether it wants an answer, and not only its history known.
    pub(super) generate: bool,
}

impl Frame {
    /// Reads a frame, and says what is wrong with it as a frame. What is wrong with the request is not asked here.
    pub(super) fn read(text: &str, chain: &Chain) -> (Self, Result<(), Refusal>) {
        let sent = serde_json::from_str::<Value>(text).unwrap_or_default();
        let fields = sent.as_object().cloned();
        let mut frame =
            Self { sent, body: Value::Null, marker: None, previous: None, held: 0, generate: true };
        let Some(fields) = fields else {
            return (frame, Err(Refusal::invalid("Invalid JSON in frame.", "", None)));
        };
        let verdict = frame.complete(fields, chain);
        (frame, verdict)
    }

    fn complete(&mut self, mut fields: Map<String, Value>, chain: &Chain) -> Result<(), Refusal> {
        let kind = fields.shift_remove("type").unwrap_or_default();
        self.generate = fields.shift_remove("generate") != Some(Value::Bool(false));
        let previous = fields.shift_remove("previous_response_id").unwrap_or_default();
        self.previous = previous.as_str().map(str::to_owned);
        self.marker = fields
            .get_mut("client_metadata")
            .and_then(|metadata| metadata.as_object_mut()?.shift_remove(wire::LITE_METADATA_KEY))
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        fields.entry("store").or_insert(json!(false));
        fields.entry("stream").or_insert(json!(true));
        self.body = Value::Object(fields);
        if kind != "response.create" {
            let message =
                format!("Invalid value: {kind}. Supported values are: 'response.create'.");
            return Err(Refusal::invalid(message, "type", Some("invalid_value")));
        }
        if !(previous.is_null() || previous.is_string()) {
            let message = "Invalid type for 'previous_response_id': expected a string.";
            return Err(Refusal::invalid(message, "previous_response_id", Some("invalid_type")));
        }
        if let Some(id) = &self.previous {
            let mut history = chain.take(id)?;
            self.held = history.len();
            if let Some(Value::Array(input)) = self.body.get_mut("input") {
                history.append(input);
                *input = history;
            }
        }
        Ok(())
    }

    /// Whether it only says that a response was dealt with, which needs no answer.
    pub(super) fn acknowledges(&self) -> bool {
        self.sent.get("type").is_some_and(|kind| kind == "response.processed")
    }

    /// The items of the whole request.
    pub(super) fn input(&self) -> &[Value] {
        self.body.get("input").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

/// Records a refusal and puts it into a frame.
pub(super) fn refuse(entry: Entry, refused: &Refusal) -> Bytes {
    if let Some(rule) = &refused.violation {
        entry.violation(rule);
    }
    entry.status(refused.status);
    entry.end("refused");
    Bytes::from(error(refused).to_string())
}

/// A refusal as a frame. The usage limit names its status otherwise than the rest, as it does inside a stream.
pub(super) fn error(refused: &Refusal) -> Value {
    let error = refused.body.get("error").cloned().unwrap_or_else(|| {
        json!({
            "type": "invalid_request_error", "code": null, "message": refused.body.get("detail"),
            "param": null,
        })
    });
    let limit = error.get("type").is_some_and(|kind| kind == wire::USAGE_LIMIT_REACHED);
    let status = if limit { "status_code" } else { "status" };
    let mut frame = json!({ "type": "error", status: refused.status, "error": error });
    if !refused.headers.is_empty() {
        let headers = refused.headers.iter();
        let headers = headers.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        frame["headers"] = Value::Object(headers.collect());
    }
    frame
}

/// A body that the script wrote as a frame: what it says, beside the status; text that is no object goes as it is.
pub(super) fn scripted(refused: &Refusal, text: String) -> Bytes {
    let Ok(Value::Object(fields)) = serde_json::from_str(&text) else { return Bytes::from(text) };
    let mut frame = error(refused);
    if let Some(frame) = frame.as_object_mut() {
        frame.shift_remove("error");
        frame.extend(fields);
    }
    Bytes::from(frame.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::practice::chain::Link;
    use crate::practice::stream::Piece;

    fn read(frame: &Value, chain: &Chain) -> (Frame, Option<String>) {
        let (frame, verdict) = Frame::read(&frame.to_string(), chain);
        (frame, verdict.err().map(|refused| error(&refused)["error"]["message"].to_string()))
    }

    #[test]
    fn a_frame_stands_for_a_whole_request() {
        let chain = Chain::default();
        let end = json!({ "type": "response.completed", "response": { "id": "r" } });
        chain.keep(Link::of(&[json!(1)], &[Piece::Event(end)]).expect("it completed"));
        let metadata = json!({ wire::LITE_METADATA_KEY: "true", "other": "stays" });
        let (frame, wrong) = read(
            &json!({
                "type": "response.create", "model": "m", "input": [2], "previous_response_id": "r",
                "client_metadata": metadata,
            }),
            &chain,
        );
        assert_eq!(wrong, None);
        assert_eq!(
            frame.body,
            json!({
                "model": "m", "input": [1, 2], "client_metadata": { "other": "stays" },
                "store": false, "stream": true,
            })
        );
        assert_eq!((frame.marker.as_deref(), frame.held), (Some("true"), 1));
        assert_eq!(frame.sent["input"], json!([2]));
    }

    #[test]
    fn what_is_no_frame() {
        let chain = Chain::default();
        let wrong = |frame: Value| read(&frame, &chain).1.unwrap_or_default();
        assert_eq!(wrong(json!([])), r#""Invalid JSON in frame.""#);
        assert!(wrong(json!({ "input": [] })).contains("'response.create'"));
        assert!(wrong(json!({ "type": "response.append" })).contains("'response.create'"));
        let create = |previous: Value| json!({ "type": "response.create", "previous_response_id": previous });
        assert_eq!(wrong(create(Value::Null)), "");
        assert!(wrong(create(json!(1))).contains("expected a string"));
        assert_eq!(wrong(create(json!("r"))), r#""Previous response with id 'r' not found.""#);
    }

    #[test]
    fn refusals_as_frames() {
        let frame = error(&Refusal::detail("Store must be set to false"));
        assert_eq!((&frame["type"], &frame["status"]), (&json!("error"), &json!(400)));
        assert_eq!(frame["error"]["message"], "Store must be set to false");
        let mut limit = Refusal::usage_limit("p", 2, 1);
        limit.headers = vec![("x-codex-plan-type".to_owned(), "p".to_owned())];
        let frame = error(&limit);
        assert_eq!((frame.get("status"), &frame["status_code"]), (None, &json!(429)));
        assert_eq!(frame["headers"]["x-codex-plan-type"], "p");
        let own = scripted(&Refusal::server(502), r#"{"error":{"code":"odd"}}"#.to_owned());
        assert_eq!(own, r#"{"type":"error","status":502,"error":{"code":"odd"}}"#);
        assert_eq!(scripted(&Refusal::server(502), "<html>".to_owned()), "<html>");
    }
}
