//! All accounts, and what each of them is known to be able to do now.
//!
//! A turn takes a [`Lease`] on the account that pays for it; the lease counts as a turn in flight until it is dropped,
//! however the turn ends. Readings and limits are told to the pool as they arrive.
//!
//! **Invariant**: the lock is held for plain memory work only, never over I/O or an await.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use weir_core::dialect::mode::Dialect;

use super::account::{Account, AccountId};
use super::catalog::{Catalog, ModelEntry};
use super::choose::{Candidate, Fit, Nobody, choose};
use super::quota::{self, Window};

/// How many conversations are remembered with their account; the oldest is forgotten first.
const HOMES: usize = 4096;

/// How long a window is believed that does not say when it resets, in seconds.
const READING_LIFE_S: i64 = 900;

#[derive(Debug, Default)]
pub struct Pool {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    members: Vec<Member>,
    homes: HashMap<String, AccountId>,
    home_order: VecDeque<String>,
}

#[derive(Debug)]
struct Member {
    account: Arc<Account>,
    catalog: Option<Catalog>,
    windows: Vec<Window>,
    /// When a window was last reported, in unix seconds.
    read_at: Option<i64>,
    in_flight: u32,
    blocked_until: Option<i64>,
    /// Not asked before then for a reason other than a limit, in unix seconds.
    resting_until: Option<i64>,
    /// Why it cannot serve at all, in words for the user.
    trouble: Option<String>,
}

/// What a turn asks of the pool.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    pub model: &'a str,
    /// In auto only accounts whose catalog carries this dialect may serve; an override is the user's own risk.
    pub carried: Option<Dialect>,
    pub conversation: &'a str,
    /// Accounts that have refused this turn.
    pub tried: &'a [AccountId],
    /// Only this account may serve.
    pub pin: Option<&'a str>,
}

/// The right to send one turn with one account.
#[derive(Debug)]
pub struct Lease {
    pool: Arc<Pool>,
    pub account: Arc<Account>,
    pub reason: String,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pool.with(&self.account.id, |member| member.in_flight -= 1);
    }
}

/// One account as it is shown.
#[derive(Clone, Debug)]
pub struct AccountView {
    pub id: AccountId,
    pub name: String,
    pub plan: Option<String>,
    pub windows: Vec<Window>,
    pub read_at: Option<i64>,
    pub in_flight: u32,
    pub blocked_until: Option<i64>,
    pub trouble: Option<String>,
}

impl Pool {
    pub fn new(accounts: impl IntoIterator<Item = Account>) -> Arc<Self> {
        let members = accounts.into_iter().map(|account| Member {
            account: Arc::new(account),
            catalog: None,
            windows: Vec::new(),
            read_at: None,
            in_flight: 0,
            blocked_until: None,
            resting_until: None,
            trouble: None,
        });
        let state = State { members: members.collect(), ..State::default() };
        Arc::new(Self { state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change below is a single assignment, so a state left by a panic is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, id: &str, change: impl FnOnce(&mut Member) -> R) -> Option<R> {
        self.lock().members.iter_mut().find(|member| member.account.id == id).map(change)
    }

    pub fn accounts(&self) -> Vec<Arc<Account>> {
        self.lock().members.iter().map(|member| Arc::clone(&member.account)).collect()
    }

    pub fn views(&self) -> Vec<AccountView> {
        let state = self.lock();
        let view = |member: &Member| AccountView {
            id: member.account.id.clone(),
            name: member.account.name.clone(),
            plan: member.account.plan.clone(),
            windows: member.windows.clone(),
            read_at: member.read_at,
            in_flight: member.in_flight,
            blocked_until: member.blocked_until,
            trouble: member.trouble.clone(),
        };
        state.members.iter().map(view).collect()
    }

    /// Chooses an account for a turn and counts the turn as in flight; `now` in unix seconds.
    pub fn lease(self: &Arc<Self>, ask: &Ask<'_>, now: i64) -> Result<Lease, Nobody> {
        let mut state = self.lock();
        let candidates: Vec<Candidate> = state
            .members
            .iter()
            .filter(|member| ask.pin.is_none_or(|pin| member.account.id == pin))
            .map(|member| member.candidate(ask, now))
            .collect();
        let home = state.homes.get(ask.conversation).map(String::as_str);
        let choice = choose(&candidates, home, now)?;
        if ask.pin.is_none() {
            state.settle(ask.conversation, &choice.id);
        }
        let member = state
            .members
            .iter_mut()
            .find(|member| member.account.id == choice.id)
            .expect("the choice is one of the members");
        member.in_flight += 1;
        let account = Arc::clone(&member.account);
        drop(state);
        Ok(Lease { pool: Arc::clone(self), account, reason: choice.reason })
    }

    pub fn set_catalog(&self, id: &str, catalog: Catalog) {
        self.with(id, |member| {
            member.catalog = Some(catalog);
            member.trouble = None;
        });
    }

    pub fn set_trouble(&self, id: &str, trouble: impl Into<String>) {
        self.with(id, |member| member.trouble = Some(trouble.into()));
    }

    /// Whether no window of the account was ever reported.
    pub fn windows_unknown(&self, id: &str) -> bool {
        self.with(id, |member| member.read_at.is_none()).unwrap_or(false)
    }

    pub fn catalog_etag(&self, id: &str) -> Option<String> {
        self.with(id, |member| member.catalog.as_ref().and_then(|catalog| catalog.etag.clone()))?
    }

    /// Accounts whose catalog has not been read yet.
    pub fn without_catalog(&self) -> Vec<Arc<Account>> {
        let state = self.lock();
        let missing = state.members.iter().filter(|member| member.catalog.is_none());
        missing.map(|member| Arc::clone(&member.account)).collect()
    }

    /// Takes a reading of an account's windows; `now` in unix seconds.
    pub fn observe(&self, id: &str, windows: &[Window], now: i64) {
        if windows.is_empty() {
            return;
        }
        self.with(id, |member| {
            quota::merge(&mut member.windows, windows);
            member.read_at = Some(now);
        });
    }

    /// A limit stands until `until`, in unix seconds.
    pub fn block(&self, id: &str, until: i64) {
        self.with(id, |member| {
            member.blocked_until = Some(member.blocked_until.map_or(until, |old| old.max(until)));
        });
    }

    /// The account is left alone until `until`, in unix seconds, for a reason other than a limit.
    pub fn rest(&self, id: &str, until: i64, trouble: Option<String>) {
        self.with(id, |member| {
            member.resting_until = member.resting_until.max(Some(until));
            member.trouble = trouble.or(member.trouble.take());
        });
    }

    /// The account served a turn, so whatever kept it from serving is over.
    pub fn served(&self, id: &str) {
        self.with(id, |member| member.trouble = None);
    }

    /// The `use_responses_lite` field of each account that lists the model.
    pub fn lite_flags(&self, model: &str) -> Vec<Option<Value>> {
        let state = self.lock();
        let catalogs = state.members.iter().filter_map(|member| member.catalog.as_ref());
        let entries = catalogs.filter_map(|catalog| catalog.model(model));
        entries.map(|entry| entry.lite_flag().cloned()).collect()
    }

    /// Every model that some account lists, the first account's entry of it, and how many accounts list it.
    pub fn models(&self) -> Vec<(ModelEntry, usize)> {
        let state = self.lock();
        let mut models: Vec<(ModelEntry, usize)> = Vec::new();
        for catalog in state.members.iter().filter_map(|member| member.catalog.as_ref()) {
            for entry in &catalog.models {
                match models.iter_mut().find(|(known, _)| known.slug == entry.slug) {
                    Some((_, accounts)) => *accounts += 1,
                    None => models.push((entry.clone(), 1)),
                }
            }
        }
        models
    }

    /// The one tag that all accounts' catalogs carry, if they agree.
    pub fn common_etag(&self) -> Option<String> {
        let state = self.lock();
        let mut etags = state.members.iter().filter_map(|member| member.catalog.as_ref());
        let first = etags.next()?.etag.clone()?;
        etags.all(|catalog| catalog.etag.as_deref() == Some(&first)).then_some(first)
    }
}

impl Member {
    fn candidate(&self, ask: &Ask<'_>, now: i64) -> Candidate {
        Candidate {
            id: self.account.id.clone(),
            name: self.account.name.clone(),
            fit: self.fit(ask),
            blocked_until: self.closed_until(now),
            resting: self.resting_until.is_some_and(|until| until > now),
            headroom: self.headroom(now),
            in_flight: self.in_flight,
            tried: ask.tried.contains(&self.account.id),
        }
    }

    fn fit(&self, ask: &Ask<'_>) -> Fit {
        let Some(catalog) = &self.catalog else { return Fit::CatalogUnknown };
        let Some(entry) = catalog.model(ask.model) else { return Fit::ModelUnknown };
        let lite = entry.lite_flag() == Some(&Value::Bool(true));
        match ask.carried {
            Some(Dialect::Lite) if !lite => Fit::OtherDialect,
            Some(Dialect::Full) if lite => Fit::OtherDialect,
            _ => Fit::Carries,
        }
    }

    /// What is left, as far as the reading can still be believed: a full window that does not say when it resets would close
    /// the account for good.
    fn headroom(&self, now: i64) -> Option<f64> {
        let fresh = self.read_at.is_some_and(|at| now - at < READING_LIFE_S);
        let believed: Vec<Window> = self
            .windows
            .iter()
            .copied()
            .filter(|window| fresh || window.resets_at.is_some())
            .collect();
        quota::headroom(&believed, now)
    }

    /// The later of a limit that was told and the reset of a window that is used up.
    fn closed_until(&self, now: i64) -> Option<i64> {
        let used_up = self.windows.iter().filter(|window| window.used_percent >= 100.0);
        let reset = used_up.filter_map(|window| window.resets_at).filter(|at| *at > now).max();
        self.blocked_until.max(reset)
    }
}

impl State {
    fn settle(&mut self, conversation: &str, account: &str) {
        if self.homes.insert(conversation.to_owned(), account.to_owned()).is_none() {
            self.home_order.push_back(conversation.to_owned());
        }
        if self.home_order.len() > HOMES
            && let Some(oldest) = self.home_order.pop_front()
        {
            self.homes.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::secret::Secret;
    use serde_json::json;

    fn account(id: &str) -> Account {
        Account {
            id: id.into(),
            name: id.into(),
            plan: None,
            base_url: "http://127.0.0.1:1".into(),
            backend_account_id: None,
            token: Secret::new("t"),
        }
    }

    fn pool(flags: &[(&str, Value)]) -> Arc<Pool> {
        let pool = Pool::new(flags.iter().map(|(id, _)| account(id)));
        for (id, lite) in flags {
            let body = json!({"models": [{"slug": "m", "use_responses_lite": lite}]});
            pool.set_catalog(id, Catalog::read(Some("e".into()), &body).expect("a list"));
        }
        pool
    }

    fn ask<'a>(conversation: &'a str, carried: Option<Dialect>) -> Ask<'a> {
        Ask { model: "m", carried, conversation, tried: &[], pin: None }
    }

    #[test]
    fn a_lease_counts_until_it_is_dropped() {
        let pool = pool(&[("a", json!(false))]);
        let lease = pool.lease(&ask("c", None), 0).expect("a lease");
        assert_eq!(pool.views()[0].in_flight, 1);
        drop(lease);
        assert_eq!(pool.views()[0].in_flight, 0);
    }

    #[test]
    fn in_auto_only_accounts_that_carry_the_dialect_may_serve() {
        let pool = pool(&[("a", json!(true)), ("b", json!("true"))]);
        let full = pool.lease(&ask("c", Some(Dialect::Full)), 0).expect("b is not literally lite");
        assert_eq!(full.account.id, "b");
        let lite = pool.lease(&ask("d", Some(Dialect::Lite)), 0).expect("a is");
        assert_eq!(lite.account.id, "a");
    }

    #[test]
    fn an_override_may_use_any_account_that_lists_the_model() {
        let pool = pool(&[("a", json!(true))]);
        assert!(pool.lease(&ask("c", None), 0).is_ok());
        assert_eq!(
            pool.lease(&ask("c", Some(Dialect::Full)), 0).expect_err("auto cannot"),
            Nobody::DialectNotCarried
        );
    }

    #[test]
    fn a_used_up_window_closes_the_account_until_its_reset() {
        let pool = pool(&[("a", json!(false))]);
        pool.observe("a", &[Window { minutes: 300, used_percent: 100.0, resets_at: Some(50) }], 10);
        let exhausted = Nobody::Exhausted { resets_at: Some(50) };
        assert_eq!(pool.lease(&ask("c", None), 49).expect_err("closed"), exhausted);
        assert!(pool.lease(&ask("c", None), 50).is_ok());
    }

    #[test]
    fn a_conversation_comes_back_to_its_account() {
        let pool = pool(&[("a", json!(false)), ("b", json!(false))]);
        let first = pool.lease(&ask("c", None), 0).expect("a lease").account.id.clone();
        pool.observe(&first, &[Window { minutes: 300, used_percent: 99.0, resets_at: None }], 0);
        assert_eq!(pool.lease(&ask("c", None), 0).expect("a lease").account.id, first);
    }
}
