//! Messages whose bytes in the log are not what was written: each becomes a dead letter without them when it
//! is found. Other messages are not affected.

use super::{Namespaces, StepContext};
use jitney_base::ids::{BodyRef, EntityId, SequenceNumber};
use jitney_message::Stamps;
use jitney_queue::{Context, DeadLetter, Queue};

/// Bytes of a message that are not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The bytes.
    pub body: BodyRef,
    /// Where that is and what is wrong, for people.
    pub place: String,
}

/// A message that has lost its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contained {
    /// The entity that had it, as clients know it.
    pub entity: String,
    /// The number that it had there.
    pub number: SequenceNumber,
    /// Where its bytes were and what is wrong with them, for people.
    pub place: String,
}

impl Namespaces {
    /// Contains the damage of a message in a queue: it goes to the dead letters without its bytes.
    /// `None` if the message has gone, or has other bytes now.
    pub fn body_damaged(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        number: SequenceNumber,
        damage: &Damage,
    ) -> Option<Contained> {
        self.replace_body(cx, queue, number, damage)?;
        Some(self.contained(queue, number, damage))
    }

    /// Gives a message other bytes and dead-letters it; returns where they are.
    pub fn replace_body(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        number: SequenceNumber,
        damage: &Damage,
    ) -> Option<BodyRef> {
        let reason = DeadLetter::damaged(&damage.place);
        let contain = |queue: &mut Queue, cx: &mut Context<'_>| {
            queue.contain(cx, number, damage.body, reason)
        };
        self.with_queue(cx, queue, contain).flatten()
    }

    /// Makes a dead letter of a message that was received and deleted.
    pub fn bring_back(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        stamps: &Stamps,
        damage: &Damage,
    ) {
        let reason = DeadLetter::damaged(&damage.place);
        self.with_queue(cx, queue.base(), |queue, cx| {
            queue.bring_back(cx, stamps, reason);
        });
    }

    /// Describes a message whose bytes are damaged, for the log and the API.
    #[must_use]
    pub fn contained(&self, queue: EntityId, number: SequenceNumber, damage: &Damage) -> Contained {
        Contained {
            entity: self.name_of(queue),
            number,
            place: damage.place.clone(),
        }
    }
}
