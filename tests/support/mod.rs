//! What the tests share: a running Weir with a practice upstream, and a client.

pub(crate) mod bare;
pub(crate) mod client;
pub(crate) mod raw;
pub(crate) mod raw_socket;

use std::path::Path;

use serde_json::{Value, json};
use weir::api::{Command, Reply, dispatch};
use weir::app::{App, Config};
use weir::practice::{Options, Received, Scenario, Server, Transport};
use weir::turn::Timers;
use weir_core::dialect::mode::ServingMode;

pub(crate) use client::Got;

/// The two ways to a backend, as the end of a scenario.
pub(crate) mod roads {
    pub(crate) const HELD: &str = "";
    pub(crate) const SSE: &str = "\n[[rule]]\nreply = { ws_refuse = 426 }\n";
}

/// Tests that must hold whichever way a turn takes: each gets the road.
macro_rules! on_both_roads {
    ($($test:ident,)*) => {
        mod held {
            $(#[tokio::test] async fn $test() { super::$test(crate::support::roads::HELD).await })*
        }
        mod sse {
            $(#[tokio::test] async fn $test() { super::$test(crate::support::roads::SSE).await })*
        }
    };
}

/// A running Weir with practice accounts, on a folder of its own unless one is given.
pub(crate) struct Weir {
    app: App,
    key: String,
    http: reqwest::Client,
    folder: Option<tempfile::TempDir>,
}

impl Weir {
    pub(crate) async fn start(scenario: &str) -> Self {
        Self::with(scenario, Timers::default()).await
    }

    /// Starts with a backend on one of the [`roads`].
    pub(crate) async fn start_on(road: &str, scenario: &str) -> Self {
        Self::start(&format!("{scenario}{road}")).await
    }

    pub(crate) async fn with_on(road: &str, scenario: &str, timers: Timers) -> Self {
        Self::with(&format!("{scenario}{road}"), timers).await
    }

    pub(crate) async fn with(scenario: &str, timers: Timers) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut weir = Self::on(folder.path(), scenario, timers).await;
        weir.folder = Some(folder);
        weir
    }

    /// Starts on a folder that outlives it.
    pub(crate) async fn on(folder: &Path, scenario: &str, timers: Timers) -> Self {
        let text = format!("pace = 0.0\n{scenario}");
        let scenario = Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{error}"));
        Self::of(folder, Options { scenario, ..Options::default() }, timers).await
    }

    /// Starts with a backend of its own making.
    pub(crate) async fn of(folder: &Path, practice: Options, timers: Timers) -> Self {
        let config = Config {
            data: Some(folder.to_owned()),
            port: 0,
            practice: Some(practice),
            timers,
            log: false,
        };
        let app = App::start(config).await.unwrap_or_else(|error| panic!("{error}"));
        let key = app.data_key.expose().to_owned();
        Self { app, key, http: client::http(), folder: None }
    }

    pub(crate) fn practice(&self) -> &Server {
        self.app.practice().expect("started with practice accounts")
    }

    pub(crate) fn api(&self) -> &weir::api::Api {
        &self.app.api
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// The endpoint's scheme, host and port.
    pub(crate) fn origin(&self) -> &str {
        self.app.base_url.trim_end_matches("/v1")
    }

    /// A request to `/v1/responses` that only lacks its body.
    pub(crate) fn request(&self) -> reqwest::RequestBuilder {
        self.http.post(format!("{}/responses", self.app.base_url)).bearer_auth(&self.key)
    }

    /// Sends a body and reads the answer to its end.
    pub(crate) async fn post(&self, body: &Value) -> Got {
        client::read(self.request().json(body)).await
    }

    /// Sends a streaming turn of one conversation.
    pub(crate) async fn turn(&self, conversation: &str, body: &Value) -> Got {
        client::read(self.request().header("x-session-id", conversation).json(body)).await
    }

    /// Closes what is kept open between turns, as the end of the program does.
    pub(crate) async fn close_upstream(&self) {
        self.app.api.turns.upstream.close().await;
    }

    pub(crate) async fn command(&self, command: Command) -> Reply {
        dispatch(&self.app.api, command)
            .await
            .unwrap_or_else(|refusal| panic!("{}", refusal.message))
    }

    pub(crate) async fn set_mode(&self, model: &str, mode: ServingMode) {
        self.command(Command::SetMode { model: model.into(), mode }).await;
    }

    /// A reply as the JSON that the window gets.
    pub(crate) async fn ask(&self, command: Command) -> Value {
        serde_json::to_value(self.command(command).await).expect("a reply is JSON")
    }

    /// The stored turns, newest first.
    pub(crate) async fn turns(&self) -> Vec<Value> {
        let reply = self.ask(Command::Turns { limit: None }).await;
        reply["turns"].as_array().expect("a list").clone()
    }

    /// The requests for a response that reached the backend, in order.
    pub(crate) fn upstream(&self) -> Vec<Received> {
        self.responses().filter(|request| !is_handshake(request)).collect()
    }

    /// How many handshakes the backend refused; an accepted one is recorded by its frames.
    pub(crate) fn refused_handshakes(&self) -> usize {
        self.responses().filter(is_handshake).count()
    }

    fn responses(&self) -> impl Iterator<Item = Received> {
        let all = self.practice().requests().into_iter();
        all.filter(|request| request.path.ends_with("/responses"))
    }

    /// Ends the program and asks the backend whether any request broke a rule.
    pub(crate) async fn finish(self) {
        let violations = self.practice().violations();
        self.app.drain().await;
        assert!(violations.is_empty(), "the backend counts broken rules: {violations:#?}");
    }
}

fn is_handshake(request: &Received) -> bool {
    request.transport == Transport::Ws && request.socket.is_none()
}

/// A streaming request with a `task` tool, in the flat form that OpenCode sends.
pub(crate) fn task_request(model: &str, input: Value) -> Value {
    json!({
        "model": model,
        "input": input,
        "tools": [{"type": "function", "name": "task", "description": "starts a subagent", "strict": false,
            "parameters": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}}],
        "tool_choice": "auto",
        "stream": true,
        "store": false,
        "prompt_cache_key": "group",
    })
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "input_text", "text": text}]})
}

/// The smallest streaming request.
pub(crate) fn plain(model: &str) -> Value {
    json!({"model": model, "input": "hello", "stream": true})
}
