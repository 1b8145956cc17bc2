//! A map that forgets its oldest entry first.
//!
//! What Weir remembers between the turns of a conversation only ever saves work, so it may be forgotten, and must not grow.
//!
//! **Invariant**: never more entries than it was made for.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub struct Memory<V> {
    most: usize,
    entries: Mutex<(HashMap<String, V>, VecDeque<String>)>,
}

impl<V: Clone> Memory<V> {
    pub fn of(most: usize) -> Self {
        Self { most, entries: Mutex::default() }
    }

    pub fn get(&self, name: &str) -> Option<V> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).0.get(name).cloned()
    }

    pub fn keep(&self, name: String, value: V) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, order) = &mut *entries;
        if known.insert(name.clone(), value).is_none() {
            order.push_back(name);
        }
        if order.len() > self.most
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first_and_a_newer_value_replaces() {
        let memory = Memory::of(2);
        for (name, value) in [("a", 1), ("b", 2), ("a", 3), ("c", 4)] {
            memory.keep(name.into(), value);
        }
        assert_eq!((memory.get("a"), memory.get("b"), memory.get("c")), (None, Some(2), Some(4)));
    }
}
