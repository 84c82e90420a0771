//! What the owner has for one connection.
//!
//! The owner never waits for a connection. What it leaves here is bounded by what the connection
//! may ask for: the credit and windows of its receivers, the windows of the connection for messages
//! and for answers, and one answer to each of its inputs, of which the owner's mailbox holds a
//! bounded number.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::shard::Outgoing;

/// What the owner has for one connection.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: Mutex<VecDeque<Outgoing>>,
    filled: Notify,
    closing: Notify,
}

impl Outbox {
    /// Leaves all that is in `outgoing`, in order. Returns whether the connection is behind: it has
    /// not taken yet what was left before.
    pub(super) fn put(&self, outgoing: &mut VecDeque<Outgoing>) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_behind = !waiting.is_empty();
        if is_behind {
            waiting.append(outgoing);
        } else {
            std::mem::swap(&mut *waiting, outgoing);
        }
        drop(waiting);
        self.filled.notify_one();
        is_behind
    }

    /// Takes all there is; `into` must be empty, and its memory is put to use again.
    pub(super) fn take(&self, into: &mut VecDeque<Outgoing>) {
        debug_assert!(into.is_empty(), "what is there would be lost");
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *waiting, into);
    }

    /// Says that the connection is to be closed, behind what waits here.
    pub(super) fn close(&self) {
        self.closing.notify_one();
    }

    /// Waits until the connection is to be closed. Safe to drop, as [`Outbox::filled`].
    pub(super) async fn closing(&self) {
        self.closing.notified().await;
    }

    /// Waits until something is left here. Safe to drop: a notice that came stays.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }
}
