//! Comma-separated values, as spreadsheets read them.
//!
//! **Invariant**: a missing number is an empty field, and no text is run as a formula.

use serde_json::Value;

/// Prints a head line and a line for each row.
pub(super) fn print(fields: &[&str], rows: &[Value]) {
    println!("{}", fields.join(","));
    for row in rows {
        let line: Vec<String> = fields.iter().map(|name| field(&row[name])).collect();
        println!("{}", line.join(","));
    }
}

/// One field; text with a comma, a quote or a line break is quoted. A leading `=` or the like would be run as a formula by
/// some spreadsheets, so it is set apart.
fn field(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::String(text) => text.clone(),
        other => return other.to_string(),
    };
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_is_one_field_and_no_formula() {
        let cases = [
            (json!(null), ""),
            (json!(12), "12"),
            (json!("a"), "a"),
            (json!("a,\"b\""), "\"a,\"\"b\"\"\""),
            (json!("=1"), "'=1"),
        ];
        for (value, text) in cases {
            assert_eq!(field(&value), text);
        }
    }
}
