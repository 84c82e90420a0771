//! The tiers of namespaces, and what they allow.

use std::fmt;

use super::{Namespaces, StepContext};
use crate::limits;
use jitney_base::ids::EntityId;
use jitney_queue::{Description, EntityKind};

/// The tier of a namespace, which the service's administration calls `MessagingSKU`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tier {
    /// Messages of 256 KB.
    Standard,
    /// Messages of 100 MB, where an entity allows it.
    #[default]
    Premium,
}

impl Tier {
    /// Returns the largest message that an entity may allow, bytes.
    #[must_use]
    pub const fn message_size_max(self) -> u64 {
        match self {
            Self::Standard => jitney_base::limits::MESSAGE_SIZE_STANDARD,
            Self::Premium => jitney_base::limits::MESSAGE_SIZE_MAX,
        }
    }

    /// Returns the most messages that one batch-delete takes.
    #[must_use]
    pub const fn batch_delete_max(self) -> usize {
        match self {
            Self::Standard => limits::BATCH_DELETE_STANDARD,
            Self::Premium => limits::BATCH_DELETE_MAX,
        }
    }

    /// Returns the largest message of an entity that sets no other, bytes.
    #[must_use]
    pub const fn message_size_default(self) -> u64 {
        match self {
            Self::Standard => jitney_base::limits::MESSAGE_SIZE_STANDARD,
            Self::Premium => jitney_message::limits::MESSAGE_SIZE_DEFAULT,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "Standard",
            Self::Premium => "Premium",
        })
    }
}

impl Namespaces {
    /// Puts a namespace into a tier. Entities that it has already and that allow larger messages
    /// than the tier does allow the tier's largest from now on.
    pub fn set_tier(&mut self, cx: &mut StepContext<'_>, namespace: &str, tier: Tier) {
        let prefix = self.prefix_of(namespace);
        self.directory.set_tier(prefix, tier);
        if tier == Tier::Premium {
            return;
        }
        let all: Vec<EntityId> = self
            .directory
            .entities()
            .map(|entity| entity.base)
            .collect();
        for base in all {
            let Some(node) = self.node(base) else {
                continue;
            };
            let is = node.queue.description();
            let mut limited = is.clone();
            self.limit_message_size(&node.address.path, &mut limited);
            if !limited.equals(is) {
                // A size is nothing that is fixed.
                let _ = self.change_entity(cx, base, limited);
            }
        }
    }

    /// Lowers the size of messages of an entity to what its namespace's tier allows. A subscription
    /// takes what its topic takes.
    pub(super) fn limit_message_size(&self, path: &str, description: &mut Description) {
        if description.kind != EntityKind::Subscription {
            let max = self.directory.tier_of(path).message_size_max();
            description.max_message_bytes = description.max_message_bytes.min(max);
        }
    }
}
