//! Figures of many rounds: medians, extremes, ratios.
//!
//! **Invariant**: what was not measured has no figure; it is never zero.

use std::collections::BTreeMap;

/// Median and 99th percentile of many times, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Spread {
    pub(crate) fn of(mut all: Vec<u64>) -> Self {
        all.sort_unstable();
        let at = |share: usize| all.get((all.len() * share / 100).min(all.len().saturating_sub(1)));
        let ns = |share| at(share).map_or(f64::NAN, |ns| *ns as f64);
        Self { p50: ns(50), p99: ns(99) }
    }
}

/// What is measured, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Metric {
    Headers,
    HeadersAdded,
    Event,
    EventTail,
    EventAdded,
    EventTailAdded,
    Short,
    Events,
    CpuTurns,
    CpuPaced,
    CpuBulk,
    Memory(usize),
    Together,
    TogetherTime,
}

impl Metric {
    /// Its name with the unit, and the digits behind the point.
    pub(crate) fn words(self) -> (String, usize) {
        let (words, digits) = match self {
            Self::Headers => ("time to headers, µs", 0),
            Self::HeadersAdded => ("added to it, µs", 0),
            Self::Event => ("latency of an event, median, µs", 0),
            Self::EventTail => ("latency of an event, p99, µs", 0),
            Self::EventAdded => ("added to the median, µs", 0),
            Self::EventTailAdded => ("added to the p99, µs", 0),
            Self::Short => ("short streams per second", 0),
            Self::Events => ("events per second, unpaced", 0),
            Self::CpuTurns => ("processor time per 1,000 short turns, ms", 0),
            Self::CpuPaced => ("processor time per paced event, µs", 1),
            Self::CpuBulk => ("processor time per unpaced event, µs", 2),
            Self::Memory(1) => return ("resident memory, 1 stream, MB".into(), 1),
            Self::Memory(count) => return (format!("resident memory, {count} streams, MB"), 1),
            Self::Together => ("of twelve turns at once, in flight upstream", 0),
            Self::TogetherTime => ("time of these twelve, ms", 1),
        };
        (words.into(), digits)
    }
}

/// All figures of all rounds, by metric and target.
#[derive(Debug, Default)]
pub(crate) struct Figures(BTreeMap<Metric, BTreeMap<String, Vec<f64>>>);

impl Figures {
    /// Takes a figure; one that is no number was not measured.
    pub(crate) fn add(&mut self, metric: Metric, target: &str, figure: f64) {
        if figure.is_finite() {
            let of_metric = self.0.entry(metric).or_default();
            of_metric.entry(target.to_owned()).or_default().push(figure);
        }
    }

    pub(crate) fn metrics(&self) -> impl Iterator<Item = Metric> {
        self.0.keys().copied()
    }

    pub(crate) fn all(&self, metric: Metric, target: &str) -> &[f64] {
        self.0.get(&metric).and_then(|of| of.get(target)).map_or(&[], Vec::as_slice)
    }

    /// Median, least and most.
    pub(crate) fn median(&self, metric: Metric, target: &str) -> Option<(f64, f64, f64)> {
        let mut all = self.all(metric, target).to_vec();
        all.sort_unstable_by(f64::total_cmp);
        let half = all.len() / 2;
        let median =
            if all.len() % 2 == 1 { all[half] } else { (all.get(half)? + all[half - 1]) / 2.0 };
        Some((median, *all.first()?, *all.last()?))
    }

    /// How the medians of two targets relate.
    pub(crate) fn ratio(&self, metric: Metric, target: &str, to: &str) -> Option<f64> {
        let ratio = self.median(metric, target)?.0 / self.median(metric, to)?.0;
        ratio.is_finite().then_some(ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios() {
        let mut figures = Figures::default();
        for figure in [3.0, 1.0, 2.0] {
            figures.add(Metric::Short, "a", figure);
        }
        figures.add(Metric::Short, "b", 4.0);
        figures.add(Metric::Short, "b", f64::NAN);
        assert_eq!(figures.median(Metric::Short, "a"), Some((2.0, 1.0, 3.0)));
        assert_eq!(figures.ratio(Metric::Short, "a", "b"), Some(0.5));
        assert_eq!(figures.median(Metric::Short, "c"), None);
        assert_eq!(figures.ratio(Metric::Event, "a", "b"), None);
        figures.add(Metric::Short, "b", 2.0);
        assert_eq!(figures.median(Metric::Short, "b"), Some((3.0, 2.0, 4.0)));
    }

    #[test]
    fn spreads() {
        let spread = Spread::of((1..=1_000).collect());
        assert_eq!((spread.p50, spread.p99), (501.0, 991.0));
        assert!(Spread::of(Vec::new()).p50.is_nan());
    }
}
