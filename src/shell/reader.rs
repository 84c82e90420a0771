//! The reader: the thread that reads bodies which are no longer in memory.

use std::sync::mpsc;
use std::thread;

use bytes::Bytes;
use tracing::error;

use super::committer::SharedDisk;
use super::owner::Mail;
use crate::broker::ConnectionId;
use crate::entity::BodyRef;
use crate::storage;

/// What to read, and for whom.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) purpose: Purpose,
    pub(super) wanted: Vec<BodyRef>,
    /// Up to where the log may be read.
    pub(super) until: u64,
}

/// Who wants bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// The compaction.
    Compact,
    /// A connection's deliveries.
    Deliver(ConnectionId),
}

/// What was read.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) purpose: Purpose,
    pub(super) chunks: Vec<Chunk>,
}

/// A stretch of the log.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) position: u64,
    pub(super) bytes: Bytes,
}

impl Chunk {
    /// Returns a body's bytes, if they are all in here.
    pub(super) fn slice(&self, body: BodyRef) -> Option<Bytes> {
        let start = usize::try_from(body.position.checked_sub(self.position)?).ok()?;
        let end = start.checked_add(usize::try_from(body.length).ok()?)?;
        (end <= self.bytes.len()).then(|| self.bytes.slice(start..end))
    }
}

/// The owner's hold on the reader's thread.
pub(super) struct Reader {
    requests: mpsc::Sender<Request>,
}

impl Reader {
    /// Starts the thread; it ends when its `Reader` is dropped.
    pub(super) fn start(
        disk: SharedDisk,
        owner: tokio::sync::mpsc::Sender<Mail>,
    ) -> std::io::Result<Self> {
        let (requests, taken) = mpsc::channel::<Request>();
        let work = move || {
            for request in taken {
                let chunks = read(&disk, &request.wanted, request.until);
                let done = Done {
                    purpose: request.purpose,
                    chunks,
                };
                if owner.blocking_send(Mail::Read(done)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("reader".to_owned())
            .spawn(work)?;
        Ok(Self { requests })
    }

    /// Asks for bytes. The requests waiting are at most one for each connection, and one more.
    pub(super) fn read(&self, request: Request) {
        // The thread ends only after this `Reader`.
        let _ = self.requests.send(request);
    }
}

/// Reads every body; one stretch serves all the bodies that lie in it.
fn read(disk: &SharedDisk, wanted: &[BodyRef], until: u64) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for &body in wanted {
        if chunks.iter().rev().any(|chunk| chunk.slice(body).is_some()) {
            continue;
        }
        match storage::read_ahead(&**disk, body, until) {
            Ok((position, bytes)) => chunks.push(Chunk { position, bytes }),
            Err(error) => {
                error!(%error, "the log cannot be read; the broker ends");
                std::process::exit(1);
            }
        }
    }
    chunks
}
