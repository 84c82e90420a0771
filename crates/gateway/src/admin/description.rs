//! Descriptions of entities, as clients write them (`administration.md#queuedescription`).
//!
//! The syntax of an element's value is checked here; the broker checks which values an entity may
//! have.

use super::refusal::AdminError;
use super::text;
use super::xml::{Element, wrong};
use jitney_base::rights::{AuthorizationRule, Key, Rights};
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::namespace::administration::Properties;
use jitney_queue::EntityKind;

const WHOLE_NUMBER: &str = "a whole number, not negative";

/// Returns the kind of entity that an element describes.
pub(super) fn kind(element: &Element) -> Option<EntityKind> {
    match element.name.as_str() {
        "QueueDescription" => Some(EntityKind::Queue),
        "TopicDescription" => Some(EntityKind::Topic),
        "SubscriptionDescription" => Some(EntityKind::Subscription),
        _ => None,
    }
}

/// Reads the properties of an entity. Read-only ones are ignored.
pub(super) fn read(element: &Element) -> Result<Properties, AdminError> {
    let boolean = |name| element.value_of(name, "true or false", text::parse_boolean);
    let number = |name| element.value_of(name, WHOLE_NUMBER, |text| text.parse::<u64>().ok());
    Ok(Properties {
        lock_duration: duration(element, "LockDuration")?,
        max_size_megabytes: number("MaxSizeInMegabytes")?,
        requires_duplicate_detection: boolean("RequiresDuplicateDetection")?,
        requires_session: boolean("RequiresSession")?,
        default_time_to_live: duration(element, "DefaultMessageTimeToLive")?,
        dead_letter_on_expiration: boolean("DeadLetteringOnMessageExpiration")?,
        dead_letter_on_filter_error: boolean("DeadLetteringOnFilterEvaluationExceptions")?,
        duplicate_window: duration(element, "DuplicateDetectionHistoryTimeWindow")?,
        max_delivery_count: element
            .value_of("MaxDeliveryCount", WHOLE_NUMBER, |text| text.parse().ok())?,
        batched_operations: boolean("EnableBatchedOperations")?,
        authorization: authorization(element)?,
        status: element.value_of(
            "Status",
            "Active, Disabled, ReceiveDisabled or SendDisabled",
            text::parse_status,
        )?,
        forward_to: element.text_of("ForwardTo")?.map(innermost),
        forward_dead_letters_to: element
            .text_of("ForwardDeadLetteredMessagesTo")?
            .map(innermost),
        user_metadata: element.text_of("UserMetadata")?,
        supports_ordering: boolean("SupportOrdering")?,
        auto_delete_on_idle: duration(element, "AutoDeleteOnIdle")?,
        partitioned: boolean("EnablePartitioning")?,
        express: boolean("EnableExpress")?,
        max_message_kilobytes: number("MaxMessageSizeInKilobytes")?,
    })
}

fn duration(element: &Element, name: &str) -> Result<Option<Millis>, AdminError> {
    const ALLOWED: &str = "an ISO 8601 duration, such as PT1M";
    element.value_of(name, ALLOWED, text::parse_duration)
}

/// Returns the URL inside another one: Java puts its own in front of those that are no `https`, and
/// so also of URLs that it was sent.
fn innermost(url: String) -> String {
    let scheme = url.rfind("://").and_then(|end| url.get(..end)?.rfind('/'));
    match scheme.and_then(|before| url.get(before + 1..)) {
        Some(inner) => inner.to_owned(),
        None => url,
    }
}

fn authorization(element: &Element) -> Result<Option<Vec<AuthorizationRule>>, AdminError> {
    let Some(rules) = element.child("AuthorizationRules")? else {
        return Ok(None);
    };
    let rules = rules.children("AuthorizationRule").map(authorization_rule);
    rules.collect::<Result<_, _>>().map(Some)
}

fn authorization_rule(element: &Element) -> Result<AuthorizationRule, AdminError> {
    const RULE: &str = "SharedAccessAuthorizationRule";
    if let Some(class) = &element.class
        && class != RULE
    {
        return Err(element.wrong(class, RULE));
    }
    let needed = |name| {
        let text = element.text_of(name)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| element.missing(name))
    };
    let secondary = element.text_of("SecondaryKey")?;
    let time = |name| {
        // JavaScript sends empty elements for properties that are not set.
        let text = element
            .text_of(name)?
            .filter(|text| !text.trim().is_empty());
        let parsed = text.map(|text| {
            let ticks = text::parse_time(text.trim()).ok_or(text)?;
            Ok(Timestamp::from_millis(ticks.div_euclid(10_000)))
        });
        parsed.transpose().map_err(|text: String| {
            let allowed = "a time, such as 2026-01-31T12:00:00Z";
            wrong(name, &text, allowed)
        })
    };
    Ok(AuthorizationRule {
        name: needed("KeyName")?,
        rights: rights(element)?,
        primary_key: Key::new(needed("PrimaryKey")?),
        secondary_key: secondary.filter(|key| !key.is_empty()).map(Key::new),
        created_at: time("CreatedTime")?,
        modified_at: time("ModifiedTime")?,
    })
}

/// Reads rights. `Manage` includes the others.
fn rights(element: &Element) -> Result<Rights, AdminError> {
    const ALLOWED: &str = "one or more of Listen, Manage and Send";
    let all = element.child("Rights")?;
    let mut rights = Rights::default();
    for right in all.into_iter().flat_map(|all| all.children("AccessRights")) {
        match right.text().trim() {
            "Listen" => rights.listen = true,
            "Manage" => rights = Rights::ALL,
            "Send" => rights.send = true,
            other => return Err(right.wrong(other, ALLOWED)),
        }
    }
    if rights == Rights::default() {
        return Err(element.missing("Rights"));
    }
    Ok(rights)
}
