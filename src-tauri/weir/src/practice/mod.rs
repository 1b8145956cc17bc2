//! The practice upstream: a loopback server that behaves like the Codex backend, as strict and as awkward.
//!
//! It stands in for the backend on a first run (`weir serve --practice`), in tests (port 0) and in measurements. A turn
//! goes through [`server`] and [`turn`]: who asks ([`caller`]), is it well formed ([`check`]), what does the script
//! say ([`script`], else [`rules`]), which events is that ([`stream`]), and how are they delivered ([`play`]). What
//! arrived and how it ended is kept in [`record`]. Over a WebSocket ([`handshake`], [`socket`]) a frame is first made
//! into a whole request from what the socket holds ([`chain`], [`frames`]), and then judged like any other.
//!
//! It says that it is practice wherever a user can see it, and no model answers here.
//!
//! **Invariant**: it knows the wire constants of the dialect and nothing else of this program, so that what Weir
//! sends is judged by something that does not share Weir's mistakes.
//!
//! # Scenario files
//!
//! A scenario is TOML: the pace, further models, and rules. The first rule whose `when` holds answers; without one
//! the built-in rules do ("three subagents", "Reply with the single word W", "run in parallel: `a` and `b`").
//!
//! ```toml
//! pace = 0.0                        # 1.0 is for people, 0 for tests
//! lite_ok = ["practice-full"]       # this model takes the Lite lane too
//!
//! [[model]]
//! slug = "practice-lite-only"
//! use_responses_lite = true
//! full_ok = false                   # without the marker it is not found
//! accounts = ["practice 2"]         # only this account lists and serves it; absent: all
//!
//! [[rule]]                          # the first account is out, whoever asks
//! when = { account = "practice 1" }
//! reply = { status = 429 }          # 401, 429, 500, 503 without `json` or `html` have the backend's own bodies
//!
//! [[rule]]                          # two refusals, then the rule is used up for this conversation
//! when = { prompt = "flaky" }
//! [[rule.replies]]
//! status = 503
//! [[rule.replies]]
//! text = "half an answer"
//! cut_after_event = 6
//!
//! [[rule]]                          # all in one response in full, one per response in Lite
//! when = { prompt = "look around", tool = "bash" }
//! [rule.reply]
//! say = "I will look."
//! text = "That was all."
//! calls = [
//!   { name = "bash", arguments = { command = "pwd", description = "where" } },
//!   { name = "bash", arguments = { command = "ls", description = "what" } },
//! ]
//!
//! [[rule]]                          # answers once three children of one parent are in flight
//! when = { prompt = "single word" }
//! reply = { text = "alpha", hold_until_in_flight = 3 }
//! ```
//!
//! On a WebSocket:
//!
//! ```toml
//! socket_limit_after = 20           # turns; the next one is told that the socket is too old
//!
//! [[rule]]                          # the first handshake of every conversation is refused
//! when = { nth = 1 }
//! reply = { ws_refuse = 426 }
//!
//! [[rule]]                          # closes in the middle; without `cut_after_event` once everything was said
//! when = { prompt = "maintenance", only = "ws" }
//! reply = { text = "half an answer", cut_after_event = 6, ws_close = 1012 }
//! ```
//!
//! Everything that a `when` or a reply may say is listed at [`script::When`] and [`reply::Reply`].

mod accounts;
mod body;
mod cache;
mod caller;
mod catalog;
mod chain;
mod check;
mod errors;
mod exchange;
mod frames;
mod handshake;
mod http;
mod play;
mod record;
pub mod reply;
mod request;
mod rules;
pub mod script;
mod server;
mod socket;
mod stream;
#[cfg(test)]
mod tests;
mod turn;

use std::path::PathBuf;

pub use record::Received;
pub use script::{Scenario, ScenarioError, Transport};
pub use server::Server;

/// What a practice upstream is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The accounts whose tokens it accepts.
    pub accounts: Vec<PracticeAccount>,
    /// The script; the default has the built-in rules only, at a pace for people.
    pub scenario: Scenario,
    /// A file that gets one JSON line for every request, written when its response ended.
    pub record: Option<PathBuf>,
    /// The loopback port; 0 takes any free one.
    pub port: u16,
    /// The base URL of a backend that stands in for this one, which is then not started.
    pub elsewhere: Option<String>,
}

impl Options {
    /// That many accounts without windows, for a backend elsewhere that tells its own.
    pub fn elsewhere(base_url: String, accounts: usize) -> Self {
        let accounts = (1..=accounts).map(|n| PracticeAccount::numbered(n, Vec::new())).collect();
        Self { accounts, elsewhere: Some(base_url), ..Self::default() }
    }
}

/// One account of the practice upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct PracticeAccount {
    /// What records and `when.account` call it.
    pub name: String,
    /// Must arrive as `chatgpt-account-id`.
    pub account_id: String,
    /// Must arrive as the bearer.
    pub token: String,
    /// What the backend calls the plan.
    pub plan: String,
    /// At most two are told in headers, in this order; none is a metered account without windows.
    pub windows: Vec<PracticeWindow>,
}

impl PracticeAccount {
    fn numbered(n: usize, windows: Vec<PracticeWindow>) -> Self {
        Self {
            name: format!("practice {n}"),
            account_id: format!("practice-account-{n}"),
            token: format!("practice-token-{n}"),
            plan: "practice".to_owned(),
            windows,
        }
    }
}

/// One quota window of a practice account when the server starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PracticeWindow {
    /// The window's length in minutes.
    pub minutes: u64,
    /// What is already used, in percent.
    pub used_percent: f64,
    /// Seconds until it starts anew.
    pub resets_in_s: i64,
    /// Percent that each accepted turn uses.
    pub step: f64,
}

impl Default for Options {
    /// Three accounts, the built-in rules, no record, any port.
    fn default() -> Self {
        let window = |minutes, used_percent, resets_in_s, step| PracticeWindow {
            minutes,
            used_percent,
            resets_in_s,
            step,
        };
        // The second has its weekly window in the first slot and an empty second one, as the backend does at times.
        let windows = [
            vec![window(300, 12.0, 9_000, 0.5), window(10_080, 31.0, 320_000, 0.1)],
            vec![window(10_080, 8.0, 500_000, 0.1)],
            vec![window(300, 47.0, 4_000, 0.5), window(10_080, 55.0, 200_000, 0.1)],
        ];
        let accounts =
            (1..).zip(windows).map(|(n, windows)| PracticeAccount::numbered(n, windows)).collect();
        Self { accounts, scenario: Scenario::default(), record: None, port: 0, elsewhere: None }
    }
}
