//! Bounds of the server on resources and times, each with its unit and its reason. Relations between bounds are asserted at the end.

pub use fleet::*;

mod fleet;

use jitney_amqp::limits::{
    FRAME_SIZE_MAX, IDLE_TIMEOUT, OPEN_DEADLINE, OUTPUT_BYTES, UNAUTHENTICATED_BYTES_MAX,
};
use jitney_base::limits::MESSAGE_SIZE_MAX;
use jitney_base::time::Millis;
use jitney_broker::limits::{GROUP_BYTES, TOKEN_BYTES_MAX};
use jitney_gateway::limits::{
    ADMIN_TARGET_BYTES_MAX, ANSWER_PAGE_BYTES, REST_WAIT_MAX, UNREAD_WAIT_MAX,
};
use jitney_journal::limits::SEGMENT_BYTES;
use jitney_shard::limits::{IN_FLIGHT_BYTES_MIN, MAILBOX_DRAIN, SYNC_FAST};

/// Bytes that an answer of the JSON API reserves at a time while it is written as JSON.
pub const ANSWER_STEP_BYTES: usize = 64 * 1024;
/// Bytes of an answer that are handed to its connection at a time.
pub const ANSWER_PIECE_BYTES: usize = 16 * 1024;
/// How long a request of the JSON API waits for room for its answer: longer than it takes until a connection that
/// reads nothing is closed.
pub const ANSWER_WAIT: Millis = Millis::from_secs(3);
/// How often such a request looks for connections that read too slowly.
pub const ANSWER_LOOK: Millis = Millis::from_millis(200);
/// Bytes a second that the reader of an answer must take, after `UNREAD_WAIT_MAX`, while other answers wait for room:
/// a megabit.
pub const ANSWER_RATE_MIN: u64 = 128 * 1024;
/// Bytes of answers of the JSON API of all connections, where memory has no limit: the longest of a message of
/// `MESSAGE_SIZE_MAX`, each byte of which is an escape of six in its text and is encoded again in base64.
pub const ANSWERS_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Batches of inputs that wait for the owner; beyond, connections wait, and TCP pushes back.
pub const MAILBOX_LENGTH: usize = 256;
/// Bytes of records that wait for the disk at which the owner stops taking inputs.
pub const IN_FLIGHT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of batches that wait for the owner.
pub const MAILBOX_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of the file of a segment: places in it have 36 bits. A file with more is no segment.
pub const SEGMENT_FILE_BYTES_MAX: u64 = 1 << 36;
/// Bytes of the manifest of a backup, about 200 for each file: 64 shards of 4 TiB each.
pub const BACKUP_MANIFEST_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Bytes of the record of namespaces and their shards: a line of some 70 bytes for each of a million.
pub const PLACEMENT_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Bytes of that of each shard at least, where memory has no limit.
pub const SHARD_CACHE_BYTES_MIN: usize = 1024 * 1024;
/// Prepared segments that are kept when segments are removed, or a quarter of those in use: as many
/// as busy queues fill between two checkpoints, because a new one must be filled with zeros first.
/// More are given back to the file system.
pub const SPARE_SEGMENTS_MAX: usize = 8;
/// Prepared segments that are kept when little is written.
pub const SPARE_SEGMENTS_KEPT: usize = 3;
/// Shards of one server: each has four threads, [`SHARD_DESCRIPTORS`] and segments of its own.
pub const SHARDS_MAX: u32 = 64;
/// Descriptors that one shard needs: segments, a checkpoint, directories, a lock, the events of its runtime.
pub const SHARD_DESCRIPTORS: usize = 28;
/// Bytes of batches that may wait for one shard at least, however many shards share
/// [`MAILBOX_BYTES_MAX`].
pub const MAILBOX_BYTES_MIN: usize = 256 * 1024;
/// Total bytes buffered for partially received messages, all connections. Beyond it a new
/// multi-frame message is refused as server-busy. At least `MESSAGE_SIZE_MAX` (asserted).
pub const PARTIALS_BYTES_MAX: usize = 128 * 1024 * 1024;
/// How far the system's clock may differ from the monotonic one, or lie before the log's newest
/// time, before it counts as set: a step back up to this is held, so that stamps do not go back.
pub const CLOCK_HELD: Millis = Millis::from_millis(1_000);
/// How often the clock is read when nothing else happens.
pub const CLOCK_LOOK: Millis = Millis::from_millis(1_000);
/// Requests of one HTTP connection that may be refused for want of a right; then it is closed.
pub const HTTP_REFUSALS_MAX: usize = 32;
/// Time until a connection must be authorized; then it is closed: the service's value (`transport.md#sasl`).
pub const ADMISSION_DEADLINE: Millis = Millis::from_secs(20);
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
/// Steps of one request that counts scheduled messages.
pub const SCHEDULED_STEPS_MAX: usize = 500;
/// Spans of time in which scheduled messages are counted.
pub const SCHEDULED_SPANS_MAX: usize = 1_000;
/// Subscriptions whose rules one request tests a message against.
pub const TESTED_SUBSCRIPTIONS_MAX: usize = 100;
/// Rules of one subscription that a message is tested against.
pub const TESTED_RULES_MAX: usize = 1_000;
/// Pages of messages that one request of a search looks at.
pub const SEARCHED_PAGES: usize = 100;
/// Shares of steps that one request of a search takes, `SHARE_STEPS` each: half a second to some seconds of one thread.
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
/// The length of the intervals of the last day.
pub const HISTORY_DAY_INTERVAL: Millis = Millis::from_secs(300);
/// Intervals of the last day.
pub const HISTORY_DAY_INTERVALS: usize = 288;
/// The length of the intervals of the last week.
pub const HISTORY_WEEK_INTERVAL: Millis = Millis::from_secs(1_800);
/// Intervals of the last week.
pub const HISTORY_WEEK_INTERVALS: usize = 336;
/// Entities that have a history. Each takes 36 KiB at most: 36 bytes for each interval in which something happened.
pub const HISTORY_ENTITIES_MAX: usize = 1_000;
/// Bytes of all histories, where memory has no limit: 900 entities to which something happens all the time.
pub const HISTORY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Series in the file of the history: those of entities and namespaces.
pub const HISTORY_SERIES_MAX: usize = HISTORY_ENTITIES_MAX + NAMESPACES_MAX;
/// Bytes of a name in that file.
pub const HISTORY_NAME_BYTES_MAX: usize = 4 * 1024;
/// Bytes of that file: 45 of what takes 36 in memory, and names.
pub const HISTORY_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of the history of one namespace in a store: 100 entities to which something happens all the time. Every
/// [`HISTORY_WRITE_INTERVAL`] as many go to the database and its standbys for each namespace.
pub const HISTORY_STORE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of histories from which on no more are written by the same statement.
pub const HISTORY_STATEMENT_BYTES: usize = 1024 * 1024;
/// How long a server waits for the store before it gives a namespace away without the newest part of its history.
pub const HISTORY_HANDOVER_WAIT: Millis = Millis::from_millis(300);
/// Between looks that lie further apart, the process stood still or the clock was set: that time is a gap.
pub const HISTORY_PAUSE: Millis = Millis::from_secs(60);
/// How long after the start the history is written first. Each pause is twice the one before, up to
/// [`HISTORY_WRITE_INTERVAL`]: a process that is killed loses at most half of what it has seen.
pub const HISTORY_WRITE_FIRST: Millis = Millis::from_secs(10);
/// How often the history is written.
pub const HISTORY_WRITE_INTERVAL: Millis = Millis::from_secs(300);
/// How long the stop waits until the history is written.
pub const HISTORY_STOP_WAIT: Millis = Millis::from_secs(2);
/// Hours of which a trend has the numbers of messages.
pub const TREND_HOURS: usize = 24;
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
/// Items of what needs attention that the event has one by one, some 400 bytes each: it is sent whole when one has changed.
pub const CHANGES_ATTENTION_MAX: usize = 50;
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
/// Application-properties of a message in a request of the JSON API: the service's limit of 64 KiB for all of them has room
/// for no more, with a name, a value and their types.
pub const MESSAGE_PROPERTIES_MAX: usize = 16 * 1024;
/// Bytes of the body of a request of the JSON API.
pub const API_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Seconds for which a request may wait for the end of a job.
pub const JOB_WAIT_SECONDS_MAX: u64 = 30;
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
/// Unauthenticated connections beyond, for addresses that have none.
pub const UNAUTHENTICATED_SPARE: usize = 1_024;
/// Bytes of the list of messages in one request: the Premium tier's limit of a batch is 1 MiB, and
/// JSON takes more.
pub const REST_BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
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

const _: () = assert!(HISTORY_INTERVAL.as_millis() < HISTORY_PAUSE.as_millis());
const _: () = assert!(HISTORY_WRITE_FIRST.as_millis() <= HISTORY_WRITE_INTERVAL.as_millis());
const _: () = assert!(HISTORY_STOP_WAIT.as_millis() < STOP_WAIT.as_millis());
const _: () = assert!(45 * (HISTORY_BYTES_MAX as u64) / 36 < HISTORY_FILE_BYTES_MAX);
const _: () = assert!(TOKEN_BYTES_MAX + 4096 <= HTTP_HEAD_CROWDED_BYTES_MAX);
const _: () = assert!(HTTP_HEAD_CROWDED_BYTES_MAX <= HTTP_HEAD_BYTES_MAX);
const _: () = assert!(FRAME_SIZE_MAX as usize <= WEBSOCKET_MESSAGE_BYTES_MAX);
const _: () = assert!(MESSAGE_SIZE_MAX <= PARTIALS_BYTES_MAX as u64);
const _: () = assert!(UNREAD_WAIT_MAX.as_millis() < ANSWER_WAIT.as_millis());
const _: () = assert!(8 * MESSAGE_SIZE_MAX <= ANSWERS_BYTES_MAX as u64);
const _: () =
    assert!(ANSWER_PIECE_BYTES <= ANSWER_STEP_BYTES && ANSWER_STEP_BYTES <= ANSWER_PAGE_BYTES);
const _: () = assert!(IN_FLIGHT_BYTES_MIN <= IN_FLIGHT_BYTES_MAX);
const _: () = assert!(SPARE_SEGMENTS_KEPT <= SPARE_SEGMENTS_MAX);
const _: () = assert!(TOKEN_BYTES_MAX < HTTP_HEAD_BYTES_MAX);
const _: () = assert!(DESCRIPTORS_OWN + ADMINISTRATION_SLOTS_MIN < DESCRIPTORS_MIN);
const _: () = assert!(DESCRIPTORS_OWN + ADMINISTRATION_SLOTS_MIN <= DESCRIPTORS_KEPT);
const _: () = assert!(ADMINISTRATION_SLOTS_MIN <= ADMINISTRATION_SLOTS);
const _: () = assert!(INPUT_BYTES_MIN <= INPUT_BYTES);
const _: () = assert!(60 * 1024 <= INPUT_BYTES, "60 messages of 1 KiB");
const _: () = assert!(OPEN_DEADLINE.as_millis() <= ADMISSION_DEADLINE.as_millis());
const _: () = assert!(MAILBOX_DRAIN <= MAILBOX_LENGTH);
const _: () = assert!(MAILBOX_BYTES_MIN <= MAILBOX_BYTES_MAX);
const _: () = assert!(REST_WAIT_MAX.as_millis() < HTTP_CONNECTION_LIFE.as_millis());
const _: () = assert!(ADMIN_TARGET_BYTES_MAX < HTTP_HEAD_BYTES_MAX);
const _: () = assert!(UNAUTHENTICATED_BYTES_MAX < UNAUTHENTICATED_READ_BYTES_MAX);
const _: () = assert!(UNAUTHENTICATED_SILENCE.as_millis() < ADMISSION_DEADLINE.as_millis());
const _: () = assert!(UNAUTHENTICATED_PER_ADDRESS_MAX <= UNAUTHENTICATED_MAX);
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
