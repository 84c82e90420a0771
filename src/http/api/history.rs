//! The history of an entity, or of the namespace, and how messages have changed.

use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::call::{Answer, Call};
use super::problem::Problem;
use super::selection::instant;
use crate::host::history::{Change, EntityName, Past, Range, Rates, Trend};
use jitney_api::history::{
    ChangeShown, EntityTrend, GapShown, HistoryRange, HistoryShown, PointShown, RatesShown,
    SumShown, TrendShown, TrendsShown,
};
use jitney_base::rights::Right;
use jitney_base::time::Timestamp;
use jitney_gateway::admin::time;
use jitney_gateway::operations::{Names, ReadNames};

/// Which part of the history.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryQuery {
    /// How far back it goes: the last hour if it is not given.
    range: Option<HistoryRange>,
    /// Intervals that ended after this time; all if it is not given.
    #[param(example = "2026-11-23T12:00:00Z")]
    after: Option<String>,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Whose changes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TrendsQuery {
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Returns the history of an entity.
#[utoipa::path(get, path = "/api/v1/entities/{entity}/history", operation_id = "get_entity_history", tag = "history",
    params(("entity" = String, Path, description = "Its path"), HistoryQuery),
    responses((status = 200, body = HistoryShown), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn of_entity(call: &Call<'_>, entity: &str) -> Answer {
    show(call, Some(entity)).await
}

/// Returns the history of the namespace.
#[utoipa::path(get, path = "/api/v1/history", operation_id = "get_history", tag = "history", params(HistoryQuery),
    responses((status = 200, body = HistoryShown), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn of_namespace(call: &Call<'_>) -> Answer {
    show(call, None).await
}

/// Returns how the messages of the namespace's entities have changed over the last hour and day.
#[utoipa::path(get, path = "/api/v1/trends", operation_id = "list_trends", tag = "history", params(TrendsQuery),
    responses((status = 200, body = TrendsShown), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn trends(call: &Call<'_>) -> Answer {
    let TrendsQuery { _namespace } = call.query()?;
    let Names { namespace, .. } = names(call, None).await?;
    let now = call.server.clock.now();
    let history = &call.server.history;
    let found = history.trends(&namespace, now);
    let whole = EntityName {
        namespace: &namespace,
        path: "",
    };
    let whole = history.trend(whole, now).map(trend_of);
    let trends = found.into_iter().map(|(path, trend)| EntityTrend {
        path,
        trend: trend_of(trend),
    });
    let trends = trends.collect();
    call.answer(StatusCode::OK, &TrendsShown { whole, trends })
        .await
}

/// Returns the names of an entity whose history the client may see, or of the namespace.
async fn names(call: &Call<'_>, entity: Option<&str>) -> Result<Names, Problem> {
    let names = ReadNames {
        path: entity.map(ToOwned::to_owned),
        right: Right::Listen,
    };
    call.fetch(entity.unwrap_or_default(), names).await
}

async fn show(call: &Call<'_>, entity: Option<&str>) -> Answer {
    let query: HistoryQuery = call.query()?;
    let after = instant("after", query.after)?;
    let Names {
        namespace, path, ..
    } = names(call, entity).await?;
    let asked = query.range.unwrap_or_default();
    let range = match asked {
        HistoryRange::Hour => Range::Hour,
        HistoryRange::Day => Range::Day,
        HistoryRange::Week => Range::Week,
    };
    let oldest = range.begin(call.server.clock.now());
    let after = after.map_or(oldest, |after| after.max(oldest));
    let name = EntityName {
        namespace: &namespace,
        path: &path,
    };
    // What is new, or is not among the entities that have a history, has none yet.
    let found = call.server.history.of(name, range, after);
    let found = found.unwrap_or_default();
    let shown = HistoryShown {
        range: asked,
        interval_seconds: range.interval().as_duration().as_secs(),
        rates: found.rates.map(rates_of),
        points: found.past.iter().map(point_of).collect(),
        current: found.current.as_ref().map(point_of),
        gaps: gaps_of(found.past.iter().chain(&found.current)),
    };
    call.answer(StatusCode::OK, &shown).await
}

/// Returns the times between intervals.
fn gaps_of<'a>(past: impl Iterator<Item = &'a Past>) -> Vec<GapShown> {
    let mut last: Option<Timestamp> = None;
    let gaps = past.filter_map(|it| {
        let from = last.replace(it.interval.end)?;
        let until = it.interval.begin();
        (from < until).then(|| GapShown {
            from: time(from),
            until: time(until),
        })
    });
    gaps.collect()
}

pub(super) fn trend_of(trend: Trend) -> TrendShown {
    let change = |change: Change| ChangeShown {
        now: change.now,
        hour: change.hour,
        day: change.day,
        hours: change.hours,
    };
    TrendShown {
        since: trend.since.map(time),
        active: change(trend.active),
        dead_letters: change(trend.dead_letters),
        dead_lettered: SumShown {
            hour: trend.dead_lettered.hour,
            day: trend.dead_lettered.day,
        },
    }
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
        seconds: past.interval.watched().as_duration().as_secs_f64(),
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
