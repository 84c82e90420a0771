//! HTTP: health, the authority's certificate, WebSockets, and the administration API.
//!
//! A request of the administration API is checked for its rights before its body is read, and its
//! body is read before it is understood: a stranger costs a bounded number of bytes, and no parsing.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Extension, FromRequestParts as _, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tower_service::Service as _;
use tracing::{debug, info};

use super::connection::Stream;
use super::doors::{self, House, Visit};
use super::owner::{Mail, Reached};
use super::websocket::ByteStream;
use crate::admin;
use crate::broker::administration::OperationRefused;
use crate::broker::{Grant, Origin, TokenRefused};
use crate::limits;

const HEALTHY: &str = r#"{"status":"healthy","message":"Service is healthy."}"#;
const UNHEALTHY: &str =
    r#"{"status":"unhealthy","message":"Service not available. Please try after some time."}"#;
/// Where AMQP is spoken over WebSockets (`protocol.md` §1.1).
const WEBSOCKET: &str = "/$servicebus/websocket";
/// The subprotocols of the SDKs and of everybody else; the one that is asked for is answered.
const SUBPROTOCOLS: [&str; 2] = ["AMQPWSB10", "amqp"];

const READ_DEADLINE: Duration =
    Duration::from_millis(limits::HTTP_READ_DEADLINE.as_millis().cast_unsigned());

/// Who makes the requests of a connection.
#[derive(Clone)]
struct Caller {
    origin: Arc<Origin>,
    visit: Arc<Visit>,
    secure: bool,
}

/// Answers the requests of one connection until it ends.
pub(super) async fn serve(
    house: &Arc<House>,
    stream: impl Stream + 'static,
    origin: Origin,
    visit: Visit,
) {
    let caller = Caller {
        secure: origin.is_secure,
        origin: Arc::new(origin),
        visit: Arc::new(visit),
    };
    let router = router(Arc::clone(house));
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(caller.clone());
        router.clone().call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_DEADLINE)
        .max_buf_size(limits::HTTP_HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let mut stopped = house.stopped.clone();
    let ended = tokio::select! {
        ended = &mut connection => ended,
        // An error means that the other end is gone, which is a stop too.
        _ = stopped.wait_for(|stopped| *stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "an HTTP connection ended");
    }
}

fn router(house: Arc<House>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/ca.pem", get(authority))
        .route(WEBSOCKET, get(websocket))
        .route(&format!("{WEBSOCKET}/"), get(websocket))
        .fallback(administer)
        .with_state(house)
}

async fn health(State(house): State<Arc<House>>) -> Response {
    /// How long the owner may take: one that does not answer takes no message.
    const WAIT: Duration = Duration::from_secs(2);
    let is_healthy = timeout(WAIT, ask(&house, Mail::Health)).await;
    let (status, body) = if is_healthy.ok().flatten() == Some(true) {
        (StatusCode::OK, HEALTHY)
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, UNHEALTHY)
    };
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// The certificate of the authority that clients are to trust.
async fn authority(State(house): State<Arc<House>>) -> Response {
    match house.tls.ca_pem() {
        Some(pem) => {
            let kind = [(header::CONTENT_TYPE, "application/x-pem-file")];
            (kind, pem.to_string()).into_response()
        }
        None => {
            let text = "There is no authority of the broker's own: its certificate is one that \
                        the operator gave it. --tls-ca names a file to be handed out here.\n";
            (StatusCode::NOT_FOUND, text).into_response()
        }
    }
}

async fn websocket(
    State(house): State<Arc<House>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let (mut parts, _) = request.into_parts();
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    // A visit of its own: it may last until a right is proved, and the request's ends now.
    let Some(visit) = house.visits.enter(caller.visit.address()) else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let mut origin = Origin::clone(&caller.origin);
    let host = host(&parts.headers, &origin);
    origin.server_name = Some(host);
    upgrade
        .protocols(SUBPROTOCOLS)
        .max_message_size(limits::WEBSOCKET_MESSAGE_BYTES_MAX)
        .max_frame_size(limits::WEBSOCKET_MESSAGE_BYTES_MAX)
        .write_buffer_size(limits::WEBSOCKET_WRITE_BYTES)
        .max_write_buffer_size(2 * limits::WEBSOCKET_MESSAGE_BYTES_MAX)
        .on_failed_upgrade(|error| debug!(%error, "no WebSocket"))
        .on_upgrade(move |socket| async move {
            doors::serve_amqp(&house, ByteStream::new(socket), origin, visit).await;
        })
}

/// The administration API (`protocol.md` §11).
async fn administer(
    State(house): State<Arc<House>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let host = host(&parts.headers, &caller.origin);
    let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let mut asked = admin::Request {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query(),
        host: &host,
        if_match: text(header::IF_MATCH),
        body: &[],
    };
    let answer = answer(&house, &caller, &mut asked, text(header::AUTHORIZATION), body).await;
    respond(answer)
}

async fn answer(
    house: &House,
    caller: &Caller,
    asked: &mut admin::Request<'_>,
    token: Option<&str>,
    body: Body,
) -> admin::Response {
    let now = || house.clock.now();
    todo!()
}

/// Asks the owner something; `None` if it has gone.
async fn ask<T>(house: &House, mail: impl FnOnce(oneshot::Sender<T>) -> Mail) -> Option<T> {
    let (answer, answered) = oneshot::channel();
    house.owner.send(mail(answer)).await.ok()?;
    answered.await.ok()
}

/// Finds the host that a request is for, with its port.
fn host(headers: &HeaderMap, origin: &Origin) -> String {
    let header = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let name = header.or(origin.server_name.as_deref());
    name.unwrap_or("localhost").to_owned()
}
