//! The command line: one small file per command.
//!
//! A command asks the running program over its loopback port with the control key; what can be answered without one is
//! answered from the store.
//!
//! **Invariant**: exit codes are 0 done, 1 failed, 2 wrong usage, 3 cannot start, each but 0 with a sentence on stderr.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what a command line is for"
)]

/// Prints a line. A reader that has gone, as in `weir turns | head`, is no error.
macro_rules! println {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        drop(writeln!(std::io::stdout(), $($text)*));
    }};
}

mod accounts;
mod ask;
mod csv;
mod key;
mod mode;
mod models;
mod open;
mod serve;
mod snippet;
mod status;
mod table;
mod turns;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use weir_core::dialect::mode::ServingMode;

/// One localhost Responses endpoint over a pool of your own Codex accounts.
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  weir serve --practice            try Weir without an account\n  weir key                         the key that clients send\n  weir mode                        what each model is sent as, and why\n  weir mode MODEL full             send MODEL in the full form from the next turn on\n  weir mode MODEL --probe          compare both forms (sends six small turns)\n  weir open                        the page, in a browser\n  weir status                      what runs now\n  weir accounts                    what is left, and when it resets\n  weir models                      what the pool offers\n  weir turns                       the latest turns\n  weir turns show ID               one turn with its calls\n  weir usage --csv                 tokens by day and model"
)]
struct Weir {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

/// Which data folder a command works on.
#[derive(Clone, Debug, Args)]
struct Place {
    /// The data folder [default: WEIR_DATA, else the system's own].
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the endpoint and stay in the foreground until Ctrl-C.
    ///
    /// Example: weir serve --practice
    Serve(serve::Serve),
    /// Print the key that clients send as `Authorization: Bearer KEY`.
    ///
    /// Example: export OPENAI_API_KEY=$(weir key)
    Key,
    /// List the serving modes, set one, or compare both forms.
    ///
    /// auto sends a model as the backend's catalog says; lite and full are your own choice. full lets a model call
    /// several tools at once; the backend does not document it for every model and may refuse it.
    ///
    /// Example: weir mode gpt-6-sol full
    Mode(mode::Mode),
    /// Open the page in a browser, with an address that is good once.
    ///
    /// Example: weir open --print
    Open(open::Open),
    /// Say what runs now.
    ///
    /// Example: weir status --json
    Status(Shape),
    /// List the accounts, what is left of their windows and when those reset.
    ///
    /// Example: weir accounts
    Accounts(Shape),
    /// List the models that the pool offers.
    ///
    /// Example: weir models
    Models(Shape),
    /// List the latest turns, or show one with its calls.
    ///
    /// Example: weir turns show 0196
    Turns(turns::Turns),
    /// Sum up tokens by local day and model.
    ///
    /// Example: weir usage --csv > usage.csv
    Usage(usage::Usage),
}

#[derive(Clone, Copy, Debug, Args)]
struct Shape {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// A command's bad end.
#[derive(Debug)]
enum Failed {
    /// Exit code 1.
    Command(String),
    /// Exit code 3.
    Start(String),
}

pub fn run() -> ExitCode {
    let weir = Weir::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return failed(&Failed::Start(format!("The system gives Weir no threads ({error}).")));
        }
    };
    let done = runtime.block_on(async {
        match weir.command {
            Command::Serve(serve) => serve::run(serve, weir.place).await,
            Command::Key => key::run(&weir.place),
            Command::Mode(mode) => mode::run(mode, &weir.place).await,
            Command::Open(open) => open::run(open, &weir.place).await,
            Command::Status(shape) => status::run(shape, &weir.place).await,
            Command::Accounts(shape) => accounts::run(shape, &weir.place).await,
            Command::Models(shape) => models::run(shape, &weir.place).await,
            Command::Turns(turns) => turns::run(turns, &weir.place).await,
            Command::Usage(usage) => usage::run(usage, &weir.place).await,
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &Failed) -> ExitCode {
    let (message, code) = match error {
        Failed::Command(message) => (message, 1),
        Failed::Start(message) => (message, 3),
    };
    eprintln!("weir: {message}");
    ExitCode::from(code)
}

/// The mode's name as a table shows it, with what auto resolves to.
fn shown(mode: ServingMode, dialect: &str) -> String {
    match mode {
        ServingMode::Auto => format!("auto → {dialect}"),
        chosen => chosen.to_string(),
    }
}
