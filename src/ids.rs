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

    /// Returns the entity's transfer dead-letter queue: messages that could not be forwarded.
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

/// A connection, for the life of the shard that serves it; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// A job of an operator, in its shard: a number that is never given to another one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct JobId(pub u64);

/// A message's number in its entity: 1 is the first; the topmost 16 bits are the partition's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(pub u64);

/// The position of a message's bytes. Opaque: given out by a [`Journal`](crate::queue::Journal),
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
    /// Makes the token of the lock with this serial number in its entity.
    pub(crate) const fn new(serial: u64, nonce: u64) -> Self {
        Self((serial as u128) << 64 | nonce as u128)
    }

    /// Returns the lock's serial number in its entity.
    pub(crate) fn serial(self) -> u64 {
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
