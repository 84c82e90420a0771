//! Entities by their paths, namespaces by their names, and the authorization rules of both.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::Tier;
use crate::access::RuleSource;
use jitney_base::address;
use jitney_base::ids::EntityId;
use jitney_base::rights::AuthorizationRule;
use jitney_queue::{Description, EntityKind};

/// The namespaces of a shard, and the paths of their entities.
///
/// The paths of the first namespace are plain; those of another have a prefix, so that one tree holds all
/// ([`address::namespace_prefix`]).
#[derive(Debug, Default)]
pub struct Directory {
    /// By the form of the path that compares without case.
    by_path: BTreeMap<String, Entity>,
    /// How many of them each namespace has that has any, by the prefix of its paths.
    counts: BTreeMap<String, usize>,
    /// The names of the namespaces, in lower case. The first one answers to every host name that is no
    /// other's.
    names: Vec<String>,
    /// The prefixes of the namespaces of the Standard tier.
    standard: BTreeSet<String>,
    /// The authorization rules of entities that have any, by the key of the entity's path.
    rules: BTreeMap<String, Vec<AuthorizationRule>>,
}

/// A queue, a topic or a subscription in the directory.
#[derive(Debug, Clone)]
pub(crate) struct Entity {
    /// As its creator spelled it.
    pub(crate) path: String,
    /// The id of its main queue.
    pub(crate) base: EntityId,
    /// Its kind, which never changes. It is here so that a list looks at no other entity's queue.
    pub(crate) kind: EntityKind,
}

impl Directory {
    /// Names the namespaces; the first one answers to every host name that is no other's.
    pub(super) fn set_names<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        self.names = names.map(str::to_lowercase).collect();
    }

    /// Adds a namespace, which is not there.
    pub(super) fn add_name(&mut self, name: &str) {
        let name = name.to_lowercase();
        debug_assert!(!self.names.contains(&name), "a name is unique");
        self.names.push(name);
    }

    /// Removes a namespace that has no entities, and its tier. The first stays.
    pub(super) fn remove_name(&mut self, name: &str) {
        let name = name.to_lowercase();
        let first = self.names.first().cloned();
        self.names
            .retain(|other| *other != name || first.as_ref() == Some(other));
        self.standard.remove(&address::namespace_prefix(&name));
    }

    /// Returns whether there is a namespace of this name besides the first.
    pub(super) fn has_name(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.names.iter().skip(1).any(|other| *other == name)
    }

    /// Returns the name of the first namespace, if it has one.
    pub(super) fn first_name(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }

    /// Finds the namespace that a client means by a host name: by its first label. Returns the prefix of the
    /// paths of its entities.
    pub fn namespace_of(&self, hostname: Option<&str>) -> String {
        self.prefix_of(address::namespace_label(hostname))
    }

    /// Returns the prefix of the paths of a namespace's entities; of an unknown one, that of the first.
    pub(crate) fn prefix_of(&self, namespace: &str) -> String {
        if self.has_name(namespace) {
            return address::namespace_prefix(&namespace.to_lowercase());
        }
        String::new()
    }

    /// Returns the name of the namespace of a path, in lower case; empty if the first has none.
    pub fn name_of(&self, path: &str) -> String {
        let prefix = address::namespace_of(path);
        if prefix.is_empty() {
            return self.first_name().unwrap_or_default().to_owned();
        }
        prefix.trim_matches('/').to_owned()
    }

    /// Returns the prefixes of the paths of all namespaces.
    pub(super) fn prefixes(&self) -> BTreeSet<String> {
        let others = self.names.iter().skip(1);
        let others = others.map(|name| address::namespace_prefix(name));
        others.chain([String::new()]).collect()
    }

    /// Puts a namespace into a tier, by the prefix of its paths.
    pub(super) fn set_tier(&mut self, prefix: String, tier: Tier) {
        match tier {
            Tier::Premium => {
                self.standard.remove(&prefix);
            }
            Tier::Standard => {
                self.standard.insert(prefix);
            }
        }
    }

    /// Returns the tier of the namespace of a path.
    pub fn tier_of(&self, path: &str) -> Tier {
        if self.standard.contains(address::namespace_of(path)) {
            Tier::Standard
        } else {
            Tier::Premium
        }
    }

    /// Returns the names of the namespaces that have entities, in lower case, except the first: the paths of its
    /// entities name no namespace.
    pub(super) fn names_with_entities(&self) -> BTreeSet<String> {
        let prefixes = self.by_path.keys().map(|path| address::namespace_of(path));
        let named = prefixes.filter(|prefix| !prefix.is_empty());
        named
            .map(|prefix| prefix.trim_matches('/').to_owned())
            .collect()
    }

    /// Returns the number of entities.
    pub(super) fn len(&self) -> usize {
        self.by_path.len()
    }

    /// Returns the number of a namespace's entities, by the prefix of its paths.
    pub(super) fn len_of(&self, prefix: &str) -> usize {
        self.counts.get(prefix).copied().unwrap_or_default()
    }

    /// Returns the numbers of the entities of all namespaces that have some, by the prefixes of their paths.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&str, usize)> {
        let counts = self.counts.iter();
        counts.map(|(prefix, count)| (prefix.as_str(), *count))
    }

    /// Returns whether there is more than one namespace.
    pub(super) fn has_several(&self) -> bool {
        1 < self.names.len()
    }

    fn count_one_less(&mut self, prefix: &str) {
        match self.len_of(prefix) {
            0 | 1 => drop(self.counts.remove(prefix)),
            count => drop(self.counts.insert(prefix.to_owned(), count - 1)),
        }
    }

    /// Returns all entities, in the order of their paths.
    pub(super) fn entities(&self) -> impl Iterator<Item = &Entity> {
        self.by_path.values()
    }

    /// Returns the entities of a namespace, by the prefix of its paths, whose keys are at or behind one, in order, with
    /// their keys.
    pub(super) fn entities_of(
        &self,
        prefix: &str,
        key: &str,
    ) -> impl Iterator<Item = (&str, &Entity)> {
        // Keys of other namespaces begin with two slashes. Those of the first one are on both sides of them: its names may
        // begin with `-` and `.`.
        const OTHERS: &str = "//";
        const BEHIND_OTHERS: &str = "/0";
        let is_first = prefix.is_empty();
        let end = if is_first { OTHERS } else { BEHIND_OTHERS };
        let before = (Bound::Included(key), Bound::Excluded(end));
        let before = (key < end).then(|| self.by_path.range::<str, _>(before));
        let behind = (Bound::Included(key.max(BEHIND_OTHERS)), Bound::Unbounded);
        let behind = is_first.then(|| self.by_path.range::<str, _>(behind));
        let prefix = address::key(prefix);
        let all = before.into_iter().chain(behind).flatten();
        all.map(|(key, entity)| (key.as_str(), entity))
            .take_while(move |(key, _)| key.starts_with(&prefix))
    }

    /// Returns the entities whose keys are at or behind one, in order, with their keys.
    pub(super) fn entities_from(&self, key: &str) -> impl Iterator<Item = (&str, &Entity)> {
        let range = (Bound::Included(key), Bound::Unbounded);
        let rest = self.by_path.range::<str, _>(range);
        rest.map(|(key, entity)| (key.as_str(), entity))
    }

    /// Finds an entity by its path, whatever its case.
    pub(crate) fn find(&self, path: &str) -> Option<EntityId> {
        Some(self.by_path.get(&address::key(path))?.base)
    }

    /// Adds an entity.
    pub(super) fn insert(&mut self, base: EntityId, path: &str, kind: EntityKind) {
        let path = path.to_owned();
        let entity = Entity { path, base, kind };
        let prefix = address::namespace_of(&entity.path).to_owned();
        let before = self.by_path.insert(address::key(&entity.path), entity);
        if before.is_none() {
            *self.counts.entry(prefix).or_default() += 1;
        }
    }

    /// Removes the entity at a path, and returns it.
    pub(super) fn remove(&mut self, path: &str) -> Option<Entity> {
        let key = address::key(path);
        self.rules.remove(&key);
        let removed = self.by_path.remove(&key)?;
        self.count_one_less(address::namespace_of(&removed.path));
        Some(removed)
    }

    /// Removes an entity that is known by its id only.
    pub(super) fn remove_id(&mut self, base: EntityId) {
        let named = self.by_path.values().filter(|it| it.base == base);
        for path in named.map(|it| it.path.clone()).collect::<Vec<_>>() {
            self.remove(&path);
        }
    }

    /// Takes the authorization rules of an entity over from its description.
    pub(super) fn describe(&mut self, path: &str, description: &Description) {
        let key = address::key(path);
        if description.authorization.is_empty() {
            self.rules.remove(&key);
        } else {
            self.rules.insert(key, description.authorization.clone());
        }
    }

    /// Checks that rules belong to entities that are there.
    pub(super) fn check(&self) {
        assert_eq!(self.counts.values().sum::<usize>(), self.by_path.len());
        for key in self.rules.keys() {
            assert!(self.by_path.contains_key(key), "'{key}' is no entity");
        }
    }
}

impl RuleSource for Directory {
    fn rules_at(&self, key: &str) -> &[AuthorizationRule] {
        self.rules.get(key).map_or(&[], Vec::as_slice)
    }

    fn all_rules(&self) -> impl Iterator<Item = (&str, &AuthorizationRule)> {
        let all = self.rules.iter();
        all.flat_map(|(key, rules)| rules.iter().map(move |rule| (key.as_str(), rule)))
    }

    fn is_entity(&self, path: &str) -> bool {
        self.find(path).is_some()
    }
}
