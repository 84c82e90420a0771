//! Why something in a store could not be done.

use std::time::Duration;

use tokio_postgres::error::SqlState;

/// Why something in the store could not be done.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The URL, or what it names, cannot be used.
    #[error("--store: {0}")]
    Url(String),
    /// The database refuses, or is not what it should be.
    #[error("the store {place}: {what}")]
    Unfit {
        /// The host and the database.
        place: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// A statement failed, or the connection did.
    #[error("the store {place}: {what}: {}", chain(source))]
    Database {
        /// The host and the database.
        place: String,
        /// What was to be done.
        what: &'static str,
        /// What the database or its connection says.
        source: tokio_postgres::Error,
    },
    /// The database did not answer in time.
    #[error("the store {place}: {what}: no answer within {seconds} s")]
    Slow {
        /// The host and the database.
        place: String,
        /// What was to be done.
        what: &'static str,
        /// How long was waited.
        seconds: u64,
    },
    /// The database has another store than the one that this server knows: it was restored.
    #[error("the store {place}: {what}")]
    Replaced {
        /// The host and the database.
        place: String,
        /// What is wrong, and what would be right.
        what: String,
    },
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
    Deadly {
        /// How often its servers have died.
        deaths: i32,
    },
    /// The log has not what was acknowledged.
    #[error("{0}")]
    Lost(String),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(jitney_journal::Error),
}

impl StoreError {
    /// The database did not answer in time.
    #[must_use]
    pub fn slow(place: &str, what: &'static str, wait: Duration) -> Self {
        Self::Slow {
            place: place.to_owned(),
            what,
            seconds: wait.as_secs(),
        }
    }

    /// Returns whether the database cannot be reached now, and may be later.
    #[must_use]
    pub fn is_away(&self) -> bool {
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
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        let is_answer = matches!(self, Self::Database { source, .. } if source.code().is_some());
        is_answer && !self.is_away()
    }

    /// Returns whether the database says that something that it has stored is damaged, or is not there.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        let damages = [
            SqlState::DATA_CORRUPTED,
            SqlState::INDEX_CORRUPTED,
            SqlState::UNDEFINED_TABLE,
        ];
        matches!(self, Self::Database { source, .. } if source.code().is_some_and(|code| damages.contains(code)))
    }

    /// Returns whether the log of a namespace that could not be taken over is at fault, or its owners have died of it: no server
    /// is to try it again by itself.
    #[must_use]
    pub fn is_of_log(&self) -> bool {
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
pub fn chain(error: &dyn std::error::Error) -> String {
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
