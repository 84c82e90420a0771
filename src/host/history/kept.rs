//! The histories of all namespaces, and the bound of what they take together.

use std::collections::{BTreeMap, BTreeSet, btree_map};

use super::namespace::{Forgot, NamespaceHistory, NamespaceLook, NewEntities};
use super::rings::Range;
use super::series::Sums;
use jitney_base::address;
use jitney_base::time::Timestamp;
use jitney_broker::namespace::Statistics;

/// The histories of namespaces, by their names in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeptHistories {
    pub(super) namespaces: BTreeMap<String, NamespaceHistory>,
}

/// What a look has found.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) namespaces: BTreeMap<String, NamespaceLook>,
    /// The namespaces that this server has, also those that the look has not found. All others were deleted, or given away with
    /// their histories.
    pub(super) here: BTreeSet<String>,
}

impl Look {
    pub(super) fn of<'a>(reports: impl Iterator<Item = &'a Statistics>) -> Self {
        let mut namespaces: BTreeMap<String, NamespaceLook> = BTreeMap::new();
        for report in reports {
            for entity in &report.entities {
                let look = namespaces.entry(entity.namespace.clone()).or_default();
                for (queue, statistics) in &entity.queues {
                    look.whole.add_queue(*queue, statistics, statistics.arrived);
                }
                let key = address::key(&entity.path);
                look.entities.insert(key, Sums::of(entity));
            }
            for ((namespace, queue), others) in &report.others {
                let look = namespaces.entry(namespace.clone()).or_default();
                look.whole.add_queue(*queue, others, others.arrived);
                look.new = NewEntities::Unknown;
            }
            for (namespace, deleted) in &report.deleted {
                let look = namespaces.entry(namespace.clone()).or_default();
                look.whole.add_deleted(deleted);
            }
        }
        Self {
            namespaces,
            here: BTreeSet::new(),
        }
    }
}

impl KeptHistories {
    pub(super) fn take(&mut self, now: Timestamp, mut look: Look) {
        self.namespaces.retain(|name, history| {
            if let Some(found) = look.namespaces.remove(name) {
                history.take(now, found);
                return true;
            }
            history.pause();
            let oldest = Range::Week.begin(now);
            look.here.contains(name) && history.newest().is_some_and(|newest| oldest < newest)
        });
        for (name, found) in look.namespaces {
            let history = self.namespaces.entry(name).or_default();
            history.take(now, found);
        }
    }

    /// Returns all of them.
    pub(super) fn all(&self) -> btree_map::Iter<'_, String, NamespaceHistory> {
        self.namespaces.iter()
    }

    /// Returns the bytes that it takes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let sizes = self.namespaces.values().map(NamespaceHistory::bytes);
        sizes.sum()
    }

    /// Keeps to so many bytes.
    pub(super) fn fit(&mut self, bytes_max: usize) {
        let sizes = self.namespaces.iter();
        let sizes = sizes.map(|(name, history)| (name.clone(), history.bytes()));
        let mut sizes: BTreeMap<String, usize> = sizes.collect();
        if sizes.values().sum::<usize>() <= bytes_max {
            return;
        }
        // Looks that follow have some room then.
        let goal = bytes_max - bytes_max / 16;
        while goal < sizes.values().sum::<usize>() {
            let largest = sizes.iter().max_by_key(|(_, size)| **size);
            let Some(name) = largest.map(|(name, _)| name.clone()) else {
                return;
            };
            let Some(history) = self.namespaces.get_mut(&name) else {
                return;
            };
            if history.forget_half() == Forgot::Nothing {
                self.namespaces.remove(&name);
                sizes.remove(&name);
            } else {
                sizes.insert(name, history.bytes());
            }
        }
    }
}
