//! What the operator wrote: the emulator's `Config.json`, without the emulator's limits
//! (`emulator.md` A.2).
//!
//! Comments and trailing commas are allowed, unknown keys are passed over. Every mistake is told,
//! with its place in the file, what was found and what is allowed there.

mod topics;

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::address;
use crate::limits;
use crate::time::Millis;

pub use topics::{Constant, CorrelationFilter, Filter, Rule, Subscription, Topic, TopicProperties};

/// The entities of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Queues, in the order of the file.
    pub queues: Vec<Queue>,
    /// Topics, in the order of the file.
    pub topics: Vec<Topic>,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its path.
    pub name: String,
    /// Its properties.
    pub properties: QueueProperties,
}

/// A queue's properties; the defaults are the emulator's.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub status: Status,
    /// `RequiresSession`.
    pub requires_session: bool,
    /// `RequiresDuplicateDetection`.
    pub requires_duplicate_detection: bool,
    /// `DuplicateDetectionHistoryTimeWindow`.
    pub duplicate_detection_window: Millis,
    /// `ForwardTo`.
    pub forward_to: Option<String>,
    /// `ForwardDeadLetteredMessagesTo`.
    pub forward_dead_lettered_to: Option<String>,
}

/// `Status`: what an entity may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Sends and receives.
    Active,
    /// Neither.
    Disabled,
    /// Sends only.
    ReceiveDisabled,
    /// Receives only.
    SendDisabled,
}

/// Something in the file that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where: `UserConfig.Namespaces[0].Queues[3].Properties.LockDuration`, or a line and column.
    pub place: String,
    /// What stands there.
    pub found: String,
    /// What may stand there.
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
            status: Status::Active,
            requires_session: false,
            requires_duplicate_detection: false,
            duplicate_detection_window: Millis::from_secs(20),
            forward_to: None,
            forward_dead_lettered_to: None,
        }
    }
}

impl Default for Config {
    /// The entities of the emulator's shipped file (`protocol.md` §1.6).
    fn default() -> Self {
        let queue = Queue {
            name: "queue.1".to_owned(),
            properties: QueueProperties::default(),
        };
        let subscription = Subscription {
            name: "subscription.1".to_owned(),
            properties: QueueProperties::default(),
            rules: Vec::new(),
        };
        let topic = Topic {
            name: "topic.1".to_owned(),
            properties: TopicProperties::default(),
            subscriptions: vec![subscription],
        };
        Self {
            queues: vec![queue],
            topics: vec![topic],
        }
    }
}

/// Reads a `Config.json`.
///
/// # Errors
///
/// All mistakes that are in it.
pub fn parse(text: &str) -> Result<Config, Vec<Mistake>> {
    let options = jsonc_parser::ParseOptions::default();
    let value: Value = match jsonc_parser::parse_to_serde_value(text, &options) {
        Ok(value) => value,
        Err(error) => {
            let (line, column) = (error.line_display(), error.column_display());
            return Err(vec![Mistake {
                place: format!("line {line}, column {column}"),
                found: error.kind().to_string(),
                allowed: "JSON, with comments and trailing commas".to_owned(),
            }]);
        }
    };
    let mut reader = Reader::default();
    let root = At {
        path: String::new(),
        value: Some(&value),
    };
    let config = reader.config(&root);
    if reader.mistakes.is_empty() {
        Ok(config)
    } else {
        Err(reader.mistakes)
    }
}

/// A place in the file and what stands there, if anything does.
#[derive(Debug, Clone)]
struct At<'a> {
    path: String,
    value: Option<&'a Value>,
}

impl At<'_> {
    fn key(&self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        let map = self.value.and_then(Value::as_object);
        Self {
            path: format!("{}{dot}{name}", self.path),
            value: map.and_then(|map| map.get(name)),
        }
    }

    /// Returns whether nothing stands there; a null counts as nothing.
    fn is_absent(&self) -> bool {
        self.value.is_none_or(Value::is_null)
    }
}

/// Names that are taken, in the form that compares without case.
type Names = BTreeSet<String>;

/// Collects mistakes; where there is one, it goes on with a default.
#[derive(Debug, Default)]
struct Reader {
    mistakes: Vec<Mistake>,
    names: Names,
}

impl Reader {
    fn config(&mut self, root: &At<'_>) -> Config {
        let user = root.key("UserConfig");
        self.object(&user);
        let namespaces = user.key("Namespaces");
        let mut config = Config {
            queues: Vec::new(),
            topics: Vec::new(),
        };
        if namespaces.value.and_then(Value::as_array).map(Vec::len) != Some(1) {
            self.mistake(&namespaces, "an array with exactly one namespace");
            return config;
        }
        for namespace in self.items(&namespaces, "an array with one namespace") {
            self.object(&namespace);
            for queue in self.items(&namespace.key("Queues"), "an array of queues") {
                config.queues.extend(self.queue(&queue));
            }
            for topic in self.items(&namespace.key("Topics"), "an array of topics") {
                config.topics.extend(self.topic(&topic));
            }
        }
        config
    }

    /// Returns the items of an array; none where there is none.
    fn items<'a>(&mut self, at: &At<'a>, allowed: &str) -> Vec<At<'a>> {
        let Some(items) = at.value.and_then(Value::as_array) else {
            if !at.is_absent() {
                self.mistake(at, allowed);
            }
            return Vec::new();
        };
        let items = items.iter().enumerate();
        items
            .map(|(index, value)| At {
                path: format!("{}[{index}]", at.path),
                value: Some(value),
            })
            .collect()
    }

    fn queue(&mut self, at: &At<'_>) -> Option<Queue> {
        self.object(at)?;
        // Both are read before either is given up: every mistake is told.
        let name = self.name(&at.key("Name"));
        let properties = self.queue_properties(&at.key("Properties"));
        Some(Queue {
            name: name?,
            properties,
        })
    }

    fn queue_properties(&mut self, at: &At<'_>) -> QueueProperties {
        let default = QueueProperties::default();
        if at.is_absent() {
            return default;
        }
        self.object(at);
        let lock = at.key("LockDuration");
        let live = at.key("DefaultMessageTimeToLive");
        let window = at.key("DuplicateDetectionHistoryTimeWindow");
        let size = self.number(
            &at.key("MaxMessageSizeInKilobytes"),
            1,
            limits::MESSAGE_SIZE_MAX / 1024,
        );
        let deliveries = self.number(&at.key("MaxDeliveryCount"), 1, 2_147_483_647);
        QueueProperties {
            lock_duration: self.duration(&lock).unwrap_or(default.lock_duration),
            default_time_to_live: self.duration(&live).unwrap_or(default.default_time_to_live),
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
                .duration(&window)
                .unwrap_or(default.duplicate_detection_window),
            forward_to: self.optional_name(&at.key("ForwardTo")),
            forward_dead_lettered_to: self.optional_name(&at.key("ForwardDeadLetteredMessagesTo")),
        }
    }

    /// Reads the name of an entity, which no other may have in whatever case.
    fn name(&mut self, at: &At<'_>) -> Option<String> {
        const ALLOWED: &str = "a name of 1 to 260 characters that begins and ends with a letter or \
                               a digit, with letters, digits and any of . - _ ~ / between";
        let name = self.string(at, ALLOWED)?;
        if !is_name(name) {
            self.mistake(at, ALLOWED);
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
        if !is_name(name) {
            self.mistake(at, ALLOWED);
            return None;
        }
        Some(name.to_owned())
    }

    fn duration(&mut self, at: &At<'_>) -> Option<Millis> {
        const ALLOWED: &str = "an ISO 8601 duration of more than nothing, for example \"PT1M\"";
        if at.is_absent() {
            return None;
        }
        let duration = duration(self.string(at, ALLOWED)?);
        if duration.is_none() {
            self.mistake(at, ALLOWED);
        }
        duration
    }

    fn number(&mut self, at: &At<'_>, min: u64, max: u64) -> Option<u64> {
        let value = at.value.filter(|value| !value.is_null())?;
        let number = value.as_u64().filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.mistake(at, &format!("a whole number from {min} to {max}"));
        }
        number
    }

    fn boolean(&mut self, at: &At<'_>) -> bool {
        match at.value {
            None | Some(Value::Null) => false,
            Some(Value::Bool(value)) => *value,
            Some(_) => {
                self.mistake(at, "true or false");
                false
            }
        }
    }

    fn status(&mut self, at: &At<'_>) -> Status {
        const ALLOWED: &str = "\"Active\", \"Disabled\", \"SendDisabled\" or \"ReceiveDisabled\"";
        if at.is_absent() {
            return Status::Active;
        }
        match self.string(at, ALLOWED) {
            Some("Active") | None => Status::Active,
            Some("Disabled") => Status::Disabled,
            Some("SendDisabled") => Status::SendDisabled,
            Some("ReceiveDisabled") => Status::ReceiveDisabled,
            Some(_) => {
                self.mistake(at, ALLOWED);
                Status::Active
            }
        }
    }

    fn string<'a>(&mut self, at: &At<'a>, allowed: &str) -> Option<&'a str> {
        let text = at.value.and_then(Value::as_str);
        if text.is_none() {
            self.mistake(at, allowed);
        }
        text
    }

    fn object<'a>(&mut self, at: &At<'a>) -> Option<&'a Map<String, Value>> {
        let map = at.value.and_then(Value::as_object);
        if map.is_none() {
            self.mistake(at, "an object");
        }
        map
    }

    fn mistake(&mut self, at: &At<'_>, allowed: &str) {
        // Lists and objects would fill the screen, and their place says which is meant.
        let found = match at.value {
            None => "nothing".to_owned(),
            Some(Value::Array(items)) => format!("an array of {}", items.len()),
            Some(Value::Object(_)) => "an object".to_owned(),
            Some(value) => value.to_string(),
        };
        let (place, allowed) = (at.path.clone(), allowed.to_owned());
        self.mistakes.push(Mistake {
            place,
            found,
            allowed,
        });
    }
}

/// Names as Azure allows them: `~` too, which the emulator does not (`protocol.md` §1.6).
fn is_name(name: &str) -> bool {
    let ends = |c: char| c.is_alphanumeric();
    name.chars().count() <= limits::PATH_LENGTH_MAX
        && name.starts_with(ends)
        && name.ends_with(ends)
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || ".-_~/".contains(c))
}

/// Reads an ISO 8601 duration, a year counted as 365 days and a month as 30, as .NET does it. What
/// is longer than jiff's longest, as Azure's `P10675199DT2H48M5.4775807S` is, is [`Millis::MAX`].
fn duration(text: &str) -> Option<Millis> {
    /// The days of jiff's longest span.
    const DAYS_MAX: u64 = 7_304_484;
    // jiff reads words too, "1 minute" for one.
    let digits = text.strip_prefix('P')?;
    if let Some((days, _)) = digits.split_once('D')
        && days.parse::<u64>().is_ok_and(|days| DAYS_MAX < days)
    {
        return Some(Millis::MAX);
    }
    let span: jiff::Span = text.parse().ok()?;
    if span.is_negative() {
        return None;
    }
    let days = i64::from(span.get_years()) * 365
        + i64::from(span.get_months()) * 30
        + i64::from(span.get_weeks()) * 7
        + i64::from(span.get_days());
    let hours = days * 24 + i64::from(span.get_hours());
    let seconds = hours * 3_600 + span.get_minutes() * 60 + span.get_seconds();
    let millis = Millis::from_millis(seconds * 1_000 + span.get_milliseconds());
    (millis != Millis::ZERO).then_some(millis)
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
            r#"{"DefaultMessageTimeToLive":"P10675199DT2H48M5.4775807S","MaxDeliveryCount":2000,"LockDuration":"PT1S"}"#,
        );
        let properties = parse(&text).unwrap().queues.remove(0).properties;
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
                &place("Properties.MaxDeliveryCount: found 0; allowed: a whole number from 1"),
                &place("Properties.LockDuration: found \"1 minute\"; allowed: an ISO 8601"),
                &place("Properties.Status: found \"Off\"; allowed: \"Active\""),
                &place("Properties.RequiresSession: found \"no\"; allowed: true or false"),
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
            &["UserConfig.Namespaces: found an array of 0; allowed: an array with exactly one"],
        );
        check(
            r#"{"UserConfig":{"Namespaces":[{"Queues":[{"Properties":{"LockDuration":7}}],"Topics":7}]}}"#,
            &[
                "UserConfig.Namespaces[0].Queues[0].Name: found nothing",
                "UserConfig.Namespaces[0].Queues[0].Properties.LockDuration: found 7",
                "UserConfig.Namespaces[0].Topics: found 7; allowed: an array of topics",
            ],
        );
        check("{\n  \"a\": }", &["line 2, column 8: found"]);
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
        assert!(parse(&names(&["a", "a~b/c.d-e_f"])).is_ok());
        check(
            &names(&["Orders", "orders"]),
            &["UserConfig.Namespaces[0].Queues[1].Name: found \"orders\""],
        );
        check(
            &names(&["a b", "-a", ""]),
            &["UserConfig", "UserConfig", "UserConfig"],
        );
    }

    #[test]
    fn durations_are_read_as_dotnet_reads_them() {
        let check = |text: &str, millis: Option<i64>| {
            assert_eq!(duration(text), millis.map(Millis::from_millis), "{text}");
        };
        check("PT0.5S", Some(500));
        check("P1DT1H1M1S", Some(90_061_000));
        check("P2Y", Some(730 * 86_400_000));
        check("P1M", Some(30 * 86_400_000));
        check("P10675199DT2H48M5.4775807S", Some(i64::MAX));
        check("P99999999D", Some(i64::MAX));
        for text in [
            "",
            "P",
            "PT",
            "PT0S",
            "-PT1M",
            "PT-1M",
            "1 minute",
            "00:01:00",
            "PT0.0000001S",
        ] {
            check(text, None);
        }
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
        let topic = parse(&text).unwrap().topics.remove(0);
        let rules = &topic.subscriptions[0].rules;
        let mut properties = vec![
            ("p".to_owned(), Constant::Text("v".to_owned())),
            ("n".to_owned(), Constant::Number("1.5".to_owned())),
        ];
        properties.sort_by(|a, b| a.0.cmp(&b.0));
        let correlation = CorrelationFilter {
            label: Some("l".to_owned()),
            properties,
            ..CorrelationFilter::default()
        };
        assert_eq!(rules[0].filter, Filter::Correlation(correlation));
        assert_eq!(rules[1].filter, Filter::Sql("1=1".to_owned()));
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
