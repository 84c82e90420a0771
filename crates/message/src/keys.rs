//! Keys that entities derive from a message: message session, partition, duplicate detection.

use super::{Amendments, Field, Message, Setting};
use jitney_amqp::codec::value::{binary, text};

/// FNV-1a with 128 bits: stable, and wide enough that two ids do not meet by chance.
struct Hash(u128);

impl Hash {
    const fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn write(mut self, bytes: &[u8]) -> Self {
        for &byte in bytes {
            self.0 ^= u128::from(byte);
            self.0 = self
                .0
                .wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
        self
    }
}

/// Within what two messages with one message-id are duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateScope {
    /// The whole entity.
    Entity,
    /// Messages with the same partition key, or without one: other ones are in other partitions.
    PartitionKey,
}

/// What decides the partition of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionedBy {
    /// Its session or its partition key.
    Keys,
    /// One of these, or else its message-id: duplicates have to meet in one partition.
    KeysOrMessageId,
}

impl Message {
    /// Returns the group-id: the message session's id.
    #[must_use]
    pub fn group_id(&self) -> Option<&str> {
        self.encoded_group_id().and_then(text)
    }

    /// Returns the annotation x-opt-partition-key.
    #[must_use]
    pub fn partition_key(&self) -> Option<&str> {
        self.annotation("x-opt-partition-key").and_then(text)
    }

    /// Returns the key for duplicate detection: the message-id, of whatever type, within a scope. `None` without a message-id.
    #[must_use]
    pub fn duplicate_key(&self, scope: DuplicateScope) -> Option<u128> {
        let key = match scope {
            DuplicateScope::Entity => None,
            DuplicateScope::PartitionKey => self.partition_key(),
        };
        Some(duplicate_key(self.message_id()?, key))
    }

    /// Returns the annotation x-opt-via-partition-key.
    #[must_use]
    pub fn via_partition_key(&self) -> Option<&str> {
        self.annotation("x-opt-via-partition-key").and_then(text)
    }

    /// Returns the hash of the via partition key: it decides the partition of the entity through
    /// which the message is sent to another one.
    #[must_use]
    pub fn via_partition_hash(&self) -> Option<u64> {
        self.via_partition_key().map(hash_key).map(fold)
    }

    /// Returns a number that decides the message's partition, where something in it does: the
    /// message session, else the partition key, else the via partition key, else the message-id if that decides.
    #[must_use]
    pub fn partition_hash(&self, by: PartitionedBy) -> Option<u64> {
        let key = self.group_id().or_else(|| self.partition_key());
        let key = key.or_else(|| self.via_partition_key());
        let id = match by {
            PartitionedBy::Keys => None,
            PartitionedBy::KeysOrMessageId => self.message_id(),
        };
        partition_hash(key, id)
    }
}

impl Amendments {
    /// Returns the key for duplicate detection of a message with these changes, as [`Message::duplicate_key`] does.
    #[must_use]
    pub fn duplicate_key_of(&self, message: &Message, scope: DuplicateScope) -> Option<u128> {
        let id = self.field_of(message, Field::MessageId)?;
        let key = match scope {
            DuplicateScope::Entity => None,
            DuplicateScope::PartitionKey => self.key_of(message, Setting::PartitionKey),
        };
        Some(duplicate_key(id, key))
    }

    /// Returns the number that decides the partition of a message with these changes, as [`Message::partition_hash`] does.
    #[must_use]
    pub fn partition_hash_of(&self, message: &Message, by: PartitionedBy) -> Option<u64> {
        let session = self.field_of(message, Field::SessionId).and_then(text);
        let key = session.or_else(|| self.key_of(message, Setting::PartitionKey));
        let key = key.or_else(|| self.key_of(message, Setting::ViaPartitionKey));
        let id = match by {
            PartitionedBy::Keys => None,
            PartitionedBy::KeysOrMessageId => self.field_of(message, Field::MessageId),
        };
        partition_hash(key, id)
    }

    fn key_of<'a>(&'a self, message: &'a Message, setting: Setting) -> Option<&'a str> {
        let value = self.setting(setting);
        value
            .or_else(|| message.annotation(setting.name()))
            .and_then(text)
    }
}

/// Returns the hash that decides the partition of what has a key, such as a message session.
#[must_use]
pub fn partition_hash_of_key(key: &str) -> u64 {
    fold(hash_key(key))
}

fn duplicate_key(id: &[u8], scope: Option<&str>) -> u128 {
    let hash = hash_id(Hash::new(), id).write(&[0xff]);
    hash.write(scope.unwrap_or_default().as_bytes()).0
}

fn partition_hash(key: Option<&str>, id: Option<&[u8]>) -> Option<u64> {
    let hash = match (key, id) {
        (Some(key), _) => hash_key(key),
        (None, Some(id)) => duplicate_key(id, None),
        (None, None) => return None,
    };
    Some(fold(hash))
}

fn hash_key(key: &str) -> u128 {
    Hash::new().write(key.as_bytes()).0
}

/// Brings all bits of a hash down to the lowest, which decide the partition: alone they know little
/// of short keys.
fn fold(hash: u128) -> u64 {
    let hash = hash ^ hash >> 64;
    let hash = hash ^ hash >> 32;
    let hash = hash ^ hash >> 16;
    let hash = hash ^ hash >> 8;
    u64::try_from((hash ^ hash >> 4) & u128::from(u64::MAX)).expect("64 bits are left")
}

/// The same id in a shorter or longer encoding is the same; one of another type is another.
fn hash_id(hash: Hash, id: &[u8]) -> Hash {
    if let Some(text) = text(id) {
        return hash.write(&[0xa1]).write(text.as_bytes());
    }
    if let Some(bytes) = binary(id) {
        return hash.write(&[0xa0]).write(bytes);
    }
    match id {
        [0x44] => hash.write(&[0x80]).write(&0_u64.to_be_bytes()),
        [0x53, small] => hash.write(&[0x80]).write(&u64::from(*small).to_be_bytes()),
        other => hash.write(other),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn short_keys_that_differ_little_go_to_many_partitions() {
        let partition = |n: u32| fold(Hash::new().write(format!("session-{n}").as_bytes()).0) % 16;
        let partitions: BTreeSet<u64> = (0..64).map(partition).collect();
        assert!(12 < partitions.len(), "{partitions:?}");
    }
}
