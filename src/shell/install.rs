//! The entities that the configuration names are made, or get the properties that it gives them.
//!
//! Entities that it does not name stay as they are. Of a subscription, the rules that it names are
//! made or replaced, and others stay.

use crate::address;
use crate::broker::{Broker, Surroundings};
use crate::config::{
    Config, Constant, CorrelationFilter as ConfiguredFilter, Filter as Configured, Namespace,
    QueueProperties, Rule as ConfiguredRule, Status as ConfiguredStatus, Subscription, Topic,
};
use crate::entity::queue::{Description, EntityKind, Status};
use crate::entity::rules::{
    Action, CorrelationFields, CorrelationFilter, Filter, Rule, SqlFilter, Value,
};
use crate::limits;
use crate::time::Millis;

/// Makes the entities of a configuration.
///
/// # Errors
///
/// What cannot be, and why, as a sentence. Nothing of it is durable then.
pub(super) fn install(
    broker: &mut Broker,
    around: &mut Surroundings<'_>,
    config: &Config,
) -> Result<(), String> {
    let names = config
        .namespaces
        .iter()
        .map(|namespace| &namespace.name[..]);
    broker.set_namespaces(names);
    for (at, namespace) in config.namespaces.iter().enumerate() {
        let mut place = Place {
            broker,
            around,
            prefix: broker_prefix(at, namespace),
        };
        place.install(namespace)?;
    }
    broker.check_forwards().map_err(|error| error.to_string())
}

/// The first namespace's paths are as they are written.
fn broker_prefix(at: usize, namespace: &Namespace) -> String {
    if at == 0 {
        String::new()
    } else {
        address::namespace_prefix(&namespace.name)
    }
}

struct Place<'a, 'b> {
    broker: &'a mut Broker,
    around: &'a mut Surroundings<'b>,
    prefix: String,
}

impl Place<'_, '_> {
    fn install(&mut self, namespace: &Namespace) -> Result<(), String> {
        for topic in &namespace.topics {
            let description = self.describe_topic(topic);
            self.ensure(&topic.name, description)?;
        }
        for queue in &namespace.queues {
            let description = self.describe(&queue.properties, EntityKind::Queue);
            self.ensure(&queue.name, description)?;
        }
        for topic in &namespace.topics {
            for subscription in &topic.subscriptions {
                self.subscription(topic, subscription)?;
            }
        }
        Ok(())
    }

    fn ensure(&mut self, path: &str, description: Description) -> Result<(), String> {
        let path = format!("{}{path}", self.prefix);
        let ensured = self.broker.ensure_entity(self.around, &path, description);
        ensured.map(drop).map_err(|error| error.to_string())
    }

    fn subscription(&mut self, topic: &Topic, subscription: &Subscription) -> Result<(), String> {
        let path = address::subscription(&topic.name, &subscription.name);
        let rules = subscription.rules.iter().map(|rule| {
            let made = make_rule(rule, self.around.now);
            made.map_err(|error| format!("the rule '{}' of '{path}': {error}", rule.name))
        });
        let rules: Vec<Rule> = rules.collect::<Result<_, _>>()?;
        let mut description = self.describe(&subscription.properties, EntityKind::Subscription);
        // What a subscription holds counts to its topic, which takes no more when it is full.
        description.max_bytes = u64::MAX;
        description.max_message_bytes = limits::MESSAGE_SIZE_MAX;
        description.partitioned = topic.properties.enable_partitioning;
        let path = format!("{}{path}", self.prefix);
        let ensured = self
            .broker
            .ensure_subscription(self.around, &path, description, rules);
        ensured.map(drop).map_err(|error| error.to_string())
    }

    fn describe_topic(&self, topic: &Topic) -> Description {
        let properties = &topic.properties;
        let all = QueueProperties {
            default_time_to_live: properties.default_time_to_live,
            max_size_megabytes: properties.max_size_megabytes,
            max_message_size_kilobytes: properties.max_message_size_kilobytes,
            status: properties.status,
            requires_duplicate_detection: properties.requires_duplicate_detection,
            duplicate_detection_window: properties.duplicate_detection_window,
            enable_partitioning: properties.enable_partitioning,
            auto_delete_on_idle: properties.auto_delete_on_idle,
            ..QueueProperties::default()
        };
        self.describe(&all, EntityKind::Topic)
    }

    fn describe(&self, properties: &QueueProperties, kind: EntityKind) -> Description {
        let message_bytes = properties.max_message_size_kilobytes;
        let message_bytes = message_bytes.map(|kilobytes| kilobytes * 1024);
        let path = |name: &Option<String>| {
            let name = name.as_deref()?;
            Some(format!("{}{name}", self.prefix))
        };
        let forward_to = path(&properties.forward_to);
        Description {
            kind,
            lock_duration: properties.lock_duration,
            default_time_to_live: properties.default_time_to_live,
            max_delivery_count: properties.max_delivery_count,
            dead_letter_on_expiration: properties.dead_lettering_on_expiration,
            dead_letter_on_filter_error: properties.dead_lettering_on_filter_evaluation,
            max_bytes: properties.max_size_megabytes.saturating_mul(1024 * 1024),
            max_message_bytes: message_bytes.unwrap_or(limits::MESSAGE_SIZE_DEFAULT),
            status: match properties.status {
                ConfiguredStatus::Active => Status::Active,
                ConfiguredStatus::Disabled => Status::Disabled,
                ConfiguredStatus::ReceiveDisabled => Status::ReceiveDisabled,
                ConfiguredStatus::SendDisabled => Status::SendDisabled,
            },
            requires_session: properties.requires_session,
            detects_duplicates: properties.requires_duplicate_detection,
            duplicate_window: properties.duplicate_detection_window,
            partitioned: properties.enable_partitioning,
            // Of an entity that passes its messages on, nobody says that it is idle.
            auto_delete_on_idle: match forward_to {
                Some(_) => Millis::MAX,
                None => properties.auto_delete_on_idle,
            },
            forward_to,
            forward_dead_letters_to: path(&properties.forward_dead_lettered_to),
            ..Description::default()
        }
    }
}

fn make_rule(rule: &ConfiguredRule, now: crate::time::Timestamp) -> Result<Rule, String> {
    let filter = match &rule.filter {
        Configured::Sql(text) => {
            let filter = SqlFilter::parse(text);
            Filter::Sql(filter.map_err(|error| format!("SqlFilter.SqlExpression: {error}"))?)
        }
        Configured::Correlation(filter) => Filter::Correlation(correlation(filter)?),
    };
    let action = rule.action.as_deref().map(Action::parse).transpose();
    Ok(Rule {
        name: rule.name.clone(),
        filter,
        action: action.map_err(|error| format!("Action.SqlExpression: {error}"))?,
        created_at: now,
    })
}

fn correlation(filter: &ConfiguredFilter) -> Result<CorrelationFilter, String> {
    let properties = filter.properties.iter().map(|(name, value)| {
        let value = match value {
            Constant::Boolean(value) => Value::Boolean(*value),
            Constant::Text(text) => Value::Text(text.clone().into()),
            Constant::Number(number) => match (number.parse(), number.parse()) {
                (Ok(integer), _) => Value::Long(integer),
                (Err(_), Ok(double)) => Value::Double(double),
                (Err(_), Err(_)) => return Err(format!("'{number}' is no number")),
            },
        };
        Ok((name.clone(), value))
    });
    let fields = CorrelationFields {
        correlation_id: filter.correlation_id.clone(),
        message_id: filter.message_id.clone(),
        to: filter.to.clone(),
        reply_to: filter.reply_to.clone(),
        label: filter.label.clone(),
        session_id: filter.session_id.clone(),
        reply_to_session_id: filter.reply_to_session_id.clone(),
        content_type: filter.content_type.clone(),
        properties: properties.collect::<Result<_, String>>()?,
    };
    CorrelationFilter::new(fields).map_err(|error| error.to_string())
}
