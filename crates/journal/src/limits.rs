//! Bounds of this crate on resources and times, each with its unit and its reason. Relations between bounds are asserted at the end.

/// Messages below this size are copied for slow connections: a slice keeps its whole stretch of the
/// log in memory. Bytes.
pub const COPIED_BODY_BYTES: usize = 64 * 1024;
/// Nominal size of a segment of the log, bytes: zero-filled in 30 to 200 ms, and small enough that
/// space is freed soon.
pub const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of recent groups and of cached stretches of the log in memory.
pub const LOG_CACHE_BYTES: usize = 64 * 1024 * 1024;
/// Bytes that recovery reads at a time.
pub const RECOVERY_READ_BYTES: usize = 1024 * 1024;
/// Bytes of records in one checksummed block of a checkpoint.
pub const CHECKPOINT_BLOCK_BYTES: usize = 64 * 1024;
/// Buffers that the log keeps for its next frames.
pub const FREE_BUFFERS_MAX: usize = 8;
/// Bytes of such a buffer, at most.
pub const FREE_BUFFER_BYTES_MAX: usize = 1024 * 1024;
/// Rows of one namespace that are sent and not answered. Groups that come meanwhile become one row.
pub const STORE_APPENDS: usize = 3;
/// While a row of a namespace is unanswered, groups of fewer bytes wait for the answer, and become one row.
pub const STORE_GATHERED_BYTES: usize = 128 * 1024;
/// Bytes of groups that become one row, about.
pub const STORE_ROW_BYTES: usize = 512 * 1024;
