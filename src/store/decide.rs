//! Which server takes which namespace, and which gives one away: decisions without I/O, which servers with the same view make
//! alike. Where views differ the fence decides.
//!
//! A namespace weighs something for being there, and its messages a second. Free namespaces are distributed so that all servers carry
//! about the same, of all stores together. Namespaces of live servers move only when the loads differ by more than a namespace and a
//! fifth of a server's mean rate, and then until they differ by a namespace and a tenth of it: small changes of rates move nothing. A server
//! that is to have no namespaces gives its own away, if another one may take them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::limits;

/// A namespace: the place of its store, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamespaceKey {
    pub(super) store: usize,
    pub(super) id: i64,
}

/// Some of the stores, by their places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StoreSet(u64);

const _: () = assert!(limits::STORES_MAX <= 64);

impl StoreSet {
    pub(super) fn has(self, store: usize) -> bool {
        let bit = u32::try_from(store).ok();
        bit.and_then(|bit| 1_u64.checked_shl(bit))
            .is_some_and(|bit| self.0 & bit != 0)
    }

    pub(super) fn add(&mut self, store: usize) {
        let bit = u32::try_from(store).ok();
        self.0 |= bit.and_then(|bit| 1_u64.checked_shl(bit)).unwrap_or(0);
    }
}

/// Whether a server is to have namespaces of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fitness {
    #[default]
    Fit,
    /// It has died too often of late, or the answers to its beats come too late: it has namespaces only while no other server is fit.
    Resting,
    /// Its clock is off from the database's: it takes none.
    Unfit,
}

impl Fitness {
    /// Returns whether the server may take namespaces of a store, for which some server is fit or none is.
    pub(super) const fn may_take(self, is_any_fit: bool) -> bool {
        match self {
            Self::Fit => true,
            Self::Resting => !is_any_fit,
            Self::Unfit => false,
        }
    }
}

/// A server that is alive, and does not leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) name: String,
    /// The newest kind of record that it reads.
    pub(super) formats: i32,
    /// The stores whose namespaces it may take, by its [`Fitness`] and that of the others.
    pub(super) stores: StoreSet,
}

/// Which server has a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// No server that is alive.
    Absent,
    /// A server that gives its namespaces away.
    Leaving,
    /// A server, by its place in the list of those that may take namespaces.
    Live(usize),
}

/// A namespace, as the last look at its store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) key: NamespaceKey,
    pub(super) owner: Owner,
    /// Messages a second, of late.
    pub(super) rate: i64,
    /// The newest kind of record that its log may have.
    pub(super) formats: i32,
    /// It stays where it is: it is in quarantine, or its store is away.
    pub(super) is_fixed: bool,
}

/// What the last looks at all stores have found.
#[derive(Debug)]
pub(super) struct Look {
    /// The servers that are alive and do not leave, by their names.
    pub(super) live: Vec<Live>,
    /// By their keys.
    pub(super) namespaces: Vec<Seen>,
}

/// What a namespace weighs for being there, in messages a second.
const WEIGHT: i64 = 1_000;
/// Loads are made alike when they differ by more than a namespace and a server's mean rate divided by this.
const UNEVEN: i64 = 5;
/// Loads are alike when they differ by a namespace and a server's mean rate divided by this, at most.
const EVEN: i64 = 10;

impl Live {
    fn may_have(&self, namespace: &Seen) -> bool {
        namespace.formats <= self.formats && self.stores.has(namespace.key.store)
    }
}

impl Seen {
    pub(super) fn weight(&self) -> i64 {
        WEIGHT + self.rate.max(0)
    }

    /// What decides which servers take it.
    fn kind(&self) -> (i64, i32, usize) {
        (-self.weight(), self.formats, self.key.store)
    }
}

impl Look {
    /// Returns what each live server carries.
    fn loads(&self) -> Vec<i64> {
        let mut loads = vec![0; self.live.len()];
        for namespace in &self.namespaces {
            if let Owner::Live(at) = namespace.owner
                && let Some(load) = loads.get_mut(at)
            {
                *load += namespace.weight();
            }
        }
        loads
    }

    /// Returns the free namespaces that some live server may have, the heaviest first, and those that are alike one after the other.
    fn free(&self) -> Vec<Seen> {
        let free = self.namespaces.iter();
        let free = free.filter(|it| it.owner == Owner::Absent && !it.is_fixed);
        let free = free.filter(|it| self.live.iter().any(|server| server.may_have(it)));
        let mut free: Vec<Seen> = free.copied().collect();
        free.sort_by_key(|it| (it.kind(), it.key));
        free
    }

    /// Returns the free namespaces that a server takes: each goes to the server that carries least.
    ///
    /// Of namespaces that are alike only the counts come from that: the first server takes the first of them, and so on. So each
    /// server takes the same ones, however many of them it has taken by the time of a look.
    fn to_take(&self, own: usize) -> Vec<NamespaceKey> {
        let free = self.free();
        let loads = self.loads().into_iter().zip(0..);
        let mut order: BTreeSet<(i64, usize)> = loads.collect();
        let mut taken = Vec::new();
        for alike in free.chunk_by(|a, b| a.kind() == b.kind()) {
            let mut takers: BTreeMap<usize, usize> = BTreeMap::new();
            for namespace in alike {
                let may_have = |it: &&(i64, usize)| {
                    let server = self.live.get(it.1);
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
        let Some(server) = self.live.get(own) else {
            return Vec::new();
        };
        let others = || self.live.iter().enumerate().filter(|(at, _)| *at != own);
        let shed = self.namespaces.iter().filter(|it| {
            it.owner == Owner::Live(own)
                && !it.is_fixed
                && !server.stores.has(it.key.store)
                && others().any(|(_, other)| other.may_have(it))
        });
        shed.map(|it| it.key).collect()
    }

    /// Returns the namespaces that a server gives away. All servers make the same plan: again and again the one that carries most gives
    /// its lightest namespace to the one that carries least, as long as that makes the difference smaller. No server gives more than
    /// `most` at a time, and to none more are on their way: a namespace is without a server for as long as it waits to be taken.
    fn to_give(&self, own: usize, most: usize) -> Vec<NamespaceKey> {
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
    fn least(&self, loads: &[i64], room: &[usize], namespace: &Seen) -> Option<usize> {
        let servers = self.live.iter().zip(loads).zip(room).enumerate();
        let able =
            servers.filter(|(_, ((server, _), room))| 0 < **room && server.may_have(namespace));
        let least = able.min_by_key(|(at, ((_, load), _))| (**load, *at));
        least.map(|(at, _)| at)
    }

    /// Returns the namespaces of each live server that may be moved, the lightest last.
    fn by_owner(&self) -> Vec<Vec<Seen>> {
        let mut found = vec![Vec::new(); self.live.len()];
        for namespace in self.namespaces.iter().filter(|it| !it.is_fixed) {
            if let Owner::Live(at) = namespace.owner
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
    movable: Vec<Vec<Seen>>,
}

impl Plan {
    fn new(look: &Look, most: usize) -> Self {
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
        let able = look.live.iter().zip(&plan.loads);
        let able = able.filter(|(server, _)| server.stores != StoreSet::default());
        let least = able.map(|(_, load)| load).min();
        let ends = plan.loads.iter().max().zip(least);
        let namespaces = look.namespaces.iter();
        let carried = namespaces.filter(|it| matches!(it.owner, Owner::Live(_) | Owner::Absent));
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

    fn give(&mut self, from: usize, namespace: &Seen) {
        if let (Some(load), Some(left)) = (self.loads.get_mut(from), self.left.get_mut(from)) {
            *load -= namespace.weight();
            *left -= 1;
        }
    }

    fn receive(&mut self, to: usize, namespace: &Seen) {
        if let (Some(load), Some(room)) = (self.loads.get_mut(to), self.room.get_mut(to)) {
            *load += namespace.weight();
            *room -= 1;
        }
    }
}

/// Returns the newest kind of record that may be written: all servers that are alive read it.
pub(super) fn formats_of(alive: impl IntoIterator<Item = i32>, own: i32) -> i32 {
    alive.into_iter().fold(own, i32::min)
}

/// How long the servers must be the same before a namespace is moved.
const SETTLED: Duration = Duration::from_secs(5);
/// How long the servers must be the same before one gives away what it is not to have. All find out by then that the database's clock was
/// set, and that none of them is better than another.
const JUDGED: Duration = Duration::from_secs(1);
/// How long to wait after namespaces were moved before others are.
const MOVED: Duration = Duration::from_secs(1);

/// What a server is to do after a look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Decided {
    pub(super) take: Vec<NamespaceKey>,
    pub(super) give: Vec<NamespaceKey>,
}

/// What a server remembers from one decision to the next.
#[derive(Debug, Default)]
pub(super) struct Planner {
    /// Namespaces that are being taken over.
    taking: BTreeSet<NamespaceKey>,
    /// Namespaces that are being given away.
    giving: BTreeSet<NamespaceKey>,
    /// Since when namespaces are seen without an owner.
    free: BTreeMap<NamespaceKey, Instant>,
    /// When a server came or went.
    changed: Option<Instant>,
    /// When a namespace was last given away.
    moved: Option<Instant>,
    live: Vec<Live>,
}

impl Planner {
    /// Decides what a server does after looks. Those that it takes and gives are at work until [`Planner::taken`] and
    /// [`Planner::given`] say that they are not. `own` is its place among the servers of the look; none if it may take nothing.
    pub(super) fn decide(
        &mut self,
        now: Instant,
        own: Option<usize>,
        mut look: Look,
        served: &BTreeSet<NamespaceKey>,
    ) -> Decided {
        for namespace in &mut look.namespaces {
            let key = &namespace.key;
            let is_owned = own.is_some_and(|own| namespace.owner == Owner::Live(own));
            let is_free = namespace.owner == Owner::Absent;
            if self.taking.contains(key) || is_free && served.contains(key) {
                // It counts as this server's: what else it takes is less by that.
                namespace.owner = own.map_or(namespace.owner, Owner::Live);
            } else if is_owned && (!served.contains(key) || self.giving.contains(key)) {
                // This server gives it away; or it took it, and does not serve it: its log could not be read, or the answer was lost.
                namespace.owner = Owner::Absent;
            }
        }
        if self.live != look.live {
            self.live.clone_from(&look.live);
            self.changed = Some(now);
        }
        let late = self.late(&look, own, now);
        let Some(own) = own else {
            return Decided::default();
        };
        let mut take: BTreeSet<NamespaceKey> = look.to_take(own).into_iter().collect();
        take.extend(late);
        let is_at_work =
            |key: &NamespaceKey| self.taking.contains(key) || self.giving.contains(key);
        take.retain(|key| !is_at_work(key) && !served.contains(key));
        let rests = |since: Option<Instant>, span| {
            since.is_none_or(|since| span < now.saturating_duration_since(since))
        };
        let mut give = Vec::new();
        if rests(self.changed, JUDGED) {
            give = look.to_shed(own);
            give.retain(|key| served.contains(key) && !self.giving.contains(key));
            give.truncate(limits::HANDOVERS_AT_ONCE.saturating_sub(self.giving.len()));
        }
        if give.is_empty() && rests(self.changed, SETTLED) && rests(self.moved, MOVED) {
            give = look.to_give(own, limits::HANDOVERS_AT_ONCE);
            give.retain(|key| served.contains(key) && !self.giving.contains(key));
        }
        if !give.is_empty() {
            self.moved = Some(now);
            self.giving.extend(&give);
        }
        self.taking.extend(&take);
        Decided {
            take: take.into_iter().collect(),
            give,
        }
    }

    /// Returns the namespaces that have had no server for long: the one that should have taken them may not be able to.
    fn late(&mut self, look: &Look, own: Option<usize>, now: Instant) -> Vec<NamespaceKey> {
        let free = look.free();
        // While the servers take some, those that are to take the others are at work.
        let are_taken = free.len() < self.free.len();
        let before = std::mem::take(&mut self.free);
        let since = |key: &NamespaceKey| before.get(key).filter(|_| !are_taken).copied();
        let since = free
            .iter()
            .map(|it| (it.key, since(&it.key).unwrap_or(now)));
        self.free = since.collect();
        let Some(server) = own.and_then(|own| look.live.get(own)) else {
            return Vec::new();
        };
        let overdue = 3 * limits::BEAT.as_duration();
        let is_late = |it: &&Seen| {
            let since = self.free.get(&it.key);
            since.is_some_and(|since| overdue < now.saturating_duration_since(*since))
        };
        let late = free.iter().filter(|it| server.may_have(it)).filter(is_late);
        late.map(|it| it.key).collect()
    }

    /// A take-over has ended, well or not.
    pub(super) fn taken(&mut self, key: NamespaceKey) {
        self.taking.remove(&key);
    }

    /// A handover has ended.
    pub(super) fn given(&mut self, key: NamespaceKey) {
        self.giving.remove(&key);
    }

    /// This server stops, and gives namespaces away without a decision.
    pub(super) fn gives(&mut self, keys: &[NamespaceKey]) {
        self.giving.extend(keys);
    }

    /// Returns whether no take-over is at work.
    pub(super) fn is_idle(&self) -> bool {
        self.taking.is_empty()
    }
}

/// The beats of other servers in a store, as this one has seen them, by the incarnations of these servers.
#[derive(Debug)]
pub(super) struct Beats<K> {
    seen: BTreeMap<K, Beat>,
    /// When they were looked at last.
    looked: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Beat {
    number: i64,
    /// When it was seen first.
    since: Instant,
    /// For how long it was seen unchanged.
    silence: Duration,
}

impl<K> Default for Beats<K> {
    fn default() -> Self {
        Self {
            seen: BTreeMap::new(),
            looked: None,
        }
    }
}

impl<K: Ord + Clone> Beats<K> {
    /// Returns since when the beat of an incarnation is seen.
    pub(super) fn since(&self, incarnation: &K) -> Option<Instant> {
        self.seen.get(incarnation).map(|beat| beat.since)
    }

    /// Takes the beats of all other servers that are alive; returns the incarnations whose beats were seen unchanged for too long.
    ///
    /// Time without looks does not count, but for two beats: while the store was away, no server could beat, and after it this one may be
    /// the first.
    pub(super) fn silent(
        &mut self,
        now: Instant,
        alive: impl IntoIterator<Item = (K, i64)>,
    ) -> Vec<K> {
        let span = self.looked.replace(now);
        let span = span.map_or(Duration::ZERO, |looked| {
            now.saturating_duration_since(looked)
        });
        let span = span.min(2 * limits::BEAT.as_duration());
        let mut before = std::mem::take(&mut self.seen);
        let mut silent = Vec::new();
        for (incarnation, number) in alive {
            let known = before.remove(&incarnation);
            let known = known.filter(|known| known.number == number);
            let mut beat = known.unwrap_or(Beat {
                number,
                since: now,
                silence: Duration::ZERO,
            });
            if known.is_some() {
                beat.silence += span;
            }
            if limits::BEAT_SILENCE_MAX.as_duration() <= beat.silence {
                silent.push(incarnation.clone());
            }
            self.seen.insert(incarnation, beat);
        }
        silent
    }
}

/// Servers that have left, and those that were declared dead, as this server has seen them, by their incarnations.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// When each was seen first.
    since: BTreeMap<String, Instant>,
}

impl Gone {
    /// Takes all servers that are not alive, and whether each has left in order; returns the incarnations that the store need not keep
    /// any more.
    pub(super) fn forgotten<'a>(
        &mut self,
        now: Instant,
        gone: impl IntoIterator<Item = (&'a str, bool)>,
    ) -> Vec<String> {
        let mut before = std::mem::take(&mut self.since);
        let mut forgotten = Vec::new();
        for (incarnation, has_left) in gone {
            let mut since = before.remove(incarnation).unwrap_or(now);
            let kept = if has_left {
                limits::LEFT_SERVER_KEPT
            } else {
                limits::DEAD_SERVER_KEPT
            };
            if kept.as_duration() <= now.saturating_duration_since(since) {
                forgotten.push(incarnation.to_owned());
                // One that stays, because a namespace names it, is not asked for at each look.
                since = now;
            }
            self.since.insert(incarnation.to_owned(), since);
        }
        forgotten
    }
}

#[cfg(test)]
mod tests;
