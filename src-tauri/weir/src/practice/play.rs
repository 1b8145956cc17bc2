//! Delivers the events of a response: in time, held by gates, cut where the script says so.
//!
//! The delivery is a task that writes into a channel of one; the connection reads from it. A client that goes away
//! closes the channel and ends the task at its next breath, wherever it waits.
//!
//! **Invariant**: a response is recorded as ended before a client can see that it ended.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::record::Entry;
use super::reply::{Point, Reply};
use super::stream::{Piece, encode};

/// Named gates that a test opens.
#[derive(Debug, Default)]
pub(super) struct Gates(watch::Sender<HashSet<String>>);

impl Gates {
    pub(super) fn open(&self, name: &str) {
        self.0.send_modify(|open| {
            open.insert(name.to_owned());
        });
    }

    async fn pass(&self, name: &str) {
        let mut open = self.0.subscribe();
        let _ = open.wait_for(|open| open.contains(name)).await;
    }
}

/// How a reply is delivered.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) reply: Reply,
    pub(super) pace: f64,
    pub(super) gates: Arc<Gates>,
    pub(super) stop: CancellationToken,
}

/// What a connection is given to do.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    /// Bytes of an event stream, or the text of one frame.
    Bytes(Bytes),
    /// The connection breaks; a socket may say goodbye with a code.
    Broken(Option<u16>),
    /// A socket reads nothing more.
    Deaf,
}

impl Delivery {
    /// Waits for the reply's gate and siblings if this is where they hold.
    pub(super) async fn hold(&self, here: Point, entry: &Entry) {
        if self.reply.at != here {
            return;
        }
        if let Some(wanted) = self.reply.hold_until_in_flight {
            entry.siblings(wanted).await;
        }
        if let Some(gate) = &self.reply.gate {
            self.gates.pass(gate).await;
        }
    }

    /// Starts the delivery as an event stream.
    pub(super) fn start(self, pieces: Vec<Piece>, entry: Entry) -> mpsc::Receiver<Part> {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut writer = Writer::new(&sender, entry, Form::Stream);
            tokio::select! {
                biased;
                // The entry is dropped with the writer, and so recorded as cancelled.
                () = sender.closed() => {}
                () = self.stop.cancelled() => writer.break_off(None).await,
                () = self.play(pieces, &mut writer) => {}
            }
        });
        receiver
    }

    pub(super) async fn play(&self, pieces: Vec<Piece>, writer: &mut Writer<'_>) {
        let reply = &self.reply;
        let last = pieces.iter().rposition(|piece| matches!(piece, Piece::Event(_)));
        if reply.cut_after_event == Some(0) || reply.cut_after_bytes == Some(0) {
            return writer.break_off(reply.ws_close).await;
        }
        for (at, piece) in pieces.iter().enumerate() {
            let event = match piece {
                Piece::Wait(ms) => {
                    self.wait(*ms).await;
                    continue;
                }
                Piece::At(point) => {
                    if let Some(entry) = &writer.entry {
                        self.hold(*point, entry).await;
                    }
                    continue;
                }
                Piece::Aside(event) => {
                    writer.say(writer.form.bytes(event, reply.crlf), None).await;
                    continue;
                }
                Piece::Event(event) => event,
            };
            let mut bytes = writer.form.bytes(event, reply.crlf);
            let room = reply.cut_after_bytes.map(|limit| limit - writer.sent);
            let cut = room.is_some_and(|room| room <= bytes.len());
            match writer.form {
                Form::Stream => bytes.truncate(room.unwrap_or(usize::MAX)),
                // A frame is said whole or not at all.
                Form::Frames if cut => bytes.clear(),
                Form::Frames => {}
            }
            if Some(at) == last && !cut {
                let outcome = if reply.no_terminal { "cut" } else { "completed" };
                writer.end(outcome);
            }
            writer.send(bytes, reply.chunk_bytes).await;
            if cut || reply.cut_after_event == Some(writer.events) {
                return writer.break_off(reply.ws_close).await;
            }
            if reply.stall_after_event == Some(writer.events) {
                return std::future::pending().await;
            }
        }
        if writer.form == Form::Frames {
            self.leave(writer).await;
        }
    }

    /// What happens to a socket once everything was said.
    async fn leave(&self, writer: &mut Writer<'_>) {
        let close = self.reply.ws_close.or(self.reply.no_terminal.then_some(1000));
        if close.is_some() {
            writer.break_off(close).await;
        } else if self.reply.ws_deaf {
            writer.put(Part::Deaf).await;
        }
    }

    async fn wait(&self, ms: u64) {
        let wait = Duration::from_millis(ms).mul_f64(self.pace);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }
}

/// What an event looks like on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An event of an event stream.
    Stream,
    /// The text of one WebSocket frame.
    Frames,
}

impl Form {
    fn bytes(self, event: &serde_json::Value, crlf: bool) -> Bytes {
        Bytes::from(match self {
            Self::Stream => encode(event, crlf),
            Self::Frames => event.to_string(),
        })
    }
}

/// Where a delivery goes.
pub(super) struct Writer<'a> {
    sender: &'a mpsc::Sender<Part>,
    form: Form,
    /// Until the response ended.
    pub(super) entry: Option<Entry>,
    /// Done at the moment at which the response completes.
    pub(super) completing: Option<Box<dyn FnOnce() + Send + Sync>>,
    sent: usize,
    events: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(sender: &'a mpsc::Sender<Part>, entry: Entry, form: Form) -> Self {
        Self { sender, form, entry: Some(entry), completing: None, sent: 0, events: 0 }
    }

    async fn send(&mut self, bytes: Bytes, size: Option<usize>) {
        self.sent += bytes.len();
        self.events += 1;
        self.say(bytes, size.filter(|_| self.form == Form::Stream)).await;
    }

    pub(super) async fn say(&self, bytes: Bytes, size: Option<usize>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let chunk = rest.split_to(size.unwrap_or(rest.len()).min(rest.len()));
            self.put(Part::Bytes(chunk)).await;
        }
    }

    async fn put(&self, part: Part) {
        // A closed channel is noticed by the task itself.
        let _ = self.sender.send(part).await;
    }

    pub(super) fn end(&mut self, outcome: &str) {
        if let Some(completing) = self.completing.take().filter(|_| outcome == "completed") {
            completing();
        }
        if let Some(entry) = self.entry.take() {
            entry.end(outcome);
        }
    }

    pub(super) async fn break_off(&mut self, close: Option<u16>) {
        self.end("cut");
        self.put(Part::Broken(close)).await;
    }
}
