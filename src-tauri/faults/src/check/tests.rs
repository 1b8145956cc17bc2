use std::time::Duration;

use serde_json::json;

use super::{Finding, Terms, fault, process};
use crate::fault::Road;
use crate::frames::{TEXT, frame, goodbye};
use crate::transcript::{
    BackendEnd, BackendSaw, ClientEnd, ClientSaw, FaultSaw, Footing, Line, ProcessSaw, Row, Rows,
    TurnSaw,
};

/// Evidence of one turn that went well, in pieces that a test can damage.
struct Evidence {
    /// What the backend said, and what the client saw.
    said: Vec<String>,
    seen: Vec<String>,
    turn: TurnSaw,
    road: Road,
    rows: Rows,
    process: ProcessSaw,
}

/// A rule, and the damage that breaks it.
type Case<T> = (&'static str, fn(&mut T));

fn data(event: serde_json::Value) -> String {
    event.to_string()
}

fn events() -> Vec<String> {
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "task", "arguments": "{}", "status": "completed"});
    vec![
        data(
            json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1"}}),
        ),
        data(
            json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {"type": "function_call"}}),
        ),
        data(
            json!({"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": call}),
        ),
        data(
            json!({"type": "response.completed", "sequence_number": 3, "response": {"id": "resp_1", "output": [],
            "usage": {"input_tokens": 5, "output_tokens": 6}}}),
        ),
    ]
}

fn answer(events: &[String]) -> Vec<u8> {
    let frames: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{frames}"
    )
    .into_bytes()
}

impl Evidence {
    fn sound() -> Self {
        let client = ClientSaw {
            sent_whole: true,
            whole: false,
            input: vec![json!({"role": "user", "content": "a"})],
            outputs: Vec::new(),
            raw: Vec::new(),
            end: ClientEnd::Ended,
            done: Duration::from_secs(1),
        };
        let row = Row {
            id: "t1".into(),
            mark: "m".into(),
            account: Some("practice 1".into()),
            transport: "sse".into(),
            input_items: Some(1),
            upstream_bytes: 1_000,
            whole_reason: Some("a reason".into()),
            outcome: Some("completed".into()),
            input_tokens: Some(5),
            output_tokens: Some(6),
            ..Row::default()
        };
        let footing = Footing { sockets: 4, files: 9, resident_kib: 30_000, in_flight: 0 };
        Self {
            said: events(),
            seen: events(),
            turn: TurnSaw { mark: "m".into(), client, attempts: vec![request(0)] },
            road: Road::Refused(426),
            rows: Rows {
                turns: vec![row],
                emitted: vec![("t1".into(), 0, "call_1".into())],
                booked: Vec::new(),
            },
            process: ProcessSaw {
                before: footing,
                after: footing,
                kept: Vec::new(),
                left_open: 0,
                exit: Some(0),
                drain: Duration::ZERO,
                log: String::new(),
            },
        }
    }

    fn findings(mut self) -> Vec<Finding> {
        if self.turn.client.raw.is_empty() {
            self.turn.client.raw = answer(&self.seen);
        }
        if let Some(last) = self.turn.attempts.last_mut().filter(|last| last.writes.is_empty()) {
            last.writes = vec![(Duration::from_millis(1), answer(&self.said))];
        }
        let terms = Terms {
            silence: Duration::from_secs(2),
            leaving: Duration::from_secs(1),
            growth_kib: 1_000,
        };
        let saw = [FaultSaw { seed: 1, kind: "made up", road: self.road, turns: vec![self.turn] }];
        let mut all = fault(&saw[0], &self.rows, &terms);
        all.extend(process(&self.process, &saw, &self.rows, &terms));
        all
    }
}

fn request(account: usize) -> BackendSaw {
    BackendSaw {
        turn: 0,
        account,
        line: None,
        body: json!({"model": "m", "input": [{"role": "user", "content": "a"}]})
            .to_string()
            .into_bytes(),
        came: Duration::from_secs(1),
        writes: Vec::new(),
        end: BackendEnd::Closed,
        over: Duration::from_millis(5),
    }
}

fn refused(account: usize, status: u16) -> BackendSaw {
    let text = format!("HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n");
    BackendSaw { writes: vec![(Duration::ZERO, text.into_bytes())], ..request(account) }
}

/// Damages sound evidence and names the rules that then are broken.
fn rules(damage: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    let mut evidence = Evidence::sound();
    damage(&mut evidence);
    let mut rules: Vec<_> = evidence.findings().into_iter().map(|finding| finding.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn sound_evidence_has_no_finding() {
    assert_eq!(Evidence::sound().findings(), []);
}

#[test]
fn what_happens_to_events_is_found() {
    let cases: &[Case<Evidence>] = &[
        ("foreign-event", |e| drop(e.seen.remove(1))),
        ("foreign-event", |e| e.seen.insert(1, e.seen[1].clone())),
        ("foreign-event", |e| e.seen.swap(0, 1)),
        ("foreign-event", |e| e.seen[1] = e.seen[1].replace("added", "addad")),
        ("foreign-event", |e| e.seen[3] = e.seen[3].replace("resp_1", "resp_2")),
        ("one-terminal", |e| drop(e.seen.pop())),
        ("one-terminal", |e| e.seen.push(e.seen[3].clone())),
        ("after-terminal", |e| e.seen.push(e.seen[1].clone())),
        ("framing", |e| {
            e.turn.client.raw = answer(&e.seen);
            e.turn.client.raw.pop();
        }),
    ];
    for (at, (rule, damage)) in cases.iter().enumerate() {
        assert!(rules(damage).contains(rule), "{rule}, case {at}: {:?}", rules(damage));
    }
}

fn failed() -> String {
    data(
        json!({"type": "response.failed", "sequence_number": 9, "response": {"error": {"code": "stream_lost"}}}),
    )
}

#[test]
fn an_end_of_weirs_own_is_held_to_what_was_there() {
    let completed = |output: serde_json::Value| {
        data(
            json!({"type": "response.completed", "sequence_number": 3, "response": {"output": output, "usage": {},
            "weir": {"completed_by_weir": true, "usage_estimated": true}}}),
        )
    };
    let item: serde_json::Value = serde_json::from_str(&events()[2]).expect("JSON");
    let good = completed(json!([item["item"]]));
    let cut = move |events: usize, end: String| {
        rules(|e| {
            e.said.truncate(events);
            e.seen.truncate(events);
            e.seen.push(end);
            e.rows.turns[0].input_tokens = None;
            e.rows.turns[0].output_tokens = None;
            if events < 3 {
                e.rows.emitted.clear();
            }
        })
    };
    assert_eq!(cut(3, good.clone()), [""; 0]);
    assert_eq!(cut(3, completed(json!([]))), ["own-end"]);
    // A failure where every item was complete, and a completion where one was not.
    assert_eq!(cut(3, failed()), ["own-end", "outcome"]);
    assert_eq!(cut(2, good), ["own-end"]);
    // Part of what the backend said was held back.
    assert_eq!(
        rules(|e| {
            e.said.truncate(3);
            e.seen = vec![e.said[0].clone(), failed()];
            e.rows.emitted.clear();
            e.rows.turns[0] = Row {
                outcome: Some("failed".into()),
                input_tokens: None,
                output_tokens: None,
                ..e.rows.turns[0].clone()
            };
        }),
        ["lost-event"]
    );
}

#[test]
fn a_request_that_is_sent_again_needs_a_reason() {
    let again = |first: BackendSaw| {
        rules(|e| {
            e.rows.turns[0].moves = i64::from(first.account == 0);
            e.turn.attempts.insert(0, first);
            e.turn.attempts[1].account = 1;
            e.rows.turns[0].account = Some("practice 2".into());
        })
    };
    assert_eq!(again(refused(0, 429)), [""; 0]);
    assert_eq!(again(refused(1, 429)), ["sent-twice"], "the same account");
    let cut = |events: usize| BackendSaw {
        writes: vec![(Duration::ZERO, answer(&events_of(events)))],
        ..request(0)
    };
    assert_eq!(again(cut(1)), ["sent-twice"], "an accepted stream that was cut");
    assert_eq!(again(cut(2)), ["sent-twice"], "an answer that had begun");
    assert_eq!(again(cut(4)), ["sent-twice"], "an answer that was whole");
    assert_eq!(again(request(0)), ["sent-twice"], "nobody knows");
    let silent = BackendSaw { over: Duration::from_secs(2), end: BackendEnd::Left, ..cut(1) };
    assert_eq!(again(silent), [""; 0]);
    assert_eq!(rules(|e| e.turn.client.sent_whole = false), ["sent-unasked", "row-invented"]);
    assert_eq!(rules(|e| e.turn.attempts[0].end = BackendEnd::Abandoned), ["orphan-socket"]);
    let gone = |over| {
        rules(|e| {
            e.turn.client.end = ClientEnd::Left;
            e.turn.attempts[0].end = BackendEnd::Left;
            e.turn.attempts[0].over = over;
        })
    };
    assert_eq!(gone(Duration::from_millis(500)), [""; 0]);
    assert_eq!(gone(Duration::from_millis(1_500)), ["not-cancelled"]);
}

/// A turn that continued a response over a kept connection, and what is damaged of it.
fn continued(damage: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    rules(|e| {
        let (thought, said) = (
            json!({"type": "reasoning", "encrypted_content": "A"}),
            json!({"role": "assistant", "content": "b"}),
        );
        let new = json!({"role": "user", "content": "c"});
        e.turn.client.input.extend([thought.clone(), said.clone(), new.clone()]);
        let known = vec![e.turn.client.input[0].clone(), thought, said];
        let events = events().into_iter().flat_map(|event| frame(TEXT, true, event.as_bytes()));
        e.turn.attempts[0] = BackendSaw {
            line: Some(Line { socket: 1, place: 1, known: Some(known) }),
            body: json!({"model": "m", "previous_response_id": "r", "input": [new]})
                .to_string()
                .into_bytes(),
            writes: vec![(Duration::from_millis(1), events.collect())],
            end: BackendEnd::Kept,
            ..request(0)
        };
        e.road = Road::Open;
        let row = &mut e.rows.turns[0];
        (row.transport, row.socket) = ("ws".into(), Some("reused".into()));
        (row.input_items, row.new_items, row.whole_reason) = (Some(4), Some(1), None);
        damage(e);
    })
}

#[test]
fn what_continues_a_response_is_held_to_the_whole_conversation() {
    let change = |e: &mut Evidence, change: fn(&mut serde_json::Value)| {
        let mut body = serde_json::from_slice(&e.turn.attempts[0].body).expect("JSON");
        change(&mut body);
        e.turn.attempts[0].body = body.to_string().into_bytes();
    };
    assert_eq!(continued(|_| ()), [""; 0]);
    assert_eq!(
        continued(|e| change(e, |body| body["input"][0]["content"] = json!("d"))),
        ["changed-request"]
    );
    let known = |e: &mut Evidence| e.turn.attempts[0].line.as_mut().expect("a socket").known.take();
    assert_eq!(continued(|e| drop(known(e))), ["changed-request"]);
    assert_eq!(continued(|e| e.rows.turns[0].new_items = Some(2)), ["road"]);
    assert_eq!(continued(|e| e.rows.turns[0].socket = Some("new".into())), ["road"]);
    assert_eq!(continued(|e| e.road = Road::Refused(403)), ["road"]);
}

#[test]
fn the_same_account_is_asked_again_only_where_it_did_nothing() {
    let again = |bytes: Vec<u8>, change: fn(&mut BackendSaw)| {
        continued(|e| {
            let mut first = e.turn.attempts[0].clone();
            first.writes = vec![(Duration::ZERO, bytes)];
            change(&mut first);
            e.turn.attempts.insert(0, first);
        })
    };
    let error = |code: &str| {
        let error = json!({"type": "error", "error": {"code": code}}).to_string();
        frame(TEXT, true, error.as_bytes())
    };
    let old = || error("websocket_connection_limit_reached");
    assert_eq!(again(old(), |_| ()), [""; 0]);
    assert_eq!(again(error("previous_response_not_found"), |_| ()), [""; 0]);
    assert_eq!(again(goodbye(1009), |_| ()), [""; 0]);
    assert_eq!(again(error("server_error"), |_| ()), ["sent-twice"]);
    assert_eq!(again(goodbye(1011), |_| ()), ["sent-twice"]);
    let begun = frame(TEXT, true, events()[0].as_bytes());
    assert_eq!(again([begun, old()].concat(), |_| ()), ["sent-twice"]);
    let whole = |first: &mut BackendSaw| {
        first.line = Some(Line { socket: 1, place: 0, known: None });
        first.body = json!({"model": "m", "input": [{"role": "user", "content": "a"}, {"type": "reasoning", "encrypted_content": "A"},
            {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]}).to_string().into_bytes();
    };
    // What continues nothing cannot have continued something unknown.
    assert_eq!(again(error("previous_response_not_found"), whole), ["sent-twice"]);
}

fn events_of(count: usize) -> Vec<String> {
    events().into_iter().take(count).collect()
}

#[test]
fn rows_that_do_not_fit_are_found() {
    let cases: &[Case<Evidence>] = &[
        ("row-lost", |e| e.rows.turns.clear()),
        ("row-doubled", |e| e.rows.turns.push(Row { id: "t2".into(), ..e.rows.turns[0].clone() })),
        ("row-invented", |e| e.rows.turns.push(Row { mark: "other".into(), ..Row::default() })),
        ("row-open", |e| e.rows.turns[0].outcome = None),
        ("row-open", |e| e.rows.turns[0].outcome = Some("lost".into())),
        ("outcome", |e| e.rows.turns[0].outcome = Some("failed".into())),
        ("moves", |e| e.rows.turns[0].moves = 1),
        ("account", |e| e.rows.turns[0].account = Some("practice 2".into())),
        ("tokens", |e| e.rows.turns[0].input_tokens = Some(0)),
        ("tokens", |e| e.rows.turns[0].output_tokens = None),
        ("emitted", |e| e.rows.emitted.clear()),
        ("emitted", |e| e.rows.emitted.push(("t1".into(), 1, "call_2".into()))),
        ("emitted", |e| e.rows.emitted[0].1 = 1),
        ("booked", |e| e.turn.client.outputs.push("call_0".into())),
        ("road", |e| e.rows.turns[0].transport = "ws".into()),
        ("road", |e| e.rows.turns[0].socket = Some("new".into())),
        ("road", |e| e.rows.turns[0].input_items = Some(2)),
        ("road", |e| e.rows.turns[0].new_items = Some(1)),
        ("road", |e| e.rows.turns[0].whole_reason = None),
        ("road", |e| e.rows.turns[0].upstream_bytes = 1),
        ("wording", |e| e.rows.turns[0].error_message = Some("Try again later.".into())),
    ];
    for (at, (rule, damage)) in cases.iter().enumerate() {
        assert!(rules(damage).contains(rule), "{rule}, case {at}: {:?}", rules(damage));
    }
}

#[test]
fn what_is_left_of_the_process_is_found() {
    let cases: &[Case<ProcessSaw>] = &[
        ("orphan-turn", |p| p.after.in_flight = 1),
        ("orphan-socket", |p| p.after.sockets += 1),
        ("orphan-socket", |p| p.kept = vec![3, 3]),
        ("orphan-socket", |p| p.left_open = 1),
        ("orphan-file", |p| p.after.files += 13),
        ("memory", |p| p.after.resident_kib += 1_001),
        ("exit", |p| p.exit = None),
        ("orphan-task", |p| p.drain = Duration::from_secs(10)),
        ("panic", |p| p.log = "thread 'x' panicked at y".into()),
    ];
    for (rule, damage) in cases {
        assert_eq!(rules(|e| damage(&mut e.process)), [*rule]);
    }
}

#[test]
fn a_client_that_gets_nothing_is_found() {
    assert_eq!(rules(|e| e.turn.client.end = ClientEnd::Hung)[0], "hung");
    assert!(rules(|e| e.turn.client.raw = b"HTTP/1.1 200".to_vec()).contains(&"no-answer"));
    let page = b"HTTP/1.1 502 No\r\ncontent-length: 6\r\n\r\n<html>".to_vec();
    assert!(rules(|e| e.turn.client.raw = page).contains(&"refusal"));
    // One document that lacks the call.
    let body = r#"{"status":"completed","output":[]}"#;
    let document = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let lacking = rules(|e| {
        e.turn.client.whole = true;
        e.turn.client.raw = document.into_bytes();
    });
    assert_eq!(lacking, ["document"]);
}
