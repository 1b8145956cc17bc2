//! What the desktop program is started with.
//!
//! The names are those of `weir serve`, so that one who knows the one knows the other. `--hidden` is what the login starts it
//! with.
//!
//! **Invariant**: a start at login means the same data folder, port and backend as the start that asked for it.

use std::path::PathBuf;

use clap::Parser;

/// Where clients expect Weir.
const PORT: u16 = 8788;

/// Weir in the tray: one localhost Responses endpoint over a pool of your own Codex accounts.
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(
    name = "weir-desktop",
    version,
    after_help = "Examples:\n  weir-desktop               the tray and the window; uses a running `weir serve` if there is one\n  weir-desktop --practice    try Weir without an account\n  weir-desktop --hidden      the tray alone\n  weir-desktop --quit        end the one that runs"
)]
pub(crate) struct Args {
    /// The data folder [default: WEIR_DATA, else the system's own].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// The port on the loopback interface; 0 takes any free one.
    #[arg(long, default_value_t = PORT)]
    pub(crate) port: u16,
    /// Serve practice accounts by an embedded backend whose answers are scripted.
    #[arg(long)]
    pub(crate) practice: bool,
    /// Open no window.
    #[arg(long)]
    pub(crate) hidden: bool,
    /// End the desktop program that runs.
    #[arg(long)]
    pub(crate) quit: bool,
}

impl Args {
    /// The arguments of another start, as that one got them; absent if they mean nothing to this version.
    pub(crate) fn of(argv: Vec<String>) -> Option<Self> {
        Self::try_parse_from(argv).ok()
    }

    /// What a start at login gets. `quoted` where the system splits one line of text at spaces.
    pub(crate) fn at_login(&self, quoted: bool) -> Vec<String> {
        let mut args = vec!["--hidden".to_owned()];
        if let Some(data) = &self.data {
            let path = std::path::absolute(data).unwrap_or_else(|_| data.clone());
            let path = path.to_string_lossy();
            args.push("--data".to_owned());
            args.push(if quoted { format!("\"{path}\"") } else { path.into_owned() });
        }
        if self.port != PORT {
            args.push("--port".to_owned());
            args.push(self.port.to_string());
        }
        if self.practice {
            args.push("--practice".to_owned());
        }
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Option<Args> {
        Args::of(format!("weir-desktop {line}").split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn nothing_given_is_the_port_that_clients_expect_and_no_practice() {
        let plain = args("").expect("no argument is needed");
        let expected = Args { data: None, port: 8788, practice: false, hidden: false, quit: false };
        assert_eq!(plain, expected);
        assert_eq!(plain.at_login(true), ["--hidden"]);
    }

    #[test]
    fn a_start_at_login_repeats_what_was_asked_for() {
        let asked = args("--data /home/a/weir --port 9000 --practice").expect("known");
        let login = asked.at_login(false);
        assert_eq!(login, ["--hidden", "--data", "/home/a/weir", "--port", "9000", "--practice"]);
        assert_eq!(args(&login.join(" ")), Some(Args { hidden: true, ..asked }));
    }

    #[test]
    fn a_folder_with_spaces_stays_one_argument_where_a_line_is_split() {
        let asked = Args { data: Some("/home/a b/weir".into()), ..args("").expect("known") };
        assert_eq!(asked.at_login(true)[2], "\"/home/a b/weir\"");
        assert_eq!(asked.at_login(false)[2], "/home/a b/weir");
    }

    #[test]
    fn an_unknown_argument_is_refused() {
        assert_eq!(args("--practise"), None);
        assert_eq!(args("--port none"), None);
    }
}
