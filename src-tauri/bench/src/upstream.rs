//! The fast fixed upstream: it answers every turn as its plan says, and judges nothing.
//!
//! It speaks the two forms of the real backend: an event stream in answer to a POST, and on a WebSocket one event per text
//! frame. It runs on a thread of its own, so that it shares no queue with the load generator.
//!
//! **Invariant**: a piece of text is written in one call at the moment that it carries.

mod request;
mod socket;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use tokio::io::{AsyncWriteExt as _, BufWriter};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tokio::time::{Instant, sleep_until};

use crate::answer::{self, Event};
use crate::clock;
use crate::plan::Plan;
use request::{Incoming, Request};

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
const MODELS: &str = r#"{"models":[{"slug":"bench","display_name":"bench","context_window":272000,"supported_in_api":true}]}"#;

/// A running upstream; it ends with the process.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    /// Whether a WebSocket is offered; else 426 tells the asker to go on over HTTP.
    sockets: bool,
    running: AtomicUsize,
    most: AtomicUsize,
    /// Turns that came over a WebSocket.
    over_socket: AtomicUsize,
    /// Where turns that must run together meet, by their number.
    meetings: Mutex<HashMap<usize, Arc<Barrier>>>,
    /// Answers without a pause, rendered once.
    rendered: Mutex<HashMap<u32, Bytes>>,
}

/// A turn in flight.
struct Running<'a>(&'a State);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Upstream {
    /// Listens on any free loopback port, or on `port`.
    pub(crate) fn start(sockets: bool, port: u16) -> Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .context("the upstream has no port")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            sockets,
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            over_socket: AtomicUsize::new(0),
            meetings: Mutex::default(),
            rendered: Mutex::default(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::clone(&state);
        std::thread::Builder::new().name("upstream".into()).spawn(move || {
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("the runtime takes a socket");
                while let Ok((stream, _)) = listener.accept().await {
                    let state = Arc::clone(&shared);
                    // A client that goes away is part of every measurement, so nothing is said about it.
                    tokio::spawn(async move { drop(serve(&state, stream).await) });
                }
            });
        })?;
        Ok(Self { address, state })
    }

    /// The base URL under which a proxy finds it.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/backend-api/codex", self.address)
    }

    /// Turns in flight now.
    pub(crate) fn running(&self) -> usize {
        self.state.running.load(Ordering::Acquire)
    }

    /// The most turns that were in flight at once since this was last asked.
    pub(crate) fn take_most(&self) -> usize {
        self.state.most.swap(0, Ordering::AcqRel)
    }

    /// Turns that came over a WebSocket so far.
    pub(crate) fn over_socket(&self) -> usize {
        self.state.over_socket.load(Ordering::Acquire)
    }
}

impl State {
    /// Counts a turn, and waits for the others that it must run with.
    async fn begin(&self, plan: Plan) -> Running<'_> {
        let now = self.running.fetch_add(1, Ordering::AcqRel) + 1;
        self.most.fetch_max(now, Ordering::AcqRel);
        let running = Running(self);
        if plan.together > 1 {
            let meeting = {
                let mut meetings = self.meetings.lock().unwrap_or_else(PoisonError::into_inner);
                let new = || Arc::new(Barrier::new(plan.together));
                Arc::clone(meetings.entry(plan.together).or_insert_with(new))
            };
            meeting.wait().await;
        }
        running
    }

    /// A whole answer with its head, which only depends on its length.
    fn rendered(&self, deltas: u32) -> Bytes {
        let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        let render = || {
            let mut text = String::from(STREAM);
            let pieces = (0..deltas).map(|number| answer::delta(number, 0));
            let all = answer::opening().into_iter().chain(pieces).chain(answer::closing(deltas));
            all.for_each(|event| text.push_str(&chunk(&event.frame())));
            text.push_str("0\r\n\r\n");
            Bytes::from(text)
        };
        rendered.entry(deltas).or_insert_with(render).clone()
    }
}

async fn serve(state: &State, stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut incoming = Incoming::new(stream);
    while let Some(request) = incoming.next().await? {
        match request {
            Request::Turn(body) => stream_turn(state, &mut incoming.stream, &body).await?,
            Request::Models => {
                incoming.say("200 OK", "etag: \"bench\"\r\n", MODELS).await?;
            }
            Request::Upgrade(key) if state.sockets => {
                return socket::serve(state, incoming, &key).await;
            }
            Request::Upgrade(_) => incoming.say("426 Upgrade Required", "", "{}").await?,
            Request::Other => incoming.say("404 Not Found", "", "{}").await?,
        }
    }
    Ok(())
}

async fn stream_turn(state: &State, stream: &mut TcpStream, body: &[u8]) -> Result<()> {
    let plan = Plan::find(body);
    let _running = state.begin(plan).await;
    if plan.gap.is_zero() {
        stream.write_all(&state.rendered(plan.deltas)).await?;
        return Ok(());
    }
    let mut stream = BufWriter::new(stream);
    stream.write_all(STREAM.as_bytes()).await?;
    for event in answer::opening() {
        stream.write_all(chunk(&event.frame()).as_bytes()).await?;
    }
    stream.flush().await?;
    let mut pace = Pace::of(plan.gap);
    for number in 0..plan.deltas {
        pace.next().await;
        stream.write_all(chunk(&piece(number).frame()).as_bytes()).await?;
        stream.flush().await?;
    }
    for event in answer::closing(plan.deltas) {
        stream.write_all(chunk(&event.frame()).as_bytes()).await?;
    }
    stream.write_all(b"0\r\n\r\n").await?;
    stream.flush().await?;
    Ok(())
}

/// One event, one chunk: a backend that flushes each event sends it so.
fn chunk(frame: &str) -> String {
    format!("{:x}\r\n{frame}\r\n", frame.len())
}

fn piece(number: u32) -> Event {
    answer::delta(number, clock::now())
}

/// Even steps that do not add up the time that each one takes.
struct Pace {
    next: Instant,
    gap: Duration,
}

impl Pace {
    fn of(gap: Duration) -> Self {
        Self { next: Instant::now(), gap }
    }

    async fn next(&mut self) {
        self.next += self.gap;
        sleep_until(self.next).await;
    }
}
