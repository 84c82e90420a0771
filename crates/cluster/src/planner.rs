//! Which server takes which namespace, and which gives one away: decisions without I/O, which servers with the same view make
//! alike. Where views differ the fence decides.
//!
//! A namespace weighs something for being there, and its messages a second. Free namespaces are distributed so that all servers carry
//! about the same, of all stores together. Namespaces of live servers move only when the loads differ by more than a namespace and a
//! fifth of a server's mean rate, and then until they differ by a namespace and a tenth of it: small changes of rates move nothing. A server
//! that is to have no namespaces gives its own away, if another one may take them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::limits;

/// A namespace: the place of its store, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamespaceKey {
    /// The place of its store in the list of stores.
    pub store: usize,
    /// Its number in the store.
    pub id: i64,
}

/// Some of the stores, by their places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreSet(u64);

const _: () = assert!(limits::STORES_MAX <= 64);

impl StoreSet {
    /// Returns whether a store is among them.
    #[must_use]
    pub fn has(self, store: usize) -> bool {
        let bit = u32::try_from(store).ok();
        bit.and_then(|bit| 1_u64.checked_shl(bit))
            .is_some_and(|bit| self.0 & bit != 0)
    }

    /// Adds a store.
    pub fn add(&mut self, store: usize) {
        let bit = u32::try_from(store).ok();
        self.0 |= bit.and_then(|bit| 1_u64.checked_shl(bit)).unwrap_or(0);
    }
}

/// Whether a server is to have namespaces of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fitness {
    /// It may have namespaces.
    #[default]
    Fit,
    /// It has died too often of late, or the answers to its beats come too late: it has namespaces only while no other server is fit.
    Resting,
    /// Its clock is off from the database's: it takes none.
    Unfit,
}

impl Fitness {
    /// Returns whether the server may take namespaces of a store, for which the best server has this fitness.
    #[must_use]
    pub const fn may_take(self, best: Self) -> bool {
        match self {
            Self::Fit => true,
            Self::Resting => !matches!(best, Self::Fit),
            Self::Unfit => false,
        }
    }
}

/// A server that is alive, and does not leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name, which is its own in the fleet.
    pub name: String,
    /// The newest kind of record that it reads.
    pub formats: i32,
    /// The stores whose namespaces it may take, by its [`Fitness`] and that of the others.
    pub stores: StoreSet,
}

/// Which server has a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// No server that is alive.
    Absent,
    /// A server that gives its namespaces away.
    Leaving,
    /// A server, by its place in the list of those that may take namespaces.
    Member(usize),
}

/// A namespace, as it was found in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamespaceState {
    /// Which one it is.
    pub key: NamespaceKey,
    /// Which server has it.
    pub owner: Owner,
    /// Messages a second, of late.
    pub rate: i64,
    /// The newest kind of record that its log may have.
    pub formats: i32,
    /// It stays where it is: it is in quarantine, or its store is away.
    pub is_fixed: bool,
}

/// What a server has found in all stores: the other servers, and which of them has which namespace.
#[derive(Debug)]
pub struct ClusterView {
    /// The servers that are alive and do not leave, by their names.
    pub members: Vec<Member>,
    /// By their keys.
    pub namespaces: Vec<NamespaceState>,
}

/// What a namespace weighs for being there, in messages a second.
const WEIGHT: i64 = 1_000;
/// Loads are made alike when they differ by more than a namespace and a server's mean rate divided by this.
const UNEVEN: i64 = 5;
/// Loads are alike when they differ by a namespace and a server's mean rate divided by this, at most.
const EVEN: i64 = 10;

impl Member {
    fn may_have(&self, namespace: &NamespaceState) -> bool {
        namespace.formats <= self.formats && self.stores.has(namespace.key.store)
    }
}

impl NamespaceState {
    fn weight(&self) -> i64 {
        WEIGHT + self.rate.max(0)
    }

    /// What decides which servers take it.
    fn kind(&self) -> (i64, i32, usize) {
        (-self.weight(), self.formats, self.key.store)
    }
}

impl ClusterView {
    /// Returns what each live server carries.
    fn loads(&self) -> Vec<i64> {
        let mut loads = vec![0; self.members.len()];
        for namespace in &self.namespaces {
            if let Owner::Member(at) = namespace.owner
                && let Some(load) = loads.get_mut(at)
            {
                *load += namespace.weight();
            }
        }
        loads
    }

    /// Returns the free namespaces that some live server may have, the heaviest first, and those that are alike one after the other.
    fn free(&self) -> Vec<NamespaceState> {
        let free = self.namespaces.iter();
        let free = free.filter(|it| it.owner == Owner::Absent && !it.is_fixed);
        let free = free.filter(|it| self.members.iter().any(|server| server.may_have(it)));
        let mut free: Vec<NamespaceState> = free.copied().collect();
        free.sort_by_key(|it| (it.kind(), it.key));
        free
    }

    /// Returns the free namespaces that a server takes: each goes to the server that carries least.
    ///
    /// Of namespaces that are alike only the counts come from that: the first server takes the first of them, and so on. So each
    /// server takes the same ones, however many of them it has taken by the time of a look.
    fn to_acquire(&self, own: usize) -> Vec<NamespaceKey> {
        let free = self.free();
        let loads = self.loads().into_iter().zip(0..);
        let mut order: BTreeSet<(i64, usize)> = loads.collect();
        let mut taken = Vec::new();
        for alike in free.chunk_by(|a, b| a.kind() == b.kind()) {
            let mut takers: BTreeMap<usize, usize> = BTreeMap::new();
            for namespace in alike {
                let may_have = |it: &&(i64, usize)| {
                    let server = self.members.get(it.1);
                    server.is_some_and(|server| server.may_have(namespace))
                };
                if let Some((load, at)) = order.iter().find(may_have).copied() {
                    order.remove(&(load, at));
                    order.insert((load + namespace.weight(), at));
                    *takers.entry(at).or_default() += 1;
                }
            }
            let before: usize = takers.range(..own).map(|(_, count)| count).sum();
            let count = takers.get(&own).copied().unwrap_or_default();
            taken.extend(alike.iter().skip(before).take(count).map(|it| it.key));
        }
        taken
    }

    /// Returns the namespaces that a server is not to have, and some other one may take.
    fn to_shed(&self, own: usize) -> Vec<NamespaceKey> {
        let Some(server) = self.members.get(own) else {
            return Vec::new();
        };
        let others = || self.members.iter().enumerate().filter(|(at, _)| *at != own);
        let shed = self.namespaces.iter().filter(|it| {
            it.owner == Owner::Member(own)
                && !it.is_fixed
                && !server.stores.has(it.key.store)
                && others().any(|(_, other)| other.may_have(it))
        });
        shed.map(|it| it.key).collect()
    }

    /// Returns the namespaces that a server gives away. All servers make the same plan: again and again the one that carries most gives
    /// its lightest namespace to the one that carries least, as long as that makes the difference smaller. No server gives more than
    /// `most` at a time, and to none more are on their way: a namespace is without a server for as long as it waits to be taken.
    fn to_release(&self, own: usize, most: usize) -> Vec<NamespaceKey> {
        let mut plan = Plan::new(self, most);
        let mut given = Vec::new();
        while plan.is_uneven
            && let Some(from) = plan.giver()
        {
            let found = plan.movable.get_mut(from).and_then(Vec::pop);
            let to = found.and_then(|it| Some((it, self.least(&plan.loads, &plan.room, &it)?)));
            let Some((namespace, to)) = to else {
                plan.stop(from);
                continue;
            };
            let difference = plan.load(from) - plan.load(to);
            if difference <= WEIGHT + plan.rate / EVEN {
                break;
            }
            if difference <= namespace.weight() {
                // All others that it has are as heavy.
                plan.stop(from);
                continue;
            }
            plan.give(from, &namespace);
            plan.receive(to, &namespace);
            if from == own {
                given.push(namespace.key);
            }
        }
        given
    }

    /// Returns the server that has the least of some loads, of those that may have a namespace and have room.
    fn least(&self, loads: &[i64], room: &[usize], namespace: &NamespaceState) -> Option<usize> {
        let servers = self.members.iter().zip(loads).zip(room).enumerate();
        let able =
            servers.filter(|(_, ((server, _), room))| 0 < **room && server.may_have(namespace));
        let least = able.min_by_key(|(at, ((_, load), _))| (**load, *at));
        least.map(|(at, _)| at)
    }

    /// Returns the namespaces of each live server that may be moved, the lightest last.
    fn by_owner(&self) -> Vec<Vec<NamespaceState>> {
        let mut found = vec![Vec::new(); self.members.len()];
        for namespace in self.namespaces.iter().filter(|it| !it.is_fixed) {
            if let Owner::Member(at) = namespace.owner
                && let Some(all) = found.get_mut(at)
            {
                all.push(*namespace);
            }
        }
        for all in &mut found {
            all.sort_by_key(|it| std::cmp::Reverse((it.weight(), it.key)));
        }
        found
    }
}

/// The moves that make loads alike.
struct Plan {
    /// What each server carries after the moves.
    loads: Vec<i64>,
    /// The mean rate of a server: its load without what namespaces weigh for being there.
    rate: i64,
    /// The loads differ by so much that something is to be moved.
    is_uneven: bool,
    /// How many more each server may give, and be given.
    left: Vec<usize>,
    room: Vec<usize>,
    /// The namespaces of each server that may be moved, the lightest last.
    movable: Vec<Vec<NamespaceState>>,
}

impl Plan {
    fn new(look: &ClusterView, most: usize) -> Self {
        let loads = look.loads();
        let count = loads.len();
        let mut plan = Self {
            rate: 0,
            is_uneven: false,
            left: vec![most; count],
            room: vec![usize::MAX; count],
            movable: look.by_owner(),
            loads,
        };
        // A free namespace is on its way, and counts for the server that takes it.
        for namespace in look.free() {
            if let Some(to) = look.least(&plan.loads, &plan.room, &namespace) {
                plan.receive(to, &namespace);
            }
        }
        for room in &mut plan.room {
            *room = most.saturating_sub(usize::MAX - *room);
        }
        // The load of a server that may take nothing becomes no greater.
        let able = look.members.iter().zip(&plan.loads);
        let able = able.filter(|(server, _)| server.stores != StoreSet::default());
        let least = able.map(|(_, load)| load).min();
        let ends = plan.loads.iter().max().zip(least);
        let namespaces = look.namespaces.iter();
        let carried = namespaces.filter(|it| matches!(it.owner, Owner::Member(_) | Owner::Absent));
        let rates: i64 = carried.map(|it| it.weight() - WEIGHT).sum();
        plan.rate = rates / i64::try_from(count).unwrap_or(1).max(1);
        plan.is_uneven =
            ends.is_some_and(|(most, least)| WEIGHT + plan.rate / UNEVEN < most - least);
        plan
    }

    /// Returns the server that carries most, of those that may give something.
    fn giver(&self) -> Option<usize> {
        let servers = self.loads.iter().zip(&self.left).enumerate();
        let able = servers.filter(|(_, (_, left))| 0 < **left);
        let most = able.max_by_key(|(at, (load, _))| (**load, *at));
        most.map(|(at, _)| at)
    }

    fn load(&self, at: usize) -> i64 {
        self.loads.get(at).copied().unwrap_or_default()
    }

    /// A server gives nothing more.
    fn stop(&mut self, at: usize) {
        if let Some(left) = self.left.get_mut(at) {
            *left = 0;
        }
    }

    fn give(&mut self, from: usize, namespace: &NamespaceState) {
        if let (Some(load), Some(left)) = (self.loads.get_mut(from), self.left.get_mut(from)) {
            *load -= namespace.weight();
            *left -= 1;
        }
    }

    fn receive(&mut self, to: usize, namespace: &NamespaceState) {
        if let (Some(load), Some(room)) = (self.loads.get_mut(to), self.room.get_mut(to)) {
            *load += namespace.weight();
            *room -= 1;
        }
    }
}

/// Returns the newest kind of record that may be written: all servers that are alive read it.
#[must_use]
pub fn formats_of(alive: impl IntoIterator<Item = i32>, own: i32) -> i32 {
    alive.into_iter().fold(own, i32::min)
}

/// How long the servers must be the same before a namespace is moved.
const SETTLED: Duration = Duration::from_secs(5);
/// How long the servers must be the same before one gives away what it is not to have. All find out by then that the database's clock was
/// set, and that none of them is better than another.
const JUDGED: Duration = Duration::from_secs(1);
/// How long to wait after namespaces were moved before others are.
const MOVED: Duration = Duration::from_secs(1);

/// What a server is to do after it has looked at the stores.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Namespaces to take over.
    pub acquire: Vec<NamespaceKey>,
    /// Namespaces to give to other servers.
    pub release: Vec<NamespaceKey>,
    /// Namespaces that are this server's in the store, that it does not serve, and that it may not take: an attempt to release them
    /// has failed. Without another one they would have no server for as long as this one may take none.
    pub give_back: Vec<NamespaceKey>,
}

/// What a server remembers from one decision to the next.
#[derive(Debug, Default)]
pub struct Planner {
    /// Namespaces that are being taken over.
    acquiring: BTreeSet<NamespaceKey>,
    /// Namespaces that are being given away.
    releasing: BTreeSet<NamespaceKey>,
    /// Since when namespaces are seen without an owner.
    free: BTreeMap<NamespaceKey, Duration>,
    /// When a server came or went.
    changed: Option<Duration>,
    /// When a namespace was last given away.
    moved: Option<Duration>,
    members: Vec<Member>,
}

impl Planner {
    /// Decides what a server does after looks. Those that it takes and gives are at work until [`Planner::acquired`] and
    /// [`Planner::released`] say that they are not. `own` is its place among the servers of the look; none if it may take nothing.
    pub fn decide(
        &mut self,
        now: Duration,
        own: Option<usize>,
        mut look: ClusterView,
        served: &BTreeSet<NamespaceKey>,
    ) -> Decision {
        let mut unserved = Vec::new();
        for namespace in &mut look.namespaces {
            let key = &namespace.key;
            let is_owned = own.is_some_and(|own| namespace.owner == Owner::Member(own));
            let is_free = namespace.owner == Owner::Absent;
            if self.acquiring.contains(key) || is_free && served.contains(key) {
                // It counts as this server's: what else it takes is less by that.
                namespace.owner = own.map_or(namespace.owner, Owner::Member);
            } else if is_owned && (!served.contains(key) || self.releasing.contains(key)) {
                // This server gives it away; or it took it, and does not serve it: its log could not be read, or the answer was lost.
                unserved.push(*namespace);
                namespace.owner = Owner::Absent;
            }
        }
        if self.members != look.members {
            self.members.clone_from(&look.members);
            self.changed = Some(now);
        }
        let late = self.late(&look, own, now);
        let Some(own) = own else {
            return Decision::default();
        };
        let mut acquire: BTreeSet<NamespaceKey> = look.to_acquire(own).into_iter().collect();
        acquire.extend(late);
        let is_at_work =
            |key: &NamespaceKey| self.acquiring.contains(key) || self.releasing.contains(key);
        acquire.retain(|key| !is_at_work(key) && !served.contains(key));
        let server = look.members.get(own);
        let may_have = |it: &NamespaceState| server.is_some_and(|server| server.may_have(it));
        let give_back = unserved.iter();
        let give_back = give_back.filter(|it| !it.is_fixed && !may_have(it));
        let mut give_back: Vec<NamespaceKey> = give_back.map(|it| it.key).collect();
        give_back.retain(|key| !is_at_work(key));
        let rests = |since: Option<Duration>, span| {
            since.is_none_or(|since| span < now.saturating_sub(since))
        };
        let mut release = Vec::new();
        if rests(self.changed, JUDGED) {
            release = look.to_shed(own);
            release.retain(|key| served.contains(key) && !self.releasing.contains(key));
            release.truncate(limits::HANDOVERS_AT_ONCE.saturating_sub(self.releasing.len()));
        }
        if release.is_empty() && rests(self.changed, SETTLED) && rests(self.moved, MOVED) {
            release = look.to_release(own, limits::HANDOVERS_AT_ONCE);
            release.retain(|key| served.contains(key) && !self.releasing.contains(key));
        }
        if !release.is_empty() {
            self.moved = Some(now);
            self.releasing.extend(&release);
        }
        self.releasing.extend(&give_back);
        self.acquiring.extend(&acquire);
        Decision {
            acquire: acquire.into_iter().collect(),
            release,
            give_back,
        }
    }

    /// Returns the namespaces that have had no server for long: the one that should have taken them may not be able to.
    fn late(&mut self, look: &ClusterView, own: Option<usize>, now: Duration) -> Vec<NamespaceKey> {
        let free = look.free();
        // While the servers take some, those that are to take the others are at work.
        let are_taken = free.len() < self.free.len();
        let before = std::mem::take(&mut self.free);
        let since = |key: &NamespaceKey| before.get(key).filter(|_| !are_taken).copied();
        let since = free
            .iter()
            .map(|it| (it.key, since(&it.key).unwrap_or(now)));
        self.free = since.collect();
        let Some(server) = own.and_then(|own| look.members.get(own)) else {
            return Vec::new();
        };
        let overdue = 3 * limits::HEARTBEAT.as_duration();
        let is_late = |it: &&NamespaceState| {
            let since = self.free.get(&it.key);
            since.is_some_and(|since| overdue < now.saturating_sub(*since))
        };
        let late = free.iter().filter(|it| server.may_have(it)).filter(is_late);
        late.map(|it| it.key).collect()
    }

    /// A take-over has ended, well or not.
    pub fn acquired(&mut self, key: NamespaceKey) {
        self.acquiring.remove(&key);
    }

    /// A handover has ended.
    pub fn released(&mut self, key: NamespaceKey) {
        self.releasing.remove(&key);
    }

    /// This server stops, and gives namespaces away without a decision.
    pub fn begin_releases(&mut self, keys: &[NamespaceKey]) {
        self.releasing.extend(keys);
    }

    /// Returns whether no take-over is at work.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.acquiring.is_empty()
    }
}

#[cfg(test)]
mod tests;
