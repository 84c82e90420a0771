//! How many may be in: as many connections as there are descriptors for, and of those that have not
//! proved a right yet a bounded number from one machine, and in all.
//!
//! Whoever comes when others of its machine are still proving theirs waits for its turn: a client
//! that is turned away would only come again. Only when very many wait is one turned away.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use crate::access::Peer;
use crate::limits;

/// How often it is told that there are too many.
const TELL: Duration = Duration::from_secs(10);

/// How long a stranger has, for its turn to come, and then to prove a right.
pub(super) const ADMISSION_DEADLINE: Duration =
    Duration::from_millis(limits::ADMISSION_DEADLINE.as_millis().cast_unsigned());

/// What a listener is for: each takes every protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// Everything.
    Main,
    /// Health and administration: there is a place, though all others are taken.
    Side,
}

/// Places for connections: each takes a descriptor, and the log needs some too.
#[derive(Debug, Clone)]
pub(super) struct Places {
    all: Arc<Semaphore>,
    /// For side doors only.
    side: Arc<Semaphore>,
    told: Arc<Mutex<Told>>,
}

/// A place; it is free again when this is dropped. It is held for as long as the connection has a
/// descriptor, whatever protocol is spoken on it.
#[derive(Debug)]
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
    /// Which places it is one of.
    door: Door,
}

impl Place {
    fn new(permit: OwnedSemaphorePermit, door: Door) -> Self {
        Self {
            _permit: permit,
            door,
        }
    }

    /// Returns whether it is one of those that are kept for health and administration.
    pub(super) fn is_aside(&self) -> bool {
        self.door == Door::Side
    }
}

impl Places {
    /// Divides the descriptors that the process may have.
    pub(super) fn new(descriptors: usize) -> Self {
        /// The fewest of them that health and administration have.
        const SIDE_MIN: usize = 8;
        const LEAST: usize = limits::DESCRIPTORS_OWN + SIDE_MIN;
        const { assert!(LEAST < limits::DESCRIPTORS_MIN && LEAST <= limits::DESCRIPTORS_KEPT) }
        let kept = (descriptors / 4).clamp(LEAST, limits::DESCRIPTORS_KEPT);
        let side = limits::SIDE_PLACES.min(kept - limits::DESCRIPTORS_OWN);
        // A semaphore does not count as far as descriptors may.
        let all = descriptors.saturating_sub(kept).min(Semaphore::MAX_PERMITS);
        Self {
            all: Arc::new(Semaphore::new(all)),
            side: Arc::new(Semaphore::new(side)),
            told: Arc::default(),
        }
    }

    /// Returns how many connections there may be, now that nobody is in.
    pub(super) fn count(&self) -> usize {
        self.all.available_permits()
    }

    /// Waits for a place.
    pub(super) async fn take(&self, door: Door) -> Place {
        match self.try_take() {
            Some(place) => place,
            None => self.wait(door).await,
        }
    }

    /// Takes a place that is not kept for health and administration, if one is free.
    pub(super) fn try_take(&self) -> Option<Place> {
        let permit = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Place::new(permit, Door::Main))
    }

    async fn wait(&self, door: Door) -> Place {
        /// No semaphore of places is ever closed.
        const OPEN: &str = "no place is ever closed";
        let of_all = Arc::clone(&self.all).acquire_owned();
        match door {
            Door::Main => {
                if locked(&self.told).is_due() {
                    warn!("there are no descriptors for more connections: the next ones wait");
                }
                Place::new(of_all.await.expect(OPEN), Door::Main)
            }
            Door::Side => tokio::select! {
                biased;
                permit = of_all => Place::new(permit.expect(OPEN), Door::Main),
                permit = Arc::clone(&self.side).acquire_owned() => {
                    Place::new(permit.expect(OPEN), Door::Side)
                }
            },
        }
    }
}

/// Those that have not proved a right yet, by the machines that they come from.
#[derive(Debug, Clone)]
pub(super) struct Visits {
    bounds: Bounds,
    visitors: Arc<Mutex<Visitors>>,
}

/// How many there may be.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    of_address: usize,
    of_all: usize,
    /// Beyond, for addresses that have none.
    spare: usize,
    waiting: usize,
}

#[derive(Debug, Default)]
struct Visitors {
    by_peer: BTreeMap<Peer, OfPeer>,
    /// Those that are being served.
    served: usize,
    /// Those that wait for their turn.
    waiting: usize,
    told: Told,
}

#[derive(Debug)]
struct OfPeer {
    places: Arc<Semaphore>,
    /// Those that are being served or wait.
    present: usize,
}

/// When something was last told.
#[derive(Debug, Default)]
struct Told(Option<Instant>);

impl Told {
    /// Returns whether it is time to tell it again, and then it is told.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.0.is_none_or(|told| told + TELL <= now);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

/// One that is being served; it is over when it is dropped.
#[derive(Debug)]
pub(super) struct Visit {
    address: IpAddr,
    deadline: Instant,
    _served: Counted,
    /// Given back after all that counts it.
    _permit: OwnedSemaphorePermit,
}

/// One that waits for its turn.
#[derive(Debug)]
pub(super) struct Turn {
    address: IpAddr,
    places: Arc<Semaphore>,
    waiting: Counted,
}

/// How somebody comes in.
#[derive(Debug)]
pub(super) enum Entry {
    AtOnce(Visit),
    InTurn(Turn),
}

/// One of those that are counted; no more when it is dropped.
#[derive(Debug)]
struct Counted {
    visits: Visits,
    peer: Peer,
    as_what: As,
}

#[derive(Debug, Clone, Copy)]
enum As {
    Served,
    Waiting,
}

impl Bounds {
    /// What fits into so many places: one machine takes a quarter of them at most with what it
    /// serves, and all strangers together leave some.
    fn within(places: usize) -> Self {
        Self {
            of_address: limits::VISITS_PER_ADDRESS_MAX.min(places / 4).max(1),
            of_all: limits::VISITS_MAX.min(places / 8 * 3).max(1),
            spare: limits::VISITS_SPARE.min(places / 16).max(1),
            waiting: limits::VISITS_WAITING_MAX.min(places / 2),
        }
    }
}

impl Visits {
    /// Begins to count, where there may be so many connections.
    pub(super) fn new(places: usize) -> Self {
        Self {
            bounds: Bounds::within(places),
            visitors: Arc::default(),
        }
    }

    /// Lets one more in at once, if it may be.
    pub(super) fn enter(&self, address: IpAddr) -> Option<Visit> {
        match self.admit(address)? {
            Entry::AtOnce(visit) => Some(visit),
            Entry::InTurn(_) => None,
        }
    }

    /// Lets one more in, at once or when it is its turn; `None` if there are too many.
    pub(super) fn admit(&self, address: IpAddr) -> Option<Entry> {
        let peer = peer_of(address);
        let mut visitors = locked(&self.visitors);
        let of_peer = visitors.by_peer.get(&peer);
        let of_all = if of_peer.is_none() {
            self.bounds.of_all + self.bounds.spare
        } else {
            self.bounds.of_all
        };
        let places = of_peer.map_or_else(
            || Arc::new(Semaphore::new(self.bounds.of_address)),
            |of_peer| Arc::clone(&of_peer.places),
        );
        let permit = Arc::clone(&places).try_acquire_owned().ok();
        let (count, max, as_what) = match permit {
            Some(_) => (visitors.served, of_all, As::Served),
            None => (visitors.waiting, self.bounds.waiting, As::Waiting),
        };
        if max <= count {
            if visitors.told.is_due() {
                let (served, waiting) = (visitors.served, visitors.waiting);
                warn!(%address, served, waiting, "too many at the doors");
            }
            return None;
        }
        let by_peer = visitors.by_peer.entry(peer);
        let of_peer = by_peer.or_insert_with(|| OfPeer {
            places: Arc::clone(&places),
            present: 0,
        });
        of_peer.present += 1;
        *visitors.count_mut(as_what) += 1;
        drop(visitors);
        let counted = Counted {
            visits: self.clone(),
            peer,
            as_what,
        };
        Some(match permit {
            Some(permit) => Entry::AtOnce(Visit::begin(address, counted, permit)),
            None => Entry::InTurn(Turn {
                address,
                places,
                waiting: counted,
            }),
        })
    }
}

impl Turn {
    /// Waits until it is its turn; `None` if that has not come in time.
    pub(super) async fn come(self, deadline: Instant) -> Option<Visit> {
        let permit = timeout_at(deadline, self.places.acquire_owned()).await;
        let permit = permit.ok()?.expect("no place is ever closed");
        Some(Visit::begin(self.address, self.waiting.served(), permit))
    }
}

impl Counted {
    /// From now on it counts as one that is served.
    fn served(mut self) -> Self {
        let mut visitors = locked(&self.visits.visitors);
        *visitors.count_mut(self.as_what) -= 1;
        *visitors.count_mut(As::Served) += 1;
        drop(visitors);
        self.as_what = As::Served;
        self
    }
}

impl Visitors {
    fn count_mut(&mut self, as_what: As) -> &mut usize {
        match as_what {
            As::Served => &mut self.served,
            As::Waiting => &mut self.waiting,
        }
    }
}

impl Visit {
    fn begin(address: IpAddr, served: Counted, permit: OwnedSemaphorePermit) -> Self {
        Self {
            address,
            deadline: Instant::now() + ADMISSION_DEADLINE,
            _served: served,
            _permit: permit,
        }
    }

    /// Returns until when a right must be proved.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns where it comes from.
    pub(super) fn address(&self) -> IpAddr {
        self.address
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut visitors = locked(&self.visits.visitors);
        *visitors.count_mut(self.as_what) -= 1;
        if let Some(of_peer) = visitors.by_peer.get_mut(&self.peer) {
            of_peer.present -= 1;
            if of_peer.present == 0 {
                visitors.by_peer.remove(&self.peer);
            }
        }
    }
}

/// The machine at an address: of IPv6, its network, for one machine has very many there.
pub(super) fn peer_of(address: IpAddr) -> Peer {
    /// The part that tells machines of one network apart.
    const HOST_BITS: u32 = 64;
    match address.to_canonical() {
        IpAddr::V4(address) => Peer(u128::from(u32::from(address))),
        IpAddr::V6(address) => Peer(u128::from(address) >> HOST_BITS << HOST_BITS),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

    /// All that one address may have served at a time.
    fn fill(visits: &Visits) -> Vec<Visit> {
        std::iter::from_fn(|| visits.enter(MANY)).collect()
    }

    /// Longer than any test takes.
    fn far() -> Instant {
        Instant::now() + Duration::from_hours(1)
    }

    fn turn(visits: &Visits) -> Turn {
        match visits.admit(MANY) {
            Some(Entry::InTurn(turn)) => turn,
            other => panic!("it must wait, and this is {other:?}"),
        }
    }

    #[tokio::test]
    async fn one_address_has_so_many_served_and_the_next_wait_for_their_turn() {
        let visits = Visits::new(100_000);
        let mut inside = fill(&visits);
        assert_eq!(inside.len(), limits::VISITS_PER_ADDRESS_MAX);
        assert!(visits.enter(OTHER).is_some());
        let (first, second) = (turn(&visits), turn(&visits));
        let mut coming = Box::pin(first.come(far()));
        tokio::select! {
            biased;
            _ = &mut coming => panic!("nobody has gone"),
            () = tokio::task::yield_now() => {}
        }
        inside.pop();
        assert!(coming.await.is_some());
        // Its place is free again; the second has not asked for it yet.
        inside.pop();
        assert!(second.come(far()).await.is_some());
    }

    #[tokio::test]
    async fn a_turn_that_does_not_come_is_over_with_the_deadline() {
        let visits = Visits::new(100_000);
        let inside = fill(&visits);
        assert!(turn(&visits).come(Instant::now()).await.is_none());
        drop(inside);
        let visitors = locked(&visits.visitors);
        assert_eq!((visitors.served, visitors.waiting), (0, 0));
        assert!(visitors.by_peer.is_empty());
    }

    #[tokio::test]
    async fn so_many_wait_and_the_next_are_turned_away() {
        let visits = Visits::new(64);
        let _inside = fill(&visits);
        let waiting: Vec<Turn> = (0..visits.bounds.waiting).map(|_| turn(&visits)).collect();
        assert!(visits.admit(MANY).is_none());
        assert!(visits.enter(OTHER).is_some());
        drop(waiting);
        assert!(visits.admit(MANY).is_some());
    }

    #[test]
    fn strangers_leave_places_to_others() {
        for places in [16, 100, 768, 5_000, 20_000, 1_000_000] {
            let bounds = Bounds::within(places);
            let taken = bounds.of_all + bounds.spare + bounds.waiting;
            assert!(taken < places, "{places}: {bounds:?}");
            assert!(bounds.of_address < places / 2, "{places}: {bounds:?}");
        }
    }

    #[tokio::test]
    async fn the_log_keeps_its_descriptors_and_health_its_places() {
        let places = Places::new(1_024);
        let count = places.count();
        assert_eq!(count, 1_024 - limits::DESCRIPTORS_KEPT);
        let mut taken = Vec::new();
        for _ in 0..count {
            taken.push(places.take(Door::Main).await);
        }
        let main = Arc::new(places.clone());
        let waits = tokio::spawn(async move { main.take(Door::Main).await });
        let health = places.take(Door::Side).await;
        assert!(!waits.is_finished());
        drop(taken.pop());
        waits.await.unwrap();
        drop(health);
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let one = peer_of("2001:db8::1".parse().unwrap());
        assert_eq!(one, peer_of("2001:db8::ffff:2".parse().unwrap()));
        assert_ne!(one, peer_of("2001:db8:0:1::1".parse().unwrap()));
        let mapped = peer_of("::ffff:10.0.0.1".parse().unwrap());
        assert_eq!(mapped, peer_of("10.0.0.1".parse().unwrap()));
    }
}
