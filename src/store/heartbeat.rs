//! One beat of a server in a store: when it is sent, and what follows from its answer. What it needs of the store and of the clock is
//! [`HeartbeatIo`], so that the tests have both in virtual time.

use tracing::{error, info, warn};

use jitney_cluster::lateness::{Lateness, Pace};
use jitney_postgres::StoreError;

/// What has become of a beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeartbeatOutcome {
    Done,
    /// The store has no row of this incarnation that is alive: it was declared dead, or another server has its name.
    NoRow,
    /// This server has not joined the others of the store: another one has its name, or may have it.
    NotJoined,
}

/// What a beat needs.
pub(super) trait HeartbeatIo {
    /// The store's name.
    fn store(&self) -> &str;
    /// The time by the clock of the lease.
    fn now(&self) -> u64;
    /// All owners of this server make progress.
    fn makes_progress(&self) -> bool;
    /// This server has left the store.
    fn has_left(&self) -> bool;
    /// Beats. A server that has not joined tries that first.
    async fn beat(&mut self) -> Result<HeartbeatOutcome, StoreError>;
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
pub(super) struct HeartbeatMemory {
    /// That there is no beat was logged.
    is_reported: bool,
    lateness: Lateness,
}

/// Beats once, unless this server has left.
pub(super) async fn step(io: &mut impl HeartbeatIo, memory: &mut HeartbeatMemory) {
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
        Ok(HeartbeatOutcome::Done) => {
            io.renew(sent);
            if memory.is_reported {
                info!(store = io.store(), "the store is back");
            }
            memory.is_reported = false;
            follow(io, memory, sent).await;
        }
        // It has left while the beat was on its way.
        Ok(HeartbeatOutcome::NoRow) if io.has_left() => {}
        Ok(HeartbeatOutcome::NoRow) => io.begin_anew(),
        Err(error @ StoreError::Replaced { .. }) => io.replaced(&error),
        Err(error) if !memory.is_reported => {
            warn!(store = io.store(), "no beat: {error}");
            memory.is_reported = true;
        }
        Ok(HeartbeatOutcome::NotJoined) | Err(_) => {}
    }
}

/// Does what follows from when a beat was sent, whose answer is here.
async fn follow(io: &mut impl HeartbeatIo, memory: &mut HeartbeatMemory, sent: u64) {
    match memory.lateness.answered(sent, io.now()) {
        Pace::Late if io.others_may_take() => {
            memory.lateness.released();
            if let Err(error) = io.give_all().await {
                // Other servers may have them by now: this one must not answer for them when its next beat is answered.
                warn!(
                    store = io.store(),
                    "it is unknown whether namespaces were given away: {error}"
                );
                io.begin_anew();
            }
        }
        Pace::Well => io.is_well(),
        Pace::Late | Pace::Same => {}
    }
}

#[cfg(test)]
mod tests;
