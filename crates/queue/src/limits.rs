//! Bounds of this crate on resources and times, each with its unit and its reason. Relations between bounds are asserted at the end.

use jitney_base::time::Millis;

/// Most messages that one peek returns.
pub const PEEK_MESSAGES_MAX: usize = 250;
/// Body bytes after which a peek or a deferred receive returns the messages found so far.
pub const PEEK_BYTES_MAX: usize = 1024 * 1024;
/// Length of a dead-letter reason or description, characters.
pub const DEAD_LETTER_TEXT_MAX: usize = 4_096;
/// Bytes of messages handed to one receiver that are not yet written to its peer. This bounds the
/// output of large messages; credit bounds that of small ones.
pub const RECEIVER_WINDOW_BYTES: i64 = 1024 * 1024;
/// Number spaces of a partitioned entity: the service's count.
pub const PARTITIONS: usize = 16;
/// Message-ids that one entity remembers for duplicate detection, some 50 bytes each.
pub const DUPLICATE_KEYS_MAX: usize = 1_000_000;
/// Bytes of one message session's state: the Premium tier's limit.
pub const SESSION_STATE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of all states of one entity's message sessions: they are kept in memory.
pub const SESSION_STATES_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes that the broker adds to a message on its way out, at most, besides amendments: header,
/// annotations and times.
pub const STAMPS_BYTES: u64 = 512;
/// How long a receiver keeps its link after the end of its message session's lock, if it has no
/// message locked and no other receiver wants the session: the service does not detach an idle one
/// at the very end.
pub const SESSION_LINGER: Millis = Millis::from_millis(2_000);
/// Entries of queues that requests look at in one turn of the broker, some 2 ms; a longer request
/// continues in a later turn.
pub const SCAN_BUDGET: usize = 32_768;
/// Messages of a message session that are counted for an operator.
pub const SESSION_MESSAGES_COUNTED: usize = 1_000;
/// Scheduled messages that are counted in one step: about a millisecond.
pub const SCHEDULED_COUNTED: usize = 20_000;

const _: () = assert!(SESSION_STATE_BYTES_MAX as u64 <= SESSION_STATES_BYTES_MAX);
