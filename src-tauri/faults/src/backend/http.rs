//! HTTP/1.1 as the fake backend speaks it: by hand, since no library writes half an answer.
//!
//! **Invariant**: every byte that is written stands in the transcript before the next is written.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::State;
use crate::fault::{Attempt, End};
use crate::transcript::{BackendEnd, BackendSaw, now};
use crate::wire::page;

/// How long the other side may take to leave; only a program that forgot a connection takes so long.
pub(super) const BOUND: Duration = Duration::from_secs(30);

struct Request {
    method: String,
    path: String,
    account: Option<usize>,
    /// Of a handshake for a WebSocket.
    key: Option<String>,
    body: Vec<u8>,
}

pub(super) async fn serve(
    mut socket: TcpStream,
    state: Arc<State>,
    mut hush: watch::Receiver<u64>,
) {
    // Only what is said from now on concerns this connection.
    hush.mark_unchanged();
    loop {
        let request = tokio::select! {
            biased;
            request = read(&mut socket) => request,
            _ = hush.changed() => return,
        };
        let Ok(Some(request)) = request else { return };
        let Some(account) = request.account.filter(|account| *account < state.accounts) else {
            drop(socket.write_all(&page(401, "application/json", b"{}")).await);
            return;
        };
        let path = request.path.split('?').next().unwrap_or_default();
        let told = match (request.method.as_str(), path) {
            ("GET", "/backend-api/codex/models") => {
                page(200, "application/json", state.models(account).to_string().as_bytes())
            }
            ("GET", "/backend-api/wham/usage") => {
                page(200, "application/json", state.usage(account).to_string().as_bytes())
            }
            ("GET", "/backend-api/codex/responses") => {
                let key = request.key.unwrap_or_default();
                return super::socket::shake_hands(socket, state, account, &key).await;
            }
            ("POST", "/backend-api/codex/responses") => {
                match respond(&mut socket, &state, account, request.body).await {
                    true => continue,
                    false => return,
                }
            }
            _ => page(404, "application/json", b"{}"),
        };
        if socket.write_all(&told).await.is_err() {
            return;
        }
    }
}

/// Plays one answer. True: the connection can take another request.
async fn respond(socket: &mut TcpStream, state: &State, account: usize, body: Vec<u8>) -> bool {
    let begun = Instant::now();
    let Some((model, turn, attempt)) = state.next(&body, false) else {
        drop(
            socket
                .write_all(&page(400, "application/json", b"{\"detail\":\"not of any fault\"}"))
                .await,
        );
        return false;
    };
    let saw = BackendSaw {
        turn,
        account,
        line: None,
        body,
        came: now(),
        writes: Vec::new(),
        end: BackendEnd::Abandoned,
        over: Duration::ZERO,
    };
    let place = state.begin(&model, saw);
    let mut late = Vec::new();
    let end = play(socket, &attempt, &mut late, |bytes| {
        state.with(&model, place, |saw| saw.writes.push((begun.elapsed(), bytes.to_vec())));
    })
    .await;
    state.with(&model, place, |saw| {
        saw.end = end;
        saw.over = begun.elapsed();
    });
    unread(state, &late);
    end == BackendEnd::Kept
}

/// A request that came over a connection which was being closed: nobody answers it, but it was sent.
fn unread(state: &State, late: &[u8]) {
    let Some(request) = parse(late) else { return };
    let Some((account, (model, turn, _))) = request.account.zip(state.next(&request.body, false))
    else {
        return;
    };
    let saw = BackendSaw {
        turn,
        account,
        line: None,
        body: request.body,
        came: now(),
        writes: Vec::new(),
        end: BackendEnd::Closed,
        over: Duration::ZERO,
    };
    state.begin(&model, saw);
}

pub(super) async fn play(
    socket: &mut TcpStream,
    attempt: &Attempt,
    late: &mut Vec<u8>,
    mut wrote: impl FnMut(&[u8]),
) -> BackendEnd {
    let (mut from, mut to) = socket.split();
    // A wait before nothing would swallow the next request of a connection whose answer is whole.
    for (wait, bytes) in attempt.writes.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        if *wait > 0 {
            tokio::select! {
                () = left(&mut from, late) => return BackendEnd::LeftEarly,
                () = sleep(Duration::from_millis(*wait)) => {}
            }
        }
        wrote(bytes);
        let written = tokio::select! {
            biased;
            written = async { to.write_all(bytes).await?; to.flush().await } => written,
            () = left(&mut from, late) => return BackendEnd::LeftEarly,
        };
        if written.is_err() {
            return BackendEnd::LeftEarly;
        }
        // The reader gets the chance to see the writes apart.
        tokio::task::yield_now().await;
    }
    match attempt.end {
        End::Keep => BackendEnd::Kept,
        End::Reset => {
            drop(socket.set_zero_linger());
            BackendEnd::Reset
        }
        End::Close => {
            drop(to.shutdown().await);
            match timeout(BOUND, left(&mut from, late)).await {
                Ok(()) => BackendEnd::Closed,
                Err(_) => BackendEnd::Abandoned,
            }
        }
        End::Hold => match timeout(BOUND, left(&mut from, late)).await {
            Ok(()) => BackendEnd::Left,
            Err(_) => BackendEnd::Abandoned,
        },
    }
}

/// Resolves when the other side has closed; what it said until then is kept.
async fn left(from: &mut tokio::net::tcp::ReadHalf<'_>, late: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        late.extend_from_slice(&buffer[..read]);
    }
}

/// One request, or nothing where the connection ended before it.
async fn read(socket: &mut TcpStream) -> io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if let Some(request) = parse(&bytes) {
            return Ok(Some(request));
        }
        match socket.read(&mut buffer).await? {
            0 => return Ok(None),
            read => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

/// A request, once all its bytes are there.
fn parse(bytes: &[u8]) -> Option<Request> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]);
    let mut first = text.lines().next().unwrap_or_default().split(' ');
    let mut word = || first.next().unwrap_or_default().to_owned();
    let (method, path) = (word(), word());
    let header = |name: &str| {
        text.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let length: usize =
        header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let account = header("authorization")
        .and_then(|bearer| bearer.rsplit('-').next()?.parse::<usize>().ok()?.checked_sub(1));
    let body = bytes.get(head..head + length)?.to_vec();
    let key = header("sec-websocket-key");
    Some(Request { method, path, account, key, body })
}
