//! An endpoint over given accounts, without a program around it.

use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;
use weir::accounts::account::Account;
use weir::accounts::pool::Pool;
use weir::accounts::secret::Secret;
use weir::endpoint::sessions::Sessions;
use weir::endpoint::{Endpoint, router};
use weir::store::Store;
use weir::turn::live::Live;
use weir::turn::{Shared, Timers};
use weir::upstream::open::Upstream;

/// The data key.
pub(crate) const KEY: &str = "weir_0123456789abcdef";

/// Starts it; returns scheme, host and port, and what its turns share.
pub(crate) async fn endpoint(accounts: impl IntoIterator<Item = Account>) -> (String, Arc<Shared>) {
    with(accounts, Timers::default()).await
}

/// The same with other timers.
pub(crate) async fn with(
    accounts: impl IntoIterator<Item = Account>,
    timers: Timers,
) -> (String, Arc<Shared>) {
    let upstream = Upstream::new().expect("an HTTP client");
    let (store, live) = (Store::in_memory(), Live::new([]));
    let shared =
        Shared::new(Pool::new(accounts), upstream, store, live, timers).expect("no modes yet");
    let endpoint = Endpoint {
        turns: Arc::clone(&shared),
        data_key: Secret::new(KEY),
        control_key: Secret::new("weirctl_0123456789abcdef"),
        sessions: Arc::new(Sessions::default()),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let routes = router(&endpoint, Router::new(), Router::new());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (origin, shared)
}
