//! Bounds of servers that share stores: the stores, the other servers, and take-overs.

use super::CLOCK_LOOK;
use jitney_base::time::Millis;
use jitney_cluster::limits::{HEARTBEAT, HEARTBEAT_SILENCE_MAX, TAKEOVERS_AT_ONCE};
use jitney_postgres::limits::STORE_SESSIONS_MAX;

/// How long to wait for the answer to an append, before it is found out what became of it.
pub const STORE_APPEND_WAIT: Millis = Millis::from_secs(3);
/// Sessions that read and record the configurations of namespaces at the same time.
pub const CONFIGURED_AT_ONCE: usize = 2;
/// Bytes of the log in one table.
pub const STORE_SEGMENT_BYTES: u64 = 64 * 1024 * 1024;
/// Records of a log in a store after which a checkpoint is written: a take-over replays so many in some second.
pub const STORE_TAIL_RECORDS: u64 = 1_000_000;
/// Epochs that are left out after the database was restored to an earlier point in time: no server has had one of those that
/// follow.
pub const RESTORED_EPOCHS: i64 = 1 << 32;
/// How long the removal of a namespace waits for programs that read its tables.
pub const STORE_DROP_WAIT: Millis = Millis::from_secs(30);
/// When a store is checked again that was away at the start and is refused.
pub const STORE_CHECK_RETRY: Millis = Millis::from_secs(10);
/// Rows that one statement removes, of which each may have [`jitney_postgres::limits::STORE_PART_BYTES`].
pub const STORE_REMOVED_ROWS: i64 = 1_000;
/// Bytes of a name in the header of a connection that is passed on.
pub const PEER_NAME_BYTES_MAX: usize = 256;
/// How long to wait for a connection to another server of the fleet, and for its first answers.
pub const PEER_CONNECT_WAIT: Millis = Millis::from_secs(3);
/// How long a connection waits for its namespace to have a server.
pub const OWNER_WAIT: Millis = Millis::from_secs(5);
/// How often it looks for that.
pub const OWNER_LOOK: Millis = Millis::from_millis(20);
/// When to try again a server that could not be reached: all connections that wait for it do.
pub const OWNER_RETRY: Millis = Millis::from_millis(250);
/// How long a namespace may be without a server until the connections that were passed on to its last server are closed.
pub const OWNERLESS_WAIT: Millis = Millis::from_secs(1);
/// How long a connection that another server has passed on waits while a third one has its namespace, as this server sees it: two
/// looks, because this server may have taken the namespace since the last one.
pub const OTHER_OWNER_WAIT: Millis = Millis::from_secs(1);
/// Connections that wait for the server of their namespace, at most.
pub const HELD_CONNECTIONS_MAX: usize = 1_000;
/// Those of them that wait for the server of one namespace.
pub const HELD_OF_NAMESPACE_MAX: usize = HELD_CONNECTIONS_MAX / 4;
/// Bytes of a connection that is passed on that are in memory, in each direction, for its whole life: most connections are idle
/// most of the time, and a thousand of them take 16 MiB. Larger buffers only save system calls.
pub const SPLICE_BUFFER_BYTES: usize = 8 * 1024;
/// How long a peer of a connection that is passed on may read none of the bytes that wait for it: as long as it may be silent, because
/// such a peer does not see the empty frames that it is sent, either.
pub const SPLICE_UNREAD_WAIT: Millis = Millis::from_secs(480);
/// How often the owner of a namespace in a store looks at the lease, at least.
pub const LEASE_LOOK: Millis = Millis::from_millis(100);
/// A turn of an owner that lasts longer than this stops the beats of its server, until it ends.
pub const OWNER_TURN_MAX: Millis = Millis::from_secs(2);
/// How long connections may take to close when a namespace is given away.
pub const HANDOVER_WAIT: Millis = Millis::from_millis(300);
/// How often a server measures how busy its namespaces are, and says so in the store if that has changed by a lot.
pub const RATE_INTERVAL: Millis = Millis::from_secs(10);
/// How long the owner of a namespace may take to say how busy it is.
pub const RATE_WAIT: Millis = Millis::from_secs(2);
/// The smallest quota of a namespace, bytes a second: a connection reads as much at once.
pub const QUOTA_MIN: u64 = 64 * 1024;
/// How long a server that stops waits for each answer of a store, and for each of its namespaces to be given away.
pub const LEAVE_WAIT: Millis = Millis::from_secs(1);
/// How long a server that stops waits for its take-overs to end.
pub const TAKEOVERS_END_WAIT: Millis = Millis::from_millis(500);
/// How long the monotonic clock may run between two looks at it, of which there are two in a second, until it is doubted, too: so long
/// that the others have declared this server dead by then, if it was the process that stood still.
pub const CLOCK_UNSEEN_MAX: Millis = Millis::from_secs(3);

const _: () = assert!(2 * HEARTBEAT.as_millis() <= OTHER_OWNER_WAIT.as_millis());
const _: () = assert!(HEARTBEAT_SILENCE_MAX.as_millis() <= CLOCK_UNSEEN_MAX.as_millis());
const _: () = assert!(CLOCK_LOOK.as_millis() < CLOCK_UNSEEN_MAX.as_millis());
const _: () = assert!(2 * TAKEOVERS_AT_ONCE + CONFIGURED_AT_ONCE < STORE_SESSIONS_MAX);
