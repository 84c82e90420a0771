//! Connections and their links.

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Answer, Call, Problem, json};
use crate::amqp::LinkId;
use crate::gateway::operations::{ConnectionView, LinkRole, LinkView, Operated, Operation};
use crate::ids::ConnectionId;

/// A connection.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Connection {
    id: u32,
    /// The container-id of its `open`, which SDKs let applications choose.
    container_id: String,
    /// The host by which it calls the namespace.
    host: String,
    /// Its address; of IPv6 the network.
    peer: String,
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

/// The connections of a namespace.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Connections {
    connections: Vec<Connection>,
}

/// Lists the connections of the namespace with their links.
#[utoipa::path(get, path = "/api/v1/connections", operation_id = "list_connections", tag = "connections",
    responses((status = 200, body = Connections), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn list(call: &Call<'_>) -> Answer {
    let authority = call.authorize("").await?;
    let (operated, _) = call.operate(authority, Operation::Connections).await?;
    let Operated::Connections(found) = operated else {
        return Err(Problem::stopping());
    };
    let connections = found.into_iter().map(Connection::of).collect();
    Ok(json(StatusCode::OK, &Connections { connections }))
}

/// Closes a connection. Its client may connect again.
#[utoipa::path(delete, path = "/api/v1/connections/{id}", operation_id = "close_connection", tag = "connections",
    params(("id" = u32, Path, description = "Its id")),
    responses((status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn close(call: &Call<'_>, id: &str) -> Answer {
    let parsed = connection_id(id)?;
    let authority = call.authorize("").await?;
    call.operate(authority, Operation::Close(parsed, None))
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Detaches a link. Its client may attach it again.
#[utoipa::path(delete, path = "/api/v1/connections/{id}/links/{link}", operation_id = "close_link", tag = "connections",
    params(("id" = u32, Path, description = "The id of the connection"), ("link" = u32, Path, description = "The id of the link on that connection")),
    responses((status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn close_link(call: &Call<'_>, id: &str, link: &str) -> Answer {
    let connection = connection_id(id)?;
    let parsed = link.parse().map(LinkId);
    let link = parsed.map_err(|_| Problem::bad_request(format!("'{link}' is no id of a link.")))?;
    let authority = call.authorize("").await?;
    call.operate(authority, Operation::Close(connection, Some(link)))
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn connection_id(text: &str) -> Result<ConnectionId, Problem> {
    let id = text.parse().map(ConnectionId);
    id.map_err(|_| Problem::bad_request(format!("'{text}' is no id of a connection.")))
}

impl Connection {
    pub(super) fn of(view: ConnectionView) -> Self {
        Self {
            id: view.id.0,
            container_id: view.container_id,
            host: view.host,
            peer: view.peer.to_string(),
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
            selector: view.selector,
            session_id: view.session,
            deliveries: view.deliveries,
        }
    }
}
