//! Checks of a store at the start: settings of the database with which acknowledged messages can be lost.

use tracing::warn;

use super::StoreError;
use super::connect::{POOLED, Session, Store};
use crate::limits;

/// What becomes of settings with which acknowledged messages can be lost by a crash of one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsafeSettings {
    /// The store is refused.
    Refused,
    /// They are allowed, with a warning.
    Allowed,
}

/// A setting that is not as it should be, and what to do.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// Acknowledged messages can be lost by a crash of one machine.
    Refused(&'static str),
    /// They can be lost with a machine, or something else is to be known.
    Warned(&'static str),
}

/// The settings of a database.
#[derive(Debug, Clone)]
struct Settings {
    version: i32,
    fsync: String,
    full_page_writes: String,
    standby_names: String,
}

/// Checks the database.
///
/// # Errors
///
/// What is wrong, and what to do.
pub async fn check(
    store: &Store,
    session: &Session,
    unsafe_settings: UnsafeSettings,
) -> Result<(), StoreError> {
    check_pooling(store, session).await?;
    let query = "select current_setting('server_version_num')::int, current_setting('fsync'), \
                 current_setting('full_page_writes'), current_setting('synchronous_standby_names')";
    let row = session.one(query, &[]).await?;
    let found = look(&Settings {
        version: store.get(&row, 0)?,
        fsync: store.get(&row, 1)?,
        full_page_writes: store.get(&row, 2)?,
        standby_names: store.get(&row, 3)?,
    });
    for found in found {
        match found {
            Found::Refused(what) if unsafe_settings == UnsafeSettings::Refused => {
                return Err(store.unfit(format!("{what}, or use --store-unchecked")));
            }
            Found::Refused(what) | Found::Warned(what) => {
                warn!(store = store.place(), "the store: {what}");
            }
        }
    }
    Ok(())
}

/// Refuses a pooler that gives a session's statements to several sessions of the database. One statement after the other may all
/// reach the same one by chance: so another session is busy meanwhile, and busy no more.
async fn check_pooling(store: &Store, session: &Session) -> Result<(), StoreError> {
    let before = session.backend().await?;
    let other = store.bare_session().await?;
    // A pooler that takes the session which was used last takes that of the first for this.
    other.batch("begin a transaction", "begin").await?;
    other.backend().await?;
    let mut found = vec![session.backend().await?];
    other.batch("end a transaction", "rollback").await?;
    // A pooler that takes turns has another now.
    for _ in 0..2 {
        found.push(session.backend().await?);
    }
    if found.iter().any(|backend| *backend != before) {
        return Err(store.unfit(POOLED.to_owned()));
    }
    Ok(())
}

/// The least version: older ones are not maintained.
const VERSION_MIN: i32 = 140_000;

fn look(settings: &Settings) -> Vec<Found> {
    let mut found = Vec::new();
    if settings.version < VERSION_MIN {
        found.push(Found::Refused(
            "it is older than PostgreSQL 14: use a version that is maintained",
        ));
    }
    if settings.fsync != "on" {
        found.push(Found::Refused(
            "fsync is off, and a crash of the machine loses acknowledged messages: set it to on",
        ));
    }
    if settings.full_page_writes != "on" {
        found.push(Found::Refused(
            "full_page_writes is off, and a crash of the machine can damage the database: set it to on",
        ));
    }
    match settings.standby_names.trim() {
        "" => found.push(Found::Warned(
            "synchronous_standby_names is empty: the loss of the database's machine can lose acknowledged messages. \
             Name two standbys, as in 'ANY 1 (one, two)', unless the service replicates below PostgreSQL",
        )),
        names if names.contains('*') => found.push(Found::Warned(
            "synchronous_standby_names has a *, which any program that receives the log matches, as pg_receivewal: \
             name the standbys",
        )),
        _ => {}
    }
    found
}

/// Connections of one server: for beats, for appends, and the others.
const CONNECTIONS: usize = 1 + limits::STORE_APPEND_SESSIONS + limits::STORE_SESSIONS_MAX;
/// Connections that the database keeps for its administrators, and some for them.
const RESERVED: usize = 10;

/// Warns if the database has not enough connections for all servers that are alive.
///
/// # Errors
///
/// The store's.
pub async fn check_connections(store: &Store, session: &Session) -> Result<(), StoreError> {
    let query = "select current_setting('max_connections')::int, count(*) from server where alive";
    let row = session.one(query, &[]).await?;
    let (max, servers): (i32, i64) = (store.get(&row, 0)?, store.get(&row, 1)?);
    if let Some(what) = too_few(max, usize::try_from(servers).unwrap_or_default()) {
        warn!(store = store.place(), "the store: {what}");
    }
    Ok(())
}

fn too_few(max: i32, servers: usize) -> Option<String> {
    let wanted = servers * CONNECTIONS + RESERVED;
    let is_enough = usize::try_from(max).is_ok_and(|max| wanted <= max);
    (!is_enough).then(|| {
        format!(
            "max_connections is {max}, and each server takes up to {CONNECTIONS} (alive now: {servers}): raise it to {wanted} or more"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_can_lose_messages_is_refused_and_one_without_standbys_is_told() {
        let good = Settings {
            version: 150_004,
            fsync: "on".to_owned(),
            full_page_writes: "on".to_owned(),
            standby_names: "ANY 1 (one, two)".to_owned(),
        };
        assert!(look(&good).is_empty());
        let refused = |settings: Settings| {
            let found = look(&settings);
            assert!(matches!(found[..], [Found::Refused(_)]), "{found:?}");
        };
        refused(Settings {
            version: 130_011,
            ..good.clone()
        });
        refused(Settings {
            fsync: "off".to_owned(),
            ..good.clone()
        });
        refused(Settings {
            full_page_writes: "off".to_owned(),
            ..good.clone()
        });
        for names in ["", "*", "ANY 1 (*)"] {
            let found = look(&Settings {
                standby_names: names.to_owned(),
                ..good.clone()
            });
            assert!(matches!(found[..], [Found::Warned(_)]), "{found:?}");
        }
    }

    #[test]
    fn each_server_needs_connections() {
        assert_eq!(too_few(100, 3), None);
        let told = "max_connections is 100, and each server takes up to 25 (alive now: 4): raise it to 110 or more";
        assert_eq!(too_few(100, 4).as_deref(), Some(told));
    }
}
