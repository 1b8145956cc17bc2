//! Which dialect a turn is sent in, decided once.
//!
//! **Invariant**: nothing of a request is an argument here; only the user's mode and the catalog decide.

use serde::{Deserialize, Serialize};

/// The user's choice for one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServingMode {
    #[default]
    Auto,
    Lite,
    Full,
}

/// The form in which a turn is sent upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    Lite,
    Full,
}
