//! `weir mode`: what each model is sent as, and the choice.

use clap::Args;
use serde_json::Value;
use weir_core::dialect::mode::ServingMode;

use super::table::{self, or_dash};
use super::{Failed, Place, ask, shown};
use crate::api::Command;
use crate::app::folder::Folder;
use crate::store::Store;

#[derive(Debug, Args)]
pub(super) struct Mode {
    /// The model; all models are listed without it.
    model: Option<String>,
    /// auto, lite or full.
    #[arg(conflicts_with = "probe")]
    mode: Option<ServingMode>,
    /// Send three small turns in each form and compare. This uses quota.
    #[arg(long, requires = "model")]
    probe: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(mode: Mode, place: &Place) -> Result<(), Failed> {
    match (mode.model, mode.mode) {
        (Some(model), _) if mode.probe => probe(model, mode.json, place).await,
        (Some(model), Some(chosen)) => set(model, chosen, mode.json, place).await,
        (model, _) => list(model.as_deref(), mode.json, place).await,
    }
}

async fn list(only: Option<&str>, json: bool, place: &Place) -> Result<(), Failed> {
    let Some(reply) = ask::running(place, &Command::Models).await? else {
        return list_stored(json, place);
    };
    let all = reply["models"].as_array().cloned().unwrap_or_default();
    let models: Vec<Value> =
        all.into_iter().filter(|row| only.is_none_or(|name| row["model"] == name)).collect();
    if let (Some(name), true) = (only, models.is_empty()) {
        return Err(Failed::Command(format!(
            "No account of the pool offers `{name}`. `weir models` lists what there is."
        )));
    }
    if json {
        ask::print_json(&Value::Array(models));
        return Ok(());
    }
    let rows = models.iter().map(|row| {
        let chosen = row["mode"].as_str().and_then(|mode| mode.parse().ok()).unwrap_or_default();
        vec![
            or_dash(row["model"].as_str()),
            shown(chosen, row["dialect"].as_str().unwrap_or("–")),
            or_dash(row["reason"].as_str()),
        ]
    });
    table::print(&["model", "mode", "why"], rows);
    Ok(())
}

/// Without a running program only the user's own choices are known.
fn list_stored(json: bool, place: &Place) -> Result<(), Failed> {
    let modes = store(place)?.modes().map_err(|error| Failed::Command(error.to_string()))?;
    if json {
        let rows =
            modes.iter().map(|(model, mode)| serde_json::json!({"model": model, "mode": mode}));
        ask::print_json(&Value::Array(rows.collect()));
        return Ok(());
    }
    println!(
        "Weir is not running, so only your own choices are known; every other model is on auto."
    );
    table::print(
        &["model", "mode"],
        modes.iter().map(|(model, mode)| vec![model.clone(), mode.to_string()]),
    );
    Ok(())
}

async fn set(model: String, mode: ServingMode, json: bool, place: &Place) -> Result<(), Failed> {
    let command = Command::SetMode { model: model.clone(), mode };
    match ask::running(place, &command).await? {
        Some(reply) if json => ask::print_json(&reply),
        Some(reply) => {
            let row = &reply["model"];
            println!(
                "{model}: {} from the next turn on ({})",
                shown(mode, row["dialect"].as_str().unwrap_or("–")),
                row["reason"].as_str().unwrap_or_default()
            );
            warn(mode, &row["lite_in_catalog"], &model);
        }
        None => {
            store(place)?
                .set_mode(&model, mode)
                .map_err(|error| Failed::Command(error.to_string()))?;
            println!("{model}: {mode} from the next start of Weir on");
        }
    }
    Ok(())
}

/// What the user takes upon himself by overruling the catalog.
fn warn(mode: ServingMode, lite_in_catalog: &Value, model: &str) {
    let against = match mode {
        ServingMode::Full => lite_in_catalog == true,
        ServingMode::Lite => lite_in_catalog != true,
        ServingMode::Auto => false,
    };
    if against {
        println!(
            "The backend's catalog says otherwise for this model, so it may refuse. If it does, `weir mode {model} auto` goes back."
        );
    }
}

async fn probe(model: String, json: bool, place: &Place) -> Result<(), Failed> {
    let reply = ask::must(place, &Command::Probe { model }).await?;
    if json {
        ask::print_json(&reply);
        return Ok(());
    }
    println!(
        "{} on account {}: three trials in each form, the same prompt and tool",
        or_dash(reply["model"].as_str()),
        or_dash(reply["account"].as_str())
    );
    let trials = reply["trials"].as_array().cloned().unwrap_or_default();
    let rows = trials.iter().map(|trial| {
        vec![
            or_dash(trial["dialect"].as_str()),
            or_dash(trial["trial"].as_u64()),
            or_dash(trial["answer"].as_str()),
            or_dash(trial["calls"].as_u64()),
            or_dash(trial["input_tokens"].as_u64()),
            or_dash(trial["output_tokens"].as_u64()),
        ]
    });
    table::print(
        &["form", "trial", "answer", "calls in one response", "input tokens", "output tokens"],
        rows,
    );
    let refusals = trials.iter().filter_map(|trial| trial["message"].as_str());
    if let Some(message) = refusals.into_iter().next() {
        println!("The backend said: {message}");
    }
    Ok(())
}

/// The store of a folder on which no program runs.
fn store(place: &Place) -> Result<Store, Failed> {
    let folder = Folder::open(Some(ask::folder(place)?))
        .map_err(|error| Failed::Command(error.to_string()))?;
    Store::open(folder.path()).map_err(|error| Failed::Command(error.to_string()))
}
