//! Which dialect a turn is sent in, decided once.
//!
//! **Invariant**: nothing of a request is an argument here; only the user's mode and the catalog decide.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The user's choice for one model.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
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

/// What a decision rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The mode was auto: the catalog of the accounts decided.
    Catalog,
    /// The user decided.
    Override,
}

/// A turn's dialect, frozen for as long as the turn lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    pub mode: ServingMode,
    pub dialect: Dialect,
    pub source: Source,
    /// One sentence for people: why this dialect.
    pub reason: String,
}

/// What was typed is no mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMode(pub String);

impl fmt::Display for UnknownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no serving mode; use auto, lite or full", self.0)
    }
}

impl std::error::Error for UnknownMode {}

impl FromStr for ServingMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        match text {
            "auto" => Ok(Self::Auto),
            "lite" => Ok(Self::Lite),
            "full" => Ok(Self::Full),
            other => Err(UnknownMode(other.to_owned())),
        }
    }
}

impl fmt::Display for ServingMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Lite => "lite",
            Self::Full => "full",
        })
    }
}

/// What was read is no dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDialect(pub String);

impl fmt::Display for UnknownDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no dialect; there are lite and full", self.0)
    }
}

impl std::error::Error for UnknownDialect {}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        match text {
            "lite" => Ok(Self::Lite),
            "full" => Ok(Self::Full),
            other => Err(UnknownDialect(other.to_owned())),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Lite => "lite",
            Self::Full => "full",
        })
    }
}

/// Resolves a model's mode into the dialect of one turn.
///
/// `catalog` has, for each account that may serve the model, the value of `use_responses_lite` in its entry (None: the
/// field is absent). Only the literal `true` of any of them means Lite.
pub fn resolve<'a>(
    mode: ServingMode,
    catalog: impl IntoIterator<Item = Option<&'a Value>>,
) -> Decision {
    let (dialect, source, reason) = match mode {
        ServingMode::Lite => {
            (Dialect::Lite, Source::Override, "lite: set by the user for this model")
        }
        ServingMode::Full => {
            (Dialect::Full, Source::Override, "full: set by the user for this model")
        }
        ServingMode::Auto => {
            let mut entries = catalog.into_iter().peekable();
            if entries.peek().is_none() {
                (
                    Dialect::Full,
                    Source::Catalog,
                    "auto: no account's catalog lists this model, and full is the default",
                )
            } else if entries.any(|entry| matches!(entry, Some(Value::Bool(true)))) {
                (
                    Dialect::Lite,
                    Source::Catalog,
                    "auto: the catalog says use_responses_lite for this model",
                )
            } else {
                (
                    Dialect::Full,
                    Source::Catalog,
                    "auto: the catalog does not say use_responses_lite for this model",
                )
            }
        }
    };
    Decision { mode, dialect, source, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_read_and_print_the_same() {
        for mode in [ServingMode::Auto, ServingMode::Lite, ServingMode::Full] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).expect("serialises"), json!(mode.to_string()));
        }
        for dialect in [Dialect::Lite, Dialect::Full] {
            assert_eq!(dialect.to_string().parse(), Ok(dialect));
            assert_eq!(
                serde_json::to_value(dialect).expect("serialises"),
                json!(dialect.to_string())
            );
        }
        let error = "Lite".parse::<ServingMode>().expect_err("names are lowercase").to_string();
        assert_eq!(error, "`Lite` is no serving mode; use auto, lite or full");
        assert_eq!(format!("{:<6}|", ServingMode::Full), "full  |");
    }

    #[test]
    fn auto_follows_the_literal_true_of_any_account() {
        let (yes, no) = (json!(true), json!(false));
        let odd = [json!("true"), json!(1), json!(null), json!({}), json!([true])];
        let cases: Vec<(Vec<Option<&Value>>, Dialect)> = vec![
            (vec![], Dialect::Full),
            (vec![None], Dialect::Full),
            (vec![Some(&no)], Dialect::Full),
            (vec![Some(&yes)], Dialect::Lite),
            (vec![None, Some(&no), Some(&yes)], Dialect::Lite),
            (odd.iter().map(Some).collect(), Dialect::Full),
        ];
        for (catalog, expected) in cases {
            let decision = resolve(ServingMode::Auto, catalog.clone());
            assert_eq!(
                (decision.dialect, decision.source),
                (expected, Source::Catalog),
                "{catalog:?}"
            );
            assert!(decision.reason.starts_with("auto: "));
        }
    }

    #[test]
    fn the_user_beats_the_catalog() {
        let yes = json!(true);
        let full = resolve(ServingMode::Full, [Some(&yes)]);
        assert_eq!((full.dialect, full.source), (Dialect::Full, Source::Override));
        let lite = resolve(ServingMode::Lite, [None]);
        assert_eq!((lite.dialect, lite.source), (Dialect::Lite, Source::Override));
        assert_eq!(
            serde_json::to_value(lite).expect("serialises"),
            json!({"mode": "lite", "dialect": "lite", "source": "override", "reason": "lite: set by the user for this model"})
        );
    }
}
