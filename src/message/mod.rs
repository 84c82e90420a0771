//! A message as immutable bytes and an index of its sections.
//!
//! The bare message and footer are never re-encoded. Delivery writes a new header, delivery
//! annotations and message annotations in front of the sender's bytes; changes that the broker
//! makes to application-properties are [`Amendments`], kept beside the message and merged on the
//! way out.
//!
//! Leaves to others: transport, queues, what a stamp's value ought to be.

use bytes::Bytes;

use crate::time::{Millis, Timestamp};

/// Message-format of a batch: its data sections hold whole messages (`protocol.md` §4.4).
pub const BATCH_FORMAT: u32 = 0x8001_3700;

/// A parsed message: its bytes, and where its sections are.
#[derive(Debug, Clone)]
pub struct Message {
    bytes: Bytes,
}

/// Why bytes are not a message, or not one that we can take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// What the broker writes onto a message on its way out (`protocol.md` §5.6).
#[derive(Debug, Clone)]
pub struct Stamps {
    /// x-opt-sequence-number.
    pub sequence_number: i64,
    /// x-opt-enqueue-sequence-number.
    pub enqueued_sequence_number: i64,
    /// x-opt-enqueued-time.
    pub enqueued_time: Timestamp,
    /// x-opt-locked-until: only with a lock.
    pub locked_until: Option<Timestamp>,
    /// header delivery-count: earlier deliveries that failed.
    pub delivery_count: u32,
    /// x-opt-message-state.
    pub state: MessageState,
    /// header ttl, and with `enqueued_time` the properties creation-time and absolute-expiry-time.
    /// [`Millis::MAX`] writes none of them.
    pub time_to_live: Millis,
    /// x-opt-deadletter-source.
    pub dead_letter_source: Option<std::sync::Arc<str>>,
    /// Changes to the application-properties.
    pub amendments: Option<std::sync::Arc<Amendments>>,
}

/// x-opt-message-state, with its value on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// 0: to be received, or locked.
    Active,
    /// 1: set aside by a receiver.
    Deferred,
    /// 2: waits for its time.
    Scheduled,
}

/// Changes to a message's application-properties: names, and values as encoded AMQP.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Amendments {
    set: Vec<(String, Bytes)>,
}

impl Amendments {
    /// stub
    pub fn set_string(&mut self, name: &str, text: &str) {
        self.set
            .push((name.to_owned(), Bytes::copy_from_slice(text.as_bytes())));
    }
    /// stub
    pub fn merge(&mut self, other: Self) {
        self.set.extend(other.set);
    }
    /// stub
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
    /// stub
    #[must_use]
    pub fn encode(&self) -> Bytes {
        Bytes::new()
    }
    /// stub
    pub fn decode(_: &[u8]) -> Result<Self, Malformed> {
        Ok(Self::default())
    }
}
/// stub
#[expect(missing_docs)]
impl Message {
    pub fn parse(bytes: Bytes) -> Result<Self, Malformed> {
        Ok(Self { bytes })
    }
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
    pub fn time_to_live(&self) -> Option<Millis> {
        None
    }
    pub fn scheduled_enqueue_time(&self) -> Option<Timestamp> {
        None
    }
    pub fn message_id_length(&self) -> usize {
        0
    }
    pub fn group_id_length(&self) -> usize {
        0
    }
    pub fn partition_key_length(&self) -> usize {
        0
    }
}
/// stub
pub fn split_batch(_: &Bytes) -> Result<Vec<Bytes>, Malformed> {
    Ok(vec![])
}
/// stub
pub fn render(_: &mut Vec<u8>, _: &Bytes, _: &Stamps) {}
#[expect(missing_docs)]
impl Amendments {
    pub fn from_fields(_: &fe2o3_amqp_types::definitions::Fields) -> Self {
        Self::default()
    }
    pub fn from_map(
        _: &fe2o3_amqp_types::primitives::OrderedMap<serde_amqp::Value, serde_amqp::Value>,
    ) -> Self {
        Self::default()
    }
    pub fn take_string(&mut self, _: &str) -> Option<String> {
        None
    }
}
