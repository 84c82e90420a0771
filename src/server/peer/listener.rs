//! The listener for the other servers of the fleet: they show a certificate of the store's authority, and then the client.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

use super::authority::PeerTls;
use super::header::{Client, ClientError};
use super::reach::Peers;
use crate::access::Origin;
use crate::limits;
use crate::server::admission::peer_of;
use crate::server::listener::{self, Scheme, ServerState};
use crate::server::socket::Socket;

/// Serves the connections of other servers until the stop, and then waits for all of them to end.
pub(in crate::server) async fn accept(
    socket: TcpListener,
    peers: Arc<Peers>,
    server: Arc<ServerState>,
) {
    let bounds = Bounds {
        connections: limits::PEER_CONNECTIONS_MAX,
        wait: limits::PEER_CONNECT_WAIT.as_duration(),
    };
    let stopped = server.stopped.clone();
    accept_within(bounds, socket, stopped, move |stream| {
        let (peers, server) = (Arc::clone(&peers), Arc::clone(&server));
        async move {
            let stopped = server.stopped.clone();
            let accepted = handshake(bounds, peers.tls(), stream, stopped).await;
            if let Some((stream, client)) = accepted {
                serve(stream, client, &server).await;
            }
        }
    })
    .await;
}

/// The bounds of a listener.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    connections: usize,
    /// How long a connection may take to show that it is another server's.
    wait: Duration,
}

async fn accept_within<F>(
    bounds: Bounds,
    socket: TcpListener,
    mut stopped: watch::Receiver<bool>,
    serve: impl Fn(TcpStream) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok((stream, _)) if connections.len() < bounds.connections => {
                    connections.spawn(serve(stream));
                }
                Ok(_) => warn!("too many connections of other servers: one was closed"),
                Err(error) => {
                    warn!(%error, "cannot accept a connection of another server");
                    tokio::time::sleep(limits::ACCEPT_RETRY.as_duration()).await;
                }
            },
            Some(_) = connections.join_next() => {}
            // An error means that the other end is gone, which is a stop too.
            _ = stopped.changed() => break,
        }
    }
    while connections.join_next().await.is_some() {}
}

/// Why a connection is not another server's.
#[derive(Debug, thiserror::Error)]
enum NoPeer {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("TLS: {0}")]
    Tls(#[from] io::Error),
}

/// Verifies that a connection is another server's, and reads whose bytes it passes on; none if it does not show both in time, or if
/// this server stops.
async fn handshake(
    bounds: Bounds,
    tls: &PeerTls,
    stream: TcpStream,
    mut stopped: watch::Receiver<bool>,
) -> Option<(TlsStream<Socket>, Client)> {
    // A socket that fails here fails again when it is read.
    let _ = stream.set_nodelay(true);
    let accepted = timeout(bounds.wait, async {
        let mut stream = tls.accept(Socket::new(stream)).await?;
        let client = Client::read(&mut stream).await?;
        Ok::<_, NoPeer>((stream, client))
    });
    let accepted = tokio::select! {
        accepted = accepted => accepted,
        _ = stopped.wait_for(|stopped| *stopped) => return None,
    };
    match accepted {
        Ok(Ok(accepted)) => return Some(accepted),
        Ok(Err(error)) => debug!(%error, "a connection was not another server's"),
        Err(_) => debug!("a connection did not show that it is another server's in time"),
    }
    None
}

async fn serve(stream: TlsStream<Socket>, client: Client, server: &Arc<ServerState>) {
    let address = client.address;
    let origin = Origin {
        peer: peer_of(address),
        server_name: client.server_name,
        certificate: client.certificate,
    };
    let scheme = Scheme::of(client.is_secure);
    listener::serve_passed(server, stream, address, scheme, origin).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::mpsc;

    use super::*;
    use crate::server::peer::authority::make_authority;

    /// A listener, and what it takes for connections of other servers.
    struct Bench {
        address: String,
        authority: String,
        accepted: mpsc::Receiver<Client>,
        /// The connections that were accepted stay open until it is dropped.
        stop: watch::Sender<bool>,
        served: tokio::task::JoinHandle<()>,
    }

    impl Bench {
        async fn new(bounds: Bounds) -> Self {
            let authority = make_authority().unwrap();
            let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = socket.local_addr().unwrap().to_string();
            let tls = Arc::new(PeerTls::new(&authority).unwrap());
            let (stop, stopped) = watch::channel(false);
            let (sender, accepted) = mpsc::channel(100);
            let ends = stopped.clone();
            let serve = move |stream| {
                let (tls, sender, mut ends) = (Arc::clone(&tls), sender.clone(), ends.clone());
                async move {
                    let accepted = handshake(bounds, &tls, stream, ends.clone()).await;
                    if let Some((_stream, client)) = accepted {
                        sender.send(client).await.unwrap();
                        let _ = ends.changed().await;
                    }
                }
            };
            let served = tokio::spawn(accept_within(bounds, socket, stopped, serve));
            Self {
                address,
                authority,
                accepted,
                stop,
                served,
            }
        }

        /// Stops the listener; returns the clients of the connections that it took for other servers'.
        async fn stop(mut self) -> Vec<Client> {
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

    fn bounds(wait: Duration) -> Bounds {
        Bounds {
            connections: 100,
            wait,
        }
    }

    fn client() -> Client {
        Client {
            address: "192.0.2.7".parse().unwrap(),
            server_name: None,
            certificate: None,
            is_secure: false,
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
        let bench = Bench::new(bounds(LONG)).await;
        let mut stream = bench.tls().connect(&bench.address).await.unwrap();
        stream.write_all(&client().encode()).await.unwrap();
        stream.flush().await.unwrap();
        let mut bench = bench;
        assert_eq!(bench.accepted.recv().await, Some(client()));
        assert_eq!(bench.stop().await, []);
    }

    #[tokio::test]
    async fn a_peer_without_a_certificate_of_the_authority_is_closed() {
        let bench = Bench::new(bounds(LONG)).await;
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
        let bench = Bench::new(bounds(LONG)).await;
        let mut stream = TcpStream::connect(&bench.address).await.unwrap();
        stream.write_all(&client().encode()).await.unwrap();
        closed(stream).await;
        assert_eq!(bench.stop().await, []);
    }

    #[tokio::test]
    async fn a_peer_that_does_not_say_who_the_client_is_is_closed() {
        let bench = Bench::new(bounds(LONG)).await;
        let local = crate::server::proxy_protocol::ProxyHeader::default().encode();
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
        let bench = Bench::new(bounds(Duration::from_millis(200))).await;
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
        let bench = Bench::new(bounds(LONG)).await;
        // The listener has taken it, and the header does not come.
        let _silent = bench.tls().connect(&bench.address).await.unwrap();
        let stopped = timeout(LONG / 3, bench.stop()).await;
        assert_eq!(stopped.expect("the listener has ended"), []);
    }

    #[tokio::test]
    async fn connections_beyond_the_bound_are_closed_until_one_has_ended() {
        let few = Bounds {
            connections: 2,
            wait: LONG,
        };
        let bench = Bench::new(few).await;
        let silent = [
            TcpStream::connect(&bench.address).await.unwrap(),
            TcpStream::connect(&bench.address).await.unwrap(),
        ];
        closed(TcpStream::connect(&bench.address).await.unwrap()).await;
        drop(silent);
        // Until the listener has seen that they have ended, further ones are closed.
        let mut bench = bench;
        let taken = async {
            loop {
                if let Ok(mut stream) = bench.tls().connect(&bench.address).await {
                    let _ = stream.write_all(&client().encode()).await;
                    let _ = stream.flush().await;
                    return stream;
                }
            }
        };
        let _stream = timeout(LONG, taken).await.expect("there is room");
        assert_eq!(bench.accepted.recv().await, Some(client()));
    }
}
