//! Admission control. Caps connections by available file descriptors, and unauthenticated
//! connections per client address and overall.
//!
//! A connection beyond the cap of its address is queued until another one of that address is
//! authorized or ends: a client that is refused would only connect again. Connections are refused
//! only when the queue is full.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use super::namespace_connections::NamespaceConnections;
use super::unauthenticated::{FirstByte, Meter, Share, UnauthenticatedBytes};
use super::warning::Warning;
use crate::limits;
use jitney_broker::access::PeerAddress;

/// The purpose of a listener. Each takes every protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListenerKind {
    /// Everything.
    General,
    /// Health and administration. A few slots are reserved for it.
    Administration,
    /// Metrics and health only, without a key. It shares the reserved slots.
    Metrics,
    /// Connections that another server of the fleet passes on.
    Peer,
}

/// Slots for connections. Each connection takes a descriptor, and the log needs some too.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSlots {
    general: Arc<Semaphore>,
    /// For listeners of other kinds than [`ListenerKind::General`].
    reserved: Arc<Semaphore>,
    warning: Arc<Mutex<Warning>>,
    /// Of each namespace, those that are authorized.
    connections: NamespaceConnections,
}

/// A slot; it is free again when this is dropped. A connection holds it for as long as it has a
/// descriptor, whatever protocol is spoken on it.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    is_reserved: bool,
}

impl ConnectionSlot {
    fn general(permit: OwnedSemaphorePermit) -> Self {
        Self {
            _permit: permit,
            is_reserved: false,
        }
    }

    fn reserved(permit: OwnedSemaphorePermit) -> Self {
        Self {
            _permit: permit,
            is_reserved: true,
        }
    }

    /// Returns whether it is one of those reserved for health and administration.
    pub(crate) fn is_reserved(&self) -> bool {
        self.is_reserved
    }
}

impl ConnectionSlots {
    /// Divides the descriptors that the process may have.
    pub(crate) fn new(descriptors: usize) -> Self {
        const LEAST: usize = limits::DESCRIPTORS_OWN + limits::ADMINISTRATION_SLOTS_MIN;
        let kept = (descriptors / 4).clamp(LEAST, limits::DESCRIPTORS_KEPT);
        let reserved = limits::ADMINISTRATION_SLOTS.min(kept - limits::DESCRIPTORS_OWN);
        // A semaphore counts less far than descriptors may.
        let general = descriptors.saturating_sub(kept).min(Semaphore::MAX_PERMITS);
        Self {
            general: Arc::new(Semaphore::new(general)),
            reserved: Arc::new(Semaphore::new(reserved)),
            warning: Arc::default(),
            connections: NamespaceConnections::new(general),
        }
    }

    /// Returns what counts the connections of each namespace.
    pub(crate) const fn connections(&self) -> &NamespaceConnections {
        &self.connections
    }

    /// Returns the number of free slots, without the reserved ones.
    pub(crate) fn count(&self) -> usize {
        self.general.available_permits()
    }

    /// Waits for a slot.
    pub(crate) async fn take(&self, kind: ListenerKind) -> ConnectionSlot {
        match self.try_take() {
            Some(slot) => slot,
            None => self.wait(kind).await,
        }
    }

    /// Takes a slot that is not reserved, if one is free.
    pub(crate) fn try_take(&self) -> Option<ConnectionSlot> {
        let permit = Arc::clone(&self.general).try_acquire_owned().ok()?;
        Some(ConnectionSlot::general(permit))
    }

    async fn wait(&self, kind: ListenerKind) -> ConnectionSlot {
        const OPEN: &str = "the semaphores of slots are never closed";
        let general = Arc::clone(&self.general).acquire_owned();
        match kind {
            ListenerKind::General | ListenerKind::Peer => {
                if locked(&self.warning).is_due() {
                    warn!(
                        "all file descriptors for connections are in use: further connections wait \
                         in the listen backlog; raise the limit of open files (ulimit -n)"
                    );
                }
                ConnectionSlot::general(general.await.expect(OPEN))
            }
            ListenerKind::Administration | ListenerKind::Metrics => tokio::select! {
                biased;
                permit = general => ConnectionSlot::general(permit.expect(OPEN)),
                permit = Arc::clone(&self.reserved).acquire_owned() => {
                    ConnectionSlot::reserved(permit.expect(OPEN))
                }
            },
        }
    }
}

/// Admits unauthenticated connections, counted by the address that they come from.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    bounds: UnauthenticatedLimits,
    counts: Arc<Mutex<AdmissionCounts>>,
    bytes: UnauthenticatedBytes,
}

/// How many unauthenticated connections there may be.
#[derive(Debug, Clone, Copy)]
struct UnauthenticatedLimits {
    per_address: usize,
    overall: usize,
    /// Beyond `overall`, for addresses that have none.
    spare: usize,
    queued: usize,
}

#[derive(Debug, Default)]
struct AdmissionCounts {
    by_peer: BTreeMap<PeerAddress, PeerCount>,
    admitted: usize,
    queued: usize,
    warning: Warning,
}

#[derive(Debug)]
struct PeerCount {
    permits: Arc<Semaphore>,
    /// Connections that are admitted or queued.
    connections: usize,
}

/// Admits one unauthenticated connection; dropped when it is authorized or ends.
#[derive(Debug)]
pub(crate) struct Permit {
    address: IpAddr,
    deadline: Instant,
    /// Its part of the memory that unauthenticated connections may have.
    share: Share,
    _counted: CountedPeer,
    /// Given back last, after the counts.
    _semaphore: OwnedSemaphorePermit,
}

/// A connection that waits for a permit.
#[derive(Debug)]
pub(crate) struct Queued {
    address: IpAddr,
    permits: Arc<Semaphore>,
    counted: CountedPeer,
}

/// The outcome of a request for a permit.
#[derive(Debug)]
pub(crate) enum Admitted {
    Now(Permit),
    Queued(Queued),
}

/// Keeps one connection counted until it is dropped.
#[derive(Debug)]
struct CountedPeer {
    admission: Admission,
    peer: PeerAddress,
    stage: CountedAs,
}

#[derive(Debug, Clone, Copy)]
enum CountedAs {
    Admitted,
    Queued,
}

impl UnauthenticatedLimits {
    /// Returns the bounds for a number of slots: one address has a quarter of them admitted at most,
    /// and all unauthenticated connections together leave some free.
    fn within(slots: usize) -> Self {
        Self {
            per_address: limits::UNAUTHENTICATED_PER_ADDRESS_MAX
                .min(slots / 4)
                .max(1),
            overall: limits::UNAUTHENTICATED_MAX.min(slots / 8 * 3).max(1),
            spare: limits::UNAUTHENTICATED_SPARE.min(slots / 16).max(1),
            queued: limits::UNAUTHENTICATED_QUEUED_MAX.min(slots / 16 * 7),
        }
    }
}

impl Admission {
    /// Begins to count, for a number of slots.
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            bounds: UnauthenticatedLimits::within(slots),
            counts: Arc::default(),
            bytes: UnauthenticatedBytes::default(),
        }
    }

    /// Lets its connections share the memory of unauthenticated ones with those of others.
    pub(crate) fn sharing(self, bytes: UnauthenticatedBytes) -> Self {
        Self { bytes, ..self }
    }

    /// Admits a connection if that is possible without a wait.
    pub(crate) fn try_admit(&self, address: IpAddr) -> Option<Permit> {
        match self.admit(address)? {
            Admitted::Now(permit) => Some(permit),
            Admitted::Queued(_) => None,
        }
    }

    /// Admits a connection or queues it; `None` if it is refused.
    pub(crate) fn admit(&self, address: IpAddr) -> Option<Admitted> {
        let peer = peer_of(address);
        let mut counts = locked(&self.counts);
        let of_peer = counts.by_peer.get(&peer);
        let overall = if of_peer.is_none() {
            self.bounds.overall + self.bounds.spare
        } else {
            self.bounds.overall
        };
        let permits = of_peer.map_or_else(
            || Arc::new(Semaphore::new(self.bounds.per_address)),
            |of_peer| Arc::clone(&of_peer.permits),
        );
        let semaphore = Arc::clone(&permits).try_acquire_owned().ok();
        let (count, max, stage) = match semaphore {
            Some(_) => (counts.admitted, overall, CountedAs::Admitted),
            None => (counts.queued, self.bounds.queued, CountedAs::Queued),
        };
        if max <= count {
            if counts.warning.is_due() {
                self.warn_refused(address, stage, max, &counts);
            }
            return None;
        }
        let of_peer = counts.by_peer.entry(peer).or_insert_with(|| PeerCount {
            permits: Arc::clone(&permits),
            connections: 0,
        });
        of_peer.connections += 1;
        *counts.count_mut(stage) += 1;
        drop(counts);
        let counted = CountedPeer {
            admission: self.clone(),
            peer,
            stage,
        };
        Some(match semaphore {
            Some(semaphore) => Admitted::Now(Permit::new(address, counted, semaphore)),
            None => Admitted::Queued(Queued {
                address,
                permits,
                counted,
            }),
        })
    }

    fn warn_refused(
        &self,
        address: IpAddr,
        stage: CountedAs,
        limit: usize,
        counts: &AdmissionCounts,
    ) {
        let (admitted, queued) = (counts.admitted, counts.queued);
        match stage {
            CountedAs::Admitted => warn!(
                %address, admitted, queued,
                "connection refused: {admitted} unauthenticated connections (limit {limit})"
            ),
            CountedAs::Queued => warn!(
                %address, admitted, queued,
                "connection refused: {} unauthenticated connections from {address} (limit {}), and \
                 {queued} more are queued (limit {limit})",
                self.bounds.per_address, self.bounds.per_address
            ),
        }
    }
}

impl Admitted {
    /// Waits for the permit of a connection that is queued; `None` if there is none before the deadline.
    pub(crate) async fn permit(self, deadline: Instant) -> Option<Permit> {
        match self {
            Self::Now(permit) => Some(permit),
            Self::Queued(queued) => queued.wait(deadline).await,
        }
    }
}

impl Queued {
    /// Waits for a permit; `None` if there is none before the deadline.
    async fn wait(self, deadline: Instant) -> Option<Permit> {
        let semaphore = timeout_at(deadline, self.permits.acquire_owned()).await;
        let semaphore = semaphore
            .ok()?
            .expect("the semaphores of permits are never closed");
        let counted = self.counted.into_admitted();
        Some(Permit::new(self.address, counted, semaphore))
    }
}

impl CountedPeer {
    /// Counts a queued connection as admitted.
    fn into_admitted(mut self) -> Self {
        let mut counts = locked(&self.admission.counts);
        *counts.count_mut(self.stage) -= 1;
        *counts.count_mut(CountedAs::Admitted) += 1;
        drop(counts);
        self.stage = CountedAs::Admitted;
        self
    }
}

impl AdmissionCounts {
    fn count_mut(&mut self, stage: CountedAs) -> &mut usize {
        match stage {
            CountedAs::Admitted => &mut self.admitted,
            CountedAs::Queued => &mut self.queued,
        }
    }
}

impl Permit {
    fn new(address: IpAddr, counted: CountedPeer, semaphore: OwnedSemaphorePermit) -> Self {
        Self {
            address,
            deadline: Instant::now() + limits::ADMISSION_DEADLINE.as_duration(),
            share: counted.admission.bytes.share(counted.peer),
            _counted: counted,
            _semaphore: semaphore,
        }
    }

    /// Returns when the connection must be authorized at the latest.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the address of the peer.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// Reserves the memory that a connection takes with a usual beginning; waits for it until the deadline. Returns whether it has it.
    pub(crate) async fn reserve(&self, beginning: FirstByte) -> bool {
        self.share.reserve(beginning, self.deadline).await
    }

    /// Returns what counts the connection's bytes for as long as it has this permit.
    pub(crate) const fn meter(&self) -> &Meter {
        self.share.meter()
    }
}

impl Drop for CountedPeer {
    fn drop(&mut self) {
        let mut counts = locked(&self.admission.counts);
        *counts.count_mut(self.stage) -= 1;
        if let Some(of_peer) = counts.by_peer.get_mut(&self.peer) {
            of_peer.connections -= 1;
            if of_peer.connections == 0 {
                counts.by_peer.remove(&self.peer);
            }
        }
    }
}

/// Returns the machine at an address. One machine may have all addresses of an IPv6 network, so it is
/// known by its network.
pub(crate) fn peer_of(address: IpAddr) -> PeerAddress {
    /// The bits that differ between machines of one network.
    const HOST_BITS: u32 = 64;
    match address.to_canonical() {
        IpAddr::V4(address) => PeerAddress(u128::from(u32::from(address))),
        IpAddr::V6(address) => PeerAddress(u128::from(address) >> HOST_BITS << HOST_BITS),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::net::balancers;

    const MANY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

    /// Takes all permits that one address may have at a time.
    fn fill(admission: &Admission) -> Vec<Permit> {
        std::iter::from_fn(|| admission.try_admit(MANY)).collect()
    }

    /// Longer than any test takes.
    fn far() -> Instant {
        Instant::now() + Duration::from_hours(1)
    }

    fn queued(admission: &Admission) -> Queued {
        match admission.admit(MANY) {
            Some(Admitted::Queued(queued)) => queued,
            other => panic!("it must be queued, and this is {other:?}"),
        }
    }

    #[tokio::test]
    async fn one_address_has_so_many_permits_and_the_next_connections_are_queued() {
        let admission = Admission::new(100_000);
        let mut admitted = fill(&admission);
        assert_eq!(admitted.len(), limits::UNAUTHENTICATED_PER_ADDRESS_MAX);
        assert!(admission.try_admit(OTHER).is_some());
        let (first, second) = (queued(&admission), queued(&admission));
        let mut waiting = Box::pin(first.wait(far()));
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("no permit is free"),
            () = tokio::task::yield_now() => {}
        }
        admitted.pop();
        assert!(waiting.await.is_some());
        // Its permit is free again; the second has not asked for it yet.
        admitted.pop();
        assert!(second.wait(far()).await.is_some());
    }

    #[tokio::test]
    async fn a_queued_connection_is_counted_no_more_after_its_deadline() {
        let admission = Admission::new(100_000);
        let admitted = fill(&admission);
        assert!(queued(&admission).wait(Instant::now()).await.is_none());
        drop(admitted);
        let counts = locked(&admission.counts);
        assert_eq!((counts.admitted, counts.queued), (0, 0));
        assert!(counts.by_peer.is_empty());
    }

    #[tokio::test]
    async fn a_bounded_number_is_queued_and_the_next_connections_are_refused() {
        let admission = Admission::new(64);
        let _admitted = fill(&admission);
        let bound = admission.bounds.queued;
        let waiting: Vec<Queued> = (0..bound).map(|_| queued(&admission)).collect();
        assert!(admission.admit(MANY).is_none());
        assert!(admission.try_admit(OTHER).is_some());
        drop(waiting);
        assert!(admission.admit(MANY).is_some());
    }

    #[test]
    fn unauthenticated_connections_leave_slots_free() {
        for slots in [16, 100, 768, 5_000, 20_000, 1_000_000] {
            let bounds = UnauthenticatedLimits::within(slots);
            let awaited = balancers::headers_awaited(slots);
            let taken = bounds.overall + bounds.spare + bounds.queued + awaited;
            assert!(taken < slots, "{slots}: {bounds:?}");
            assert!(bounds.per_address < slots / 2, "{slots}: {bounds:?}");
        }
    }

    #[tokio::test]
    async fn the_log_keeps_its_descriptors_and_health_its_slots() {
        let slots = ConnectionSlots::new(1_024);
        let count = slots.count();
        assert_eq!(count, 1_024 - limits::DESCRIPTORS_KEPT);
        let mut taken = Vec::new();
        for _ in 0..count {
            taken.push(slots.take(ListenerKind::General).await);
        }
        let general = Arc::new(slots.clone());
        let waits = tokio::spawn(async move { general.take(ListenerKind::General).await });
        let health = slots.take(ListenerKind::Administration).await;
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
