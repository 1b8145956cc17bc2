//! Opens the endpoint's sockets: both loopback families on one port.
//!
//! A client that says `localhost` may mean either family. A machine without IPv6 is not an error; a port that somebody else
//! holds on either family is, because a client could end up talking to a stranger.
//!
//! **Invariant**: only loopback addresses are bound, and the port is never silently another one.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpListener;

/// How often another free port is tried when any will do.
const ANY_PORT_TRIES: u32 = 8;

#[derive(Debug)]
pub enum BindError {
    InUse { port: u16, by: Option<String> },
    Other { port: u16, error: io::Error },
}

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InUse { port, by: Some(by) } => write!(
                f,
                "Port {port} is already used by {by}. Stop it, or choose another port with `--port`."
            ),
            Self::InUse { port, by: None } => write!(
                f,
                "Port {port} is already used by another program. Stop it, or choose another port with `--port`."
            ),
            Self::Other { port, error } => write!(
                f,
                "Port {port} cannot be opened on this machine ({error}). Choose another port with `--port`."
            ),
        }
    }
}

/// Binds `port` on 127.0.0.1 and, where there is IPv6, on ::1. Port 0 stands for any free port.
pub async fn bind(port: u16) -> Result<Vec<TcpListener>, BindError> {
    for _ in 0..ANY_PORT_TRIES {
        match both(port).await {
            Err(error) if port == 0 && error.kind() == io::ErrorKind::AddrInUse => {}
            Ok(listeners) => return Ok(listeners),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return Err(BindError::InUse { port, by: super::holder::of(port).await });
            }
            Err(error) => return Err(BindError::Other { port, error }),
        }
    }
    Err(BindError::InUse { port, by: None })
}

async fn both(port: u16) -> io::Result<Vec<TcpListener>> {
    let four = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
    let port = four.local_addr()?.port();
    match TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await {
        Ok(six) => Ok(vec![four, six]),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
        Err(error) => {
            tracing::info!(%error, "no IPv6 loopback; listening on 127.0.0.1 alone");
            Ok(vec![four])
        }
    }
}
