//! What a run shows: faults by kind, how they ended, and what was wrong.
//!
//! **Invariant**: every finding counts, and is printed with the seed that shows it again.

use std::collections::BTreeMap;
use std::fmt;

use crate::check::Finding;
use crate::transcript::{FaultSaw, Rows};

/// How many findings are printed; more of them are seldom of more kinds.
const SHOWN: usize = 40;

#[derive(Default)]
pub struct Summary {
    /// By kind and road: faults, turns, requests at the backend, and outcomes.
    kinds: BTreeMap<(&'static str, &'static str), Line>,
    pub findings: Vec<Finding>,
    /// Faults that were played again because the machine had stood still.
    pub again: usize,
    events: usize,
}

#[derive(Default)]
struct Line {
    faults: usize,
    turns: usize,
    sent: usize,
    /// Of these, over a WebSocket.
    framed: usize,
    /// Of these, with only what was new.
    short: usize,
    outcomes: BTreeMap<String, usize>,
}

impl Summary {
    pub fn add(&mut self, faults: &[FaultSaw], rows: &Rows, findings: Vec<Finding>) {
        for fault in faults {
            let line = self.kinds.entry((fault.kind, fault.road.word())).or_default();
            line.faults += 1;
            for turn in &fault.turns {
                line.turns += 1;
                line.sent += turn.attempts.len();
                let framed = turn.attempts.iter().filter_map(|attempt| attempt.line.as_ref());
                line.framed += framed.clone().count();
                line.short += framed.filter(|line| line.known.is_some()).count();
                self.events += turn.client.raw.windows(6).filter(|six| six == b"\ndata:").count();
                let row = rows.turns.iter().find(|row| row.mark == turn.mark);
                let outcome =
                    row.and_then(|row| row.outcome.clone()).unwrap_or_else(|| "no turn".into());
                *line.outcomes.entry(outcome).or_default() += 1;
            }
        }
        self.findings.extend(findings);
    }

    pub fn faults(&self) -> usize {
        self.kinds.values().map(|line| line.faults).sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<24} {:<16} {:>6} {:>6} {:>6} {:>6} {:>6}  outcomes",
            "kind", "road", "faults", "turns", "sent", "framed", "short"
        )?;
        for ((kind, road), line) in &self.kinds {
            let outcomes: Vec<String> =
                line.outcomes.iter().map(|(name, count)| format!("{count} {name}")).collect();
            writeln!(
                f,
                "{kind:<24} {road:<16} {:>6} {:>6} {:>6} {:>6} {:>6}  {}",
                line.faults,
                line.turns,
                line.sent,
                line.framed,
                line.short,
                outcomes.join(", ")
            )?;
        }
        for finding in self.findings.iter().take(SHOWN) {
            let again =
                finding.seed.map_or(String::new(), |seed| format!(" (again: --seed {seed} --one)"));
            writeln!(f, "FOUND {}: {}{again}", finding.rule, finding.detail)?;
        }
        if self.findings.len() > SHOWN {
            writeln!(f, "and {} more", self.findings.len() - SHOWN)?;
        }
        write!(
            f,
            "{} faults ({} played again after the machine stood still), {} events seen by clients, findings: {}",
            self.faults(),
            self.again,
            self.events,
            self.findings.len()
        )
    }
}
