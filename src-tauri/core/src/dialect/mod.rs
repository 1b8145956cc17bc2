//! The Responses protocol as pure functions.
//!
//! A request is an open-world object ([`body`]), a turn's form is decided once ([`mode`]), and the request is put into that
//! form ([`prepare`]). What comes back is read event by event ([`event`]) without building a tree.
//!
//! **Invariant**: whatever is not known here passes through unchanged, in both directions.

pub mod body;
pub mod continuation;
pub mod event;
pub mod item;
pub mod mode;
pub mod object;
mod pairs;
pub mod prepare;
pub mod rebuild;
pub mod refusal;
pub mod wire;

mod equality;
mod failure;
pub mod frame;
mod full;
mod lite;
mod namespace;
mod normalise;
mod raw;
mod same;
mod scrub;
mod tools;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod properties;
