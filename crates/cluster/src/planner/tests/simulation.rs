//! A fleet in virtual time: every server beats and looks at every store, takes over and gives away as `Planner` decides, and sees
//! what the others have done when it looks the next time.

use std::collections::VecDeque;

use super::*;
use crate::deaths::{self, Death, Rest};
use crate::heartbeats::Heartbeats;

/// How long a take-over takes.
const TAKE: Duration = Duration::from_millis(300);
/// How long a handover takes.
const GIVE: Duration = Duration::from_millis(100);
/// The time between two steps of the simulation.
const STEP: Duration = Duration::from_millis(50);

/// A server's incarnation: the place of the server, and how often it was started.
type Incarnation = (usize, u64);

/// The tables of a store.
struct Tables {
    /// By incarnation: the beat, and whether it is alive.
    servers: BTreeMap<Incarnation, (i64, bool)>,
    /// By number: the owner, and the epoch.
    namespaces: Vec<(Option<Incarnation>, i64)>,
    rates: Vec<i64>,
    /// What is counted of each.
    deaths: Vec<Deaths>,
}

/// What is counted of a namespace whose owners die.
#[derive(Default)]
struct Deaths {
    count: i32,
    before: Option<usize>,
    is_quarantined: bool,
}

struct Machine {
    name: String,
    is_up: bool,
    /// Its process does not run, and does not know that.
    is_frozen: bool,
    /// Its clock is right.
    is_in_time: bool,
    deaths: i32,
    rest: Rest,
    fitness: Fitness,
    /// Namespaces that it has taken.
    takeovers: usize,
    incarnation: u64,
    /// When it looks, in each half second.
    phase: Duration,
    planner: Planner,
    /// For each store.
    beats: Vec<Heartbeats<Incarnation>>,
    served: BTreeSet<NamespaceKey>,
    /// Namespaces without an owner, by the last look.
    seen_free: BTreeSet<NamespaceKey>,
    /// For each store, namespaces that are to be taken over, with the epochs that were seen.
    waiting: Vec<VecDeque<(NamespaceKey, i64)>>,
    /// Take-overs at work, and when they end.
    taking: Vec<(NamespaceKey, i64, Duration)>,
    giving: Vec<(NamespaceKey, Duration)>,
}

struct World {
    began: Duration,
    now: Duration,
    /// When something but a beat has changed.
    changed: Duration,
    stores: Vec<Tables>,
    machines: Vec<Machine>,
    takeovers: usize,
    /// Take-overs that came too late: another server was faster.
    lost: usize,
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ (value >> 31)) % end
    }
}

fn place(id: i64) -> usize {
    usize::try_from(id).unwrap()
}

impl World {
    fn new(seed: u64, stores: usize, namespaces: usize, servers: usize) -> Self {
        let mut random = Random(seed);
        // A tenth is busy.
        let mut rate = || match random.below(10) {
            0 => i64::try_from(random.below(8_000)).unwrap(),
            _ => 0,
        };
        let tables = |_| Tables {
            servers: BTreeMap::new(),
            namespaces: vec![(None, 0); namespaces / stores],
            rates: (0..namespaces / stores).map(|_| rate()).collect(),
            deaths: (0..namespaces / stores)
                .map(|_| Deaths::default())
                .collect(),
        };
        let stores = (0..stores).map(tables).collect();
        let mut random = Random(!seed);
        let machines = (0..servers).map(|at| Machine {
            name: format!("server-{at:03}"),
            is_up: false,
            is_frozen: false,
            is_in_time: true,
            deaths: 0,
            rest: Rest::default(),
            fitness: Fitness::Fit,
            takeovers: 0,
            incarnation: 0,
            phase: STEP * u32::try_from(random.below(10)).unwrap(),
            planner: Planner::default(),
            beats: Vec::new(),
            served: BTreeSet::new(),
            seen_free: BTreeSet::new(),
            waiting: Vec::new(),
            taking: Vec::new(),
            giving: Vec::new(),
        });
        Self {
            began: Duration::from_secs(1_000_000),
            now: Duration::ZERO,
            changed: Duration::ZERO,
            machines: machines.collect(),
            stores,
            takeovers: 0,
            lost: 0,
        }
    }

    fn start(&mut self, at: usize) {
        let now = self.began + self.now;
        let machine = &mut self.machines[at];
        machine.is_up = true;
        machine.incarnation += 1;
        machine.planner = Planner::default();
        machine.beats = self.stores.iter().map(|_| Heartbeats::default()).collect();
        machine.waiting = self.stores.iter().map(|_| VecDeque::new()).collect();
        machine.served.clear();
        machine.taking.clear();
        machine.giving.clear();
        machine.rest.begin(now, machine.deaths);
        for store in &mut self.stores {
            store.servers.retain(|(server, _), _| *server != at);
            store.servers.insert((at, machine.incarnation), (1, true));
        }
        self.changed = self.now;
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            self.now += STEP;
            for at in 0..self.machines.len() {
                if !self.machines[at].is_up || self.machines[at].is_frozen {
                    continue;
                }
                self.judge(at);
                self.work(at);
                let half = limits::HEARTBEAT.as_duration().as_millis();
                if self.now.as_millis() % half == self.machines[at].phase.as_millis() {
                    self.look(at);
                }
            }
        }
    }

    /// A server judges whether it is fit.
    fn judge(&mut self, at: usize) {
        let now = self.began + self.now;
        let machine = &mut self.machines[at];
        let fitness = match (machine.is_in_time, machine.rest.rests(now)) {
            (false, _) => Fitness::Unfit,
            (true, true) => Fitness::Resting,
            (true, false) => Fitness::Fit,
        };
        if machine.rest.is_forgiven(now) {
            machine.rest.forgive();
            machine.deaths = 0;
        }
        if std::mem::replace(&mut machine.fitness, fitness) != fitness {
            self.changed = self.now;
        }
    }

    /// A server has raised the epoch of a namespace: counts the death of its last owner, if it has died. Returns whether it is to be served.
    fn counts(&mut self, at: usize, key: NamespaceKey, last: Option<Incarnation>) -> bool {
        let tables = &mut self.stores[key.store];
        let has_died = |last: &Incarnation| !tables.servers.get(last).is_some_and(|row| row.1);
        let Some((dead, _)) = last.filter(has_died) else {
            return true;
        };
        let counted = &mut tables.deaths[place(key.id)];
        let name = |at: usize| &self.machines[at].name[..];
        let death = Death {
            server: name(dead),
            before: counted.before.map(name),
            taker: name(at),
        };
        if death.counts() {
            counted.count += 1;
            counted.before = Some(dead);
        }
        counted.is_quarantined = deaths::is_deadly(counted.count);
        !counted.is_quarantined
    }

    /// Ends what has taken its time, and begins what there is room for.
    fn work(&mut self, at: usize) {
        let (own, now) = ((at, self.machines[at].incarnation), self.now);
        let taken = self.machines[at].taking.extract_if(.., |it| it.2 <= now);
        for (key, epoch, _) in taken.collect::<Vec<_>>() {
            self.machines[at].planner.acquired(key);
            let row = &mut self.stores[key.store].namespaces[place(key.id)];
            if row.1 == epoch {
                let last = row.0.replace(own);
                row.1 = epoch + 1;
                if self.counts(at, key, last) {
                    self.machines[at].served.insert(key);
                }
                self.machines[at].takeovers += 1;
                self.takeovers += 1;
                self.changed = now;
            } else {
                self.lost += 1;
            }
        }
        let machine = &mut self.machines[at];
        for (key, _) in machine.giving.extract_if(.., |(_, end)| *end <= now) {
            let row = &mut self.stores[key.store].namespaces[place(key.id)];
            assert_eq!(row.0, Some(own), "it was not taken from it");
            *row = (None, row.1 + 1);
            machine.planner.released(key);
            self.changed = now;
        }
        for (store, waiting) in machine.waiting.iter_mut().enumerate() {
            // What the last look has seen with another server is left alone.
            waiting.retain(|(key, _)| {
                machine.seen_free.contains(key) || {
                    machine.planner.acquired(*key);
                    false
                }
            });
            let busy = machine.taking.iter().filter(|it| it.0.store == store);
            let room = limits::TAKEOVERS_AT_ONCE - busy.count();
            let begun = waiting.drain(..room.min(waiting.len()));
            let begun = begun.map(|(key, epoch)| (key, epoch, now + TAKE));
            machine.taking.extend(begun);
        }
    }

    /// A server beats, looks at all stores, and does what it decides.
    fn look(&mut self, at: usize) {
        let own = (at, self.machines[at].incarnation);
        let now = self.began + self.now;
        if self.stores.iter().any(|tables| !tables.servers[&own].1) {
            // It was declared dead, and joins anew.
            assert_ne!(self.machines[at].deaths, 0, "no server was silent");
            self.start(at);
            return;
        }
        for (store, tables) in self.stores.iter_mut().enumerate() {
            let row = tables.servers.get_mut(&own).unwrap();
            row.0 += 1;
            let others = tables.servers.iter();
            let others = others.filter(|(other, row)| row.1 && **other != own);
            let others = others.map(|(other, row)| (*other, row.0));
            for dead in self.machines[at].beats[store].silent(now, others) {
                tables.servers.get_mut(&dead).unwrap().1 = false;
                // Each store counts for itself, and they are alike here.
                self.machines[dead.0].deaths += i32::from(store == 0);
                self.changed = self.now;
            }
        }
        // Nothing that a decision depends on has changed for so long that it would be the same again.
        if self.changed + 2 * SETTLED < self.now {
            return;
        }
        let look = self.seen();
        let server = look
            .members
            .iter()
            .position(|it| it.name == self.machines[at].name);
        let machine = &mut self.machines[at];
        let free = look
            .namespaces
            .iter()
            .filter(|it| it.owner == Owner::Absent);
        machine.seen_free = free.map(|it| it.key).collect();
        let served = &machine.served;
        let decision = machine.planner.decide(now, server, look, served);
        for key in decision.acquire {
            let epoch = self.stores[key.store].namespaces[place(key.id)].1;
            machine.waiting[key.store].push_back((key, epoch));
        }
        for key in decision.release {
            assert!(machine.served.remove(&key), "only what is served is given");
            machine.giving.push((key, self.now + GIVE));
        }
    }

    /// Returns what a look at all stores finds.
    fn seen(&self) -> ClusterView {
        let alive = self.stores[0].servers.iter().filter(|(_, row)| row.1);
        let alive: Vec<Incarnation> = alive.map(|(incarnation, _)| *incarnation).collect();
        let mut places = vec![(0, 0); self.machines.len()];
        for (place, (at, incarnation)) in alive.iter().enumerate() {
            places[*at] = (*incarnation, place);
        }
        let fitness = |(at, _): &Incarnation| self.machines[*at].fitness;
        let best = alive.iter().map(fitness).min().unwrap_or_default();
        let live = alive.iter().map(|it| Member {
            name: self.machines[it.0].name.clone(),
            formats: 1,
            stores: all(self.stores.len() * usize::from(fitness(it).may_take(best))),
        });
        let mut namespaces = Vec::new();
        for (store, tables) in self.stores.iter().enumerate() {
            let rows = tables.namespaces.iter().zip(&tables.rates).zip(0..);
            namespaces.extend(rows.map(|(((owner, _), rate), id)| {
                let live = owner.filter(|(at, incarnation)| places[*at].0 == *incarnation);
                NamespaceState {
                    is_fixed: tables.deaths[place(id)].is_quarantined,
                    key: NamespaceKey { store, id },
                    ..seen(
                        id,
                        live.map_or(Owner::Absent, |(at, _)| Owner::Member(places[at].1)),
                        *rate,
                    )
                }
            }));
        }
        ClusterView {
            members: live.collect(),
            namespaces,
        }
    }

    /// Changes the rates of all namespaces.
    fn set_rates(&mut self, rate: impl Fn(usize, usize, Option<usize>) -> i64) {
        for (at, store) in self.stores.iter_mut().enumerate() {
            let rows = store.namespaces.iter().enumerate();
            let rates = rows.map(|(id, (owner, _))| rate(at, id, owner.map(|(owner, _)| owner)));
            store.rates = rates.collect();
        }
        self.changed = self.now;
    }

    /// Returns how many namespaces are in quarantine.
    fn quarantined(&self) -> usize {
        let all = self.stores.iter().flat_map(|store| &store.deaths);
        all.filter(|it| it.is_quarantined).count()
    }

    /// Returns how many namespaces each server has.
    fn shares(&self) -> Vec<usize> {
        let machines = self.machines.iter();
        machines.map(|machine| machine.served.len()).collect()
    }

    /// Returns how many namespaces have no server that is up.
    fn free(&self) -> usize {
        let all = self.stores.iter().flat_map(|store| &store.namespaces);
        let is_served = |owner: &Option<Incarnation>| {
            owner.is_some_and(|(at, incarnation)| {
                let machine = &self.machines[at];
                machine.is_up && machine.incarnation == incarnation
            })
        };
        all.filter(|(owner, _)| !is_served(owner)).count()
    }

    /// Asserts that all servers carry about the same.
    fn check_even(&self) {
        let look = self.seen();
        let loads = look.loads();
        let mean = loads.iter().sum::<i64>() / i64::try_from(loads.len()).unwrap();
        let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
        assert!(
            most - least <= mean / UNEVEN,
            "{least} to {most}, {mean} in the mean"
        );
    }

    /// Runs until all namespaces have a server; returns how long that took.
    fn until_owned(&mut self, most: Duration) -> Duration {
        let began = self.now;
        while self.free() != 0 {
            self.run(STEP);
            assert!(
                self.now.saturating_sub(began) < most,
                "{} have no server",
                self.free()
            );
        }
        self.now.saturating_sub(began)
    }
}

#[test]
fn a_hundred_servers_share_ten_thousand_namespaces_of_five_stores() {
    const SERVERS: usize = 100;
    const NAMESPACES: usize = 10_000;
    let mut world = World::new(7, 5, NAMESPACES, SERVERS);
    (0..SERVERS).for_each(|at| world.start(at));
    let started = world.until_owned(Duration::from_secs(10));
    assert_eq!(world.takeovers, NAMESPACES, "each by one server");
    world.run(Duration::from_secs(8));
    world.check_even();
    assert_eq!(world.takeovers, NAMESPACES, "nothing has moved");

    // A tenth is lost: what it had is taken, and nothing else moves.
    let lost = (0..SERVERS).filter(|at| at % 10 == 3);
    lost.clone().for_each(|at| world.machines[at].is_up = false);
    let orphans = world.free();
    let took = world.until_owned(Duration::from_secs(20));
    // Five looks: the last beat is seen up to one late, silence is noticed at one, the other servers see that at the next, and two more
    // until those are taken that each of two servers held for the other's. Beside that each server takes its share, so many at a time.
    let share = orphans.div_ceil(SERVERS * 9 / 10) + 2;
    let rounds = u32::try_from(share.div_ceil(limits::TAKEOVERS_AT_ONCE)).unwrap();
    let bound = limits::HEARTBEAT_SILENCE_MAX.as_duration() + 5 * limits::HEARTBEAT.as_duration();
    let bound = bound + rounds * (TAKE + STEP);
    assert!(took <= bound, "{took:?} for {orphans}, at most {bound:?}");
    assert_eq!(world.takeovers, NAMESPACES + orphans, "each by one server");
    world.run(Duration::from_secs(8));
    world.check_even();
    assert_eq!(world.takeovers, NAMESPACES + orphans, "nothing has moved");

    // It comes back, and gets its part.
    let before = world.takeovers;
    lost.for_each(|at| world.start(at));
    world.run(Duration::from_secs(20));
    assert_eq!(world.free(), 0);
    world.check_even();
    let moved = world.takeovers - before;
    // The light ones move.
    let look = world.seen();
    let mean = look.loads().iter().sum::<i64>() / i64::try_from(SERVERS).unwrap();
    let most = place(10 * mean / WEIGHT);
    assert!(moved <= most, "{moved} have moved, not {most} at most");
    let before = world.takeovers;
    world.changed = world.now;
    world.run(Duration::from_secs(8));
    assert_eq!(world.takeovers, before, "nothing moves any more");
    assert!(started <= Duration::from_secs(5), "{started:?}");
    assert!(
        world.lost <= NAMESPACES / 4,
        "{} take-overs came too late",
        world.lost
    );
}

#[test]
fn rates_move_a_bounded_number_and_nothing_flaps() {
    let mut world = World::new(11, 3, 300, 6);
    (0..6).for_each(|at| world.start(at));
    world.until_owned(Duration::from_secs(10));
    world.run(Duration::from_secs(30));
    let before = world.takeovers;
    // All rates change by a fifth up and down, for ten minutes.
    let rates: Vec<Vec<i64>> = world.stores.iter().map(|it| it.rates.clone()).collect();
    for round in 0..40 {
        world.set_rates(|store, id, _| {
            let rate = rates[store][id];
            let mut random = Random(rate.cast_unsigned() + (round << 32));
            rate * i64::try_from(80 + random.below(41)).unwrap() / 100
        });
        world.run(Duration::from_secs(15));
    }
    let moved = world.takeovers - before;
    assert!(moved <= 5, "{moved} have moved");
    // One server's namespaces become busy: others take some of them, once.
    world.set_rates(|store, id, owner| rates[store][id] + if owner == Some(2) { 2_000 } else { 0 });
    let before = world.takeovers;
    world.run(Duration::from_mins(1));
    world.check_even();
    let moved = world.takeovers - before;
    assert!((5..=50).contains(&moved), "{moved} have moved");
}

/// A flapping server: it is frozen for 4 s of every 20 s, beside two that are well.
#[test]
fn a_server_that_flaps_puts_no_namespace_into_quarantine_and_gets_none_any_more() {
    let mut world = World::new(3, 1, 9, 3);
    world.set_rates(|_, _, _| 0);
    (0..3).for_each(|at| world.start(at));
    world.until_owned(Duration::from_secs(10));
    assert_eq!(world.shares(), [3, 3, 3]);
    let mut after_two = 0;
    for round in 1..=30 {
        world.machines[0].is_frozen = true;
        world.run(Duration::from_secs(4));
        world.machines[0].is_frozen = false;
        world.run(Duration::from_secs(16));
        assert_eq!(world.machines[0].deaths, round, "each is seen");
        assert_eq!(world.quarantined(), 0, "round {round}");
        assert_eq!(world.free(), 0);
        if round == 2 {
            after_two = world.machines[0].takeovers;
        }
    }
    assert_eq!(world.machines[0].takeovers, after_two);
    assert_eq!(world.shares()[0], 0);
    let deaths = world.stores[0].deaths.iter().map(|it| it.count);
    assert!(deaths.max() <= Some(1), "they died at one server");
    // It is well again, gets its share after its rest, and its deaths are counted anew some time after that.
    world.run(limits::SERVER_REST_MAX.as_duration() + Duration::from_secs(30));
    assert_eq!(world.shares(), [3, 3, 3]);
    world.run(limits::SERVER_HEALTHY.as_duration());
    assert_eq!(world.machines[0].deaths, 0);
}

/// A namespace that ends each server which takes it: it is left alone, and the servers that it has ended get the others back although they
/// all have died of late.
#[test]
fn a_namespace_that_ends_its_servers_is_left_alone_and_the_others_have_servers() {
    let mut world = World::new(5, 1, 12, 3);
    (0..3).for_each(|at| world.start(at));
    world.until_owned(Duration::from_secs(10));
    for _ in 0..400 {
        let (owner, _) = world.stores[0].namespaces[7];
        let poisoned = owner.map(|(at, _)| at);
        if let Some(at) = poisoned.filter(|at| {
            let machine = &world.machines[*at];
            machine.served.contains(&key(7)) && machine.is_up
        }) {
            world.machines[at].is_up = false;
            world.run(Duration::from_secs(5));
            world.start(at);
        }
        world.run(STEP);
    }
    let quarantined = |it: &Deaths| it.is_quarantined;
    assert!(quarantined(&world.stores[0].deaths[7]));
    world.run(Duration::from_secs(10));
    let others = world.stores[0].deaths.iter().enumerate();
    let others = others.filter(|(id, it)| *id != 7 && !it.is_quarantined);
    let served: usize = world.shares().iter().sum();
    assert_eq!(served, others.count());
}

/// server-clock + 1 h: one server's clock is set while it has namespaces.
#[test]
fn a_server_whose_clock_is_set_gives_its_namespaces_away() {
    let mut world = World::new(9, 2, 60, 3);
    world.set_rates(|_, _, _| 0);
    (0..3).for_each(|at| world.start(at));
    world.until_owned(Duration::from_secs(10));
    assert_eq!(world.shares(), [20, 20, 20]);
    let before = world.takeovers;
    world.machines[1].is_in_time = false;
    world.run(Duration::from_secs(4));
    assert_eq!((world.shares()[1], world.free()), (0, 0));
    assert_eq!(world.takeovers - before, 20, "nothing else moves");
    world.run(Duration::from_mins(1));
    assert_eq!(world.shares()[1], 0);
    world.machines[1].is_in_time = true;
    world.run(Duration::from_secs(20));
    assert_eq!(world.shares(), [20, 20, 20]);
    // The database's clock is set: no server is better than another.
    let (shares, before) = (world.shares(), world.takeovers);
    for machine in &mut world.machines {
        machine.is_in_time = false;
    }
    world.run(Duration::from_secs(20));
    assert_eq!((world.shares(), world.takeovers), (shares, before));
}
