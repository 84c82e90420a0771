//! Namespaces that a command holds: it has their fence, and they are in quarantine, so that no server has them or takes them.
//!
//! A command that is ended in between leaves the namespace so, with what was begun: the same command does it again from the
//! beginning, or the namespace is removed.

use std::path::PathBuf;
use std::sync::Arc;

use crate::host::placement::PlacementError;
use jitney_journal::appender::Claim;
use jitney_postgres::{
    Fence, Owned, Reserving, Session, Store, StoreError, StoreOptions, UnsafeSettings, Uuid,
    ownership, random_bits, random_id, schema, unsigned,
};

/// Why a command on a store was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotDone {
    /// The store cannot be reached, or a statement failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is there does not allow it.
    #[error("{0}")]
    Refused(String),
    /// There is no such namespace.
    #[error(
        "there is no namespace '{0}' in the store: jitney store list shows those that there are"
    )]
    Unknown(String),
    /// A journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] jitney_journal::Error),
    /// The record of the namespaces of a data directory cannot be used.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The system refuses something about a file.
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl NotDone {
    /// Returns the exit code: 1 if it is refused, 3 if the store cannot be reached or used, 4 if there is no such namespace.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(_) | Self::Journal(_) | Self::Placement(_) | Self::Io { .. } => 1,
            Self::Store(_) => 3,
            Self::Unknown(_) => 4,
        }
    }
}

/// What a command does with a namespace that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PendingChange {
    Import,
    Export,
    Removal,
}

impl PendingChange {
    fn word(self) -> &'static str {
        match self {
            Self::Import => "import",
            Self::Export => "export",
            Self::Removal => "removal",
        }
    }

    fn of(word: &str) -> Self {
        match word {
            "import" => Self::Import,
            "export" => Self::Export,
            _ => Self::Removal,
        }
    }

    /// Says why the namespace is in quarantine, and what ends that.
    fn reason(self) -> &'static str {
        match self {
            Self::Import => {
                "it is being imported: if the command was interrupted, run it again, or run jitney store delete"
            }
            Self::Export => {
                "it is being exported: if the command was interrupted, run it again, or run jitney store release"
            }
            Self::Removal => {
                "it is being removed: if the command was interrupted, run jitney store delete again"
            }
        }
    }

    /// Returns whether a namespace that is in quarantine already stays there for the same reason while it is held. The command
    /// gives it back so, and may be ended before that.
    fn keeps_quarantine(self) -> bool {
        match self {
            Self::Export => true,
            Self::Import | Self::Removal => false,
        }
    }
}

/// Why a namespace is in quarantine that was exported with `--hold`.
pub(super) const EXPORTED: &str =
    "it was exported with --hold: jitney store release lets servers take it again";

/// A namespace that a command holds.
pub(super) struct HeldNamespace {
    pub(super) fence: Arc<Fence>,
    /// Why it was in quarantine before, for a reason that is not of a command that was ended.
    pub(super) before: Option<String>,
}

/// A namespace of the store, as a command finds it.
#[derive(Debug, Clone)]
pub(super) struct FoundNamespace {
    pub(super) owned: Owned,
    pub(super) server: Option<String>,
    pub(super) is_owned: bool,
    pub(super) has_log: bool,
    pub(super) quarantined: Option<String>,
    pub(super) pending: Option<PendingChange>,
}

/// A namespace of the store, for its operator.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) number: i64,
    pub(crate) epoch: i64,
    /// The server that took it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// Why no server takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quarantined: Option<String>,
    /// Tables of its log.
    pub(crate) segments: i64,
    /// Bytes of these tables in the database.
    pub(crate) bytes: i64,
    /// Bytes a second that its clients may send together, if that is bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quota: Option<i64>,
    /// It answers to every host that is no other's.
    pub(crate) first: bool,
}

/// What a command does where the database has no tables of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    /// It refuses.
    Needed,
    /// It makes them, after the checks of a server's start.
    Made,
    /// It makes them, whatever the checks find.
    MadeUnchecked,
}

/// What became of the wish to end a quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Release {
    /// Servers may take it; this was the reason of the quarantine.
    Done(String),
    /// It is in no quarantine.
    NotHeld,
    /// A command imports or removes it, as the reason of the quarantine says.
    Begun(String),
    /// There is no such namespace.
    Unknown,
}

/// Reaches a store by its URL, or by `NAME=URL`.
///
/// # Errors
///
/// It cannot be reached or used, has no tables, or its servers call it otherwise.
pub(crate) async fn open(
    url: &str,
    ca: Option<PathBuf>,
    tables: Tables,
) -> Result<Arc<Store>, NotDone> {
    if url.contains('\n') {
        return Err(NotDone::Refused(
            "JITNEY_STORE has several stores, and the command is for one: --store URL names it"
                .to_owned(),
        ));
    }
    let options = StoreOptions {
        urls: vec![url.to_owned().into()],
        ca,
        server: Some("command".to_owned()),
    };
    let store = Store::all(&options)?.pop();
    let store = store.ok_or_else(|| NotDone::Refused("--store is missing".to_owned()))?;
    let session = store.bare_session().await?;
    let query = "select to_regclass('jitney.store') is not null";
    let is_there: bool = store.get(&session.one(query, &[]).await?, 0)?;
    match tables {
        Tables::Needed if !is_there => {
            return Err(NotDone::Refused(format!(
                "the database {} has no store: a server that is started with --store, or jitney store import, makes one",
                store.place()
            )));
        }
        Tables::Needed => {}
        Tables::Made => {
            jitney_postgres::check(&store, &session, UnsafeSettings::Refused).await?;
        }
        Tables::MadeUnchecked => {
            jitney_postgres::check(&store, &session, UnsafeSettings::Allowed).await?;
        }
    }
    drop(session);
    schema::make(&store).await?;
    let name = Reserving::read(&store).await?.name;
    let is_named = store.name() != jitney_postgres::ONLY;
    if let Some(name) = name.filter(|name| is_named && name != store.name()) {
        return Err(NotDone::Refused(format!(
            "the servers of the store {} call it {name}, and not {}",
            store.place(),
            store.name()
        )));
    }
    Ok(Arc::new(store))
}

/// Lists the namespaces of a store by their names.
///
/// # Errors
///
/// The store's.
pub(crate) async fn list(store: &Store) -> Result<Vec<Listed>, NotDone> {
    let session = store.take().await?;
    let query = "select n.name, n.id, n.epoch, n.server, q.quarantined, \
                 coalesce(l.segments, 0), coalesce(l.bytes, 0)::bigint, n.name is not distinct from lower(f.first_namespace), q.quota \
                 from namespace n cross join store f left join namespace_state q on q.namespace = n.id \
                 left join (select namespace, count(*) as segments, \
                 sum(pg_total_relation_size(to_regclass('log_' || namespace || '_' || segment))) as bytes \
                 from segment where not removed group by namespace) l on l.namespace = n.id order by n.name";
    let rows = session.rows(query, &[]).await?;
    let all = rows.iter().map(|row| {
        Ok(Listed {
            name: store.get(row, 0)?,
            number: store.get(row, 1)?,
            epoch: store.get(row, 2)?,
            server: store.get(row, 3)?,
            quarantined: store.get(row, 4)?,
            segments: store.get(row, 5)?,
            bytes: store.get(row, 6)?,
            first: store.get(row, 7)?,
            quota: store.get(row, 8)?,
        })
    });
    let all = all.collect::<Result<_, StoreError>>()?;
    store.give_back(session);
    Ok(all)
}

/// Lets servers take a namespace that is in quarantine, whatever the case of its name, unless a command imports or removes it.
/// It has no server from then on, so that one takes it at its next look, and no death is counted. A claim that is left ends, be
/// it a server's or that of a command which holds the namespace for an export.
///
/// # Errors
///
/// The store's.
pub(crate) async fn lift(store: &Store, name: &str) -> Result<Release, StoreError> {
    let session = store.take().await?;
    let name = name.to_lowercase();
    // A command that holds it for an export has it no longer, also where it was in quarantine before.
    let sql = "with held as (select n.id, q.quarantined \
               from namespace n join namespace_state q on q.namespace = n.id \
               where n.name = $1 and q.quarantined is not null and coalesce(q.pending, 'export') = 'export' \
               for update of n, q), \
               freed as (update namespace n set epoch = n.epoch + 1, owner = null, server = null, incarnation = null \
               from held where n.id = held.id) \
               update namespace_state s set quarantined = null, pending = null, failures = 0, died_at = null, paused = null, \
               pauses = 0 from held \
               where s.namespace = held.id returning held.quarantined";
    let released = session.optional(sql, &[&name]).await?;
    let release = match released {
        Some(row) => Release::Done(store.get(&row, 0)?),
        None => match find(store, &session, &name).await? {
            None => Release::Unknown,
            Some(found) => found.quarantined.map_or(Release::NotHeld, Release::Begun),
        },
    };
    store.give_back(session);
    Ok(release)
}

/// Sets how many bytes a second the clients of a namespace may send together, or that it is not bounded. Its server takes that at
/// its next look. Returns whether there is such a namespace.
///
/// # Errors
///
/// The store's.
pub(crate) async fn set_quota(
    store: &Store,
    name: &str,
    quota: Option<u64>,
) -> Result<bool, StoreError> {
    let session = store.take().await?;
    let sql = "insert into namespace_state (namespace, quota) select n.id, $2::bigint from namespace n where n.name = $1 \
               on conflict (namespace) do update set quota = excluded.quota";
    let quota = quota.map(|quota| i64::try_from(quota).unwrap_or(i64::MAX));
    let found = session
        .execute(sql, &[&name.to_lowercase(), &quota])
        .await?;
    store.give_back(session);
    Ok(found == 1)
}

/// Finds a namespace by its name, whatever its case.
pub(super) async fn find(
    store: &Store,
    session: &Session,
    name: &str,
) -> Result<Option<FoundNamespace>, StoreError> {
    let query = "select n.id, n.name, n.log_store, n.epoch, n.server, n.owner is not null, \
                 exists (select from segment g where g.namespace = n.id), q.quarantined, q.pending \
                 from namespace n left join namespace_state q on q.namespace = n.id where n.name = $1";
    let row = session.optional(query, &[&name.to_lowercase()]).await?;
    let found = row.map(|row| {
        let pending: Option<&str> = store.get(&row, 8)?;
        Ok(FoundNamespace {
            owned: Owned {
                id: store.get(&row, 0)?,
                name: store.get(&row, 1)?,
                log_store: unsigned(store.get(&row, 2)?),
                epoch: store.get(&row, 3)?,
            },
            server: store.get(&row, 4)?,
            is_owned: store.get(&row, 5)?,
            has_log: store.get(&row, 6)?,
            quarantined: store.get(&row, 7)?,
            pending: pending.map(PendingChange::of),
        })
    });
    found.transpose()
}

/// Takes a namespace from the server that has it, or from a command that was ended, and holds it. What its owner has
/// appended until then is there, and nothing more of it comes. For an export, the reason of an earlier quarantine stays, and no server ends
/// that quarantine any more.
///
/// # Errors
///
/// [`StoreError::Fenced`] if another server has taken it meanwhile; the store's.
pub(super) async fn hold(
    store: &Arc<Store>,
    found: &FoundNamespace,
    pending: PendingChange,
) -> Result<HeldNamespace, StoreError> {
    let session = store.take().await?;
    let owner = random_bits();
    let sql = "with raised as (update namespace set epoch = epoch + 1, owner = $3, server = null, \
               incarnation = null where id = $1 and epoch = $2 returning id, epoch), \
               held as (insert into namespace_state as s (namespace, quarantined, pending) select id, $4, $5 from raised \
               on conflict (namespace) do update set \
               quarantined = case when $6::bool and s.pending is null then coalesce(s.quarantined, $4) else $4 end, \
               pending = case when $6::bool and s.pending is null and s.quarantined is not null then null else $5 end, \
               paused = null \
               returning quarantined, pending) \
               select r.epoch, case when h.pending is null then h.quarantined end from raised r cross join held h";
    let params: jitney_postgres::Params<'_> = &[
        &found.owned.id,
        &found.owned.epoch,
        &Uuid(owner),
        &pending.reason(),
        &pending.word(),
        &pending.keeps_quarantine(),
    ];
    let raised = ownership::unblocked(store, &session, session.optional(sql, params)).await?;
    let raised = raised.ok_or(StoreError::Fenced)?;
    let (epoch, before) = (store.get(&raised, 0)?, store.get(&raised, 1)?);
    store.give_back(session);
    let claim = Claim { epoch, owner };
    Ok(HeldNamespace {
        fence: Arc::new(Fence::new(&found.owned, claim)),
        before,
    })
}

/// How often a namespace whose owner changes meanwhile is looked at again.
const TRIES: usize = 5;

/// Finds a namespace by its name and takes it, as [`hold`] does. One that another command has begun to import or to remove can
/// only be removed.
///
/// # Errors
///
/// There is no such namespace; the store's.
pub(super) async fn hold_named(
    store: &Arc<Store>,
    name: &str,
    pending: PendingChange,
) -> Result<(Owned, HeldNamespace), NotDone> {
    for _ in 0..TRIES {
        let session = store.take().await?;
        let found = find(store, &session, name).await?;
        store.give_back(session);
        let found = found.ok_or_else(|| NotDone::Unknown(name.to_owned()))?;
        let is_begun = matches!(
            found.pending,
            Some(PendingChange::Import | PendingChange::Removal)
        );
        if let (true, Some(why)) = (
            is_begun && pending != PendingChange::Removal,
            &found.quarantined,
        ) {
            return Err(NotDone::Refused(format!(
                "the namespace '{name}' cannot be taken: {why}"
            )));
        }
        match hold(store, &found, pending).await {
            Ok(held) => return Ok((found.owned, held)),
            Err(StoreError::Fenced) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(NotDone::Refused(format!(
        "the namespace '{name}' changes its server again and again: try it later"
    )))
}

/// Makes a namespace whose name is free, in lower case, reserves the name as servers do, and holds the namespace; none if the
/// name is not free any more, or the stores of the fleet are others than those.
///
/// # Errors
///
/// The store's.
pub(super) async fn reserve(
    store: &Store,
    name: &str,
    pending: PendingChange,
    reserving: &Reserving,
) -> Result<Option<(Owned, Arc<Fence>)>, StoreError> {
    let session = store.take().await?;
    let owner = random_bits();
    // The store number of a log is random, and positive in the database.
    let log_store = random_id() & i64::MAX;
    // Servers that take a store into use wait for this, and reserve the names of all namespaces after it.
    let sql = "with agreed as (select name from store where stores is not distinct from $6::text for share), \
               made as (insert into namespace (name, log_store, epoch, owner) select $1, $2, 1, $3 from agreed a \
               where not exists (select from reservation r where r.name = $1 and r.store is distinct from a.name) \
               on conflict (name) do nothing returning id), \
               reserved as (insert into reservation (name, store) select $1, a.name from agreed a, made \
               where a.name is not null on conflict do nothing) \
               insert into namespace_state (namespace, quarantined, pending) select id, $4, $5 from made \
               returning namespace";
    let params: jitney_postgres::Params<'_> = &[
        &name,
        &log_store,
        &Uuid(owner),
        &pending.reason(),
        &pending.word(),
        &reserving.stores,
    ];
    let made = session.optional(sql, params).await?;
    let made = made.map(|row| {
        let owned = Owned {
            id: store.get(&row, 0)?,
            name: name.to_owned(),
            log_store: unsigned(log_store),
            epoch: 1,
        };
        let claim = Claim { epoch: 1, owner };
        let fence = Arc::new(Fence::new(&owned, claim));
        Ok::<_, StoreError>((owned, fence))
    });
    store.give_back(session);
    made.transpose()
}

/// Gives namespaces back that are held: servers take them, but for one that is to stay in quarantine, with the reason. It
/// is done for all of them or for none.
///
/// # Errors
///
/// [`StoreError::Fenced`] if another command has taken one; the store's.
pub(super) async fn give_back(
    store: &Store,
    held: &[(Arc<Fence>, Option<String>)],
) -> Result<(), StoreError> {
    let session = store.take().await?;
    session.batch("begin a transaction", "begin").await?;
    for (fence, quarantined) in held {
        let (epoch, owner) = fence.current();
        let sql = "with freed as (update namespace set epoch = epoch + 1, owner = null \
                   where id = $1 and epoch = $2 and owner = $3 returning id) \
                   update namespace_state set quarantined = $4, pending = null where namespace in (select id from freed)";
        let id = fence.namespace();
        let done = session
            .execute(sql, &[&id, &epoch, &owner, quarantined])
            .await?;
        // The end of the session rolls all of it back.
        if done == 0 {
            return Err(StoreError::Fenced);
        }
    }
    session.batch("commit", "commit").await?;
    store.give_back(session);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_does_is_recorded_by_a_word() {
        for pending in [
            PendingChange::Import,
            PendingChange::Export,
            PendingChange::Removal,
        ] {
            assert_eq!(PendingChange::of(pending.word()), pending);
        }
        assert_eq!(
            PendingChange::of("of a later release"),
            PendingChange::Removal,
            "it is not released"
        );
    }
}
