//! What a backend says in one response: the events of a made-up answer, and the many ways in which it can end.
//!
//! The order and the fields are those of the Codex backend. Ids carry the seed, so that an event that strays into another
//! stream gives itself away.
//!
//! **Invariant**: pure; a speech follows from its chance and its name.

use serde_json::{Value, json};

use crate::chance::Chance;

/// How a response ends, in the backend's words.
#[derive(Clone, Debug, PartialEq)]
pub enum Close {
    Completed,
    /// `response.completed` with a usage that lacks something.
    NoUsage,
    /// The older name of `response.completed`.
    Done,
    /// `response.completed` without a response.
    Hollow,
    Incomplete(&'static str),
    Failed(Value),
    /// An `error` event, or a body that has no type.
    Error(Value),
    Nothing,
}

const WORDS: [&str; 14] = [
    "the",
    "answer",
    "is",
    "größer",
    "als",
    "🌊",
    "日本語",
    "\n",
    "\\u0000",
    "\"quoted\"",
    "data:",
    "[DONE]",
    "usage limit reached",
    "e\u{301}",
];

const TOOLS: [&str; 4] = ["task", "bash", "read", "write"];

pub struct Speech {
    /// The data of each event.
    pub events: Vec<String>,
    sequence: u64,
    /// Calls stand in the namespace that Lite puts a client's tools in.
    lite: bool,
    name: String,
    spoken: u64,
    /// Bytes that the first message has in one event.
    much: Option<usize>,
}

impl Speech {
    /// An answer without its end; `much` is how long one of its events shall be, in bytes.
    pub fn make(chance: &mut Chance, name: &str, lite: bool, much: Option<usize>) -> Self {
        let much = much.or(chance.one_in(25).then(|| chance.within(20_000, 400_000)));
        let mut speech =
            Self { events: Vec::new(), sequence: 0, lite, name: name.to_owned(), spoken: 0, much };
        if chance.one_in(4) {
            speech.limits(chance);
        }
        speech.say("response.created", json!({"response": speech.response("in_progress")}));
        if chance.one_in(3) {
            speech.limits(chance);
        }
        if !chance.one_in(8) {
            speech.say("response.in_progress", json!({"response": speech.response("in_progress")}));
        }
        let mut index = 0;
        if chance.one_in(2) {
            speech.thought(chance, index);
            index += 1;
        }
        if speech.much.is_some() || !chance.one_in(4) {
            let phase = if chance.one_in(6) { Some("commentary") } else { None };
            speech.message(chance, index, phase);
            index += 1;
        }
        let calls = if chance.one_in(2) { chance.within(1, 4) } else { 0 };
        for _ in 0..calls {
            speech.call(chance, index);
            index += 1;
        }
        if chance.one_in(6) {
            speech.unheard_of(chance);
        }
        speech
    }

    pub fn close(&mut self, close: &Close) {
        let mut response = self.response("completed");
        response["usage"] = json!({
            "input_tokens": 1000 + self.spoken, "input_tokens_details": {"cached_tokens": 512},
            "output_tokens": self.spoken, "output_tokens_details": {"reasoning_tokens": 7},
            "total_tokens": 1000 + 2 * self.spoken,
        });
        match close {
            Close::Completed => self.say("response.completed", json!({"response": response})),
            Close::Done => self.say("response.done", json!({"response": response})),
            Close::NoUsage => {
                response["usage"] = json!({"output_tokens": 3});
                self.say("response.completed", json!({"response": response}));
            }
            Close::Hollow => self.say("response.completed", json!({})),
            Close::Incomplete(reason) => {
                response["status"] = json!("incomplete");
                response["incomplete_details"] = json!({"reason": reason});
                self.say("response.incomplete", json!({"response": response}));
            }
            Close::Failed(error) => {
                response["status"] = json!("failed");
                response["error"] = error.clone();
                response["usage"] = Value::Null;
                self.say("response.failed", json!({"response": response}));
            }
            Close::Error(event) => self.events.push(event.to_string()),
            Close::Nothing => {}
        }
    }

    /// Forgets the events from the one at `keep` on.
    pub fn cut(&mut self, keep: usize) {
        self.events.truncate(keep);
    }

    fn say(&mut self, kind: &str, mut fields: Value) {
        fields["type"] = json!(kind);
        fields["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        self.events.push(fields.to_string());
    }

    fn limits(&mut self, chance: &mut Chance) {
        let used = chance.below(60);
        self.events.push(
            json!({"type": "codex.rate_limits", "plan_type": "plus", "rate_limits": {"allowed": true,
                "primary": {"used_percent": used, "window_minutes": 300, "reset_at": 4_000_000_000_u64}}})
            .to_string(),
        );
    }

    fn response(&self, status: &str) -> Value {
        json!({"id": format!("resp_{}", self.name), "object": "response", "created_at": 1_780_000_000, "status": status, "output": []})
    }

    fn text(&mut self, chance: &mut Chance) -> Vec<String> {
        let words = chance.within(1, 12);
        let text: Vec<String> = (0..words).map(|_| format!("{} ", chance.pick(&WORDS))).collect();
        self.spoken += text.iter().map(|word| word.len() as u64).sum::<u64>();
        text
    }

    fn thought(&mut self, chance: &mut Chance, index: usize) {
        let id = format!("rs_{}_{index}", self.name);
        self.say(
            "response.output_item.added",
            json!({"output_index": index, "item": {"type": "reasoning", "id": id, "summary": []}}),
        );
        for word in self.text(chance) {
            self.say(
                "response.reasoning_summary_text.delta",
                json!({"item_id": id, "output_index": index, "summary_index": 0, "delta": word}),
            );
        }
        self.say(
            "response.output_item.done",
            json!({"output_index": index,
            "item": {"type": "reasoning", "id": id, "summary": [], "encrypted_content": "AAAA"}}),
        );
    }

    fn message(&mut self, chance: &mut Chance, index: usize, phase: Option<&str>) {
        let id = format!("msg_{}_{index}", self.name);
        let item = |status: &str, text: &str| {
            let mut item = json!({"type": "message", "id": id, "role": "assistant", "status": status,
                "content": [{"type": "output_text", "text": text, "annotations": []}]});
            if let Some(phase) = phase {
                item["phase"] = json!(phase);
            }
            item
        };
        self.say(
            "response.output_item.added",
            json!({"output_index": index, "item": item("in_progress", "")}),
        );
        let mut words = self.text(chance);
        if let Some(much) = self.much.take() {
            words.push("x".repeat(much));
        }
        for word in &words {
            self.say(
                "response.output_text.delta",
                json!({"item_id": id, "output_index": index, "content_index": 0, "delta": word}),
            );
        }
        self.say("response.output_text.done", json!({"item_id": id, "output_index": index, "content_index": 0, "text": words.concat()}));
        self.say(
            "response.output_item.done",
            json!({"output_index": index, "item": item("completed", &words.concat())}),
        );
    }

    fn call(&mut self, chance: &mut Chance, index: usize) {
        let (id, call_id) =
            (format!("fc_{}_{index}", self.name), format!("call_{}_{index}", self.name));
        let tool = *chance.pick(&TOOLS);
        let custom = chance.one_in(5);
        let lite = self.lite;
        let item = |status: &str, arguments: &str| {
            let mut item = if custom {
                json!({"type": "custom_tool_call", "id": format!("ctc{}", &id[2..]), "call_id": call_id, "name": tool, "input": arguments, "status": status})
            } else {
                json!({"type": "function_call", "id": id, "call_id": call_id, "name": tool, "arguments": arguments, "status": status})
            };
            if lite {
                item["namespace"] = json!("functions");
            }
            item
        };
        self.say(
            "response.output_item.added",
            json!({"output_index": index, "item": item("in_progress", "")}),
        );
        let words = self.text(chance);
        let arguments = json!({"prompt": words.concat()}).to_string();
        if !custom {
            self.say(
                "response.function_call_arguments.delta",
                json!({"item_id": id, "output_index": index, "delta": arguments}),
            );
            self.say(
                "response.function_call_arguments.done",
                json!({"item_id": id, "output_index": index, "arguments": arguments}),
            );
        }
        self.say(
            "response.output_item.done",
            json!({"output_index": index, "item": item("completed", &arguments)}),
        );
    }

    /// What no version of the protocol has, with numbers that no floating point holds.
    fn unheard_of(&mut self, chance: &mut Chance) {
        let (number, odd) = (self.sequence, chance.number());
        self.sequence += 1;
        self.events.push(format!(
            "{{\"type\":\"response.tomorrow\",  \"sequence_number\":{number},\"deep\":[1e400,{odd}99999,0.10,{{\"a\":null}}]}}"
        ));
    }
}
