//! Bounds that crates share which do not know one another, each with its unit and its reason. Relations between bounds are asserted at the
//! end.
//!
//! A bound lives with what it bounds: each crate has its own `limits.rs`. Other numbers are constants beside the code that uses them: sizes
//! of a format, estimates of the memory of an entry, the cost of an operation in steps, limits of the operating system, and the sizes of
//! one data structure's parts.

use crate::time::Millis;

/// Largest message of a namespace of the Standard tier, bytes: the service's limit.
pub const MESSAGE_SIZE_STANDARD: u64 = 256 * 1024;
/// Largest message that any entity may allow, bytes: the Premium tier's limit.
pub const MESSAGE_SIZE_MAX: u64 = 100 * 1024 * 1024;
/// Length of an entity's path, characters.
pub const PATH_LENGTH_MAX: usize = 260;
/// Divisor. Namespaces share counted memory and entities. One of several namespaces leaves one part in three of what
/// the others do not use. Its share is less than three quarters of counted memory: from three quarters on, a process
/// with too much resident memory refuses the messages of all namespaces.
pub const NAMESPACE_SHARE_LEFT: usize = 3;
/// Bytes of the open parts of queues' indexes: some 300,000 messages at the ends of queues. The
/// parts between are packed.
pub const OPEN_INDEX_BYTES: usize = 32 * 1024 * 1024;
/// Length of the name of a subscription or a rule, characters: the service's limit.
pub const PART_NAME_LENGTH_MAX: usize = 50;
/// Messages that are settled, or whose schedule is cancelled, in one transaction: a bound of ours, which no known program reaches.
pub const TRANSACTION_SETTLEMENTS_MAX: usize = 5_000;
/// The shortest time after which an idle entity may be deleted: the service's limit.
pub const IDLE_DELETION_MIN: Millis = Millis::from_secs(300);
/// Authorization rules of one entity: the service's limit.
pub const AUTHORIZATION_RULES_MAX: usize = 12;
/// The shortest lock: the service's limit.
pub const LOCK_DURATION_MIN: Millis = Millis::from_secs(1);
/// The longest lock: the service's limit.
pub const LOCK_DURATION_MAX: Millis = Millis::from_secs(300);
/// The shortest life of a message that an entity may set: the service's limit.
pub const TIME_TO_LIVE_MIN: Millis = Millis::from_secs(1);
/// The longest window of duplicate detection: the service's limit.
pub const DUPLICATE_WINDOW_MAX: Millis = Millis::from_secs(7 * 86_400);
/// Characters of the name of an authorization rule, and of a key: the service's limit.
pub const AUTHORIZATION_TEXT_MAX: usize = 256;
/// Characters of an address: an entity's path, and the names of a sub-queue or of `$management`.
pub const ADDRESS_LENGTH_MAX: usize = PATH_LENGTH_MAX + PART_NAME_LENGTH_MAX + 64;
/// Returns how much one of those who share something may have: half of what the others leave, and one at least of what
/// is left.
#[must_use]
pub const fn part_for_one(all: usize, others: usize) -> usize {
    all.saturating_sub(others).div_ceil(2)
}
/// Forwards of one message: the service's limit. A dead letter may be forwarded once more.
pub const FORWARD_HOPS_MAX: u8 = 4;

const _: () = assert!(LOCK_DURATION_MIN.as_millis() < LOCK_DURATION_MAX.as_millis());
