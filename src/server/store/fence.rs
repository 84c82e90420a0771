//! The right to append to a namespace's log: its epoch and its owner, a random number of each acquisition.
//!
//! Every statement that changes something of a namespace names both, and changes nothing if another server has
//! taken the namespace meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};

use aws_lc_rs::rand;

use super::ownership::Owned;

/// The fence of a namespace that this server owns.
#[derive(Debug)]
pub(in crate::server) struct Fence {
    namespace: i64,
    /// For the log of the server.
    name: String,
    /// The number of the log's store, with which its checksums begin.
    log_store: u64,
    current: Mutex<Current>,
}

#[derive(Debug, Clone)]
struct Current {
    epoch: i64,
    owner: String,
    /// Another server has it.
    is_lost: bool,
}

impl Fence {
    pub(super) fn new(namespace: &Owned, epoch: i64, owner: String) -> Self {
        Self {
            namespace: namespace.id,
            name: namespace.name.clone(),
            log_store: namespace.log_store,
            current: Mutex::new(Current {
                epoch,
                owner,
                is_lost: false,
            }),
        }
    }

    pub(super) fn namespace(&self) -> i64 {
        self.namespace
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn log_store(&self) -> u64 {
        self.log_store
    }

    /// Returns the epoch and the owner.
    pub(super) fn current(&self) -> (i64, String) {
        let current = self.locked();
        (current.epoch, current.owner.clone())
    }

    /// Sets the epoch and the owner, after this server has raised them.
    pub(super) fn raise(&self, epoch: i64, owner: String) {
        let mut current = self.locked();
        (current.epoch, current.owner) = (epoch, owner);
    }

    /// Returns whether another server has the namespace.
    pub(in crate::server) fn is_lost(&self) -> bool {
        self.locked().is_lost
    }

    /// Records that another server has the namespace.
    pub(super) fn lose(&self) {
        self.locked().is_lost = true;
    }

    fn locked(&self) -> MutexGuard<'_, Current> {
        // No state here is partial when a thread panics.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a random identifier, as the database writes it.
pub(super) fn random_uuid() -> String {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).expect("the provider of cryptography has random bits");
    // Version 4, variant 1 (RFC 9562 section 5.4).
    let mut value = u128::from_be_bytes(bytes);
    value = (value & !(0xf << 76)) | (0x4 << 76);
    value = (value & !(0x3 << 62)) | (0x2 << 62);
    let hex = format!("{value:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)]
        .map(|(from, to)| part(from, to))
        .join("-")
}

/// Makes a random number.
pub(super) fn random_id() -> i64 {
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
