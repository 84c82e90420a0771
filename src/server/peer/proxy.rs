//! HTTP requests that are passed on to the server that has their namespace. Each request is judged by itself: a client may name
//! another host on the same connection.

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::sync::atomic::Ordering;
use tracing::debug;

use super::header::Client;
use super::splice::{NotPassed, Peers};
use crate::limits;
use crate::server::http::Caller;
use crate::server::listener::{Scheme, ServerState};
use crate::server::supervisor;

/// Passes a request on, and returns the other server's response.
pub(in crate::server) async fn forward(
    server: &ServerState,
    caller: &Caller,
    namespace: &str,
    parts: Parts,
    body: Body,
) -> Response {
    let Some(peers) = &server.peers else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let client = Client {
        address: Some(caller.address),
        server_name: caller.origin.server_name.clone(),
        certificate: caller.origin.certificate.clone(),
        is_secure: caller.scheme == Scheme::Https,
    };
    match send(peers, namespace, &client, Request::from_parts(parts, body)).await {
        Ok(response) => {
            if response.status() == StatusCode::UNAUTHORIZED {
                caller.refused.fetch_add(1, Ordering::Relaxed);
            } else if response.status().is_success() {
                caller.authorized();
            }
            response
        }
        Err(error) => {
            let text = format!("The namespace '{namespace}' cannot be reached: {error}.\n");
            let mut response = (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
            response
        }
    }
}

/// When to try again a request to a namespace without a server.
const RETRY_SECONDS: u64 = 1;

async fn send(
    peers: &Peers,
    namespace: &str,
    client: &Client,
    mut request: Request,
) -> Result<Response, NotPassed> {
    let (stream, _) = peers.connect(namespace, client).await?;
    let opened = http1::Builder::new()
        .max_buf_size(limits::HTTP_HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream));
    let (mut sender, connection) = opened.await.map_err(std::io::Error::other)?;
    let drive = async move {
        if let Err(error) = connection.await {
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
