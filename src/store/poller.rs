//! A server looks at each store every half second: which servers are alive, and which of them has which namespace. A beat that it has
//! seen unchanged for 3 s of its own clock is declared dead by a comparison of that beat in the database, and the namespaces of that
//! server are free. Then it does what is decision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{SemaphorePermit, watch};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{debug, error, info, warn};

use super::StoreError;
use super::connect::Session;
use super::fence::{Fence, Owned};
use super::fleet::{self, Fleet, FleetStore, State};
use super::ownership::{self, QuarantinedBy};
use super::take_over::{self, Taker};
use super::view::{NamespaceSeen, ServerSeen, StoreView, View};
use crate::system::clock::{Testimony, since_boot, uptime};
use crate::system::supervisor;
use jitney_base::time::Millis;
use jitney_cluster::clocks::{self, Skew};
use jitney_cluster::deaths::{Death, Served};
use jitney_cluster::planner::{
    self, ClusterView, Fitness, Member, NamespaceKey, NamespaceState, Owner, StoreSet,
};

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

    /// Does what is decision by what all looks have found.
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
        for key in decision.release {
            let fleet = Arc::clone(self);
            let give = async move {
                if let Some(part) = fleet.parts.get(key.store) {
                    part.serving.give(key.id).await;
                }
                fleet.planner().released(key);
            };
            supervisor::spawn("handover", give).allow_end();
        }
    }

    /// Lets clients reach the namespaces that are known, here or at other servers.
    fn tell_routes(&self, view: &View) {
        let Some(part) = self.parts.first() else {
            return;
        };
        let names = view.stores.iter().flat_map(|store| store.namespaces.keys());
        let names: BTreeSet<&str> = names.map(|name| &name[..]).collect();
        let is_whole = view.is_whole();
        let shards = &part.serving.parts().shards;
        // Most looks find the same.
        if shards.routes().knows(names.iter().copied(), is_whole) {
            return;
        }
        shards.change_routes(|routes| {
            routes.with_known(&self.first, names.iter().copied(), is_whole)
        });
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

/// Returns what decisions are made from.
fn cluster_view(view: &View) -> ClusterView {
    let mut members: BTreeMap<&str, Member> = BTreeMap::new();
    let stores = view.stores.iter().enumerate();
    for (at, store) in stores.filter(|(_, store)| store.is_reached) {
        let servers = || {
            store
                .servers
                .iter()
                .filter(|it| it.is_alive && !it.is_leaving)
        };
        let is_any_fit = servers().any(|it| it.fitness == Fitness::Fit);
        for server in servers() {
            let found = members.entry(&server.name).or_insert_with(|| Member {
                name: server.name.clone(),
                formats: server.formats,
                stores: StoreSet::default(),
            });
            found.formats = found.formats.min(server.formats);
            if server.fitness.may_take(is_any_fit) {
                found.stores.add(at);
            }
        }
    }
    let places: BTreeMap<&str, usize> = members.keys().copied().zip(0..).collect();
    let namespaces = view.stores.iter().enumerate().flat_map(|(at, store)| {
        let places = &places;
        store.namespaces.values().map(move |namespace| {
            let owner = namespace.server.as_ref();
            let place = |owner: &String| places.get(&owner[..]).copied();
            NamespaceState {
                key: NamespaceKey {
                    store: at,
                    id: namespace.id,
                },
                owner: owner.map_or(Owner::Absent, |it| {
                    place(it).map_or(Owner::Leaving, Owner::Member)
                }),
                rate: namespace.rate,
                formats: namespace.formats,
                is_fixed: namespace.quarantined.is_some() || !store.is_reached,
            }
        })
    });
    let mut namespaces: Vec<NamespaceState> = namespaces.collect();
    namespaces.sort_by_key(|it| it.key);
    ClusterView {
        members: members.into_values().collect(),
        namespaces,
    }
}

impl State {
    /// Returns whether this server may take namespaces of the store, if it is to have some: it has joined, its clock is near enough to the
    /// database's, its lease holds most of the time, and the store is still the one of the start.
    fn may_take(&self) -> bool {
        self.clock.is_in_time()
            && !self.is_late
            && !self.incarnation.is_empty()
            && !self.is_replaced
    }

    /// Returns whether this server is to have namespaces of the store.
    fn fitness(&self, now: Duration) -> Fitness {
        if !self.clock.is_in_time() {
            return Fitness::Unfit;
        }
        if self.is_late || self.rest.rests(now) {
            return Fitness::Resting;
        }
        Fitness::Fit
    }
}

impl FleetStore {
    async fn poll_once(&self) -> Result<(), StoreError> {
        let session = self.store.take().await?;
        self.compare_clocks(&session).await?;
        let mut view = StoreView::read(&self.store, &session).await?;
        self.tell_fitness(&session, &mut view.servers).await?;
        if self.declare_dead(&session, &view.servers).await? {
            // Their namespaces have no owner now, and need not wait for the next look.
            view = StoreView::read(&self.store, &session).await?;
        }
        self.serving.lose_taken(&self.server, &view.namespaces);
        self.serving.set_quotas(&view.namespaces);
        let gone = self.forgotten(&view.servers);
        let over = self.note_deaths(&view);
        self.publish_view(view);
        self.end_pauses(&session, over).await?;
        self.forgive(&session).await?;
        match forget(&session, &gone).await {
            Ok(()) => self.store.give_back(session),
            // They are forgotten later.
            Err(error) => debug!(
                store = self.store.name(),
                "servers that are gone stay in the store: {error}"
            ),
        }
        self.note_health().await
    }

    /// Declares those of the servers dead that are silent, unless they have beaten since the look; returns whether some are silent.
    async fn declare_dead(
        &self,
        session: &Session,
        servers: &[ServerSeen],
    ) -> Result<bool, StoreError> {
        let others = servers.iter();
        let others = others.filter(|it| it.is_alive && it.name != self.server);
        let others = others.map(|it| (it.incarnation.clone(), it.beat));
        let silent = self.state().heartbeats.silent(uptime(), others);
        let is_silent = |it: &&ServerSeen| silent.contains(&it.incarnation);
        let sql = "update server set alive = false, leaving = false, deaths = deaths + 1 where name = $1 and incarnation::text = $2 \
                   and beat = $3 and alive";
        for dead in servers.iter().filter(is_silent) {
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

    /// Returns the incarnations of the servers that have been gone for a long time.
    fn forgotten(&self, servers: &[ServerSeen]) -> Vec<String> {
        let gone = servers.iter().filter(|it| !it.is_alive);
        let gone = gone.map(|it| (&it.incarnation[..], it.is_leaving));
        self.state().departed.forgotten(uptime(), gone)
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

    /// Says in this server's row whether it is to have namespaces, unless that is there: its share is the others' otherwise.
    async fn tell_fitness(
        &self,
        session: &Session,
        servers: &mut [ServerSeen],
    ) -> Result<(), StoreError> {
        let (incarnation, fitness) = {
            let state = self.state();
            (state.incarnation.clone(), state.fitness(uptime()))
        };
        let own = servers.iter_mut().find(|it| it.incarnation == incarnation);
        let Some(own) = own.filter(|own| own.fitness != fitness) else {
            return Ok(());
        };
        // Older releases know `skewed` only, for the same.
        let sql = "update server set skewed = case when $3::bool then incarnation end, resting = case when $4::bool then incarnation end \
                   where name = $1 and incarnation::text = $2";
        let (takes_none, rests) = (fitness != Fitness::Fit, fitness == Fitness::Resting);
        let params: super::connect::Params<'_> = &[&self.server, &incarnation, &takes_none, &rests];
        session.execute(sql, params).await?;
        own.fitness = fitness;
        Ok(())
    }

    /// Takes a namespace over that was free.
    async fn take(self: &Arc<Self>, id: i64) {
        // Each has sessions of the database, and memory for what it reads.
        let Ok(permit) = self.takers.acquire().await else {
            return;
        };
        if !self.state().may_take() {
            return;
        }
        // Another server may have been faster meanwhile, also in finding that the log is at fault.
        let view = self.view.load_full();
        let found = view.namespaces.values().find(|it| it.id == id);
        let is_free = |it: &&NamespaceSeen| {
            let owner = it.server.as_ref();
            it.quarantined.is_none() && owner.is_none_or(|owner| *owner == self.server)
        };
        let Some(namespace) = found.filter(is_free).cloned() else {
            return;
        };
        let name = namespace.name.clone();
        let formats = formats_to_write(&view);
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
        seen: NamespaceSeen,
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
            dead: self.counted(&seen).map(str::to_owned),
            timeline: seen.timeline.clone(),
        };
        let mut owned = take_over::take(&self.store, &taker, namespace, make).await?;
        let skipped = owned.skipped.take();
        let configuration = self.serving.parts().configuration.load_full();
        let is_applied = seen.applied.is_some();
        let applied = (&*configuration, is_applied);
        let fence = Arc::clone(&owned.fence);
        let begun = self.serving.begin(owned, Arc::clone(&lease), applied);
        let shard = match begun {
            Ok(shard) => shard,
            Err(error) => return Err(self.not_begun(&fence, error).await),
        };
        if lease.has_ended() {
            // This server was declared dead meanwhile, and what it had then was dropped before this was there.
            self.serving.lose(seen.id, shard);
            return Err(StoreError::Fenced);
        }
        // What is left waits for the store, and other namespaces need not wait for that.
        drop(permit);
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        info!(namespace = seen.name, millis, "took a namespace over");
        let namespace = (seen.id, &seen.name[..]);
        self.configure_taken(&configuration, namespace, seen.applied.clone())
            .await;
        if let Some(skipped) = skipped {
            skipped.note(&self.store).await?;
            warn!(
                namespace = seen.name,
                "sequence numbers are left out, because the database was restored or lacked what was acknowledged"
            );
        }
        Ok(())
    }

    /// Returns the server whose death counts for a namespace that this one takes.
    fn counted<'a>(&self, seen: &'a NamespaceSeen) -> Option<&'a str> {
        let server = seen.died.as_deref()?;
        let death = Death {
            server,
            before: seen.died_before.as_deref(),
            taker: &self.server,
        };
        death.counts().then_some(server)
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

    /// Notes for how long namespaces were served without a death, by whichever server; returns those in quarantine whose pause is over.
    fn note_deaths(&self, view: &StoreView) -> Vec<(i64, i32)> {
        let now = uptime();
        let served = view.namespaces.values().map(|it| Served {
            id: it.id,
            deaths: it.deaths,
            is_served: it.server.is_some(),
        });
        let paused = view.namespaces.values().filter(|it| it.is_paused);
        let mut state = self.state();
        state.healing.look(now, served);
        state.pauses.over(now, paused.map(|it| (it.id, it.pauses)))
    }

    /// Lets servers take the namespaces again whose pause is over.
    async fn end_pauses(&self, session: &Session, over: Vec<(i64, i32)>) -> Result<(), StoreError> {
        for (id, number) in over {
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
        }
        Ok(())
    }

    /// Counts the deaths of this server anew, if it has lived for long.
    async fn forgive(&self, session: &Session) -> Result<(), StoreError> {
        let incarnation = {
            let state = self.state();
            let is_forgiven = state.rest.is_forgiven(uptime()) && !state.is_late;
            if !is_forgiven || state.incarnation.is_empty() {
                return Ok(());
            }
            state.incarnation.clone()
        };
        let sql = "update server set deaths = 0 where name = $1 and incarnation::text = $2";
        session.execute(sql, &[&self.server, &incarnation]).await?;
        self.state().rest.forgive();
        Ok(())
    }

    /// Counts the deaths of owners anew of the namespaces that this server has, and that were served for long.
    async fn note_health(&self) -> Result<(), StoreError> {
        let view = self.view.load_full();
        let (healthy, well) = {
            let (served, state) = (self.serving.ids(), self.state());
            let healed = |long: Millis, is_counted: fn(&NamespaceSeen) -> bool| {
                let own = view.namespaces.values();
                // In their order.
                let own = own.filter(|it| served.binary_search(&it.id).is_ok());
                let long = long.as_duration();
                let healed =
                    own.filter(|it| is_counted(it) && long <= state.healing.healthy(it.id));
                healed.map(|it| it.id).collect::<Vec<i64>>()
            };
            (
                healed(jitney_cluster::limits::TAKEOVER_HEALTHY, |it| {
                    it.deaths != 0
                }),
                healed(jitney_cluster::limits::QUARANTINE_HEALTHY, |it| {
                    it.pauses != 0
                }),
            )
        };
        if healthy.is_empty() && well.is_empty() {
            return Ok(());
        }
        let session = self.store.take().await?;
        // One that another server has by now may have died again.
        let sql = "update namespace_state s set failures = case when s.namespace = any($1) then 0 else failures end, \
                   died_at = case when s.namespace = any($1) then null else died_at end, \
                   pauses = case when s.namespace = any($2) then 0 else pauses end \
                   from namespace n where n.id = s.namespace and n.incarnation::text = $3 \
                   and (n.id = any($1) or n.id = any($2))";
        let incarnation = self.state().incarnation.clone();
        session
            .execute(sql, &[&healthy, &well, &incarnation])
            .await?;
        self.store.give_back(session);
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

/// Returns the newest kind of record that this server may write: all servers that are alive read it.
fn formats_to_write(view: &StoreView) -> i32 {
    let alive = view.servers.iter().filter(|it| it.is_alive);
    planner::formats_of(alive.map(|it| it.formats), fleet::formats())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, fitness: Fitness) -> ServerSeen {
        ServerSeen {
            name: name.to_owned(),
            incarnation: name.to_owned(),
            beat: 1,
            is_alive: true,
            address: "127.0.0.1:1".to_owned(),
            is_leaving: false,
            fitness,
            formats: 17,
        }
    }

    fn joined() -> State {
        State {
            incarnation: "x".to_owned(),
            ..State::default()
        }
    }

    /// database-clock and server-clock, each off by an hour: nothing is taken, since times to live would end early.
    #[test]
    fn a_server_takes_no_namespaces_while_its_clock_and_the_database_s_are_an_hour_apart() {
        let (hour, now) = (3_600_000, 1_000 * 3_600_000);
        let mut state = joined();
        assert!(!state.may_take(), "the clocks were not compared");
        for (own, of_database) in [
            (now, now + hour),
            (now, now - hour),
            (now + hour, now),
            (now - hour, now),
        ] {
            state
                .clock
                .compare(clocks::offset_of(own, of_database, 200));
            assert!(!state.may_take(), "{own} {of_database}");
            state.clock.compare(clocks::offset_of(now, now, 200));
            assert!(state.may_take());
        }
    }

    /// restore-with-old-servers: what a server sees of a store that was restored is not what it has in memory.
    #[test]
    fn a_server_takes_no_namespaces_before_it_has_joined_or_of_a_store_that_is_another_one() {
        let mut state = joined();
        state.clock.compare(0);
        assert!(state.may_take());
        state.is_replaced = true;
        assert!(!state.may_take());
        state.is_replaced = false;
        state.incarnation.clear();
        assert!(!state.may_take());
    }

    fn namespace(id: i64) -> NamespaceSeen {
        NamespaceSeen {
            id,
            epoch: 1,
            server: None,
            quarantined: None,
            rate: 0,
            quota: None,
            log_store: 1,
            name: id.to_string(),
            died: Some("a".to_owned()),
            deaths: 0,
            died_before: None,
            pauses: 0,
            is_paused: false,
            timeline: None,
            applied: None,
            formats: 17,
        }
    }

    fn view_of(servers: Vec<ServerSeen>, namespaces: Vec<NamespaceSeen>) -> StoreView {
        let namespaces = namespaces.into_iter().map(|it| (it.name.clone(), it));
        StoreView {
            servers,
            namespaces: namespaces.collect(),
            is_reached: true,
            ..StoreView::default()
        }
    }

    fn taken(view: StoreView) -> Vec<i64> {
        let stores = vec![Arc::new(view)];
        let look = cluster_view(&View { stores });
        let mut planner = planner::Planner::default();
        let decision = planner.decide(uptime(), Some(0), look, &BTreeSet::new());
        decision.acquire.iter().map(|key| key.id).collect()
    }

    /// poison-namespace: it is in quarantine after it has ended its owners, and would end the next one.
    #[test]
    fn no_server_takes_a_namespace_that_is_in_quarantine() {
        let mut poison = namespace(1);
        poison.quarantined = Some("its owner has died 4 times".to_owned());
        let view = view_of(vec![server("a", Fitness::Fit)], vec![poison, namespace(2)]);
        assert_eq!(taken(view), [2]);
    }

    /// mixed-formats: servers of two releases share a store. What one of them does not read is not written, and a log that may have such
    /// records is not taken by it.
    #[test]
    fn a_server_of_an_older_release_is_written_for_while_it_is_alive_and_takes_no_newer_log() {
        let own = fleet::formats();
        let mut older = server("a", Fitness::Fit);
        older.formats = own - 1;
        let mut newer = server("b", Fitness::Fit);
        newer.formats = own + 1;
        let mut servers = vec![older, newer];
        let mut written_new = namespace(1);
        written_new.formats = own;
        let mut written_old = namespace(2);
        written_old.formats = own - 1;
        let view = view_of(servers.clone(), vec![written_new, written_old]);
        assert_eq!(formats_to_write(&view), own - 1);
        assert_eq!(taken(view), [2], "by the older one");
        servers[0].is_alive = false;
        assert_eq!(formats_to_write(&view_of(servers, vec![])), own);
    }

    #[test]
    fn a_server_has_no_share_of_a_store_from_whose_clock_its_own_is_off() {
        let store = |servers| {
            Arc::new(StoreView {
                servers,
                is_reached: true,
                ..StoreView::default()
            })
        };
        let look = cluster_view(&View {
            stores: vec![
                store(vec![server("a", Fitness::Unfit), server("b", Fitness::Fit)]),
                store(vec![server("a", Fitness::Fit), server("b", Fitness::Fit)]),
            ],
        });
        let shares = look.members.iter();
        let shares = shares.map(|it| (&it.name[..], [0, 1].map(|store| it.stores.has(store))));
        let shares: Vec<(&str, [bool; 2])> = shares.collect();
        assert_eq!(shares, [("a", [false, true]), ("b", [true, true])]);
    }

    #[test]
    fn a_server_that_rests_has_a_share_only_if_no_other_server_may_take_one() {
        use Fitness::{Fit, Resting, Unfit};
        let shares = |fitness: [Fitness; 3]| {
            let servers = ["a", "b", "c"].into_iter().zip(fitness);
            let servers = servers.map(|(name, fitness)| server(name, fitness));
            let look = cluster_view(&View {
                stores: vec![Arc::new(view_of(servers.collect(), vec![]))],
            });
            let shares = look.members.iter().map(|it| it.stores.has(0));
            shares.collect::<Vec<bool>>()
        };
        assert_eq!(shares([Resting, Fit, Unfit]), [false, true, false]);
        assert_eq!(shares([Resting, Resting, Unfit]), [true, true, false]);
        assert_eq!(shares([Unfit, Unfit, Unfit]), [false, false, false]);
    }

    #[test]
    fn a_server_that_has_died_too_often_or_is_late_rests_and_one_whose_clock_is_off_is_unfit() {
        let mut state = joined();
        let now = uptime();
        assert_eq!(state.fitness(now), Fitness::Unfit, "not compared");
        state.clock.compare(0);
        assert_eq!(state.fitness(now), Fitness::Fit);
        state
            .rest
            .begin(now, jitney_cluster::limits::SERVER_DEATHS_MAX);
        assert_eq!(state.fitness(now), Fitness::Resting);
        assert!(state.may_take(), "if there is no other server");
        assert_eq!(
            state.fitness(now + jitney_cluster::limits::SERVER_REST.as_duration()),
            Fitness::Fit
        );
        state.rest.forgive();
        state.is_late = true;
        assert_eq!(state.fitness(now), Fitness::Resting);
        assert!(!state.may_take(), "it could not serve");
        state.clock.compare(-1_001);
        assert_eq!(state.fitness(now), Fitness::Unfit);
    }
}
