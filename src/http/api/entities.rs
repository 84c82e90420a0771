//! Queues, topics and subscriptions.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use utoipa::IntoParams;

use super::call::{Answer, Call, with_version};
use super::history::{rates_of, trend_of};
use super::problem::Problem;
use super::rules::read_rule;
use super::version::Version;
use crate::host::history::EntityName;
use jitney_api::entities::{
    Counts, Entities, Entity, EntityProperties, EntityRequest, EntityStatus, FirstRule, Kind,
};
use jitney_api::history::TrendShown;
use jitney_api::rules::RuleRequest;
use jitney_base::time::Millis;
use jitney_broker::namespace::administration::{
    CreateEntity, CreateSubscription, DeleteEntity, EntityView, ListEntities, Listed, More,
    Properties, ReadEntity, UpdateEntity,
};
use jitney_gateway::admin::{duration, parse_duration, time};
use jitney_gateway::limits;
use jitney_queue::{Description, EntityKind, Status};
use jitney_rules::Rule;

/// Which entities a list has.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// The kind.
    kind: Kind,
    /// The topic of subscriptions.
    topic: Option<String>,
    /// So many are left out at the beginning.
    #[serde(default)]
    skip: usize,
    /// As many at most, 100 if it is not given.
    #[param(minimum = 1, maximum = 100)]
    #[serde(default, deserialize_with = "number")]
    limit: Option<usize>,
    /// Each entity has its trend, too.
    #[serde(default)]
    trend: bool,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Reads a number of a query that may be left out, but not be empty.
pub(super) fn number<'de, D: Deserializer<'de>>(text: D) -> Result<Option<usize>, D::Error> {
    let text = String::deserialize(text)?;
    let number = text.parse();
    number
        .map(Some)
        .map_err(|_| D::Error::custom(format!("'{text}' is no number")))
}

/// Reads `limit` of a query.
pub(super) fn limited(limit: Option<usize>) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(limits::INSPECTED_MAX);
    if (1..=limits::INSPECTED_MAX).contains(&limit) {
        return Ok(limit);
    }
    let max = limits::INSPECTED_MAX;
    let text = format!("limit is {limit}; 1 to {max} is allowed.");
    Err(Problem::wrong("limit", text))
}

/// Lists the entities of one kind, in the order of their names.
#[utoipa::path(get, path = "/api/v1/entities", operation_id = "list_entities", tag = "entities", params(ListQuery),
    responses((status = 200, body = Entities), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn list(call: &Call<'_>) -> Answer {
    let query: ListQuery = call.query()?;
    let what = match (query.kind, query.topic) {
        (Kind::Queue, None) => Listed::Queues(String::new()),
        (Kind::Topic, None) => Listed::Topics(String::new()),
        (Kind::Subscription, Some(topic)) => Listed::Subscriptions(topic),
        (Kind::Subscription, None) => {
            let text = "topic is missing: it names the topic of the subscriptions.";
            return Err(Problem::wrong("topic", text));
        }
        (Kind::Queue | Kind::Topic, Some(_)) => {
            return Err(Problem::wrong("topic", "topic is for subscriptions only."));
        }
    };
    let top = limited(query.limit)?;
    let skip = query.skip;
    let list = ListEntities { what, skip, top };
    let page = call.fetch("", list).await?;
    let found = page.entries;
    let next_skip = (page.more == More::Yes).then_some(skip + found.len());
    let namespace = call.namespace();
    let shown = |view: &EntityView| {
        let mut entity = entity_of(call, &namespace, view);
        if query.trend {
            entity.trend = trend_of_entity(call, &namespace, &view.path);
        }
        entity
    };
    let entities = found.iter().map(shown).collect();
    call.answer(
        StatusCode::OK,
        &Entities {
            entities,
            next_skip,
        },
    )
    .await
}

/// Returns an entity.
#[utoipa::path(get, path = "/api/v1/entities/{entity}", operation_id = "get_entity", tag = "entities",
    params(("entity" = String, Path, description = "Its path, with slashes percent-encoded")),
    responses((status = 200, body = Entity, headers(("ETag", description = "Its version"))),
        (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn get(call: &Call<'_>, entity: &str) -> Answer {
    let path = entity.to_owned();
    let view = call.fetch(entity, ReadEntity { path }).await?;
    shown(call, StatusCode::OK, &view).await
}

/// Makes an entity, or with `If-Match` replaces the properties of one.
#[utoipa::path(put, path = "/api/v1/entities/{entity}", operation_id = "put_entity", tag = "entities", request_body = EntityRequest,
    params(("entity" = String, Path, description = "Its path, with slashes percent-encoded"),
        ("If-Match" = Option<String>, Header, description = "The version that is changed, or * for any; without it, the entity is made")),
    responses((status = 200, body = Entity), (status = 201, body = Entity),
        (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn put(call: &Call<'_>, entity: &str, body: Body) -> Answer {
    let authority = call.authorize(entity).await?;
    let version = Version::read(call)?;
    let request: EntityRequest = call.json(body).await?;
    let given = serde_json::to_value(&request.properties).unwrap_or_default();
    let properties = Box::new(read_properties(request.properties)?);
    let is_new_subscription = version == Version::Unsaid && request.kind == Kind::Subscription;
    if request.rule.is_some() && !is_new_subscription {
        let text = "rule is for a subscription that is made; rules of others have their own path.";
        return Err(Problem::wrong("rule", text));
    }
    let rule = request.rule.map(read_first_rule).transpose()?;
    let path = entity.to_owned();
    let (answer, status) = match (version, request.kind) {
        (Version::Any | Version::Is(_), kind) => {
            let revision = version.required();
            let kind = read_kind(kind);
            let update = UpdateEntity {
                path,
                kind,
                properties,
                revision,
            };
            (call.request(authority, update).await, StatusCode::OK)
        }
        (Version::Unsaid, Kind::Subscription) => {
            let rule = rule.map(Box::new);
            let create = CreateSubscription {
                path,
                properties,
                rule,
            };
            (call.request(authority, create).await, StatusCode::CREATED)
        }
        (Version::Unsaid, kind) => {
            let is_topic = kind == Kind::Topic;
            let create = CreateEntity {
                path,
                is_topic,
                properties,
            };
            (call.request(authority, create).await, StatusCode::CREATED)
        }
    };
    let view = answer.map_err(|problem| problem.of_properties(&given))?;
    shown(call, status, &view).await
}

/// Deletes an entity with all its messages; a topic with its subscriptions.
#[utoipa::path(delete, path = "/api/v1/entities/{entity}", operation_id = "delete_entity", tag = "entities",
    params(("entity" = String, Path, description = "Its path, with slashes percent-encoded"),
        ("If-Match" = Option<String>, Header, description = "The version that is deleted; without it, any")),
    responses((status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn delete(call: &Call<'_>, entity: &str) -> Answer {
    let authority = call.authorize(entity).await?;
    let revision = Version::read(call)?.required();
    let path = entity.to_owned();
    call.request(authority, DeleteEntity { path, revision })
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn shown(call: &Call<'_>, status: StatusCode, view: &EntityView) -> Answer {
    let entity = entity_of(call, &call.namespace(), view);
    let response = call.answer(status, &entity).await?;
    Ok(with_version(response, view.description.history.revision))
}

fn entity_of(call: &Call<'_>, namespace: &str, view: &EntityView) -> Entity {
    let description = &view.description;
    let name = EntityName {
        namespace,
        path: &view.path,
    };
    let rates = call.server.history.rates(name);
    Entity {
        path: view.path.clone(),
        kind: kind_of(description.kind),
        properties: properties_of(description),
        counts: Counts {
            active: view.counts.active - view.counts.deferred,
            deferred: view.counts.deferred,
            locked: view.counts.locked,
            scheduled: view.counts.scheduled,
            dead_letters: view.counts.dead_letters,
            transfer: view.counts.transfer,
            transfer_dead_letters: view.counts.transfer_dead_letters,
        },
        size_bytes: view.bytes,
        rates: rates.map(rates_of),
        trend: None,
        subscriptions: (description.kind == EntityKind::Topic).then_some(view.subscriptions),
        created_at: time(description.history.created_at),
        updated_at: time(description.history.updated_at),
        accessed_at: view.accessed_at.map(time),
    }
}

fn trend_of_entity(call: &Call<'_>, namespace: &str, path: &str) -> Option<TrendShown> {
    let name = EntityName { namespace, path };
    let trend = call.server.history.trend(name, call.server.clock.now());
    trend.map(trend_of)
}

fn read_first_rule(rule: FirstRule) -> Result<Rule, Problem> {
    let request = RuleRequest {
        filter: rule.filter,
        action: rule.action,
    };
    read_rule(request, &rule.name, "rule.")
}

fn properties_of(description: &Description) -> EntityProperties {
    EntityProperties {
        lock_duration: Some(duration(description.lock_duration)),
        max_size_megabytes: Some(description.max_bytes / (1024 * 1024)),
        max_message_kilobytes: Some(description.max_message_bytes / 1024),
        max_delivery_count: Some(description.max_delivery_count),
        default_time_to_live: Some(duration(description.default_time_to_live)),
        dead_letter_on_expiration: Some(description.dead_letter_on_expiration),
        dead_letter_on_filter_error: Some(description.dead_letter_on_filter_error),
        requires_session: Some(description.requires_session),
        requires_duplicate_detection: Some(description.detects_duplicates),
        duplicate_detection_window: Some(duration(description.duplicate_window)),
        partitioned: Some(description.partitioned),
        forward_to: description.forward_to.clone(),
        forward_dead_letters_to: description.forward_dead_letters_to.clone(),
        auto_delete_on_idle: Some(duration(description.auto_delete_on_idle)),
        status: Some(status_of(description.status)),
        batched_operations: Some(description.batched_operations),
        supports_ordering: Some(description.supports_ordering),
        express: Some(description.express),
        user_metadata: description.user_metadata.clone(),
    }
}

fn read_properties(properties: EntityProperties) -> Result<Properties, Problem> {
    Ok(Properties {
        lock_duration: span("properties.lock_duration", properties.lock_duration)?,
        max_size_megabytes: properties.max_size_megabytes,
        requires_duplicate_detection: properties.requires_duplicate_detection,
        requires_session: properties.requires_session,
        default_time_to_live: span(
            "properties.default_time_to_live",
            properties.default_time_to_live,
        )?,
        dead_letter_on_expiration: properties.dead_letter_on_expiration,
        dead_letter_on_filter_error: properties.dead_letter_on_filter_error,
        duplicate_window: span(
            "properties.duplicate_detection_window",
            properties.duplicate_detection_window,
        )?,
        max_delivery_count: properties.max_delivery_count,
        status: properties.status.map(read_status),
        batched_operations: properties.batched_operations,
        supports_ordering: properties.supports_ordering,
        express: properties.express,
        forward_to: properties.forward_to,
        forward_dead_letters_to: properties.forward_dead_letters_to,
        user_metadata: properties.user_metadata,
        auto_delete_on_idle: span(
            "properties.auto_delete_on_idle",
            properties.auto_delete_on_idle,
        )?,
        partitioned: properties.partitioned,
        max_message_kilobytes: properties.max_message_kilobytes,
        ..Properties::default()
    })
}

/// Reads a duration.
pub(super) fn span(name: &str, text: Option<String>) -> Result<Option<Millis>, Problem> {
    let Some(text) = text else {
        return Ok(None);
    };
    let read = parse_duration(&text);
    read.map(Some).ok_or_else(|| {
        let detail = format!("{name} is '{text}'; an ISO 8601 duration such as PT1M is allowed.");
        Problem::wrong(name, detail)
    })
}

pub(super) const fn kind_of(kind: EntityKind) -> Kind {
    match kind {
        EntityKind::Queue => Kind::Queue,
        EntityKind::Topic => Kind::Topic,
        EntityKind::Subscription => Kind::Subscription,
    }
}

const fn read_kind(kind: Kind) -> EntityKind {
    match kind {
        Kind::Queue => EntityKind::Queue,
        Kind::Topic => EntityKind::Topic,
        Kind::Subscription => EntityKind::Subscription,
    }
}

pub(super) const fn status_of(status: Status) -> EntityStatus {
    match status {
        Status::Active => EntityStatus::Active,
        Status::Disabled => EntityStatus::Disabled,
        Status::ReceiveDisabled => EntityStatus::ReceiveDisabled,
        Status::SendDisabled => EntityStatus::SendDisabled,
    }
}

const fn read_status(status: EntityStatus) -> Status {
    match status {
        EntityStatus::Active => Status::Active,
        EntityStatus::Disabled => Status::Disabled,
        EntityStatus::ReceiveDisabled => Status::ReceiveDisabled,
        EntityStatus::SendDisabled => Status::SendDisabled,
    }
}
