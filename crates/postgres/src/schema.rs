//! The tables of a store. They are made under an advisory lock, because servers start together.

use tokio::time::sleep;
use tokio_postgres::error::SqlState;
use tracing::info;

use super::connect::{Session, Store};
use super::fence::random_uuid;
use super::{StoreError, fence};
use crate::limits;
use jitney_journal::SegmentId;
use jitney_journal::rows::RowPlace;

/// The version of the tables. A server refuses a store with a newer one. Version 2 has `skips`, which every later owner of a log
/// must heed, and `pending`.
pub const VERSION: i32 = 2;

/// Serializes the making of tables: any number that no other program uses.
const LOCK: i64 = 0x6a69_746e_6579;

const TABLES: &str = "
create schema if not exists jitney;
create table if not exists store (
    identity uuid not null,
    version int not null,
    root_key text,
    operator_key text,
    peer_authority text,
    first_namespace text
);
create table if not exists configuration (
    hash text primary key,
    text text not null,
    number bigint generated always as identity
);
create table if not exists server (
    name text primary key,
    incarnation uuid not null,
    beat bigint not null,
    alive bool not null,
    leaving bool not null default false,
    address text not null,
    formats int not null
);
create table if not exists namespace (
    id bigint generated always as identity primary key,
    name text not null unique,
    log_store bigint not null,
    epoch bigint not null default 0,
    owner uuid,
    server text,
    incarnation uuid
);
create table if not exists namespace_state (
    namespace bigint primary key references namespace,
    applied text,
    failures int not null default 0,
    quarantined text,
    rate bigint not null default 0
);
create table if not exists segment (
    namespace bigint not null,
    segment bigint not null,
    removed bool not null default false,
    primary key (namespace, segment)
);
create table if not exists checkpoint (
    namespace bigint not null,
    position bigint not null,
    primary key (namespace, position)
);
create table if not exists checkpoint_chunk (
    namespace bigint not null,
    position bigint not null,
    part int not null,
    bytes bytea not null,
    primary key (namespace, position, part)
);
create table if not exists body_part (
    namespace bigint not null,
    at bigint not null,
    part int not null,
    bytes bytea not null,
    primary key (namespace, at, part)
);
create table if not exists barrier (
    namespace bigint primary key,
    number bigint not null
);
alter table checkpoint_chunk alter column bytes set storage external;
alter table body_part alter column bytes set storage external;
";

/// What later releases have added to tables, which older ones do not look at: the table, the column and its type.
const COLUMNS: [(&str, &str, &str); 17] = [
    ("store", "name", "text"),
    ("store", "stores", "text"),
    ("server", "stores", "text"),
    ("server", "skewed", "uuid"),
    ("namespace_state", "formats", "int"),
    ("namespace_state", "pending", "text"),
    ("namespace_state", "skips", "int not null default 0"),
    ("namespace_state", "quota", "bigint"),
    ("store", "origin", "text"),
    ("store", "tls_authority", "text"),
    ("server", "deaths", "int not null default 0"),
    ("server", "resting", "uuid"),
    ("namespace_state", "died_at", "text"),
    ("namespace_state", "pauses", "int not null default 0"),
    ("namespace_state", "paused", "text"),
    ("namespace_state", "lost", "text"),
    ("namespace", "timeline", "text"),
];

/// Tables that later releases have added.
const ADDED: &str = "
create table if not exists reservation (name text primary key, store text not null);
create table if not exists history (namespace bigint primary key, epoch bigint not null, bytes bytea not null);
";

/// Makes the tables that are not there, and adds to those of an older release what they lack. A change of a table that another
/// session holds is tried again for some seconds.
///
/// # Errors
///
/// The role may not; a newer release has made them; or a session keeps a table from being changed.
pub async fn make(store: &Store) -> Result<(), StoreError> {
    let session = store.bare_session().await?;
    for number in 1.. {
        // Not held during the pauses: else the starts of other servers would wait in vain.
        let lock = format!("select pg_advisory_lock({LOCK})");
        session.batch("lock the tables", &lock).await?;
        // The end of the session releases the lock, too.
        let made = make_locked(store, &session).await?;
        let unlock = format!("select pg_advisory_unlock({LOCK})");
        session.batch("unlock the tables", &unlock).await?;
        let Made::Held(table) = made else {
            break;
        };
        if limits::SCHEMA_TRIES <= number {
            return Err(held(store, &session, table).await?);
        }
        if number == 1 {
            info!(
                store = store.name(),
                table,
                "other sessions hold a table to which this release adds a column: this is tried again"
            );
        }
        sleep(limits::SCHEMA_RETRY.as_duration()).await;
    }
    Ok(())
}

/// What became of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    /// They have all that this release needs.
    All,
    /// This one cannot be changed now, because other sessions hold it.
    Held(&'static str),
}

async fn make_locked(store: &Store, session: &Session) -> Result<Made, StoreError> {
    let exists = session
        .one("select to_regclass('jitney.store') is not null", &[])
        .await?;
    if store.get::<bool>(&exists, 0)? {
        let row = session.one("select version from store", &[]).await?;
        let found: i32 = store.get(&row, 0)?;
        if VERSION < found {
            return Err(store.unfit(format!(
                "its tables have version {found}, and this release knows {VERSION}: use the release that made them"
            )));
        }
        let made = add(store, session).await?;
        if made == Made::All {
            // Only now: the next start adds what is missing.
            let raise = "update store set version = $1 where version < $1";
            session.execute(raise, &[&VERSION]).await?;
        }
        return Ok(made);
    }
    let identity = random_uuid();
    let all = format!(
        "begin; {TABLES} \
         insert into store (identity, version) select '{identity}', {VERSION} where not exists (select from store); \
         commit"
    );
    session.batch("make the tables", &all).await?;
    add(store, session).await
}

/// Adds what is not there yet. A change of a table waits for all sessions that hold it, and all others wait behind the change: it
/// waits for much less than a lease, and is not made in vain.
async fn add(store: &Store, session: &Session) -> Result<Made, StoreError> {
    session.batch("make the tables", ADDED).await?;
    let query = "select count(*) from pg_attribute where attrelid = to_regclass('jitney.' || $1::text) \
                 and attname = $2 and not attisdropped";
    let wait = limits::SCHEMA_LOCK_WAIT.as_millis();
    for (table, column, kind) in COLUMNS {
        let row = session.one(query, &[&table, &column]).await?;
        if 0 < store.get::<i64>(&row, 0)? {
            continue;
        }
        let add = format!(
            "begin; set local lock_timeout = '{wait}ms'; \
             alter table {table} add column if not exists {column} {kind}; commit"
        );
        match session.batch("add a column", &add).await {
            Ok(()) => {}
            Err(StoreError::Database { source, .. })
                if source.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) =>
            {
                session.batch("give up a change", "rollback").await?;
                return Ok(Made::Held(table));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Made::All)
}

/// Describes the sessions that keep a table from being changed, and what to do. Of sessions of other roles the database may not
/// say since when they are in their transaction.
async fn held(store: &Store, session: &Session, table: &str) -> Result<StoreError, StoreError> {
    let query = "select string_agg(format('process %s (%s, %s, in a transaction since %s)', pid, usename, \
                     coalesce(nullif(application_name, ''), 'without a name'), \
                     coalesce(to_char(xact_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS \"UTC\"'), 'a time that this role may not see')), \
                     ', ' order by xact_start nulls first) \
                 from (select distinct a.pid, a.usename, a.application_name, a.xact_start \
                     from pg_locks l join pg_stat_activity a using (pid) \
                     where l.relation = to_regclass('jitney.' || $1::text) and l.granted and l.pid <> pg_backend_pid() \
                     and l.database = (select oid from pg_database where datname = current_database()) \
                     and coalesce(a.xact_start < clock_timestamp() - make_interval(secs => $2), true)) holders";
    // Those of servers last for some milliseconds.
    let least = limits::SCHEMA_LOCK_WAIT.as_duration().as_secs_f64();
    let row = session.one(query, &[&table, &least]).await?;
    let holders: Option<String> = store.get(&row, 0)?;
    let holders = holders.unwrap_or_else(|| "sessions that have ended just now".to_owned());
    Ok(store.unfit(format!(
        "this release adds a column to the table jitney.{table}, and cannot while it is held by {holders}. Wait for their end, as that of \
         a backup by pg_dump, or end them (select pg_terminate_backend(PROCESS)), and try it again"
    )))
}

/// Returns the table of a segment of a namespace's log. No name is used twice.
#[must_use]
pub fn table(namespace: i64, segment: SegmentId) -> String {
    format!("log_{namespace}_{}", segment.0)
}

/// Makes the table of a segment. It is recorded under the fence, in a statement of its own: a table that another
/// transaction reads cannot be locked, and nothing waits behind that.
///
/// # Errors
///
/// The store's, or [`StoreError::Fenced`].
pub async fn make_segment(
    store: &Store,
    fence: &fence::Fence,
    segment: SegmentId,
) -> Result<(), StoreError> {
    let name = table(fence.namespace(), segment);
    let root = RowPlace::ROOT;
    let number = i64::try_from(segment.0).unwrap_or(i64::MAX);
    let session = store.take().await?;
    let (at, span, frame) = (root.position, root.span, root.frame);
    let first = if segment == root.segment() {
        format!(
            "insert into {name} values ({at}, {span}, {frame}, 0, 0, 0, '', '') on conflict do nothing;"
        )
    } else {
        String::new()
    };
    let make = format!(
        "create table if not exists {name} (at bigint primary key, span bigint not null, frame bigint not null, \
         epoch bigint not null, id bigint not null, parts int not null, meta bytea not null, body bytea); \
         alter table {name} alter column meta set storage external; \
         alter table {name} alter column body set storage external; {first}"
    );
    // All of it is made at once. A table that is there, made ahead, is not altered again: that would wait for every transaction
    // that has read it, as pg_dump's.
    let exists = session
        .one("select to_regclass($1) is not null", &[&name])
        .await?;
    if !store.get::<bool>(&exists, 0)? {
        session.batch("make the table of a segment", &make).await?;
    }
    let (epoch, owner) = fence.current();
    let record = "insert into segment (namespace, segment) select $1, $2 from namespace f \
                  where f.id = $1 and f.epoch = $3 and f.owner = $4 for share of f \
                  on conflict do nothing";
    let done = session
        .execute(record, &[&fence.namespace(), &number, &epoch, &owner])
        .await?;
    if done == 0 && !is_recorded(store, &session, fence, number).await? {
        return Err(StoreError::Fenced);
    }
    store.give_back(session);
    Ok(())
}

async fn is_recorded(
    store: &Store,
    session: &Session,
    fence: &fence::Fence,
    segment: i64,
) -> Result<bool, StoreError> {
    let row = session
        .one(
            "select exists (select from segment where namespace = $1 and segment = $2 and not removed)",
            &[&fence.namespace(), &segment],
        )
        .await?;
    store.get(&row, 0)
}

/// Drops a table of a log, if it is there and no other transaction uses it. After an error the session is in a transaction
/// that has failed.
///
/// # Errors
///
/// Another transaction uses it; the store's.
pub async fn drop_table(session: &Session, table: &str) -> Result<(), StoreError> {
    // Behind a drop that waits for a reader, every other statement on the table would wait.
    let drop =
        format!("begin; set local lock_timeout = '200ms'; drop table if exists {table}; commit");
    session.batch("drop a table", &drop).await
}
