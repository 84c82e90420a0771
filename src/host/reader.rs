//! The reader: the thread that reads bodies which are no longer in memory.

use std::sync::{Arc, mpsc};

use super::owner_message::OwnerMessage;
use crate::system::logging;
use crate::system::supervisor::{self, Thread};
use jitney_journal::LogReader;
use jitney_shard::{Input, ReadDone, ReadRequest};

/// The owner's handle of the reader's thread.
pub(crate) struct Reader {
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
    /// Starts the thread; it ends when its `Reader` is dropped. When the log cannot be read, `failed` is called, and later requests
    /// get no answer: the owner ends soon.
    pub(crate) fn start(
        log: Arc<dyn LogReader>,
        owner: tokio::sync::mpsc::Sender<OwnerMessage>,
        failed: impl FnOnce(jitney_journal::Error) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (requests, taken) = mpsc::channel::<ReadRequest>();
        let read = move |request| jitney_shard::read(&*log, request);
        let work = move || serve(&taken, &owner, read, failed);
        let thread = supervisor::spawn_thread("reader", work)?;
        Ok(Self { requests, thread })
    }

    /// Ends the process: the log in a directory cannot be read.
    pub(crate) fn end(error: jitney_journal::Error) {
        logging::fatal(format_args!(
            "the log cannot be read; the broker ends: {error}"
        ));
        std::process::exit(1);
    }

    /// Requests bodies. At most one request for each connection waits, and one more.
    pub(crate) fn read(&self, request: ReadRequest) {
        // The thread ends only after this `Reader`, or ends the process.
        let _ = self.requests.send(request);
    }
}

/// Reads what is requested, until the requests end.
fn serve(
    requests: &mpsc::Receiver<ReadRequest>,
    owner: &tokio::sync::mpsc::Sender<OwnerMessage>,
    read: impl Fn(ReadRequest) -> Result<ReadDone, jitney_journal::Error>,
    failed: impl FnOnce(jitney_journal::Error),
) {
    while let Ok(request) = requests.recv() {
        match read(request) {
            // The owner ends only at the stop, and then there are no requests.
            Ok(done) => drop(owner.blocking_send(OwnerMessage::Input(Input::Read(done)))),
            Err(error) => {
                failed(error);
                break;
            }
        }
    }
    // A thread that ends before its owner ends the process, with all other namespaces.
    while requests.recv().is_ok() {}
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use jitney_shard::ReadPurpose;

    #[test]
    fn a_log_that_cannot_be_read_is_reported_once_and_does_not_end_the_thread() {
        let (sender, requests) = mpsc::channel();
        let (owner, _mailbox) = tokio::sync::mpsc::channel(1);
        for _ in 0..3 {
            sender
                .send(ReadRequest::new(ReadPurpose::Compact, Vec::new(), 0))
                .unwrap();
        }
        drop(sender);
        let (reads, told) = (RefCell::new(0), RefCell::new(Vec::new()));
        let read = |_| {
            *reads.borrow_mut() += 1;
            Err(jitney_journal::Error::Fenced)
        };
        serve(&requests, &owner, read, |error| {
            told.borrow_mut().push(error.to_string());
        });
        assert_eq!((*reads.borrow(), told.borrow().len()), (1, 1));
        let rest = requests.try_recv();
        assert!(matches!(rest, Err(mpsc::TryRecvError::Disconnected)));
    }
}
