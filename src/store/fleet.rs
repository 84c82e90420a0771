//! This server's part of the fleet. In each store it says that it is alive, looks at the other servers, and takes namespaces.
//!
//! A store that is away suspends its own namespaces only: beats, leases, looks and take-overs are of one store. What each server does
//! is decided by `cluster::planner` for all stores together.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tracing::{info, warn};

use super::served::{ServedNamespaces, ServedParts};
use crate::limits;
use crate::system::clock::{Clock, since_boot};
use crate::system::supervisor::{self, Task};
use jitney_broker::access::FailedAttempts;
use jitney_cluster::lease::Lease;
use jitney_cluster::member::MemberState;
use jitney_cluster::planner::{NamespaceKey, Planner};
use jitney_cluster::view::{FleetView, ServerRow, StoreView};
use jitney_postgres::{Store, StoreError, Stores, ownership};

/// Returns the newest kind of record that this release reads.
pub(super) fn formats() -> i32 {
    i32::from(jitney_journal::NEWEST_KIND)
}

/// What a server's part of the fleet is made of.
pub(crate) struct FleetParts {
    pub(crate) stores: Arc<Stores>,
    /// Its name.
    pub(crate) server: String,
    /// Where the other servers reach it.
    pub(crate) address: String,
    /// The name of the namespace that answers to every host that is no other's.
    pub(crate) first: String,
    pub(crate) serving: ServedParts,
    /// The lock of the data directory.
    pub(crate) lock: std::fs::File,
}

/// This server's part of the fleet.
pub(crate) struct Fleet {
    pub(super) stores: Arc<Stores>,
    /// By the names of the stores.
    pub(super) parts: Vec<Arc<FleetStore>>,
    pub(super) server: String,
    pub(super) first: String,
    serving_parts: Arc<ServedParts>,
    planner: Mutex<Planner>,
    owner_changes: watch::Sender<()>,
    _lock: std::fs::File,
}

/// This server's part of the servers that share one store.
pub(super) struct FleetStore {
    /// The place of the store among those of the fleet.
    pub(super) at: usize,
    pub(super) store: Arc<Store>,
    pub(super) server: String,
    /// Where the other servers reach this one.
    pub(super) address: String,
    /// The names and identities of all stores.
    pub(super) stores: Arc<Stores>,
    /// Of this incarnation: what an earlier one has taken is not served by it.
    pub(super) lease: ArcSwap<Lease>,
    pub(super) serving: Arc<ServedNamespaces>,
    pub(super) view: ArcSwap<StoreView>,
    /// Of all stores: see [`FleetStore::publish_view`].
    owner_changes: watch::Sender<()>,
    pub(super) state: Mutex<MemberState>,
    /// Bounds the take-overs at the same time.
    pub(super) takers: Semaphore,
    /// Bounds the sessions that read and record configurations.
    pub(super) configurers: Semaphore,
}

impl Fleet {
    pub(crate) fn new(parts: FleetParts) -> Arc<Self> {
        let serving = Arc::new(parts.serving);
        let (attempts, next) = (FailedAttempts::default(), Arc::new(AtomicUsize::new(0)));
        let owner_changes = watch::Sender::new(());
        let of_stores = parts.stores.all().iter().enumerate().map(|(at, store)| {
            Arc::new(FleetStore {
                at,
                store: Arc::clone(store),
                server: parts.server.clone(),
                address: parts.address.clone(),
                stores: Arc::clone(&parts.stores),
                lease: ArcSwap::default(),
                serving: Arc::new(ServedNamespaces::new(
                    Arc::clone(&serving),
                    at,
                    Arc::clone(store),
                    attempts.clone(),
                    Arc::clone(&next),
                )),
                view: ArcSwap::from_pointee(StoreView {
                    name: store.name().to_owned(),
                    ..StoreView::default()
                }),
                owner_changes: owner_changes.clone(),
                state: Mutex::default(),
                takers: Semaphore::new(jitney_cluster::limits::TAKEOVERS_AT_ONCE),
                configurers: Semaphore::new(limits::CONFIGURED_AT_ONCE),
            })
        });
        Arc::new(Self {
            parts: of_stores.collect(),
            serving_parts: serving,
            stores: parts.stores,
            server: parts.server,
            first: parts.first.to_lowercase(),
            planner: Mutex::default(),
            owner_changes,
            _lock: parts.lock,
        })
    }

    /// Returns the servers and the namespaces, as the last looks found them.
    pub(crate) fn view(&self) -> FleetView {
        let stores = self.parts.iter().map(|part| part.view.load_full());
        FleetView {
            stores: stores.collect(),
        }
    }

    /// Looks at the server that has a namespace, whose name is in lower case, as the last look found it; none while no server
    /// has it.
    pub(crate) fn look_at_owner<T>(
        &self,
        namespace: &str,
        look: impl FnOnce(&ServerRow) -> T,
    ) -> Option<T> {
        let mut views = self.parts.iter().map(|part| part.view.load());
        let view = views.find(|view| view.namespaces.contains_key(namespace))?;
        view.owner_of(namespace).map(look)
    }

    /// Returns a receiver that is notified when a look has found other owners than the one before.
    pub(crate) fn owner_changes(&self) -> watch::Receiver<()> {
        self.owner_changes.subscribe()
    }

    /// Reserves a name; returns whether it was free. A server takes the namespace at its next look.
    ///
    /// # Errors
    ///
    /// The store cannot be reached in which the name is to be reserved, or servers are alive that do not know all stores.
    pub(crate) async fn make_namespace(&self, name: &str) -> Result<bool, StoreError> {
        let names = [name.to_lowercase()];
        Ok(self.stores.make(&self.server, &names).await? == 1)
    }

    /// Returns what shards of all stores are made of.
    pub(super) fn serving_parts(&self) -> &ServedParts {
        &self.serving_parts
    }

    /// Returns this server's name.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Returns whether this server may answer for the namespaces that it has of all stores.
    pub(crate) fn holds_lease(&self) -> bool {
        self.parts
            .iter()
            .all(|part| part.lease.load().holds(since_boot()))
    }

    /// Returns whether a store is another one than at the start: it was restored. This server serves none of its namespaces.
    pub(crate) fn is_replaced(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| part.state().is_replaced)
    }

    /// Returns whether this server may answer for the namespaces that it has of some store.
    pub(crate) fn holds_some_lease(&self) -> bool {
        self.parts
            .iter()
            .any(|part| part.lease.load().holds(since_boot()))
    }

    /// Returns whether this server has joined the servers of some store.
    pub(crate) fn has_joined_some_store(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| !part.state().incarnation.is_empty())
    }

    /// Joins the fleet, and starts the tasks that beat and look.
    ///
    /// # Errors
    ///
    /// Another server that is alive has the name; or a store refuses this one.
    pub(crate) async fn join(
        self: &Arc<Self>,
        stopped: &watch::Receiver<bool>,
    ) -> Result<Vec<Task>, StoreError> {
        let mut joining = JoinSet::new();
        for part in &self.parts {
            let part = Arc::clone(part);
            joining.spawn(async move {
                match part.register().await {
                    Err(error) if error.is_away() && 1 < part.stores.all().len() => {
                        warn!("cannot join the servers of a store yet: {error}");
                        Ok(())
                    }
                    joined => joined,
                }
            });
        }
        while let Some(joined) = joining.join_next().await {
            joined.map_err(|error| StoreError::Lost(error.to_string()))??;
        }
        let clock = Arc::clone(&self.serving_parts.clock);
        let following = follow_clock(clock, stopped.clone());
        let mut tasks = vec![supervisor::spawn("clock", following)];
        for part in &self.parts {
            let (beating, poller, rating) = (Arc::clone(part), Arc::clone(self), Arc::clone(part));
            let keeping = Arc::clone(part);
            let [of_beats, of_looks, of_rates, of_histories] = [0; 4].map(|_| stopped.clone());
            let at = part.at;
            tasks.extend([
                supervisor::spawn("beats", async move { beating.beat(of_beats).await }),
                supervisor::spawn("fleet", async move { poller.poll(at, of_looks).await }),
                supervisor::spawn("rates", async move { rating.rate(of_rates).await }),
                supervisor::spawn("histories", async move {
                    keeping.keep_histories(of_histories).await;
                }),
            ]);
        }
        Ok(tasks)
    }

    /// Waits for a while until each namespace of the stores that are reached has a server, and those of this one are served.
    pub(crate) async fn settle(&self) {
        let until = Instant::now() + jitney_postgres::limits::STORE_ANSWER_WAIT.as_duration();
        while Instant::now() < until {
            let view = self.view();
            let mut reached = view
                .stores
                .iter()
                .filter(|store| store.is_reached)
                .peekable();
            let is_reached = reached.peek().is_some();
            let mut all = reached.flat_map(|store| store.namespaces.values());
            let is_settled = all.all(|it| it.quarantined.is_some() || it.server.is_some());
            if is_reached && is_settled && self.planner().is_idle() {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
        warn!("some namespaces have no server yet");
    }

    pub(super) fn planner(&self) -> MutexGuard<'_, Planner> {
        // No state here is partial when a thread panics.
        self.planner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives every namespace away, and leaves the fleet.
    pub(crate) async fn leave(&self) {
        let mut left = JoinSet::new();
        for part in &self.parts {
            let ids = part.serving.ids().into_iter();
            let keys = ids.map(|id| NamespaceKey { store: part.at, id });
            self.planner().begin_releases(&keys.collect::<Vec<_>>());
            let part = Arc::clone(part);
            left.spawn(async move { part.leave().await });
        }
        while left.join_next().await.is_some() {}
    }
}

/// Looks at the clock until the stop, also while no owner does: it doubts itself after a time without a look.
async fn follow_clock(clock: Arc<Clock>, mut stopped: watch::Receiver<bool>) {
    let mut seen = clock.seen();
    let mut ticks = interval(limits::CLOCK_LOOK.as_duration());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
        clock.look(&mut seen);
    }
}

impl FleetStore {
    pub(super) fn state(&self) -> MutexGuard<'_, MemberState> {
        // No state here is partial when a thread panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes a view, and notifies the connections that wait for other owners if an owner has changed.
    pub(super) fn publish_view(&self, view: StoreView) {
        let view = Arc::new(view);
        let before = self.view.swap(Arc::clone(&view));
        if !view.has_same_owners(&before) {
            self.owner_changes.send_replace(());
        }
    }

    /// Gives every namespace of the store away, and leaves its servers. A handover that is at work, or that fails, is completed by
    /// the departure.
    async fn leave(&self) {
        let incarnation = self.state().incarnation.clone();
        let told = self.in_time("that this server leaves", self.tell_leaving(&incarnation));
        let told = told.await;
        if let Err(error) = told {
            warn!("the other servers do not know that this one leaves: {error}");
        }
        self.end_takeovers().await;
        let mut given = JoinSet::new();
        let fences = self.serving.fences_with_history();
        self.serving.leave_histories(fences).await;
        for id in self.serving.ids() {
            let serving = Arc::clone(&self.serving);
            given.spawn(timeout(limits::LEAVE_WAIT.as_duration(), async move {
                serving.give(id).await;
            }));
        }
        while given.join_next().await.is_some() {}
        self.state().has_left = true;
        self.depart().await;
        self.store.close();
    }

    /// Waits for a step of the departure, but not for long: no store keeps a server from stopping.
    async fn in_time<T>(
        &self,
        what: &'static str,
        step: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let wait = limits::LEAVE_WAIT.as_duration();
        let done = timeout(wait, Box::pin(step)).await;
        done.unwrap_or_else(|_| Err(StoreError::slow(self.store.place(), what, wait)))
    }

    /// Records that this server has left, with all that it still has in the store. That is tried until its silence is a death
    /// for the other servers.
    async fn depart(&self) {
        // It may have joined anew since it began to leave.
        let (incarnation, is_replaced) = {
            let state = self.state();
            (state.incarnation.clone(), state.is_replaced)
        };
        if incarnation.is_empty() || is_replaced {
            return;
        }
        let began = Instant::now();
        let (store, silence) = (
            self.store.name(),
            jitney_cluster::limits::HEARTBEAT_SILENCE_MAX.as_duration(),
        );
        loop {
            let departed = ownership::depart(&self.store, &self.server, &incarnation);
            match self.in_time("that this server has left", departed).await {
                Ok(0) => return,
                Ok(given) => {
                    info!(
                        store,
                        given, "gave namespaces away whose handover or take-over had not ended"
                    );
                    return;
                }
                Err(error) if silence <= began.elapsed() => {
                    warn!(
                        store,
                        "the other servers do not know that this one has left, and count a death for each namespace that it \
                         could not give away: {error}"
                    );
                    return;
                }
                Err(_) => sleep(jitney_postgres::limits::STORE_RETRY_MAX.as_duration()).await,
            }
        }
    }

    /// Begins no more take-overs, and waits a while for those that are at work: what they take is given away, too, and none of them reads
    /// a log when the process ends.
    async fn end_takeovers(&self) {
        self.takers.close();
        let ended = async {
            while self.takers.available_permits() < jitney_cluster::limits::TAKEOVERS_AT_ONCE {
                sleep(limits::OWNER_LOOK.as_duration()).await;
            }
        };
        let wait = limits::TAKEOVERS_END_WAIT.as_duration();
        if timeout(wait, ended).await.is_err() {
            warn!(
                store = self.store.name(),
                "take-overs have not ended in time: other servers take these namespaces"
            );
        }
    }

    /// Tells the other servers that this one gives its namespaces away, and takes none.
    async fn tell_leaving(&self, incarnation: &str) -> Result<(), StoreError> {
        let session = self.store.take().await?;
        let sql = "update server set leaving = true where name = $1 and incarnation::text = $2";
        session.execute(sql, &[&self.server, &incarnation]).await?;
        self.store.give_back(session);
        Ok(())
    }
}
