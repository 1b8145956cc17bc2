//! The independent checker: reads what both ends saw and what the database holds, and says what is wrong.
//!
//! It knows the contract and no line of Weir's code. [`stream`] compares what the client saw with what the backend said,
//! [`sent`] how often a request was sent and why, [`asked`] what was sent of it, [`rows`] and [`road`] the database with both,
//! [`left`] the process afterwards.
//!
//! **Invariant**: pure; the same evidence gives the same findings, and evidence of a sound program gives none.

mod asked;
pub mod frames;
pub mod http;
mod left;
mod road;
mod rows;
pub mod said;
mod sent;
pub mod sse;
mod stream;
#[cfg(test)]
mod tests;
mod whole;

use std::time::Duration;

use said::Said;

use crate::transcript::{FaultSaw, ProcessSaw, Rows};

/// One thing that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The fault in which it was; none for what concerns the whole process.
    pub seed: Option<u64>,
    pub rule: &'static str,
    pub detail: String,
}

impl Finding {
    /// A machine that ran neither end for a while looks the same.
    pub fn is_of_time(&self) -> bool {
        ["sent-twice", "lost-event", "hung", "not-cancelled"].contains(&self.rule)
    }
}

/// What the checker must know of how the program was started.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// A backend that says nothing for so long may be left.
    pub silence: Duration,
    /// A client that left must have been noticed after so long.
    pub leaving: Duration,
    /// What the resident memory may have grown by.
    pub growth_kib: u64,
}

/// What is wrong with one fault.
pub fn fault(saw: &FaultSaw, rows: &Rows, terms: &Terms) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut owed = Vec::new();
    for turn in &saw.turns {
        let said: Vec<Said> = turn.attempts.iter().map(Said::of).collect();
        let mut note = |rule, detail: String| {
            let detail = format!("{}: {detail}", turn.mark);
            found.push(Finding { seed: Some(saw.seed), rule, detail });
        };
        stream::check(turn, &said, &mut note);
        whole::check(turn, &said, &mut note);
        sent::check(turn, &said, terms, &mut note);
        asked::check(turn, &mut note);
        rows::check(turn, &said, rows, &mut owed, &mut note);
        road::check(turn, saw.road, rows, &mut note);
    }
    found
}

/// What is wrong with the process and with rows that belong to no turn.
pub fn process(saw: &ProcessSaw, faults: &[FaultSaw], rows: &Rows, terms: &Terms) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut note = |rule, detail| found.push(Finding { seed: None, rule, detail });
    left::check(saw, terms, &mut note);
    rows::strays(faults, rows, &mut note);
    found
}
