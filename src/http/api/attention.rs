//! What needs attention in the namespace, or with one entity.

use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::call::{Answer, Call};
use super::problem::Problem;
use jitney_api::attention::{
    Attention, AttentionCount, AttentionItem, AttentionKind as Kind, Urgency as UrgencyShown,
};
use jitney_broker::namespace::{self, AttentionKind, Urgency};
use jitney_gateway::admin::time;
use jitney_gateway::operations::{AttentionView, LinkOfItem, ReadAttention};

/// What is asked about.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AttentionQuery {
    /// The path of an entity: the answer is about that entity. Without it, the answer is about the namespace.
    entity: Option<String>,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Tells what needs attention, the most urgent first.
#[utoipa::path(get, path = "/api/v1/attention", operation_id = "get_attention", tag = "history", params(AttentionQuery),
    responses((status = 200, body = Attention), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn get(call: &Call<'_>) -> Answer {
    let query: AttentionQuery = call.query()?;
    let entity = query.entity.as_deref().unwrap_or_default().to_owned();
    let read = ReadAttention { path: query.entity };
    let view = call.fetch(&entity, read).await?;
    call.answer(StatusCode::OK, &attention_of(view)).await
}

/// Returns what was found as the API tells it.
pub(super) fn attention_of(view: AttentionView) -> Attention {
    let found = &view.found;
    let items = found.items.iter().zip(view.links);
    let counts = AttentionKind::ALL.into_iter().zip(found.counts);
    let counts = counts.filter(|(_, count)| *count != 0);
    Attention {
        looked_at: time(found.looked_at),
        items: items.map(|(item, link)| item_of(item, link)).collect(),
        counts: counts
            .map(|(kind, count)| AttentionCount {
                kind: kind_of(kind),
                count,
            })
            .collect(),
        left_out: found.left_out,
    }
}

fn item_of(item: &namespace::AttentionItem, link: Option<LinkOfItem>) -> AttentionItem {
    let link = link.as_ref();
    let place = item.receiver.map(|receiver| receiver.0);
    let place = place.or_else(|| item.job.map(|job| job.0));
    let place = place.map(|place| place.to_string()).unwrap_or_default();
    AttentionItem {
        id: format!("{}:{place}:{}", item.kind.name(), item.path),
        kind: kind_of(item.kind),
        urgency: match item.kind.urgency() {
            Urgency::Alarm => UrgencyShown::Alarm,
            Urgency::Notice => UrgencyShown::Notice,
        },
        entity: (!item.path.is_empty()).then(|| item.path.clone()),
        connection: link.map(|link| link.connection.0),
        link: link.map(|link| link.link.0),
        client: link.map(|link| link.container_id.clone()),
        job: item.job.map(|job| job.0),
        count: item.count,
        since: item.since.map(time),
        text: item.text.clone(),
    }
}

const fn kind_of(kind: AttentionKind) -> Kind {
    match kind {
        AttentionKind::MessagesRefused => Kind::MessagesRefused,
        AttentionKind::RecentDeadLetters => Kind::RecentDeadLetters,
        AttentionKind::StuckReceiver => Kind::StuckReceiver,
        AttentionKind::ForwardingFailed => Kind::ForwardingFailed,
        AttentionKind::ForwardingBlocked => Kind::ForwardingBlocked,
        AttentionKind::EntityFull => Kind::EntityFull,
        AttentionKind::NamespaceNearLimit => Kind::NamespaceNearLimit,
        AttentionKind::DisabledWithMessages => Kind::DisabledWithMessages,
        AttentionKind::JobFailed => Kind::JobFailed,
        AttentionKind::LocksExpire => Kind::LocksExpire,
        AttentionKind::TransferDeadLetters => Kind::TransferDeadLetters,
        AttentionKind::DeadLetters => Kind::DeadLetters,
        AttentionKind::NoReceiver => Kind::NoReceiver,
        AttentionKind::OldLock => Kind::OldLock,
        AttentionKind::JobSkipped => Kind::JobSkipped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_one_name_in_the_api_and_in_metrics() {
        for kind in AttentionKind::ALL {
            let shown = serde_json::to_value(kind_of(kind)).unwrap();
            assert_eq!(shown, kind.name());
        }
    }
}
