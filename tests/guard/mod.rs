//! Host, Origin and the two keys: who is answered at all.

/// Raw bytes over a connection.
pub(crate) mod wire;
