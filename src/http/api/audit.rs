//! The audit log.

use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::call::{Answer, Call, from_number};
use super::entities::{limited, number};
use super::problem::Problem;
use super::selection::instant;
use jitney_api::audit::{AuditLog, Entry};
use jitney_broker::namespace::{AuditEntry, AuditFilter};
use jitney_gateway::admin::time;
use jitney_gateway::operations::ListAudit;

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    /// Entries with smaller numbers only: `next_before` of the page before.
    before: Option<u64>,
    /// As many at most, 100 if it is not given.
    #[param(minimum = 1, maximum = 100)]
    #[serde(default, deserialize_with = "number")]
    limit: Option<usize>,
    /// Whose: a part of `actor`, whatever its case.
    actor: Option<String>,
    /// The operation.
    #[param(example = "update")]
    operation: Option<String>,
    /// The path of the entity.
    entity: Option<String>,
    /// At this time or later.
    #[param(example = "2026-11-23T12:00:00Z")]
    since: Option<String>,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Lists the last administrative operations in the namespace. Needs `Manage`.
#[utoipa::path(get, path = "/api/v1/audit", operation_id = "list_audit", tag = "history", params(AuditQuery),
    responses((status = 200, body = AuditLog), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn list(call: &Call<'_>) -> Answer {
    let query: AuditQuery = call.query()?;
    let most = limited(query.limit)?;
    let before = query.before;
    let before = before.map(|id| from_number("before", id)).transpose()?;
    let before = before.map_or(u64::MAX, |before| before.0);
    let list = ListAudit {
        before,
        most: most + 1,
        filter: AuditFilter {
            actor: query.actor,
            operation: query.operation,
            entity: query.entity,
            since: instant("since", query.since)?,
        },
    };
    let mut found = call.fetch("", list).await?;
    let has_more = most < found.len();
    found.truncate(most);
    let next_before = found.last().map(|(number, _)| *number).filter(|_| has_more);
    let entries = found
        .into_iter()
        .map(|(number, entry)| entry_of(number, entry))
        .collect();
    let page = AuditLog {
        entries,
        next_before,
    };
    call.answer(StatusCode::OK, &page).await
}

fn entry_of(number: u64, entry: AuditEntry) -> Entry {
    Entry {
        number,
        at: time(entry.at),
        count: Some(entry.count).filter(|count| *count != 1),
        last_at: entry.last_at.map(time),
        actor: entry.actor.name,
        peer: entry.actor.peer,
        operation: entry.operation,
        entity: entry.entity,
        detail: entry.detail,
    }
}
