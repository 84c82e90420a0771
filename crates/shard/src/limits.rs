//! Bounds of this crate on resources and times, each with its unit and its reason. Relations between bounds are asserted at the end.

use jitney_amqp::limits::FRAME_SIZE_UNOPENED_MAX;
use jitney_base::time::Millis;
use jitney_broker::limits::GROUP_BYTES;
use jitney_journal::limits::STORE_ROW_BYTES;

/// Batches that the owner takes before it hands a group of records to the disk.
pub const MAILBOX_DRAIN: usize = 64;
/// The least that bound is lowered to where the disk is slow: a group.
pub const IN_FLIGHT_BYTES_MIN: usize = 1024 * 1024;
/// Bytes that are read from the disk for one connection at a time, what is read ahead among them.
pub const READ_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Records of a recovery after which queues are checked for parts to pack.
pub const RELIEF_RECORDS: u64 = 256;
/// Bytes that are read from the log after a requested body: the next ones will be requested too.
pub const READ_AHEAD_BYTES: usize = 256 * 1024;
/// Bytes of messages in one group of a journal that a namespace is put into: a row of a store has about as many.
pub const TRANSFER_GROUP_BYTES: usize = STORE_ROW_BYTES;
/// Bytes of records that no client waits for, beyond which their group is sealed all the same.
pub const HELD_BYTES_MAX: usize = 64 * 1024;
/// How long records that no client waits for stay in the open group: those that a client waits for are
/// synced with them.
pub const HELD_TIME_MAX: Millis = Millis::from_millis(10);
/// Bytes of bodies that a compaction appends in one step: other work waits a millisecond for it.
pub const COMPACTION_BYTES: usize = 512 * 1024;
/// Bytes that a connection keeps of its peer until the peer has named its namespace: its identity, and as
/// many bytes of input that no shard has taken yet. A frame before open fits.
pub const UNROUTED_BYTES_MAX: usize = FRAME_SIZE_UNOPENED_MAX as usize;
/// A sync that takes longer lowers the bytes that may wait for the disk: inputs wait behind them.
pub const SYNC_SLOW: Millis = Millis::from_millis(250);
/// A sync that takes less raises them.
pub const SYNC_FAST: Millis = Millis::from_millis(62);
/// Sequence numbers that are left out then, in each partition of each entity: more than are given in a week at 100,000 a
/// second, and few of the 2^48 that there are.
pub const RESTORED_NUMBERS: u64 = 1 << 36;

const _: () = assert!(READ_AHEAD_BYTES <= READ_BYTES_MAX);
const _: () = assert!(COMPACTION_BYTES <= GROUP_BYTES);
const _: () = assert!(HELD_BYTES_MAX <= GROUP_BYTES);
const _: () = assert!(SYNC_FAST.as_millis() < SYNC_SLOW.as_millis());
