//! The histories of all namespaces, and the bound of what they take together.

use std::collections::{BTreeMap, BTreeSet};

use super::namespace::{Forgot, NamespaceHistory, NamespaceLook, NewEntities};
use super::rings::Range;
use super::series::Sums;
use crate::limits;
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
    pub(super) others: OtherNamespaces,
}

/// The namespaces that a look has not found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OtherNamespaces {
    /// These are there, and all others were dropped.
    Are(BTreeSet<String>),
    /// They may be at another server, and come back.
    Elsewhere,
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
        }
        Self {
            namespaces,
            others: OtherNamespaces::Elsewhere,
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
            let is_there = match &look.others {
                OtherNamespaces::Are(names) => names.contains(name),
                OtherNamespaces::Elsewhere => true,
            };
            let oldest = Range::Week.begin(now);
            is_there && history.newest().is_some_and(|newest| oldest < newest)
        });
        for (name, found) in look.namespaces {
            let history = self.namespaces.entry(name).or_default();
            history.take(now, found);
        }
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
        // No file has more.
        let mut series: usize = self.namespaces.values().map(|it| it.series.len()).sum();
        while limits::NAMESPACES_MAX < sizes.len() || limits::HISTORY_SERIES_MAX < series {
            let Some(name) = self.largest(&sizes) else {
                return;
            };
            sizes.remove(&name);
            let removed = self.namespaces.remove(&name);
            series -= removed.map_or(0, |it| it.series.len());
        }
        if sizes.values().sum::<usize>() <= bytes_max {
            return;
        }
        // Looks that follow have some room then.
        let goal = bytes_max - bytes_max / 16;
        // After a start none is watched yet.
        let has_watched = self.namespaces.values().any(NamespaceHistory::is_watched);
        while goal < sizes.values().sum::<usize>() {
            let Some(name) = self.largest(&sizes) else {
                return;
            };
            let Some(history) = self.namespaces.get_mut(&name) else {
                return;
            };
            let is_left = has_watched && !history.is_watched();
            if is_left || history.forget_half() == Forgot::Nothing {
                self.namespaces.remove(&name);
                sizes.remove(&name);
            } else {
                sizes.insert(name, history.bytes());
            }
        }
    }

    /// Returns the namespace that takes the most; one that is not watched before all others.
    fn largest(&self, sizes: &BTreeMap<String, usize>) -> Option<String> {
        let place = |(name, size): &(&String, &usize)| {
            let history = self.namespaces.get(*name);
            let is_watched = history.is_some_and(NamespaceHistory::is_watched);
            (!is_watched, **size)
        };
        let largest = sizes.iter().max_by_key(place);
        largest.map(|(name, _)| name.clone())
    }
}
