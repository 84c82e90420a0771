//! The configuration file: the emulator's `Config.json`, without the emulator's limits
//! (`emulator.md#configuration-file`).
//!
//! Comments and trailing commas are allowed, and so are properties of the service without effect
//! here. Every mistake is reported, unknown names too, with its position in the file, the value
//! found and the values allowed.

mod authorization;
mod reader;
mod topics;

use std::fmt;

use jsonc_parser::errors::ParseError;
use jsonc_parser::{CollectOptions, ParseOptions, ParseResult};
use serde_json::Value;

use crate::address;
use crate::limits;
use crate::time::Millis;

use reader::{At, ConfigReader, Durations};
pub use topics::{
    ConfiguredCorrelationFilter, ConfiguredFilter, ConfiguredRule, ConfiguredTopic, Constant,
    Subscription, TopicProperties,
};

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// Namespaces; the first one answers to every host name that no other one has.
    pub namespaces: Vec<Namespace>,
}

/// Returns whether a namespace may have this name: the first label of host names.
#[must_use]
pub fn fits_namespace(name: &str) -> bool {
    (1..=limits::NAMESPACE_NAME_LENGTH).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// The entities of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its name: the first label of the host names that it answers to.
    pub name: String,
    /// `Sku`: our extension of the emulator's file.
    pub sku: Sku,
    /// Queues, in the order of the file.
    pub queues: Vec<ConfiguredQueue>,
    /// Topics, in the order of the file.
    pub topics: Vec<ConfiguredTopic>,
    /// `AuthorizationRules`: our extension of the emulator's file.
    pub authorization: Vec<ConfiguredAuthorizationRule>,
}

impl Namespace {
    /// Returns a namespace without entities and authorization rules.
    #[must_use]
    pub fn empty(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            sku: Sku::default(),
            queues: Vec::new(),
            topics: Vec::new(),
            authorization: Vec::new(),
        }
    }
}

/// The tier of a namespace, which decides how large messages may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sku {
    /// 256 KB.
    Standard,
    /// 1 MB, and up to 100 MB where an entity says so.
    #[default]
    Premium,
}

/// An authorization rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredAuthorizationRule {
    /// `Name`
    pub name: String,
    /// `Rights`
    pub rights: Vec<ConfiguredRight>,
    /// `PrimaryKey`
    pub primary_key: Secret,
    /// `SecondaryKey`
    pub secondary_key: Option<Secret>,
}

/// A right in an authorization rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfiguredRight {
    /// `Send`
    Send,
    /// `Listen`
    Listen,
    /// `Manage`, and with it the others.
    Manage,
}

/// Text that is not shown to debuggers.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Configuration {
    /// Returns whether any namespace or entity has an authorization rule.
    #[must_use]
    pub fn has_authorization(&self) -> bool {
        self.namespaces.iter().any(|namespace| {
            let queues = namespace.queues.iter().map(|queue| &queue.authorization);
            let topics = namespace.topics.iter().map(|topic| &topic.authorization);
            let mut all = queues.chain(topics).flatten();
            !namespace.authorization.is_empty() || all.any(|rules| !rules.is_empty())
        })
    }
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredQueue {
    /// Its path.
    pub name: String,
    /// Its properties.
    pub properties: QueueProperties,
    /// `AuthorizationRules`, if the file has them.
    pub authorization: Option<Vec<ConfiguredAuthorizationRule>>,
}

/// A queue's properties; the defaults are the emulator's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the service's properties"
)]
pub struct QueueProperties {
    /// `LockDuration`.
    pub lock_duration: Millis,
    /// `DefaultMessageTimeToLive`; [`Millis::MAX`] for Azure's largest.
    pub default_time_to_live: Millis,
    /// `MaxDeliveryCount`.
    pub max_delivery_count: u32,
    /// `DeadLetteringOnMessageExpiration`.
    pub dead_lettering_on_expiration: bool,
    /// `MaxSizeInMegabytes`.
    pub max_size_megabytes: u64,
    /// `MaxMessageSizeInKilobytes`.
    pub max_message_size_kilobytes: Option<u64>,
    /// `Status`.
    pub status: ConfiguredStatus,
    /// `RequiresSession`.
    pub requires_session: bool,
    /// `RequiresDuplicateDetection`.
    pub requires_duplicate_detection: bool,
    /// `DuplicateDetectionHistoryTimeWindow`.
    pub duplicate_detection_window: Millis,
    /// `EnablePartitioning`.
    pub enable_partitioning: bool,
    /// `AutoDeleteOnIdle`; [`Millis::MAX`] for never.
    pub auto_delete_on_idle: Millis,
    /// `EnableDeadLetteringOnFilterEvaluationExceptions`: a subscription's only.
    pub dead_lettering_on_filter_evaluation: bool,
    /// `ForwardTo`.
    pub forward_to: Option<String>,
    /// `ForwardDeadLetteredMessagesTo`.
    pub forward_dead_lettered_to: Option<String>,
}

/// `Status`: the operations that an entity allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfiguredStatus {
    /// Sends and receives.
    Active,
    /// Neither.
    Disabled,
    /// Sends only.
    ReceiveDisabled,
    /// Receives only.
    SendDisabled,
}

/// A mistake in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Its line, counted from 1; for a missing value, the line of the object it is missing in.
    pub line: usize,
    /// The character in that line, counted from 1.
    pub column: usize,
    /// Its path: `UserConfig.Namespaces[0].Queues[3].Properties.LockDuration`.
    pub place: String,
    /// The value found.
    pub found: String,
    /// The values allowed.
    pub allowed: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: found {}; allowed: {}",
            self.place, self.found, self.allowed
        )
    }
}

impl Default for QueueProperties {
    fn default() -> Self {
        Self {
            lock_duration: Millis::from_secs(60),
            default_time_to_live: Millis::from_secs(3_600),
            max_delivery_count: 3,
            dead_lettering_on_expiration: false,
            max_size_megabytes: 1_024,
            max_message_size_kilobytes: None,
            status: ConfiguredStatus::Active,
            requires_session: false,
            requires_duplicate_detection: false,
            duplicate_detection_window: Millis::from_secs(20),
            enable_partitioning: false,
            auto_delete_on_idle: Millis::MAX,
            dead_lettering_on_filter_evaluation: true,
            forward_to: None,
            forward_dead_lettered_to: None,
        }
    }
}

impl Default for Configuration {
    /// The entities of the emulator's shipped file (`emulator.md#configuration-file`).
    fn default() -> Self {
        let queue = ConfiguredQueue {
            name: "queue.1".to_owned(),
            properties: QueueProperties::default(),
            authorization: None,
        };
        let subscription = Subscription {
            name: "subscription.1".to_owned(),
            properties: QueueProperties::default(),
            rules: Vec::new(),
        };
        let topic = ConfiguredTopic {
            name: "topic.1".to_owned(),
            properties: TopicProperties::default(),
            subscriptions: vec![subscription],
            authorization: None,
        };
        Self {
            namespaces: vec![Namespace {
                name: "sbemulatorns".to_owned(),
                sku: Sku::default(),
                queues: vec![queue],
                topics: vec![topic],
                authorization: Vec::new(),
            }],
        }
    }
}

/// Reads a `Config.json`.
///
/// # Errors
///
/// All mistakes that are in it.
pub fn parse(text: &str) -> Result<Configuration, Vec<Mistake>> {
    let (value, tree) = match read(text) {
        Ok(read) => read,
        Err(error) => {
            return Err(vec![Mistake {
                line: error.line_display(),
                column: error.column_display(),
                place: "the text".to_owned(),
                found: error.kind().to_string(),
                allowed: "JSON, with comments and trailing commas".to_owned(),
            }]);
        }
    };
    let mut reader = ConfigReader::default();
    let config = reader.config(&At::root(&value, tree.value.as_ref()));
    let mistakes = reader.finish(text);
    if mistakes.is_empty() {
        Ok(config)
    } else {
        Err(mistakes)
    }
}

/// Reads the values of a file, and the syntax tree with their positions.
fn read(text: &str) -> Result<(Value, ParseResult<'_>), ParseError> {
    let options = ParseOptions::default();
    let value = jsonc_parser::parse_to_serde_value(text, &options)?;
    let tree = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options)?;
    Ok((value, tree))
}

/// The names of a queue.
const QUEUE: [&str; 3] = ["Name", "Properties", "AuthorizationRules"];
/// The names of the properties of queues, topics and subscriptions. One kind's properties have no
/// effect on another, and the emulator ignores them.
const PROPERTIES: [&str; 22] = [
    "AutoDeleteOnIdle",
    "DeadLetteringOnMessageExpiration",
    "DefaultMessageTimeToLive",
    "DuplicateDetectionHistoryTimeWindow",
    "EnableDeadLetteringOnFilterEvaluationExceptions",
    "EnablePartitioning",
    "ForwardDeadLetteredMessagesTo",
    "ForwardTo",
    "LockDuration",
    "MaxDeliveryCount",
    "MaxMessageSizeInKilobytes",
    "MaxSizeInMegabytes",
    "RequiresDuplicateDetection",
    "RequiresSession",
    "Status",
    // Properties of the service without effect here.
    "AuthorizationRules",
    "DefaultRuleDescription",
    "EnableBatchedOperations",
    "EnableExpress",
    "EnableSubscriptionPartitioning",
    "SupportOrdering",
    "UserMetadata",
];

const LOCK: Durations = Durations {
    min: limits::LOCK_DURATION_MIN,
    max: limits::LOCK_DURATION_MAX,
    allowed: "from PT5S to PT5M",
};
const TIME_TO_LIVE: Durations = Durations {
    min: limits::TIME_TO_LIVE_MIN,
    max: Millis::MAX,
    allowed: "of PT1S or more",
};
const DUPLICATE_WINDOW: Durations = Durations {
    min: limits::CONFIG_DUPLICATE_WINDOW_MIN,
    max: limits::DUPLICATE_WINDOW_MAX,
    allowed: "from PT5S to P7D",
};
const IDLE: Durations = Durations {
    min: limits::IDLE_DELETION_MIN,
    max: Millis::MAX,
    allowed: "of PT5M or more",
};

impl ConfigReader {
    fn config(&mut self, root: &At<'_>) -> Configuration {
        if !root.is_absent() {
            self.object_of(root, &["UserConfig"]);
        }
        let user = root.key("UserConfig");
        self.object_of(&user, &["Namespaces", "Logging"]);
        let namespaces = user.key("Namespaces");
        let mut config = Configuration {
            namespaces: Vec::new(),
        };
        if namespaces
            .value
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
        {
            self.mistake(&namespaces, "an array with one namespace or more");
            return config;
        }
        let mut names = reader::Names::default();
        for at in self.items(&namespaces, "an array with one namespace or more") {
            let known = ["Name", "Sku", "Queues", "Topics", "AuthorizationRules"];
            self.object_of(&at, &known);
            self.names.clear();
            self.sku = self.sku(&at.key("Sku"));
            let name = self.namespace_name(&at.key("Name"), &mut names);
            let (mut queues, mut topics) = (Vec::new(), Vec::new());
            for queue in self.items(&at.key("Queues"), "an array of queues") {
                queues.extend(self.queue(&queue));
            }
            for topic in self.items(&at.key("Topics"), "an array of topics") {
                topics.extend(self.topic(&topic));
            }
            config.namespaces.push(Namespace {
                name: name.unwrap_or_default(),
                sku: self.sku,
                queues,
                topics,
                authorization: self.authorization(&at).unwrap_or_default(),
            });
        }
        config
    }

    /// Reads the name of a namespace, which must be unique. It is optional if there is one
    /// namespace only.
    fn namespace_name(&mut self, at: &At<'_>, names: &mut reader::Names) -> Option<String> {
        const ALLOWED: &str =
            "a name that no other namespace has, of 1 to 50 letters, digits and -";
        if at.is_absent() {
            return None;
        }
        let name = self.string(at, ALLOWED)?;
        if !fits_namespace(name) || !names.insert(address::key(name)) {
            self.mistake(at, ALLOWED);
            return None;
        }
        Some(name.to_owned())
    }

    fn queue(&mut self, at: &At<'_>) -> Option<ConfiguredQueue> {
        self.object_of(at, &QUEUE)?;
        // Both are read before either is rejected, so that every mistake is reported.
        let name = self.name(&at.key("Name"));
        let properties = self.queue_properties(&at.key("Properties"));
        let authorization = self.authorization(at);
        Some(ConfiguredQueue {
            name: name?,
            properties,
            authorization,
        })
    }

    fn queue_properties(&mut self, at: &At<'_>) -> QueueProperties {
        let default = QueueProperties::default();
        if at.is_absent() {
            return default;
        }
        self.object_of(at, &PROPERTIES);
        let lock = at.key("LockDuration");
        let live = at.key("DefaultMessageTimeToLive");
        let window = at.key("DuplicateDetectionHistoryTimeWindow");
        let size = self.message_size(&at.key("MaxMessageSizeInKilobytes"));
        let deliveries = self.number(&at.key("MaxDeliveryCount"), 1, 2_147_483_647);
        QueueProperties {
            lock_duration: self.duration(&lock, &LOCK).unwrap_or(default.lock_duration),
            default_time_to_live: self
                .duration(&live, &TIME_TO_LIVE)
                .unwrap_or(default.default_time_to_live),
            max_delivery_count: deliveries
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(default.max_delivery_count),
            dead_lettering_on_expiration: self.boolean(&at.key("DeadLetteringOnMessageExpiration")),
            max_size_megabytes: self
                .number(&at.key("MaxSizeInMegabytes"), 1, 1 << 40)
                .unwrap_or(default.max_size_megabytes),
            max_message_size_kilobytes: size,
            status: self.status(&at.key("Status")),
            requires_session: self.boolean(&at.key("RequiresSession")),
            requires_duplicate_detection: self.boolean(&at.key("RequiresDuplicateDetection")),
            duplicate_detection_window: self
                .duration(&window, &DUPLICATE_WINDOW)
                .unwrap_or(default.duplicate_detection_window),
            enable_partitioning: self.boolean(&at.key("EnablePartitioning")),
            auto_delete_on_idle: self.idle(&at.key("AutoDeleteOnIdle")),
            dead_lettering_on_filter_evaluation: {
                let at = at.key("EnableDeadLetteringOnFilterEvaluationExceptions");
                at.is_absent() || self.boolean(&at)
            },
            forward_to: self.optional_name(&at.key("ForwardTo")),
            forward_dead_lettered_to: self.optional_name(&at.key("ForwardDeadLetteredMessagesTo")),
        }
    }

    /// Reads the tier of a namespace.
    fn sku(&mut self, at: &At<'_>) -> Sku {
        const ALLOWED: &str = "\"Standard\" or \"Premium\"";
        if at.is_absent() {
            return Sku::default();
        }
        match self.string(at, ALLOWED) {
            Some("Standard") => Sku::Standard,
            Some("Premium") | None => Sku::Premium,
            Some(_) => {
                self.mistake(at, ALLOWED);
                Sku::default()
            }
        }
    }

    /// Reads the maximum message size of an entity, which the tier of its namespace bounds.
    fn message_size(&mut self, at: &At<'_>) -> Option<u64> {
        let max = match self.sku {
            Sku::Standard => limits::MESSAGE_SIZE_STANDARD,
            Sku::Premium => limits::MESSAGE_SIZE_MAX,
        };
        self.number(at, 1, max / 1024)
    }

    /// Reads the idle time after which an entity is deleted: five minutes at least
    /// (`entities.md#idle-entities`).
    fn idle(&mut self, at: &At<'_>) -> Millis {
        self.duration(at, &IDLE).unwrap_or(Millis::MAX)
    }

    /// Reads the name of an entity, which must be unique without case.
    fn name(&mut self, at: &At<'_>) -> Option<String> {
        let name = self.string(at, address::ENTITY_NAME_RULE)?;
        if !address::is_entity_name(name) {
            self.mistake(at, address::ENTITY_NAME_RULE);
            return None;
        }
        if !self.names.insert(address::key(name)) {
            self.mistake(
                at,
                "a name that no other queue or topic has, whatever its case",
            );
            return None;
        }
        Some(name.to_owned())
    }

    fn optional_name(&mut self, at: &At<'_>) -> Option<String> {
        const ALLOWED: &str = "the name of a queue or a topic, or \"\"";
        if at.is_absent() {
            return None;
        }
        let name = self.string(at, ALLOWED)?;
        if name.is_empty() {
            return None;
        }
        if !address::is_entity_name(name) {
            self.mistake(at, ALLOWED);
            return None;
        }
        Some(name.to_owned())
    }

    fn status(&mut self, at: &At<'_>) -> ConfiguredStatus {
        const ALLOWED: &str = "\"Active\", \"Disabled\", \"SendDisabled\" or \"ReceiveDisabled\"";
        if at.is_absent() {
            return ConfiguredStatus::Active;
        }
        match self.string(at, ALLOWED) {
            Some("Active") | None => ConfiguredStatus::Active,
            Some("Disabled") => ConfiguredStatus::Disabled,
            Some("SendDisabled") => ConfiguredStatus::SendDisabled,
            Some("ReceiveDisabled") => ConfiguredStatus::ReceiveDisabled,
            Some(_) => {
                self.mistake(at, ALLOWED);
                ConfiguredStatus::Active
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(properties: &str) -> String {
        format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Name":"n","Queues":[{{"Name":"q","Properties":{properties}}}]}}],"Logging":{{"Type":"File"}}}}}}"#
        )
    }

    fn check(text: &str, expected: &[&str]) {
        let mistakes = parse(text).err().unwrap_or_default();
        let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), expected.len(), "{lines:#?}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.starts_with(expected), "{line}");
        }
    }

    #[test]
    fn a_namespace_has_a_tier_and_premium_is_the_default() {
        let namespace = |sku: &str, kilobytes: u64| {
            format!(
                r#"{{"UserConfig":{{"Namespaces":[{{"Name":"n"{sku},"Queues":[{{"Name":"q","Properties":{{"MaxMessageSizeInKilobytes":{kilobytes}}}}}]}}]}}}}"#
            )
        };
        let sku = |text: &str| parse(text).unwrap().namespaces[0].sku;
        assert_eq!(sku(&namespace("", 1024)), Sku::Premium);
        assert_eq!(
            sku(&namespace(r#","Sku":"Premium""#, 102_400)),
            Sku::Premium
        );
        assert_eq!(sku(&namespace(r#","Sku":"Standard""#, 256)), Sku::Standard);
        check(
            &namespace(r#","Sku":"Standard""#, 257),
            &["UserConfig.Namespaces[0].Queues[0].Properties.MaxMessageSizeInKilobytes: found 257"],
        );
        check(
            &namespace(r#","Sku":"Basic""#, 1),
            &[r#"UserConfig.Namespaces[0].Sku: found "Basic"; allowed: "Standard" or "Premium""#],
        );
    }

    #[test]
    fn the_emulator_s_file_is_understood_with_comments_and_trailing_commas() {
        let text = r#"{ // the shipped sample
          "UserConfig": { "Namespaces": [ { "Name": "sbemulatorns",
            "Queues": [ { "Name": "queue.1", "Properties": {
               "DeadLetteringOnMessageExpiration": true, "DefaultMessageTimeToLive": "PT30M",
               "LockDuration": "PT5S", "MaxDeliveryCount": 7, "ForwardTo": "", } } ],
            "Topics": [ { "Name": "topic.1", "Subscriptions": [ { "Name": "s", "Rules": [
               { "Name": "r", "Properties": { "FilterType": "Sql", "SqlFilter": { "SqlExpression": "1=1" } } } ] } ] } ] } ],
          "Logging": { "Type": "File" } } }"#;
        let config = parse(text).unwrap();
        let config = &config.namespaces[0];
        assert_eq!(config.topics.len(), 1);
        let properties = &config.queues[0].properties;
        assert_eq!(properties.lock_duration, Millis::from_secs(5));
        assert_eq!(properties.default_time_to_live, Millis::from_secs(1_800));
        assert_eq!(properties.max_delivery_count, 7);
        assert!(properties.dead_lettering_on_expiration);
        assert_eq!(properties.forward_to, None);
    }

    #[test]
    fn the_emulator_s_limits_do_not_hold() {
        let text = queue(
            r#"{"DefaultMessageTimeToLive":"P10675199DT2H48M5.4775807S","MaxDeliveryCount":2000,"LockDuration":"PT5M","DuplicateDetectionHistoryTimeWindow":"P7D"}"#,
        );
        let properties = parse(&text).unwrap().namespaces[0].queues[0]
            .properties
            .clone();
        assert_eq!(properties.default_time_to_live, Millis::MAX);
        assert_eq!(properties.max_delivery_count, 2_000);
    }

    #[test]
    fn every_mistake_is_told_with_its_place() {
        let at = "UserConfig.Namespaces[0].Queues[0]";
        let place = |rest: &str| format!("{at}.{rest}");
        check(
            &queue(
                r#"{"LockDuration":"1 minute","MaxDeliveryCount":0,"RequiresSession":"no","Status":"Off"}"#,
            ),
            &[
                &place("Properties.LockDuration: found \"1 minute\"; allowed: an ISO 8601"),
                &place("Properties.MaxDeliveryCount: found 0; allowed: a whole number from 1"),
                &place("Properties.RequiresSession: found \"no\"; allowed: true or false"),
                &place("Properties.Status: found \"Off\"; allowed: \"Active\""),
            ],
        );
        check(
            &queue("7"),
            &[&place("Properties: found 7; allowed: an object")],
        );
        check(
            "{}",
            &[
                "UserConfig: found nothing",
                "UserConfig.Namespaces: found nothing",
            ],
        );
        check(
            r#"{"UserConfig":{"Namespaces":[]}}"#,
            &["UserConfig.Namespaces: found an array of 0; allowed: an array with one namespace"],
        );
        check(
            r#"{"UserConfig":{"Namespaces":[{"Queues":[{"Properties":{"LockDuration":7}}],"Topics":7}]}}"#,
            &[
                "UserConfig.Namespaces[0].Queues[0].Name: found nothing",
                "UserConfig.Namespaces[0].Queues[0].Properties.LockDuration: found 7",
                "UserConfig.Namespaces[0].Topics: found 7; allowed: an array of topics",
            ],
        );
        check("{\n  \"a\": }", &["the text: found"]);
    }

    #[test]
    fn values_beyond_their_range_and_unknown_names_are_told() {
        let place = |rest: &str| format!("UserConfig.Namespaces[0].Queues[0].{rest}");
        check(
            &queue(
                r#"{"LockDuration":"PT9M","DefaultMessageTimeToLive":"PT0.5S","AutoDeleteOnIdle":"PT1M",
                    "DuplicateDetectionHistoryTimeWindow":"P8D","MaxDeliveryCont":3,"lockDuration":"PT1M",
                    "Colour":"red"}"#,
            ),
            &[
                &place(
                    "Properties.LockDuration: found \"PT9M\"; allowed: an ISO 8601 duration from PT5S to PT5M",
                ),
                &place(
                    "Properties.DefaultMessageTimeToLive: found \"PT0.5S\"; allowed: an ISO 8601 duration of PT1S",
                ),
                &place(
                    "Properties.AutoDeleteOnIdle: found \"PT1M\"; allowed: an ISO 8601 duration of PT5M",
                ),
                &place(
                    "Properties.DuplicateDetectionHistoryTimeWindow: found \"P8D\"; allowed: an ISO",
                ),
                &place(
                    "Properties.MaxDeliveryCont: found a name that is not known; allowed: \"MaxDeliveryCount\"",
                ),
                &place(
                    "Properties.lockDuration: found a name that is not known; allowed: \"LockDuration\"",
                ),
                &place(
                    "Properties.Colour: found a name that is not known; allowed: the names AutoDel",
                ),
            ],
        );
        check(
            r#"{"UserConfig":{"NameSpaces":[],"Namespaces":[{"Queue":[],"Topics":[{"Name":"t","Subscription":[]}]}]}}"#,
            &[
                "UserConfig.NameSpaces: found a name that is not known; allowed: \"Namespaces\"",
                "UserConfig.Namespaces[0].Queue: found a name that is not known; allowed: \"Queues\"",
                "UserConfig.Namespaces[0].Topics[0].Subscription: found a name that is not known; allowed: \"Subscriptions\"",
            ],
        );
        check(
            &topic(
                r#"{"Name":"a","Properties":{"FilterTyp":"Sql","FilterType":"Sql","SqlFilter":{"SqlExpresion":"1=1","SqlExpression":"1=1"}}}"#,
            ),
            &[
                "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0].Properties.FilterTyp: found a name",
                "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0].Properties.SqlFilter.SqlExpresion: found a name",
            ],
        );
    }

    #[test]
    fn what_the_emulator_passes_over_is_no_mistake() {
        // All properties of the emulator's schema and of templates for the service.
        let text = r#"{ "$schema": "https://example.com/Config-schema.json",
          "UserConfig": { "Namespaces": [ { "Name": "sbemulatorns", "_remark": "ours",
            "Queues": [ { "Name": "queue.1", "Properties": {
               "DeadLetteringOnMessageExpiration": false, "DefaultMessageTimeToLive": "PT1H",
               "DuplicateDetectionHistoryTimeWindow": "PT20S", "ForwardDeadLetteredMessagesTo": "",
               "ForwardTo": "", "LockDuration": "PT1M", "MaxDeliveryCount": 3,
               "RequiresDuplicateDetection": false, "RequiresSession": false,
               "EnableBatchedOperations": true, "UserMetadata": "m", "EnableExpress": false } } ],
            "Topics": [ { "Name": "topic.1", "Properties": {
                 "DefaultMessageTimeToLive": "PT1H", "DuplicateDetectionHistoryTimeWindow": "PT20S",
                 "RequiresDuplicateDetection": false, "SupportOrdering": true },
               "Subscriptions": [ { "Name": "subscription.1", "Properties": {
                   "DeadLetteringOnMessageExpiration": false, "DefaultMessageTimeToLive": "PT1H",
                   "LockDuration": "PT1M", "MaxDeliveryCount": 3, "RequiresSession": false,
                   "ForwardDeadLetteredMessagesTo": "", "ForwardTo": "" },
                 "Rules": [ { "Name": "app-prop-filter-1", "Properties": {
                   "FilterType": "Correlation", "CorrelationFilter": {
                     "ContentType": "application/text", "CorrelationId": "id1", "Label": "subject1",
                     "MessageId": "msgid1", "ReplyTo": "someQueue", "ReplyToSessionId": "sessionId",
                     "SessionId": "session1", "To": "xyz", "RequiresPreprocessing": false,
                     "Properties": { "prop3": "value3" } } } },
                   { "Name": "user-prop-filter-1", "Properties": { "FilterType": "Sql",
                     "SqlFilter": { "SqlExpression": "sys.MessageId = '123456'", "CompatibilityLevel": 20 },
                     "Action": { "SqlExpression": "SET sys.To = 'Entity'", "RequiresPreprocessing": true } } } ] } ] } ] } ],
            "Logging": { "Type": "File", "Level": "Trace" } } }"#;
        check(text, &[]);
    }

    #[test]
    fn a_mistake_has_its_line_and_column() {
        let check = |text: &str, expected: &[(usize, usize)]| {
            let mistakes = parse(text).unwrap_err();
            let places = mistakes
                .iter()
                .map(|mistake| (mistake.line, mistake.column));
            assert_eq!(places.collect::<Vec<_>>(), expected, "{mistakes:#?}");
        };
        check("{\n  \"a\": }", &[(2, 8)]);
        check("", &[(1, 1), (1, 1)]);
        check(
            r#"{ "UserConfig": { // comments are counted, ä as one character
                "Namespaces": [{ "Queues": [
                  { "Name": "ü", "Properties": { "LockDuration": 7 } },
                  {}
                ]}]}}"#,
            &[(3, 66), (4, 19)],
        );
    }

    #[test]
    fn a_name_that_stands_twice_is_told() {
        check(
            &queue(r#"{"MaxDeliveryCount":5,"LockDuration":"PT5S","MaxDeliveryCount":"many"}"#),
            &[
                "UserConfig.Namespaces[0].Queues[0].Properties.MaxDeliveryCount: found \"MaxDeliveryCount\" once more; allowed: each name once",
                "UserConfig.Namespaces[0].Queues[0].Properties.MaxDeliveryCount: found \"many\"; allowed: a whole number",
            ],
        );
    }

    #[test]
    fn names_are_azure_s_and_differ_in_more_than_case() {
        let names = |names: &[&str]| {
            let queues: Vec<String> = names
                .iter()
                .map(|name| format!(r#"{{"Name":"{name}"}}"#))
                .collect();
            format!(
                r#"{{"UserConfig":{{"Namespaces":[{{"Queues":[{}]}}]}}}}"#,
                queues.join(",")
            )
        };
        assert!(parse(&names(&["a", "a~b/c.d-e_f", "-a", "a--"])).is_ok());
        check(
            &names(&["Orders", "orders"]),
            &["UserConfig.Namespaces[0].Queues[1].Name: found \"orders\""],
        );
        check(
            &names(&["a b", "a//b", ""]),
            &["UserConfig", "UserConfig", "UserConfig"],
        );
    }

    fn topic(rules: &str) -> String {
        format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Topics":[{{"Name":"t","Subscriptions":[{{"Name":"s","Rules":[{rules}]}}]}}]}}]}}}}"#
        )
    }

    #[test]
    fn topics_have_subscriptions_and_rules() {
        let text = topic(
            r#"{"Name":"a","Properties":{"FilterType":"Correlation","CorrelationFilter":{"Label":"l","Properties":{"p":"v","n":1.5}}}},
               {"Name":"b","Properties":{"FilterType":"Sql","SqlFilter":{"SqlExpression":"1=1"},"Action":{"SqlExpression":"SET a = 1"}}}"#,
        );
        let topic = parse(&text).unwrap().namespaces[0].topics[0].clone();
        let rules = &topic.subscriptions[0].rules;
        let mut properties = vec![
            ("p".to_owned(), Constant::Text("v".to_owned())),
            ("n".to_owned(), Constant::Number("1.5".to_owned())),
        ];
        properties.sort_by(|a, b| a.0.cmp(&b.0));
        let correlation = ConfiguredCorrelationFilter {
            label: Some("l".to_owned()),
            properties,
            ..ConfiguredCorrelationFilter::default()
        };
        assert_eq!(rules[0].filter, ConfiguredFilter::Correlation(correlation));
        assert_eq!(rules[1].filter, ConfiguredFilter::Sql("1=1".to_owned()));
        assert_eq!(rules[1].action.as_deref(), Some("SET a = 1"));
    }

    #[test]
    fn a_rule_that_cannot_be_is_told_and_not_dropped() {
        let place = |rest: &str| {
            format!("UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[{rest}")
        };
        check(
            &topic(
                r#"{"Name":"r","Properties":{"FilterType":"SqlFilter"}},
                   {"Name":"R","Properties":{"FilterType":"Sql"}},
                   {"Name":"c","Properties":{"FilterType":"Correlation","CorrelationFilter":{}}},
                   {"Name":"d"}"#,
            ),
            &[
                &place("0].Properties.FilterType: found \"SqlFilter\"; allowed: \"Sql\""),
                &place("1].Name: found \"R\""),
                &place("1].Properties.SqlFilter: found nothing; allowed: an object"),
                &place("2].Properties.CorrelationFilter: found an object; allowed: a filter"),
                &place("3].Properties: found nothing; allowed: an object"),
            ],
        );
    }
}
