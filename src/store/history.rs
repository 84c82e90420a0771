//! The histories of the namespaces that this server has (`src/host/history.rs`): each is kept in its store, and goes to the next
//! owner. Nothing depends on them, and nothing waits for them but the hand-over, a moment.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::fleet::FleetStore;
use super::served::ServedNamespaces;
use crate::limits;
use jitney_postgres::{Fence, StoreError, history};

impl FleetStore {
    /// Writes the histories from time to time, until the stop.
    pub(super) async fn keep_histories(&self, mut stopped: watch::Receiver<bool>) {
        let mut pause = limits::HISTORY_WRITE_FIRST.as_duration();
        loop {
            tokio::select! {
                () = sleep(pause) => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            // What is not written now is written the next time.
            let fences = self.serving.fences_with_history();
            if let Err(error) = self.serving.keep_histories(fences).await {
                debug!(%error, "histories of namespaces are not written");
            }
            pause = (2 * pause).min(limits::HISTORY_WRITE_INTERVAL.as_duration());
        }
    }
}

impl ServedNamespaces {
    /// Writes the histories of namespaces, many at once where they are short.
    async fn keep_histories(&self, fences: Vec<Arc<Fence>>) -> Result<(), StoreError> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for fence in fences {
            if let Some(extract) = self.extract(&fence).await? {
                bytes += extract.len();
                batch.push((fence, extract));
            }
            if limits::HISTORY_STATEMENT_BYTES < bytes {
                history::keep(self.store(), &batch).await?;
                (batch, bytes) = (Vec::new(), 0);
            }
        }
        history::keep(self.store(), &batch).await
    }

    async fn extract(&self, fence: &Fence) -> Result<Option<Vec<u8>>, StoreError> {
        let parts = self.parts();
        let (found, now) = (Arc::clone(&parts.history), parts.clock.now());
        let name = fence.name().to_owned();
        let extract = tokio::task::spawn_blocking(move || found.extract(&name, now));
        extract
            .await
            .map_err(|error| StoreError::Lost(error.to_string()))
    }

    /// Writes the histories of namespaces that are to be given away, and waits a moment for that: clients still reach them here.
    pub(super) async fn leave_histories(&self, fences: Vec<Arc<Fence>>) {
        let wait = limits::HISTORY_HANDOVER_WAIT.as_duration();
        let why = match timeout(wait, Box::pin(self.keep_histories(fences))).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the store does not answer in time".to_owned(),
        };
        debug!("the newest parts of histories are not given away: {why}");
    }

    /// Continues the history that the owner before has written. Until that is read, this server writes none.
    pub(super) async fn take_history(&self, fence: &Fence) {
        let namespace = fence.name();
        if let Err(why) = self.read_history(fence).await {
            warn!(
                namespace,
                "the history of the entities cannot be read, and begins anew; messages are not affected: {why}"
            );
        }
        self.history_is_read(fence.namespace());
    }

    async fn read_history(&self, fence: &Fence) -> Result<(), String> {
        let most = limits::HISTORY_STORE_BYTES_MAX;
        let mut pauses = RETRIES.iter();
        let found = loop {
            match history::read(self.store(), fence.namespace(), most).await {
                Ok(found) => break found,
                Err(_) if fence.is_lost() => return Ok(()),
                Err(error) => {
                    let pause = pauses.next().ok_or_else(|| error.to_string())?;
                    sleep(*pause).await;
                }
            }
        };
        let Some(bytes) = found else {
            return Ok(());
        };
        let continued = self.parts().history.continue_from(fence.name(), &bytes);
        continued.map_err(|error| error.to_string())
    }
}

/// The pauses after tries to read a history. Each look until then is lost with it.
const RETRIES: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(5),
];
