//! Which primary of the database a session is connected to.
//!
//! PostgreSQL begins a new timeline when a standby is promoted. A session that stays connected to the former primary still answers
//! queries, with rows that the new primary does not have. So each session learns its timeline when it is opened, and only sessions on
//! the newest timeline are used. Sources: the chapters "Continuous Archiving" (Timelines) and "System Information Functions" of
//! PostgreSQL's documentation.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use tokio_postgres::error::SqlState;

use super::StoreError;
use super::connect::{Session, Store};

/// A timeline of a database cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timeline {
    /// The system identifier, which a primary has in common with its standbys.
    system: i64,
    /// Each promotion raises it.
    number: u32,
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "timeline {} of the database system {}",
            self.number, self.system
        )
    }
}

/// What the database says if it does not have the functions, or the role may not call them.
const UNKNOWN: [SqlState; 3] = [
    SqlState::UNDEFINED_FUNCTION,
    SqlState::FEATURE_NOT_SUPPORTED,
    SqlState::INSUFFICIENT_PRIVILEGE,
];

impl Timeline {
    /// Asks for the timeline of a session; none if the database does not tell it, as services that replicate below PostgreSQL may.
    pub(super) async fn of(store: &Store, session: &Session) -> Result<Option<Self>, StoreError> {
        // The name of a WAL file begins with the timeline, in eight hexadecimal digits.
        let query = "select system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) from pg_control_system()";
        let row = match session.one(query, &[]).await {
            Ok(row) => row,
            Err(StoreError::Database { source, .. })
                if source.code().is_some_and(|code| UNKNOWN.contains(code)) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let (system, digits): (i64, String) = (store.get(&row, 0)?, store.get(&row, 1)?);
        let number = u32::from_str_radix(&digits, 16).ok();
        Ok(number.map(|number| Self { system, number }))
    }
}

/// The newest timeline that a session was opened on.
#[derive(Debug, Default)]
pub(super) struct NewestTimeline(Mutex<Option<Timeline>>);

impl NewestTimeline {
    /// Records the timeline of a new session; returns whether sessions that were opened before are on another one.
    ///
    /// A database with another system identifier, such as one after `pg_upgrade`, replaces what was known.
    ///
    /// # Errors
    ///
    /// The newest timeline, if the session's is older: it is connected to a former primary.
    pub(super) fn record(&self, opened: Timeline) -> Result<bool, Timeline> {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *newest {
            Some(known) if known.system == opened.system && opened.number < known.number => {
                Err(known)
            }
            Some(known) if known == opened => Ok(false),
            known => {
                *newest = Some(opened);
                Ok(known.is_some())
            }
        }
    }

    /// Returns whether a session may be used: it is on the newest timeline, or its timeline is unknown.
    pub(super) fn is(&self, timeline: Option<Timeline>) -> bool {
        let newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        timeline.is_none() || timeline == *newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(system: i64, number: u32) -> Timeline {
        Timeline { system, number }
    }

    #[test]
    fn a_promotion_makes_sessions_of_the_former_primary_unusable() {
        let newest = NewestTimeline::default();
        let (former, promoted) = (timeline(7, 1), timeline(7, 2));
        assert_eq!(newest.record(former), Ok(false));
        assert_eq!(newest.record(former), Ok(false));
        assert!(newest.is(Some(former)));
        assert_eq!(newest.record(promoted), Ok(true));
        assert!(!newest.is(Some(former)));
        assert!(newest.is(Some(promoted)));
    }

    #[test]
    fn a_session_to_the_former_primary_is_refused_after_a_promotion() {
        let newest = NewestTimeline::default();
        assert_eq!(newest.record(timeline(7, 3)), Ok(false));
        assert_eq!(newest.record(timeline(7, 2)), Err(timeline(7, 3)));
        assert!(newest.is(Some(timeline(7, 3))));
    }

    #[test]
    fn another_database_system_replaces_what_was_known() {
        let newest = NewestTimeline::default();
        assert_eq!(newest.record(timeline(7, 3)), Ok(false));
        assert_eq!(newest.record(timeline(8, 1)), Ok(true));
        assert!(newest.is(Some(timeline(8, 1))));
        assert!(!newest.is(Some(timeline(7, 3))));
    }

    #[test]
    fn a_session_whose_timeline_is_unknown_is_used() {
        let newest = NewestTimeline::default();
        assert!(newest.is(None));
        assert_eq!(newest.record(timeline(7, 3)), Ok(false));
        assert!(newest.is(None));
    }
}
