//! The namespaces that clients follow.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::known::Known;
use crate::http::answers::{Answers, Reservation};
use crate::http::api::problem::Problem;
use crate::limits;
use jitney_base::time::Timestamp;

/// Namespaces that clients follow.
#[derive(Debug)]
pub(crate) struct Changes {
    /// Tells this process from others.
    pub(super) run: String,
    followed: Mutex<BTreeMap<String, Followed>>,
    /// The bytes of what is known of all of them.
    pub(super) bytes: Answers,
    /// Notified when a stream of events is opened.
    pub(super) opened: Notify,
    /// The number of the last look.
    pub(super) looks: watch::Sender<u64>,
}

/// A namespace that clients follow, or did a short while ago.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) known: Known,
    /// The bytes of what is known; taken while it is looked at.
    pub(super) reservation: Option<Reservation>,
    /// The streams of events that are open.
    streams: usize,
    /// When the last was closed.
    closed_at: Instant,
}

impl Changes {
    /// Takes the time of the start, and how many bytes may be known of all namespaces.
    pub(crate) fn new(begun: Timestamp, bytes: usize) -> Self {
        Self {
            run: format!("{:x}", begun.as_millis()),
            followed: Mutex::default(),
            bytes: Answers::new(bytes, 0),
            opened: Notify::new(),
            looks: watch::Sender::new(0),
        }
    }

    pub(super) fn followed(&self) -> MutexGuard<'_, BTreeMap<String, Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the namespaces that are to be looked at, and forgets those that no client follows any more.
    pub(super) fn wanted(&self, now: Instant) -> Vec<String> {
        let mut followed = self.followed();
        followed.retain(|_, it| {
            0 < it.streams || now < it.closed_at + limits::CHANGES_KEPT.as_duration()
        });
        let wanted = followed.iter().filter(|(_, it)| 0 < it.streams);
        wanted.map(|(name, _)| name.clone()).collect()
    }

    /// Reads an id of an event of this process.
    pub(super) fn version_of(&self, id: &str) -> Option<u64> {
        let (run, version) = id.trim().split_once('-')?;
        version.parse().ok().filter(|_| run == self.run)
    }
}

/// A stream's place among those that may be open.
#[derive(Debug)]
pub(super) struct OpenStream {
    pub(super) changes: Arc<Changes>,
    pub(super) namespace: String,
}

impl OpenStream {
    /// Opens one, if the namespace has less than half of the places that the streams of others leave.
    pub(super) fn open(changes: &Arc<Changes>, namespace: &str) -> Result<Self, Problem> {
        let mut followed = changes.followed();
        let open: usize = followed.values().map(|it| it.streams).sum();
        let own = followed.get(namespace).map_or(0, |it| it.streams);
        let most = jitney_base::limits::part_for_one(limits::CHANGES_STREAMS_MAX, open - own);
        if most <= own {
            let text =
                format!("{own} clients follow changes of the namespace already; {most} may now.");
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "limit", text));
        }
        let entry = followed.entry(namespace.to_owned());
        let entry = entry.or_insert_with(|| Followed {
            known: Known::default(),
            reservation: None,
            streams: 0,
            closed_at: Instant::now(),
        });
        entry.streams += 1;
        drop(followed);
        Ok(Self {
            changes: Arc::clone(changes),
            namespace: namespace.to_owned(),
        })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if let Some(followed) = self.changes.followed().get_mut(&self.namespace) {
            followed.streams -= 1;
            followed.closed_at = Instant::now();
        }
    }
}
