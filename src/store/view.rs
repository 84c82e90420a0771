//! The servers and the namespaces, as the last looks at the stores have found them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tokio_postgres::Row;

use super::StoreError;
use super::connect::{Session, Store};
use super::sql::unsigned;
use jitney_cluster::planner::Fitness;

/// What the last looks have found.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    /// By the names of the stores.
    pub(crate) stores: Vec<Arc<StoreView>>,
}

/// What the last look at a store has found.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreView {
    /// The store's name.
    pub(crate) name: String,
    /// By their names.
    pub(crate) servers: Vec<ServerSeen>,
    /// By their names in lower case.
    pub(crate) namespaces: BTreeMap<String, NamespaceSeen>,
    /// What an operator of the database needs to know.
    pub(crate) database: DatabaseSeen,
    /// When that was; none before the first look.
    pub(super) looked: Option<Instant>,
    /// The last look has succeeded.
    pub(crate) is_reached: bool,
}

/// What stops the database in the end, if no operator acts on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DatabaseSeen {
    /// Transactions since the oldest that the database has not frozen: at two billion it takes no writes.
    pub(crate) transaction_age: i64,
    /// Replication slots that no standby uses: they keep the log of the database for ever.
    pub(crate) inactive_slots: i64,
    /// Bytes that the standby which is furthest behind has not flushed.
    pub(crate) standby_lag: i64,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerSeen {
    pub(crate) name: String,
    pub(crate) incarnation: String,
    pub(crate) beat: i64,
    pub(crate) is_alive: bool,
    pub(crate) address: String,
    /// It gives its namespaces away, and takes none.
    pub(crate) is_leaving: bool,
    /// Whether it is to have namespaces of the store.
    pub(crate) fitness: Fitness,
    /// The newest kind of record that it reads.
    pub(super) formats: i32,
}

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamespaceSeen {
    pub(crate) id: i64,
    pub(crate) epoch: i64,
    /// The live server that owns it.
    pub(crate) server: Option<String>,
    /// Why it is left alone.
    pub(crate) quarantined: Option<String>,
    /// Messages a second, of late.
    pub(crate) rate: i64,
    /// Bytes a second that its clients may send, if that is bounded.
    pub(crate) quota: Option<u64>,
    pub(super) log_store: u64,
    pub(super) name: String,
    /// The server that owned it last and has died.
    pub(super) died: Option<String>,
    /// The deaths of its owners that are counted.
    pub(super) deaths: i32,
    /// The server whose death was counted last.
    pub(super) died_before: Option<String>,
    /// How often it was left alone because of deaths.
    pub(super) pauses: i32,
    /// The timeline of the database that its last owner knew.
    pub(super) timeline: Option<String>,
    /// It is left alone because of deaths only, and for a while.
    pub(super) is_paused: bool,
    pub(super) applied: Option<String>,
    /// The newest kind of record that its log may have; 0 if that is not recorded, and all servers read it.
    pub(super) formats: i32,
}

impl View {
    /// Returns the servers by their names, as the stores that are reached have them. Of its fitness for several, the worst is returned.
    pub(crate) fn servers(&self) -> Vec<ServerSeen> {
        let mut all: BTreeMap<&str, ServerSeen> = BTreeMap::new();
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
    pub(crate) fn namespaces(&self) -> BTreeMap<&str, (&str, &NamespaceSeen)> {
        let all = self.stores.iter().flat_map(|store| {
            let all = store.namespaces.iter();
            all.map(|(name, namespace)| (&name[..], (&store.name[..], namespace)))
        });
        all.collect()
    }

    /// Returns whether the namespaces of all stores are known.
    pub(super) fn is_whole(&self) -> bool {
        self.stores.iter().all(|store| store.looked.is_some())
    }
}

impl StoreView {
    /// Returns the server that has a namespace, whose name is in lower case; none while no server has it.
    pub(super) fn owner_of(&self, namespace: &str) -> Option<&ServerSeen> {
        let owner = self.namespaces.get(namespace)?.server.as_ref()?;
        self.servers.iter().find(|it| it.name == *owner)
    }

    /// Returns whether a server other than this one may take namespaces.
    pub(super) fn has_another_taker(&self, own: &str) -> bool {
        let others = self.servers.iter().filter(|it| it.name != own);
        let mut able = others.filter(|it| it.is_alive && !it.is_leaving);
        able.any(|it| it.fitness == Fitness::Fit)
    }

    /// Returns whether the namespaces have the owners that they had in another view, by the same acquisitions.
    pub(super) fn has_same_owners(&self, other: &Self) -> bool {
        let here = self.namespaces.iter();
        let there = other.namespaces.iter();
        here.map(|(name, it)| (name, it.epoch, &it.server))
            .eq(there.map(|(name, it)| (name, it.epoch, &it.server)))
    }

    /// Asks a store.
    pub(super) async fn read(store: &Store, session: &Session) -> Result<Self, StoreError> {
        let database = database(store, session).await?;
        // In this order: a namespace whose server enters between the two is seen with the epoch before, by which it is not taken.
        let rows = namespaces(session).await?;
        let servers = servers(store, session).await?;
        let namespaces = with_owners(store, &rows, &servers)?;
        Ok(Self {
            name: store.name().to_owned(),
            servers,
            namespaces,
            database,
            looked: Some(Instant::now()),
            is_reached: true,
        })
    }
}

async fn database(store: &Store, session: &Session) -> Result<DatabaseSeen, StoreError> {
    let query = "select (select max(age(datfrozenxid))::bigint from pg_database), \
                 (select count(*) from pg_replication_slots where not active), \
                 (select coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn)), 0)::bigint from pg_stat_replication)";
    let row = session.one(query, &[]).await?;
    Ok(DatabaseSeen {
        transaction_age: store.get(&row, 0)?,
        inactive_slots: store.get(&row, 1)?,
        standby_lag: store.get(&row, 2)?,
    })
}

async fn servers(store: &Store, session: &Session) -> Result<Vec<ServerSeen>, StoreError> {
    // What an earlier incarnation has said of itself does not count.
    let query = "select name, incarnation::text, beat, alive, address, leaving, formats, \
                 skewed is not distinct from incarnation, resting is not distinct from incarnation \
                 from server order by name";
    let rows = session.rows(query, &[]).await?;
    let servers = rows.iter().map(|row| {
        Ok(ServerSeen {
            name: store.get(row, 0)?,
            incarnation: store.get(row, 1)?,
            beat: store.get(row, 2)?,
            is_alive: store.get(row, 3)?,
            address: store.get(row, 4)?,
            is_leaving: store.get(row, 5)?,
            formats: store.get(row, 6)?,
            fitness: fitness(store.get(row, 7)?, store.get(row, 8)?),
        })
    });
    servers.collect()
}

/// Returns whether a server is to have namespaces. Older releases know only that it takes none.
const fn fitness(takes_none: bool, rests: bool) -> Fitness {
    match (takes_none, rests) {
        (false, _) => Fitness::Fit,
        (true, true) => Fitness::Resting,
        (true, false) => Fitness::Unfit,
    }
}

async fn namespaces(session: &Session) -> Result<Vec<Row>, StoreError> {
    let query = "select n.id, n.name, n.log_store, n.epoch, n.server, n.incarnation::text, \
                 s.applied, s.quarantined, coalesce(s.rate, 0), coalesce(s.formats, 0), s.quota, \
                 coalesce(s.failures, 0), s.died_at, coalesce(s.pauses, 0), \
                 coalesce(s.paused = s.quarantined and s.pending is null, false), n.timeline \
                 from namespace n left join namespace_state s on s.namespace = n.id order by n.id";
    session.rows(query, &[]).await
}

/// Returns namespaces that were read, with those of the servers that have them.
fn with_owners(
    store: &Store,
    rows: &[Row],
    servers: &[ServerSeen],
) -> Result<BTreeMap<String, NamespaceSeen>, StoreError> {
    let alive = servers.iter().filter(|it| it.is_alive);
    let alive: BTreeMap<&str, &str> = alive
        .map(|it| (&it.incarnation[..], &it.name[..]))
        .collect();
    let all = rows.iter().map(|row| {
        let get = |column| store.get::<Option<String>>(row, column);
        let (server, incarnation) = (get(4)?, get(5)?);
        let owner = incarnation.and_then(|incarnation| alive.get(&incarnation[..]).copied());
        let live = owner.filter(|owner| server.as_deref() == Some(*owner));
        let name: String = store.get(row, 1)?;
        let quarantined = get(7)?;
        let found = NamespaceSeen {
            id: store.get(row, 0)?,
            epoch: store.get(row, 3)?,
            died: server.clone().filter(|_| live.is_none()),
            deaths: store.get(row, 11)?,
            died_before: get(12)?,
            pauses: store.get(row, 13)?,
            is_paused: store.get(row, 14)?,
            timeline: get(15)?,
            // Its owner has stopped it.
            server: live.filter(|_| quarantined.is_none()).map(str::to_owned),
            quarantined,
            log_store: unsigned(store.get(row, 2)?),
            applied: get(6)?,
            rate: store.get(row, 8)?,
            formats: store.get(row, 9)?,
            quota: store.get::<Option<i64>>(row, 10)?.map(unsigned),
            name: name.clone(),
        };
        Ok((name.to_lowercase(), found))
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, beat: i64, is_alive: bool) -> ServerSeen {
        ServerSeen {
            name: name.to_owned(),
            incarnation: format!("{name} {beat}"),
            beat,
            is_alive,
            address: "127.0.0.1:1".to_owned(),
            is_leaving: false,
            fitness: Fitness::Fit,
            formats: 17,
        }
    }

    #[test]
    fn a_server_is_alive_if_a_store_that_is_reached_says_so() {
        let store = |servers: Vec<ServerSeen>, is_reached| {
            Arc::new(StoreView {
                servers,
                is_reached,
                looked: Some(Instant::now()),
                ..StoreView::default()
            })
        };
        let view = View {
            stores: vec![
                store(vec![server("a", 7, false), server("b", 3, false)], true),
                store(vec![server("a", 5, true), server("b", 1, false)], true),
                store(vec![server("b", 9, true), server("c", 1, true)], false),
            ],
        };
        let found = view.servers();
        let found = found.iter().map(|it| (&it.name[..], it.is_alive, it.beat));
        assert_eq!(found.collect::<Vec<_>>(), [("a", true, 7), ("b", false, 3)]);
        assert!(view.is_whole());
    }

    #[test]
    fn a_server_that_rests_takes_none_for_older_releases() {
        assert_eq!(fitness(false, false), Fitness::Fit);
        assert_eq!(fitness(true, true), Fitness::Resting);
        assert_eq!(fitness(true, false), Fitness::Unfit);
        // An older release was there under the name meanwhile.
        assert_eq!(fitness(false, true), Fitness::Fit);
    }

    #[test]
    fn another_acquisition_or_server_is_another_owner() {
        let seen = |name: &str, epoch, server: Option<&str>| NamespaceSeen {
            id: 1,
            epoch,
            server: server.map(str::to_owned),
            quarantined: None,
            rate: epoch,
            quota: None,
            log_store: 1,
            name: name.to_owned(),
            died: None,
            deaths: 0,
            died_before: None,
            pauses: 0,
            is_paused: false,
            timeline: None,
            applied: None,
            formats: 17,
        };
        let view = |namespaces: &[NamespaceSeen]| StoreView {
            namespaces: namespaces
                .iter()
                .map(|it| (it.name.clone(), it.clone()))
                .collect(),
            ..StoreView::default()
        };
        let before = view(&[seen("a", 1, Some("one"))]);
        let rate = NamespaceSeen {
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
}
