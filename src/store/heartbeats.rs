//! A server says that it is alive, in each store, on a session of its own, and only while all its owners make progress.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{error, info, warn};

use super::common;
use super::fleet::{FleetStore, formats};
use super::heartbeat::{self, HeartbeatIo, HeartbeatOutcome};
use crate::system::clock;
use jitney_cluster::deaths;
use jitney_cluster::lease::Lease;
use jitney_cluster::name::{Name, NameRow};
use jitney_cluster::view::StoreView;
use jitney_postgres::{Session, StoreError, random_uuid};

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
                Name::Unclear => sleep(jitney_cluster::limits::HEARTBEAT.as_duration()).await,
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
            let before = state.claim.found();
            (before, state.claim.judge(clock::uptime(), row.as_ref()))
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
        let (is_late, died) = {
            let mut state = self.state();
            // The answer to an attempt before may be lost.
            let is_own = state.claim.is_own(&seen.0);
            state.claim.enters(&incarnation);
            (state.is_late, i32::from(!is_own))
        };
        // Between the start and now the set of stores may have been changed.
        // One that is alive still has died, since another takes its place: no other server has declared it dead yet.
        let deaths = "server.deaths + case when server.alive then $9::int else 0 end";
        let sql = format!(
            "insert into server (name, incarnation, beat, alive, address, formats, stores, skewed, resting) \
             select $1::text, $2::text::uuid, 1, true, $3::text, $4::int, $7::text, r.late, r.late \
             from store s, (select case when $10::bool then $2::text::uuid end as late) r \
             where s.stores is null or s.stores in ($7::text, 'changing ' || $7::text, $8::text) \
             for share of s on conflict (name) do update set \
             incarnation = excluded.incarnation, beat = 1, alive = true, leaving = false, address = excluded.address, \
             formats = excluded.formats, stores = excluded.stores, deaths = {deaths}, \
             skewed = case when $10::bool or $11::int <= {deaths} then excluded.incarnation end, \
             resting = case when $10::bool or $11::int <= {deaths} then excluded.incarnation end \
             where server.incarnation::text = $5 and server.beat = $6 returning deaths"
        );
        let entered = session
            .optional(
                &sql,
                &[
                    &self.server,
                    &incarnation,
                    &self.address,
                    &formats(),
                    &seen.0,
                    &seen.1,
                    &self.stores.set(),
                    &self.stores.before(self.at),
                    &died,
                    &is_late,
                    &jitney_cluster::limits::SERVER_DEATHS_MAX,
                ],
            )
            .await?;
        let Some(entered) = entered else {
            return Err(self.store.unfit(format!(
                "another server with the name {} has come, or the stores of the fleet were changed: give this server another --server, \
                 and the same --store as the others",
                self.server
            )));
        };
        let deaths = self.store.get(&entered, 0)?;
        jitney_postgres::check_connections(&self.store, &session).await?;
        self.store.give_back(session);
        self.begin_rest(deaths);
        self.state().incarnation = incarnation;
        // The first beat lets it hold.
        self.lease.store(Arc::new(Lease::begun()));
        Ok(())
    }

    /// Beats until the stop.
    pub(super) async fn beat(&self, mut stopped: watch::Receiver<bool>) {
        let mut ticks = interval(jitney_cluster::limits::HEARTBEAT.as_duration());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut beats = Beating {
            part: self,
            session: None,
        };
        let mut memory = heartbeat::HeartbeatMemory::default();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            heartbeat::step(&mut beats, &mut memory).await;
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

    /// Rests for a while, if this server has died too often of late.
    fn begin_rest(&self, deaths: i32) {
        self.state().rest.begin(clock::uptime(), deaths);
        let seconds = deaths::rest(deaths).as_secs();
        if 0 < seconds {
            warn!(
                server = self.server,
                store = self.store.name(),
                deaths,
                seconds,
                "this server has died too often without ten healthy minutes between: it has no namespaces for that time while \
                 another server may take them. Look at its machine and its network; a restart in order ends this"
            );
        }
    }

    /// Gives all namespaces away, and beats with that; says that this server takes none. It counts as a death of the server, and of no
    /// namespace: what is not answered is not lost.
    async fn give_all(&self, session: &Session) -> Result<(), StoreError> {
        let incarnation = self.state().incarnation.clone();
        let sql = "with own as (update server set beat = beat + 1, deaths = deaths + 1, skewed = incarnation, resting = incarnation \
                   where name = $1 and incarnation::text = $2 and alive returning name, incarnation, deaths), \
                   given as (update namespace n set epoch = n.epoch + 1, owner = null, server = null, incarnation = null from own \
                   where n.server = own.name and n.incarnation = own.incarnation returning n.id) \
                   select own.deaths, (select count(*) from given) from own";
        let params: jitney_postgres::Params<'_> = &[&self.server, &incarnation];
        let Some(row) = session.optional(sql, params).await? else {
            // The next beat finds out why.
            return Ok(());
        };
        let (deaths, given): (i32, i64) = (self.store.get(&row, 0)?, self.store.get(&row, 1)?);
        warn!(
            server = self.server,
            store = self.store.name(),
            given,
            "the answers to this server's beats come too late for it to answer clients: its namespaces are given away, and it \
             takes none until they come in time. Look at its network and at the database"
        );
        self.serving.lose_all();
        self.begin_rest(deaths);
        Ok(())
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

    /// The other servers have taken what this one had, or may have, or one with its name has: it is to join as one that is new.
    fn begin_anew(&self) {
        warn!(
            server = self.server,
            store = self.store.name(),
            "the other servers have declared this one dead, or may have its namespaces, or one with its name has come: its namespaces \
             are dropped, and it joins anew"
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

impl HeartbeatIo for Beating<'_> {
    fn store(&self) -> &str {
        self.part.store.name()
    }

    fn now(&self) -> u64 {
        clock::since_boot()
    }

    fn makes_progress(&self) -> bool {
        self.part.serving.makes_progress()
    }

    fn has_left(&self) -> bool {
        self.part.state().has_left
    }

    async fn beat(&mut self) -> Result<HeartbeatOutcome, StoreError> {
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
                HeartbeatOutcome::Done
            }
            Some((_, false)) => HeartbeatOutcome::NoRow,
            None => HeartbeatOutcome::NotJoined,
        })
    }

    fn renew(&mut self, sent: u64) {
        self.part.lease.load().renew(sent);
    }

    fn others_may_take(&self) -> bool {
        self.part.view.load().has_another_taker(&self.part.server)
    }

    async fn give_all(&mut self) -> Result<(), StoreError> {
        self.part.state().is_late = true;
        if let Some(open) = self.session.take() {
            self.part.give_all(&open).await?;
            self.session = Some(open);
        }
        Ok(())
    }

    fn is_well(&mut self) {
        self.part.state().is_late = false;
        info!(
            store = self.part.store.name(),
            "the answers to this server's beats come in time again"
        );
    }

    fn begin_anew(&mut self) {
        self.part.begin_anew();
    }

    fn replaced(&mut self, error: &StoreError) {
        self.part.replaced(error);
    }
}
