//! Weir from the outside: a real server on a free port, raw requests in, raw events out, the practice upstream behind it.
//!
//! One crate, so that one binary is linked. Every test that starts a practice upstream ends by asking it whether any
//! request broke a rule.

#[macro_use]
mod support;

/// Which account pays, and what is known of it.
mod accounts;
/// Requests that cannot become a turn: each says why, and nothing goes upstream.
mod bad_input;
/// What becomes of a turn when its client goes away.
mod cancel;
/// Streams that gateways got wrong, as users reported them.
mod cases;
/// The contract with the page, as types.
mod contract;
/// README and map say what is there.
mod docs;
/// Accounts that refuse, streams that break, backends that say nothing.
mod failover;
/// Host, Origin and the two keys.
mod guard;
/// The built program: start, exit codes, signals, ports.
mod headless;
/// The connection that a conversation keeps: what it saves, and that nobody notices when it is gone.
mod held;
/// What is emitted and booked, and that nothing else is kept.
mod journal;
/// Requests that come again and again.
mod loops;
/// The catalog in both shapes.
mod models;
/// auto, lite and full, and that only the user chooses.
mod modes;
/// What reaches the client, byte for byte.
mod relay;
/// The rules of the house: levels, sizes, first lines.
mod tidy;
/// The event stream of the window.
mod watch;
