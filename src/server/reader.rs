//! The reader: the thread that reads bodies which are no longer in memory.

use std::sync::mpsc;

use super::committer::SharedDisk;
use super::logging;
use super::mailbox::Mail;
use super::supervisor::{self, Thread};
use crate::journal;
use crate::shard::{self, Input, ReadRequest};

/// The owner's handle of the reader's thread.
pub(super) struct Reader {
    requests: mpsc::Sender<ReadRequest>,
    thread: Thread,
}

impl Drop for Reader {
    /// The thread ends after its last request; nothing waits for that.
    fn drop(&mut self) {
        self.thread.allow_end();
    }
}

impl Reader {
    /// Starts the thread; it ends when its `Reader` is dropped, or when the log cannot be read: then `failed` is called.
    pub(super) fn start(
        disk: SharedDisk,
        owner: tokio::sync::mpsc::Sender<Mail>,
        failed: impl FnOnce(journal::Error) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (requests, taken) = mpsc::channel::<ReadRequest>();
        let work = move || {
            for request in taken {
                match shard::read(&*disk, request) {
                    // The owner ends only at the stop, and then there are no requests.
                    Ok(done) => drop(owner.blocking_send(Mail::Input(Input::Read(done)))),
                    Err(error) => return failed(error),
                }
            }
        };
        let thread = supervisor::spawn_thread("reader", work)?;
        Ok(Self { requests, thread })
    }

    /// Ends the process: the log in a directory cannot be read.
    pub(super) fn end(error: journal::Error) {
        logging::fatal(format_args!(
            "the log cannot be read; the broker ends: {error}"
        ));
        std::process::exit(1);
    }

    /// Requests bodies. At most one request for each connection waits, and one more.
    pub(super) fn read(&self, request: ReadRequest) {
        // The thread ends only after this `Reader`, or ends the process.
        let _ = self.requests.send(request);
    }
}
