//! Bounds of this crate on resources and times, each with its unit and its reason. Relations between bounds are asserted at the end.

use jitney_base::limits::{MESSAGE_SIZE_MAX, TRANSACTION_SETTLEMENTS_MAX};
use jitney_base::time::Millis;

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
/// Bytes of a batch's own sections, beside those of its messages: the service's limit for a message's
/// headers.
pub const ENVELOPE_BYTES: u64 = 64 * 1024;
/// Nesting of AMQP values: the Python SDK's own limit (`transport.md#encoding`).
pub const VALUE_DEPTH_MAX: usize = 64;
/// Elements in one AMQP list, map or array: the Python SDK's own limit.
pub const VALUE_ELEMENTS_MAX: usize = 65_536;
/// Elements of all lists, maps and arrays within one value together: they are checked one by one, a
/// million in some milliseconds.
pub const VALUE_ELEMENTS_TOTAL_MAX: usize = 1024 * 1024;
/// Deliveries of one AMQP session that wait for a receiver's outcome. The oldest are forgotten
/// beyond: their locks expire, and `$management` can still settle them.
pub const UNSETTLED_MAX: usize = 262_144;
/// Links of one connection: one for each of the sessions that .NET and JavaScript open.
pub const CONNECTION_LINKS_MAX: usize = 5_000;
/// Bytes of a link's name: Qpid's holds a connection's id and a destination of 260 characters.
pub const LINK_NAME_BYTES_MAX: usize = 2 * 1024;
/// Bytes of a link's source, and of its target: address, filters, capabilities. A selector takes 4 KiB at most.
pub const TERMINUS_BYTES_MAX: usize = 16 * 1024;
/// Bytes of the names of all links of one connection, and of the sources and targets of pending
/// attaches: 5,000 links with names of 400 bytes fit twice.
pub const CONNECTION_LINKS_BYTES_MAX: usize = 4 * 1024 * 1024;
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
/// A peer with a shorter idle time-out is sent heartbeats no more often than this.
pub const KEEP_ALIVE_MIN: Millis = Millis::from_millis(100);
/// Deliveries of one AMQP session that a commit has settled and that are remembered for a receiver
/// that settles them once more: as many as one transaction settles.
pub const DISCHARGED_DELIVERIES_MAX: usize = TRANSACTION_SETTLEMENTS_MAX;
/// Sessions of an unauthenticated connection: each takes a kilobyte.
pub const UNAUTHENTICATED_SESSIONS_MAX: usize = 64;
/// Bytes that an unauthenticated peer may send after its open: some tokens, and the frames that SDKs send around them.
pub const UNAUTHENTICATED_BYTES_MAX: usize = 512 * 1024;
/// The least that each of its frames counts for: 512 small ones.
pub const UNAUTHENTICATED_FRAME_BYTES: usize = 1024;
/// Frames before the connection is opened: SASL takes two, pipelined opens one.
pub const UNOPENED_FRAMES_MAX: usize = 8;
/// How long a connection waits for the peer's close after its own.
pub const CLOSE_WAIT: Millis = Millis::from_secs(5);
/// The longest silence of ours, whatever a peer allows (`transport.md#idle-time-outs`).
pub const KEEP_ALIVE_MAX: Millis = Millis::from_secs(120);
/// Unwritten output of a connection, bytes, at which no more is made: neither of replies nor of the
/// rest of large messages.
pub const OUTPUT_BYTES: usize = 256 * 1024;
/// Bytes of the rest of a message from which its frames are made in steps, and not all at once.
pub const LARGE_REST_BYTES: usize = 256 * 1024;
/// Bytes of a transfer's payload below which it is copied: a slice would keep its read buffer.
pub const COPIED_PIECE_BYTES: usize = 16 * 1024;
/// Bytes of a partial message up to which its transfers are kept as slices. Those of a larger one are
/// appended to a buffer as they come: otherwise the message would be in memory twice at its end.
pub const PIECES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Characters of one value in a trace of frames.
pub const TRACE_TEXT_MAX: usize = 200;

// The relations between bounds that their comments state.
const _: () = assert!(FRAME_SIZE_MIN <= FRAME_SIZE_UNOPENED_MAX);
const _: () = assert!(FRAME_SIZE_UNOPENED_MAX <= FRAME_SIZE_UNAUTHENTICATED_MAX);
const _: () = assert!(FRAME_SIZE_UNAUTHENTICATED_MAX <= FRAME_SIZE_MAX);
const _: () = assert!(CHANNEL_MAX as usize + 1 == CONNECTION_LINKS_MAX);
const _: () = assert!(2 * MESSAGE_SIZE_MAX <= PARTIAL_BYTES_MAX as u64);
const _: () = assert!(KEEP_ALIVE_MIN.as_millis() < KEEP_ALIVE_MAX.as_millis());
const _: () = assert!(KEEP_ALIVE_MAX.as_millis() < IDLE_TIMEOUT.as_millis());
const _: () = assert!(8_000 * 1024 <= DISPOSITION_BYTES_MAX);
const _: () = assert!(EVENT_DETAIL_BYTES_MAX <= DISPOSITION_BYTES_MAX);
const _: () = assert!(2 * CONNECTION_LINKS_MAX * 400 <= CONNECTION_LINKS_BYTES_MAX);
const _: () = assert!(LINK_NAME_BYTES_MAX + 2 * TERMINUS_BYTES_MAX <= FRAME_SIZE_MAX as usize);
const _: () = assert!(UNAUTHENTICATED_BYTES_MAX == 512 * UNAUTHENTICATED_FRAME_BYTES);
const _: () = assert!(FRAME_SIZE_UNOPENED_MAX as usize <= UNAUTHENTICATED_BYTES_MAX);
const _: () = assert!(FRAME_SIZE_MAX as usize <= OUTPUT_BYTES);
