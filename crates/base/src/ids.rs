//! Identifiers of entities, messages, bodies and locks; and the random bits that lock tokens are
//! made of.

use std::fmt;

/// An entity in its namespace: a number that is never given to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub u32);

impl EntityId {
    /// Ids that belong to one entity: itself, its dead-letter queue, its transfer dead-letter queue.
    pub const PER_ENTITY: u32 = 3;

    /// Returns the entity's own id.
    #[must_use]
    pub const fn base(self) -> Self {
        Self(self.0 - self.0 % Self::PER_ENTITY)
    }

    /// Returns the entity's dead-letter queue.
    #[must_use]
    pub const fn dead_letters(self) -> Self {
        Self(self.base().0 + 1)
    }

    /// Returns the entity's transfer dead-letter queue: what a transaction sent by way of the entity, and its target refused.
    #[must_use]
    pub const fn transfer_dead_letters(self) -> Self {
        Self(self.base().0 + 2)
    }

    /// Returns all three.
    #[must_use]
    pub const fn all(self) -> [Self; 3] {
        [
            self.base(),
            self.dead_letters(),
            self.transfer_dead_letters(),
        ]
    }
}

/// A connection, for the life of the shard that serves it: never 0, and never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// A request of a client, answered once; never used twice in the life of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A job of an operator, in its shard: a number that is never given to another one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct JobId(pub u64);

/// A message's number in its entity: 1 is the first; the topmost 16 bits are the partition's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(pub u64);

/// The position of a message's bytes. Opaque: given out by a `Journal` of crate `queue`,
/// understood only by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BodyRef {
    /// The position.
    pub position: u64,
    /// The length in bytes.
    pub length: u32,
}

/// The token of a lock: its bearer may settle the message, over any link.
///
/// A UUID. Clients see it as the delivery-tag of a locked message, in the byte order of .NET's
/// `Guid`, and in management calls as an AMQP `uuid` in RFC 4122 order
/// (`receiving.md#lock-tokens`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockToken(u128);

impl LockToken {
    /// The nil UUID: that of a message which was removed when it was handed out, and has no lock.
    pub const NIL: Self = Self(0);

    /// Makes the token of the lock with this serial number in its entity.
    #[must_use]
    pub const fn new(serial: u64, nonce: u64) -> Self {
        Self((serial as u128) << 64 | nonce as u128)
    }

    /// Returns the lock's serial number in its entity.
    #[must_use]
    pub fn serial(self) -> u64 {
        u64::try_from(self.0 >> 64).expect("64 bits are left of 128")
    }

    /// Takes the bytes in RFC 4122 order, as in an AMQP `uuid`.
    #[must_use]
    pub const fn from_uuid(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Returns the bytes in RFC 4122 order.
    #[must_use]
    pub const fn to_uuid(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Takes a delivery-tag: the bytes in .NET's order.
    #[must_use]
    pub const fn from_tag(tag: [u8; 16]) -> Self {
        Self::from_uuid(swap(tag))
    }

    /// Returns the delivery-tag: the bytes in .NET's order.
    #[must_use]
    pub const fn to_tag(self) -> [u8; 16] {
        swap(self.to_uuid())
    }
}

impl fmt::Display for LockToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// .NET writes a `Guid`'s first three fields little-endian; the inverse is the same.
const fn swap(b: [u8; 16]) -> [u8; 16] {
    let [
        b0,
        b1,
        b2,
        b3,
        b4,
        b5,
        b6,
        b7,
        b8,
        b9,
        b10,
        b11,
        b12,
        b13,
        b14,
        b15,
    ] = b;
    [
        b3, b2, b1, b0, b5, b4, b7, b6, b8, b9, b10, b11, b12, b13, b14, b15,
    ]
}

/// The message-ids of messages whose senders gave them none, in one log: 128 bits, different for each message.
///
/// They are not recorded. They follow from the log's random number, which its files and rows have, and from the place of the
/// message. Within a log, different places have different ids, because each step of the mixture can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageIds {
    key: u128,
}

impl MessageIds {
    /// Takes the random number of a log.
    #[must_use]
    pub const fn of_log(store: u64) -> Self {
        let mut random = Random::new(store);
        let high = (random.next_u64() as u128) << 64;
        Self {
            key: high | random.next_u64() as u128,
        }
    }

    /// Returns the id of a message: the same in a queue and in the dead-letter queue of it.
    #[must_use]
    pub const fn id(self, queue: EntityId, number: SequenceNumber) -> [u8; 16] {
        // Odd, so that a multiplication can be undone: the bits of the golden ratio and of the square root of two.
        const FIRST: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
        const SECOND: u128 = 0x6A09_E667_F3BC_C908_B2FB_1366_EA95_7D3F;
        let place = (queue.base().0 as u128) << 64 | number.0 as u128;
        let mut id = place ^ self.key;
        id = (id ^ id >> 67).wrapping_mul(FIRST);
        id = (id ^ id >> 61).wrapping_mul(SECOND);
        id = (id ^ id >> 64).wrapping_mul(FIRST);
        (id ^ id >> 67).to_be_bytes()
    }
}

/// Random bits from a seed: `SplitMix64`.
///
/// The server seeds it from the system, a simulation from its own seed. It makes tokens that do
/// not collide; it keeps no secrets.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts a sequence.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_message_ids_differ_by_place_and_by_log() {
        let numbers = (0..200).chain([(1 << 48) + 1, 1 << 63, u64::MAX]);
        let numbers: Vec<u64> = numbers.collect();
        let mut seen = std::collections::BTreeSet::new();
        for log in [0, 1, u64::MAX] {
            let ids = MessageIds::of_log(log);
            for entity in [0, 3, 65_535, 65_536 * 3, u32::MAX - 3] {
                for &number in &numbers {
                    let id = ids.id(EntityId(entity), SequenceNumber(number));
                    assert!(seen.insert(id), "{log} {entity} {number}");
                }
            }
        }
        // Neighbours share no more bits than chance gives them.
        let ids = MessageIds::of_log(7);
        let bits = |number| u128::from_be_bytes(ids.id(EntityId(0), SequenceNumber(number)));
        let shared = (1..1_000).map(|number| (bits(number) ^ bits(number + 1)).count_ones());
        let mean = shared.sum::<u32>() / 999;
        assert!((60..=68).contains(&mean), "{mean} of 128 bits differ");
    }

    #[test]
    fn a_message_has_one_id_in_a_queue_and_in_its_dead_letters() {
        let ids = MessageIds::of_log(1);
        let queue = EntityId(9);
        let id = ids.id(queue, SequenceNumber(4));
        assert_eq!(ids.id(queue.dead_letters(), SequenceNumber(4)), id);
        assert_eq!(ids.id(queue.transfer_dead_letters(), SequenceNumber(4)), id);
    }

    #[test]
    fn a_tag_is_the_uuid_in_dot_net_order() {
        let uuid: [u8; 16] = std::array::from_fn(|i| u8::try_from(i * 0x11).unwrap());
        let token = LockToken::from_uuid(uuid);
        assert_eq!(
            token.to_tag(),
            [
                0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd,
                0xee, 0xff
            ]
        );
        assert_eq!(LockToken::from_tag(token.to_tag()), token);
    }
}
