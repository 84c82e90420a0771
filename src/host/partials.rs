//! Bytes of messages that are not whole yet, which all connections have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of messages that are not whole yet, of all connections.
#[derive(Debug, Clone)]
pub(crate) struct PartialBytes {
    all: Arc<AtomicUsize>,
    max: usize,
}

impl PartialBytes {
    /// Takes how many bytes all connections may have together.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            all: Arc::default(),
            max,
        }
    }

    /// Returns a new connection's part.
    pub(crate) fn part(&self) -> Partials {
        Partials {
            all: Arc::clone(&self.all),
            max: self.max,
            own: 0,
        }
    }
}

/// A connection's share of the bytes of messages that are partially received, or wait to be sent to
/// the owner.
#[derive(Debug)]
pub(crate) struct Partials {
    all: Arc<AtomicUsize>,
    max: usize,
    own: usize,
}

impl Partials {
    /// Returns how many bytes this connection may have.
    pub(crate) fn room(&self) -> usize {
        let others = self.all.load(Ordering::Relaxed).saturating_sub(self.own);
        self.max.saturating_sub(others)
    }

    /// Sets how many it has.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes != self.own {
            self.all.fetch_add(bytes, Ordering::Relaxed);
            self.all.fetch_sub(self.own, Ordering::Relaxed);
            self.own = bytes;
        }
    }
}

impl Drop for Partials {
    fn drop(&mut self) {
        self.set(0);
    }
}
