//! HTTP: the server's own pages, the console, WebSockets, the administration API, and messages.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Extension, FromRequestParts as _, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tower_service::Service as _;
use tracing::{Level, debug, enabled, info};

use super::api;
use super::atom::administer;
use super::console;
use super::foreign::foreign;
use super::header_case::Head;
use super::proxy;
use super::request::{Caller, held_permit, held_slot, host};
use super::rest;
use super::state::{ServerState, serve_amqp};
use super::status::{self, StatusPage};
use crate::limits;
use crate::net::admission::{ConnectionSlot, ConnectionSlots, ListenerKind, Permit};
use crate::net::scheme::Scheme;
use crate::net::socket::Stream;
use crate::net::websocket::ByteStream;
use crate::peer::PeerConnection;
use jitney_broker::access::Origin;
use jitney_gateway::request_log;
use jitney_gateway::rest::RequestLine;

/// Where AMQP is spoken over WebSockets (`transport.md#websockets`).
const WEBSOCKET: &str = "/$servicebus/websocket";
/// The subprotocols of the SDKs and of other clients; the answer has the requested one.
const SUBPROTOCOLS: [&str; 2] = ["AMQPWSB10", "amqp"];

/// Answers the requests of one connection until it ends.
pub(crate) async fn serve(
    server: &Arc<ServerState>,
    kind: ListenerKind,
    stream: impl Stream,
    scheme: Scheme,
    origin: Origin,
    permit: Permit,
    slot: ConnectionSlot,
) {
    let (end, ending) = watch::channel(false);
    // Without authorization every peer counts as authorized, as every peer does at `--metrics`.
    let is_open = server.is_open || kind == ListenerKind::Metrics;
    let caller = Caller {
        kind,
        origin: Arc::new(origin),
        scheme,
        ending,
        address: permit.address(),
        permit: Arc::new(Mutex::new((!is_open).then_some(permit))),
        slot: Arc::new(Mutex::new(Some(slot))),
        refused: Arc::default(),
        close: Arc::default(),
    };
    answer_all(server, stream, caller, end).await;
}

/// Answers requests. Sends `end` before it waits for the last answer of a connection that must end.
#[expect(
    clippy::too_many_lines,
    reason = "the life of a connection, in its order"
)]
async fn answer_all(
    server: &Arc<ServerState>,
    stream: impl Stream,
    caller: Caller,
    end: watch::Sender<bool>,
) {
    let permit = Arc::clone(&caller.permit);
    let refusals = Arc::clone(&caller.refused);
    let close = Arc::clone(&caller.close);
    let begun = Instant::now();
    // A reserved slot is given back after one answer.
    let is_reserved = held_slot(&caller.slot)
        .as_ref()
        .is_some_and(ConnectionSlot::is_reserved);
    let router = router(Arc::clone(server));
    let meter = held_permit(&permit).as_ref().map(Permit::meter).cloned();
    let head = Head::new(meter.clone());
    let stream = head.watch(stream);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        // URL libraries encode the dollar sign.
        if request.uri().path().starts_with("/%24") {
            decode_dollar(request.uri_mut());
        }
        let refused = name_one_host(&mut request).err();
        let logged = LoggedRequest::begin(&request, &caller);
        request.extensions_mut().insert(caller.clone());
        request.extensions_mut().insert(head.take());
        let (mut router, head) = (router.clone(), head.clone());
        let (refusals, meter) = (Arc::clone(&refusals), meter.clone());
        async move {
            let mut response = match refused {
                Some(text) => (StatusCode::BAD_REQUEST, text).into_response(),
                None => router.call(request).await?,
            };
            if let Some(logged) = logged {
                logged.end(response.status());
            }
            if let Some(rest::Spelled(names)) = response.extensions_mut().remove() {
                head.spell(names).await;
            }
            if limits::HTTP_REFUSALS_MAX <= refusals.load(Ordering::Relaxed) {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            if let Some(meter) = meter.filter(|meter| !meter.is_over()) {
                // All that such a peer is sent is short, or the same bytes for all.
                let bytes = response.body().size_hint().lower();
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                meter.answered(bytes.min(limits::UNREAD_ANSWER_BYTES));
            }
            // After an upgrade no more heads follow.
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                head.resume();
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HTTP_READ_DEADLINE.as_duration())
        .max_buf_size(limits::HTTP_HEAD_BYTES_MAX)
        .keep_alive(!is_reserved)
        // A response of another server names a message's properties in headers, whose case is kept.
        .preserve_header_case(server.peers.is_some())
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let mut stopped = server.stopped.clone();
    let stop = async {
        // An error means that the other end is gone, which is a stop too.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let ended = tokio::select! {
        ended = &mut connection => Ok(ended),
        () = end_of_life(begun, &permit) => Err(()),
        () = stop => Err(()),
        () = close.notified() => {
            debug!("the peer of an HTTP connection reads too little of an answer, and others wait for room: closing");
            return;
        }
    };
    let ended = match ended {
        Ok(ended) => ended,
        Err(()) => {
            let _ = end.send(true);
            connection.as_mut().graceful_shutdown();
            // A peer that does not read its last answer in time loses it.
            timeout(limits::HTTP_LAST_WAIT.as_duration(), connection)
                .await
                .unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        debug!(%error, "HTTP connection ended");
    }
}

/// A request for the log of requests.
struct LoggedRequest {
    method: Method,
    path: String,
    client: String,
    begun: Instant,
}

impl LoggedRequest {
    /// Takes note of a request, if requests are logged. Its query is not logged: it may have a token.
    fn begin<B>(request: &hyper::Request<B>, caller: &Caller) -> Option<Self> {
        enabled!(target: request_log::TARGET, Level::INFO).then(|| Self {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            client: caller.address.to_string(),
            begun: Instant::now(),
        })
    }

    fn end(self, status: StatusCode) {
        let Self {
            method,
            path,
            client,
            begun,
        } = self;
        let (status, milliseconds) = (status.as_u16(), begun.elapsed().as_millis());
        info!(target: request_log::TARGET, %client, %method, path, status, milliseconds, "http");
    }
}

/// Lets the only `Host` of a request be the one that it is for: the authority of its target, if that is a whole URL [RFC 9112 3.2.2].
///
/// # Errors
///
/// What is wrong with the `Host` [RFC 9112 3.2].
fn name_one_host<B>(request: &mut hyper::Request<B>) -> Result<(), &'static str> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, another) = (hosts.next(), hosts.next());
    if another.is_some() {
        return Err("The request has several Host headers; one is right.\n");
    }
    let is_host = |text: &str| !text.contains(['/', '?', '#', '@', ',', '\\', ' ', '\t']);
    if host.is_some_and(|host| !host.to_str().is_ok_and(is_host)) {
        return Err(
            "The Host header is no host; a name or an address is right, with a port or without.\n",
        );
    }
    if request.uri().scheme().is_none() {
        return Ok(());
    }
    let authority = request.uri().authority().map_or("", |it| it.as_str());
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let Ok(host) = HeaderValue::from_str(authority) else {
        return Err("The URL of the request has no host.\n");
    };
    request.headers_mut().insert(header::HOST, host);
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    Ok(())
}

/// Decodes the percent-encoded dollar sign at the beginning of a path.
fn decode_dollar(uri: &mut Uri) {
    let rest = uri.path_and_query().map(ToString::to_string);
    let decoded = rest.map(|rest| rest.replacen("/%24", "/$", 1));
    if let Some(Ok(decoded)) = decoded.map(|text| text.parse()) {
        *uri = decoded;
    }
}

/// Waits until a connection has to end: at its permit's deadline if it is still unauthenticated, else
/// after [`limits::HTTP_CONNECTION_LIFE`].
async fn end_of_life(begun: Instant, permit: &Mutex<Option<Permit>>) {
    let deadline = held_permit(permit).as_ref().map(Permit::deadline);
    if let Some(deadline) = deadline {
        sleep_until(deadline).await;
        if held_permit(permit).is_some() {
            return;
        }
    }
    sleep_until(begun + limits::HTTP_CONNECTION_LIFE.as_duration()).await;
}

fn router(server: Arc<ServerState>) -> Router {
    Router::new()
        .route(WEBSOCKET, get(websocket))
        .route(&format!("{WEBSOCKET}/"), get(websocket))
        .fallback(requested)
        .with_state(server)
}

async fn websocket(
    State(server): State<Arc<ServerState>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let (mut parts, _) = request.into_parts();
    if let Some(refused) = foreign(&server, &parts.headers) {
        return refused;
    }
    if caller.kind == ListenerKind::Metrics {
        return status::not_here();
    }
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let Some(slot) = slot_of_stream(&server.slots, &caller.slot) else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    // That of the HTTP connection, until the WebSocket is authorized; one of its own if a request was.
    let permit = held_permit(&caller.permit).take();
    let Some(permit) = permit.or_else(|| server.admission.try_admit(caller.address)) else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let mut origin = Origin::clone(&caller.origin);
    let host = host(&parts.headers, &origin);
    origin.server_name = Some(host);
    upgrade
        .protocols(SUBPROTOCOLS)
        .read_buffer_size(limits::WEBSOCKET_READ_BYTES)
        .max_message_size(limits::WEBSOCKET_MESSAGE_BYTES_MAX)
        .max_frame_size(limits::WEBSOCKET_MESSAGE_BYTES_MAX)
        // Each message by itself: Java hangs when a TLS record ends within the head of one.
        .write_buffer_size(0)
        .max_write_buffer_size(2 * limits::WEBSOCKET_MESSAGE_BYTES_MAX)
        .on_failed_upgrade(|error| debug!(%error, "WebSocket upgrade failed"))
        .on_upgrade(move |socket| async move {
            serve_amqp(
                &server,
                caller.kind,
                ByteStream::new(socket),
                origin,
                permit,
                slot,
            )
            .await;
        })
}

/// Returns the slot that a WebSocket holds for as long as its stream is open: the one of its HTTP
/// connection. A reserved slot is exchanged for one of the others; `None` if all of these are taken.
fn slot_of_stream(
    slots: &ConnectionSlots,
    held: &Mutex<Option<ConnectionSlot>>,
) -> Option<ConnectionSlot> {
    let mut held = held_slot(held);
    if held.as_ref()?.is_reserved() {
        let slot = slots.try_take()?;
        *held = None;
        return Some(slot);
    }
    held.take()
}

/// Answers all other requests: operations on messages, or on entities.
async fn requested(
    State(server): State<Arc<ServerState>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let (method, uri) = (parts.method.as_str(), &parts.uri);
    let page = StatusPage::of(method, uri);
    // What all clients may see is no secret from the web pages of other hosts.
    if !page.is_some_and(StatusPage::is_public)
        && let Some(refused) = foreign(&server, &parts.headers)
    {
        return refused;
    }
    if let Some(page) = page {
        return status::answer(&server, &caller, page, &parts).await;
    }
    if caller.kind == ListenerKind::Metrics {
        return status::not_here();
    }
    if let Some(path) = console::path_of(&parts.method, uri) {
        return console::answer(&server.console, path, &parts);
    }
    match elsewhere(&server, &caller, &parts).await {
        Ok(None) => {}
        Ok(Some(other)) => return proxy::forward(&server, &caller, *other, parts, body).await,
        Err(unavailable) => return unavailable,
    }
    let line = RequestLine::read(method, uri.path(), uri.query()).transpose();
    if line.is_none() && api::is_for(&parts) {
        return Box::pin(api::answer(&server, &caller, &parts, body)).await;
    }
    match line {
        Some(line) => rest::answer(&server, &caller, line, &parts, body).await,
        None => administer(&server, &caller, &parts, body).await,
    }
}

/// Returns the connection to the server of the fleet that has the namespace of a request; none if that is this one.
///
/// # Errors
///
/// The answer that says why no server was found.
async fn elsewhere(
    server: &ServerState,
    caller: &Caller,
    parts: &Parts,
) -> Result<Option<Box<PeerConnection>>, Response> {
    if server.peers.is_none() || api::is_of_server(parts) {
        return Ok(None);
    }
    let host = api::namespace_of(parts).unwrap_or_else(|| host(&parts.headers, &caller.origin));
    proxy::reach(server, caller, &host).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the host and the target that a request has after [`name_one_host`].
    fn named(uri: &str, hosts: &[&str]) -> Result<(Option<String>, String), &'static str> {
        let mut request = hyper::Request::get(uri).body(()).unwrap();
        for host in hosts {
            let host = HeaderValue::from_str(host).unwrap();
            request.headers_mut().append(header::HOST, host);
        }
        name_one_host(&mut request)?;
        let host = request.headers().get(header::HOST);
        let host = host.map(|host| host.to_str().unwrap().to_owned());
        Ok((host, request.uri().to_string()))
    }

    #[test]
    fn a_request_is_for_one_host_and_a_whole_url_names_it() {
        let is = |host: &str, target: &str| Ok((Some(host.to_owned()), target.to_owned()));
        assert_eq!(named("/q", &["a:5300"]), is("a:5300", "/q"));
        assert_eq!(named("/q", &["[::1]:5300"]), is("[::1]:5300", "/q"));
        assert_eq!(named("/q", &[""]), is("", "/q"));
        assert_eq!(named("/q", &[]), Ok((None, "/q".to_owned())));
        let url = "http://other:80/q?a=b";
        assert_eq!(named(url, &["a"]), is("other:80", "/q?a=b"));
        assert_eq!(named(url, &[]), is("other:80", "/q?a=b"));
        assert_eq!(named("http://user:word@other", &["a"]), is("other", "/"));
        for hosts in [&["a", "b"][..], &["a", "a"], &["a/b"], &["a@b"], &["a, b"]] {
            assert!(named("/q", hosts).is_err(), "{hosts:?}");
        }
    }
}
