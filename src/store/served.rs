//! Namespaces that this server owns: each is a shard of its own, begun when it was taken over, and ended when it is given away
//! or lost.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, timeout};
use tracing::{error, info, warn};

use super::configuration::{self, StoreConfiguration};
use super::take_over::OwnedShard;
use crate::host::history::History;
use crate::host::mailbox::Mailbox;
use crate::host::memory::Plan;
use crate::host::oidc::OidcArgs;
use crate::host::owner::{Owner, OwnerParts, StoreEvent, StoreParts};
use crate::host::owner_message::{NamespaceKeys, OwnerMessage, Reload};
use crate::host::reader::Reader;
use crate::host::shards::{Member, Shards};
use crate::host::traces::Traces;
use crate::host::vitals::Vitals;
use crate::host::{provision, reload};
use crate::limits;
use crate::system::clock::Clock;
use crate::system::runtime::ShardRuntime;
use crate::system::supervisor::{self, Task};
use jitney_base::memory::Memory;
use jitney_base::rights::Key;
use jitney_broker::access::{FailedAttempts, Profile};
use jitney_broker::namespace::StepContext;
use jitney_cluster::heartbeat::Progress;
use jitney_cluster::lease::Lease;
use jitney_cluster::view::NamespaceRow;
use jitney_config::Namespace;
use jitney_gateway::Gateway;
use jitney_journal::Checkpoints;
use jitney_postgres::{Fence, Owned, Store, StoreError, ownership};
use jitney_shard::routing::ShardIndex;
use jitney_shard::{Input, Recovering, Shard};

/// What shards of namespaces in a store are made of.
pub(crate) struct ServedParts {
    pub(crate) shards: Arc<Shards>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) history: Arc<History>,
    pub(crate) memory: Memory,
    pub(crate) plan: Plan,
    pub(crate) profile: Profile,
    pub(crate) oidc: OidcArgs,
    pub(crate) keys_wanted: Arc<Notify>,
    pub(crate) traces: Option<Traces>,
    /// For the namespaces that have no keys in the configuration.
    pub(crate) root_key: Option<Key>,
    /// The configuration that is applied.
    pub(crate) configuration: ArcSwap<StoreConfiguration>,
    /// Entities that the configuration names no longer are deleted.
    pub(crate) config_deletes: bool,
    pub(crate) runtimes: Vec<ShardRuntime>,
}

/// Bytes of batches that may wait for the owner of one namespace.
const MAILBOX_BYTES: usize = if limits::MAILBOX_BYTES_MIN < limits::MAILBOX_BYTES_MAX / 4 {
    limits::MAILBOX_BYTES_MAX / 4
} else {
    limits::MAILBOX_BYTES_MIN
};

/// The namespaces of a store that this server owns.
pub(crate) struct ServedNamespaces {
    parts: Arc<ServedParts>,
    /// The place of the store among those of the fleet.
    at: usize,
    store: Arc<Store>,
    attempts: FailedAttempts,
    /// The index of the next shard.
    next: Arc<AtomicUsize>,
    served: Mutex<BTreeMap<i64, Served>>,
}

/// A namespace that is served.
struct Served {
    /// In lower case.
    name: String,
    shard: ShardIndex,
    fence: Arc<Fence>,
    owner: Mailbox,
    vitals: Arc<Vitals>,
    /// Tells the owner that another server has the namespace.
    teller: watch::Sender<StoreEvent>,
    history: HistoryInStore,
}

/// What is known of the history that the owner before has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HistoryInStore {
    /// It is still to be read, and must not be replaced.
    Unread,
    /// It was read, or cannot be.
    Read,
}

impl ServedNamespaces {
    /// Takes the store with its place, and what all stores of the fleet share.
    pub(super) fn new(
        parts: Arc<ServedParts>,
        at: usize,
        store: Arc<Store>,
        attempts: FailedAttempts,
        next: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            parts,
            at,
            store,
            attempts,
            next,
            served: Mutex::default(),
        }
    }

    fn served(&self) -> MutexGuard<'_, BTreeMap<i64, Served>> {
        // No state here is partial when a thread panics.
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether all owners make progress.
    pub(super) fn progress(&self) -> Progress {
        let now = Instant::now();
        let served = self.served();
        if served.values().any(|served| served.vitals.hangs(now)) {
            return Progress::Stuck;
        }
        Progress::Made
    }

    /// Returns the namespaces that are served, by their numbers.
    pub(super) fn ids(&self) -> Vec<i64> {
        self.served().keys().copied().collect()
    }

    /// Returns the numbers of the namespaces that are served, and where their owners are reached.
    pub(super) fn mailboxes(&self) -> Vec<(i64, Mailbox)> {
        let served = self.served();
        let all = served.iter().map(|(id, it)| (*id, it.owner.clone()));
        all.collect()
    }

    /// Returns the part of the namespaces' state that recovery builds up, for a namespace.
    pub(super) fn gateway(&self, namespace: &Owned) -> (Gateway, jitney_journal::Options) {
        let seed = RandomState::new().hash_one((std::process::id(), self.at, namespace.id));
        let mut gateway = Gateway::new(seed, self.parts.profile);
        gateway.set_token_issuer(self.parts.oidc.issuer());
        gateway.set_memory(self.parts.memory.clone());
        gateway.share_failed_attempts(self.attempts.clone());
        let mut options = jitney_journal::Options::new(namespace.log_store);
        options.segment_bytes = limits::STORE_SEGMENT_BYTES;
        let (plan, others) = (&self.parts.plan, self.parts.shards.members().len());
        options.cache_bytes = plan.part_of_cache(plan.cache, others + 1);
        options.tail_records_max = limits::STORE_TAIL_RECORDS;
        (gateway, options)
    }

    /// Begins to serve a namespace that was taken over, for as long as the lease of its time holds. What is
    /// `configured` of it is applied before clients reach it. Returns the index of its shard.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoThread`] if a thread cannot be started.
    pub(super) fn begin(
        self: &Arc<Self>,
        owned: OwnedShard,
        lease: Arc<Lease>,
        configured: Namespace,
    ) -> Result<ShardIndex, StoreError> {
        let OwnedShard {
            namespace,
            fence,
            recovering,
            committer,
            committing,
            events,
            teller,
            log,
            skipped: _,
        } = owned;
        let messages = recovering.messages;
        let shard = self.configure(recovering, configured)?;
        let (sender, mailbox) = mpsc::channel(limits::MAILBOX_LENGTH);
        let (controller, control) = mpsc::channel(1);
        let of_reader = teller.clone();
        let failed = move |error| {
            // The owner learns by itself that another server has the namespace.
            if !matches!(error, jitney_journal::Error::Fenced) {
                error!("the log of a namespace cannot be read; it is given up: {error}");
            }
            of_reader.send_replace(StoreEvent::Fenced);
        };
        let reader = Reader::start(Arc::<dyn Checkpoints>::clone(&log), sender.clone(), failed);
        let vitals = Arc::new(Vitals::new());
        let parts = OwnerParts {
            shard,
            clock: Arc::clone(&self.parts.clock),
            sender: sender.clone(),
            mailbox,
            control,
            committer: Box::new(committer),
            store: Some(StoreParts { lease, events }),
            reader: reader.map_err(StoreError::NoThread)?,
            log,
            keys_wanted: Arc::clone(&self.parts.keys_wanted),
            vitals: Arc::clone(&vitals),
            traces: self.parts.traces.as_ref().map(Traces::of_shard),
        };
        let runtime = self.runtime(namespace.id);
        let owner_task = {
            let _within = runtime.enter();
            let name = format!("owner of namespace {}", namespace.name);
            supervisor::spawn(name, Owner::new(parts).run())
        };
        owner_task.allow_end();
        let name = namespace.name.to_lowercase();
        info!(
            namespace = name,
            messages,
            epoch = namespace.epoch,
            "serving a namespace"
        );
        let member = Member {
            number: shard_number(self.at, namespace.id),
            owner: Mailbox::new(sender, controller, MAILBOX_BYTES),
            runtime,
            vitals,
        };
        let id = namespace.id;
        let index = self.add(id, name, fence, teller, member);
        let serving = Arc::clone(self);
        let follow = async move { serving.follow(id, index, owner_task, committing).await };
        supervisor::spawn("end of a namespace", follow).allow_end();
        Ok(index)
    }

    /// Configures a namespace whose log was read.
    fn configure(
        &self,
        mut recovering: Recovering<()>,
        namespace: Namespace,
    ) -> Result<Shard, StoreError> {
        let name = namespace.name.clone();
        let now = self.parts.clock.now();
        if now < recovering.recovered().newest {
            warn!(
                namespace = &name[..],
                "the log has times that lie ahead of this server's clock, which is followed: messages keep their stamps, \
                 numbers and order; check the clocks"
            );
            recovering.follow_clock(now);
        }
        let reload = Reload {
            namespaces: vec![namespace],
            new: Vec::new(),
            deleted: Vec::new(),
            keys: Some(NamespaceKeys {
                root_key: self.parts.root_key.clone(),
            }),
            actor: reload::actor(),
        };
        let configure = |gateway: &mut Gateway, cx: &mut StepContext<'_>| {
            let done = provision::take_over(gateway, cx, &reload);
            configuration::report_refused(&name, &done);
            Ok(())
        };
        let (memory, in_flight) = (self.parts.memory.clone(), self.parts.plan.in_flight);
        let begun = recovering.begin(now, memory, in_flight, configure);
        begun.map(|ready| ready.shard).map_err(StoreError::Lost)
    }

    /// Lets clients reach a namespace; returns the index of its shard.
    fn add(
        &self,
        id: i64,
        name: String,
        fence: Arc<Fence>,
        teller: watch::Sender<StoreEvent>,
        member: Member,
    ) -> ShardIndex {
        let shard = ShardIndex(self.next.fetch_add(1, Ordering::Relaxed));
        let served = Served {
            name: name.clone(),
            shard,
            fence,
            owner: member.owner.clone(),
            vitals: Arc::clone(&member.vitals),
            teller,
            history: HistoryInStore::Unread,
        };
        self.parts.shards.add(shard, member);
        self.parts
            .shards
            .change_routes(|routes| routes.with(&name, shard));
        // Only now can it be removed: its removal finds all that is to be undone.
        self.served().insert(id, served);
        shard
    }

    /// Waits until a namespace is served no longer, and removes it.
    async fn follow(&self, id: i64, shard: ShardIndex, owner: Task, committing: Task) {
        owner.join().await;
        committing.join().await;
        self.remove(id, shard);
    }

    /// Removes a namespace, unless another take-over has come between: that has another shard.
    fn remove(&self, id: i64, shard: ShardIndex) -> Option<Served> {
        let is_same = |_: &i64, served: &mut Served| served.shard == shard;
        let (_, served) = self.served().extract_if(id..=id, is_same).next()?;
        self.parts.shards.remove(shard);
        self.withdraw(&served.name, shard);
        Some(served)
    }

    /// Lets clients reach a namespace here no more, unless another take-over has come between.
    fn withdraw(&self, name: &str, shard: ShardIndex) {
        self.parts.shards.change_routes(|routes| {
            if routes.shard_of(Some(name)) == Some(shard) {
                routes.elsewhere(name)
            } else {
                routes.clone()
            }
        });
    }

    /// Gives a namespace away: its connections are closed, and what was accepted is durable before another server
    /// takes it.
    pub(super) async fn give(&self, id: i64) {
        let found = self.served().get(&id).map(|it| {
            let (owner, fence) = (it.owner.clone(), Arc::clone(&it.fence));
            (it.shard, owner, it.name.clone(), fence)
        });
        let Some((shard, owner, name, fence)) = found else {
            return;
        };
        self.withdraw(&name, shard);
        let wait = limits::HANDOVER_WAIT.as_duration();
        let _ = timeout(wait, async {
            let _ = owner.send(OwnerMessage::Input(Input::Stop)).await;
            owner.closed().await;
        })
        .await;
        // What no client waits for may still be on its way.
        let wait = limits::HANDOVER_WAIT.as_duration();
        let _ = timeout(wait, self.gone(id, shard)).await;
        let served = self.remove(id, shard);
        if let Err(error) = ownership::release(&self.store, &fence).await {
            warn!(
                namespace = name,
                "a namespace could not be given away: {error}"
            );
        }
        // The owner still runs if it takes no input, because it has not read `Input::Stop`. It is fenced only after the release, so
        // that it can answer its last append.
        if let Some(served) = served {
            served.teller.send_replace(StoreEvent::Fenced);
        }
    }

    /// Waits until a namespace is served no longer, and all that its owner has ordered is done.
    async fn gone(&self, id: i64, shard: ShardIndex) {
        while self.served().get(&id).is_some_and(|it| it.shard == shard) {
            tokio::time::sleep(limits::OWNER_LOOK.as_duration()).await;
        }
    }

    /// Drops every namespace: the other servers have declared this one dead, or the store is another one.
    pub(super) fn lose_all(&self) {
        let served = self.served();
        let all: Vec<(i64, ShardIndex)> = served.iter().map(|(id, it)| (*id, it.shard)).collect();
        drop(served);
        for (id, shard) in all {
            self.lose(id, shard);
        }
    }

    /// Drops the namespaces that are removed from the store, or that are taken from this server. One without appends would not
    /// notice.
    pub(super) fn lose_taken(&self, own: &str, seen: &BTreeMap<String, NamespaceRow>) {
        let served = self.served();
        let is_taken = |id: i64, it: &Served| match seen.get(&it.name).filter(|it| it.id == id) {
            Some(seen) => seen.is_taken_from(own, it.fence.current().0),
            None => true,
        };
        let taken = served.iter().filter(|(id, it)| is_taken(**id, it));
        let taken = taken.map(|(id, it)| (*id, it.shard, it.name.clone()));
        let taken: Vec<(i64, ShardIndex, String)> = taken.collect();
        drop(served);
        for (id, shard, namespace) in taken {
            info!(
                namespace,
                "a namespace is dropped: it was taken from this server, or removed"
            );
            self.lose(id, shard);
        }
    }

    /// Takes the quotas of the namespaces, as the store has them.
    pub(super) fn set_quotas(&self, seen: &BTreeMap<String, NamespaceRow>) {
        for it in self.served().values() {
            if let Some(seen) = seen.get(&it.name) {
                it.vitals.quota().set(seen.quota);
            }
        }
    }

    /// Returns how often clients of each namespace were made to wait for its quota since this server has it.
    pub(super) fn quota_waits(&self) -> BTreeMap<String, u64> {
        let served = self.served();
        let all = served.values();
        all.map(|it| (it.name.clone(), it.vitals.quota().waits()))
            .collect()
    }

    /// Drops a namespace, unless another take-over has come between.
    pub(super) fn lose(&self, id: i64, shard: ShardIndex) {
        if let Some(served) = self.remove(id, shard) {
            served.fence.lose();
            served.teller.send_replace(StoreEvent::Fenced);
        }
    }

    fn runtime(&self, id: i64) -> tokio::runtime::Handle {
        let count = self.parts.runtimes.len().max(1);
        let at = usize::try_from(id).unwrap_or_default() % count;
        let runtime = self
            .parts
            .runtimes
            .get(at)
            .expect("there is one for each core");
        runtime.handle().clone()
    }

    /// Returns the names of the namespaces of which it is unknown what was appended.
    pub(super) fn unknown(&self) -> BTreeSet<String> {
        let served = self.served();
        let is_unknown = |it: &&Served| matches!(*it.teller.borrow(), StoreEvent::Unknown { .. });
        let unknown = served.values().filter(is_unknown);
        unknown.map(|it| it.name.clone()).collect()
    }

    /// Returns where the owner of a namespace is reached, if it is served.
    pub(super) fn owner(&self, id: i64) -> Option<Mailbox> {
        Some(self.served().get(&id)?.owner.clone())
    }

    pub(super) fn parts(&self) -> &ServedParts {
        &self.parts
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Records that the history of a namespace was read, or cannot be.
    pub(super) fn history_is_read(&self, id: i64) {
        if let Some(served) = self.served().get_mut(&id) {
            served.history = HistoryInStore::Read;
        }
    }

    /// Returns the fence of a namespace whose history is to be written.
    pub(super) fn fence_with_history(&self, id: i64) -> Option<Arc<Fence>> {
        self.served().get(&id).and_then(Served::fence_with_history)
    }

    /// Returns the fences of the namespaces whose histories are to be written.
    pub(super) fn fences_with_history(&self) -> Vec<Arc<Fence>> {
        let served = self.served();
        let fences = served.values().filter_map(Served::fence_with_history);
        fences.collect()
    }
}

impl Served {
    fn fence_with_history(&self) -> Option<Arc<Fence>> {
        let is_read = self.history == HistoryInStore::Read;
        is_read.then(|| Arc::clone(&self.fence))
    }
}

/// Bits of a shard's number that are of a namespace's number in its store; the others are the place of the store.
const NUMBER_BITS: u32 = 26;

const _: () = assert!(jitney_cluster::limits::STORES_MAX <= 1 << (u32::BITS - NUMBER_BITS));

/// Returns the number of the shard of a namespace, by which metrics and consoles name it. It is the namespace's number in the only
/// store, or in the first of several.
fn shard_number(store: usize, id: i64) -> u32 {
    let store = u32::try_from(store).unwrap_or_default();
    let id = u32::try_from(id).unwrap_or(u32::MAX) % (1 << NUMBER_BITS);
    store << NUMBER_BITS | id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_of_several_stores_have_numbers_of_their_own() {
        assert_eq!(shard_number(0, 7), 7);
        let mut all: Vec<u32> = (0..jitney_cluster::limits::STORES_MAX)
            .flat_map(|store| [1, 2, 10_000].map(|id| shard_number(store, id)))
            .collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
