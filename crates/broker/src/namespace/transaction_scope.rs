//! The scope of a transaction: one entity, and of a partitioned one, one partition
//! (`transactions.md#several-entities`).
//!
//! A topic and its subscriptions are one entity. The links that are attached to an AMQP session after
//! a coordinator are a group: whatever its senders send in transactions goes by way of the entity of
//! the group's first link, so that one transaction may send to many entities. A group receives from
//! that entity only.

use super::transactions::Operation;
use super::{Denied, DeniedKind, Namespaces};
use jitney_base::ids::EntityId;
use jitney_message::{Message, partition_hash_of_key};
use jitney_queue::{Arrival, Queue};

/// The entity and the partition in which a transaction takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scope {
    entity: EntityId,
    /// Of a partitioned entity.
    partition: Option<usize>,
}

impl Namespaces {
    /// Returns where a transaction would take place if it consisted of this operation alone.
    pub(super) fn scope_of(&self, operation: &Operation) -> Result<Scope, Denied> {
        let entity = operation
            .group()
            .unwrap_or_else(|| self.whole(operation.queue()));
        let is_partitioned = self
            .queue(entity)
            .is_some_and(|queue| queue.description().partitioned);
        if !is_partitioned {
            let partition = None;
            return Ok(Scope { entity, partition });
        }
        let mut partition = None;
        for touched in self.partitions_of(operation, entity) {
            let touched = touched.ok_or_else(|| self.keyless(entity))?;
            if partition.is_some_and(|partition| partition != touched) {
                let scope = Scope { entity, partition };
                return Err(self.spans(scope, scope));
            }
            partition = Some(touched);
        }
        Ok(Scope { entity, partition })
    }

    /// Returns where a transaction takes place with an operation more.
    ///
    /// # Errors
    ///
    /// If the operation is not where the others are.
    pub(super) fn join_scopes(&self, before: Option<Scope>, more: Scope) -> Result<Scope, Denied> {
        let Some(before) = before else {
            return Ok(more);
        };
        let (one, other) = (before.partition, more.partition);
        let agree = one.is_none() || other.is_none() || one == other;
        if before.entity != more.entity || !agree {
            return Err(self.spans(before, more));
        }
        Ok(Scope {
            partition: one.or(other),
            ..before
        })
    }

    fn keyless(&self, entity: EntityId) -> Denied {
        let text = format!(
            "A message that is sent to the partitioned entity '{}' in a transaction needs a partition \
             key or a session id.",
            self.name_of(entity),
        );
        Denied::new(DeniedKind::NotAllowed, &text, "")
    }

    fn spans(&self, one: Scope, other: Scope) -> Denied {
        let why = if one.entity == other.entity {
            format!(
                "All operations on the partitioned entity '{}' need the same partition key.",
                self.name_of(one.entity),
            )
        } else {
            // The first 200 characters reach a client.
            format!(
                "This one began with '{}': only sends of a cross-entity transaction go to '{}', no settlements or $management \
                 requests. All its links are in one AMQP session, to which the coordinator was attached first.",
                self.name_of(one.entity),
                self.name_of(other.entity),
            )
        };
        let text = format!("Local transactions cannot span multiple entities or partitions. {why}");
        Denied::new(DeniedKind::NotAllowed, &text, "")
    }

    /// Returns the partitions of an entity that an operation touches; `None` for a message that may
    /// go to any. One that is sent on to another entity needs no partition of this one.
    fn partitions_of(&self, operation: &Operation, entity: EntityId) -> Vec<Option<usize>> {
        let Some(queue) = self.queue(operation.queue()) else {
            return Vec::new();
        };
        let is_partitioned = queue.description().partitioned;
        let of_message = |message: &Message| {
            let arrival = Arrival::of(message, queue.description());
            arrival.partition_hash.map(Queue::partition_of_hash)
        };
        match operation {
            Operation::Send {
                queue,
                destination,
                messages,
                ..
            } if destination.is_some() || *queue != entity => {
                let hashes = messages.iter().filter_map(Message::via_partition_hash);
                hashes.map(Queue::partition_of_hash).map(Some).collect()
            }
            // A subscription need not be partitioned as its topic is.
            _ if !is_partitioned => Vec::new(),
            Operation::Send { messages, .. } => messages.iter().map(of_message).collect(),
            Operation::Schedule { message, .. } => vec![of_message(message)],
            Operation::Settle { token, .. } => vec![queue.partition_of_lock(*token)],
            Operation::SetState {
                message_session, ..
            } => {
                let hash = partition_hash_of_key(message_session);
                vec![Some(Queue::partition_of_hash(hash))]
            }
            Operation::Cancel { numbers, .. } => {
                let numbers = numbers.iter().copied();
                numbers.map(Queue::partition_of_number).map(Some).collect()
            }
        }
    }

    /// Returns the entity that a queue is part of: with its subscriptions and its dead letters.
    #[must_use]
    pub fn whole(&self, queue: EntityId) -> EntityId {
        let base = queue.base();
        let topic = self.node(base).and_then(|node| {
            let description = node.queue.description();
            self.topic_of(&node.address.path, description)
                .ok()
                .flatten()
        });
        topic.unwrap_or(base)
    }
}
