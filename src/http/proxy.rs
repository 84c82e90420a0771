//! HTTP requests that are passed on to the server that has their namespace. Each request is judged by itself: a client may name
//! another host on the same connection.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tracing::debug;

use super::request::Caller;
use super::state::ServerState;
use crate::limits;
use crate::peer::{Hop, Lookup, NotPassed, OriginalClient, PeerConnection, Peers, Reached};
use crate::system::supervisor;

/// When to try again a request to a namespace without a server.
const RETRY_SECONDS: u64 = 1;

/// Finds the server of the namespace that a request's host means; returns the connection to it, or none if it is this server.
///
/// # Errors
///
/// The answer that says why no server was found.
pub(super) async fn reach(
    server: &ServerState,
    caller: &Caller,
    host: &str,
) -> Result<Option<Box<PeerConnection>>, Response> {
    let Some(peers) = &server.peers else {
        return Ok(None);
    };
    let client = OriginalClient {
        address: caller.address,
        server_name: caller.origin.server_name.clone(),
        certificate: caller.origin.certificate.clone(),
        scheme: caller.scheme,
    };
    let lookup = Lookup {
        shards: &server.shards,
        slots: &server.slots,
        host: Some(host),
        client: &client,
        hop: Hop::of(caller.kind),
    };
    match peers.reach(lookup, server.stopped.clone()).await {
        Ok(Reached::Here(_)) => Ok(None),
        Ok(Reached::Elsewhere(connection)) => Ok(Some(connection)),
        Err(error) => Err(unavailable(host, &error)),
    }
}

/// Passes a request on, and returns the other server's response.
pub(super) async fn forward(
    server: &ServerState,
    caller: &Caller,
    connection: PeerConnection,
    parts: Parts,
    body: Body,
) -> Response {
    let Some(peers) = &server.peers else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let namespace = connection.namespace.clone();
    let request = Request::from_parts(parts, body);
    match send(Arc::clone(peers), connection, request).await {
        Ok(response) => {
            if response.status() == StatusCode::UNAUTHORIZED {
                caller.refused.fetch_add(1, Ordering::Relaxed);
            } else if response.status().is_success() {
                caller.authorized();
            }
            response
        }
        Err(error) => unavailable(&namespace, &error.into()),
    }
}

fn unavailable(name: &str, error: &NotPassed) -> Response {
    let name: String = name
        .chars()
        .take(jitney_broker::limits::LOGGED_MAX)
        .collect();
    let text = format!("The namespace of '{name}' is not served: {error}.\n");
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
    response
}

async fn send(
    peers: Arc<Peers>,
    connection: PeerConnection,
    mut request: Request,
) -> std::io::Result<Response> {
    let PeerConnection {
        stream,
        namespace,
        owner,
        slot,
    } = connection;
    let opened = http1::Builder::new()
        .max_buf_size(limits::HTTP_HEAD_BYTES_MAX)
        // Names of a message's properties have a case.
        .preserve_header_case(true)
        .handshake(TokioIo::new(stream));
    let (mut sender, connection) = opened.await.map_err(std::io::Error::other)?;
    let drive = async move {
        // The end of the connection ends a response that is being read, such as a stream of changes.
        let ended = tokio::select! {
            ended = connection => ended,
            () = peers.until_moved(&namespace, &owner) => Ok(()),
        };
        if let Err(error) = ended {
            debug!(%error, "a request that was passed on has ended");
        }
        // The socket is closed.
        drop(slot);
    };
    supervisor::spawn("request that is passed on", drive).allow_end();
    // One request for each connection.
    let close = HeaderValue::from_static("close");
    request.headers_mut().insert(header::CONNECTION, close);
    let response = sender.send_request(request).await;
    let mut response = response.map_err(std::io::Error::other)?.map(Body::new);
    response.headers_mut().remove(header::CONNECTION);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;
    use crate::net::admission::ConnectionSlots;
    use crate::peer::{FakeOwners, OwningServer, PeerTls, make_authority};

    /// Longer than any test takes.
    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn a_request_that_is_passed_on_has_a_slot_until_its_response_has_ended() {
        let authority = make_authority().unwrap();
        let tls = || PeerTls::new(&authority).unwrap();
        let owners = Arc::new(FakeOwners::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let owner = OwningServer::other("two", address);
        owners.set("there", owner.clone());
        let (accepts, text) = (tls(), address.to_string());
        let accept = async { accepts.accept(listener.accept().await.unwrap().0).await };
        let connects = tls();
        let (stream, other) = tokio::join!(connects.connect(&text), accept);
        let mut other = other.unwrap();
        let slots = ConnectionSlots::new(limits::DESCRIPTORS_MIN);
        let all = slots.count();
        let connection = PeerConnection {
            stream: stream.unwrap(),
            namespace: "there".to_owned(),
            owner,
            slot: slots.try_take().unwrap(),
        };
        let peers = Arc::new(Peers::new(owners, tls()));
        let request = Request::get("/q").body(Body::empty()).unwrap();
        let answer = async {
            let mut head = [0; 4];
            other.read_exact(&mut head).await.unwrap();
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha";
            other.write_all(response).await.unwrap();
            other.flush().await.unwrap();
        };
        let (response, ()) = tokio::join!(send(peers, connection, request), answer);
        let response = response.unwrap();
        assert_eq!(slots.count(), all - 1, "its socket is open");
        other.write_all(b"lf").await.unwrap();
        other.flush().await.unwrap();
        let body = axum::body::to_bytes(response.into_body(), 10).await;
        assert_eq!(&body.unwrap()[..], b"half");
        drop(other);
        let is_free = async {
            while slots.count() < all {
                tokio::task::yield_now().await;
            }
        };
        timeout(LONG, is_free).await.expect("the slot is free");
    }
}
