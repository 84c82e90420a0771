//! The last hour of an entity, or of the namespace.

use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::call::{Answer, Call};
use super::problem::Problem;
use super::selection::instant;
use crate::host::history::{EntityName, Past, Range, Rates};
use jitney_api::history::{HourShown, PointShown, RatesShown};
use jitney_base::rights::Right;
use jitney_gateway::admin::time;
use jitney_gateway::operations::{Names, ReadNames};

/// Which part of the history.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryQuery {
    /// Intervals that ended after this time; all if it is not given.
    #[param(example = "2026-11-23T12:00:00Z")]
    after: Option<String>,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Returns the last hour of an entity.
#[utoipa::path(get, path = "/api/v1/entities/{entity}/history", operation_id = "get_entity_history", tag = "history",
    params(("entity" = String, Path, description = "Its path"), HistoryQuery),
    responses((status = 200, body = HourShown), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn of_entity(call: &Call<'_>, entity: &str) -> Answer {
    show(call, Some(entity)).await
}

/// Returns the last hour of the namespace.
#[utoipa::path(get, path = "/api/v1/history", operation_id = "get_history", tag = "history", params(HistoryQuery),
    responses((status = 200, body = HourShown), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn of_namespace(call: &Call<'_>) -> Answer {
    show(call, None).await
}

async fn show(call: &Call<'_>, entity: Option<&str>) -> Answer {
    let query: HistoryQuery = call.query()?;
    let after = instant("after", query.after)?;
    let names = ReadNames {
        path: entity.map(ToOwned::to_owned),
        right: Right::Listen,
    };
    let Names {
        namespace, path, ..
    } = call.fetch(entity.unwrap_or_default(), names).await?;
    let range = Range::Hour;
    let oldest = range.begin(call.server.clock.now());
    let after = after.map_or(oldest, |after| after.max(oldest));
    let name = EntityName {
        namespace: &namespace,
        path: &path,
    };
    // What is new, or is not among the entities that have a history, has none yet.
    let found = call.server.history.of(name, range, after);
    let shown = HourShown {
        interval_seconds: range.interval().as_duration().as_secs(),
        rates: found.as_ref().and_then(|it| it.rates).map(rates_of),
        points: found.iter().flat_map(|it| &it.past).map(point_of).collect(),
    };
    call.answer(StatusCode::OK, &shown).await
}

/// Rounds to a thousandth.
pub(super) fn rates_of(rates: Rates) -> RatesShown {
    let round = |rate: f64| (rate * 1000.0).round() / 1000.0;
    RatesShown {
        incoming: round(rates.incoming),
        published: round(rates.published),
        completed: round(rates.completed),
        dead_lettered: round(rates.dead_lettered),
    }
}

fn point_of(past: &Past) -> PointShown {
    let (counts, messages) = (past.point.counts, past.point.messages);
    PointShown {
        at: time(past.interval.end),
        incoming: counts.incoming,
        published: counts.published,
        completed: counts.completed,
        dead_lettered: counts.dead_lettered,
        active: messages.active,
        deferred: messages.deferred,
        scheduled: messages.scheduled,
        dead_letters: messages.dead_letters,
    }
}
