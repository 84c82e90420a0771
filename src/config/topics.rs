//! Topics, their subscriptions and rules in the configuration.
//!
//! Their structure is checked here; SQL text is not.

use serde_json::Value;

use super::reader::{At, ConfigReader, Names};
use super::{ConfiguredStatus, QueueProperties};
use crate::limits;
use crate::time::Millis;

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredTopic {
    /// Its path.
    pub name: String,
    /// Its properties.
    pub properties: TopicProperties,
    /// Its subscriptions, in the order of the file.
    pub subscriptions: Vec<Subscription>,
    /// `AuthorizationRules`, if the file has them.
    pub authorization: Option<Vec<super::ConfiguredAuthorizationRule>>,
}

/// A topic's properties; the defaults are the emulator's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicProperties {
    /// `DefaultMessageTimeToLive`; [`Millis::MAX`] for Azure's largest.
    pub default_time_to_live: Millis,
    /// `MaxSizeInMegabytes`.
    pub max_size_megabytes: u64,
    /// `MaxMessageSizeInKilobytes`.
    pub max_message_size_kilobytes: Option<u64>,
    /// `Status`.
    pub status: ConfiguredStatus,
    /// `RequiresDuplicateDetection`.
    pub requires_duplicate_detection: bool,
    /// `DuplicateDetectionHistoryTimeWindow`.
    pub duplicate_detection_window: Millis,
    /// `EnablePartitioning`.
    pub enable_partitioning: bool,
    /// `AutoDeleteOnIdle`; [`Millis::MAX`] for never.
    pub auto_delete_on_idle: Millis,
}

/// A subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its name, unique in its topic.
    pub name: String,
    /// Its properties: those of a queue, except duplicate detection and sizes.
    pub properties: QueueProperties,
    /// Its rules. A subscription without rules takes every message, as in the emulator.
    pub rules: Vec<ConfiguredRule>,
}

/// A rule: a filter, and an action that changes the messages it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredRule {
    /// Its name, unique in its subscription.
    pub name: String,
    /// The filter.
    pub filter: ConfiguredFilter,
    /// The statements of `Action.SqlExpression`.
    pub action: Option<String>,
}

/// The filter of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfiguredFilter {
    /// Messages whose properties equal all the given ones.
    Correlation(ConfiguredCorrelationFilter),
    /// Messages for which `SqlFilter.SqlExpression` is true.
    Sql(String),
}

/// The values that a message's properties must equal, where given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfiguredCorrelationFilter {
    /// `ContentType`.
    pub content_type: Option<String>,
    /// `CorrelationId`.
    pub correlation_id: Option<String>,
    /// `Label`: the subject.
    pub label: Option<String>,
    /// `MessageId`.
    pub message_id: Option<String>,
    /// `ReplyTo`.
    pub reply_to: Option<String>,
    /// `ReplyToSessionId`.
    pub reply_to_session_id: Option<String>,
    /// `SessionId`.
    pub session_id: Option<String>,
    /// `To`.
    pub to: Option<String>,
    /// `Properties`: application-properties by name.
    pub properties: Vec<(String, Constant)>,
}

/// A value that an application-property is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Constant {
    /// true or false.
    Boolean(bool),
    /// A number, as it is written in the file.
    Number(String),
    /// A string.
    Text(String),
}

/// The names of a topic.
const TOPIC: [&str; 4] = ["Name", "Properties", "Subscriptions", "AuthorizationRules"];
/// The names of a correlation filter; the last has no effect in the service either.
const CORRELATION: [&str; 10] = [
    "ContentType",
    "CorrelationId",
    "Label",
    "MessageId",
    "ReplyTo",
    "ReplyToSessionId",
    "SessionId",
    "To",
    "Properties",
    "RequiresPreprocessing",
];

impl Default for TopicProperties {
    fn default() -> Self {
        let queue = QueueProperties::default();
        Self {
            default_time_to_live: queue.default_time_to_live,
            max_size_megabytes: queue.max_size_megabytes,
            max_message_size_kilobytes: None,
            status: ConfiguredStatus::Active,
            requires_duplicate_detection: false,
            duplicate_detection_window: queue.duplicate_detection_window,
            enable_partitioning: false,
            auto_delete_on_idle: Millis::MAX,
        }
    }
}

impl ConfigReader {
    pub(super) fn topic(&mut self, at: &At<'_>) -> Option<ConfiguredTopic> {
        self.object_of(at, &TOPIC)?;
        let name = self.name(&at.key("Name"));
        let properties = self.topic_properties(&at.key("Properties"));
        let mut names = Names::default();
        let mut subscriptions = Vec::new();
        for subscription in self.items(&at.key("Subscriptions"), "an array of subscriptions") {
            subscriptions.extend(self.subscription(&subscription, &mut names));
        }
        let authorization = self.authorization(at);
        Some(ConfiguredTopic {
            name: name?,
            properties,
            subscriptions,
            authorization,
        })
    }

    fn topic_properties(&mut self, at: &At<'_>) -> TopicProperties {
        // A topic's properties are some of a queue's, with the same names and defaults.
        let all = self.queue_properties(at);
        TopicProperties {
            default_time_to_live: all.default_time_to_live,
            max_size_megabytes: all.max_size_megabytes,
            max_message_size_kilobytes: all.max_message_size_kilobytes,
            status: all.status,
            requires_duplicate_detection: all.requires_duplicate_detection,
            duplicate_detection_window: all.duplicate_detection_window,
            enable_partitioning: all.enable_partitioning,
            auto_delete_on_idle: all.auto_delete_on_idle,
        }
    }

    fn subscription(&mut self, at: &At<'_>, names: &mut Names) -> Option<Subscription> {
        self.object_of(at, &["Name", "Properties", "Rules"])?;
        let name = self.part_name(&at.key("Name"), names, "subscription of the topic");
        let properties = self.queue_properties(&at.key("Properties"));
        let mut names = Names::default();
        let mut rules = Vec::new();
        for rule in self.items(&at.key("Rules"), "an array of rules") {
            rules.extend(self.rule(&rule, &mut names));
        }
        Some(Subscription {
            name: name?,
            properties,
            rules,
        })
    }

    fn rule(&mut self, at: &At<'_>, names: &mut Names) -> Option<ConfiguredRule> {
        self.object_of(at, &["Name", "Properties"])?;
        let name = self.part_name(&at.key("Name"), names, "rule of the subscription");
        let properties = at.key("Properties");
        let known = ["FilterType", "CorrelationFilter", "SqlFilter", "Action"];
        self.object_of(&properties, &known)?;
        let filter = self.filter(&properties);
        let action = properties.key("Action");
        let action = if action.is_absent() {
            None
        } else {
            self.expression(&action)
        };
        Some(ConfiguredRule {
            name: name?,
            filter: filter?,
            action,
        })
    }

    fn filter(&mut self, properties: &At<'_>) -> Option<ConfiguredFilter> {
        const ALLOWED: &str = "\"Sql\" or \"Correlation\"";
        let kind = properties.key("FilterType");
        match self.string(&kind, ALLOWED)? {
            "Sql" => self
                .expression(&properties.key("SqlFilter"))
                .map(ConfiguredFilter::Sql),
            "Correlation" => self
                .correlation(&properties.key("CorrelationFilter"))
                .map(ConfiguredFilter::Correlation),
            _ => {
                self.mistake(&kind, ALLOWED);
                None
            }
        }
    }

    /// Reads the `SqlExpression` of a filter or an action.
    fn expression(&mut self, at: &At<'_>) -> Option<String> {
        // The last two have no effect in the service either.
        let known = [
            "SqlExpression",
            "CompatibilityLevel",
            "RequiresPreprocessing",
        ];
        self.object_of(at, &known)?;
        let text = self.string(&at.key("SqlExpression"), "SQL text")?;
        Some(text.to_owned())
    }

    fn correlation(&mut self, at: &At<'_>) -> Option<ConfiguredCorrelationFilter> {
        self.object_of(at, &CORRELATION)?;
        let mut text = |name: &str| {
            let at = at.key(name);
            let absent = at.is_absent();
            let text = if absent {
                None
            } else {
                self.string(&at, "a string")
            };
            text.map(ToOwned::to_owned)
        };
        let filter = ConfiguredCorrelationFilter {
            content_type: text("ContentType"),
            correlation_id: text("CorrelationId"),
            label: text("Label"),
            message_id: text("MessageId"),
            reply_to: text("ReplyTo"),
            reply_to_session_id: text("ReplyToSessionId"),
            session_id: text("SessionId"),
            to: text("To"),
            properties: self.constants(&at.key("Properties")),
        };
        if filter == ConfiguredCorrelationFilter::default() {
            self.mistake(at, "a filter that names at least one property");
            return None;
        }
        Some(filter)
    }

    fn constants(&mut self, at: &At<'_>) -> Vec<(String, Constant)> {
        if at.is_absent() {
            return Vec::new();
        }
        let mut constants = Vec::new();
        for (name, value) in self.object(at).into_iter().flatten() {
            let constant = match value {
                Value::Bool(value) => Constant::Boolean(*value),
                Value::Number(number) => Constant::Number(number.to_string()),
                Value::String(text) => Constant::Text(text.clone()),
                Value::Array(_) | Value::Null | Value::Object(_) => {
                    self.mistake(&at.key(name), "a string, a number, true or false");
                    continue;
                }
            };
            constants.push((name.clone(), constant));
        }
        constants
    }

    /// Reads the name of a subscription or a rule, which must be unique in its parent without case.
    fn part_name(&mut self, at: &At<'_>, names: &mut Names, what: &str) -> Option<String> {
        let max = limits::PART_NAME_LENGTH_MAX;
        let allowed = format!(
            "a name of 1 to {max} characters that no other {what} has, of letters, digits and any \
             of . - _ ~ $"
        );
        let name = self.string(at, &allowed)?;
        if !crate::address::is_part_name(name) || !names.insert(crate::address::key(name)) {
            self.mistake(at, &allowed);
            return None;
        }
        Some(name.to_owned())
    }
}
