//! The newest state of everything that clients follow, and the version of each.
//!
//! A client that knows everything up to a version gets what has a later one. So a client that was away gets the newest state of
//! what has changed meanwhile, and not each change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::limits;
use jitney_api::changes::{EntityDeleted, Gone};

/// Something that changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// An entity, by its path.
    Entity(String),
    /// A job, by its id.
    Job(u64),
    /// A connection, by its id.
    Connection(u32),
    /// What needs attention in the namespace.
    Attention,
}

/// The items of a namespace.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// That of the last change.
    version: u64,
    items: BTreeMap<Item, State>,
    /// The last change of each item, also of those that have gone.
    changes: BTreeMap<u64, Item>,
    /// The versions of items that have gone.
    gone: BTreeSet<u64>,
    /// Items that had gone by this version are forgotten.
    forgotten: u64,
    is_looked_at: bool,
}

#[derive(Debug)]
struct State {
    version: u64,
    json: String,
}

/// What a client has seen of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Everything up to this version; nothing for `None`.
    version: Option<u64>,
    /// What had gone by this version it has never known.
    begun: u64,
    /// It has been told the version.
    is_told: bool,
}

impl Seen {
    /// Returns what a client has seen that knows everything up to a version, nothing for `None`.
    pub(super) const fn up_to(version: Option<u64>) -> Self {
        Self {
            version,
            begun: 0,
            is_told: true,
        }
    }
}

impl Known {
    /// Takes the newest state of all items.
    pub(super) fn take(&mut self, now: BTreeMap<Item, String>) {
        self.is_looked_at = true;
        let left = self.items.keys().filter(|item| !now.contains_key(item));
        let left: Vec<Item> = left.cloned().collect();
        for item in left {
            if let Some(state) = self.items.remove(&item) {
                self.changes.remove(&state.version);
            }
            self.version += 1;
            self.gone.insert(self.version);
            self.changes.insert(self.version, item);
        }
        while limits::CHANGES_GONE_MAX < self.gone.len()
            && let Some(version) = self.gone.pop_first()
        {
            self.changes.remove(&version);
            self.forgotten = version;
        }
        for (item, json) in now {
            let known = self.items.get(&item);
            if known.is_some_and(|known| known.json == json) {
                continue;
            }
            self.version += 1;
            let version = self.version;
            let before = self.items.insert(item.clone(), State { version, json });
            if let Some(before) = before {
                self.changes.remove(&before.version);
            }
            self.changes.insert(version, item);
        }
    }

    /// Returns whether it was looked at since the process started.
    pub(super) fn is_looked_at(&self) -> bool {
        self.is_looked_at
    }

    /// Returns the next events for a client, of which it has seen everything then, and whether there are more. They are empty if
    /// nothing has changed. The last has the id of all; `run` tells this process from others.
    pub(super) fn events(&self, seen: &mut Seen, run: &str) -> (String, More) {
        let mut events = String::new();
        let mut from = self.begin(seen, &mut events);
        for (version, item) in self.changes.range(from + 1..) {
            if limits::ANSWER_PIECE_BYTES <= events.len() {
                seen.version = Some(from);
                seen.is_told = false;
                return (events, More::Yes);
            }
            from = *version;
            match self.items.get(item) {
                Some(state) if state.version == *version => {
                    write_event(&mut events, item.event(), &state.json);
                }
                // It has come back.
                Some(_) => {}
                None if *version <= seen.begun => {}
                None => write_event(&mut events, item.gone(), &item.id_json()),
            }
        }
        seen.version = Some(self.version);
        if !events.is_empty() || !seen.is_told {
            let _ = write!(
                events,
                "id: {run}-{}\nevent: current\ndata: {{}}\n\n",
                self.version
            );
            seen.is_told = true;
        }
        (events, More::No)
    }

    /// Returns the version after which the events of a client begin; of one that has to forget everything, the beginning.
    fn begin(&self, seen: &mut Seen, events: &mut String) -> u64 {
        let version = seen.version.filter(|version| {
            *version <= self.version && self.forgotten <= seen.begun.max(*version)
        });
        version.unwrap_or_else(|| {
            events.push_str("event: reset\ndata: {}\n\n");
            seen.begun = self.version;
            0
        })
    }
}

/// Whether more events follow at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    Yes,
    No,
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
            Self::Attention => "attention",
        }
    }

    const fn gone(&self) -> &'static str {
        match self {
            Self::Entity(_) => "entity_deleted",
            Self::Job(_) => "job_forgotten",
            Self::Connection(_) => "connection_closed",
            Self::Attention => "attention_unknown",
        }
    }

    fn id_json(&self) -> String {
        let json = match self {
            Self::Entity(path) => serde_json::to_string(&EntityDeleted { path: path.clone() }),
            Self::Job(id) => serde_json::to_string(&Gone { id: *id }),
            Self::Connection(id) => serde_json::to_string(&Gone { id: (*id).into() }),
            Self::Attention => return "{}".to_owned(),
        };
        json.expect("texts and numbers are JSON")
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

    fn all(known: &Known, seen: &mut Seen) -> String {
        let mut events = String::new();
        loop {
            let (more, further) = known.events(seen, "run");
            events += &more;
            if further == More::No {
                return events;
            }
        }
    }

    fn since(known: &Known, version: Option<u64>) -> String {
        all(known, &mut Seen::up_to(version))
    }

    #[test]
    fn a_client_gets_what_has_changed_since_it_looked() {
        let mut known = Known::default();
        known.take(entities(&[("a", "1"), ("b", "1")]));
        let first = since(&known, None);
        assert_eq!(names(&first), ["reset", "entity", "entity", "current"]);
        assert!(first.contains("id: run-2\n"));
        assert_eq!(since(&known, Some(2)), "");
        known.take(entities(&[("b", "2"), ("c", "1")]));
        let next = since(&known, Some(2));
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
        assert_eq!(names(&since(&known, Some(1))), ["entity", "current"]);
        assert_eq!(names(&since(&known, None)), ["reset", "entity", "current"]);
    }

    #[test]
    fn a_client_that_was_away_for_too_long_begins_anew() {
        let mut known = Known::default();
        for id in 0..=u32::try_from(limits::CHANGES_GONE_MAX).unwrap() {
            known.take(BTreeMap::from([(Item::Connection(id), "{}".to_owned())]));
        }
        known.take(BTreeMap::new());
        assert_eq!(known.gone.len(), limits::CHANGES_GONE_MAX);
        assert_eq!(known.changes.len(), limits::CHANGES_GONE_MAX);
        assert_eq!(names(&since(&known, Some(1)))[0], "reset");
        let newest = known.version - 1;
        assert_eq!(
            names(&since(&known, Some(newest))),
            ["connection_closed", "current"]
        );
        assert_eq!(names(&since(&known, Some(u64::MAX)))[0], "reset");
    }

    #[test]
    fn a_client_gets_a_long_state_in_pieces_and_what_changes_meanwhile() {
        let long = |text: &str| format!("{{\"text\":\"{}\"}}", text.repeat(10_000));
        let state = |texts: &[(u32, &str)]| -> BTreeMap<Item, String> {
            let items = texts.iter();
            items
                .map(|(id, text)| (Item::Connection(*id), long(text)))
                .collect()
        };
        let mut known = Known::default();
        known.take(state(&[(1, "a"), (2, "a"), (3, "a"), (4, "a")]));
        let mut seen = Seen::up_to(None);
        let (first, more) = known.events(&mut seen, "run");
        assert_eq!(
            (names(&first), more),
            (vec!["reset", "connection", "connection"], More::Yes)
        );
        assert!(first.len() < 2 * limits::ANSWER_PIECE_BYTES);
        // One that it has seen goes, one changes, and one that it has not seen goes.
        known.take(state(&[(2, "b"), (3, "a")]));
        let rest = all(&known, &mut seen);
        assert_eq!(
            names(&rest),
            [
                "connection",
                "connection_closed",
                "connection_closed",
                "connection",
                "current"
            ]
        );
        assert_eq!(known.events(&mut seen, "run"), (String::new(), More::No));
        assert_eq!(names(&since(&known, None)).len(), 4);
    }
}
