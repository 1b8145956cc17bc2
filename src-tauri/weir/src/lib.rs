//! Weir: one localhost Responses endpoint over a pool of the user's own accounts.
//!
//! The life of a turn, from `main.rs` in five jumps: `main` runs [`cli`], whose `serve` starts an [`app`], which opens the
//! [`endpoint`]; `endpoint::responses` checks a request and derives its caller; `turn::drive` owns it from there to the last
//! byte. On its way it decides the dialect (`turn::decide`), asks [`accounts`] who pays and [`upstream`] for the stream, and tells
//! [`store`] what happened.
//!
//! **Invariant**: a module uses only the levels below it: (accounts, upstream, store, practice) < turn < endpoint <
//! (api, app) < cli. `tests/tidy.rs` holds it to that.

pub mod accounts;
pub mod api;
pub mod app;
pub mod cli;
pub mod endpoint;
pub mod practice;
pub mod store;
pub mod turn;
pub mod upstream;
