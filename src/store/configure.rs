//! The configuration that servers share: texts of Config.json, of which the newest of the first store counts, and which of them was
//! applied to which namespace. The other stores have copies.
//!
//! A server writes its file once if the store never had it, and when it has changed: two servers with different files do not write
//! in turns. A text that the store got since the server's file was another is not written again: a server that is late changes
//! nothing back. Each server applies the newest text to the namespaces that it has; what was applied is recorded after it is
//! durable. Each namespace has a task for that: an owner whose store is away keeps no other one from being configured.

use std::sync::Arc;

use tokio::task::JoinSet;
use tracing::{error, info, warn};

use super::common;
use super::configuration::{Published, StoreConfiguration, hash_of, parse, report_refused};
use super::fleet::{Fleet, FleetStore};
use crate::host::owner_message::{NamespaceKeys, Reload, Reloaded};
use crate::host::reload;
use crate::system::supervisor;
use jitney_config::Configuration;
use jitney_postgres::{Store, StoreError};

/// A namespace that this server has, to which another configuration was applied.
struct Outdated {
    id: i64,
    name: String,
    /// The hash of that; none if none was.
    applied: Option<String>,
    /// It was provisioned with the new one when it was taken over.
    is_provisioned: bool,
}

impl Fleet {
    /// Returns the store's configuration, as this server has read it last.
    pub(crate) fn configuration(&self) -> Arc<StoreConfiguration> {
        self.serving_parts().configuration.load_full()
    }

    /// Makes a text the configuration of all servers, unless the store got it after the one with this number.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(crate) async fn publish(&self, text: &str, before: i64) -> Result<Published, StoreError> {
        let hash = hash_of(text);
        let store = self.stores.home();
        let session = store.take().await?;
        let sql = "insert into configuration (hash, text) values ($1, $2) on conflict (hash) do update \
                   set number = default where configuration.number <= $3 returning number";
        let written = session.optional(sql, &[&hash, &text, &before]).await?;
        let published = match written {
            Some(row) => Published::Written(store.get(&row, 0)?),
            None => {
                let query = "select number from configuration where hash = $1";
                let row = session.one(query, &[&hash]).await?;
                Published::Known(store.get(&row, 0)?)
            }
        };
        store.give_back(session);
        Ok(published)
    }

    /// Reads the newest configuration, makes the namespaces that are not there, and begins to apply it to those that this server
    /// has.
    ///
    /// # Errors
    ///
    /// Those of the stores; what is left is done at the next call.
    pub(crate) async fn follow_configuration(&self) -> Result<(), StoreError> {
        let store = self.stores.home();
        let session = store.take().await?;
        let query = "select hash, number from configuration order by number desc limit 1";
        let newest = session.optional(query, &[]).await?;
        store.give_back(session);
        if let Some(row) = newest {
            let (hash, number) = (store.get(&row, 0)?, store.get(&row, 1)?);
            self.read_configuration(hash, number).await?;
        }
        let current = self.configuration();
        let made = self.make_namespaces(&current).await;
        let mut begun = JoinSet::new();
        for part in &self.parts {
            // A store that is away keeps no other from being configured.
            let (part, current) = (Arc::clone(part), Arc::clone(&current));
            begun.spawn(async move { (part.at, part.start_to_configure(&current).await) });
        }
        let mut begun = begun.join_all().await;
        // Of the same failures the same one is returned, which is reported once.
        begun.sort_by_key(|(at, _)| *at);
        begun.into_iter().fold(made, |all, (_, one)| all.and(one))
    }

    /// Takes a configuration of the store, if it is not the one that is known already.
    async fn read_configuration(&self, hash: String, number: i64) -> Result<(), StoreError> {
        let current = self.configuration();
        if current.number == number && current.hash == hash {
            return Ok(());
        }
        let home = self.stores.home();
        let Some(text) = text_of(home, &hash).await? else {
            return Ok(());
        };
        let copied = (text, hash, number);
        for store in self.stores.all().iter().skip(1) {
            // One that is away gets it with the next one, or at a start of a server.
            if let Err(error) = common::copy(store, &copied).await {
                warn!(
                    store = store.name(),
                    "the configuration is not copied: {error}"
                );
            }
        }
        let (text, hash, number) = copied;
        let Some(config) = parsed(&text) else {
            return Ok(());
        };
        info!(number, "the store has another configuration");
        let configuration = &self.serving_parts().configuration;
        configuration.store(Arc::new(StoreConfiguration {
            number,
            hash,
            config,
        }));
        Ok(())
    }

    /// Makes the namespaces that a configuration names.
    async fn make_namespaces(&self, current: &StoreConfiguration) -> Result<(), StoreError> {
        let view = self.view();
        let known = view.namespaces();
        let names = current.config.namespaces.iter();
        let names = names.map(|it| it.name.to_lowercase());
        let new: Vec<String> = names
            .filter(|name| !known.contains_key(&name[..]))
            .collect();
        let made = self.stores.make(self.server(), &new).await?;
        if made != 0 {
            info!(made, "the configuration has new namespaces");
        }
        Ok(())
    }
}

impl FleetStore {
    /// Begins to apply a configuration to the namespaces of the store that this server has, each by a task of its own: an owner
    /// answers when its records are durable, and waits for that for as long as its store is away.
    async fn start_to_configure(
        self: &Arc<Self>,
        current: &Arc<StoreConfiguration>,
    ) -> Result<(), StoreError> {
        // Only here are some added. What ends from now on is in the store when that is asked.
        let at_work = self.state().configuring.clone();
        let mut outdated = self.outdated(current).await?;
        outdated.retain(|it| !at_work.contains(&it.id));
        for outdated in outdated {
            let (id, namespace) = (outdated.id, outdated.name.clone());
            self.state().configuring.insert(id);
            let (part, current) = (Arc::clone(self), Arc::clone(current));
            let configure = async move {
                let done = part.configure(&current, outdated).await;
                part.state().configuring.remove(&id);
                if let Err(error) = done {
                    warn!(namespace, "the configuration is not applied yet: {error}");
                }
            };
            supervisor::spawn("configuration of a namespace", configure).allow_end();
        }
        Ok(())
    }

    async fn outdated(&self, current: &StoreConfiguration) -> Result<Vec<Outdated>, StoreError> {
        let own = self.serving.ids();
        if own.is_empty() {
            return Ok(Vec::new());
        }
        let session = self.store.take().await?;
        let query = "select n.id, n.name, s.applied from namespace n left join namespace_state s on s.namespace = n.id \
                     where n.id = any($1) and s.applied is distinct from $2";
        let rows = session.rows(query, &[&own, &current.hash]).await?;
        self.store.give_back(session);
        let all = rows.iter().map(|row| {
            Ok(Outdated {
                id: self.store.get(row, 0)?,
                name: self.store.get(row, 1)?,
                applied: self.store.get(row, 2)?,
                is_provisioned: false,
            })
        });
        all.collect()
    }

    /// Applies a configuration to a namespace that this server has begun to serve.
    pub(super) async fn configure_taken(
        &self,
        current: &StoreConfiguration,
        id: i64,
        name: &str,
        applied: Option<String>,
    ) {
        if applied.as_ref() == Some(&current.hash) {
            return;
        }
        let outdated = Outdated {
            id,
            name: name.to_owned(),
            is_provisioned: applied.is_none(),
            applied,
        };
        if let Err(error) = self.configure(current, outdated).await {
            warn!(
                namespace = name,
                "the configuration is not applied yet: {error}"
            );
        }
    }

    /// Applies a configuration to a namespace, and records that. The owner is waited for without a permit.
    async fn configure(
        &self,
        current: &StoreConfiguration,
        outdated: Outdated,
    ) -> Result<(), StoreError> {
        let Outdated {
            id,
            name,
            applied,
            is_provisioned,
        } = outdated;
        let Some(owner) = self.serving.owner(id) else {
            return Ok(());
        };
        let is_done = if is_provisioned {
            reload::is_durable(&owner, name).await
        } else {
            let reload = {
                let _permit = self.configurers.acquire().await;
                self.reload_of(current, &name, applied.as_deref()).await?
            };
            let done = reload::apply(&owner, reload).await;
            if let Some(done) = &done {
                report(&name, done);
            }
            done.is_some()
        };
        // Another server has the namespace now, or will have it.
        if !is_done {
            return Ok(());
        }
        let _permit = self.configurers.acquire().await;
        let session = self.store.take().await?;
        let sql = "insert into namespace_state (namespace, applied) values ($1, $2) \
                   on conflict (namespace) do update set applied = excluded.applied";
        session.execute(sql, &[&id, &current.hash]).await?;
        self.store.give_back(session);
        Ok(())
    }

    /// Returns what changes in a namespace, to which the configuration with the hash `applied` was applied before, if any was.
    async fn reload_of(
        &self,
        current: &StoreConfiguration,
        name: &str,
        applied: Option<&str>,
    ) -> Result<Reload, StoreError> {
        let parts = self.serving.parts();
        let before = match applied.filter(|_| parts.config_deletes) {
            Some(applied) => match text_of(&self.store, applied).await? {
                Some(text) => Some(text),
                // The store was away when it was to be copied.
                None => text_of(self.stores.home(), applied).await?,
            },
            None => None,
        };
        let before = before.and_then(|text| parsed(&text));
        let gone = before.map(|before| reload::gone(&before, &current.config));
        let gone = gone.into_iter().flatten();
        Ok(Reload {
            namespaces: vec![current.namespace(name)],
            new: Vec::new(),
            deleted: gone
                .filter(|(namespace, _)| namespace.eq_ignore_ascii_case(name))
                .collect(),
            keys: Some(NamespaceKeys {
                root_key: parts.root_key.clone(),
            }),
            actor: reload::actor(),
        })
    }
}

/// Returns the text of a configuration that a store has.
async fn text_of(store: &Store, hash: &str) -> Result<Option<String>, StoreError> {
    let session = store.take().await?;
    let query = "select text from configuration where hash = $1";
    let row = session.optional(query, &[&hash]).await?;
    store.give_back(session);
    row.map(|row| store.get(&row, 0)).transpose()
}

/// Returns the configuration that a text has, if this release can read it.
fn parsed(text: &str) -> Option<Configuration> {
    let parsed = parse(text);
    let report = |mistakes: &String| {
        error!("the configuration is not used, and the previous one stays: {mistakes}");
    };
    parsed.inspect_err(report).ok()
}

/// Says what applying a configuration to a namespace has done.
fn report(namespace: &str, done: &Reloaded) {
    report_refused(namespace, done);
    info!(
        namespace,
        made = done.made,
        changed = done.changed,
        deleted = done.deleted,
        refused = done.refused.len(),
        "the configuration was applied"
    );
}
