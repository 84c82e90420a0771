//! How a server takes a namespace over.
//!
//! A take-over raises the epoch, and reads the log only after that is committed: what the owner before has appended until
//! then is there, and nothing more of it comes. Nothing is answered before a row of the new epoch is durable.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tracing::warn;

use super::append::StoreCommitter;
use super::restored;
use super::restored::Skipped;
use crate::host::committer::LogSink as _;
use crate::host::owner::StoreEvent;
use crate::system::supervisor::Task;
use jitney_gateway::Gateway;
use jitney_journal::Checkpoints;
use jitney_journal::appender::{Answer, Appended, Appender, Command, Question};
use jitney_journal::rows::RowPlace;
use jitney_postgres::{
    Fence, Owned, Store, StoreError, StoreLog, Timeline, Uuid, ownership::unblocked, random_bits,
    schema,
};
use jitney_shard::Recovering;
use jitney_shard::limits;

/// A namespace that this server has taken over, with its log read.
pub(super) struct OwnedShard {
    pub(crate) namespace: Owned,
    pub(super) fence: Arc<Fence>,
    pub(crate) recovering: Recovering<()>,
    pub(crate) committer: StoreCommitter,
    /// Ends when the committer was dropped and is done.
    pub(super) committing: Task,
    pub(crate) events: watch::Receiver<StoreEvent>,
    /// Where the reader says that the log cannot be read.
    pub(super) teller: watch::Sender<StoreEvent>,
    pub(crate) log: Arc<dyn Checkpoints>,
    /// Sequence numbers that are left out, because the database was restored or lacked what was acknowledged.
    pub(super) skipped: Option<Skipped>,
}

/// The one that takes a namespace.
#[derive(Debug, Clone)]
pub(super) struct Taker {
    pub(super) server: String,
    pub(super) incarnation: String,
    /// The server whose death is counted for the namespace: it neither gave the namespace away nor has left in order.
    pub(super) dead: Option<String>,
    /// The timeline of the database that the owner before knew.
    pub(super) timeline: Option<String>,
}

/// Takes a namespace over, whose epoch was seen: another server that has taken it meanwhile keeps it.
///
/// # Errors
///
/// [`StoreError::Fenced`] if another server has taken it; [`StoreError::Deadly`] if its owners have died too often; the store's.
pub(super) async fn take(
    store: &Arc<Store>,
    taker: &Taker,
    namespace: Owned,
    make: impl FnOnce(&Owned) -> (Gateway, jitney_journal::Options) + Send + 'static,
) -> Result<OwnedShard, StoreError> {
    // What is read of the log is large.
    Box::pin(take_and_read(store, taker, namespace, make)).await
}

async fn take_and_read(
    store: &Arc<Store>,
    taker: &Taker,
    namespace: Owned,
    make: impl FnOnce(&Owned) -> (Gateway, jitney_journal::Options) + Send + 'static,
) -> Result<OwnedShard, StoreError> {
    let mut appender = Appender::new(namespace.log_store, namespace.epoch, Box::new(random_bits));
    let mut make = Some(make);
    let mut read = None;
    while let Some(command) = appender.poll() {
        match command {
            Command::Ask(Question::Take { to, .. }) => {
                let raised = acquire(store, taker, &namespace, to).await?;
                appender.answered(Answer::Raised(raised));
            }
            Command::Ask(Question::Read) => {
                let fence = Arc::new(Fence::new(&namespace, appender.claim()));
                let make = make.take().ok_or(StoreError::Fenced)?;
                let (log, recovering, last) = read_log(store, &fence, &namespace, make).await?;
                appender.answered(Answer::Read(last));
                read = Some((fence, log, recovering, last.place));
            }
            Command::Ask(_) | Command::Append(_) | Command::Tell(_) => {
                return Err(StoreError::Fenced);
            }
        }
    }
    let (fence, log, mut recovering, last) = read.ok_or(StoreError::Fenced)?;
    let epoch = appender.claim().epoch;
    let (told, events) = watch::channel(StoreEvent::Back);
    let (mut committer, committing) = StoreCommitter::start(
        Arc::clone(store),
        Arc::clone(&log),
        appender,
        last,
        told.clone(),
    );
    let barrier = recovering.barrier();
    let number = barrier.number;
    committer.commit(barrier).await?;
    let skips = restored::skips(store, &fence).await?;
    let group = recovering.skip_numbers(u64::from(skips) * limits::RESTORED_NUMBERS);
    let skipped = (0 < skips).then(|| Skipped {
        fence: Arc::clone(&fence),
        count: skips,
        group: group.unwrap_or(number),
        progress: committer.progress(),
    });
    Ok(OwnedShard {
        namespace: Owned { epoch, ..namespace },
        fence,
        recovering,
        committer,
        committing,
        events,
        teller: told,
        log,
        skipped,
    })
}

pub(super) async fn has_log(store: &Store, fence: &Fence) -> Result<bool, StoreError> {
    let session = store.take().await?;
    let query = "select exists (select from segment where namespace = $1)";
    let row = session.one(query, &[&fence.namespace()]).await?;
    store.give_back(session);
    store.get(&row, 0)
}

/// Raises the epoch that was seen, and makes this server the owner; returns the new epoch, or nothing if another server was
/// first. If the database was promoted since the owner before knew it, sequence numbers are to be left out: it is unknown whether the
/// log has all that was acknowledged. That the owner before has died is counted with it, once, and before its log is read: reading it may
/// end this server, too.
///
/// # Errors
///
/// [`StoreError::Deadly`] if the owners have died too often: this server has the namespace, and is to leave it alone. The store's.
async fn acquire(
    store: &Arc<Store>,
    taker: &Taker,
    namespace: &Owned,
    to: u128,
) -> Result<Option<i64>, StoreError> {
    let session = store.take().await?;
    let timeline = session.timeline();
    let is_promoted = timeline.is_some_and(|it| it.is_after(taker.timeline.as_deref()));
    let timeline = timeline.map(Timeline::recorded);
    let raise = "with raised as (update namespace set epoch = epoch + 1, owner = $3, server = $4, \
                 incarnation = $5::text::uuid, timeline = coalesce($7::text, timeline) where id = $1 and epoch = $2 \
                 and exists (select from server s where s.name = $4 and s.incarnation = $5::text::uuid and s.alive) \
                 returning id, epoch), \
                 counted as (insert into namespace_state (namespace, failures, died_at, skips) \
                 select id, case when $6::text is null then 0 else 1 end, $6::text, case when $8::bool then 1 else 0 end from raised \
                 where $6::text is not null or $8::bool \
                 on conflict (namespace) do update set failures = namespace_state.failures + excluded.failures, \
                 died_at = coalesce(excluded.died_at, namespace_state.died_at), skips = namespace_state.skips + excluded.skips \
                 returning case when $6::text is null then 0 else failures end as failures) \
                 select r.epoch, coalesce(c.failures, 0) from raised r left join counted c on true";
    let params: jitney_postgres::Params<'_> = &[
        &namespace.id,
        &namespace.epoch,
        &Uuid(to),
        &taker.server,
        &taker.incarnation,
        &taker.dead,
        &timeline,
        &is_promoted,
    ];
    let raised = unblocked(store, &session, session.optional(raise, params)).await?;
    store.give_back(session);
    let Some(row) = raised else {
        return Ok(None);
    };
    if is_promoted {
        warn!(
            namespace = namespace.name,
            before = taker.timeline,
            after = timeline,
            "the database was promoted since the last owner of a namespace knew it. If the new primary lacks what was acknowledged, \
             that is not noticed: sequence numbers are left out, so that none is given twice. Compare with the former primary"
        );
    }
    let (epoch, failures): (i64, i32) = (store.get(&row, 0)?, store.get(&row, 1)?);
    if jitney_cluster::deaths::is_deadly(failures) {
        return Err(StoreError::Deadly { deaths: failures });
    }
    Ok(Some(epoch))
}

/// Reads the log of a namespace that this server owns; returns its last row too.
async fn read_log(
    store: &Arc<Store>,
    fence: &Arc<Fence>,
    namespace: &Owned,
    make: impl FnOnce(&Owned) -> (Gateway, jitney_journal::Options) + Send + 'static,
) -> Result<(Arc<StoreLog>, Recovering<()>, Appended), StoreError> {
    let (owned, claimed) = (Arc::clone(store), Arc::clone(fence));
    let log = Arc::new(StoreLog::new(owned, claimed, Handle::current()));
    if !has_log(store, fence).await? {
        schema::make_segment(store, fence, RowPlace::ROOT.segment()).await?;
    }
    let reading = Arc::<StoreLog>::clone(&log);
    let wanted = namespace.clone();
    let read = tokio::task::spawn_blocking(move || {
        let (gateway, options) = make(&wanted);
        Recovering::read_rows(gateway, &*reading, options)
    });
    let read = read
        .await
        .map_err(|error| StoreError::Lost(error.to_string()))?;
    let (recovering, last) = read?;
    Ok((log, recovering, last))
}
