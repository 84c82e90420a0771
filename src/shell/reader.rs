//! The reader: the thread that reads bodies which are no longer in memory.

use std::sync::mpsc;

use super::committer::SharedDisk;
use super::logging;
use super::mailbox::Mail;
use super::supervisor::{self, Thread};
use crate::broker::{ConnectionId, Damage};
use crate::entity::BodyRef;
use crate::limits;
use crate::storage::{self, Stretch};

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
    /// Messages that go on from one entity to another.
    SendOn,
    /// A connection's deliveries.
    Deliver(ConnectionId),
}

/// What was read.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) purpose: Purpose,
    pub(super) wanted: Vec<BodyRef>,
    pub(super) stretches: Vec<Stretch>,
    /// Bodies that are not what was written.
    pub(super) damages: Vec<Damage>,
}

impl Done {
    /// Returns what is wrong with a body, if it is damaged.
    pub(super) fn damage_of(&self, body: BodyRef) -> Option<&Damage> {
        self.damages.iter().find(|damage| damage.body == body)
    }
}

/// The owner's hold on the reader's thread.
pub(super) struct Reader {
    requests: mpsc::Sender<Request>,
    thread: Thread,
}

impl Drop for Reader {
    /// The thread ends when it has done what was asked of it; nobody waits for that.
    fn drop(&mut self) {
        self.thread.allow_end();
    }
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
                let (stretches, damages) = read(&disk, &request);
                let done = Done {
                    purpose: request.purpose,
                    wanted: request.wanted,
                    stretches,
                    damages,
                };
                // The owner has gone only when it stops, and then there are no requests any more.
                let _ = owner.blocking_send(Mail::Read(done));
            }
        };
        let thread = supervisor::spawn_thread("reader", work)?;
        Ok(Self { requests, thread })
    }

    /// Asks for bytes. The requests waiting are at most one for each connection, and one more.
    pub(super) fn read(&self, request: Request) {
        // The thread ends only after this `Reader`, or ends the process.
        let _ = self.requests.send(request);
    }
}

/// Returns how many bytes are read for a body: what lies behind it too, if it is not in the stretch
/// that is read from `start` on. Then the next stretch starts with it.
pub(super) fn cost(start: &mut Option<u64>, body: BodyRef) -> usize {
    let ahead = u64::try_from(limits::READ_AHEAD_BYTES).unwrap_or(u64::MAX);
    let end = body.position.saturating_add(u64::from(body.length));
    let is_read = start.is_some_and(|start| start <= body.position && end <= start + ahead);
    if is_read {
        return 0;
    }
    *start = Some(body.position);
    let length = usize::try_from(body.length).unwrap_or(usize::MAX);
    length.saturating_add(limits::READ_AHEAD_BYTES)
}

/// Reads every body that is what was written; one stretch serves all the bodies that lie in it.
fn read(disk: &SharedDisk, request: &Request) -> (Vec<Stretch>, Vec<Damage>) {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut damages = Vec::new();
    let wanted = &request.wanted;
    for (at, &body) in wanted.iter().enumerate() {
        let mut read = stretches.iter_mut().rev();
        if read.any(|read| read.serves(body) && read.body(body).is_some()) {
            continue;
        }
        let ahead = match request.purpose {
            // Who receives wants what is behind it next.
            Purpose::Deliver(_) => limits::READ_AHEAD_BYTES,
            Purpose::Compact | Purpose::SendOn => {
                gap(wanted.get(at + 1..).unwrap_or_default(), body)
            }
        };
        match storage::read_ahead(&**disk, body, ahead, request.until) {
            Ok(stretch) => stretches.push(stretch),
            Err(error @ storage::Error::Body { .. }) => {
                let place = error.to_string();
                damages.push(Damage { body, place });
            }
            Err(error) => {
                logging::fatal(format_args!(
                    "the log cannot be read; the broker ends: {error}"
                ));
                std::process::exit(1);
            }
        }
    }
    (stretches, damages)
}

/// Returns how many bytes behind a body have what is wanted next: none, if that is far away.
fn gap(next: &[BodyRef], body: BodyRef) -> usize {
    let end = |body: BodyRef| body.position + u64::from(body.length);
    let near = next.iter().map_while(|next| {
        let ahead = usize::try_from(end(*next).checked_sub(end(body))?).ok()?;
        (ahead <= limits::READ_AHEAD_BYTES).then_some(ahead)
    });
    near.last().map_or(0, |ahead| ahead + READ_SLACK)
}

/// Room for the sum behind a body.
const READ_SLACK: usize = 16;
