//! The owner's output for one connection.
//!
//! The owner never waits for a connection. The output is bounded by the connection's requests: the
//! credit and windows of its receivers, the windows of the connection for messages and for answers,
//! and one answer to each of its inputs, of which the owner's mailbox holds a bounded number.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use jitney_shard::{Backlog, Outgoing};

/// The owner's output for one connection.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: Mutex<VecDeque<Outgoing>>,
    filled: Notify,
    closing: Notify,
}

impl Outbox {
    /// Appends all of `outgoing`, in order. Returns what the connection has not taken yet of the
    /// previous output.
    pub(crate) fn put(&self, outgoing: &mut VecDeque<Outgoing>) -> Backlog {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let backlog = if waiting.is_empty() {
            std::mem::swap(&mut *waiting, outgoing);
            Backlog::Empty
        } else {
            waiting.append(outgoing);
            Backlog::Unwritten
        };
        drop(waiting);
        self.filled.notify_one();
        backlog
    }

    /// Takes all output; `into` must be empty, and its memory is reused.
    pub(crate) fn take(&self, into: &mut VecDeque<Outgoing>) {
        debug_assert!(into.is_empty(), "the contents would be lost");
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *waiting, into);
    }

    /// Marks the connection to be closed, after the output that waits here.
    pub(crate) fn close(&self) {
        self.closing.notify_one();
    }

    /// Waits until the connection is to be closed. Cancel-safe, like [`Outbox::filled`].
    pub(crate) async fn closing(&self) {
        self.closing.notified().await;
    }

    /// Waits for output. Cancel-safe: a notice stays.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }
}
