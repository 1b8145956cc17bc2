//! One request on a socket and its response: a task that writes frames until the response ended.
//!
//! The socket goes on reading meanwhile, so a gate, a silent reply or a slow model never keeps it from answering a ping or
//! from noticing that its client left.
//!
//! **Invariant**: what the socket holds changes before a client can see that the response completed.

use std::sync::Arc;

use tokio::sync::mpsc;
use weir_core::dialect::wire;

use super::accounts::Account;
use super::cache::Place;
use super::chain::{Chain, Link};
use super::frames::{self, Frame};
use super::play::{Form, Part, Writer};
use super::record::Entry;
use super::reply::Reply;
use super::request::Ask;
use super::script::Transport;
use super::server::Practice;
use super::turn::{Answer, Turn};

pub(super) struct Exchange {
    pub(super) practice: Arc<Practice>,
    pub(super) account: Arc<Account>,
    pub(super) socket: u64,
    pub(super) conversation: Option<String>,
    /// What the handshake said, for frames that say nothing.
    pub(super) turn_state: Option<String>,
    pub(super) frame: Frame,
    pub(super) chain: Chain,
}

impl Exchange {
    /// Starts it; dropping the receiver ends it.
    pub(super) fn start(self, entry: Entry) -> mpsc::Receiver<Part> {
        let (sender, receiver) = mpsc::channel(1);
        let stop = self.practice.stop.clone();
        tokio::spawn(async move {
            let mut writer = Writer::new(&sender, entry, Form::Frames);
            tokio::select! {
                biased;
                // The entry is dropped with the writer, and so recorded as cancelled.
                () = sender.closed() => {}
                () = stop.cancelled() => writer.end("cut"),
                () = self.run(&mut writer) => {}
            }
        });
        receiver
    }

    async fn run(&self, writer: &mut Writer<'_>) {
        let turn = self.turn();
        let Some(entry) = &writer.entry else { return };
        let (delivery, answer) = match turn.admit(entry) {
            Err(refused) => (turn.delivery(Reply::default()), Answer::Refused(refused)),
            Ok(()) if !self.frame.generate => {
                (turn.delivery(Reply::default()), Answer::Stream(turn.warm_up(entry)))
            }
            Ok(()) => {
                let delivery = turn.delivery(turn.reply(entry));
                let answer = turn.decide(&delivery, entry).await;
                (delivery, answer)
            }
        };
        match answer {
            Answer::Stream(pieces) => {
                entry.status(200);
                if let Some(link) = Link::of(self.frame.input(), &pieces) {
                    let chain = self.chain.clone();
                    writer.completing = Some(Box::new(move || chain.keep(link)));
                }
                delivery.play(pieces, writer).await;
            }
            Answer::Refused(refused) => {
                let Some(entry) = writer.entry.take() else { return };
                writer.say(frames::refuse(entry, &refused), None).await;
            }
            Answer::Scripted(refused, _, text) => {
                let Some(entry) = writer.entry.take() else { return };
                frames::refuse(entry, &refused);
                writer.say(frames::scripted(&refused, text), None).await;
            }
        }
    }

    fn turn(&self) -> Turn<'_> {
        let ask = Ask { body: &self.frame.body, marker: self.frame.marker.as_deref() };
        Turn {
            practice: &self.practice,
            account: &self.account,
            ask,
            bytes: self.frame.body.to_string().len(),
            conversation: self.conversation.as_deref(),
            place: Some(Place::Socket(self.socket)),
            turn_state: ask.metadata(wire::TURN_STATE_HEADER).or(self.turn_state.as_deref()),
            transport: Transport::Ws,
            held: self.frame.held,
            previous: self.frame.previous.as_deref(),
        }
    }
}
