//! Reads the servers and the namespaces of a store.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio_postgres::Row;

use super::StoreError;
use super::connect::{Session, Store};
use super::sql::unsigned;
use jitney_cluster::planner::Fitness;
use jitney_cluster::view::{DatabaseHealth, NamespaceRow, ServerRow, StoreView};

/// Asks a store, at this time since the machine was started.
pub async fn read(
    store: &Store,
    session: &Session,
    now: Duration,
) -> Result<StoreView, StoreError> {
    let database = database(store, session).await?;
    // In this order: a namespace whose server enters between the two is seen with the epoch before, by which it is not taken.
    let rows = namespaces(session).await?;
    let servers = servers(store, session).await?;
    let namespaces = with_owners(store, &rows, &servers)?;
    Ok(StoreView {
        name: store.name().to_owned(),
        servers,
        namespaces,
        database,
        looked: Some(now),
        is_reached: true,
    })
}

async fn database(store: &Store, session: &Session) -> Result<DatabaseHealth, StoreError> {
    let query = "select (select max(age(datfrozenxid))::bigint from pg_database), \
                 (select count(*) from pg_replication_slots where not active), \
                 (select coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn)), 0)::bigint from pg_stat_replication)";
    let row = session.one(query, &[]).await?;
    Ok(DatabaseHealth {
        transaction_age: store.get(&row, 0)?,
        inactive_slots: store.get(&row, 1)?,
        standby_lag: store.get(&row, 2)?,
    })
}

async fn servers(store: &Store, session: &Session) -> Result<Vec<ServerRow>, StoreError> {
    // What an earlier incarnation has said of itself does not count.
    let query = "select name, incarnation::text, beat, alive, address, leaving, formats, \
                 skewed is not distinct from incarnation, resting is not distinct from incarnation \
                 from server order by name";
    let rows = session.rows(query, &[]).await?;
    let servers = rows.iter().map(|row| {
        Ok(ServerRow {
            name: store.get(row, 0)?,
            incarnation: store.get(row, 1)?,
            beat: store.get(row, 2)?,
            is_alive: store.get(row, 3)?,
            address: store.get(row, 4)?,
            is_leaving: store.get(row, 5)?,
            formats: store.get(row, 6)?,
            fitness: Told {
                is_skewed: store.get(row, 7)?,
                is_resting: store.get(row, 8)?,
            }
            .fitness(),
        })
    });
    servers.collect()
}

/// What a server has told of itself. One that rests is skewed, too: older releases know no other reason to take no namespace.
struct Told {
    is_skewed: bool,
    is_resting: bool,
}

impl Told {
    const fn fitness(&self) -> Fitness {
        match (self.is_skewed, self.is_resting) {
            (false, _) => Fitness::Fit,
            (true, true) => Fitness::Resting,
            (true, false) => Fitness::Unfit,
        }
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
    servers: &[ServerRow],
) -> Result<BTreeMap<String, NamespaceRow>, StoreError> {
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
        let found = NamespaceRow {
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

    #[test]
    fn a_server_that_rests_takes_none_for_older_releases() {
        for (is_skewed, is_resting, fitness) in [
            (false, false, Fitness::Fit),
            (true, true, Fitness::Resting),
            (true, false, Fitness::Unfit),
            // An older release was there under the name meanwhile.
            (false, true, Fitness::Fit),
        ] {
            let told = Told {
                is_skewed,
                is_resting,
            };
            assert_eq!(told.fitness(), fitness);
        }
    }
}
