//! Keeps every account's model list at hand, and learns what is left of an account when it is first met.
//!
//! A list is read when it is first needed and again when the backend says, in an answer's header, that it has changed.
//! What is left comes from a probe once, since an account that nobody used reports nothing; from then on turns tell.
//!
//! **Invariant**: at most one reading at a time, and a failed one keeps the list known before.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::Shared;
use super::clock::now_s;
use crate::accounts::account::{Account, AccountId};

/// How long an account whose list could not be read is left alone.
const REST: Duration = Duration::from_secs(30);

/// How long the other lists are waited for once one is there.
const MOMENT: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub struct Catalogs {
    reading: Mutex<()>,
    /// How many readings of all missing lists have ended.
    readings: AtomicU64,
    /// When each account's list was last asked for in vain.
    failed: std::sync::Mutex<HashMap<AccountId, Instant>>,
}

impl Catalogs {
    fn rests(&self, account: &Account) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get(&account.id).is_some_and(|at| at.elapsed() < REST)
    }

    fn note(&self, account: &Account, good: bool) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if good {
            failed.remove(&account.id);
        } else {
            failed.insert(account.id.clone(), Instant::now());
        }
    }
}

/// Reads the lists that are missing. Waits only while no account has one: an account that does not answer must not hold
/// up turns that others can serve.
pub async fn ensure(shared: &Arc<Shared>) {
    let missing = shared.pool.without_catalog();
    if missing.is_empty() {
        return;
    }
    if missing.len() == shared.pool.accounts().len() {
        let before = shared.catalogs.readings.load(Ordering::Acquire);
        let _one = shared.catalogs.reading.lock().await;
        // Whoever waited for a reading does not begin another.
        if shared.catalogs.readings.load(Ordering::Acquire) == before {
            first_reading(shared).await;
        }
        return;
    }
    let due: Vec<_> =
        missing.into_iter().filter(|account| !shared.catalogs.rests(account)).collect();
    // Noted before it is known, so that a burst of turns begins one reading.
    due.iter().for_each(|account| shared.catalogs.note(account, false));
    if !due.is_empty() {
        let owned = Arc::clone(shared);
        shared.tasks.spawn(async move { read_all(&owned, due).await });
    }
}

/// Reads all lists, and waits for those that come within a moment of the first.
async fn first_reading(shared: &Arc<Shared>) {
    let missing = shared.pool.without_catalog();
    let none = missing.len();
    let mut changed = shared.live.watch();
    let owned = Arc::clone(shared);
    let mut all = shared.tasks.spawn(async move { read_all(&owned, missing).await });
    let enough = async {
        while shared.pool.without_catalog().len() == none {
            // The sender lives in what is shared.
            drop(changed.changed().await);
        }
        sleep(MOMENT).await;
    };
    tokio::select! {
        _ = &mut all => {}
        () = enough => {}
    }
}

async fn read_all(shared: &Shared, accounts: Vec<Arc<Account>>) {
    let mut readings: FuturesUnordered<_> =
        accounts.into_iter().map(|account| async move { read(shared, &account).await }).collect();
    while readings.next().await.is_some() {}
    shared.catalogs.readings.fetch_add(1, Ordering::Release);
}

/// Reads one account's list again if `etag` is not the one that is known.
pub fn refresh_if_changed(shared: &Arc<Shared>, account: &Arc<Account>, etag: &str) {
    if shared.pool.catalog_etag(&account.id).as_deref() == Some(etag) {
        return;
    }
    let (owned, account) = (Arc::clone(shared), Arc::clone(account));
    let etag = etag.to_owned();
    shared.tasks.spawn(async move {
        let _one = owned.catalogs.reading.lock().await;
        if owned.pool.catalog_etag(&account.id).as_deref() != Some(&etag) {
            read(&owned, &account).await;
        }
    });
}

async fn read(shared: &Shared, account: &Account) {
    match shared.upstream.catalog(account).await {
        Ok(catalog) => {
            if shared.pool.windows_unknown(&account.id) {
                let now = now_s();
                shared.pool.observe(&account.id, &shared.upstream.usage(account, now).await, now);
            }
            shared.pool.set_catalog(&account.id, catalog);
            shared.catalogs.note(account, true);
        }
        Err(trouble) => {
            shared.catalogs.note(account, false);
            tracing::warn!(account = account.name, "{trouble}");
            shared.pool.set_trouble(&account.id, trouble);
        }
    }
    shared.live.touch();
}
