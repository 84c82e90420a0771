//! Places for connections and requests that wait for the server of their namespace.
//!
//! One namespace has a share of them at most: a namespace that no server takes keeps no others from waiting.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits;

/// The places of this server.
#[derive(Debug, Clone)]
pub(super) struct WaitingPlaces {
    /// Places in all.
    all: usize,
    /// Those of them that one namespace may have.
    of_namespace: usize,
    taken: Arc<Mutex<TakenPlaces>>,
}

#[derive(Debug, Default)]
struct TakenPlaces {
    all: usize,
    /// None is the namespace of hosts that may name one which is not known yet.
    by_namespace: BTreeMap<Option<String>, usize>,
}

/// A place; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct WaitingPlace {
    places: WaitingPlaces,
    namespace: Option<String>,
}

impl WaitingPlaces {
    pub(super) fn new(all: usize, of_namespace: usize) -> Self {
        Self {
            all,
            of_namespace,
            taken: Arc::default(),
        }
    }

    /// Takes a place for a connection to a namespace; none if there is none for it.
    pub(super) fn take(&self, namespace: Option<String>) -> Option<WaitingPlace> {
        let mut taken = self.taken();
        let count = taken.by_namespace.get(&namespace).copied();
        let count = count.unwrap_or_default();
        if self.all <= taken.all || self.of_namespace <= count {
            return None;
        }
        taken.all += 1;
        taken.by_namespace.insert(namespace.clone(), count + 1);
        Some(WaitingPlace {
            places: self.clone(),
            namespace,
        })
    }

    /// Returns how many places are taken.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.taken().all
    }

    fn taken(&self) -> MutexGuard<'_, TakenPlaces> {
        // No count here is partial when a thread panics.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for WaitingPlaces {
    fn default() -> Self {
        Self::new(limits::HELD_CONNECTIONS_MAX, limits::HELD_OF_NAMESPACE_MAX)
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all -= 1;
        if let Some(count) = taken.by_namespace.get_mut(&self.namespace) {
            *count -= 1;
            if *count == 0 {
                taken.by_namespace.remove(&self.namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_namespace_has_a_share_of_the_places() {
        let places = WaitingPlaces::new(3, 2);
        let name = |name: &str| Some(name.to_owned());
        let one = [places.take(name("one")), places.take(name("one"))];
        assert!(one.iter().all(Option::is_some));
        assert!(places.take(name("one")).is_none(), "that is its share");
        let other = places.take(name("other"));
        assert!(other.is_some());
        assert!(places.take(None).is_none(), "all are taken");
        drop(one);
        assert_eq!(places.count(), 1);
        assert!(places.take(None).is_some());
        drop(other);
        assert!(places.taken().by_namespace.is_empty());
    }
}
