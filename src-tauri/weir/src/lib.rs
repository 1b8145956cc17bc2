//! Weir: one localhost Responses endpoint over a pool of the user's own accounts.
//!
//! The life of a turn, from `main.rs` in five jumps: `cli::serve` builds an [`app`], which binds the [`endpoint`];
//! `endpoint::responses` checks a request and derives its caller; [`turn`] owns it from there to the last byte, asking
//! [`accounts`] who pays and [`upstream`] for the stream, and telling [`store`] what happened.
//!
//! **Invariant**: a module uses only the levels below it: (accounts, upstream, store, practice) < turn < endpoint <
//! (api, app) < cli. `tests/tidy.rs` holds it to that.

pub mod practice;
pub mod store;
