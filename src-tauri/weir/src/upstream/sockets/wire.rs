//! One WebSocket to a backend.
//!
//! The handshake goes through the same HTTP client as every other request, so a proxy, a certificate or a name is found the
//! same way for both; only what follows it is framed by the WebSocket library.
//!
//! **Invariant**: no extension is offered and none is taken; a message is bounded as an event of a stream is.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::accounts::secret::Secret;
use crate::upstream::arrival::Arrival;
use crate::upstream::stream::{Broken, EVENT_LIMIT, error_text};

/// How long a handshake may take before the turn goes another way.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);
/// What is read at a time, in bytes. Events are small, and there are many connections.
const READ_BUFFER: usize = 16 * 1024;

trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// A connection's bytes, each noted as it comes.
struct Noted {
    bytes: Box<dyn Bytes>,
    arrival: Arc<Arrival>,
}

impl AsyncRead for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.bytes).poll_read(cx, buffer);
        self.arrival.piece(buffer.filled().len() - before);
        read
    }
}

impl AsyncWrite for Noted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_shutdown(cx)
    }
}

/// An open connection and what must not have changed when it is used again.
pub(in crate::upstream) struct Wire {
    stream: WebSocketStream<Noted>,
    arrival: Arc<Arrival>,
    born: Instant,
    /// The login that opened it.
    token: Secret,
    peer: Option<SocketAddr>,
    /// This machine's address on the way to the peer.
    from: Option<IpAddr>,
}

/// Why there is no connection.
#[derive(Debug)]
pub(in crate::upstream) enum Refused {
    /// The backend answered with this status.
    Status(u16),
    /// It could not be asked, or what it answered is no handshake; the cause is for the log.
    Failed(String),
}

/// What comes out of a connection.
#[derive(Debug)]
pub(in crate::upstream) enum Heard {
    Text(Utf8Bytes),
    /// The other side said goodbye, with its code.
    Closed(Option<u16>),
    Broken(Broken),
}

impl Wire {
    /// Shakes hands. The headers that the backend answered with come with the connection.
    pub(in crate::upstream) async fn dial(
        client: &reqwest::Client,
        url: &str,
        headers: HeaderMap,
        token: &str,
    ) -> Result<(Self, HeaderMap), Refused> {
        let dialling = Self::shake_hands(client, url, headers, token);
        tokio::time::timeout(HANDSHAKE, dialling)
            .await
            .unwrap_or_else(|_| Err(Refused::Failed("nobody answered in time".into())))
    }

    async fn shake_hands(
        client: &reqwest::Client,
        url: &str,
        mut headers: HeaderMap,
        token: &str,
    ) -> Result<(Self, HeaderMap), Refused> {
        let failed = |error: reqwest::Error| Refused::Failed(error_text(&error.without_url()));
        let key = generate_key();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_str(&key).expect("base64 is a header"));
        let answer = client.get(url).headers(headers).send().await.map_err(failed)?;
        if answer.status() != http::StatusCode::SWITCHING_PROTOCOLS {
            return Err(Refused::Status(answer.status().as_u16()));
        }
        let told = answer.headers().clone();
        let accepted = told.get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
        if accepted != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
            return Err(Refused::Failed("the answer is to another handshake".into()));
        }
        if told.contains_key(SEC_WEBSOCKET_EXTENSIONS) {
            return Err(Refused::Failed("an extension was chosen that was not offered".into()));
        }
        let peer = answer.remote_addr();
        let bytes = answer.upgrade().await.map_err(failed)?;
        Ok((Self::of(Box::new(bytes), token, peer).await, told))
    }

    async fn of(bytes: Box<dyn Bytes>, token: &str, peer: Option<SocketAddr>) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0)
            .max_message_size(Some(EVENT_LIMIT))
            .max_frame_size(Some(EVENT_LIMIT));
        let arrival = Arc::new(Arrival::default());
        let bytes = Noted { bytes, arrival: Arc::clone(&arrival) };
        Self {
            stream: WebSocketStream::from_raw_socket(bytes, Role::Client, Some(config)).await,
            arrival,
            born: Instant::now(),
            token: Secret::new(token),
            peer,
            from: peer.and_then(way_to),
        }
    }

    pub(super) fn age(&self) -> Duration {
        self.born.elapsed()
    }

    pub(super) fn is_of(&self, token: &str) -> bool {
        self.token.expose() == token
    }

    /// Whether packets to the peer would now leave from another address. Asking sends nothing.
    pub(super) fn network_changed(&self) -> bool {
        self.peer.is_some_and(|peer| way_to(peer) != self.from)
    }

    /// Hands the whole text to the system. An error means that the other side cannot have it whole.
    pub(in crate::upstream) async fn send(&mut self, text: Utf8Bytes) -> Result<(), String> {
        self.stream.send(Message::Text(text)).await.map_err(|error| error_text(&error))
    }

    /// The next message. May be dropped while it waits.
    pub(in crate::upstream) async fn hear(&mut self) -> Heard {
        loop {
            let message = self.stream.next().await;
            self.arrival.whole();
            return match message {
                Some(Ok(Message::Text(text))) => Heard::Text(text),
                Some(Ok(Message::Close(goodbye))) => {
                    Heard::Closed(goodbye.map(|goodbye| goodbye.code.into()))
                }
                Some(Ok(Message::Binary(_))) => {
                    Heard::Broken(Broken::Lost("a message that is no text".into()))
                }
                // The library answers pings by itself while it reads.
                Some(Ok(_)) => continue,
                Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => {
                    Heard::Broken(Broken::TooLong)
                }
                Some(Err(error)) => Heard::Broken(Broken::Lost(error_text(&error))),
                None => Heard::Closed(None),
            };
        }
    }

    /// What comes of the next message.
    pub(in crate::upstream) fn arrival(&self) -> Arc<Arrival> {
        Arc::clone(&self.arrival)
    }

    /// Reads one message that nobody waits for. False: the connection is over.
    pub(super) async fn listens(&mut self) -> bool {
        matches!(self.hear().await, Heard::Text(_))
    }

    /// Whether the connection has ended already; messages that came late are dropped. Does not wait.
    pub(super) fn is_over(&mut self) -> bool {
        loop {
            match self.hear().now_or_never() {
                None => return false,
                Some(Heard::Text(_)) => {}
                Some(_) => return true,
            }
        }
    }

    /// Pings, and says whether anything came back in time.
    pub(super) async fn answers_within(&mut self, long: Duration) -> bool {
        let asked = async {
            self.stream.send(Message::Ping("weir".into())).await.ok()?;
            loop {
                match self.stream.next().await?.ok()? {
                    Message::Pong(_) => return Some(()),
                    Message::Close(_) => return None,
                    _ => {}
                }
            }
        };
        tokio::time::timeout(long, asked).await.ok().flatten().is_some()
    }

    pub(in crate::upstream) async fn close(mut self) {
        drop(tokio::time::timeout(GOODBYE, self.stream.close(None)).await);
    }
}

impl std::fmt::Debug for Wire {
    /// Prints neither the token nor the address.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wire({} s old)", self.age().as_secs())
    }
}

/// The address from which packets to `peer` would leave.
fn way_to(peer: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(peer).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashMap;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::net::TcpListener;

    use super::*;

    pub(in crate::upstream::sockets) const TOKEN: &str = "a token";

    /// A connection and its other end.
    pub(in crate::upstream::sockets) async fn connected() -> (Wire, WebSocketStream<DuplexStream>) {
        let (ours, theirs) = tokio::io::duplex(256 * 1024);
        let theirs = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
        (Wire::of(Box::new(ours), TOKEN, None).await, theirs)
    }

    #[tokio::test]
    async fn what_comes_out_is_told_apart() {
        let (mut ours, mut theirs) = connected().await;
        theirs.send(Message::Ping("p".into())).await.expect("sent");
        theirs.send(Message::Text("one".into())).await.expect("sent");
        assert!(matches!(ours.hear().await, Heard::Text(text) if text == "one"));
        theirs.send(Message::Binary(vec![1].into())).await.expect("sent");
        assert!(matches!(ours.hear().await, Heard::Broken(Broken::Lost(_))));
        let (mut ours, theirs) = connected().await;
        drop(theirs);
        assert!(matches!(ours.hear().await, Heard::Closed(None) | Heard::Broken(_)));
    }

    #[tokio::test]
    async fn a_long_message_on_its_way_is_seen_arriving() {
        let (mut ours, mut theirs) = connected().await;
        let arrival = ours.arrival();
        let mut begun = vec![0x81, 127];
        begun.extend(100_000_u64.to_be_bytes());
        begun.extend([b'x'; 40_000]);
        theirs.get_mut().write_all(&begun).await.expect("sent");
        assert!(ours.hear().now_or_never().is_none());
        assert!(arrival.last().is_some());
        theirs.get_mut().write_all(&[b'x'; 60_000]).await.expect("sent");
        assert!(matches!(ours.hear().await, Heard::Text(text) if text.len() == 100_000));
        assert_eq!(arrival.last(), None);
    }

    #[tokio::test]
    async fn a_message_above_the_limit_is_not_taken() {
        let (mut ours, mut theirs) = connected().await;
        let sending = tokio::spawn(async move {
            let most = "x".repeat(EVENT_LIMIT);
            theirs.send(Message::Text(most.clone().into())).await.expect("taken");
            let _ = theirs.send(Message::Text((most + "x").into())).await;
        });
        assert!(matches!(ours.hear().await, Heard::Text(text) if text.len() == EVENT_LIMIT));
        assert!(matches!(ours.hear().await, Heard::Broken(Broken::TooLong)));
        drop(ours);
        sending.await.expect("no panic");
    }

    const YES: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {}\r\n";

    /// Shakes hands with a server that answers so; `{}` stands for the right answer to the key.
    async fn dialled(answer: String) -> Result<(), Refused> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(stream.read_u8().await.expect("a byte"));
            }
            let asked = String::from_utf8(asked).expect("text");
            let values: HashMap<_, _> = asked
                .lines()
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .collect();
            assert!(!values.contains_key("sec-websocket-extensions"), "nothing is offered");
            let right = derive_accept_key(values["sec-websocket-key"].as_bytes());
            let answer = answer.replace("{}", &right);
            stream.write_all(answer.as_bytes()).await.expect("sent");
            stream
        });
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let dialled = Wire::dial(&client, &url, HeaderMap::new(), TOKEN).await.map(drop);
        drop(serving.await.expect("no panic"));
        dialled
    }

    #[tokio::test]
    async fn only_the_answer_to_this_handshake_opens_a_connection() {
        assert!(dialled(format!("{YES}\r\n")).await.is_ok());
        let another = YES.replace("{}", "bm90IHRoZSByaWdodCBvbmU=");
        assert!(matches!(dialled(format!("{another}\r\n")).await, Err(Refused::Failed(_))));
        let refused = "HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n";
        assert!(matches!(dialled(refused.to_owned()).await, Err(Refused::Status(426))));
    }

    #[tokio::test]
    async fn compression_that_was_not_offered_is_no_connection() {
        let packed = format!("{YES}sec-websocket-extensions: permessage-deflate\r\n\r\n");
        let refused = dialled(packed).await;
        assert!(matches!(refused, Err(Refused::Failed(cause)) if cause.contains("extension")));
    }

    #[test]
    fn the_way_to_this_machine_is_known() {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        assert_eq!(way_to(here), Some(Ipv4Addr::LOCALHOST.into()));
    }
}
