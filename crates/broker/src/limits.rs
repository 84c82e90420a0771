//! Bounds of this crate on resources and times, each with its unit and its reason. Relations between bounds are asserted at the end.

use jitney_base::limits::{ADDRESS_LENGTH_MAX, DUPLICATE_WINDOW_MAX, MESSAGE_SIZE_MAX};
use jitney_base::time::Millis;
use jitney_queue::limits::PARTITIONS;

/// Bytes of the URL of a forwarding target that is kept and returned as it was given; for a longer
/// one the path is. Every client's is shorter.
pub const FORWARD_ADDRESS_BYTES_MAX: usize = 1024;
/// Sizes that an entity may have over the administration API, megabytes: the service's, those of the Standard tier first.
pub const ENTITY_SIZES_MEGABYTES: [u64; 9] = [
    1_024, 2_048, 3_072, 4_096, 5_120, 10_240, 20_480, 40_960, 81_920,
];
/// How many of them the Standard tier has.
pub const ENTITY_SIZES_STANDARD: usize = 5;
/// Most messages that one batch-delete takes: the Premium tier's limit.
pub const BATCH_DELETE_MAX: usize = 4_000;
/// The same in a namespace of the Standard tier: the service's limit.
pub const BATCH_DELETE_STANDARD: usize = 500;
/// Due messages of one queue that one step handles: some milliseconds. Due messages that are not
/// handled yet are not delivered either.
pub const DUE_MESSAGES: usize = 1_000;
/// Queues with due messages that one step handles.
pub const DUE_QUEUES: usize = 64;
/// Messages looked at in one step of a compaction: about a tenth of a millisecond.
pub const COMPACTION_SCAN: usize = 4_096;
/// Queues that one step checks for parts of their indexes that can be packed.
pub const RELIEF_LOOKS: usize = 64;
/// Parts of one queue's index that a step packs: some microseconds each.
pub const RELIEF_CHUNKS: usize = 4;
/// Bytes of records at which a group is sealed although more inputs wait: one input of the largest
/// size still fits into the length of a group.
pub const GROUP_BYTES: usize = 8 * 1024 * 1024;
/// The size of a partitioned entity in multiples of the configured size: once in each partition, as
/// in the service.
pub const PARTITIONED_SIZES: u64 = 16;
/// Messages of topics and forwarding entities whose bodies are read back at a time.
pub const READ_BACK_MESSAGES: usize = 64;
/// Messages that are sent or scheduled in one transaction: the service's limit. Settlements do not count.
pub const TRANSACTION_MESSAGES_MAX: usize = 100;
/// How long a transaction may stay open: the service's limit.
pub const TRANSACTION_TIMEOUT: Millis = Millis::from_secs(120);
/// Bytes of messages, and of settlements with what they change, in the open transactions of one
/// connection, which are in memory only.
pub const TRANSACTION_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Divisor: all open transactions together hold at most this part of the memory budget of the
/// namespace's queues. The rest is for senders without transactions.
pub const TRANSACTIONS_SHARE: usize = 4;
/// Divisor: the open transactions of one connection hold at most this part of that, so that one
/// that fills its share leaves as much to the others.
pub const CONNECTION_SHARE: usize = 2;
/// Bytes of a token: Entra's have some 2 KiB, with many groups 10.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Bytes of what a token is for, decoded: a host, the longest path of an entity, and behind it what a request over HTTP names, or
/// a query.
pub const TOKEN_RESOURCE_BYTES_MAX: usize = 1_024;
/// Slashes in the path of it, each of which is a lookup of authorization rules: those of the longest path of an entity with names of one
/// letter, and those of a request over HTTP.
pub const TOKEN_RESOURCE_SLASHES_MAX: usize = ADDRESS_LENGTH_MAX / 2 + 8;
/// Failed authentications in a row of one peer with one name; beyond, a bad attempt is not answered as one until one is forgotten.
pub const AUTHENTICATION_FAILURES_MAX: i64 = 100;
/// How long it takes until one failed authentication is forgotten.
pub const AUTHENTICATION_FAILURE_LEAK: Millis = Millis::from_millis(100);
/// How long it takes until one refusal by a shard is forgotten, where other shards are asked: a key of
/// another shard's namespace is refused so too, and is no failure.
pub const AUTHENTICATION_REFUSAL_LEAK: Millis = Millis::from_millis(10);
/// Refusals of tokens, keys and requests of one peer that are logged one by one within a span; the
/// others are logged as a sum at its end.
pub const REFUSALS_LOGGED_MAX: u32 = 10;
/// The length of such a span: with 10 lines and a sum each, a peer makes one line a second.
pub const REFUSALS_SPAN: Millis = Millis::from_secs(10);
/// Peers whose refusals are logged in a span.
pub const REFUSALS_PEERS_MAX: usize = 1_000;
/// Peers whose failed authentications are counted, some 50 bytes each.
pub const AUTHENTICATION_PEERS_MAX: usize = 10_000;
/// Entities that the administration API makes: each is three queues, some 2 KiB in all.
pub const ENTITIES_MAX: usize = 100_000;
/// The shortest window of duplicate detection: the service's limit.
pub const DUPLICATE_WINDOW_MIN: Millis = Millis::from_secs(20);
/// Characters of an entity's metadata: the service's limit.
pub const USER_METADATA_MAX: usize = 1_024;
/// Sequence numbers that one selection of messages names.
pub const SELECTED_NUMBERS_MAX: usize = 1_000;
/// Characters of a text in a selection of messages.
pub const SELECTION_TEXT_MAX: usize = 1_024;
/// Filters, parentheses and functions of a `JSONPath` in one another: its parser and its evaluation recurse.
pub const JSON_PATH_DEPTH_MAX: usize = 32;
/// Steps that a `JSONPath` takes in the body of one message before it is given up: some 10 ms. A step is about 10 ns: a value
/// that is visited, a name or eight bytes that are compared. A filter on every value of a document of a MiB needs fewer.
pub const JSON_PATH_STEPS_MAX: u64 = 1_000_000;
/// Bytes of a body that a search looks at: some milliseconds.
pub const SEARCHED_BYTES_MAX: usize = 1024 * 1024;
/// Entities that one step of a search over a namespace looks at.
pub const SEARCHED_ENTITIES: usize = 1_000;
/// Entries of the audit log of a shard.
pub const AUDIT_ENTRIES: usize = 1_000;
/// How long after its first an equal operation counts to the same entry of the audit log.
pub const AUDIT_JOINED: Millis = Millis::from_secs(10);
/// Entries among which an equal one is searched.
pub const AUDIT_JOINED_LOOKS: usize = 32;
/// Characters of what an entry of the audit log says of a change.
pub const AUDIT_DETAIL_LENGTH: usize = 1_000;
/// Bytes of the template of a body.
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
/// Bytes that the values at JSON pointers add to a body that a template makes: some 10 ms. A value may be there several times.
pub const TEMPLATE_VALUES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Placeholders of the template of a body.
pub const TEMPLATE_PLACEHOLDERS_MAX: usize = 100;
/// What needs attention in a namespace is found out once in this time at most: a look at 10,000 entities takes some milliseconds.
pub const ATTENTION_INTERVAL_MIN: Millis = Millis::from_secs(1);
/// It is found out that often when nothing asks, so that it is known since when something holds.
pub const ATTENTION_INTERVAL: Millis = Millis::from_secs(9);
/// Items of one answer: some 60 KB.
pub const ATTENTION_ITEMS: usize = 200;
/// Stuck receivers of one queue that are items of an answer. The others are counted.
pub const ATTENTION_RECEIVERS: usize = 20;
/// Old locks that one look counts, some 10 ns each.
pub const ATTENTION_LOCKS: usize = 1_000;
/// A lock of this age is old: the longest lock duration of an entity, so that it was renewed beyond that.
pub const ATTENTION_OLD_LOCK: Millis = Millis::from_secs(300);
/// How long what went wrong is recent.
pub const ATTENTION_RECENT: Millis = Millis::from_secs(3_600);
/// What went wrong within such a span is forgotten together: an entity has 13 of them at most.
pub const ATTENTION_SPAN: Millis = Millis::from_secs(300);
/// Locks that end by themselves without need of attention: some always do when a client ends.
pub const ATTENTION_LOCKS_EXPIRED: u64 = 10;
/// Percentage of a limit from which on it is near.
pub const ATTENTION_PERCENT: u64 = 90;
/// Ended jobs of a shard that are remembered.
pub const JOBS_ENDED_MAX: usize = 100;
/// Messages that a job takes on in one turn: less than a millisecond.
pub const JOB_MESSAGES: usize = 64;
/// Bytes of messages that a job reads in one turn; one message may have more.
pub const JOB_BYTES: usize = 1024 * 1024;
/// Entries that a job looks at in one turn, some 0.2 ms.
pub const JOB_SCANNED: usize = 2_048;
/// Entities or rules in one answer of the administration API: the service's page.
pub const LISTED_MAX: usize = 100;
/// Characters of a peer's text that are logged.
pub const LOGGED_MAX: usize = 64;
/// Keys of an issuer: a token that names none is tried with each that fits.
pub const ISSUER_KEYS_MAX: usize = 32;
/// How far the clocks of the issuer and of the broker may be apart
/// (`cbs.md#shared-access-signatures`).
pub const TOKEN_CLOCK_SKEW: Millis = Millis::from_secs(300);
/// The shortest modulus of an RSA key, bits: RFC 7518, 3.3.
pub const RSA_BITS_MIN: usize = 2_048;
/// The longest modulus of an RSA key, bits: the limit of the cryptography.
pub const RSA_BITS_MAX: usize = 8_192;
/// Characters of a token's subject that are kept for logs.
pub const TOKEN_SUBJECT_LENGTH_MAX: usize = 128;
/// Characters that are kept of the reason for which an operation of a transaction was refused.
pub const ROLLBACK_REASON_MAX: usize = 512;

const _: () = assert!(DUPLICATE_WINDOW_MIN.as_millis() < DUPLICATE_WINDOW_MAX.as_millis());
const _: () = assert!(PARTITIONED_SIZES == PARTITIONS as u64);
const _: () = assert!(
    GROUP_BYTES as u64 + MESSAGE_SIZE_MAX + TRANSACTION_BYTES_MAX as u64 <= u32::MAX as u64,
    "the largest input fits into the length of a group, which is an uint of the log"
);
const _: () = assert!(RSA_BITS_MIN <= RSA_BITS_MAX);
const _: () =
    assert!(AUTHENTICATION_REFUSAL_LEAK.as_millis() < AUTHENTICATION_FAILURE_LEAK.as_millis());
const _: () = assert!(ATTENTION_INTERVAL_MIN.as_millis() < ATTENTION_INTERVAL.as_millis());
const _: () = assert!(ATTENTION_SPAN.as_millis() < ATTENTION_RECENT.as_millis());
