//! Whether two JSON values say the same, and where they part if not.
//!
//! Programs write one value in many ways: another order of keys, other white space, other escapes. Numbers are the exception:
//! they are compared as they were written, because `1.0` and `1` are one number to some readers and two to others.
//!
//! **Invariant**: values that are called the same would be read as the same by every JSON parser; in doubt they differ.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::raw;
use super::refusal::word;

/// How deep two values are walked. What lies below counts as the same only when it is written the same, so that nobody can
/// exhaust the stack with brackets.
const DEPTH: usize = 64;

/// How many names a path shows. A longer one is cut: it is read by people.
const SHOWN: usize = 6;

/// A field's name. One that cannot be decoded (a lone surrogate) equals nothing but the same spelling.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name<'a> {
    Text(Cow<'a, str>),
    Spelled(&'a str),
}

impl Name<'_> {
    /// The name, for those who know it and for people. Empty when it cannot be decoded.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Spelled(_) => "",
        }
    }
}

/// An object's fields by name; the last one where a name occurs twice.
pub(super) struct Fields<'a>(BTreeMap<Name<'a>, &'a RawValue>);

impl<'a> Fields<'a> {
    /// None: the text is no JSON object.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let mut fields = BTreeMap::new();
        raw::fields(text, |key, value| {
            let name = raw::text(key).map_or(Name::Spelled(key.get()), Name::Text);
            fields.insert(name, value);
        })
        .ok()?;
        Some(Self(fields))
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.at(&Name::Text(Cow::Borrowed(name)))
    }

    pub(super) fn at(&self, name: &Name<'_>) -> Option<&'a RawValue> {
        self.0.get(name).copied()
    }

    /// The names of both, each once, sorted.
    pub(super) fn names<'b>(&'b self, other: &'b Fields<'b>) -> impl Iterator<Item = &'b Name<'b>> {
        let added = other.0.keys().filter(|name| !self.0.contains_key(*name));
        self.0.keys().chain(added)
    }
}

/// Where the values part: the names and places that lead to it, joined by `/`. Empty: the values themselves differ. None:
/// they say the same.
pub(super) fn difference(one: &RawValue, other: &RawValue) -> Option<String> {
    walk(one, other, DEPTH)
}

/// As [`difference`], where a value may be absent. Absent equals absent only.
pub(super) fn difference_of(one: Option<&RawValue>, other: Option<&RawValue>) -> Option<String> {
    walk_of(one, other, DEPTH)
}

/// A path below `name`. Names are a client's own words, so one that does not look like a name is not repeated.
pub(super) fn below(name: &str, path: &str) -> String {
    let name = if name.is_empty() { "?" } else { word(name, "?") };
    let names = std::iter::once(name).chain(path.split('/').filter(|part| !part.is_empty()));
    names.take(SHOWN).collect::<Vec<_>>().join("/")
}

fn walk_of(one: Option<&RawValue>, other: Option<&RawValue>, left: usize) -> Option<String> {
    match (one, other) {
        (None, None) => None,
        (Some(one), Some(other)) => walk(one, other, left),
        _ => Some(String::new()),
    }
}

fn walk(one: &RawValue, other: &RawValue, left: usize) -> Option<String> {
    if one.get() == other.get() {
        return None;
    }
    let here = Some(String::new());
    let Some(left) = left.checked_sub(1) else { return here };
    if let (Some(one), Some(other)) = (raw::text(one), raw::text(other)) {
        return if one == other { None } else { here };
    }
    if raw::is_object(one) && raw::is_object(other) {
        let (Some(one), Some(other)) = (Fields::of(one.get()), Fields::of(other.get())) else {
            return here;
        };
        return one.names(&other).find_map(|name| {
            walk_of(one.at(name), other.at(name), left).map(|path| below(name.text(), &path))
        });
    }
    if raw::is_list(one) && raw::is_list(other) {
        let (Some(one), Some(other)) = (raw::list(one), raw::list(other)) else { return here };
        return (0..one.len().max(other.len())).find_map(|place| {
            walk_of(one.get(place).copied(), other.get(place).copied(), left)
                .map(|path| below(&place.to_string(), &path))
        });
    }
    here
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(one: &str, other: &str) -> Option<String> {
        let value = |text: &str| RawValue::from_string(text.to_owned()).expect("test JSON");
        let (one, other) = (value(one), value(other));
        let path = difference(&one, &other);
        assert_eq!(path.is_some(), difference(&other, &one).is_some(), "symmetric");
        path
    }

    #[test]
    fn one_value_is_written_in_many_ways() {
        for (one, other) in [
            ("1", "1"),
            (r#"{"a":1,"b":[{"c":0.10}]}"#, r#"{ "b" : [ { "c" : 0.10 } ] , "a" : 1 }"#),
            (r#""\u00e9\/""#, r#""é/""#),
            (r#"{"\u0061":1}"#, r#"{"a":1}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#"{"\ud800":1, "b":2}"#, r#"{"b":2,"\ud800":1}"#),
        ] {
            assert_eq!(part(one, other), None, "{one} {other}");
        }
    }

    #[test]
    fn what_differs_is_named() {
        for (one, other, path) in [
            ("1", "1.0", ""),
            ("1e2", "100", ""),
            ("1", r#""1""#, ""),
            ("null", "false", ""),
            ("{}", "[]", ""),
            (r#""\ud800""#, r#""\ud801""#, ""),
            (r#""\ud800""#, r#""\\ud800""#, ""),
            (r#"{"a":null}"#, "{}", "a"),
            ("[1,2]", "[1]", "1"),
            ("[1,2]", "[2,1]", "0"),
            (r#"{"a":[{"b":1}]}"#, r#"{"a":[{"b":2}]}"#, "a/0/b"),
            (r#"{"a":1,"a":2}"#, r#"{"a":1}"#, "a"),
            (r#"{"\ud800":1}"#, r#"{"\ud800":2}"#, "?"),
            // The second key, decoded, is spelled as the first one.
            (r#"{"\ud800":1}"#, r#"{"\"\\ud800\"":1}"#, "?"),
            (r#"{"what she said":1}"#, "{}", "?"),
            (
                r#"{"a":{"b":{"c":{"d":{"e":{"f":{"g":1}}}}}}}"#,
                r#"{"a":{"b":{"c":{"d":{"e":{"f":{"g":2}}}}}}}"#,
                "a/b/c/d/e/f",
            ),
        ] {
            assert_eq!(part(one, other).as_deref(), Some(path), "{one} {other}");
        }
    }

    #[test]
    fn below_a_depth_only_the_same_text_is_the_same() {
        let deep = |inner: &str, depth: usize| {
            format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth))
        };
        assert_eq!(part(&deep("[1, 2]", 200_000), &deep("[1, 2]", 200_000)), None);
        assert!(part(&deep("[1, 2]", 200_000), &deep("[1,2]", 200_000)).is_some());
        assert_eq!(part(&deep("[1, 2]", 40), &deep("[1,2]", 40)), None);
    }
}
