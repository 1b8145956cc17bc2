//! Keeps every account's model list at hand, and learns what is left of an account when it is first met.
//!
//! A list is read when it is first needed and again when the backend says, in an answer's header, that it has changed.
//! What is left comes from a probe once, since an account that nobody used reports nothing; from then on turns tell.
//!
//! **Invariant**: at most one reading at a time, and a failed one keeps the list known before.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::Shared;
use super::clock::now_s;
use crate::accounts::account::Account;

#[derive(Debug, Default)]
pub struct Catalogs {
    reading: Mutex<()>,
}

/// Reads the lists that are missing; returns at once when none is.
pub async fn ensure(shared: &Shared) {
    if shared.pool.without_catalog().is_empty() {
        return;
    }
    let _one = shared.catalogs.reading.lock().await;
    let missing = shared.pool.without_catalog();
    futures_util::future::join_all(missing.iter().map(|account| read(shared, account))).await;
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
        }
        Err(trouble) => {
            tracing::warn!(account = account.name, "{trouble}");
            shared.pool.set_trouble(&account.id, trouble);
        }
    }
    shared.live.touch();
}
