//! The properties of a queue, as they are kept.

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::time::Millis;

/// A queue's properties (`protocol.md` §11.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Description {
    /// How long a receiver has a message for itself.
    pub lock_duration: Millis,
    /// The longest that a message lives; [`Millis::MAX`] is for ever.
    pub default_time_to_live: Millis,
    /// Failed deliveries after which a message is dead-lettered.
    pub max_delivery_count: u32,
    /// Messages whose life ends are dead-lettered; else they are dropped.
    pub dead_letter_on_expiration: bool,
    /// Bytes of messages that the entity holds at most, its dead letters included.
    pub max_bytes: u64,
    /// Bytes of one message at most.
    pub max_message_bytes: u64,
    /// What it may be used for.
    pub status: Status,
}

/// What an entity may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

impl Status {
    /// Returns whether senders are let in.
    #[must_use]
    pub fn can_send(self) -> bool {
        match self {
            Self::Active | Self::ReceiveDisabled => true,
            Self::Disabled | Self::SendDisabled => false,
        }
    }

    /// Returns whether receivers are let in.
    #[must_use]
    pub fn can_receive(self) -> bool {
        match self {
            Self::Active | Self::SendDisabled => true,
            Self::Disabled | Self::ReceiveDisabled => false,
        }
    }
}

impl Default for Description {
    /// Azure's defaults.
    fn default() -> Self {
        Self {
            lock_duration: Millis::from_secs(60),
            default_time_to_live: Millis::MAX,
            max_delivery_count: 10,
            dead_letter_on_expiration: false,
            max_bytes: 1024 * 1024 * 1024,
            max_message_bytes: limits::MESSAGE_SIZE_DEFAULT,
            status: Status::Active,
        }
    }
}
