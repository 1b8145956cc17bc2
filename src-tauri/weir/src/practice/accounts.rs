//! The practice accounts and their windows, which really count down.
//!
//! Each accepted turn adds its step to every window of the account that served it. At one hundred percent the account
//! answers with the usage limit until the window starts anew. The same numbers are told in headers, in the
//! `codex.rate_limits` event and by the usage endpoint, each in its own shape and with the backend's own quirks.
//!
//! **Invariant**: time is tokio's, so a paused clock decides when a window starts anew.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::PracticeAccount;
use super::errors::Refusal;

#[derive(Debug)]
pub(super) struct Accounts {
    accounts: Vec<Arc<Account>>,
    started: Instant,
    started_unix: i64,
}

#[derive(Debug)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) account_id: String,
    token: String,
    plan: String,
    windows: Mutex<Vec<Window>>,
}

/// One window at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    minutes: u64,
    used: f64,
    step: f64,
    resets_at: i64,
}

impl Window {
    /// The backend never tells more than a hundred.
    fn percent(&self) -> f64 {
        (self.used.min(100.0) * 100.0).round() / 100.0
    }

    fn full(&self) -> bool {
        self.percent() >= 100.0
    }

    fn roll(&mut self, now: i64) {
        let length = i64::try_from(self.minutes.max(1) * 60).unwrap_or(i64::MAX);
        while self.resets_at <= now {
            self.used = 0.0;
            self.resets_at = self.resets_at.saturating_add(length);
        }
    }
}

impl Accounts {
    pub(super) fn new(accounts: &[PracticeAccount]) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let started_unix = since.map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(0));
        let accounts = accounts.iter().map(|account| {
            let windows = account.windows.iter().map(|window| Window {
                minutes: window.minutes,
                used: window.used_percent,
                step: window.step,
                resets_at: started_unix + window.resets_in_s.max(1),
            });
            Arc::new(Account {
                name: account.name.clone(),
                account_id: account.account_id.clone(),
                token: account.token.clone(),
                plan: account.plan.clone(),
                windows: Mutex::new(windows.collect()),
            })
        });
        Self { accounts: accounts.collect(), started: Instant::now(), started_unix }
    }

    /// Unix seconds.
    pub(super) fn now(&self) -> i64 {
        self.started_unix + i64::try_from(self.started.elapsed().as_secs()).unwrap_or(0)
    }

    pub(super) fn by_token(&self, token: &str) -> Option<&Arc<Account>> {
        self.accounts.iter().find(|account| account.token == token)
    }

    /// Accepts one turn, or says that the limit is reached.
    pub(super) fn charge(&self, account: &Account) -> Result<(), Refusal> {
        let now = self.now();
        let refused = account.with_windows(now, |windows| {
            let full = windows.iter().filter(|window| window.full());
            let resets_at = full.map(|window| window.resets_at).max();
            if resets_at.is_none() {
                windows.iter_mut().for_each(|window| window.used += window.step);
            }
            resets_at
        });
        match refused {
            None => Ok(()),
            Some(resets_at) => Err(self.limit(account, Some(resets_at))),
        }
    }

    /// The usage limit of this account, whatever is really used; the reset is that of its last window.
    pub(super) fn limit(&self, account: &Account, resets_at: Option<i64>) -> Refusal {
        let now = self.now();
        let last = || account.snapshot(now).iter().map(|window| window.resets_at).max();
        let resets_at = resets_at.or_else(last).unwrap_or(now + 3_600);
        let mut refusal = Refusal::usage_limit(&account.plan, resets_at, resets_at - now);
        refusal.headers = self.headers(account);
        refusal
            .headers
            .push(("x-codex-rate-limit-reached-type".into(), "rate_limit_reached".into()));
        refusal
    }

    /// The `x-codex-*` family. A missing second window is told as a window of zeros, and booleans are Python's.
    pub(super) fn headers(&self, account: &Account) -> Vec<(String, String)> {
        let now = self.now();
        let windows = account.snapshot(now);
        let mut headers = vec![
            ("x-codex-active-limit".to_owned(), "codex".to_owned()),
            ("x-codex-plan-type".to_owned(), account.plan.clone()),
            ("x-codex-credits-has-credits".to_owned(), "False".to_owned()),
            ("x-codex-credits-unlimited".to_owned(), "False".to_owned()),
            ("x-codex-credits-balance".to_owned(), "0".to_owned()),
        ];
        if windows.is_empty() {
            return headers;
        }
        for (at, slot) in ["primary", "secondary"].into_iter().enumerate() {
            let window = windows.get(at);
            let mut put = |name: &str, value: String| {
                headers.push((format!("x-codex-{slot}-{name}"), value));
            };
            put("used-percent", window.map_or(0.0, Window::percent).to_string());
            put("window-minutes", window.map_or(0, |w| w.minutes).to_string());
            put("reset-after-seconds", window.map_or(0, |w| w.resets_at - now).to_string());
            put("reset-at", window.map_or_else(String::new, |w| w.resets_at.to_string()));
        }
        headers.push(("x-codex-primary-over-secondary-limit-percent".into(), "0".into()));
        headers
    }

    /// The `codex.rate_limits` event.
    pub(super) fn event(&self, account: &Account) -> Value {
        let windows = account.snapshot(self.now());
        let slot = |at: usize| {
            windows.get(at).map(|window| {
                json!({
                    "used_percent": window.percent(), "window_minutes": window.minutes,
                    "reset_at": window.resets_at,
                })
            })
        };
        json!({
            "type": "codex.rate_limits", "plan_type": account.plan,
            "rate_limits": {
                "allowed": !windows.iter().any(Window::full),
                "limit_reached": windows.iter().any(Window::full),
                "primary": slot(0), "secondary": slot(1),
            },
            "credits": { "has_credits": false, "unlimited": false, "balance": "0" },
        })
    }

    /// The body of the usage endpoint, whose percentages are whole numbers.
    pub(super) fn usage(&self, account: &Account) -> Value {
        let now = self.now();
        let windows = account.snapshot(now);
        let slot = |at: usize| {
            windows.get(at).map(|window| {
                json!({
                    "used_percent": whole(window.percent()), "limit_window_seconds": window.minutes * 60,
                    "reset_after_seconds": window.resets_at - now, "reset_at": window.resets_at,
                })
            })
        };
        let full = windows.iter().any(Window::full);
        let limits = (!windows.is_empty()).then(|| {
            json!({
                "allowed": !full, "limit_reached": full,
                "primary_window": slot(0), "secondary_window": slot(1),
            })
        });
        json!({
            "plan_type": account.plan, "account_id": account.account_id, "email": null,
            "rate_limit": limits, "additional_rate_limits": [],
            "credits": { "has_credits": false, "unlimited": false, "balance": "0" },
            "rate_limit_reset_credits": { "available_count": 0 },
        })
    }
}

/// Rounded up, so that a started percent is told.
fn whole(percent: f64) -> u8 {
    // A percent lies between 0 and 100 and so fits.
    percent.ceil().clamp(0.0, 100.0) as u8
}

impl Account {
    fn with_windows<T>(&self, now: i64, act: impl FnOnce(&mut Vec<Window>) -> T) -> T {
        let mut windows = self.windows.lock().expect("no holder of this lock panics");
        windows.iter_mut().for_each(|window| window.roll(now));
        act(&mut windows)
    }

    fn snapshot(&self, now: i64) -> Vec<Window> {
        self.with_windows(now, |windows| windows.clone())
    }

    /// Marks what only this account can read: ciphertext and routing state.
    pub(super) fn seal(&self, what: &str) -> String {
        format!(
            "practice_{}_{}",
            self.tag(),
            hex(&[self.account_id.as_bytes(), what.as_bytes()], 16)
        )
    }

    /// Whether a text was sealed by this account and is whole.
    pub(super) fn opens(&self, sealed: &str) -> bool {
        let parts: Vec<&str> = sealed.split('_').collect();
        matches!(parts[..], ["practice", tag, rest] if tag == self.tag() && rest.len() == 32)
    }

    fn tag(&self) -> String {
        hex(&[self.account_id.as_bytes()], 4)
    }
}

/// The first `bytes` bytes of the digest of the parts, in hexadecimal.
pub(super) fn hex(parts: &[&[u8]], bytes: usize) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    digest.finalize().iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::practice::{Options, PracticeWindow};
    use std::time::Duration;

    fn accounts(windows: Vec<PracticeWindow>) -> Accounts {
        let mut account = Options::default().accounts.remove(0);
        account.windows = windows;
        Accounts::new(&[account])
    }

    fn only(accounts: &Accounts) -> &Account {
        accounts.by_token("practice-token-1").expect("it was added")
    }

    fn header(accounts: &Accounts, name: &str) -> Option<String> {
        let headers = accounts.headers(only(accounts));
        headers.into_iter().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_counts_down_and_starts_anew() {
        let window =
            PracticeWindow { minutes: 300, used_percent: 98.0, resets_in_s: 60, step: 1.0 };
        let accounts = accounts(vec![window]);
        assert_eq!(accounts.charge(only(&accounts)), Ok(()));
        assert_eq!(header(&accounts, "x-codex-primary-used-percent").as_deref(), Some("99"));
        assert_eq!(accounts.charge(only(&accounts)), Ok(()));
        let refusal = accounts.charge(only(&accounts)).expect_err("it is used up");
        assert_eq!(refusal.status, 429);
        assert_eq!(refusal.body["error"]["type"], "usage_limit_reached");
        assert_eq!(refusal.body["error"]["resets_in_seconds"], 60);
        assert_eq!(accounts.usage(only(&accounts))["rate_limit"]["allowed"], false);
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(accounts.charge(only(&accounts)), Ok(()));
        assert_eq!(header(&accounts, "x-codex-primary-used-percent").as_deref(), Some("1"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_quirks_of_the_headers() {
        let window =
            PracticeWindow { minutes: 10_080, used_percent: 12.34, resets_in_s: 60, step: 0.1 };
        let one = accounts(vec![window]);
        assert_eq!(header(&one, "x-codex-primary-used-percent").as_deref(), Some("12.34"));
        assert_eq!(header(&one, "x-codex-secondary-window-minutes").as_deref(), Some("0"));
        assert_eq!(header(&one, "x-codex-secondary-reset-at").as_deref(), Some(""));
        assert_eq!(header(&one, "x-codex-credits-unlimited").as_deref(), Some("False"));
        assert_eq!(one.usage(only(&one))["rate_limit"]["primary_window"]["used_percent"], 13);
        assert_eq!(one.event(only(&one))["rate_limits"]["secondary"], Value::Null);
        let none = accounts(Vec::new());
        assert_eq!(header(&none, "x-codex-primary-used-percent"), None);
        assert_eq!(none.usage(only(&none))["rate_limit"], Value::Null);
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_sealing_account_opens() {
        let accounts = Accounts::new(&Options::default().accounts);
        let [first, second] = [&accounts.accounts[0], &accounts.accounts[1]];
        let sealed = first.seal("a thought");
        assert!(first.opens(&sealed));
        assert!(!second.opens(&sealed));
        assert!(!first.opens(&sealed[..sealed.len() - 1]));
        assert!(!first.opens("gAAAA"));
    }
}
