//! Observation of a shard's steps and groups, for tests.

use bytes::Bytes;

use jitney_base::ids::{BodyRef, EntityId, RequestId, SequenceNumber};
use jitney_broker::namespace::FoundBody;
use jitney_broker::namespace::{Contained, Room, WantedBody};
use jitney_gateway::messages::HandedOut;
use jitney_gateway::{QueuedReply, StepReply};
use jitney_journal::Writer;

/// Sees every step of a shard in its order.
pub trait Observer {
    /// Takes note of something that has happened.
    fn observe(&mut self, event: Observation<'_>);
}

/// Something that has happened in a shard.
pub enum Observation<'a> {
    /// The namespaces have done a step.
    Step {
        /// Why.
        cause: Cause<'a>,
        /// The group that its records are in.
        group: u64,
        /// The replies of the step, before any of them is released.
        replies: &'a [StepReply],
        /// The journal, with the bodies that it has in memory.
        journal: &'a Writer,
    },
    /// Bytes are not what was written: the step that contains that comes next.
    Damaged {
        /// What needs them.
        user: DamageUser<'a>,
        /// The bytes.
        bodies: &'a [BodyRef],
        /// The journal, with the bodies that it has in memory.
        journal: &'a Writer,
    },
    /// A message has lost its bytes. The shard logs this.
    Contained(&'a Contained),
    /// A group of records has come to its end.
    Sealed(u64),
    /// Messages are accepted from now on, or refused.
    Room(Room),
}

/// What needs bytes that are not what was written.
#[derive(Debug, Clone, Copy)]
pub enum DamageUser<'a> {
    /// The broker itself, to forward or to move this message.
    Message(EntityId, SequenceNumber),
    /// A reply that was about to leave.
    Reply {
        /// The reply as it was.
        routed: &'a QueuedReply,
        /// A drain behind it has used up its link's credit.
        is_drained: bool,
    },
    /// A receive without a link that was about to be answered with this message.
    Receive(RequestId, &'a HandedOut),
}

/// Why a step was done.
#[derive(Debug, Clone, Copy)]
pub enum Cause<'a> {
    /// A connection reported something, or ended.
    Reports,
    /// A request came over HTTP.
    Request,
    /// Something was due.
    Timeout,
    /// The configuration asks for it.
    Configuration,
    /// Messages are forwarded, or are matched with selectors: their bytes are in memory.
    Forward(&'a [(WantedBody, Bytes)]),
    /// A job of an operator has its turn.
    Job,
    /// Bodies of old segments are appended again.
    Compaction(&'a [FoundBody]),
    /// Bytes are not what was written.
    Damage,
}
