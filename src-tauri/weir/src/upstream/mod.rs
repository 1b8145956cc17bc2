//! The one outgoing turn: a request to the backend and the events that come back.
//!
//! [`open`] sends a prepared body with one account's token and returns either the stream or a [`failure::Failure`], which says
//! whose fault it is and whether another account may be asked. [`catalog`] reads an account's model list.
//!
//! **Invariant**: this module reports; it never decides to try again.

pub mod arrival;
pub mod catalog;
mod classify;
pub mod failure;
pub mod headers;
mod held;
pub mod open;
pub mod sockets;
pub mod stream;
mod unpack;
pub mod usage;

#[cfg(test)]
mod framing;
