//! The operations of the REST interface on an entity's messages: send, receive one, settle one, or renew its
//! lock.
//!
//! An operation is one step, checked whole before anything changes: its records are one group with
//! all others of that moment, and its answer may leave when that group is durable. A receive may
//! wait for its message (`receive`).

mod receive;
#[cfg(test)]
mod tests;

use super::Gateway;
use super::denied::host_shown;
use jitney_base::address::{Address, EntityAddress};
use jitney_base::ids::{EntityId, LockToken, SequenceNumber};
use jitney_base::rights::Right;
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::access::Authority;
use jitney_broker::namespace::{Denied, DeniedKind, LostLock, StepContext};
use jitney_message::Message;
use jitney_queue::{ReceiveMode, Settlement};

pub use receive::{HandedOut, ReceiveOutcome, ReceiveReply};
pub(crate) use receive::{Receives, is_receive};

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
    /// Take these messages, of one partition, if the entity has any: all, or none.
    SendBatch {
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
    /// How long it waits for one.
    pub wait: Millis,
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
                self.create_for_request(cx, host, authority, &path)?;
                let queue = self.sendable(host, authority, &path)?;
                let numbers = self.with_namespaces(cx, |namespaces, cx| {
                    namespaces.take_messages(cx, queue, messages)
                })?;
                Ok(MessageOutcome::Taken(numbers))
            }
            MessageOperation::SendBatch { path, messages } => {
                self.create_for_request(cx, host, authority, &path)?;
                let queue = self.sendable(host, authority, &path)?;
                let numbers = self.with_namespaces(cx, |namespaces, cx| {
                    namespaces.check_batch(queue, &messages)?;
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

    /// Finds the queue or topic that a peer may send to.
    fn sendable(
        &self,
        host: Option<&str>,
        authority: &Authority,
        path: &str,
    ) -> Result<EntityId, Denied> {
        let (queue, address) = self.named(host, authority, path, Right::Send)?;
        self.namespaces.check_sendable(queue, &address)?;
        Ok(queue)
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
