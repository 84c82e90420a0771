//! The connections of each namespace: where there are several, none takes the descriptors that the others need.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jitney_base::limits;

/// How many authorized AMQP connections each namespace has.
#[derive(Debug, Clone)]
pub(crate) struct NamespaceConnections {
    /// All that there may be.
    max: usize,
    counts: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// A connection that counts for its namespace until this is dropped.
#[derive(Debug)]
pub(crate) struct CountedConnection {
    counts: Arc<Mutex<BTreeMap<String, usize>>>,
    namespace: String,
}

/// A namespace has as many connections as it may have now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyConnections(pub(crate) usize);

impl NamespaceConnections {
    /// Takes how many there may be of all namespaces.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            counts: Arc::default(),
        }
    }

    /// Counts a connection of a namespace, of which the server has so many: one alone may have all connections, one of several
    /// half of what the others leave.
    pub(crate) fn count(
        &self,
        namespace: &str,
        namespaces: usize,
    ) -> Result<CountedConnection, TooManyConnections> {
        let mut counts = locked(&self.counts);
        let all: usize = counts.values().sum();
        let own = counts.get(namespace).copied().unwrap_or_default();
        let most = if namespaces <= 1 {
            self.max
        } else {
            limits::part_for_one(self.max, all - own)
        };
        if most <= own {
            return Err(TooManyConnections(most));
        }
        counts.insert(namespace.to_owned(), own + 1);
        Ok(CountedConnection {
            counts: Arc::clone(&self.counts),
            namespace: namespace.to_owned(),
        })
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut counts = locked(&self.counts);
        if let Some(count) = counts.get_mut(&self.namespace) {
            *count -= 1;
        }
        counts.retain(|_, count| 0 < *count);
    }
}

fn locked(counts: &Mutex<BTreeMap<String, usize>>) -> MutexGuard<'_, BTreeMap<String, usize>> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts as many connections of a namespace as it may have.
    fn fill(all: &NamespaceConnections, name: &str, namespaces: usize) -> Vec<CountedConnection> {
        std::iter::from_fn(|| all.count(name, namespaces).ok()).collect()
    }

    #[test]
    fn one_of_several_namespaces_leaves_half_of_the_connections_to_others() {
        let all = NamespaceConnections::new(100);
        let first = fill(&all, "first", 3);
        let second = fill(&all, "second", 3);
        assert_eq!((first.len(), second.len()), (50, 25));
        assert_eq!(all.count("second", 3).unwrap_err(), TooManyConnections(25));
        drop(first);
        assert_eq!(fill(&all, "third", 3).len(), 38);
        drop(second);
        assert!(locked(&all.counts).is_empty());
    }

    #[test]
    fn a_namespace_alone_has_all_connections() {
        let all = NamespaceConnections::new(100);
        assert_eq!(fill(&all, "only", 1).len(), 100);
    }
}
