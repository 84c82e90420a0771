//! Namespaces in stores: PostgreSQL databases that several servers share, each namespace in one store, and owned by one of the
//! servers at a time.
//!
//! | file | what |
//! |---|---|
//! | `connect.rs` | sessions of the database: what every one sets and verifies |
//! | `hosts.rs` | the hosts of a store, of which one takes writes |
//! | `timeline.rs` | which primary of the database a session is connected to |
//! | `checks.rs` | settings of the database that are refused, or warned of, at the start |
//! | `schema.rs` | the tables, and how they are made |
//! | `stores.rs` | the stores of a fleet: that all servers know the same, and in which the name of a namespace is reserved |
//! | `common.rs` | what all servers have in common: keys, configuration |
//! | `authority.rs` | the authority of the certificates that servers show to clients |
//! | `fence.rs` | the right to append: the epoch and the owner that every statement names |
//! | `append.rs` | the committer of a namespace: appends rows, and finds out what became of them |
//! | `log.rs` | the rest of the journal's seam: reading, checkpoints, removal |
//! | `ownership.rs` | what the row of a namespace says of its owner, and how that is changed |
//! | `take_over.rs` | how a server takes a namespace over |
//! | `sql.rs` | numbers, as statements and rows have them |
//! | `serving.rs` | the namespaces that this server owns, as shards |
//! | `configuration.rs` | the configuration that servers share |
//! | `configure.rs` | which of them is the newest, and to which namespace it was applied |
//! | `deaths.rs` | what deaths of servers say of a namespace, and of a server |
//! | `decide.rs` | which server takes which namespace, and gives one away |
//! | `view.rs` | the servers and the namespaces, as the last looks at the stores have found them |
//! | `beats.rs` | a server says that it is alive, in each store |
//! | `beating.rs` | what follows from a beat and its answer |
//! | `clocks.rs` | this server's clock against a database's |
//! | `namesake.rs` | whether another server has this one's name |
//! | `looks.rs` | a server looks at each store, and does what is decided |
//! | `rates.rs` | how busy namespaces are |
//! | `measure.rs` | the messages a second of the namespaces that this server has |
//! | `fleet.rs` | this server's part of the fleet |
//! | `health.rs` | what an operator is to know of them |
//! | `holding.rs` | namespaces that a command holds so that no server has them; their list, and the end of a quarantine |
//! | `transfer.rs` | namespaces moved between a data directory and a store |
//! | `removal.rs` | namespaces removed from a store |
//! | `restored.rs` | what is to be done after the database was restored to an earlier point in time |
//!
//! `docs/high-availability.md` has the guarantees; `docs/store-format.md` the tables to the byte.

mod admin;
mod append;
mod authority;
mod checks;
mod common;
mod configuration;
mod configure;
mod connect;
mod fence;
mod fleet;
mod health;
mod heartbeat;
mod heartbeats;
mod hosts;
mod log;
mod measure;
mod ownership;
mod poller;
mod removal;
mod restored;
mod schema;
mod served;
mod sql;
mod stores;
mod take_over;
mod timeline;
mod transfer;
mod view;

pub(super) use admin::{NotDone, Release, Tables, lift, list, open, set_quota};
pub(super) use authority::FleetAuthority;
pub(super) use common::{Common, Wanted, prepare};
pub(super) use configuration::{Published, StoreConfiguration, hash_of, parse};
pub(super) use connect::{Store, StoreArgs};
pub(super) use fleet::{Fleet, FleetParts};
pub(super) use health::{Health, StoreHealth};
pub(super) use jitney_cluster::planner::Fitness;
pub(super) use jitney_cluster::view::{FleetView, NamespaceRow, ServerRow, StoreView};
pub(super) use removal::remove;
pub(super) use restored::{Restored, restored};
pub(super) use served::ServedParts;
pub(super) use stores::Stores;
pub(super) use transfer::{Exported, Moved, export, import};

use std::time::Duration;

use tokio_postgres::error::SqlState;

/// Why something in the store could not be done.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    /// The URL, or what it names, cannot be used.
    #[error("--store: {0}")]
    Url(String),
    /// The database refuses, or is not what it should be.
    #[error("the store {place}: {what}")]
    Unfit { place: String, what: String },
    /// A statement failed, or the connection did.
    #[error("the store {place}: {what}: {}", chain(source))]
    Database {
        place: String,
        what: &'static str,
        source: tokio_postgres::Error,
    },
    /// The database did not answer in time.
    #[error("the store {place}: {what}: no answer within {seconds} s")]
    Slow {
        place: String,
        what: &'static str,
        seconds: u64,
    },
    /// The database has another store than the one that this server knows: it was restored.
    #[error("the store {place}: {what}")]
    Replaced { place: String, what: String },
    /// Another server owns the namespace.
    #[error("another server owns the namespace")]
    Fenced,
    /// This machine has no thread for it now.
    #[error(
        "this machine cannot start a thread, which a namespace needs: {0}. Raise its limits of threads and processes"
    )]
    NoThread(std::io::Error),
    /// The servers that have had the namespace have died too often.
    #[error(
        "its servers have died {deaths} times without a healthy minute between. A server tries it again after a pause, which grows \
         from a minute to an hour"
    )]
    Deadly { deaths: i32 },
    /// The log has not what was acknowledged.
    #[error("{0}")]
    Lost(String),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(jitney_journal::Error),
}

impl StoreError {
    /// The database did not answer in time.
    fn slow(place: &str, what: &'static str, wait: Duration) -> Self {
        Self::Slow {
            place: place.to_owned(),
            what,
            seconds: wait.as_secs(),
        }
    }

    /// Returns whether the database cannot be reached now, and may be later.
    fn is_away(&self) -> bool {
        match self {
            Self::Slow { .. } => true,
            Self::Database { source, .. } => source.code().is_none_or(|code| {
                // Connections, resources, and an operator's intervention: a stop, or a start that is not done.
                ["08", "53", "57"]
                    .iter()
                    .any(|class| code.code().starts_with(class))
            }),
            Self::Url(_)
            | Self::Unfit { .. }
            | Self::Replaced { .. }
            | Self::Fenced
            | Self::NoThread(_)
            | Self::Lost(_)
            | Self::Deadly { .. }
            | Self::Journal(_) => false,
        }
    }

    /// Returns whether the database has refused a statement for a reason that stays.
    fn is_refusal(&self) -> bool {
        let is_answer = matches!(self, Self::Database { source, .. } if source.code().is_some());
        is_answer && !self.is_away()
    }

    /// Returns whether the database says that something that it has stored is damaged, or is not there.
    fn is_damage(&self) -> bool {
        let damages = [
            SqlState::DATA_CORRUPTED,
            SqlState::INDEX_CORRUPTED,
            SqlState::UNDEFINED_TABLE,
        ];
        matches!(self, Self::Database { source, .. } if source.code().is_some_and(|code| damages.contains(code)))
    }

    /// Returns whether the log of a namespace that could not be taken over is at fault, or its owners have died of it: no server
    /// is to try it again by itself.
    fn is_of_log(&self) -> bool {
        match self {
            Self::Deadly { .. } | Self::Lost(_) | Self::Journal(_) => true,
            Self::Url(_)
            | Self::Unfit { .. }
            | Self::Database { .. }
            | Self::Slow { .. }
            | Self::Replaced { .. }
            | Self::Fenced
            | Self::NoThread(_) => false,
        }
    }
}

/// Returns an error with those that caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let texts = std::iter::once(error)
        .chain(causes)
        .map(ToString::to_string);
    texts.collect::<Vec<String>>().join(": ")
}

impl From<jitney_journal::Error> for StoreError {
    fn from(error: jitney_journal::Error) -> Self {
        if matches!(error, jitney_journal::Error::Fenced) {
            // The log is not at fault.
            return Self::Fenced;
        }
        Self::Journal(error)
    }
}

impl From<StoreError> for jitney_journal::Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Fenced => Self::Fenced,
            StoreError::Journal(error) => error,
            other @ (StoreError::Url(_)
            | StoreError::Unfit { .. }
            | StoreError::Replaced { .. }
            | StoreError::Database { .. }
            | StoreError::Slow { .. }
            | StoreError::NoThread(_)
            | StoreError::Deadly { .. }
            | StoreError::Lost(_)) => Self::Store(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn only_what_is_wrong_with_a_log_keeps_servers_from_trying_again() {
        let refused = io::Error::from(io::ErrorKind::WouldBlock);
        for error in [
            StoreError::NoThread(refused),
            StoreError::Fenced,
            jitney_journal::Error::Fenced.into(),
        ] {
            assert!(!error.is_of_log(), "{error}");
        }
        let damaged = jitney_journal::Error::CorruptCheckpoint {
            number: 1,
            what: "for a test",
        };
        for error in [
            StoreError::Lost("its log ends too early".to_owned()),
            StoreError::Deadly { deaths: 4 },
            damaged.into(),
        ] {
            assert!(error.is_of_log(), "{error}");
        }
    }
}
