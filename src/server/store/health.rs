//! What an operator is to know of the servers that share a store, beside what the store says: how old their beats are, which
//! namespaces are suspended, and whether the clocks agree.

use std::collections::BTreeMap;
use std::time::Duration;

use tracing::info;

use super::StoreError;
use super::fleet::{Fleet, NamespaceSeen, ServerSeen};
use crate::access::Actor;
use crate::limits;

/// The state of the fleet, as this server sees it now.
#[derive(Debug, Clone, Default)]
pub(in crate::server) struct Health {
    /// How long ago the store was looked at; none before the first look.
    pub(in crate::server) looked: Option<Duration>,
    /// How long ago the beat of each live server changed, as this one has seen it, by the servers' names. Of this server, since it was sent.
    pub(in crate::server) beat_ages: BTreeMap<String, Duration>,
    /// The namespaces in lower case that have an owner, and are not served at the moment, with why.
    pub(in crate::server) suspended: BTreeMap<String, &'static str>,
    /// By how much this server's clock is ahead of the database's, in milliseconds.
    pub(in crate::server) clock_offset: i64,
}

/// The host and the database of a store, and what it is.
#[derive(Debug, Clone)]
pub(in crate::server) struct StoreSeen {
    /// Without the password.
    pub(in crate::server) place: String,
    /// The random identity that it got when it was made.
    pub(in crate::server) identity: String,
}

/// What became of the wish to end a quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) enum Release {
    /// Servers may take it; this was the reason of the quarantine.
    Done(String),
    /// It is in no quarantine.
    NotHeld,
    /// There is no such namespace.
    Unknown,
}

/// Why a namespace that has an owner is not served.
const BEAT_OVERDUE: &str = "the beat of its server is overdue: it answers nothing, and another server takes the namespace if the beat does not come";
const APPEND_UNKNOWN: &str = "it is unknown whether the store has taken its last records, because an answer of the database is missing";

impl Fleet {
    /// Returns the state of the fleet, as this server sees it now.
    pub(in crate::server) fn health(&self) -> Health {
        let view = self.view();
        let state = self.state();
        let live = view.servers.iter().filter(|it| it.is_alive);
        let ages = live.filter_map(|it| {
            let age = if it.name == self.server() {
                Some(self.lease.load().age())
            } else {
                let seen = state.beats.get(&it.incarnation);
                seen.map(|(_, since)| since.elapsed())
            };
            Some((it.name.clone(), age?))
        });
        let beat_ages: BTreeMap<String, Duration> = ages.collect();
        let clock_offset = state.clock_offset;
        drop(state);
        let unknown = self.serving.unknown();
        let suspended = view.namespaces.iter().filter_map(|(name, it)| {
            let is_unknown = unknown.contains(name);
            let why = reason(it.server.as_ref()?, &beat_ages, is_unknown)?;
            Some((name.clone(), why))
        });
        Health {
            looked: view.looked.map(|looked| looked.elapsed()),
            suspended: suspended.collect(),
            clock_offset,
            beat_ages,
        }
    }

    /// Returns where the store is, and what it is.
    pub(in crate::server) fn store_seen(&self) -> StoreSeen {
        StoreSeen {
            place: self.store.place().to_owned(),
            identity: self.store.identity().unwrap_or_default().to_owned(),
        }
    }

    /// Ends the quarantine of a namespace: servers take it again.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(in crate::server) async fn release(
        &self,
        name: &str,
        actor: &Actor,
    ) -> Result<Release, StoreError> {
        let name = name.to_lowercase();
        let session = self.store.take().await?;
        let sql = "update namespace_state s set quarantined = null, failures = 0 \
                   from (select n.id, q.quarantined from namespace n join namespace_state q on q.namespace = n.id \
                   where n.name = $1 for update of q) held \
                   where s.namespace = held.id and held.quarantined is not null returning held.quarantined";
        let released = session.optional(sql, &[&name]).await?;
        let release = match released {
            Some(row) => {
                let why: String = self.store.get(&row, 0)?;
                let (actor, peer) = (&actor.name, &actor.peer);
                info!(
                    namespace = name,
                    actor, peer, why, "the quarantine of a namespace was ended"
                );
                Release::Done(why)
            }
            None => {
                let query = "select exists (select from namespace where name = $1)";
                let row = session.one(query, &[&name]).await?;
                if self.store.get(&row, 0)? {
                    Release::NotHeld
                } else {
                    Release::Unknown
                }
            }
        };
        self.store.give_back(session);
        Ok(release)
    }
}

/// Returns why a namespace of this server is suspended, if it is.
fn reason(
    server: &str,
    beat_ages: &BTreeMap<String, Duration>,
    is_unknown: bool,
) -> Option<&'static str> {
    let is_overdue = beat_ages
        .get(server)
        .is_some_and(|age| limits::LEASE.as_duration() < *age);
    if is_overdue {
        return Some(BEAT_OVERDUE);
    }
    is_unknown.then_some(APPEND_UNKNOWN)
}

impl ServerSeen {
    /// Returns how many namespaces it has.
    pub(in crate::server) fn count<'a>(
        &self,
        namespaces: impl IntoIterator<Item = &'a NamespaceSeen>,
    ) -> usize {
        let all = namespaces.into_iter();
        all.filter(|it| it.server.as_ref() == Some(&self.name))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_suspended_while_its_servers_beat_or_an_answer_is_missing() {
        let age = |server: &str, millis| (server.to_owned(), Duration::from_millis(millis));
        let ages = BTreeMap::from([age("well", 700), age("late", 2_100)]);
        assert_eq!(reason("well", &ages, false), None);
        assert_eq!(reason("well", &ages, true), Some(APPEND_UNKNOWN));
        assert_eq!(reason("late", &ages, false), Some(BEAT_OVERDUE));
        assert_eq!(reason("late", &ages, true), Some(BEAT_OVERDUE));
        assert_eq!(reason("unseen", &ages, false), None);
    }
}
