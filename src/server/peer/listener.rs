//! The listener for the other servers of the fleet: they show a certificate of the store's authority, and then the client.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::header::Client;
use super::splice::Peers;
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
    let mut stopped = server.stopped.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok((stream, _)) if connections.len() < limits::PEER_CONNECTIONS_MAX => {
                    let (peers, server) = (Arc::clone(&peers), Arc::clone(&server));
                    connections.spawn(async move { serve(stream, &peers, &server).await });
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

async fn serve(stream: TcpStream, peers: &Peers, server: &Arc<ServerState>) {
    let wait = limits::PEER_CONNECT_WAIT.as_duration();
    // It fails where it is read.
    let _ = stream.set_nodelay(true);
    let accepted = timeout(wait, async {
        let mut stream = peers.tls().accept(Socket::new(stream)).await?;
        let client = Client::read(&mut stream).await?;
        Ok::<_, std::io::Error>((stream, client))
    });
    let (stream, client) = match accepted.await {
        Ok(Ok(accepted)) => accepted,
        Ok(Err(error)) => return debug!(%error, "a connection was not another server's"),
        Err(_) => return debug!("a connection did not show that it is another server's in time"),
    };
    let address = client.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let origin = Origin {
        peer: peer_of(address),
        server_name: client.server_name,
        certificate: client.certificate,
    };
    let scheme = if client.is_secure {
        Scheme::Https
    } else {
        Scheme::Http
    };
    listener::serve_passed(server, stream, address, scheme, origin).await;
}
