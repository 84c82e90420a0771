//! Bounds of the sessions and statements of a store, each with its unit and its reason.

use jitney_base::time::Millis;
use jitney_cluster::limits::{HEARTBEAT, LEASE};
use jitney_journal::limits::{STORE_GATHERED_BYTES, STORE_ROW_BYTES};

/// How long to wait for a connection of the store.
pub const STORE_CONNECT_WAIT: Millis = Millis::from_secs(3);
/// How long to wait for an answer of the store. A commit waits for a standby without an end; what is not answered by then is
/// unknown, and found out on another session.
pub const STORE_ANSWER_WAIT: Millis = Millis::from_secs(6);
/// How long to wait for each of several hosts of the store, at least: together they have [`STORE_ANSWER_WAIT`].
pub const STORE_HOST_WAIT_MIN: Millis = Millis::from_secs(1);
/// A host of the store that cannot be connected to, and takes as long to say so, counts as one that did not answer.
pub const STORE_HOST_SLOW: Millis = Millis::from_secs(1);
/// How long a host of the store that did not answer is tried after the others.
pub const STORE_HOST_AVOIDED: Millis = Millis::from_secs(30);
/// After how much silence, and how often, the system looks whether the store's machine is there.
pub const STORE_KEEPALIVE: Millis = Millis::from_secs(2);
/// How long bytes to the store may be unacknowledged by its machine.
pub const STORE_USER_TIMEOUT: Millis = Millis::from_secs(4);
/// Bytes of the name of a store.
pub const STORE_NAME_BYTES_MAX: usize = 32;
/// Sessions of the store that are kept for the next use.
pub const STORE_SESSIONS_IDLE: usize = 4;
/// Sessions of the store that are in use at the same time, beside those of appends and beats.
pub const STORE_SESSIONS_MAX: usize = 16;
/// Sessions of the store that appends share.
pub const STORE_APPEND_SESSIONS: usize = 8;
/// Descriptors that the sessions of one store take: of beats, of appends and of the rest.
pub const STORE_DESCRIPTORS: usize = 1 + STORE_APPEND_SESSIONS + STORE_SESSIONS_MAX;
/// Bytes of bodies that are in the row itself; more are written first, in parts of this size. A row of 100 MiB would
/// take several times that in the database's process.
pub const STORE_PART_BYTES: usize = 1024 * 1024;
/// Rows that are read at a time when a log is taken over, and bytes of them without bodies: an answer that is larger takes longer than
/// the store may take for one over a slow link. One row is read, however large it is.
pub const STORE_READ_ROWS: usize = 256;
/// See [`STORE_READ_ROWS`].
pub const STORE_READ_BYTES: i64 = 8 * 1024 * 1024;
/// Tables whose ends one statement asks for.
pub const STORE_TABLES_ASKED: usize = 100;
/// How long to wait before a segment is removed again whose table another program reads, such as `pg_dump`.
pub const STORE_REMOVE_RETRY: Millis = Millis::from_secs(10);
/// How long the database may say that a part of a log is damaged or missing, until that is believed: another one may be promoted
/// that has it.
pub const STORE_DAMAGE_WAIT: Millis = Millis::from_secs(5);
/// How long to wait before the store is tried again, at first and at most.
pub const STORE_RETRY_FIRST: Millis = Millis::from_millis(50);
/// See [`STORE_RETRY_FIRST`].
pub const STORE_RETRY_MAX: Millis = Millis::from_millis(500);
/// How long a statement that raises an epoch waits before what holds it up is ended.
pub const STORE_BLOCKED_WAIT: Millis = Millis::from_millis(500);
/// How long a change of a table of the store waits for the sessions that hold the table. All other statements on it wait behind the
/// change, beats among them.
pub const SCHEMA_LOCK_WAIT: Millis = Millis::from_millis(200);
/// How long to wait before the change is tried again: what has waited behind it is done meanwhile.
pub const SCHEMA_RETRY: Millis = Millis::from_millis(500);
/// How often the change is tried.
pub const SCHEMA_TRIES: u32 = 15;

const _: () = assert!(HEARTBEAT.as_millis() + 2 * SCHEMA_LOCK_WAIT.as_millis() < LEASE.as_millis());
const _: () =
    assert!(STORE_GATHERED_BYTES <= STORE_ROW_BYTES && STORE_ROW_BYTES <= STORE_PART_BYTES);
