//! Measures what Weir costs between a fast fixed upstream and a load generator, beside no proxy and nginx.
//!
//! Every measurement goes round all targets before the next one begins, and every round does all measurements, so that
//! a machine that is busy for a while is busy for all of them. Each piece of a paced answer carries the moment at which it
//! was written; the load generator lives in the same process and subtracts it when the piece arrives.
//!
//! **Invariant**: what is printed was measured in this run; a turn that did not arrive whole ends it.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod answer;
mod chunks;
mod client;
mod clock;
mod figures;
mod load;
mod plan;
mod process;
mod report;
mod target;
mod upstream;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;

use client::Client;
use figures::{Figures, Metric};
use load::{Scale, Spent};
use plan::Plan;
use report::Report;
use target::Target;
use upstream::Upstream;

/// Measures any base URL that leads to its fixed upstream; without a target of your own Weir and nginx.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The `weir` to measure.
    #[arg(long, value_name = "FILE")]
    weir: Option<PathBuf>,
    /// The `nginx` to measure.
    #[arg(long, value_name = "FILE")]
    nginx: Option<PathBuf>,
    /// Something else in front of the fixed upstream: NAME=URL#PID. The URL is what `/responses` is added to; without a
    /// process id it has no processor time and no memory.
    #[arg(long, value_name = "NAME=URL#PID", requires = "port")]
    target: Vec<String>,
    /// The bearer for such a target.
    #[arg(long, default_value = "none")]
    key: String,
    /// The port of the fixed upstream without WebSockets; any free one where none is given.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Rounds; every figure is the median of so many.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// A short form: one round of less of everything.
    #[arg(long)]
    quick: bool,
    /// Bytes of instructions in every request.
    #[arg(long, default_value_t = 4096)]
    padding: usize,
    /// Write all figures of all rounds to this file too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only run the fixed upstream, until it is ended.
    #[arg(long)]
    serve: bool,
    /// Only measurements whose name contains this: headers, paced, short, bulk, memory, together.
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
    /// End with an error if a target of this stage is missed.
    #[arg(long)]
    strict: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    clock::now();
    let plain = Upstream::start(false, args.port)?;
    if args.serve {
        println!("{}", plain.base_url());
        return std::future::pending().await;
    }
    let sockets = Upstream::start(true, 0)?;
    let load = process::load();
    let targets = targets(&args, &plain, &sockets).await?;
    let names: Vec<_> = targets.iter().map(|target| target.name.clone()).collect();
    let rounds = if args.quick { 1 } else { args.rounds };
    let scale = if args.quick {
        Scale { requests: 100, paced_s: 1, short_s: 1, bulk: 10_000, many: 100 }
    } else {
        Scale { requests: 300, paced_s: 3, short_s: 3, bulk: 40_000, many: 500 }
    };
    let mut figures = Figures::default();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for measure in MEASURES.iter().filter(|measure| measure.contains(args.only.as_str())) {
            for target in &targets {
                one(measure, target, scale, &mut figures)
                    .await
                    .with_context(|| format!("{measure} of {}", target.name))?;
            }
        }
    }
    let report = Report { figures: &figures, targets: &names, rounds, load: &load };
    println!("{}", report.markdown());
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_string_pretty(&report.json())?)?;
    }
    let missed = report.verdicts().iter().filter(|(met, _)| !met).count();
    anyhow::ensure!(!args.strict || missed == 0, "{missed} of this stage's targets were missed");
    Ok(())
}

const MEASURES: [&str; 6] = ["memory", "headers", "paced", "short", "bulk", "together"];

async fn targets(args: &Args, plain: &Upstream, sockets: &Upstream) -> Result<Vec<Target>> {
    let mut all = vec![Target::direct(plain, args.padding)];
    if let Some(nginx) = &args.nginx {
        all.push(Target::nginx(nginx, plain, args.padding).await?);
    }
    if let Some(weir) = &args.weir {
        all.push(Target::weir("Weir, SSE", weir, plain, args.padding).await?);
        let held = Target::weir("Weir, held socket", weir, sockets, args.padding).await?;
        // A Weir that does not hold sockets has nothing to show in this column.
        let mut client = Client::connect(&held.way, "first".into()).await?;
        client.turn(Plan::at_once(1), |_| ()).await.context("the first turn")?;
        if sockets.over_socket() > 0 {
            all.push(held);
        } else {
            eprintln!("this weir asked for no WebSocket, so the held socket is not measured");
        }
    }
    for text in &args.target {
        all.push(Target::given(text, &args.key, plain, args.padding)?);
    }
    // Connections, catalogs and caches are there before anything is measured.
    for target in &all {
        let mut client = Client::connect(&target.way, "first".into()).await?;
        for _ in 0..20 {
            let turn = client.turn(Plan::at_once(2), |_| ()).await;
            turn.with_context(|| format!("a first turn through {}", target.name))?;
        }
    }
    Ok(all)
}

async fn one(measure: &str, target: &Target, scale: Scale, figures: &mut Figures) -> Result<()> {
    let name = target.name.as_str();
    let measured = !target.pids.is_empty();
    let us = |ns: f64| ns / 1e3;
    // What was added is told against the same round without a proxy.
    let added = |figures: &mut Figures, of: Metric, metric: Metric| {
        let last = |target: &str| figures.all(of, target).last().copied();
        if name != report::NONE
            && let (Some(with), Some(without)) = (last(name), last(report::NONE))
        {
            figures.add(metric, name, with - without);
        }
    };
    match measure {
        "headers" => {
            let spread = load::headers(target, scale).await?;
            figures.add(Metric::Headers, name, us(spread.p50));
            added(figures, Metric::Headers, Metric::HeadersAdded);
        }
        "paced" => {
            let (late, _) = load::paced(target, "ten", 10, scale).await?;
            figures.add(Metric::Event, name, us(late.p50));
            figures.add(Metric::EventTail, name, us(late.p99));
            added(figures, Metric::Event, Metric::EventAdded);
            added(figures, Metric::EventTail, Metric::EventTailAdded);
            let (_, spent) = load::paced(target, "hundred", 100, scale).await?;
            if measured {
                figures.add(Metric::CpuPaced, name, cpu_us(spent));
            }
        }
        "short" => {
            let spent = load::short(target, scale).await?;
            figures.add(Metric::Short, name, rate(spent));
            if measured {
                // Microseconds for one are milliseconds for a thousand.
                figures.add(Metric::CpuTurns, name, cpu_us(spent));
            }
        }
        "bulk" => {
            let spent = load::bulk(target, scale).await?;
            figures.add(Metric::Events, name, rate(spent));
            if measured {
                figures.add(Metric::CpuBulk, name, cpu_us(spent));
            }
        }
        "memory" if measured => {
            for streams in [1, 100, scale.many] {
                let bytes = load::memory(target, streams).await?;
                figures.add(Metric::Memory(streams), name, bytes as f64 / 1e6);
            }
        }
        "together" => {
            let (most, ns) = load::together(target).await?;
            figures.add(Metric::Together, name, most as f64);
            figures.add(Metric::TogetherTime, name, ns as f64 / 1e6);
        }
        _ => {}
    }
    Ok(())
}

fn rate(spent: Spent) -> f64 {
    spent.count as f64 / spent.over.as_secs_f64()
}

fn cpu_us(spent: Spent) -> f64 {
    spent.cpu.as_secs_f64() * 1e6 / spent.count as f64
}
