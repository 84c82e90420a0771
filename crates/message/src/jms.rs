//! Header fields and properties that JMS selectors read.

use super::{Message, Scalar};
use jitney_amqp::codec::value::{elements, timestamp};

/// Their fields in their sections.
const DURABLE: usize = 0;
const PRIORITY: usize = 1;
const EXPIRY: usize = 8;
const CREATION: usize = 9;

/// The priority of a message that has none [3.2.1].
const PRIORITY_DEFAULT: i64 = 4;

impl Message {
    /// Returns whether the sender said that it is to survive.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.header_field(DURABLE) == Scalar::Boolean(true)
    }

    /// Returns its priority.
    #[must_use]
    pub fn priority(&self) -> i64 {
        let priority = self.header_field(PRIORITY).integer();
        let priority = priority.and_then(|priority| i64::try_from(priority).ok());
        priority.unwrap_or(PRIORITY_DEFAULT)
    }

    /// Returns when the sender made it, in milliseconds since 1970; null if it does not say so.
    #[must_use]
    pub fn creation_time(&self) -> Scalar<'_> {
        self.millis(CREATION)
    }

    /// Returns when its life ends by its sender's word, in milliseconds since 1970; 0 for never.
    #[must_use]
    pub fn absolute_expiry_time(&self) -> Scalar<'_> {
        let time = self.millis(EXPIRY);
        if matches!(time, Scalar::Null) {
            Scalar::Long(0)
        } else {
            time
        }
    }

    fn header_field(&self, index: usize) -> Scalar<'_> {
        let header = self.sections.header.of(self.bytes());
        let value = header.and_then(|header| elements(header).nth(index));
        value.map_or(Scalar::Null, Scalar::decode)
    }

    fn millis(&self, index: usize) -> Scalar<'_> {
        let properties = self.sections.properties.of(self.bytes());
        let value = properties.and_then(|properties| elements(properties).nth(index));
        value.and_then(timestamp).map_or(Scalar::Null, Scalar::Long)
    }
}
