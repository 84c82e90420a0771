//! The namespaces of this server: those of the configuration, and those that the operator makes and drops while it runs.
//!
//! A namespace that is made is recorded before it is served, and one that is dropped is forgotten after it is gone: a crash in
//! between leaves an empty namespace, or one that is still to be dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::placement::{Placement, PlacementError};
use super::provision::root_rule;
use super::shards::Shards;
use crate::limits;
use jitney_base::rights::Key;
use jitney_broker::access::Authority;
use jitney_broker::namespace::Denied;
use jitney_config::{Configuration, fits_namespace};
use jitney_gateway::operations::{CreateNamespace, DeleteNamespace};
use jitney_gateway::request::{Request, Requester};
use jitney_shard::routing::{Routes, ShardIndex};

/// The namespaces, and where they are recorded.
#[derive(Debug)]
pub(crate) struct ServerNamespaces {
    shards: Arc<Shards>,
    /// Where the record is; without a data directory, nothing is recorded.
    directory: Option<PathBuf>,
    /// Those that the configuration names, in lower case.
    configured: ArcSwap<BTreeSet<String>>,
    /// The key of namespaces that are made.
    root_key: Option<Key>,
    /// How many shards get new namespaces.
    shards_of_new: u32,
    /// Held while one is made or dropped.
    placement: Mutex<Placement>,
}

/// A namespace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamespaceInfo {
    /// In lower case.
    pub(crate) name: String,
    /// The number of its shard; none if another server serves it.
    pub(crate) shard: Option<u32>,
    /// It answers to every host that is no other's.
    pub(crate) is_first: bool,
    /// The configuration names it.
    pub(crate) is_configured: bool,
}

/// Why a namespace was not made or dropped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NamespaceError {
    #[error("'{0}' is no name of a namespace: it has 1 to 50 letters, digits and hyphens.")]
    Name(String),
    #[error("There are {max} namespaces; more are not allowed.", max = limits::NAMESPACES_MAX)]
    TooManyConnections,
    #[error("The namespace '{0}' is there.")]
    Exists(String),
    #[error("There is no namespace '{0}'.")]
    Unknown(String),
    #[error(
        "The configuration names the namespace '{0}': use a configuration file without it first."
    )]
    Configured(String),
    #[error(
        "The namespace '{0}' is the first: hosts that name no other namespace lead to it, and it stays. Its entities can be deleted."
    )]
    First(String),
    #[error(
        "The namespace '{0}' is the first: hosts that name no other namespace lead to it. Only `jitney store delete {0}` removes it. Servers \
         whose configuration names it make it again."
    )]
    FirstOfStore(String),
    #[error(
        "The namespace '{0}' has connections that did not close in time. It is still there, without the entities that were deleted: try again."
    )]
    Busy(String),
    #[error("{0}")]
    Denied(Denied),
    #[error("The broker is stopping.")]
    Stopping,
    #[error(transparent)]
    Record(#[from] PlacementError),
}

/// Returns the names of a configuration's namespaces, in its order and in lower case.
fn names_of(config: &Configuration) -> impl Iterator<Item = String> {
    config.namespaces.iter().map(|it| it.name.to_lowercase())
}

/// Returns a name in lower case.
///
/// # Errors
///
/// No namespace may have it.
pub(crate) fn fitting(name: &str) -> Result<String, NamespaceError> {
    if fits_namespace(name) {
        return Ok(name.to_lowercase());
    }
    let name: String = name
        .chars()
        .take(jitney_broker::limits::LOGGED_MAX)
        .collect();
    Err(NamespaceError::Name(name))
}

impl ServerNamespaces {
    /// Takes the namespaces that were placed at the start, the data directory, and how many shards get new namespaces.
    pub(crate) fn new(
        shards: Arc<Shards>,
        placement: Placement,
        directory: Option<&Path>,
        shards_of_new: u32,
        config: &Configuration,
        root_key: Option<&Key>,
    ) -> Self {
        Self {
            shards,
            directory: directory.map(Path::to_owned),
            configured: ArcSwap::from_pointee(names_of(config).collect()),
            root_key: root_key.cloned(),
            shards_of_new,
            placement: Mutex::new(placement),
        }
    }

    /// Returns the data directory, if there is one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns all namespaces that are served, in the order of their names.
    pub(crate) fn all(&self) -> Vec<NamespaceInfo> {
        let routes = self.shards.routes();
        let configured = self.configured.load();
        let all = routes.namespaces().map(|(name, shard)| NamespaceInfo {
            name: name.to_owned(),
            shard: shard.and_then(|shard| self.shards.number(shard)),
            is_first: name == routes.first(),
            is_configured: configured.contains(name),
        });
        all.collect()
    }

    /// Makes a namespace, and returns once it is recorded and served.
    ///
    /// # Errors
    ///
    /// Nothing has changed then, unless the record was written and the broker stops.
    pub(crate) async fn make(
        &self,
        name: &str,
        authority: Authority,
    ) -> Result<NamespaceInfo, NamespaceError> {
        let name = fitting(name)?;
        let mut placement = self.placement.lock().await;
        let routes = self.shards.routes();
        if routes.has(&name) {
            return Err(NamespaceError::Exists(name));
        }
        if limits::NAMESPACES_MAX <= routes.namespaces().count() {
            return Err(NamespaceError::TooManyConnections);
        }
        let mut changed = placement.clone();
        let number = changed.make(&name, self.shards_of_new);
        self.record(&mut placement, changed).await?;
        let shard = self.shards.index_of(number);
        let shard = shard.expect("namespaces are placed in shards that are there");
        let request = CreateNamespace {
            name: name.clone(),
            rules: self.root_key.iter().map(root_rule).collect(),
        };
        self.request(shard, &name, authority, request).await?;
        self.shards.set_routes(routes.with(&name, shard));
        Ok(NamespaceInfo {
            shard: Some(number),
            is_first: false,
            is_configured: false,
            name,
        })
    }

    /// Places the namespaces of a configuration that was read again. Those that are not served yet are recorded; they are served
    /// once their keys and entities are there, and [`PlacedNamespaces::serve`] is called.
    ///
    /// # Errors
    ///
    /// Nothing has changed.
    pub(crate) async fn place(
        &self,
        config: &Configuration,
    ) -> Result<PlacedNamespaces<'_>, NamespaceError> {
        let placement = self.placement.lock().await;
        let routes = self.shards.routes();
        let new = names_of(config).filter(|name| !routes.has(name));
        let new: Vec<String> = new.collect();
        if limits::NAMESPACES_MAX < routes.namespaces().count() + new.len() {
            return Err(NamespaceError::TooManyConnections);
        }
        let mut changed = placement.clone();
        let place = |name: String| {
            let number = changed.configure(&name, self.shards_of_new);
            let shard = self.shards.index_of(number);
            (
                name,
                shard.expect("namespaces are placed in shards that are there"),
            )
        };
        let mut placed = PlacedNamespaces {
            all: self,
            named: names_of(config).collect(),
            new: new.into_iter().map(place).collect(),
            placement,
        };
        if !placed.new.is_empty() {
            self.record(&mut placed.placement, changed).await?;
        }
        Ok(placed)
    }

    /// Takes the namespaces that the configuration of all servers names.
    pub(crate) fn set_configured(&self, config: &Configuration) {
        self.configured.store(Arc::new(names_of(config).collect()));
    }

    /// Deletes a namespace with its entities and their messages, and returns once that is durable.
    ///
    /// # Errors
    ///
    /// It is still there; some of its entities may have gone.
    pub(crate) async fn delete_one(
        &self,
        name: &str,
        authority: Authority,
    ) -> Result<(), NamespaceError> {
        let name = name.to_lowercase();
        let mut placement = self.placement.lock().await;
        let routes = self.shards.routes();
        if !routes.has(&name) {
            return Err(NamespaceError::Unknown(name));
        }
        self.check_deletion(&name, NamespaceError::First)?;
        let shard = routes.shard_of(Some(&name));
        let shard = shard.ok_or(NamespaceError::Stopping)?;
        // From now on no client finds it.
        self.shards.set_routes(routes.without(&name));
        let dropped = self.drop_in(shard, &name, authority).await;
        if let Err(error) = dropped {
            self.shards
                .set_routes(self.shards.routes().with(&name, shard));
            return Err(error);
        }
        let mut changed = placement.clone();
        changed.forget(&name);
        self.record(&mut placement, changed).await
    }

    /// Checks that a namespace is not the first, nor one that the configuration names.
    pub(crate) fn check_deletion(
        &self,
        name: &str,
        is_first: fn(String) -> NamespaceError,
    ) -> Result<(), NamespaceError> {
        // The first cannot be dropped after the configuration has changed, either.
        if name == self.shards.routes().first() {
            return Err(is_first(name.to_owned()));
        }
        if self.configured.load().contains(name) {
            return Err(NamespaceError::Configured(name.to_owned()));
        }
        Ok(())
    }

    async fn drop_in(
        &self,
        shard: ShardIndex,
        name: &str,
        authority: Authority,
    ) -> Result<(), NamespaceError> {
        let deadline = Instant::now() + limits::DROP_WAIT.as_duration();
        loop {
            let request = DeleteNamespace {
                name: name.to_owned(),
            };
            let is_gone = self.request(shard, name, authority.clone(), request);
            if is_gone.await? {
                return Ok(());
            }
            if deadline < Instant::now() {
                return Err(NamespaceError::Busy(name.to_owned()));
            }
            // Connections need a moment to close.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn request<R: Request>(
        &self,
        shard: ShardIndex,
        name: &str,
        authority: Authority,
        request: R,
    ) -> Result<R::Answer, NamespaceError> {
        let requester = Requester {
            host: Some(name.to_owned()),
            authority,
        };
        let owner = self.shards.owner(shard).ok_or(NamespaceError::Stopping)?;
        let answer = owner.request(requester, request).await;
        answer
            .ok_or(NamespaceError::Stopping)?
            .map_err(NamespaceError::Denied)
    }

    /// Writes the record, and takes it.
    async fn record(
        &self,
        placement: &mut MutexGuard<'_, Placement>,
        changed: Placement,
    ) -> Result<(), NamespaceError> {
        if let Some(directory) = self.directory.clone() {
            let written = changed.clone();
            let stored = tokio::task::spawn_blocking(move || written.store(&directory)).await;
            stored.map_err(|_| NamespaceError::Stopping)??;
        }
        **placement = changed;
        Ok(())
    }
}

/// The namespaces of a configuration, of which the new ones are recorded and not served yet. Meanwhile no other is made or dropped.
pub(crate) struct PlacedNamespaces<'a> {
    all: &'a ServerNamespaces,
    /// All of the configuration, in lower case.
    named: BTreeSet<String>,
    /// Those that are not served yet, in lower case.
    new: BTreeMap<String, ShardIndex>,
    placement: MutexGuard<'a, Placement>,
}

impl PlacedNamespaces<'_> {
    /// Returns whether a namespace is not served yet.
    pub(crate) fn is_new(&self, name: &str) -> bool {
        self.new.contains_key(&name.to_lowercase())
    }

    /// Returns the shard of a namespace of the configuration, if it is served.
    pub(crate) fn shard_of(&self, name: &str) -> Option<ShardIndex> {
        let new = self.new.get(&name.to_lowercase()).copied();
        new.or_else(|| self.all.shards.routes().shard_of(Some(name)))
    }

    /// Serves the new ones.
    pub(crate) fn serve(self) {
        let mut routes = Routes::clone(&self.all.shards.routes());
        for (name, shard) in &self.new {
            routes = routes.with(name, *shard);
        }
        self.all.shards.set_routes(routes);
        self.all.configured.store(Arc::new(self.named));
        drop(self.placement);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    /// Returns the namespaces `one` and `two`, each in a shard of its own.
    fn served() -> ServerNamespaces {
        let (mail, _) = mpsc::channel(1);
        let shards = Shards::of(vec![("one", mail.clone()), ("two", mail)]);
        let mut placement = Placement::default();
        placement.configure("one", 2);
        placement.configure("two", 2);
        ServerNamespaces {
            shards: Arc::new(shards),
            directory: None,
            configured: ArcSwap::from_pointee(["one".to_owned()].into()),
            root_key: None,
            shards_of_new: 2,
            placement: Mutex::new(placement),
        }
    }

    fn named(names: impl IntoIterator<Item = impl std::fmt::Display>) -> Configuration {
        let all = names
            .into_iter()
            .map(|name| format!(r#"{{"Name": "{name}"}}"#));
        let all: Vec<String> = all.collect();
        let text = format!(
            r#"{{"UserConfig": {{"Namespaces": [{}]}}}}"#,
            all.join(", ")
        );
        jitney_config::parse(&text).unwrap()
    }

    #[tokio::test]
    async fn a_new_namespace_is_served_after_it_was_placed() {
        let namespaces = served();
        let placed = namespaces
            .place(&named(["one", "TWO", "New"]))
            .await
            .unwrap();
        assert!(placed.is_new("new") && !placed.is_new("Two"));
        assert_eq!(placed.shard_of("two"), Some(ShardIndex(1)));
        assert_eq!(placed.shard_of("NEW"), Some(ShardIndex(0)));
        assert!(!namespaces.shards.routes().has("new"));
        assert!(
            namespaces.placement.try_lock().is_err(),
            "no other makes it meanwhile"
        );
        placed.serve();
        let all = namespaces.all().into_iter();
        let all: Vec<_> = all
            .map(|it| (it.name, it.shard, it.is_configured))
            .collect();
        let wanted = [("new", 0, true), ("one", 0, true), ("two", 1, true)];
        assert_eq!(
            all,
            wanted.map(|(name, at, is)| (name.to_owned(), Some(at), is))
        );
        assert_eq!(namespaces.placement.lock().await.made().count(), 0);
    }

    #[tokio::test]
    async fn a_drop_is_refused_for_the_reason_that_holds() {
        let namespaces = served();
        for configured in [&["two"][..], &["one", "two"]] {
            namespaces.set_configured(&named(configured));
            let refused = |name| namespaces.delete_one(name, Authority::everything());
            let first = refused("ONE").await.unwrap_err();
            assert!(
                matches!(&first, NamespaceError::First(name) if name == "one"),
                "{first}"
            );
            let configured = refused("two").await.unwrap_err();
            assert!(
                matches!(configured, NamespaceError::Configured(_)),
                "{configured}"
            );
        }
        let first = namespaces.check_deletion("one", NamespaceError::FirstOfStore);
        let text = first.unwrap_err().to_string();
        assert!(
            text.contains("`jitney store delete one`") && !text.contains("file"),
            "{text}"
        );
        namespaces.set_configured(&named(["one"]));
        namespaces
            .check_deletion("two", NamespaceError::First)
            .unwrap();
    }

    #[tokio::test]
    async fn a_file_with_too_many_namespaces_changes_nothing() {
        let namespaces = served();
        let more = (0..limits::NAMESPACES_MAX).map(|at| format!("new-{at}"));
        let placed = namespaces.place(&named(more)).await;
        assert!(matches!(placed, Err(NamespaceError::TooManyConnections)));
        assert_eq!(namespaces.all().len(), 2);
        let placement = namespaces.placement.lock().await;
        assert_eq!(placement.shards(0).len(), 2);
    }
}
