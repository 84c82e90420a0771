//! What is spoken on a connection. Each listener takes every protocol, and detects which one by the first byte.
//!
//! A connection takes a permit ([`crate::net::admission`]), and must be authorized within a bounded time.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::server::TlsStream;
use tracing::debug;

use crate::http::connection;
use crate::http::state::{ServerState, serve_amqp};
use crate::limits;
use crate::net::admission::{Admission, Admitted, ConnectionSlot, ListenerKind, Permit, peer_of};
use crate::net::balancers::{AwaitedHeader, Forwarded};
use crate::net::listener::{AcceptedSocket, Acceptor};
use crate::net::scheme::Scheme;
use crate::net::socket::{Socket, Stream};
use crate::net::tls;
use crate::net::unauthenticated::FirstByte;
use crate::peer::{self, Bounds, Passed, Peers};
use jitney_broker::access::Origin;

/// The protocol that a first byte announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// AMQP's header, or any byte that the AMQP engine answers with its own header.
    Amqp,
    /// The method of a request.
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

impl Protocol {
    /// Returns what a connection reserves that begins like that.
    const fn beginning(self) -> FirstByte {
        match self {
            Self::Amqp => FirstByte::Amqp,
            Self::Http => FirstByte::Http,
            Self::Tls => FirstByte::Tls,
        }
    }
}

/// Serves the connections of a listener until `stopped`, and then waits for all of them to end.
pub(crate) async fn accept(listener: TcpListener, kind: ListenerKind, server: Arc<ServerState>) {
    let acceptor = Acceptor::new(listener, kind, server.slots.clone());
    let stopped = server.stopped.clone();
    let admit = |accepted: AcceptedSocket| {
        let entry = Entry::of(&server, kind, accepted.peer.ip())?;
        let server = Arc::clone(&server);
        Some(async move {
            match entry {
                Entry::Admitted(admitted) => {
                    serve_accepted(server, kind, accepted, Forwarded::DIRECT, admitted).await;
                }
                Entry::FromBalancer(awaited) => {
                    serve_forwarded(server, kind, accepted, awaited).await;
                }
            }
        })
    };
    acceptor.serve(admit, stopped).await;
}

/// How a connection comes in.
enum Entry {
    Admitted(Admitted),
    /// It is admitted when its balancer has said who the client is.
    FromBalancer(AwaitedHeader),
}

impl Entry {
    /// Returns how a connection comes in; `None` if it is refused.
    fn of(server: &ServerState, kind: ListenerKind, peer: IpAddr) -> Option<Self> {
        // Metrics are fetched by programs that know no balancer.
        if kind != ListenerKind::Metrics && server.balancers.contain(peer) {
            return server.balancers.await_header(peer).map(Self::FromBalancer);
        }
        server.admission_of(kind).admit(peer).map(Self::Admitted)
    }
}

/// Reads who the client of a balancer's connection is, and serves it as if that had connected.
async fn serve_forwarded(
    server: Arc<ServerState>,
    kind: ListenerKind,
    mut accepted: AcceptedSocket,
    awaited: AwaitedHeader,
) {
    let balancer = accepted.peer;
    let mut stopped = server.stopped.clone();
    let balancers = &server.balancers;
    let read = balancers.read_header(&mut accepted.stream, balancer.ip(), awaited);
    let forwarded = tokio::select! {
        forwarded = read => forwarded,
        _ = stopped.changed() => None,
    };
    let Some(forwarded) = forwarded else {
        return;
    };
    accepted.peer = forwarded.address.unwrap_or(balancer);
    debug!(peer = %accepted.peer, %balancer, "a balancer's connection");
    if let Some(admitted) = server.admission_of(kind).admit(accepted.peer.ip()) {
        serve_accepted(server, kind, accepted, forwarded, admitted).await;
    }
}

/// Waits for a permit, detects the protocol, and serves it.
async fn serve_accepted(
    server: Arc<ServerState>,
    kind: ListenerKind,
    accepted: AcceptedSocket,
    forwarded: Forwarded,
    admitted: Admitted,
) {
    let AcceptedSocket { stream, peer, slot } = accepted;
    let scheme = forwarded.scheme;
    let mut stopped = server.stopped.clone();
    let Some(permit) = permit(admitted, stopped.clone()).await else {
        return;
    };
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "TCP_NODELAY");
    }
    let detected = tokio::select! {
        detected = timeout_at(permit.deadline(), detect_protocol(&server, stream, peer, &permit, forwarded)) => detected,
        _ = stopped.changed() => return,
    };
    match detected {
        Ok(Some(Detected::Plain(protocol, stream, origin))) => {
            let stream = ClientStream { stream, scheme };
            let served = serve_protocol(&server, kind, protocol, stream, origin, permit, slot);
            // In a place of its own, so that a connection takes little before its first byte.
            Box::pin(served).await;
        }
        Ok(Some(Detected::Secure(protocol, stream, origin))) => {
            let stream = ClientStream {
                stream: *stream,
                scheme: Scheme::Https,
            };
            let served = serve_protocol(&server, kind, protocol, stream, origin, permit, slot);
            Box::pin(served).await;
        }
        Ok(None) => {}
        Err(_) => debug!(%peer, "no protocol header before the deadline"),
    }
}

/// Waits for the permit of a connection that may be queued; none if there is none in time or before the stop.
async fn permit(admitted: Admitted, mut stopped: watch::Receiver<bool>) -> Option<Permit> {
    let until = Instant::now() + limits::ADMISSION_DEADLINE.as_duration();
    tokio::select! {
        permit = admitted.permit(until) => permit,
        _ = stopped.wait_for(|stopped| *stopped) => None,
    }
}

/// The bytes of a client, and how it has come: to this server, or to a balancer in front of it.
struct ClientStream<S> {
    stream: S,
    scheme: Scheme,
}

async fn serve_protocol(
    server: &Arc<ServerState>,
    kind: ListenerKind,
    protocol: Protocol,
    client: ClientStream<impl Stream>,
    mut origin: Origin,
    permit: Permit,
    slot: ConnectionSlot,
) {
    let ClientStream { stream, scheme } = client;
    origin.is_secure = scheme == Scheme::Https;
    match protocol {
        Protocol::Http => {
            connection::serve(server, kind, stream, scheme, origin, permit, slot).await;
        }
        Protocol::Amqp if kind == ListenerKind::Metrics => {
            debug!(peer = %permit.address(), "AMQP is not spoken at --metrics");
        }
        // `detect_protocol` refuses TLS within TLS.
        Protocol::Amqp | Protocol::Tls => {
            serve_amqp(server, kind, stream, origin, permit, slot).await;
        }
    }
}

/// A connection whose protocol is known.
enum Detected {
    Plain(Protocol, Socket, Origin),
    Secure(Protocol, Box<TlsStream<Socket>>, Origin),
}

async fn detect_protocol(
    server: &ServerState,
    stream: TcpStream,
    peer: SocketAddr,
    permit: &Permit,
    forwarded: Forwarded,
) -> Option<Detected> {
    let mut origin = Origin {
        peer: peer_of(peer.ip()),
        port: Some(peer.port()),
        server_name: forwarded.server_name,
        ..Origin::default()
    };
    let mut first = [0];
    let count = stream.peek(&mut first).await.ok()?;
    let [first] = first;
    if count == 0 {
        return None;
    }
    let protocol = Protocol::of(first);
    if !permit.reserve(protocol.beginning()).await {
        debug!(%peer, "no memory for another unauthenticated connection before the deadline");
        return None;
    }
    let is_tls = protocol == Protocol::Tls;
    let local = is_tls.then(|| stream.local_addr().ok()).flatten();
    let mut stream = Socket::new(stream);
    stream.count_with(permit.meter().clone());
    if !is_tls {
        return Some(Detected::Plain(protocol, stream, origin));
    }
    let mut stream = match Box::pin(server.tls.accept(stream, local.map(|local| local.ip()))).await
    {
        Ok(stream) => stream,
        Err(error) => {
            server.tls.report_failed(peer, &error);
            return None;
        }
    };
    read_tls_identity(&stream, &mut origin);
    let first = *stream.fill_buf().await.ok()?.first()?;
    match Protocol::of(first) {
        Protocol::Tls => None,
        protocol @ (Protocol::Amqp | Protocol::Http) => {
            Some(Detected::Secure(protocol, Box::new(stream), origin))
        }
    }
}

/// Stores the server name and the client certificate of a TLS handshake.
fn read_tls_identity(stream: &TlsStream<Socket>, origin: &mut Origin) {
    let (_, session) = stream.get_ref();
    if let Some(name) = session.server_name() {
        origin.server_name = Some(name.to_owned());
    }
    let certificates = session.peer_certificates().unwrap_or_default();
    origin.certificate = certificates.first().and_then(tls::common_name);
}

/// Serves the connections of the other servers of the fleet until the stop, and then waits for all of them to end.
pub(super) async fn accept_passed(
    socket: TcpListener,
    peers: Arc<Peers>,
    server: Arc<ServerState>,
) {
    let bounds = Bounds {
        slots: server.slots.clone(),
        admission: server.admission_of(ListenerKind::Peer).clone(),
        stopped: server.stopped.clone(),
    };
    peer::accept(socket, peers, bounds, move |passed| {
        let server = Arc::clone(&server);
        async move { serve_passed(&server, passed).await }
    })
    .await;
}

/// Serves a connection that another server of the fleet passes on.
async fn serve_passed(server: &Arc<ServerState>, passed: Passed) {
    let Passed {
        mut stream,
        client,
        slot,
    } = passed;
    let address = client.address;
    let origin = Origin {
        peer: peer_of(address),
        server_name: client.server_name,
        certificate: client.certificate,
        ..Origin::default()
    };
    let scheme = client.scheme;
    let admission = server.admission_of(ListenerKind::Peer);
    let stopped = server.stopped.clone();
    let Some(permit) = admit_passed(admission, address, stopped.clone()).await else {
        return;
    };
    let Some(first) = first_byte(&mut stream, permit.deadline(), stopped).await else {
        return;
    };
    if !permit.reserve(FirstByte::Tls).await {
        return;
    }
    stream.get_mut().0.count_with(permit.meter().clone());
    let protocol = Protocol::of(first);
    if protocol != Protocol::Tls {
        let stream = ClientStream { stream, scheme };
        serve_protocol(
            server,
            ListenerKind::Peer,
            protocol,
            stream,
            origin,
            permit,
            slot,
        )
        .await;
    }
}

/// Admits a client whose connection another server passes on, or queues it, as if it had come here.
async fn admit_passed(
    admission: &Admission,
    address: IpAddr,
    stopped: watch::Receiver<bool>,
) -> Option<Permit> {
    permit(admission.admit(address)?, stopped).await
}

/// Returns the first byte of a stream, which stays unread; none if it does not come by the deadline or before the stop.
async fn first_byte(
    stream: &mut (impl AsyncBufRead + Unpin),
    deadline: Instant,
    mut stopped: watch::Receiver<bool>,
) -> Option<u8> {
    let read = tokio::select! {
        read = timeout_at(deadline, stream.fill_buf()) => read,
        _ = stopped.wait_for(|stopped| *stopped) => return None,
    };
    read.ok()?.ok()?.first().copied()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use tokio::io::{AsyncWriteExt as _, BufReader};

    use super::*;

    /// Polls a future that is not ready.
    async fn poll_pending(future: impl Future) {
        tokio::select! {
            biased;
            _ = future => panic!("it must wait"),
            () = std::future::ready(()) => {}
        }
    }

    #[tokio::test]
    async fn a_client_that_is_passed_on_is_queued_until_another_of_its_address_is_authorized() {
        let address = IpAddr::from([192, 0, 2, 7]);
        let admission = Admission::new(limits::DESCRIPTORS_MIN);
        let mut others: Vec<Permit> = std::iter::from_fn(|| admission.try_admit(address)).collect();
        let (stop, stopped) = watch::channel(false);
        let mut queued = pin!(admit_passed(&admission, address, stopped.clone()));
        poll_pending(&mut queued).await;
        others.pop();
        let permit = queued.await.expect("there is a permit now");
        assert_eq!(permit.address(), address);
        let mut queued = pin!(admit_passed(&admission, address, stopped));
        poll_pending(&mut queued).await;
        stop.send_replace(true);
        assert!(queued.await.is_none());
    }

    #[tokio::test]
    async fn a_first_byte_is_waited_for_until_the_stop() {
        let (mut near, far) = tokio::io::duplex(64);
        let mut far = BufReader::new(far);
        let deadline = Instant::now() + Duration::from_mins(1);
        let (stop, stopped) = watch::channel(false);
        near.write_all(b"AMQP").await.unwrap();
        let first = first_byte(&mut far, deadline, stopped.clone()).await;
        assert_eq!(first, Some(b'A'));
        far.consume(4);
        let mut waits = pin!(first_byte(&mut far, deadline, stopped));
        poll_pending(&mut waits).await;
        stop.send_replace(true);
        let ended = tokio::time::timeout(Duration::from_secs(20), waits).await;
        assert_eq!(ended.expect("the stop ends it"), None);
    }

    #[test]
    fn a_protocol_is_detected_by_its_first_byte() {
        assert_eq!(Protocol::of(b"AMQP\x03\x01\0\0"[0]), Protocol::Amqp);
        assert_eq!(Protocol::of(b"\x16\x03\x01"[0]), Protocol::Tls);
        for verb in ["GET", "PUT", "DELETE", "POST", "HEAD", "OPTIONS", "get"] {
            assert_eq!(Protocol::of(verb.as_bytes()[0]), Protocol::Http, "{verb}");
        }
        assert_eq!(Protocol::of(0), Protocol::Amqp);
    }
}
