//! What requests over HTTP have in common: who makes them, which host they are for, and what they may.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use tokio::sync::{Notify, watch};
use tracing::info;

use super::operator::NotOperator;
use super::state::ServerState;
use crate::host::owner_message::OwnerMessage;
use crate::net::admission::{ConnectionSlot, ListenerKind, Permit};
use crate::net::scheme::Scheme;
use jitney_base::secret::Secret;
use jitney_broker::access::{self, Authority, Fault, Inquiry, Origin, TokenRefused};
use jitney_broker::limits;
use jitney_broker::namespace::{Denied, DeniedKind};
use jitney_gateway::request::Request;

/// The peer that makes the requests of a connection.
#[derive(Clone)]
pub(super) struct Caller {
    pub(crate) kind: ListenerKind,
    pub(crate) origin: Arc<Origin>,
    pub(crate) scheme: Scheme,
    /// The connection must end: what waits is to be answered.
    pub(crate) ending: watch::Receiver<bool>,
    pub(crate) address: IpAddr,
    /// Held until a request is authorized.
    pub(crate) permit: Arc<Mutex<Option<Permit>>>,
    /// The slot of the connection; a WebSocket takes it over.
    pub(crate) slot: Arc<Mutex<Option<ConnectionSlot>>>,
    /// How many of its requests were not authorized.
    pub(crate) refused: Arc<AtomicUsize>,
    /// Notified when the connection is to end at once: its peer reads too little of an answer.
    pub(crate) close: Arc<Notify>,
}

impl Caller {
    /// Records that a request of the peer was authorized.
    pub(super) fn authorized(&self) {
        *held_permit(&self.permit) = None;
    }
}

pub(super) fn held_permit(permit: &Mutex<Option<Permit>>) -> MutexGuard<'_, Option<Permit>> {
    permit.lock().unwrap_or_else(PoisonError::into_inner)
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
    let authority = authorized.map_err(|refused| not_authorized(caller, &path, &refused))?;
    caller.authorized();
    Ok(authority)
}

/// Has the namespace's owner carry a request out for who shows this token: both are one step.
pub(super) async fn request_by_token<R: Request>(
    server: &ServerState,
    caller: &Caller,
    inquiry: Inquiry,
    request: R,
) -> Result<R::Answer, Denied> {
    let path = inquiry.path.clone();
    let shown = match check_shape(server, &inquiry) {
        Ok(()) => {
            let owner = server
                .shards
                .owner_of(inquiry.host.as_deref().unwrap_or_default());
            let owner = owner.ok_or_else(stopping)?;
            let answer = owner.request_by_token(inquiry, request).await;
            answer.ok_or_else(stopping)?
        }
        Err(refused) => Err(refused),
    };
    let answer = shown.map_err(|refused| not_authorized(caller, &path, &refused))?;
    caller.authorized();
    answer
}

/// Counts and logs the refusal of a request's token. Returns the error for the client.
fn not_authorized(caller: &Caller, path: &str, refused: &TokenRefused) -> Denied {
    caller.refused.fetch_add(1, Ordering::Relaxed);
    if refused.is_logged {
        let peer = caller.address;
        let path: String = path.chars().take(limits::LOGGED_MAX).collect();
        let (fault, rule) = (refused.fault, refused.rule.as_deref());
        info!(%peer, path, ?fault, rule, "HTTP request refused: not authorized");
    }
    of_token(refused)
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
        .ask(|answer| OwnerMessage::Authorize(Box::new(inquiry), answer))
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
pub(crate) fn stopping() -> Denied {
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

/// Returns the host that a request is for, with its port.
pub(crate) fn host(headers: &HeaderMap, origin: &Origin) -> String {
    let header = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let name = header.or(origin.server_name.as_deref());
    name.unwrap_or("localhost").to_owned()
}

pub(super) fn held_slot(
    slot: &Mutex<Option<ConnectionSlot>>,
) -> MutexGuard<'_, Option<ConnectionSlot>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the pairs of a query.
pub(crate) fn pairs(uri: &Uri) -> impl Iterator<Item = (&str, &str)> {
    let query = uri.query().unwrap_or_default();
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}
