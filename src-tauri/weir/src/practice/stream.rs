//! The events of one response, in the backend's order.
//!
//! A response is composed before it is delivered: a list of events with the waits between them. `response.completed`
//! has an empty `output` on this backend; whoever wants the items must collect them from their own events.
//!
//! **Invariant**: `sequence_number` counts the response's events from 0 without a gap; `codex.rate_limits` is none of
//! them.

use serde_json::{Value, json};

use super::accounts::{Account, hex};
use super::reply::{Call, Point};
use super::request::Ask;
use super::rules::Item;

/// One step of a delivery.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Milliseconds, times the pace.
    Wait(u64),
    /// A place where gates hold.
    At(Point),
    Event(Value),
    /// An event about the connection, which no script counts.
    Aside(Value),
}

/// How a response ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ending {
    Completed {
        usage: bool,
    },
    /// The fields of an `error` event.
    Error(Value),
    /// The fields of `response.error`.
    Failed(Value),
    Incomplete(String),
    /// No terminal event.
    Nothing,
}

/// What a response is made from.
pub(super) struct Composition<'a> {
    pub(super) ask: Ask<'a>,
    pub(super) account: &'a Account,
    /// Makes ids unique; the same seed gives the same response.
    pub(super) seed: String,
    pub(super) created_at: i64,
    pub(super) limits: Value,
    /// Whether the limits come before `response.created` or after it; the backend does both.
    pub(super) limits_first: bool,
    pub(super) input_tokens: usize,
    pub(super) cached_tokens: usize,
    pub(super) items: Vec<Item>,
    pub(super) extra_events: Vec<Value>,
    pub(super) think_ms: u64,
    pub(super) ending: Ending,
    /// The response that this one goes on from.
    pub(super) previous: Option<&'a str>,
}

const DELTA_MS: u64 = 60;

impl Composition<'_> {
    pub(super) fn pieces(self) -> Vec<Piece> {
        let mut writer = Writer::new(&self);
        writer.write();
        writer.pieces
    }

    /// The response of a request that only wants its history known: it opens and ends.
    pub(super) fn warm_up(self) -> Vec<Piece> {
        let mut writer = Writer::new(&self);
        writer.opening("response.created");
        writer.ending();
        writer.pieces
    }
}

struct Writer<'a> {
    composition: &'a Composition<'a>,
    pieces: Vec<Piece>,
    sequence: u64,
    output: usize,
    /// Bytes of output so far.
    spoken: usize,
}

impl<'a> Writer<'a> {
    fn new(composition: &'a Composition<'a>) -> Self {
        Self { composition, pieces: Vec::new(), sequence: 0, output: 0, spoken: 0 }
    }

    fn opening(&mut self, kind: &str) {
        let response = self.response("in_progress", Value::Null);
        self.event(kind, json!({ "response": response }));
    }

    fn write(&mut self) {
        let made = self.composition;
        if made.limits_first {
            self.pieces.push(Piece::Event(made.limits.clone()));
        }
        self.opening("response.created");
        if !made.limits_first {
            self.pieces.push(Piece::Event(made.limits.clone()));
        }
        self.opening("response.in_progress");
        self.pieces.push(Piece::At(Point::Output));
        self.pieces.push(Piece::Wait(made.think_ms));
        for item in &made.items {
            match item {
                Item::Thought => self.thought(),
                Item::Text { text, phase } => self.text(text, phase),
                Item::Call(call) => self.call(call),
                Item::Compaction => self.compaction(),
                Item::Raw(item) => self.whole(item.clone()),
            }
        }
        made.extra_events.iter().for_each(|event| self.pieces.push(Piece::Event(event.clone())));
        self.pieces.push(Piece::At(Point::End));
        self.ending();
    }

    fn ending(&mut self) {
        let (kind, response) = match &self.composition.ending {
            Ending::Nothing => return,
            Ending::Error(fields) => return self.event("error", fields.clone()),
            Ending::Completed { usage } => {
                let usage = if *usage { self.usage() } else { Value::Null };
                let mut response = self.response("completed", usage.clone());
                if usage.is_null() {
                    response.as_object_mut().map(|fields| fields.shift_remove("usage"));
                }
                ("response.completed", response)
            }
            Ending::Failed(error) => {
                let mut response = self.response("failed", Value::Null);
                response["error"] = error.clone();
                ("response.failed", response)
            }
            Ending::Incomplete(reason) => {
                let mut response = self.response("incomplete", self.usage());
                response["incomplete_details"] = json!({ "reason": reason });
                ("response.incomplete", response)
            }
        };
        self.event(kind, json!({ "response": response }));
    }

    fn thought(&mut self) {
        let id = self.id("rs");
        let made = self.composition;
        let sealed = made.ask.wants_ciphertext().then(|| made.account.seal(&id));
        let with = |summary: Value| {
            let mut item = json!({ "id": id, "type": "reasoning", "summary": summary });
            if let Some(sealed) = &sealed {
                item["encrypted_content"] = json!(sealed);
            }
            item
        };
        self.added(with(json!([])));
        let asked = made.ask.body.pointer("/reasoning/summary").is_some_and(|s| s.is_string());
        let mut summary = json!([]);
        if asked {
            let text = "**Practice** Nothing is thought here.";
            let part = json!({ "type": "summary_text", "text": text });
            let place = json!({ "item_id": id, "output_index": self.output, "summary_index": 0 });
            let empty = json!({ "type": "summary_text", "text": "" });
            self.placed("response.reasoning_summary_part.added", &place, "part", empty);
            self.deltas("response.reasoning_summary_text", &place, "text", text, 2);
            self.placed("response.reasoning_summary_part.done", &place, "part", part.clone());
            summary = json!([part]);
        }
        self.spoken += 32;
        self.done(with(summary));
    }

    fn text(&mut self, text: &str, phase: &str) {
        let id = self.id("msg");
        let with = |status: &str, content: Value| {
            json!({
                "id": id, "type": "message", "status": status, "role": "assistant", "phase": phase,
                "content": content,
            })
        };
        let part = |text: &str| json!({ "type": "output_text", "annotations": [], "logprobs": [], "text": text });
        self.added(with("in_progress", json!([])));
        let place = json!({ "item_id": id, "output_index": self.output, "content_index": 0 });
        self.placed("response.content_part.added", &place, "part", part(""));
        let count = text.split_whitespace().count().clamp(2, 12);
        self.deltas("response.output_text", &place, "text", text, count);
        self.placed("response.content_part.done", &place, "part", part(text));
        self.done(with("completed", json!([part(text)])));
    }

    fn call(&mut self, call: &Call) {
        let (prefix, kind, field, events) = match call.input {
            None => ("fc", "function_call", "arguments", "response.function_call_arguments"),
            Some(_) => ("ctc", "custom_tool_call", "input", "response.custom_tool_call_input"),
        };
        let text = call.input.as_ref().unwrap_or(&call.arguments);
        let id = self.id(prefix);
        let call_id = call.call_id.clone().unwrap_or_else(|| self.id("call"));
        let with = |status: &str, text: &str| {
            let mut item = json!({
                "id": id, "type": kind, "status": status, field: text, "call_id": call_id,
                "name": call.name,
            });
            if let Some(namespace) = &call.namespace {
                item["namespace"] = json!(namespace);
            }
            item
        };
        self.added(with("in_progress", ""));
        let place = json!({ "item_id": id, "output_index": self.output });
        self.deltas(events, &place, field, text, 3);
        self.done(with("completed", text));
    }

    fn compaction(&mut self) {
        let id = self.id("cmp");
        let sealed = self.composition.account.seal(&id);
        self.whole(json!({ "id": id, "type": "compaction", "encrypted_content": sealed }));
    }

    fn whole(&mut self, item: Value) {
        self.spoken += item.to_string().len();
        self.added(item.clone());
        self.done(item);
    }

    fn added(&mut self, item: Value) {
        let at = self.output;
        self.event("response.output_item.added", json!({ "output_index": at, "item": item }));
    }

    fn done(&mut self, item: Value) {
        let at = self.output;
        self.event("response.output_item.done", json!({ "output_index": at, "item": item }));
        self.output += 1;
    }

    /// `KIND.delta` for each part of the text, then `KIND.done` with the whole.
    fn deltas(&mut self, kind: &str, place: &Value, field: &str, text: &str, count: usize) {
        self.spoken += text.len();
        for part in parts(text, count) {
            self.placed(&format!("{kind}.delta"), place, "delta", json!(part));
            self.pieces.push(Piece::Wait(DELTA_MS));
        }
        self.placed(&format!("{kind}.done"), place, field, json!(text));
    }

    fn placed(&mut self, kind: &str, place: &Value, field: &str, value: Value) {
        let mut fields = place.clone();
        fields[field] = value;
        self.event(kind, fields);
    }

    fn event(&mut self, kind: &str, fields: Value) {
        let mut event = json!({ "type": kind, "sequence_number": self.sequence });
        self.sequence += 1;
        if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields);
        }
        self.pieces.push(Piece::Event(event));
    }

    fn id(&self, prefix: &str) -> String {
        let made = self.composition;
        let place = self.output.to_le_bytes();
        format!("{prefix}_{}", hex(&[made.seed.as_bytes(), prefix.as_bytes(), &place], 12))
    }

    fn usage(&self) -> Value {
        let made = self.composition;
        let output = self.spoken.div_ceil(4).max(usize::from(!made.items.is_empty()));
        let thought = if made.items.contains(&Item::Thought) { 8 } else { 0 };
        json!({
            "input_tokens": made.input_tokens,
            "input_tokens_details": { "cached_tokens": made.cached_tokens },
            "output_tokens": output,
            "output_tokens_details": { "reasoning_tokens": thought },
            "total_tokens": made.input_tokens + output,
        })
    }

    /// The response object, which repeats much of the request.
    fn response(&self, status: &str, usage: Value) -> Value {
        let made = self.composition;
        let body = made.ask.body;
        let echo = |field: &str, otherwise: Value| body.get(field).cloned().unwrap_or(otherwise);
        json!({
            "id": format!("resp_{}", hex(&[made.seed.as_bytes()], 12)),
            "object": "response",
            "created_at": made.created_at,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": null,
            "instructions": echo("instructions", Value::Null),
            "max_output_tokens": null,
            "model": echo("model", Value::Null),
            "output": [],
            "parallel_tool_calls": echo("parallel_tool_calls", json!(true)),
            "previous_response_id": made.previous,
            "prompt_cache_key": echo("prompt_cache_key", Value::Null),
            "reasoning": echo("reasoning", json!({ "effort": null, "summary": null })),
            "service_tier": "default",
            "store": false,
            "temperature": 1.0,
            "text": echo("text", json!({ "format": { "type": "text" } })),
            "tool_choice": echo("tool_choice", json!("auto")),
            "tools": echo("tools", json!([])),
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": usage,
            "metadata": {},
        })
    }
}

/// A text in about `count` parts, cut between characters.
fn parts(text: &str, count: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(count.max(1)).max(1);
    characters.chunks(size).map(|chunk| chunk.iter().collect()).collect()
}

/// The bytes of one event.
pub(super) fn encode(event: &Value, crlf: bool) -> String {
    let end = if crlf { "\r\n" } else { "\n" };
    let kind = event.get("type").and_then(Value::as_str);
    let line = kind.map(|kind| format!("event: {kind}{end}")).unwrap_or_default();
    format!("{line}data: {event}{end}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::practice::Options;
    use crate::practice::accounts::Accounts;

    fn events(items: Vec<Item>, ending: Ending, body: &Value) -> Vec<Value> {
        let accounts = Accounts::new(&Options::default().accounts);
        let account = accounts.by_token("practice-token-1").expect("a default account");
        let composition = Composition {
            ask: Ask { body, marker: None },
            account,
            seed: "seed".to_owned(),
            created_at: 1,
            limits: json!({ "type": "codex.rate_limits" }),
            limits_first: false,
            input_tokens: 100,
            cached_tokens: 40,
            items,
            extra_events: vec![json!({ "type": "something.new" })],
            think_ms: 0,
            ending,
            previous: None,
        };
        let events = composition.pieces().into_iter().filter_map(|piece| match piece {
            Piece::Event(event) => Some(event),
            _ => None,
        });
        events.collect()
    }

    fn kinds(events: &[Value]) -> Vec<&str> {
        events.iter().filter_map(|event| event["type"].as_str()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_order_of_a_whole_response() {
        let call = |name: &str| {
            Item::Call(Call { name: name.into(), arguments: "{\"a\":1}".into(), ..Call::default() })
        };
        let text = Item::Text { text: "alpha".into(), phase: "final_answer" };
        let body = json!({
            "model": "practice-full", "include": ["reasoning.encrypted_content"],
            "reasoning": { "effort": "low", "summary": "auto" },
        });
        let items = vec![Item::Thought, text, call("one"), call("two")];
        let events = events(items, Ending::Completed { usage: true }, &body);
        assert_eq!(
            kinds(&events).join("\n").replace("response.", ""),
            "created\ncodex.rate_limits\nin_progress\n\
             output_item.added\nreasoning_summary_part.added\nreasoning_summary_text.delta\n\
             reasoning_summary_text.delta\nreasoning_summary_text.done\nreasoning_summary_part.done\n\
             output_item.done\n\
             output_item.added\ncontent_part.added\noutput_text.delta\noutput_text.delta\noutput_text.done\n\
             content_part.done\noutput_item.done\n\
             output_item.added\nfunction_call_arguments.delta\nfunction_call_arguments.delta\n\
             function_call_arguments.delta\nfunction_call_arguments.done\noutput_item.done\n\
             output_item.added\nfunction_call_arguments.delta\nfunction_call_arguments.delta\n\
             function_call_arguments.delta\nfunction_call_arguments.done\noutput_item.done\n\
             something.new\ncompleted"
        );
        let numbers: Vec<u64> =
            events.iter().filter_map(|event| event["sequence_number"].as_u64()).collect();
        assert_eq!(numbers, (0..29).collect::<Vec<u64>>());
        let done: Vec<&Value> =
            events.iter().filter(|e| e["type"] == "response.output_item.done").collect();
        assert!(done[0]["item"]["encrypted_content"].is_string());
        assert_eq!(done[2]["item"]["status"], "completed");
        assert_eq!(done[2]["item"]["arguments"], "{\"a\":1}");
        assert_eq!(done[3]["output_index"], 3);
        assert_ne!(done[2]["item"]["call_id"], done[3]["item"]["call_id"]);
        let last = events.last().expect("a terminal event");
        assert_eq!(last["response"]["output"], json!([]));
        assert_eq!(last["response"]["usage"]["input_tokens_details"]["cached_tokens"], 40);
    }

    #[tokio::test(start_paused = true)]
    async fn the_other_endings() {
        let last = |ending| {
            let mut events = events(Vec::new(), ending, &json!({}));
            events.pop().expect("an event")
        };
        let failed = last(Ending::Failed(json!({ "code": "x" })));
        assert_eq!(
            (&failed["type"], &failed["response"]["error"]["code"]),
            (&json!("response.failed"), &json!("x"))
        );
        let error = last(Ending::Error(json!({ "code": "y" })));
        assert_eq!((&error["type"], &error["code"]), (&json!("error"), &json!("y")));
        let incomplete = last(Ending::Incomplete("max_output_tokens".into()));
        assert_eq!(incomplete["response"]["incomplete_details"]["reason"], "max_output_tokens");
        assert_eq!(last(Ending::Nothing)["type"], "something.new");
        assert_eq!(last(Ending::Completed { usage: false })["response"].get("usage"), None);
    }

    #[test]
    fn framing() {
        let event = json!({ "type": "a", "b": 1 });
        assert_eq!(encode(&event, false), "event: a\ndata: {\"type\":\"a\",\"b\":1}\n\n");
        assert_eq!(encode(&event, true), "event: a\r\ndata: {\"type\":\"a\",\"b\":1}\r\n\r\n");
        assert_eq!(parts("alpha", 2), ["alp", "ha"]);
        assert_eq!(parts("", 2), [""; 0]);
    }
}
