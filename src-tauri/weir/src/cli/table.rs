//! Plain tables for a terminal.
//!
//! **Invariant**: a number that is missing prints as an en dash.

use comfy_table::{ContentArrangement, Table, presets};

pub(super) fn print(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(heads);
    let mut any = false;
    for row in rows {
        any = true;
        table.add_row(row);
    }
    if any {
        for line in table.lines() {
            println!("{}", line.trim_end());
        }
    }
}

pub(super) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| value.to_string())
}

/// A duration in seconds as people read it.
pub(super) fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// A window by its length.
pub(super) fn window(minutes: u64) -> String {
    match minutes {
        10_080 => "week".into(),
        40_320..=44_640 => "month".into(),
        _ if minutes.is_multiple_of(60) => format!("{} h", minutes / 60),
        _ => format!("{minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_windows_read_as_people_say_them() {
        let spans =
            [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (3_725, "1 h 2 min"), (90_000, "1 d 1 h")];
        for (seconds, text) in spans {
            assert_eq!(span(seconds), text);
        }
        let windows = [(300, "5 h"), (10_080, "week"), (43_200, "month"), (45, "45 min")];
        for (minutes, text) in windows {
            assert_eq!(window(minutes), text);
        }
    }
}
