//! The states of messages, locks and schedules: pure state machines that emit records and
//! replies.

mod record;

pub use record::{BodyRef, EntityId, Journal, Record, SequenceNumber, StoredState};
