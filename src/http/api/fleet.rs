//! The servers that share a store, and which of them has which namespace.

use std::time::Duration;

use axum::http::StatusCode;

use super::call::{Answer, Call};
use super::problem::Problem;
use crate::store::{
    Fitness, Fleet, FleetView, Health, NamespaceRow, Release, StoreHealth, StoreView,
};
use jitney_api::fleet::{
    FleetConfiguration, FleetNamespace, FleetServer, FleetShown, FleetStore, Released,
};

/// Shows the servers that share the store, and the namespaces. Only the operator may.
#[utoipa::path(get, path = "/api/v1/fleet", operation_id = "get_fleet", tag = "server",
    responses((status = 200, body = FleetShown), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn get(call: &Call<'_>) -> Answer {
    call.authorize_operator()?;
    let fleet = fleet_of(call)?;
    call.answer(StatusCode::OK, &fleet_shown(fleet)).await
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

fn fleet_shown(fleet: &Fleet) -> FleetShown {
    let (view, health) = (fleet.view(), fleet.health());
    let configuration = fleet.configuration();
    FleetShown {
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

fn store_of(view: &StoreView, health: &StoreHealth) -> FleetStore {
    FleetStore {
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

fn stores(view: &FleetView, health: &Health) -> Vec<FleetStore> {
    let all = view.stores.iter().zip(&health.stores);
    all.map(|(view, health)| store_of(view, health)).collect()
}

fn servers(view: &FleetView, health: &Health) -> Vec<FleetServer> {
    let seen = view.namespaces();
    let all = view.servers().into_iter().map(|server| FleetServer {
        alive: server.is_alive,
        leaving: server.is_leaving,
        beats: server.beat,
        takes_none: takes_none(server.fitness)
            .filter(|_| server.is_alive)
            .map(Into::into),
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
