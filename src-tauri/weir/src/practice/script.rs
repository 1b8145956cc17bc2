//! Scenario files: what the practice upstream answers to whom.
//!
//! A scenario is data. Rules are asked in order; the first whose [`When`] holds gives its [`Reply`]. The module above
//! shows an example of a file.
//!
//! **Invariant**: a file that is accepted can be played; what makes no sense is refused with its line.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use toml::Spanned;

use super::request::Ask;

/// A script for one practice upstream.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Multiplies every wait: 1 is for people, 0 for tests.
    pub pace: f64,
    /// Models that take the Lite lane although their catalog entry does not say so.
    pub lite_ok: Vec<String>,
    /// Models beside `practice-full` and `practice-lite`, or instead of them.
    pub models: Vec<Model>,
    /// Asked in order, before the built-in rules.
    pub rules: Vec<Rule>,
}

impl Default for Scenario {
    /// The built-in rules, at a pace for people.
    fn default() -> Self {
        Self { pace: 1.0, lite_ok: Vec::new(), models: Vec::new(), rules: Vec::new() }
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
        Ok(Self { pace: file.pace, lite_ok: file.lite_ok, models: file.model, rules })
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

/// One rule: a condition and what is answered.
#[derive(Clone, Debug)]
pub struct Rule {
    pub when: When,
    /// The k-th use by a conversation takes the k-th reply.
    pub replies: Vec<Reply>,
    /// Whether the only reply is given each time; otherwise the rule is used up after its last one.
    pub again: bool,
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
    /// Which response of its conversation this is, counted from 1.
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
}

impl When {
    pub(super) fn holds(&self, ask: Ask<'_>, account: &str, nth: u64) -> bool {
        fn free<T>(wanted: &Option<T>, is: impl FnOnce(&T) -> bool) -> bool {
            wanted.as_ref().is_none_or(is)
        }
        free(&self.model, |model| model == ask.model())
            && free(&self.account, |name| name == account)
            && free(&self.nth, |wanted| *wanted == nth)
            && free(&self.lite, |lite| *lite == ask.lite())
            && free(&self.tool, |name| ask.tool(name).is_some())
            && free(&self.has_tools, |has| *has != ask.tools().is_empty())
            && free(&self.has_outputs, |has| *has != ask.outputs().is_empty())
            && free(&self.outputs, |count| *count == ask.outputs().len())
            && free(&self.prompt, |part| ask.prompt().to_lowercase().contains(&part.to_lowercase()))
    }
}

/// What is answered, and how it is delivered.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// The answer; with `calls`, the answer once all of them have outputs.
    pub text: Option<String>,
    /// Commentary before the calls.
    pub say: Option<String>,
    /// Calls: all in one response where calls may be parallel, one per response where not.
    pub calls: Vec<Call>,
    /// Further output items, sent as they are, after the others.
    pub items: Vec<toml::Table>,
    /// Further events, sent as they are, before the terminal one.
    pub events: Vec<toml::Table>,

    /// Milliseconds of thought before the first output item, times the pace.
    pub think_ms: Option<u64>,
    /// Waits for [`super::Server::open_gate`].
    pub gate: Option<String>,
    /// Waits until so many responses of the same parent are in flight.
    pub hold_until_in_flight: Option<usize>,
    /// Where gate and hold wait.
    pub at: Point,
    /// Milliseconds before the status line; not paced.
    pub delay_headers_ms: u64,
    /// Never answers.
    pub silent: bool,

    /// A refusal instead of a stream.
    pub status: Option<u16>,
    /// Its body: a table, or a string that is sent as it is.
    pub json: Option<toml::Value>,
    /// Its body, as a page of whatever stands in front of the backend.
    pub html: Option<String>,
    /// Headers of the answer, refusal or stream.
    pub headers: BTreeMap<String, String>,

    /// Breaks the connection after so many events.
    pub cut_after_event: Option<usize>,
    /// Breaks the connection after so many bytes.
    pub cut_after_bytes: Option<usize>,
    /// Says nothing more after so many events.
    pub stall_after_event: Option<usize>,
    /// Ends with an `error` event that has these fields.
    pub error_event: Option<toml::Table>,
    /// Ends with an `error` event for the account's usage limit.
    pub usage_limit_event: bool,
    /// Ends with `response.failed`; the fields are those of `response.error`.
    pub failed_event: Option<toml::Table>,
    /// Ends with `response.incomplete` for this reason.
    pub incomplete: Option<String>,
    /// Ends without any terminal event, but in good order.
    pub no_terminal: bool,
    /// `response.completed` carries no usage.
    pub no_usage: bool,
    /// Lines end with CR LF.
    pub crlf: bool,
    /// Bytes per write, so that events come in pieces.
    pub chunk_bytes: Option<usize>,
}

/// A place in an answer where it can wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Point {
    /// Before the status line.
    Headers,
    /// After `response.created`, before the first output item.
    #[default]
    Output,
    /// Before the terminal event.
    End,
}

impl Reply {
    fn check(&self) -> Result<(), &'static str> {
        let speaks = self.text.is_some()
            || self.say.is_some()
            || !self.calls.is_empty()
            || !self.items.is_empty()
            || !self.events.is_empty();
        let breaks = [self.cut_after_event, self.cut_after_bytes, self.stall_after_event];
        let breaks = breaks.iter().flatten().count();
        let ends = [
            self.error_event.is_some(),
            self.usage_limit_event,
            self.failed_event.is_some(),
            self.incomplete.is_some(),
            self.no_terminal,
        ];
        let ends = ends.iter().filter(|end| **end).count();
        let streams = speaks || breaks + ends > 0;
        match () {
            () if breaks > 1 => Err("a reply can be cut or stalled in one place only"),
            () if ends > 1 => Err("a reply has one ending only"),
            () if self.status.is_some() && streams => {
                Err("a reply with `status` has no stream: only `json`, `html`, `headers` and waits")
            }
            () if self.status.is_some_and(|status| !(400..600).contains(&status)) => {
                Err("`status` is a refusal, from 400 to 599")
            }
            () if self.status.is_none() && (self.json.is_some() || self.html.is_some()) => {
                Err("`json` and `html` are bodies of a `status`")
            }
            () if self.json.is_some() && self.html.is_some() => Err("one body: `json` or `html`"),
            () if self.silent && (streams || self.status.is_some()) => {
                Err("a silent reply says nothing else")
            }
            () if self.chunk_bytes == Some(0) => Err("`chunk_bytes` is at least 1"),
            () => Ok(()),
        }
    }
}

/// One call that the scripted model makes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "CallEntry")]
pub struct Call {
    pub name: String,
    /// Absent: that of the offered tool.
    pub namespace: Option<String>,
    /// The text of the arguments, which need not be JSON.
    pub arguments: String,
    /// A custom tool call with this input, instead of a function call.
    pub input: Option<String>,
    /// Absent: a fresh one.
    pub call_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallEntry {
    name: String,
    namespace: Option<String>,
    arguments: Option<toml::Value>,
    input: Option<String>,
    call_id: Option<String>,
}

impl From<CallEntry> for Call {
    fn from(entry: CallEntry) -> Self {
        let arguments = match entry.arguments {
            None => "{}".to_owned(),
            Some(toml::Value::String(text)) => text,
            Some(value) => json(&value).to_string(),
        };
        Self {
            name: entry.name,
            namespace: entry.namespace,
            arguments,
            input: entry.input,
            call_id: entry.call_id,
        }
    }
}

/// A TOML value as JSON.
pub(super) fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
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
    fn mistakes_are_told_with_their_line() {
        refused(
            "pace = 0.0\n\n[[rule]]\nreply = { txt = 'x' }",
            &format!(
                "line 4 of the scenario: unknown field `txt`, expected one of {}",
                "`text`, `say`, `calls`, `items`, `events`, `think_ms`, `gate`, `hold_until_in_flight`, `at`, \
                 `delay_headers_ms`, `silent`, `status`, `json`, `html`, `headers`, `cut_after_event`, \
                 `cut_after_bytes`, `stall_after_event`, `error_event`, `usage_limit_event`, `failed_event`, \
                 `incomplete`, `no_terminal`, `no_usage`, `crlf`, `chunk_bytes`"
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
        assert_eq!(Scenario::from_toml("[[rule]").expect_err("not TOML").line, Some(1));
    }
}
