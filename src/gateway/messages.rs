//! The operations of the REST interface on an entity's messages: send, receive one, settle one, or renew its
//! lock.
//!
//! An operation is one step, checked whole before anything changes: its records are one group with
//! all others of that moment, and its answer may leave when that group is durable. A receive is a
//! receiver of the queue like any other, for one message: it waits in the queue, and its message
//! comes as [`Reply::Deliver`].

#[cfg(test)]
mod tests;

use super::amqp::{Link, consumer_id};
use super::denied::host_shown;
use super::{Gateway, Reply, Routed};
use crate::access::Authority;
use crate::address::{Address, EntityAddress};
use crate::amqp::LinkId;
use crate::ids::{ConnectionId, EntityId, LockToken, SequenceNumber};
use crate::message::Message;
use crate::namespace::{Denied, DeniedKind};
use crate::namespace::{LostLock, StepContext};
use crate::queue::{ReceiveMode, Settlement};
use crate::rights::Right;
use crate::time::Timestamp;

/// An operation. Paths are as clients write them, and may be percent-encoded.
#[derive(Debug)]
pub enum MessageOperation {
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
        /// The action.
        action: LockAction,
    },
}

/// An action on a locked message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAction {
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

/// The outcome of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageOutcome {
    /// The messages were taken, with these numbers; 0 for a duplicate.
    Taken(Vec<SequenceNumber>),
    /// It was carried out.
    Completed,
    /// The lock holds until then.
    Renewed(Timestamp),
}

impl Gateway {
    /// Carries an operation out, in the namespace of a host name, for a client with these
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
        operation: MessageOperation,
    ) -> Result<MessageOutcome, Denied> {
        let done = self.carry_out(cx, host, authority, operation);
        self.count_if_refused(&done);
        done
    }

    fn carry_out(
        &mut self,
        cx: &mut StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        operation: MessageOperation,
    ) -> Result<MessageOutcome, Denied> {
        match operation {
            MessageOperation::Send { path, messages } => {
                let (queue, address) = self.named(host, authority, &path, Right::Send)?;
                self.namespaces.check_sendable(queue, &address)?;
                let numbers = self.with_namespaces(cx, |namespaces, cx| {
                    namespaces.take_messages(cx, queue, messages)
                })?;
                Ok(MessageOutcome::Taken(numbers))
            }
            MessageOperation::Locked {
                path,
                token,
                action,
            } => {
                let (queue, address) = self.named(host, authority, &path, Right::Listen)?;
                self.namespaces.record_access(cx.now, queue);
                let settlement = match action {
                    LockAction::Complete => Settlement::Complete,
                    LockAction::Unlock => Settlement::Abandon(None),
                    LockAction::Renew => return self.renew_one(cx, queue, &address, token),
                };
                self.with_namespaces(cx, |namespaces, cx| {
                    namespaces.settle(cx, queue, token, LostLock::Session, settlement)
                })?;
                Ok(MessageOutcome::Completed)
            }
        }
    }

    /// Accepts a receiver of one message, as the link of a connection of its own. The reply is
    /// [`Reply::RefuseLink`] if it is refused.
    pub fn receive_one(
        &mut self,
        cx: &mut StepContext<'_>,
        (connection, link): (ConnectionId, LinkId),
        host: Option<&str>,
        authority: &Authority,
        receive: &Receive,
    ) {
        let found = self.named(host, authority, &receive.path, Right::Listen);
        let found = found.and_then(|(queue, address)| {
            self.namespaces.check_receivable(queue, &address)?;
            self.namespaces.check_without_session(queue, &address)?;
            Ok(queue)
        });
        match found {
            Ok(queue) => {
                self.namespaces.record_access(cx.now, queue);
                let consumer = consumer_id(connection, link);
                let receiver = Link::Receiver { queue, name: None };
                self.connection(connection).links.insert(link, receiver);
                let mode = receive.mode;
                self.with_queue(cx, queue, |queue, cx| {
                    queue.add_consumer(consumer, mode);
                    queue.set_credit(cx, consumer, 1, false);
                });
            }
            Err(denied) => {
                let denied = self.tracked(cx.now, denied);
                self.replies.push(Routed {
                    connection,
                    rests_on: 0,
                    reply: Reply::RefuseLink(link, denied),
                });
            }
        }
    }

    fn renew_one(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        address: &EntityAddress,
        token: LockToken,
    ) -> Result<MessageOutcome, Denied> {
        let renewed = self.with_queue(cx, queue, |queue, cx| {
            if queue.has_sessions() {
                return None;
            }
            Some(queue.renew(cx.now, token))
        });
        let (kind, text) = match renewed.flatten() {
            Some(Ok(until)) => return Ok(MessageOutcome::Renewed(until)),
            Some(Err(lost)) => (DeniedKind::MessageLockLost, lost.to_string()),
            None => (
                DeniedKind::NotAllowed,
                "The lock of a message in a session is renewed with the session's.".to_owned(),
            ),
        };
        Err(Denied::new(kind, text, &address.path))
    }

    /// Finds the entity at a path, for a client that has a right to it. A client without one does not
    /// learn whether it is there.
    pub(super) fn named(
        &self,
        host: Option<&str>,
        authority: &Authority,
        path: &str,
        right: Right,
    ) -> Result<(EntityId, EntityAddress), Denied> {
        let prefix = self.namespaces.directory().namespace_of(host);
        // A literal percent sign in a name is rare: decoded first, then as it is written.
        for address in [Address::parse_path(path), Address::of_path(path)] {
            let Ok(Address::Entity(address)) = address else {
                continue;
            };
            let path = format!("{prefix}{}", address.path);
            let address = EntityAddress { path, ..address };
            let checked = authority.check_messages(&address.resource(), right);
            checked.map_err(|text| Denied::new(DeniedKind::Unauthorized, &text, &address.path))?;
            if let Some(id) = self.namespaces.resolve(&address) {
                return Ok((id, address));
            }
        }
        Err(Denied::not_found(host_shown(host), path))
    }
}
