//! The fake client: sends a turn over a connection of its own, reads as its manner says, and keeps every byte.
//!
//! **Invariant**: it reads framing only as far as it must to know that an answer is over; whether the answer was right is
//! the checker's business.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

use crate::chance::Chance;
use crate::check::http;
use crate::check::sse;
use crate::fault::{Fault, Manner, Memory, Turn};
use crate::transcript::{ClientEnd, ClientSaw, now};

/// An answer that takes longer never ends.
const BOUND: Duration = Duration::from_secs(60);

/// How often a slow reader pauses.
const PAUSES: usize = 40;

/// Where turns are sent.
#[derive(Clone, Debug)]
pub struct Place {
    pub address: String,
    pub key: String,
}

/// The mark by which a turn is known at both ends and in the database.
pub fn mark(fault: &Fault, turn: usize) -> String {
    format!("{}-turn-{turn}", fault.name())
}

/// Plays the client's part of one turn. `earlier` are the answers that the conversation's earlier turns got, `line` a
/// connection that one of them left open.
pub async fn turn(
    place: &Place,
    fault: &Fault,
    number: usize,
    turn: &Turn,
    earlier: &[ClientSaw],
    line: &mut Option<TcpStream>,
) -> ClientSaw {
    let mut saw = send(place, fault, number, turn, earlier, line).await;
    saw.done = now();
    saw
}

async fn send(
    place: &Place,
    fault: &Fault,
    number: usize,
    turn: &Turn,
    earlier: &[ClientSaw],
    line: &mut Option<TcpStream>,
) -> ClientSaw {
    let (input, outputs) = history(fault, number, turn, earlier);
    let body = json!({
        "model": fault.name(),
        "instructions": "Do what you are told.",
        "input": &input,
        "tools": [{"type": "function", "name": "task", "strict": false, "parameters": {"type": "object", "properties": {}}}],
        "stream": !turn.whole,
        "store": false,
        "prompt_cache_key": fault.name(),
    })
    .to_string();
    let close = if turn.close { "close" } else { "keep-alive" };
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\nuser-agent: faults/1\r\nx-session-id: {}\r\nx-parent-session-id: {}\r\nconnection: {close}\r\ncontent-length: {}\r\n\r\n",
        place.address,
        place.key,
        fault.name(),
        mark(fault, number),
        body.len()
    );
    let mut request = head.into_bytes();
    request.extend(body.into_bytes());
    let mut saw = ClientSaw {
        sent_whole: false,
        whole: turn.whole,
        input,
        outputs,
        raw: Vec::new(),
        end: ClientEnd::Reset,
        done: Duration::ZERO,
    };
    let mut socket = match line.take() {
        Some(socket) => socket,
        None => {
            let Ok(socket) = TcpStream::connect(&place.address).await else { return saw };
            drop(socket.set_nodelay(true));
            socket
        }
    };
    if let Manner::Stutters { percent, .. } = turn.client {
        request.truncate(request.len() * percent / 100);
    }
    if socket.write_all(&request).await.is_err() {
        return saw;
    }
    saw.sent_whole = !matches!(turn.client, Manner::Stutters { .. });
    saw.end = read(&mut socket, turn.client, &mut saw.raw).await;
    let reset = match turn.client {
        Manner::BreaksAt { reset, .. }
        | Manner::Leaves { reset, .. }
        | Manner::Stutters { reset, .. } => reset,
        Manner::Reads { .. } => false,
    };
    if reset && saw.end == ClientEnd::Left {
        drop(socket.set_zero_linger());
    }
    if saw.end == ClientEnd::Ended && http::read(&saw.raw).is_some_and(|answer| answer.kept) {
        *line = Some(socket);
    }
    saw
}

async fn read(socket: &mut TcpStream, manner: Manner, raw: &mut Vec<u8>) -> ClientEnd {
    let bound = Instant::now() + BOUND;
    let (bytes, pause) = match manner {
        Manner::Reads { bytes, pause } => (bytes, pause),
        Manner::Stutters { .. } => return ClientEnd::Left,
        Manner::Leaves { after, .. } => {
            sleep(Duration::from_millis(after)).await;
            return ClientEnd::Left;
        }
        Manner::BreaksAt { .. } => (Manner::PLAIN_BYTES, 0),
    };
    let mut buffer = vec![0; bytes];
    let mut pauses = 0;
    loop {
        let room = match manner {
            Manner::BreaksAt { byte, .. } if raw.len() >= byte => return ClientEnd::Left,
            Manner::BreaksAt { byte, .. } => (byte - raw.len()).min(buffer.len()),
            _ => buffer.len(),
        };
        match timeout_at(bound, socket.read(&mut buffer[..room])).await {
            Err(_) => return ClientEnd::Hung,
            Ok(Err(_)) => return ClientEnd::Reset,
            Ok(Ok(0)) => return ClientEnd::Ended,
            Ok(Ok(read)) => raw.extend_from_slice(&buffer[..read]),
        }
        // Reading a long answer anew at each of its pieces would take longer than the answer.
        let may_be_whole =
            raw.len() < 64 * 1024 || raw.ends_with(b"\r\n\r\n") || raw.ends_with(b"}");
        if may_be_whole && http::read(raw).is_some_and(|answer| answer.whole && !answer.until_close)
        {
            return ClientEnd::Ended;
        }
        if pause > 0 && pauses < PAUSES {
            pauses += 1;
            sleep(Duration::from_millis(pause)).await;
        } else if pauses >= PAUSES {
            buffer.resize(Manner::PLAIN_BYTES, 0);
        }
    }
}

/// What an agent would send: all that it sent before, what it was answered, the outputs of the calls in the order in which
/// they ended, and what is said next. The last item carries the turn's mark.
fn history(
    fault: &Fault,
    number: usize,
    turn: &Turn,
    earlier: &[ClientSaw],
) -> (Vec<Value>, Vec<String>) {
    let mut chance = Chance::of(turn.shuffle);
    let mark = format!("weir-mark-{number}.");
    let mut input = earlier.last().map(|saw| saw.input.clone()).unwrap_or_default();
    let items: Vec<Value> = earlier.last().map(items).unwrap_or_default();
    let mut ended: Vec<Value> = items.iter().filter_map(output).collect();
    chance.shuffle(&mut ended);
    let outputs =
        ended.iter().filter_map(|output| Some(output["call_id"].as_str()?.to_owned())).collect();
    input.extend(items.into_iter().filter_map(|item| remembered(item, fault.memory)));
    input.extend(ended);
    // An agent goes on with outputs alone, a person says something more.
    let goes_on = input.last().is_some_and(|item| item["output"].is_string());
    if goes_on && chance.one_in(2) {
        if let Some(last) = input.last_mut() {
            last["output"] = json!(format!("done {mark} {}", "z".repeat(turn.padding)));
        }
    } else {
        let text = format!("do it {mark} {}", "z".repeat(turn.padding));
        input.push(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}));
    }
    (input, outputs)
}

/// An item as a client sends it back. None: it keeps no such items.
fn remembered(mut item: Value, memory: Memory) -> Option<Value> {
    let is_call = item["call_id"].is_string();
    match (memory, item["type"].as_str()?) {
        (_, "function_call" | "custom_tool_call") if is_call => {}
        (Memory::Whole | Memory::Rewritten, "message") if item["role"] == "assistant" => {}
        (Memory::Whole | Memory::Rewritten, "reasoning") => {}
        _ => return None,
    }
    if memory == Memory::Rewritten {
        let fields = item.as_object_mut()?;
        fields.shift_remove("id");
        fields.shift_remove("status");
        let written = fields.get_mut("arguments").and_then(|text| {
            let value: Value = serde_json::from_str(text.as_str()?).ok()?;
            Some((text, serde_json::to_string_pretty(&value).ok()?))
        });
        if let Some((text, anew)) = written {
            *text = json!(anew);
        }
    }
    Some(item)
}

/// The items that an answer completed.
fn items(saw: &ClientSaw) -> Vec<Value> {
    let Some(answer) = http::read(&saw.raw) else { return Vec::new() };
    if saw.whole {
        let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        return document["output"].as_array().cloned().unwrap_or_default();
    }
    let events = sse::read(&answer.body).events;
    let events = events.iter().filter_map(|event| serde_json::from_str::<Value>(&event.data).ok());
    events
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["item"].clone())
        .collect()
}

fn output(item: &Value) -> Option<Value> {
    let call_id = item["call_id"].as_str()?;
    remembered(item.clone(), Memory::Calls)?;
    let kind = if item["type"] == "custom_tool_call" {
        "custom_tool_call_output"
    } else {
        "function_call_output"
    };
    Some(json!({"type": kind, "call_id": call_id, "output": "done"}))
}
