//! Checks that every protocol makes before an operation: whether an entity takes messages from senders,
//! whether it can be received from, and whether there is room for more entities and rules.
//!
//! AMQP links, management requests, HTTP requests and transactions ask here and nowhere else, so that one
//! protocol never allows what another refuses.

use tracing::warn;

use super::{Denied, DeniedKind, ForwardingTarget, Lack, Namespaces, Room};
use crate::limits;
use jitney_base::address::{self, EntityAddress, SubQueue};
use jitney_base::ids::EntityId;
use jitney_base::limits::NAMESPACE_SHARE_LEFT;
use jitney_base::memory::{Memory, Share};
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

    /// Checks that the disk and the memory have room for more of the namespace of a path; `what` says, for people, what is
    /// not done without.
    pub fn check_room(&self, path: &str, what: &str) -> Result<(), Denied> {
        self.check_room_of_all(what)?;
        let memory = self.shares.known_namespace(address::namespace_of(path));
        self.check_share(memory, path, what)
    }

    /// Checks the same for the namespace of a queue.
    pub(super) fn check_room_of(&self, queue: EntityId, what: &str) -> Result<(), Denied> {
        self.check_room_of_all(what)?;
        let Some(node) = self.node(queue) else {
            return Ok(());
        };
        self.check_share(Some(node.queue.memory()), &node.address.path, what)
    }

    /// Checks that a namespace has not all of its share of the memory.
    fn check_share(&self, memory: Option<&Memory>, path: &str, what: &str) -> Result<(), Denied> {
        let Some(share) = memory.and_then(Memory::used_share) else {
            return Ok(());
        };
        let (used, most) = (share.used >> 20, share.most >> 20);
        if memory.is_some_and(Memory::is_to_be_told) {
            warn!(
                namespace = self.directory.name_of(path),
                used_bytes = share.used,
                share_bytes = share.most,
                "the namespace has its share of the memory: it takes no messages until it has less; others do"
            );
        }
        let text = format!(
            "The namespace has its share of the broker's memory ({used} MiB are counted, {most} MiB may be): {what}."
        );
        Err(Denied::new(DeniedKind::Full, text, ""))
    }

    /// Checks that the disk and the memory have room.
    fn check_room_of_all(&self, what: &str) -> Result<(), Denied> {
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

    /// Returns how many entities a namespace has, by the prefix of its paths, and how many it may have as long as others have what
    /// they have now.
    pub(super) fn entity_share(&self, prefix: &str) -> Share {
        let used = self.directory.len_of(prefix);
        let left = limits::ENTITIES_MAX.saturating_sub(self.directory.len() - used);
        let most = if self.directory.has_several() {
            left - left / NAMESPACE_SHARE_LEFT
        } else {
            left
        };
        Share { used, most }
    }

    /// Checks that one more entity may be made at a path, in the place of `replaced` if there is one.
    pub fn check_entity_count(&self, path: &str, replaced: Option<EntityId>) -> Result<(), Denied> {
        self.check_room(path, "no entity is made until there is room again")?;
        let replaced = usize::from(replaced.is_some());
        let all = self.directory.len() - replaced;
        let max = limits::ENTITIES_MAX;
        if max <= all {
            let text = format!("There are {max} entities already, and no more may be.");
            return Err(Denied::new(DeniedKind::Limit, text, ""));
        }
        if replaced != 0 {
            return Ok(());
        }
        let share = self.entity_share(address::namespace_of(path));
        let (own, most) = (share.used, share.most);
        if own < most || !self.directory.has_several() {
            return Ok(());
        }
        let text = format!(
            "The namespace has {own} entities, and {most} are its share of the broker's {max}."
        );
        Err(Denied::new(DeniedKind::Limit, text, ""))
    }
}
