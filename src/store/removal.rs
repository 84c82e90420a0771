//! The removal of a namespace from the store, with its log.
//!
//! It is taken from its server first; then its tables are dropped, each in a transaction of its own that waits for no reader,
//! and then its rows. The name is free when all of that is done. A removal that is ended in between is done again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::admin::{self, NotDone, PendingChange};
use super::fleet::{Fleet, FleetStore};
use crate::limits;
use jitney_postgres::{Fence, Reserving, Session, Store, StoreError, schema};

/// Removes a namespace with all that it has, and the reservation of its name.
///
/// # Errors
///
/// There is none of that name, its name is reserved in another store, or another program reads its tables; the store's. Where it
/// was begun it is in quarantine.
pub(crate) async fn remove(store: &Arc<Store>, name: &str) -> Result<(), NotDone> {
    let name = name.to_lowercase();
    let reserving = Reserving::read(store).await?;
    if let Some(other) = reserving.elsewhere(&name) {
        let session = store.take().await?;
        let found = admin::find(store, &session, &name).await?;
        store.give_back(session);
        found.ok_or_else(|| NotDone::Unknown(name.clone()))?;
        return Err(NotDone::Refused(format!(
            "the name of the namespace '{name}' is reserved in the store {other}, which the command does not reach: servers remove \
             it there too, by DELETE /api/v1/namespaces/{name} or jitney namespaces delete {name}"
        )));
    }
    remove_there(store, &name).await
}

async fn remove_there(store: &Arc<Store>, name: &str) -> Result<(), NotDone> {
    let (_, held) = admin::hold_named(store, name, PendingChange::Removal).await?;
    remove_held(store, &held.fence).await
}

impl Fleet {
    /// Removes a namespace with its entities and their messages. The servers do not serve it any more.
    ///
    /// # Errors
    ///
    /// Those of [`remove`].
    pub(crate) async fn remove_namespace(&self, name: &str) -> Result<(), NotDone> {
        let name = name.to_lowercase();
        let knows = |part: &&Arc<FleetStore>| part.view.load().namespaces.contains_key(&name);
        let known = self.parts.iter().find(knows);
        let mut removed = None;
        for part in known.map_or(&self.parts[..], std::slice::from_ref) {
            match remove_there(&part.store, &name).await {
                Ok(()) => removed = Some(part.store.name()),
                Err(NotDone::Unknown(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let is_freed = self.free_elsewhere(&name, removed).await?;
        if removed.is_none() && !is_freed {
            return Err(NotDone::Unknown(name));
        }
        let shards = &self.serving_parts().shards;
        shards.change_routes(|routes| routes.without(&name));
        Ok(())
    }

    /// Removes the reservation of a name in another store than the one that had the namespace: it was made before that store was
    /// added. An earlier removal may have been ended before this: no store has the namespace then. Returns whether there was one.
    async fn free_elsewhere(&self, name: &str, removed: Option<&str>) -> Result<bool, StoreError> {
        let of = self.stores.store(self.stores.of(name));
        let session = of.take().await?;
        let sql = "delete from reservation where name = $1 and store <> $2 and store = coalesce($3, store)";
        let done = session.execute(sql, &[&name, &of.name(), &removed]).await?;
        of.give_back(session);
        Ok(0 < done)
    }
}

/// Removes a namespace that is held.
pub(super) async fn remove_held(store: &Arc<Store>, fence: &Fence) -> Result<(), NotDone> {
    let id = fence.namespace();
    drop_tables(store, Some(id)).await?;
    let session = store.take().await?;
    for table in [
        "checkpoint_chunk",
        "checkpoint",
        "body_part",
        "barrier",
        "history",
        "segment",
    ] {
        let sql = format!(
            "delete from {table} where ctid = any (array (select ctid from {table} where namespace = $1 limit $2))"
        );
        while 0 < session
            .execute(&sql, &[&id, &limits::STORE_REMOVED_ROWS])
            .await?
        {}
    }
    let (epoch, owner) = fence.current();
    let sql = "with gone as (delete from namespace where id = $1 and epoch = $2 and owner = $3 returning id, name), \
               freed as (delete from reservation r using gone, store s where r.name = gone.name and r.store = s.name) \
               delete from namespace_state where namespace in (select id from gone)";
    let done = session.execute(sql, &[&id, &epoch, &owner]).await?;
    if done == 0 {
        return Err(StoreError::Fenced.into());
    }
    store.give_back(session);
    // Its last server may have made one more, before it was told.
    drop_tables(store, None).await
}

/// Drops the tables of the log of a namespace, or of those that are not there any more.
async fn drop_tables(store: &Arc<Store>, namespace: Option<i64>) -> Result<(), NotDone> {
    let until = Instant::now() + limits::STORE_DROP_WAIT.as_duration();
    let mut session = store.take().await?;
    while let Some(table) = some_table(store, &session, namespace).await? {
        let Err(error) = schema::drop_table(&session, &table).await else {
            continue;
        };
        if until < Instant::now() {
            return Err(NotDone::Refused(format!(
                "the table jitney.{table} cannot be dropped, because another program reads it, such as pg_dump: the namespace \
                 is not served any more; run the command again later ({error})"
            )));
        }
        // Its transaction has failed.
        session = store.take().await?;
        sleep(Duration::from_millis(200)).await;
    }
    store.give_back(session);
    Ok(())
}

/// Finds a table of the log of a namespace, or of one that is not there any more.
async fn some_table(
    store: &Store,
    session: &Session,
    namespace: Option<i64>,
) -> Result<Option<String>, StoreError> {
    let query = "select relname::text from pg_class where relnamespace = 'jitney'::regnamespace and relkind = 'r' \
                 and case when relname !~ '^log_[0-9]+_[0-9]+$' then false when $1::bigint is null \
                 then not exists (select from namespace where id = split_part(relname::text, '_', 2)::bigint) \
                 else split_part(relname::text, '_', 2)::bigint = $1 end limit 1";
    let row = session.optional(query, &[&namespace]).await?;
    row.map(|row| store.get(&row, 0)).transpose()
}
