//! Connections and their links.

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::call::{Answer, Call};
use super::page::Page;
use super::problem::Problem;
use jitney_amqp::LinkId;
use jitney_base::ids::ConnectionId;
use jitney_gateway::admin::time;
use jitney_gateway::limits;
use jitney_gateway::operations::{
    CloseConnection, ConnectionView, ConnectionsPage, LinkRole, LinkView, ListConnections,
    LocksThen,
};
use jitney_queue::Stuck;

/// A connection.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Connection {
    id: u32,
    /// The container-id of its `open`, which SDKs let applications choose; its first 256 characters.
    container_id: String,
    /// The client library that its `open` names; its first 128 characters.
    #[serde(skip_serializing_if = "String::is_empty")]
    product: String,
    /// The version of that library, likewise.
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    /// The host by which it calls the namespace.
    host: String,
    /// Its address; of IPv6 the network.
    peer: String,
    /// Its port; absent if another server has passed the connection on.
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    /// It came over TLS.
    secure: bool,
    /// When its `open` came.
    opened_at: String,
    /// Whose credentials it has shown: `key NAME`, `identity SUBJECT`; none if none were verified.
    identities: Vec<String>,
    /// It was authorized for something.
    authorized: bool,
    links: Vec<Link>,
}

/// A link.
#[derive(Debug, Serialize, ToSchema)]
struct Link {
    id: u32,
    role: Role,
    /// The address of its entity; empty if it has none.
    entity: String,
    /// How many more messages a receiver takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    credit: Option<u32>,
    /// How many messages a receiver has locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    locked: Option<usize>,
    /// The lowest sequence number of the messages that a receiver has locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_locked: Option<u64>,
    /// When the oldest lock of a receiver was made; a renewal does not change it. It is absent if the receiver has none, or
    /// if the 20,000 oldest locks that a list looks at have none of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_lock_at: Option<String>,
    /// Since when nothing has happened to a receiver: it was attached, its credit changed, a message was handed to it, or one
    /// of its locks ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_since: Option<String>,
    /// Messages that this receiver may get and that none has: of a message session those of the session, of a receiver that
    /// waits for a session those of all sessions that no receiver holds. It is not known, and absent, where a receiver has a
    /// selector or browses.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<usize>,
    /// Why a receiver is stuck: messages wait for it, and nothing has happened to it for ten seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    stuck: Option<StuckFor>,
    /// The selector of a receiver: it takes only what matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    selector: Option<String>,
    /// The message session that a receiver holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// Deliveries since the attach: those that a sender has made, each with one message or a batch, or messages that were
    /// handed to a receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    deliveries: Option<u64>,
}

/// Why a receiver is stuck.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum StuckFor {
    /// It has messages locked, and settles none.
    Holding,
    /// It has none, and takes none; no other receiver can take what waits, or none has a message of the queue locked.
    Silent,
}

/// What becomes of the locks of receivers that are ended.
#[derive(Debug, Default, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Locks {
    /// They end at once, as if their time were over: messages return to their queue, and the delivery counts as failed.
    #[default]
    End,
    /// They stay until their time is over, as they do when a client goes by itself.
    Stay,
}

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

/// The purpose of a link.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Role {
    /// The client sends messages.
    Sender,
    /// It receives messages.
    Receiver,
    /// It waits for a message session.
    WaitingReceiver,
    /// It declares and discharges transactions.
    Coordinator,
    /// It sends requests to a service node.
    Requests,
    /// It receives the responses of a service node.
    Responses,
}

/// Connections of a namespace, in the order of their ids.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Connections {
    /// Written one by one, before the rest.
    #[schema(required)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connections: Vec<Connection>,
    /// What `from` is to be for the next page; without it there is none. A page has up to 1,000 links: a connection that has
    /// more is in the next page again, with further links.
    #[schema(example = "17.1001")]
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
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
        page.push(&Connection::of(view))?;
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
        locks: query.locks.into(),
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
        locks: query.locks.into(),
    };
    call.request(authority, close).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn connection_id(text: &str) -> Result<ConnectionId, Problem> {
    let id = text.parse().map(ConnectionId);
    id.map_err(|_| Problem::bad_request(format!("'{text}' is no id of a connection.")))
}

impl From<Locks> for LocksThen {
    fn from(locks: Locks) -> Self {
        match locks {
            Locks::End => Self::End,
            Locks::Stay => Self::Stay,
        }
    }
}

impl Connection {
    pub(super) fn of(view: ConnectionView) -> Self {
        Self {
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
            links: view.links.into_iter().map(Link::of).collect(),
        }
    }
}

impl Link {
    fn of(view: LinkView) -> Self {
        Self {
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
}
