//! What an operator is to know of the servers that share a store, beside what the store says: how old their beats are, which
//! namespaces are suspended, and whether the clocks agree.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tracing::info;

use super::admin::{self, Release};
use super::fleet::{Fleet, FleetStore};
use crate::system::clock::{since_boot, uptime};
use jitney_broker::access::Actor;
use jitney_cluster::view::StoreView;
use jitney_postgres::StoreError;

/// The state of the fleet, as this server sees it now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Health {
    /// The age of the oldest of the last looks at the stores; none before each store was looked at.
    pub(crate) looked: Option<Duration>,
    /// How long ago the beat of each live server changed, as this one has seen it, by the servers' names: in the store where that is
    /// longest, of those that are reached. Of this server, since it was sent.
    pub(crate) beat_ages: BTreeMap<String, Duration>,
    /// The namespaces in lower case that have an owner, and are not served at the moment, with why.
    pub(crate) suspended: BTreeMap<String, &'static str>,
    /// How often clients were made to wait for the quota of each namespace that this server has.
    pub(crate) quota_waits: BTreeMap<String, u64>,
    /// By the names of the stores.
    pub(crate) stores: Vec<StoreHealth>,
}

/// The state of a store, as this server sees it now.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreHealth {
    pub(crate) name: String,
    /// The host and the database, without the password.
    pub(crate) place: String,
    /// The random identity that it got when it was made; empty if it was never reached.
    pub(crate) identity: String,
    /// The last look at it has succeeded.
    pub(crate) is_reached: bool,
    /// This server may answer for the namespaces that it has there.
    pub(crate) holds_lease: bool,
    /// By how much this server's clock is ahead of the database's, in milliseconds.
    pub(crate) clock_offset: i64,
}

/// Why a namespace that has an owner is not served.
const BEAT_OVERDUE: &str = "the beat of its server is overdue: it answers nothing, and another server takes the namespace if the beat does not come";
const APPEND_UNKNOWN: &str = "it is unknown whether the store has taken its last records, because an answer of the database is missing";

impl Fleet {
    /// Returns the state of the fleet, as this server sees it now.
    pub(crate) fn health(&self) -> Health {
        let mut health = Health::default();
        let mut looked = Vec::new();
        for part in &self.parts {
            let view = part.view.load_full();
            let ages = part.beat_ages(&view);
            health.suspended.extend(part.suspended(&view, &ages));
            health.quota_waits.extend(part.serving.quota_waits());
            for (server, age) in ages.into_iter().filter(|_| view.is_reached) {
                let longest = health.beat_ages.entry(server).or_default();
                *longest = age.max(*longest);
            }
            looked.push(view.looked.map(|looked| uptime().saturating_sub(looked)));
            health.stores.push(StoreHealth {
                name: part.store.name().to_owned(),
                place: part.store.place().to_owned(),
                identity: part.store.identity().unwrap_or_default().to_owned(),
                is_reached: view.is_reached,
                holds_lease: part.lease.load().holds(since_boot()),
                clock_offset: part.state().clock.offset(),
            });
        }
        let looked: Option<Vec<Duration>> = looked.into_iter().collect();
        health.looked = looked.and_then(|looked| looked.into_iter().max());
        health
    }

    /// Ends the quarantine of a namespace: servers take it again.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(crate) async fn release(&self, name: &str, actor: &Actor) -> Result<Release, StoreError> {
        let name = name.to_lowercase();
        let of = |part: &&Arc<FleetStore>| part.view.load().namespaces.contains_key(&name);
        let Some(part) = self.parts.iter().find(of) else {
            let unseen = self.parts.iter().find(|it| it.view.load().looked.is_none());
            return match unseen {
                None => Ok(Release::Unknown),
                Some(part) => Err(part
                    .store
                    .unfit("it cannot be reached, and the namespace may be there".to_owned())),
            };
        };
        let release = admin::lift(&part.store, &name).await?;
        if let Release::Done(why) = &release {
            let (actor, peer) = (&actor.name, &actor.peer);
            info!(
                namespace = name,
                actor, peer, why, "the quarantine of a namespace was ended"
            );
        }
        Ok(release)
    }
}

impl FleetStore {
    /// Returns how old the beats of live servers are.
    fn beat_ages(&self, view: &StoreView) -> BTreeMap<String, Duration> {
        let state = self.state();
        let live = view.servers.iter().filter(|it| it.is_alive);
        let ages = live.filter_map(|it| {
            let age = if it.name == self.server {
                Some(self.lease.load().age(since_boot()))
            } else {
                let since = state.heartbeats.since(&it.incarnation);
                since.map(|since| uptime().saturating_sub(since))
            };
            Some((it.name.clone(), age?))
        });
        ages.collect()
    }

    /// Returns the namespaces that have an owner, and are not served at the moment, with why.
    fn suspended(
        &self,
        view: &StoreView,
        beat_ages: &BTreeMap<String, Duration>,
    ) -> Vec<(String, &'static str)> {
        let unknown = self.serving.unknown();
        let suspended = view.namespaces.iter().filter_map(|(name, it)| {
            let why = reason(name, it.server.as_ref()?, beat_ages, &unknown)?;
            Some((name.clone(), why))
        });
        suspended.collect()
    }
}

/// Returns why a namespace of a server is suspended, if it is. Of those that are `unknown` it is not known what was appended.
fn reason(
    namespace: &str,
    server: &str,
    beat_ages: &BTreeMap<String, Duration>,
    unknown: &BTreeSet<String>,
) -> Option<&'static str> {
    let is_overdue = beat_ages
        .get(server)
        .is_some_and(|age| jitney_cluster::limits::LEASE.as_duration() < *age);
    if is_overdue {
        return Some(BEAT_OVERDUE);
    }
    unknown.contains(namespace).then_some(APPEND_UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_suspended_while_its_servers_beat_or_an_answer_is_missing() {
        let age = |server: &str, millis| (server.to_owned(), Duration::from_millis(millis));
        let ages = BTreeMap::from([age("well", 700), age("late", 2_100)]);
        let unknown = BTreeSet::from(["unknown".to_owned()]);
        let reason = |namespace, server| reason(namespace, server, &ages, &unknown);
        assert_eq!(reason("known", "well"), None);
        assert_eq!(reason("unknown", "well"), Some(APPEND_UNKNOWN));
        assert_eq!(reason("known", "late"), Some(BEAT_OVERDUE));
        assert_eq!(reason("unknown", "late"), Some(BEAT_OVERDUE));
        assert_eq!(reason("known", "unseen"), None);
    }
}
