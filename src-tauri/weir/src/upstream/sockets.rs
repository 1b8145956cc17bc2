//! The WebSockets that stay open between the turns of a conversation.
//!
//! A backend that still holds a conversation's last response needs only what is new, and finds its cache warm; it holds it
//! per connection. So there is one connection per account, conversation and [lane](Key), used for one turn at a time. A turn
//! [claims](Sockets::claim) its place, and gives the connection back with what the backend has seen on it. Between two turns
//! a task keeps the connection ([`keep`]); how often one may be opened is the business of a [gate](pace).
//!
//! **Invariant**: nothing here makes a turn wait for another: who gets no place at once is told why, and goes another way.

pub(super) mod keep;
pub(super) mod pace;
pub(super) mod wire;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use weir_core::dialect::continuation::Seen;

use crate::accounts::account::AccountId;
use keep::Parked;
use pace::{Gate, NotNow};
use wire::Wire;

/// The most connections that one account has at a time. Backends refuse accounts that hold many more.
const MOST: usize = 40;

/// Which turns share a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub account: AccountId,
    pub conversation: String,
    /// Requests of one conversation that can never continue each other, such as the one that asks for a title, do not push
    /// each other off the connection: they differ in this number.
    pub lane: u64,
}

#[derive(Debug, Default)]
pub struct Sockets(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    slots: HashMap<Key, Slot>,
    gates: HashMap<AccountId, Gate>,
    parked: u64,
}

#[derive(Debug)]
enum Slot {
    /// A turn is on it.
    Busy,
    Parked {
        /// Tells this connection from a later one of the same key.
        number: u64,
        parked: Parked,
    },
}

/// The right to use a key's connection, until it is given back or dropped.
#[derive(Debug)]
pub(super) struct Place {
    sockets: Arc<Sockets>,
    key: Key,
    given_back: bool,
}

impl Sockets {
    /// The place of `key`, with the connection that waits there.
    pub(super) fn claim(self: &Arc<Self>, key: &Key) -> Result<(Place, Option<Parked>), NotNow> {
        let mut state = self.lock();
        let waiting = match state.slots.get(key) {
            Some(Slot::Busy) => return Err(NotNow::Busy),
            Some(Slot::Parked { .. }) => true,
            None => false,
        };
        if !waiting {
            state.make_room(&key.account)?;
        }
        let parked = match state.slots.insert(key.clone(), Slot::Busy) {
            Some(Slot::Parked { parked, .. }) => Some(parked),
            _ => None,
        };
        drop(state);
        Ok((Place { sockets: Arc::clone(self), key: key.clone(), given_back: false }, parked))
    }

    /// Asks the account's gate, or tells it something.
    pub(super) fn gate<T>(&self, account: &str, ask: impl FnOnce(&mut Gate, Instant) -> T) -> T {
        let now = Instant::now();
        let mut state = self.lock();
        ask(state.gates.entry(account.to_owned()).or_insert_with(|| Gate::new(now)), now)
    }

    /// Says goodbye on every connection that waits.
    pub(super) async fn close(&self) {
        let is_waiting = |_: &Key, slot: &mut Slot| matches!(slot, Slot::Parked { .. });
        let waiting: Vec<_> = self.lock().slots.extract_if(is_waiting).collect();
        let goodbyes = waiting.into_iter().filter_map(|(_, slot)| match slot {
            Slot::Parked { parked, .. } => Some(parked.close()),
            Slot::Busy => None,
        });
        let said = futures_util::future::join_all(goodbyes);
        drop(tokio::time::timeout(Duration::from_secs(1), said).await);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a connection that ended while it waited.
    fn ended(&self, key: &Key, number: u64) {
        let mut state = self.lock();
        if matches!(state.slots.get(key), Some(Slot::Parked { number: n, .. }) if *n == number) {
            state.slots.remove(key);
        }
    }
}

impl State {
    /// Closes the connection that has waited longest where the account has as many as it may.
    fn make_room(&mut self, account: &str) -> Result<(), NotNow> {
        let of_account = self.slots.iter().filter(|(key, _)| key.account == account);
        if of_account.clone().count() < MOST {
            return Ok(());
        }
        let waiting = of_account.filter_map(|(key, slot)| match slot {
            Slot::Parked { number, .. } => Some((*number, key)),
            Slot::Busy => None,
        });
        let oldest = waiting.min_by_key(|(number, _)| *number).ok_or(NotNow::Full)?.1.clone();
        self.slots.remove(&oldest);
        Ok(())
    }
}

impl Place {
    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    pub(super) fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    /// Leaves the connection for the next turn. Without anything `seen` that one sends everything.
    pub(super) fn park(mut self, wire: Wire, seen: Option<Seen>) {
        self.given_back = true;
        let mut state = self.sockets.lock();
        state.parked += 1;
        let number = state.parked;
        let (sockets, key) = (Arc::downgrade(&self.sockets), self.key.clone());
        let parked = Parked::new(wire, seen, move || {
            if let Some(sockets) = sockets.upgrade() {
                sockets.ended(&key, number);
            }
        });
        state.slots.insert(self.key.clone(), Slot::Parked { number, parked });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.given_back {
            self.sockets.lock().slots.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(conversation: usize) -> Key {
        Key { account: "a".into(), conversation: conversation.to_string(), lane: 0 }
    }

    #[tokio::test]
    async fn a_conversation_has_one_place_and_gets_it_back() {
        let sockets = Arc::new(Sockets::default());
        let (place, parked) = sockets.claim(&key(1)).expect("free");
        assert!(parked.is_none());
        assert_eq!(sockets.claim(&key(1)).err(), Some(NotNow::Busy));
        let other = Key { lane: 1, ..key(1) };
        drop(sockets.claim(&other).expect("another lane is another place"));
        drop(place);
        assert!(sockets.claim(&key(1)).is_ok());
    }

    #[tokio::test]
    async fn what_waits_longest_makes_room_and_turns_under_way_do_not() {
        let sockets = Arc::new(Sockets::default());
        let mut places: Vec<_> =
            (0..MOST).map(|n| sockets.claim(&key(n)).expect("room").0).collect();
        assert_eq!(sockets.claim(&key(MOST)).err(), Some(NotNow::Full));
        for place in places.drain(1..3).rev() {
            place.park(wire::tests::connected().await.0, None);
        }
        let (place, _) = sockets.claim(&key(MOST)).expect("room was made");
        drop(place);
        // The second was given back first.
        assert!(sockets.claim(&key(2)).expect("free").1.is_none());
        assert!(sockets.claim(&key(1)).expect("waits").1.is_some());
    }

    #[tokio::test]
    async fn a_connection_that_ends_while_it_waits_is_forgotten() {
        let sockets = Arc::new(Sockets::default());
        let (place, _) = sockets.claim(&key(1)).expect("free");
        let (ours, theirs) = wire::tests::connected().await;
        place.park(ours, None);
        drop(theirs);
        while !sockets.lock().slots.is_empty() {
            tokio::task::yield_now().await;
        }
    }
}
