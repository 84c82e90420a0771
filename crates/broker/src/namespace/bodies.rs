//! Bytes that several messages share: a topic's message is stored once, for all its subscriptions,
//! and counts once to what the topic holds. And messages whose bytes are in memory.

use std::collections::{BTreeMap, BTreeSet};

use super::recovery::FoundBody;
use jitney_base::ids::{BodyRef, EntityId};
use jitney_message::Message;

/// The bytes of messages that came through a topic, and who has them.
#[derive(Debug, Default)]
pub(super) struct SharedBodies {
    /// By the bytes' position.
    all: BTreeMap<u64, Shared>,
    /// Bytes that lie in a topic's subscriptions, or were forwarded from there.
    held: BTreeMap<EntityId, u64>,
    /// Shared bytes that a compaction has moved, by their old position: where one message has them now.
    moved: BTreeMap<u64, FoundBody>,
    /// Topics that hold less than when these were taken last.
    lessened: BTreeSet<EntityId>,
}

#[derive(Debug, Clone, Copy)]
struct Shared {
    /// Messages that have these bytes.
    count: u32,
    /// The topic, if it is there still.
    topic: Option<EntityId>,
}

/// The memory of one counter, in a tree's node that is half full.
const SHARED_BYTES: usize = 44;

/// Messages that have just come, or were just read, by their bytes' positions.
#[derive(Debug, Default)]
pub(super) struct LoadedBodies {
    /// Ascending.
    messages: Vec<(u64, Message)>,
}

/// Messages for which room is kept.
const LOADED_KEPT: usize = 256;

impl LoadedBodies {
    pub(super) fn insert(&mut self, position: u64, message: Message) {
        let before = |&(other, _): &(u64, Message)| other < position;
        // Nearly always the last.
        if self.messages.last().is_none_or(before) {
            self.messages.push((position, message));
        } else {
            let at = self.messages.partition_point(before);
            self.messages.insert(at, (position, message));
        }
    }

    pub(super) fn get(&self, position: u64) -> Option<&Message> {
        let found = self.messages.binary_search_by_key(&position, |(at, _)| *at);
        Some(&self.messages.get(found.ok()?)?.1)
    }

    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.messages.shrink_to(LOADED_KEPT);
    }
}

impl SharedBodies {
    /// Counts the message of a topic that one subscription alone gets.
    pub(super) fn share(&mut self, body: BodyRef, topic: EntityId) {
        self.share_with(body, topic, 0);
    }

    /// Counts a copy that a subscription gets of a message which the topic keeps meanwhile: two have its bytes.
    pub(super) fn share_copy(&mut self, body: BodyRef, topic: EntityId) {
        self.share_with(body, topic, 1);
    }

    fn share_with(&mut self, body: BodyRef, topic: EntityId, more: u32) {
        if let Some(shared) = self.all.get_mut(&body.position) {
            shared.count += more;
        } else {
            self.add(body, 1 + more, Some(topic));
        }
    }

    /// Counts one message that has shared bytes in another place now. The old place's count is for
    /// [`SharedBodies::release`].
    pub(super) fn relocate(&mut self, old: BodyRef, new: BodyRef) {
        let Some(topic) = self.all.get(&old.position).map(|shared| shared.topic) else {
            return;
        };
        if let Some(shared) = self.all.get_mut(&new.position) {
            shared.count += 1;
        } else {
            self.add(new, 1, topic);
        }
    }

    /// Counts one message less; returns whether none is left.
    pub(super) fn release(&mut self, body: BodyRef) -> bool {
        let Some(shared) = self.all.get_mut(&body.position) else {
            return true;
        };
        shared.count -= 1;
        if shared.count > 0 {
            return false;
        }
        let topic = shared.topic;
        self.all.remove(&body.position);
        if let Some(topic) = topic
            && let Some(held) = self.held.get_mut(&topic)
        {
            *held = held.saturating_sub(u64::from(body.length));
            self.lessened.insert(topic);
        }
        true
    }

    /// Returns whether topics hold less than when they were taken last.
    pub(super) fn are_lessened(&self) -> bool {
        !self.lessened.is_empty()
    }

    /// Takes the topics that hold less than when they were taken last.
    pub(super) fn take_lessened(&mut self) -> BTreeSet<EntityId> {
        std::mem::take(&mut self.lessened)
    }

    /// Returns whether more than one message has these bytes.
    pub(super) fn is_shared(&self, body: BodyRef) -> bool {
        let shared = self.all.get(&body.position);
        shared.is_some_and(|shared| 1 < shared.count)
    }

    /// Returns the bytes that a topic's subscriptions hold, each message's once.
    pub(super) fn held(&self, topic: EntityId) -> u64 {
        self.held.get(&topic).copied().unwrap_or_default()
    }

    /// Counts a message that was found after a recovery; with the topic whose subscription has it.
    pub(super) fn restore(&mut self, body: BodyRef, topic: Option<EntityId>) {
        if let Some(shared) = self.all.get_mut(&body.position) {
            shared.count += 1;
        } else {
            self.add(body, 1, topic);
        }
    }

    /// Remembers where a compaction has put shared bytes: one message has them there.
    pub(super) fn note_moved(&mut self, old: BodyRef, now: FoundBody) {
        self.moved.insert(old.position, now);
    }

    /// Returns a message that has shared bytes in their new place.
    pub(super) fn moved(&self, old: BodyRef) -> Option<FoundBody> {
        self.moved.get(&old.position).copied()
    }

    /// Forgets where shared bytes were moved: the compaction's search is over.
    pub(super) fn end_search(&mut self) {
        self.moved.clear();
    }

    /// Returns the bytes that it takes, about.
    pub(super) fn memory(&self) -> usize {
        self.all.len() * SHARED_BYTES
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.held.clear();
    }

    fn add(&mut self, body: BodyRef, count: u32, topic: Option<EntityId>) {
        self.all.insert(body.position, Shared { count, topic });
        if let Some(topic) = topic {
            *self.held.entry(topic).or_default() += u64::from(body.length);
        }
    }
}
