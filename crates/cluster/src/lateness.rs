//! Heartbeats whose answers come too late for the lease that they renew.

use crate::limits;

/// Whether the answers to beats come too late for the lease that they renew. The other servers see each beat in time then, and do not
/// declare this server dead; but it may answer nothing.
#[derive(Debug, Default)]
pub struct Lateness {
    /// Beats in a row whose answers came too late.
    late: u32,
    /// Since when answers come early enough for a lease that holds most of the time.
    early_since: Option<u64>,
    /// Namespaces were released because of it.
    has_released: bool,
}

/// What follows from the times of the last beats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Namespaces are to be released.
    Late,
    /// Nothing has changed.
    Same,
    /// Namespaces may be taken again.
    Well,
}

impl Lateness {
    /// Takes when a beat that has succeeded was sent, and when its answer came.
    pub fn answered(&mut self, sent: u64, now: u64) -> Pace {
        let took = now.saturating_sub(sent);
        let [lease, over] =
            [limits::LEASE, limits::LATE_HEARTBEATS_OVER].map(|it| it.as_millis().unsigned_abs());
        if lease <= took {
            self.late = self.late.saturating_add(1);
            self.early_since = None;
            let is_new = limits::LATE_HEARTBEATS_MAX <= self.late && !self.has_released;
            return if is_new { Pace::Late } else { Pace::Same };
        }
        self.late = 0;
        if lease < 2 * took {
            self.early_since = None;
            return Pace::Same;
        }
        let since = *self.early_since.get_or_insert(sent);
        if self.has_released && over <= now.saturating_sub(since) {
            self.has_released = false;
            return Pace::Well;
        }
        Pace::Same
    }

    /// The namespaces of this server are being released.
    pub fn released(&mut self) {
        self.has_released = true;
    }
}
