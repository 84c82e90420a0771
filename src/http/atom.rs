//! The administration API (`administration.md#administration-over-http`).
//!
//! A request is checked for its rights before its body is read, and its body is read before it is parsed: an
//! unauthenticated peer costs a bounded number of bytes, and no parsing.

use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::ext::ReasonPhrase;
use tokio::time::timeout;

use super::answers::{NoRoom, Reservation};
use super::request::{Caller, authorize, host, stopping, tracking_id};
use super::state::ServerState;
use crate::limits;
use jitney_base::secret::Secret;
use jitney_broker::access::Inquiry;
use jitney_broker::namespace::{Denied, DeniedKind};
use jitney_gateway::Tracking;
use jitney_gateway::admin::{AdminError, AdminRequest, AdminResponse, RequestHead};
use jitney_gateway::request::Requester;

/// Where clients put tokens for the entities that another is to forward to
/// (`administration.md#headers`).
const SUPPLEMENTARY: [&str; 2] = [
    "ServiceBusSupplementaryAuthorization",
    "ServiceBusDlqSupplementaryAuthorization",
];

/// Answers a request.
pub(super) async fn administer(
    server: &ServerState,
    caller: &Caller,
    parts: &Parts,
    body: Body,
) -> Response {
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
    let namespace = server.shards.routes().namespace_of(Some(&host)).to_owned();
    let close = Arc::clone(&caller.close);
    let reservation = Arc::new(server.answers.begin(namespace, close));
    let answer = answer(server, caller, request, inquiry, body, &reservation).await;
    let response = answer.unwrap_or_else(|refusal| {
        let id = tracking_id(server);
        refusal.render(&Tracking {
            id: &id,
            system: host.split([':', '.']).next().unwrap_or_default(),
            at: server.clock.now(),
        })
    });
    respond(response, reservation)
}

/// Authorizes a request, reads its body, and then carries it out: each step costs more than the one
/// before. The bytes of the answer are reserved before it is made; what is done already is not refused for want of them.
async fn answer(
    server: &ServerState,
    caller: &Caller,
    request: Result<AdminRequest, AdminError>,
    inquiry: Inquiry,
    body: Body,
    reservation: &Reservation,
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
    let requester = Requester { host, authority };
    let sources = request.source_bytes();
    reservation.reserve(sources).await.map_err(no_room)?;
    let done = owner.request(requester, operation).await;
    let answer = done.ok_or_else(stopping)??;
    // A text grows by doubling.
    let rendered = 2 * request.rendered_bytes(&answer);
    let more = rendered.saturating_sub(sources);
    if request.is_read() {
        reservation.reserve(more).await.map_err(no_room)?;
    } else {
        reservation.add(more);
    }
    Ok(request.render(&answer))
}

fn no_room(_: NoRoom) -> AdminError {
    let text = "The answer has no room: other answers wait to be read, or it is too long. Ask again a little later, or for less.";
    AdminError::Denied(Denied::new(DeniedKind::Full, text, ""))
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

fn respond(answer: AdminResponse, reservation: Arc<Reservation>) -> Response {
    let mut response = Response::new(reservation.body(answer.body.into_bytes()));
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
