//! The built program as its users start it: a child process on a folder of its own.
//!
//! Waits are on what the program does (a line, an end, a file), with a bound that only a broken program reaches.

/// The commands, with and without a running program.
mod commands;
/// What keeps the program from starting.
mod refusals;
/// What is never written down.
mod secrets;
/// How it ends.
mod signals;
/// How it starts.
mod start;

use std::future::Future;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::support::client::{http, read};
use crate::support::{Got, task_request, user};

/// Reached by a broken program only.
const BOUND: Duration = Duration::from_secs(60);

async fn within<T>(what: &str, wait: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(BOUND, wait).await;
    waited.unwrap_or_else(|_| panic!("waited for {what} for {} s", BOUND.as_secs()))
}

/// The program with arguments, on nothing but the given folder. It is killed when it is dropped.
fn weir(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command
        .args(arguments)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", folder)
        .env("WEIR_DATA", folder.join("data"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// How a command ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ended {
    /// Checks the code, and that a bad end says a sentence to stderr and nothing to stdout.
    fn refused(&self, code: i32, says: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        let sentence = self.stderr.trim_end();
        assert!(sentence.ends_with('.') && sentence.lines().count() == 1, "{self:?}");
        assert!(sentence.starts_with("weir: "), "{self:?}");
        for part in says {
            assert!(sentence.contains(part), "{part:?} is not in {self:?}");
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs a command to its end.
async fn run(folder: &Path, arguments: &[&str]) -> Ended {
    let child = weir(folder, arguments).spawn().expect("the program was built");
    let output = within(&format!("the end of weir {arguments:?}"), child.wait_with_output()).await;
    let output = output.expect("a child can be waited for");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// Runs a command that must be done.
async fn done(folder: &Path, arguments: &[&str]) -> Ended {
    let ended = run(folder, arguments).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}: {ended:?}");
    ended
}

/// `weir serve --practice --json`, ready.
struct Serving {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
    log: JoinHandle<String>,
    base_url: String,
    key: String,
}

impl Serving {
    /// On any port, with answers that need no time.
    async fn start(folder: &Path) -> Self {
        let scenario = folder.join("instant.toml");
        std::fs::write(&scenario, "pace = 0.0\n").expect("a writable folder");
        Self::with(folder, &["--scenario", scenario.to_str().expect("UTF-8")], &[]).await
    }

    async fn with(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut all = vec!["serve", "--practice", "--json"];
        if !arguments.contains(&"--port") {
            all.extend(["--port", "0"]);
        }
        all.extend(arguments);
        let mut command = weir(folder, &all);
        command.envs(environment.iter().copied());
        let mut child = command.spawn().expect("the program was built");
        let mut stderr = child.stderr.take().expect("a pipe");
        let log = tokio::spawn(async move {
            let mut log = Vec::new();
            stderr.read_to_end(&mut log).await.expect("a pipe can be read");
            String::from_utf8_lossy(&log).into_owned()
        });
        let mut out = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = within("the ready line", out.next_line()).await.expect("UTF-8");
        let Some(line) = line else { panic!("it ended before it was ready: {:?}", log.await) };
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(ready["ready"], true, "{line}");
        let text = |name: &str| ready[name].as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, out, log, base_url: text("base_url"), key: text("key") }
    }

    fn port(&self) -> u16 {
        let port = self.base_url.trim_end_matches("/v1").rsplit(':').next();
        port.and_then(|port| port.parse().ok()).expect("a port")
    }

    fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    fn request(&self, body: &Value) -> reqwest::RequestBuilder {
        http().post(format!("{}/responses", self.base_url)).bearer_auth(&self.key).json(body)
    }

    async fn turn(&self, body: &Value) -> Got {
        within("a turn", read(self.request(body))).await
    }

    /// How many of three subagents a model asks for in one response: three in full, one in Lite.
    async fn calls_at_once(&self, model: &str) -> usize {
        let got = self.turn(&task_request(model, json!([user("Launch three subagents")]))).await;
        got.events().calls().len()
    }

    /// Sends a signal by its name.
    async fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.pid());
        let sent = Command::new("sh").args(["-c", &kill]).status().await;
        assert!(sent.expect("a shell").success(), "{kill}");
    }

    /// Waits for the end: the exit code, what was printed after the ready line, and the log.
    async fn ended(mut self) -> Ended {
        let status = within("the end of the program", self.child.wait()).await.expect("a child");
        let mut stdout = String::new();
        while let Some(line) = within("its last line", self.out.next_line()).await.expect("UTF-8") {
            stdout.push_str(&line);
            stdout.push('\n');
        }
        let stderr = within("its log", self.log).await.expect("no panic");
        Ended { code: status.code(), stdout, stderr }
    }

    /// Asks it to end, and checks that it does in good order.
    async fn stop(self) {
        self.signal("TERM").await;
        let ended = self.ended().await;
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "", ""));
    }
}
