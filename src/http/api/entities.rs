//! Queues, topics and subscriptions.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::call::{Answer, Call, with_version};
use super::history::RatesShown;
use super::problem::Problem;
use super::rules::{RuleFilter, RuleRequest};
use super::version::Version;
use jitney_base::time::Millis;
use jitney_broker::namespace::administration::{
    CreateEntity, CreateSubscription, DeleteEntity, EntityView, ListEntities, Listed, More,
    Properties, ReadEntity, UpdateEntity,
};
use jitney_gateway::admin::{duration, parse_duration, time};
use jitney_gateway::limits;
use jitney_queue::{Description, EntityKind, Status};
use jitney_rules::Rule;

/// A kind of entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Queue,
    Topic,
    Subscription,
}

/// What an entity's status allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EntityStatus {
    Active,
    Disabled,
    ReceiveDisabled,
    SendDisabled,
}

/// A queue, a topic or a subscription.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Entity {
    /// Its path: `orders`, `news/Subscriptions/eu`.
    path: String,
    kind: Kind,
    properties: EntityProperties,
    counts: Counts,
    /// Bytes of its messages and dead letters, as their senders encoded them.
    size_bytes: u64,
    /// Of the last minute; absent until the history has two intervals of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rates: Option<RatesShown>,
    /// A topic's subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    subscriptions: Option<usize>,
    created_at: String,
    updated_at: String,
    /// When a client last used it, since the broker started.
    #[serde(skip_serializing_if = "Option::is_none")]
    accessed_at: Option<String>,
}

/// Messages of an entity by state.
#[derive(Debug, Serialize, ToSchema)]
struct Counts {
    /// Those that receivers may get, locked ones among them; not those that are deferred.
    active: usize,
    /// Those that are received by their numbers only.
    deferred: usize,
    /// Those, active or deferred, that receivers have locked.
    locked: usize,
    scheduled: usize,
    dead_letters: usize,
    /// On their way to the entity that this one forwards to.
    transfer: usize,
    /// Those that could not go there.
    transfer_dead_letters: usize,
}

/// Properties of an entity. What is left out of a request has the service's default. Times are ISO 8601 durations.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct EntityProperties {
    #[schema(example = "PT1M")]
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_duration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_size_megabytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_message_kilobytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_delivery_count: Option<u32>,
    #[schema(example = "P14D")]
    #[serde(skip_serializing_if = "Option::is_none")]
    default_time_to_live: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_on_expiration: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_on_filter_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requires_session: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requires_duplicate_detection: Option<bool>,
    #[schema(example = "PT10M")]
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_detection_window: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partitioned: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forward_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forward_dead_letters_to: Option<String>,
    #[schema(example = "P1D")]
    #[serde(skip_serializing_if = "Option::is_none")]
    auto_delete_on_idle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<EntityStatus>,
    /// Kept and returned, without an effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    batched_operations: Option<bool>,
    /// Likewise, of topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    supports_ordering: Option<bool>,
    /// Likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    express: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_metadata: Option<String>,
}

/// An entity to be made or changed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EntityRequest {
    kind: Kind,
    #[serde(default)]
    properties: EntityProperties,
    /// The first rule of a subscription that is made, instead of `$Default`, which takes all messages.
    #[serde(default)]
    rule: Option<FirstRule>,
}

/// The first rule of a subscription.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FirstRule {
    name: String,
    filter: RuleFilter,
    #[serde(default)]
    action: Option<String>,
}

/// Entities of one kind.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Entities {
    entities: Vec<Entity>,
    /// What `skip` is to be for the next page; without it there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_skip: Option<usize>,
}

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
    let shown = |view| Entity::of(call, &namespace, view);
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
    let properties = Box::new(request.properties.read()?);
    let is_new_subscription = version == Version::Unsaid && request.kind == Kind::Subscription;
    if request.rule.is_some() && !is_new_subscription {
        let text = "rule is for a subscription that is made; rules of others have their own path.";
        return Err(Problem::wrong("rule", text));
    }
    let rule = request.rule.map(FirstRule::read).transpose()?;
    let path = entity.to_owned();
    let (answer, status) = match (version, request.kind) {
        (Version::Any | Version::Is(_), kind) => {
            let revision = version.required();
            let kind = kind.into();
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
    let entity = Entity::of(call, &call.namespace(), view);
    let response = call.answer(status, &entity).await?;
    Ok(with_version(response, view.description.history.revision))
}

impl Entity {
    fn of(call: &Call<'_>, namespace: &str, view: &EntityView) -> Self {
        let description = &view.description;
        let rates = call.server.history.rates(namespace, &view.path);
        Self {
            path: view.path.clone(),
            kind: description.kind.into(),
            properties: EntityProperties::of(description),
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
            rates: rates.map(RatesShown::of),
            subscriptions: (description.kind == EntityKind::Topic).then_some(view.subscriptions),
            created_at: time(description.history.created_at),
            updated_at: time(description.history.updated_at),
            accessed_at: view.accessed_at.map(time),
        }
    }
}

impl FirstRule {
    fn read(self) -> Result<Rule, Problem> {
        let request = RuleRequest {
            filter: self.filter,
            action: self.action,
        };
        request.read(&self.name, "rule.")
    }
}

impl EntityProperties {
    fn of(description: &Description) -> Self {
        Self {
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
            status: Some(description.status.into()),
            batched_operations: Some(description.batched_operations),
            supports_ordering: Some(description.supports_ordering),
            express: Some(description.express),
            user_metadata: description.user_metadata.clone(),
        }
    }

    fn read(self) -> Result<Properties, Problem> {
        Ok(Properties {
            lock_duration: span("properties.lock_duration", self.lock_duration)?,
            max_size_megabytes: self.max_size_megabytes,
            requires_duplicate_detection: self.requires_duplicate_detection,
            requires_session: self.requires_session,
            default_time_to_live: span(
                "properties.default_time_to_live",
                self.default_time_to_live,
            )?,
            dead_letter_on_expiration: self.dead_letter_on_expiration,
            dead_letter_on_filter_error: self.dead_letter_on_filter_error,
            duplicate_window: span(
                "properties.duplicate_detection_window",
                self.duplicate_detection_window,
            )?,
            max_delivery_count: self.max_delivery_count,
            status: self.status.map(Into::into),
            batched_operations: self.batched_operations,
            supports_ordering: self.supports_ordering,
            express: self.express,
            forward_to: self.forward_to,
            forward_dead_letters_to: self.forward_dead_letters_to,
            user_metadata: self.user_metadata,
            auto_delete_on_idle: span("properties.auto_delete_on_idle", self.auto_delete_on_idle)?,
            partitioned: self.partitioned,
            max_message_kilobytes: self.max_message_kilobytes,
            ..Properties::default()
        })
    }
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

impl From<EntityKind> for Kind {
    fn from(kind: EntityKind) -> Self {
        match kind {
            EntityKind::Queue => Self::Queue,
            EntityKind::Topic => Self::Topic,
            EntityKind::Subscription => Self::Subscription,
        }
    }
}

impl From<Kind> for EntityKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Queue => Self::Queue,
            Kind::Topic => Self::Topic,
            Kind::Subscription => Self::Subscription,
        }
    }
}

impl From<Status> for EntityStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Active => Self::Active,
            Status::Disabled => Self::Disabled,
            Status::ReceiveDisabled => Self::ReceiveDisabled,
            Status::SendDisabled => Self::SendDisabled,
        }
    }
}

impl From<EntityStatus> for Status {
    fn from(status: EntityStatus) -> Self {
        match status {
            EntityStatus::Active => Self::Active,
            EntityStatus::Disabled => Self::Disabled,
            EntityStatus::ReceiveDisabled => Self::ReceiveDisabled,
            EntityStatus::SendDisabled => Self::SendDisabled,
        }
    }
}
