//! Bodies that are not in memory: what is read, for what, and what stays readable until then.

use bytes::Bytes;

use super::delivery::resolve;
use super::{Output, Shard, Store};
use crate::limits;
use jitney_base::ids::{BodyRef, ConnectionId, RequestId};
use jitney_base::time::Timestamp;
use jitney_broker::namespace::Damage;
use jitney_gateway::Reply;
use jitney_journal::{LogReader, Stretch};

/// Bodies to be read.
#[derive(Debug)]
pub struct ReadRequest {
    purpose: ReadPurpose,
    /// All bodies that are needed: pinned.
    wanted: Vec<BodyRef>,
    /// Those of them that are in memory: they may not be on the disk yet.
    cached: Vec<(BodyRef, Bytes)>,
    /// Those that are to be read.
    missing: Vec<BodyRef>,
    /// The position up to which the log may be read.
    until: u64,
}

impl ReadRequest {
    /// Makes a request for bodies none of which is in memory.
    #[must_use]
    pub fn new(purpose: ReadPurpose, wanted: Vec<BodyRef>, until: u64) -> Self {
        Self {
            purpose,
            missing: wanted.clone(),
            wanted,
            cached: Vec::new(),
            until,
        }
    }

    /// Returns what the bodies are needed for.
    #[must_use]
    pub fn purpose(&self) -> ReadPurpose {
        self.purpose
    }
}

/// The purpose of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadPurpose {
    /// Compaction appends them again.
    Compact,
    /// Their messages are forwarded, or are matched with selectors.
    Forward,
    /// They are delivered to a connection.
    Deliver(ConnectionId),
    /// One is handed to a receive without a link.
    Receive(RequestId),
    /// A job needs them.
    Job,
    /// A request is answered with them.
    Answer(RequestId),
}

/// Bodies that were read.
#[derive(Debug)]
pub struct ReadDone {
    purpose: ReadPurpose,
    wanted: Vec<BodyRef>,
    cached: Vec<(BodyRef, Bytes)>,
    stretches: Vec<Stretch>,
    /// Bodies that are not what was written.
    damages: Vec<Damage>,
}

impl ReadDone {
    /// Returns a body's bytes, if it is what was written.
    pub(super) fn body(&self, body: BodyRef) -> Option<Bytes> {
        let read = || self.stretches.iter().find_map(|read| read.body(body));
        self.cached(body).or_else(read)
    }

    /// Returns a body's bytes as [`ReadDone::body`] does, to be kept for as long as it takes.
    pub(super) fn keep(&self, body: BodyRef) -> Option<Bytes> {
        let read = || self.stretches.iter().find_map(|read| read.keep(body));
        self.cached(body).or_else(read)
    }

    fn cached(&self, body: BodyRef) -> Option<Bytes> {
        let found = self.cached.iter().find(|(cached, _)| *cached == body)?;
        Some(found.1.clone())
    }

    /// Returns what is wrong with a body, if it is damaged.
    pub(super) fn damage_of(&self, body: BodyRef) -> Option<&Damage> {
        self.damages.iter().find(|damage| damage.body == body)
    }
}

/// Reads every body of a request that is what was written; one stretch serves all the bodies that lie
/// in it.
///
/// # Errors
///
/// The log cannot be read, for a reason that concerns more than one body.
pub fn read(log: &dyn LogReader, request: ReadRequest) -> Result<ReadDone, jitney_journal::Error> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut damages = Vec::new();
    let wanted = &request.missing;
    for (at, &body) in wanted.iter().enumerate() {
        let mut read = stretches.iter_mut().rev();
        if read.any(|read| read.serves(body) && read.body(body).is_some()) {
            continue;
        }
        let ahead = match request.purpose {
            // A receiver wants the bodies behind it next.
            ReadPurpose::Deliver(_) | ReadPurpose::Receive(_) => limits::READ_AHEAD_BYTES,
            ReadPurpose::Compact
            | ReadPurpose::Forward
            | ReadPurpose::Job
            | ReadPurpose::Answer(_) => gap(wanted.get(at + 1..).unwrap_or_default(), body),
        };
        match jitney_journal::read_ahead(log, body, ahead, request.until) {
            Ok(stretch) => stretches.push(stretch),
            Err(error @ jitney_journal::Error::Body { .. }) => {
                let place = error.to_string();
                damages.push(Damage { body, place });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(ReadDone {
        purpose: request.purpose,
        wanted: request.wanted,
        cached: request.cached,
        stretches,
        damages,
    })
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

/// Room for the checksum behind a body, bytes.
const READ_SLACK: usize = 16;

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

/// Calls `visit` with each body whose bytes a reply needs.
pub(super) fn for_each_body(reply: &Reply, mut visit: impl FnMut(BodyRef)) {
    match reply {
        Reply::Deliver(_, handover) => visit(handover.body),
        Reply::Respond(_, response) => response.bodies().for_each(visit),
        Reply::AcceptLink(..)
        | Reply::RefuseLink(..)
        | Reply::Drained(..)
        | Reply::SettleIncoming { .. }
        | Reply::ReturnCredit(_)
        | Reply::SettleOutgoing(..)
        | Reply::Detach(..)
        | Reply::Authenticated(_)
        | Reply::Admitted
        | Reply::Close(_) => {}
    }
}

impl Shard {
    /// Asks for bodies. Their segments stay until they are read, whatever becomes of their messages.
    pub(super) fn read(&mut self, purpose: ReadPurpose, wanted: Vec<BodyRef>) {
        let until = self.journal.readable_until();
        let (mut cached, mut missing) = (Vec::new(), Vec::new());
        for &body in &wanted {
            self.journal.pin(body);
            match self.journal.cached(body) {
                Some(bytes) => cached.push((body, bytes)),
                None => {
                    debug_assert!(body.position < until, "{body:?} is nowhere yet");
                    missing.push(body);
                }
            }
        }
        self.outputs.push_back(Output::Read(ReadRequest {
            purpose,
            wanted,
            cached,
            missing,
            until,
        }));
    }

    /// Takes bodies that were read.
    pub(super) fn take_read(&mut self, now: Timestamp, done: ReadDone) {
        for &body in &done.wanted {
            self.journal.unpin(body);
        }
        match done.purpose {
            ReadPurpose::Deliver(id) => self.deliver_read(now, id, done),
            ReadPurpose::Receive(request) => self.receive_read(now, request, done),
            ReadPurpose::Compact => self.relocate(now, &done),
            ReadPurpose::Forward => self.forward_read(now, &done),
            ReadPurpose::Job => self.job_read(now, &done),
            ReadPurpose::Answer(request) => self.answer_read(request, &done),
        }
    }

    /// Releases a connection's held replies whose bodies were read.
    fn deliver_read(&mut self, now: Timestamp, id: ConnectionId, done: ReadDone) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if self.store != Store::Here {
            connection.reads_again = true;
            return;
        }
        let backlog = connection.backlog;
        let mut held = std::mem::take(&mut connection.held);
        let mut hits = Vec::new();
        while let Some(routed) = held.pop_front() {
            for_each_body(&routed.reply, |body| self.journal.unpin(body));
            match resolve(&self.journal, Some(&done), backlog, routed) {
                Ok(outgoing) => self.queue(id, outgoing),
                Err(routed) => match self.hit(routed, &done.damages, held.iter()) {
                    Ok(hit) => hits.push(hit),
                    Err(routed) => {
                        for_each_body(&routed.reply, |body| self.journal.pin(body));
                        held.push_front(*routed);
                        break;
                    }
                },
            }
        }
        let damages = self.keep_stretches(done);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.held = held;
            if !connection.held.is_empty() {
                self.read_for(id);
            }
        }
        // The replies about damaged bodies come after those that are held.
        for hit in hits {
            self.contain(now, hit, &damages);
        }
    }

    /// Puts what was read into the cache; returns what was damaged.
    pub(super) fn keep_stretches(&mut self, done: ReadDone) -> Vec<Damage> {
        for stretch in done.stretches {
            self.journal.insert_read(stretch);
        }
        done.damages
    }
}
