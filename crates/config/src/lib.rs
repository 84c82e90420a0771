//! The configuration file: the emulator's `Config.json`, without the emulator's limits
//! (`emulator.md#configuration-file`).
//!
//! Comments and trailing commas are allowed, and so are properties of the service without effect
//! here. Every mistake is reported with its position in the file, the value found and the values
//! allowed. What the emulator passes over and what has no effect is a warning, unknown names above
//! all: a file with which the emulator starts is one with which a broker starts. Keys without
//! effect are mistakes: the broker would be open.

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

mod authorization;
mod forwards;
pub mod limits;
mod position;
mod reader;
mod times;
mod topics;

use std::fmt;

use jsonc_parser::errors::ParseError;
use jsonc_parser::{CollectOptions, ParseOptions, ParseResult};
use serde_json::Value;

use jitney_base::address;
use jitney_base::time::Millis;

pub use position::Position;
use reader::{At, ConfigReader, Durations};
pub use topics::{
    ConfiguredCorrelationFilter, ConfiguredFilter, ConfiguredRule, ConfiguredTopic, Constant,
    Subscription, TopicProperties, constant_to_json,
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

/// The values of properties that the file does not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Defaults {
    /// The emulator's: a time to live of one hour, three deliveries.
    #[default]
    Emulator,
    /// The service's: messages live for ever, ten deliveries.
    Service,
}

/// Entities of the file that have the emulator's time to live of one hour and no dead-lettering on expiration, because the file
/// says nothing about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expiring {
    /// Queues.
    pub queues: usize,
    /// Topics.
    pub topics: usize,
    /// Subscriptions.
    pub subscriptions: usize,
}

/// What was read from a file.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The configuration, or all mistakes in the order of the file.
    pub config: Result<Configuration, Vec<Mistake>>,
    /// What has no effect, in the order of the file.
    pub warnings: Vec<Mistake>,
    /// Forwarding targets that the file does not have. A broker may have them already.
    pub absent_targets: Vec<Mistake>,
    /// Entities whose messages go after an hour although the file does not say so.
    pub expiring: Expiring,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredQueue {
    /// Where it is in the file.
    pub position: Position,
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

impl QueueProperties {
    /// Returns the properties of an entity of which the file gives none.
    #[must_use]
    pub fn of(defaults: Defaults) -> Self {
        match defaults {
            Defaults::Emulator => Self::default(),
            Defaults::Service => Self {
                default_time_to_live: Millis::MAX,
                max_delivery_count: 10,
                duplicate_detection_window: Millis::from_secs(600),
                ..Self::default()
            },
        }
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
    fn default() -> Self {
        Self::shipped(Defaults::Emulator)
    }
}

impl Configuration {
    /// Returns the entities of the emulator's shipped file (`emulator.md#configuration-file`).
    #[must_use]
    pub fn shipped(defaults: Defaults) -> Self {
        let queue = ConfiguredQueue {
            position: Position::default(),
            name: "queue.1".to_owned(),
            properties: QueueProperties::of(defaults),
            authorization: None,
        };
        let subscription = Subscription {
            position: Position::default(),
            name: "subscription.1".to_owned(),
            properties: QueueProperties::of(defaults),
            rules: Vec::new(),
        };
        let topic = ConfiguredTopic {
            position: Position::default(),
            name: "topic.1".to_owned(),
            properties: QueueProperties::of(defaults).into(),
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

/// Reads a `Config.json`, with the emulator's defaults.
///
/// # Errors
///
/// All mistakes that are in it.
pub fn parse(text: &str) -> Result<Configuration, Vec<Mistake>> {
    check(text, Defaults::Emulator).config
}

/// Reads a `Config.json`. The defaults are for a file that does not name others.
#[must_use]
pub fn check(text: &str, defaults: Defaults) -> Checked {
    // Editors of Windows begin a text with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (value, tree) = match read(text) {
        Ok(read) => read,
        Err(error) => {
            let mistake = Mistake {
                line: error.line_display(),
                column: error.column_display(),
                place: "the text".to_owned(),
                found: format!(
                    "a mistake of JSON ({})",
                    error.kind().to_string().to_lowercase()
                ),
                allowed: "JSON, with comments and trailing commas".to_owned(),
            };
            return Checked {
                config: Err(vec![mistake]),
                warnings: Vec::new(),
                absent_targets: Vec::new(),
                expiring: Expiring::default(),
            };
        }
    };
    let mut reader = ConfigReader::new(text, defaults);
    let config = reader.config(&At::root(&value, tree.value.as_ref()));
    reader.finish(config)
}

/// Reads the values of a file, and the syntax tree with their positions.
fn read(text: &str) -> Result<(Value, ParseResult<'_>), ParseError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let value = jsonc_parser::parse_to_serde_value(text, &options)?;
    let tree = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options)?;
    Ok((value, tree))
}

/// The names of a queue.
const QUEUE: [&str; 3] = ["Name", "Properties", "AuthorizationRules"];
/// The names of the properties of queues, topics and subscriptions.
const PROPERTIES: [&str; 22] = [
    "AutoDeleteOnIdle",
    "DeadLetteringOnFilterEvaluationExceptions",
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
    "DefaultRuleDescription",
    "EnableBatchedOperations",
    "EnableExpress",
    "EnableSubscriptionPartitioning",
    "SupportOrdering",
    "UserMetadata",
];

/// A kind of entity that has properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Queue,
    Topic,
    Subscription,
}

impl Owner {
    /// Returns what it is called in messages.
    const fn shown(self) -> &'static str {
        match self {
            Self::Queue => "a queue",
            Self::Topic => "a topic",
            Self::Subscription => "a subscription",
        }
    }

    /// Returns whether it has a property of [`PROPERTIES`]. Another kind's have no effect, and the emulator ignores them.
    fn has(self, name: &str) -> bool {
        match name {
            "DeadLetteringOnMessageExpiration"
            | "ForwardDeadLetteredMessagesTo"
            | "ForwardTo"
            | "LockDuration"
            | "MaxDeliveryCount"
            | "RequiresSession" => self != Self::Topic,
            "DuplicateDetectionHistoryTimeWindow"
            | "EnableExpress"
            | "EnablePartitioning"
            | "MaxMessageSizeInKilobytes"
            | "MaxSizeInMegabytes"
            | "RequiresDuplicateDetection"
            | "SupportOrdering" => self != Self::Subscription,
            "DeadLetteringOnFilterEvaluationExceptions"
            | "DefaultRuleDescription"
            | "EnableDeadLetteringOnFilterEvaluationExceptions" => self == Self::Subscription,
            "EnableSubscriptionPartitioning" => self == Self::Topic,
            _ => true,
        }
    }
}

const LOCK: Durations = Durations {
    min: jitney_base::limits::LOCK_DURATION_MIN,
    max: jitney_base::limits::LOCK_DURATION_MAX,
    allowed: "from PT1S to PT5M",
};
const TIME_TO_LIVE: Durations = Durations {
    min: jitney_base::limits::TIME_TO_LIVE_MIN,
    max: Millis::MAX,
    allowed: "of PT1S or more",
};
const DUPLICATE_WINDOW: Durations = Durations {
    min: limits::CONFIG_DUPLICATE_WINDOW_MIN,
    max: jitney_base::limits::DUPLICATE_WINDOW_MAX,
    allowed: "from PT5S to P7D",
};
const IDLE: Durations = Durations {
    min: jitney_base::limits::IDLE_DELETION_MIN,
    max: Millis::MAX,
    allowed: "of PT5M or more",
};

impl ConfigReader<'_> {
    fn config(&mut self, root: &At<'_>) -> Configuration {
        if !root.is_absent() {
            self.object_of(root, &["UserConfig"]);
        }
        let user = root.key("UserConfig");
        self.object_of(&user, &["Namespaces", "Logging", "Defaults"]);
        let logging = user.key("Logging");
        if !logging.is_absent() {
            self.object_of(&logging, &["Type"]);
        }
        self.logging(&logging);
        self.defaults(&user.key("Defaults"));
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
        let all = self.items(&namespaces, "an array with one namespace or more");
        let is_only = all.len() == 1;
        for at in all {
            let known = ["Name", "Sku", "Queues", "Topics", "AuthorizationRules"];
            self.object_of(&at, &known);
            self.names.clear();
            self.sku = self.sku(&at.key("Sku"));
            let name = at.key("Name");
            let name = if is_only {
                self.only_name(&name)
            } else {
                self.namespace_name(&name, &mut names)
            };
            let (mut queues, mut topics) = (Vec::new(), Vec::new());
            for queue in self.items(&at.key("Queues"), "an array of queues") {
                queues.extend(self.queue(&queue));
            }
            for topic in self.items(&at.key("Topics"), "an array of topics") {
                topics.extend(self.topic(&topic));
            }
            self.check_forwards();
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

    /// Reads the name of the only namespace. It is optional, and one that cannot be a part of a host name is not used: the emulator
    /// takes any.
    fn only_name(&mut self, at: &At<'_>) -> Option<String> {
        const ALLOWED: &str = "a name of 1 to 50 letters, digits and -";
        if at.is_absent() {
            return None;
        }
        let name = self.string(at, ALLOWED)?;
        if !fits_namespace(name) {
            let found = format!("\"{name}\", which is not used: the namespace has no name");
            self.warn(at, found, ALLOWED);
            return None;
        }
        Some(name.to_owned())
    }

    /// Reads the name of one namespace of several, which must be unique.
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

    /// Reads what the emulator logs, and where. It has no effect here.
    fn logging(&mut self, at: &At<'_>) {
        const ALLOWED: &str = "\"File\", \"Console\", or both with a comma";
        let kind = at.key("Type");
        if kind.is_absent() {
            return;
        }
        let text = self.string(&kind, ALLOWED);
        let mut parts = text.into_iter().flat_map(|text| text.split(','));
        let is_known = |part: &str| {
            let mut known = ["File", "Console"].into_iter();
            known.any(|it| it.eq_ignore_ascii_case(part.trim()))
        };
        if parts.any(|part| !is_known(part)) {
            self.mistake(&kind, ALLOWED);
        }
    }

    /// Reads which defaults properties have that the file does not give: our extension of the emulator's file.
    fn defaults(&mut self, at: &At<'_>) {
        const ALLOWED: &str = "\"emulator\" or \"service\"";
        if at.is_absent() {
            return;
        }
        match self.string(at, ALLOWED) {
            Some("emulator") => self.defaults = Defaults::Emulator,
            Some("service") => self.defaults = Defaults::Service,
            Some(_) => self.mistake(at, ALLOWED),
            None => {}
        }
    }

    fn queue(&mut self, at: &At<'_>) -> Option<ConfiguredQueue> {
        self.object_of(at, &QUEUE)?;
        // Both are read before either is rejected, so that every mistake is reported.
        let name = self.name(&at.key("Name"));
        let forwards = self.forwards.len();
        let properties = self.properties(&at.key("Properties"), Owner::Queue);
        self.warn_of_circles(forwards, &[name.as_deref().unwrap_or_default()]);
        self.expiring.queues += usize::from(self.expires(at));
        let authorization = self.authorization(at);
        Some(ConfiguredQueue {
            position: self.position(at),
            name: name?,
            properties,
            authorization,
        })
    }

    fn properties(&mut self, at: &At<'_>, owner: Owner) -> QueueProperties {
        let default = QueueProperties::of(self.defaults);
        if at.is_absent() {
            return default;
        }
        self.object_of(at, &PROPERTIES);
        self.warn_of_others(at, owner);
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
                // The service's name, and the one that its templates have.
                let [own, other] = [
                    "DeadLetteringOnFilterEvaluationExceptions",
                    "EnableDeadLetteringOnFilterEvaluationExceptions",
                ]
                .map(|name| at.key(name));
                let given = if own.is_absent() { other } else { own };
                given.is_absent() || self.boolean(&given)
            },
            forward_to: self.forward(&at.key("ForwardTo")),
            forward_dead_lettered_to: self.forward(&at.key("ForwardDeadLetteredMessagesTo")),
        }
    }

    /// Returns whether messages of an entity go after the emulator's hour, though the file does not say so.
    fn expires(&mut self, at: &At<'_>) -> bool {
        let properties = at.key("Properties");
        let is_told = |name: &str| !properties.key(name).is_absent();
        self.defaults == Defaults::Emulator
            && !is_told("DefaultMessageTimeToLive")
            && !is_told("DeadLetteringOnMessageExpiration")
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
            Sku::Standard => jitney_base::limits::MESSAGE_SIZE_STANDARD,
            Sku::Premium => jitney_base::limits::MESSAGE_SIZE_MAX,
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
mod tests;
