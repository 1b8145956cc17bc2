//! What must hold for any conversation: what a client may do to its history costs nothing, and any other change is seen, at
//! the item where it was made.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::body::Body;
use super::super::item::Item;
use super::*;

/// The kinds that the backend writes; the others come from clients.
const ANSWERS: [&str; 7] = [
    "assistant",
    "reasoning",
    "open reasoning",
    "function_call",
    "custom_tool_call",
    "tool_search_call",
    "web_search_call",
];
const REQUESTS: [&str; 9] = [
    "user",
    "developer",
    "additional_tools",
    "function_call_output",
    "custom_tool_call_output",
    "tool_search_output",
    "agent_message",
    "compaction",
    "item_reference",
];

/// An item that no other has the content of. `n` tells it apart and, by its bits, says which optional fields it has.
fn item(kind: &str, n: usize, x: &Value) -> Value {
    let call = format!("call_{n}");
    let input = json!({"command": format!("do {n}"), "deep": {"list": [1, true, null], "x": x}});
    let mut item = match kind {
        "assistant" => {
            json!({"id": format!("msg_{n}"), "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": format!("a {n}"), "annotations": [], "logprobs": []},
                {"type": "output_text", "text": "b"}]})
        }
        "reasoning" => {
            json!({"id": format!("rs_{n}"), "type": "reasoning", "encrypted_content": format!("g{n}"),
            "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]})
        }
        "open reasoning" => {
            json!({"id": format!("rs_{n}"), "type": "reasoning", "encrypted_content": null,
            "summary": [{"type": "summary_text", "text": format!("t {n}")}]})
        }
        "function_call" => {
            json!({"id": format!("fc_{n}"), "type": "function_call", "status": "completed", "call_id": call,
            "name": "bash", "arguments": input.to_string()})
        }
        "custom_tool_call" => {
            json!({"id": format!("ctc_{n}"), "type": "custom_tool_call", "status": "completed",
            "call_id": call, "name": "exec", "input": format!("*** Begin {n}")})
        }
        "tool_search_call" => {
            json!({"type": "tool_search_call", "call_id": call, "execution": "client", "arguments": input})
        }
        "web_search_call" => {
            json!({"id": format!("ws_{n}"), "type": "web_search_call", "status": "completed", "action": input})
        }
        "user" => json!({"type": "message", "role": "user", "x": x,
            "content": [{"type": "input_text", "text": format!("u {n}")}, {"type": "input_image", "image_url": "data:"}]}),
        "developer" => json!({"id": format!("msg_{n}"), "type": "message", "role": "developer",
            "content": format!("d {n}")}),
        "additional_tools" => {
            json!({"id": format!("at_{n}"), "type": "additional_tools", "role": "developer",
            "tools": [{"type": "function", "name": format!("f{n}"), "parameters": input}]})
        }
        "agent_message" => {
            json!({"type": "agent_message", "author": "/root", "recipient": "/root/a",
            "content": [{"type": "encrypted_content", "encrypted_content": format!("m{n}")}]})
        }
        "compaction" => json!({"type": "compaction", "encrypted_content": format!("c{n}")}),
        "item_reference" => json!({"type": "item_reference", "id": format!("msg_{n}")}),
        output => {
            json!({"type": output, "call_id": call, "output": [{"type": "input_text", "text": "o"}],
            "tools": [{"name": "t"}], "x": x})
        }
    };
    let fields = item.as_object_mut().expect("an object");
    if kind == "assistant" && n.is_multiple_of(2) {
        fields.insert("phase".to_owned(), json!("commentary"));
    }
    if kind.ends_with("tool_call") && n.is_multiple_of(2) {
        fields.insert("namespace".to_owned(), json!("functions"));
    }
    item
}

/// A value that is neither null nor like any that the items have by themselves.
fn stranger() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(0.25)),
        Just(json!(u64::MAX)),
        Just(json!("\u{e9}/\"\n\u{1f600}")),
        Just(json!({"k": [], "l": {}, "m": [[{"z": 1, "a": 2}]]})),
    ]
}

#[derive(Clone, Debug)]
struct Conversation {
    sent: Vec<Value>,
    output: Vec<Value>,
}

impl Conversation {
    fn all(&self) -> impl Iterator<Item = &Value> {
        self.sent.iter().chain(&self.output)
    }

    fn seen(&self) -> Seen {
        let output = self.output.iter().map(|item| parsed(&item.to_string())).collect();
        Seen::new(&request(&texts(&self.sent)), output, "resp_1".to_owned())
    }
}

fn conversation() -> impl Strategy<Value = Conversation> {
    let kinds = (0..REQUESTS.len() + ANSWERS.len(), stranger());
    let answers = (0..ANSWERS.len(), stranger());
    (vec(kinds, 1..8), vec(answers, 0..6)).prop_map(|(kinds, answers)| {
        let before = kinds.len();
        let kind = |at: usize| *REQUESTS.iter().chain(&ANSWERS).nth(at).expect("a kind");
        let sent = kinds.iter().enumerate().map(|(n, (at, x))| item(kind(*at), n, x));
        let output =
            answers.iter().enumerate().map(|(n, (at, x))| item(ANSWERS[*at], before + n, x));
        Conversation { sent: sent.collect(), output: output.collect() }
    })
}

fn parsed(text: &str) -> Item {
    Item::parse(RawValue::from_string(text.to_owned()).expect("JSON"))
}

fn texts(items: &[Value]) -> Vec<String> {
    items.iter().map(Value::to_string).collect()
}

fn request(items: &[String]) -> Body {
    let text = format!(r#"{{"model":"m","tools":[],"input":[{}]}}"#, items.join(","));
    Body::parse(text.as_bytes()).expect("a request")
}

/// The value with other white space and keys the other way round.
fn rewritten(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .rev()
                .map(|(name, value)| format!("{} : {}", json!(name), rewritten(value)))
                .collect();
            format!("{{ {} }}", fields.join(" , "))
        }
        Value::Array(values) => {
            format!("[ {} ]", values.iter().map(rewritten).collect::<Vec<_>>().join(" ,\n"))
        }
        Value::String(text) => Value::String(text.clone()).to_string().replace('/', "\\/"),
        plain => plain.to_string(),
    }
}

/// What a client may do to an item that it returns, chosen by the bits of `how`.
fn returned(item: &Value, how: u8) -> String {
    let mut item = item.clone();
    let kind = item["type"].as_str().unwrap_or_default().to_owned();
    let role = item["role"].as_str().unwrap_or_default().to_owned();
    let fields = item.as_object_mut().expect("an object");
    let does = |bit: u8| how & (1 << bit) != 0;
    if does(0) && kind != "item_reference" {
        fields.remove("id");
    }
    if does(1) {
        fields.remove("status");
    }
    if does(2) {
        fields.insert("internal_chat_message_metadata_passthrough".to_owned(), json!({"t": how}));
    }
    if does(3) && kind == "message" {
        fields.remove("type");
    }
    if does(4) && role == "developer" {
        fields.insert("id".to_owned(), json!("msg_rebuilt"));
    }
    if does(4) && kind == "reasoning" && fields["encrypted_content"].is_string() {
        fields["summary"].as_array_mut().expect("a summary").remove(0);
    }
    if does(5) && role == "assistant" {
        fields.remove("phase");
        let parts = fields["content"].as_array_mut().expect("parts").iter_mut();
        parts.filter_map(Value::as_object_mut).for_each(|part| {
            part.remove("annotations");
            part.remove("logprobs");
        });
    }
    if does(6) {
        fields.remove("namespace");
    }
    if does(7) {
        if let Some(Value::String(arguments)) = fields.get_mut("arguments") {
            let value: Value = serde_json::from_str(arguments).expect("arguments");
            *arguments = rewritten(&value);
        }
        return rewritten(&item);
    }
    item.to_string()
}

/// Paths to the leaves of a value that count: those below fields that are not looked at do not.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    let ignored =
        ["/status", "/internal_chat_message_metadata_passthrough", "/annotations", "/logprobs"];
    if ignored.iter().any(|field| path.ends_with(field)) {
        return;
    }
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, value)| leaves(value, &format!("{path}/{name}"), found));
        }
        Value::Array(values) if !values.is_empty() => {
            for (place, value) in values.iter().enumerate() {
                leaves(value, &format!("{path}/{place}"), found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

/// Another value in a leaf's place. Never null, which to a client means that it has none.
fn altered(leaf: &mut Value, other_type: bool) {
    *leaf = match &*leaf {
        _ if other_type => json!({"changed": true}),
        Value::String(text) => json!(format!("{text}x")),
        Value::Bool(flag) => json!(!flag),
        Value::Number(_) => json!(7.5),
        Value::Array(_) => json!(["x"]),
        Value::Object(_) => json!({"x": 1}),
        Value::Null => json!("x"),
    };
}

/// Changes one leaf of the item, or one inside its arguments.
fn mutated(item: &Value, which: usize, other_type: bool) -> Value {
    let mut item = item.clone();
    let is_rebuilt = item["role"] == "developer";
    let mut places = Vec::new();
    leaves(&item, "", &mut places);
    places.retain(|path| !(is_rebuilt && path == "/id"));
    let inside: Option<Value> =
        item["arguments"].as_str().map(|text| serde_json::from_str(text).expect("arguments"));
    let mut inner = Vec::new();
    if let Some(inside) = &inside {
        leaves(inside, "", &mut inner);
    }
    let at = which % (places.len() + inner.len());
    if let Some(path) = places.get(at) {
        altered(item.pointer_mut(path).expect("a leaf"), other_type);
    } else {
        let mut inside = inside.expect("has leaves");
        altered(inside.pointer_mut(&inner[at - places.len()]).expect("a leaf"), other_type);
        item["arguments"] = json!(inside.to_string());
    }
    item
}

fn new_item() -> String {
    json!({"role": "user", "content": "What is new."}).to_string()
}

fn config() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(20_260_902),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_a_client_may_do_costs_nothing(talk in conversation(), how in vec(any::<u8>(), 16), drops in any::<bool>()) {
        let mut next: Vec<String> = talk.all().zip(&how).map(|(item, how)| returned(item, *how)).collect();
        if drops {
            let kept = |item: &Value| item["type"] != "reasoning" || item["encrypted_content"].is_string();
            let answers = talk.output.iter().zip(&how[talk.sent.len()..]);
            next.truncate(talk.sent.len());
            next.extend(answers.filter(|(item, _)| kept(item)).map(|(item, how)| returned(item, *how)));
        }
        let from = next.len();
        next.push(new_item());
        prop_assert_eq!(step(Some(&talk.seen()), &request(&next)), Step::Incremental { from });
    }

    #[test]
    fn a_changed_leaf_is_found(talk in conversation(), how in vec(any::<u8>(), 16), at in any::<prop::sample::Index>(), which in 0_usize..1000, other_type in any::<bool>()) {
        let mut next: Vec<String> = talk.all().zip(&how).map(|(item, how)| returned(item, *how)).collect();
        let at = at.index(next.len());
        let changed = mutated(talk.all().nth(at).expect("an item"), which, other_type);
        next[at] = changed.to_string();
        next.push(new_item());
        let step = step(Some(&talk.seen()), &request(&next));
        prop_assert!(
            matches!(step, Step::Full(Why::PrefixDiffers { index, .. }) if index == at),
            "{:?} for {} at {}", step, changed, at
        );
    }

    #[test]
    fn an_added_field_is_found(talk in conversation(), at in any::<prop::sample::Index>(), x in stranger()) {
        let mut next = texts(&talk.all().cloned().collect::<Vec<_>>());
        let at = at.index(next.len());
        let mut item: Map<String, Value> = serde_json::from_str(&next[at]).expect("an item");
        item.insert("added".to_owned(), x);
        next[at] = Value::Object(item).to_string();
        next.push(new_item());
        let step = step(Some(&talk.seen()), &request(&next));
        prop_assert!(
            matches!(&step, Step::Full(Why::PrefixDiffers { index, field, .. }) if *index == at && field.starts_with("added")),
            "{:?}", step
        );
    }

    #[test]
    fn another_order_is_found(talk in conversation(), one in any::<prop::sample::Index>(), edit in 0..3) {
        let mut next = texts(&talk.all().cloned().collect::<Vec<_>>());
        let at = one.index(next.len());
        let open = |at: usize| talk.output.get(at.wrapping_sub(talk.sent.len())).is_some_and(|item| item["encrypted_content"].is_null() && item["type"] == "reasoning");
        match edit {
            0 if !open(at) => { next.remove(at); }
            1 if at > 0 && !open(at) && !open(at - 1) => next.swap(at - 1, at),
            _ => next.insert(at, new_item()),
        }
        let first = if edit == 1 && at > 0 && !open(at) && !open(at - 1) { at - 1 } else { at };
        next.push(new_item());
        let step = step(Some(&talk.seen()), &request(&next));
        prop_assert!(
            matches!(step, Step::Full(Why::PrefixDiffers { index, .. }) if index == first),
            "{:?} at {}", step, first
        );
    }
}
