//! Facts of the pool as a menu's line says them.
//!
//! Pure: the present moment is an argument. A window is named by its length, the only name it has.
//!
//! **Invariant**: what is not known is said in words and never shown as a number.

use crate::picture::{Account, Model, Window};

/// Longer lines make a menu as wide as the screen.
const LONGEST: usize = 140;

/// An account: what is left of each window, and when the shortest starts anew.
pub(crate) fn account(account: &Account, now: i64) -> String {
    let name = &account.name;
    if account.state == "cannot serve" {
        let why = account.reason.as_deref().unwrap_or("no reason was given");
        return cut(&format!("{name} — cannot serve: {why}"));
    }
    let mut windows: Vec<String> = account
        .windows
        .iter()
        .enumerate()
        .map(|(place, one)| window(one, place == 0, now))
        .collect();
    if windows.is_empty() {
        windows.push("usage not reported yet".to_owned());
    }
    if account.state == "at its limit" {
        windows.insert(0, limit(account, now));
    }
    cut(&format!("{name} — {}", windows.join("; ")))
}

/// That an account is at its limit, and until when, unless a window that is used up says so itself.
fn limit(account: &Account, now: i64) -> String {
    let told = |until: i64| {
        let used_up = |one: &&Window| one.left(now) <= 0.0;
        account.windows.iter().filter(used_up).any(|one| one.resets_at >= Some(until))
    };
    match account.blocked_until {
        Some(until) if until > now && !told(until) => {
            format!("{}, ends in {}", account.state, stretch(until - now))
        }
        _ => account.state.clone(),
    }
}

/// `in_full` says what the number means and when the window starts anew; one that is used up always says when.
fn window(window: &Window, in_full: bool, now: i64) -> String {
    let name = length(window.minutes);
    if window.has_reset(now) {
        return format!("{name} has started anew");
    }
    let left = window.left(now);
    let used_up = left <= 0.0;
    let amount = match percent(left) {
        _ if used_up => "used up".to_owned(),
        percent if in_full => format!("{percent} left"),
        percent => percent,
    };
    match window.resets_at {
        Some(at) if in_full || used_up => {
            format!("{name} {amount}, resets in {}", stretch(at - now))
        }
        _ => format!("{name} {amount}"),
    }
}

/// Rounded down, so that nobody is promised more than there is; less than one percent is not nothing.
fn percent(left: f64) -> String {
    if left < 1.0 { "under 1 %".to_owned() } else { format!("{} %", left.floor()) }
}

/// A model and the form in which it goes out.
pub(crate) fn model(model: &Model) -> String {
    cut(&format!(
        "{} ({})",
        model.model,
        match model.mode.as_str() {
            "auto" => auto(model),
            chosen => chosen.to_owned(),
        }
    ))
}

/// The choice auto, with what it means now.
pub(crate) fn auto(model: &Model) -> String {
    format!("auto → {}", model.auto_dialect)
}

/// A window's length as its name.
fn length(minutes: u64) -> String {
    const DAY: u64 = 24 * 60;
    match minutes {
        DAY => "day".to_owned(),
        minutes if minutes == 7 * DAY => "week".to_owned(),
        minutes if (28 * DAY..=31 * DAY).contains(&minutes) => "month".to_owned(),
        minutes => stretch(i64::try_from(minutes.saturating_mul(60)).unwrap_or(i64::MAX)),
    }
}

/// Seconds in their two largest units.
fn stretch(seconds: i64) -> String {
    let minutes = seconds.max(0) / 60;
    let (hours, days) = (minutes / 60, minutes / 60 / 24);
    match (days, hours, minutes) {
        (0, 0, 0) => "under a minute".to_owned(),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => pair(hours, "h", minutes % 60, "min"),
        (days, hours, _) => pair(days, "d", hours % 24, "h"),
    }
}

fn pair(large: i64, unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {unit}")
    } else {
        format!("{large} {unit} {small} {small_unit}")
    }
}

/// One line that a menu can show.
pub(crate) fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    let kept: String = line.chars().take(LONGEST - 1).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(state: &str, windows: &[(u64, f64, Option<i64>)]) -> Account {
        let windows = windows.iter().map(|&(minutes, used_percent, resets_at)| Window {
            minutes,
            used_percent,
            resets_at,
        });
        Account {
            name: "a".to_owned(),
            state: state.to_owned(),
            reason: None,
            blocked_until: None,
            windows: windows.collect(),
            read_at: None,
        }
    }

    #[test]
    fn what_is_left_is_never_rounded_up() {
        assert_eq!(percent(84.9), "84 %");
        assert_eq!(percent(0.4), "under 1 %");
        assert_eq!(percent(100.0), "100 %");
    }

    #[test]
    fn windows_are_named_by_their_length() {
        let names = [300, 1_440, 10_080, 43_200, 44_640, 90, 2_880].map(length);
        assert_eq!(names, ["5 h", "day", "week", "month", "month", "1 h 30 min", "2 d"]);
    }

    #[test]
    fn a_window_that_started_anew_promises_no_number() {
        let account_then = one("ready", &[(300, 90.0, Some(100)), (10_080, 40.0, None)]);
        assert_eq!(account(&account_then, 100), "a — 5 h has started anew; week 60 %");
    }

    #[test]
    fn a_used_up_window_says_when_it_comes_back_wherever_it_stands() {
        let out = one("at its limit", &[(300, 10.0, Some(60)), (10_080, 100.0, Some(90_000))]);
        assert_eq!(
            account(&out, 0),
            "a — at its limit; 5 h 90 % left, resets in 1 min; week used up, resets in 1 d 1 h"
        );
    }

    #[test]
    fn a_limit_without_a_window_says_when_it_ends() {
        let mut out = one("at its limit", &[(300, 10.0, Some(60))]);
        out.blocked_until = Some(1_500);
        let said = |account_now: &Account, now| account(account_now, now);
        assert_eq!(
            said(&out, 0),
            "a — at its limit, ends in 25 min; 5 h 90 % left, resets in 1 min"
        );
        // What has passed is not said, and what a window says is not said twice.
        assert_eq!(said(&out, 1_500), "a — at its limit; 5 h has started anew");
        out.windows[0] = Window { used_percent: 100.0, resets_at: Some(1_500), ..out.windows[0] };
        assert_eq!(said(&out, 0), "a — at its limit; 5 h used up, resets in 25 min");
        out.windows.clear();
        assert_eq!(said(&out, 0), "a — at its limit, ends in 25 min; usage not reported yet");
    }

    #[test]
    fn a_long_reason_is_cut_and_stays_one_line() {
        let mut broken = one("cannot serve", &[]);
        broken.reason = Some(format!("It\nfailed. {}", "ä".repeat(300)));
        let line = account(&broken, 0);
        assert!(line.starts_with("a — cannot serve: It failed. ää"), "{line}");
        assert_eq!((line.chars().count(), line.chars().last()), (LONGEST, Some('…')));
    }
}
