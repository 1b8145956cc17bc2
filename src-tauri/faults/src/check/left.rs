//! The process after the faults: what is still there that should not be.
//!
//! **Invariant**: the bounds are generous, so that only what grows with the number of faults exceeds them.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Terms;
use crate::transcript::ProcessSaw;

/// Readers of the database are opened when they are needed and kept.
const MORE_FILES: usize = 12;

/// Turns are over, so nothing is waited for; the program itself gives running turns ten seconds.
const DRAIN: Duration = Duration::from_secs(6);

pub(super) fn check(saw: &ProcessSaw, terms: &Terms, note: &mut impl FnMut(&'static str, String)) {
    let (before, after) = (&saw.before, &saw.after);
    if after.in_flight > 0 {
        note("orphan-turn", format!("{} turns are in flight", after.in_flight));
    }
    if after.sockets > before.sockets + saw.kept.len() {
        note(
            "orphan-socket",
            format!(
                "{} sockets before, {} after, of which {} are kept for conversations",
                before.sockets,
                after.sockets,
                saw.kept.len()
            ),
        );
    }
    // An account has one conversation here, and that one has one lane.
    let accounts: BTreeSet<usize> = saw.kept.iter().copied().collect();
    if accounts.len() < saw.kept.len() {
        note(
            "orphan-socket",
            format!("{} connections are kept for {} conversations", saw.kept.len(), accounts.len()),
        );
    }
    if saw.left_open > 0 {
        note("orphan-socket", format!("{} connections outlived the program", saw.left_open));
    }
    if after.files > before.files + MORE_FILES {
        note("orphan-file", format!("{} files before, {} after", before.files, after.files));
    }
    if after.resident_kib > before.resident_kib + terms.growth_kib {
        note(
            "memory",
            format!("{} KiB before, {} KiB after", before.resident_kib, after.resident_kib),
        );
    }
    if saw.exit != Some(0) {
        note("exit", format!("the program ended with {:?}", saw.exit));
    }
    if saw.drain > DRAIN {
        note(
            "orphan-task",
            format!("ending took {:.1} s, so something was waited for", saw.drain.as_secs_f64()),
        );
    }
    if let Some(line) = saw
        .log
        .lines()
        .find(|line| line.contains("panicked") || line.contains("ended without a head"))
    {
        note("panic", line.to_owned());
    }
}
