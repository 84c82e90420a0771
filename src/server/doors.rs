//! The doors: every listener takes any protocol, and tells which it is by the first byte.
//!
//! Who comes in has a place ([`super::visits`]) and a bounded time to prove a right. Each is looked
//! after by a task of its own, so that a slow one holds nobody up.

use std::net::SocketAddr;
use std::pin::pin;
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
use crate::access::Origin;
use crate::ids::ConnectionId;

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
    let entrance = Entrance::new(listener, door, house.places.clone());
    let stopped = house.stopped.clone();
    let admit = |accepted: Accepted| {
        let entry = house.visits_at(door).admit(accepted.peer.ip())?;
        Some(meet(Arc::clone(&house), accepted, entry))
    };
    entrance.serve(admit, stopped).await;
}

/// A listener, and the places of the connections that it accepts.
struct Entrance {
    listener: TcpListener,
    door: Door,
    places: Places,
    /// When it was last told that a connection could not be accepted.
    told: Option<Instant>,
}

/// A connection that has a place.
struct Accepted {
    stream: TcpStream,
    peer: SocketAddr,
    place: Place,
}

impl Entrance {
    fn new(listener: TcpListener, door: Door, places: Places) -> Self {
        Self {
            listener,
            door,
            places,
            told: None,
        }
    }

    /// Serves connections, each in a task of its own, until it is told to stop, and then waits for
    /// all of them. `admit` returns what serves a connection, or `None` to close it.
    async fn serve<F>(
        self,
        admit: impl Fn(Accepted) -> Option<F>,
        mut stopped: watch::Receiver<bool>,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut guests = JoinSet::new();
        {
            // One future from the wait for a place to the next connection: if it were made anew
            // whenever a connection ends, its wait for a place would begin behind all others.
            let mut next = pin!(self.next());
            loop {
                tokio::select! {
                    (entrance, accepted) = &mut next => {
                        if let Some(served) = admit(accepted) {
                            guests.spawn(served);
                        }
                        next.set(entrance.next());
                    }
                    Some(ended) = guests.join_next() => tell_panic(ended),
                    _ = stopped.changed() => break,
                }
            }
        }
        while let Some(ended) = guests.join_next().await {
            tell_panic(ended);
        }
    }

    /// Accepts the next connection when there is a place for it; until then it waits where the
    /// system keeps it.
    async fn next(mut self) -> (Self, Accepted) {
        /// How long to wait when the system is out of something.
        const RETRY: Duration = Duration::from_millis(100);
        let place = self.places.take(self.door).await;
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let accepted = Accepted {
                        stream,
                        peer,
                        place,
                    };
                    return (self, accepted);
                }
                Err(error) => {
                    tell(&mut self.told, &error);
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
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
async fn meet(house: Arc<House>, accepted: Accepted, entry: Entry) {
    let Accepted {
        stream,
        peer,
        place,
    } = accepted;
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
    use tokio::sync::{Notify, mpsc};

    use super::*;
    use crate::limits;

    /// Polls a future that is not ready.
    async fn poll_pending(future: impl Future) {
        tokio::select! {
            biased;
            _ = future => panic!("it is to wait"),
            () = std::future::ready(()) => {}
        }
    }

    #[tokio::test]
    async fn a_listener_that_waits_for_a_place_keeps_its_turn_when_a_connection_ends() {
        let places = Places::new(limits::DESCRIPTORS_MIN);
        let mut free: Vec<Place> = std::iter::from_fn(|| places.try_take()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // Of each connection, its place comes here, and its task ends when it is told to.
        let (to_test, mut accepted) = mpsc::unbounded_channel();
        let (ended, mut ends) = mpsc::unbounded_channel();
        let end = Arc::new(Notify::new());
        let may_end = Arc::clone(&end);
        let admit = move |Accepted { place, .. }| {
            to_test.send(place).unwrap();
            let (may_end, ended) = (Arc::clone(&may_end), ended.clone());
            Some(async move {
                may_end.notified().await;
                ended.send(()).unwrap();
            })
        };
        let (_stop, stopped) = watch::channel(false);
        let entrance = Entrance::new(listener, Door::Main, places.clone());
        let mut serving = pin!(entrance.serve(admit, stopped));

        let _first = TcpStream::connect(address).await.unwrap();
        free.pop();
        let place = tokio::select! {
            () = &mut serving => panic!("nothing has stopped it"),
            place = accepted.recv() => place.unwrap(),
        };
        // From now on the listener waits for a place for the next connection; so does another one.
        let _second = TcpStream::connect(address).await.unwrap();
        let mut other = pin!(places.take(Door::Main));
        poll_pending(&mut other).await;
        end.notify_one();
        ends.recv().await.unwrap();
        poll_pending(&mut serving).await;
        drop(place);
        tokio::select! {
            () = &mut serving => panic!("nothing has stopped it"),
            place = accepted.recv() => assert!(place.is_some()),
            _ = &mut other => panic!("it came later"),
        }
    }

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
