//! Bounds of this crate on resources and times, each with its unit and its reason. Relations between bounds are asserted at the end.

use jitney_amqp::limits::{
    CONNECTION_LINKS_MAX, FRAME_SIZE_UNAUTHENTICATED_MAX, TERMINUS_BYTES_MAX,
    UNAUTHENTICATED_BYTES_MAX,
};
use jitney_base::limits::{PART_NAME_LENGTH_MAX, PATH_LENGTH_MAX};
use jitney_base::time::Millis;
use jitney_broker::limits::{LISTED_MAX, TOKEN_BYTES_MAX, TOKEN_RESOURCE_BYTES_MAX};
use jitney_message::limits::BATCH_MESSAGES_MAX;
use jitney_queue::limits::RECEIVER_WINDOW_BYTES;
use jitney_rules::limits::{RULE_BYTES_MAX, SQL_LENGTH_MAX};

/// Credit of an incoming link; topped up at half, when the records are durable.
pub const LINK_CREDIT: u32 = 1_000;
/// Bytes of a host's name that is kept for texts: the longest of DNS.
pub const HOST_NAME_BYTES_MAX: usize = 255;
/// Bytes of messages handed to all receivers of one connection that are not yet written to its
/// peer, beyond what one step of a queue hands out.
pub const CONNECTION_WINDOW_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of a connection that do not count in the unwritten output of all connections: it may have written them, and not
/// have reported that yet.
pub const UNREPORTED_BYTES_MAX: u64 = 64 * 1024;
/// Bytes that a connection has written when it reports them. It is half of what does not count, so that while peers do not
/// read, a connection whose peer does always gets a message of up to the other half.
pub const REPORTED_BYTES: u64 = UNREPORTED_BYTES_MAX / 2;
/// How long a peer may read nothing when the unwritten output of all connections is twice its
/// budget: then its connection is closed.
pub const UNREAD_WAIT_MAX: Millis = Millis::from_secs(2);
/// Bytes of answers to requests of one connection that are not yet written to its peer, beyond the
/// last of them: the next request waits.
pub const ANSWERS_WINDOW_BYTES: u64 = 2 * 1024 * 1024;
/// Bytes of the items of one page of an answer of the JSON API, as JSON; one item may have more.
pub const ANSWER_PAGE_BYTES: usize = 1024 * 1024;
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
/// Bytes that the broker keeps for one connection's links and tokens: names, addresses and audiences.
pub const CONNECTION_KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Of these, bytes that a connection may have while all counted memory is at its limit. It is not
/// zero, because receivers free memory and need links for that: some hundred links and tokens with
/// usual names fit.
pub const CONNECTION_KEPT_BYTES_FULL: usize = 16 * 1024;
/// The one `max-message-size` of a receiver that is not honoured, bytes: SDKs in Python state it for
/// every entity, and take larger messages.
pub const STATED_MESSAGE_SIZE: u64 = 1024 * 1024;
/// How long a receiver waits for the next message session if it does not set a time-out
/// (`transport.md#refused-links`).
pub const NEXT_SESSION_WAIT: Millis = Millis::from_millis(64_980);
/// Detached receivers of one connection that are remembered, for messages that return unsent: those
/// that were queued when the link ended.
pub const DEPARTED_LINKS_MAX: usize = 32;
/// Bytes of a message to the transaction coordinator: a declare or a discharge has some 50.
pub const CONTROL_MESSAGE_BYTES_MAX: u64 = 4 * 1024;
/// Transactions that one connection has open at a time.
pub const TRANSACTIONS_MAX: usize = 1_000;
/// Bytes of the rules in one answer over `$management`: a hundred of the largest, which is what clients
/// ask for at a time.
pub const RULES_ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Characters of an audience: the longest path of an entity, a subscription below it, and a sub-queue.
pub const AUDIENCE_LENGTH_MAX: usize = PATH_LENGTH_MAX + PART_NAME_LENGTH_MAX + 90;
/// Bytes of a message to a peer's `$cbs` link: a token, and the message around it.
pub const CBS_MESSAGE_BYTES_MAX: u64 = 64 * 1024;
/// Valid tokens of one connection: Python has one entity for each, others many.
pub const GRANTS_MAX: usize = 5_000;
/// How long an attach to a management node waits for a token that holds for it: a client may first have to get one.
pub const EARLY_ATTACH_WAIT: Millis = Millis::from_secs(5);
/// Such attaches of one connection: the pairs of two management nodes. Among the links of an unauthenticated one.
pub const EARLY_ATTACHES_MAX: usize = 4;
/// Links of an unauthenticated connection: two pairs for `$cbs`, and two to the transaction coordinator.
pub const UNAUTHENTICATED_LINKS_MAX: usize = 6;
/// Open transactions of an unauthenticated connection, some 200 bytes each. .NET declares one for
/// each `TransactionScope` before its first token, and many may begin at once.
pub const UNAUTHENTICATED_TRANSACTIONS_MAX: usize = 100;
/// Messages that an operator's request looks at or returns at once.
pub const INSPECTED_MAX: usize = 100;
/// Links in one answer that lists connections: their states are looked up in a millisecond.
pub const LISTED_LINKS: usize = 1_000;
/// Jobs of a shard that run at once.
pub const JOBS_RUNNING_MAX: usize = 16;
/// How long a receive over HTTP waits for a message by default and at most: the service's default.
pub const REST_WAIT_MAX: Millis = Millis::from_secs(60);
/// Messages in the list of one request: what Premium takes; each takes some hundred bytes of memory
/// while it is read.
pub const REST_BATCH_MESSAGES_MAX: usize = 15_885;
/// Entities that one step of the dropping of a namespace deletes.
pub const DELETED_ENTITIES: usize = 10;
/// Bytes of the body of a request of the administration API: the longest that clients write, a
/// correlation filter with all that a message's properties may hold, is some 100 KiB.
pub const ADMIN_BODY_BYTES_MAX: usize = 256 * 1024;
/// Bytes of an entity as an administrator sees it, at most: its authorization rules, its metadata and its names.
pub const ENTITY_BYTES_MAX: usize = 16 * 1024;
/// Bytes of an answer of the administration API around its entries, at most: its title, its links and what asked for it.
pub const FEED_BYTES: usize = 16 * 1024;
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

const _: () = assert!(CONNECTION_KEPT_BYTES_FULL < CONNECTION_KEPT_BYTES_MAX);
const _: () = assert!(EARLY_ATTACHES_MAX + 2 <= UNAUTHENTICATED_LINKS_MAX); // `$cbs` has room.
const _: () = assert!(TOKEN_BYTES_MAX + 4096 <= FRAME_SIZE_UNAUTHENTICATED_MAX as usize);
const _: () = assert!(RECEIVER_WINDOW_BYTES.cast_unsigned() <= CONNECTION_WINDOW_BYTES);
const _: () = assert!(LISTED_MAX * RULE_BYTES_MAX <= RULES_ANSWER_BYTES_MAX);
const _: () = assert!(HOST_NAME_BYTES_MAX + AUDIENCE_LENGTH_MAX < TOKEN_RESOURCE_BYTES_MAX);
const _: () = assert!((TOKEN_BYTES_MAX as u64) < CBS_MESSAGE_BYTES_MAX);
const _: () = assert!(FIRST_REQUEST_BYTES < REQUESTS_WAITING_BYTES_MAX);
const _: () = assert!(4 * SQL_LENGTH_MAX <= TERMINUS_BYTES_MAX);
const _: () = assert!(REST_BATCH_MESSAGES_MAX <= BATCH_MESSAGES_MAX);
const _: () = assert!(XML_TEXT_BYTES_MAX < ADMIN_BODY_BYTES_MAX);
const _: () = assert!(UNAUTHENTICATED_LINKS_MAX <= CONNECTION_LINKS_MAX);
const _: () = assert!(UNAUTHENTICATED_TRANSACTIONS_MAX <= TRANSACTIONS_MAX);
const _: () = assert!(TOKEN_BYTES_MAX <= UNAUTHENTICATED_BYTES_MAX);
