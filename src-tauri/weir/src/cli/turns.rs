//! `weir turns`: the latest turns, or one with its calls.

use clap::{Args, Subcommand};
use serde_json::Value;
use time::OffsetDateTime;
use time::macros::format_description;

use super::table::{self, or_dash};
use super::{Failed, Place, ask, csv};
use crate::api::Command;

#[derive(Debug, Args)]
pub(super) struct Turns {
    #[command(subcommand)]
    one: Option<One>,
    /// How many turns are listed.
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// Print JSON instead of a table.
    #[arg(long, global = true)]
    json: bool,
    /// Print comma-separated values; a missing number is an empty field.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

/// What a line of comma-separated values holds.
const FIELDS: [&str; 30] = [
    "id",
    "started_at",
    "conversation",
    "parent",
    "client",
    "model",
    "mode",
    "dialect",
    "mode_reason",
    "account",
    "account_reason",
    "moves",
    "transport",
    "socket",
    "input_items",
    "new_items",
    "whole_reason",
    "accepted_ms",
    "first_event_ms",
    "committed_ms",
    "ended_ms",
    "request_bytes",
    "upstream_bytes",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "outcome",
    "error_code",
    "error_message",
];

#[derive(Debug, Subcommand)]
enum One {
    /// Show one turn with its calls in emitted order.
    ///
    /// Example: weir turns show 0196
    Show {
        /// Its id, or a unique beginning of it.
        id: String,
    },
}

pub(super) async fn run(turns: Turns, place: &Place) -> Result<(), Failed> {
    match turns.one {
        Some(One::Show { id }) => show(id, turns.json, place).await,
        None => list(&turns, place).await,
    }
}

async fn list(asked: &Turns, place: &Place) -> Result<(), Failed> {
    let reply = ask::must(place, &Command::Turns { limit: Some(asked.limit) }).await?;
    if asked.json {
        ask::print_json(&reply);
        return Ok(());
    }
    let turns = reply["turns"].as_array().cloned().unwrap_or_default();
    if asked.csv {
        csv::print(&FIELDS, &turns);
        return Ok(());
    }
    if turns.is_empty() {
        println!("No turn yet. Point a client at Weir and send a prompt.");
    }
    let rows = turns.iter().map(|turn| {
        vec![
            or_dash(turn["id"].as_str()),
            turn["started_at"].as_i64().map_or_else(|| "–".into(), clock),
            or_dash(turn["client"].as_str()),
            or_dash(turn["model"].as_str()),
            or_dash(turn["dialect"].as_str()),
            or_dash(turn["account"].as_str()),
            tokens(turn),
            or_dash(turn["outcome"].as_str().or(Some("running"))),
        ]
    });
    table::print(
        &[
            "turn",
            "at",
            "client",
            "model",
            "sent as",
            "account",
            "tokens in (cached) / out",
            "outcome",
        ],
        rows,
    );
    Ok(())
}

async fn show(id: String, json: bool, place: &Place) -> Result<(), Failed> {
    let reply = ask::must(place, &Command::Turn { id }).await?;
    if json {
        ask::print_json(&reply);
        return Ok(());
    }
    let turn = &reply["turn"];
    let text = |name: &str| or_dash(turn[name].as_str());
    println!("turn          {}", text("id"));
    println!(
        "conversation  {}{}",
        text("conversation"),
        turn["parent"]
            .as_str()
            .map(|parent| format!(", a subagent of {parent}"))
            .unwrap_or_default()
    );
    println!(
        "model         {} in the {} form: {}",
        text("model"),
        text("dialect"),
        text("mode_reason")
    );
    println!("account       {}: {}", text("account"), text("account_reason"));
    println!("sent          {}", way(turn));
    println!("tokens        {}", tokens(turn));
    let ms = |name: &str| turn[name].as_i64().map_or_else(|| "–".into(), |ms| format!("{ms} ms"));
    println!(
        "phases        accepted {}, first event {}, commit point {}, end {}",
        ms("accepted_ms"),
        ms("first_event_ms"),
        ms("committed_ms"),
        ms("ended_ms")
    );
    println!(
        "bytes         {} from the client, {} to the backend",
        or_dash(turn["request_bytes"].as_i64()),
        or_dash(turn["upstream_bytes"].as_i64())
    );
    let error =
        turn["error_message"].as_str().map(|message| format!(": {message}")).unwrap_or_default();
    println!("outcome       {}{error}", or_dash(turn["outcome"].as_str().or(Some("running"))));
    let calls = reply["calls"].as_array().cloned().unwrap_or_default();
    let rows = calls.iter().map(|call| {
        let after = |name: &str| {
            Some(format!("{} ms", call[name].as_i64()? - turn["started_at"].as_i64()?))
        };
        vec![
            or_dash(call["index"].as_u64().map(|index| index + 1)),
            or_dash(call["tool"].as_str()),
            or_dash(call["call_id"].as_str()),
            or_dash(after("emitted_at")),
            or_dash(call["booked_position"].as_u64().map(|position| position + 1)),
            or_dash(after("booked_at")),
        ]
    });
    table::print(&["emitted", "tool", "call", "at", "booked", "at"], rows);
    Ok(())
}

/// How the turn's input travelled, for example "on a reused WebSocket, 3 of 24 items".
fn way(turn: &Value) -> String {
    let Some(all) = turn["input_items"].as_i64() else { return "–".into() };
    let by = match turn["socket"].as_str() {
        Some(socket) => format!("on a {socket} WebSocket"),
        None => "as a request of its own (SSE)".into(),
    };
    let what = match turn["new_items"].as_i64() {
        Some(new) => format!("{new} of {all} items"),
        None if all == 1 => "its one item".into(),
        None => format!("all {all} items"),
    };
    let why = turn["whole_reason"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{by}, {what}{why}")
}

fn tokens(turn: &Value) -> String {
    let Some(input) = turn["input_tokens"].as_i64() else { return "–".into() };
    let cached =
        turn["cached_tokens"].as_i64().map(|cached| format!(" ({cached})")).unwrap_or_default();
    format!("{input}{cached} / {}", or_dash(turn["output_tokens"].as_i64()))
}

/// Local time of day, where the system tells it; UTC otherwise, and marked.
fn clock(ms: i64) -> String {
    let Ok(utc) = OffsetDateTime::from_unix_timestamp(ms / 1000) else { return "–".into() };
    let format = format_description!("[month]-[day] [hour]:[minute]:[second]");
    match time::UtcOffset::local_offset_at(utc) {
        Ok(offset) => utc.to_offset(offset).format(format).unwrap_or_default(),
        Err(_) => format!("{}Z", utc.format(format).unwrap_or_default()),
    }
}
