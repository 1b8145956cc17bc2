//! The pure parts of Weir.
//!
//! [`dialect`] is the Responses protocol as functions over bytes: what a request says, in which form it goes to the
//! backend, what an event means. Nothing here opens a socket, reads a clock or waits.
//!
//! **Invariant**: no async, no I/O, no clock; the same input gives the same output.

pub mod dialect;
