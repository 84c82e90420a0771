//! A fleet in virtual time: every server beats and looks at every store, takes over and gives away as `Planner` decides, and sees
//! what the others have done when it looks the next time.

use std::collections::VecDeque;

use super::*;

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
}

struct Machine {
    name: String,
    is_up: bool,
    incarnation: u64,
    /// When it looks, in each half second.
    phase: Duration,
    planner: Planner,
    /// For each store.
    beats: Vec<Beats<Incarnation>>,
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
    began: Instant,
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
        };
        let stores = (0..stores).map(tables).collect();
        let mut random = Random(!seed);
        let machines = (0..servers).map(|at| Machine {
            name: format!("server-{at:03}"),
            is_up: false,
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
            began: Instant::now(),
            now: Duration::ZERO,
            changed: Duration::ZERO,
            machines: machines.collect(),
            stores,
            takeovers: 0,
            lost: 0,
        }
    }

    fn start(&mut self, at: usize) {
        let machine = &mut self.machines[at];
        machine.is_up = true;
        machine.incarnation += 1;
        machine.planner = Planner::default();
        machine.beats = self.stores.iter().map(|_| Beats::default()).collect();
        machine.waiting = self.stores.iter().map(|_| VecDeque::new()).collect();
        machine.served.clear();
        machine.taking.clear();
        machine.giving.clear();
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
                if !self.machines[at].is_up {
                    continue;
                }
                self.work(at);
                let half = limits::BEAT.as_duration().as_millis();
                if self.now.as_millis() % half == self.machines[at].phase.as_millis() {
                    self.look(at);
                }
            }
        }
    }

    /// Ends what has taken its time, and begins what there is room for.
    fn work(&mut self, at: usize) {
        let machine = &mut self.machines[at];
        let (own, now) = ((at, machine.incarnation), self.now);
        for (key, epoch, _) in machine.taking.extract_if(.., |(_, _, end)| *end <= now) {
            let row = &mut self.stores[key.store].namespaces[place(key.id)];
            machine.planner.taken(key);
            if row.1 == epoch {
                *row = (Some(own), epoch + 1);
                machine.served.insert(key);
                self.takeovers += 1;
                self.changed = now;
            } else {
                self.lost += 1;
            }
        }
        for (key, _) in machine.giving.extract_if(.., |(_, end)| *end <= now) {
            let row = &mut self.stores[key.store].namespaces[place(key.id)];
            assert_eq!(row.0, Some(own), "it was not taken from it");
            *row = (None, row.1 + 1);
            machine.planner.given(key);
            self.changed = now;
        }
        for (store, waiting) in machine.waiting.iter_mut().enumerate() {
            // What the last look has seen with another server is left alone.
            waiting.retain(|(key, _)| {
                machine.seen_free.contains(key) || {
                    machine.planner.taken(*key);
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
        for (store, tables) in self.stores.iter_mut().enumerate() {
            let row = tables.servers.get_mut(&own).unwrap();
            assert!(row.1, "it was declared dead");
            row.0 += 1;
            let others = tables.servers.iter();
            let others = others.filter(|(other, row)| row.1 && **other != own);
            let others = others.map(|(other, row)| (*other, row.0));
            for dead in self.machines[at].beats[store].silent(now, others) {
                tables.servers.get_mut(&dead).unwrap().1 = false;
                self.changed = self.now;
            }
        }
        // Nothing that a decision depends on has changed for so long that it would be the same again.
        if self.changed + 2 * SETTLED < self.now {
            return;
        }
        let look = self.seen();
        let server = look
            .live
            .iter()
            .position(|it| it.name == self.machines[at].name);
        let machine = &mut self.machines[at];
        let free = look
            .namespaces
            .iter()
            .filter(|it| it.owner == Owner::Absent);
        machine.seen_free = free.map(|it| it.key).collect();
        let served = &machine.served;
        let decided = machine.planner.decide(now, server, look, served);
        for key in decided.take {
            let epoch = self.stores[key.store].namespaces[place(key.id)].1;
            machine.waiting[key.store].push_back((key, epoch));
        }
        for key in decided.give {
            assert!(machine.served.remove(&key), "only what is served is given");
            machine.giving.push((key, self.now + GIVE));
        }
    }

    /// Returns what a look at all stores finds.
    fn seen(&self) -> Look {
        let alive = self.stores[0].servers.iter().filter(|(_, row)| row.1);
        let alive: Vec<Incarnation> = alive.map(|(incarnation, _)| *incarnation).collect();
        let mut places = vec![(0, 0); self.machines.len()];
        for (place, (at, incarnation)) in alive.iter().enumerate() {
            places[*at] = (*incarnation, place);
        }
        let live = alive.iter().map(|(at, _)| Live {
            name: self.machines[*at].name.clone(),
            formats: 1,
            stores: all(self.stores.len()),
        });
        let mut namespaces = Vec::new();
        for (store, tables) in self.stores.iter().enumerate() {
            let rows = tables.namespaces.iter().zip(&tables.rates).zip(0..);
            namespaces.extend(rows.map(|(((owner, _), rate), id)| {
                let live = owner.filter(|(at, incarnation)| places[*at].0 == *incarnation);
                Seen {
                    key: NamespaceKey { store, id },
                    ..seen(
                        id,
                        live.map_or(Owner::Absent, |(at, _)| Owner::Live(places[at].1)),
                        *rate,
                    )
                }
            }));
        }
        Look {
            live: live.collect(),
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
    let bound = limits::BEAT_SILENCE_MAX.as_duration() + 5 * limits::BEAT.as_duration();
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
