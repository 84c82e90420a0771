//! What one transaction may span: one entity, and of a partitioned one, one partition
//! (`transactions.md#several-entities`).
//!
//! A topic and its subscriptions are one entity. The links that are attached to an AMQP session after
//! a coordinator are a group: whatever its senders send in transactions goes by way of the entity of
//! the group's first link, so that one transaction may send to many entities. A group receives from
//! that entity only.

use super::transactions::Operation;
use super::{Broker, ConnectionId, Denied, DeniedKind, EntityId, Link};
use crate::address::EntityAddress;
use crate::amqp::SessionId;
use crate::message::Message;
use crate::queue::{Arrival, Queue};

/// The links of one AMQP session that were attached after a coordinator.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The session's coordinator links: the group ends with the last one.
    coordinators: usize,
    /// The entity of its first link.
    via: Option<EntityId>,
}

/// The entity and the partition in which a transaction takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scope {
    entity: EntityId,
    /// Of a partitioned entity.
    partition: Option<usize>,
}

impl Broker {
    /// Notes that a coordinator was attached to a session: the links that come after it are a group.
    pub(super) fn begin_group(&mut self, connection: ConnectionId, session: SessionId) {
        let groups = &mut self.connection(connection).groups;
        groups.entry(session).or_default().coordinators += 1;
    }

    /// Notes that a coordinator of a session has gone.
    pub(super) fn end_group(&mut self, connection: ConnectionId, session: SessionId) {
        let Some(state) = self.connections.get_mut(&connection) else {
            return;
        };
        if let Some(group) = state.groups.get_mut(&session) {
            group.coordinators -= 1;
            if group.coordinators == 0 {
                state.groups.remove(&session);
            }
        }
    }

    /// Makes a link one of its session's group, if there is one.
    pub(super) fn join_group(
        &mut self,
        connection: ConnectionId,
        session: SessionId,
        link: &mut Link,
    ) {
        let groups = &self.connection(connection).groups;
        let Some(queue) = link.queue().filter(|_| groups.contains_key(&session)) else {
            return;
        };
        let via = self.via(connection, session);
        let via = via.unwrap_or_else(|| self.whole(queue));
        if let Some(group) = self.connection(connection).groups.get_mut(&session) {
            group.via = Some(via);
        }
        if let Link::Sender { group, .. } = link {
            *group = Some(via);
        }
    }

    /// Refuses a receiver that its session's group cannot have: messages cannot be received by way
    /// of another entity.
    pub(super) fn check_group(
        &mut self,
        connection: ConnectionId,
        session: SessionId,
        (queue, address): (EntityId, &EntityAddress),
    ) -> Result<(), Denied> {
        let via = self.via(connection, session);
        if via.is_none_or(|via| via == self.whole(queue)) {
            return Ok(());
        }
        let text = format!(
            "Local transactions cannot span multiple top-level entities such as queue or topic. A \
             receiver of '{address}' needs a connection or an AMQP session of its own: this session \
             has a transaction coordinator, and its first link is of '{}'.",
            self.name_of(via),
        );
        Err(Denied::new(DeniedKind::NotAllowed, &text, &address.path))
    }

    /// Returns where a transaction would take place if it consisted of this operation alone.
    pub(super) fn scope_of(&mut self, operation: &Operation) -> Result<Scope, Denied> {
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
    pub(super) fn join_scopes(
        &mut self,
        before: Option<Scope>,
        more: Scope,
    ) -> Result<Scope, Denied> {
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
            self.name_of(Some(entity)),
        );
        Denied::new(DeniedKind::NotAllowed, &text, "")
    }

    fn spans(&self, one: Scope, other: Scope) -> Denied {
        let why = if one.entity == other.entity {
            format!(
                "All operations on the partitioned entity '{}' need the same partition key.",
                self.name_of(Some(one.entity)),
            )
        } else {
            format!(
                "The transaction began with '{}' and cannot go on with '{}', except by links of an AMQP \
                 session to which the coordinator was attached first (cross-entity transactions).",
                self.name_of(Some(one.entity)),
                self.name_of(Some(other.entity)),
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
            Operation::Cancel { numbers, .. } => {
                let numbers = numbers.iter().copied();
                numbers.map(Queue::partition_of_number).map(Some).collect()
            }
        }
    }

    /// Returns the entity by way of which a session's group sends.
    fn via(&self, connection: ConnectionId, session: SessionId) -> Option<EntityId> {
        let group = self.connections.get(&connection)?.groups.get(&session)?;
        // Of one that was deleted, the next link's entity takes the place.
        group.via.filter(|&via| self.node(via).is_some())
    }

    /// Returns the entity that a queue is part of: with its subscriptions and its dead letters.
    fn whole(&self, queue: EntityId) -> EntityId {
        let base = queue.base();
        let topic = self.node(base).and_then(|node| {
            let description = node.queue.description();
            self.topic_of(&node.address.path, description)
                .ok()
                .flatten()
        });
        topic.unwrap_or(base)
    }

    fn name_of(&self, entity: Option<EntityId>) -> String {
        let node = entity.and_then(|entity| self.node(entity));
        node.map(|node| node.address.to_string())
            .unwrap_or_default()
    }
}
