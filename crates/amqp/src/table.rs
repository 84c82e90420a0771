//! A map for a connection's sessions, links and handles: few entries, looked up for every frame.
//!
//! A sorted vector: one or two entries, as nearly always, are found in a few instructions and take
//! no more memory than they need; thousands cost a binary search, and a move of the rest when one
//! comes or goes. Large values are boxed.

#[derive(Debug)]
pub(super) struct Table<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        let entries = Vec::new();
        Self { entries }
    }
}

impl<K: Copy + Ord, V> Table<K, V> {
    #[inline]
    pub(super) fn get(&self, key: K) -> Option<&V> {
        let at = self.find(key).ok()?;
        self.entries.get(at).map(|(_, value)| value)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let at = self.find(key).ok()?;
        self.entries.get_mut(at).map(|(_, value)| value)
    }

    /// Inserts a value, or replaces the one that is there.
    pub(super) fn insert(&mut self, key: K, value: V) {
        match self.find(key) {
            Ok(at) => {
                if let Some(entry) = self.entries.get_mut(at) {
                    entry.1 = value;
                }
            }
            Err(at) => self.entries.insert(at, (key, value)),
        }
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let at = self.find(key).ok()?;
        Some(self.entries.remove(at).1)
    }

    pub(super) fn clear(&mut self) {
        self.entries = Vec::new();
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns all in the order of their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.entries.iter().map(|(key, value)| (*key, value))
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = V> {
        self.entries.into_iter().map(|(_, value)| value)
    }

    #[inline]
    fn find(&self, key: K) -> Result<usize, usize> {
        // The only one, mostly.
        match self.entries.first() {
            Some((first, _)) if *first == key => Ok(0),
            _ => self.entries.binary_search_by_key(&key, |(key, _)| *key),
        }
    }
}

impl<V> Table<u32, V> {
    /// Returns the lowest key that is not taken.
    pub(super) fn first_free(&self) -> u32 {
        // A key before the first gap is its own index, and a later one is greater.
        let is_its_place = |place: usize| {
            let entry = self.entries.get(place);
            entry.is_some_and(|(key, _)| usize::try_from(*key) == Ok(place))
        };
        let (mut low, mut high) = (0, self.entries.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_its_place(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        u32::try_from(low).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0..9_u8, any::<Option<u8>>()), 0..60)) {
            let (mut table, mut model) = (Table::default(), BTreeMap::new());
            for (key, value) in steps {
                match value {
                    Some(value) => {
                        table.insert(key, value);
                        model.insert(key, value);
                    }
                    None => prop_assert_eq!(table.remove(key), model.remove(&key)),
                }
                prop_assert_eq!(table.get(key), model.get(&key));
                prop_assert_eq!(table.get_mut(key), model.get_mut(&key));
                prop_assert_eq!(table.len(), model.len());
                let all: Vec<_> = table.iter().collect();
                prop_assert_eq!(all, model.iter().map(|(key, value)| (*key, value)).collect::<Vec<_>>());
            }
            prop_assert!(table.into_values().eq(model.into_values()));
        }

        #[test]
        fn the_first_free_key_is_the_lowest(taken in prop::collection::btree_set(0..40_u32, 0..40)) {
            let mut table = Table::default();
            for &key in &taken {
                table.insert(key, ());
            }
            let free = (0..=40).find(|key| !taken.contains(key));
            prop_assert_eq!(Some(table.first_free()), free);
        }
    }
}
