//! What the measured program costs, as Linux counts it.
//!
//! **Invariant**: figures of several processes are added up; one that has ended counts nothing.

use std::fs;
use std::time::Duration;

/// Linux counts processor time for programs in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// A process with all that it started.
pub(crate) fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(&parent) = all.get(at) {
        let path = format!("/proc/{parent}/task/{parent}/children");
        let children = fs::read_to_string(path).unwrap_or_default();
        all.extend(children.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        at += 1;
    }
    all
}

/// Processor time since the start, in user and system mode.
pub(crate) fn cpu(pids: &[u32]) -> Duration {
    pids.iter().filter_map(|pid| ticks(*pid)).map(|ticks| TICK * ticks).sum()
}

fn ticks(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold blanks and brackets; the fields follow the last one.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    Some(fields.next()?.parse::<u32>().ok()? + fields.next()?.parse::<u32>().ok()?)
}

/// Resident memory in bytes.
pub(crate) fn resident(pids: &[u32]) -> u64 {
    pids.iter().filter_map(|pid| kibibytes(*pid)).sum::<u64>() * 1024
}

fn kibibytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Cores and model of this machine's processor.
pub(crate) fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{cores} × {}", model.map_or("unknown processor", |(_, name)| name))
}

/// The load of the last minute, which says whether others were at work.
pub(crate) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_a_family() {
        let own = std::process::id();
        assert_eq!(family(own)[0], own);
        assert!(resident(&[own]) > 100_000);
        assert!(ticks(own).is_some());
        assert_eq!(resident(&[0]), 0);
    }
}
