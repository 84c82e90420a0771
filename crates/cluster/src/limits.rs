//! Bounds and times of a fleet that decide which server has which namespace.

use jitney_base::time::Millis;

/// Stores of a fleet.
pub const STORES_MAX: usize = 32;
/// How often a server says that it is alive, and looks at the others.
pub const HEARTBEAT: Millis = Millis::from_millis(500);
/// How long a server answers after it sent a beat that succeeded.
pub const LEASE: Millis = Millis::from_secs(2);
/// How long a server's beat may be unchanged before the others take its namespaces.
pub const HEARTBEAT_SILENCE_MAX: Millis = Millis::from_secs(3);
/// Beats in a row whose answers come after the lease that they renew, from which on a server gives its namespaces away: it has answered
/// nothing for 6 s or more, though the database takes its beats. Two may be one pause of the database.
pub const LATE_HEARTBEATS_MAX: u32 = 3;
/// For how long the answers to a server's beats come within half a lease, until it takes namespaces again.
pub const LATE_HEARTBEATS_OVER: Millis = Millis::from_secs(5);
/// How long the store keeps the row of a server that has left.
pub const LEFT_SERVER_KEPT: Millis = Millis::from_secs(60);
/// How long the store keeps the row of a server that was declared dead: operators see it meanwhile.
pub const DEAD_SERVER_KEPT: Millis = Millis::from_secs(60 * 60);
/// Namespaces that a server gives away at the same time, when others carry less, and that are on their way to one server.
pub const HANDOVERS_AT_ONCE: usize = 16;
/// Namespaces that are taken over at the same time: each takes up to two sessions.
pub const TAKEOVERS_AT_ONCE: usize = 6;
/// Messages a second by which a rate has changed by a lot, at least.
pub const RATE_CHANGE_MIN: i64 = 250;
/// Deaths of owners of a namespace, without a healthy minute between them, after which it is left alone.
pub const TAKEOVERS_MAX: i32 = 3;
/// How long a namespace was served without a death of an owner, for these to be counted anew.
pub const TAKEOVER_HEALTHY: Millis = Millis::from_secs(60);
/// How long a namespace whose owners have died too often is left alone for the first time. Each further time is twice as long.
pub const QUARANTINE_PAUSE: Millis = Millis::from_secs(60);
/// How long such a namespace is left alone at most: each new try may end a server.
pub const QUARANTINE_PAUSE_MAX: Millis = Millis::from_secs(60 * 60);
/// How long such a namespace was served without a death, for its pauses to begin with the first again.
pub const QUARANTINE_HEALTHY: Millis = Millis::from_secs(60 * 60);
/// Deaths of a server, without [`SERVER_HEALTHY`] between them, from which on it rests.
pub const SERVER_DEATHS_MAX: i32 = 2;
/// How long a server lives after its rest, for its deaths to be counted anew.
pub const SERVER_HEALTHY: Millis = Millis::from_secs(10 * 60);
/// How long a server gets no namespaces after the first death that is too many. After each further one it is twice as long.
pub const SERVER_REST: Millis = Millis::from_secs(60);
/// How long a server rests at most.
pub const SERVER_REST_MAX: Millis = Millis::from_secs(30 * 60);
/// How far a server's clock may be from the database's before it has no namespaces, and before it says so.
pub const CLOCK_SKEW_MAX: Millis = Millis::from_secs(1);
/// See [`CLOCK_SKEW_MAX`].
pub const CLOCK_SKEW_WARN: Millis = Millis::from_millis(200);

const _: () = assert!(LEASE.as_millis() < HEARTBEAT_SILENCE_MAX.as_millis());
const _: () = assert!(3 * HEARTBEAT.as_millis() < LEASE.as_millis());
