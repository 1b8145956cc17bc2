//! The measurements, each of one target at one time.
//!
//! **Invariant**: a measurement begins when nothing of the one before it is in flight upstream.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::client::Client;
use crate::clock;
use crate::figures::Spread;
use crate::plan::Plan;
use crate::process;
use crate::target::Target;

/// Reached by a broken target only.
const BOUND: Duration = Duration::from_secs(60);

/// Turns in flight that are asked to begin together.
const TWELVE: usize = 12;

/// How much of everything, so that a short form can be run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) requests: u32,
    pub(crate) paced_s: u32,
    pub(crate) short_s: u32,
    pub(crate) bulk: u32,
    pub(crate) many: usize,
}

/// Something that took processor time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) count: u64,
    pub(crate) over: Duration,
    pub(crate) cpu: Duration,
}

/// Time from request to head, one turn after another on one connection.
pub(crate) async fn headers(target: &Target, scale: Scale) -> Result<Spread> {
    quiet(target).await?;
    let mut client = Client::connect(&target.way, "headers".into()).await?;
    let mut all = Vec::new();
    for _ in 0..scale.requests {
        all.push(client.turn(Plan::at_once(2), |_| ()).await?.headers);
    }
    Ok(Spread::of(all))
}

/// `streams` paced answers at once: how late each piece arrives, and what they cost.
pub(crate) async fn paced(
    target: &Target,
    name: &str,
    streams: usize,
    scale: Scale,
) -> Result<(Spread, Spent)> {
    quiet(target).await?;
    let gap = Duration::from_millis(20);
    let plan = Plan::paced(scale.paced_s * 50, gap);
    let (late, mut arrived) = mpsc::unbounded_channel();
    let clients = connect(target, name, streams).await?;
    let (before, begun) = (process::cpu(&target.pids), Instant::now());
    let mut running = JoinSet::new();
    for (place, mut client) in clients.into_iter().enumerate() {
        let late = late.clone();
        // Spread over the gap, since real answers do not step together.
        let begin = begun + gap * u32::try_from(place)? / u32::try_from(streams)?;
        running.spawn(async move {
            tokio::time::sleep_until(begin).await;
            client.turn(plan, |ns| _ = late.send(ns)).await.map(|turn| turn.events)
        });
    }
    drop(late);
    let count = all(running).await?;
    let spent = Spent { count, over: begun.elapsed(), cpu: process::cpu(&target.pids) - before };
    let mut delays = Vec::new();
    while let Some(ns) = arrived.recv().await {
        delays.push(ns);
    }
    Ok((Spread::of(delays), spent))
}

/// Short answers one after another on 32 connections; counts turns.
pub(crate) async fn short(target: &Target, scale: Scale) -> Result<Spent> {
    quiet(target).await?;
    let clients = connect(target, "short", 32).await?;
    let (before, begun) = (process::cpu(&target.pids), Instant::now());
    let until = begun + Duration::from_secs(scale.short_s.into());
    let mut running = JoinSet::new();
    for mut client in clients {
        running.spawn(async move {
            let mut turns = 0;
            while Instant::now() < until {
                client.turn(Plan::at_once(4), |_| ()).await?;
                turns += 1;
            }
            Ok(turns)
        });
    }
    let count = all(running).await?;
    let over = begun.elapsed();
    // What is written down after the answer belongs to the turns as well.
    sleep(Duration::from_millis(200)).await;
    Ok(Spent { count, over, cpu: process::cpu(&target.pids) - before })
}

/// Four long answers without a pause; counts events.
pub(crate) async fn bulk(target: &Target, scale: Scale) -> Result<Spent> {
    quiet(target).await?;
    let clients = connect(target, "bulk", 4).await?;
    let (before, begun) = (process::cpu(&target.pids), Instant::now());
    let mut running = JoinSet::new();
    for mut client in clients {
        let plan = Plan::at_once(scale.bulk);
        running.spawn(async move { client.turn(plan, |_| ()).await.map(|turn| turn.events) });
    }
    let count = all(running).await?;
    Ok(Spent { count, over: begun.elapsed(), cpu: process::cpu(&target.pids) - before })
}

/// Resident bytes while so many answers run, each of which has brought three pieces.
pub(crate) async fn memory(target: &Target, streams: usize) -> Result<u64> {
    quiet(target).await?;
    let plan = Plan::paced(600, Duration::from_millis(200));
    let (seen, mut count) = watch::channel(0);
    let mut running = JoinSet::new();
    for place in 0..streams {
        let way = target.way.clone();
        let seen = seen.clone();
        running.spawn(async move {
            let mut client = Client::connect(&way, format!("memory-{place}")).await?;
            let mut pieces = 0;
            let each = |_| {
                pieces += 1;
                if pieces == 3 {
                    seen.send_modify(|count| *count += 1);
                }
            };
            client.turn(plan, each).await.map(|turn| turn.events)
        });
    }
    let bytes = tokio::select! {
        reached = timeout(BOUND, count.wait_for(|count| *count == streams)) => {
            drop(reached.context("not every stream began")?);
            process::resident(&target.pids)
        }
        Some(ended) = running.join_next() => {
            ended??;
            anyhow::bail!("a stream ended early");
        }
    };
    // Going away ends the answers, through every proxy.
    running.shutdown().await;
    quiet(target).await?;
    Ok(bytes)
}

/// Twelve turns of which none is answered until all are there: whether they were, and how long that took.
pub(crate) async fn together(target: &Target) -> Result<(usize, u64)> {
    quiet(target).await?;
    target.upstream.take_most();
    let clients = connect(target, "together", TWELVE).await?;
    let begun = clock::now();
    let mut running = JoinSet::new();
    for mut client in clients {
        let plan = Plan { together: TWELVE, ..Plan::at_once(2) };
        running.spawn(async move { client.turn(plan, |_| ()).await.map(|turn| turn.events) });
    }
    all(running).await?;
    Ok((target.upstream.take_most(), clock::now() - begun))
}

async fn connect(target: &Target, name: &str, count: usize) -> Result<Vec<Client>> {
    let mut clients = Vec::new();
    for place in 0..count {
        clients.push(Client::connect(&target.way, format!("{name}-{place}")).await?);
    }
    Ok(clients)
}

async fn all(mut running: JoinSet<Result<u64>>) -> Result<u64> {
    let wait = async {
        let mut sum = 0;
        while let Some(ended) = running.join_next().await {
            sum += ended??;
        }
        Ok(sum)
    };
    timeout(BOUND, wait).await.context("not every turn ended")?
}

/// Waits until nothing is in flight upstream.
async fn quiet(target: &Target) -> Result<()> {
    let begun = Instant::now();
    while target.upstream.running() > 0 {
        ensure!(begun.elapsed() < BOUND, "turns of clients that went away still run upstream");
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
