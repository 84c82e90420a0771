//! Values by ordinal, for some of a queue's messages. Usually there are few, in a sorted list; many
//! are in a tree.

use std::collections::BTreeMap;

/// A map by ordinal, in order.
#[derive(Debug)]
pub(super) enum Ordinals<T> {
    Few(Vec<(u64, T)>),
    Many(BTreeMap<u64, T>),
}

/// Entries of a list: moving them costs less than a tree's node. It becomes a tree beyond, and a
/// list again when a quarter of them is left.
const FEW: usize = 32;

impl<T> Default for Ordinals<T> {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl<T> Ordinals<T> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Few(list) => list.is_empty(),
            Self::Many(tree) => tree.is_empty(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few(list) => list.len(),
            Self::Many(tree) => tree.len(),
        }
    }

    /// Returns the lowest ordinal.
    pub(super) fn first(&self) -> Option<u64> {
        match self {
            Self::Few(list) => list.first().map(|&(ordinal, _)| ordinal),
            Self::Many(tree) => tree.first_key_value().map(|(&ordinal, _)| ordinal),
        }
    }

    /// Puts a value in, and returns the one that was there.
    pub(super) fn insert(&mut self, ordinal: u64, value: T) -> Option<T> {
        let list = match self {
            Self::Few(list) => list,
            Self::Many(tree) => return tree.insert(ordinal, value),
        };
        let at = list.partition_point(|&(other, _)| other < ordinal);
        match list.get_mut(at) {
            Some((same, before)) if *same == ordinal => {
                return Some(std::mem::replace(before, value));
            }
            _ => list.insert(at, (ordinal, value)),
        }
        if FEW < list.len() {
            *self = Self::Many(std::mem::take(list).into_iter().collect());
        }
        None
    }

    /// Takes a value out.
    pub(super) fn remove(&mut self, ordinal: u64) -> Option<T> {
        match self {
            Self::Few(list) => {
                let at = list.binary_search_by_key(&ordinal, |&(other, _)| other);
                Some(list.remove(at.ok()?).1)
            }
            Self::Many(tree) => {
                let value = tree.remove(&ordinal)?;
                if tree.len() <= FEW / 4 {
                    *self = Self::Few(std::mem::take(tree).into_iter().collect());
                }
                Some(value)
            }
        }
    }

    /// Returns the ordinals from one on.
    pub(super) fn from(&self, ordinal: u64) -> impl Iterator<Item = u64> {
        let (list, tree) = match self {
            Self::Few(list) => (Some(list), None),
            Self::Many(tree) => (None, Some(tree)),
        };
        let listed = list.into_iter().flatten().map(|&(other, _)| other);
        let listed = listed.skip_while(move |&other| other < ordinal);
        let sorted = tree.into_iter();
        listed.chain(sorted.flat_map(move |tree| tree.range(ordinal..).map(|(&other, _)| other)))
    }
}

impl<T> IntoIterator for Ordinals<T> {
    type Item = (u64, T);
    type IntoIter = std::iter::Chain<
        std::vec::IntoIter<(u64, T)>,
        std::collections::btree_map::IntoIter<u64, T>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        let (list, tree) = match self {
            Self::Few(list) => (list, BTreeMap::new()),
            Self::Many(tree) => (Vec::new(), tree),
        };
        list.into_iter().chain(tree)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map_however_many_there_are(
            steps in prop::collection::vec((any::<bool>(), 0_u64..80, any::<u8>()), 0..400),
            from in 0_u64..80,
        ) {
            let mut ordinals = Ordinals::default();
            let mut model = BTreeMap::new();
            for (inserts, ordinal, value) in steps {
                if inserts {
                    prop_assert_eq!(ordinals.insert(ordinal, value), model.insert(ordinal, value));
                } else {
                    prop_assert_eq!(ordinals.remove(ordinal), model.remove(&ordinal));
                }
                prop_assert_eq!(ordinals.first(), model.keys().next().copied());
                prop_assert_eq!(ordinals.is_empty(), model.is_empty());
            }
            let rest: Vec<u64> = ordinals.from(from).collect();
            prop_assert_eq!(rest, model.range(from..).map(|(&at, _)| at).collect::<Vec<_>>());
            prop_assert!(ordinals.into_iter().eq(model));
        }
    }

    #[test]
    fn many_become_few_again_when_most_have_gone() {
        let mut ordinals = Ordinals::default();
        for ordinal in 0..100 {
            ordinals.insert(ordinal, ());
        }
        assert!(matches!(ordinals, Ordinals::Many(_)));
        for ordinal in 0..95 {
            ordinals.remove(ordinal);
        }
        assert!(matches!(ordinals, Ordinals::Few(_)));
        assert_eq!(ordinals.from(0).collect::<Vec<_>>(), [95, 96, 97, 98, 99]);
    }
}
