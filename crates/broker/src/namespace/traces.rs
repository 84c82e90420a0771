//! What happens to messages whose senders trace them.
//!
//! The events tell facts alone. The server makes spans of them: it knows the time, and when a group of records is
//! durable. Nothing is looked at unless traces are turned on ([`Namespaces::turn_traces_on`]).

use super::Namespaces;
use jitney_base::address;
use jitney_base::ids::{EntityId, LockToken, SequenceNumber};
use jitney_base::time::Timestamp;
use jitney_message::TraceContext;
use jitney_queue::{Handover, ReceiveMode, Settlement};

/// Something that has happened to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceEvent {
    /// A queue has accepted a message that is part of a trace.
    Accepted {
        /// The span that it was sent in.
        context: TraceContext,
        /// The group of records that it rests on.
        group: u64,
        /// The address of the queue, without its namespace.
        entity: String,
        /// The message's number.
        number: SequenceNumber,
    },
    /// A queue has handed out a message, of a trace or not, to a receiver.
    HandedOut(Box<HandedOut>),
    /// What was handed out leaves for the receiver's connection.
    Released {
        /// The lock.
        token: LockToken,
        /// The span that the message was sent in, if it is part of a trace.
        context: Option<TraceContext>,
    },
    /// A message was settled.
    Settled {
        /// The lock, which has gone.
        token: LockToken,
        /// The group of records that it rests on.
        group: u64,
        /// What was done.
        disposition: &'static str,
    },
}

/// A message that was handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandedOut {
    /// The lock.
    pub token: LockToken,
    /// How it is received.
    pub mode: ReceiveMode,
    /// The address of the queue, without its namespace.
    pub entity: String,
    /// The message's number.
    pub number: SequenceNumber,
    /// Deliveries, this one included.
    pub deliveries: u32,
    /// When the message was enqueued.
    pub enqueued: Timestamp,
}

impl Namespaces {
    /// From now on there are events of what happens to messages.
    pub fn turn_traces_on(&mut self) {
        self.trace_events.get_or_insert_default();
    }

    /// Returns whether there are events.
    #[must_use]
    pub fn is_traced(&self) -> bool {
        self.trace_events.is_some()
    }

    /// Takes the events since the last call.
    pub fn take_trace_events(&mut self) -> impl Iterator<Item = TraceEvent> {
        self.trace_events.iter_mut().flat_map(|all| all.drain(..))
    }

    /// Notes messages that a queue has accepted in the open group.
    pub(super) fn trace_accepted(
        &mut self,
        group: u64,
        queue: EntityId,
        accepted: Vec<(TraceContext, SequenceNumber)>,
    ) {
        if accepted.is_empty() {
            return;
        }
        let entity = self.traced_name(queue);
        if let Some(events) = &mut self.trace_events {
            events.extend(
                accepted
                    .into_iter()
                    .map(|(context, number)| TraceEvent::Accepted {
                        context,
                        group,
                        entity: entity.clone(),
                        number,
                    }),
            );
        }
    }

    /// Notes a message that a queue has handed out.
    pub fn trace_handed_out(&mut self, queue: Option<EntityId>, handover: &Handover) {
        let entity = queue.map(|queue| self.traced_name(queue));
        let stamps = &handover.stamps;
        if let Some(events) = &mut self.trace_events {
            events.push(TraceEvent::HandedOut(Box::new(HandedOut {
                token: handover.token,
                mode: handover.mode,
                entity: entity.unwrap_or_default(),
                number: SequenceNumber(stamps.sequence_number.cast_unsigned()),
                deliveries: stamps.delivery_count.saturating_add(1),
                enqueued: stamps.enqueued_time,
            })));
        }
    }

    /// Notes a settlement that was carried out.
    pub(super) fn trace_settled(
        &mut self,
        queue: EntityId,
        token: LockToken,
        disposition: &'static str,
    ) {
        let group = self.group_of(queue);
        if let Some(events) = &mut self.trace_events {
            events.push(TraceEvent::Settled {
                token,
                group,
                disposition,
            });
        }
    }

    fn traced_name(&self, queue: EntityId) -> String {
        address::without_namespace(&self.name_of(queue)).to_owned()
    }
}

/// Names a settlement as OpenTelemetry's conventions for Service Bus do.
pub(super) fn disposition(settlement: &Settlement) -> &'static str {
    match settlement {
        Settlement::Complete => "complete",
        Settlement::Abandon(_) => "abandon",
        Settlement::DeadLetter(_) => "dead_letter",
        Settlement::Defer(_) => "defer",
        Settlement::Release => "release",
    }
}
