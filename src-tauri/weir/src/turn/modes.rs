//! The user's choice per model, in memory and on disk.
//!
//! **Invariant**: a choice is on disk before it is in force, and only [`Modes::set`] changes one.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use weir_core::dialect::mode::ServingMode;

use crate::store::{Store, StoreError};

#[derive(Debug)]
pub struct Modes {
    store: Store,
    chosen: RwLock<BTreeMap<String, ServingMode>>,
}

impl Modes {
    pub fn load(store: Store) -> Result<Self, StoreError> {
        let chosen = RwLock::new(store.modes()?);
        Ok(Self { store, chosen })
    }

    /// The mode in force for a model; auto where the user chose nothing.
    pub fn of(&self, model: &str) -> ServingMode {
        let chosen = self.chosen.read().unwrap_or_else(PoisonError::into_inner);
        chosen.get(model).copied().unwrap_or_default()
    }

    /// Every choice other than auto.
    pub fn all(&self) -> BTreeMap<String, ServingMode> {
        self.chosen.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes a choice; blocking. In force from the next turn on.
    pub fn set(&self, model: &str, mode: ServingMode) -> Result<(), StoreError> {
        let mut chosen = self.chosen.write().unwrap_or_else(PoisonError::into_inner);
        self.store.set_mode(model, mode)?;
        match mode {
            ServingMode::Auto => chosen.remove(model),
            _ => chosen.insert(model.to_owned(), mode),
        };
        Ok(())
    }
}
