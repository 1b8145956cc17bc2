//! Scenario files: what the practice upstream answers to whom.
//!
//! A scenario is data. Rules are asked in order; the first whose [`When`] holds gives its [`Reply`]. The module above
//! shows an example of a file.
//!
//! **Invariant**: a file that is accepted can be played; what makes no sense is refused with its line.

use std::fmt;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::reply::Reply;
use super::request::Ask;

/// A script for one practice upstream.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Multiplies every wait: 1 is for people, 0 for tests.
    pub pace: f64,
    /// Models that take the Lite lane although their catalog entry does not say so.
    pub lite_ok: Vec<String>,
    /// Turns that one socket takes; the next is told that the socket is too old, and the socket is closed.
    pub socket_limit_after: Option<usize>,
    /// Models beside `practice-full` and `practice-lite`, or instead of them.
    pub models: Vec<Model>,
    /// Asked in order, before the built-in rules.
    pub rules: Vec<Rule>,
}

impl Default for Scenario {
    /// The built-in rules, at a pace for people.
    fn default() -> Self {
        Self {
            pace: 1.0,
            lite_ok: Vec::new(),
            socket_limit_after: None,
            models: Vec::new(),
            rules: Vec::new(),
        }
    }
}

impl Scenario {
    /// The built-in rules, without any wait.
    pub fn instant() -> Self {
        Self { pace: 0.0, ..Self::default() }
    }

    /// Reads a scenario file. A key that is not known, a value of the wrong kind and a reply that cannot be played
    /// are errors.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let file: File = toml::from_str(text).map_err(|error| {
            ScenarioError::at(text, error.span().map(|span| span.start), error.message())
        })?;
        let mut rules = Vec::new();
        for rule in file.rule {
            let start = rule.span().start;
            rules.push(
                rule.into_inner()
                    .checked()
                    .map_err(|problem| ScenarioError::at(text, Some(start), problem))?,
            );
        }
        if !(file.pace.is_finite() && file.pace >= 0.0) {
            return Err(ScenarioError::at(text, None, "`pace` is a number from 0 upwards"));
        }
        Ok(Self {
            pace: file.pace,
            lite_ok: file.lite_ok,
            socket_limit_after: file.socket_limit_after,
            models: file.model,
            rules,
        })
    }
}

/// Why a scenario file was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// Counted from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong, in a sentence.
    pub message: String,
}

impl ScenarioError {
    fn at(text: &str, byte: Option<usize>, message: &str) -> Self {
        let line =
            byte.and_then(|at| text.get(..at)).map(|before| before.matches('\n').count() + 1);
        Self { line, message: message.to_owned() }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line} of the scenario: {}", self.message),
            None => write!(f, "the scenario: {}", self.message),
        }
    }
}

impl std::error::Error for ScenarioError {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "for_people")]
    pace: f64,
    #[serde(default)]
    lite_ok: Vec<String>,
    socket_limit_after: Option<usize>,
    #[serde(default)]
    model: Vec<Model>,
    #[serde(default)]
    rule: Vec<Spanned<RuleEntry>>,
}

fn for_people() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

/// One model of the catalog.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    pub slug: String,
    /// What its catalog entry says; such a model takes the Lite lane.
    #[serde(default)]
    pub use_responses_lite: bool,
    /// Takes the Lite lane although its entry does not say so.
    #[serde(default)]
    pub lite_ok: bool,
    /// Takes the full lane.
    #[serde(default = "yes")]
    pub full_ok: bool,
    /// The names of the accounts that list and serve it; empty means all.
    #[serde(default)]
    pub accounts: Vec<String>,
}

impl Model {
    pub(super) fn new(slug: &str, use_responses_lite: bool) -> Self {
        Self {
            slug: slug.to_owned(),
            use_responses_lite,
            lite_ok: false,
            full_ok: true,
            accounts: Vec::new(),
        }
    }
}

/// The road that a request came on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A request of its own.
    #[default]
    Http,
    /// A frame of a WebSocket, or the handshake for one.
    Ws,
}

/// One rule: a condition and what is answered.
#[derive(Clone, Debug)]
pub struct Rule {
    pub when: When,
    /// The k-th use by a conversation takes the k-th reply.
    pub replies: Vec<Reply>,
    /// Whether the only reply is given each time; otherwise the rule is used up after its last one.
    pub again: bool,
}

impl Rule {
    /// Whether it is asked at handshakes, and not at turns.
    pub(super) fn at_handshake(&self) -> bool {
        self.replies.iter().any(|reply| reply.ws_refuse.is_some())
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    #[serde(default)]
    when: When,
    reply: Option<Reply>,
    replies: Option<Vec<Reply>>,
}

impl RuleEntry {
    fn checked(self) -> Result<Rule, &'static str> {
        let (replies, again) = match (self.reply, self.replies) {
            (Some(reply), None) => (vec![reply], true),
            (None, Some(replies)) if !replies.is_empty() => (replies, false),
            _ => return Err("a rule has either `reply` or `replies`"),
        };
        replies.iter().try_for_each(Reply::check)?;
        let refusals = replies.iter().filter(|reply| reply.ws_refuse.is_some()).count();
        if refusals > 0 {
            if refusals < replies.len() {
                return Err(
                    "a rule with `ws_refuse` is about handshakes: all its replies refuse one",
                );
            }
            let known = When { account: None, nth: None, only: None, ..self.when.clone() };
            if known != When::default() || self.when.only == Some(Transport::Http) {
                return Err("a handshake knows its `account` and its `nth` only");
            }
        }
        Ok(Rule { when: self.when, replies, again })
    }
}

/// When a rule answers. What is absent does not matter.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// The model's slug.
    pub model: Option<String>,
    /// Part of the last user message, in any case.
    pub prompt: Option<String>,
    /// The name of the account that the request came with.
    pub account: Option<String>,
    /// Which response of its conversation this is (or, with `ws_refuse`, which handshake), counted from 1.
    pub nth: Option<u64>,
    /// Whether tool outputs followed the last user message.
    pub has_outputs: Option<bool>,
    /// How many did.
    pub outputs: Option<usize>,
    /// Whether it came with the Lite marker.
    pub lite: Option<bool>,
    /// The name of a tool that is offered.
    pub tool: Option<String>,
    /// Whether any tool is offered.
    pub has_tools: Option<bool>,
    /// The road it came on.
    pub only: Option<Transport>,
}

impl When {
    pub(super) fn holds(&self, ask: Ask<'_>, account: &str, nth: u64, on: Transport) -> bool {
        fn free<T>(wanted: &Option<T>, is: impl FnOnce(&T) -> bool) -> bool {
            wanted.as_ref().is_none_or(is)
        }
        free(&self.model, |model| model == ask.model())
            && free(&self.account, |name| name == account)
            && free(&self.nth, |wanted| *wanted == nth)
            && free(&self.only, |only| *only == on)
            && free(&self.lite, |lite| *lite == ask.lite())
            && free(&self.tool, |name| ask.tool(name).is_some())
            && free(&self.has_tools, |has| *has != ask.tools().is_empty())
            && free(&self.has_outputs, |has| *has != ask.outputs().is_empty())
            && free(&self.outputs, |count| *count == ask.outputs().len())
            && free(&self.prompt, |part| ask.prompt().to_lowercase().contains(&part.to_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, expected: &str) {
        let error = Scenario::from_toml(text).expect_err("a bad scenario");
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_example_of_the_documentation_is_a_scenario() {
        let source = include_str!("mod.rs");
        let example = source.split("```").nth(1).expect("an example");
        let example = example.lines().skip(1).map(|line| line.trim_start_matches("//!"));
        let scenario = Scenario::from_toml(&example.collect::<Vec<_>>().join("\n"));
        let scenario = scenario.expect("a good example");
        assert_eq!(scenario.rules.len(), 4);
        assert_eq!(scenario.rules[1].replies.len(), 2);
        let calls = &scenario.rules[2].replies[0].calls;
        assert_eq!(calls[1].arguments, r#"{"command":"ls","description":"what"}"#);
    }

    #[test]
    fn the_example_for_sockets_is_a_scenario() {
        let source = include_str!("mod.rs");
        let example = source.split("```").nth(3).expect("a second example");
        let example = example.lines().skip(1).map(|line| line.trim_start_matches("//!"));
        let scenario = Scenario::from_toml(&example.collect::<Vec<_>>().join("\n"));
        let scenario = scenario.expect("a good example");
        assert_eq!(scenario.socket_limit_after, Some(20));
        assert!(scenario.rules[0].at_handshake() && !scenario.rules[1].at_handshake());
    }

    #[test]
    fn the_fixtures_are_scenarios() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/scenarios");
        let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file"));
        let read = files.map(|file| {
            let text = std::fs::read_to_string(file.path()).expect("text");
            Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{:?}: {error}", file.path()))
        });
        assert!(read.filter(|scenario| !scenario.rules.is_empty()).count() >= 3);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        refused(
            "pace = 0.0\n\n[[rule]]\nreply = { txt = 'x' }",
            &format!(
                "line 4 of the scenario: unknown field `txt`, expected one of {}",
                "`text`, `say`, `calls`, `items`, `events`, `think_ms`, `gate`, `hold_until_in_flight`, `at`, \
                 `delay_headers_ms`, `silent`, `status`, `json`, `html`, `headers`, `cut_after_event`, \
                 `cut_after_bytes`, `stall_after_event`, `error_event`, `usage_limit_event`, `failed_event`, \
                 `incomplete`, `no_terminal`, `no_usage`, `crlf`, `chunk_bytes`, `ws_refuse`, `ws_close`, `ws_deaf`"
            ),
        );
        refused("pace = -1.0", "the scenario: `pace` is a number from 0 upwards");
        refused(
            "[[rule]]\n[rule.when]\nnth = 1",
            "line 1 of the scenario: a rule has either `reply` or `replies`",
        );
        refused(
            "\n[[rule]]\nreply = { status = 429, text = 'x' }",
            "line 2 of the scenario: a reply with `status` has no stream: only `json`, `html`, `headers` and waits",
        );
        refused(
            "[[rule]]\nreply = { cut_after_event = 1, cut_after_bytes = 1 }",
            "line 1 of the scenario: a reply can be cut or stalled in one place only",
        );
        refused(
            "[[rule]]\nwhen = { prompt = 'x' }\nreply = { ws_refuse = 403 }",
            "line 1 of the scenario: a handshake knows its `account` and its `nth` only",
        );
        refused(
            "[[rule]]\nreplies = [{ ws_refuse = 403 }, { text = 'x' }]",
            "line 1 of the scenario: a rule with `ws_refuse` is about handshakes: all its replies refuse one",
        );
        refused(
            "[[rule]]\nreply = { text = 'x', ws_close = 1006 }",
            "line 1 of the scenario: `ws_close` is a code that a close frame can carry",
        );
        assert_eq!(Scenario::from_toml("[[rule]").expect_err("not TOML").line, Some(1));
    }
}
