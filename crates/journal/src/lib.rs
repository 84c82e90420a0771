//! The log: everything that happened, in order, durable; and how it is read again.
//!
//! Promises: a frame (one group of records) is kept wholly or not at all; what was synced is found
//! again, in order, or the start is refused with the place and the choices; what was not synced
//! may be found or not, but never a frame without all frames before it. Leaves to the server:
//! threads and files. Leaves to the broker: what records mean, and which bodies are alive.
//!
//! ```text
//!  broker ──append──► Writer ──Frame──► Committer ──write, sync──► Disk
//!                       ▲                                           │
//!                       └──────────── recover ◄─────────────────────┘
//! ```
//!
//! `docs/log-format.md` has the format to the byte and the assumptions about a disk.

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

pub mod appender;
mod cache;
mod checkpoint;
mod codec;
mod committer;
mod damage;
mod disk;
mod error;
pub mod fuzzing;
mod layout;
pub mod limits;
pub mod memory;
mod reading;
mod recover;
pub mod rows;
mod usage;
mod writer;

#[cfg(test)]
mod damage_tests;
#[cfg(any(test, feature = "faulty"))]
pub mod faulty;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wrong_bytes_tests;

pub use checkpoint::write_checkpoint;
pub use committer::Committer;
pub use damage::{Cut, DamagedBody, Loss, lost_place};
pub use disk::{CheckpointSink, Checkpoints, Disk, LogReader, SegmentId, Space};
pub use error::Error;
pub use reading::{Stretch, read_ahead};
pub use recover::{Older, Recovered, Replay, check_older, read_log, recover};
pub use usage::LogStatistics;
pub use writer::{CheckpointAt, Frame, LogEnd, Writer};

/// The newest kind of record that this release reads, and may write.
pub const NEWEST_KIND: u8 = codec::NEWEST;

/// How a log is kept.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Bytes after which a new segment is begun; the disk should prepare segments of this size.
    pub segment_bytes: u64,
    /// Bytes of recent frames and of read ones that stay in memory.
    pub cache_bytes: usize,
    /// The number of a new store: random, so that checksums cannot be predicted.
    pub store: u64,
    /// Records after which a checkpoint is written, however large it is: recovery reads no more of them behind it, but for those that
    /// come while it is written.
    pub tail_records_max: u64,
    /// Whether to continue without frames that were synced and are damaged or missing.
    pub accepts_loss: bool,
    /// The newest kind of record that is written: others that read the log know no newer one.
    pub newest_kind: u8,
}

impl Options {
    /// Takes the limits' sizes.
    #[must_use]
    pub fn new(store: u64) -> Self {
        let (segment_bytes, cache_bytes) = (limits::SEGMENT_BYTES, limits::LOG_CACHE_BYTES);
        Self {
            segment_bytes,
            cache_bytes,
            store,
            tail_records_max: u64::MAX,
            accepts_loss: false,
            newest_kind: NEWEST_KIND,
        }
    }

    /// Where in a segment no frame begins any more. A frame of usual size then ends within the
    /// bytes that were prepared, so that a full disk does not stop it.
    fn nominal(&self) -> u64 {
        self.segment_bytes - self.segment_bytes / 16
    }
}
