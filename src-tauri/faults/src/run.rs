//! Runs many faults at once against one program, and gathers the evidence.
//!
//! **Invariant**: a run that could not be set up is an error, never a run without findings.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::backend::Backend;
use crate::check::{self, Finding, Terms};
use crate::client::{self, Place};
use crate::database;
use crate::fault::Fault;
use crate::program::{Program, TIMERS};
use crate::sabotage::Sabotage;
use crate::transcript::{ClientSaw, FaultSaw, Footing, ProcessSaw, Rows, TurnSaw};

/// Faults played at the same time.
const AT_ONCE: usize = 40;

/// What the memory may have grown by. Allocators keep some; a program that keeps every answer exceeds it.
const GROWTH_KIB: u64 = 96 * 1024;

pub struct Evidence {
    pub faults: Vec<FaultSaw>,
    pub rows: Rows,
    pub process: ProcessSaw,
    /// How long the program was stopped.
    pub frozen: Duration,
    /// The longest time for which this process was not run although it had something to do.
    pub stood_still: Duration,
}

/// What is done to the program while it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    None,
    /// It stands still for longer than its timers, as on a machine that was suspended.
    Freeze,
    Sabotage(Sabotage),
}

impl Disturbance {
    fn sabotage(self) -> Option<Sabotage> {
        match self {
            Self::Sabotage(sabotage) => Some(sabotage),
            _ => None,
        }
    }
}

/// How often it is looked whether this process still runs.
const TICK: Duration = Duration::from_millis(50);

/// A machine that stood still for longer makes findings about time. It is less than the checker forgives.
pub const STILL: Duration = Duration::from_millis(TIMERS[2] / 5);

/// When the program is stopped, and for how long.
const FREEZE: (Duration, Duration) =
    (Duration::from_secs(2), Duration::from_millis(TIMERS[3] + 1_500));

impl Evidence {
    pub fn findings(&self) -> Vec<Finding> {
        let terms = Terms {
            silence: Duration::from_millis(TIMERS[2]),
            leaving: Duration::from_millis(TIMERS[2] / 2) + self.frozen,
            growth_kib: GROWTH_KIB,
        };
        let mut all: Vec<Finding> =
            self.faults.iter().flat_map(|fault| check::fault(fault, &self.rows, &terms)).collect();
        all.extend(check::process(&self.process, &self.faults, &self.rows, &terms));
        all
    }
}

/// Plays the faults against a program of its own.
pub async fn run(
    weir: &Path,
    faults: Vec<Fault>,
    disturbance: Disturbance,
) -> io::Result<Evidence> {
    let sabotage = disturbance.sabotage();
    let folder = tempfile::tempdir()?;
    let backend = Backend::start(&faults).await?;
    let mut upstream = backend.base_url.clone();
    if let Some(sabotage) = sabotage {
        let address =
            upstream.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned();
        if let Some(proxy) = sabotage.before_backend(&address).await? {
            upstream = upstream.replace(&address, &proxy);
        }
    }
    let program = Program::start(weir, folder.path(), &upstream, backend.accounts()).await?;
    let mut place = program.place.clone();
    if let Some(sabotage) = sabotage
        && let Some(proxy) = sabotage.before_client(&place.address).await?
    {
        place.address = proxy;
    }
    met(&program, &backend).await?;
    backend.hush();
    let before = quiet(&program).await;
    let frozen = if disturbance == Disturbance::Freeze { FREEZE.1 } else { Duration::ZERO };
    let freeze = async {
        if !frozen.is_zero() {
            sleep(FREEZE.0).await;
            program.signal("STOP");
            sleep(frozen).await;
            program.signal("CONT");
        }
    };
    let (mut stood_still, mut last) = (Duration::ZERO, Instant::now());
    let watch = async {
        loop {
            sleep(TICK).await;
            stood_still = stood_still.max(last.elapsed());
            last = Instant::now();
        }
    };
    let played = async { tokio::join!(play_all(&place, faults), freeze) };
    let saw = tokio::select! {
        (saw, ()) = played => saw?,
        () = watch => Vec::new(),
    };
    let mut forgotten = Vec::new();
    if sabotage == Some(Sabotage::LeaveSockets) {
        for _ in 0..300 {
            forgotten.push(TcpStream::connect(&program.place.address).await?);
        }
    }
    backend.close();
    let after = settle(&program, &backend, &before, if sabotage.is_some() { 2 } else { 20 }).await;
    let kept = backend.open_sockets();
    drop(forgotten);
    let (exit, drain, log) = program.end().await;
    let left_open = left_open(&backend).await;
    let path = folder.path().join("data/weir.db");
    if let Some(sql) = sabotage.and_then(Sabotage::sql) {
        database::spoil(&path, sql).map_err(io::Error::other)?;
    }
    let rows = database::read(&path).map_err(io::Error::other)?;
    let faults =
        saw.into_iter().map(|(fault, clients)| gather(&fault, clients, &backend)).collect();
    let process = ProcessSaw { before, after, kept, left_open, exit, drain, log };
    Ok(Evidence { faults, rows, process, frozen, stood_still })
}

/// Waits until nothing but the beginning and what is kept for conversations is left, at most so many seconds.
async fn settle(program: &Program, backend: &Backend, before: &Footing, bound: u64) -> Footing {
    let end = Instant::now() + Duration::from_secs(bound);
    loop {
        let now = program.footing().await;
        let kept = backend.open_sockets().len();
        if (now.in_flight == 0 && now.sockets <= before.sockets + kept) || Instant::now() >= end {
            return now;
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// How many of the backend's connections are open although the other side has ended.
async fn left_open(backend: &Backend) -> usize {
    for _ in 0..100 {
        if backend.open_sockets().is_empty() {
            break;
        }
        sleep(Duration::from_millis(20)).await;
    }
    backend.open_sockets().len()
}

/// Waits until every account is known, so that no turn meets a pool that is still being read.
async fn met(program: &Program, backend: &Backend) -> io::Result<()> {
    let end = Instant::now() + Duration::from_secs(60);
    while !backend.met_all() {
        if Instant::now() >= end {
            return Err(io::Error::other("the program did not read every account's model list"));
        }
        sleep(Duration::from_millis(20)).await;
    }
    // The last answer is still on its way.
    while !program.knows_all(backend.accounts()).await {
        if Instant::now() >= end {
            return Err(io::Error::other("the program does not list every account's model"));
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// The program before the faults, once the connections of its beginning are closed.
async fn quiet(program: &Program) -> Footing {
    let mut before = program.footing().await;
    for _ in 0..50 {
        sleep(Duration::from_millis(20)).await;
        let now = program.footing().await;
        if now.sockets >= before.sockets && now.sockets < 20 {
            return now;
        }
        before = now;
    }
    before
}

async fn play_all(place: &Place, faults: Vec<Fault>) -> io::Result<Vec<(Fault, Vec<ClientSaw>)>> {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    let mut faults = faults;
    // What waits for a timer begins first, and the rest is played meanwhile.
    faults.sort_by_key(|fault| !matches!(fault.kind, "stall" | "deaf between turns"));
    for fault in faults {
        let (place, room) = (place.clone(), Arc::clone(&room));
        tasks.spawn(async move {
            let _room = room.acquire_owned().await;
            let mut saw: Vec<ClientSaw> = Vec::new();
            let mut line = None;
            for (number, turn) in fault.turns.iter().enumerate() {
                let one = client::turn(&place, &fault, number, turn, &saw, &mut line).await;
                saw.push(one);
            }
            (fault, saw)
        });
    }
    let mut all = Vec::new();
    while let Some(done) = tasks.join_next().await {
        all.push(done.map_err(io::Error::other)?);
    }
    all.sort_by_key(|(fault, _)| fault.seed);
    Ok(all)
}

fn gather(fault: &Fault, clients: Vec<ClientSaw>, backend: &Backend) -> FaultSaw {
    let attempts = backend.take(&fault.name());
    let turns = clients.into_iter().enumerate().map(|(number, client)| TurnSaw {
        mark: client::mark(fault, number),
        client,
        attempts: attempts.iter().filter(|attempt| attempt.turn == number).cloned().collect(),
    });
    FaultSaw { seed: fault.seed, kind: fault.kind, road: fault.road, turns: turns.collect() }
}
