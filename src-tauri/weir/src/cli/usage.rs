//! `weir usage`: tokens per local day and model.

use clap::Args;
use serde_json::Value;

use super::table::{self, or_dash};
use super::{Failed, Place, ask, csv};
use crate::api::Command;
use crate::app::folder::Folder;
use crate::store::Store;

#[derive(Debug, Args)]
pub(super) struct Usage {
    /// How many days are listed.
    #[arg(long, default_value_t = 30)]
    days: usize,
    /// Print JSON instead of a table.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values; a missing number is an empty field.
    #[arg(long)]
    csv: bool,
}

const FIELDS: [&str; 8] = [
    "day",
    "model",
    "turns",
    "reported",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
];

pub(super) async fn run(usage: Usage, place: &Place) -> Result<(), Failed> {
    let rows = match ask::running(place, &Command::Usage { days: Some(usage.days) }).await? {
        Some(reply) => reply["usage"].as_array().cloned().unwrap_or_default(),
        None => stored(usage.days, place)?,
    };
    if usage.json {
        ask::print_json(&Value::Array(rows));
        return Ok(());
    }
    if usage.csv {
        csv::print(&FIELDS, &rows);
        return Ok(());
    }
    if rows.is_empty() {
        println!("No turn yet. Point a client at Weir and send a prompt.");
    }
    let cells = rows.iter().map(|row| {
        let number = |name: &str| or_dash(row[name].as_i64());
        vec![
            or_dash(row["day"].as_str()),
            or_dash(row["model"].as_str()),
            number("turns"),
            number("reported"),
            number("input_tokens"),
            number("cached_tokens"),
            number("output_tokens"),
            number("reasoning_tokens"),
        ]
    });
    table::print(
        &[
            "day",
            "model",
            "turns",
            "with counts",
            "input",
            "of it cached",
            "output",
            "of it reasoning",
        ],
        cells,
    );
    Ok(())
}

/// The history of a folder on which no program runs.
fn stored(days: usize, place: &Place) -> Result<Vec<Value>, Failed> {
    let failed = |error: &dyn std::fmt::Display| Failed::Command(error.to_string());
    let folder = Folder::open(Some(ask::folder(place)?)).map_err(|error| failed(&error))?;
    let store = Store::open(folder.path()).map_err(|error| failed(&error))?;
    let rows = store.usage_by_day(days).map_err(|error| failed(&error))?;
    Ok(rows.iter().map(|row| serde_json::to_value(row).unwrap_or_default()).collect())
}
