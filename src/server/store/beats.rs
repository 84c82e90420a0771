//! A server says that it is alive, in each store, on a session of its own, and only while all its owners make progress.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{error, info, warn};

use super::connect::Session;
use super::fence::random_uuid;
use super::fleet::{FleetStore, formats};
use super::lease::{self, Lease};
use super::view::StoreView;
use super::{StoreError, checks};
use crate::limits;

impl FleetStore {
    /// Registers this server under a new incarnation. One of the same name that still beats keeps the name.
    pub(super) async fn register(&self, waits: bool) -> Result<(), StoreError> {
        let session = self.store.take().await?;
        let query = "select incarnation::text, beat, alive from server where name = $1";
        let before = session.optional(query, &[&self.server]).await?;
        let mut seen: (String, i64) = (String::new(), 0);
        if let Some(row) = before {
            seen = (self.store.get(&row, 0)?, self.store.get(&row, 1)?);
            let is_alive: bool = self.store.get(&row, 2)?;
            if is_alive && waits {
                // A server that was killed a moment ago is registered still, and beats no more.
                let silence = limits::BEAT_SILENCE_MAX.as_duration();
                info!(
                    server = self.server,
                    store = self.store.name(),
                    "a server of this name was alive: waiting for its silence"
                );
                sleep(silence).await;
                let row = session.optional(query, &[&self.server]).await?;
                let now = row.as_ref().map(|row| {
                    Ok::<_, StoreError>((self.store.get(row, 0)?, self.store.get(row, 1)?))
                });
                if now.transpose()?.is_some_and(|now| now != seen) {
                    return Err(self.store.unfit(format!(
                        "another server with the name {} is alive: give this one another --server",
                        self.server
                    )));
                }
            }
        }
        self.enter(session, seen).await
    }

    /// Enters this server in the place of an incarnation that was seen.
    async fn enter(&self, session: Session, seen: (String, i64)) -> Result<(), StoreError> {
        let incarnation = random_uuid();
        // Between the start and now the set of stores may have been changed.
        let sql = "insert into server (name, incarnation, beat, alive, address, formats, stores) \
                   select $1::text, $2::text::uuid, 1, true, $3::text, $4::int, $7::text from store s \
                   where s.stores is null or s.stores in ($7::text, 'changing ' || $7::text, $8::text) \
                   for share of s on conflict (name) do update set \
                   incarnation = excluded.incarnation, beat = 1, alive = true, leaving = false, address = excluded.address, \
                   formats = excluded.formats, stores = excluded.stores \
                   where server.incarnation::text = $5 and server.beat = $6";
        let sent = lease::now();
        let done = session
            .execute(
                sql,
                &[
                    &self.server,
                    &incarnation,
                    &self.address,
                    &formats(),
                    &seen.0,
                    &seen.1,
                    &self.stores.set(),
                    &self.stores.before(self.at),
                ],
            )
            .await?;
        if done == 0 {
            return Err(self.store.unfit(format!(
                "another server with the name {} has come, or the stores of the fleet were changed: give this server another --server, \
                 and the same --store as the others",
                self.server
            )));
        }
        checks::check_connections(&self.store, &session).await?;
        self.store.give_back(session);
        self.state().incarnation = incarnation;
        let lease = Lease::default();
        lease.renew(sent);
        self.lease.store(Arc::new(lease));
        Ok(())
    }

    /// Beats until the stop.
    pub(super) async fn beat(&self, mut stopped: watch::Receiver<bool>) {
        let mut ticks = interval(limits::BEAT.as_duration());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut session: Option<Session> = None;
        let mut is_reported = false;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            if self.state().has_left {
                continue;
            }
            if !self.serving.makes_progress() {
                error!("an owner makes no progress: this server does not say that it is alive");
                continue;
            }
            let sent = lease::now();
            // Others look for the beats at the new primary.
            let open = session.take().filter(|it| self.store.is_current(it));
            let done = match open {
                Some(open) => self.beat_once(open).await,
                None => self.first_beat().await,
            };
            match done {
                Ok((open, true)) => {
                    self.lease.load().renew(sent);
                    if is_reported {
                        info!(store = self.store.name(), "the store is back");
                    }
                    session = Some(open);
                    is_reported = false;
                }
                // It has left while the beat was on its way.
                Ok((_, false)) if self.state().has_left => {}
                Ok((_, false)) => self.declared_dead().await,
                Err(error @ StoreError::Replaced { .. }) => self.replaced(&error),
                Err(error) if !is_reported => {
                    warn!(store = self.store.name(), "no beat: {error}");
                    is_reported = true;
                }
                Err(_) => {}
            }
        }
    }

    /// Beats on a new session. A server that could not join at its start, or again, does so first.
    async fn first_beat(&self) -> Result<(Session, bool), StoreError> {
        if self.state().incarnation.is_empty() {
            self.register(true).await?;
        }
        let session = self.store.session().await?;
        self.beat_once(session).await
    }

    async fn beat_once(&self, session: Session) -> Result<(Session, bool), StoreError> {
        let incarnation = self.state().incarnation.clone();
        let sql = "update server set beat = beat + 1 where name = $1 and incarnation::text = $2 and alive";
        let done = session.execute(sql, &[&self.server, &incarnation]).await?;
        Ok((session, done == 1))
    }

    /// The store is another one than this server has known: what it has in memory is not in there.
    fn replaced(&self, error: &StoreError) {
        if self.is_replaced.swap(true, Ordering::Relaxed) {
            return;
        }
        error!(
            store = self.store.name(),
            "this server's namespaces of a store are dropped, and it serves none of it any more: {error}"
        );
        self.lease.load().end();
        self.serving.lose_all();
        self.publish_view(StoreView {
            name: self.store.name().to_owned(),
            ..StoreView::default()
        });
    }

    /// The other servers have taken what this one had: it begins anew.
    async fn declared_dead(&self) {
        warn!(
            store = self.store.name(),
            "the other servers have declared this one dead: its namespaces are dropped, and it joins anew"
        );
        self.lease.load().end();
        self.serving.lose_all();
        if let Err(error) = self.register(false).await {
            warn!(store = self.store.name(), "cannot join anew: {error}");
        }
    }
}
