//! What is to be done after the database was restored to an earlier point in time: servers that knew the store before stop,
//! and no epoch and no sequence number that may have been given after that point is given again. Numbers are also left out by the
//! owner after one that has found its log to lack what was acknowledged.

use std::sync::Arc;

use tokio::sync::watch;

use super::admin::NotDone;
use super::append::wait_durable;
use crate::host::committer::SyncProgress;
use crate::limits;
use jitney_journal::SegmentId;
use jitney_postgres::{Fence, Session, Store, StoreError, random_uuid, schema, unsigned};

/// What was done.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) identity_before: String,
    pub(crate) identity: String,
    /// Sessions of servers that were ended.
    pub(crate) sessions_ended: i64,
    /// Namespaces by their names, and the last group of each.
    pub(crate) namespaces: Vec<(String, i64)>,
    /// Those that were in quarantine because their logs lacked what was acknowledged, and are not any more.
    pub(crate) ended: Vec<String>,
    /// Those that stay in quarantine, each with the reason.
    pub(crate) kept: Vec<(String, String)>,
}

/// Gives the store another identity, and raises all epochs. The first identity stays recorded: other stores know the store by it.
/// The next owner of each namespace leaves out sequence numbers. All sessions of servers are ended, so that servers look at the
/// identity. A quarantine ends whose reason was that the log lacked what was acknowledged, as a server finds that has run on: that is
/// what a restore to an earlier point in time does.
///
/// # Errors
///
/// The store's; nothing has changed then, or it is to be done again.
pub(crate) async fn restored(store: &Store) -> Result<Restored, NotDone> {
    let identity = random_uuid();
    let session = store.bare_session().await?;
    let before = session.one("select identity::text from store", &[]).await?;
    let identity_before = store.get(&before, 0)?;
    let change = format!(
        "begin; update store set origin = coalesce(origin, identity::text), identity = '{identity}'; \
         update namespace set epoch = epoch + {epochs}, owner = null, server = null, incarnation = null, timeline = null; \
         insert into namespace_state (namespace, skips) select id, 1 from namespace \
         on conflict (namespace) do update set skips = namespace_state.skips + 1, failures = 0, died_at = null; \
         update server set alive = false; commit",
        epochs = limits::RESTORED_EPOCHS
    );
    session.batch("change the identity", &change).await?;
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() \
               and usename = current_user and pid <> pg_backend_pid() and application_name like 'jitney %'";
    let sessions_ended = store.get(&session.one(end, &[]).await?, 0)?;
    // No server of before can put one there any more.
    let end = "update namespace_state s set quarantined = null, lost = null from namespace n \
               where n.id = s.namespace and s.lost = s.quarantined and s.pending is null returning n.name";
    let mut ended = session
        .rows(end, &[])
        .await?
        .iter()
        .map(|row| store.get(row, 0))
        .collect::<Result<Vec<String>, StoreError>>()?;
    ended.sort_unstable();
    let query = "select n.name, s.quarantined from namespace n join namespace_state s on s.namespace = n.id \
                 where s.quarantined is not null order by n.name";
    let kept = session.rows(query, &[]).await?;
    let kept = kept
        .iter()
        .map(|row| Ok::<(String, String), StoreError>((store.get(row, 0)?, store.get(row, 1)?)));
    let kept = kept.collect::<Result<_, _>>()?;
    let namespaces = newest_groups(store, &session).await?;
    Ok(Restored {
        identity_before,
        identity,
        sessions_ended,
        namespaces,
        ended,
        kept,
    })
}

/// Returns the number of the last group of each namespace's log.
async fn newest_groups(store: &Store, session: &Session) -> Result<Vec<(String, i64)>, StoreError> {
    let query = "select n.name, n.id, max(g.segment) from namespace n left join segment g on g.namespace = n.id \
                 and not g.removed group by n.id, n.name order by n.name";
    let mut found = Vec::new();
    for row in session.rows(query, &[]).await? {
        let (name, id, segment): (String, i64, Option<i64>) = (
            store.get(&row, 0)?,
            store.get(&row, 1)?,
            store.get(&row, 2)?,
        );
        let mut newest = 0;
        // The newest table may have been made ahead, and be empty.
        for segment in segment.into_iter().flat_map(|last| [last, last - 1]) {
            let table = schema::table(id, SegmentId(unsigned(segment)));
            let exists = "select to_regclass($1) is not null";
            if newest == 0 && store.get(&session.one(exists, &[&table]).await?, 0)? {
                let query = format!("select coalesce(max(frame), 0) from {table}");
                newest = store.get(&session.one(&query, &[]).await?, 0)?;
            }
        }
        found.push((name, newest));
    }
    Ok(found)
}

/// How often a namespace is to leave out sequence numbers.
///
/// # Errors
///
/// The store's.
pub(super) async fn skips(store: &Store, fence: &Fence) -> Result<u32, StoreError> {
    let session = store.take().await?;
    let query = "select coalesce(max(skips), 0) from namespace_state where namespace = $1";
    let row = session.one(query, &[&fence.namespace()]).await?;
    let skips: i32 = store.get(&row, 0)?;
    store.give_back(session);
    Ok(u32::try_from(skips).unwrap_or_default())
}

/// Numbers that a namespace leaves out as it is begun, which is to be noted when it is durable.
pub(super) struct Skipped {
    pub(super) fence: Arc<Fence>,
    pub(super) count: u32,
    /// The group by which they are left out durably.
    pub(super) group: u64,
    pub(super) progress: watch::Receiver<SyncProgress>,
}

impl Skipped {
    /// Waits until it is durable, and notes that it is done. If that fails, the next owner leaves out more.
    ///
    /// # Errors
    ///
    /// The store's, or another server has the namespace.
    pub(super) async fn note(mut self, store: &Store) -> Result<(), StoreError> {
        wait_durable(&mut self.progress, self.group).await?;
        let session = store.take().await?;
        let (epoch, owner) = self.fence.current();
        let sql = "with fence as (select from namespace f where f.id = $1 and f.epoch = $3 and f.owner = $4 \
                   for share of f) \
                   update namespace_state set skips = skips - $2 where namespace = $1 and exists (select from fence)";
        let count = i32::try_from(self.count).unwrap_or(i32::MAX);
        let id = self.fence.namespace();
        session.execute(sql, &[&id, &count, &epoch, &owner]).await?;
        store.give_back(session);
        Ok(())
    }
}
