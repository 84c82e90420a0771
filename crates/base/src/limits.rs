//! Every bound of the broker on a resource or a time, as a named constant with its unit and its
//! reason. Relations between bounds are asserted at the end of their file.
//!
//! Other numbers are constants beside the code that uses them: sizes of a format (`journal/layout.rs`),
//! estimates of the memory of an entry, the cost of an operation in steps, limits of the operating
//! system, and the sizes of one data structure's parts.

pub use fleet::*;

use crate::time::Millis;

mod fleet;

/// Largest frame that we accept and offer, bytes: the service's offer (`transport.md#open`).
pub const FRAME_SIZE_MAX: u32 = 65_536;
/// Smallest max-frame-size a peer may ask for, bytes [AMQP 2.3.3].
pub const FRAME_SIZE_MIN: u32 = 512;
/// Largest frame before a peer has opened, bytes: a long token in a SASL response fits.
pub const FRAME_SIZE_UNOPENED_MAX: u32 = 8 * 1024;
/// Bytes of a frame before a token was accepted: the longest token, and the message around it.
pub const FRAME_SIZE_UNAUTHENTICATED_MAX: u32 = 32 * 1024;
/// Highest channel number: the service's value (`transport.md#open`). JavaScript and .NET open a
/// session for each link.
pub const CHANNEL_MAX: u16 = 4_999;
/// Highest link handle in one session: the service offers 255; generic clients use more.
pub const HANDLE_MAX: u32 = 4_095;
/// The idle time-out that `open` announces to peers: the service's value. We end a connection that is
/// silent for twice as long [AMQP 2.4.5].
pub const IDLE_TIMEOUT: Millis = Millis::from_secs(240);
/// A peer that has not opened its connection by then is dropped.
pub const OPEN_DEADLINE: Millis = Millis::from_secs(20);
/// Frames that a peer may send us in one session before our next flow: the service's value.
/// Refreshed eagerly and never enforced (`transport.md#amqp-sessions`).
pub const INCOMING_WINDOW: u32 = 5_000;
/// Credit of an incoming link; topped up at half, when the records are durable.
pub const LINK_CREDIT: u32 = 1_000;

/// Largest message of an entity that sets no other, bytes: the Premium tier's default.
pub const MESSAGE_SIZE_DEFAULT: u64 = 1024 * 1024;
/// Largest message of a namespace of the Standard tier, bytes: the service's limit.
pub const MESSAGE_SIZE_STANDARD: u64 = 256 * 1024;
/// Bytes of a host's name that is kept for texts: the longest of DNS.
pub const HOST_NAME_BYTES_MAX: usize = 255;
/// Bytes of a value in a rule, encoded in AMQP, that are kept as they were given: a time with an
/// offset has some 40, and only texts of another type than string have more. These are returned as
/// strings.
pub const GIVEN_BYTES_MAX: usize = 64;
/// Bytes of the URL of a forwarding target that is kept and returned as it was given; for a longer
/// one the path is. Every client's is shorter.
pub const FORWARD_ADDRESS_BYTES_MAX: usize = 1024;
/// Largest message that any entity may allow, bytes: the Premium tier's limit.
pub const MESSAGE_SIZE_MAX: u64 = 100 * 1024 * 1024;
/// Bytes of a batch's own sections, beside those of its messages: the service's limit for a message's
/// headers.
pub const ENVELOPE_BYTES: u64 = 64 * 1024;
/// Sizes that an entity may have over the administration API, megabytes: the service's, those of the Standard tier first.
pub const ENTITY_SIZES_MEGABYTES: [u64; 9] = [
    1_024, 2_048, 3_072, 4_096, 5_120, 10_240, 20_480, 40_960, 81_920,
];
/// How many of them the Standard tier has.
pub const ENTITY_SIZES_STANDARD: usize = 5;
/// Bytes of one application-property, as it is encoded: the service's limit.
pub const PROPERTY_BYTES_MAX: usize = 32 * 1024;
/// Bytes of a message's properties, application-properties and annotations together: the service's limit.
pub const PROPERTIES_BYTES_MAX: usize = 64 * 1024;
/// Messages in one batch: more than any batch of the default size can hold, so that its bytes are
/// the bound; of larger ones it bounds the work of one transfer, a tenth of a second.
pub const BATCH_MESSAGES_MAX: usize = 128 * 1024;
/// Bytes of the smallest message in a batch: a section's head and its length, and an empty value.
const BATCHED_MESSAGE_BYTES_MIN: u64 = 5 + 4;
const _: () = assert!(
    (MESSAGE_SIZE_DEFAULT + ENVELOPE_BYTES) / BATCHED_MESSAGE_BYTES_MIN < 128 * 1024,
    "batches of the default size are bounded by their bytes"
);
/// Most messages that one peek returns.
pub const PEEK_MESSAGES_MAX: usize = 250;
/// Body bytes after which a peek or a deferred receive returns the messages found so far.
pub const PEEK_BYTES_MAX: usize = 1024 * 1024;
/// Characters of an unknown name in the configuration up to which a similar known one is searched:
/// the length of the longest known name, and some more.
pub const CONFIG_NAME_MAX: usize = 64;
/// The shortest window of duplicate detection in the configuration: the emulator's, which is shorter
/// than the service's.
pub const CONFIG_DUPLICATE_WINDOW_MIN: Millis = Millis::from_secs(5);
/// Most messages that one batch-delete takes: the Premium tier's limit.
pub const BATCH_DELETE_MAX: usize = 4_000;
/// The same in a namespace of the Standard tier: the service's limit.
pub const BATCH_DELETE_STANDARD: usize = 500;
/// Nesting of AMQP values: the Python SDK's own limit (`transport.md#encoding`).
pub const VALUE_DEPTH_MAX: usize = 64;
/// Elements in one AMQP list, map or array: the Python SDK's own limit.
pub const VALUE_ELEMENTS_MAX: usize = 65_536;
/// Elements of all lists, maps and arrays within one value together: they are checked one by one, a
/// million in some milliseconds.
pub const VALUE_ELEMENTS_TOTAL_MAX: usize = 1024 * 1024;
/// Length of an entity's path, characters.
pub const PATH_LENGTH_MAX: usize = 260;
/// Length of a message id, session id or partition key, characters.
pub const MESSAGE_ID_LENGTH_MAX: usize = 128;
/// Length of a dead-letter reason or description, characters.
pub const DEAD_LETTER_TEXT_MAX: usize = 4_096;
/// Bytes of messages handed to one receiver that are not yet written to its peer. This bounds the
/// output of large messages; credit bounds that of small ones.
pub const RECEIVER_WINDOW_BYTES: i64 = 1024 * 1024;
/// Bytes of messages handed to all receivers of one connection that are not yet written to its
/// peer, beyond what one step of a queue hands out.
pub const CONNECTION_WINDOW_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes written by a connection that it need not report yet. They do not count in the unwritten
/// output of all connections.
pub const UNREPORTED_BYTES_MAX: u64 = 64 * 1024;
/// How long a peer may read nothing when the unwritten output of all connections is twice its
/// budget: then its connection is closed.
pub const UNREAD_WAIT_MAX: Millis = Millis::from_secs(2);
/// Messages below this size are copied for slow connections: a slice keeps its whole stretch of the
/// log in memory. Bytes.
pub const COPIED_BODY_BYTES: usize = 64 * 1024;
/// Bytes of answers to requests of one connection that are not yet written to its peer, beyond the
/// last of them: the next request waits.
pub const ANSWERS_WINDOW_BYTES: u64 = 2 * 1024 * 1024;
/// Bytes of the items of one page of an answer of the JSON API, as JSON; one item may have more.
pub const ANSWER_PAGE_BYTES: usize = 1024 * 1024;
/// Bytes that an answer of the JSON API reserves at a time while it is written as JSON.
pub const ANSWER_STEP_BYTES: usize = 64 * 1024;
/// Bytes of an answer that are handed to its connection at a time.
pub const ANSWER_PIECE_BYTES: usize = 16 * 1024;
/// How long a request of the JSON API waits for room for its answer: longer than it takes until a connection that
/// reads nothing is closed.
pub const ANSWER_WAIT: Millis = Millis::from_secs(3);
/// How often such a request looks for connections that read too slowly.
pub const ANSWER_LOOK: Millis = Millis::from_millis(200);
/// Bytes a second that the reader of an answer must take, after [`UNREAD_WAIT_MAX`], while other answers wait for room:
/// a megabit.
pub const ANSWER_RATE_MIN: u64 = 128 * 1024;
/// Bytes of answers of the JSON API of all connections, where memory has no limit: the longest of a message of
/// [`MESSAGE_SIZE_MAX`], each byte of which is an escape of six in its text and is encoded again in base64.
pub const ANSWERS_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Requests of one link to a service node whose answers have not left: the credit of the link. It comes back as answers leave, so that
/// no request for which there was credit is refused for their number.
pub const REQUEST_CREDIT: u32 = 256;
/// Bytes of requests of one connection whose answers wait for their link to be attached, or for its credit, beyond the first. A request
/// beyond them is answered "busy", and nothing of it is kept.
pub const REQUESTS_WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes that a request is counted with beside those of its message.
pub const REQUEST_BYTES: usize = 512;
/// Bytes of the one request that every connection may have waiting, whatever others have: a token of
/// most kinds, or a request without messages.
pub const FIRST_REQUEST_BYTES: usize = 4 * 1024;
/// Numbers or lock tokens in one management request.
pub const REQUEST_ITEMS_MAX: usize = 5_000;
/// Batches of inputs that wait for the owner; beyond, connections wait, and TCP pushes back.
pub const MAILBOX_LENGTH: usize = 256;
/// Batches that the owner takes before it hands a group of records to the disk.
pub const MAILBOX_DRAIN: usize = 64;
/// Bytes of records that wait for the disk at which the owner stops taking inputs.
pub const IN_FLIGHT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The least that bound is lowered to where the disk is slow: a group.
pub const IN_FLIGHT_BYTES_MIN: usize = 1024 * 1024;
/// Bytes of batches that wait for the owner.
pub const MAILBOX_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes that are read from the disk for one connection at a time, what is read ahead among them.
pub const READ_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Due messages of one queue that one step handles: some milliseconds. Due messages that are not
/// handled yet are not delivered either.
pub const DUE_MESSAGES: usize = 1_000;
/// Queues with due messages that one step handles.
pub const DUE_QUEUES: usize = 64;
/// Messages looked at in one step of a compaction: about a tenth of a millisecond.
pub const COMPACTION_SCAN: usize = 4_096;
/// Nominal size of a segment of the log, bytes: zero-filled in 30 to 200 ms, and small enough that
/// space is freed soon.
pub const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of the file of a segment: places in it have 36 bits. A file with more is no segment.
pub const SEGMENT_FILE_BYTES_MAX: u64 = 1 << 36;
/// Bytes of the manifest of a backup, about 200 for each file: 64 shards of 4 TiB each.
pub const BACKUP_MANIFEST_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Bytes of the record of namespaces and their shards: a line of some 70 bytes for each of a million.
pub const PLACEMENT_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Bytes of recent groups and of cached stretches of the log in memory.
pub const LOG_CACHE_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of that of each shard at least, where memory has no limit.
pub const SHARD_CACHE_BYTES_MIN: usize = 1024 * 1024;
/// Bytes of the open parts of queues' indexes: some 300,000 messages at the ends of queues. The
/// parts between are packed.
pub const OPEN_INDEX_BYTES: usize = 32 * 1024 * 1024;
/// Queues that one step checks for parts of their indexes that can be packed.
pub const RELIEF_LOOKS: usize = 64;
/// Parts of one queue's index that a step packs: some microseconds each.
pub const RELIEF_CHUNKS: usize = 4;
/// Records of a recovery after which queues are checked for parts to pack.
pub const RELIEF_RECORDS: u64 = 256;
/// Bytes that are read from the log after a requested body: the next ones will be requested too.
pub const READ_AHEAD_BYTES: usize = 256 * 1024;
/// Bytes that recovery reads at a time.
pub const RECOVERY_READ_BYTES: usize = 1024 * 1024;
/// Bytes of messages in one group of a journal that a namespace is put into: a row of a store has about as many.
pub const TRANSFER_GROUP_BYTES: usize = STORE_ROW_BYTES;
/// Bytes of records in one checksummed block of a checkpoint.
pub const CHECKPOINT_BLOCK_BYTES: usize = 64 * 1024;
/// Prepared segments that are kept when segments are removed, or a quarter of those in use: as many
/// as busy queues fill between two checkpoints, because a new one must be filled with zeros first.
/// More are given back to the file system.
pub const SPARE_SEGMENTS_MAX: usize = 8;
/// Prepared segments that are kept when little is written.
pub const SPARE_SEGMENTS_KEPT: usize = 3;
/// Length of the name of a subscription or a rule, characters: the service's limit.
pub const PART_NAME_LENGTH_MAX: usize = 50;
/// Bytes of records at which a group is sealed although more inputs wait: one input of the largest
/// size still fits into the length of a group.
pub const GROUP_BYTES: usize = 8 * 1024 * 1024;
/// Bytes of records that no client waits for, beyond which their group is sealed all the same.
pub const HELD_BYTES_MAX: usize = 64 * 1024;
/// How long records that no client waits for stay in the open group: those that a client waits for are
/// synced with them.
pub const HELD_TIME_MAX: Millis = Millis::from_millis(10);
/// Bytes of bodies that a compaction appends in one step: other work waits a millisecond for it.
pub const COMPACTION_BYTES: usize = 512 * 1024;
/// Bytes of a message's changed application-properties: the service's limit for all properties.
pub const AMENDMENTS_BYTES_MAX: usize = 64 * 1024;
/// Deliveries of one AMQP session that wait for a receiver's outcome. The oldest are forgotten
/// beyond: their locks expire, and `$management` can still settle them.
pub const UNSETTLED_MAX: usize = 262_144;
/// Links of one connection: one for each of the sessions that .NET and JavaScript open.
pub const CONNECTION_LINKS_MAX: usize = 5_000;
/// Shards of one server: each has four threads, [`SHARD_DESCRIPTORS`] and segments of its own.
pub const SHARDS_MAX: u32 = 64;
/// Descriptors that one shard needs: segments, a checkpoint, directories, a lock, the events of its runtime.
pub const SHARD_DESCRIPTORS: usize = 28;
/// Bytes that a connection keeps of its peer until the peer has named its namespace: its identity, and as
/// many bytes of input that no shard has taken yet. A frame before open fits.
pub const UNROUTED_BYTES_MAX: usize = FRAME_SIZE_UNOPENED_MAX as usize;
/// Bytes of batches that may wait for one shard at least, however many shards share
/// [`MAILBOX_BYTES_MAX`].
pub const MAILBOX_BYTES_MIN: usize = 256 * 1024;
/// Bytes of a link's name: Qpid's holds a connection's id and a destination of 260 characters.
pub const LINK_NAME_BYTES_MAX: usize = 2 * 1024;
/// Bytes of a link's source, and of its target: address, filters, capabilities. A selector takes 4 KiB at most.
pub const TERMINUS_BYTES_MAX: usize = 16 * 1024;
/// Bytes of the names of all links of one connection, and of the sources and targets of pending
/// attaches: 5,000 links with names of 400 bytes fit twice.
pub const CONNECTION_LINKS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes that the broker keeps for one connection's links and tokens: names, addresses and audiences.
pub const CONNECTION_KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Of these, bytes that a connection may have while all counted memory is at its limit. It is not
/// zero, because receivers free memory and need links for that: some hundred links and tokens with
/// usual names fit.
pub const CONNECTION_KEPT_BYTES_FULL: usize = 16 * 1024;
const _: () = assert!(CONNECTION_KEPT_BYTES_FULL < CONNECTION_KEPT_BYTES_MAX);
/// Events that one read of a connection reports before its owner takes them: a range of deliveries
/// is settled in shares of this many, each some microseconds of the owner's time.
pub const EVENTS_MAX: usize = 4_096;
/// Bytes of properties and texts in the dispositions among them, counted for each delivery: they
/// are written to the log for each.
pub const EVENT_DETAIL_BYTES_MAX: usize = 256 * 1024;
/// Bytes of properties and texts that one disposition applies to all deliveries of its range
/// together: a kilobyte for each of 8,000. One frame must not become gigabytes of the log.
pub const DISPOSITION_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of partially received messages of one connection: two of the largest.
pub const PARTIAL_BYTES_MAX: usize = 200 * 1024 * 1024;
/// Total bytes buffered for partially received messages, all connections. Beyond it a new
/// multi-frame message is refused as server-busy. At least `MESSAGE_SIZE_MAX` (asserted).
pub const PARTIALS_BYTES_MAX: usize = 128 * 1024 * 1024;
/// How far the system's clock may differ from the monotonic one, or lie before the log's newest
/// time, before it counts as set: a step back up to this is held, so that stamps do not go back.
pub const CLOCK_HELD: Millis = Millis::from_millis(1_000);
/// How often the clock is read when nothing else happens.
pub const CLOCK_LOOK: Millis = Millis::from_millis(1_000);
/// A peer with a shorter idle time-out is sent heartbeats no more often than this.
pub const KEEP_ALIVE_MIN: Millis = Millis::from_millis(100);
/// Number spaces of a partitioned entity: the service's count.
pub const PARTITIONS: usize = 16;
/// The size of a partitioned entity in multiples of the configured size: once in each partition, as
/// in the service.
pub const PARTITIONED_SIZES: u64 = 16;
/// Message-ids that one entity remembers for duplicate detection, some 50 bytes each.
pub const DUPLICATE_KEYS_MAX: usize = 1_000_000;
/// Bytes of one message session's state: the Premium tier's limit.
pub const SESSION_STATE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of all states of one entity's message sessions: they are kept in memory.
pub const SESSION_STATES_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Forwards of one message: the service's limit. A dead letter may be forwarded once more.
pub const FORWARD_HOPS_MAX: u8 = 4;
/// The one `max-message-size` of a receiver that is not honoured, bytes: SDKs in Python state it for
/// every entity, and take larger messages.
pub const STATED_MESSAGE_SIZE: u64 = 1024 * 1024;
/// Bytes that the broker adds to a message on its way out, at most, besides amendments: header,
/// annotations and times.
pub const STAMPS_BYTES: u64 = 512;
/// How long a receiver keeps its link after the end of its message session's lock, if it has no
/// message locked and no other receiver wants the session: the service does not detach an idle one
/// at the very end.
pub const SESSION_LINGER: Millis = Millis::from_millis(2_000);
/// How long a receiver waits for the next message session if it does not set a time-out
/// (`transport.md#refused-links`).
pub const NEXT_SESSION_WAIT: Millis = Millis::from_millis(64_980);
/// Messages of topics and forwarding entities whose bodies are read back at a time.
pub const READ_BACK_MESSAGES: usize = 64;
/// Detached receivers of one connection that are remembered, for messages that return unsent: those
/// that were queued when the link ended.
pub const DEPARTED_LINKS_MAX: usize = 32;
/// Messages that are sent or scheduled in one transaction: the service's limit. Settlements do not count.
pub const TRANSACTION_MESSAGES_MAX: usize = 100;
/// Messages that are settled, or whose schedule is cancelled, in one transaction: a bound of ours, which no known program reaches.
pub const TRANSACTION_SETTLEMENTS_MAX: usize = 5_000;
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
/// Bytes of a message to the transaction coordinator: a declare or a discharge has some 50.
pub const CONTROL_MESSAGE_BYTES_MAX: u64 = 4 * 1024;
/// Deliveries of one AMQP session that a commit has settled and that are remembered for a receiver
/// that settles them once more: as many as one transaction settles.
pub const DISCHARGED_DELIVERIES_MAX: usize = TRANSACTION_SETTLEMENTS_MAX;
/// Transactions that one connection has open at a time.
pub const TRANSACTIONS_MAX: usize = 1_000;
/// The shortest time after which an idle entity may be deleted: the service's limit.
pub const IDLE_DELETION_MIN: Millis = Millis::from_secs(300);
/// Length of the text of a SQL filter or action, characters: the service's limit.
pub const SQL_LENGTH_MAX: usize = 1_024;
/// Statements of one action: the service's limit.
pub const SQL_STATEMENTS_MAX: usize = 32;
/// Nesting of a SQL expression: parentheses, signs and negations. The parser is recursive.
pub const SQL_DEPTH_MAX: usize = 64;
/// Characters of a LIKE pattern: it may come from a message, and is tried at each position of a
/// text.
pub const LIKE_PATTERN_MAX: usize = 1_024;
/// Steps that one filter, or one action, takes for one message before it is given up: some 2 ms. A
/// step is about 10 ns: a part of an expression, a property that is passed, eight bytes searched.
/// As many LIKEs as a filter has room for can search 30 KiB each.
pub const FILTER_STEPS_MAX: u64 = 250_000;
/// Steps that all filters of a topic take for one message: some 100 ms, in shares. Each
/// subscription has an equal part of the remaining steps, so that one with costly rules spends its
/// own. As many SQL filters as a topic may have can search 30 KiB each.
pub const FILTERS_STEPS_MAX: u64 = 10_000_000;
/// Steps that all actions of a topic take for one message, divided as those of the filters; they
/// are taken at once, with the copies. A step makes eight bytes, so that the copies of a message
/// come to 8 MiB at most.
pub const ACTIONS_STEPS_MAX: u64 = 1_000_000;
/// Steps that filters and selectors take in one turn of the broker, some 5 ms; an evaluation that
/// needs more continues in a later turn.
pub const SHARE_STEPS: u64 = 500_000;
/// Bytes of a text that an expression makes or that LIKE goes through.
pub const SQL_TEXT_BYTES_MAX: usize = 64 * 1024;
/// SQL filters of all subscriptions of one topic, each looked at in every publish: the service's
/// limit.
pub const SQL_RULES_MAX: usize = 2_000;
/// Other rules of all subscriptions of one topic: the service's limit for correlation filters.
pub const CORRELATION_RULES_MAX: usize = 100_000;
/// Bytes of one rule in its stored form: names, texts, values and parameters. More than the service
/// allows all properties of a message, which a correlation filter is compared with.
pub const RULE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the rules in one answer over `$management`: a hundred of the largest, which is what clients
/// ask for at a time.
pub const RULES_ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Characters of an audience: the longest path of an entity, a subscription below it, and a sub-queue.
pub const AUDIENCE_LENGTH_MAX: usize = PATH_LENGTH_MAX + PART_NAME_LENGTH_MAX + 90;
/// Entries of queues that requests look at in one turn of the broker, some 2 ms; a longer request
/// continues in a later turn.
pub const LOOKS: usize = 32_768;
/// Bytes of a token: Entra's have some 2 KiB, with many groups 10.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Bytes of what a token is for, decoded: a host, the longest path of an entity, and behind it what a request over HTTP names, or
/// a query.
pub const TOKEN_RESOURCE_BYTES_MAX: usize = 1_024;
/// Slashes in the path of it, each of which is a lookup of authorization rules: those of the longest path of an entity with names of one
/// letter, and those of a request over HTTP.
pub const TOKEN_RESOURCE_SLASHES_MAX: usize = ADDRESS_LENGTH_MAX / 2 + 8;
/// Bytes of a message to a peer's `$cbs` link: a token, and the message around it.
pub const CBS_MESSAGE_BYTES_MAX: u64 = 64 * 1024;
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
/// Requests of one HTTP connection that may be refused for want of a right; then it is closed.
pub const HTTP_REFUSALS_MAX: usize = 32;
/// Peers whose failed authentications are counted, some 50 bytes each.
pub const AUTHENTICATION_PEERS_MAX: usize = 10_000;
/// Valid tokens of one connection: Python has one entity for each, others many.
pub const GRANTS_MAX: usize = 5_000;
/// Time until a connection must be authorized; then it is closed: the service's value (`transport.md#sasl`).
pub const ADMISSION_DEADLINE: Millis = Millis::from_secs(20);
/// How long an attach to a management node waits for a token that holds for it: a client may first have to get one.
pub const EARLY_ATTACH_WAIT: Millis = Millis::from_secs(5);
/// Such attaches of one connection: the pairs of two management nodes. Among the links of an unauthenticated one.
pub const EARLY_ATTACHES_MAX: usize = 4;
const _: () = assert!(EARLY_ATTACHES_MAX + 2 <= UNAUTHENTICATED_LINKS_MAX); // `$cbs` has room.
/// Links of an unauthenticated connection: two pairs for `$cbs`, and two to the transaction coordinator.
pub const UNAUTHENTICATED_LINKS_MAX: usize = 6;
/// Open transactions of an unauthenticated connection, some 200 bytes each. .NET declares one for
/// each `TransactionScope` before its first token, and many may begin at once.
pub const UNAUTHENTICATED_TRANSACTIONS_MAX: usize = 100;
/// Authorization rules of one entity: the service's limit.
pub const AUTHORIZATION_RULES_MAX: usize = 12;
/// Sessions of an unauthenticated connection: each takes a kilobyte.
pub const UNAUTHENTICATED_SESSIONS_MAX: usize = 64;
/// Unauthenticated connections from one address: a pool of a large client that connects again fits.
pub const UNAUTHENTICATED_PER_ADDRESS_MAX: usize = 1_000;
/// Unauthenticated connections in all, some 50 KiB each at most.
pub const UNAUTHENTICATED_MAX: usize = 8_192;
/// Connections that are queued until one of their address is authorized or ends, a descriptor and a
/// kilobyte each: more than ten thousand clients that reconnect at once.
pub const UNAUTHENTICATED_QUEUED_MAX: usize = 16_384;
/// Bytes of a header of the PROXY protocol behind its fixed part. Addresses and the names of vendors take some hundred; a
/// client's whole certificate, which balancers can add, takes up to three thousand.
pub const PROXY_HEADER_BYTES_MAX: usize = 4 * 1024;
/// How long a balancer may take to send that header: the specification asks for three seconds at least, so that TCP can send
/// it again.
pub const PROXY_HEADER_WAIT: Millis = Millis::from_secs(5);
/// Connections of balancers whose header is awaited. Balancers send it at once, so that few are.
pub const PROXY_HEADERS_AWAITED_MAX: usize = 1_000;
/// Descriptors that are reserved for the log and all else that is not a connection; with few
/// descriptors, a quarter, but no fewer than are needed.
pub const DESCRIPTORS_KEPT: usize = 128;
/// The descriptors that the broker needs for itself: listeners, segments of the log, a checkpoint,
/// event loops.
pub const DESCRIPTORS_OWN: usize = 40;
/// The fewest descriptors with which the broker starts: its own, some for health and administration,
/// and some for clients.
pub const DESCRIPTORS_MIN: usize = 64;
/// Slots for connections to the addresses of health and administration, when all others are taken.
pub const ADMINISTRATION_SLOTS: usize = 32;
/// Bytes of the head of an HTTP request: a token, and other headers.
pub const HTTP_HEAD_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the head while unauthenticated connections hold half of what they may: the longest token, and some other headers.
pub const HTTP_HEAD_CROWDED_BYTES_MAX: usize = 24 * 1024;
/// How long the head of an HTTP request, and its body, may take, and the pause between two.
pub const HTTP_READ_DEADLINE: Millis = Millis::from_secs(30);
/// Bytes of one frame and message of a WebSocket: the largest AMQP frame, and room for several.
pub const WEBSOCKET_MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that a WebSocket reads at a time: a record of TLS. They stay allocated for as long as it is open.
pub const WEBSOCKET_READ_BYTES: usize = 16 * 1024;
/// Bytes of one WebSocket message of ours: Java takes no longer ones (`transport.md#websockets`).
pub const WEBSOCKET_WRITE_BYTES: usize = 4 * 1024;
/// Entities that the administration API makes: each is three queues, some 2 KiB in all.
pub const ENTITIES_MAX: usize = 100_000;
/// The shortest lock: the service's limit.
pub const LOCK_DURATION_MIN: Millis = Millis::from_secs(1);
/// The longest lock: the service's limit.
pub const LOCK_DURATION_MAX: Millis = Millis::from_secs(300);
/// The shortest life of a message that an entity may set: the service's limit.
pub const TIME_TO_LIVE_MIN: Millis = Millis::from_secs(1);
/// The shortest window of duplicate detection: the service's limit.
pub const DUPLICATE_WINDOW_MIN: Millis = Millis::from_secs(20);
/// The longest window of duplicate detection: the service's limit.
pub const DUPLICATE_WINDOW_MAX: Millis = Millis::from_secs(7 * 86_400);
/// Characters of an entity's metadata: the service's limit.
pub const USER_METADATA_MAX: usize = 1_024;
/// Characters of the name of an authorization rule, and of a key: the service's limit.
pub const AUTHORIZATION_TEXT_MAX: usize = 256;
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
/// Messages that an operator's request looks at or returns at once.
pub const INSPECTED_MAX: usize = 100;
/// Messages of a message session that are counted for an operator.
pub const SESSION_MESSAGES_COUNTED: usize = 1_000;
/// Scheduled messages that are counted in one step: about a millisecond.
pub const SCHEDULED_COUNTED: usize = 20_000;
/// Steps of one request that counts scheduled messages.
pub const SCHEDULED_STEPS_MAX: usize = 500;
/// Spans of time in which scheduled messages are counted.
pub const SCHEDULED_SPANS_MAX: usize = 1_000;
/// Entities that one step of a search over a namespace looks at.
pub const SEARCHED_ENTITIES: usize = 1_000;
/// Subscriptions whose rules one request tests a message against.
pub const TESTED_SUBSCRIPTIONS_MAX: usize = 100;
/// Rules of one subscription that a message is tested against.
pub const TESTED_RULES_MAX: usize = 1_000;
/// Characters of the value of a property that are shown where a rule is tested: many conditions may read one.
pub const EXPLAINED_VALUE_LENGTH: usize = 256;
/// Pages of messages that one request of a search looks at.
pub const SEARCHED_PAGES: usize = 100;
/// Shares of steps that one request of a search takes, [`SHARE_STEPS`] each: half a second to some seconds of one thread.
pub const SEARCH_SHARES: usize = 100;
/// Searches of one namespace in the bytes of messages at once: each holds a page of messages, 1 MiB or one message.
pub const SEARCHES_MAX: usize = 16;
/// Bytes of a body that are shown of a message in a list.
pub const PREVIEW_BYTES: usize = 4 * 1024;
/// Bytes that are shown of a compressed body after its decompression, and that are decompressed at all.
pub const DECODED_BYTES_MAX: usize = 256 * 1024;
/// The time between two looks at the counters of all entities, for their history.
pub const HISTORY_INTERVAL: Millis = Millis::from_secs(10);
/// Intervals in the history: an hour.
pub const HISTORY_INTERVALS: usize = 360;
/// Entities that have a history. Each takes 16 KiB at most: 36 bytes for each interval in which something happened.
pub const HISTORY_ENTITIES_MAX: usize = 1_000;
/// Intervals over which rates are taken: a minute.
pub const RATE_INTERVALS: usize = 6;
/// The time between two looks at what clients follow.
pub const CHANGES_INTERVAL: Millis = Millis::from_secs(1);
/// The least time between two of them, however many clients begin to follow.
pub const CHANGES_INTERVAL_MIN: Millis = Millis::from_millis(100);
/// Clients that follow changes at once.
pub const CHANGES_STREAMS_MAX: usize = 64;
/// Entities of all namespaces, and connections of one, whose changes can be followed.
pub const CHANGES_ENTITIES_MAX: usize = 10_000;
/// Links of the connections of one namespace whose changes can be followed: ten requests to its owner each second.
pub const CHANGES_LINKS_MAX: usize = 10_000;
/// Bytes of what is known of all namespaces whose changes clients follow, where memory has no limit: ten with 10,000
/// entities each fit.
pub const CHANGES_BYTES_MAX: usize = 128 * 1024 * 1024;
/// How long the changes of a namespace are known that no client follows: clients come back after a second.
pub const CHANGES_KEPT: Millis = Millis::from_secs(30);
/// How often it is checked that the rule and the key of a client that follows changes are there.
pub const CHANGES_TOKEN_CHECK: Millis = Millis::from_secs(5);
/// Things that have gone and are remembered for clients that were away.
pub const CHANGES_GONE_MAX: usize = 10_000;
/// Seconds until a client that follows changes has to ask again, and to show its token.
pub const CHANGES_STREAM_SECONDS_MAX: usize = 600;
/// The longest time without anything for a client that follows changes: proxies close what is quiet.
pub const CHANGES_QUIET_MAX: Millis = Millis::from_secs(15);
/// Entries of the audit log of a shard.
pub const AUDIT_ENTRIES: usize = 1_000;
/// How long after its first an equal operation counts to the same entry of the audit log.
pub const AUDIT_JOINED: Millis = Millis::from_secs(10);
/// Entries among which an equal one is searched.
pub const AUDIT_JOINED_LOOKS: usize = 32;
/// Characters of what an entry of the audit log says of a change.
pub const AUDIT_DETAIL_LENGTH: usize = 1_000;
/// Application-properties of a message in a request of the JSON API: the service's limit of 64 KiB for all of them has room
/// for no more, with a name, a value and their types.
pub const MESSAGE_PROPERTIES_MAX: usize = 16 * 1024;
/// Bytes of the body of a request of the JSON API.
pub const API_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of the template of a body.
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
/// Bytes that the values at JSON pointers add to a body that a template makes: some 10 ms. A value may be there several times.
pub const TEMPLATE_VALUES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Placeholders of the template of a body.
pub const TEMPLATE_PLACEHOLDERS_MAX: usize = 100;
/// Links in one answer that lists connections: their states are looked up in a millisecond.
pub const LISTED_LINKS: usize = 1_000;
/// Seconds for which a request may wait for the end of a job.
pub const JOB_WAIT_SECONDS_MAX: u64 = 30;
/// Jobs of a shard that run at once.
pub const JOBS_RUNNING_MAX: usize = 16;
/// Ended jobs of a shard that are remembered.
pub const JOBS_ENDED_MAX: usize = 100;
/// Messages that a job takes on in one turn: less than a millisecond.
pub const JOB_MESSAGES: usize = 64;
/// Bytes of messages that a job reads in one turn; one message may have more.
pub const JOB_BYTES: usize = 1024 * 1024;
/// Entries that a job looks at in one turn, some 0.2 ms.
pub const JOB_LOOKS: usize = 2_048;
/// Entities or rules in one answer of the administration API: the service's page.
pub const LISTED_MAX: usize = 100;
/// Bytes that an unauthenticated peer may send after its open: some tokens, and the frames that SDKs send around them.
pub const UNAUTHENTICATED_BYTES_MAX: usize = 512 * 1024;
/// Bytes that an unauthenticated connection reads, whatever is spoken on it: what AMQP allows, and what TLS and WebSockets add.
pub const UNAUTHENTICATED_READ_BYTES_MAX: usize = 640 * 1024;
/// Bytes that all unauthenticated connections hold together, as they are counted; under a memory limit, an eighth of it. Six thousand
/// handshakes of TLS at a time; further ones wait.
pub const UNAUTHENTICATED_TOTAL_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes that a connection reserves for AMQP before it is authorized, beside those of its traffic.
pub const UNAUTHENTICATED_AMQP_BYTES: usize = 4 * 1024;
/// Bytes that it reserves for HTTP: the buffer of a head, and a request.
pub const UNAUTHENTICATED_HTTP_BYTES: usize = 8 * 1024;
/// Bytes that it reserves for TLS and what is spoken within: keys, and a record in each direction.
pub const UNAUTHENTICATED_TLS_BYTES: usize = 32 * 1024;
/// Bytes of traffic that each of them includes: a handshake, a token, and what SDKs send around it.
pub const UNAUTHENTICATED_TRAFFIC_BYTES: usize = 6 * 1024;
/// The most that an answer counts for which an unauthenticated peer does not read: what TLS keeps of it. The answer itself is shared.
pub const UNREAD_ANSWER_BYTES: usize = 64 * 1024;
/// How long an unauthenticated connection is silent before it may be closed to make room for another: longer than a slow network takes
/// for an answer.
pub const UNAUTHENTICATED_SILENCE: Millis = Millis::from_secs(5);
/// How often a connection that waits for room looks for such a silent one.
pub const UNAUTHENTICATED_LOOK: Millis = Millis::from_millis(500);
/// How many connections it looks at, the oldest first.
pub const UNAUTHENTICATED_LOOKS: usize = 64;
/// The least that each of its frames counts for: 512 small ones.
pub const UNAUTHENTICATED_FRAME_BYTES: usize = 1024;
/// Unauthenticated connections beyond, for addresses that have none.
pub const UNAUTHENTICATED_SPARE: usize = 1_024;
/// Characters of a peer's text that are logged.
pub const LOGGED_MAX: usize = 64;
/// How long a receive over HTTP waits for a message by default and at most: the service's default.
pub const REST_WAIT_MAX: Millis = Millis::from_secs(60);
/// Messages in the list of one request: what Premium takes; each takes some hundred bytes of memory
/// while it is read.
pub const REST_BATCH_MESSAGES_MAX: usize = 15_885;
/// Bytes of the list of messages in one request: the Premium tier's limit of a batch is 1 MiB, and
/// JSON takes more.
pub const REST_BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Frames before the connection is opened: SASL takes two, pipelined opens one.
pub const UNOPENED_FRAMES_MAX: usize = 8;
/// How long a connection waits for the peer's close after its own.
pub const CLOSE_WAIT: Millis = Millis::from_secs(5);
/// The longest silence of ours, whatever a peer allows (`transport.md#idle-time-outs`).
pub const KEEP_ALIVE_MAX: Millis = Millis::from_secs(120);
/// Unwritten output of a connection, bytes, at which no more is made: neither of replies nor of the
/// rest of large messages.
pub const OUTPUT_BYTES: usize = 256 * 1024;
/// Unwritten output of a connection, bytes, at which its input is not read either.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of frames that wait for a session's window and count as written nevertheless.
pub const WINDOW_WAITING_BYTES_MAX: usize = 64 * 1024;
/// A connection's deadline that is farther away than this may be kept late, by [`TIMER_STEP`] at most.
pub const TIMER_FAR: Millis = Millis::from_secs(10);
/// Far deadlines of connections are multiples of this, so that those of many connections are the same.
pub const TIMER_STEP: Millis = Millis::from_millis(500);
/// How often a connection's task wakes up if it has no deadline: it frees buffers that are not used.
pub const CONNECTION_WAKE: Millis = Millis::from_secs(240);
/// How long a peer may take to read the last output of its connection.
pub const LAST_WRITE_WAIT: Millis = Millis::from_secs(5);
/// How long a peer may read nothing of the last output.
pub const LAST_WRITE_PAUSE: Millis = Millis::from_secs(1);
/// How long a peer may take to close its side of a connection that has ended, before the socket is closed.
pub const LAST_READ_WAIT: Millis = Millis::from_secs(1);
/// How many bytes it may send meanwhile.
pub const LAST_READ_BYTES_MAX: u64 = 1024 * 1024;
/// How long all connections may take to close when the server stops.
pub const STOP_WAIT: Millis = Millis::from_secs(5);
/// How long the shards may take to say where their logs end, for a backup: meanwhile removed segments are kept, and a full disk
/// gets no space from them.
pub const BACKUP_POSITION_WAIT: Millis = Millis::from_secs(10);
/// Bytes of the rest of a message from which its frames are made in steps, and not all at once.
pub const LARGE_REST_BYTES: usize = 256 * 1024;
/// Bytes of a transfer's payload below which it is copied: a slice would keep its read buffer.
pub const COPIED_PIECE_BYTES: usize = 16 * 1024;
/// Bytes of a partial message up to which its transfers are kept as slices. Those of a larger one are
/// appended to a buffer as they come: otherwise the message would be in memory twice at its end.
pub const PIECES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Characters of one value in a trace of frames.
pub const TRACE_TEXT_MAX: usize = 200;
/// Characters of a SQL text that an error quotes on each side of a fault.
pub const SQL_EXCERPT_MAX: usize = 24;
/// Buffers that the log keeps for its next frames.
pub const FREE_BUFFERS_MAX: usize = 8;
/// Bytes of such a buffer, at most.
pub const FREE_BUFFER_BYTES_MAX: usize = 1024 * 1024;
/// How long a listener waits after an `accept` that failed for want of a resource.
pub const ACCEPT_RETRY: Millis = Millis::from_millis(100);
/// How often a warning about refused or failed connections is logged, at most.
pub const CONNECTION_WARNING_INTERVAL: Millis = Millis::from_secs(10);
/// The fewest slots that are reserved for health and administration.
pub const ADMINISTRATION_SLOTS_MIN: usize = 8;
/// The life of one HTTP connection; then a client makes another.
pub const HTTP_CONNECTION_LIFE: Millis = Millis::from_secs(600);
/// How long the last answer of an HTTP connection may take when the connection must end.
pub const HTTP_LAST_WAIT: Millis = Millis::from_secs(2);
/// Bytes of a read on a connection with little input.
pub const INPUT_BYTES_MIN: usize = 2 * 1024;
/// Bytes of a read on a connection with much input: enough for 60 messages of 1 KiB.
pub const INPUT_BYTES: usize = 64 * 1024;
/// Bytes of memory for output that a connection keeps while there is none.
pub const OUTPUT_KEPT_BYTES: usize = 4 * 1024;
/// Entities that one request for health may name.
pub const HEALTH_ENTITIES_MAX: usize = 100;
/// Bytes of an answer that the server fetches: key sets of an issuer have some KiB.
pub const FETCHED_BYTES_MAX: usize = 1024 * 1024;
/// Redirects that are followed to fetch a document.
pub const FETCH_REDIRECTS_MAX: usize = 5;

/// Deliveries of a shard whose settlement a trace waits for; beyond that, the oldest has no span of its settlement.
pub const TRACED_DELIVERIES_MAX: usize = 50_000;
/// Spans of a shard that wait for the disk; beyond that, messages have none.
pub const TRACED_GROUPS_SPANS_MAX: usize = 50_000;
/// Spans that wait to be sent to the collector; beyond that they are dropped.
pub const SPANS_WAITING_MAX: usize = 65_536;
/// Spans in one request to the collector.
pub const SPANS_IN_REQUEST_MAX: usize = 2_048;
/// How often spans are sent to the collector.
pub const SPANS_INTERVAL: Millis = Millis::from_secs(2);
/// How long the collector may take to answer.
pub const COLLECTOR_WAIT: Millis = Millis::from_secs(10);
/// How long a stop waits for the last spans to be sent.
pub const SPANS_STOP_WAIT: Millis = Millis::from_secs(3);

/// Namespaces of a server.
pub const NAMESPACES_MAX: usize = 1_000;
/// Characters of the name of a namespace that the operator makes.
pub const NAMESPACE_NAME_LENGTH: usize = 50;
/// Entities that one step of the dropping of a namespace deletes.
pub const DROPPED_ENTITIES: usize = 10;
/// How long the connections of a namespace that is dropped may take to close.
pub const DROP_WAIT: Millis = Millis::from_secs(20);

/// How long to wait before a segment is prepared again after the disk was full.
pub const PREPARE_RETRY: Millis = Millis::from_secs(1);
/// How long to wait before a file of the log is opened again after descriptors ran out.
pub const REOPEN_RETRY: Millis = Millis::from_millis(100);
/// Segments of one log that are kept open for reads.
pub const SEGMENT_HANDLES_MAX: usize = 16;
/// How long prepared segments lie unused before all but [`SPARE_SEGMENTS_KEPT`] are removed.
pub const SPARE_SEGMENTS_IDLE: Millis = Millis::from_secs(30);
/// Bytes of zeros that are written to a new segment at a time.
pub const PREPARE_WRITE_BYTES: usize = 1024 * 1024;
/// How often `--sync interval` syncs.
pub const SYNC_INTERVAL: Millis = Millis::from_millis(100);
/// How long to wait before a write that found the disk full is tried again.
pub const COMMIT_RETRY: Millis = Millis::from_millis(200);
/// The owner of a shard writes and syncs by itself no more bytes than this; its thread does nothing else meanwhile.
pub const SYNC_IN_PLACE_BYTES: usize = 64 * 1024;
/// The owner of a shard leaves syncs to the committer's thread if they take longer than this, microseconds.
pub const SYNC_IN_PLACE_MICROS: u64 = 1_000;
/// A sync that takes longer lowers the bytes that may wait for the disk: inputs wait behind them.
pub const SYNC_SLOW: Millis = Millis::from_millis(250);
/// A sync that takes less raises them.
pub const SYNC_FAST: Millis = Millis::from_millis(62);
/// A turn of the owner, or a sync, that takes longer does not end by itself: the server is not healthy.
pub const HEALTH_DELAY_MAX: Millis = Millis::from_secs(30);
/// The least `--memory-limit`, bytes: an empty broker is near it.
pub const MEMORY_LIMIT_MIN: u64 = 64 * 1024 * 1024;
/// The size of an empty process, bytes: its code, its threads, memory for connections.
pub const PROCESS_BYTES: usize = 24 * 1024 * 1024;
/// How often the size of the process is checked.
pub const MEMORY_CHECK_INTERVAL: Millis = Millis::from_millis(100);
/// Consecutive checks above the limit before messages are refused: a second.
pub const MEMORY_CHECKS_NEAR: u8 = 10;

/// The longest validity of a certificate that `jitney certs` issues, days: Apple's systems refuse
/// longer ones.
pub const CERTIFICATE_DAYS_MAX: u32 = 825;
/// The validity of an authority that `jitney certs` makes, days.
pub const AUTHORITY_DAYS: u32 = 3_650;
/// The remaining validity at which a certificate is renewed automatically.
pub const CERTIFICATE_RENEWAL: Millis = Millis::from_secs(30 * 86_400);
/// How long before its issue a certificate becomes valid: clocks of clients differ.
pub const CERTIFICATE_SKEW: Millis = Millis::from_secs(3_600);
/// How often the configuration file is read for changes.
pub const CONFIG_CHECK_INTERVAL: Millis = Millis::from_secs(2);
/// How often the files of certificates are checked for changes.
pub const CERTIFICATE_CHECK_INTERVAL: Millis = Millis::from_secs(10);

/// How often the keys of an issuer are fetched.
pub const ISSUER_REFRESH: Millis = Millis::from_secs(3_600);
/// The pause after a fetch before a token with an unknown key causes the next.
pub const ISSUER_REQUEST_PAUSE: Millis = Millis::from_secs(60);
/// The pause after the first failed fetch; each further failure doubles it.
pub const ISSUER_RETRY_FIRST: Millis = Millis::from_secs(1);
/// The longest pause after a failed fetch.
pub const ISSUER_RETRY_MAX: Millis = Millis::from_secs(300);
/// The time-out of one fetch.
pub const ISSUER_FETCH_WAIT: Millis = Millis::from_secs(10);
/// How often a file of keys is read, and the longest pause after a failure: it costs little.
pub const ISSUER_FILE_REFRESH: Millis = Millis::from_secs(10);
/// The pause before a token with an unknown key causes the next read of a file.
pub const ISSUER_FILE_REQUEST_PAUSE: Millis = Millis::from_secs(1);
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
/// Characters of an address: an entity's path, and the names of a sub-queue or of `$management`.
pub const ADDRESS_LENGTH_MAX: usize = PATH_LENGTH_MAX + PART_NAME_LENGTH_MAX + 64;
/// Characters that are kept of the reason for which an operation of a transaction was refused.
pub const ROLLBACK_REASON_MAX: usize = 512;

/// Bytes of the body of a request of the administration API: the longest that clients write, a
/// correlation filter with all that a message's properties may hold, is some 100 KiB.
pub const ADMIN_BODY_BYTES_MAX: usize = 256 * 1024;
/// Bytes of the path and query of a request of the administration API: the longest names, each character encoded.
pub const ADMIN_TARGET_BYTES_MAX: usize = 8 * 1024;
/// Seconds after which a client of the administration API may retry when the broker was busy.
pub const BUSY_RETRY_SECONDS: u32 = 10;
/// Nesting of a document's elements: clients need nine, for the value of a parameter of a default rule.
pub const XML_DEPTH_MAX: usize = 16;
/// Elements of one document: 1,000 properties of a correlation filter have 3,000.
pub const XML_ELEMENTS_MAX: usize = 4_096;
/// Attributes of one element, declarations of namespaces among them: clients write three.
pub const XML_ATTRIBUTES_MAX: usize = 16;
/// Bytes of the value of an attribute: the longest are names of namespaces.
pub const XML_ATTRIBUTE_BYTES_MAX: usize = 1_024;
/// Bytes of the text of an element: the service's limit for one property of a message.
pub const XML_TEXT_BYTES_MAX: usize = 32 * 1024;
/// Characters of a wrong value that an error quotes.
pub const XML_QUOTED_MAX: usize = 64;
/// Characters of a parser's error that are quoted: the parser quotes whole names and attributes.
pub const XML_PROBLEM_QUOTED_MAX: usize = 200;

/// Returns how much one of those who share something may have: half of what the others leave, and one at least of what
/// is left.
#[must_use]
pub const fn part_for_one(all: usize, others: usize) -> usize {
    all.saturating_sub(others).div_ceil(2)
}

// The relations between bounds that their comments state.
const _: () = assert!(FRAME_SIZE_MIN <= FRAME_SIZE_UNOPENED_MAX);
const _: () = assert!(FRAME_SIZE_UNOPENED_MAX <= FRAME_SIZE_UNAUTHENTICATED_MAX);
const _: () = assert!(FRAME_SIZE_UNAUTHENTICATED_MAX <= FRAME_SIZE_MAX);
const _: () = assert!(TOKEN_BYTES_MAX + 4096 <= FRAME_SIZE_UNAUTHENTICATED_MAX as usize);
const _: () = assert!(TOKEN_BYTES_MAX + 4096 <= HTTP_HEAD_CROWDED_BYTES_MAX);
const _: () = assert!(HTTP_HEAD_CROWDED_BYTES_MAX <= HTTP_HEAD_BYTES_MAX);
const _: () = assert!(FRAME_SIZE_MAX as usize <= WEBSOCKET_MESSAGE_BYTES_MAX);
const _: () = assert!(CHANNEL_MAX as usize + 1 == CONNECTION_LINKS_MAX);
const _: () = assert!(MESSAGE_SIZE_STANDARD <= MESSAGE_SIZE_DEFAULT);
const _: () = assert!(MESSAGE_SIZE_DEFAULT <= MESSAGE_SIZE_MAX);
const _: () = assert!(MESSAGE_SIZE_MAX <= PARTIALS_BYTES_MAX as u64);
const _: () = assert!(2 * MESSAGE_SIZE_MAX <= PARTIAL_BYTES_MAX as u64);
const _: () = assert!(UNREAD_WAIT_MAX.as_millis() < ANSWER_WAIT.as_millis());
const _: () = assert!(8 * MESSAGE_SIZE_MAX <= ANSWERS_BYTES_MAX as u64);
const _: () =
    assert!(ANSWER_PIECE_BYTES <= ANSWER_STEP_BYTES && ANSWER_STEP_BYTES <= ANSWER_PAGE_BYTES);
const _: () = assert!(RECEIVER_WINDOW_BYTES.cast_unsigned() <= CONNECTION_WINDOW_BYTES);
const _: () = assert!(IN_FLIGHT_BYTES_MIN <= IN_FLIGHT_BYTES_MAX);
const _: () = assert!(SPARE_SEGMENTS_KEPT <= SPARE_SEGMENTS_MAX);
const _: () = assert!(FILTER_STEPS_MAX <= SHARE_STEPS && FILTER_STEPS_MAX <= FILTERS_STEPS_MAX);
const _: () = assert!(LISTED_MAX * RULE_BYTES_MAX <= RULES_ANSWER_BYTES_MAX);
const _: () = assert!(TOKEN_BYTES_MAX < HTTP_HEAD_BYTES_MAX);
const _: () = assert!(HOST_NAME_BYTES_MAX + AUDIENCE_LENGTH_MAX < TOKEN_RESOURCE_BYTES_MAX);
const _: () = assert!((TOKEN_BYTES_MAX as u64) < CBS_MESSAGE_BYTES_MAX);
const _: () = assert!(DESCRIPTORS_OWN + ADMINISTRATION_SLOTS_MIN < DESCRIPTORS_MIN);
const _: () = assert!(DESCRIPTORS_OWN + ADMINISTRATION_SLOTS_MIN <= DESCRIPTORS_KEPT);
const _: () = assert!(ADMINISTRATION_SLOTS_MIN <= ADMINISTRATION_SLOTS);
const _: () = assert!(LOCK_DURATION_MIN.as_millis() < LOCK_DURATION_MAX.as_millis());
const _: () = assert!(DUPLICATE_WINDOW_MIN.as_millis() < DUPLICATE_WINDOW_MAX.as_millis());
const _: () = assert!(KEEP_ALIVE_MIN.as_millis() < KEEP_ALIVE_MAX.as_millis());
const _: () = assert!(KEEP_ALIVE_MAX.as_millis() < IDLE_TIMEOUT.as_millis());
const _: () = assert!(INPUT_BYTES_MIN <= INPUT_BYTES);
const _: () = assert!(60 * 1024 <= INPUT_BYTES, "60 messages of 1 KiB");
const _: () = assert!(OPEN_DEADLINE.as_millis() <= ADMISSION_DEADLINE.as_millis());
const _: () = assert!(MAILBOX_DRAIN <= MAILBOX_LENGTH);
const _: () = assert!(MAILBOX_BYTES_MIN <= MAILBOX_BYTES_MAX);
const _: () = assert!(READ_AHEAD_BYTES <= READ_BYTES_MAX);
const _: () = assert!(FIRST_REQUEST_BYTES < REQUESTS_WAITING_BYTES_MAX);
const _: () = assert!(8_000 * 1024 <= DISPOSITION_BYTES_MAX);
const _: () = assert!(EVENT_DETAIL_BYTES_MAX <= DISPOSITION_BYTES_MAX);
const _: () = assert!(2 * CONNECTION_LINKS_MAX * 400 <= CONNECTION_LINKS_BYTES_MAX);
const _: () = assert!(4 * SQL_LENGTH_MAX <= TERMINUS_BYTES_MAX);
const _: () = assert!(LINK_NAME_BYTES_MAX + 2 * TERMINUS_BYTES_MAX <= FRAME_SIZE_MAX as usize);
const _: () = assert!(PARTITIONED_SIZES == PARTITIONS as u64);
const _: () = assert!(SESSION_STATE_BYTES_MAX as u64 <= SESSION_STATES_BYTES_MAX);
const _: () = assert!(
    GROUP_BYTES as u64 + MESSAGE_SIZE_MAX + TRANSACTION_BYTES_MAX as u64 <= u32::MAX as u64,
    "the largest input fits into the length of a group, which is an uint of the log"
);
const _: () = assert!(COMPACTION_BYTES <= GROUP_BYTES);
const _: () = assert!(HELD_BYTES_MAX <= GROUP_BYTES);
const _: () = assert!(ACTIONS_STEPS_MAX * 8 <= 8 * 1024 * 1024);
const _: () = assert!(REST_BATCH_MESSAGES_MAX <= BATCH_MESSAGES_MAX);
const _: () = assert!(REST_WAIT_MAX.as_millis() < HTTP_CONNECTION_LIFE.as_millis());
const _: () = assert!(ADMIN_TARGET_BYTES_MAX < HTTP_HEAD_BYTES_MAX);
const _: () = assert!(XML_TEXT_BYTES_MAX < ADMIN_BODY_BYTES_MAX);
const _: () = assert!(UNAUTHENTICATED_LINKS_MAX <= CONNECTION_LINKS_MAX);
const _: () = assert!(UNAUTHENTICATED_TRANSACTIONS_MAX <= TRANSACTIONS_MAX);
const _: () = assert!(UNAUTHENTICATED_BYTES_MAX == 512 * UNAUTHENTICATED_FRAME_BYTES);
const _: () = assert!(FRAME_SIZE_UNOPENED_MAX as usize <= UNAUTHENTICATED_BYTES_MAX);
const _: () = assert!(TOKEN_BYTES_MAX <= UNAUTHENTICATED_BYTES_MAX);
const _: () = assert!(UNAUTHENTICATED_BYTES_MAX < UNAUTHENTICATED_READ_BYTES_MAX);
const _: () = assert!(UNAUTHENTICATED_SILENCE.as_millis() < ADMISSION_DEADLINE.as_millis());
const _: () = assert!(UNAUTHENTICATED_PER_ADDRESS_MAX <= UNAUTHENTICATED_MAX);
const _: () = assert!(FRAME_SIZE_MAX as usize <= OUTPUT_BYTES);
const _: () = assert!(10 * TIMER_STEP.as_millis() < TIMER_FAR.as_millis());
const _: () = assert!(OUTPUT_BYTES < OUTPUT_BYTES_MAX);
const _: () = assert!(SPLICE_UNREAD_WAIT.as_millis() == 2 * IDLE_TIMEOUT.as_millis());
const _: () = assert!(LAST_WRITE_PAUSE.as_millis() < LAST_WRITE_WAIT.as_millis());
const _: () = assert!(LAST_WRITE_WAIT.as_millis() <= STOP_WAIT.as_millis());
const _: () = assert!(SEGMENT_HANDLES_MAX < SHARD_DESCRIPTORS);
const _: () = assert!(SHARD_DESCRIPTORS <= DESCRIPTORS_OWN);
const _: () = assert!(PREPARE_WRITE_BYTES as u64 <= SEGMENT_BYTES);
const _: () = assert!(SYNC_IN_PLACE_BYTES <= GROUP_BYTES);
const _: () = assert!(SYNC_IN_PLACE_MICROS < 1_000 * SYNC_FAST.as_millis().cast_unsigned());
const _: () = assert!(SYNC_FAST.as_millis() < SYNC_SLOW.as_millis());
const _: () = assert!(2 * PROCESS_BYTES as u64 <= MEMORY_LIMIT_MIN);
const _: () = assert!(
    MEMORY_CHECK_INTERVAL.as_millis() * MEMORY_CHECKS_NEAR as i64 == 1_000,
    "a second above the limit"
);
const _: () = assert!(CERTIFICATE_DAYS_MAX <= AUTHORITY_DAYS);
const _: () = assert!(
    CERTIFICATE_RENEWAL.as_millis() < Millis::from_secs(CERTIFICATE_DAYS_MAX * 86_400).as_millis()
);
const _: () = assert!(ISSUER_RETRY_FIRST.as_millis() <= ISSUER_RETRY_MAX.as_millis());
const _: () = assert!(ISSUER_RETRY_MAX.as_millis() <= ISSUER_REFRESH.as_millis());
const _: () = assert!(RSA_BITS_MIN <= RSA_BITS_MAX);
const _: () =
    assert!(AUTHENTICATION_REFUSAL_LEAK.as_millis() < AUTHENTICATION_FAILURE_LEAK.as_millis());
