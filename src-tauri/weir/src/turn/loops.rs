//! Stops a client that sends the same request again and again, faster than a person could.
//!
//! A client that does not understand how its turn ended may repeat it without bound and without a pause, and each time costs
//! quota. Only what comes within moments of the end of an identical turn counts, one re-send per end, so parallel turns with
//! one prompt, a person who presses the key again, and a client that waits as it was told are never stopped. Clients that
//! retry with a bound of their own (five times, both that are known) come to that bound first.
//!
//! **Invariant**: no clock and no waiting; what is remembered is a few numbers per end, forgotten within moments.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use weir_core::dialect::body::Body;
use weir_core::dialect::refusal::Refusal;

use super::caller::Caller;

/// How many requests may have ends that are remembered at once. More than that within moments is no single client's loop.
const MOST: usize = 4_096;

/// Fields that differ from one request to the next and mean nothing to the model.
const VOLATILE: [&str; 6] = [
    "client_metadata",
    "metadata",
    "prompt_cache_key",
    "safety_identifier",
    "stream_options",
    "user",
];

/// When a re-send counts, and how many are let through.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// A request that comes later than this after the end of an identical one is a new attempt. A person needs longer; OpenCode,
    /// in its loop, needs half of it.
    pub moment: Duration,
    /// So many re-sends in a row are let through.
    pub few: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { moment: Duration::from_secs(2), few: 5 }
    }
}

/// What is asked, as far as it matters whether it was asked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Asked {
    /// The conversation and what it says up to the last word that is not the model's. A client that keeps the piece of an
    /// answer that broke off asks the same again.
    again: u64,
    /// The same with all its words.
    exact: u64,
}

/// How a turn ended, as far as it matters whether the client may ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With an answer that its client should understand.
    Well,
    /// Otherwise, after the backend had begun to work.
    Badly,
    /// Nothing was spent, or the client was told when to ask again: asking again is no loop.
    Free,
}

/// A turn that was let through. Give it back to [`Loops::end`].
#[derive(Debug)]
pub struct Pass {
    asked: Asked,
    /// So many identical ones ended before it, each within moments of the next.
    nth: u32,
    named: bool,
}

#[derive(Debug)]
struct End {
    at: Instant,
    exact: u64,
    nth: u32,
    well: bool,
}

/// The ends of the last moments.
#[derive(Debug)]
pub struct Loops {
    bounds: Bounds,
    state: RandomState,
    ends: Mutex<HashMap<u64, Vec<End>>>,
}

impl Loops {
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, state: RandomState::new(), ends: Mutex::default() }
    }

    /// Lets a request through, or says that it is one of a loop.
    pub fn begin(&self, caller: &Caller, body: &Body, now: Instant) -> Result<Pass, Refusal> {
        let asked = self.asked(caller, body);
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = ends.get_mut(&asked.again).map_or(0, |ended| {
            ended.retain(|end| now.saturating_duration_since(end.at) < self.bounds.moment);
            // Of several that ended the one with the shortest row is followed: two clients are not taken for one.
            let followed = ended
                .iter()
                .enumerate()
                .filter(|(_, end)| !end.well || end.exact == asked.exact)
                .min_by_key(|(_, end)| end.nth)
                .map(|(place, _)| place);
            followed.map_or(0, |place| ended.swap_remove(place).nth + 1)
        });
        if nth > self.bounds.few {
            // It stays refused for as long as it goes on at this pace.
            let end = End { at: now, exact: asked.exact, nth, well: false };
            ends.entry(asked.again).or_default().push(end);
            return Err(stopped(nth));
        }
        Ok(Pass { asked, nth, named: caller.named })
    }

    /// Takes note of a turn's end. A client that did not name its conversation may ask the same as often as it likes while it
    /// is answered, as a program does that wants many answers.
    pub fn end(&self, pass: Pass, ended: Ended, now: Instant) {
        let well = match ended {
            Ended::Free => return,
            Ended::Well if !pass.named => return,
            Ended::Well => true,
            Ended::Badly => false,
        };
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if ends.len() >= MOST {
            let fresh = |end: &End| now.saturating_duration_since(end.at) < self.bounds.moment;
            ends.retain(|_, ended| ended.iter().any(fresh));
            if ends.len() >= MOST {
                return;
            }
        }
        let end = End { at: now, exact: pass.asked.exact, nth: pass.nth, well };
        ends.entry(pass.asked.again).or_default().push(end);
    }

    fn asked(&self, caller: &Caller, body: &Body) -> Asked {
        let mut hash = self.state.build_hasher();
        caller.client.hash(&mut hash);
        caller.conversation.hash(&mut hash);
        for name in body.names().filter(|name| !VOLATILE.contains(name)) {
            name.hash(&mut hash);
            body.get(name).map(|value| value.get()).hash(&mut hash);
        }
        let items = body.items();
        let news = items.iter().rposition(|item| !item.is_said_by_model()).map_or(0, |at| at + 1);
        for item in &items[..news] {
            item.raw().get().hash(&mut hash);
        }
        let again = hash.finish();
        for item in &items[news..] {
            item.raw().get().hash(&mut hash);
        }
        Asked { again, exact: hash.finish() }
    }
}

/// What ends the loop: a fault of the request, which no client sends again by itself.
fn stopped(times: u32) -> Refusal {
    let times = if times > 99 { "very many".to_owned() } else { times.to_string() };
    Refusal::of_request(
        "request_loop",
        format!(
            "Weir stopped a loop: this very request came {times} times again, each time within moments of its end. Wait a little or change the request, then send it; `weir turns` shows how the earlier ones ended."
        ),
    )
}

#[cfg(test)]
mod tests;
