//! What is left of an account's windows, read from what the backend says in passing.
//!
//! A window is known by its length, never by the slot in which it arrived: the backend has moved the weekly window into
//! the first slot before. Both response headers and `codex.rate_limits` events tell of windows, each only of some.
//!
//! **Invariant**: what was not reported stays absent; nothing here invents a number.

use serde::Serialize;
use serde_json::Value;

/// One quota period as last read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ts_rs::TS)]
pub struct Window {
    /// Length in minutes: 300 for five hours, 10080 for a week.
    pub minutes: u64,
    /// Used share in percent, within 0 and 100.
    pub used_percent: f64,
    /// When it starts anew, in unix seconds.
    pub resets_at: Option<i64>,
}

impl Window {
    /// A window as the backend may report it. A length of zero is a placeholder for "no such window". More than a hundred
    /// percent is met in the field and means all of it.
    fn checked(used_percent: f64, minutes: i64, resets_at: Option<i64>) -> Option<Self> {
        if minutes <= 0 || !used_percent.is_finite() {
            return None;
        }
        Some(Self {
            minutes: minutes.unsigned_abs(),
            used_percent: used_percent.clamp(0.0, 100.0),
            resets_at: resets_at.filter(|at| *at > 0),
        })
    }
}

/// The windows that an answer's headers report. `header` looks a lower-case name up.
pub fn from_headers<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Vec<Window> {
    ["primary", "secondary"]
        .iter()
        .filter_map(|slot| {
            let field = |name: &str| header(&format!("x-codex-{slot}-{name}")).map(str::trim);
            Window::checked(
                field("used-percent")?.parse().ok()?,
                field("window-minutes")?.parse().ok()?,
                field("reset-at").and_then(|at| at.parse().ok()),
            )
        })
        .collect()
}

/// The windows that a `codex.rate_limits` event reports; `now` in unix seconds serves readings that only say how long a
/// window still runs.
pub fn from_event(event: &Value, now: i64) -> Vec<Window> {
    let slots = ["primary", "secondary"];
    from_limits(
        event.get("rate_limits"),
        slots,
        |window| window.get("window_minutes")?.as_f64(),
        now,
    )
}

/// The windows that the usage probe's body reports. It counts lengths in seconds and has a place for windows that do not
/// exist, which is null.
pub fn from_usage(body: &Value, now: i64) -> Vec<Window> {
    let slots = ["primary_window", "secondary_window"];
    let minutes = |window: &Value| Some(window.get("limit_window_seconds")?.as_f64()? / 60.0);
    from_limits(body.get("rate_limit"), slots, minutes, now)
}

fn from_limits(
    limits: Option<&Value>,
    slots: [&str; 2],
    minutes: impl Fn(&Value) -> Option<f64>,
    now: i64,
) -> Vec<Window> {
    let read = |slot: &str| {
        let window = limits?.get(slot)?;
        let number = |name: &str| window.get(name).and_then(Value::as_f64);
        let resets_at = number("reset_at")
            .or_else(|| number("reset_after_seconds").map(|seconds| now as f64 + seconds));
        let length = minutes(window)? as i64;
        Window::checked(number("used_percent")?, length, resets_at.map(|at| at as i64))
    };
    slots.into_iter().filter_map(read).collect()
}

/// Merges a reading into what was known: a window replaces the one of its own length, the others stay.
pub fn merge(known: &mut Vec<Window>, reading: &[Window]) {
    for window in reading {
        match known.iter_mut().find(|other| other.minutes == window.minutes) {
            Some(other) => *other = *window,
            None => known.push(*window),
        }
    }
    known.sort_by_key(|window| window.minutes);
}

/// What is left in percent of the window that binds, or nothing where no window was reported. A window whose reset
/// has passed binds no more.
pub fn headroom(windows: &[Window], now: i64) -> Option<f64> {
    windows
        .iter()
        .map(|window| match window.resets_at {
            Some(at) if at <= now => 100.0,
            _ => 100.0 - window.used_percent,
        })
        .reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn headers<'a>(list: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<&'a str> {
        move |name| list.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    #[test]
    fn a_weekly_window_in_the_first_slot_is_a_week_and_a_placeholder_is_nothing() {
        let windows = from_headers(headers(&[
            ("x-codex-primary-used-percent", "12.5"),
            ("x-codex-primary-window-minutes", "10080"),
            ("x-codex-primary-reset-at", "1777936568"),
            ("x-codex-secondary-used-percent", "0"),
            ("x-codex-secondary-window-minutes", "0"),
            ("x-codex-secondary-reset-at", ""),
        ]));
        let week = Window { minutes: 10080, used_percent: 12.5, resets_at: Some(1_777_936_568) };
        assert_eq!(windows, [week]);
    }

    #[test]
    fn more_than_everything_is_everything() {
        let event = json!({"rate_limits": {"primary":
            {"used_percent": 103, "window_minutes": 300, "reset_after_seconds": 60}}});
        let window = Window { minutes: 300, used_percent: 100.0, resets_at: Some(1_060) };
        assert_eq!(from_event(&event, 1_000), [window]);
    }

    #[test]
    fn the_probe_counts_in_seconds_and_has_null_for_no_window() {
        let body = json!({"plan_type": "plus", "rate_limit": {"allowed": true, "secondary_window": null, "primary_window":
            {"used_percent": 8, "limit_window_seconds": 604800, "reset_after_seconds": 10, "reset_at": 1_777_936_568}}});
        let week = Window { minutes: 10080, used_percent: 8.0, resets_at: Some(1_777_936_568) };
        assert_eq!(from_usage(&body, 0), [week]);
        assert_eq!(from_usage(&json!({"plan_type": "business"}), 0), []);
    }

    #[test]
    fn a_sparse_reading_leaves_the_other_window_alone() {
        let window = |minutes, used_percent| Window { minutes, used_percent, resets_at: None };
        let mut known = vec![window(300, 10.0), window(10080, 40.0)];
        merge(&mut known, &[window(10080, 41.0)]);
        assert_eq!(known, [window(300, 10.0), window(10080, 41.0)]);
    }

    #[test]
    fn the_fullest_window_binds_until_its_reset() {
        let windows = [
            Window { minutes: 300, used_percent: 90.0, resets_at: Some(50) },
            Window { minutes: 10080, used_percent: 30.0, resets_at: None },
        ];
        assert_eq!(headroom(&windows, 49), Some(10.0));
        assert_eq!(headroom(&windows, 50), Some(70.0));
        assert_eq!(headroom(&[], 0), None);
    }
}
