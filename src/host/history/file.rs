//! The file of the history in a data directory: it is replaced as a whole, and read at the start.
//!
//! Nothing depends on it: one that cannot be read is reported, and the history begins anew; one that cannot be written is reported
//! once, until it can be.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing::warn;

use super::format;
use super::kept::KeptHistories;
use crate::limits;
use crate::system::files::{self, Readers};

/// Its name in the data directory.
pub(super) const FILE: &str = "history.bin";

/// The file of the history.
#[derive(Debug)]
pub(super) struct HistoryFile {
    path: PathBuf,
    /// Held while it is written.
    last: Mutex<HistoryWrite>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HistoryWrite {
    Done,
    Failed,
}

impl HistoryFile {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            path: directory.join(FILE),
            last: Mutex::new(HistoryWrite::Done),
        }
    }

    /// Reads it; an empty history if there is none, or it cannot be read.
    pub(super) fn read(&self) -> KeptHistories {
        let what = match files::read_regular(&self.path, limits::HISTORY_FILE_BYTES_MAX) {
            Ok(bytes) => match format::decode(&bytes) {
                Ok(kept) => return kept,
                Err(error) => error.to_string(),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return KeptHistories::default();
            }
            Err(error) => error.to_string(),
        };
        warn!(
            file = %self.path.display(),
            "the history of the entities cannot be read, and begins anew; messages are not affected: {what}"
        );
        KeptHistories::default()
    }

    /// Replaces it. What is written is made when no other write is being done, so that the newest is written last.
    pub(super) fn write(&self, encode: impl FnOnce() -> Vec<u8>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = encode();
        let file = (self.path.clone(), &bytes[..], Readers::Owner);
        let outcome = files::replace(&[file]);
        let before = *last;
        *last = match &outcome {
            Ok(()) => HistoryWrite::Done,
            Err(_) => HistoryWrite::Failed,
        };
        if let Err(error) = outcome
            && before == HistoryWrite::Done
        {
            warn!(%error, "the history of the entities stays in memory only until it can be written");
        }
    }
}
