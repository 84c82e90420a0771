//! The `sys.` properties: those that a message has besides the sender's own.

use super::Facts;
use jitney_base::time::{Millis, TICKS_PER_MILLI, Timestamp};
use jitney_message::{Amendments, Field, Message, Part, Scalar, Setting, same_name};

/// A `sys.` property, by the names of .NET's `BrokeredMessage` and `ServiceBusMessage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    /// One, by its name, that has no value yet: it is given by a lock, or by the queue that gave the message up.
    Absent(&'static str),
    DeliveryCount,
    EnqueuedTime,
    ExpiresAt,
    Field(Field),
    ForcePersistence,
    JmsDeliveryMode,
    JmsExpiration,
    JmsPriority,
    JmsTimestamp,
    PartitionKey,
    ScheduledEnqueueTime,
    SequenceNumber,
    Size,
    State,
    TimeToLive,
    ViaPartitionKey,
}

/// The operations that an action may apply to a `sys.` property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settable {
    /// It is changed.
    Changed(Field),
    /// It is changed; the time of a schedule holds where the copy is forwarded to (`rules.md#actions`).
    Set(Setting),
    /// It is the broker's.
    No,
}

/// Names and what they mean; the older names end in `Utc`, those that begin with `JMS` are for
/// selectors.
const NAMES: [(&str, System); 31] = [
    ("ContentType", System::Field(Field::ContentType)),
    ("CorrelationId", System::Field(Field::CorrelationId)),
    ("DeadLetterSource", System::Absent("DeadLetterSource")),
    ("DeliveryCount", System::DeliveryCount),
    ("EnqueuedSequenceNumber", System::SequenceNumber),
    ("EnqueuedTime", System::EnqueuedTime),
    ("EnqueuedTimeUtc", System::EnqueuedTime),
    ("ExpiresAt", System::ExpiresAt),
    ("ExpiresAtUtc", System::ExpiresAt),
    ("ForcePersistence", System::ForcePersistence),
    ("JMSDeliveryMode", System::JmsDeliveryMode),
    ("JMSExpiration", System::JmsExpiration),
    ("JMSPriority", System::JmsPriority),
    ("JMSTimestamp", System::JmsTimestamp),
    ("Label", System::Field(Field::Label)),
    ("LockToken", System::Absent("LockToken")),
    ("LockedUntil", System::Absent("LockedUntil")),
    ("LockedUntilUtc", System::Absent("LockedUntilUtc")),
    ("MessageId", System::Field(Field::MessageId)),
    ("PartitionKey", System::PartitionKey),
    ("ReplyTo", System::Field(Field::ReplyTo)),
    ("ReplyToSessionId", System::Field(Field::ReplyToSessionId)),
    ("ScheduledEnqueueTime", System::ScheduledEnqueueTime),
    ("ScheduledEnqueueTimeUtc", System::ScheduledEnqueueTime),
    ("SequenceNumber", System::SequenceNumber),
    ("SessionId", System::Field(Field::SessionId)),
    ("Size", System::Size),
    ("State", System::State),
    ("Subject", System::Field(Field::Label)),
    ("TimeToLive", System::TimeToLive),
    ("To", System::Field(Field::To)),
];

impl System {
    /// Returns the property of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        if same_name(name, "ViaPartitionKey") {
            return Some(Self::ViaPartitionKey);
        }
        let mut names = NAMES.iter();
        names
            .find(|(known, _)| same_name(known, name))
            .map(|(_, system)| *system)
    }

    /// Returns its name.
    pub(super) fn name(self) -> &'static str {
        let mut names = NAMES.iter();
        let found = names.find(|(_, system)| *system == self);
        found.map_or("ViaPartitionKey", |(name, _)| *name)
    }

    /// Returns the effect of a `SET` of it.
    pub(super) const fn settable(self) -> Settable {
        match self {
            Self::Field(field) => Settable::Changed(field),
            Self::PartitionKey => Settable::Set(Setting::PartitionKey),
            Self::ScheduledEnqueueTime => Settable::Set(Setting::ScheduledEnqueueTime),
            Self::TimeToLive => Settable::Set(Setting::TimeToLive),
            Self::ViaPartitionKey => Settable::Set(Setting::ViaPartitionKey),
            Self::Absent(_)
            | Self::DeliveryCount
            | Self::EnqueuedTime
            | Self::ExpiresAt
            | Self::ForcePersistence
            | Self::JmsDeliveryMode
            | Self::JmsExpiration
            | Self::JmsPriority
            | Self::JmsTimestamp
            | Self::SequenceNumber
            | Self::Size
            | Self::State => Settable::No,
        }
    }

    /// Returns the section of a message in which it is looked for.
    pub(super) const fn part(self) -> Part {
        match self {
            Self::PartitionKey | Self::ScheduledEnqueueTime | Self::ViaPartitionKey => {
                Part::MessageAnnotations
            }
            Self::Absent(_)
            | Self::DeliveryCount
            | Self::EnqueuedTime
            | Self::ExpiresAt
            | Self::Field(_)
            | Self::ForcePersistence
            | Self::JmsDeliveryMode
            | Self::JmsExpiration
            | Self::JmsPriority
            | Self::JmsTimestamp
            | Self::SequenceNumber
            | Self::Size
            | Self::State
            | Self::TimeToLive => Part::Properties,
        }
    }

    /// Returns its value; null where there is none.
    pub(super) fn of<'a>(
        self,
        message: &'a Message,
        changed: &'a Amendments,
        facts: &Facts,
    ) -> Scalar<'a> {
        let decoded = |value: Option<&'a [u8]>| value.map_or(Scalar::Null, Scalar::decode);
        let annotation = |setting: Setting| {
            let set = changed.setting(setting);
            decoded(set.or_else(|| message.message_annotation(setting.name())))
        };
        match self {
            Self::Absent(_) => Scalar::Null,
            Self::DeliveryCount | Self::State => Scalar::Long(0),
            Self::EnqueuedTime => facts.enqueued_time.into(),
            Self::ExpiresAt => facts
                .enqueued_time
                .after(facts.time_to_live)
                .min(Timestamp::END_OF_9999)
                .into(),
            Self::Field(field) => identity(decoded(changed.field_of(message, field))),
            // Nothing on the wire says otherwise.
            Self::ForcePersistence => Scalar::Boolean(false),
            Self::JmsDeliveryMode if message.is_durable() => Scalar::Text("PERSISTENT".into()),
            Self::JmsDeliveryMode => Scalar::Text("NON_PERSISTENT".into()),
            Self::JmsExpiration => message.absolute_expiry_time(),
            Self::JmsPriority => Scalar::Long(message.priority()),
            Self::JmsTimestamp => message.creation_time(),
            Self::PartitionKey => annotation(Setting::PartitionKey),
            Self::ScheduledEnqueueTime => annotation(Setting::ScheduledEnqueueTime),
            Self::SequenceNumber => {
                let number = i128::from(facts.sequence_number.0);
                Scalar::from_integer(number).unwrap_or(Scalar::Null)
            }
            Self::Size => Scalar::Long(i64::try_from(message.bytes().len()).unwrap_or(i64::MAX)),
            Self::TimeToLive => match changed.time_to_live().unwrap_or(facts.time_to_live) {
                Millis::MAX => Scalar::Duration(i64::MAX),
                life => Scalar::Duration(life.as_millis().saturating_mul(TICKS_PER_MILLI)),
            },
            Self::ViaPartitionKey => annotation(Setting::ViaPartitionKey),
        }
    }
}

/// Returns a message-id or correlation-id as the SDKs show it: ids that are numbers or UUIDs are
/// texts to them.
pub(super) fn identity(value: Scalar<'_>) -> Scalar<'_> {
    match (value.integer(), value) {
        (Some(number), _) => Scalar::Text(number.to_string().into()),
        (None, Scalar::Uuid(uuid)) => Scalar::Text(hyphenated(uuid).into()),
        (None, value) => value,
    }
}

/// Returns a UUID's usual form.
#[must_use]
pub fn hyphenated(uuid: [u8; 16]) -> String {
    let mut text = format!("{:032x}", u128::from_be_bytes(uuid));
    for place in [20, 16, 12, 8] {
        text.insert(place, '-');
    }
    text
}
