//! An event stream as bytes, in every way that the format allows, inside an HTTP/1.1 answer.
//!
//! **Invariant**: pure; whatever the form, a reader of event streams finds the same events.

use crate::chance::Chance;

/// How a stream is written down.
#[derive(Clone, Debug)]
pub struct Form {
    pub ending: &'static str,
    pub names: bool,
    pub space: bool,
    pub comments: bool,
    /// `id:` and `retry:` lines.
    pub extras: bool,
    pub mark: bool,
    pub chunked: bool,
    /// The last chunk is not written, so that the other side must not take the connection for free.
    pub open: bool,
}

impl Form {
    pub fn any(chance: &mut Chance) -> Self {
        let usual = chance.one_in(2);
        Self {
            ending: if usual { "\n" } else { *chance.pick::<&str>(&["\n", "\r\n", "\r"]) },
            names: usual || !chance.one_in(3),
            space: usual || !chance.one_in(3),
            comments: !usual && chance.one_in(2),
            extras: !usual && chance.one_in(3),
            mark: !usual && chance.one_in(4),
            chunked: !chance.one_in(3),
            open: false,
        }
    }

    pub fn stream(&self, events: &[String], chance: &mut Chance) -> Vec<u8> {
        let (end, gap) = (self.ending, if self.space { " " } else { "" });
        let mut text = String::new();
        if self.mark {
            text.push('\u{feff}');
        }
        for data in events {
            if self.comments && chance.one_in(3) {
                text.push_str(&format!(": keep-alive{end}{end}"));
            }
            if self.extras && chance.one_in(3) {
                text.push_str(&format!("id: {}{end}retry: 100{end}", chance.below(1000)));
            }
            if let Some(kind) = kind(data).filter(|_| self.names) {
                text.push_str(&format!("event:{gap}{kind}{end}"));
            }
            text.push_str(&format!("data:{gap}{data}{end}{end}"));
        }
        text.into_bytes()
    }

    /// Head and body of a good answer.
    pub fn answer(&self, body: &[u8], chance: &mut Chance) -> Vec<u8> {
        let framing = if self.chunked { "transfer-encoding: chunked" } else { "connection: close" };
        let mut all = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nx-request-id: fault\r\n{framing}\r\n\r\n").into_bytes();
        if self.chunked {
            all.extend(chunks(body, chance));
            if !self.open {
                all.extend_from_slice(b"0\r\n\r\n");
            }
        } else {
            all.extend_from_slice(body);
        }
        all
    }
}

/// An answer that is no stream.
pub fn page(status: u16, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut all = format!(
        "HTTP/1.1 {status} Word\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
    )
    .into_bytes();
    all.extend_from_slice(body);
    all
}

fn chunks(body: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut all = Vec::with_capacity(body.len() + 64);
    let mut rest = body;
    let most = *chance.pick(&[40, 700, 20_000]);
    while !rest.is_empty() {
        let (now, later) = rest.split_at(chance.within(1, most).min(rest.len()));
        all.extend(format!("{:x}\r\n", now.len()).into_bytes());
        all.extend_from_slice(now);
        all.extend_from_slice(b"\r\n");
        rest = later;
    }
    all
}

fn kind(data: &str) -> Option<String> {
    serde_json::from_str::<serde_json::Value>(data).ok()?["type"].as_str().map(str::to_owned)
}
