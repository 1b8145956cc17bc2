//! Calls that reached their caller without the `functions` namespace the backend gave them.
//!
//! A caller that sent flat tools does not know the namespace, so it is taken off what it gets; when the call comes back in
//! its history, the namespace is put on again so that the history equals what the backend wrote.
//!
//! **Invariant**: bounded; the oldest call is forgotten first, which costs a cache hit and nothing else.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

const REMEMBERED: usize = 16_384;

#[derive(Debug, Default)]
pub struct Namespaces {
    calls: Mutex<(HashSet<String>, VecDeque<String>)>,
}

impl Namespaces {
    pub fn stripped(&self, call_id: &str) -> bool {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).0.contains(call_id)
    }

    pub fn remember(&self, call_id: String) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, order) = &mut *calls;
        if known.insert(call_id.clone()) {
            order.push_back(call_id);
        }
        if order.len() > REMEMBERED
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
    }
}
