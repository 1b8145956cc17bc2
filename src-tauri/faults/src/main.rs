//! The command line of the fault harness.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use weir_faults::check::Finding;
use weir_faults::fault::{Fault, Road};
use weir_faults::run::Disturbance;
use weir_faults::sabotage::Sabotage;
use weir_faults::summary::Summary;
use weir_faults::{case, plan, run, say};

/// How many bugs are tried at the same time.
const PROVEN_AT_ONCE: usize = 4;

/// Breaks whatever lies around Weir, and checks that Weir stays honest.
#[derive(Debug, Parser)]
#[command(name = "weir-faults")]
struct Arguments {
    /// The program under test.
    #[arg(long, value_name = "FILE")]
    weir: PathBuf,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds are tried.
    #[arg(long, default_value_t = 150)]
    count: u64,
    /// Only this seed, and what both ends saw.
    #[arg(long)]
    one: bool,
    /// How many faults one program meets before it is ended and its database read.
    #[arg(long, default_value_t = 250)]
    batch: u64,
    /// Stop each program for longer than its timers while it serves.
    #[arg(long)]
    freeze: bool,
    /// A folder with a recorded case, or with such folders, instead of seeds.
    #[arg(long, value_name = "DIR")]
    case: Option<PathBuf>,
    /// Proves the checker: builds one bug after the other in, and wants each to be found.
    #[arg(long)]
    prove: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match all(&arguments).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("weir-faults: {error}"));
            ExitCode::from(3)
        }
    }
}

async fn all(arguments: &Arguments) -> io::Result<bool> {
    if arguments.prove {
        return prove(&arguments.weir).await;
    }
    let begun = Instant::now();
    let disturbance = if arguments.freeze { Disturbance::Freeze } else { Disturbance::None };
    let mut summary = Summary::default();
    let faults: Vec<Fault> = match &arguments.case {
        Some(folder) => case::read_all(folder)?,
        None if arguments.one => vec![plan::fault(arguments.seed)],
        None => (arguments.seed..arguments.seed + arguments.count).map(plan::fault).collect(),
    };
    if faults.is_empty() {
        return Err(io::Error::other("there is no fault to play"));
    }
    for batch in faults.chunks(usize::try_from(arguments.batch.max(1)).unwrap_or(usize::MAX)) {
        let evidence = run::run(&arguments.weir, batch.to_vec(), disturbance).await?;
        if arguments.one {
            show(&evidence);
        }
        let mut found = evidence.findings();
        again(arguments, batch, &evidence, &mut found, &mut summary).await?;
        summary.add(&evidence.faults, &evidence.rows, found);
        let (before, after) = (evidence.process.before, evidence.process.after);
        say(&format!(
            "{:>5} faults after {:>4.0} s; resident {} → {} MiB, sockets {} → {}, files {} → {}, ended in {:.1} s, machine stood still for {:.1} s at most, findings {}",
            summary.faults(),
            begun.elapsed().as_secs_f64(),
            before.resident_kib / 1024,
            after.resident_kib / 1024,
            before.sockets,
            after.sockets,
            before.files,
            after.files,
            evidence.process.drain.as_secs_f64(),
            evidence.stood_still.as_secs_f64(),
            summary.findings.len()
        ));
    }
    say(&format!("\n{summary}"));
    Ok(summary.findings.is_empty())
}

/// How often faults are played again whose findings the machine may have made.
const AGAIN: usize = 3;

/// What looks like a wait that was cut short says nothing where neither end was run in between, so those faults are played
/// again, until the machine did not stand still; what they show then takes the place of what they showed before.
async fn again(
    arguments: &Arguments,
    batch: &[Fault],
    evidence: &run::Evidence,
    found: &mut Vec<Finding>,
    summary: &mut Summary,
) -> io::Result<()> {
    let mut stood_still = evidence.stood_still;
    for _ in 0..AGAIN {
        let seeds: BTreeSet<u64> = found
            .iter()
            .filter(|finding| finding.is_of_time())
            .filter_map(|finding| finding.seed)
            .collect();
        if seeds.is_empty() || stood_still < run::STILL || arguments.freeze {
            break;
        }
        let faults = batch.iter().filter(|fault| seeds.contains(&fault.seed)).cloned().collect();
        let evidence = run::run(&arguments.weir, faults, Disturbance::None).await?;
        stood_still = evidence.stood_still;
        summary.again += seeds.len();
        found.retain(|finding| finding.seed.is_none_or(|seed| !seeds.contains(&seed)));
        found.extend(evidence.findings());
    }
    Ok(())
}

/// Each bug must be found by its own rule, and nothing may be found without one.
async fn prove(weir: &Path) -> io::Result<bool> {
    let plain: Vec<Fault> = (1..=16).map(|seed| plan::plain(seed, Road::Refused(426))).collect();
    let framed: Vec<Fault> = (201..=216).map(|seed| plan::plain(seed, Road::Open)).collect();
    let leaving: Vec<Fault> = (101..=108).map(plan::leaving).collect();
    let room = Arc::new(Semaphore::new(PROVEN_AT_ONCE));
    let mut runs = JoinSet::new();
    for sabotage in [None].into_iter().chain(Sabotage::ALL.map(Some)) {
        let faults = match sabotage {
            None => [plain.clone(), leaving.clone(), framed.clone()].concat(),
            Some(Sabotage::IgnoreLeaving) => leaving.clone(),
            Some(sabotage) if sabotage.is_framed() => framed.clone(),
            Some(_) => plain.clone(),
        };
        let (weir, room) = (weir.to_owned(), Arc::clone(&room));
        runs.spawn(async move {
            let _room = room.acquire_owned().await;
            let disturbance = sabotage.map_or(Disturbance::None, Disturbance::Sabotage);
            (
                sabotage,
                run::run(&weir, faults, disturbance).await.map(|evidence| evidence.findings()),
            )
        });
    }
    let mut good = true;
    while let Some(done) = runs.join_next().await {
        let (sabotage, found) = done.map_err(io::Error::other)?;
        let found = found?;
        let Some(sabotage) = sabotage else {
            good &= found.is_empty();
            say(&format!("{:<16} {:>4} findings", "no bug", found.len()));
            for finding in found {
                say(&format!("  FOUND {}: {}", finding.rule, finding.detail));
            }
            continue;
        };
        let rule = sabotage.rule();
        let by_rule = found.iter().filter(|finding| finding.rule == rule).count();
        good &= by_rule > 0;
        let verdict = if by_rule > 0 { "caught" } else { "NOT CAUGHT" };
        let name = format!("{sabotage:?}");
        say(&format!(
            "{name:<16} {:>4} findings, {by_rule} of them `{rule}`: {verdict}",
            found.len()
        ));
    }
    Ok(good)
}

/// What both ends saw, for whoever looks for the cause.
fn show(evidence: &run::Evidence) {
    for turn in evidence.faults.iter().flat_map(|fault| &fault.turns) {
        say(&format!(
            "== {} (whole: {}, outputs: {:?})",
            turn.mark, turn.client.whole, turn.client.outputs
        ));
        for (at, attempt) in turn.attempts.iter().enumerate() {
            say(&format!(
                "-- backend, request {at}, account {}, {}, {:?} after {:?}",
                attempt.account + 1,
                attempt.line.as_ref().map_or("HTTP".into(), |line| format!(
                    "socket {}, place {}, {:?} items known",
                    line.socket,
                    line.place,
                    line.known.as_ref().map(Vec::len)
                )),
                attempt.end,
                attempt.over
            ));
            for (when, bytes) in attempt.writes.iter().take(40) {
                let text = String::from_utf8_lossy(bytes);
                say(&format!("   {when:?}: {:?}", text.chars().take(2_000).collect::<String>()));
            }
        }
        say(&format!(
            "-- client, {:?}\n{}",
            turn.client.end,
            String::from_utf8_lossy(&turn.client.raw)
        ));
        for row in evidence.rows.turns.iter().filter(|row| row.mark == turn.mark) {
            say(&format!("-- {row:?}"));
        }
    }
}
