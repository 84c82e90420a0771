//! The audit log.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::call::{Answer, Call, from_number};
use super::entities::{limited, number};
use super::problem::Problem;
use super::selection::instant;
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

/// Entries of the audit log, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditLog {
    entries: Vec<Entry>,
    /// What `before` is to be for the next page; without it there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_before: Option<u64>,
}

/// An administrative operation that was carried out.
#[derive(Debug, Serialize, ToSchema)]
struct Entry {
    number: u64,
    /// When it was carried out, the first time if it was repeated.
    at: String,
    /// How often: equal operations within ten seconds are one entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// When it was carried out last, if it was repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_at: Option<String>,
    /// `operator`, `key NAME`, `identity SUBJECT`, `client CONTAINER-ID` of a connection, or `the configuration file`; `anyone` if
    /// no credentials are verified.
    actor: String,
    /// The address of the client; of IPv6 the network.
    #[serde(skip_serializing_if = "String::is_empty")]
    peer: String,
    #[schema(example = "update")]
    operation: String,
    /// The path of the entity; absent if it is about none.
    #[serde(skip_serializing_if = "String::is_empty")]
    entity: String,
    /// What it changed. Keys are left out.
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
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
    let entries = found.into_iter().map(Entry::of).collect();
    let page = AuditLog {
        entries,
        next_before,
    };
    call.answer(StatusCode::OK, &page).await
}

impl Entry {
    fn of((number, entry): (u64, AuditEntry)) -> Self {
        Self {
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
}
