//! What the process takes of the machine, by `/proc/self` [proc(5)].

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// What the process takes. What cannot be read is 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    pub(in crate::http) cpu_seconds: f64,
    pub(in crate::http) resident_bytes: u64,
    pub(in crate::http) virtual_bytes: u64,
    pub(crate) threads: u64,
    pub(crate) descriptors: u64,
    pub(in crate::http) descriptors_max: u64,
    /// Seconds since 1970.
    pub(in crate::http) started_at: f64,
}

impl Usage {
    /// Reads it.
    pub(crate) fn now() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let system = fs::read_to_string("/proc/stat").unwrap_or_default();
        let descriptors = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Self {
            // One of them is that of the listing itself.
            descriptors: u64::try_from(descriptors.saturating_sub(1)).unwrap_or_default(),
            descriptors_max: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
            ..Self::read(&stat, &system)
        }
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "clock ticks of a process are few"
    )]
    fn read(stat: &str, system: &str) -> Self {
        // Behind the name, which may have spaces, come the fields from the third on.
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_ascii_whitespace()
            .collect();
        let field = |number: usize| {
            let text = fields.get(number - 3);
            text.and_then(|text| text.parse::<u64>().ok())
                .unwrap_or_default()
        };
        let ticks = clock_ticks_per_second().max(1) as f64;
        let booted = system.lines().find_map(|line| line.strip_prefix("btime "));
        let booted = booted.and_then(|text| text.trim().parse::<u64>().ok());
        Self {
            cpu_seconds: (field(14) + field(15)) as f64 / ticks,
            threads: field(20),
            started_at: booted.unwrap_or_default() as f64 + field(22) as f64 / ticks,
            virtual_bytes: field(23),
            resident_bytes: field(24) * u64::try_from(page_size()).unwrap_or_default(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_name() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 9 0 300 4096 2 0";
        let usage = Usage::read(stat, "cpu 1\nbtime 1000\n");
        let ticks = f64::from(u32::try_from(clock_ticks_per_second()).unwrap());
        assert!((usage.cpu_seconds - 200.0 / ticks).abs() < 1e-9);
        assert!((usage.started_at - (1000.0 + 300.0 / ticks)).abs() < 1e-9);
        assert_eq!((usage.threads, usage.virtual_bytes), (9, 4096));
        assert_eq!(usage.resident_bytes, 2 * page_size() as u64);
    }

    #[test]
    fn this_process_takes_something() {
        let usage = Usage::now();
        assert!(0 < usage.resident_bytes && usage.resident_bytes < usage.virtual_bytes);
        assert!(0 < usage.threads && 0 < usage.descriptors);
        assert!(usage.descriptors < usage.descriptors_max);
        assert!(1.5e9 < usage.started_at, "{usage:?}");
    }
}
