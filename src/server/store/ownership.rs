//! How a server takes a namespace over, and gives it away.
//!
//! A take-over raises the epoch, and reads the log only after that is committed: what the owner before has appended until
//! then is there, and nothing more of it comes. Nothing is answered before a row of the new epoch is durable.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tracing::{info, warn};

use super::append::{Appended, StoreCommitter, StoreEvent};
use super::connect::{Session, Store};
use super::fence::{Fence, random_uuid};
use super::log::StoreLog;
use super::{StoreError, schema};
use crate::gateway::Gateway;
use crate::journal::rows::RowPlace;
use crate::journal::{self, Disk};
use crate::limits;
use crate::server::committer::{LogCommand, LogSink as _};
use crate::server::supervisor::Task;
use crate::shard::Recovering;

/// A namespace, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct Owned {
    pub(in crate::server) id: i64,
    pub(in crate::server) name: String,
    pub(super) log_store: u64,
    pub(super) epoch: i64,
}

/// A namespace that this server has taken over, with its log read.
pub(in crate::server) struct OwnedShard {
    pub(in crate::server) namespace: Owned,
    pub(in crate::server) fence: Arc<Fence>,
    pub(in crate::server) recovering: Recovering,
    pub(in crate::server) committer: StoreCommitter,
    /// Ends when the committer was dropped and is done.
    pub(in crate::server) committing: Task,
    pub(in crate::server) events: watch::Receiver<StoreEvent>,
    /// Where the reader says that the log cannot be read.
    pub(in crate::server) teller: watch::Sender<StoreEvent>,
    pub(in crate::server) disk: Arc<dyn Disk>,
}

/// The one that takes a namespace.
#[derive(Debug, Clone)]
pub(super) struct Taker {
    pub(super) server: String,
    pub(super) incarnation: String,
}

/// Takes a namespace over, whose epoch was seen: another server that has taken it meanwhile keeps it.
///
/// # Errors
///
/// [`StoreError::Fenced`] if another server has taken it; the store's.
pub(super) async fn take(
    store: &Arc<Store>,
    taker: &Taker,
    namespace: Owned,
    make: impl FnOnce(&Owned) -> (Gateway, journal::Options) + Send + 'static,
) -> Result<OwnedShard, StoreError> {
    let session = store.take().await?;
    let owner = random_uuid();
    let raise = "update namespace set epoch = epoch + 1, owner = $3::text::uuid, server = $4, \
                 incarnation = $5::text::uuid where id = $1 and epoch = $2 \
                 and exists (select from server s where s.name = $4 and s.incarnation = $5::text::uuid and s.alive) \
                 returning epoch";
    let params: super::connect::Params<'_> = &[
        &namespace.id,
        &namespace.epoch,
        &owner,
        &taker.server,
        &taker.incarnation,
    ];
    let raised = unblocked(store, &session, session.optional(raise, params)).await?;
    let raised = raised.ok_or(StoreError::Fenced)?;
    let epoch: i64 = store.get(&raised, 0)?;
    store.give_back(session);
    let fence = Arc::new(Fence::new(&namespace, epoch, owner));
    let log = Arc::new(StoreLog::new(
        Arc::clone(store),
        Arc::clone(&fence),
        Handle::current(),
    ));
    if !has_log(store, &fence).await? {
        schema::make_segment(store, &fence, RowPlace::ROOT.segment()).await?;
    }
    let reading = Arc::clone(&log);
    let wanted = namespace.clone();
    let read = tokio::task::spawn_blocking(move || {
        let (gateway, options) = make(&wanted);
        recover(&reading, gateway, options)
    });
    let read = read
        .await
        .map_err(|error| StoreError::Lost(error.to_string()))?;
    let (mut recovering, last) = read?;
    let (told, events) = watch::channel(StoreEvent::Back);
    let (mut committer, committing) =
        StoreCommitter::start(Arc::clone(store), Arc::clone(&log), last, told.clone());
    let barrier = recovering.barrier();
    let number = barrier.number;
    committer.order(LogCommand::Commit(barrier));
    let mut progress = committer.progress();
    let durable = progress.wait_for(|progress| number <= progress.durable);
    // The committer ends early if the namespace was taken again.
    durable.await.map_err(|_| StoreError::Fenced)?;
    Ok(OwnedShard {
        namespace: Owned { epoch, ..namespace },
        fence,
        recovering,
        committer,
        committing,
        events,
        teller: told,
        disk: log,
    })
}

async fn has_log(store: &Store, fence: &Fence) -> Result<bool, StoreError> {
    let session = store.take().await?;
    let query = "select exists (select from segment where namespace = $1)";
    let row = session.one(query, &[&fence.namespace()]).await?;
    store.give_back(session);
    store.get(&row, 0)
}

/// Reads the log; returns its last row too.
fn recover(
    log: &Arc<StoreLog>,
    gateway: Gateway,
    options: journal::Options,
) -> Result<(Recovering, Appended), StoreError> {
    let disk: Arc<dyn Disk> = Arc::<StoreLog>::clone(log);
    let from = log.checkpoints()?.last().copied();
    let from = from.unwrap_or(RowPlace::ROOT.position);
    let mut tail = log.tail(from)?;
    let before = log.last_before(from)?;
    let recovering = Recovering::read_rows(gateway, disk, options, &mut tail)?;
    let root = Appended {
        place: RowPlace::ROOT,
        id: 0,
    };
    let last = tail.newest().or(before).unwrap_or(root);
    let found = recovering.recovered().last_frame;
    if last.place.frame != found {
        return Err(StoreError::Lost(format!(
            "its log ends with group {}, and its checkpoint is of group {found}: rows are missing",
            last.place.frame
        )));
    }
    Ok((recovering, last))
}

/// Raises the epoch of a namespace that this server owns, after an outcome was unknown: from then on no statement of an
/// old session changes anything.
///
/// # Errors
///
/// [`StoreError::Fenced`] if another server has taken it; the store's.
pub(super) async fn raise_own(
    store: &Arc<Store>,
    session: &Session,
    fence: &Fence,
    owners: &mut Vec<String>,
) -> Result<(), StoreError> {
    loop {
        let (epoch, owner) = fence.current();
        let new = random_uuid();
        owners.push(new.clone());
        let raise = "update namespace set epoch = epoch + 1, owner = $4::text::uuid \
                     where id = $1 and epoch = $2 and owner = $3::text::uuid returning epoch";
        let params: super::connect::Params<'_> = &[&fence.namespace(), &epoch, &owner, &new];
        if let Some(row) = unblocked(store, session, session.optional(raise, params)).await? {
            fence.raise(store.get(&row, 0)?, new);
            owners.clear();
            return Ok(());
        }
        // The answer to an earlier raise may not have come.
        let query = "select epoch, owner::text from namespace where id = $1";
        let row = session.one(query, &[&fence.namespace()]).await?;
        let (now, found): (i64, Option<String>) = (store.get(&row, 0)?, store.get(&row, 1)?);
        if now < epoch {
            return Err(StoreError::Lost(format!(
                "the database has epoch {now}, and this server had epoch {epoch}: it was restored, or a standby was promoted \
                 that had not what was acknowledged"
            )));
        }
        let epoch = now;
        match found.filter(|found| owners.contains(found) && *found != new) {
            Some(found) => fence.raise(epoch, found),
            None => return Err(StoreError::Fenced),
        }
    }
}

/// Waits for a statement that changes the fence. A session that was cut off in the middle of an append may hold the row,
/// and no time-out of the database ends it: it is terminated.
async fn unblocked<T>(
    store: &Arc<Store>,
    session: &Session,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let own = session.one("select pg_backend_pid()", &[]).await?;
    let own: i32 = store.get(&own, 0)?;
    let mut work = std::pin::pin!(work);
    let wait: Duration = limits::STORE_BLOCKED_WAIT.as_duration();
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(wait) => {
                let other = store.take().await?;
                let end = "select count(pg_terminate_backend(p)) from unnest(pg_blocking_pids($1)) p";
                let ended: i64 = store.get(&other.one(end, &[&own]).await?, 0)?;
                store.give_back(other);
                if 0 < ended {
                    warn!(ended, "ended sessions of the database that held a namespace");
                }
            }
        }
    }
}

/// Commits something of the namespace: a commit that is on a standby carries all before it there.
pub(super) async fn barrier(session: &Session, fence: &Fence) -> Result<(), StoreError> {
    let sql = "insert into barrier (namespace, number) values ($1, 1) \
               on conflict (namespace) do update set number = barrier.number + 1";
    session.execute(sql, &[&fence.namespace()]).await?;
    Ok(())
}

/// Gives a namespace away, whose committer has finished.
///
/// # Errors
///
/// The store's: the other servers take it when this one's beat ends.
pub(super) async fn release(store: &Arc<Store>, fence: &Fence) -> Result<(), StoreError> {
    fence.lose();
    let (epoch, owner) = fence.current();
    let sql = "update namespace set epoch = epoch + 1, owner = null, server = null, incarnation = null \
               where id = $1 and epoch = $2 and owner = $3::text::uuid";
    let session = store.take().await?;
    let done = session
        .execute(sql, &[&fence.namespace(), &epoch, &owner])
        .await?;
    store.give_back(session);
    if 0 < done {
        info!(namespace = fence.name(), "gave a namespace away");
    }
    Ok(())
}

/// Leaves a namespace alone until an operator lets it out: no server takes it.
///
/// # Errors
///
/// The store's.
pub(super) async fn quarantine(store: &Store, namespace: i64, why: &str) -> Result<(), StoreError> {
    let session = store.take().await?;
    let sql = "insert into namespace_state (namespace, quarantined) values ($1, $2) \
               on conflict (namespace) do update set quarantined = excluded.quarantined";
    session.execute(sql, &[&namespace, &why]).await?;
    store.give_back(session);
    Ok(())
}
