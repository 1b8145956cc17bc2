//! The turns as they are now, for whoever watches.
//!
//! Every change of a turn gets a number. A watcher keeps the last number it has seen and asks for what changed since, so a
//! burst of changes costs it one look, and nobody who watches can slow a turn down.
//!
//! **Invariant**: the store is the record; what is kept here may be forgotten, and is bounded.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::store::{CallRow, TurnRow};

/// How many turns are kept for watchers, the newest.
const KEPT: usize = 200;

/// A turn with its calls in emitted order.
#[derive(Clone, Debug)]
pub struct LiveTurn {
    pub row: TurnRow,
    pub calls: Vec<CallRow>,
}

#[derive(Debug)]
pub struct Live {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    number: u64,
    /// Oldest first, each with the number of its last change.
    turns: VecDeque<(u64, LiveTurn)>,
}

impl Live {
    /// Starts with turns that the store remembers, newest first.
    pub fn new(remembered: impl IntoIterator<Item = LiveTurn>) -> Self {
        let mut turns: VecDeque<_> =
            remembered.into_iter().take(KEPT).map(|turn| (0, turn)).collect();
        turns.make_contiguous().reverse();
        Self { state: Mutex::new(State { number: 0, turns }), changed: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something that is shown has changed.
    pub fn touch(&self) {
        self.change(|_| ());
    }

    /// Numbers a change, makes it, and wakes whoever watches.
    fn change(&self, make: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        state.number += 1;
        make(&mut state);
        let number = state.number;
        drop(state);
        self.changed.send_replace(number);
    }

    /// A turn is as this row says.
    pub fn turn(&self, row: &TurnRow) {
        self.change(|state| {
            let number = state.number;
            match state.turns.iter_mut().rev().find(|(_, turn)| turn.row.id == row.id) {
                Some((changed, turn)) => {
                    *changed = number;
                    turn.row.clone_from(row);
                }
                // A turn that ended and is not kept is in the store.
                None if row.outcome.is_some() => return,
                None => state
                    .turns
                    .push_back((number, LiveTurn { row: row.clone(), calls: Vec::new() })),
            }
            if state.turns.len() > KEPT {
                // A turn that runs stays, however many short ones pass it.
                let ended = state.turns.iter().position(|(_, turn)| turn.row.outcome.is_some());
                state.turns.remove(ended.unwrap_or(0));
            }
        });
    }

    pub fn emitted(&self, turn_id: &str, call: CallRow) {
        self.change(|state| {
            let number = state.number;
            if let Some((changed, turn)) =
                state.turns.iter_mut().rev().find(|(_, turn)| turn.row.id == turn_id)
            {
                *changed = number;
                turn.calls.push(call);
            }
        });
    }

    /// The output of a call came back; the latest call of that id in the conversation is meant, as in the store.
    pub fn booked(&self, conversation: &str, call_id: &str, at: i64, by_turn: &str) {
        self.change(|state| {
            let number = state.number;
            let of_conversation = state
                .turns
                .iter_mut()
                .rev()
                .filter(|(_, turn)| turn.row.conversation == conversation);
            for (changed, turn) in of_conversation {
                let position = turn.calls.iter().filter(|call| call.booked_at.is_some()).count();
                let Some(call) = turn.calls.iter_mut().find(|call| call.call_id == call_id) else {
                    continue;
                };
                if call.booked_at.is_none() {
                    call.booked_at = Some(at);
                    call.booked_position = u32::try_from(position).ok();
                    call.booked_by = Some(by_turn.to_owned());
                    *changed = number;
                }
                return;
            }
        });
    }

    /// The number of the latest change, and the turns that changed after `seen`, oldest first.
    pub fn since(&self, seen: u64) -> (u64, Vec<LiveTurn>) {
        let state = self.lock();
        let changed = state.turns.iter().filter(|(number, _)| *number > seen);
        (state.number, changed.map(|(_, turn)| turn.clone()).collect())
    }

    /// Every turn that is kept, oldest first, with the number of the latest change.
    pub fn all(&self) -> (u64, Vec<LiveTurn>) {
        let state = self.lock();
        (state.number, state.turns.iter().map(|(_, turn)| turn.clone()).collect())
    }

    /// Resolves when the number is another than the one last seen by this receiver.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> TurnRow {
        TurnRow { conversation: "c".into(), ..TurnRow::begun(id.into(), 1) }
    }

    fn call(id: &str) -> CallRow {
        CallRow {
            index: 0,
            call_id: id.into(),
            tool: "task".into(),
            kind: "function_call".into(),
            emitted_at: 2,
            booked_at: None,
            booked_position: None,
            booked_by: None,
        }
    }

    #[test]
    fn a_watcher_gets_what_changed_since_it_looked_and_no_more() {
        let live = Live::new([]);
        live.turn(&row("a"));
        live.turn(&row("b"));
        let (seen, turns) = live.since(0);
        assert_eq!(turns.len(), 2);
        live.emitted("a", call("x"));
        let (_, turns) = live.since(seen);
        assert_eq!(turns.iter().map(|turn| turn.row.id.as_str()).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn a_burst_wakes_a_watcher_once() {
        let live = Live::new([]);
        let mut watch = live.watch();
        (0..10_000).for_each(|_| live.touch());
        assert!(watch.has_changed().expect("alive"));
        assert_eq!(*watch.borrow_and_update(), 10_000);
        assert!(!watch.has_changed().expect("alive"));
    }

    #[test]
    fn booking_counts_up_within_the_turn_and_happens_once() {
        let live = Live::new([]);
        live.turn(&row("a"));
        ["x", "y"].into_iter().for_each(|id| live.emitted("a", call(id)));
        for id in ["y", "x", "y"] {
            live.booked("c", id, 9, "b");
        }
        let (_, turns) = live.all();
        let positions: Vec<_> = turns[0].calls.iter().map(|call| call.booked_position).collect();
        assert_eq!(positions, [Some(1), Some(0)]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_oldest_goes() {
        let live = Live::new([]);
        live.turn(&row("runs"));
        for n in 0..=KEPT {
            let mut turn = row(&n.to_string());
            live.turn(&turn);
            turn.outcome = Some("completed".into());
            live.turn(&turn);
        }
        let (_, turns) = live.all();
        let ids: Vec<&str> = turns.iter().map(|turn| turn.row.id.as_str()).collect();
        assert_eq!((turns.len(), ids[0], ids[1]), (KEPT, "runs", "2"));
    }
}
