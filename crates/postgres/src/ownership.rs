//! What the row of a namespace says of its owner, and how that is changed: the claim is raised, confirmed and given
//! away, and a namespace is put into quarantine.

use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::StoreError;
use super::connect::{Session, Store};
use super::fence::{Fence, Uuid};
use super::timeline::Timeline;
use crate::limits;
use jitney_journal::appender::Claim;

/// Raises the epoch of a namespace that this server owns, after an outcome was unknown; returns the new epoch, or nothing if
/// the store has another claim.
///
/// # Errors
///
/// The store's.
pub async fn raise(
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
pub async fn claim(
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
pub async fn unblocked<T>(
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
pub async fn barrier(session: &Session, namespace: i64, claim: Claim) -> Result<bool, StoreError> {
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
pub async fn release(store: &Arc<Store>, fence: &Fence) -> Result<(), StoreError> {
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

/// Gives a namespace away that is a server's by its row, and that it does not serve: an attempt to release it has failed.
///
/// # Errors
///
/// The store's: it is tried again.
pub async fn give_back(
    store: &Arc<Store>,
    namespace: i64,
    server: &str,
    incarnation: &str,
) -> Result<(), StoreError> {
    let sql = "update namespace set epoch = epoch + 1, owner = null, server = null, incarnation = null \
               where id = $1 and server = $2 and incarnation = $3::text::uuid";
    let session = store.take().await?;
    session
        .execute(sql, &[&namespace, &server, &incarnation])
        .await?;
    store.give_back(session);
    Ok(())
}

/// Records that a server has left, and gives away with that what its incarnation still has in the store: namespaces whose
/// handover has failed or has not ended, and those of take-overs that have not ended. So a stop in order is the death of no owner.
/// Appends that come later are refused, as after any take-over. Returns how many namespaces those were.
///
/// # Errors
///
/// The store's: the other servers take these namespaces when this one's beat ends, and count that as a death of their owner.
pub async fn depart(
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
pub enum QuarantinedBy<'a> {
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
pub async fn quarantine(
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
pub async fn end_pause(session: &Session, namespace: i64, number: i32) -> Result<bool, StoreError> {
    let sql = "with held as (select n.id from namespace n join namespace_state q on q.namespace = n.id \
               where n.id = $1 and q.paused = q.quarantined and q.pending is null and q.pauses = $2 for update of n, q), \
               freed as (update namespace n set epoch = n.epoch + 1, owner = null, server = null, incarnation = null \
               from held where n.id = held.id) \
               update namespace_state s set quarantined = null, paused = null, failures = $3, died_at = null from held \
               where s.namespace = held.id";
    let params: super::connect::Params<'_> =
        &[&namespace, &number, &jitney_cluster::limits::TAKEOVERS_MAX];
    Ok(session.execute(sql, params).await? == 1)
}
