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

use super::header::Client;
use super::reach::{Hop, NotPassed, PeerConnection, Peers, Reached};
use crate::limits;
use crate::server::http::Caller;
use crate::server::listener::{Scheme, ServerState};
use crate::server::supervisor;

/// When to try again a request to a namespace without a server.
const RETRY_SECONDS: u64 = 1;

/// Finds the server of the namespace that a request's host means; returns the connection to it, or none if it is this server.
///
/// # Errors
///
/// The answer that says why no server was found.
pub(in crate::server) async fn reach(
    server: &ServerState,
    caller: &Caller,
    host: &str,
) -> Result<Option<Box<PeerConnection>>, Response> {
    let Some(peers) = &server.peers else {
        return Ok(None);
    };
    let client = Client {
        address: caller.address,
        server_name: caller.origin.server_name.clone(),
        certificate: caller.origin.certificate.clone(),
        is_secure: caller.scheme == Scheme::Https,
    };
    let (shards, stopped) = (&server.shards, server.stopped.clone());
    let hop = Hop::of(caller.kind);
    let reached = peers.reach(shards, Some(host), &client, hop, stopped);
    match reached.await {
        Ok(Reached::Here(_)) => Ok(None),
        Ok(Reached::Elsewhere(connection)) => Ok(Some(connection)),
        Err(error) => Err(unavailable(host, &error)),
    }
}

/// Passes a request on, and returns the other server's response.
pub(in crate::server) async fn forward(
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
    let name: String = name.chars().take(limits::LOGGED_MAX).collect();
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
