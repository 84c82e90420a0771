//! Tests of a message against the rules of subscriptions.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::messages::NewMessage;
use super::{Answer, Call, Object, Problem, json, rules};
use crate::access::Authority;
use crate::gateway::operations::{Operated, Operation};
use crate::gateway::rest::property_to_json;
use crate::ids::SequenceNumber;
use crate::limits;
use crate::message::{Amendments, Message};
use crate::namespace::administration::{AdminAnswer, AdminOperation, Listed, More};
use crate::queue::{Conditions, EntityKind};
use crate::rules::{Explanation, Facts, Rule, Share, Truth};
use crate::time::Millis;

/// The message to test, and which subscriptions.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleTestRequest {
    /// A message as it would be sent.
    #[schema(value_type = Option<NewMessage>)]
    message: Option<Object<NewMessage>>,
    /// A message that is in a queue, instead.
    #[schema(value_type = Option<KeptMessage>)]
    kept: Option<Object<KeptMessage>>,
    /// So many subscriptions of a topic are left out: `next_skip` of the answer before.
    #[serde(default)]
    skip: usize,
}

/// A message in a queue.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct KeptMessage {
    /// The path of the queue, the topic, the subscription, or of one of their sub-queues.
    entity: String,
    sequence_number: u64,
}

/// Which subscriptions take the message.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RuleTests {
    subscriptions: Vec<SubscriptionTest>,
    /// What `skip` is to be for further subscriptions; without it there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_skip: Option<usize>,
}

/// Whether one subscription takes the message.
#[derive(Debug, Serialize, ToSchema)]
struct SubscriptionTest {
    /// Its path.
    path: String,
    /// At least one of its rules takes the message.
    takes: bool,
    rules: Vec<RuleTest>,
    /// It has more rules than one request tests.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

/// Whether one rule takes the message, and why.
#[derive(Debug, Serialize, ToSchema)]
struct RuleTest {
    name: String,
    #[serde(flatten)]
    condition: TestedCondition,
}

/// The result of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ConditionResult {
    True,
    False,
    /// A value that it needs is absent, or its values do not compare: the message is not taken.
    Unknown,
    /// It cannot be evaluated: the message is not taken.
    Failed,
}

/// A condition with its parts.
#[derive(Debug, Serialize, ToSchema)]
struct TestedCondition {
    /// The condition as SQL.
    text: String,
    result: ConditionResult,
    /// Why it cannot be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The conditions that `AND`, `OR` or `NOT` makes it of.
    #[schema(no_recursion)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Self>,
    /// The properties that a condition without parts reads, with their values; null for those that are absent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    values: BTreeMap<String, serde_json::Value>,
}

/// Tests a message against the rules of a subscription, or of all subscriptions of a topic. Nothing is sent. Facts that a topic
/// adds, such as the sequence number, are those of no message.
#[utoipa::path(post, path = "/api/v1/entities/{entity}/rule-tests", operation_id = "test_rules", tag = "rules", request_body = RuleTestRequest,
    params(("entity" = String, Path, description = "The path of a topic or a subscription")),
    responses((status = 200, body = RuleTests), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn test(call: &Call<'_>, entity: &str, body: Body) -> Answer {
    let authority = call.authorize(entity).await?;
    let request: RuleTestRequest = call.json(body).await?;
    let now = call.server.clock.now();
    let (message, changed) = match (request.message, request.kept) {
        (Some(Object(message)), None) => (message.encode("message", now)?, Amendments::default()),
        (None, Some(Object(kept))) => kept.read(call).await?,
        (Some(_), Some(_)) | (None, None) => {
            return Err(Problem::bad_request("One of message and kept is needed."));
        }
    };
    let facts = Facts {
        sequence_number: SequenceNumber(0),
        enqueued_time: now,
        time_to_live: Millis::MAX,
        seed: 0,
    };
    let tested = Tested {
        message: &message,
        changed: &changed,
        facts: &facts,
    };
    let (paths, next_skip) = subscriptions(call, &authority, entity, request.skip).await?;
    let mut subscriptions = Vec::new();
    for path in paths {
        subscriptions.push(tested.against(call, &authority, path).await?);
    }
    let answer = RuleTests {
        subscriptions,
        next_skip,
    };
    Ok(json(StatusCode::OK, &answer))
}

/// Returns the subscriptions that a path means, and how many to leave out for further ones.
async fn subscriptions(
    call: &Call<'_>,
    authority: &Authority,
    entity: &str,
    skip: usize,
) -> Result<(Vec<String>, Option<usize>), Problem> {
    let path = entity.to_owned();
    let read = AdminOperation::Read { path };
    let AdminAnswer::Entity(view) = call.administer(authority.clone(), read).await? else {
        return Err(Problem::stopping());
    };
    match view.description.kind {
        EntityKind::Subscription => return Ok((vec![view.path], None)),
        EntityKind::Queue => {
            return Err(Problem::bad_request(format!(
                "'{entity}' is a queue, which has no rules; a topic or a subscription is allowed."
            )));
        }
        EntityKind::Topic => {}
    }
    let list = AdminOperation::List {
        what: Listed::Subscriptions(entity.to_owned()),
        skip,
        top: limits::TESTED_SUBSCRIPTIONS_MAX,
    };
    let AdminAnswer::Entities(views, more) = call.administer(authority.clone(), list).await? else {
        return Err(Problem::stopping());
    };
    let next = (more == More::Yes).then(|| skip.saturating_add(views.len()));
    let paths = views.into_iter().map(|view| view.path);
    Ok((paths.collect(), next))
}

impl KeptMessage {
    /// Returns the message as it is now.
    async fn read(self, call: &Call<'_>) -> Result<(Message, Amendments), Problem> {
        let authority = call.authorize(&self.entity).await?;
        let operation = Operation::Inspect {
            path: self.entity.clone(),
            from: SequenceNumber(0),
            conditions: Conditions {
                numbers: vec![SequenceNumber(self.sequence_number)],
                ..Conditions::default()
            },
            most: 1,
            with_bytes: true,
        };
        let (operated, mut bodies) = call.operate(authority, operation).await?;
        let Operated::Messages(mut view) = operated else {
            return Err(Problem::stopping());
        };
        let missing = || {
            let (entity, number) = (&self.entity, self.sequence_number);
            Problem::not_found(format!(
                "'{entity}' has no message {number} that can be read."
            ))
        };
        let found = view.messages.pop().ok_or_else(missing)?;
        let bytes = bodies.pop().flatten().ok_or_else(missing)?;
        let message = Message::parse(bytes).map_err(|_| missing())?;
        let changed = found.inspected.stamps.amendments;
        Ok((message, changed.as_deref().cloned().unwrap_or_default()))
    }
}

/// A message that is tested.
struct Tested<'a> {
    message: &'a Message,
    changed: &'a Amendments,
    facts: &'a Facts,
}

impl Tested<'_> {
    async fn against(
        &self,
        call: &Call<'_>,
        authority: &Authority,
        path: String,
    ) -> Result<SubscriptionTest, Problem> {
        let most = limits::TESTED_RULES_MAX;
        let test = |rule: &Rule| self.against_rule(rule);
        let (rules, more) = rules::of_subscription(call, authority, &path, most, test).await?;
        Ok(SubscriptionTest {
            takes: rules
                .iter()
                .any(|rule| rule.condition.result == ConditionResult::True),
            incomplete: more == More::Yes,
            path,
            rules,
        })
    }

    fn against_rule(&self, rule: &Rule) -> RuleTest {
        let mut share = Share::default();
        let explained = rule
            .filter
            .explain(self.message, self.changed, self.facts, &mut share);
        RuleTest {
            name: rule.name.clone(),
            condition: explained.into(),
        }
    }
}

impl From<Explanation> for TestedCondition {
    fn from(explained: Explanation) -> Self {
        let (result, error) = match explained.truth {
            Truth::True => (ConditionResult::True, None),
            Truth::False => (ConditionResult::False, None),
            Truth::Unknown => (ConditionResult::Unknown, None),
            Truth::Failed(error) => (ConditionResult::Failed, Some(error)),
        };
        let values = explained.values.into_iter().map(|(name, value)| {
            let value = value.as_ref().map(property_to_json);
            (name, value.unwrap_or(serde_json::Value::Null))
        });
        Self {
            text: explained.text,
            result,
            error,
            parts: explained.parts.into_iter().map(Self::from).collect(),
            values: values.collect(),
        }
    }
}
