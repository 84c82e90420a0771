//! Operations on a subscription's rules (`management.md#rules`).

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use serde_amqp::primitives::{OrderedMap, Timestamp as WireTimestamp};
use tracing::info;

use super::operations::{Failure, Operation, OperationResult};
use super::values::{Map, wrong};
use super::{Body, Status};
use crate::limits;
use jitney_amqp::codec::Encoded;
use jitney_amqp::codec::value_length;
use jitney_base::address;
use jitney_base::ids::EntityId;
use jitney_base::rights::Right;
use jitney_broker::namespace::{Denied, DeniedKind};
use jitney_message::Scalar;
use jitney_queue::Queue;
use jitney_rules::{
    Action, CorrelationFields, CorrelationFilter, Filter, Rule, SqlFilter, Value as RuleValue,
};

/// Descriptors of a rule's description; those of filters have one hexadecimal digit less.
const RULE_DESCRIPTION: u64 = 0x0137_0000_0004;
const EMPTY_ACTION: u64 = 0x0137_0000_0005;
const SQL_ACTION: u64 = 0x0137_0000_0006;
const SQL_FILTER: u64 = 0x0013_7000_0006;
const TRUE_FILTER: u64 = 0x0013_7000_0007;
const FALSE_FILTER: u64 = 0x0013_7000_0008;
const CORRELATION_FILTER: u64 = 0x0013_7000_0009;
/// The version of the language, as the service tells it.
const COMPATIBILITY_LEVEL: i32 = 20;

impl Operation<'_, '_> {
    pub(super) fn add_rule(&mut self, map: Map<'_>) -> OperationResult {
        let (topic, subscription) = self.subscription()?;
        let name = map.string("rule-name")?.to_owned();
        self.gateway.namespaces.check_room(
            &self.address.path,
            "no rule can be made until there is room again",
        )?;
        let description = map
            .optional_map("rule-description")?
            .ok_or_else(|| "'rule-description' is missing".to_owned())?;
        let rule = Rule {
            name,
            filter: filter(description)?,
            action: action(description)?,
            created_at: self.cx.now,
        };
        let name = rule.name.clone();
        let missing = match &rule.filter {
            Filter::Sql(filter) => filter.missing_parameters().join(", "),
            Filter::Correlation(_) | Filter::True | Filter::False => String::new(),
        };
        let kept = self
            .gateway
            .namespaces
            .keep_rule(self.cx, topic, subscription, rule);
        let path = self.address.to_string();
        kept.map_err(|why| Denied::rule(&path, &name, why))?;
        self.note_rule("create_rule", topic, subscription, &name);
        if !missing.is_empty() {
            let namespace = address::namespace_of(&self.address.path).trim_matches('/');
            info!(
                namespace,
                subscription = path,
                rule = name,
                parameters = missing,
                "a rule's filter has parameters without values, and takes no message that it needs them \
                 for: no SDK sends parameters over AMQP, so make the rule with literals"
            );
        }
        Ok((Status::ok(), Body::Empty))
    }

    pub(super) fn remove_rule(&mut self, map: Map<'_>) -> OperationResult {
        let (topic, subscription) = self.subscription()?;
        let name = map.string("rule-name")?;
        if self
            .gateway
            .namespaces
            .drop_rule(self.cx, topic, subscription, name)
        {
            self.note_rule("delete_rule", topic, subscription, name);
            return Ok((Status::ok(), Body::Empty));
        }
        let text = format!(
            "The messaging entity '{}/Rules/{name}' could not be found.",
            self.address
        );
        Err(self.deny(DeniedKind::NotFound, &text))
    }

    fn note_rule(&mut self, operation: &str, topic: EntityId, subscription: EntityId, name: &str) {
        let actor = self
            .gateway
            .actor(self.connection, &self.address.path, Right::Listen);
        let namespaces = &mut self.gateway.namespaces;
        namespaces.audit_rule(self.cx, &actor, operation, topic, subscription, name);
    }

    pub(super) fn enumerate_rules(&mut self, map: Map<'_>) -> OperationResult {
        /// The cost of describing a rule, in messages looked at.
        const SCANNED_PER_RULE: usize = 64;
        let number = |name| {
            let number = map.integer(name)?;
            usize::try_from(number).map_err(|_| format!("'{name}' must not be negative"))
        };
        let (skip, top) = (number("skip")?, number("top")?);
        let (topic, subscription) = self.subscription()?;
        let top = top.min(limits::REQUEST_ITEMS_MAX);
        let described = top.saturating_mul(SCANNED_PER_RULE);
        self.gateway.scans.spend(skip.saturating_add(described));
        let rules = self
            .gateway
            .namespaces
            .topic(topic)
            .rules
            .rules_by_name(subscription.0);
        let rules: Vec<&Rule> = rules.skip(skip).take(top).collect();
        let bytes = rules.iter().map(|rule| rule.size()).sum::<usize>();
        if limits::RULES_ANSWER_BYTES_MAX < bytes {
            let text = format!(
                "{} rules have {bytes} bytes, and {} is the most for one answer: ask for fewer at a \
                 time by 'top'.",
                rules.len(),
                limits::RULES_ANSWER_BYTES_MAX
            );
            return Err(self.deny(DeniedKind::Limit, &text));
        }
        let told = rules.into_iter().map(|rule| {
            let mut entry = OrderedMap::new();
            entry.insert(text("rule-description"), describe(rule));
            Value::Map(entry)
        });
        let told: Vec<Value> = told.collect();
        if told.is_empty() {
            return Ok((Status::no_content(), Body::Empty));
        }
        let entries = vec![("rules", Value::List(told))];
        Ok((Status::ok(), Body::Entries(entries)))
    }

    /// Finds the topic of the subscription whose node was asked.
    fn subscription(&self) -> Result<(EntityId, EntityId), Failure> {
        let base = self.queue.base();
        let description = self.gateway.namespaces.queue(base).map(Queue::description);
        let description = description.cloned().unwrap_or_default();
        match self
            .gateway
            .namespaces
            .topic_of(&self.address.path, &description)
        {
            Ok(Some(topic)) if base == self.queue => Ok((topic, base)),
            _ => {
                let text = format!(
                    "'{}' is not a subscription, and has no rules.",
                    self.address
                );
                Err(self.deny(DeniedKind::NotAllowed, &text))
            }
        }
    }
}

fn filter(description: Map<'_>) -> Result<Filter, String> {
    if let Some(map) = description.optional_map("sql-filter")? {
        let sql = SqlFilter::parse(map.string("expression")?);
        return Ok(Filter::Sql(
            sql.map_err(|error| format!("the filter's expression: {error}"))?,
        ));
    }
    if let Some(map) = description.optional_map("correlation-filter")? {
        return correlation(map).map(Filter::Correlation);
    }
    if description.get("true-filter").is_some() {
        return Ok(Filter::True);
    }
    if description.get("false-filter").is_some() {
        return Ok(Filter::False);
    }
    Err(
        "'rule-description' has none of 'sql-filter', 'correlation-filter', 'true-filter' and \
         'false-filter'"
            .to_owned(),
    )
}

fn correlation(map: Map<'_>) -> Result<CorrelationFilter, String> {
    let field = |name| {
        let text = map.optional_string(name)?;
        Ok::<_, String>(text.filter(|text| !text.is_empty()).map(Into::into))
    };
    let mut properties = Vec::new();
    if let Some(all) = map.optional_map("properties")? {
        for (name, value) in all.encoded().entries() {
            let name = name.text();
            let name = name.ok_or("the names of 'properties' must be strings")?;
            let given = RuleValue::from_encoded(value.to_vec());
            if matches!(given.scalar(), Scalar::Opaque(_)) {
                return Err(wrong("properties", "of simple values", Encoded::new(value)));
            }
            properties.push((name.to_owned(), given));
        }
    }
    let fields = CorrelationFields {
        correlation_id: field("correlation-id")?,
        message_id: field("message-id")?,
        to: field("to")?,
        reply_to: field("reply-to")?,
        label: field("label")?,
        session_id: field("session-id")?,
        reply_to_session_id: field("reply-to-session-id")?,
        content_type: field("content-type")?,
        properties,
    };
    CorrelationFilter::new(fields).map_err(|error| error.to_string())
}

fn action(description: Map<'_>) -> Result<Option<Action>, String> {
    let Some(map) = description.optional_map("sql-rule-action")? else {
        return Ok(None);
    };
    // .NET and Java send an empty map for none.
    match map.optional_string("expression")? {
        Some(expression) if !expression.trim().is_empty() => {
            let action = Action::parse(expression);
            Ok(Some(action.map_err(|error| {
                format!("the action's expression: {error}")
            })?))
        }
        _ => Ok(None),
    }
}

/// Tells of a rule as the service does.
fn describe(rule: &Rule) -> Value {
    let filter = match &rule.filter {
        Filter::True => described(TRUE_FILTER, Vec::new()),
        Filter::False => described(FALSE_FILTER, Vec::new()),
        Filter::Sql(sql) => {
            let fields = vec![text(sql.text()), Value::Int(COMPATIBILITY_LEVEL)];
            described(SQL_FILTER, fields)
        }
        Filter::Correlation(filter) => {
            described(CORRELATION_FILTER, correlation_fields(filter.fields()))
        }
    };
    let action = match &rule.action {
        None => described(EMPTY_ACTION, Vec::new()),
        Some(action) => {
            let fields = vec![text(action.text()), Value::Int(COMPATIBILITY_LEVEL)];
            described(SQL_ACTION, fields)
        }
    };
    let created = WireTimestamp::from(rule.created_at.as_millis());
    let fields = vec![filter, action, text(&rule.name), Value::Timestamp(created)];
    described(RULE_DESCRIPTION, fields)
}

fn correlation_fields(filter: &CorrelationFields) -> Vec<Value> {
    let texts = [
        &filter.correlation_id,
        &filter.message_id,
        &filter.to,
        &filter.reply_to,
        &filter.label,
        &filter.session_id,
        &filter.reply_to_session_id,
        &filter.content_type,
    ];
    let texts = texts
        .into_iter()
        .map(|field| field.as_deref().map_or(Value::Null, text));
    let properties: OrderedMap<Value, Value> = filter
        .properties
        .iter()
        .filter_map(|(name, value)| Some((text(name), amqp_value(value)?)))
        .collect();
    texts.chain([Value::Map(properties)]).collect()
}

/// Returns a value as it was given; what the log has of it was checked when it came.
fn amqp_value(value: &RuleValue) -> Option<Value> {
    let mut encoded = Vec::new();
    value.encode(&mut encoded);
    value_length(&encoded).ok()?;
    serde_amqp::from_slice(&encoded).ok()
}

fn described(code: u64, fields: Vec<Value>) -> Value {
    Value::Described(Box::new(Described {
        descriptor: Descriptor::Code(code),
        value: Value::List(fields),
    }))
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}
