//! The runtime of a shard: one thread, on which the shard's owner and its connections are served.
//!
//! A message goes from its connection to the owner and back. Where all of them are on one thread, no thread is woken
//! for that, and nothing goes from one core to another (`docs/performance.md`). Handshakes, HTTP and
//! listeners are on the runtime that all shards share.

use std::io;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::supervisor::{self, Thread};

/// A thread with a runtime, which ends when this is dropped. Tasks that it has then are dropped.
#[derive(Debug)]
pub(crate) struct ShardRuntime {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<Thread>,
}

impl ShardRuntime {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the system has no thread or no descriptors for it.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let work = move || {
            // The sender never sends: the channel closes when it is dropped.
            let _ = runtime.block_on(ended);
        };
        let thread = supervisor::spawn_thread("shard", work)?;
        Ok(Self {
            handle,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Returns what starts tasks on it.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for ShardRuntime {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.allow_end();
            drop(self.end.take());
            thread.join();
        }
    }
}
