//! How a server takes a namespace over, and gives it away.
//!
//! A take-over raises the epoch, and reads the log only after that is committed: what the owner before has appended until
//! then is there, and nothing more of it comes. Nothing is answered before a row of the new epoch is durable.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tracing::{info, warn};

use super::append::{StoreCommitter, StoreEvent};
use super::connect::{Session, Store};
use super::fence::{Fence, Uuid, random_bits};
use super::log::StoreLog;
use super::restored::Skipped;
use super::timeline::Timeline;
use super::{StoreError, deaths, restored, schema};
use crate::server::committer::LogSink as _;
use crate::server::limits;
use crate::server::supervisor::Task;
use jitney_gateway::Gateway;
use jitney_journal::Disk;
use jitney_journal::appender::{Answer, Appended, Appender, Claim, Command, Question};
use jitney_journal::rows::RowPlace;
use jitney_shard::Recovering;

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
    let group = recovering.skip_numbers(u64::from(skips) * jitney_shard::limits::RESTORED_NUMBERS);
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
        disk: log,
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
    let params: super::connect::Params<'_> = &[
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
    deaths::judge(failures)?;
    Ok(Some(epoch))
}

/// Reads the log of a namespace that this server owns; returns its last row too.
async fn read_log(
    store: &Arc<Store>,
    fence: &Arc<Fence>,
    namespace: &Owned,
    make: impl FnOnce(&Owned) -> (Gateway, jitney_journal::Options) + Send + 'static,
) -> Result<(Arc<StoreLog>, Recovering, Appended), StoreError> {
    let (owned, claimed) = (Arc::clone(store), Arc::clone(fence));
    let log = Arc::new(StoreLog::new(owned, claimed, Handle::current()));
    if !has_log(store, fence).await? {
        schema::make_segment(store, fence, RowPlace::ROOT.segment()).await?;
    }
    let reading = Arc::<StoreLog>::clone(&log);
    let wanted = namespace.clone();
    let read = tokio::task::spawn_blocking(move || {
        let (gateway, options) = make(&wanted);
        Recovering::read_rows(gateway, reading, options)
    });
    let read = read
        .await
        .map_err(|error| StoreError::Lost(error.to_string()))?;
    let (recovering, last) = read?;
    Ok((log, recovering, last))
}

/// Raises the epoch of a namespace that this server owns, after an outcome was unknown; returns the new epoch, or nothing if
/// the store has another claim.
///
/// # Errors
///
/// The store's.
pub(super) async fn raise(
    store: &Arc<Store>,
    session: &Session,
    fence: &Fence,
    from: Claim,
    to: u128,
) -> Result<Option<i64>, StoreError> {
    let raise = "update namespace set epoch = epoch + 1, owner = $4 \
                 where id = $1 and epoch = $2 and owner = $3 returning epoch";
    let (owner, to) = (Uuid(from.owner), Uuid(to));
    let params: super::connect::Params<'_> = &[&fence.namespace(), &from.epoch, &owner, &to];
    let raised = unblocked(store, session, session.optional(raise, params)).await?;
    raised.map(|row| store.get(&row, 0)).transpose()
}

/// Returns the epoch and the owner of a namespace; nothing if it was removed.
///
/// # Errors
///
/// The store's.
pub(super) async fn claim(
    store: &Store,
    session: &Session,
    namespace: i64,
) -> Result<Option<(i64, Option<u128>)>, StoreError> {
    let query = "select epoch, owner from namespace where id = $1";
    let row = session.optional(query, &[&namespace]).await?;
    let claim = row.map(|row| {
        let owner: Option<Uuid> = store.get(&row, 1)?;
        Ok((store.get(&row, 0)?, owner.map(|owner| owner.0)))
    });
    claim.transpose()
}

/// Waits for a statement that changes the fence. A session that was cut off in the middle of an append may hold the row,
/// and no time-out of the database ends it: it is terminated.
pub(super) async fn unblocked<T>(
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

/// Commits something of the namespace, if the claim is the store's: a commit that is on a standby carries all before it there. Records the
/// timeline of the database then: the owner has compared what is there with what it has acknowledged.
pub(super) async fn barrier(
    session: &Session,
    namespace: i64,
    claim: Claim,
) -> Result<bool, StoreError> {
    let sql = "insert into barrier (namespace, number) select f.id, 1 from namespace f \
               where f.id = $1 and f.epoch = $2 and f.owner = $3 for share of f \
               on conflict (namespace) do update set number = barrier.number + 1";
    let done = session
        .execute(sql, &[&namespace, &claim.epoch, &Uuid(claim.owner)])
        .await?;
    if let Some(timeline) = session.timeline().map(Timeline::recorded) {
        let sql = "update namespace set timeline = $4 where id = $1 and epoch = $2 and owner = $3 \
                   and timeline is distinct from $4";
        let params: super::connect::Params<'_> =
            &[&namespace, &claim.epoch, &Uuid(claim.owner), &timeline];
        session.execute(sql, params).await?;
    }
    Ok(done == 1)
}

/// Gives a namespace away, whose committer has finished.
///
/// # Errors
///
/// The store's: this server takes it again, or gives it away when it stops ([`depart`]).
pub(super) async fn release(store: &Arc<Store>, fence: &Fence) -> Result<(), StoreError> {
    fence.lose();
    let (epoch, owner) = fence.current();
    let sql = "update namespace set epoch = epoch + 1, owner = null, server = null, incarnation = null \
               where id = $1 and epoch = $2 and owner = $3";
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

/// Records that a server has left, and gives away with that what its incarnation still has in the store: namespaces whose
/// handover has failed or has not ended, and those of take-overs that have not ended. So a stop in order is the death of no owner.
/// Appends that come later are refused, as after any take-over. Returns how many namespaces those were.
///
/// # Errors
///
/// The store's: the other servers take these namespaces when this one's beat ends, and count that as a death of their owner.
pub(super) async fn depart(
    store: &Arc<Store>,
    server: &str,
    incarnation: &str,
) -> Result<u64, StoreError> {
    let sql = "with gone as (update server set alive = false, leaving = true, deaths = 0 where name = $1 and incarnation = $2::text::uuid \
               returning name, incarnation) \
               update namespace n set epoch = n.epoch + 1, owner = null, server = null, incarnation = null from gone g \
               where n.server = g.name and n.incarnation = g.incarnation";
    let session = store.take().await?;
    let params: super::connect::Params<'_> = &[&server, &incarnation];
    let given = unblocked(store, &session, session.execute(sql, params)).await?;
    store.give_back(session);
    Ok(given)
}

/// Who puts a namespace into quarantine, because of its log.
#[derive(Debug, Clone, Copy)]
pub(super) enum QuarantinedBy<'a> {
    /// Its owner, of whose groups some are missing that were acknowledged: the next owner does not give their sequence numbers again.
    Owner,
    /// A server of this incarnation, which has taken it and cannot read the log. Nothing is done if another server or a command has the
    /// namespace by now: what was read was changed meanwhile.
    Taker(&'a str),
    /// A server of this incarnation, which has taken it, because its owners have died too often: for a while.
    Deaths(&'a str),
}

/// Leaves a namespace alone until an operator lets it out, or for a while if its owners have died: no server takes it. It can be done again if its answer did not come.
///
/// # Errors
///
/// The store's.
pub(super) async fn quarantine(
    store: &Store,
    namespace: i64,
    why: &str,
    by: QuarantinedBy<'_>,
) -> Result<(), StoreError> {
    let session = store.take().await?;
    let (taker, skips, pauses) = match by {
        QuarantinedBy::Owner => (None, 1, 0),
        QuarantinedBy::Taker(incarnation) => (Some(incarnation), 0, 0),
        QuarantinedBy::Deaths(incarnation) => (Some(incarnation), 0, 1),
    };
    // What these two say holds only while the reason is this one: older releases give another reason, and leave them.
    let paused = (pauses != 0).then_some(why);
    let lost = (skips != 0).then_some(why);
    let sql = "insert into namespace_state (namespace, quarantined, skips, pauses, paused, lost) \
               select n.id, $2::text, $4::int, $5::int, $6::text, $7::text from namespace n \
               where n.id = $1 and ($3::text is null or n.incarnation::text = $3::text) for share of n \
               on conflict (namespace) do update set quarantined = excluded.quarantined, paused = excluded.paused, \
               lost = excluded.lost, \
               skips = namespace_state.skips + case when namespace_state.quarantined is null then excluded.skips else 0 end, \
               pauses = namespace_state.pauses + case when namespace_state.quarantined is null then excluded.pauses else 0 end";
    let params: super::connect::Params<'_> =
        &[&namespace, &why, &taker, &skips, &pauses, &paused, &lost];
    session.execute(sql, params).await?;
    store.give_back(session);
    Ok(())
}

/// Ends a quarantine because of deaths, whose pause of that number is over: servers take the namespace again, and its next death puts it
/// there anew. Nothing is done if another server was faster, or the quarantine has another reason by now. Returns whether it was ended.
///
/// # Errors
///
/// The store's.
pub(super) async fn end_pause(
    session: &Session,
    namespace: i64,
    number: i32,
) -> Result<bool, StoreError> {
    let sql = "with held as (select n.id from namespace n join namespace_state q on q.namespace = n.id \
               where n.id = $1 and q.paused = q.quarantined and q.pending is null and q.pauses = $2 for update of n, q), \
               freed as (update namespace n set epoch = n.epoch + 1, owner = null, server = null, incarnation = null \
               from held where n.id = held.id) \
               update namespace_state s set quarantined = null, paused = null, failures = $3, died_at = null from held \
               where s.namespace = held.id";
    let params: super::connect::Params<'_> = &[&namespace, &number, &limits::TAKEOVERS_MAX];
    Ok(session.execute(sql, params).await? == 1)
}
