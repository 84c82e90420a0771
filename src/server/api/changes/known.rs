//! The newest state of everything that clients follow, and the version of each.
//!
//! A client that knows everything up to a version gets what has a later one. So a client that was away gets the newest state of
//! what has changed meanwhile, and not each change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::limits;

/// Something that changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// An entity, by its path.
    Entity(String),
    /// A job, by its id.
    Job(u64),
    /// A connection, by its id.
    Connection(u32),
}

/// The items of a namespace.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// That of the last change.
    version: u64,
    items: BTreeMap<Item, State>,
    /// The versions of items that have gone, and the items.
    gone: BTreeMap<u64, Item>,
    /// Items that had gone by this version are forgotten.
    forgotten: u64,
    is_looked_at: bool,
}

#[derive(Debug)]
struct State {
    version: u64,
    json: String,
}

impl Known {
    /// Takes the newest state of all items.
    pub(super) fn take(&mut self, now: BTreeMap<Item, String>) {
        self.is_looked_at = true;
        let before: BTreeSet<&Item> = self.items.keys().collect();
        let left = before.into_iter().filter(|item| !now.contains_key(item));
        let left: Vec<Item> = left.cloned().collect();
        for item in left {
            self.items.remove(&item);
            self.version += 1;
            self.gone.insert(self.version, item);
        }
        while limits::CHANGES_GONE_MAX < self.gone.len() {
            let first = self.gone.pop_first();
            self.forgotten = first.map_or(self.forgotten, |(version, _)| version);
        }
        for (item, json) in now {
            let known = self.items.get(&item);
            if known.is_none_or(|known| known.json != json) {
                self.version += 1;
                let version = self.version;
                self.items.insert(item, State { version, json });
            }
        }
    }

    /// Returns whether it was looked at since the process started.
    pub(super) fn is_looked_at(&self) -> bool {
        self.is_looked_at
    }

    /// Returns the version of the last change.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Returns the events for a client that knows everything up to a version, nothing for `None`. The last has the id of all;
    /// `run` tells this process from others. It is empty if nothing has changed.
    pub(super) fn events_since(&self, version: Option<u64>, run: &str) -> String {
        let known = version.filter(|version| (self.forgotten..=self.version).contains(version));
        if known == Some(self.version) {
            return String::new();
        }
        let mut events = String::new();
        if known.is_none() {
            events.push_str("event: reset\ndata: {}\n\n");
        }
        let since = known.unwrap_or_default();
        if known.is_some() {
            for item in self.gone.range(since + 1..).map(|(_, item)| item) {
                // It may have come back.
                if !self.items.contains_key(item) {
                    write_event(&mut events, item.gone(), &item.id_json());
                }
            }
        }
        for (item, state) in &self.items {
            if since < state.version {
                write_event(&mut events, item.event(), &state.json);
            }
        }
        let _ = write!(
            events,
            "id: {run}-{}\nevent: current\ndata: {{}}\n\n",
            self.version
        );
        events
    }
}

fn write_event(events: &mut String, name: &str, json: &str) {
    let _ = write!(events, "event: {name}\ndata: {json}\n\n");
}

impl Item {
    const fn event(&self) -> &'static str {
        match self {
            Self::Entity(_) => "entity",
            Self::Job(_) => "job",
            Self::Connection(_) => "connection",
        }
    }

    const fn gone(&self) -> &'static str {
        match self {
            Self::Entity(_) => "entity_deleted",
            Self::Job(_) => "job_forgotten",
            Self::Connection(_) => "connection_closed",
        }
    }

    fn id_json(&self) -> String {
        match self {
            Self::Entity(path) => serde_json::json!({ "path": path }).to_string(),
            Self::Job(id) => serde_json::json!({ "id": id }).to_string(),
            Self::Connection(id) => serde_json::json!({ "id": id }).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entities(states: &[(&str, &str)]) -> BTreeMap<Item, String> {
        let states = states.iter();
        let states =
            states.map(|(path, json)| (Item::Entity((*path).to_owned()), (*json).to_owned()));
        states.collect()
    }

    fn names(events: &str) -> Vec<&str> {
        let lines = events.lines();
        lines
            .filter_map(|line| line.strip_prefix("event: "))
            .collect()
    }

    #[test]
    fn a_client_gets_what_has_changed_since_it_looked() {
        let mut known = Known::default();
        known.take(entities(&[("a", "1"), ("b", "1")]));
        let first = known.events_since(None, "run");
        assert_eq!(names(&first), ["reset", "entity", "entity", "current"]);
        assert!(first.contains("id: run-2\n"));
        assert_eq!(known.events_since(Some(2), "run"), "");
        known.take(entities(&[("b", "2"), ("c", "1")]));
        let next = known.events_since(Some(2), "run");
        assert_eq!(
            names(&next),
            ["entity_deleted", "entity", "entity", "current"]
        );
        assert!(next.contains(r#"data: {"path":"a"}"#) && next.contains("id: run-5\n"));
    }

    #[test]
    fn what_has_gone_and_come_back_is_there() {
        let mut known = Known::default();
        known.take(entities(&[("a", "1")]));
        known.take(entities(&[]));
        known.take(entities(&[("a", "1")]));
        assert_eq!(
            names(&known.events_since(Some(1), "run")),
            ["entity", "current"]
        );
    }

    #[test]
    fn a_client_that_was_away_for_too_long_begins_anew() {
        let mut known = Known::default();
        for id in 0..=u32::try_from(limits::CHANGES_GONE_MAX).unwrap() {
            known.take(BTreeMap::from([(Item::Connection(id), "{}".to_owned())]));
        }
        known.take(BTreeMap::new());
        assert_eq!(known.gone.len(), limits::CHANGES_GONE_MAX);
        assert_eq!(names(&known.events_since(Some(1), "run"))[0], "reset");
        let newest = known.version() - 1;
        assert_eq!(
            names(&known.events_since(Some(newest), "run")),
            ["connection_closed", "current"]
        );
        assert_eq!(
            names(&known.events_since(Some(u64::MAX), "run"))[0],
            "reset"
        );
    }
}
