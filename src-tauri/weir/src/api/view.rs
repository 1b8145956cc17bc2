//! What the window and the command line show, as plain rows.
//!
//! **Invariant**: a number that is not known is absent.

use serde::Serialize;
use weir_core::dialect::mode::{Dialect, ServingMode};

use super::Api;
use crate::accounts::pool::AccountView;
use crate::accounts::quota::Window;
use crate::store::{CallRow, DayUsage, TurnRow};
use crate::turn::clock::now_s;
use crate::turn::decide;
use crate::turn::live::LiveTurn;

#[derive(Clone, Debug, PartialEq, Serialize, ts_rs::TS)]
pub struct Status {
    pub version: &'static str,
    pub base_url: String,
    /// The backend is the practice upstream.
    pub practice: bool,
    /// Unix milliseconds.
    pub started_at: i64,
    pub in_flight: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, ts_rs::TS)]
pub struct ModelRow {
    pub model: String,
    pub display_name: Option<String>,
    /// The user's choice.
    #[ts(type = "Mode")]
    pub mode: ServingMode,
    /// What the next turn would be sent in.
    #[ts(type = "Dialect")]
    pub dialect: Dialect,
    pub reason: String,
    /// What auto would resolve to.
    #[ts(type = "Dialect")]
    pub auto_dialect: Dialect,
    /// What the catalog says, where it says anything.
    pub lite_in_catalog: Option<bool>,
    /// How many accounts offer it.
    pub accounts: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, ts_rs::TS)]
pub struct AccountRow {
    pub name: String,
    pub plan: Option<String>,
    /// `ready`, `at its limit` or `cannot serve`.
    pub state: &'static str,
    /// Why it is not ready, in a sentence.
    pub reason: Option<String>,
    /// When a limit that the backend told ends, in unix seconds; windows say for themselves when they start anew.
    pub blocked_until: Option<i64>,
    pub in_flight: u32,
    /// By length, shortest first; a window that was not reported is absent.
    pub windows: Vec<Window>,
    /// When a window was last reported, in unix seconds.
    pub read_at: Option<i64>,
}

/// What was used since local midnight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ts_rs::TS)]
pub struct Today {
    pub turns: u32,
    /// How many of the turns said what they used; the sums are of these.
    pub reported: u32,
    pub input_tokens: Option<i64>,
    pub cached_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
}

/// A turn with its calls in emitted order.
#[derive(Clone, Debug, PartialEq, Serialize, ts_rs::TS)]
pub struct TurnView {
    #[serde(flatten)]
    #[ts(flatten)]
    pub turn: TurnRow,
    pub calls: Vec<CallRow>,
}

impl From<LiveTurn> for TurnView {
    fn from(live: LiveTurn) -> Self {
        Self { turn: live.row, calls: live.calls }
    }
}

/// The sums of today; a store that cannot be read shows as nothing reported, and the log says why.
pub async fn today(api: &Api) -> Today {
    let store = api.turns.store.clone();
    let read = tokio::task::spawn_blocking(move || store.usage_today()).await;
    let rows = match read {
        Ok(Ok(rows)) => rows,
        Ok(Err(error)) => {
            tracing::warn!(%error, "today's usage could not be read");
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    let sum = |tokens: fn(&DayUsage) -> Option<i64>| {
        rows.iter().filter_map(tokens).reduce(|all, one| all + one)
    };
    Today {
        turns: rows.iter().map(|row| row.turns).sum(),
        reported: rows.iter().map(|row| row.reported).sum(),
        input_tokens: sum(|row| row.input_tokens),
        cached_tokens: sum(|row| row.cached_tokens),
        output_tokens: sum(|row| row.output_tokens),
    }
}

pub fn status(api: &Api) -> Status {
    Status {
        version: env!("CARGO_PKG_VERSION"),
        base_url: api.base_url.clone(),
        practice: api.practice,
        started_at: api.started_at,
        in_flight: api.turns.pool.views().iter().map(|account| account.in_flight).sum(),
    }
}

/// Every model of the catalog, and every model that the user chose a mode for.
pub fn models(api: &Api) -> Vec<ModelRow> {
    let mut names: Vec<String> =
        api.turns.pool.models().into_iter().map(|(model, _)| model.slug).collect();
    for chosen in api.turns.modes.all().into_keys() {
        if !names.contains(&chosen) {
            names.push(chosen);
        }
    }
    names.iter().map(|name| model(api, name)).collect()
}

pub fn model(api: &Api, name: &str) -> ModelRow {
    let turns = &api.turns;
    let listed = turns.pool.models().into_iter().find(|(entry, _)| entry.slug == name);
    let decision = decide::decide(turns, name);
    ModelRow {
        model: name.to_owned(),
        display_name: listed
            .as_ref()
            .and_then(|(entry, _)| entry.display_name())
            .map(str::to_owned),
        mode: decision.mode,
        dialect: decision.dialect,
        reason: decision.reason,
        auto_dialect: decide::resolution(turns, name, ServingMode::Auto).dialect,
        lite_in_catalog: listed.as_ref().and_then(|(entry, _)| entry.lite_flag()?.as_bool()),
        accounts: listed.map_or(0, |(_, accounts)| accounts),
    }
}

pub fn accounts(api: &Api) -> Vec<AccountRow> {
    api.turns.pool.views().into_iter().map(|account| row(account, now_s())).collect()
}

fn row(account: AccountView, now: i64) -> AccountRow {
    let used_up = account
        .windows
        .iter()
        .any(|window| window.used_percent >= 100.0 && window.resets_at.is_none_or(|at| at > now));
    let blocked_until = account.blocked_until.filter(|until| *until > now);
    let (state, reason) = match &account.trouble {
        Some(trouble) => ("cannot serve", Some(trouble.clone())),
        None if blocked_until.is_some() || used_up => {
            ("at its limit", Some("The backend says that its usage limit is reached.".to_owned()))
        }
        None => ("ready", None),
    };
    AccountRow {
        name: account.name,
        plan: account.plan,
        state,
        reason,
        blocked_until,
        in_flight: account.in_flight,
        windows: account.windows,
        read_at: account.read_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(blocked_until: Option<i64>) -> AccountView {
        AccountView {
            id: "a".into(),
            name: "a".to_owned(),
            plan: None,
            windows: Vec::new(),
            read_at: None,
            in_flight: 0,
            blocked_until,
            trouble: None,
        }
    }

    #[test]
    fn a_limit_without_a_window_says_when_it_ends_and_is_gone_then() {
        let shown = |blocked_until, now| {
            let row = row(account(blocked_until), now);
            (row.state, row.blocked_until)
        };
        assert_eq!(shown(Some(100), 99), ("at its limit", Some(100)));
        assert_eq!(shown(Some(100), 100), ("ready", None));
        assert_eq!(shown(None, 99), ("ready", None));
    }

    #[test]
    fn a_window_that_is_used_up_tells_its_own_end() {
        let full = Window { minutes: 300, used_percent: 100.0, resets_at: Some(100) };
        let row = row(AccountView { windows: vec![full], ..account(None) }, 99);
        assert_eq!((row.state, row.blocked_until), ("at its limit", None));
    }
}
