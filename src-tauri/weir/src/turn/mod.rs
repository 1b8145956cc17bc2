//! One turn, from decision to last byte.
//!
//! [`start`] takes a well-formed request with its [`caller`] and returns the two ends that a client sees: a head and a body.
//! One task owns the rest ([`drive`]): it decides the dialect ([`decide`]), leases an account, opens the upstream stream,
//! relays it ([`relay`]) into the client's [`sink`] and tells the store what was emitted and booked ([`journal`]).
//!
//! **Invariant**: a turn has exactly one terminal outcome, the same for the client and for the journal. Before the commit
//! point it may move to another account, after it never.

pub mod caller;
pub mod catalogs;
pub mod clock;
pub mod courtesy;
pub mod decide;
pub mod drive;
pub mod ending;
pub mod journal;
pub mod live;
pub mod loops;
pub mod memory;
pub mod modes;
pub mod patience;
pub mod progress;
pub mod relay;
pub mod sink;
pub mod verdict;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use weir_core::dialect::body::Body;
use weir_core::dialect::mode::Dialect;

use crate::accounts::account::AccountId;
use crate::accounts::pool::Pool;
use crate::store::{Store, StoreError};
use crate::upstream::open::Upstream;
use caller::Caller;
use memory::Memory;
use sink::Answer;

/// What every turn uses.
#[derive(Debug)]
pub struct Shared {
    pub pool: Arc<Pool>,
    pub upstream: Upstream,
    pub store: Store,
    pub modes: modes::Modes,
    /// Calls that reached their caller without the `functions` namespace that the backend gave them: a caller that sent flat
    /// tools does not know it, and it is put on again on replay so that the history equals what the backend wrote.
    pub flat_calls: Memory<()>,
    /// The account that gave each sticky routing state; to any other it means nothing.
    pub turn_states: Memory<AccountId>,
    pub catalogs: catalogs::Catalogs,
    /// Requests that come again and again.
    pub loops: loops::Loops,
    /// What watchers see.
    pub live: Arc<live::Live>,
    pub timers: Timers,
    /// Every task that must have ended before the program may.
    pub tasks: TaskTracker,
    /// Asks the turns to end when the program drains longer than it may.
    pub stop: CancellationToken,
}

impl Shared {
    /// Nothing runs yet; `live` shows what was before.
    pub fn new(
        pool: Arc<Pool>,
        upstream: Upstream,
        store: Store,
        live: live::Live,
        timers: Timers,
    ) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(Self {
            pool,
            upstream,
            modes: modes::Modes::load(store.clone())?,
            store,
            flat_calls: Memory::of(16_384),
            turn_states: Memory::of(1_024),
            catalogs: catalogs::Catalogs::default(),
            loops: loops::Loops::new(timers.loops),
            live: Arc::new(live),
            timers,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }
}

/// How long a client and a backend are waited for.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// The status is held this long for the backend's first event.
    pub status: Duration,
    /// A client hears something at least this often once the status is out.
    pub comment: Duration,
    /// A backend that says nothing for this long before the commit point is left.
    pub silence: Duration,
    /// A backend that says nothing for this long after the commit point is taken for dead.
    pub idle: Duration,
    /// When a client that repeats a request is stopped.
    pub loops: loops::Bounds,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            status: Duration::from_secs(15),
            comment: Duration::from_secs(10),
            silence: Duration::from_secs(90),
            idle: Duration::from_secs(300),
            loops: loops::Bounds::default(),
        }
    }
}

/// A request that is to become a turn.
#[derive(Debug)]
pub struct Order {
    pub caller: Caller,
    pub body: Body,
    /// Size of the client's request after decoding, in bytes.
    pub request_bytes: usize,
    /// The client wants one JSON document instead of a stream.
    pub whole: bool,
    /// Set by a probe only, never from a request.
    pub trial: Option<Trial>,
}

/// A probe's turn: a dialect and an account that are given instead of resolved.
#[derive(Clone, Debug)]
pub struct Trial {
    pub dialect: Dialect,
    pub account: Option<AccountId>,
}

/// Starts a turn. Dropping the answer cancels it, upstream included.
pub fn start(shared: &Arc<Shared>, order: Order) -> Answer {
    let (sink, answer) = sink::channel(order.whole, shared.stop.clone());
    let shared = Arc::clone(shared);
    let tasks = shared.tasks.clone();
    tasks.spawn(drive::drive(shared, order, sink));
    answer
}
