//! A value that must not be seen.
//!
//! Tokens and keys travel as `Secret`, so that a log line or a serialised struct cannot carry one by accident.
//!
//! **Invariant**: no `Display`, no `Serialize`; `Debug` prints a placeholder; comparing takes the same time for every value
//! of one length.

use std::fmt;

use subtle::ConstantTimeEq as _;

#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, at the one place where it is put on a wire.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `offered` is this secret, without telling by time how much of it was right.
    pub fn matches(&self, offered: &str) -> bool {
        self.0.as_bytes().ct_eq(offered.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Secret::new("sk-very-secret")), "<redacted>");
    }

    #[test]
    fn only_the_same_value_matches() {
        let secret = Secret::new("abc");
        assert!(secret.matches("abc"));
        for wrong in ["", "ab", "abd", "abcd", "ABC"] {
            assert!(!secret.matches(wrong), "{wrong:?}");
        }
    }
}
