//! A message as immutable bytes and an index of its sections.
//!
//! The bare message and footer are never re-encoded. Delivery writes a new header, delivery
//! annotations and message annotations in front of the sender's bytes; changes that the broker
//! makes to application-properties, and rules to properties, are [`Amendments`], kept beside the message and merged on the
//! way out.
//!
//! Leaves to others: transport, queues, the values of stamps.

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

mod amendments;
#[cfg(test)]
mod amendments_tests;
mod batch;
mod bounds;
mod compose;
mod control;
mod jms;
mod keys;
pub mod limits;
mod parse;
mod properties;
mod render;
mod scalar;
#[cfg(test)]
mod scalar_tests;
#[cfg(test)]
mod tests;
mod trace_context;

use jitney_base::time::{Millis, Timestamp};

pub use amendments::{Amendments, Setting};
pub use batch::split_batch;
pub use bounds::PropertiesRefused;
pub use compose::{Composer, Draft};
pub use control::Control;
pub use keys::{DuplicateScope, PartitionedBy, partition_hash_of_key};
pub use parse::Message;
pub use properties::{Field, Part, same_name};
pub use render::{render, render_front, render_with_body, render_without_body};
pub use scalar::Scalar;
pub use trace_context::TraceContext;

/// Message-format of a batch: its data sections hold whole messages (`messaging.md#batches`).
pub const BATCH_FORMAT: u32 = 0x8001_3700;

/// A message without properties whose body is no bytes.
pub const EMPTY: &[u8] = &[0x00, 0x53, 0x75, 0xa0, 0x00];

/// Why bytes are not a message, or not one that we can take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// The stamps that the broker writes onto a message on its way out (`messaging.md#stamps`).
#[derive(Debug, Clone)]
pub struct Stamps {
    /// x-opt-sequence-number.
    pub sequence_number: i64,
    /// x-opt-enqueue-sequence-number.
    pub enqueued_sequence_number: i64,
    /// Its message-id is its partition key, if it has neither a message session nor a key of its own: a partitioned queue
    /// detects duplicates.
    pub keyed_by_id: bool,
    /// x-opt-partition-id: of a partitioned entity only.
    pub partition_id: Option<i16>,
    /// The message-id of a message whose sender gave it none, as the service does: a UUID, written
    /// as 32 hexadecimal digits. JavaScript cannot settle a message without one.
    pub default_message_id: [u8; 16],
    /// x-opt-enqueued-time.
    pub enqueued_time: Timestamp,
    /// x-opt-locked-until: only with a lock.
    pub locked_until: Option<Timestamp>,
    /// The delivery-annotation x-opt-lock-token, a uuid in RFC 4122 order: only with a lock.
    pub lock_token: Option<[u8; 16]>,
    /// It is handed to a receiver, and has delivery-annotations, though there be nothing in them.
    pub delivered: bool,
    /// header delivery-count: earlier deliveries that failed.
    pub delivery_count: u32,
    /// Another receiver may have had it: its first-acquirer is false.
    pub acquired: bool,
    /// x-opt-message-state.
    pub state: MessageState,
    /// header ttl, and with `enqueued_time` the properties creation-time and absolute-expiry-time.
    /// [`Millis::MAX`] writes none of them.
    pub time_to_live: Millis,
    /// x-opt-deadletter-source.
    pub dead_letter_source: Option<std::sync::Arc<str>>,
    /// Changes to the application-properties, and to fields of the properties.
    pub amendments: Option<std::sync::Arc<Amendments>>,
}

impl Stamps {
    /// Returns the message-id of a message whose sender gave it none, as receivers see it.
    #[must_use]
    pub fn default_message_id_text(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.default_message_id))
    }

    /// Returns the message-format that the message came with.
    #[must_use]
    pub fn message_format(&self) -> u32 {
        self.amendments.as_deref().map_or(0, Amendments::format)
    }
}

/// x-opt-message-state, with its value on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// 0: to be received, or locked.
    Active,
    /// 1: set aside by a receiver.
    Deferred,
    /// 2: waits for its time.
    Scheduled,
}
