//! Reading raw JSON text one level deep.
//!
//! The protocol is read through borrowed slices, because a request may be megabytes of which a handful of names matter, and
//! because text that is never parsed into numbers or maps cannot be changed by printing it again.
//!
//! **Invariant**: nothing here builds a tree or recurses; a value below the level that is read is only skipped over.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// Calls `each` with the raw key and value of every field of the object in `text`, in order, duplicates included.
///
/// Errors: `text` is not JSON (syntax or end of input), or is not one object (data).
pub(super) fn fields<'a>(
    text: &'a str,
    each: impl FnMut(&'a RawValue, &'a RawValue),
) -> Result<(), serde_json::Error> {
    struct Fields<F>(F);

    impl<'a, F: FnMut(&'a RawValue, &'a RawValue)> Visitor<'a> for Fields<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }

        fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((key, value)) = map.next_entry::<&'a RawValue, &'a RawValue>()? {
                (self.0)(key, value);
            }
            Ok(())
        }
    }

    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_map(Fields(each))?;
    json.end()
}

/// The string that `raw` is, or None when it is no string or cannot be decoded (a lone surrogate).
pub(super) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// The name of a field. A key that cannot be decoded is named by its raw text, so that it can never equal a known name.
pub(super) fn name(key: &RawValue) -> Cow<'_, str> {
    text(key).unwrap_or(Cow::Borrowed(key.get()))
}

/// The elements of a list, or None when `raw` is no list.
pub(super) fn list(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

/// One field of the object in `raw`; the last one where a name occurs twice.
pub(super) fn field<'a>(raw: &'a RawValue, wanted: &str) -> Option<&'a RawValue> {
    let mut found = None;
    if is_object(raw) {
        fields(raw.get(), |key, value| {
            if name(key) == wanted {
                found = Some(value);
            }
        })
        .ok()?;
    }
    found
}

/// A whole number, as written. A number with a fraction or an exponent is cut off at the point.
pub(super) fn integer(raw: &RawValue) -> Option<i64> {
    let text = raw.get();
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        (number.abs() < 9.0e15).then_some(number as i64)
    })
}

/// A count: a whole number that is not negative.
pub(super) fn count(raw: &RawValue) -> Option<u64> {
    raw.get().parse().ok()
}

pub(super) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

pub(super) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

pub(super) fn is_list(raw: &RawValue) -> bool {
    raw.get().starts_with('[')
}

/// What a person would call the value: for sentences about a wrong one.
pub(super) fn noun(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Text that was put together from valid parts, as a raw value.
pub(super) fn made(text: String) -> Box<RawValue> {
    RawValue::from_string(text).expect("text put together from valid JSON parts is valid JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("test JSON")
    }

    #[test]
    fn strings_are_borrowed_unless_escaped() {
        assert!(matches!(text(&raw(r#""plain""#)), Some(Cow::Borrowed("plain"))));
        assert_eq!(text(&raw(r#""a\u0062c""#)).as_deref(), Some("abc"));
        assert_eq!(text(&raw(r#""\ud800""#)), None, "a lone surrogate is no text");
        assert_eq!(text(&raw("7")), None);
    }

    #[test]
    fn fields_come_in_order_with_duplicates() {
        let mut seen = Vec::new();
        fields(r#" { "b" : 1e400, "a":[ {} ], "b":2 } "#, |k, v| {
            seen.push((name(k).into_owned(), v.get().to_owned()));
        })
        .expect("an object");
        let seen: Vec<_> = seen.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(seen, [("b", "1e400"), ("a", "[ {} ]"), ("b", "2")]);
    }

    #[test]
    fn what_is_no_object_is_told_apart_from_what_is_no_json() {
        assert!(fields("[1]", |_, _| {}).expect_err("a list").is_data());
        assert!(fields("{\"a\":}", |_, _| {}).expect_err("broken").is_syntax());
        assert!(fields("{\"a\":1", |_, _| {}).expect_err("cut").is_eof());
        assert!(fields("{} {}", |_, _| {}).expect_err("two values").is_syntax());
    }

    #[test]
    fn depth_costs_nothing() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
        let mut length = 0;
        fields(&deep, |_, value| length = value.get().len()).expect("skipped, not walked");
        assert_eq!(length, 400_000);
    }

    #[test]
    fn numbers_that_do_not_fit_are_absent() {
        assert_eq!(integer(&raw("1777936568")), Some(1_777_936_568));
        assert_eq!(integer(&raw("1777936568.7")), Some(1_777_936_568));
        assert_eq!(integer(&raw("1e400")), None);
        assert_eq!(count(&raw("18446744073709551615")), Some(u64::MAX));
        assert_eq!(count(&raw("-1")), None);
    }
}
