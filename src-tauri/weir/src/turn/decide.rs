//! The decisions of a turn that are made once: its dialect, and what an account must carry to serve it.
//!
//! **Invariant**: only the user's mode and the accounts' catalogs are read here; of the request, its model's name.

use weir_core::dialect::mode::{Decision, Dialect, ServingMode, Source, resolve};

use super::{Shared, Trial};

/// Resolves the dialect of a turn of `model`.
pub fn decide(shared: &Shared, model: &str) -> Decision {
    resolution(shared, model, shared.modes.of(model))
}

/// What `mode` would resolve to for `model` at this moment.
pub fn resolution(shared: &Shared, model: &str, mode: ServingMode) -> Decision {
    let flags = shared.pool.lite_flags(model);
    resolve(mode, flags.iter().map(Option::as_ref))
}

/// A probe's dialect, which stands like an override.
pub fn of_trial(trial: &Trial) -> Decision {
    let mode = match trial.dialect {
        Dialect::Lite => ServingMode::Lite,
        Dialect::Full => ServingMode::Full,
    };
    Decision {
        mode,
        dialect: trial.dialect,
        source: Source::Override,
        reason: "a probe of the serving mode".into(),
    }
}

/// The dialect that an account's catalog must carry. In auto it is the resolved one; an override is the user's word
/// against the catalog's, so any account that lists the model may serve.
pub fn carried(decision: &Decision) -> Option<Dialect> {
    match decision.source {
        Source::Catalog => Some(decision.dialect),
        Source::Override => None,
    }
}
