//! Checks that every protocol makes before an operation: whether an entity takes messages from senders,
//! whether it can be received from, and whether there is room for more entities and rules.
//!
//! AMQP links, management requests, HTTP requests and transactions ask here and nowhere else, so that one
//! protocol never allows what another refuses.

use super::{Denied, DeniedKind, ForwardingTarget, Lack, Namespaces, Room};
use crate::limits;
use jitney_base::address::{EntityAddress, SubQueue};
use jitney_base::ids::EntityId;
use jitney_queue::{EntityKind, Queue};

impl Namespaces {
    /// Checks that messages can be sent to an entity: it is a queue or a topic.
    pub fn check_sendable(&self, queue: EntityId, address: &EntityAddress) -> Result<(), Denied> {
        let kind = self.queue(queue).map(|queue| queue.description().kind);
        if address.queue == SubQueue::Main && kind != Some(EntityKind::Subscription) {
            return Ok(());
        }
        let text = format!("Messages cannot be sent to '{address}': it takes none from senders.");
        Err(Denied::new(DeniedKind::NotAllowed, text, &address.path))
    }

    /// Checks that messages can be received from an entity: it keeps its messages, and its status allows it.
    pub fn check_receivable(&self, queue: EntityId, address: &EntityAddress) -> Result<(), Denied> {
        let Some(node) = self.node(queue) else {
            return Ok(());
        };
        let text = match node.forwards_to {
            Some(ForwardingTarget::Subscriptions) => format!(
                "Cannot create a message receiver on the topic '{address}'. Receive from one of its \
                 subscriptions: '{address}/Subscriptions/<name>'."
            ),
            Some(ForwardingTarget::Entity(_)) => {
                "Cannot create a message receiver on an entity with auto-forwarding enabled."
                    .to_owned()
            }
            None => return self.check_status_receives(queue, address),
        };
        Err(Denied::new(DeniedKind::NotAllowed, text, &address.path))
    }

    /// Checks that an entity's status allows to receive, or to delete, messages.
    pub fn check_status_receives(
        &self,
        queue: EntityId,
        address: &EntityAddress,
    ) -> Result<(), Denied> {
        let status = self.queue(queue).map(|queue| queue.description().status);
        if status.is_none_or(jitney_queue::Status::can_receive) {
            return Ok(());
        }
        Err(Denied::disabled(address))
    }

    /// Checks that an entity can be received from without a message session.
    pub fn check_without_session(
        &self,
        queue: EntityId,
        address: &EntityAddress,
    ) -> Result<(), Denied> {
        if !self.queue(queue).is_some_and(Queue::has_sessions) {
            return Ok(());
        }
        let text = "It is not possible for an entity that requires sessions to create a non-sessionful \
                    message receiver.";
        Err(Denied::new(DeniedKind::NotAllowed, text, &address.path))
    }

    /// Checks that the disk and the memory have room; `what` says, for people, what is not done without.
    pub fn check_room(&self, what: &str) -> Result<(), Denied> {
        let lacking = match self.room {
            Room::Enough => return Ok(()),
            Room::None(Lack::Disk) => "The broker's disk is full",
            Room::None(Lack::Memory) => "The broker's memory is full",
            Room::None(Lack::Store) => "The broker cannot write to its store",
        };
        let text = match self.figures.as_str() {
            "" => format!("{lacking}: {what}."),
            figures => format!("{lacking} ({figures}): {what}."),
        };
        Err(Denied::new(DeniedKind::Full, text, ""))
    }

    /// Checks that one more entity may be made, in the place of `replaced` if there is one.
    pub fn check_entity_count(&self, replaced: Option<EntityId>) -> Result<(), Denied> {
        self.check_room("no entity is made until there is room again")?;
        let others = self.directory.len() - usize::from(replaced.is_some());
        let max = limits::ENTITIES_MAX;
        if others < max {
            return Ok(());
        }
        let text = format!("There are {max} entities already, and no more may be.");
        Err(Denied::new(DeniedKind::Limit, text, ""))
    }
}
