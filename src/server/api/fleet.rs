//! The servers that share a store, and which of them has which namespace.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Answer, Call, Problem, json};

/// The servers that share a store.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FleetShown {
    /// The server that answers.
    server: String,
    /// It may answer clients: its last beat is young enough.
    lease_held: bool,
    servers: Vec<FleetServer>,
    namespaces: Vec<FleetNamespace>,
}

/// A server of the fleet.
#[derive(Debug, Serialize, ToSchema)]
struct FleetServer {
    name: String,
    /// Its beat is seen, or it has left.
    alive: bool,
    /// How often it has said that it is alive, since its start.
    beats: i64,
    /// Where the other servers reach it.
    address: String,
}

/// A namespace in the store.
#[derive(Debug, Serialize, ToSchema)]
struct FleetNamespace {
    name: String,
    /// The server that has it; absent while none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// How often it was taken over, or taken anew.
    epoch: i64,
    /// Why it is left alone: its log cannot be served, or its servers have died too often.
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantined: Option<String>,
}

/// Shows the servers that share the store, and the namespaces. Only the operator may.
#[utoipa::path(get, path = "/api/v1/fleet", operation_id = "get_fleet", tag = "server",
    responses((status = 200, body = FleetShown), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) fn get(call: &Call<'_>) -> Answer {
    call.authorize_operator()?;
    let Some(fleet) = &call.server.fleet else {
        return Err(Problem::not_found(
            "This server shares no store: its namespaces are in its data directory.".to_owned(),
        ));
    };
    let view = fleet.view();
    let servers = view.servers.iter().map(|server| FleetServer {
        name: server.name.clone(),
        alive: server.is_alive,
        beats: server.beat,
        address: server.address.clone(),
    });
    let namespaces = view
        .namespaces
        .iter()
        .map(|(name, namespace)| FleetNamespace {
            name: name.clone(),
            server: namespace.server.clone(),
            epoch: namespace.epoch,
            quarantined: namespace.quarantined.clone(),
        });
    let shown = FleetShown {
        server: fleet.server().to_owned(),
        lease_held: fleet.holds_lease(),
        servers: servers.collect(),
        namespaces: namespaces.collect(),
    };
    Ok(json(StatusCode::OK, &shown))
}
