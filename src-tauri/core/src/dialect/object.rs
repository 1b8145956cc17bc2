//! A JSON object of which single fields can be replaced while all others keep their bytes.
//!
//! Keys are kept as the client wrote them too, so an escaped key is sent on escaped.
//!
//! **Invariant**: writing an object out changes the white space between its fields and nothing else that was not set.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::raw;

#[derive(Clone)]
struct Field {
    key: Box<RawValue>,
    name: String,
    value: Box<RawValue>,
}

/// Fields in order. Where a name occurs twice the last value counts, at the first one's place.
#[derive(Clone, Default)]
pub struct Object {
    fields: Vec<Field>,
}

impl Object {
    /// Errors: not JSON, or not one object.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let mut fields: Vec<Field> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        raw::fields(text, |key, value| {
            let name = raw::name(key).into_owned();
            match places.get(&name) {
                Some(&place) => fields[place].value = value.to_owned(),
                None => {
                    places.insert(name.clone(), fields.len());
                    fields.push(Field { key: key.to_owned(), name, value: value.to_owned() });
                }
            }
        })?;
        Ok(Self { fields })
    }

    pub fn of(value: &RawValue) -> Option<Self> {
        Self::parse(value.get()).ok()
    }

    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.fields.iter().find(|field| field.name == name).map(|field| &*field.value)
    }

    pub fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.fields.iter_mut().find(|field| field.name == name) {
            Some(field) => field.value = value,
            None => {
                let key = serde_json::value::to_raw_value(name).expect("a string is JSON");
                self.fields.push(Field { key, name: name.to_owned(), value });
            }
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Box<RawValue>> {
        let place = self.fields.iter().position(|field| field.name == name)?;
        Some(self.fields.remove(place).value)
    }

    /// Keeps the fields whose name passes; says whether any went.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) -> bool {
        let before = self.fields.len();
        self.fields.retain(|field| keep(&field.name));
        self.fields.len() != before
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Appends the object to `out`; `instead` may write another value for a field, and says whether it did.
    pub fn write(&self, out: &mut String, instead: impl Fn(&str, &mut String) -> bool) {
        out.push('{');
        for (place, field) in self.fields.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            out.push_str(field.key.get());
            out.push(':');
            if !instead(&field.name, out) {
                out.push_str(field.value.get());
            }
        }
        out.push('}');
    }

    pub fn to_raw(&self) -> Box<RawValue> {
        let mut text = String::new();
        self.write(&mut text, |_, _| false);
        raw::made(text)
    }
}

/// A list written from raw elements.
pub fn list<'a>(elements: impl IntoIterator<Item = &'a RawValue>) -> Box<RawValue> {
    let mut text = String::from("[");
    for (place, element) in elements.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push_str(element.get());
    }
    text.push(']');
    raw::made(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("test JSON")
    }

    #[test]
    fn what_is_not_set_keeps_its_bytes() {
        let mut object =
            Object::parse(r#"{"\u0061":0.10,"big":18446744073709551616, "deep":{"x":1,"x":2}}"#)
                .expect("an object");
        object.set("big", value("7"));
        assert_eq!(object.to_raw().get(), r#"{"\u0061":0.10,"big":7,"deep":{"x":1,"x":2}}"#);
        assert_eq!(object.get("a").map(RawValue::get), Some("0.10"));
    }

    #[test]
    fn the_last_of_two_counts_at_the_place_of_the_first() {
        let object = Object::parse(r#"{"a":1,"b":2,"\u0061":3}"#).expect("an object");
        assert_eq!(object.to_raw().get(), r#"{"a":3,"b":2}"#);
    }

    #[test]
    fn many_fields_are_read_in_one_pass() {
        let fields: Vec<_> = (0..100_000).map(|n| format!("\"f{n}\":{n}")).collect();
        let text = format!("{{{}}}", fields.join(","));
        assert_eq!(Object::parse(&text).expect("an object").to_raw().get(), text);
    }
}
