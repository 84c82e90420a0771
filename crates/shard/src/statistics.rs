//! The statistics of a shard.

use super::{Shard, Shortage};
use jitney_base::time::Timestamp;
use jitney_journal::LogStatistics;

/// A shard: its namespaces with their clients, and its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistics {
    /// Entities, connections and refusals.
    pub gateway: jitney_gateway::Statistics,
    /// The journal's segments.
    pub log: LogStatistics,
    /// Groups of records that were sealed since the data directory was made.
    pub groups: u64,
    /// Bytes of groups that are on their way to the disk.
    pub in_flight_bytes: usize,
    /// Checkpoints and compactions.
    pub maintenance: MaintenanceCounters,
    /// Messages that have lost their bytes since the process started.
    pub damaged: u64,
    /// Why no messages are accepted; none if they are.
    pub shortage: Option<Shortage>,
}

/// Counts of maintenance since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MaintenanceCounters {
    /// Checkpoints that were written.
    pub checkpoints: u64,
    /// Checkpoints that could not be written.
    pub checkpoints_failed: u64,
    /// Compactions that have come to their end.
    pub compactions: u64,
    /// Bytes of messages that compaction has moved to the end of the log.
    pub compacted_bytes: u64,
    /// Segments that were removed.
    pub segments_removed: u64,
}

impl Shard {
    /// Returns the statistics, with up to `most` entities one by one. The time that it takes grows with the entities
    /// and connections.
    pub fn statistics(&mut self, now: Timestamp, most: usize) -> Statistics {
        Statistics {
            gateway: self.gateway.statistics(now, most),
            log: self.journal.statistics(),
            groups: self.durability.sealed(),
            in_flight_bytes: self.durability.in_flight_bytes(),
            maintenance: self.maintenance.counters,
            damaged: self.damaged,
            shortage: self.shortage(),
        }
    }
}
