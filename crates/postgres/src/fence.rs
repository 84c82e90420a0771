//! The right to append to a namespace's log: its epoch and its owner, a random number of each acquisition.
//!
//! Every statement that changes something of a namespace names both, and changes nothing if another server has
//! taken the namespace meanwhile.

use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aws_lc_rs::rand;
use bytes::{BufMut as _, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use jitney_journal::appender::Claim;

/// A namespace, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// Its number in the store.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// The number of the log's store, with which its checksums begin.
    pub log_store: u64,
    /// How often it was claimed.
    pub epoch: i64,
}

/// The fence of a namespace that this server owns.
#[derive(Debug)]
pub struct Fence {
    namespace: i64,
    /// For the log of the server.
    name: String,
    /// The number of the log's store, with which its checksums begin.
    log_store: u64,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    claim: Claim,
    /// Another server has it.
    is_lost: bool,
}

impl Fence {
    /// Makes the fence of a namespace that was claimed.
    #[must_use]
    pub fn new(namespace: &Owned, claim: Claim) -> Self {
        Self {
            namespace: namespace.id,
            name: namespace.name.clone(),
            log_store: namespace.log_store,
            current: Mutex::new(Current {
                claim,
                is_lost: false,
            }),
        }
    }

    /// Returns the number of the namespace in the store.
    pub fn namespace(&self) -> i64 {
        self.namespace
    }

    /// Returns the name of the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the log's store.
    pub fn log_store(&self) -> u64 {
        self.log_store
    }

    /// Returns the epoch and the owner.
    pub fn claim(&self) -> Claim {
        self.locked().claim
    }

    /// Returns the epoch and the owner, as statements have them.
    pub fn current(&self) -> (i64, Uuid) {
        let claim = self.claim();
        (claim.epoch, Uuid(claim.owner))
    }

    /// Sets the epoch and the owner that the store has now.
    pub fn set(&self, claim: Claim) {
        self.locked().claim = claim;
    }

    /// Returns whether another server has the namespace.
    pub fn is_lost(&self) -> bool {
        self.locked().is_lost
    }

    /// Records that another server has the namespace.
    pub fn lose(&self) {
        self.locked().is_lost = true;
    }

    fn locked(&self) -> MutexGuard<'_, Current> {
        // No state here is partial when a thread panics.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An identifier, as the database has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uuid(pub u128);

impl ToSql for Uuid {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_u128(self.0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Uuid {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(u128::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }
}

/// Makes random bits.
#[must_use]
pub fn random_bits() -> u128 {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).expect("the provider of cryptography has random bits");
    u128::from_be_bytes(bytes)
}

/// Makes a random identifier, as the database writes it.
#[must_use]
pub fn random_uuid() -> String {
    // Version 4, variant 1 (RFC 9562 section 5.4).
    let mut value = random_bits();
    value = (value & !(0xf << 76)) | (0x4 << 76);
    value = (value & !(0x3 << 62)) | (0x2 << 62);
    let hex = format!("{value:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)]
        .map(|(from, to)| part(from, to))
        .join("-")
}

/// Makes a random number.
#[must_use]
pub fn random_id() -> i64 {
    let mut bytes = [0; 8];
    rand::fill(&mut bytes).expect("the provider of cryptography has random bits");
    i64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_identifier_is_of_version_4() {
        let one = random_uuid();
        assert_eq!(one.len(), 36);
        assert_eq!(one.as_bytes()[14], b'4', "{one}");
        assert!(b"89ab".contains(&one.as_bytes()[19]), "{one}");
        assert_ne!(one, random_uuid());
    }
}
