//! Where entities forward to, checked when it is set.
//!
//! A target must be there. A circle is allowed, as in the service: messages in it
//! end in a dead-letter queue after the last forward that they may take, and the log warns of it.

use std::collections::BTreeSet;

use tracing::warn;

use super::entities::EntityRefused;
use super::{ForwardingTarget, Namespaces};
use jitney_base::address;
use jitney_base::ids::EntityId;

impl Namespaces {
    /// Checks that messages can be sent to where an entity forwards its messages and its dead
    /// letters. To be called when all entities are made. Warns of what is allowed and of no use.
    ///
    /// # Errors
    ///
    /// If they cannot.
    pub fn check_forwards(&self, path: &str) -> Result<(), EntityRefused> {
        let Some(base) = self.resolve_path(path) else {
            return Ok(());
        };
        for id in [base, base.dead_letters()] {
            if let Some(target) = self.forward_target(id) {
                self.check_target(path, target)?;
            }
        }
        self.warn_of_forwards(base);
        Ok(())
    }

    /// Checks that an entity may forward to another: that it is there. It may be a subscription, too.
    ///
    /// # Errors
    ///
    /// If not.
    pub(super) fn check_target(&self, path: &str, target: &str) -> Result<(), EntityRefused> {
        if self.resolve_path(target).is_none() {
            return Err(EntityRefused::NoTarget {
                path: address::without_namespace(path).to_owned(),
                target: address::without_namespace(target).to_owned(),
            });
        }
        Ok(())
    }

    /// Warns of forwards of an entity that are hardly meant.
    pub(super) fn warn_of_forwards(&self, base: EntityId) {
        let Some(node) = self.node(base) else { return };
        let path = address::without_namespace(&node.address.path);
        for id in [base, base.dead_letters()] {
            let Some(target) = self.forward_target(id) else {
                continue;
            };
            let target = address::without_namespace(target);
            if self.forwards_back(id) {
                warn!(
                    path,
                    target,
                    "the entity forwards to itself, directly or through others: a message is \
                     forwarded {} times and then dead-lettered",
                    jitney_base::limits::FORWARD_HOPS_MAX
                );
            }
            if id == base && node.queue.has_sessions() {
                warn!(
                    path,
                    target,
                    "the entity has message sessions and forwards: its messages go to the target, \
                     and no session of it can be accepted"
                );
            }
        }
    }

    /// Returns whether messages that are forwarded from a queue can come to its entity again.
    #[must_use]
    pub fn forwards_back(&self, from: EntityId) -> bool {
        let mut open = self.targets_of(from);
        // Of a subscription, what comes to its topic comes to it.
        let home = |id: EntityId| id == from.base() || self.has_subscription(id, from.base());
        let mut reached: BTreeSet<EntityId> = open.iter().copied().collect();
        while let Some(next) = open.pop() {
            if home(next) {
                return true;
            }
            let more = self.targets_of(next).into_iter();
            open.extend(more.filter(|id| reached.insert(*id)));
        }
        false
    }

    fn has_subscription(&self, topic: EntityId, subscription: EntityId) -> bool {
        let topic = self.topics.get(&topic);
        topic.is_some_and(|topic| topic.subscriptions.contains(&subscription))
    }

    /// Returns the entities to which messages of a queue are forwarded.
    fn targets_of(&self, id: EntityId) -> Vec<EntityId> {
        if let Some(target) = self.forward_target(id) {
            return self.resolve_path(target).into_iter().collect();
        }
        let topic = self.topics.get(&id).into_iter();
        topic
            .flat_map(|topic| topic.subscriptions.iter().copied())
            .collect()
    }

    fn forward_target(&self, id: EntityId) -> Option<&str> {
        match self.node(id)?.forwards_to.as_ref()? {
            ForwardingTarget::Entity(target) => Some(target),
            ForwardingTarget::Subscriptions => None,
        }
    }
}
