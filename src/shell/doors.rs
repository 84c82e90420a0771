//! The doors: every listener takes any protocol, and tells which it is by the first byte
//! (design.md §9).
//!
//! Who comes in has a bounded time to prove a right, and one address has a bounded number of those
//! that have not proved any. Each is looked after by a task of its own, so that a slow one holds
//! nobody up.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncBufReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

use super::clock::Clock;
use super::connection::{self, Guest, Stream};
use super::mailbox::{Mailbox, Vitals};
use super::tls::{self, Tls};
use super::web;
use crate::broker::{ConnectionId, Origin, Peer};
use crate::limits;

/// What all who come in share.
pub(super) struct House {
    pub(super) clock: Arc<Clock>,
    pub(super) owner: Mailbox,
    pub(super) vitals: Arc<Vitals>,
    pub(super) tls: Arc<Tls>,
    pub(super) visits: Visits,
    /// Nothing needs to be proved.
    pub(super) is_open: bool,
    pub(super) stopped: watch::Receiver<bool>,
    /// How many requests were refused.
    pub(super) refusals: AtomicU64,
}

/// Those that have not proved a right yet, by the machines that they come from.
#[derive(Debug, Clone, Default)]
pub(super) struct Visits(Arc<Mutex<Visitors>>);

#[derive(Debug, Default)]
struct Visitors {
    by_peer: BTreeMap<Peer, usize>,
    total: usize,
    /// When it was last told that there are too many.
    told: Option<Instant>,
}

/// One of them; it is over when it is dropped.
#[derive(Debug)]
pub(super) struct Visit {
    visits: Visits,
    address: IpAddr,
    deadline: Instant,
}

impl Visits {
    /// Lets one more in, if it may be.
    pub(super) fn enter(&self, address: IpAddr) -> Option<Visit> {
        /// How often it is told that there are too many.
        const TELL: Duration = Duration::from_secs(10);
        let mut visitors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let peer = peer_of(address);
        let of_peer = visitors.by_peer.get(&peer).copied().unwrap_or(0);
        // Who has nobody in yet finds a place, though others have taken all.
        let max = if of_peer == 0 {
            limits::VISITS_MAX + limits::VISITS_SPARE
        } else {
            limits::VISITS_MAX
        };
        if limits::VISITS_PER_ADDRESS_MAX <= of_peer || max <= visitors.total {
            let now = Instant::now();
            if visitors.told.is_none_or(|told| told + TELL <= now) {
                visitors.told = Some(now);
                warn!(%address, of_peer, total = visitors.total, "too many at the doors");
            }
            return None;
        }
        visitors.total += 1;
        *visitors.by_peer.entry(peer).or_default() += 1;
        Some(Visit {
            visits: self.clone(),
            address,
            deadline: Instant::now() + ADMISSION_DEADLINE,
        })
    }
}

const ADMISSION_DEADLINE: Duration =
    Duration::from_millis(limits::ADMISSION_DEADLINE.as_millis().cast_unsigned());

impl Visit {
    /// Returns until when a right must be proved.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns where it comes from.
    pub(super) fn address(&self) -> IpAddr {
        self.address
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut visitors = self.visits.0.lock().unwrap_or_else(PoisonError::into_inner);
        visitors.total -= 1;
        let peer = peer_of(self.address);
        if let Some(count) = visitors.by_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                visitors.by_peer.remove(&peer);
            }
        }
    }
}

/// What a first byte announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// The header of AMQP, or what its engine answers with its own header.
    Amqp,
    /// The verb of a request.
    Http,
    /// A `ClientHello`.
    Tls,
}

impl Protocol {
    fn of(first: u8) -> Self {
        /// The content type of a TLS handshake [RFC 8446 5.1].
        const HANDSHAKE: u8 = 0x16;
        match first {
            HANDSHAKE => Self::Tls,
            b'A' => Self::Amqp,
            first if first.is_ascii_alphabetic() => Self::Http,
            _ => Self::Amqp,
        }
    }
}

/// Takes connections in until it is told to stop, and then waits for all of them.
pub(super) async fn open(listener: TcpListener, house: Arc<House>) {
    let mut stopped = house.stopped.clone();
    let mut guests = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    if let Some(visit) = house.visits.enter(peer.ip()) {
                        guests.spawn(meet(Arc::clone(&house), stream, peer, visit));
                    }
                }
                Err(error) => {
                    // Out of descriptors, most likely: those that are open may end meanwhile.
                    warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = guests.join_next() => {}
            _ = stopped.changed() => break,
        }
    }
    drop(listener);
    while guests.join_next().await.is_some() {}
}

/// Finds out what a peer speaks, and speaks it.
async fn meet(house: Arc<House>, stream: TcpStream, peer: SocketAddr, visit: Visit) {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "TCP_NODELAY");
    }
    let mut stopped = house.stopped.clone();
    let greeted = tokio::select! {
        greeted = timeout_at(visit.deadline(), greet(&house, stream, peer)) => greeted,
        _ = stopped.changed() => return,
    };
    match greeted {
        Ok(Some(Greeted::Plain(protocol, stream, origin))) => {
            speak(&house, protocol, stream, origin, visit).await;
        }
        Ok(Some(Greeted::Secure(protocol, stream, origin))) => {
            speak(&house, protocol, *stream, origin, visit).await;
        }
        Ok(None) => {}
        Err(_) => debug!(%peer, "nothing was said in time"),
    }
}

async fn speak(
    house: &Arc<House>,
    protocol: Protocol,
    stream: impl Stream + 'static,
    origin: Origin,
    visit: Visit,
) {
    match protocol {
        Protocol::Http => web::serve(house, stream, origin, visit).await,
        // TLS was taken off before.
        Protocol::Amqp | Protocol::Tls => serve_amqp(house, stream, origin, visit).await,
    }
}

/// A peer of which is known what it speaks.
enum Greeted {
    Plain(Protocol, TcpStream, Origin),
    Secure(Protocol, Box<TlsStream<TcpStream>>, Origin),
}

async fn greet(house: &House, stream: TcpStream, peer: SocketAddr) -> Option<Greeted> {
    let mut origin = Origin {
        peer: peer_of(peer.ip()),
        ..Origin::default()
    };
    let mut first = [0];
    let count = stream.peek(&mut first).await.ok()?;
    let [first] = first;
    if count == 0 {
        return None;
    }
    let protocol = Protocol::of(first);
    if protocol != Protocol::Tls {
        return Some(Greeted::Plain(protocol, stream, origin));
    }
    let mut stream = match house.tls.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => {
            debug!(%peer, %error, "no TLS");
            return None;
        }
    };
    introduce(&stream, &mut origin);
    let first = *stream.fill_buf().await.ok()?.first()?;
    match Protocol::of(first) {
        Protocol::Tls => None,
        protocol => Some(Greeted::Secure(protocol, Box::new(stream), origin)),
    }
}

/// Notes what TLS has told of a peer.
fn introduce(stream: &TlsStream<TcpStream>, origin: &mut Origin) {
    let (_, session) = stream.get_ref();
    origin.server_name = session.server_name().map(ToOwned::to_owned);
    let certificates = session.peer_certificates().unwrap_or_default();
    origin.certificate = certificates.first().and_then(tls::common_name);
}

/// Serves AMQP on whatever carries it.
pub(super) async fn serve_amqp(house: &House, stream: impl Stream, origin: Origin, visit: Visit) {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let id = ConnectionId(NEXT.fetch_add(1, Ordering::Relaxed));
    debug!(connection = id.0, peer = %visit.address(), "connected");
    let guest = Guest {
        id,
        origin,
        visit,
        is_trusted: house.is_open,
    };
    connection::serve(stream, guest, Arc::clone(&house.clock), house.owner.clone()).await;
}

/// The machine at an address: of IPv6, its network, for one machine has very many there.
fn peer_of(address: IpAddr) -> Peer {
    /// The part that tells machines of one network apart.
    const HOST_BITS: u32 = 64;
    match address.to_canonical() {
        IpAddr::V4(address) => Peer(u128::from(u32::from(address))),
        IpAddr::V6(address) => Peer(u128::from(address) >> HOST_BITS << HOST_BITS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_told_by_its_first_byte() {
        assert_eq!(Protocol::of(b"AMQP\x03\x01\0\0"[0]), Protocol::Amqp);
        assert_eq!(Protocol::of(b"\x16\x03\x01"[0]), Protocol::Tls);
        for verb in ["GET", "PUT", "DELETE", "POST", "HEAD", "OPTIONS", "get"] {
            assert_eq!(Protocol::of(verb.as_bytes()[0]), Protocol::Http, "{verb}");
        }
        assert_eq!(Protocol::of(0), Protocol::Amqp);
    }

    #[tokio::test]
    async fn one_address_has_a_bounded_number_of_visits() {
        let visits = Visits::default();
        let (many, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let mut inside: Vec<Visit> = (0..limits::VISITS_PER_ADDRESS_MAX)
            .map(|_| visits.enter(many).expect("there is room"))
            .collect();
        assert!(visits.enter(many).is_none());
        assert!(visits.enter(other).is_some());
        inside.pop();
        assert!(visits.enter(many).is_some());
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
