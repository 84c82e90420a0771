//! A connection's links by their names.
//!
//! Only hashes are kept: an idle connection pays for no second copy of a name. The caller compares
//! the names of the links it finds.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::{LinkId, LinkRole};

#[derive(Debug, Default)]
pub(super) struct LinkNames(BTreeSet<(u64, LinkId)>);

impl LinkNames {
    pub(super) fn insert(&mut self, name: &str, role: LinkRole, id: LinkId) {
        self.0.insert((hash(name, role), id));
    }

    pub(super) fn remove(&mut self, name: &str, role: LinkRole, id: LinkId) {
        self.0.remove(&(hash(name, role), id));
    }

    /// Returns the links that may have a name, the oldest first: all that do, and hardly any other.
    pub(super) fn find(&self, name: &str, role: LinkRole) -> impl Iterator<Item = LinkId> {
        let hash = hash(name, role);
        let range = (hash, LinkId(0))..=(hash, LinkId(u32::MAX));
        self.0.range(range).map(|&(_, id)| id)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

fn hash(name: &str, role: LinkRole) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, role == LinkRole::Incoming).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_found_by_its_name_and_role_until_it_is_removed() {
        let mut names = LinkNames::default();
        for id in 0..1_000 {
            names.insert(&format!("link-{id}"), LinkRole::Incoming, LinkId(id));
        }
        names.insert("link-7", LinkRole::Outgoing, LinkId(2_000));
        names.insert("link-7", LinkRole::Incoming, LinkId(3_000));
        let found =
            |names: &LinkNames| names.find("link-7", LinkRole::Incoming).collect::<Vec<_>>();
        assert_eq!(found(&names), [LinkId(7), LinkId(3_000)]);
        names.remove("link-7", LinkRole::Incoming, LinkId(7));
        assert_eq!(found(&names), [LinkId(3_000)]);
        assert_eq!(names.find("link", LinkRole::Incoming).count(), 0);
        names.clear();
        assert!(found(&names).is_empty());
    }
}
