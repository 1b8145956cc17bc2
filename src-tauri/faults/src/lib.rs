//! Drives the built `weir` between a fake backend and a fake client, and has an independent checker judge what it did.
//!
//! A fault is made from a seed ([`plan`]) or from a recorded case ([`case`]), played from both ends ([`backend`], [`client`]), and
//! judged from what the ends saw and what the database holds ([`check`]). [`sabotage`] proves that the checker sees bugs.
//!
//! **Invariant**: nothing of Weir is linked here; the program is known by its arguments, its sockets and its files.

pub mod backend;
pub mod case;
pub mod chance;
pub mod check;
pub mod client;
pub mod database;
pub mod fault;
pub mod frames;
pub mod plan;
pub mod program;
pub mod run;
pub mod sabotage;
pub mod speech;
pub mod summary;
pub mod transcript;
pub mod wire;

/// Shows a line of the run.
#[allow(clippy::print_stdout, reason = "what a run shows is its purpose")]
pub fn say(line: &str) {
    println!("{line}");
}
