//! The authority of the certificates that servers show to clients. The stores keep it with its key, as they keep the root key, so
//! that a client that trusts it trusts each server of the fleet (`net::certs::shared`).
//!
//! The first store that has it decides, and the others get a copy. A server that finds that it ends soon renews it in place of the
//! former one, of which another server may have been faster. The others read it again every few seconds.

use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info};

use crate::limits;
use crate::net::certs::shared::{self, LatestAuthority};
use jitney_postgres::{Store, StoreError, Stores};

/// The authority, as a server follows it.
pub(crate) struct FleetAuthority {
    stores: Arc<Stores>,
    latest: LatestAuthority,
}

impl FleetAuthority {
    /// Takes what the stores had at the start.
    pub(crate) fn new(stores: Arc<Stores>, text: String) -> Self {
        let latest = Arc::new(ArcSwap::from_pointee(text));
        Self { stores, latest }
    }

    /// Returns where the latest one is.
    pub(crate) fn latest(&self) -> LatestAuthority {
        Arc::clone(&self.latest)
    }

    /// Follows it until the stop.
    pub(crate) async fn follow(self, mut stopped: watch::Receiver<bool>) {
        let mut ticks = interval(limits::CERTIFICATE_CHECK_INTERVAL.as_duration());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reported = String::new();
        loop {
            let next = async {
                ticks.tick().await;
                let before = self.latest.load_full();
                (agree(self.stores.all(), &before).await, before)
            };
            let (found, before) = tokio::select! {
                next = next => next,
                _ = stopped.wait_for(|stopped| *stopped) => return,
            };
            match found {
                Ok(found) if found != *before => {
                    info!("the servers' authority of certificates for clients has changed");
                    self.latest.store(Arc::new(found));
                }
                Err(error @ StoreError::Unfit { .. }) if error.to_string() != reported => {
                    error!("{error}; the certificates stay as they are");
                    reported = error.to_string();
                }
                // Beats report stores that are away.
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// Returns the authority that counts, and writes it into the stores that have none or another one. The one that is offered counts
/// if none of them has one. A store that cannot be reached is left out.
///
/// # Errors
///
/// None of the stores can be reached; or the authority cannot be used.
pub(super) async fn agree(stores: &[Arc<Store>], offered: &str) -> Result<String, StoreError> {
    let (mut found, mut away) = (Vec::new(), None);
    for store in stores {
        match read(store).await {
            Ok(text) => found.push((store, text)),
            Err(error) => away = Some(error),
        }
    }
    let first = found.iter().find(|(_, text)| text.is_some());
    let Some((first, before)) = first.or_else(|| found.first()) else {
        return Err(away.unwrap_or_else(|| StoreError::Url("there is no store".to_owned())));
    };
    let mut text = match before {
        Some(text) => text.clone(),
        None => replace(first, None, offered).await?,
    };
    let renewed = shared::renewed(&text, SystemTime::now());
    let renewed = renewed.map_err(|error| first.unfit(error.to_string()))?;
    if let Some(renewed) = renewed {
        info!(
            store = first.name(),
            "the servers' authority of certificates for clients is renewed, with the same key"
        );
        text = replace(first, Some(&text), &renewed).await?;
    }
    for (store, found) in &found {
        if found.as_ref() != Some(&text) {
            // One of several servers does it.
            replace(store, found.as_deref(), &text).await?;
        }
    }
    Ok(text)
}

async fn read(store: &Store) -> Result<Option<String>, StoreError> {
    let session = store.take().await?;
    let row = session.one("select tls_authority from store", &[]).await?;
    store.give_back(session);
    store.get(&row, 0)
}

/// Replaces what a store had; returns what it has then, which may be another server's.
async fn replace(store: &Store, before: Option<&str>, text: &str) -> Result<String, StoreError> {
    let session = store.take().await?;
    let sql = "update store set tls_authority = $2 where tls_authority is not distinct from $1";
    session.execute(sql, &[&before, &text]).await?;
    let row = session.one("select tls_authority from store", &[]).await?;
    store.give_back(session);
    let found: Option<String> = store.get(&row, 0)?;
    Ok(found.unwrap_or_else(|| text.to_owned()))
}
