//! Connections and their links.

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Deserialize;
use utoipa::IntoParams;

use super::call::{Answer, Call};
use super::page::Page;
use super::problem::Problem;
use jitney_amqp::LinkId;
use jitney_api::connections::{Connection, Connections, Link, Locks, Role, StuckFor};
use jitney_base::ids::ConnectionId;
use jitney_gateway::admin::time;
use jitney_gateway::limits;
use jitney_gateway::operations::{
    CloseConnection, ConnectionView, ConnectionsPage, LinkRole, LinkView, ListConnections,
    LocksThen,
};
use jitney_queue::Stuck;

/// How a connection or a link is closed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct CloseQuery {
    /// What becomes of the locks of its receivers. Those of message sessions always end with their link, uncounted.
    #[serde(default)]
    #[param(inline)]
    locks: Locks,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Which connections a list has.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ConnectionsQuery {
    /// Where the list begins: `next` of the page before.
    from: Option<String>,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Lists the connections of the namespace with their links.
#[utoipa::path(get, path = "/api/v1/connections", operation_id = "list_connections", tag = "connections", params(ConnectionsQuery),
    responses((status = 200, body = Connections), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn list(call: &Call<'_>) -> Answer {
    let query: ConnectionsQuery = call.query()?;
    let from = query.from.as_deref().map_or(Ok(FIRST), read_place)?;
    let authority = call.authorize("").await?;
    // They are there as the owner tells them, and as they are written.
    call.reserve(limits::ANSWER_PAGE_BYTES).await?;
    let mut page = Page::begin(call, "connections").await?;
    let most = limits::LISTED_LINKS;
    let list = ListConnections { from, most };
    let ConnectionsPage { connections, next } = call.request(authority, list).await?;
    for view in connections {
        page.push(&connection_of(view))?;
    }
    let next = next.map(|(connection, link)| format!("{}.{}", connection.0, link.0));
    let connections = Vec::new();
    page.respond(&Connections { connections, next })
}

/// Where the list of all connections begins.
pub(super) const FIRST: (ConnectionId, LinkId) = (ConnectionId(0), LinkId(0));

/// Reads a connection and its first link.
fn read_place(text: &str) -> Result<(ConnectionId, LinkId), Problem> {
    let parts = text.split_once('.').and_then(|(connection, link)| {
        let connection = connection.parse().map(ConnectionId);
        Some((connection.ok()?, link.parse().map(LinkId).ok()?))
    });
    parts.ok_or_else(|| {
        let text =
            format!("from is '{text}'; next of the page before is allowed, such as 17.1001.");
        Problem::wrong("from", text)
    })
}

/// Closes a connection. Its client may connect again.
#[utoipa::path(delete, path = "/api/v1/connections/{id}", operation_id = "close_connection", tag = "connections",
    params(("id" = u32, Path, description = "Its id"), CloseQuery),
    responses((status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn close(call: &Call<'_>, id: &str) -> Answer {
    let query: CloseQuery = call.query()?;
    let parsed = connection_id(id)?;
    let authority = call.authorize("").await?;
    let close = CloseConnection {
        connection: parsed,
        link: None,
        locks: read_locks(query.locks),
    };
    call.request(authority, close).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Detaches a link. Its client may attach it again.
#[utoipa::path(delete, path = "/api/v1/connections/{id}/links/{link}", operation_id = "close_link", tag = "connections",
    params(("id" = u32, Path, description = "The id of the connection"), ("link" = u32, Path, description = "The id of the link on that connection"), CloseQuery),
    responses((status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn close_link(call: &Call<'_>, id: &str, link: &str) -> Answer {
    let query: CloseQuery = call.query()?;
    let connection = connection_id(id)?;
    let parsed = link.parse().map(LinkId);
    let link = parsed.map_err(|_| Problem::bad_request(format!("'{link}' is no id of a link.")))?;
    let authority = call.authorize("").await?;
    let close = CloseConnection {
        connection,
        link: Some(link),
        locks: read_locks(query.locks),
    };
    call.request(authority, close).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn connection_id(text: &str) -> Result<ConnectionId, Problem> {
    let id = text.parse().map(ConnectionId);
    id.map_err(|_| Problem::bad_request(format!("'{text}' is no id of a connection.")))
}

const fn read_locks(locks: Locks) -> LocksThen {
    match locks {
        Locks::End => LocksThen::End,
        Locks::Stay => LocksThen::Stay,
    }
}

pub(super) fn connection_of(view: ConnectionView) -> Connection {
    Connection {
        id: view.id.0,
        container_id: view.container_id,
        product: view.product.name,
        version: view.product.version,
        host: view.host,
        peer: view.peer.to_string(),
        port: view.port,
        secure: view.is_secure,
        opened_at: time(view.opened_at),
        identities: view.identities,
        authorized: view.is_authorized,
        links: view.links.into_iter().map(link_of).collect(),
    }
}

fn link_of(view: LinkView) -> Link {
    Link {
        id: view.id.0,
        role: match view.role {
            LinkRole::Sender => Role::Sender,
            LinkRole::Receiver => Role::Receiver,
            LinkRole::WaitingReceiver => Role::WaitingReceiver,
            LinkRole::Coordinator => Role::Coordinator,
            LinkRole::Requests => Role::Requests,
            LinkRole::Responses => Role::Responses,
        },
        entity: view.entity,
        credit: view.credit,
        locked: view.locked,
        oldest_locked: view.oldest_locked.map(|number| number.0),
        oldest_lock_at: view.oldest_lock.map(time),
        idle_since: view.idle_since.map(time),
        waiting: view.waiting,
        stuck: view.stuck.map(|stuck| match stuck {
            Stuck::Holding => StuckFor::Holding,
            Stuck::Silent => StuckFor::Silent,
        }),
        selector: view.selector,
        session_id: view.session,
        deliveries: view.deliveries,
    }
}
