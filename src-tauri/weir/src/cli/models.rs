//! `weir models`: what the pool offers.

use super::table::{self, or_dash};
use super::{Failed, Place, Shape, ask};
use crate::api::Command;

pub(super) async fn run(shape: Shape, place: &Place) -> Result<(), Failed> {
    let reply = ask::must(place, &Command::Models).await?;
    if shape.json {
        ask::print_json(&reply);
        return Ok(());
    }
    let models = reply["models"].as_array().cloned().unwrap_or_default();
    if models.is_empty() {
        println!("No model is offered. `weir accounts` says why.");
    }
    let rows = models.iter().map(|model| {
        vec![
            or_dash(model["model"].as_str()),
            or_dash(model["display_name"].as_str()),
            or_dash(model["dialect"].as_str()),
            or_dash(model["accounts"].as_u64()),
        ]
    });
    table::print(&["model", "name", "sent as", "accounts"], rows);
    Ok(())
}
