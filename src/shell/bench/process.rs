//! What the system knows of a process: its CPU time and its memory.

/// A process's use of the machine so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    /// User and system, seconds.
    pub(super) cpu_seconds: f64,
    /// Memory that is in RAM, bytes.
    pub(super) resident_bytes: u64,
}

impl Usage {
    /// Reads `/proc`.
    pub(super) fn of(pid: u32) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("process {pid}: {error}");
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(failed)?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(failed)?;
        // Behind the name, which may hold anything: state is field 3, utime 14, stime 15.
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_ascii_whitespace()
            .collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok());
        let ticks = ticks(11).unwrap_or(0) + ticks(12).unwrap_or(0);
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|text| text.split_ascii_whitespace().next());
        let kilobytes: u64 = kilobytes.and_then(|text| text.parse().ok()).unwrap_or(0);
        let per_second =
            f64::from(u32::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100));
        let cpu_seconds = f64::from(ticks) / per_second;
        Ok(Self {
            cpu_seconds,
            resident_bytes: kilobytes * 1024,
        })
    }
}
