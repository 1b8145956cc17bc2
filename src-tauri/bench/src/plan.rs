//! What a turn asks of the fixed upstream, written into the prompt so that it passes any proxy.
//!
//! The mark is found in the bytes of the request, wherever a proxy has moved the prompt to: neither side reads the JSON
//! around it.
//!
//! **Invariant**: a plan that is written is read back the same.

use std::time::Duration;

use memchr::memmem;

const OPEN: &str = "[[bench ";
const CLOSE: &str = "]]";

/// How the upstream answers one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plan {
    /// Pieces of text, beside the eight events that open and close an answer.
    pub(crate) deltas: u32,
    /// Time between two pieces; with none everything is written at once.
    pub(crate) gap: Duration,
    /// The answer begins once so many turns are in flight.
    pub(crate) together: usize,
}

impl Plan {
    /// An answer without a pause.
    pub(crate) fn at_once(deltas: u32) -> Self {
        Self { deltas, gap: Duration::ZERO, together: 1 }
    }

    pub(crate) fn paced(deltas: u32, gap: Duration) -> Self {
        Self { gap, ..Self::at_once(deltas) }
    }

    /// Events of the whole answer.
    pub(crate) fn events(self) -> u64 {
        u64::from(self.deltas) + super::answer::AROUND
    }

    pub(crate) fn mark(self) -> String {
        format!("{OPEN}{} {} {}{CLOSE}", self.deltas, self.gap.as_micros(), self.together)
    }

    /// The plan in a request. A request without one gets the shortest answer.
    pub(crate) fn find(request: &[u8]) -> Self {
        Self::read(request).unwrap_or_else(|| Self::at_once(1))
    }

    fn read(request: &[u8]) -> Option<Self> {
        let from = memmem::find(request, OPEN.as_bytes())? + OPEN.len();
        let length = memmem::find(&request[from..], CLOSE.as_bytes())?;
        let mut numbers = std::str::from_utf8(&request[from..from + length]).ok()?.split(' ');
        let mut number = || numbers.next()?.parse::<u32>().ok();
        Some(Self {
            deltas: number()?,
            gap: Duration::from_micros(number()?.into()),
            together: number()?.max(1) as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_back_from_any_request() {
        let plan = Plan { deltas: 7, gap: Duration::from_micros(1_500), together: 12 };
        let request = format!(r#"{{"input":[{{"text":"hello {} x"}}]}}"#, plan.mark());
        assert_eq!(Plan::find(request.as_bytes()), plan);
        assert_eq!(Plan::find(b"{}"), Plan::at_once(1));
        assert_eq!(Plan::find(b"[[bench 1 2"), Plan::at_once(1));
    }
}
