//! From a seed to a fault.
//!
//! Kinds are drawn by weight: what happens often in the field is tried often, what waits for a timer seldom, since it
//! costs time.
//!
//! **Invariant**: pure; the same seed gives the same fault.

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::fault::{Attempt, End, Fault, Manner, Memory, Road, Turn};
use crate::speech::{Close, Speech};
use crate::wire::{Form, page};

mod framed;

const KINDS: [(usize, &str); 19] = [
    (12, "healthy"),
    (14, "cut: close"),
    (10, "cut: reset"),
    (3, "cut: chunk framing"),
    (5, "stall"),
    (6, "slow backend"),
    (8, "small writes"),
    (10, "status"),
    (3, "page instead of stream"),
    (10, "error in stream"),
    (4, "incomplete"),
    (4, "odd completion"),
    (4, "after the end"),
    (3, "no answer"),
    (2, "large event"),
    (4, "damaged byte"),
    (12, "client breaks off"),
    (3, "client leaves early"),
    (2, "client stutters"),
];

/// Draws the fault of a seed.
pub fn fault(seed: u64) -> Fault {
    let mut chance = Chance::of(seed);
    let (road, kind) = drawn(&mut chance);
    of_kind(seed, kind, road, chance)
}

fn drawn(chance: &mut Chance) -> (Road, &'static str) {
    let road = match chance.below(40) {
        0..=25 => Road::Open,
        26 => Road::Refused(403),
        27 => Road::Refused(500),
        28 => Road::Hangs,
        _ => Road::Refused(426),
    };
    (road, kind(road, chance))
}

fn kind(road: Road, chance: &mut Chance) -> &'static str {
    let mut kinds = KINDS.to_vec();
    if road == Road::Open {
        kinds.extend(framed::KINDS);
    }
    let mut at = chance.below(kinds.iter().map(|(weight, _)| weight).sum());
    let drawn = kinds.iter().find(|(weight, _)| {
        let here = at < *weight;
        at = at.wrapping_sub(*weight);
        here
    });
    drawn.map_or("healthy", |(_, kind)| kind)
}

/// A healthy conversation, in which a sabotage has something to spoil.
pub fn plain(seed: u64, road: Road) -> Fault {
    let mut fault = of_kind(seed, "healthy", road, Chance::of(seed));
    fault.memory = Memory::Rewritten;
    fault
}

/// A client that leaves while the backend says nothing.
pub fn leaving(seed: u64) -> Fault {
    let mut fault = of_kind(seed, "stall", Road::Refused(426), Chance::of(seed));
    for turn in &mut fault.turns {
        turn.client = Manner::Leaves { after: 60, reset: false };
        for attempt in &mut turn.attempts {
            attempt.writes.truncate(1);
            attempt.end = End::Hold;
        }
    }
    fault
}

fn of_kind(seed: u64, kind: &'static str, road: Road, mut chance: Chance) -> Fault {
    let accounts = chance.within(1, 3);
    let lite = chance.one_in(4);
    let memory = match chance.below(8) {
        0 => Memory::Calls,
        1..=3 => Memory::Whole,
        _ => Memory::Rewritten,
    };
    // What came before must not show in the next turn of the same conversation, and over a WebSocket it is continued.
    let more = match road {
        Road::Open => chance.within(1, 3),
        _ => usize::from(chance.one_in(3)),
    };
    // The first turn, or a later one, which has something to continue.
    let bad = if chance.one_in(2) { 0 } else { chance.below(more + 1) };
    let turns = (0..=more).map(|number| {
        let kind = if number == bad { kind } else { "healthy" };
        turn(kind, &format!("{seed}_{number}"), lite, &mut chance)
    });
    let mut turns: Vec<Turn> = turns.collect();
    if kind == "deaf between turns" {
        turns[1].framed[0] = framed::deaf();
    }
    Fault { seed, kind, accounts, lite, road, memory, turns }
}

fn turn(kind: &'static str, name: &str, lite: bool, chance: &mut Chance) -> Turn {
    // A client that goes away is noticed by other means where the backend says nothing.
    let first = if kind.starts_with("client") && chance.one_in(3) { "stall" } else { kind };
    let mut kinds = vec![first];
    if chance.one_in(3) {
        kinds.push(kind);
    }
    kinds.push("healthy");
    let named = |at: usize| format!("{name}{}", ["a", "b", "c"][at]);
    let mut attempts = Vec::new();
    let mut framed = Vec::new();
    for (at, kind) in kinds.into_iter().enumerate() {
        attempts.push(attempt(kind, &named(at), lite, chance));
        framed.push(framed::attempt(kind, &named(at), lite, chance));
    }
    Turn {
        attempts,
        framed,
        client: manner(kind, chance),
        whole: chance.one_in(8),
        close: chance.one_in(2),
        padding: if chance.one_in(12) { chance.below(900_000) } else { chance.below(600) },
        shuffle: chance.number(),
    }
}

fn manner(kind: &str, chance: &mut Chance) -> Manner {
    let reset = chance.one_in(2);
    match kind {
        "client breaks off" => Manner::BreaksAt { byte: chance.below(4_000), reset },
        "client leaves early" => Manner::Leaves { after: chance.below(60) as u64, reset },
        "client stutters" => Manner::Stutters { percent: chance.below(100), reset },
        _ if chance.one_in(5) => {
            Manner::Reads { bytes: chance.within(1, 400), pause: chance.below(8) as u64 }
        }
        _ => Manner::PLAIN,
    }
}

fn attempt(kind: &str, name: &str, lite: bool, chance: &mut Chance) -> Attempt {
    let mut form = Form::any(chance);
    let end =
        if form.chunked { *chance.pick(&[End::Keep, End::Close, End::Hold]) } else { End::Close };
    form.open = end == End::Hold || kind == "stall";
    let much = (kind == "large event").then(|| match chance.below(12) {
        0 => 33 * 1024 * 1024,
        _ => *chance.pick(&[300_000, 1_500_000, 4_000_000]),
    });
    let mut speech = Speech::make(chance, name, lite, much);
    let good = |speech: &mut Speech, chance: &mut Chance| {
        speech.close(&Close::Completed);
        let body = form.stream(&speech.events, chance);
        form.answer(&body, chance)
    };
    match kind {
        "cut: close" | "cut: reset" | "cut: chunk framing" => {
            let form = Form { chunked: kind == "cut: chunk framing" || chance.one_in(3), ..form };
            speech.close(&Close::Completed);
            let body = form.stream(&speech.events, chance);
            let mut all = form.answer(&body, chance);
            let cut = cut_at(&all, chance);
            all.truncate(cut);
            let end = if kind == "cut: reset" { End::Reset } else { End::Close };
            Attempt { writes: pieces(all, 3, chance), end }
        }
        "stall" => {
            let mut all = good(&mut speech, chance);
            let cut = cut_at(&all, chance);
            all.truncate(cut);
            Attempt { writes: pieces(all, 3, chance), end: End::Hold }
        }
        "slow backend" => {
            let all = good(&mut speech, chance);
            let mut writes = pieces(all, 4, chance);
            for (wait, _) in &mut writes {
                *wait = *chance.pick(&[0, 30, 150, 400]);
            }
            Attempt { writes, end }
        }
        "small writes" => {
            let all = good(&mut speech, chance);
            let size = chance.within(1, 9).max(all.len() / 600);
            let writes = all.chunks(size).map(|piece| (0, piece.to_vec())).collect();
            Attempt { writes, end }
        }
        "status" => Attempt {
            writes: pieces(status(chance), 2, chance),
            end: *chance.pick(&[End::Keep, End::Close, End::Reset]),
        },
        "page instead of stream" => {
            let body = b"<html><head><title>429 Just a moment...</title></head>\r\ndata: {\"type\":\"response.completed\"}\r\n\r\n</html>";
            Attempt { writes: pieces(page(200, "text/html", body), 2, chance), end: End::Keep }
        }
        "error in stream" => {
            let keep = chance.below(speech.events.len() + 1);
            speech.cut(if chance.one_in(3) { keep.min(2) } else { keep });
            speech.close(&error(chance));
            stream(&form, &speech, end, chance)
        }
        "incomplete" => {
            let keep = chance.below(speech.events.len() + 1);
            speech.cut(keep);
            speech.close(&incomplete(chance));
            stream(&form, &speech, end, chance)
        }
        "odd completion" => {
            let close = odd(chance);
            if chance.one_in(4) {
                speech.cut(2);
            }
            speech.close(&close);
            let end = if close == Close::Nothing && end != End::Keep { End::Close } else { end };
            stream(&form, &speech, end, chance)
        }
        "damaged byte" => {
            speech.close(&Close::Completed);
            let mut body = form.stream(&speech.events, chance);
            let at = chance.below(body.len());
            body[at] = if chance.one_in(3) { 0xff } else { chance.below(128) as u8 };
            Attempt { writes: pieces(form.answer(&body, chance), 4, chance), end }
        }
        "after the end" => {
            speech.close(&Close::Completed);
            let twice = speech.events.last().cloned().unwrap_or_default();
            speech.events.push(
                chance
                    .pick(&[
                        twice,
                        "[DONE]".to_owned(),
                        json!({"type": "response.failed"}).to_string(),
                    ])
                    .clone(),
            );
            stream(&form, &speech, end, chance)
        }
        "no answer" => {
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            let start = chance.below(head.len() + 1);
            Attempt {
                writes: vec![(0, head[..start].to_vec())],
                end: *chance.pick(&[End::Close, End::Reset]),
            }
        }
        _ => {
            let all = good(&mut speech, chance);
            Attempt { writes: pieces(all, 6, chance), end }
        }
    }
}

fn stream(form: &Form, speech: &Speech, end: End, chance: &mut Chance) -> Attempt {
    let body = form.stream(&speech.events, chance);
    Attempt { writes: pieces(form.answer(&body, chance), 4, chance), end }
}

/// Any byte, but the later ones more often than long events would have it.
fn cut_at(all: &[u8], chance: &mut Chance) -> usize {
    if chance.one_in(3) {
        // At or beside the end of a line, where mistakes live.
        let ends: Vec<usize> =
            (0..all.len()).filter(|at| matches!(all[*at], b'\n' | b'\r')).collect();
        let at = *chance.pick(&ends) + chance.below(2);
        return at.min(all.len());
    }
    chance.below(all.len() + 1)
}

/// The bytes in a few writes that follow each other at once.
fn pieces(all: Vec<u8>, most: usize, chance: &mut Chance) -> Vec<(u64, Vec<u8>)> {
    let mut cuts: Vec<usize> =
        (0..chance.below(most)).map(|_| chance.below(all.len() + 1)).collect();
    cuts.extend([0, all.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| (chance.below(3) as u64, all[pair[0]..pair[1]].to_vec())).collect()
}

fn status(chance: &mut Chance) -> Vec<u8> {
    let status = *chance.pick(&[
        301, 400, 401, 402, 403, 404, 408, 409, 413, 422, 425, 429, 500, 502, 503, 504, 520, 524,
        529,
    ]);
    let known = json!({"error": error_of(chance)}).to_string();
    let bodies = [
        ("application/json", known.clone()),
        ("application/json", known[..known.len() / 2].to_owned()),
        ("application/json", json!({"detail": "Unsupported parameter: top_p"}).to_string()),
        ("application/json", "{}".to_owned()),
        ("application/json", "[1,2]".to_owned()),
        ("text/html", "<html>\r\n<title>502 Bad gateway</title>\rdata: x\n\n</html>".to_owned()),
        ("text/plain", "upstream connect error\r\nor reset".to_owned()),
        ("text/plain", String::new()),
    ];
    let (kind, body) = chance.pick(&bodies);
    page(status, kind, body.as_bytes())
}

fn incomplete(chance: &mut Chance) -> Close {
    let reasons = [
        "max_output_tokens",
        "content_filter",
        "usage_limit_reached",
        "max_tool_calls",
        "insufficient_quota",
    ];
    Close::Incomplete(chance.pick::<&str>(&reasons))
}

fn odd(chance: &mut Chance) -> Close {
    chance.pick(&[Close::NoUsage, Close::Done, Close::Hollow, Close::Nothing]).clone()
}

fn error_of(chance: &mut Chance) -> Value {
    let errors = [
        json!({"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus", "resets_at": 4_000_000_000_u64}),
        json!({"code": "rate_limit_exceeded", "message": "Rate limit reached. Please try again in 1s"}),
        json!({"type": "server_error", "code": "server_error", "message": "An error occurred"}),
        json!({"code": "server_is_overloaded", "message": "Overloaded"}),
        json!({"code": "slow_down", "message": "Slow down"}),
        json!({"code": "context_length_exceeded", "message": "Too long\r\nby far"}),
        json!({"type": "invalid_request_error", "code": "invalid_prompt", "message": "No."}),
        json!({"code": "model_not_found", "message": "No such model"}),
        json!({"code": "token_invalidated", "message": "Invalidated"}),
        json!({"type": "usage_not_included", "message": "Not in your plan"}),
        json!({"code": "insufficient_quota", "message": "Nothing left"}),
        json!({"code": "never_heard_of", "message": "?"}),
        Value::Null,
        json!({}),
    ];
    chance.pick(&errors).clone()
}

fn error(chance: &mut Chance) -> Close {
    let error = error_of(chance);
    match chance.below(5) {
        0 => Close::Error(json!({"type": "error", "error": error, "status_code": 429})),
        1 => Close::Error(
            json!({"type": "error", "code": error["code"], "message": error["message"], "param": null}),
        ),
        2 => Close::Error(json!({"error": error, "status": 400})),
        3 => Close::Error(json!({"detail": "The usage limit has been reached"})),
        _ => Close::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_fault_and_every_kind_is_drawn() {
        for seed in 0..8 {
            assert_eq!(format!("{:?}", fault(seed)), format!("{:?}", fault(seed)));
        }
        let drawn: std::collections::BTreeSet<_> =
            (0..1200).map(|seed| drawn(&mut Chance::of(seed)).1).collect();
        assert_eq!(drawn.len(), KINDS.len() + framed::KINDS.len(), "{drawn:?}");
    }
}
