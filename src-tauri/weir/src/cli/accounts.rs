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
    table::print(
        &["account", "plan", "state", "in flight", "left", "read"],
        accounts.iter().map(row),
    );
    for account in &accounts {
        if let (Some(name), Some(reason)) = (account["name"].as_str(), account["reason"].as_str()) {
            println!("{name}: {reason}");
        }
    }
    Ok(())
}

fn row(account: &Value) -> Vec<String> {
    let windows = account["windows"].as_array().map_or(&[][..], Vec::as_slice);
    let left: Vec<String> = windows.iter().filter_map(left).collect();
    vec![
        or_dash(account["name"].as_str()),
        or_dash(account["plan"].as_str()),
        or_dash(account["state"].as_str()),
        or_dash(account["in_flight"].as_i64()),
        if left.is_empty() { "not reported yet".into() } else { left.join(", ") },
        account["read_at"]
            .as_i64()
            .map_or_else(|| "–".into(), |at| format!("{} ago", span(now_s() - at))),
    ]
}

fn left(window: &Value) -> Option<String> {
    let used = window["used_percent"].as_f64()?;
    let name = table::window(window["minutes"].as_u64()?);
    Some(match window["resets_at"].as_i64() {
        Some(at) => format!("{name} {:.0} % (resets in {})", 100.0 - used, span(at - now_s())),
        None => format!("{name} {:.0} %", 100.0 - used),
    })
}
