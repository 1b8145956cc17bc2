//! Who may pay for a turn, and with which token.
//!
//! An [`account::Account`] is one login. What the backend told about it is kept beside it in the [`pool`]: the models it
//! may use ([`catalog`]), what is left in its windows ([`quota`]), how many turns it carries now. [`choose`] turns that into
//! one answer with a reason, and is pure so that every choice can be replayed.
//!
//! **Invariant**: a token leaves this module only as a [`secret::Secret`], which can neither be printed nor serialised.

pub mod account;
pub mod catalog;
pub mod choose;
pub mod pool;
pub mod quota;
pub mod secret;
