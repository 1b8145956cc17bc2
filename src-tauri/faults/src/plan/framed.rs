//! What a WebSocket meets: the kinds of faults that every answer can have, in frames, and those that only a WebSocket has.
//!
//! **Invariant**: pure; the same chance gives the same frames.

use serde_json::json;

use super::{error, incomplete, odd, pieces};
use crate::chance::Chance;
use crate::fault::{Attempt, End};
use crate::frames::{self, Form};
use crate::speech::{Close, Speech};

/// Kinds that are drawn where WebSockets are opened, beside all others.
pub(super) const KINDS: [(usize, &str); 8] = [
    (16, "goodbye"),
    (8, "first word: start anew"),
    (8, "closed between turns"),
    (2, "deaf between turns"),
    (4, "split frames"),
    (3, "binary frame"),
    (3, "text that is no event"),
    (5, "broken frame"),
];

/// The codes with which a backend closes.
const CODES: [u16; 5] = [1000, 1001, 1008, 1009, 1011];

pub(super) fn attempt(kind: &str, name: &str, lite: bool, chance: &mut Chance) -> Attempt {
    let form = Form { split: kind == "split frames", ..Form::any(chance) };
    let much = (kind == "large event").then(|| match chance.below(12) {
        0 => 33 * 1024 * 1024,
        _ => *chance.pick(&[300_000, 1_500_000, 4_000_000]),
    });
    let mut speech = Speech::make(chance, name, lite, much);
    if !["error in stream", "incomplete", "odd completion", "page instead of stream", "status"]
        .contains(&kind)
    {
        speech.close(&Close::Completed);
    }
    match kind {
        "cut: close" | "cut: reset" | "cut: chunk framing" | "stall" => {
            let mut all = written(form, &speech.events, chance).concat();
            all.truncate(chance.below(all.len() + 1));
            let end = match kind {
                "cut: reset" => End::Reset,
                "stall" => End::Hold,
                _ => End::Close,
            };
            Attempt { writes: pieces(all, 3, chance), end }
        }
        "slow backend" => {
            let mut writes = pieces(written(form, &speech.events, chance).concat(), 4, chance);
            for (wait, _) in &mut writes {
                *wait = *chance.pick(&[0, 30, 150, 400]);
            }
            Attempt { writes, end: End::Keep }
        }
        "small writes" => {
            let all = written(form, &speech.events, chance).concat();
            let size = chance.within(1, 9).max(all.len() / 600);
            let writes = all.chunks(size).map(|piece| (0, piece.to_vec())).collect();
            Attempt { writes, end: End::Keep }
        }
        "error in stream" | "status" => {
            let keep = if kind == "status" { 0 } else { chance.below(speech.events.len() + 1) };
            speech.cut(if chance.one_in(3) { keep.min(2) } else { keep });
            speech.close(&error(chance));
            played(form, &speech.events, End::Keep, chance)
        }
        "incomplete" => {
            speech.cut(chance.below(speech.events.len() + 1));
            speech.close(&incomplete(chance));
            played(form, &speech.events, End::Keep, chance)
        }
        "odd completion" => {
            let close = odd(chance);
            if chance.one_in(4) {
                speech.cut(2);
            }
            speech.close(&close);
            let end = if close == Close::Nothing { End::Close } else { End::Keep };
            played(form, &speech.events, end, chance)
        }
        "page instead of stream" => {
            let page = "<html><head><title>429 Just a moment...</title></head></html>".to_owned();
            played(form, &[page], End::Close, chance)
        }
        "damaged byte" => {
            let at = chance.below(speech.events.len());
            let mut frames = written(form, &speech.events, chance);
            let mut bytes = speech.events[at].clone().into_bytes();
            let place = chance.below(bytes.len());
            bytes[place] = if chance.one_in(3) { 0xff } else { chance.below(128) as u8 };
            frames[at] = frames::frame(frames::TEXT, true, &bytes);
            Attempt { writes: pieces(frames.concat(), 4, chance), end: End::Close }
        }
        "after the end" => {
            let twice = speech.events.last().cloned().unwrap_or_default();
            let failed = json!({"type": "response.failed"}).to_string();
            speech.events.push(chance.pick(&[twice, "[DONE]".to_owned(), failed]).clone());
            // In one write, so that it is there when the next turn begins.
            let all = written(form, &speech.events, chance).concat();
            Attempt { writes: vec![(0, all)], end: *chance.pick(&[End::Keep, End::Close]) }
        }
        "no answer" => Attempt {
            writes: vec![(0, frames::frame(frames::PING, true, b""))],
            end: *chance.pick(&[End::Close, End::Reset]),
        },
        "goodbye" => {
            let mut frames = written(form, &speech.events, chance);
            // The first words and the last ones are where the code matters most.
            let keep = match chance.below(3) {
                0 => chance.below(3),
                1 => frames.len() - chance.below(3).min(frames.len()),
                _ => chance.below(frames.len() + 1),
            };
            frames.truncate(keep);
            frames.push(frames::goodbye(*chance.pick(&CODES)));
            Attempt { writes: pieces(frames.concat(), 3, chance), end: End::Close }
        }
        "first word: start anew" => {
            let code = *chance
                .pick(&["websocket_connection_limit_reached", "previous_response_not_found"]);
            let error = json!({"type": "error", "status": 400,
                "error": {"type": "invalid_request_error", "code": code, "message": "Start anew."}});
            let mut events = vec![error.to_string()];
            if chance.one_in(4) {
                events.insert(0, json!({"type": "codex.rate_limits", "plan_type": "plus", "rate_limits": {"allowed": true}}).to_string());
            }
            played(form, &events, *chance.pick(&[End::Keep, End::Close]), chance)
        }
        "closed between turns" => {
            let mut frames = written(form, &speech.events, chance);
            if chance.one_in(2) {
                frames.push(frames::goodbye(*chance.pick(&CODES)));
            }
            let late = frames::frame(frames::PING, true, b"late");
            let mut writes = pieces(frames.concat(), 3, chance);
            writes.push((chance.below(30) as u64, late));
            Attempt { writes, end: *chance.pick(&[End::Close, End::Reset]) }
        }
        "binary frame" | "text that is no event" | "broken frame" => {
            let mut frames = written(form, &speech.events, chance);
            let at = chance.below(frames.len() + 1);
            frames.insert(at, odd_frame(kind, chance));
            let end = if kind == "text that is no event" { End::Keep } else { End::Close };
            Attempt { writes: pieces(frames.concat(), 3, chance), end }
        }
        _ => played(form, &speech.events, End::Keep, chance),
    }
}

/// An answer of a backend that does not hear any more.
pub(super) fn deaf() -> Attempt {
    Attempt { writes: Vec::new(), end: End::Hold }
}

fn odd_frame(kind: &str, chance: &mut Chance) -> Vec<u8> {
    match kind {
        "binary frame" => frames::frame(frames::BINARY, true, b"{\"type\":\"response.completed\"}"),
        "text that is no event" => {
            let texts = ["", "null", "[1]", "{\"type\":1}", "{\"type\":\"response.comp", "ping"];
            frames::frame(frames::TEXT, true, chance.pick::<&str>(&texts).as_bytes())
        }
        _ => match chance.below(7) {
            // A reserved bit, as of a compression that nobody asked for.
            0 => frames::frame(frames::TEXT | 0x40, true, b"{}"),
            1 => frames::frame(5, true, b"{}"),
            2 => frames::masked(frames::TEXT, b"{\"type\":\"response.completed\"}"),
            3 => frames::frame(frames::PING, false, b"half"),
            4 => frames::frame(frames::CONTINUATION, true, b"{}"),
            5 => frames::frame(frames::PING, true, &[b'p'; 126]),
            _ => [
                frames::frame(frames::TEXT, false, b"{\"type\":"),
                frames::frame(frames::TEXT, true, b"{\"type\":\"response.completed\"}"),
            ]
            .concat(),
        },
    }
}

/// Each event's frames.
fn written(form: Form, events: &[String], chance: &mut Chance) -> Vec<Vec<u8>> {
    events.iter().map(|event| form.message(event, chance)).collect()
}

fn played(form: Form, events: &[String], end: End, chance: &mut Chance) -> Attempt {
    Attempt { writes: pieces(written(form, events, chance).concat(), 4, chance), end }
}
