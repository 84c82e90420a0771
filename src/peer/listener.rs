//! The listener for the other servers of the fleet: they show a certificate of the store's authority, and then the client.
//!
//! A connection takes a slot before it is accepted, as at every listener. Until it has shown both, it counts as an
//! unauthenticated connection from its own address ([`crate::net::admission`]), and from then on as one from its client's.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::server::TlsStream;
use tracing::debug;

use super::header::{ClientError, OriginalClient};
use super::reach::Peers;
use crate::limits;
use crate::net::admission::{Admission, Admitted, ConnectionSlot, ConnectionSlots, ListenerKind};
use crate::net::listener::{AcceptedSocket, Acceptor};
use crate::net::socket::Socket;

/// What bounds the connections of a listener, and when it stops.
pub(crate) struct Bounds {
    pub(crate) slots: ConnectionSlots,
    pub(crate) admission: Admission,
    pub(crate) stopped: watch::Receiver<bool>,
}

/// Serves the connections of other servers until the stop, and then waits for all of them to end. `serve` returns the
/// future that serves one of them.
pub(crate) async fn accept<F>(
    socket: TcpListener,
    peers: Arc<Peers>,
    bounds: Bounds,
    serve: impl Fn(Passed) -> F + Clone + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let Bounds {
        slots,
        admission,
        stopped,
    } = bounds;
    let handshakes = Handshakes {
        peers,
        slots,
        admission,
        wait: limits::PEER_CONNECT_WAIT.as_duration(),
        stopped,
    };
    accept_verified(handshakes, socket, serve).await;
}

/// What verifies connections of other servers, and the bounds of those that are not verified yet.
struct Handshakes {
    peers: Arc<Peers>,
    slots: ConnectionSlots,
    admission: Admission,
    /// How long a connection may take to show that it is another server's.
    wait: Duration,
    stopped: watch::Receiver<bool>,
}

/// A connection that another server passes on.
pub(crate) struct Passed {
    pub(crate) stream: TlsStream<Socket>,
    pub(crate) client: OriginalClient,
    pub(crate) slot: ConnectionSlot,
}

/// Why a connection is not another server's.
#[derive(Debug, thiserror::Error)]
enum NoPeer {
    #[error(transparent)]
    OriginalClient(#[from] ClientError),
    #[error("TLS: {0}")]
    Tls(#[from] io::Error),
    #[error("it did not show its certificate and its client in time")]
    Late,
}

async fn accept_verified<F>(
    handshakes: Handshakes,
    socket: TcpListener,
    serve: impl Fn(Passed) -> F + Clone + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let acceptor = Acceptor::new(socket, ListenerKind::Peer, handshakes.slots.clone());
    let stopped = handshakes.stopped.clone();
    let handshakes = Arc::new(handshakes);
    let admit = move |accepted: AcceptedSocket| {
        let admitted = handshakes.admission.admit(accepted.peer.ip())?;
        let (handshakes, serve) = (Arc::clone(&handshakes), serve.clone());
        Some(async move {
            if let Some(passed) = handshakes.handshake(accepted, admitted).await {
                serve(passed).await;
            }
        })
    };
    acceptor.serve(admit, stopped).await;
}

impl Handshakes {
    /// Verifies that a connection is another server's, and reads whose bytes it passes on; none if it does not show both in time,
    /// or if this server stops.
    async fn handshake(&self, accepted: AcceptedSocket, admitted: Admitted) -> Option<Passed> {
        let AcceptedSocket { stream, peer, slot } = accepted;
        // A socket that fails here fails again when it is read.
        let _ = stream.set_nodelay(true);
        let until = Instant::now() + self.wait;
        let shown = async {
            let _permit = admitted.permit(until).await.ok_or(NoPeer::Late)?;
            let read = timeout_at(until, async {
                let mut stream = self.peers.tls().accept(Socket::new(stream)).await?;
                let client = OriginalClient::read(&mut stream).await?;
                Ok::<_, NoPeer>((stream, client))
            });
            read.await.map_err(|_| NoPeer::Late)?
        };
        let mut stopped = self.stopped.clone();
        let shown = tokio::select! {
            shown = shown => shown,
            _ = stopped.wait_for(|stopped| *stopped) => return None,
        };
        match shown {
            Ok((stream, client)) => Some(Passed {
                stream,
                client,
                slot,
            }),
            Err(error) => {
                debug!(%peer, %error, "a connection was not another server's");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpSocket, TcpStream};
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::*;
    use crate::net::scheme::Scheme;
    use crate::peer::authority::{PeerTls, make_authority};
    use crate::peer::owners::FakeOwners;

    /// A listener, and what it takes for connections of other servers.
    struct Bench {
        address: String,
        authority: String,
        slots: ConnectionSlots,
        accepted: mpsc::Receiver<OriginalClient>,
        /// The connections that were accepted stay open until it is dropped.
        stop: watch::Sender<bool>,
        served: tokio::task::JoinHandle<()>,
    }

    impl Bench {
        async fn new(wait: Duration) -> Self {
            Self::with(limits::DESCRIPTORS_KEPT * 10, wait).await
        }

        /// Makes one of a process with so many descriptors.
        async fn with(descriptors: usize, wait: Duration) -> Self {
            let authority = make_authority().unwrap();
            let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = socket.local_addr().unwrap().to_string();
            let tls = PeerTls::new(&authority).unwrap();
            let (stop, stopped) = watch::channel(false);
            let (sender, accepted) = mpsc::channel(100);
            let slots = ConnectionSlots::new(descriptors);
            let handshakes = Handshakes {
                peers: Arc::new(Peers::new(Arc::<FakeOwners>::default(), tls)),
                slots: slots.clone(),
                admission: Admission::new(slots.count()),
                wait,
                stopped: stopped.clone(),
            };
            let serve = move |passed: Passed| {
                let (sender, mut ends) = (sender.clone(), stopped.clone());
                async move {
                    sender.send(passed.client.clone()).await.unwrap();
                    let _ = ends.changed().await;
                    drop(passed);
                }
            };
            let served = tokio::spawn(accept_verified(handshakes, socket, serve));
            Self {
                address,
                authority,
                slots,
                accepted,
                stop,
                served,
            }
        }

        /// Stops the listener; returns the clients of the connections that it took for other servers'.
        async fn stop(mut self) -> Vec<OriginalClient> {
            self.stop.send_replace(true);
            self.served.await.unwrap();
            let mut all = Vec::new();
            while let Some(client) = self.accepted.recv().await {
                all.push(client);
            }
            all
        }

        fn tls(&self) -> PeerTls {
            PeerTls::new(&self.authority).unwrap()
        }
    }

    /// Longer than any test takes.
    const LONG: Duration = Duration::from_mins(1);

    fn client() -> OriginalClient {
        OriginalClient {
            address: "192.0.2.7".parse().unwrap(),
            server_name: None,
            certificate: None,
            scheme: Scheme::Http,
        }
    }

    /// Waits until the other end has closed a connection.
    async fn closed(mut stream: impl tokio::io::AsyncRead + Unpin) {
        let mut rest = Vec::new();
        let ended = timeout(LONG, stream.read_to_end(&mut rest)).await;
        // A reset is an end, too; an answer before it is an alert of TLS.
        let _ = ended.expect("it is closed");
    }

    #[tokio::test]
    async fn a_server_of_the_fleet_says_who_the_client_is() {
        let bench = Bench::new(LONG).await;
        let mut stream = bench.tls().connect(&bench.address).await.unwrap();
        stream.write_all(&client().encode()).await.unwrap();
        stream.flush().await.unwrap();
        let mut bench = bench;
        assert_eq!(bench.accepted.recv().await, Some(client()));
        assert_eq!(bench.stop().await, []);
    }

    #[tokio::test]
    async fn a_peer_without_a_certificate_of_the_authority_is_closed() {
        let bench = Bench::new(LONG).await;
        let others = PeerTls::new(&make_authority().unwrap()).unwrap();
        // It does not trust this listener, and ends the handshake by itself.
        assert!(others.connect(&bench.address).await.is_err());
        for shown in [None, Some(&others)] {
            let stream = bench.tls().showing(shown).connect(&bench.address).await;
            // In TLS 1.3 the client has ended its handshake before the server looks at the certificate.
            if let Ok(mut stream) = stream {
                let _ = stream.write_all(&client().encode()).await;
                closed(stream).await;
            }
        }
        assert_eq!(bench.stop().await, []);
    }

    #[tokio::test]
    async fn a_header_before_tls_is_closed() {
        let bench = Bench::new(LONG).await;
        let mut stream = TcpStream::connect(&bench.address).await.unwrap();
        stream.write_all(&client().encode()).await.unwrap();
        closed(stream).await;
        assert_eq!(bench.stop().await, []);
    }

    #[tokio::test]
    async fn a_peer_that_does_not_say_who_the_client_is_is_closed() {
        let bench = Bench::new(LONG).await;
        let local = crate::net::proxy_protocol::ProxyHeader::default().encode();
        for bytes in [&b"AMQP\0\x01\0\0"[..], b"PROXY UNKNOWN\r\n", &local] {
            let mut stream = bench.tls().connect(&bench.address).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            stream.flush().await.unwrap();
            closed(stream).await;
        }
        assert_eq!(bench.stop().await, []);
    }

    #[tokio::test]
    async fn a_peer_that_is_slow_is_closed_in_time() {
        let bench = Bench::new(Duration::from_millis(200)).await;
        let silent = TcpStream::connect(&bench.address).await.unwrap();
        let mut begun = TcpStream::connect(&bench.address).await.unwrap();
        // The head of a record of a handshake.
        begun.write_all(b"\x16\x03\x01\x02\x00").await.unwrap();
        closed(silent).await;
        closed(begun).await;
        // A busy machine may not have ended the handshake of this one in time.
        if let Ok(mut stream) = bench.tls().connect(&bench.address).await {
            let header = client().encode();
            let _ = stream.write_all(&header[..header.len() - 1]).await;
            let _ = stream.flush().await;
            closed(stream).await;
        }
        assert_eq!(bench.stop().await, []);
    }

    #[tokio::test]
    async fn a_stop_waits_for_no_peer_that_is_slow() {
        let bench = Bench::new(LONG).await;
        // The listener has taken it, and the header does not come.
        let _silent = bench.tls().connect(&bench.address).await.unwrap();
        let stopped = timeout(LONG / 3, bench.stop()).await;
        assert_eq!(stopped.expect("the listener has ended"), []);
    }

    #[tokio::test]
    async fn connections_that_show_nothing_leave_slots_for_others() {
        let mut bench = Bench::with(limits::DESCRIPTORS_MIN, LONG).await;
        let mut silent = Vec::new();
        for _ in 0..bench.slots.count() {
            silent.push(TcpStream::connect(&bench.address).await.unwrap());
        }
        // They are accepted in their order, and the last is one too many.
        closed(silent.pop().unwrap()).await;
        let other = TcpSocket::new_v4().unwrap();
        other.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let other = other.connect(bench.address.parse().unwrap()).await.unwrap();
        let mut stream = bench.tls().connect_over(other).await.unwrap();
        stream.write_all(&client().encode()).await.unwrap();
        stream.flush().await.unwrap();
        let taken = timeout(LONG, bench.accepted.recv()).await;
        assert_eq!(taken.expect("it is accepted"), Some(client()));
    }

    #[tokio::test]
    async fn a_connection_counts_for_its_servers_address_until_its_client_is_known() {
        let mut bench = Bench::with(limits::DESCRIPTORS_MIN, LONG).await;
        let slots = bench.slots.count();
        let admission = Admission::new(slots);
        let permits = std::iter::from_fn(|| admission.try_admit([127, 0, 0, 1].into()));
        let at_once = permits.collect::<Vec<_>>().len();
        let mut streams = Vec::new();
        for _ in 0..2 * at_once {
            let mut stream = bench.tls().connect(&bench.address).await.unwrap();
            stream.write_all(&client().encode()).await.unwrap();
            stream.flush().await.unwrap();
            streams.push(stream);
            let taken = timeout(LONG, bench.accepted.recv()).await;
            assert_eq!(taken.expect("it is accepted"), Some(client()));
        }
        assert!(
            bench.slots.count() <= slots - streams.len(),
            "each keeps its slot"
        );
    }
}
