//! The servers that share a store: their beats, who is alive, and which server has which namespace.
//!
//! A server beats on a session of its own, and only while all its owners make progress. Every half second it looks at the others: a
//! beat that it has seen unchanged for 3 s of its own clock is declared dead by a comparison of that beat in the database, and
//! its namespaces are free. What each server does then is decided by `decide.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{error, info, warn};

use super::connect::{Session, Store};
use super::decide::{self, Seen};
use super::fence::{random_id, random_uuid};
use super::lease::{self, Lease};
use super::log::unsigned;
use super::ownership::{self, Owned, Taker};
use super::serving::{Serving, ServingParts};
use super::{StoreError, checks, schema};
use crate::limits;
use crate::server::supervisor::{self, Task};

/// The newest record kind that this release reads. It is recorded for later releases, and not compared yet.
const FORMATS: i32 = 17;

/// What a server of the fleet is.
pub(in crate::server) struct FleetParts {
    /// Its name.
    pub(in crate::server) server: String,
    /// Where the other servers reach it.
    pub(in crate::server) address: String,
    /// The name of the namespace that answers to every host that is no other's.
    pub(in crate::server) first: String,
    pub(in crate::server) serving: ServingParts,
    /// The lock of the data directory.
    pub(in crate::server) lock: std::fs::File,
}

/// The servers and the namespaces, as the last look at the store found them.
#[derive(Debug, Clone, Default)]
pub(in crate::server) struct View {
    /// By their names.
    pub(in crate::server) servers: Vec<ServerSeen>,
    /// By their names in lower case.
    pub(in crate::server) namespaces: BTreeMap<String, NamespaceSeen>,
    /// What an operator of the database is to know.
    pub(in crate::server) database: DatabaseSeen,
    /// When that was; none before the first look.
    pub(in crate::server) looked: Option<Instant>,
}

/// The state of the database that ends in a stop of it, if it is left alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::server) struct DatabaseSeen {
    /// Transactions since the oldest that no table has forgotten: at two billion it takes no writes.
    pub(in crate::server) transaction_age: i64,
    /// Replication slots that no standby uses: they keep the log of the database for ever.
    pub(in crate::server) inactive_slots: i64,
    /// Bytes that the standby which is furthest behind has not flushed.
    pub(in crate::server) standby_lag: i64,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct ServerSeen {
    pub(in crate::server) name: String,
    pub(in crate::server) incarnation: String,
    pub(in crate::server) beat: i64,
    pub(in crate::server) is_alive: bool,
    pub(in crate::server) address: String,
    /// It gives its namespaces away, and takes none.
    pub(in crate::server) is_leaving: bool,
}

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct NamespaceSeen {
    pub(in crate::server) id: i64,
    pub(in crate::server) epoch: i64,
    /// The live server that owns it.
    pub(in crate::server) server: Option<String>,
    /// Why it is left alone.
    pub(in crate::server) quarantined: Option<String>,
    log_store: u64,
    name: String,
    /// A server that has died owned it last.
    was_owned: bool,
    applied: Option<String>,
    rate: i64,
}

/// This server's part of the fleet.
pub(in crate::server) struct Fleet {
    pub(super) store: Arc<Store>,
    server: String,
    address: String,
    first: String,
    /// Of this incarnation: what an earlier one has taken is not served by it.
    pub(super) lease: ArcSwap<Lease>,
    pub(super) serving: Arc<Serving>,
    view: ArcSwap<View>,
    state: Mutex<State>,
    /// Bounds the take-overs at the same time.
    takers: Semaphore,
    _lock: std::fs::File,
}

#[derive(Default)]
pub(super) struct State {
    incarnation: String,
    /// The beat of each incarnation, and since when it is seen.
    pub(super) beats: BTreeMap<String, (i64, Instant)>,
    /// Namespaces that are being taken over.
    taking: BTreeSet<i64>,
    /// Since when namespaces are seen without an owner.
    free: BTreeMap<i64, Instant>,
    /// When a namespace was last given away, or a server came or went.
    moved: Option<Instant>,
    live: Vec<String>,
    /// Since when namespaces are served here.
    since: BTreeMap<i64, Instant>,
    /// The clock is off from the database's.
    is_clock_odd: bool,
    /// By how much this server's clock is ahead of the database's, in milliseconds.
    pub(super) clock_offset: i64,
    /// Namespaces that are being given away.
    giving: BTreeSet<i64>,
}

impl Fleet {
    pub(in crate::server) fn new(parts: FleetParts) -> Arc<Self> {
        let store = Arc::clone(&parts.serving.store);
        Arc::new(Self {
            store,
            server: parts.server,
            address: parts.address,
            first: parts.first.to_lowercase(),
            serving: Arc::new(Serving::new(parts.serving)),
            lease: ArcSwap::default(),
            view: ArcSwap::default(),
            state: Mutex::default(),
            takers: Semaphore::new(limits::TAKEOVERS_AT_ONCE),
            _lock: parts.lock,
        })
    }

    /// Returns the servers and the namespaces, as the last look found them.
    pub(in crate::server) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Reserves a name; returns whether it was free. A server takes the namespace at its next look.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(in crate::server) async fn make_namespace(&self, name: &str) -> Result<bool, StoreError> {
        let session = self.store.take().await?;
        let made = make_namespace(&session, name).await?;
        self.store.give_back(session);
        Ok(made)
    }

    /// Returns this server's name.
    pub(in crate::server) fn server(&self) -> &str {
        &self.server
    }

    /// Returns whether this server may answer.
    pub(in crate::server) fn holds_lease(&self) -> bool {
        self.lease.load().holds()
    }

    /// Joins the fleet, and starts the tasks that beat and look.
    ///
    /// # Errors
    ///
    /// The store's, or another server that is alive has the name.
    pub(in crate::server) async fn join(
        self: &Arc<Self>,
        stopped: &watch::Receiver<bool>,
    ) -> Result<Vec<Task>, StoreError> {
        self.register(true).await?;
        let (beating, looking) = (Arc::clone(self), Arc::clone(self));
        let (of_beats, of_looks) = (stopped.clone(), stopped.clone());
        Ok(vec![
            supervisor::spawn("beats", async move { beating.beat(of_beats).await }),
            supervisor::spawn("fleet", async move { looking.look(of_looks).await }),
        ])
    }

    /// Waits for a while until each namespace has a server, and those of this one are served.
    pub(in crate::server) async fn settle(&self) {
        let until = Instant::now() + limits::STORE_ANSWER_WAIT.as_duration();
        while Instant::now() < until {
            let view = self.view();
            let mut all = view
                .namespaces
                .values()
                .filter(|it| it.quarantined.is_none());
            if !view.servers.is_empty()
                && all.all(|it| it.server.is_some())
                && self.state().taking.is_empty()
            {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
        warn!("some namespaces have no server yet");
    }

    pub(super) fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // No state here is partial when a thread panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers this server under a new incarnation. One of the same name that still beats keeps the name.
    async fn register(&self, waits: bool) -> Result<(), StoreError> {
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
        let incarnation = random_uuid();
        let sql = "insert into server (name, incarnation, beat, alive, address, formats) \
                   values ($1, $2::text::uuid, 1, true, $3, $4) on conflict (name) do update set \
                   incarnation = excluded.incarnation, beat = 1, alive = true, leaving = false, address = excluded.address, \
                   formats = excluded.formats \
                   where server.incarnation::text = $5 and server.beat = $6";
        let sent = lease::now();
        let done = session
            .execute(
                sql,
                &[
                    &self.server,
                    &incarnation,
                    &self.address,
                    &FORMATS,
                    &seen.0,
                    &seen.1,
                ],
            )
            .await?;
        if done == 0 {
            return Err(self.store.unfit(format!(
                "another server with the name {} has come: give this one another --server",
                self.server
            )));
        }
        self.store.give_back(session);
        self.state().incarnation = incarnation;
        let lease = Lease::default();
        lease.renew(sent);
        self.lease.store(Arc::new(lease));
        Ok(())
    }

    fn taker(&self) -> Taker {
        Taker {
            server: self.server.clone(),
            incarnation: self.state().incarnation.clone(),
        }
    }

    /// Beats until the stop.
    async fn beat(&self, mut stopped: watch::Receiver<bool>) {
        let mut ticks = interval(limits::BEAT.as_duration());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut session: Option<Session> = None;
        let mut is_reported = false;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            if !self.serving.makes_progress() {
                error!("an owner makes no progress: this server does not say that it is alive");
                continue;
            }
            let sent = lease::now();
            let done = match session.take() {
                Some(open) => self.beat_once(open).await,
                None => match self.store.session().await {
                    Ok(open) => self.beat_once(open).await,
                    Err(error) => Err(error),
                },
            };
            match done {
                Ok((open, true)) => {
                    self.lease.load().renew(sent);
                    session = Some(open);
                    is_reported = false;
                }
                Ok((_, false)) => self.declared_dead().await,
                Err(error) if !is_reported => {
                    warn!("no beat: {error}");
                    is_reported = true;
                }
                Err(_) => {}
            }
        }
    }

    async fn beat_once(&self, session: Session) -> Result<(Session, bool), StoreError> {
        let incarnation = self.state().incarnation.clone();
        let sql = "update server set beat = beat + 1 where name = $1 and incarnation = $2::text::uuid and alive";
        let done = session.execute(sql, &[&self.server, &incarnation]).await?;
        Ok((session, done == 1))
    }

    /// The other servers have taken what this one had: it begins anew.
    async fn declared_dead(&self) {
        warn!(
            "the other servers have declared this one dead: its namespaces are dropped, and it joins anew"
        );
        self.lease.load().end();
        self.serving.lose_all();
        if let Err(error) = self.register(false).await {
            warn!("cannot join anew: {error}");
        }
    }

    /// Looks at the store until the stop, and does what is to be done.
    async fn look(self: &Arc<Self>, mut stopped: watch::Receiver<bool>) {
        let mut ticks = interval(limits::BEAT.as_duration());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_reported = false;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            match self.look_once().await {
                Ok(()) => is_reported = false,
                Err(error) if !is_reported => {
                    warn!("cannot look at the other servers: {error}");
                    is_reported = true;
                }
                Err(_) => {}
            }
        }
    }

    async fn look_once(self: &Arc<Self>) -> Result<(), StoreError> {
        let session = self.store.take().await?;
        let is_in_time = self.compare_clocks(&session).await?;
        let database = self.database(&session).await?;
        let servers = self.servers(&session).await?;
        let namespaces = self.namespaces(&session, &servers).await?;
        for dead in self.silent(&servers) {
            let sql = "update server set alive = false where name = $1 and incarnation = $2::text::uuid \
                       and beat = $3 and alive";
            let done = session
                .execute(sql, &[&dead.name, &dead.incarnation, &dead.beat])
                .await?;
            if 0 < done {
                warn!(
                    server = dead.name,
                    "a server is silent: its namespaces are taken over"
                );
            }
        }
        self.store.give_back(session);
        let names = namespaces.keys().map(|name| &name[..]);
        let shards = &self.serving.parts().shards;
        let names: Vec<&str> = names.collect();
        shards.change_routes(|routes| routes.with_known(&self.first, names.iter().copied()));
        let seen = self.decide(&servers, &namespaces, is_in_time);
        self.view.store(Arc::new(View {
            servers,
            namespaces,
            database,
            looked: Some(Instant::now()),
        }));
        for namespace in seen.take {
            self.start_to_take(namespace);
        }
        for id in seen.give {
            let serving = Arc::clone(&self.serving);
            let fleet = Arc::clone(self);
            let give = async move {
                serving.give(id).await;
                fleet.state().giving.remove(&id);
            };
            supervisor::spawn("handover", give).allow_end();
        }
        self.note_health().await
    }

    /// Compares this server's clock with the database's; returns whether namespaces may be taken by it. A clock that is far off would end
    /// times to live, and the memory of duplicates, too early.
    async fn compare_clocks(&self, session: &Session) -> Result<bool, StoreError> {
        let query = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";
        let (began, before) = (Instant::now(), self.serving.parts().clock.now());
        let row = session.one(query, &[]).await?;
        let found: i64 = self.store.get(&row, 0)?;
        let took = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let ahead = before.as_millis() + took / 2 - found;
        // The answer may have taken its time on one way.
        let off = ahead.abs().saturating_sub(took / 2);
        let is_in_time = off <= limits::CLOCK_SKEW_MAX.as_millis();
        let is_odd = limits::CLOCK_SKEW_WARN.as_millis() < off;
        let was_odd = {
            let mut state = self.state();
            state.clock_offset = ahead.signum() * off;
            std::mem::replace(&mut state.is_clock_odd, is_odd)
        };
        if is_odd && !was_odd {
            warn!(
                milliseconds = off,
                "this server's clock is off from the database's: more than a second, and it takes no namespaces. Synchronize the clocks"
            );
        }
        Ok(is_in_time)
    }

    async fn database(&self, session: &Session) -> Result<DatabaseSeen, StoreError> {
        let query = "select (select max(age(datfrozenxid))::bigint from pg_database), \
                     (select count(*) from pg_replication_slots where not active), \
                     (select coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn)), 0)::bigint from pg_stat_replication)";
        let row = session.one(query, &[]).await?;
        Ok(DatabaseSeen {
            transaction_age: self.store.get(&row, 0)?,
            inactive_slots: self.store.get(&row, 1)?,
            standby_lag: self.store.get(&row, 2)?,
        })
    }

    async fn servers(&self, session: &Session) -> Result<Vec<ServerSeen>, StoreError> {
        let query = "select name, incarnation::text, beat, alive, address, leaving from server order by name";
        let rows = session.rows(query, &[]).await?;
        let servers = rows.iter().map(|row| {
            Ok(ServerSeen {
                name: self.store.get(row, 0)?,
                incarnation: self.store.get(row, 1)?,
                beat: self.store.get(row, 2)?,
                is_alive: self.store.get(row, 3)?,
                address: self.store.get(row, 4)?,
                is_leaving: self.store.get(row, 5)?,
            })
        });
        servers.collect()
    }

    async fn namespaces(
        &self,
        session: &Session,
        servers: &[ServerSeen],
    ) -> Result<BTreeMap<String, NamespaceSeen>, StoreError> {
        let query = "select n.id, n.name, n.log_store, n.epoch, n.server, n.incarnation::text, \
                     s.applied, s.quarantined, coalesce(s.rate, 0) \
                     from namespace n left join namespace_state s on s.namespace = n.id order by n.id";
        let rows = session.rows(query, &[]).await?;
        let all = rows.iter().map(|row| {
            let get = |column| self.store.get::<Option<String>>(row, column);
            let (server, incarnation) = (get(4)?, get(5)?);
            let is_live = |it: &&ServerSeen| {
                it.is_alive
                    && Some(&it.name) == server.as_ref()
                    && Some(&it.incarnation) == incarnation.as_ref()
            };
            let live = servers.iter().find(is_live);
            let name: String = self.store.get(row, 1)?;
            let quarantined = get(7)?;
            let found = NamespaceSeen {
                id: self.store.get(row, 0)?,
                epoch: self.store.get(row, 3)?,
                was_owned: live.is_none() && server.is_some(),
                // Its owner has stopped it.
                server: live
                    .filter(|_| quarantined.is_none())
                    .map(|it| it.name.clone()),
                quarantined,
                log_store: unsigned(self.store.get(row, 2)?),
                applied: get(6)?,
                rate: self.store.get(row, 8)?,
                name: name.clone(),
            };
            Ok((name.to_lowercase(), found))
        });
        all.collect()
    }

    /// Returns the servers whose beats were unchanged for too long.
    fn silent(&self, servers: &[ServerSeen]) -> Vec<ServerSeen> {
        let now = Instant::now();
        let mut state = self.state();
        let mut silent = Vec::new();
        for server in servers
            .iter()
            .filter(|it| it.is_alive && it.name != self.server)
        {
            let beat = state
                .beats
                .entry(server.incarnation.clone())
                .or_insert((server.beat, now));
            if beat.0 != server.beat {
                *beat = (server.beat, now);
            }
            if limits::BEAT_SILENCE_MAX.as_duration() <= now.duration_since(beat.1) {
                silent.push(server.clone());
            }
        }
        let known = |incarnation: &String| servers.iter().any(|it| it.incarnation == *incarnation);
        state.beats.retain(|incarnation, _| known(incarnation));
        silent
    }

    fn decide(
        &self,
        servers: &[ServerSeen],
        namespaces: &BTreeMap<String, NamespaceSeen>,
        is_in_time: bool,
    ) -> Decided {
        let now = Instant::now();
        // One that leaves takes nothing; what it has is given away by it.
        let live = servers.iter().filter(|it| it.is_alive && !it.is_leaving);
        let live: Vec<String> = live.map(|it| it.name.clone()).collect();
        let served = self.serving.ids();
        let mut state = self.state();
        let is_at_work = |id: &i64| {
            served.contains(id) || state.taking.contains(id) || state.giving.contains(id)
        };
        let mut all: Vec<Seen> = namespaces.values().map(NamespaceSeen::seen).collect();
        for namespace in &mut all {
            // This server took it, and does not serve it: its log could not be read, or the answer was lost.
            let is_own = namespace.owner.as_ref() == Some(&self.server);
            namespace
                .owner
                .take_if(|_| is_own && !is_at_work(&namespace.id));
        }
        all.sort_by_key(|it| it.id);
        if state.live != live {
            state.live.clone_from(&live);
            state.moved = Some(now);
        }
        let late = state.late(&all, now);
        let mut take = decide::to_take(&self.server, &live, &all);
        take.extend(late);
        let may_take = is_in_time && live.contains(&self.server);
        let take: BTreeSet<i64> = take
            .into_iter()
            .filter(|id| may_take && !state.taking.contains(id) && !served.contains(id))
            .collect();
        let settled = state
            .moved
            .is_none_or(|at| SETTLED < now.duration_since(at));
        let most = if settled {
            limits::HANDOVERS_AT_ONCE
        } else {
            0
        };
        let mut give = decide::to_give(&self.server, &live, &all, most);
        give.retain(|id| served.contains(id));
        if !give.is_empty() {
            state.moved = Some(now);
            state.giving.extend(&give);
        }
        state.taking.extend(&take);
        let take = namespaces.values().filter(|it| take.contains(&it.id));
        Decided {
            take: take.cloned().collect(),
            give,
        }
    }

    fn start_to_take(self: &Arc<Self>, namespace: NamespaceSeen) {
        let fleet = Arc::clone(self);
        let take = async move {
            let id = namespace.id;
            let name = namespace.name.clone();
            // Each has sessions of the database, and memory for what it reads.
            let permit = fleet.takers.acquire().await;
            match Box::pin(fleet.take(namespace)).await {
                Ok(()) => {}
                Err(StoreError::Fenced) => info!(namespace = name, "another server was faster"),
                Err(error) => {
                    error!(
                        namespace = name,
                        "a namespace cannot be taken over: {error}"
                    );
                    fleet.leave_alone(id, &error).await;
                }
            }
            drop(permit);
            fleet.state().taking.remove(&id);
        };
        supervisor::spawn("take-over", take).allow_end();
    }

    async fn take(self: &Arc<Self>, seen: NamespaceSeen) -> Result<(), StoreError> {
        let began = Instant::now();
        if seen.was_owned {
            self.count_failure(&seen).await?;
        }
        let namespace = Owned {
            id: seen.id,
            name: seen.name.clone(),
            log_store: seen.log_store,
            epoch: seen.epoch,
        };
        let serving = Arc::clone(&self.serving);
        let make = move |owned: &Owned| serving.gateway(owned);
        let lease = self.lease.load_full();
        let owned = ownership::take(&self.store, &self.taker(), namespace, make).await?;
        let configuration = self.configuration();
        let is_applied = seen.applied.is_some();
        self.serving
            .begin(owned, lease, (&configuration, is_applied))?;
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        info!(namespace = seen.name, millis, "took a namespace over");
        self.state().since.insert(seen.id, Instant::now());
        let namespace = (seen.id, &seen.name[..]);
        self.configure_taken(&configuration, namespace, seen.applied.clone())
            .await;
        Ok(())
    }

    /// Counts that the owner of a namespace has died, and leaves it alone if that is too often.
    async fn count_failure(&self, seen: &NamespaceSeen) -> Result<(), StoreError> {
        let session = self.store.take().await?;
        let sql = "insert into namespace_state (namespace, failures) values ($1, 1) \
                   on conflict (namespace) do update set failures = namespace_state.failures + 1 returning failures";
        let row = session.one(sql, &[&seen.id]).await?;
        let failures: i32 = self.store.get(&row, 0)?;
        self.store.give_back(session);
        if limits::TAKEOVERS_MAX < failures {
            return Err(StoreError::Lost(format!(
                "its owner has died {failures} times without a healthy minute between"
            )));
        }
        Ok(())
    }

    /// Puts a namespace into quarantine, if its log is at fault; an operator lets it out.
    async fn leave_alone(&self, id: i64, error: &StoreError) {
        let is_its_fault = matches!(error, StoreError::Lost(_) | StoreError::Journal(_));
        if !is_its_fault {
            return;
        }
        let why = error.to_string();
        let put = ownership::quarantine(&self.store, id, &why);
        if let Err(error) = put.await {
            warn!("a namespace could not be put into quarantine: {error}");
        }
    }

    /// Forgets the failures of namespaces that were served for long.
    async fn note_health(&self) -> Result<(), StoreError> {
        let healthy: Vec<i64> = {
            let mut state = self.state();
            let long = limits::TAKEOVER_HEALTHY.as_duration();
            let found = state
                .since
                .iter()
                .filter(|(_, since)| long < since.elapsed());
            let found: Vec<i64> = found.map(|(id, _)| *id).collect();
            for id in &found {
                state.since.remove(id);
            }
            found
        };
        if healthy.is_empty() {
            return Ok(());
        }
        let session = self.store.take().await?;
        let sql = "update namespace_state set failures = 0 where namespace = any($1)";
        session.execute(sql, &[&healthy]).await?;
        self.store.give_back(session);
        Ok(())
    }

    /// Gives every namespace away, and leaves the fleet.
    pub(in crate::server) async fn leave(&self) {
        let incarnation = self.state().incarnation.clone();
        let told = async {
            let session = self.store.take().await?;
            let sql =
                "update server set leaving = true where name = $1 and incarnation = $2::text::uuid";
            session.execute(sql, &[&self.server, &incarnation]).await?;
            self.store.give_back(session);
            Ok::<(), StoreError>(())
        };
        if let Err(error) = told.await {
            warn!("the other servers do not know that this one leaves: {error}");
        }
        let all = self.serving.ids();
        self.state().giving.extend(&all);
        let mut given = tokio::task::JoinSet::new();
        for id in all {
            let serving = Arc::clone(&self.serving);
            given.spawn(async move { serving.give(id).await });
        }
        while given.join_next().await.is_some() {}
        let left = async {
            let session = self.store.take().await?;
            let sql =
                "update server set alive = false where name = $1 and incarnation = $2::text::uuid";
            session.execute(sql, &[&self.server, &incarnation]).await
        };
        if let Err(error) = left.await {
            warn!("the other servers do not know that this one has left: {error}");
        }
        // A take-over that has not ended is the other servers'.
        self.store.close();
    }
}

/// How long the servers and the owners of namespaces must be the same before a namespace is moved.
const SETTLED: Duration = Duration::from_secs(5);

struct Decided {
    take: Vec<NamespaceSeen>,
    give: Vec<i64>,
}

impl NamespaceSeen {
    fn seen(&self) -> Seen {
        Seen {
            id: self.id,
            owner: self.server.clone(),
            rate: self.rate,
            is_quarantined: self.quarantined.is_some(),
        }
    }
}

impl State {
    /// Returns the namespaces that have had no server for long: the one that should have taken them may not be able to.
    fn late(&mut self, all: &[Seen], now: Instant) -> Vec<i64> {
        let free = all
            .iter()
            .filter(|it| it.owner.is_none() && !it.is_quarantined);
        let free: BTreeSet<i64> = free.map(|it| it.id).collect();
        // While the servers take some, those that are to take the others are at work.
        let are_taken = free.len() < self.free.len();
        self.free.retain(|id, _| free.contains(id) && !are_taken);
        for id in free {
            self.free.entry(id).or_insert(now);
        }
        let overdue = 3 * limits::BEAT.as_duration();
        let late = self.free.iter();
        let late = late.filter(|(_, since)| overdue < now.duration_since(**since));
        late.map(|(id, _)| *id).collect()
    }
}

/// What a store is to have before servers share it.
pub(in crate::server) struct Wanted<'a> {
    /// The names of the namespaces of the configuration, the first one first.
    pub(in crate::server) namespaces: Vec<&'a str>,
    /// The text of the configuration file, if there is one, and its hash.
    pub(in crate::server) config: Option<(&'a str, &'a str)>,
    /// The root key and the operator's key, where the store has none yet; none where keys are not verified.
    pub(in crate::server) new_keys: Option<(String, String)>,
    /// The authority of the servers' certificates with its key, where the store has none yet.
    pub(in crate::server) new_authority: String,
    /// Whether a database with which messages can be lost is used all the same.
    pub(in crate::server) is_unchecked: bool,
}

/// What all servers of a store have in common.
pub(in crate::server) struct Common {
    /// The text of the configuration that counts, its hash, and its number.
    pub(in crate::server) config: Option<(String, String, i64)>,
    /// The number of the text of this server's file.
    pub(in crate::server) file_number: Option<i64>,
    pub(in crate::server) root_key: Option<String>,
    pub(in crate::server) operator_key: Option<String>,
    pub(in crate::server) first: String,
    /// The authority of the servers' certificates, with its key, as PEM.
    pub(in crate::server) peer_authority: String,
}

/// Makes the tables, the namespaces and the keys that are not there, and returns what the store has.
///
/// # Errors
///
/// The store's.
pub(in crate::server) async fn prepare(
    store: &Store,
    wanted: &Wanted<'_>,
) -> Result<Common, StoreError> {
    let session = store.bare_session().await?;
    checks::check(store, &session, wanted.is_unchecked).await?;
    drop(session);
    schema::make(store).await?;
    let session = store.take().await?;
    if let Some((text, hash)) = wanted.config {
        let sql = "insert into configuration (hash, text) values ($1, $2) on conflict do nothing";
        session.execute(sql, &[&hash, &text]).await?;
    }
    if let Some(first) = wanted.namespaces.first() {
        let sql = "update store set first_namespace = $1 where first_namespace is null";
        session.execute(sql, &[first]).await?;
    }
    for name in &wanted.namespaces {
        make_namespace(&session, name).await?;
    }
    if let Some((root, operator)) = &wanted.new_keys {
        let sql = "update store set root_key = coalesce(root_key, $1), operator_key = coalesce(operator_key, $2)";
        session.execute(sql, &[root, operator]).await?;
    }
    let sql = "update store set peer_authority = $1 where peer_authority is null";
    session.execute(sql, &[&wanted.new_authority]).await?;
    let query = "select root_key, operator_key, first_namespace, peer_authority from store";
    let row = session.one(query, &[]).await?;
    let query = "select text, hash, number from configuration order by number desc limit 1";
    let config = session.optional(query, &[]).await?;
    let config = config.map(|row| {
        Ok::<_, StoreError>((
            store.get(&row, 0)?,
            store.get(&row, 1)?,
            store.get(&row, 2)?,
        ))
    });
    let hash = wanted.config.map(|(_, hash)| hash);
    let query = "select number from configuration where hash = $1";
    let file = session.optional(query, &[&hash]).await?;
    let found = Common {
        config: config.transpose()?,
        file_number: file.map(|row| store.get(&row, 0)).transpose()?,
        root_key: store.get(&row, 0)?,
        operator_key: store.get(&row, 1)?,
        first: store.get::<Option<String>>(&row, 2)?.unwrap_or_default(),
        peer_authority: store.get(&row, 3)?,
    };
    store.give_back(session);
    Ok(found)
}

/// Reserves a namespace's name; it is taken over by a server after that.
///
/// Returns whether it was free.
pub(super) async fn make_namespace(session: &Session, name: &str) -> Result<bool, StoreError> {
    // The store number of a log is random, and positive in the database.
    let log_store = random_id() & i64::MAX;
    let sql =
        "insert into namespace (name, log_store) values ($1, $2) on conflict (name) do nothing";
    let done = session
        .execute(sql, &[&name.to_lowercase(), &log_store])
        .await?;
    Ok(done == 1)
}
