//! HTTP: the server's own pages, the console, WebSockets, the administration API, and messages.
//!
//! A request of the administration API is checked for its rights before its body is read, and its
//! body is read before it is parsed: an unauthenticated peer costs a bounded number of bytes, and no
//! parsing.

use std::convert::Infallible;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Extension, FromRequestParts as _, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::ext::ReasonPhrase;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tower_service::Service as _;
use tracing::{Level, debug, enabled, info};

use super::admission::{ConnectionSlot, ConnectionSlots, ListenerKind, Permit};
use super::api;
use super::console;
use super::header_case::Head;
use super::listener::{self, ServerState};
use super::mail::Mail;
use super::messages;
use super::operator::NotOperator;
use super::peer::{self, PeerConnection};
use super::scheme::Scheme;
use super::socket::Stream;
use super::status::{self, Page};
use super::tls;
use super::websocket::ByteStream;
use crate::server::limits;
use jitney_base::secret::Secret;
use jitney_broker::access::{self, Authority, Fault, Inquiry, Origin, TokenRefused};
use jitney_broker::namespace::{Denied, DeniedKind};
use jitney_gateway::admin::{AdminError, AdminRequest, AdminResponse, RequestHead};
use jitney_gateway::rest::RequestLine;
use jitney_gateway::{Tracking, request_log};
use jitney_shard::Administration;

/// Where AMQP is spoken over WebSockets (`transport.md#websockets`).
const WEBSOCKET: &str = "/$servicebus/websocket";
/// The subprotocols of the SDKs and of other clients; the answer has the requested one.
const SUBPROTOCOLS: [&str; 2] = ["AMQPWSB10", "amqp"];

/// Where clients put tokens for the entities that another is to forward to
/// (`administration.md#headers`).
const SUPPLEMENTARY: [&str; 2] = [
    "ServiceBusSupplementaryAuthorization",
    "ServiceBusDlqSupplementaryAuthorization",
];

/// What a peer is told that has tried too many wrong keys.
pub(super) const TOO_MANY_FAILED: &str = "Too many authentications failed; try again later.";

/// The peer that makes the requests of a connection.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) kind: ListenerKind,
    pub(super) origin: Arc<Origin>,
    pub(super) scheme: Scheme,
    /// The connection must end: what waits is to be answered.
    pub(super) ending: watch::Receiver<bool>,
    pub(super) address: IpAddr,
    /// Held until a request is authorized.
    permit: Arc<Mutex<Option<Permit>>>,
    /// The slot of the connection; a WebSocket takes it over.
    slot: Arc<Mutex<Option<ConnectionSlot>>>,
    /// How many of its requests were not authorized.
    pub(super) refused: Arc<AtomicUsize>,
    /// Notified when the connection is to end at once: its peer reads too little of an answer.
    pub(super) close: Arc<Notify>,
}

/// Answers the requests of one connection until it ends.
pub(super) async fn serve(
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
            if let Some(messages::Spelled(names)) = response.extensions_mut().remove() {
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

impl Caller {
    /// Records that a request of the peer was authorized.
    pub(super) fn authorized(&self) {
        *held_permit(&self.permit) = None;
    }
}

fn held_permit(permit: &Mutex<Option<Permit>>) -> MutexGuard<'_, Option<Permit>> {
    permit.lock().unwrap_or_else(PoisonError::into_inner)
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
            listener::serve_amqp(
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

fn held_slot(slot: &Mutex<Option<ConnectionSlot>>) -> MutexGuard<'_, Option<ConnectionSlot>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers all other requests: operations on messages, or on entities.
async fn requested(
    State(server): State<Arc<ServerState>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let (method, uri) = (parts.method.as_str(), &parts.uri);
    let page = Page::of(method, uri);
    // What all clients may see is no secret from the web pages of other hosts.
    if !page.is_some_and(Page::is_public)
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
        Ok(Some(other)) => return peer::forward(&server, &caller, *other, parts, body).await,
        Err(unavailable) => return unavailable,
    }
    let line = RequestLine::read(method, uri.path(), uri.query()).transpose();
    if line.is_none() && api::is_for(&parts) {
        return Box::pin(api::answer(&server, &caller, &parts, body)).await;
    }
    match line {
        Some(line) => messages::answer(&server, &caller, line, &parts, body).await,
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
    peer::reach(server, caller, &host).await
}

/// The administration API (`administration.md#administration-over-http`).
async fn administer(server: &ServerState, caller: &Caller, parts: &Parts, body: Body) -> Response {
    let host = host(&parts.headers, &caller.origin);
    let text = |name| {
        parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    // A header that is not text matches no version; it must not count as absent.
    let version = parts.headers.get(header::IF_MATCH);
    let version = version.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let request = AdminRequest::read(&RequestHead {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query(),
        host: &host,
        if_match: version.as_deref(),
    });
    let inquiry = Inquiry {
        peer: caller.origin.peer,
        host: Some(host.clone()),
        nowhere: None,
        token: text(header::AUTHORIZATION).map(Secret::new),
        path: parts.uri.path().to_owned(),
        supplementary: SUPPLEMENTARY
            .iter()
            .filter_map(|name| Some(Secret::new(parts.headers.get(*name)?.to_str().ok()?)))
            .collect(),
    };
    let answer = answer(server, caller, request, inquiry, body).await;
    respond(answer.unwrap_or_else(|refusal| {
        let id = tracking_id(server);
        refusal.render(&Tracking {
            id: &id,
            system: host.split([':', '.']).next().unwrap_or_default(),
            at: server.clock.now(),
        })
    }))
}

/// Authorizes a request, reads its body, and then carries it out: each step costs more than the one
/// before.
async fn answer(
    server: &ServerState,
    caller: &Caller,
    request: Result<AdminRequest, AdminError>,
    inquiry: Inquiry,
    body: Body,
) -> Result<AdminResponse, AdminError> {
    let host = inquiry.host.clone();
    let owner = server.shards.owner_of(host.as_deref().unwrap_or_default());
    let owner = owner.ok_or_else(stopping)?;
    let authority = authorize(server, caller, inquiry).await?;
    let request = request?;
    let body = if request.needs_body() {
        read(body).await?
    } else {
        Bytes::new()
    };
    let operation = request.operation(&body)?;
    let administration = Administration {
        host,
        authority,
        operation,
    };
    let done = owner.ask(|answer| Mail::Administer(Box::new(administration), answer));
    let answer = done.await.ok_or_else(stopping)??;
    Ok(request.render(&answer))
}

/// Returns the rights that a request carries.
pub(super) async fn authorize(
    server: &ServerState,
    caller: &Caller,
    inquiry: Inquiry,
) -> Result<Authority, Denied> {
    let path = inquiry.path.clone();
    let authorized = match check_shape(server, &inquiry) {
        Ok(()) => ask_owner(server, inquiry).await?,
        Err(refused) => Err(refused),
    };
    let authority = authorized.map_err(|refused| {
        caller.refused.fetch_add(1, Ordering::Relaxed);
        if refused.is_logged {
            let peer = caller.address;
            let path: String = path
                .chars()
                .take(jitney_broker::limits::LOGGED_MAX)
                .collect();
            let (fault, rule) = (refused.fault, refused.rule.as_deref());
            info!(%peer, path, ?fault, rule, "HTTP request refused: not authorized");
        }
        of_token(&refused)
    })?;
    caller.authorized();
    Ok(authority)
}

/// Asks the owner of the namespace that a request names what its token proves.
async fn ask_owner(
    server: &ServerState,
    inquiry: Inquiry,
) -> Result<Result<Authority, TokenRefused>, Denied> {
    let shards = &server.shards;
    let owner = match inquiry.nowhere {
        None => shards.owner_of(inquiry.host.as_deref().unwrap_or_default()),
        Some(_) => shards.some_owner(),
    };
    let owner = owner.ok_or_else(stopping)?;
    let authorized = owner
        .ask(|answer| Mail::Authorize(Box::new(inquiry), answer))
        .await;
    authorized.ok_or_else(stopping)
}

/// Refuses a malformed token before an owner is asked: the peer may be unauthenticated, and owners have others to serve.
fn check_shape(server: &ServerState, inquiry: &Inquiry) -> Result<(), TokenRefused> {
    let (now, peer) = (server.clock.elapsed(), inquiry.peer);
    let token = inquiry.token.as_ref().map(Secret::expose);
    match token.filter(|_| !server.is_open).map(access::check_sas) {
        None | Some(Ok(())) => Ok(()),
        Some(Err(refused)) => {
            let is_logged = server.refused_tokens.is_logged(now, peer);
            let mut refused = match server.refused_tokens.failed(now, peer, "") {
                Some(wait) => TokenRefused::throttled(wait),
                None => refused,
            };
            refused.is_logged = is_logged;
            Err(refused)
        }
    }
}

/// Checks that a request is the operator's.
///
/// # Errors
///
/// Says what the request must have.
pub(super) fn check_operator(
    server: &ServerState,
    caller: &Caller,
    parts: &Parts,
) -> Result<(), NotOperator> {
    let (now, path) = (server.clock.elapsed(), parts.uri.path());
    let operator = &server.operator;
    let checked = operator.check(now, caller.address, path, &parts.headers);
    match checked {
        Ok(()) => caller.authorized(),
        Err(_) => {
            caller.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
    checked
}

/// Reads a body that has a bounded length and comes in a bounded time.
async fn read(body: Body) -> Result<Bytes, AdminError> {
    match timeout(
        limits::HTTP_READ_DEADLINE.as_duration(),
        to_bytes(body, jitney_gateway::limits::ADMIN_BODY_BYTES_MAX),
    )
    .await
    {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_long(&error) => Err(AdminError::TooLong),
        Ok(Err(error)) => Err(AdminError::Malformed(format!("the body: {error}"))),
        Err(_) => Err(AdminError::Malformed(format!(
            "the body did not come within {} seconds",
            limits::HTTP_READ_DEADLINE.as_duration().as_secs()
        ))),
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>)
}

fn of_token(refused: &TokenRefused) -> Denied {
    let kind = match refused.fault {
        Fault::Throttled(_) | Fault::Full => DeniedKind::Full,
        Fault::Missing
        | Fault::Signature
        | Fault::Audience
        | Fault::Issuer
        | Fault::Malformed
        | Fault::Expired
        | Fault::Rights => DeniedKind::Unauthorized,
    };
    let text = format!("SubCode={}. {refused}", refused.sub_code());
    Denied::new(kind, text, "")
}

/// Says that the owner of a namespace does not answer.
pub(super) fn stopping() -> Denied {
    let text = "The broker is stopping, another server serves the namespace now, or its database cannot be \
                reached: try again.";
    Denied::new(DeniedKind::Full, text, "")
}

/// Makes the tracking identifier of a refusal.
pub(super) fn tracking_id(server: &ServerState) -> String {
    let count = server.refusals.fetch_add(1, Ordering::Relaxed);
    let bits = RandomState::new().hash_one(count);
    let (a, b) = (bits >> 32, bits & 0xffff_ffff);
    let (c, d) = (b >> 16, b & 0xffff);
    format!("{a:08x}-{c:04x}-{d:04x}-0000-{count:012x}")
}

fn respond(answer: AdminResponse) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reason = answer.reason.map(ReasonPhrase::try_from);
    if let Some(Ok(reason)) = reason {
        response.extensions_mut().insert(reason);
    }
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(answer.content_type),
    );
    let etag = answer
        .etag
        .and_then(|etag| HeaderValue::from_str(&etag).ok());
    if let Some(etag) = etag {
        headers.insert(header::ETAG, etag);
    }
    if let Some(seconds) = answer.retry_after_seconds {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Refuses requests that a web page of another host makes a browser send. Where any key is accepted
/// (`--auth development`), such a page could use a broker on its reader's machine. The page is detected
/// by `Origin`; after DNS rebinding there is no `Origin`, and the page is detected by `Host`.
fn foreign(server: &ServerState, headers: &HeaderMap) -> Option<Response> {
    if !server.is_open {
        return None;
    }
    let text = if is_of_a_page(headers) {
        "Requests of web pages of other hosts are refused where any key is accepted (--auth development).\n".to_owned()
    } else {
        let name = foreign_name(headers, |name| server.tls.is_for(name))?;
        let name: String = name
            .chars()
            .take(jitney_broker::limits::LOGGED_MAX)
            .collect();
        format!(
            "The host '{name}' is not known to be this broker, and any key is good here (--auth \
             development). Ask for localhost, an address, a name without a dot, or a name that the \
             broker's certificate is for: jitney certs --name makes one.\n"
        )
    };
    Some((StatusCode::FORBIDDEN, text).into_response())
}

fn is_of_a_page(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return false;
    };
    let origin = origin.to_str().unwrap_or_default();
    let host = origin.split_once("://").map_or("", |(_, host)| host);
    // The console's own requests have the host in both, and it is checked next.
    let own = headers.get(header::HOST);
    if own.is_some_and(|own| own.as_bytes() == host.as_bytes()) {
        return false;
    }
    let is_local = |name: &str| {
        let name = name.trim_matches(['[', ']']);
        name == "localhost" || name.parse().is_ok_and(|it: IpAddr| it.is_loopback())
    };
    !(is_local(host) || is_local(without_port(host)))
}

/// Returns the host that a request names, if it may be a domain of another owner: it has a dot,
/// and its suffix is neither reserved nor the service's. An address cannot be rebound.
fn foreign_name(headers: &HeaderMap, is_ours: impl Fn(&str) -> bool) -> Option<&str> {
    /// Suffixes of names that no attacker can register.
    const SAFE_ENDS: [&str; 3] = [
        ".servicebus.windows.net",
        ".servicebus.chinacloudapi.cn",
        ".servicebus.usgovcloudapi.net",
    ];
    // Browsers always send it.
    let host = headers.get(header::HOST)?.to_str().unwrap_or("?.?");
    let whole = host.trim_matches(['[', ']']);
    let name = without_port(host).trim_end_matches('.');
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    let lower = name.to_ascii_lowercase();
    let is_safe = tls::is_local_name(name)
        || is_address(whole)
        || is_address(name.trim_matches(['[', ']']))
        || SAFE_ENDS.iter().any(|end| lower.ends_with(end))
        || is_ours(name);
    (!is_safe).then_some(host)
}

fn without_port(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// Returns the host that a request is for, with its port.
pub(super) fn host(headers: &HeaderMap, origin: &Origin) -> String {
    let header = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let name = header.or(origin.server_name.as_deref());
    name.unwrap_or("localhost").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_another_host_is_foreign_and_the_consoles_is_not() {
        for (origin, host, foreign) in [
            ("http://localhost:3000", "localhost:5300", false),
            ("http://[::1]:3000", "localhost:5300", false),
            ("http://jitney:5300", "jitney:5300", false),
            ("http://jitney:80", "jitney:5300", true),
            ("http://evil.example", "jitney:5300", true),
            ("http://localhost.evil.example", "localhost:5300", true),
            ("null", "localhost:5300", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            headers.insert(header::HOST, HeaderValue::from_static(host));
            assert_eq!(is_of_a_page(&headers), foreign, "{origin} {host}");
        }
        assert!(!is_of_a_page(&HeaderMap::new()));
    }

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

    #[test]
    fn a_host_that_somebody_else_may_own_is_foreign() {
        let is_ours = |name: &str| name == "bus.example.com";
        for (host, foreign) in [
            ("localhost", false),
            ("localhost:5300", false),
            ("LOCALHOST:5300", false),
            ("127.0.0.1:5300", false),
            ("10.1.2.3", false),
            ("[::1]:5300", false),
            ("[::1]", false),
            ("::1", false),
            ("jitney:5300", false),
            ("host.docker.internal:5300", false),
            ("ns.ServiceBus.windows.net", false),
            ("bus.example.com:443", false),
            ("evil.example", true),
            ("evil.example:5300", true),
            ("evil.example.:5300", true),
            ("127.0.0.1.evil.example", true),
            ("localhost.evil.example", true),
            ("servicebus.windows.net.evil.example", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            let found = foreign_name(&headers, is_ours);
            assert_eq!(found, foreign.then_some(host));
        }
        assert_eq!(foreign_name(&HeaderMap::new(), is_ours), None);
    }
}
