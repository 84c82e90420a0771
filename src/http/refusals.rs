//! Refusals that no shard makes: they are counted, and logged, as the shards do it with those of tokens and keys.

use std::sync::{Mutex, PoisonError};

use tracing::info;

use jitney_base::time::{Millis, Timestamp};
use jitney_broker::access::{FailedAttempts, PeerAddress, RefusalTally};
use jitney_broker::limits;

/// What was refused lately. Times are elapsed ones.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    attempts: FailedAttempts,
    tally: Mutex<RefusalTally>,
}

impl Refusals {
    /// Counts an attempt that failed; returns for how long its peer is not told so, if it has failed too often.
    pub(crate) fn failed(&self, now: Timestamp, peer: PeerAddress, name: &str) -> Option<Millis> {
        let wait = self.attempts.wait(now, peer, name);
        if wait.is_none() {
            self.attempts.failed(now, peer, name);
        }
        wait
    }

    /// Counts a refusal; returns whether it is logged by itself. The others are logged as a sum, with the first refusal after their span.
    pub(super) fn is_logged(&self, now: Timestamp, peer: PeerAddress) -> bool {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((peer, refusals)) = tally.end(now) {
            if 0 < refusals {
                let seconds = limits::REFUSALS_SPAN.as_millis() / 1_000;
                info!(%peer, refusals, seconds, "requests were refused");
            }
        }
        tally.note(now, peer)
    }
}
