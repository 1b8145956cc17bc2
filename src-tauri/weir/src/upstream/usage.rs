//! Asks the backend what one account has used, without a turn.
//!
//! Headers and events tell only of accounts that serve; an account that nobody used would never be known to have
//! headroom.
//!
//! **Invariant**: asked when an account is first met, never on a fast timer, and a failure changes nothing.

use serde_json::Value;
use weir_core::dialect::wire;

use super::headers;
use super::open::Upstream;
use super::stream::error_text;
use crate::accounts::account::Account;
use crate::accounts::quota::{self, Window};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(15);

impl Upstream {
    /// The windows that the backend reports, or nothing where it reports none; `now` in unix seconds.
    pub async fn usage(&self, account: &Account, now: i64) -> Vec<Window> {
        let root = account.base_url.strip_suffix(wire::CODEX_SEGMENT).unwrap_or(&account.base_url);
        let Ok(headers) = headers::for_account(account) else { return Vec::new() };
        let request = self
            .client(&account.base_url)
            .get(format!("{root}{}", wire::USAGE_PATH))
            .headers(headers)
            .timeout(PATIENCE);
        let body: Result<Value, _> =
            match request.send().await.and_then(reqwest::Response::error_for_status) {
                Ok(answer) => answer.json().await,
                Err(error) => Err(error),
            };
        match body {
            Ok(body) => quota::from_usage(&body, now),
            Err(error) => {
                tracing::info!(
                    account = account.name,
                    error = error_text(&error),
                    "usage was not reported"
                );
                Vec::new()
            }
        }
    }
}
