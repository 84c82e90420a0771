//! Topics, their subscriptions and rules in the configuration.
//!
//! Filters and actions are compiled here, so that each mistake in one has its place in the file.

use serde_json::{Map, Value, json};

use super::reader::{At, ConfigReader, Names};
use super::times;
use super::{ConfiguredStatus, Owner, Position, QueueProperties};
use jitney_base::address;
use jitney_base::time::{Millis, Timestamp};
use jitney_message::Scalar;
use jitney_rules::{
    Action, CorrelationFields, CorrelationFilter, Filter, Rule, SqlFilter, hyphenated,
};

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredTopic {
    /// Where it is in the file.
    pub position: Position,
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
    /// Where it is in the file.
    pub position: Position,
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
    /// All messages.
    All,
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
    /// `{"Type": "dateTime", …}`: 100 ns since 1970-01-01T00:00:00Z.
    DateTime(i64),
    /// `{"Type": "duration", …}`: 100 ns.
    Duration(i64),
    /// A number, as it is written in the file.
    Number(String),
    /// A string.
    Text(String),
    /// `{"Type": "uuid", …}`, in RFC 4122 order.
    Uuid([u8; 16]),
}

impl ConfiguredRule {
    /// Returns the rule, as a subscription has it.
    ///
    /// # Errors
    ///
    /// Says what is wrong with its filter or its action.
    pub fn compile(&self, now: Timestamp) -> Result<Rule, String> {
        let action = self.action.as_deref().map(Action::parse).transpose();
        Ok(Rule {
            name: self.name.clone(),
            filter: self.filter.compile()?,
            action: action.map_err(|error| format!("Action.SqlExpression: {error}"))?,
            created_at: now,
        })
    }
}

impl ConfiguredFilter {
    fn compile(&self) -> Result<Filter, String> {
        match self {
            Self::All => Ok(Filter::True),
            Self::Sql(text) => SqlFilter::parse(text)
                .map(Filter::Sql)
                .map_err(|error| format!("SqlFilter.SqlExpression: {error}")),
            Self::Correlation(filter) => filter.compile().map(Filter::Correlation),
        }
    }
}

impl ConfiguredCorrelationFilter {
    fn compile(&self) -> Result<CorrelationFilter, String> {
        let properties = self.properties.iter();
        let properties = properties.map(|(name, value)| Ok((name.clone(), value.scalar()?.into())));
        let fields = CorrelationFields {
            correlation_id: self.correlation_id.clone(),
            message_id: self.message_id.clone(),
            to: self.to.clone(),
            reply_to: self.reply_to.clone(),
            label: self.label.clone(),
            session_id: self.session_id.clone(),
            reply_to_session_id: self.reply_to_session_id.clone(),
            content_type: self.content_type.clone(),
            properties: properties.collect::<Result<_, String>>()?,
        };
        CorrelationFilter::new(fields).map_err(|error| error.to_string())
    }
}

impl Constant {
    /// Returns the value that it is compared with.
    fn scalar(&self) -> Result<Scalar<'static>, String> {
        Ok(match self {
            Self::Boolean(value) => Scalar::Boolean(*value),
            Self::DateTime(ticks) => Scalar::Timestamp(*ticks),
            Self::Duration(ticks) => Scalar::Duration(*ticks),
            Self::Number(number) => match (number.parse::<i128>(), number.parse()) {
                (Ok(integer), Ok(double)) => {
                    Scalar::from_integer(integer).unwrap_or(Scalar::Double(double))
                }
                (_, Ok(double)) => Scalar::Double(double),
                (_, Err(_)) => return Err(format!("'{number}' is no number")),
            },
            Self::Text(text) => Scalar::Text(text.clone().into()),
            Self::Uuid(bytes) => Scalar::Uuid(*bytes),
        })
    }
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

impl From<QueueProperties> for TopicProperties {
    /// A topic's properties are some of a queue's, with the same names and defaults.
    fn from(all: QueueProperties) -> Self {
        Self {
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
}

/// What is right for `FilterType`.
const FILTER_TYPES: &str = "\"Sql\" or \"Correlation\"";

impl ConfigReader<'_> {
    pub(super) fn topic(&mut self, at: &At<'_>) -> Option<ConfiguredTopic> {
        self.object_of(at, &TOPIC)?;
        let name = self.name(&at.key("Name"));
        let properties = self.properties(&at.key("Properties"), Owner::Topic).into();
        self.expiring.topics += usize::from(self.expires(at));
        let mut names = Names::default();
        let mut subscriptions = Vec::new();
        let topic = name.as_deref().unwrap_or_default();
        for subscription in self.items(&at.key("Subscriptions"), "an array of subscriptions") {
            let forwards = self.forwards.len();
            let subscription = self.subscription(&subscription, &mut names);
            if let Some(subscription) = subscription {
                let path = address::subscription(topic, &subscription.name);
                // What comes to its topic comes to it.
                self.warn_of_circles(forwards, &[topic, &path]);
                self.names.insert(address::key(&path));
                subscriptions.push(subscription);
            }
        }
        let authorization = self.authorization(at);
        Some(ConfiguredTopic {
            position: self.position(at),
            name: name?,
            properties,
            subscriptions,
            authorization,
        })
    }

    fn subscription(&mut self, at: &At<'_>, names: &mut Names) -> Option<Subscription> {
        self.object_of(at, &["Name", "Properties", "Rules"])?;
        let name = self.part_name(&at.key("Name"), names, "subscription of the topic");
        let properties = self.properties(&at.key("Properties"), Owner::Subscription);
        let mut names = Names::default();
        let mut rules = Vec::new();
        for rule in self.items(&at.key("Rules"), "an array of rules") {
            rules.extend(self.rule(&rule, &mut names));
        }
        self.expiring.subscriptions += usize::from(self.expires(at));
        Some(Subscription {
            position: self.position(at),
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
            let allowed = "statements such as SET color = 'red'; REMOVE size";
            self.expression(&action, allowed, |text| Action::parse(text).map(drop))
        };
        Some(ConfiguredRule {
            name: name?,
            filter: filter?,
            action,
        })
    }

    /// Reads a filter. One of a type that is not known takes all messages, as in the emulator (`emulator.md#configuration-file`).
    fn filter(&mut self, properties: &At<'_>) -> Option<ConfiguredFilter> {
        let kind = properties.key("FilterType");
        let (sql, correlation) = ("SqlFilter", "CorrelationFilter");
        let has = |name: &str| !properties.key(name).is_absent();
        if kind.is_absent() {
            return self.filter_without_type(properties);
        }
        let text = self.string(&kind, FILTER_TYPES)?;
        let known = ["Sql", "Correlation"];
        let known = known.into_iter().find(|it| it.eq_ignore_ascii_case(text));
        if let Some(known) = known.filter(|known| *known != text) {
            self.warn(
                &kind,
                format!("\"{text}\", which is read as \"{known}\""),
                FILTER_TYPES,
            );
        }
        let (wanted, other) = match known.unwrap_or(text) {
            "Sql" => (sql, correlation),
            "Correlation" => (correlation, sql),
            // Its contrary would be the result.
            "FalseFilter" | "False" => {
                self.mistake(&kind, "\"Sql\" with the SqlExpression 1=0");
                return None;
            }
            name => {
                let found = format!("\"{name}\", which takes all messages, as $Default does");
                self.warn(&kind, found, FILTER_TYPES);
                return Some(ConfiguredFilter::All);
            }
        };
        let taken = if !has(wanted) && has(other) {
            let found = format!("no \"{wanted}\", and a \"{other}\", which is used");
            self.warn(
                &kind,
                found,
                &format!("a \"{wanted}\", or the other FilterType"),
            );
            other
        } else if has(wanted) {
            wanted
        } else {
            let filter = properties.key(wanted);
            let allowed = if wanted == sql {
                "a SqlFilter with a SqlExpression, as FilterType is \"Sql\""
            } else {
                "a CorrelationFilter with one property at least, as FilterType is \"Correlation\""
            };
            self.mistake(&filter, allowed);
            return None;
        };
        let filter = properties.key(taken);
        if taken == sql {
            self.sql(&filter)
        } else {
            self.correlation(&filter).map(ConfiguredFilter::Correlation)
        }
    }

    /// Reads a filter whose type is not given: the filter that is there says which is meant. None takes all messages.
    fn filter_without_type(&mut self, properties: &At<'_>) -> Option<ConfiguredFilter> {
        let kind = properties.key("FilterType");
        let [sql, correlation] =
            ["SqlFilter", "CorrelationFilter"].map(|name| properties.key(name));
        let is_given = |at: &At<'_>| {
            let is_empty = at
                .value
                .and_then(Value::as_object)
                .is_some_and(Map::is_empty);
            !at.is_absent() && !is_empty
        };
        let used = |name: &str| format!("nothing, and a \"{name}\", which is used");
        match (is_given(&sql), is_given(&correlation)) {
            (true, true) => {
                self.mistake(&kind, FILTER_TYPES);
                None
            }
            (true, false) => {
                self.warn(&kind, used("SqlFilter"), "\"Sql\"");
                self.sql(&sql)
            }
            (false, true) => {
                self.warn(&kind, used("CorrelationFilter"), "\"Correlation\"");
                self.correlation(&correlation)
                    .map(ConfiguredFilter::Correlation)
            }
            (false, false) => {
                let found = "nothing, and no filter, which takes all messages, as $Default does";
                self.warn(&kind, found.to_owned(), FILTER_TYPES);
                Some(ConfiguredFilter::All)
            }
        }
    }

    fn sql(&mut self, at: &At<'_>) -> Option<ConfiguredFilter> {
        let allowed = "a condition such as color = 'red' AND size > 3";
        let compile = |text: &str| SqlFilter::parse(text).map(drop);
        let expression = self.expression(at, allowed, compile);
        expression.map(ConfiguredFilter::Sql)
    }

    /// Reads the `SqlExpression` of a filter or an action, and has it compiled.
    fn expression<E: ToString>(
        &mut self,
        at: &At<'_>,
        allowed: &str,
        compile: impl FnOnce(&str) -> Result<(), E>,
    ) -> Option<String> {
        // The last two have no effect in the service either.
        let known = [
            "SqlExpression",
            "CompatibilityLevel",
            "RequiresPreprocessing",
        ];
        self.object_of(at, &known)?;
        let at = at.key("SqlExpression");
        let text = self.string(&at, allowed)?;
        if let Err(error) = compile(text) {
            self.refused(&at, &error.to_string(), allowed);
            return None;
        }
        Some(text.to_owned())
    }

    fn correlation(&mut self, at: &At<'_>) -> Option<ConfiguredCorrelationFilter> {
        self.object_of(at, &CORRELATION)?;
        let before = self.mistake_count();
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
        if filter.compile().is_err() {
            // One whose values are all wrong is told of these.
            if self.mistake_count() == before {
                self.mistake(at, "a filter that names at least one property");
            }
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
                Value::Bool(value) => Some(Constant::Boolean(*value)),
                Value::Number(number) => Some(Constant::Number(number.to_string())),
                Value::String(text) => Some(Constant::Text(text.clone())),
                Value::Object(_) => self.typed(&at.key(name)),
                Value::Null => None,
                Value::Array(_) => {
                    let allowed =
                        "a string, a number, true, false, or an object with Type and Value";
                    self.mistake(&at.key(name), allowed);
                    None
                }
            };
            constants.extend(constant.map(|constant| (name.clone(), constant)));
        }
        constants
    }

    /// Reads a value of a type that JSON does not have: our extension of the emulator's file.
    fn typed(&mut self, at: &At<'_>) -> Option<Constant> {
        const TYPES: &str = "\"dateTime\", \"duration\", \"uuid\" or \"double\"";
        self.object_of_only(at, &["Type", "Value"])?;
        let kind = at.key("Type");
        let kind_name = self.string(&kind, TYPES)?;
        let value = at.key("Value");
        let text = value.value.and_then(Value::as_str);
        let ticks = value.value.and_then(Value::as_i64);
        let (read, allowed) = match kind_name {
            "dateTime" => (
                ticks
                    .or_else(|| times::date_time(text?))
                    .map(Constant::DateTime),
                "a time such as \"2026-11-23T12:00:00Z\", or a number of 100 ns since 1970",
            ),
            "duration" => (
                ticks
                    .or_else(|| times::duration(text?))
                    .map(Constant::Duration),
                "an ISO 8601 duration such as \"PT90S\", or a number of 100 ns",
            ),
            "uuid" => (
                text.and_then(uuid).map(Constant::Uuid),
                "32 hexadecimal digits with hyphens, such as \"f81d4fae-7dec-11d0-a765-00a0c91e6bf6\"",
            ),
            "double" => {
                let known = text.filter(|text| ["NaN", "inf", "-inf"].contains(text));
                (
                    known.map(|text| Constant::Number(text.to_owned())),
                    "\"NaN\", \"inf\" or \"-inf\"; other numbers need no type",
                )
            }
            _ => {
                self.mistake(&kind, TYPES);
                return None;
            }
        };
        if read.is_none() {
            self.mistake(&value, allowed);
        }
        read
    }

    /// Reads the name of a subscription or a rule, which must be unique in its parent without case.
    fn part_name(&mut self, at: &At<'_>, names: &mut Names, what: &str) -> Option<String> {
        let rule = address::PART_NAME_RULE;
        let allowed = format!("a name that no other {what} has, of {rule}");
        let name = self.string(at, &allowed)?;
        if !address::is_part_name(name) || !names.insert(address::key(name)) {
            self.mistake(at, &allowed);
            return None;
        }
        Some(name.to_owned())
    }
}

/// Returns a value of a correlation filter in the form in which a file has it; `None` if a file cannot have it.
#[must_use]
pub fn constant_to_json(value: &Scalar<'_>) -> Option<Value> {
    let typed = |kind: &str, value: Value| json!({"Type": kind, "Value": value});
    let ticked =
        |text: Option<String>, ticks: i64| text.map_or_else(|| Value::from(ticks), Value::from);
    match value {
        Scalar::Boolean(value) => Some(Value::from(*value)),
        Scalar::Double(value) if value.is_finite() => Some(Value::from(*value)),
        Scalar::Double(value) => Some(typed("double", value.to_string().into())),
        Scalar::Duration(ticks) => {
            let text = times::write_duration(*ticks);
            Some(typed("duration", ticked(text, *ticks)))
        }
        Scalar::Long(value) => Some(Value::from(*value)),
        Scalar::Text(text) => Some(Value::from(text.as_ref())),
        Scalar::Timestamp(ticks) => {
            let text = times::write_date_time(*ticks);
            Some(typed("dateTime", ticked(text, *ticks)))
        }
        Scalar::Ulong(value) => Some(Value::from(*value)),
        Scalar::Uuid(bytes) => Some(typed("uuid", hyphenated(*bytes).into())),
        // Nothing equals them.
        Scalar::Null | Scalar::Opaque(_) => None,
    }
}

/// Reads a UUID as it is written.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok()?;
    let bytes = number.to_be_bytes();
    // With its hyphens where they belong.
    hyphenated(bytes)
        .eq_ignore_ascii_case(text)
        .then_some(bytes)
}
