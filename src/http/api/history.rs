//! The last hour of an entity, or of the namespace.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::call::{Answer, Call};
use super::problem::Problem;
use super::selection::instant;
use crate::host::history::{Point, Rates};
use crate::limits;
use jitney_base::rights::Right;
use jitney_base::time::Timestamp;
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

/// The last hour, in equal intervals. It begins with the process.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HourShown {
    /// The length of an interval. One that the broker ended late is longer.
    interval_seconds: u64,
    /// Of the last minute; absent until there are two intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    rates: Option<RatesShown>,
    /// The intervals, the oldest first; none of an entity that was just made, or beyond the 1,000 entities that have a history.
    points: Vec<PointShown>,
}

/// Messages per second.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RatesShown {
    /// Messages that came in; for a namespace those that arrived at queues and subscriptions to be received there: each copy of a
    /// topic's message counts, and one that was forwarded counts where it ends.
    incoming: f64,
    /// Messages that came in to topics.
    published: f64,
    /// Those that were completed, or received and deleted.
    completed: f64,
    dead_lettered: f64,
}

/// What happened in an interval, and the messages at its end.
#[derive(Debug, Serialize, ToSchema)]
struct PointShown {
    /// Its end.
    at: String,
    /// Messages that came in; for a namespace as in the rates.
    incoming: u32,
    /// Messages that came in to topics.
    published: u32,
    /// Messages that were completed, or received and deleted.
    completed: u32,
    /// Messages that were dead-lettered.
    dead_lettered: u32,
    active: u32,
    deferred: u32,
    scheduled: u32,
    dead_letters: u32,
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
    let history = &call.server.history;
    let after = after.unwrap_or(Timestamp::EPOCH);
    // What is new, or is not among the entities that have a history, has none yet.
    let points = history.of(&namespace, &path, after).unwrap_or_default();
    let shown = HourShown {
        interval_seconds: limits::HISTORY_INTERVAL.as_duration().as_secs(),
        rates: history.rates(&namespace, &path).map(RatesShown::of),
        points: points.into_iter().map(PointShown::of).collect(),
    };
    call.answer(StatusCode::OK, &shown).await
}

impl RatesShown {
    /// Rounds to a thousandth.
    pub(super) fn of(rates: Rates) -> Self {
        let round = |rate: f64| (rate * 1000.0).round() / 1000.0;
        Self {
            incoming: round(rates.incoming),
            published: round(rates.published),
            completed: round(rates.completed),
            dead_lettered: round(rates.dead_lettered),
        }
    }
}

impl PointShown {
    fn of((at, point): (Timestamp, Point)) -> Self {
        let Point {
            incoming,
            published,
            completed,
            dead_lettered,
            messages,
        } = point;
        Self {
            at: time(at),
            incoming,
            published,
            completed,
            dead_lettered,
            active: messages.active,
            deferred: messages.deferred,
            scheduled: messages.scheduled,
            dead_letters: messages.dead_letters,
        }
    }
}
