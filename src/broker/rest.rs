//! What clients of the REST interface ask of an entity's messages: to take some in, to hand one out,
//! to settle one, or to lock it anew.
//!
//! An operation is one step, checked whole before anything changes: its records are one group with
//! all others of that moment, and its answer may leave when that group is durable. A receive is a
//! receiver of the queue like any other, for one message: it waits in the queue, and its message
//! comes as [`Reply::Deliver`].

#[cfg(test)]
mod tests;

use super::errors::{host_shown, not_found};
use super::settle::LostLock;
use super::{
    Authority, Broker, ConnectionId, EntityId, Link, LinkId, Reply, Routed, StepContext,
    consumer_id,
};
use crate::address::{Address, EntityAddress, SubQueue};
use crate::amqp::{Condition, Refusal};
use crate::ids::LockToken;
use crate::message::Message;
use crate::queue::{EntityKind, Queue, ReceiveMode, Settlement};
use crate::rights::Right;
use crate::time::Timestamp;

/// What is asked for. Paths are as clients write them, and may be percent-encoded.
#[derive(Debug)]
pub enum Operation {
    /// Take these messages: all, or none.
    Send {
        /// The path of a queue or a topic.
        path: String,
        /// The messages.
        messages: Vec<Message>,
    },
    /// Do something about a message that is locked.
    Locked {
        /// The path of the queue or the subscription that it is in.
        path: String,
        /// Its lock.
        token: LockToken,
        /// What to do.
        wish: Wish,
    },
}

/// What can be done about a message that is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// It is done with, and goes.
    Complete,
    /// It is locked for longer.
    Renew,
    /// It is given back, and the delivery counts as failed.
    Unlock,
}

/// A receive of one message.
#[derive(Debug)]
pub struct Receive {
    /// The path of a queue, a subscription, or one of their sub-queues.
    pub path: String,
    /// How the message is received.
    pub mode: ReceiveMode,
}

/// What came of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// It was done.
    Done,
    /// The lock holds until then.
    Renewed(Timestamp),
}

/// Why an operation was not done; nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The broker cannot do it now.
    #[error("{0}")]
    Busy(String),
    /// It is not allowed: for want of room, of size, or by the entity's status.
    #[error("{0}")]
    Forbidden(String),
    /// There is no such entity.
    #[error("{0}")]
    Gone(String),
    /// It cannot be asked of this entity, or not so.
    #[error("{0}")]
    Invalid(String),
    /// There is no such lock.
    #[error("{0}")]
    NoLock(String),
    /// The asker lacks a right.
    #[error("{0}")]
    Unauthorized(String),
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.description;
        match refusal.condition {
            Condition::NotFound | Condition::ResourceDeleted => Self::Gone(text),
            Condition::UnauthorizedAccess => Self::Unauthorized(text),
            Condition::MessageLockLost | Condition::SessionLockLost => Self::NoLock(text),
            Condition::ResourceLimitExceeded
            | Condition::MessageSizeExceeded
            | Condition::EntityDisabled => Self::Forbidden(text),
            Condition::DetachForced | Condition::InternalError => Self::Busy(text),
            _ => Self::Invalid(text),
        }
    }
}

impl Broker {
    /// Carries an operation out, in the namespace of a host name, for somebody who has proved some
    /// rights. The answer rests on the newest group of records.
    ///
    /// # Errors
    ///
    /// Nothing has changed then.
    pub fn message_operation(
        &mut self,
        cx: &mut StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        operation: Operation,
    ) -> Result<Done, Refused> {
        match operation {
            Operation::Send { path, messages } => {
                let found = self.named(cx, host, authority, &path, Right::Send)?;
                self.check_takes(cx, &found)?;
                self.take_messages(cx, found.0, messages)?;
                Ok(Done::Done)
            }
            Operation::Locked { path, token, wish } => {
                let (queue, address) = self.named(cx, host, authority, &path, Right::Listen)?;
                self.note_use(cx.now, queue);
                let settlement = match wish {
                    Wish::Complete => Settlement::Complete,
                    Wish::Unlock => Settlement::Abandon(None),
                    Wish::Renew => return self.renew_one(cx, queue, &address, token),
                };
                self.settle(cx, queue, token, LostLock::Session, settlement)?;
                Ok(Done::Done)
            }
        }
    }

    /// Lets a receiver in that takes one message, as the link of a connection of its own. It is
    /// told by [`Reply::RefuseLink`] if it cannot be.
    pub fn receive_one(
        &mut self,
        cx: &mut StepContext<'_>,
        (connection, link): (ConnectionId, LinkId),
        host: Option<&str>,
        authority: &Authority,
        receive: &Receive,
    ) {
        let found = self.named(cx, host, authority, &receive.path, Right::Listen);
        let found = found.and_then(|(queue, address)| {
            self.check_receivable(cx, queue, &address)?;
            if self.queue(queue).is_some_and(Queue::has_sessions) {
                let text = "It is not possible for an entity that requires sessions to create a \
                            non-sessionful message receiver.";
                return Err(self.refuse(cx, Condition::NotAllowed, text, &address.path));
            }
            Ok(queue)
        });
        match found {
            Ok(queue) => {
                self.note_use(cx.now, queue);
                let consumer = consumer_id(connection, link);
                let receiver = Link::Receiver { queue, name: None };
                self.connection(connection).links.insert(link, receiver);
                let mode = receive.mode;
                self.with_queue(cx, queue, |queue, cx| {
                    queue.add_consumer(consumer, mode);
                    queue.set_credit(cx, consumer, 1, false);
                });
            }
            Err(refusal) => self.replies.push(Routed {
                connection,
                rests_on: 0,
                reply: Reply::RefuseLink(link, refusal),
            }),
        }
    }

    fn renew_one(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        address: &EntityAddress,
        token: LockToken,
    ) -> Result<Done, Refused> {
        let renewed = self.with_queue(cx, queue, |queue, cx| {
            if queue.has_sessions() {
                return None;
            }
            Some(queue.renew(cx.now, token))
        });
        let (condition, text) = match renewed.flatten() {
            Some(Ok(until)) => return Ok(Done::Renewed(until)),
            Some(Err(lost)) => (Condition::MessageLockLost, lost.to_string()),
            None => (
                Condition::NotAllowed,
                "The lock of a message in a session is renewed with the session's.".to_owned(),
            ),
        };
        Err(self.refuse(cx, condition, &text, &address.path).into())
    }

    /// Checks that an entity takes messages from senders.
    fn check_takes(
        &mut self,
        cx: &StepContext<'_>,
        (queue, address): &(EntityId, EntityAddress),
    ) -> Result<(), Refusal> {
        let kind = self.queue(*queue).map(|queue| queue.description().kind);
        if address.queue == SubQueue::Main && kind != Some(EntityKind::Subscription) {
            return Ok(());
        }
        let text = format!("Messages cannot be sent to '{address}': it takes none from senders.");
        Err(self.refuse(cx, Condition::NotAllowed, &text, &address.path))
    }

    /// Finds the entity at a path, for somebody who has a right to it. Who has none is not told
    /// whether it is there.
    fn named(
        &mut self,
        cx: &StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        path: &str,
        right: Right,
    ) -> Result<(EntityId, EntityAddress), Refusal> {
        let prefix = self.namespace_of(host);
        // A literal percent sign in a name is rare: decoded first, then as it is written.
        for address in [Address::parse_path(path), Address::of_path(path)] {
            let Ok(Address::Entity(address)) = address else {
                continue;
            };
            let path = format!("{prefix}{}", address.path);
            let address = EntityAddress { path, ..address };
            let checked = authority.check_messages(&address.resource(), right);
            checked.map_err(|text| {
                self.refuse(cx, Condition::UnauthorizedAccess, &text, &address.path)
            })?;
            if let Some(id) = self.resolve(&address) {
                return Ok((id, address));
            }
        }
        Err(not_found(
            host_shown(host),
            path,
            cx.now,
            &mut self.tracking,
        ))
    }
}
