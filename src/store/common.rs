//! What all servers of a fleet have in common: the keys, the authorities of their certificates, and the configuration. Each store has
//! it, so that servers start while some stores are away.

use std::sync::Arc;
use std::time::Instant;

use tracing::{error, info, warn};

use super::authority;
use crate::limits;
use jitney_postgres::{
    Recorded, Refused, Session, Store, StoreError, Stores, UnsafeSettings, schema,
};

/// What a server brings to the stores at its start. A store takes what it does not have yet.
pub(crate) struct StoreSetup<'a> {
    /// The name of this server.
    pub(crate) server: &'a str,
    /// The names of the namespaces of the configuration, the first one first.
    pub(crate) namespaces: Vec<&'a str>,
    /// The text of the configuration file, if there is one, and its hash.
    pub(crate) config: Option<(&'a str, &'a str)>,
    /// The root key and the operator's key, where the store has none yet; none where keys are not verified.
    pub(crate) new_keys: Option<(String, String)>,
    /// The authority of the servers' certificates with its key, where the store has none yet.
    pub(crate) new_authority: String,
    /// The authority of the certificates for clients with its key, where the store has none yet; none if this server shows a
    /// certificate of its operator.
    pub(crate) new_tls_authority: Option<String>,
    /// Whether a database with which messages can be lost is used all the same.
    pub(crate) is_unchecked: bool,
}

/// What all servers have in common.
pub(crate) struct Common {
    /// The text of the configuration that counts, its hash, and its number.
    pub(crate) config: Option<(String, String, i64)>,
    /// The number of the text of this server's file; none if there is no file, or it is not recorded yet.
    pub(crate) file_number: Option<i64>,
    pub(crate) root_key: Option<String>,
    pub(crate) operator_key: Option<String>,
    pub(crate) first: String,
    /// The authority of the servers' certificates, with its key, as PEM.
    pub(crate) peer_authority: String,
    /// The authority of the certificates for clients, with its key, as PEM; none if this server shows a certificate of its operator.
    pub(crate) tls_authority: Option<String>,
}

/// The part of what is common that one store has.
#[derive(Clone, PartialEq, Eq)]
struct Values {
    root_key: Option<String>,
    operator_key: Option<String>,
    first: Option<String>,
    peer_authority: Option<String>,
}

impl std::fmt::Debug for Values {
    /// Its keys are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Values")
            .field("first", &self.first)
            .finish_non_exhaustive()
    }
}

impl Values {
    async fn read(store: &Store, session: &Session) -> Result<Self, StoreError> {
        let query = "select root_key, operator_key, first_namespace, peer_authority from store";
        let row = session.one(query, &[]).await?;
        Ok(Self {
            root_key: store.get(&row, 0)?,
            operator_key: store.get(&row, 1)?,
            first: store.get(&row, 2)?,
            peer_authority: store.get(&row, 3)?,
        })
    }

    /// Writes what a store does not have yet; returns what it has then.
    async fn write(&self, store: &Store, session: &Session) -> Result<Self, StoreError> {
        let found = Self::read(store, session).await?;
        let sql = "update store set root_key = coalesce(root_key, $1), operator_key = coalesce(operator_key, $2), \
                   first_namespace = coalesce(first_namespace, $3), peer_authority = coalesce(peer_authority, $4)";
        let is_missing =
            |found: &Option<String>, new: &Option<String>| found.is_none() && new.is_some();
        if is_missing(&found.root_key, &self.root_key)
            || is_missing(&found.operator_key, &self.operator_key)
            || is_missing(&found.first, &self.first)
            || is_missing(&found.peer_authority, &self.peer_authority)
        {
            let params: [&(dyn jitney_postgres::ToSql + Sync); 4] = [
                &self.root_key,
                &self.operator_key,
                &self.first,
                &self.peer_authority,
            ];
            session.execute(sql, &params).await?;
        }
        Self::read(store, session).await
    }
}

/// Makes the tables, the keys and the namespaces that are not there, and returns what all servers have in common.
///
/// # Errors
///
/// A store's, unless it is away and others are not.
pub(crate) async fn prepare(
    stores: &Stores,
    wanted: &StoreSetup<'_>,
) -> Result<Common, StoreError> {
    if wanted.is_unchecked {
        stores.use_unchecked();
    }
    let mut reached = Vec::new();
    let mut away = None;
    for (at, store) in stores.all().iter().enumerate() {
        match reach(stores, at).await {
            Ok(recorded) => {
                info!(
                    name = store.name(),
                    place = store.place(),
                    "reached a store"
                );
                reached.push(recorded);
            }
            Err(error) if error.is_away() => {
                warn!(
                    name = store.name(),
                    "a store cannot be reached; its namespaces have no answers until it is back: {error}"
                );
                away = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(error) = away.filter(|_| reached.is_empty()) {
        return Err(error);
    }
    stores.check(&reached)?;
    let values = share(stores, &reached, wanted).await?;
    let tls_authority = match &wanted.new_tls_authority {
        Some(offered) => {
            let reached = reached.iter().map(|it| Arc::clone(stores.store(it.at)));
            Some(authority::agree(&reached.collect::<Vec<_>>(), offered).await?)
        }
        None => None,
    };
    let (config, file_number) = configuration(stores, &reached, wanted).await?;
    let names = wanted.namespaces.iter().map(|name| name.to_lowercase());
    let names: Vec<String> = names.collect();
    let made = stores.make(wanted.server, &names).await;
    if let Err(error) = &made {
        warn!(
            "not all namespaces of the configuration could be made; this is tried again: {error}"
        );
    }
    Ok(Common {
        config,
        file_number,
        root_key: values.root_key,
        operator_key: values.operator_key,
        first: values.first.unwrap_or_default(),
        peer_authority: values.peer_authority.unwrap_or_default(),
        tls_authority,
    })
}

/// Reaches a store, checks it, and makes its tables.
async fn reach(stores: &Stores, at: usize) -> Result<Recorded, StoreError> {
    let store = stores.store(at);
    let session = store.bare_session().await?;
    let unsafe_settings = if stores.is_unchecked() {
        UnsafeSettings::Allowed
    } else {
        UnsafeSettings::Refused
    };
    jitney_postgres::check(store, &session, unsafe_settings).await?;
    drop(session);
    schema::make(store).await?;
    Recorded::read(at, store).await
}

/// Reaches a store that was away at the start, as the start does it. A store that is refused is checked again after a while: its
/// operator can mend it while this server runs.
///
/// # Errors
///
/// The store's; or it is refused, which is logged.
pub(super) async fn reach_late(stores: &Stores, at: usize) -> Result<(), StoreError> {
    let store = stores.store(at);
    let before = stores.refused().get(&at).cloned();
    if let Some(before) = &before
        && before.at.elapsed() < limits::STORE_CHECK_RETRY.as_duration()
    {
        return Err(store.unfit(before.why.clone()));
    }
    let error = match reach(stores, at).await {
        Ok(_) => {
            stores.refused().remove(&at);
            return Ok(());
        }
        Err(error) if error.is_away() => return Err(error),
        Err(error) => error,
    };
    let why = if let StoreError::Unfit { what, .. } = &error {
        what.clone()
    } else {
        error.to_string()
    };
    if before.is_none_or(|before| before.why != why) {
        error!(
            store = store.name(),
            "a store that was away is not used, and its namespaces have no answers from this server: {error}"
        );
    }
    let now = Instant::now();
    stores.refused().insert(at, Refused { at: now, why });
    Err(error)
}

/// Writes what is common into all stores that are reached. The first of them that has it decides; a new fleet has all its stores
/// reached, and its first one decides.
async fn share(
    stores: &Stores,
    reached: &[Recorded],
    wanted: &StoreSetup<'_>,
) -> Result<Values, StoreError> {
    let mut sessions = Vec::new();
    for recorded in reached {
        let store = stores.store(recorded.at);
        let session = store.take().await?;
        let found = Values::read(store, &session).await?;
        sessions.push((store, session, found));
    }
    let position = |has: fn(&Values) -> bool| sessions.iter().position(|(_, _, it)| has(it));
    let first = position(|values| values.peer_authority.is_some());
    // One that namespaces were imported into, before servers have shared it.
    let first = first.or_else(|| position(|values| values.root_key.is_some()));
    let first = first.unwrap_or_default();
    let keys = wanted.new_keys.as_ref();
    let mut common = Values {
        root_key: keys.map(|(root, _)| root.clone()),
        operator_key: keys.map(|(_, operator)| operator.clone()),
        first: wanted.namespaces.first().map(|name| (*name).to_owned()),
        peer_authority: Some(wanted.new_authority.clone()),
    };
    if let Some((store, session, _)) = sessions.get(first) {
        common = common.write(store, session).await?;
    }
    for (store, session, _) in &sessions {
        if common.write(store, session).await? != common {
            return Err(store.unfit(format!(
                "{} has other keys than the other stores: it belongs to another fleet",
                store.name()
            )));
        }
    }
    for (store, session, _) in sessions {
        store.give_back(session);
    }
    Ok(common)
}

/// Records the configuration of this server, if the store is reached whose configuration counts; returns the one that counts, with
/// its number, and the number of this server's file.
async fn configuration(
    stores: &Stores,
    reached: &[Recorded],
    wanted: &StoreSetup<'_>,
) -> Result<(Option<Numbered>, Option<i64>), StoreError> {
    let reached = || reached.iter().map(|it| stores.store(it.at));
    // After a store was added another may be the first, which has none yet.
    let mut newest: Option<Numbered> = None;
    for store in reached() {
        let found = newest_of(store).await?;
        if found.as_ref().map(|it| it.2) > newest.as_ref().map(|it| it.2) {
            newest = found;
        }
    }
    for store in reached() {
        if let Some(newest) = &newest {
            copy(store, newest).await?;
        }
    }
    let Some((text, hash)) = wanted.config else {
        return Ok((newest, None));
    };
    let home = stores.home();
    if !reached().any(|store| Arc::ptr_eq(store, home)) {
        warn!(
            store = home.name(),
            "the configuration file is not recorded yet, because the store cannot be reached whose configuration counts; this is tried \
             again"
        );
        return Ok((newest, None));
    }
    let session = home.take().await?;
    let sql = "insert into configuration (hash, text) values ($1, $2) on conflict do nothing";
    session.execute(sql, &[&hash, &text]).await?;
    let query = "select number from configuration where hash = $1";
    let row = session.one(query, &[&hash]).await?;
    let file = home.get(&row, 0)?;
    home.give_back(session);
    Ok((newest_of(home).await?, Some(file)))
}

/// The text of a configuration, its hash, and its number.
type Numbered = (String, String, i64);

/// Returns the newest configuration that a store has.
async fn newest_of(store: &Store) -> Result<Option<Numbered>, StoreError> {
    let session = store.take().await?;
    let query = "select text, hash, number from configuration order by number desc limit 1";
    let row = session.optional(query, &[]).await?;
    store.give_back(session);
    let read = |row| {
        Ok::<_, StoreError>((
            store.get(&row, 0)?,
            store.get(&row, 1)?,
            store.get(&row, 2)?,
        ))
    };
    row.map(read).transpose()
}

/// Copies a configuration into a store whose own ones are older. The numbers that the store gives later are greater.
///
/// # Errors
///
/// The store's.
pub(super) async fn copy(store: &Store, configuration: &Numbered) -> Result<(), StoreError> {
    let (text, hash, number) = configuration;
    let session = store.take().await?;
    let query = "select coalesce(max(number), 0) from configuration";
    let row = session.one(query, &[]).await?;
    if store.get::<i64>(&row, 0)? < *number {
        let remove = "delete from configuration where hash = $1";
        session.execute(remove, &[hash]).await?;
        let insert = "insert into configuration (hash, text, number) overriding system value \
                      values ($1, $2, $3) on conflict do nothing";
        session.execute(insert, &[hash, text, number]).await?;
        let skip = "select setval(pg_get_serial_sequence('configuration', 'number'), \
                    greatest($1, nextval(pg_get_serial_sequence('configuration', 'number'))))";
        session.one(skip, &[number]).await?;
    }
    store.give_back(session);
    Ok(())
}
