//! The configuration file, read again while the server runs: after SIGHUP, and when its text has changed.
//!
//! What the file names is made and changed as at the start. What it names no longer stays, unless the operator has it deleted.
//! A namespace that it names no longer is served until the next start; whether keys are verified is fixed until then, too.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tracing::{error, info, warn};

use super::cli;
use super::mailbox::Mail;
use super::namespaces::{PlacedNamespaces, ServerNamespaces};
use super::shards::Shards;
use crate::access::Actor;
use crate::address;
use crate::config::{Configuration, Namespace};
use crate::limits;
use crate::rights::Key;
use crate::shard::routing::ShardIndex;

/// The file, and what was read from it last.
pub(super) struct WatchedConfig {
    pub(super) file: PathBuf,
    pub(super) config: Configuration,
    /// For the namespaces that have no keys in the file.
    pub(super) root_key: Option<Key>,
    /// Entities that the file names no longer are deleted.
    pub(super) deletes: bool,
}

/// The changes that a shard makes.
#[derive(Debug)]
pub(super) struct Reload {
    pub(super) namespaces: Vec<Namespace>,
    /// The names of those that are not there yet.
    pub(super) new: Vec<String>,
    /// Namespaces and paths of entities that are to be deleted.
    pub(super) deleted: Vec<(String, String)>,
    /// The keys and the tier of the namespaces change, too.
    pub(super) keys: Option<NamespaceKeys>,
    /// For the audit log.
    pub(super) actor: Actor,
}

/// The key of namespaces that have none in the file.
#[derive(Debug)]
pub(super) struct NamespaceKeys {
    pub(super) root_key: Option<Key>,
}

/// What a shard has done.
#[derive(Debug, Default)]
pub(super) struct Reloaded {
    pub(super) made: usize,
    pub(super) changed: usize,
    pub(super) deleted: usize,
    /// A sentence for each entity that could not be made or changed.
    pub(super) refused: Vec<String>,
}

/// Follows the file until the stop: it is read periodically, and at once on SIGHUP, which is `hangup`.
pub(super) async fn watch(
    mut watched: WatchedConfig,
    (shards, namespaces): (Arc<Shards>, Arc<ServerNamespaces>),
    mut hangup: Signal,
    mut stopped: watch::Receiver<bool>,
) {
    let mut looks = tokio::time::interval(limits::CONFIG_CHECK_INTERVAL.as_duration());
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = None;
    loop {
        let is_asked = tokio::select! {
            _ = looks.tick() => false,
            _ = hangup.recv() => true,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let file = watched.file.clone();
        // A directory on a network may be slow.
        let read = tokio::task::spawn_blocking(move || cli::read_config(&file)).await;
        let read = read.unwrap_or_else(|error| Err(error.to_string()));
        if seen.as_ref() == Some(&read) && !is_asked {
            continue;
        }
        let parsed = read.clone();
        seen = Some(read);
        match parsed.and_then(|text| cli::parse_config(&watched.file, &text)) {
            Ok(config) if is_asked || config != watched.config => {
                watched.apply(config, &shards, &namespaces).await;
            }
            Ok(_) => {}
            Err(mistakes) => {
                error!("the configuration is not used, and the previous one stays: {mistakes}");
            }
        }
    }
}

impl WatchedConfig {
    /// Brings what a configuration names about.
    async fn apply(
        &mut self,
        mut config: Configuration,
        shards: &Shards,
        namespaces: &ServerNamespaces,
    ) {
        self.keep_fixed(&mut config, shards);
        let placed = match namespaces.place(&config).await {
            Ok(placed) => placed,
            Err(error) => {
                error!("the configuration is not used, and the previous one stays: {error}");
                return;
            }
        };
        let gone = gone(&self.config, &config);
        if !self.deletes {
            for (namespace, path) in &gone {
                info!(
                    namespace,
                    path, "the configuration names it no longer: it stays"
                );
            }
        }
        let deleted = if self.deletes { gone } else { Vec::new() };
        let mut sum = Reloaded::default();
        for (shard, reload) in self.by_shard(&config, deleted, &placed) {
            let Some(owner) = shards.owner(shard) else {
                continue;
            };
            let reload = Box::new(reload);
            match owner.ask(|answer| Mail::Reload(reload, answer)).await {
                Some(done) => sum.add(done),
                None => return,
            }
        }
        placed.serve();
        for refused in &sum.refused {
            error!("the configuration cannot be applied in this part: {refused}");
        }
        let Reloaded {
            made,
            changed,
            deleted,
            refused,
        } = sum;
        let refused = refused.len();
        info!(
            made,
            changed, deleted, refused, "the configuration was read again"
        );
        self.config = config;
    }

    /// Returns what each shard is to do.
    fn by_shard(
        &self,
        config: &Configuration,
        deleted: Vec<(String, String)>,
        placed: &PlacedNamespaces<'_>,
    ) -> BTreeMap<ShardIndex, Reload> {
        let mut found: BTreeMap<ShardIndex, Reload> = BTreeMap::new();
        let begun = || Reload {
            namespaces: Vec::new(),
            new: Vec::new(),
            deleted: Vec::new(),
            keys: Some(NamespaceKeys {
                root_key: self.root_key.clone(),
            }),
            actor: Actor {
                name: "the configuration file".to_owned(),
                peer: String::new(),
            },
        };
        for namespace in &config.namespaces {
            let Some(shard) = placed.shard_of(&namespace.name) else {
                continue;
            };
            let reload = found.entry(shard).or_insert_with(begun);
            if placed.is_new(&namespace.name) {
                reload.new.push(namespace.name.clone());
            }
            reload.namespaces.push(namespace.clone());
        }
        for (namespace, path) in deleted {
            if !has(config, &namespace) {
                continue;
            }
            let Some(shard) = placed.shard_of(&namespace) else {
                continue;
            };
            let reload = found.entry(shard).or_insert_with(begun);
            reload.deleted.push((namespace, path));
        }
        found
    }

    /// Keeps what is fixed until the next start, and says so.
    fn keep_fixed(&self, config: &mut Configuration, shards: &Shards) {
        let routes = shards.routes();
        let first = config.namespaces.first();
        if first.is_some_and(|first| !routes.has(&first.name)) {
            let renamed = config.namespaces.remove(0);
            warn!(
                first = routes.first(),
                named = renamed.name,
                "the configuration names another namespace first: the first one keeps its name until the next start, and this is \
                 not applied. Put a new namespace behind the first one"
            );
        }
        if has_rules(config) && !has_rules(&self.config) {
            warn!(
                "the configuration has AuthorizationRules now: whether keys are verified stays as it is until the next start"
            );
        }
        let known = self.config.namespaces.iter();
        for namespace in known.filter(|it| !has(config, &it.name)) {
            let namespace = &namespace.name;
            warn!(
                namespace,
                "the configuration has this namespace no longer: it is served with all its entities until the next start"
            );
        }
        for namespace in &mut config.namespaces {
            let known = self.config.namespaces.iter();
            let known = known
                .filter(|known| known.name == namespace.name)
                .map(|known| &known.authorization);
            let had_rules = known.clone().any(|rules| !rules.is_empty());
            if namespace.authorization.is_empty() && had_rules {
                let namespace_name = &namespace.name;
                warn!(
                    namespace = namespace_name,
                    "the configuration has no AuthorizationRules for it any more: they stay until the next start"
                );
                namespace.authorization = known.flatten().cloned().collect();
            }
        }
    }
}

impl Reloaded {
    fn add(&mut self, other: Self) {
        self.made += other.made;
        self.changed += other.changed;
        self.deleted += other.deleted;
        self.refused.extend(other.refused);
    }
}

/// Returns whether a configuration has keys of namespaces.
fn has_rules(config: &Configuration) -> bool {
    let mut all = config.namespaces.iter();
    all.any(|it| !it.authorization.is_empty())
}

/// Returns whether a configuration names a namespace.
fn has(config: &Configuration, name: &str) -> bool {
    let mut all = config.namespaces.iter();
    all.any(|it| it.name.eq_ignore_ascii_case(name))
}

/// Returns the namespaces and the paths of entities that the second configuration does not have.
fn gone(before: &Configuration, after: &Configuration) -> Vec<(String, String)> {
    let still: Vec<(String, String)> = named(after).collect();
    let key = |(namespace, path): &(String, String)| (namespace.to_lowercase(), address::key(path));
    let still: std::collections::BTreeSet<_> = still.iter().map(key).collect();
    named(before)
        .filter(|entity| !still.contains(&key(entity)))
        .collect()
}

/// Returns the namespaces and the paths of all entities; subscriptions before their topics.
fn named(config: &Configuration) -> impl Iterator<Item = (String, String)> {
    config.namespaces.iter().flat_map(|namespace| {
        let queues = namespace.queues.iter().map(|queue| queue.name.clone());
        let topics = namespace.topics.iter().flat_map(|topic| {
            let subscriptions = topic.subscriptions.iter();
            let paths = subscriptions.map(|it| address::subscription(&topic.name, &it.name));
            paths.chain([topic.name.clone()])
        });
        let paths = queues.chain(topics);
        paths.map(|path| (namespace.name.clone(), path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn entities_that_a_file_names_no_longer_are_found() {
        let parse = |queues: &str, topics: &str| {
            let text = format!(
                r#"{{"UserConfig": {{"Namespaces": [{{"Name": "ns", "Queues": [{queues}], "Topics": [{topics}]}}]}}}}"#
            );
            config::parse(&text).unwrap()
        };
        let before = parse(
            r#"{"Name": "a"}, {"Name": "b"}"#,
            r#"{"Name": "t", "Subscriptions": [{"Name": "x"}, {"Name": "y"}]}"#,
        );
        let after = parse(
            r#"{"Name": "A"}"#,
            r#"{"Name": "t", "Subscriptions": [{"Name": "x"}]}"#,
        );
        let wanted = [("ns", "b"), ("ns", "t/Subscriptions/y")];
        let wanted = wanted.map(|(name, path)| (name.to_owned(), path.to_owned()));
        assert_eq!(gone(&before, &after), wanted);
        assert_eq!(gone(&after, &before), []);
    }
}
