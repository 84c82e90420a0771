//! Which primary of the database a session is connected to.
//!
//! PostgreSQL begins a new timeline when a standby is promoted. A session that stays connected to the former primary still answers
//! queries, with rows that the new primary does not have. So each session learns its timeline when it is opened, and only sessions on
//! the newest timeline are used. Sources: the chapters "Continuous Archiving" (Timelines) and "System Information Functions" of
//! PostgreSQL's documentation.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// A timeline of a database cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeline {
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

impl Timeline {
    /// Returns it as the fence row of a namespace has it.
    #[must_use]
    pub fn recorded(self) -> String {
        format!("{}/{}", self.system, self.number)
    }

    /// Returns whether the database was promoted since an owner of a namespace has recorded the timeline that it knew: a log that has lost
    /// what this owner acknowledged looks like any other. Nothing is known of another system, or without a record.
    #[must_use]
    pub fn is_after(self, recorded: Option<&str>) -> bool {
        let (system, number) = recorded.and_then(|it| it.split_once('/')).unzip();
        let system = system.and_then(|system| system.parse::<i64>().ok());
        let number = number.and_then(|number| number.parse::<u32>().ok());
        system == Some(self.system) && number.is_some_and(|number| number < self.number)
    }

    /// Returns the timeline of this number of a database system.
    #[must_use]
    pub const fn new(system: i64, number: u32) -> Self {
        Self { system, number }
    }
}

/// The newest timeline that a session was opened on.
#[derive(Debug, Default)]
pub(crate) struct NewestTimeline(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    newest: Option<Timeline>,
    /// The systems that other ones have replaced.
    replaced: BTreeSet<i64>,
}

impl NewestTimeline {
    /// Records the timeline of a new session; returns whether sessions that were opened before are on another one.
    ///
    /// A database with another system identifier, such as one after `pg_upgrade`, replaces the one before, for good.
    ///
    /// # Errors
    ///
    /// The newest timeline, if the session's is older: it is connected to a former primary.
    pub(crate) fn record(&self, opened: Timeline) -> Result<bool, Timeline> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = state.newest.replace(opened) else {
            return Ok(false);
        };
        let is_same_system = known.system == opened.system;
        let is_former = if is_same_system {
            opened.number < known.number
        } else {
            state.replaced.contains(&opened.system)
        };
        if is_former {
            state.newest = Some(known);
            return Err(known);
        }
        if !is_same_system {
            state.replaced.insert(known.system);
        }
        Ok(known != opened)
    }

    /// Returns whether a session may be used: it is on the newest timeline, or its timeline is unknown.
    pub(crate) fn is(&self, timeline: Option<Timeline>) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        timeline.is_none() || timeline == state.newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(system: i64, number: u32) -> Timeline {
        Timeline { system, number }
    }

    #[test]
    fn a_promotion_since_the_record_of_an_owner_is_known() {
        let timeline = Timeline {
            system: -7,
            number: 12,
        };
        let before = Timeline {
            number: 9,
            ..timeline
        };
        assert!(timeline.is_after(Some(&before.recorded())));
        assert!(!timeline.is_after(Some(&timeline.recorded())));
        assert!(!before.is_after(Some(&timeline.recorded())));
        for other in [None, Some("8/9"), Some(""), Some("-7/"), Some("-7/x")] {
            assert!(!timeline.is_after(other), "{other:?}");
        }
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
        // The old one may still run at the same address now and then.
        assert_eq!(newest.record(timeline(7, 4)), Err(timeline(8, 1)));
        assert!(newest.is(Some(timeline(8, 1))));
    }

    #[test]
    fn a_session_whose_timeline_is_unknown_is_used() {
        let newest = NewestTimeline::default();
        assert!(newest.is(None));
        assert_eq!(newest.record(timeline(7, 3)), Ok(false));
        assert!(newest.is(None));
    }
}
