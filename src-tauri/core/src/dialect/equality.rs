//! Whether an item that a client sends back is the item that the backend has seen: a table of rules per kind.
//!
//! No client returns an item as it got it. OpenCode drops ids and status and writes arguments anew, Codex adds metadata of its
//! own, SDKs fill in nulls. What the model reads must be the same; the rest must not cost the conversation its cache.
//!
//! **Invariant**: a rule forgives only what was left out or what says the same. A field that changed, or that the client
//! added, makes the items differ.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::item::Item;
use super::same::{self, Fields, Name, below};
use super::{raw, wire};

/// Who wrote the item that the backend has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// It was in a request, so the client holds all of it, and what is missing now was taken back.
    Client,
    /// It was in an answer. What the client does not know it cannot return.
    Backend,
}

/// How one field of two items is compared. Null is as good as absent, but for [`Rule::Whole`].
#[derive(Clone, Copy)]
enum Rule {
    /// Equal as JSON values.
    Same,
    /// Equal as JSON values, and null is a value.
    Whole,
    /// The client may leave it out; what it sends must be equal.
    Extra,
    /// Equal where both have it.
    Either,
    /// Not looked at.
    Ignored,
    /// Absent means this string.
    Default(&'static str),
    /// JSON inside a string: equal as the values written in it, else as text.
    Written,
    /// Parts of an answer: what a part says counts, what the backend noted about it does not.
    Answer,
    /// Parts of a summary: all of them, none, or the last one, which is what OpenCode keeps.
    Summary,
}

type Table = &'static [(&'static str, Rule)];

/// What holds for every kind, unless its own table says otherwise.
const COMMON: Table = &[
    ("id", Rule::Either),
    ("status", Rule::Ignored),
    ("internal_chat_message_metadata_passthrough", Rule::Ignored),
];

const ANSWER: Table = &[("role", Rule::Same), ("phase", Rule::Extra), ("content", Rule::Answer)];

const SAID: Table = &[("role", Rule::Same), ("phase", Rule::Extra), ("content", Rule::Same)];

/// Messages that a client rebuilds for each request: the text is what they are.
const REBUILT: Table = &[("role", Rule::Same), ("content", Rule::Same), ("id", Rule::Ignored)];

const OUTPUT_TEXT: Table = &[
    ("type", Rule::Same),
    ("text", Rule::Same),
    ("annotations", Rule::Ignored),
    ("logprobs", Rule::Ignored),
];

const FUNCTION_CALL: Table = &[
    ("call_id", Rule::Same),
    ("name", Rule::Same),
    ("namespace", Rule::Default(wire::FUNCTIONS_NAMESPACE)),
    ("arguments", Rule::Written),
];

const CUSTOM_CALL: Table = &[
    ("call_id", Rule::Same),
    ("name", Rule::Same),
    ("namespace", Rule::Default(wire::FUNCTIONS_NAMESPACE)),
    ("input", Rule::Written),
];

const OUTPUT: Table = &[("call_id", Rule::Same), ("output", Rule::Same)];

const SEARCH_CALL: Table =
    &[("call_id", Rule::Same), ("execution", Rule::Same), ("arguments", Rule::Written)];

const SEARCH_OUTPUT: Table =
    &[("call_id", Rule::Same), ("execution", Rule::Same), ("tools", Rule::Same)];

/// A thought is its ciphertext; the summary is for people.
const THOUGHT: Table =
    &[("encrypted_content", Rule::Same), ("summary", Rule::Summary), ("content", Rule::Extra)];

/// Without ciphertext the summary is all that there is.
const OPEN_THOUGHT: Table =
    &[("encrypted_content", Rule::Same), ("summary", Rule::Same), ("content", Rule::Extra)];

const COMPACTION: Table = &[("encrypted_content", Rule::Same)];

const TOOLS: Table = &[("role", Rule::Same), ("tools", Rule::Same), ("id", Rule::Ignored)];

const MAIL: Table = &[("author", Rule::Same), ("recipient", Rule::Same), ("content", Rule::Same)];

const REFERENCE: Table = &[("id", Rule::Same)];

/// The rules for an item. None: a kind that is not known, of which every field counts.
fn table(item: &Item) -> Option<Table> {
    Some(match item.kind() {
        "message" => match item.role() {
            Some("assistant") => ANSWER,
            Some("developer" | "system") => REBUILT,
            _ => SAID,
        },
        "reasoning" if is_open_thought(item) => OPEN_THOUGHT,
        "reasoning" => THOUGHT,
        "function_call" => FUNCTION_CALL,
        "custom_tool_call" => CUSTOM_CALL,
        "function_call_output" | "custom_tool_call_output" => OUTPUT,
        "tool_search_call" => SEARCH_CALL,
        "tool_search_output" => SEARCH_OUTPUT,
        "compaction" => COMPACTION,
        wire::ADDITIONAL_TOOLS => TOOLS,
        "agent_message" => MAIL,
        "item_reference" => REFERENCE,
        _ => return None,
    })
}

/// Whether the item is a thought that came without its ciphertext, which a client has no use for.
pub(super) fn is_open_thought(item: &Item) -> bool {
    item.kind() == "reasoning"
        && raw::field(item.raw(), "encrypted_content")
            .is_none_or(|sealed| matches!(sealed.get(), "null" | "\"\""))
}

/// Whether both items carry one and the same id.
pub(super) fn has_id_of(one: &Item, other: &Item) -> bool {
    let one = present(raw::field(one.raw(), "id"));
    let other = present(raw::field(other.raw(), "id"));
    one.is_some() && same::difference_of(one, other).is_none()
}

/// The first field in which `next` is another item than the `seen` one, as a path below it (`content/0/text`). None: they
/// are the same item.
pub(super) fn difference(seen: &Item, next: &Item, writer: Writer) -> Option<String> {
    if seen.raw().get() == next.raw().get() {
        return None;
    }
    let kind = || Some("type".to_owned());
    let (Some(ours), Some(theirs)) = (Fields::of(seen.raw().get()), Fields::of(next.raw().get()))
    else {
        return kind();
    };
    if kind_of(&ours) != kind_of(&theirs) {
        return kind();
    }
    let Some(table) = table(seen) else {
        return compare(&[("type", Rule::Ignored)], Rule::Whole, &ours, &theirs);
    };
    compare(table, unlisted(writer), &ours, &theirs)
}

/// The kind, and whether it is a name: a `type` that is no string is a kind of its own.
fn kind_of<'a>(fields: &Fields<'a>) -> (Cow<'a, str>, bool) {
    match present(fields.get("type")) {
        Some(kind) => match raw::text(kind) {
            Some(kind) => (kind, true),
            None => (Cow::Borrowed(kind.get()), false),
        },
        None if fields.get("role").is_some_and(|role| raw::text(role).is_some()) => {
            (Cow::Borrowed("message"), true)
        }
        None => (Cow::Borrowed(""), true),
    }
}

/// A value, unless it is null.
fn present(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| !raw::is_null(value))
}

/// What holds for a field that no table knows.
fn unlisted(writer: Writer) -> Rule {
    match writer {
        Writer::Client => Rule::Same,
        Writer::Backend => Rule::Extra,
    }
}

/// The fields of the table in its order, then the others.
fn compare(
    table: &[(&'static str, Rule)],
    others: Rule,
    ours: &Fields<'_>,
    theirs: &Fields<'_>,
) -> Option<String> {
    let listed = table.iter().find_map(|(name, rule)| {
        rule.difference(ours.get(name), theirs.get(name)).map(|path| below(name, &path))
    });
    listed.or_else(|| {
        ours.names(theirs).find_map(|name| {
            let rule = match name {
                Name::Text(text) if table.iter().any(|(known, _)| known == text) => return None,
                Name::Text(text) if text == "type" => return None,
                Name::Text(text) => COMMON.iter().find(|(known, _)| known == text),
                Name::Spelled(_) => None,
            };
            let rule = rule.map_or(others, |(_, rule)| *rule);
            rule.difference(ours.at(name), theirs.at(name)).map(|path| below(name.text(), &path))
        })
    })
}

impl Rule {
    /// Where the field differs, as a path below it; empty for the field itself. None: it does not.
    fn difference(self, seen: Option<&RawValue>, next: Option<&RawValue>) -> Option<String> {
        if let Self::Whole = self {
            return same::difference_of(seen, next);
        }
        let (seen, next) = (present(seen), present(next));
        match (self, seen, next) {
            (Self::Ignored, ..) => None,
            (Self::Extra | Self::Either | Self::Summary, _, None) => None,
            (Self::Either, None, _) => None,
            (Self::Default(value), ..) => {
                let of = |field: Option<&RawValue>| match field {
                    None => Some(value.to_owned()),
                    Some(field) => raw::text(field).map(Cow::into_owned),
                };
                match (of(seen), of(next)) {
                    (Some(seen), Some(next)) if seen == next => None,
                    (None, None) => same::difference_of(seen, next),
                    _ => Some(String::new()),
                }
            }
            (Self::Written, Some(seen), Some(next)) => written(seen, next),
            (Self::Answer, Some(seen), Some(next)) => answer(seen, next),
            (Self::Summary, Some(seen), Some(next)) => summary(seen, next),
            _ => same::difference_of(seen, next),
        }
    }
}

/// Arguments lead nowhere below their own name: what is in them is the client's business.
fn written(seen: &RawValue, next: &RawValue) -> Option<String> {
    let is_same = match (raw::text(seen), raw::text(next)) {
        (Some(seen), Some(next)) => seen == next || is_same_json(&seen, &next),
        _ => same::difference(seen, next).is_none(),
    };
    if is_same { None } else { Some(String::new()) }
}

fn is_same_json(seen: &str, next: &str) -> bool {
    let value = |text| serde_json::from_str::<&RawValue>(text).ok();
    match (value(seen), value(next)) {
        (Some(seen), Some(next)) => same::difference(seen, next).is_none(),
        _ => false,
    }
}

fn answer(seen: &RawValue, next: &RawValue) -> Option<String> {
    let (Some(ours), Some(theirs)) = (raw::list(seen), raw::list(next)) else {
        return same::difference(seen, next);
    };
    (0..ours.len().max(theirs.len())).find_map(|place| {
        let path = match (ours.get(place), theirs.get(place)) {
            (Some(ours), Some(theirs)) => part(ours, theirs),
            _ => Some(String::new()),
        };
        path.map(|path| below(&place.to_string(), &path))
    })
}

fn part(seen: &RawValue, next: &RawValue) -> Option<String> {
    let is_text = raw::field(seen, "type").and_then(raw::text).as_deref() == Some("output_text");
    match (Fields::of(seen.get()), Fields::of(next.get())) {
        (Some(ours), Some(theirs)) if is_text => compare(OUTPUT_TEXT, Rule::Extra, &ours, &theirs),
        _ => same::difference(seen, next),
    }
}

fn summary(seen: &RawValue, next: &RawValue) -> Option<String> {
    let (Some(ours), Some(theirs)) = (raw::list(seen), raw::list(next)) else {
        return same::difference(seen, next);
    };
    let kept = match (ours.last(), &*theirs) {
        (_, []) => true,
        (Some(last), [only]) => same::difference(last, only).is_none(),
        _ => false,
    };
    if kept { None } else { same::difference(seen, next) }
}
