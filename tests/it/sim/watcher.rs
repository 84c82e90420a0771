//! A shard's observer: what it does, in its order, as its clients will read it.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use jitney::gateway::Reply;
use jitney::ids::BodyRef;
use jitney::ids::ConnectionId;
use jitney::journal::{self, Writer};
use jitney::namespace::{Room, WantedBody};
use jitney::shard::{Cause, Event, Observer};

use super::audit::Sight;
use super::disk::FaultyDisk;
use super::sights::{answered, look};
use super::wire::sent_id;

/// What a shard's observer has seen, in its order.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Vec<Happened>>>);

pub(super) enum Happened {
    Step(Step),
    Sealed(u64),
    Room(Room),
}

pub(super) struct Step {
    pub(super) cause: Why,
    pub(super) group: u64,
    pub(super) sights: Result<Vec<Sight>, String>,
    /// Bytes of answers, which clients read at once.
    pub(super) answered: Vec<(ConnectionId, u64)>,
}

pub(super) enum Why {
    Reports,
    Timeout,
    Configuration,
    Forward(Vec<(WantedBody, u64)>),
    Compaction(Vec<WantedBody>),
    Other(String),
}

impl Seen {
    pub(super) fn take(&self) -> Vec<Happened> {
        std::mem::take(&mut *self.0.lock().expect("one thread uses it"))
    }
}

/// Takes note of what a shard does.
pub(super) struct Watcher {
    pub(super) seen: Seen,
    pub(super) disk: Arc<FaultyDisk>,
}

impl Observer for Watcher {
    fn observe(&mut self, event: Event<'_>) {
        let happened = match event {
            Event::Sealed(group) => Happened::Sealed(group),
            Event::Room(room) => Happened::Room(room),
            Event::Step {
                cause,
                group,
                replies,
                journal,
            } => {
                let body = |body| self.body(journal, body);
                // Whoever is let in hears nothing of it.
                let told = replies
                    .iter()
                    .filter(|it| !matches!(it.reply, Reply::Admitted));
                let sights = told.map(|routed| look(routed, &body));
                Happened::Step(Step {
                    cause: why(cause),
                    group,
                    sights: sights.collect(),
                    answered: replies.iter().filter_map(answered).collect(),
                })
            }
        };
        self.seen
            .0
            .lock()
            .expect("one thread uses it")
            .push(happened);
    }
}

impl Watcher {
    fn body(&self, journal: &Writer, body: BodyRef) -> Result<Bytes, String> {
        if let Some(bytes) = journal.cached(body) {
            return Ok(bytes);
        }
        let read = journal::read_ahead(&*self.disk, body, 4096, journal.readable_until());
        let read = read.map_err(|error| format!("{body:?}: {error}"))?;
        Ok(read.body(body).expect("it was read for that"))
    }
}

fn why(cause: Cause<'_>) -> Why {
    match cause {
        Cause::Reports => Why::Reports,
        Cause::Timeout => Why::Timeout,
        Cause::Configuration => Why::Configuration,
        Cause::Forward(found) => {
            let found = found.iter();
            let found = found.map(|(wanted, body)| (*wanted, sent_id(body).expect("a message")));
            Why::Forward(found.collect())
        }
        Cause::Compaction(found) => {
            let found = found.iter().map(|found| WantedBody {
                entity: found.entity,
                number: found.number,
                body: found.body,
            });
            Why::Compaction(found.collect())
        }
        Cause::Request | Cause::Damage => Why::Other(format!("{cause:?}")),
    }
}
