//! Warnings about connections, which are not logged for each.

use tokio::time::Instant;

use crate::limits;

/// When a warning about connections was last logged: each kind of warning has one.
#[derive(Debug, Default)]
pub(super) struct Warning(Option<Instant>);

impl Warning {
    /// Returns whether the warning may be logged again, and notes that it is.
    pub(crate) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self
            .0
            .is_none_or(|logged| logged + limits::CONNECTION_WARNING_INTERVAL.as_duration() <= now);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}
