//! A server says that it is alive, in each store, on a session of its own, and only while all its owners make progress. This carries
//! out what `cluster::heartbeat` decides.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{error, info, warn};

use super::common;
use super::fleet::{FleetStore, formats};
use crate::system::clock;
use jitney_cluster::deaths;
use jitney_cluster::heartbeat::{
    Entry, HeartbeatEffect, HeartbeatRequest, HeartbeatStep, Moment, OwnRow, Progress, Replaces,
};
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
            let mut next = Some(HeartbeatRequest::ReadName);
            while let Some(request) = next.take() {
                match request {
                    HeartbeatRequest::ReadName => next = self.carry_out(self.read_name().await?),
                    HeartbeatRequest::Enter(entry) => {
                        self.carry_out(self.enter(entry).await?);
                        return Ok(());
                    }
                    HeartbeatRequest::Beat(_) | HeartbeatRequest::ReleaseAll(_) => {}
                }
            }
            let name = self.state().claim.found();
            if name == Name::Taken {
                return Err(self.store.unfit(format!(
                    "another server with the name {} is alive: give this one another --server",
                    self.server
                )));
            }
            // A server that was killed a moment ago is registered still, and sends no heartbeat any more.
            sleep(jitney_cluster::limits::HEARTBEAT.as_duration()).await;
        }
    }

    /// Sends heartbeats until the stop.
    pub(super) async fn beat(&self, mut stopped: watch::Receiver<bool>) {
        let mut ticks = interval(jitney_cluster::limits::HEARTBEAT.as_duration());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heartbeats = SentHeartbeats::default();
        loop {
            let is_replaced = self.state().is_replaced;
            tokio::select! {
                _ = ticks.tick() => {}
                // Whatever has found it: the lease need not last until the next heartbeat finds it.
                () = self.store.until_replaced(), if !is_replaced => {
                    self.note_replaced();
                    continue;
                }
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            self.beat_once(&mut heartbeats).await;
        }
    }

    /// Sends the heartbeat that is due, and does what follows from its answer.
    async fn beat_once(&self, heartbeats: &mut SentHeartbeats) {
        let progress = self.serving.progress();
        if progress == Progress::Stuck {
            error!("an owner makes no progress: this server does not say that it is alive");
        }
        let mut next = self.state().next_heartbeat(progress);
        while let Some(request) = next {
            let step = match self.ask(&request, heartbeats).await {
                Ok(step) => step,
                Err(error) => self.unanswered(&request, &error, heartbeats),
            };
            next = self.carry_out(step);
        }
    }

    async fn ask(
        &self,
        request: &HeartbeatRequest,
        heartbeats: &mut SentHeartbeats,
    ) -> Result<HeartbeatStep, StoreError> {
        match request {
            HeartbeatRequest::ReadName => {
                // A server that waits for its name has done so.
                if self.state().claim.found() == Name::Free {
                    common::reach_late(&self.stores, self.at).await?;
                }
                self.read_name().await
            }
            HeartbeatRequest::Enter(entry) => self.enter(entry.clone()).await,
            HeartbeatRequest::Beat(incarnation) => {
                let sent = clock::since_boot();
                let found = self.raise(incarnation, heartbeats).await?;
                if found == OwnRow::Alive && std::mem::take(&mut heartbeats.is_reported) {
                    info!(store = self.store.name(), "the store is back");
                }
                let at = Moment {
                    sent,
                    now: clock::since_boot(),
                    server: &self.server,
                    view: &self.view.load(),
                };
                Ok(self.state().beaten(at, found))
            }
            HeartbeatRequest::ReleaseAll(incarnation) => {
                self.release_all(incarnation, heartbeats).await
            }
        }
    }

    /// A request has no answer.
    fn unanswered(
        &self,
        request: &HeartbeatRequest,
        error: &StoreError,
        heartbeats: &mut SentHeartbeats,
    ) -> HeartbeatStep {
        let store = self.store.name();
        if matches!(request, HeartbeatRequest::ReleaseAll(_)) {
            warn!(
                store,
                "it is unknown whether namespaces were given away: {error}"
            );
        } else if !std::mem::replace(&mut heartbeats.is_reported, true) {
            warn!(store, "no heartbeat: {error}");
        }
        self.state().heartbeat_failed(request)
    }

    /// The store is another one than this server has known.
    fn note_replaced(&self) {
        error!(
            store = self.store.name(),
            place = self.store.place(),
            "the database has another store than at the start: this server's namespaces of the store are dropped, and it serves none of it \
             any more. Restart the server if that is right"
        );
        let step = self.state().replaced();
        self.carry_out(step);
    }

    /// Does what follows from an answer; returns what is to be asked next.
    fn carry_out(&self, step: HeartbeatStep) -> Option<HeartbeatRequest> {
        let (server, store) = (&self.server, self.store.name());
        match step.effect {
            None | Some(HeartbeatEffect::Waits(Name::Free)) => {}
            Some(HeartbeatEffect::Waits(Name::Unclear)) => info!(
                server,
                store, "a server of this name was alive: waiting for its silence"
            ),
            Some(HeartbeatEffect::Waits(Name::Taken)) => warn!(
                server,
                store,
                "another server with this name is alive: this one serves nothing of the store until the other has stopped. Give \
                 each server its own --server"
            ),
            Some(HeartbeatEffect::Joined(deaths)) => {
                self.report_rest(deaths);
                self.lease.store(Arc::new(Lease::begun()));
            }
            Some(HeartbeatEffect::Renew(sent)) => self.lease.load().renew(sent),
            Some(HeartbeatEffect::RenewWell(sent)) => {
                self.lease.load().renew(sent);
                info!(
                    store,
                    "the answers to this server's heartbeats come in time again"
                );
            }
            Some(HeartbeatEffect::Released(deaths)) => {
                self.serving.lose_all();
                self.report_rest(deaths);
            }
            Some(HeartbeatEffect::Lost) => {
                warn!(
                    server,
                    store,
                    "the other servers have declared this one dead, or may have its namespaces, or one with its name has come: its \
                     namespaces are dropped, and it joins anew"
                );
                self.lease.load().end();
                self.serving.lose_all();
            }
            Some(HeartbeatEffect::Replaced) => {
                self.lease.load().end();
                self.serving.lose_all();
                self.publish_view(StoreView {
                    name: store.to_owned(),
                    ..StoreView::default()
                });
            }
        }
        step.next
    }

    /// Reads the row of this server's name.
    async fn read_name(&self) -> Result<HeartbeatStep, StoreError> {
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
        self.store.give_back(session);
        let mut state = self.state();
        Ok(state.name_read(clock::uptime(), row, random_uuid()))
    }

    /// Enters this server.
    async fn enter(&self, entry: Entry) -> Result<HeartbeatStep, StoreError> {
        let session = self.store.take().await?;
        let died = i32::from(entry.replaces == Replaces::Another);
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
                    &entry.incarnation,
                    &self.address,
                    &formats(),
                    &entry.seen.0,
                    &entry.seen.1,
                    &self.stores.set(),
                    &self.stores.before(self.at),
                    &died,
                    &entry.is_late,
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
        Ok(self.state().entered(clock::uptime(), entry, deaths))
    }

    /// Raises the number of this server's heartbeat, on the session of its heartbeats.
    async fn raise(
        &self,
        incarnation: &str,
        heartbeats: &mut SentHeartbeats,
    ) -> Result<OwnRow, StoreError> {
        // Others look for the heartbeats at the new primary.
        let open = heartbeats.session.take();
        let session = match open.filter(|it| self.store.is_current(it)) {
            Some(session) => session,
            None => self.store.session().await?,
        };
        let sql = "update server set beat = beat + 1 where name = $1 and incarnation::text = $2 and alive";
        let done = session.execute(sql, &[&self.server, &incarnation]).await?;
        if done == 0 {
            return Ok(OwnRow::Gone);
        }
        heartbeats.session = Some(session);
        Ok(OwnRow::Alive)
    }

    /// Gives all namespaces away, and beats with that; says that this server takes none. It counts as a death of the server, and of no
    /// namespace: what is not answered is not lost.
    async fn release_all(
        &self,
        incarnation: &str,
        heartbeats: &mut SentHeartbeats,
    ) -> Result<HeartbeatStep, StoreError> {
        let Some(session) = heartbeats.session.take() else {
            return Ok(HeartbeatStep::default());
        };
        let sql = "with own as (update server set beat = beat + 1, deaths = deaths + 1, skewed = incarnation, resting = incarnation \
                   where name = $1 and incarnation::text = $2 and alive returning name, incarnation, deaths), \
                   given as (update namespace n set epoch = n.epoch + 1, owner = null, server = null, incarnation = null from own \
                   where n.server = own.name and n.incarnation = own.incarnation returning n.id) \
                   select own.deaths, (select count(*) from given) from own";
        let params: jitney_postgres::Params<'_> = &[&self.server, &incarnation];
        let row = session.optional(sql, params).await?;
        heartbeats.session = Some(session);
        let Some(row) = row else {
            return Ok(self.state().all_released(clock::uptime(), None));
        };
        let (deaths, given): (i32, i64) = (self.store.get(&row, 0)?, self.store.get(&row, 1)?);
        warn!(
            server = self.server,
            store = self.store.name(),
            given,
            "the answers to this server's heartbeats come too late for it to answer clients: its namespaces are given away, and it \
             takes none until they come in time. Look at its network and at the database"
        );
        let mut state = self.state();
        Ok(state.all_released(clock::uptime(), Some(deaths)))
    }

    /// Logs that this server rests, if it has died too often of late.
    fn report_rest(&self, deaths: i32) {
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
}

/// What is kept from one heartbeat to the next.
#[derive(Default)]
struct SentHeartbeats {
    /// None before a heartbeat has succeeded on it.
    session: Option<Session>,
    /// That there is no answer was logged.
    is_reported: bool,
}
