//! `weir usage`: tokens per local day and model.

use clap::Args;
use serde_json::Value;

use super::table::{self, or_dash};
use super::{Failed, Place, ask};
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
        println!("{}", FIELDS.join(","));
        rows.iter().for_each(|row| println!("{}", FIELDS.map(|field| csv(&row[field])).join(",")));
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

/// One field; text with a comma, a quote or a line break is quoted. A leading `=` or the like would be run as a formula by
/// some spreadsheets, so it is set apart.
fn csv(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::String(text) => text.clone(),
        other => return other.to_string(),
    };
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_is_one_field_and_no_formula() {
        let cases = [
            (json!(null), ""),
            (json!(12), "12"),
            (json!("a"), "a"),
            (json!("a,\"b\""), "\"a,\"\"b\"\"\""),
            (json!("=1"), "'=1"),
        ];
        for (value, text) in cases {
            assert_eq!(csv(&value), text);
        }
    }
}
