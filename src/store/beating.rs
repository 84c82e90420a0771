//! One beat of a server in a store: when it is sent, and what follows from its answer. What it needs of the store and of the clock is
//! [`BeatIo`], so that the tests have both in virtual time.

use tracing::{error, info, warn};

use super::StoreError;
use crate::limits;

/// What has become of a beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beaten {
    Done,
    /// The store has no row of this incarnation that is alive: it was declared dead, or another server has its name.
    NoRow,
    /// This server has not joined the others of the store: another one has its name, or may have it.
    NotJoined,
}

/// What a beat needs.
pub(super) trait BeatIo {
    /// The store's name.
    fn store(&self) -> &str;
    /// The time by the clock of the lease.
    fn now(&self) -> u64;
    /// All owners of this server make progress.
    fn makes_progress(&self) -> bool;
    /// This server has left the store.
    fn has_left(&self) -> bool;
    /// Beats. A server that has not joined tries that first.
    async fn beat(&mut self) -> Result<Beaten, StoreError>;
    /// Lets the lease hold, by a beat that was sent then.
    fn renew(&mut self, sent: u64);
    /// Another server may take the namespaces of this one.
    fn others_may_take(&self) -> bool;
    /// Beats once more, and with that gives all namespaces away, and tells the other servers that this one takes none.
    async fn give_all(&mut self) -> Result<(), StoreError>;
    /// This server may take namespaces again.
    fn is_well(&mut self);
    /// Drops all namespaces, since others have them, and the incarnation.
    fn begin_anew(&mut self);
    /// Drops all namespaces, since the store is another one.
    fn replaced(&mut self, error: &StoreError);
}

/// What is kept from one beat to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// That there is no beat was logged.
    is_reported: bool,
    lateness: Lateness,
}

/// Whether the answers to beats come too late for the lease that they renew. The other servers see each beat in time then, and do not
/// declare this server dead; but it may answer nothing.
#[derive(Debug, Default)]
struct Lateness {
    /// Beats in a row whose answers came too late.
    late: u32,
    /// Since when answers come early enough for a lease that holds most of the time.
    early_since: Option<u64>,
    /// Namespaces were given away because of it.
    has_given: bool,
}

/// What follows from the times of the last beats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Namespaces are to be given away.
    Late,
    /// Nothing has changed.
    Same,
    /// Namespaces may be taken again.
    Well,
}

impl Lateness {
    /// Takes when a beat that has succeeded was sent, and when its answer came.
    fn answered(&mut self, sent: u64, now: u64) -> Pace {
        let took = now.saturating_sub(sent);
        let [lease, over] =
            [limits::LEASE, limits::LATE_BEATS_OVER].map(|it| it.as_millis().unsigned_abs());
        if lease <= took {
            self.late = self.late.saturating_add(1);
            self.early_since = None;
            let is_new = limits::LATE_BEATS_MAX <= self.late && !self.has_given;
            return if is_new { Pace::Late } else { Pace::Same };
        }
        self.late = 0;
        if lease < 2 * took {
            self.early_since = None;
            return Pace::Same;
        }
        let since = *self.early_since.get_or_insert(sent);
        if self.has_given && over <= now.saturating_sub(since) {
            self.has_given = false;
            return Pace::Well;
        }
        Pace::Same
    }
}

/// Beats once, unless this server has left.
pub(super) async fn step(io: &mut impl BeatIo, memory: &mut Memory) {
    if io.has_left() {
        return;
    }
    if !io.makes_progress() {
        error!("an owner makes no progress: this server does not say that it is alive");
        return;
    }
    // The other servers count from when the beat is in the store, which may be long before its answer is here.
    let sent = io.now();
    let beaten = io.beat().await;
    match beaten {
        Ok(Beaten::Done) => {
            io.renew(sent);
            if memory.is_reported {
                info!(store = io.store(), "the store is back");
            }
            memory.is_reported = false;
            follow(io, memory, sent).await;
        }
        // It has left while the beat was on its way.
        Ok(Beaten::NoRow) if io.has_left() => {}
        Ok(Beaten::NoRow) => io.begin_anew(),
        Err(error @ StoreError::Replaced { .. }) => io.replaced(&error),
        Err(error) if !memory.is_reported => {
            warn!(store = io.store(), "no beat: {error}");
            memory.is_reported = true;
        }
        Ok(Beaten::NotJoined) | Err(_) => {}
    }
}

/// Does what follows from when a beat was sent, whose answer is here.
async fn follow(io: &mut impl BeatIo, memory: &mut Memory, sent: u64) {
    match memory.lateness.answered(sent, io.now()) {
        Pace::Late if io.others_may_take() => {
            memory.lateness.has_given = true;
            if let Err(error) = io.give_all().await {
                warn!(
                    store = io.store(),
                    "namespaces are given away one by one, because they could not be given away at once: {error}"
                );
            }
        }
        Pace::Well => io.is_well(),
        Pace::Late | Pace::Same => {}
    }
}

#[cfg(test)]
mod tests;
