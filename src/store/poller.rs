//! A server polls each store every half second: which servers are alive, and which of them has which namespace. A server whose heartbeat
//! it has seen unchanged for 3 s of its own clock is declared dead by a comparison of that heartbeat in the database, and the namespaces
//! of that server are free. Then it does what is decided. `cluster::poll` and `cluster::planner` decide; this carries it out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{SemaphorePermit, watch};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{debug, error, info, warn};

use super::fleet::{self, Fleet, FleetStore};
use super::take_over::{self, Taker};
use crate::system::clock::{Testimony, since_boot, uptime};
use crate::system::supervisor;
use jitney_cluster::clocks::{self, Skew};
use jitney_cluster::member::counted_death;
use jitney_cluster::planner::{Fitness, NamespaceKey};
use jitney_cluster::poll::Correction;
use jitney_cluster::view::{
    FleetView, NamespaceRow, ServerRow, StoreView, cluster_view, formats_to_write,
};
use jitney_postgres::{Fence, Owned, Session, StoreError, ownership, ownership::QuarantinedBy};
use jitney_shard::routing::KnownNamespaces;

impl Fleet {
    /// Looks at a store until the stop, and does what is to be done.
    pub(super) async fn poll(self: Arc<Self>, at: usize, mut stopped: watch::Receiver<bool>) {
        let Some(part) = self.parts.get(at) else {
            return;
        };
        let mut ticks = interval(jitney_cluster::limits::HEARTBEAT.as_duration());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_reported = false;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            match part.poll_once().await {
                Ok(()) => is_reported = false,
                Err(error) => {
                    part.view.rcu(|view| StoreView {
                        is_reached: false,
                        ..StoreView::clone(view)
                    });
                    if !is_reported {
                        warn!(
                            store = part.store.name(),
                            "cannot look at the other servers: {error}"
                        );
                    }
                    is_reported = true;
                }
            }
            self.act();
        }
    }

    /// Does what is decided by what all polls have found.
    fn act(self: &Arc<Self>) {
        let view = self.view();
        self.tell_routes(&view);
        let look = cluster_view(&view);
        let own = look.members.iter().position(|it| it.name == self.server);
        let decision = {
            // What is taken over is served before the planner hears that it is.
            let mut planner = self.planner();
            let served = self.parts.iter().flat_map(|part| {
                let ids = part.serving.ids().into_iter();
                ids.map(|id| NamespaceKey { store: part.at, id })
            });
            let mut decision = planner.decide(uptime(), own, look, &served.collect());
            decision.acquire.retain(|key| {
                let part = self.parts.get(key.store);
                let may_take = part.is_some_and(|part| part.state().may_take());
                if !may_take {
                    planner.acquired(*key);
                }
                may_take
            });
            decision
        };
        for key in decision.acquire {
            self.start_to_take(key);
        }
        for key in decision.give_back {
            let fleet = Arc::clone(self);
            let give_back = async move {
                if let Some(part) = fleet.parts.get(key.store) {
                    part.give_back(key.id).await;
                }
                fleet.planner().released(key);
            };
            supervisor::spawn("handover", give_back).allow_end();
        }
        for key in decision.release {
            let fleet = Arc::clone(self);
            let give = async move {
                if let Some(part) = fleet.parts.get(key.store) {
                    let fence = part.serving.fence_with_history(key.id);
                    let fences = fence.into_iter().collect();
                    part.serving.leave_histories(fences).await;
                    part.serving.give(key.id).await;
                }
                fleet.planner().released(key);
            };
            supervisor::spawn("handover", give).allow_end();
        }
    }

    /// Lets clients reach the namespaces that are known, here or at other servers.
    fn tell_routes(&self, view: &FleetView) {
        let Some(part) = self.parts.first() else {
            return;
        };
        let names = view.stores.iter().flat_map(|store| store.namespaces.keys());
        let names: BTreeSet<&str> = names.map(|name| &name[..]).collect();
        let known = if view.is_whole() {
            KnownNamespaces::All
        } else {
            KnownNamespaces::Some
        };
        let shards = &part.serving.parts().shards;
        // Most looks find the same.
        if shards.routes().knows(names.iter().copied(), known) {
            return;
        }
        shards.change_routes(|routes| routes.with_known(&self.first, names.iter().copied(), known));
    }

    fn start_to_take(self: &Arc<Self>, key: NamespaceKey) {
        let fleet = Arc::clone(self);
        let take = async move {
            if let Some(part) = fleet.parts.get(key.store) {
                part.take(key.id).await;
            }
            fleet.planner().acquired(key);
        };
        supervisor::spawn("take-over", take).allow_end();
    }
}

impl FleetStore {
    async fn poll_once(&self) -> Result<(), StoreError> {
        let session = self.store.take().await?;
        self.compare_clocks(&session).await?;
        let mut view = jitney_postgres::read_view(&self.store, &session, uptime()).await?;
        let fitness = self.state().fitness_to_tell(uptime(), &mut view.servers);
        if let Some((incarnation, fitness)) = fitness {
            self.tell_fitness(&session, &incarnation, fitness).await?;
        }
        if self.declare_dead(&session, &view.servers).await? {
            // Their namespaces have no owner now, and need not wait for the next look.
            view = jitney_postgres::read_view(&self.store, &session, uptime()).await?;
        }
        self.serving.lose_taken(&self.server, &view.namespaces);
        self.serving.set_quotas(&view.namespaces);
        let served = self.serving.ids();
        let corrections = self.state().corrections(uptime(), &view, &served);
        self.publish_view(view);
        for correction in corrections {
            let may_fail = matches!(correction, Correction::Forget(_));
            match self.correct(&session, correction).await {
                Ok(()) => {}
                Err(error) if may_fail => {
                    // They are forgotten later.
                    debug!(
                        store = self.store.name(),
                        "servers that are gone stay in the store: {error}"
                    );
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.store.give_back(session);
        Ok(())
    }

    /// Declares those of the servers dead that are silent, unless they have sent a heartbeat since the poll; returns whether some are
    /// silent.
    async fn declare_dead(
        &self,
        session: &Session,
        servers: &[ServerRow],
    ) -> Result<bool, StoreError> {
        let silent = self.state().silent(uptime(), &self.server, servers);
        let sql = "update server set alive = false, leaving = false, deaths = deaths + 1 where name = $1 and incarnation::text = $2 \
                   and beat = $3 and alive";
        for dead in &silent {
            let done = session
                .execute(sql, &[&dead.name, &dead.incarnation, &dead.beat])
                .await?;
            if 0 < done {
                warn!(
                    server = dead.name,
                    store = self.store.name(),
                    "a server is silent: its namespaces are taken over"
                );
            }
        }
        Ok(!silent.is_empty())
    }

    /// Compares this server's clock with the database's: whether it is followed, and namespaces may be taken.
    async fn compare_clocks(&self, session: &Session) -> Result<(), StoreError> {
        let query = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";
        let clock = &self.serving.parts().clock;
        let (began, reading) = (since_boot(), clock.read());
        let row = session.one(query, &[]).await?;
        let found: i64 = self.store.get(&row, 0)?;
        let took = i64::try_from(since_boot() - began).unwrap_or(i64::MAX);
        let offset = clocks::offset_of(reading.system.as_millis(), found, took);
        let (told, says) = {
            let mut state = self.state();
            let told = state.clock.compare(offset);
            let says = if state.clock.is_in_time() {
                Testimony::Agrees
            } else {
                Testimony::Differs
            };
            (told, says)
        };
        clock.testify(self.at, reading, says);
        let (milliseconds, store) = (offset, self.store.name());
        match told {
            Some(Skew::Warned) => warn!(
                milliseconds,
                store,
                "this server's clock is off from the database's: beyond a second, it is not followed, and this server takes no \
                 namespaces. Synchronize the clocks"
            ),
            Some(Skew::Refused) => warn!(
                milliseconds,
                store,
                "this server's clock is off from the database's by more than a second: it is not followed until it is right. This \
                 server takes no namespaces, and gives its own to others. Synchronize the clocks"
            ),
            None => {}
        }
        Ok(())
    }

    /// Says in this server's row whether it is to have namespaces: its share is the others' otherwise.
    async fn tell_fitness(
        &self,
        session: &Session,
        incarnation: &str,
        fitness: Fitness,
    ) -> Result<(), StoreError> {
        // Older releases know `skewed` only, for the same.
        let sql = "update server set skewed = case when $3::bool then incarnation end, resting = case when $4::bool then incarnation end \
                   where name = $1 and incarnation::text = $2";
        let (takes_none, rests) = (fitness != Fitness::Fit, fitness == Fitness::Resting);
        let params: jitney_postgres::Params<'_> =
            &[&self.server, &incarnation, &takes_none, &rests];
        session.execute(sql, params).await?;
        Ok(())
    }

    /// Corrects a row of the store after a poll.
    async fn correct(&self, session: &Session, correction: Correction) -> Result<(), StoreError> {
        match correction {
            Correction::Forget(incarnations) => forget(session, &incarnations).await,
            Correction::EndPause(id, number) => self.end_pause(session, id, number).await,
            Correction::Forgive(incarnation) => {
                let sql = "update server set deaths = 0 where name = $1 and incarnation::text = $2";
                session.execute(sql, &[&self.server, &incarnation]).await?;
                self.state().forgiven();
                Ok(())
            }
            Correction::CountAnew {
                incarnation,
                deaths,
                pauses,
            } => {
                // One that another server has by now may have died again.
                let sql = "update namespace_state s set failures = case when s.namespace = any($1) then 0 else failures end, \
                           died_at = case when s.namespace = any($1) then null else died_at end, \
                           pauses = case when s.namespace = any($2) then 0 else pauses end \
                           from namespace n where n.id = s.namespace and n.incarnation::text = $3 \
                           and (n.id = any($1) or n.id = any($2))";
                session
                    .execute(sql, &[&deaths, &pauses, &incarnation])
                    .await?;
                Ok(())
            }
        }
    }

    /// Takes a namespace over that was free.
    async fn take(self: &Arc<Self>, id: i64) {
        // Each has sessions of the database, and memory for what it reads.
        let Ok(permit) = self.takers.acquire().await else {
            return;
        };
        let view = self.view.load_full();
        let found = self.state().acquirable(&self.server, &view, id).cloned();
        let Some(namespace) = found else {
            return;
        };
        let name = namespace.name.clone();
        let formats = formats_to_write(&view, fleet::formats());
        match Box::pin(self.take_free(namespace, formats, permit)).await {
            Ok(()) => {}
            Err(StoreError::Fenced) => info!(namespace = name, "another server was faster"),
            Err(error) => {
                error!(
                    namespace = name,
                    "a namespace cannot be taken over: {error}"
                );
                self.leave_alone(id, &error).await;
            }
        }
    }

    async fn take_free(
        self: &Arc<Self>,
        seen: NamespaceRow,
        formats: i32,
        permit: SemaphorePermit<'_>,
    ) -> Result<(), StoreError> {
        let began = Instant::now();
        if seen.formats.max(FIRST_FORMATS) < formats {
            self.record_formats(seen.id, formats).await?;
        }
        let namespace = Owned {
            id: seen.id,
            name: seen.name.clone(),
            log_store: seen.log_store,
            epoch: seen.epoch,
        };
        let serving = Arc::clone(&self.serving);
        let make = move |owned: &Owned| {
            let (gateway, mut options) = serving.gateway(owned);
            options.newest_kind = kind_of(formats);
            (gateway, options)
        };
        let lease = self.lease.load_full();
        let taker = Taker {
            server: self.server.clone(),
            incarnation: self.state().incarnation.clone(),
            dead: counted_death(&self.server, &seen).map(str::to_owned),
            timeline: seen.timeline.clone(),
        };
        let mut owned = take_over::take(&self.store, &taker, namespace, make).await?;
        let skipped = owned.skipped.take();
        let configuration = self.serving.parts().configuration.load_full();
        let configured = match &seen.applied {
            Some(_) => configuration.namespace_without_entities(&seen.name),
            None => configuration.namespace(&seen.name),
        };
        let fence = Arc::clone(&owned.fence);
        let begun = self.serving.begin(owned, Arc::clone(&lease), configured);
        let shard = match begun {
            Ok(shard) => shard,
            Err(error) => return Err(self.not_begun(&fence, error).await),
        };
        if !self.state().may_serve(&lease) {
            self.serving.lose(seen.id, shard);
            return Err(StoreError::Fenced);
        }
        // What is left waits for the store, and other namespaces need not wait for that.
        drop(permit);
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        info!(namespace = seen.name, millis, "took a namespace over");
        let configure =
            self.configure_taken(&configuration, seen.id, &seen.name, seen.applied.clone());
        tokio::join!(configure, self.serving.take_history(&fence));
        if let Some(skipped) = skipped {
            skipped.note(&self.store).await?;
            warn!(
                namespace = seen.name,
                "sequence numbers are left out, because the database was restored or lacked what was acknowledged"
            );
        }
        Ok(())
    }

    /// Gives a namespace away that this server has in the store, and neither serves nor may take.
    async fn give_back(&self, id: i64) {
        let incarnation = self.state().incarnation.clone();
        let given = ownership::give_back(&self.store, id, &self.server, &incarnation).await;
        if let Err(error) = given {
            debug!(id, "a namespace could not be given away: {error}");
        }
    }

    /// Gives a namespace away that was taken over and cannot be served here, unless its log is at fault: another server may be
    /// able to.
    async fn not_begun(&self, fence: &Fence, error: StoreError) -> StoreError {
        if !error.is_of_log()
            && let Err(kept) = ownership::release(&self.store, fence).await
        {
            let namespace = fence.name();
            warn!(
                namespace,
                "a namespace could not be given away, and is taken again here: {kept}"
            );
        }
        error
    }

    /// Records which kinds of records the log of a namespace may have, before it has them: a server that takes the namespace by what
    /// it saw before that is too late.
    async fn record_formats(&self, id: i64, formats: i32) -> Result<(), StoreError> {
        let session = self.store.take().await?;
        let sql = "insert into namespace_state (namespace, formats) values ($1, $2) on conflict (namespace) \
                   do update set formats = greatest(namespace_state.formats, excluded.formats)";
        session.execute(sql, &[&id, &formats]).await?;
        self.store.give_back(session);
        Ok(())
    }

    /// Puts a namespace into quarantine that this server has taken, if its log is at fault or its owners have died too often.
    async fn leave_alone(&self, id: i64, error: &StoreError) {
        if !error.is_of_log() {
            return;
        }
        let why = error.to_string();
        let incarnation = self.state().incarnation.clone();
        let taker = if matches!(error, StoreError::Deadly { .. }) {
            QuarantinedBy::Deaths(&incarnation)
        } else {
            QuarantinedBy::Taker(&incarnation)
        };
        let put = ownership::quarantine(&self.store, id, &why, taker);
        if let Err(error) = put.await {
            warn!("a namespace could not be put into quarantine: {error}");
        }
    }

    /// Lets servers take a namespace again whose pause is over.
    async fn end_pause(&self, session: &Session, id: i64, number: i32) -> Result<(), StoreError> {
        if ownership::end_pause(session, id, number).await? {
            let view = self.view.load();
            let found = view.namespaces.values().find(|it| it.id == id);
            warn!(
                namespace = found.map(|it| &it.name[..]),
                number,
                "the quarantine of a namespace whose servers have died is over: it is tried again, and its next death puts it there \
                 for longer"
            );
        }
        Ok(())
    }
}

/// Removes servers from the store that own nothing: those that have a new name at each start, as pods have, would be there for ever. One
/// that is alive all the same enters anew with its next beat.
async fn forget(session: &Session, incarnations: &[String]) -> Result<(), StoreError> {
    let sql = "delete from server s where s.incarnation::text = $1 and not s.alive \
               and not exists (select from namespace n where n.incarnation = s.incarnation)";
    for incarnation in incarnations {
        session.execute(sql, &[incarnation]).await?;
    }
    Ok(())
}

/// The newest kind of record that every release reads which has stores.
const FIRST_FORMATS: i32 = 17;

/// Returns the kind of record of that number, and the first one at least.
fn kind_of(formats: i32) -> u8 {
    u8::try_from(formats.max(FIRST_FORMATS)).unwrap_or(u8::MAX)
}
