//! Scheduled messages by the time when they become active.

use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::call::{Answer, Call};
use super::entities::number;
use super::problem::Problem;
use super::selection::instant;
use crate::limits;
use jitney_api::schedule::{ScheduledCounts, ScheduledSpan};
use jitney_gateway::admin::time;
use jitney_gateway::operations::CountScheduled;
use jitney_queue::{Schedule, Spans};

/// Which time, in how many spans.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ScheduleQuery {
    /// The beginning; that of the first scheduled message if it is not given.
    #[param(example = "2026-11-23T12:00:00Z")]
    from: Option<String>,
    /// The end; behind the last scheduled message if it is not given.
    before: Option<String>,
    /// Equal spans of the time, 60 if it is not given.
    #[param(minimum = 1, maximum = 1000)]
    #[serde(default, deserialize_with = "number")]
    spans: Option<usize>,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Spans if their number is not given.
const SPANS: usize = 60;

/// Counts scheduled messages by the time when they become active.
#[utoipa::path(get, path = "/api/v1/entities/{entity}/schedule", operation_id = "count_scheduled", tag = "messages",
    params(("entity" = String, Path, description = "The path of a queue or a topic"), ScheduleQuery),
    responses((status = 200, body = ScheduledCounts), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn count(call: &Call<'_>, entity: &str) -> Answer {
    let authority = call.authorize(entity).await?;
    let query: ScheduleQuery = call.query()?;
    let spans = query.spans.unwrap_or(SPANS);
    if !(1..=limits::SCHEDULED_SPANS_MAX).contains(&spans) {
        let max = limits::SCHEDULED_SPANS_MAX;
        let text = format!("spans is {spans}; 1 to {max} is allowed.");
        return Err(Problem::wrong("spans", text));
    }
    let has_from = query.from.is_some();
    let has_before = query.before.is_some();
    let mut from = instant("from", query.from)?;
    let mut before = instant("before", query.before)?;
    let mut position = None;
    let mut sums: Option<Schedule> = None;
    for _ in 0..limits::SCHEDULED_STEPS_MAX {
        let count = CountScheduled {
            path: entity.to_owned(),
            spans: Spans {
                from,
                before,
                count: spans,
                position,
            },
        };
        let counted = call.request(authority.clone(), count).await?;
        (from, before, position) = (Some(counted.from), Some(counted.before), counted.next);
        sums = Some(match sums {
            None => counted,
            Some(sums) => sums.with(&counted),
        });
        if position.is_none() {
            break;
        }
    }
    let sums = sums.ok_or_else(Problem::stopping)?;
    let mut counts = counts_of(&sums);
    if sums.total == 0 {
        // Nothing says when they would begin and end.
        counts.before = counts.before.filter(|_| has_before || has_from);
        counts.from = counts.from.filter(|_| has_from);
        counts.spans.retain(|_| has_from);
    }
    call.answer(StatusCode::OK, &counts).await
}

fn counts_of(schedule: &Schedule) -> ScheduledCounts {
    let spans = schedule.counts.iter().enumerate();
    let spans = spans.map(|(at, &messages)| ScheduledSpan {
        from: time(schedule.beginning_of(at)),
        messages,
    });
    ScheduledCounts {
        from: Some(time(schedule.from)),
        before: Some(time(schedule.before)),
        spans: spans.collect(),
        total: schedule.total,
        incomplete: schedule.next.is_some(),
    }
}
