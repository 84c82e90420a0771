//! Errors of the log, as texts for operators.

use std::io;

use super::SegmentId;

/// A failure of the log or of the disk under it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Bytes that were synced once have changed.
    #[error(
        "the log is damaged in segment {segment} at byte {offset}: {what}; nothing was changed. \
         Restore the data directory from a backup, or try the disk in another machine, or start \
         once with --accept-data-loss to start without the damaged part (keep a copy of the \
         directory), or start with an empty directory"
    )]
    Corrupt {
        /// Where.
        segment: SegmentId,
        /// How far from the segment's begin, bytes.
        offset: u64,
        /// The fault.
        what: &'static str,
    },
    /// The bytes of one message are damaged, or cannot be read. The rest of the log is good.
    #[error("segment {segment}, byte {offset}: {what}")]
    Body {
        /// Where.
        segment: SegmentId,
        /// How far from the segment's begin, bytes.
        offset: u64,
        /// The fault.
        what: String,
    },
    /// A checkpoint is damaged.
    #[error(
        "checkpoint {number:016x} is damaged: {what}; nothing was changed. Restore the data \
         directory from a backup, or start with an empty directory and lose the data in this one"
    )]
    CorruptCheckpoint {
        /// Which.
        number: u64,
        /// The fault.
        what: &'static str,
    },
    /// Rows of a log in a store are not what was written, or are missing.
    #[error(
        "the log of the namespace in the store is damaged in segment {segment} at byte {offset}: {what}; \
         nothing was changed. Restore the database from a backup, and run `jitney store restored` on the copy"
    )]
    CorruptRows {
        /// Where.
        segment: SegmentId,
        /// How far from the segment's begin, bytes.
        offset: u64,
        /// The fault.
        what: &'static str,
    },
    /// The store refused an operation, or cannot be reached.
    #[error("the store: {0}")]
    Store(String),
    /// Another server owns the namespace.
    #[error("another server owns the namespace")]
    Fenced,
    /// The disk is full. Synced bytes are unchanged, and the operation may be tried again.
    #[error(
        "the disk is full, or its quota is used up (ENOSPC, EDQUOT); free some space; the broker then \
         continues by itself"
    )]
    Full,
    /// The system refused an operation.
    #[error("cannot {what} {place}: {source}{}", remedy(what, source))]
    Io {
        /// The operation: a verb and its object.
        what: &'static str,
        /// The file or directory.
        place: String,
        /// The system's answer.
        source: io::Error,
    },
    /// Another process has the directory.
    #[error("{place} is in use by another process; stop it, or choose another data directory")]
    Locked {
        /// The lock file.
        place: String,
    },
    /// A record does not fit what the records before it made.
    #[error(
        "a record of the log cannot be replayed: {0}; this is a fault of the broker, report it"
    )]
    Replay(String),
    /// The log is of another format.
    #[error(
        "{place} has format {found}, and this broker knows format {known} only; use the version \
         that wrote it"
    )]
    Version {
        /// The segment or checkpoint.
        place: String,
        /// The version in the file.
        found: u32,
        /// The version that this program writes.
        known: u32,
    },
}

/// The system's number for an error of the device, on every system that we know.
pub(super) const EIO: i32 = 5;

/// Returns what an operator can do about a file that the disk cannot read.
fn remedy(what: &str, source: &io::Error) -> &'static str {
    if what == "read" && source.raw_os_error() == Some(EIO) {
        "; copy the data directory to another disk, with zeros in the places that cannot be read \
         (ddrescue does so), and start with the copy"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_can_be_read_in_the_message() {
        for (number, text) in [
            (5, "Input/output error (os error 5)"),
            (24, "Too many open files (os error 24)"),
            (30, "Read-only file system (os error 30)"),
        ] {
            let error = Error::Io {
                what: "open",
                place: "data/LOCK".to_owned(),
                source: io::Error::from_raw_os_error(number),
            };
            assert_eq!(error.to_string(), format!("cannot open data/LOCK: {text}"));
        }
        assert!(Error::Full.to_string().contains("ENOSPC"));
    }

    #[test]
    fn a_file_that_the_disk_cannot_read_is_reported_with_a_remedy() {
        let error = Error::Io {
            what: "read",
            place: "data/log/1".to_owned(),
            source: io::Error::from_raw_os_error(EIO),
        };
        let text = error.to_string();
        assert!(
            text.starts_with("cannot read data/log/1: Input/output error"),
            "{text}"
        );
        assert!(
            text.contains("copy the data directory to another disk"),
            "{text}"
        );
    }
}
