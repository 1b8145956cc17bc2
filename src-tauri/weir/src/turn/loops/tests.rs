//! The loops that were seen, and what looks like one and is none.

use http::HeaderMap;
use weir_core::dialect::refusal::looks_retryable;

use super::*;

fn caller(conversation: &str, named: bool) -> Caller {
    Caller {
        client: "c".into(),
        codex: false,
        conversation: conversation.into(),
        named,
        parent: None,
        group: None,
        headers: HeaderMap::new(),
    }
}

fn body(text: &str) -> Body {
    Body::parse(text.as_bytes()).expect("a request")
}

const ONE: &str = r#"{"model":"m","input":"one"}"#;

/// A client on one request: sends, is let through or not, and its turn ends.
struct Client {
    loops: Loops,
    caller: Caller,
    now: Instant,
}

impl Client {
    fn new(named: bool) -> Self {
        let (loops, now) = (Loops::new(Bounds::default()), Instant::now());
        Self { loops, caller: caller("a", named), now }
    }

    fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    fn begin(&self, text: &str) -> Result<Pass, Refusal> {
        self.loops.begin(&self.caller, &body(text), self.now)
    }

    /// Sends, works for ten seconds, ends; returns whether it was let through.
    fn send(&mut self, text: &str, ended: Ended) -> bool {
        let Ok(pass) = self.begin(text) else { return false };
        self.wait(10_000);
        self.loops.end(pass, ended, self.now);
        true
    }

    /// How many of twelve are let through that follow each other by `gap_ms`.
    fn of_twelve(&mut self, gap_ms: u64, ended: Ended) -> usize {
        let sent = (0..12).filter(|_| {
            self.wait(gap_ms);
            self.send(ONE, ended)
        });
        sent.count()
    }
}

#[test]
fn a_row_of_identical_requests_is_stopped_after_a_few() {
    for (named, gap_ms, ended, through) in [
        (true, 0, Ended::Badly, 6),
        (false, 0, Ended::Badly, 6),
        // The pace of the loop that was measured.
        (true, 1_300, Ended::Badly, 6),
        (true, 1_999, Ended::Badly, 6),
        // A person, or a client that backs off.
        (true, 2_000, Ended::Badly, 12),
        // An agent that was answered has something new to say; a program may want many answers.
        (true, 100, Ended::Well, 6),
        (false, 100, Ended::Well, 12),
        // Nothing was spent, or the client was told when to come back.
        (true, 0, Ended::Free, 12),
        (false, 0, Ended::Free, 12),
    ] {
        let got = Client::new(named).of_twelve(gap_ms, ended);
        assert_eq!(got, through, "{named} {gap_ms} {ended:?}");
    }
}

#[test]
fn bounded_retries_of_the_known_clients_come_to_their_own_end() {
    // Codex: five retries of a stream. OpenCode: five after growing pauses.
    for pauses in [[180, 360, 720, 1_440, 2_880], [2_000, 4_000, 8_000, 16_000, 32_000]] {
        let mut client = Client::new(true);
        assert!(client.send(ONE, Ended::Badly));
        for pause in pauses {
            client.wait(pause);
            assert!(client.send(ONE, Ended::Badly), "after {pause} ms");
        }
    }
}

#[test]
fn a_stopped_loop_stays_stopped_until_it_pauses() {
    let mut client = Client::new(true);
    client.of_twelve(0, Ended::Badly);
    for _ in 0..50 {
        client.wait(1_500);
        assert!(client.begin(ONE).is_err());
    }
    client.wait(2_000);
    assert!(client.send(ONE, Ended::Badly), "a person presses the key again");
    assert!(client.send(ONE, Ended::Badly), "and starts from the beginning");
}

#[test]
fn another_request_is_another_row() {
    let mut client = Client::new(true);
    assert_eq!(client.of_twelve(0, Ended::Badly), 6);
    for text in [
        r#"{"model":"n","input":"one"}"#,
        r#"{"model":"m","input":"two"}"#,
        r#"{"model":"m","input":"one","tools":[{"type":"function","name":"f"}]}"#,
        r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"one"}]},{"type":"function_call_output","call_id":"c","output":"o"}]}"#,
    ] {
        assert!(client.begin(text).is_ok(), "{text}");
    }
    for text in [
        r#"{"model":"m","input":"one","metadata":{"run":"2"},"client_metadata":{"turn":"9"}}"#,
        // The piece of an answer that broke off is kept, and the same is asked again.
        r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"one"}]},{"role":"assistant","content":[{"type":"output_text","text":"Hal"}]}]}"#,
    ] {
        assert!(client.begin(text).is_err(), "{text}");
    }
    let other = caller("b", true);
    assert!(client.loops.begin(&other, &body(ONE), client.now).is_ok());
}

#[test]
fn an_answer_that_goes_on_is_no_loop() {
    // The model speaks in several answers, and nobody says anything in between.
    let mut client = Client::new(true);
    let mut said = String::new();
    for n in 0..20 {
        let text = format!(r#"{{"model":"m","input":[{{"role":"user","content":"go"}}{said}]}}"#);
        assert!(client.send(&text, Ended::Well), "{n}");
        said.push_str(&format!(r#",{{"role":"assistant","content":"part {n}"}}"#));
    }
}

#[test]
fn parallel_turns_with_one_prompt_are_not_one_row() {
    let mut client = Client::new(false);
    // Twenty at once, and each of them tries twice more.
    for _ in 0..3 {
        let passes: Vec<_> = (0..20)
            .map(|n| client.begin(ONE).unwrap_or_else(|_| panic!("{n} was stopped")))
            .collect();
        client.wait(500);
        let now = client.now;
        passes.into_iter().for_each(|pass| client.loops.end(pass, Ended::Badly, now));
    }
}

#[test]
fn what_is_remembered_has_a_bound() {
    let mut client = Client::new(true);
    for n in 0..2 * MOST {
        client.caller = caller(&n.to_string(), true);
        let pass = client.begin(ONE).expect("the first of its row");
        client.loops.end(pass, Ended::Badly, client.now);
    }
    assert_eq!(client.loops.ends.lock().expect("no panic").len(), MOST);
    client.wait(2_000);
    client.caller = caller("new", true);
    client.send(ONE, Ended::Badly);
    assert_eq!(client.loops.ends.lock().expect("no panic").len(), 1, "old ends make room");
}

#[test]
fn the_sentence_makes_no_client_try_again() {
    for times in (0..2_000).chain([429, 500, 502, 503, 504, 524]) {
        let refusal = stopped(times);
        assert_eq!((refusal.status, refusal.code), (400, "request_loop"));
        assert!(!looks_retryable(&refusal.envelope().to_string()), "{}", refusal.message);
    }
}
