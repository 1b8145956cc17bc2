//! The figures as a Markdown table and as JSON, and what they are held against.
//!
//! **Invariant**: every table says when and where it was measured.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::figures::{Figures, Metric};
use crate::process;

/// What nginx is called here; ratios are taken to it, and to no proxy where nginx has no figure.
const NGINX: &str = "nginx";
pub(crate) const NONE: &str = "no proxy";

/// A table with what belongs to it.
pub(crate) struct Report<'a> {
    pub(crate) figures: &'a Figures,
    pub(crate) targets: &'a [String],
    pub(crate) rounds: u32,
    /// The load of the machine before the first round.
    pub(crate) load: &'a str,
}

impl Report<'_> {
    /// Everything that is neither the base nor nginx.
    fn proxies(&self) -> impl Iterator<Item = &String> {
        self.targets.iter().filter(|name| *name != NGINX && *name != NONE)
    }

    fn heading(&self) -> String {
        let date = time::OffsetDateTime::now_utc().date();
        format!(
            "Measured {date} on {} shared by client, upstream and proxy (load before: {}), {} interleaved rounds, median (least–most).",
            process::machine(),
            self.load,
            self.rounds
        )
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("{}\n\n|  |", self.heading());
        let proxies: Vec<_> = self.proxies().collect();
        self.targets.iter().for_each(|name| _ = write!(text, " {name} |"));
        proxies.iter().for_each(|name| _ = write!(text, " {name} / nginx |"));
        text.push_str("\n|---|");
        text.push_str(&"---:|".repeat(self.targets.len() + proxies.len()));
        text.push('\n');
        for metric in self.figures.metrics() {
            let (words, digits) = metric.words();
            _ = write!(text, "| {words} |");
            for name in self.targets {
                _ = match self.figures.median(metric, name) {
                    Some((median, least, most)) => write!(
                        text,
                        " {} ({}–{}) |",
                        number(median, digits),
                        number(least, digits),
                        number(most, digits)
                    ),
                    None => write!(text, " – |"),
                };
            }
            for name in &proxies {
                _ = match self.figures.ratio(metric, name, NGINX) {
                    Some(ratio) => write!(text, " {ratio:.2} |"),
                    None => write!(text, " – |"),
                };
            }
            text.push('\n');
        }
        text.push('\n');
        for (met, sentence) in self.verdicts() {
            _ = writeln!(text, "- {}: {sentence}", if met { "met" } else { "MISSED" });
        }
        text
    }

    /// Each target of this stage, for each proxy, and whether it is met. What was not measured is not met.
    pub(crate) fn verdicts(&self) -> Vec<(bool, String)> {
        let mut all = Vec::new();
        for name in self.proxies() {
            let figures = self.figures;
            let ratio = |metric| figures.ratio(metric, name, NGINX);
            let added = ratio(Metric::EventAdded);
            let short = ratio(Metric::Short);
            let together = figures.median(Metric::Together, name).map(|(_, least, _)| least);
            let memory = figures.median(Metric::Memory(100), name).map(|(_, _, most)| most);
            let said = |figure: Option<f64>| {
                figure.map_or_else(|| "not measured".to_owned(), |figure| number(figure, 2))
            };
            all.extend([
                (
                    added.is_some_and(|ratio| ratio <= 1.5),
                    format!(
                        "{name} adds at most 1.5 × nginx's latency to an event: {}",
                        said(added)
                    ),
                ),
                (
                    short.is_some_and(|ratio| ratio >= 0.4),
                    format!("{name} carries at least 0.4 × nginx's short streams: {}", said(short)),
                ),
                (
                    together == Some(12.0),
                    format!("{name} has twelve of twelve turns in flight: {}", said(together)),
                ),
                (
                    memory.is_some_and(|most| most < 60.0),
                    format!("{name} needs less than 60 MB for 100 streams: {}", said(memory)),
                ),
            ]);
        }
        all
    }

    pub(crate) fn json(&self) -> Value {
        let metric = |metric: Metric| {
            let of = |name: &String| (name.clone(), json!(self.figures.all(metric, name)));
            let all: serde_json::Map<_, _> = self.targets.iter().map(of).collect();
            (metric.words().0, Value::Object(all))
        };
        json!({
            "date": time::OffsetDateTime::now_utc().date().to_string(),
            "machine": process::machine(),
            "load_before": self.load,
            "rounds": self.rounds,
            "figures": self.figures.metrics().map(metric).collect::<serde_json::Map<_, _>>(),
            "verdicts": self.verdicts().into_iter().map(|(met, what)| json!({"met": met, "what": what})).collect::<Vec<_>>(),
        })
    }
}

/// A number with commas between thousands.
fn number(figure: f64, digits: usize) -> String {
    let text = format!("{figure:.digits$}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("−", whole));
    let mut out = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !rest.is_empty() {
        _ = write!(out, ".{rest}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(number(1_234_567.4, 0), "1,234,567");
        assert_eq!(number(-12.34, 1), "−12.3");
        assert_eq!(number(999.0, 2), "999.00");
    }

    #[test]
    fn what_was_not_measured_is_missed() {
        let figures = Figures::default();
        let targets = ["weir".to_owned()];
        let report = Report { figures: &figures, targets: &targets, rounds: 1, load: "0" };
        assert!(report.verdicts().iter().all(|(met, _)| !met));
    }
}
