//! The program under test, from outside: how it is started, watched and ended.
//!
//! **Invariant**: only what any user could see is used: arguments, the ready line, the process's own folder in `/proc`.

use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::client::Place;
use crate::transcript::Footing;

/// The program's timers in milliseconds: status, comment, silence, idle. The last two are long against what a busy machine
/// delays, since a program that gave up rightly looks at the other end like one that lost something.
pub const TIMERS: [u64; 4] = [300, 150, 6_000, 8_000];

pub struct Program {
    child: Child,
    path: PathBuf,
    folder: PathBuf,
    pub place: Place,
}

impl Program {
    pub async fn start(
        path: &Path,
        folder: &Path,
        upstream: &str,
        accounts: usize,
    ) -> io::Result<Self> {
        let log = std::fs::File::create(folder.join("stderr"))?;
        let timers = TIMERS.map(|timer| timer.to_string()).join(",");
        let mut child = Command::new(path)
            .args(["serve", "--practice", "--json", "--port", "0"])
            .args(["--practice-upstream", upstream, "--practice-accounts", &accounts.to_string()])
            .args(["--timers", &timers])
            .env("WEIR_DATA", folder.join("data"))
            .env("HOME", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let out = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        let line = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(out).read_line(&mut line).map(|_| line)
        });
        let line = line.await.map_err(io::Error::other)??;
        let ready: Value = serde_json::from_str(&line).map_err(|_| {
            io::Error::other(format!(
                "the program did not start: {line:?}, see {}",
                folder.display()
            ))
        })?;
        let text = |name: &str| ready[name].as_str().unwrap_or_default().to_owned();
        let base = text("base_url");
        let address = base.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
        let place = Place { address, key: text("key") };
        Ok(Self { child, path: path.to_owned(), folder: folder.to_owned(), place })
    }

    pub async fn footing(&self) -> Footing {
        let mut footing =
            Footing { in_flight: self.in_flight().await.unwrap_or(u64::MAX), ..Footing::default() };
        let own = PathBuf::from(format!("/proc/{}", self.child.id()));
        for entry in std::fs::read_dir(own.join("fd")).into_iter().flatten().flatten() {
            let is_socket = std::fs::read_link(entry.path())
                .is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
            if is_socket {
                footing.sockets += 1;
            } else {
                footing.files += 1;
            }
        }
        let status = std::fs::read_to_string(own.join("status")).unwrap_or_default();
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().split(' ').next()?.parse().ok());
        footing.resident_kib = resident.unwrap_or(0);
        footing
    }

    async fn in_flight(&self) -> Option<u64> {
        self.ask("status").await?["in_flight"].as_u64()
    }

    /// Whether so many accounts offer a model.
    pub async fn knows_all(&self, accounts: usize) -> bool {
        let models = self.ask("models").await.unwrap_or_default();
        let offers = models["models"].as_array().into_iter().flatten();
        offers.filter_map(|model| model["accounts"].as_u64()).sum::<u64>() >= accounts as u64
    }

    async fn ask(&self, what: &str) -> Option<Value> {
        let mut command = Command::new(&self.path);
        command
            .args([what, "--json"])
            .env("WEIR_DATA", self.folder.join("data"))
            .env("HOME", &self.folder)
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await.ok()?.ok()?;
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        drop(Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status());
    }

    /// Asks it to end, and waits.
    pub async fn end(mut self) -> (Option<i32>, Duration, String) {
        let begun = Instant::now();
        self.signal("TERM");
        let bound = begun + Duration::from_secs(30);
        let exit = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status.code(),
                _ if Instant::now() >= bound => break None,
                _ => sleep(Duration::from_millis(20)).await,
            }
        };
        let drain = begun.elapsed();
        let read = |path: PathBuf| {
            std::fs::read(path)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .unwrap_or_default()
        };
        let log = read(self.folder.join("stderr")) + &read(self.folder.join("data/weir.log"));
        (exit, drain, log)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended, or nobody waits for it any more.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
