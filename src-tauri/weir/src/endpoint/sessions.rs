//! Keys of open pages.
//!
//! `weir open` makes a ticket that is good once and for a minute; the page exchanges it for a key of its own, which is good while
//! the program runs. So the control key never enters a browser.
//!
//! **Invariant**: a ticket opens one session at the most; both are forgotten when the program ends.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::accounts::secret::Secret;

const TICKET_LIFE: Duration = Duration::from_secs(60);

/// Pages that may be open at once; the oldest must open anew.
const SESSIONS: usize = 32;

#[derive(Debug, Default)]
pub struct Sessions {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tickets: Vec<(Secret, Instant)>,
    keys: Vec<Secret>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new ticket.
    pub fn ticket(&self) -> Secret {
        let ticket = random("ticket_");
        let mut state = self.lock();
        state.tickets.retain(|(_, until)| *until > Instant::now());
        state.tickets.push((ticket.clone(), Instant::now() + TICKET_LIFE));
        ticket
    }

    /// Uses a ticket up.
    pub fn enter(&self, offered: &str) -> Option<Secret> {
        let mut state = self.lock();
        let at = state.tickets.iter().position(|(ticket, _)| ticket.matches(offered))?;
        let (_, until) = state.tickets.remove(at);
        if until <= Instant::now() {
            return None;
        }
        Some(add(&mut state))
    }

    /// A session's key without a ticket, for a window of this process.
    pub fn open(&self) -> Secret {
        add(&mut self.lock())
    }

    pub fn knows(&self, offered: &str) -> bool {
        self.lock().keys.iter().any(|key| key.matches(offered))
    }
}

fn add(state: &mut State) -> Secret {
    let key = random("session_");
    if state.keys.len() == SESSIONS {
        state.keys.remove(0);
    }
    state.keys.push(key.clone());
    key
}

fn random(prefix: &str) -> Secret {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    Secret::new(bytes.iter().fold(prefix.to_owned(), |key, byte| format!("{key}{byte:02x}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_ticket_is_good_once_and_for_a_minute() {
        let sessions = Sessions::default();
        let ticket = sessions.ticket();
        let key = sessions.enter(ticket.expose()).expect("good");
        assert!(sessions.knows(key.expose()));
        assert!(sessions.enter(ticket.expose()).is_none(), "used");
        let late = sessions.ticket();
        tokio::time::advance(TICKET_LIFE).await;
        assert!(sessions.enter(late.expose()).is_none(), "late");
        assert!(
            sessions.enter("ticket_").is_none()
                && !sessions.knows("")
                && !sessions.knows(ticket.expose())
        );
    }

    #[test]
    fn the_oldest_page_must_open_anew() {
        let sessions = Sessions::default();
        let first = sessions.open();
        (0..SESSIONS).for_each(|_| drop(sessions.open()));
        assert!(!sessions.knows(first.expose()));
    }
}
