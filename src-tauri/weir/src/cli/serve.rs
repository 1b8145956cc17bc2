//! `weir serve`: the endpoint in the foreground.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{Failed, Place};
use crate::app::{App, Config, system};
use crate::practice;
use crate::turn::Timers;

/// Where clients expect Weir.
const PORT: u16 = 8788;

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Serve practice accounts by an embedded backend whose answers are scripted.
    #[arg(long)]
    practice: bool,
    /// The port on the loopback interface; 0 takes any free one.
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Print one line of JSON when ready: {"ready":true,"base_url":…,"key":…}.
    #[arg(long)]
    json: bool,
    /// A scenario file that scripts the practice backend.
    #[arg(long, value_name = "FILE", requires = "practice")]
    scenario: Option<PathBuf>,
    /// Write every request that the practice backend receives to this file, one JSON line each. It holds prompts.
    #[arg(long, value_name = "FILE", requires = "practice")]
    record: Option<PathBuf>,
    /// The loopback address of a backend that stands in for the embedded one, with accounts `practice-token-1` and so on.
    #[arg(long, value_name = "URL", value_parser = on_loopback, requires = "practice", hide = true,
        conflicts_with_all = ["scenario", "record"])]
    practice_upstream: Option<String>,
    /// How many accounts that backend knows.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        requires = "practice_upstream",
        hide = true
    )]
    practice_accounts: usize,
    /// Milliseconds of status, comment, silence and idle, so that a harness need not wait for minutes.
    #[arg(long, value_name = "MS,MS,MS,MS", value_parser = timers, requires = "practice_upstream", hide = true)]
    timers: Option<Timers>,
}

/// A practice account's token is worth nothing, a prompt that leaves this machine is.
fn on_loopback(url: &str) -> Result<String, String> {
    let rest =
        url.strip_prefix("http://127.0.0.1:").ok_or("it must begin with http://127.0.0.1:")?;
    let port = rest.split('/').next().unwrap_or_default();
    port.parse::<u16>().map_err(|_| format!("`{port}` is no port"))?;
    Ok(url.to_owned())
}

fn timers(text: &str) -> Result<Timers, String> {
    let spans: Result<Vec<u64>, _> = text.split(',').map(str::parse).collect();
    let spans = spans.map_err(|_| "four numbers of milliseconds are needed".to_owned())?;
    let [status, comment, silence, idle] = spans[..] else {
        return Err("four numbers of milliseconds are needed".to_owned());
    };
    let [status, comment, silence, idle] =
        [status, comment, silence, idle].map(Duration::from_millis);
    Ok(Timers { status, comment, silence, idle, ..Timers::default() })
}

pub(super) async fn run(serve: Serve, place: Place) -> Result<(), Failed> {
    let practice = practice(&serve)?;
    // Listened for from here on, so that whoever reads the ready line may end the program at once.
    let end = system::asked_to_end().map_err(|error| {
        Failed::Start(format!("The system does not let Weir hear signals ({error})."))
    })?;
    let timers = serve.timers.unwrap_or_default();
    let config = Config { data: place.data, port: serve.port, practice, timers, log: true };
    let app = App::start(config).await.map_err(|error| Failed::Start(error.to_string()))?;
    if serve.json {
        println!(
            "{}",
            json!({"ready": true, "base_url": app.base_url, "key": app.data_key.expose()})
        );
    } else {
        greet(&app, serve.practice);
    }
    end.await;
    if !serve.json {
        println!("Letting running turns end … (Ctrl-C again ends them now)");
    }
    let again = system::asked_to_end().map_err(|error| {
        Failed::Start(format!("The system does not let Weir hear signals ({error})."))
    })?;
    app.drain_until(again).await;
    Ok(())
}

fn practice(serve: &Serve) -> Result<Option<practice::Options>, Failed> {
    if !serve.practice {
        return Ok(None);
    }
    if let Some(base_url) = &serve.practice_upstream {
        return Ok(Some(practice::Options::elsewhere(base_url.clone(), serve.practice_accounts)));
    }
    let mut options =
        practice::Options { record: serve.record.clone(), ..practice::Options::default() };
    if let Some(path) = &serve.scenario {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failed::Start(format!("The scenario {} cannot be read ({error}).", path.display()))
        })?;
        options.scenario = practice::Scenario::from_toml(&text).map_err(|error| {
            Failed::Start(format!(
                "The scenario {} cannot be played: {error}. Correct it and start again.",
                path.display()
            ))
        })?;
    }
    Ok(Some(options))
}

fn greet(app: &App, practice: bool) {
    let (base_url, key) = (&app.base_url, app.data_key.expose());
    println!("Weir serves {base_url}");
    if practice {
        println!("Practice: the answers are scripted, no account is used and no model answers.");
    } else if app.api.turns.pool.accounts().is_empty() {
        println!(
            "There is no account yet, so no turn can be served. `weir serve --practice` serves practice accounts."
        );
    }
    println!("Key for clients: {key}");
    println!();
    println!("OpenCode: put this into ~/.config/opencode/opencode.json");
    println!();
    println!("{}", super::snippet::opencode(base_url, key));
    println!();
    println!("Then: opencode run \"Launch 3 subagents\"");
    println!("Ctrl-C ends Weir.");
}
