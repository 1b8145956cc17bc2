//! A Responses request, kept as the client wrote it.
//!
//! Each top-level field and each `input` item is the raw text that was sent until somebody must change it, so numbers, key
//! order and unknown things survive byte for byte. Only what is needed to route and rewrite a turn is checked; the backend
//! judges the rest.
//!
//! **Invariant**: the model is a non-empty string and every input item an object, from `parse` on.

use std::fmt;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::item::Item;
use super::object::Object;
use super::raw;
use super::refusal::{Refusal, near, word};

/// A request as an ordered, open-world object.
#[derive(Clone)]
pub struct Body {
    /// All fields. The value of `input` here is a placeholder; `items` is what counts.
    fields: Object,
    model: String,
    items: Vec<Item>,
}

impl Body {
    /// Reads a request body.
    ///
    /// Errors: not JSON (says where), not an object, `model` missing or not a non-empty string, `input` neither string nor
    /// list (absent is allowed: the backend decides), an `input` element that is no object, `tools` neither list nor null,
    /// `stream` neither boolean nor null. Of a field that occurs twice the last one counts.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let position = near(error.valid_up_to());
            Refusal::of_request(
                "invalid_json",
                format!("The body is not UTF-8 near byte {position}; send JSON as UTF-8."),
            )
        })?;
        if text.trim_ascii().is_empty() {
            return Err(Refusal::of_request(
                "invalid_json",
                "The body is empty; send a JSON object with at least `model`.",
            ));
        }
        let mut fields = Object::parse(text).map_err(|error| unreadable(&error))?;
        let model = model_of(&fields)?;
        let items = match fields.get("input") {
            Some(input) => {
                let items = items_of(input)?;
                fields.set("input", placeholder());
                items
            }
            None => Vec::new(),
        };
        expect_field(&fields, "tools", "a list", |value| {
            raw::is_list(value) || raw::is_null(value)
        })?;
        expect_field(&fields, "stream", "true or false", |value| {
            matches!(value.get(), "true" | "false" | "null")
        })?;
        Ok(Self { fields, model, items })
    }

    /// The model that is asked for; never blank unless `set_model` made it so.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Names another model, at the field's place.
    pub fn set_model(&mut self, model: &str) {
        self.fields.set("model", json(&model));
        model.clone_into(&mut self.model);
    }

    /// The names of the fields in order; `model` is among them, `input` is not.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.names().filter(|name| *name != "input")
    }

    /// A field's raw value. `input` is not among them: see [`Body::items`].
    pub fn get(&self, field: &str) -> Option<&RawValue> {
        if field == "input" { None } else { self.fields.get(field) }
    }

    /// The field as a JSON string; None when absent or something else.
    pub fn text(&self, field: &str) -> Option<String> {
        self.get(field).and_then(raw::text).map(|text| text.into_owned())
    }

    /// The field as a boolean; None when absent or something else.
    pub fn flag(&self, field: &str) -> Option<bool> {
        match self.get(field)?.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Sets a field, keeping its place, or appends it. `model` and `input` have methods of their own and are left alone
    /// here, so that a body cannot be brought into a shape that `parse` would refuse.
    ///
    /// Panics when `value` is nothing that JSON can say (a map with keys that are no strings).
    pub fn set<T: Serialize + ?Sized>(&mut self, field: &str, value: &T) {
        self.set_raw(field, json(value));
    }

    pub(super) fn set_raw(&mut self, field: &str, value: Box<RawValue>) {
        if !is_own(field) {
            self.fields.set(field, value);
        }
    }

    /// Takes a field out. `model` and `input` stay.
    pub fn remove(&mut self, field: &str) -> Option<Box<RawValue>> {
        if is_own(field) { None } else { self.fields.remove(field) }
    }

    /// Takes out every field whose name does not pass.
    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.fields.retain(|name| is_own(name) || keep(name));
    }

    /// Input items in order; empty when `input` is absent.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Input items, to be changed. Items pushed here must be objects. An absent `input` appears, last, once there is one.
    pub fn items_mut(&mut self) -> &mut Vec<Item> {
        &mut self.items
    }

    /// About how long the request is, in bytes.
    pub fn size(&self) -> usize {
        let items: usize = self.items.iter().map(|item| item.raw().get().len() + 1).sum();
        let fields = self.fields.names().filter_map(|name| self.fields.get(name));
        items + fields.map(|value| value.get().len()).sum::<usize>()
    }

    /// The request as it goes out.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = String::with_capacity(self.size() + 1024);
        self.fields.write(&mut out, |name, out| {
            let is_input = name == "input";
            if is_input {
                self.write_items(out);
            }
            is_input
        });
        if self.fields.get("input").is_none() && !self.items.is_empty() {
            // The object is never empty, for it has a model.
            out.truncate(out.len() - 1);
            out.push_str(",\"input\":");
            self.write_items(&mut out);
            out.push('}');
        }
        out.into_bytes()
    }

    fn write_items(&self, out: &mut String) {
        out.push('[');
        for (place, item) in self.items.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            out.push_str(item.raw().get());
        }
        out.push(']');
    }
}

impl fmt::Debug for Body {
    /// Prints field names only: prompts are private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.fields.names().collect();
        write!(f, "Body({} of {} items)", names.join(", "), self.items.len())
    }
}

fn is_own(field: &str) -> bool {
    matches!(field, "model" | "input")
}

fn placeholder() -> Box<RawValue> {
    json(&())
}

fn json<T: Serialize + ?Sized>(value: &T) -> Box<RawValue> {
    to_raw_value(value).expect("callers pass values that JSON can say")
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    if error.is_data() {
        return Refusal::of_request(
            "invalid_type",
            "The body must be one JSON object, with at least `model` in it.",
        );
    }
    let what = if error.is_eof() { "ends too early" } else { "is not valid JSON" };
    let (line, column) = (near(error.line()), near(error.column()));
    Refusal::of_request(
        "invalid_json",
        format!("The body {what} near line {line}, column {column}; send one JSON object."),
    )
}

fn model_of(fields: &Object) -> Result<String, Refusal> {
    let Some(value) = fields.get("model") else {
        return Err(Refusal::of_field(
            "missing_required_parameter",
            "model",
            "The request names no model; set `model` to one that `weir models` lists.",
        ));
    };
    match raw::text(value) {
        Some(model) if !model.trim().is_empty() => Ok(model.into_owned()),
        _ => Err(Refusal::of_field(
            "invalid_type",
            "model",
            "`model` must be a non-empty string; set it to one that `weir models` lists.",
        )),
    }
}

/// The most items that one request may have: each costs memory whatever its size, and no conversation comes near.
const MOST_ITEMS: usize = 100_000;

fn items_of(input: &RawValue) -> Result<Vec<Item>, Refusal> {
    if raw::text(input).is_some() {
        // The backend takes lists only. The text is moved over as written, escapes and all.
        let text = input.get();
        let item =
            format!(r#"{{"role":"user","content":[{{"type":"input_text","text":{text}}}]}}"#);
        return Ok(vec![Item::parse(raw::made(item))]);
    }
    let Some(elements) = raw::list(input) else {
        let noun = raw::noun(input);
        return Err(Refusal::of_field(
            "invalid_type",
            "input",
            format!("`input` must be a string or a list, not {noun}."),
        ));
    };
    if elements.len() > MOST_ITEMS {
        return Err(Refusal::of_field(
            "too_many_items",
            "input",
            format!(
                "`input` has more than {MOST_ITEMS} items. Compact the conversation and send it again."
            ),
        ));
    }
    elements
        .into_iter()
        .enumerate()
        .map(|(place, element)| {
            if raw::is_object(element) {
                return Ok(Item::parse(element.to_owned()));
            }
            let (place, noun) = (place.to_string(), raw::noun(element));
            Err(Refusal::of_field(
                "invalid_type",
                "input",
                format!(
                    "Every element of `input` must be an object; element {} is {noun}.",
                    word(&place, "N")
                ),
            ))
        })
        .collect()
}

fn expect_field(
    fields: &Object,
    name: &str,
    expected: &str,
    fits: impl Fn(&RawValue) -> bool,
) -> Result<(), Refusal> {
    match fields.get(name) {
        Some(value) if !fits(value) => {
            let noun = raw::noun(value);
            Err(Refusal::of_field(
                "invalid_type",
                name,
                format!("`{name}` must be {expected}, not {noun}."),
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::refusal::looks_retryable;
    use super::*;

    fn body(text: &str) -> Body {
        Body::parse(text.as_bytes()).expect("a request")
    }

    fn written(body: &Body) -> String {
        String::from_utf8(body.to_bytes()).expect("UTF-8")
    }

    #[test]
    fn a_request_survives_byte_for_byte() {
        for text in [
            r#"{"model":"m","input":[]}"#,
            r#"{"zeta":1e400,"model":"m","a":0.10,"b":18446744073709551616,"c":-0,"d":1E+2,"e":"\u00e9\/\ud800"}"#,
            r#"{"\u006dodel":"m","input":[{"role":"user","x":{"k":1,"k":2},"n":0.10},{"type":"new_thing","\u0074":[ 1 , 2 ]}],"tools":null}"#,
            r#"{"model":"m","stream":null,"tools":[],"deep":{"a":[[[{}]]]}}"#,
        ] {
            assert_eq!(written(&body(text)), text);
        }
    }

    #[test]
    fn fields_can_be_changed_in_place() {
        let mut body = body(r#"{"a":1,"model":"m","b":0.10,"input":[{"role":"user"}],"c":true}"#);
        body.set("a", &[1, 2]);
        body.set("new", "x");
        body.set_model("other");
        assert_eq!(body.remove("b").map(|raw| raw.get().to_owned()).as_deref(), Some("0.10"));
        assert_eq!(body.model(), "other");
        assert_eq!(body.flag("c"), Some(true));
        assert_eq!(body.text("new").as_deref(), Some("x"));
        assert_eq!(body.text("c"), None);
        assert_eq!(
            written(&body),
            r#"{"a":[1,2],"model":"other","input":[{"role":"user"}],"c":true,"new":"x"}"#
        );
    }

    #[test]
    fn model_and_input_cannot_be_broken_from_outside() {
        let mut body = body(r#"{"model":"m","input":[{"role":"user"}]}"#);
        body.set("model", &7);
        body.set("input", "x");
        assert!(body.remove("model").is_none() && body.remove("input").is_none());
        assert!(body.get("input").is_none());
        assert_eq!(written(&body), r#"{"model":"m","input":[{"role":"user"}]}"#);
    }

    #[test]
    fn a_string_becomes_one_user_message() {
        let body = body(r#"{"model":"m","input":"Hi \u00e9 \"you\"","x":1}"#);
        assert_eq!(body.items().len(), 1);
        assert_eq!(
            written(&body),
            r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"Hi \u00e9 \"you\""}]}],"x":1}"#
        );
    }

    #[test]
    fn input_may_be_absent_and_appears_when_items_do() {
        let mut body = body(r#"{"model":"m"}"#);
        assert!(body.items().is_empty());
        assert_eq!(written(&body), r#"{"model":"m"}"#);
        body.items_mut().push(Item::parse(raw::made(r#"{"role":"user"}"#.to_owned())));
        assert_eq!(written(&body), r#"{"model":"m","input":[{"role":"user"}]}"#);
    }

    #[test]
    fn of_two_fields_the_last_counts() {
        let body = body(r#"{"model":"a","input":"x","model":"b","input":[]}"#);
        assert_eq!(body.model(), "b");
        assert!(body.items().is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_refused_in_words() {
        let long = format!("{{\"model\":\"m\",\"x\":\"{}\" oops}}", "y".repeat(479));
        let far = format!("{{\"model\":\"m\",\"input\":[{}7]}}", "{},".repeat(500));
        for (text, code, param, part) in [
            ("", "invalid_json", None, "empty"),
            ("{\"model\":\"m\",}", "invalid_json", None, "near line 1, column 14"),
            ("{\n\"model\":", "invalid_json", None, "ends too early near line 2, column 8"),
            (long.as_str(), "invalid_json", None, "near line 1, column 499"),
            ("[1]", "invalid_type", None, "one JSON object"),
            ("\"x\"", "invalid_type", None, "one JSON object"),
            ("{}", "missing_required_parameter", Some("model"), "names no model"),
            (r#"{"model":7}"#, "invalid_type", Some("model"), "non-empty string"),
            (r#"{"model":" "}"#, "invalid_type", Some("model"), "non-empty string"),
            (r#"{"model":"m","input":7}"#, "invalid_type", Some("input"), "not a number"),
            (r#"{"model":"m","input":null}"#, "invalid_type", Some("input"), "not null"),
            (r#"{"model":"m","input":{}}"#, "invalid_type", Some("input"), "not an object"),
            (
                r#"{"model":"m","input":[{},"x"]}"#,
                "invalid_type",
                Some("input"),
                "element 1 is a string",
            ),
            (far.as_str(), "invalid_type", Some("input"), "element N is a number"),
            (
                r#"{"model":"m","tools":{}}"#,
                "invalid_type",
                Some("tools"),
                "must be a list, not an object",
            ),
            (
                r#"{"model":"m","tools":"x"}"#,
                "invalid_type",
                Some("tools"),
                "must be a list, not a string",
            ),
            (r#"{"model":"m","stream":"yes"}"#, "invalid_type", Some("stream"), "not a string"),
        ] {
            let refusal = Body::parse(text.as_bytes()).expect_err(text);
            assert_eq!(
                (refusal.status, refusal.code, refusal.param.as_deref()),
                (400, code, param),
                "{text}"
            );
            assert!(refusal.message.contains(part), "{text}: {}", refusal.message);
            assert!(!looks_retryable(&refusal.envelope().to_string()), "{}", refusal.message);
        }
        let refusal = Body::parse(b"{\"model\":\"\xff\"}").expect_err("not UTF-8");
        assert!(refusal.message.contains("near byte 10"), "{}", refusal.message);
    }

    #[test]
    fn debug_prints_names_only() {
        let body = body(r#"{"model":"m","input":"secret","instructions":"secret"}"#);
        assert_eq!(format!("{body:?}"), "Body(model, input, instructions of 1 items)");
    }
}
