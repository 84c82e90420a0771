//! Tests of a message against the rules of subscriptions.

use std::collections::BTreeMap;

use axum::body::Body;
use serde::Deserialize;
use utoipa::ToSchema;

use super::call::{Answer, Call, Object};
use super::page::Page;
use super::problem::Problem;
use super::rules::SubscriptionRules;
use super::sending::NewMessage;
use crate::limits;
use jitney_api::rule_tests::{
    ConditionResult, RuleTest, RuleTests, SubscriptionTest, TestedCondition,
};
use jitney_base::ids::SequenceNumber;
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::access::Authority;
use jitney_broker::namespace::administration::{ListEntities, Listed, More, ReadEntity};
use jitney_gateway::rest::property_to_json;
use jitney_message::{Amendments, Message, Scalar};
use jitney_queue::{Conditions, EntityKind};
use jitney_rules::{Explanation, Facts, Rule, Share, Truth};

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
pub(super) struct KeptMessage {
    /// The path of the queue, the topic, the subscription, or of one of their sub-queues.
    entity: String,
    sequence_number: u64,
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
    let skip = request.skip;
    let (message, changed) = match request.subject(now)? {
        Subject::Sent(message) => (message, Amendments::default()),
        Subject::Kept(kept) => kept.read(call).await?,
    };
    let facts = facts(now);
    let tested = Tested {
        message: &message,
        changed: &changed,
        facts: &facts,
    };
    let (paths, further) = subscriptions(call, &authority, entity, skip).await?;
    let mut values = Values::default();
    let mut page = Page::begin(call, "subscriptions").await?;
    let mut next_skip = further;
    for path in paths {
        if page.is_full() || values.are_many() {
            next_skip = Some(skip + page.items());
            break;
        }
        let rules = tested.against(call, &authority, path, &mut values);
        page.push(&rules.await?)?;
    }
    page.respond(&RuleTests {
        subscriptions: Vec::new(),
        values: values.by_name,
        next_skip,
    })
}

/// What is tested.
#[derive(Debug)]
pub(super) enum Subject {
    Sent(Message),
    Kept(KeptMessage),
}

impl RuleTestRequest {
    /// Returns the one message that is given, or named.
    pub(super) fn subject(self, now: Timestamp) -> Result<Subject, Problem> {
        match (self.message, self.kept) {
            (Some(Object(message)), None) => message.encode("message", now).map(Subject::Sent),
            (None, Some(Object(kept))) => Ok(Subject::Kept(kept)),
            (Some(_), Some(_)) | (None, None) => {
                Err(Problem::bad_request("One of message and kept is needed."))
            }
        }
    }
}

/// Returns what a topic adds to a message, of one that no topic has.
pub(super) fn facts(now: Timestamp) -> Facts {
    Facts {
        sequence_number: SequenceNumber(0),
        enqueued_time: now,
        time_to_live: Millis::MAX,
        seed: 0,
    }
}

/// The values of properties that conditions read, each once.
#[derive(Debug, Default)]
pub(super) struct Values {
    by_name: BTreeMap<String, serde_json::Value>,
    bytes: usize,
}

impl Values {
    /// Returns whether they are as many bytes as a page may have.
    const fn are_many(&self) -> bool {
        jitney_gateway::limits::ANSWER_PAGE_BYTES <= self.bytes
    }

    /// Adds a value, if it is not there yet.
    fn add(&mut self, name: &str, value: Option<&Scalar<'_>>) {
        if self.by_name.contains_key(name) {
            return;
        }
        let value = value.map_or(serde_json::Value::Null, property_to_json);
        self.bytes += name.len() + value.as_str().map_or_else(|| size_of_val(&value), str::len);
        self.by_name.insert(name.to_owned(), value);
    }
}

/// Returns the subscriptions that a path means, and how many to leave out for further ones.
async fn subscriptions(
    call: &Call<'_>,
    authority: &Authority,
    entity: &str,
    skip: usize,
) -> Result<(Vec<String>, Option<usize>), Problem> {
    let path = entity.to_owned();
    let read = ReadEntity { path };
    let view = call.request(authority.clone(), read).await?;
    match view.description.kind {
        EntityKind::Subscription => return Ok((vec![view.path], None)),
        EntityKind::Queue => {
            return Err(Problem::bad_request(format!(
                "'{entity}' is a queue, which has no rules; a topic or a subscription is allowed."
            )));
        }
        EntityKind::Topic => {}
    }
    let list = ListEntities {
        what: Listed::Subscriptions(entity.to_owned()),
        skip,
        top: limits::TESTED_SUBSCRIPTIONS_MAX,
    };
    let page = call.request(authority.clone(), list).await?;
    let views = page.entries;
    let next = (page.more == More::Yes).then(|| skip.saturating_add(views.len()));
    let paths = views.into_iter().map(|view| view.path);
    Ok((paths.collect(), next))
}

impl KeptMessage {
    /// Returns the message as it is now.
    async fn read(self, call: &Call<'_>) -> Result<(Message, Amendments), Problem> {
        let authority = call.authorize(&self.entity).await?;
        let conditions = Conditions {
            numbers: vec![SequenceNumber(self.sequence_number)],
            ..Conditions::default()
        };
        let from = SequenceNumber(0);
        let inspected = call.inspect(&authority, &self.entity, from, &conditions, 1);
        let (mut view, mut bodies) = inspected.await?;
        let missing = || {
            let (entity, number) = (&self.entity, self.sequence_number);
            let text = format!("'{entity}' has no message {number} that can be read.");
            Problem::not_found(text).about("kept.sequence_number")
        };
        let found = view.messages.pop().ok_or_else(missing)?;
        let bytes = bodies.pop().flatten().ok_or_else(missing)?;
        let message = Message::parse(bytes).map_err(|_| missing())?;
        let changed = found.inspected.stamps.amendments;
        Ok((message, changed.as_deref().cloned().unwrap_or_default()))
    }
}

/// A message that is tested.
pub(super) struct Tested<'a> {
    pub(super) message: &'a Message,
    pub(super) changed: &'a Amendments,
    pub(super) facts: &'a Facts,
}

impl Tested<'_> {
    async fn against(
        &self,
        call: &Call<'_>,
        authority: &Authority,
        path: String,
        values: &mut Values,
    ) -> Result<SubscriptionTest, Problem> {
        let mut tests = Vec::new();
        let mut bytes = 0;
        let mut rules = SubscriptionRules::begin(call, authority, &path, 0).await?;
        let incomplete = loop {
            let Some(rule) = rules.next().await? else {
                break false;
            };
            let is_full = limits::TESTED_RULES_MAX <= tests.len()
                || jitney_gateway::limits::ANSWER_PAGE_BYTES <= bytes
                || values.are_many();
            if is_full {
                break true;
            }
            let test = self.against_rule(&rule, values);
            let size = size_of_test(&test);
            call.reserve(size).await?;
            bytes += size;
            tests.push(test);
        };
        Ok(SubscriptionTest {
            takes: tests.iter().any(takes),
            incomplete,
            path,
            rules: tests,
        })
    }

    pub(super) fn against_rule(&self, rule: &Rule, values: &mut Values) -> RuleTest {
        let mut share = Share::default();
        let explained = rule
            .filter
            .explain(self.message, self.changed, self.facts, &mut share);
        RuleTest {
            name: rule.name.clone(),
            condition: condition_of(explained, values),
        }
    }
}

/// Returns whether the rule takes the message.
pub(super) fn takes(test: &RuleTest) -> bool {
    test.condition.result == ConditionResult::True
}

/// Returns its bytes in memory, about.
pub(super) fn size_of_test(test: &RuleTest) -> usize {
    size_of_condition(&test.condition)
}

fn condition_of(explained: Explanation, values: &mut Values) -> TestedCondition {
    let (result, error) = match explained.truth {
        Truth::True => (ConditionResult::True, None),
        Truth::False => (ConditionResult::False, None),
        Truth::Unknown => (ConditionResult::Unknown, None),
        Truth::Failed(error) => (ConditionResult::Failed, Some(error)),
    };
    let properties = explained.values.into_iter().map(|(name, value)| {
        values.add(&name, value.as_ref());
        name
    });
    let properties = properties.collect();
    let parts = explained.parts.into_iter();
    TestedCondition {
        text: explained.text,
        result,
        error,
        parts: parts.map(|part| condition_of(part, values)).collect(),
        properties,
    }
}

/// Returns its bytes in memory, about.
fn size_of_condition(condition: &TestedCondition) -> usize {
    let names: usize = condition.properties.iter().map(String::len).sum();
    let parts: usize = condition.parts.iter().map(size_of_condition).sum();
    let error = condition.error.as_ref().map_or(0, String::len);
    size_of::<TestedCondition>() + condition.text.len() + error + names + parts
}
