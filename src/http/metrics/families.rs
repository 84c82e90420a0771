//! The metrics: their names, kinds, labels and meaning. `docs/metrics.md` is made of this list.

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A count that only grows, until the process ends.
    Counter,
    Gauge,
    /// Durations in seconds, with the buckets of [`jitney_base::histogram`].
    Histogram,
}

/// A metric with all its label values.
#[derive(Debug)]
pub(super) struct Family {
    /// Its name, without the suffix `_total` of a counter.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

/// The labels of a queue of an entity.
const QUEUE: &[&str] = &["namespace", "entity", "kind", "sub_queue"];
const SHARD: &[&str] = &["shard"];

macro_rules! families {
    ($($id:ident = $kind:ident $name:literal $labels:expr, $help:literal;)*) => {
        $(
            pub(super) static $id: Family = Family {
                name: $name,
                kind: Kind::$kind,
                labels: $labels,
                help: $help,
            };
        )*

        /// All of them, in the order in which they are written.
        pub(super) static ALL: &[&Family] = &[$(&$id),*];
    };
}

families! {
    BUILD = Gauge "jitney_build_info" &["version"], "1, with the version of the broker";
    PROCESS_CPU = Counter "process_cpu_seconds" &[], "User and system CPU time of the process, in seconds";
    PROCESS_RESIDENT = Gauge "process_resident_memory_bytes" &[], "Resident memory of the process";
    PROCESS_VIRTUAL = Gauge "process_virtual_memory_bytes" &[], "Virtual memory of the process";
    PROCESS_THREADS = Gauge "process_threads" &[], "Threads of the process";
    PROCESS_FDS = Gauge "process_open_fds" &[], "Open file descriptors";
    PROCESS_FDS_MAX = Gauge "process_max_fds" &[], "The limit of open file descriptors";
    PROCESS_START = Gauge "process_start_time_seconds" &[], "When the process started, in seconds since 1970";
    MEMORY = Gauge "jitney_memory_bytes" &["owner"], "Memory that is counted where it is kept: open and packed parts of the indexes of queues, and all other state of entities and links";
    ANSWERS_BYTES = Gauge "jitney_answers_bytes" &[], "Bytes that are reserved for answers of the JSON API which are made, or are not read yet";
    ANSWERS_REFUSED = Counter "jitney_answers_refused" &[], "Answers of the JSON API that had no room: 503 was answered instead";
    UNAUTHENTICATED_BYTES = Gauge "jitney_unauthenticated_bytes" &[], "Memory that connections hold whose peers have proved no right yet, as it is estimated";
    UNAUTHENTICATED_CLOSED = Counter "jitney_unauthenticated_closed" &[], "Such connections that were closed because all of them held too much, and they most";
    FLEET_LEASE = Gauge "jitney_fleet_lease_held" &["store"], "1 if this server's last beat in the store is young enough for it to answer clients of its namespaces; only where servers share a store, as all that begin with jitney_fleet or jitney_namespace";
    FLEET_ALIVE = Gauge "jitney_fleet_server_alive" &["server"], "1 if the server's beat is seen, 0 if it has left or was declared dead";
    FLEET_FIT = Gauge "jitney_fleet_server_fit" &["server"], "1 if the server may take namespaces, 0 if it takes none of some store: its clock is off from the database's, the answers to its beats come too late, or it has died too often of late. Absent if it is not alive";
    FLEET_BEATS = Counter "jitney_fleet_beats" &["server"], "How often the server has said that it is alive, since its start";
    FLEET_BEAT_AGE = Gauge "jitney_fleet_beat_age_seconds" &["server"], "How long ago the server's beat changed, as this server has seen it; after 3 s it is declared dead. Absent if it is not alive";
    NAMESPACE_OWNED = Gauge "jitney_namespace_owned" &["namespace"], "1 if this server has the namespace. One that is suspended may be another server's by now";
    NAMESPACE_EPOCH = Gauge "jitney_namespace_epoch" &["namespace"], "How often the namespace was taken over, or taken anew";
    NAMESPACE_RATE = Gauge "jitney_namespace_rate" &["namespace"], "Messages a second that came in and were handed out lately, as recorded in the store. Servers share namespaces out by it, and record it again when it has changed a lot";
    NAMESPACE_SUSPENDED = Gauge "jitney_namespace_suspended" &["namespace"], "1 if the namespace has a server, and that server answers no client of it now: its beat is overdue, or an answer of the database is missing";
    NAMESPACE_QUARANTINED = Gauge "jitney_namespace_quarantined" &["namespace"], "1 if no server takes the namespace: until an operator lets it out, or for a pause if its servers have died too often";
    NAMESPACE_QUOTA = Gauge "jitney_namespace_quota_bytes" &["namespace"], "Bytes a second that the clients of the namespace may send together; absent without a quota";
    NAMESPACE_QUOTA_WAITS = Counter "jitney_namespace_quota_waits" &["namespace"], "How often a client was made to wait because the quota of the namespace was used up, since this server has the namespace";
    STORE_REACHED = Gauge "jitney_store_reached" &["store"], "1 if this server's last look at the store has succeeded";
    STORE_CLOCK = Gauge "jitney_store_clock_offset_seconds" &["store"], "By how much this server's clock is ahead of the database's: beyond a second it is not followed, and this server takes no namespaces";
    STORE_AGE = Gauge "jitney_store_transaction_age" &["store"], "Transactions since the oldest that the database has not frozen: at two billion it takes no writes";
    STORE_SLOTS = Gauge "jitney_store_inactive_slots" &["store"], "Replication slots of the database that no standby uses: they keep its log for ever";
    STORE_LAG = Gauge "jitney_store_standby_lag_bytes" &["store"], "Bytes of the database's log that the standby which is furthest behind has not flushed; 0 where the role may not see that";
    HEALTHY = Gauge "jitney_shard_healthy" SHARD, "1 if the shard's owner and disk make progress. A shard whose store is away has 0; /health leaves it out while the server reaches another store";
    ACCEPTS = Gauge "jitney_shard_accepts_messages" SHARD, "1 if messages are accepted, 0 if disk or memory is full";
    MISSING = Gauge "jitney_shard_missing_bytes" &["shard", "of"], "Bytes of disk or memory that must become free before messages are accepted again; absent while they are accepted";
    CONNECTIONS = Gauge "jitney_connections" &["shard", "authorized"], "AMQP connections, by whether the peer was authorized for something";
    AMQP_SESSIONS = Gauge "jitney_amqp_sessions" SHARD, "AMQP sessions of the connections";
    LINKS = Gauge "jitney_links" &["shard", "role"], "Links of AMQP clients: sender (to an entity), receiver (from an entity), or other (service nodes, transactions)";
    RECEIVES = Gauge "jitney_rest_receives" SHARD, "Receives over HTTP that wait for a message";
    REFUSALS = Counter "jitney_refusals" &["shard", "reason"], "Links, messages and requests that were refused, by reason";
    LOG_BYTES = Gauge "jitney_log_bytes" SHARD, "Bytes of the groups of records in the log";
    LOG_LIVE = Gauge "jitney_log_live_bytes" SHARD, "Bytes of the log that messages still use";
    LOG_SEGMENTS = Gauge "jitney_log_segments" SHARD, "Segments of the log that have records";
    LOG_GROUPS = Counter "jitney_log_groups" SHARD, "Groups of records that were ended, since the data directory was made";
    LOG_IN_FLIGHT = Gauge "jitney_log_in_flight_bytes" SHARD, "Bytes of groups on their way to the disk";
    LOG_COMMIT = Histogram "jitney_log_commit_duration_seconds" SHARD, "From the end of a group of records until it is durable: what a sender waits for";
    LOG_SYNC = Histogram "jitney_log_sync_duration_seconds" SHARD, "Writes of one or more groups to the disk, each with its sync";
    LOG_CHECKPOINTS = Counter "jitney_log_checkpoints" &["shard", "outcome"], "Checkpoints: written, or failed";
    LOG_COMPACTIONS = Counter "jitney_log_compactions" SHARD, "Compactions that came to their end";
    LOG_COMPACTED = Counter "jitney_log_compacted_bytes" SHARD, "Bytes of messages that compaction moved to the end of the log";
    LOG_REMOVED = Counter "jitney_log_segments_removed" SHARD, "Segments that were removed because nothing in them was used";
    DAMAGED = Counter "jitney_damaged_messages" SHARD, "Messages whose bytes in the log were damaged";
    MESSAGES = Gauge "jitney_entity_messages" &["namespace", "entity", "kind", "sub_queue", "state"], "Messages by state: active (locked ones included), deferred, scheduled";
    LOCKED = Gauge "jitney_entity_locked_messages" QUEUE, "Messages that receivers have locked";
    SIZE = Gauge "jitney_entity_size_bytes" QUEUE, "Bytes of the messages as their senders encoded them";
    RECEIVERS = Gauge "jitney_entity_receivers" QUEUE, "Receivers";
    CREDIT = Gauge "jitney_entity_receiver_credit" QUEUE, "How many more messages the receivers take, together";
    STUCK = Gauge "jitney_entity_stuck_receivers" QUEUE, "Receivers for which messages wait and to which nothing has happened for ten seconds, as docs/console.md defines it";
    OLDEST = Gauge "jitney_entity_oldest_message_timestamp_seconds" QUEUE, "When the oldest message was enqueued that waits for a receiver, in seconds since 1970; absent if none waits";
    SESSIONS = Gauge "jitney_entity_sessions" &["namespace", "entity", "kind", "sub_queue", "state"], "Message sessions that have messages, a state or a holder: held or free";
    INCOMING = Counter "jitney_entity_incoming_messages" QUEUE, "Messages that came in: sent, forwarded or dead-lettered to this queue";
    DELIVERED = Counter "jitney_entity_delivered_messages" QUEUE, "Deliveries to receivers; a message that is delivered again counts again";
    COMPLETED = Counter "jitney_entity_completed_messages" QUEUE, "Messages that were completed, or received and deleted";
    ABANDONED = Counter "jitney_entity_abandoned_messages" QUEUE, "Deliveries that were abandoned";
    DEFERRED = Counter "jitney_entity_deferred_messages" QUEUE, "Messages that were deferred";
    SCHEDULED = Counter "jitney_entity_scheduled_messages" QUEUE, "Messages that were sent for a later time";
    CANCELLED = Counter "jitney_entity_cancelled_messages" QUEUE, "Scheduled messages that were cancelled";
    DUPLICATES = Counter "jitney_entity_duplicate_messages" QUEUE, "Messages that were dropped as duplicates";
    EXPIRED = Counter "jitney_entity_expired_messages" QUEUE, "Messages whose time to live ended";
    LOCKS_EXPIRED = Counter "jitney_entity_expired_locks" QUEUE, "Locks that ended before the message was settled";
    FORWARDED = Counter "jitney_entity_forwarded_messages" QUEUE, "Messages that were forwarded, and copies for subscriptions";
    UNMATCHED = Counter "jitney_entity_unmatched_messages" QUEUE, "Messages of a topic that no subscription took";
    DEAD_LETTERED = Counter "jitney_entity_dead_lettered_messages" &["namespace", "entity", "kind", "sub_queue", "reason"], "Messages that left this queue for a dead-letter queue, by reason";
    ATTENTION = Gauge "jitney_namespace_attention" &["namespace", "kind"], "What needs attention, by kind, as docs/operating.md defines it: how many entities, receivers or jobs; the same that the API, jitney attention and the console tell";
    DELIVERY_DELAY = Histogram "jitney_delivery_delay_seconds" &["namespace"], "From a message's arrival in its entity to each delivery, dead letters apart";
    TIME_IN_QUEUE = Histogram "jitney_time_in_queue_seconds" &["namespace"], "From a message's arrival in its entity to its completion, dead letters apart";
}
