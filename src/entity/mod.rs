//! The states of messages, locks and schedules: pure state machines that emit records and
//! replies.

mod index;
mod locks;
pub mod queue;
mod record;
pub mod rules;
mod token;

pub use record::{BodyRef, EntityId, Journal, Record, SequenceNumber, StoredState};
pub use token::{LockToken, Random};
