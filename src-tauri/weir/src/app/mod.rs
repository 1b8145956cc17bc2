//! Builds everything, starts it, drains it.
//!
//! [`App::start`] opens the data folder, the log, the store and the sockets, in that order, so that a second program on the same folder or port
//! ends before it has changed anything. [`App::drain`] lets running turns end within a bound and frees the port.
//!
//! **Invariant**: construction has no effect on a folder or a port that somebody else uses.

pub mod folder;
pub mod log;
pub mod remote;
pub mod system;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accounts::account::Account;
use crate::accounts::pool::Pool;
use crate::accounts::secret::Secret;
use crate::api::{self, Api};
use crate::endpoint::listen::{self, BindError};
use crate::endpoint::sessions::Sessions;
use crate::endpoint::{self, Endpoint};
use crate::practice;
use crate::store::{OpenError, Store, StoreError};
use crate::turn::live::{Live, LiveTurn};
use crate::turn::{Shared, Timers, catalogs, clock};
use crate::upstream::open::Upstream;
use folder::{Folder, FolderError, Running};

/// How long running turns may go on after the program was asked to end.
const DRAIN: Duration = Duration::from_secs(10);

/// How many turns of earlier runs are shown.
const REMEMBERED: usize = 50;

#[derive(Debug)]
pub struct Config {
    /// The data folder; the platform's own where none is given.
    pub data: Option<PathBuf>,
    /// 0 stands for any free port.
    pub port: u16,
    /// Serve practice accounts by the embedded backend.
    pub practice: Option<practice::Options>,
    pub timers: Timers,
    /// Log to the data folder and to stderr; off where the process already logs.
    pub log: bool,
}

/// Why the program cannot start; each prints as a sentence with one thing to do.
#[derive(Debug)]
pub enum StartError {
    Folder(FolderError),
    /// Another program works on the folder.
    InUse {
        folder: PathBuf,
        by: Option<Running>,
    },
    Store(OpenError),
    Settings(StoreError),
    Port(BindError),
    Practice(std::io::Error),
    Network(reqwest::Error),
}

impl StartError {
    /// Another program stands in the way, which may end.
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::InUse { .. } | Self::Port(BindError::InUse { .. }))
    }
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(error) => error.fmt(f),
            Self::InUse { folder, by: Some(by) } => write!(
                f,
                "Weir already runs on {} at {} (process {}). Use that one, or choose another folder with `--data`.",
                folder.display(),
                by.origin,
                by.pid
            ),
            Self::InUse { folder, by: None } => write!(
                f,
                "Another program already uses Weir's data in {}. End it, or choose another folder with `--data`.",
                folder.display()
            ),
            Self::Store(error) => error.fmt(f),
            Self::Settings(error) => {
                write!(f, "The settings in the database could not be read: {error}")
            }
            Self::Port(error) => error.fmt(f),
            Self::Practice(error) => write!(
                f,
                "The practice upstream could not open a loopback port ({error}). Check that this machine has a loopback interface."
            ),
            Self::Network(error) => write!(
                f,
                "The program's HTTPS client could not be set up ({error}). Check the proxy settings of this machine."
            ),
        }
    }
}

/// The running program.
pub struct App {
    pub api: Api,
    pub base_url: String,
    pub data_key: Secret,
    folder: Folder,
    practice: Option<practice::Server>,
    accepting: CancellationToken,
    servers: TaskTracker,
}

impl App {
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let folder = Folder::open(config.data).map_err(StartError::Folder)?;
        if config.log {
            log::start(&folder, log::HEADLESS).map_err(StartError::Folder)?;
        }
        let store = Store::open(folder.path()).map_err(|error| match error {
            OpenError::Locked(_) => StartError::InUse {
                folder: folder.path().to_owned(),
                by: folder::running(folder.path()),
            },
            other => StartError::Store(other),
        })?;
        let listeners = listen::bind(config.port).await.map_err(StartError::Port)?;
        let practising = config.practice.is_some();
        let (practice, accounts) = match config.practice {
            Some(options) => {
                let cast = options.accounts.clone();
                let (server, base_url) = match options.elsewhere.clone() {
                    Some(base_url) => (None, base_url),
                    None => {
                        let server =
                            practice::Server::start(options).await.map_err(StartError::Practice)?;
                        let base_url = server.base_url();
                        (Some(server), base_url)
                    }
                };
                let accounts =
                    cast.iter().map(|account| practice_account(account, &base_url)).collect();
                (server, accounts)
            }
            None => (None, Vec::new()),
        };
        let upstream = Upstream::new().map_err(StartError::Network)?;
        let live = Live::new(remembered(&store));
        let turns = Shared::new(Pool::new(accounts), upstream, store, live, config.timers)
            .map_err(StartError::Settings)?;
        let port = listeners[0].local_addr().map(|at| at.port()).unwrap_or(config.port);
        let origin = format!("http://127.0.0.1:{port}");
        let base_url = format!("{origin}/v1");
        let (accepting, servers) = (CancellationToken::new(), TaskTracker::new());
        let api = Api {
            turns: Arc::clone(&turns),
            base_url: base_url.clone(),
            practice: practising,
            started_at: clock::now_ms(),
            epoch: format!("{:x}", clock::now_ms()),
            sessions: Arc::new(Sessions::default()),
            closing: accepting.clone(),
        };
        let keys = folder.keys().map_err(StartError::Folder)?;
        let endpoint = Endpoint {
            turns,
            data_key: keys.data.clone(),
            control_key: keys.control,
            sessions: Arc::clone(&api.sessions),
        };
        let router = endpoint::router(
            &endpoint,
            api::http::control(api.clone()),
            api::http::entrance(api.clone()),
        );
        for listener in listeners {
            servers.spawn(serve(listener, router.clone(), accepting.clone()));
        }
        folder
            .announce(&Running {
                pid: std::process::id(),
                origin,
                version: env!("CARGO_PKG_VERSION").into(),
            })
            .map_err(StartError::Folder)?;
        let warm = Arc::clone(&api.turns);
        api.turns.tasks.spawn(async move { catalogs::ensure(&warm).await });
        Ok(Self { api, base_url, data_key: keys.data, folder, practice, accepting, servers })
    }

    /// The practice upstream, where there is one.
    pub fn practice(&self) -> Option<&practice::Server> {
        self.practice.as_ref()
    }

    /// Takes no new connection, lets running turns end within a bound, then ends them, and writes what is left.
    pub async fn drain(self) {
        self.drain_until(std::future::pending()).await;
    }

    /// Like [`Self::drain`], but running turns are ended as soon as `at_once` resolves.
    pub async fn drain_until(self, at_once: impl Future<Output = ()>) {
        self.folder.withdraw();
        self.accepting.cancel();
        let turns = Arc::clone(&self.api.turns);
        turns.tasks.close();
        self.servers.close();
        let all = async {
            turns.tasks.wait().await;
            self.servers.wait().await;
        };
        let ended = tokio::select! {
            () = all => true,
            () = tokio::time::sleep(DRAIN) => false,
            () = at_once => false,
        };
        if !ended {
            turns.stop.cancel();
            // Turns answer a stop at once; the bound is for a client that does not read its last bytes.
            drop(tokio::time::timeout(Duration::from_secs(2), turns.tasks.wait()).await);
        }
        turns.upstream.close().await;
        if let Some(practice) = self.practice {
            practice.stop().await;
        }
        let store = turns.store.clone();
        drop(tokio::task::spawn_blocking(move || store.close()).await);
    }
}

async fn serve(listener: TcpListener, router: Router, accepting: CancellationToken) {
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps Nagle's delay");
        }
    });
    if let Err(error) =
        axum::serve(listener, router).with_graceful_shutdown(accepting.cancelled_owned()).await
    {
        tracing::error!(%error, "the endpoint stopped");
    }
}

/// The latest turns of earlier runs. A history that cannot be read does not keep the program from serving.
fn remembered(store: &Store) -> Vec<LiveTurn> {
    let rows = store.turns(REMEMBERED).unwrap_or_else(|error| {
        tracing::error!(%error, "the history could not be read");
        Vec::new()
    });
    let with_calls = rows.into_iter().map(|row| {
        let calls = store.turn(&row.id).ok().flatten().map(|(_, calls)| calls).unwrap_or_default();
        LiveTurn { row, calls }
    });
    with_calls.collect()
}

fn practice_account(account: &practice::PracticeAccount, base_url: &str) -> Account {
    Account {
        id: account.account_id.clone(),
        name: account.name.clone(),
        plan: Some(account.plan.clone()),
        base_url: base_url.to_owned(),
        backend_account_id: Some(account.account_id.clone()),
        token: Secret::new(&account.token),
    }
}
