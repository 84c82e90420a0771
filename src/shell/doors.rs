//! The doors: every listener takes any protocol, and tells which it is by the first byte
//! (design.md §9).
//!
//! Who comes in has a place ([`super::visits`]) and a bounded time to prove a right. Each is looked
//! after by a task of its own, so that a slow one holds nobody up.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::AsyncBufReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::server::TlsStream;
use tracing::{debug, error, warn};

use super::clock::Clock;
use super::connection::{self, Guest, Stream};
use super::mailbox::{Mailbox, Vitals};
use super::tls::{self, Tls};
use super::visits::{ADMISSION_DEADLINE, Door, Entry, Place, Places, peer_of};
pub(super) use super::visits::{Visit, Visits};
use super::web;
use crate::broker::{ConnectionId, Origin};

/// What all who come in share.
pub(super) struct House {
    pub(super) clock: Arc<Clock>,
    pub(super) owner: Mailbox,
    pub(super) vitals: Arc<Vitals>,
    pub(super) tls: Arc<Tls>,
    pub(super) visits: Visits,
    /// Those that came by a side door: others do not keep them from asking for health.
    pub(super) visits_aside: Visits,
    pub(super) places: Places,
    /// Nothing needs to be proved.
    pub(super) is_open: bool,
    pub(super) stopped: watch::Receiver<bool>,
    /// How many requests were refused.
    pub(super) refusals: AtomicU64,
}

/// What the URLs begin with by which a peer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
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

impl House {
    fn visits_at(&self, door: Door) -> &Visits {
        match door {
            Door::Main => &self.visits,
            Door::Side => &self.visits_aside,
        }
    }
}

/// Takes connections in until it is told to stop, and then waits for all of them.
pub(super) async fn open(listener: TcpListener, door: Door, house: Arc<House>) {
    let mut stopped = house.stopped.clone();
    let mut guests = JoinSet::new();
    // The place of the next one: who has none yet waits where the system keeps it.
    let mut place = None;
    let mut told = None;
    loop {
        tokio::select! {
            taken = house.places.take(door), if place.is_none() => place = Some(taken),
            accepted = listener.accept(), if place.is_some() => match accepted {
                Ok((stream, peer)) => {
                    let entry = house.visits_at(door).admit(peer.ip());
                    if let (Some(entry), Some(place)) = (entry, place.take()) {
                        guests.spawn(meet(Arc::clone(&house), stream, peer, entry, place));
                    }
                }
                Err(error) => {
                    tell(&mut told, &error);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(ended) = guests.join_next() => tell_panic(ended),
            _ = stopped.changed() => break,
        }
    }
    drop(listener);
    while let Some(ended) = guests.join_next().await {
        tell_panic(ended);
    }
}

fn tell_panic(ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        error!("the task of a connection has panicked, which is a bug: the connection has ended");
    }
}

/// Tells now and then that a connection could not be accepted: the system is out of something.
fn tell(told: &mut Option<Instant>, error: &std::io::Error) {
    const TELL: Duration = Duration::from_secs(10);
    let now = Instant::now();
    if told.is_none_or(|told| told + TELL <= now) {
        *told = Some(now);
        warn!(%error, "a connection could not be accepted");
    }
}

/// Finds out what a peer speaks, and speaks it.
async fn meet(house: Arc<House>, stream: TcpStream, peer: SocketAddr, entry: Entry, place: Place) {
    let mut stopped = house.stopped.clone();
    let visit = match entry {
        Entry::AtOnce(visit) => visit,
        Entry::InTurn(turn) => {
            let visit = tokio::select! {
                visit = turn.come(Instant::now() + ADMISSION_DEADLINE) => visit,
                _ = stopped.changed() => None,
            };
            let Some(visit) = visit else {
                return;
            };
            visit
        }
    };
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "TCP_NODELAY");
    }
    let greeted = tokio::select! {
        greeted = timeout_at(visit.deadline(), greet(&house, stream, peer)) => greeted,
        _ = stopped.changed() => return,
    };
    match greeted {
        Ok(Some(Greeted::Plain(protocol, stream, origin))) => {
            let stream = (stream, Scheme::Http);
            speak(&house, protocol, stream, origin, visit, place).await;
        }
        Ok(Some(Greeted::Secure(protocol, stream, origin))) => {
            let stream = (*stream, Scheme::Https);
            speak(&house, protocol, stream, origin, visit, place).await;
        }
        Ok(None) => {}
        Err(_) => debug!(%peer, "nothing was said in time"),
    }
}

async fn speak(
    house: &Arc<House>,
    protocol: Protocol,
    (stream, scheme): (impl Stream + 'static, Scheme),
    origin: Origin,
    visit: Visit,
    place: Place,
) {
    match protocol {
        Protocol::Http => web::serve(house, stream, scheme, origin, visit, place).await,
        // TLS was taken off before.
        Protocol::Amqp | Protocol::Tls => serve_amqp(house, stream, origin, visit, place).await,
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

/// Serves AMQP on whatever carries it. The connection has its place until its stream is closed.
pub(super) async fn serve_amqp(
    house: &House,
    stream: impl Stream,
    origin: Origin,
    visit: Visit,
    place: Place,
) {
    let id = next_id();
    debug!(connection = id.0, peer = %visit.address(), "connected");
    let guest = Guest {
        id,
        origin,
        visit,
        is_trusted: house.is_open,
    };
    connection::serve(stream, guest, Arc::clone(&house.clock), house.owner.clone()).await;
    drop(place);
}

/// Returns a name for a connection that no other has had.
pub(super) fn next_id() -> ConnectionId {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    ConnectionId(NEXT.fetch_add(1, Ordering::Relaxed))
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
}
