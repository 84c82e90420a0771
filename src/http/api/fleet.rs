//! The servers that share a store, and which of them has which namespace.

use std::time::Duration;

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::call::{Answer, Call};
use super::problem::Problem;
use crate::store::{
    Fitness, Fleet, FleetView, Health, NamespaceRow, Release, StoreHealth, StoreView,
};

/// The servers that share stores.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FleetShown {
    /// The server that answers.
    server: String,
    /// It may answer clients of all stores: its last beats are young enough.
    lease_held: bool,
    /// How long ago it looked at the stores, in milliseconds; of several, at the one whose last look is the oldest. Absent before all were
    /// looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    looked_ms_ago: Option<u64>,
    stores: Vec<FleetStore>,
    configuration: FleetConfiguration,
    servers: Vec<FleetServer>,
    namespaces: Vec<FleetNamespace>,
}

/// A database with namespaces.
#[derive(Debug, Serialize, ToSchema)]
struct FleetStore {
    /// What the servers call it.
    name: String,
    /// The last look at it has succeeded; otherwise what is said of it is older.
    reached: bool,
    /// The server that answers may answer clients of the namespaces that it has there.
    lease_held: bool,
    /// The host and the database, without the password.
    #[schema(example = "db.example:5432/jitney")]
    place: String,
    /// The random identity that the store got when it was made, or restored to an earlier point in time; empty if it was never reached.
    identity: String,
    /// By how much the clock of the server that answers is ahead of the database's, in milliseconds. Beyond a second it is not followed,
    /// and the server takes no namespaces.
    clock_offset_ms: i64,
    /// Transactions since the oldest that the database has not frozen: at two billion it takes no writes.
    transaction_age: i64,
    /// Replication slots that no standby uses: they keep the database's log for ever.
    inactive_slots: i64,
    /// Bytes of the database's log that the standby which is furthest behind has not flushed; 0 where the role may not see that.
    standby_lag_bytes: i64,
}

/// The configuration that all servers apply.
#[derive(Debug, Serialize, ToSchema)]
struct FleetConfiguration {
    /// It grows with each change; 0 if no server was started with a file.
    number: i64,
    /// The SHA-256 of its text; absent if no server was started with a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

/// A server of the fleet.
#[derive(Debug, Serialize, ToSchema)]
struct FleetServer {
    name: String,
    /// Its beat is seen; otherwise it has left, or was declared dead because its beat did not come.
    alive: bool,
    /// It was told to stop: it gives its namespaces away and takes none, or it has left.
    leaving: bool,
    /// How often it has said that it is alive, since its start.
    beats: i64,
    /// How long ago its beat changed, as the server that answers has seen it, in milliseconds; after 3,000 it is declared dead. Absent if it is not alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    beat_age_ms: Option<u64>,
    /// Why it takes no namespaces of some store: its clock is off, or it rests after deaths or late beats. Absent if it takes some, or is
    /// not alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    takes_none: Option<&'static str>,
    /// Where the other servers reach it.
    address: String,
    /// How many namespaces it has.
    namespaces: usize,
}

/// A namespace in the store.
#[derive(Debug, Serialize, ToSchema)]
struct FleetNamespace {
    name: String,
    /// The name of the store that it is in.
    store: String,
    /// Messages a second that came and were handed out, of late: namespaces are spread by it.
    rate: i64,
    /// Bytes a second that its clients may send together; absent without a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<u64>,
    /// The server that has it; absent while none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// How often it was taken over, or taken anew.
    epoch: i64,
    /// Why its server answers nothing about it at the moment; absent if it does. The server that answers knows of a missing answer of
    /// the database only for its own namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    suspended: Option<String>,
    /// Why it is left alone: its log cannot be served, or its servers have died too often. In the second case it is tried again after a
    /// pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantined: Option<String>,
}

/// A namespace whose quarantine was ended.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Released {
    name: String,
    /// Why it was in quarantine.
    was: String,
}

/// Shows the servers that share the store, and the namespaces. Only the operator may.
#[utoipa::path(get, path = "/api/v1/fleet", operation_id = "get_fleet", tag = "server",
    responses((status = 200, body = FleetShown), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn get(call: &Call<'_>) -> Answer {
    call.authorize_operator()?;
    let fleet = fleet_of(call)?;
    call.answer(StatusCode::OK, &FleetShown::of(fleet)).await
}

/// Ends the quarantine of a namespace: a server takes it within a second. What put it there may do so again. Only the operator
/// may. It is in the log of the server that answers; the audit log is the namespace's own, which no server has at that time.
#[utoipa::path(post, path = "/api/v1/fleet/namespaces/{name}/release", operation_id = "release_namespace", tag = "server",
    params(("name" = String, Path, description = "The name of the namespace")),
    responses((status = 200, body = Released), (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn release(call: &Call<'_>, name: &str) -> Answer {
    let authority = call.authorize_operator()?;
    let released = fleet_of(call)?.release(name, authority.actor()).await;
    let unavailable = |error: String| {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Problem::new(status, "busy", error)
    };
    match released.map_err(|error| unavailable(error.to_string()))? {
        Release::Done(was) => {
            let name = name.to_lowercase();
            call.answer(StatusCode::OK, &Released { name, was }).await
        }
        Release::NotHeld => {
            let text = format!("The namespace '{name}' is in no quarantine.");
            Err(Problem::new(StatusCode::CONFLICT, "not_allowed", text))
        }
        Release::Begun(why) => {
            let text = format!("The namespace '{name}' cannot be released: {why}.");
            Err(Problem::new(StatusCode::CONFLICT, "not_allowed", text))
        }
        Release::Unknown => Err(Problem::not_found(format!(
            "There is no namespace '{name}' in the store."
        ))),
    }
}

fn fleet_of<'a>(call: &Call<'a>) -> Result<&'a Fleet, Problem> {
    call.server.fleet.as_deref().ok_or_else(|| {
        Problem::not_found(
            "This server shares no store: its namespaces are in its data directory.".to_owned(),
        )
    })
}

impl FleetShown {
    fn of(fleet: &Fleet) -> Self {
        let (view, health) = (fleet.view(), fleet.health());
        let configuration = fleet.configuration();
        Self {
            server: fleet.server().to_owned(),
            lease_held: fleet.holds_lease(),
            looked_ms_ago: health.looked.map(millis),
            stores: stores(&view, &health),
            configuration: FleetConfiguration {
                number: configuration.number,
                hash: Some(configuration.hash.clone()).filter(|_| configuration.number != 0),
            },
            servers: servers(&view, &health),
            namespaces: namespaces(&view, &health),
        }
    }
}

impl FleetStore {
    fn of(view: &StoreView, health: &StoreHealth) -> Self {
        Self {
            name: health.name.clone(),
            reached: health.is_reached,
            lease_held: health.holds_lease,
            place: health.place.clone(),
            identity: health.identity.clone(),
            clock_offset_ms: health.clock_offset,
            transaction_age: view.database.transaction_age,
            inactive_slots: view.database.inactive_slots,
            standby_lag_bytes: view.database.standby_lag,
        }
    }
}

fn stores(view: &FleetView, health: &Health) -> Vec<FleetStore> {
    let all = view.stores.iter().zip(&health.stores);
    all.map(|(view, health)| FleetStore::of(view, health))
        .collect()
}

fn servers(view: &FleetView, health: &Health) -> Vec<FleetServer> {
    let seen = view.namespaces();
    let all = view.servers().into_iter().map(|server| FleetServer {
        alive: server.is_alive,
        leaving: server.is_leaving,
        beats: server.beat,
        takes_none: takes_none(server.fitness).filter(|_| server.is_alive),
        beat_age_ms: health.beat_ages.get(&server.name).copied().map(millis),
        namespaces: server.count(seen.values().map(|(_, seen)| *seen)),
        name: server.name,
        address: server.address,
    });
    all.collect()
}

/// Returns why a server takes no namespaces.
const fn takes_none(fitness: Fitness) -> Option<&'static str> {
    match fitness {
        Fitness::Fit => None,
        Fitness::Resting => Some(
            "it has died too often of late, or the answers to its beats come too late: it takes namespaces only while no other server may",
        ),
        Fitness::Unfit => Some("its clock is off from the database's by more than a second"),
    }
}

fn namespaces(view: &FleetView, health: &Health) -> Vec<FleetNamespace> {
    let all = view.namespaces().into_iter();
    let all = all.map(
        |(name, (store, seen)): (&str, (&str, &NamespaceRow))| FleetNamespace {
            name: name.to_owned(),
            store: store.to_owned(),
            rate: seen.rate,
            quota: seen.quota,
            server: seen.server.clone(),
            epoch: seen.epoch,
            suspended: health.suspended.get(name).map(|why| (*why).to_owned()),
            quarantined: seen.quarantined.clone(),
        },
    );
    all.collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
