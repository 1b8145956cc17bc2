//! `weir status`: what runs now.

use super::table::span;
use super::{Failed, Place, Shape, ask};
use crate::api::Command;
use crate::turn::clock::now_ms;

pub(super) async fn run(shape: Shape, place: &Place) -> Result<(), Failed> {
    let status = ask::must(place, &Command::Status).await?;
    if shape.json {
        ask::print_json(&status);
        return Ok(());
    }
    let text = |name: &str| status[name].as_str().unwrap_or_default();
    let number = |name: &str| status[name].as_i64().unwrap_or_default();
    println!("Weir {} serves {}", text("version"), text("base_url"));
    if status["practice"] == true {
        println!("Practice: the answers are scripted, no account is used and no model answers.");
    }
    println!(
        "Running for {}, {} turn(s) in flight",
        span((now_ms() - number("started_at")) / 1000),
        number("in_flight")
    );
    Ok(())
}
