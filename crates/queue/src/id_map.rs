//! A map by numeric id, in constant time: a search in a tree of ten thousand entries that are not in
//! the cache costs more than all else that is done with the entry.

use hashbrown::HashTable;

/// A map by ids that the broker gave. It has no order, so nothing can depend on one.
#[derive(Debug)]
pub(super) struct IdMap<T>(HashTable<(u64, T)>);

impl<T> Default for IdMap<T> {
    fn default() -> Self {
        Self(HashTable::new())
    }
}

impl<T> IdMap<T> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, id: u64) -> Option<&T> {
        let found = self.0.find(hash(id), |&(of, _)| of == id);
        found.map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        let found = self.0.find_mut(hash(id), |&(of, _)| of == id);
        found.map(|(_, value)| value)
    }

    /// Puts a value in, and returns the one that was there.
    pub(super) fn insert(&mut self, id: u64, value: T) -> Option<T> {
        if let Some(before) = self.get_mut(id) {
            return Some(std::mem::replace(before, value));
        }
        self.0
            .insert_unique(hash(id), (id, value), |&(of, _)| hash(of));
        None
    }

    /// Takes a value out.
    pub(super) fn remove(&mut self, id: u64) -> Option<T> {
        let found = self.0.find_entry(hash(id), |&(of, _)| of == id);
        Some(found.ok()?.remove().0.1)
    }

    /// Returns the values in no order: for sums and the like, which depend on none.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Returns the ids in ascending order.
    pub(super) fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.0.iter().map(|&(id, _)| id).collect();
        ids.sort_unstable();
        ids
    }
}

/// Mixes an id's bits: ids are dense, and the table looks at the highest and the lowest ones.
fn hash(id: u64) -> u64 {
    let mixed = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use jitney_base::ids::Random;

    /// An id as links of connections have them.
    fn any_id(random: &mut Random) -> u64 {
        let (connection, link) = (random.next_u64() % 16, random.next_u64() % 64);
        connection << 32 | link
    }

    #[test]
    fn it_has_what_a_tree_has() {
        let (mut map, mut tree) = (IdMap::default(), BTreeMap::new());
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let id = any_id(&mut random);
            let value = random.next_u64();
            if value.is_multiple_of(3) {
                assert_eq!(map.remove(id), tree.remove(&id));
            } else {
                assert_eq!(map.insert(id, value), tree.insert(id, value));
            }
            let other = any_id(&mut random);
            assert_eq!(map.get(other), tree.get(&other));
        }
        assert!(!tree.is_empty());
        assert_eq!(map.ids(), tree.keys().copied().collect::<Vec<u64>>());
    }
}
