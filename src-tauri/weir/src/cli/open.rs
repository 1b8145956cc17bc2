//! `weir open`: the page, with a ticket that is good once.

use clap::Args;

use super::{Failed, Place, ask};
use crate::api::Command;

#[derive(Debug, Args)]
pub(super) struct Open {
    /// Print the address instead of opening a browser. It is good once, for a minute.
    #[arg(long)]
    print: bool,
}

pub(super) async fn run(open: Open, place: &Place) -> Result<(), Failed> {
    let reply = ask::must(place, &Command::Open).await?;
    let url = reply["url"].as_str().unwrap_or_default();
    if open.print {
        println!("{url}");
        return Ok(());
    }
    match opener::open_browser(url) {
        Ok(()) => Ok(()),
        Err(error) => Err(Failed::Command(format!(
            "No browser could be started ({error}). Open this address yourself within a minute: {url}"
        ))),
    }
}
