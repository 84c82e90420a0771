//! One beat of a server in a store: when it is sent, and what follows from its answer. What it needs of the store and of the clock is
//! [`BeatIo`], so that the tests have both in virtual time.

use tracing::{error, info, warn};

use super::StoreError;

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
    /// Drops all namespaces, since others have them, and the incarnation.
    fn begin_anew(&mut self);
    /// Drops all namespaces, since the store is another one.
    fn replaced(&mut self, error: &StoreError);
}

/// Beats once, unless this server has left. `is_reported` is kept from one beat to the next: that there is none is logged once.
pub(super) async fn step(io: &mut impl BeatIo, is_reported: &mut bool) {
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
            if *is_reported {
                info!(store = io.store(), "the store is back");
            }
            *is_reported = false;
        }
        // It has left while the beat was on its way.
        Ok(Beaten::NoRow) if io.has_left() => {}
        Ok(Beaten::NoRow) => io.begin_anew(),
        Err(error @ StoreError::Replaced { .. }) => io.replaced(&error),
        Err(error) if !*is_reported => {
            warn!(store = io.store(), "no beat: {error}");
            *is_reported = true;
        }
        Ok(Beaten::NotJoined) | Err(_) => {}
    }
}

#[cfg(test)]
mod tests;
