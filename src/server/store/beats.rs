//! A server says that it is alive, in each store, on a session of its own, and only while all its owners make progress.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{error, info, warn};

use super::beating::{self, BeatIo, Beaten};
use super::connect::Session;
use super::fence::random_uuid;
use super::fleet::{FleetStore, formats};
use super::lease::{self, Lease};
use super::namesake::{Name, NameRow};
use super::view::StoreView;
use super::{StoreError, checks, common};
use crate::limits;

impl FleetStore {
    /// Joins the other servers at the start, under a new incarnation.
    ///
    /// # Errors
    ///
    /// Another server with this name is alive; the store's.
    pub(super) async fn register(&self) -> Result<(), StoreError> {
        loop {
            match self.try_to_join().await? {
                Name::Free => return Ok(()),
                // A server that was killed a moment ago is registered still, and beats no more.
                Name::Unclear => sleep(limits::BEAT.as_duration()).await,
                Name::Taken => {
                    return Err(self.store.unfit(format!(
                        "another server with the name {} is alive: give this one another --server",
                        self.server
                    )));
                }
            }
        }
    }

    /// Looks at the row of this server's name, and enters if no other server has it.
    async fn try_to_join(&self) -> Result<Name, StoreError> {
        let session = self.store.take().await?;
        let query = "select incarnation::text, beat, alive from server where name = $1";
        let row = session.optional(query, &[&self.server]).await?;
        let row = row.map(|row| {
            Ok::<_, StoreError>(NameRow {
                incarnation: self.store.get(&row, 0)?,
                beat: self.store.get(&row, 1)?,
                is_alive: self.store.get(&row, 2)?,
            })
        });
        let row = row.transpose()?;
        let (before, name) = {
            let mut state = self.state();
            let before = state.namesake.found();
            (before, state.namesake.judge(Instant::now(), row.as_ref()))
        };
        let (server, store) = (&self.server, self.store.name());
        match name {
            Name::Free => self.enter(session, row).await?,
            Name::Unclear | Name::Taken => self.store.give_back(session),
        }
        match name {
            Name::Unclear if before != name => info!(
                server,
                store, "a server of this name was alive: waiting for its silence"
            ),
            Name::Taken if before != name => warn!(
                server,
                store,
                "another server with this name is alive: this one serves nothing of the store until the other has stopped. Give \
                 each server its own --server"
            ),
            Name::Free | Name::Unclear | Name::Taken => {}
        }
        Ok(name)
    }

    /// Enters this server in the place of an incarnation that was seen.
    async fn enter(&self, session: Session, seen: Option<NameRow>) -> Result<(), StoreError> {
        let seen = seen.map_or((String::new(), 0), |row| (row.incarnation, row.beat));
        let incarnation = random_uuid();
        self.state().namesake.enters(&incarnation);
        // Between the start and now the set of stores may have been changed.
        let sql = "insert into server (name, incarnation, beat, alive, address, formats, stores) \
                   select $1::text, $2::text::uuid, 1, true, $3::text, $4::int, $7::text from store s \
                   where s.stores is null or s.stores in ($7::text, 'changing ' || $7::text, $8::text) \
                   for share of s on conflict (name) do update set \
                   incarnation = excluded.incarnation, beat = 1, alive = true, leaving = false, address = excluded.address, \
                   formats = excluded.formats, stores = excluded.stores \
                   where server.incarnation::text = $5 and server.beat = $6";
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
        // The first beat lets it hold.
        self.lease.store(Arc::new(Lease::begun()));
        Ok(())
    }

    /// Beats until the stop.
    pub(super) async fn beat(&self, mut stopped: watch::Receiver<bool>) {
        let mut ticks = interval(limits::BEAT.as_duration());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut beats = Beating {
            part: self,
            session: None,
        };
        let mut is_reported = false;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            beating::step(&mut beats, &mut is_reported).await;
        }
    }

    /// Beats on a new session. A server that could not join at its start, or is to join again, does so first, if its name is free.
    async fn first_beat(&self) -> Result<Option<(Session, bool)>, StoreError> {
        if self.state().incarnation.is_empty() {
            common::reach_late(&self.stores, self.at).await?;
            if self.try_to_join().await? != Name::Free {
                return Ok(None);
            }
        }
        let session = self.store.session().await?;
        self.beat_once(session).await.map(Some)
    }

    async fn beat_once(&self, session: Session) -> Result<(Session, bool), StoreError> {
        let incarnation = self.state().incarnation.clone();
        let sql = "update server set beat = beat + 1 where name = $1 and incarnation::text = $2 and alive";
        let done = session.execute(sql, &[&self.server, &incarnation]).await?;
        Ok((session, done == 1))
    }

    /// The store is another one than this server has known: what it has in memory is not in there.
    fn replaced(&self, error: &StoreError) {
        if std::mem::replace(&mut self.state().is_replaced, true) {
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

    /// The other servers have taken what this one had, or one with its name has: it is to join as one that is new.
    fn begin_anew(&self) {
        warn!(
            server = self.server,
            store = self.store.name(),
            "the other servers have declared this one dead, or one with its name has come: its namespaces are dropped, and it joins anew"
        );
        self.state().incarnation.clear();
        self.lease.load().end();
        self.serving.lose_all();
    }
}

/// The beats of this server in a store.
struct Beating<'a> {
    part: &'a FleetStore,
    /// None before a beat has succeeded on it.
    session: Option<Session>,
}

impl BeatIo for Beating<'_> {
    fn store(&self) -> &str {
        self.part.store.name()
    }

    fn now(&self) -> u64 {
        lease::now()
    }

    fn makes_progress(&self) -> bool {
        self.part.serving.makes_progress()
    }

    fn has_left(&self) -> bool {
        self.part.state().has_left
    }

    async fn beat(&mut self) -> Result<Beaten, StoreError> {
        // Others look for the beats at the new primary.
        let open = self.session.take();
        let open = open.filter(|it| self.part.store.is_current(it));
        let beaten = match open {
            Some(open) => Some(self.part.beat_once(open).await?),
            None => self.part.first_beat().await?,
        };
        Ok(match beaten {
            Some((open, true)) => {
                self.session = Some(open);
                Beaten::Done
            }
            Some((_, false)) => Beaten::NoRow,
            None => Beaten::NotJoined,
        })
    }

    fn renew(&mut self, sent: u64) {
        self.part.lease.load().renew(sent);
    }

    fn begin_anew(&mut self) {
        self.part.begin_anew();
    }

    fn replaced(&mut self, error: &StoreError) {
        self.part.replaced(error);
    }
}
