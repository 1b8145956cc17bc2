//! What the scripted model says: the built-in rules, and how a reply becomes the output items of one response.
//!
//! The difference between the dialects is made here. Where calls may be parallel, all calls of a reply go into one
//! response; where not, one per response, and the next when the last has its output. When all have outputs the reply
//! ends in a text that repeats what they said.
//!
//! **Invariant**: everything said here says "practice", except a single word that was asked for.

use serde_json::{Value, json};

use super::reply::{Call, Reply};
use super::request::{Ask, Offered};

/// One output item of a response.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Thought,
    Text {
        text: String,
        phase: &'static str,
    },
    Call(Call),
    Compaction,
    /// Sent as it is.
    Raw(Value),
}

const WORDS: [&str; 26] = [
    "alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett",
    "kilo", "lima", "mike", "november", "oscar", "papa", "quebec", "romeo", "sierra", "tango",
    "uniform", "victor", "whiskey", "xray", "yankee", "zulu",
];

const NUMBERS: [&str; 10] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

const HONEST: &str = "This is Weir's practice upstream: the turn came through, but no model answered. Ask for \
                      \"three subagents\" where a task tool is offered, or add a real account.";

/// The reply of the built-in rules; there always is one.
pub(super) fn built_in(ask: Ask<'_>) -> Reply {
    let prompt = ask.prompt();
    // A title is asked for beside the whole prompt, which may trigger any other rule.
    title(ask, &prompt)
        .or_else(|| subagents(ask, &prompt))
        .or_else(|| single_word(&prompt))
        .or_else(|| commands(ask, &prompt))
        .unwrap_or_else(|| Reply { text: Some(HONEST.to_owned()), ..Reply::default() })
}

/// The items of this response.
pub(super) fn items(reply: &Reply, ask: Ask<'_>) -> Vec<Item> {
    if ask.wants_compaction() {
        return vec![Item::Compaction];
    }
    let outputs = ask.outputs();
    let left = reply.calls.get(outputs.len()..).unwrap_or_default();
    let now = if ask.parallel() { left } else { &left[..left.len().min(1)] };
    let mut items = Vec::new();
    if thinks(ask) {
        items.push(Item::Thought);
    }
    if let Some(text) = reply.say.as_ref().filter(|_| outputs.is_empty()) {
        items.push(Item::Text { text: text.clone(), phase: "commentary" });
    }
    if !now.is_empty() {
        items.extend(now.iter().map(|call| Item::Call(placed(call, ask))));
    } else if let Some(text) = &reply.text {
        items.push(Item::Text { text: text.clone(), phase: "final_answer" });
    } else if !reply.calls.is_empty() {
        items.push(Item::Text { text: summary(&outputs), phase: "final_answer" });
    }
    items.extend(reply.items.iter().map(|item| Item::Raw(super::reply::json(item))));
    items
}

fn thinks(ask: Ask<'_>) -> bool {
    let reasoning = ask.body.get("reasoning").filter(|reasoning| reasoning.is_object());
    let none = |value: &Value| value == "none" || value == "minimal";
    reasoning.is_some_and(|reasoning| !reasoning.get("effort").is_some_and(none))
}

/// A call carries the namespace in which its tool was offered, unless the script says another.
fn placed(call: &Call, ask: Ask<'_>) -> Call {
    let offered = || ask.tool(&call.name)?.namespace.map(str::to_owned);
    let mut call = call.clone();
    call.namespace = call.namespace.or_else(offered);
    call
}

fn subagents(ask: Ask<'_>, prompt: &str) -> Option<Reply> {
    let count = subagents_wanted(prompt)?;
    ask.tool("task")?;
    let calls = WORDS.iter().take(count).map(|word| Call {
        name: "task".to_owned(),
        arguments: json!({
            "description": format!("Practice word {word}"),
            "prompt": format!("Reply with the single word {word}"),
            "subagent_type": "general",
        })
        .to_string(),
        ..Call::default()
    });
    Some(Reply { calls: calls.collect(), ..Reply::default() })
}

/// `N subagents`, in digits or in words up to ten; at most as many as there are words to say.
fn subagents_wanted(prompt: &str) -> Option<usize> {
    let prompt = prompt.to_lowercase();
    let words: Vec<&str> =
        prompt.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let pair = words.windows(2).find_map(|pair| {
        let number = NUMBERS.iter().position(|word| *word == pair[0]).map(|at| at + 1);
        let number = number.or_else(|| pair[0].parse().ok())?;
        matches!(pair[1], "subagents" | "subagent").then_some(number)
    })?;
    (pair > 0).then(|| pair.min(WORDS.len()))
}

fn single_word(prompt: &str) -> Option<Reply> {
    const ASKED: &str = "reply with the single word ";
    // ASCII lower case keeps byte positions.
    let at = prompt.to_ascii_lowercase().find(ASKED)? + ASKED.len();
    let word: String = prompt[at..]
        .chars()
        .skip_while(|c| !c.is_alphanumeric())
        .take_while(|c| c.is_alphanumeric() || *c == '-' || *c == '_')
        .collect();
    (!word.is_empty()).then(|| Reply {
        text: Some(word),
        think_ms: Some(1_000),
        ..Reply::default()
    })
}

fn commands(ask: Ask<'_>, prompt: &str) -> Option<Reply> {
    const ASKED: &str = "run in parallel:";
    let at = prompt.to_ascii_lowercase().find(ASKED)? + ASKED.len();
    let quoted = prompt[at..].split('`').skip(1).step_by(2);
    let commands: Vec<&str> = quoted.map(str::trim).filter(|text| !text.is_empty()).collect();
    let names = ["exec_command", "bash", "shell", "shell_command"];
    let tool = names.into_iter().find_map(|name| ask.tool(name))?;
    let calls: Vec<Call> = commands
        .into_iter()
        .map(|command| Call {
            name: tool.name.to_owned(),
            arguments: arguments(&tool, command).to_string(),
            ..Call::default()
        })
        .collect();
    (!calls.is_empty()).then(|| Reply { calls, ..Reply::default() })
}

fn arguments(tool: &Offered<'_>, command: &str) -> Value {
    let list = tool.definition.pointer("/parameters/properties/command/type");
    match tool.name {
        "exec_command" => json!({ "cmd": command }),
        "bash" => {
            json!({ "command": command, "description": format!("Practice: run {command}") })
        }
        _ if list.is_some_and(|kind| kind == "array") => {
            json!({ "command": ["bash", "-lc", command] })
        }
        _ => json!({ "command": command }),
    }
}

fn title(ask: Ask<'_>, prompt: &str) -> Option<Reply> {
    let asked = ask.user_texts().any(|text| text.to_lowercase().contains("generate a title"));
    let words: Vec<&str> = prompt.split_whitespace().take(4).collect();
    (ask.tools().is_empty() && asked).then(|| Reply {
        text: Some(format!("Practice: {}", words.join(" "))),
        think_ms: Some(200),
        ..Reply::default()
    })
}

/// The last text of a turn with calls.
fn summary(outputs: &[String]) -> String {
    let said: Vec<String> = outputs.iter().map(|output| gist(output)).collect();
    format!("Practice upstream: {} calls came back: {}.", outputs.len(), said.join(", "))
}

/// What an output says, without the frame that a client puts around it.
fn gist(output: &str) -> String {
    let inner = output
        .split_once("<task_result>")
        .and_then(|(_, rest)| rest.split_once("</task_result>"))
        .map(|(inner, _)| inner);
    let inner = inner.or_else(|| output.split_once("Output:\n").map(|(_, rest)| rest));
    let words: Vec<&str> = inner.unwrap_or(output).split_whitespace().collect();
    words.join(" ").chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(prompt: &str, tools: &[&str], outputs: &[&str]) -> Value {
        let tools = tools.iter().map(|name| json!({ "type": "function", "name": name }));
        let mut input = vec![json!({ "role": "user", "content": prompt })];
        input.extend(
            outputs.iter().map(|text| json!({ "type": "function_call_output", "output": text })),
        );
        json!({ "tools": tools.collect::<Vec<_>>(), "input": input })
    }

    /// The response as one line: texts as they are, calls as `name arguments`.
    fn said(body: &Value, marker: Option<&str>) -> Vec<String> {
        let ask = Ask { body, marker };
        let items = items(&built_in(ask), ask).into_iter();
        items
            .map(|item| match item {
                Item::Text { text, .. } => text,
                Item::Call(call) => format!("{} {}", call.name, call.arguments),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn counting_subagents() {
        let check = |prompt: &str, expected| assert_eq!(subagents_wanted(prompt), expected);
        check("Launch three subagents at once", Some(3));
        check("launch 8 Subagents.", Some(8));
        check("ten subagents", Some(10));
        check("24 subagents", Some(24));
        check("99 subagents", Some(26));
        check("no subagents", None);
        check("0 subagents", None);
        check("three agents", None);
    }

    #[test]
    fn siblings_together_in_full_and_one_by_one_in_lite() {
        let ask = |outputs: &[&str]| body("Use three subagents", &["task"], outputs);
        let lite = Some("true");
        assert_eq!(said(&ask(&[]), None).len(), 3);
        assert!(said(&ask(&[]), None)[2].contains("the single word charlie"));
        assert_eq!(said(&ask(&[]), lite).len(), 1);
        assert!(said(&ask(&["alpha"]), lite)[0].contains("the single word bravo"));
        // A turn whose dialect changed on the way gets what is left.
        assert_eq!(said(&ask(&["alpha"]), None).len(), 2);
        let wrapped = "<task id=\"x\">\n<task_result>\ncharlie\n</task_result>\n</task>";
        let end = ["Practice upstream: 3 calls came back: alpha, bravo, charlie."];
        assert_eq!(said(&ask(&["alpha", "bravo", wrapped]), None), end);
        assert_eq!(said(&ask(&["alpha", "bravo", wrapped]), lite), end);
        let mut serial = ask(&[]);
        serial["parallel_tool_calls"] = json!(false);
        assert_eq!(said(&serial, None).len(), 1);
    }

    #[test]
    fn the_other_built_in_rules() {
        let words = said(&body("Reply with the single word \"bravo\".", &["bash"], &[]), None);
        assert_eq!(words, ["bravo"]);
        let two = body("Run in parallel: `sleep 1; echo A` and `echo B`", &["exec_command"], &[]);
        let calls =
            [r#"exec_command {"cmd":"sleep 1; echo A"}"#, r#"exec_command {"cmd":"echo B"}"#];
        assert_eq!(said(&two, None), calls);
        let mut title = body("Generate a title for this conversation:\n", &[], &[]);
        let asked = json!({ "role": "user", "content": "Launch three subagents at once" });
        title["input"].as_array_mut().expect("a list").push(asked);
        assert_eq!(said(&title, None), ["Practice: Launch three subagents at"]);
        assert_eq!(said(&body("hello", &[], &[]), None), [HONEST]);
        // Without the tool there is nothing to launch.
        assert_eq!(said(&body("three subagents", &["bash"], &[]), None), [HONEST]);
    }

    #[test]
    fn calls_carry_the_namespace_of_their_tool() {
        let namespace = |tool: Value| {
            let body = json!({ "input": [
                { "type": "additional_tools", "tools": [tool] },
                { "role": "user", "content": "two subagents" } ] });
            let ask = Ask { body: &body, marker: Some("true") };
            match items(&built_in(ask), ask).pop() {
                Some(Item::Call(call)) => call.namespace,
                other => panic!("a call, not {other:?}"),
            }
        };
        let task = json!({ "type": "function", "name": "task" });
        assert_eq!(namespace(task.clone()), None);
        let functions = json!({ "type": "namespace", "name": "functions", "tools": [task] });
        assert_eq!(namespace(functions).as_deref(), Some("functions"));
    }
}
