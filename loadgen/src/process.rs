//! The CPU time and the memory of a process and its descendants.

use std::collections::BTreeMap;
use std::fs;

/// The resource usage of a process and its descendants.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Usage {
    /// User and system time in seconds, including that of children that have ended.
    pub(crate) cpu_seconds: f64,
    /// Resident memory in bytes.
    pub(crate) resident_bytes: u64,
    /// Peak resident memory in bytes; for several processes, the sum of their peaks.
    pub(crate) peak_bytes: u64,
}

impl Usage {
    /// Reads the usage of a process from `/proc`.
    pub(crate) fn of(pid: u32) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("process {pid}: {error}");
        fs::metadata(format!("/proc/{pid}/stat")).map_err(failed)?;
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut processes = BTreeMap::new();
        for entry in fs::read_dir("/proc").map_err(failed)?.flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            if let Ok(pid) = name.parse()
                && let Some((parent, ticks)) = stat(pid)
            {
                children.entry(parent).or_default().push(pid);
                processes.insert(pid, ticks);
            }
        }
        let per_second = u32::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100);
        let mut usage = Self::default();
        let mut left = vec![pid];
        while let Some(pid) = left.pop() {
            left.extend(children.get(&pid).into_iter().flatten());
            let ticks = processes.get(&pid).copied().unwrap_or(0);
            usage.cpu_seconds += f64::from(ticks) / f64::from(per_second);
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            usage.resident_bytes += kilobytes(&status, "VmRSS:") * 1024;
            usage.peak_bytes += kilobytes(&status, "VmHWM:") * 1024;
        }
        Ok(usage)
    }
}

/// Returns the parent of a process and its CPU time in clock ticks; none if the process has ended.
fn stat(pid: u32) -> Option<(u32, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The fields after the name, which can contain any character: state, parent, and from the twelfth
    // on utime, stime, cutime, cstime.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let ticks = fields.skip(9).take(4);
    Some((
        parent,
        ticks.filter_map(|field| field.parse::<u32>().ok()).sum(),
    ))
}

fn kilobytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_ascii_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_of_a_process_grows_with_its_work() {
        let own = std::process::id();
        let before = Usage::of(own).unwrap();
        assert!(1024 * 1024 < before.resident_bytes);
        assert!(before.resident_bytes <= before.peak_bytes);
        let mut sum = 0_u64;
        loop {
            sum = (0..1_000_000).fold(sum, u64::wrapping_add);
            let after = Usage::of(own).unwrap();
            if before.cpu_seconds + 0.05 < after.cpu_seconds {
                break;
            }
        }
        assert!(Usage::of(u32::MAX).is_err(), "{sum}");
    }
}
