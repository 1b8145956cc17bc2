//! `weir accounts`: what is left of each account, and when it resets.

use serde_json::Value;

use super::table::{self, or_dash, span};
use super::{Failed, Place, Shape, ask};
use crate::api::Command;
use crate::turn::clock::now_s;

pub(super) async fn run(shape: Shape, place: &Place) -> Result<(), Failed> {
    let reply = ask::must(place, &Command::Accounts).await?;
    if shape.json {
        ask::print_json(&reply);
        return Ok(());
    }
    let accounts = reply["accounts"].as_array().cloned().unwrap_or_default();
    if accounts.is_empty() {
        println!("No accounts yet. `weir serve --practice` serves practice accounts.");
    }
    let now = now_s();
    table::print(
        &["account", "plan", "state", "in flight", "left", "read"],
        accounts.iter().map(|account| row(account, now)),
    );
    for account in &accounts {
        if let (Some(name), Some(reason)) = (account["name"].as_str(), account["reason"].as_str()) {
            println!("{name}: {reason}");
        }
    }
    Ok(())
}

fn row(account: &Value, now: i64) -> Vec<String> {
    let windows = account["windows"].as_array().map_or(&[][..], Vec::as_slice);
    let left: Vec<String> = windows.iter().filter_map(|window| left(window, now)).collect();
    vec![
        or_dash(account["name"].as_str()),
        or_dash(account["plan"].as_str()),
        state(account, now),
        or_dash(account["in_flight"].as_i64()),
        if left.is_empty() { "not reported yet".into() } else { left.join(", ") },
        account["read_at"]
            .as_i64()
            .map_or_else(|| "–".into(), |at| format!("{} ago", span(now - at))),
    ]
}

/// The state, and when a limit that the backend told ends.
fn state(account: &Value, now: i64) -> String {
    let state = or_dash(account["state"].as_str());
    match account["blocked_until"].as_i64() {
        Some(until) => format!("{state} (ends in {})", span(until - now)),
        None => state,
    }
}

fn left(window: &Value, now: i64) -> Option<String> {
    let used = window["used_percent"].as_f64()?;
    let name = table::window(window["minutes"].as_u64()?);
    Some(match window["resets_at"].as_i64() {
        Some(at) => format!("{name} {:.0} % (resets in {})", 100.0 - used, span(at - now)),
        None => format!("{name} {:.0} %", 100.0 - used),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_limit_says_when_it_ends_where_the_backend_told() {
        let shown = |account: &Value| row(account, 1_000)[2].clone();
        let mut account = json!({"name": "a", "state": "at its limit", "blocked_until": 4_900});
        assert_eq!(shown(&account), "at its limit (ends in 1 h 5 min)");
        account["blocked_until"] = Value::Null;
        assert_eq!(shown(&account), "at its limit");
    }
}
