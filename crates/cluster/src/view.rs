//! The servers and the namespaces of a fleet, as one server has found them in its stores, and what decisions are made from.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::planner::{
    self, ClusterView, Fitness, Member, NamespaceKey, NamespaceState, Owner, StoreSet,
};

/// What the last polls of all stores have found.
#[derive(Debug, Clone, Default)]
pub struct FleetView {
    /// By the names of the stores.
    pub stores: Vec<Arc<StoreView>>,
}

/// What the last poll of a store has found.
#[derive(Debug, Clone, Default)]
pub struct StoreView {
    /// The store's name.
    pub name: String,
    /// By their names.
    pub servers: Vec<ServerRow>,
    /// By their names in lower case.
    pub namespaces: BTreeMap<String, NamespaceRow>,
    /// What an operator of the database needs to know.
    pub database: DatabaseHealth,
    /// When that was; none before the first poll.
    pub looked: Option<Duration>,
    /// The last poll has succeeded.
    pub is_reached: bool,
}

/// What stops the database in the end, if no operator acts on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatabaseHealth {
    /// Transactions since the oldest that the database has not frozen: at two billion it takes no writes.
    pub transaction_age: i64,
    /// Replication slots that no standby uses: they keep the log of the database for ever.
    pub inactive_slots: i64,
    /// Bytes that the standby which is furthest behind has not flushed.
    pub standby_lag: i64,
}

/// A server, as its row in the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRow {
    /// Its name.
    pub name: String,
    /// Its incarnation: another one at each time that it joins.
    pub incarnation: String,
    /// The number of its last heartbeat.
    pub beat: i64,
    /// It has not left, and was not declared dead.
    pub is_alive: bool,
    /// Where the other servers reach it.
    pub address: String,
    /// It gives its namespaces away, and takes none.
    pub is_leaving: bool,
    /// Whether it is to have namespaces of the store.
    pub fitness: Fitness,
    /// The newest kind of record that it reads.
    pub formats: i32,
}

/// A namespace, as its row in the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceRow {
    /// Its number in the store.
    pub id: i64,
    /// The number of its last acquisition or release.
    pub epoch: i64,
    /// The live server that owns it.
    pub server: Option<String>,
    /// Why it is left alone.
    pub quarantined: Option<String>,
    /// Messages a second, of late.
    pub rate: i64,
    /// Bytes a second that its clients may send, if that is bounded.
    pub quota: Option<u64>,
    /// The id of its log.
    pub log_store: u64,
    /// Its name, as it was reserved.
    pub name: String,
    /// The server that owned it last and has died.
    pub died: Option<String>,
    /// The deaths of its owners that are counted.
    pub deaths: i32,
    /// The server whose death was counted last.
    pub died_before: Option<String>,
    /// How often it was left alone because of deaths.
    pub pauses: i32,
    /// The timeline of the database that its last owner knew.
    pub timeline: Option<String>,
    /// It is left alone because of deaths only, and for a while.
    pub is_paused: bool,
    /// The configuration that was applied to it last.
    pub applied: Option<String>,
    /// The newest kind of record that its log may have; 0 if that is not recorded, and all servers read it.
    pub formats: i32,
}

impl NamespaceRow {
    /// Returns whether a server has lost the namespace that serves it under this epoch: another one has it under a later epoch.
    #[must_use]
    pub fn is_taken_from(&self, own: &str, epoch: i64) -> bool {
        self.server.as_deref() != Some(own) && epoch < self.epoch
    }
}

impl FleetView {
    /// Returns the servers by their names, as the stores that are reached have them. Of its fitness for several, the worst is returned.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerRow> {
        let mut all: BTreeMap<&str, ServerRow> = BTreeMap::new();
        let of_reached = self.stores.iter().filter(|store| store.is_reached);
        for server in of_reached.flat_map(|store| &store.servers) {
            let found = all.entry(&server.name).or_insert_with(|| server.clone());
            let beat = found.beat.max(server.beat);
            let fitness = found.fitness.max(server.fitness);
            if server.is_alive && !found.is_alive {
                *found = server.clone();
            } else if server.is_alive {
                found.fitness = fitness;
            }
            found.beat = beat;
        }
        all.into_values().collect()
    }

    /// Returns the namespaces by their names in lower case, each with its store's name.
    #[must_use]
    pub fn namespaces(&self) -> BTreeMap<&str, (&str, &NamespaceRow)> {
        let all = self.stores.iter().flat_map(|store| {
            let all = store.namespaces.iter();
            all.map(|(name, namespace)| (&name[..], (&store.name[..], namespace)))
        });
        all.collect()
    }

    /// Returns whether the namespaces of all stores are known.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.stores.iter().all(|store| store.looked.is_some())
    }
}

impl StoreView {
    /// Returns the server that has a namespace, whose name is in lower case; none while no server has it.
    #[must_use]
    pub fn owner_of(&self, namespace: &str) -> Option<&ServerRow> {
        let owner = self.namespaces.get(namespace)?.server.as_ref()?;
        self.servers.iter().find(|it| it.name == *owner)
    }

    /// Returns whether a server other than this one may take namespaces.
    #[must_use]
    pub fn has_another_taker(&self, own: &str) -> bool {
        let others = self.servers.iter().filter(|it| it.name != own);
        let mut able = others.filter(|it| it.is_alive && !it.is_leaving);
        able.any(|it| it.fitness == Fitness::Fit)
    }

    /// Returns whether the namespaces have the owners that they had in another view, by the same acquisitions.
    #[must_use]
    pub fn has_same_owners(&self, other: &Self) -> bool {
        let here = self.namespaces.iter();
        let there = other.namespaces.iter();
        here.map(|(name, it)| (name, it.epoch, &it.server))
            .eq(there.map(|(name, it)| (name, it.epoch, &it.server)))
    }
}

impl ServerRow {
    /// Returns how many namespaces it has.
    #[must_use]
    pub fn count<'a>(&self, namespaces: impl IntoIterator<Item = &'a NamespaceRow>) -> usize {
        let all = namespaces.into_iter();
        all.filter(|it| it.server.as_ref() == Some(&self.name))
            .count()
    }
}

/// Returns what decisions are made from.
#[must_use]
pub fn cluster_view(view: &FleetView) -> ClusterView {
    let mut members: BTreeMap<&str, Member> = BTreeMap::new();
    let stores = view.stores.iter().enumerate();
    for (at, store) in stores.filter(|(_, store)| store.is_reached) {
        let servers = || {
            store
                .servers
                .iter()
                .filter(|it| it.is_alive && !it.is_leaving)
        };
        let best = servers().map(|it| it.fitness).min().unwrap_or_default();
        for server in servers() {
            let found = members.entry(&server.name).or_insert_with(|| Member {
                name: server.name.clone(),
                formats: server.formats,
                stores: StoreSet::default(),
            });
            found.formats = found.formats.min(server.formats);
            if server.fitness.may_take(best) {
                found.stores.add(at);
            }
        }
    }
    let places: BTreeMap<&str, usize> = members.keys().copied().zip(0..).collect();
    let namespaces = view.stores.iter().enumerate().flat_map(|(at, store)| {
        let places = &places;
        store.namespaces.values().map(move |namespace| {
            let owner = namespace.server.as_ref();
            let place = |owner: &String| places.get(&owner[..]).copied();
            NamespaceState {
                key: NamespaceKey {
                    store: at,
                    id: namespace.id,
                },
                owner: owner.map_or(Owner::Absent, |it| {
                    place(it).map_or(Owner::Leaving, Owner::Member)
                }),
                rate: namespace.rate,
                formats: namespace.formats,
                is_fixed: namespace.quarantined.is_some() || !store.is_reached,
            }
        })
    });
    let mut namespaces: Vec<NamespaceState> = namespaces.collect();
    namespaces.sort_by_key(|it| it.key);
    ClusterView {
        members: members.into_values().collect(),
        namespaces,
    }
}

/// Returns the newest kind of record that this server may write: all servers that are alive read it.
#[must_use]
pub fn formats_to_write(view: &StoreView, own: i32) -> i32 {
    let alive = view.servers.iter().filter(|it| it.is_alive);
    planner::formats_of(alive.map(|it| it.formats), own)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn server(name: &str, beat: i64) -> ServerRow {
        ServerRow {
            incarnation: format!("{name} {beat}"),
            beat,
            ..server_of(name, Fitness::Fit)
        }
    }

    fn dead(name: &str, beat: i64) -> ServerRow {
        ServerRow {
            is_alive: false,
            ..server(name, beat)
        }
    }

    #[test]
    fn a_server_is_alive_if_a_store_that_is_reached_says_so() {
        let store = |servers: Vec<ServerRow>, is_reached| {
            Arc::new(StoreView {
                servers,
                is_reached,
                looked: Some(Duration::ZERO),
                ..StoreView::default()
            })
        };
        let view = FleetView {
            stores: vec![
                store(vec![dead("a", 7), dead("b", 3)], true),
                store(vec![server("a", 5), dead("b", 1)], true),
                store(vec![server("b", 9), server("c", 1)], false),
            ],
        };
        let found = view.servers();
        let found = found.iter().map(|it| (&it.name[..], it.is_alive, it.beat));
        assert_eq!(found.collect::<Vec<_>>(), [("a", true, 7), ("b", false, 3)]);
        assert!(view.is_whole());
    }

    #[test]
    fn another_acquisition_or_server_is_another_owner() {
        let seen = |name: &str, epoch, server: Option<&str>| NamespaceRow {
            epoch,
            server: server.map(str::to_owned),
            rate: epoch,
            name: name.to_owned(),
            died: None,
            ..namespace(1)
        };
        let view = |namespaces: &[NamespaceRow]| StoreView {
            namespaces: namespaces
                .iter()
                .map(|it| (it.name.clone(), it.clone()))
                .collect(),
            ..StoreView::default()
        };
        let before = view(&[seen("a", 1, Some("one"))]);
        let rate = NamespaceRow {
            rate: 9,
            ..seen("a", 1, Some("one"))
        };
        assert!(view(&[rate]).has_same_owners(&before));
        for other in [
            &[seen("a", 2, Some("one"))][..],
            &[seen("a", 1, Some("two"))],
            &[seen("a", 1, None)],
            &[seen("a", 1, Some("one")), seen("b", 1, None)],
            &[],
        ] {
            assert!(!view(other).has_same_owners(&before));
        }
    }

    fn server_of(name: &str, fitness: Fitness) -> ServerRow {
        ServerRow {
            name: name.to_owned(),
            incarnation: name.to_owned(),
            beat: 1,
            is_alive: true,
            address: "127.0.0.1:1".to_owned(),
            is_leaving: false,
            fitness,
            formats: 17,
        }
    }

    fn namespace(id: i64) -> NamespaceRow {
        NamespaceRow {
            id,
            epoch: 1,
            server: None,
            quarantined: None,
            rate: 0,
            quota: None,
            log_store: 1,
            name: id.to_string(),
            died: Some("a".to_owned()),
            deaths: 0,
            died_before: None,
            pauses: 0,
            is_paused: false,
            timeline: None,
            applied: None,
            formats: 17,
        }
    }

    fn view_of(servers: Vec<ServerRow>, namespaces: Vec<NamespaceRow>) -> StoreView {
        let namespaces = namespaces.into_iter().map(|it| (it.name.clone(), it));
        StoreView {
            servers,
            namespaces: namespaces.collect(),
            is_reached: true,
            ..StoreView::default()
        }
    }

    fn taken(view: StoreView) -> Vec<i64> {
        let stores = vec![Arc::new(view)];
        let look = cluster_view(&FleetView { stores });
        let mut planner = planner::Planner::default();
        let decision = planner.decide(Duration::from_secs(1_000), Some(0), look, &BTreeSet::new());
        decision.acquire.iter().map(|key| key.id).collect()
    }

    /// poison-namespace: it is in quarantine after it has ended its owners, and would end the next one.
    #[test]
    fn no_server_takes_a_namespace_that_is_in_quarantine() {
        let mut poison = namespace(1);
        poison.quarantined = Some("its owner has died 4 times".to_owned());
        let view = view_of(
            vec![server_of("a", Fitness::Fit)],
            vec![poison, namespace(2)],
        );
        assert_eq!(taken(view), [2]);
    }

    /// mixed-formats: servers of two releases share a store. What one of them does not read is not written, and a log that may have such
    /// records is not taken by it.
    #[test]
    fn a_server_of_an_older_release_is_written_for_while_it_is_alive_and_takes_no_newer_log() {
        let own = 17;
        let mut older = server_of("a", Fitness::Fit);
        older.formats = own - 1;
        let mut newer = server_of("b", Fitness::Fit);
        newer.formats = own + 1;
        let mut servers = vec![older, newer];
        let mut written_new = namespace(1);
        written_new.formats = own;
        let mut written_old = namespace(2);
        written_old.formats = own - 1;
        let view = view_of(servers.clone(), vec![written_new, written_old]);
        assert_eq!(formats_to_write(&view, own), own - 1);
        assert_eq!(taken(view), [2], "by the older one");
        servers[0].is_alive = false;
        assert_eq!(formats_to_write(&view_of(servers, vec![]), own), own);
    }

    #[test]
    fn a_server_has_no_share_of_a_store_from_whose_clock_its_own_is_off() {
        let store = |servers| {
            Arc::new(StoreView {
                servers,
                is_reached: true,
                ..StoreView::default()
            })
        };
        let look = cluster_view(&FleetView {
            stores: vec![
                store(vec![
                    server_of("a", Fitness::Unfit),
                    server_of("b", Fitness::Fit),
                ]),
                store(vec![
                    server_of("a", Fitness::Fit),
                    server_of("b", Fitness::Fit),
                ]),
            ],
        });
        let shares = look.members.iter();
        let shares = shares.map(|it| (&it.name[..], [0, 1].map(|store| it.stores.has(store))));
        let shares: Vec<(&str, [bool; 2])> = shares.collect();
        assert_eq!(shares, [("a", [false, true]), ("b", [true, true])]);
    }

    #[test]
    fn a_server_that_rests_has_a_share_only_if_no_other_server_may_take_one() {
        use Fitness::{Fit, Resting, Unfit};
        let shares = |fitness: [Fitness; 3]| {
            let servers = ["a", "b", "c"].into_iter().zip(fitness);
            let servers = servers.map(|(name, fitness)| server_of(name, fitness));
            let look = cluster_view(&FleetView {
                stores: vec![Arc::new(view_of(servers.collect(), vec![]))],
            });
            let shares = look.members.iter().map(|it| it.stores.has(0));
            shares.collect::<Vec<bool>>()
        };
        assert_eq!(shares([Resting, Fit, Unfit]), [false, true, false]);
        assert_eq!(shares([Resting, Resting, Unfit]), [true, true, false]);
        assert_eq!(shares([Unfit, Unfit, Unfit]), [false, false, false]);
    }
}
