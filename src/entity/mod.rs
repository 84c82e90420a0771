//! The states of messages, locks and schedules: pure state machines that emit records and
//! replies.

mod index;
mod locks;
mod memory;
mod message_session;
mod positions;
pub mod queue;
mod record;
mod rights;
pub mod rules;
mod token;

pub use memory::{Budget, Memory, MemoryPages, Page, PageStore};
pub(crate) use memory::{Held, Purpose};
pub use message_session::MessageSession;
pub use positions::Positions;
pub use record::{BodyRef, EntityId, Journal, Passage, Record, SequenceNumber, StoredState};
pub use rights::{AuthorizationRule, Key, Right, Rights};
pub use token::{LockToken, Random};
