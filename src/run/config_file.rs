//! The configuration file, read again while the server runs: after SIGHUP, and when its text has changed.
//!
//! What the file names is made and changed as at the start. An entity that it names no longer stays, unless the operator has it
//! deleted. A namespace that it names no longer stays always: a file deletes no namespace. Whether keys are verified is fixed until
//! the next start.
//!
//! Where servers share namespaces, a change of the file is written to the store once, and every server applies it to the
//! namespaces that it has (`store/configure.rs`). The file that changed last counts. One that is unchanged is written once at
//! most: at the start, or when the store is back that was away then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tracing::{error, info, warn};

use crate::host::configuration::{self, ConfigurationReading};
use crate::host::namespaces::{PlacedNamespaces, ServerNamespaces};
use crate::host::owner_message::{NamespaceKeys, Reload, Reloaded};
use crate::host::reload::{actor, apply, gone, has};
use crate::host::shards::Shards;
use crate::limits;
use crate::store::{Fleet, Published, StoreError};
use jitney_base::rights::Key;
use jitney_config::Configuration;
use jitney_shard::routing::ShardIndex;

/// Whether a file that is followed is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// It was not there at the start, and may come: into a container, for example.
    Awaited,
    /// It was read at the start.
    Expected,
}

/// The file, and what was read from it last.
pub(super) struct WatchedConfig {
    pub(crate) file: PathBuf,
    pub(super) presence: Presence,
    pub(crate) reading: ConfigurationReading,
    pub(crate) config: Configuration,
    /// For the namespaces that have no keys in the file.
    pub(crate) root_key: Option<Key>,
    /// Entities that the file names no longer are deleted.
    pub(super) deletes: bool,
}

/// The file of a server that shares its namespaces with others.
#[derive(Debug, Clone)]
pub(super) struct SharedFile {
    pub(crate) path: PathBuf,
    presence: Presence,
    /// Its text, as it was read last.
    text: String,
    /// The store has had that text, since the start at least.
    is_recorded: bool,
    /// The number that the store gave to that text, when it was read last; or if it is not recorded, the number of the newest
    /// configuration that was known at the start.
    number: i64,
}

/// What is to be done with a text of a file.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// The store has had it.
    Nothing,
    /// Only spaces differ from what is applied already.
    Same,
    /// It is to be the store's, unless the store got it after the one with this number.
    Publish(i64),
}

/// What failed last: it is logged when it is another failure.
#[derive(Default)]
struct Complaint(Option<String>);

/// Follows the file until the stop: it is read periodically, and at once on SIGHUP, which is `hangup`.
pub(super) async fn watch(
    mut watched: WatchedConfig,
    shards: Arc<Shards>,
    namespaces: Arc<ServerNamespaces>,
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
        let Some(read) = watched.read().await else {
            continue;
        };
        if seen.as_ref() == Some(&read) && !is_asked {
            continue;
        }
        let parsed = read.clone();
        seen = Some(read);
        let name = watched.file.display().to_string();
        let parsed = parsed.and_then(|text| watched.reading.parse_with_warnings(&name, &text));
        match parsed {
            Ok((config, warnings)) if is_asked || config != watched.config => {
                for warning in &warnings {
                    warn!("{warning}");
                }
                watched.apply(config, &shards, &namespaces).await;
            }
            // Its warnings were logged with the configuration that is used.
            Ok(_) => {}
            Err(mistakes) => {
                error!("the configuration is not used, and the previous one stays: {mistakes}");
            }
        }
    }
}

/// Follows the store's configuration until the stop, and the file of this server if it has one: both are read periodically, and
/// at once on SIGHUP, which is `hangup`.
pub(super) async fn watch_shared(
    mut file: Option<SharedFile>,
    fleet: Arc<Fleet>,
    namespaces: Arc<ServerNamespaces>,
    mut hangup: Signal,
    mut stopped: watch::Receiver<bool>,
) {
    let mut looks = tokio::time::interval(limits::CONFIG_CHECK_INTERVAL.as_duration());
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = None;
    let (mut unfollowed, mut unwritten) = (Complaint::default(), Complaint::default());
    loop {
        tokio::select! {
            _ = looks.tick() => {}
            _ = hangup.recv() => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
        let mut followed = fleet.follow_configuration().await;
        if let Some(file) = &mut file
            && let Some(read) = read(&file.path, &mut file.presence).await
            && seen.as_ref() != Some(&read)
        {
            let taken = file.take(&read, &fleet).await;
            if taken.is_ok() {
                seen = Some(read);
                followed = fleet.follow_configuration().await;
            }
            unwritten.note("the configuration file is not in the store yet", taken);
        }
        unfollowed.note("the store's configuration cannot be followed", followed);
        namespaces.set_configured(&fleet.configuration().config);
    }
}

/// Reads a file; `None` if it is still awaited. A directory on a network may be slow.
async fn read(file: &Path, presence: &mut Presence) -> Option<Result<String, String>> {
    let path = file.to_owned();
    let read =
        tokio::task::spawn_blocking(move || (path.exists(), configuration::read(&path))).await;
    let (is_there, read) = match read {
        Ok(read) => read,
        Err(error) => (true, Err(error.to_string())),
    };
    if *presence == Presence::Awaited {
        if !is_there {
            return None;
        }
        info!(file = %file.display(), "the configuration file is there now");
        *presence = Presence::Expected;
    }
    Some(read)
}

impl Complaint {
    /// Takes how something has ended, and logs a failure that is not the last one.
    fn note(&mut self, what: &str, ended: Result<(), StoreError>) {
        let failed = ended.err().map(|error| error.to_string());
        if let Some(error) = failed.as_ref().filter(|_| failed != self.0) {
            warn!("{what}, and this is tried again: {error}");
        }
        self.0 = failed;
    }
}

impl SharedFile {
    /// Takes a file that was read at the start: its text, the number that the store gave to it, and the newest number that is
    /// known. The text has no number if the store could not be reached whose configuration counts.
    pub(crate) fn new(path: &Path, text: String, number: Option<i64>, newest: i64) -> Self {
        Self {
            path: path.to_owned(),
            presence: Presence::Expected,
            text,
            is_recorded: number.is_some(),
            number: number.unwrap_or(newest),
        }
    }

    /// Takes the place of a file that may come; the newest number is known.
    pub(crate) fn awaited(path: &Path, newest: i64) -> Self {
        Self {
            presence: Presence::Awaited,
            ..Self::new(path, String::new(), None, newest)
        }
    }

    /// Warns if the store has a configuration that is newer than the file.
    pub(super) fn warn_if_older(&self, newest: i64) {
        if self.is_older(newest) {
            warn!(
                file = %self.path.display(),
                "the store has a newer configuration than this file, and the newer one stays in use. A changed file becomes the newest"
            );
        }
    }

    fn is_older(&self, newest: i64) -> bool {
        self.is_recorded && self.number < newest
    }

    /// Writes the file to the store if it has changed, or was not recorded yet.
    ///
    /// # Errors
    ///
    /// The store's; it is to be tried again.
    async fn take(
        &mut self,
        read: &Result<String, String>,
        fleet: &Fleet,
    ) -> Result<(), StoreError> {
        let parsed = read.as_ref().map_err(Clone::clone);
        let name = self.path.display().to_string();
        let parsed =
            parsed.and_then(|text| Ok((text, ConfigurationReading::SHARED.parse(&name, text)?)));
        let (text, config) = match parsed {
            Ok(parsed) => parsed,
            Err(mistakes) => {
                error!("the configuration is not used, and the previous one stays: {mistakes}");
                return Ok(());
            }
        };
        let current = fleet.configuration();
        match self.step(text, &config, &current.config) {
            Step::Nothing => {}
            Step::Same => self.set(text, current.number),
            Step::Publish(before) => {
                let published = fleet.publish(text, before).await?;
                self.set(text, published.number());
                match published {
                    Published::Written(number) => {
                        info!(
                            number,
                            "the configuration file is the store's configuration now"
                        );
                        warn_of_fixed(&current.config, &config);
                    }
                    Published::Known(_) => self.warn_if_older(current.number),
                }
            }
        }
        Ok(())
    }

    /// Returns what is to be done with a text that was read, where another configuration is applied.
    fn step(&self, text: &str, config: &Configuration, applied: &Configuration) -> Step {
        match (self.is_recorded, text == self.text) {
            (true, true) => Step::Nothing,
            // As at a start: a text that the store has had is not the newest again.
            (false, true) => Step::Publish(0),
            // What is applied before the text is recorded may be this file's, or a copy of an older one.
            (true, false) if config == applied => Step::Same,
            (_, false) => Step::Publish(self.number),
        }
    }

    /// Takes a text that the store has, with its number.
    fn set(&mut self, text: &str, number: i64) {
        text.clone_into(&mut self.text);
        self.number = number;
        self.is_recorded = true;
    }
}

/// Says what a new configuration does not change in namespaces that servers share.
fn warn_of_fixed(before: &Configuration, after: &Configuration) {
    warn_of_rules(before, after);
    for namespace in removed(before, after) {
        warn!(
            namespace,
            "the configuration names this namespace no longer: a file deletes no namespace, and it stays with its entities and \
             messages. Only the root key is good in it. `jitney namespaces delete {namespace}` deletes it"
        );
    }
}

/// Says that whether keys are verified is fixed.
fn warn_of_rules(before: &Configuration, after: &Configuration) {
    if has_rules(after) && !has_rules(before) {
        warn!(
            "the configuration has AuthorizationRules now: whether keys are verified stays as it is until the next start"
        );
    }
}

/// Returns the namespaces that the second configuration does not name.
fn removed<'a>(
    before: &'a Configuration,
    after: &Configuration,
) -> impl Iterator<Item = &'a String> {
    let known = before.namespaces.iter().map(|it| &it.name);
    known.filter(|name| !has(after, name))
}

impl WatchedConfig {
    /// Reads the file; `None` if it is still awaited.
    async fn read(&mut self) -> Option<Result<String, String>> {
        read(&self.file, &mut self.presence).await
    }

    /// Makes and changes what a configuration names.
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
            match apply(&owner, reload).await {
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
            actor: actor(),
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
        warn_of_rules(&self.config, config);
        for namespace in removed(&self.config, config) {
            warn!(
                namespace,
                "the configuration names this namespace no longer: a file deletes no namespace, and it is served with its entities \
                 and messages until the next start. `jitney namespaces delete {namespace}` deletes it"
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

/// Returns whether a configuration has keys of namespaces.
fn has_rules(config: &Configuration) -> bool {
    let mut all = config.namespaces.iter();
    all.any(|it| !it.authorization.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_recorded_once_and_only_a_change_is_after_that() {
        let text =
            |name: &str| format!(r#"{{"UserConfig": {{"Namespaces": [{{"Name": "{name}"}}]}}}}"#);
        let (own, other) = (text("own"), text("other"));
        let spaces = format!("{own} ");
        let step = |file: &SharedFile, text: &str, applied: &str| {
            let parse = |text: &str| jitney_config::parse(text).unwrap();
            file.step(text, &parse(text), &parse(applied))
        };
        let at_start = |number| SharedFile::new(Path::new("file"), own.clone(), number, 7);
        // The store was away whose configuration counts.
        let mut file = at_start(None);
        assert!(!file.is_older(7), "what it had is unknown");
        for applied in [&own, &other] {
            assert_eq!(step(&file, &own, applied), Step::Publish(0));
            assert_eq!(step(&file, &spaces, applied), Step::Publish(7));
        }
        file.set(&own, 3);
        for file in [file, at_start(Some(3))] {
            assert!(file.is_older(7) && !file.is_older(3));
            assert_eq!(step(&file, &own, &other), Step::Nothing);
            assert_eq!(step(&file, &other, &own), Step::Publish(3));
            assert_eq!(step(&file, &spaces, &own), Step::Same);
            assert_eq!(step(&file, &spaces, &other), Step::Publish(3));
        }
    }

    #[test]
    fn a_file_that_comes_later_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("Config.json");
        let mut watched = WatchedConfig {
            file: file.clone(),
            presence: Presence::Awaited,
            reading: ConfigurationReading::SHARED,
            config: Configuration::default(),
            root_key: None,
            deletes: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        assert_eq!(runtime.block_on(watched.read()), None);
        std::fs::write(&file, "{}").unwrap();
        let read = runtime.block_on(watched.read());
        assert_eq!(read, Some(Ok("{}".to_owned())));
        // From then on it is missed.
        std::fs::remove_file(&file).unwrap();
        let read = runtime.block_on(watched.read());
        assert!(read.is_some_and(|read| read.is_err()));
    }
}
