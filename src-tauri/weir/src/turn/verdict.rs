//! What a failure says about the account that met it.
//!
//! **Invariant**: only a limit, a pace, a refused login and a refused account concern an account; a model that it does not
//! have, the request's own fault, the backend's and the machine's concern none.

use super::Shared;
use super::clock::now_s;
use crate::upstream::failure::{Failure, Source};

/// How long an account rests whose limit did not say when it ends, and one that was refused, in seconds.
const REST_S: i64 = 60;

/// How long an account rests that was asked too fast and did not say for how long, in seconds.
const PACE_S: i64 = 5;

pub fn tell_the_pool(shared: &Shared, account: &str, failure: &Failure) {
    let now = now_s();
    let pool = &shared.pool;
    match failure.source {
        Source::Limit => {
            let until = failure.resets_at.or_else(|| failure.retry_after.map(|wait| now + wait));
            pool.block(account, until.unwrap_or(now + REST_S));
        }
        Source::Pace => pool.rest(account, now + failure.retry_after.unwrap_or(PACE_S), None),
        Source::Login => {
            let trouble = format!("The backend refused the login ({}).", failure.code);
            pool.rest(account, now + REST_S, Some(trouble));
        }
        Source::Account => {
            let trouble = format!(
                "The backend does not let this account do what was asked ({}).",
                failure.code
            );
            pool.rest(account, now + REST_S, Some(trouble));
        }
        Source::Entitlement | Source::Request | Source::Backend | Source::Machine => {}
    }
    shared.live.touch();
}
