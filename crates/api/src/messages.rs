//! Messages, looked at in whatever state.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::selection::{State, is_zero};

/// How much is shown of bodies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BodyShown {
    None,
    #[default]
    Preview,
    Full,
}

/// Messages of one queue, in the order of their numbers.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Messages {
    /// Written one by one, before the rest.
    #[schema(required)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageShown>,
    /// What `from` is to be for the next page; without it there is none. A page may be empty and have a next one: a
    /// search looks at a bounded number of messages at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Messages that are not here because evaluating `json_path` in their bodies takes too many steps.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undecided: u64,
}

/// A message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageShown {
    pub sequence_number: u64,
    /// The number that it had before it was forwarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enqueued_sequence_number: Option<u64>,
    pub state: State,
    pub enqueued_at: String,
    /// When a scheduled message becomes active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// A receiver has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<Lock>,
    /// Deliveries that failed.
    pub delivery_count: u32,
    /// Bytes as its sender encoded it.
    pub size_bytes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to_session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<String>,
    /// How long it lives from its arrival on, as an ISO 8601 duration; absent if for ever.
    #[schema(example = "PT1H")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_live: Option<String>,
    /// Why it was dead-lettered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<DeadLetter>,
    /// Application-properties.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<BTreeMap<String, serde_json::Value>>,
    /// Their types in AMQP: `string`, `long`, `timestamp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub property_types: Option<BTreeMap<String, Cow<'static, str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyContent>,
    /// The message as AMQP encodes it, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoded: Option<String>,
    /// Its bytes in the log are not what was written: it cannot be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

/// The lock of a message or of a message session.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Lock {
    /// When it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The client that has it, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

/// A client that holds a lock.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Holder {
    pub connection: u32,
    /// The container-id of its connection.
    pub container_id: String,
    pub peer: String,
}

/// Why a message was dead-lettered.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DeadLetter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The entity whose dead letter it was, if it was forwarded from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// The body of a message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BodyContent {
    /// The text, if the body is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes in base64, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Its bytes.
    pub size_bytes: usize,
    /// Only the beginning is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// What a compressed body has in it, where whole bodies are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoded: Option<DecodedContent>,
}

/// The content of a compressed body.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DecodedContent {
    /// How it is compressed: `gzip`, `deflate`, `zip` (the first file), or `brotli` if the application-property
    /// `content-encoding` says `br`.
    pub format: Cow<'static, str>,
    /// The text, if the content is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes in base64, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Only the first 256 KiB are shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Dead letters by reason.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterGroups {
    pub groups: Vec<DeadLetterGroup>,
    /// Messages that were looked at.
    pub messages: usize,
    /// What `from` is to be to continue; without it, all were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Dead letters with one reason and description.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub messages: usize,
    pub first_number: u64,
    pub last_number: u64,
}
