//! The requests of the REST interface about an entity's messages: send, receive one, settle one, or renew its
//! lock.
//!
//! A request is one step, checked whole before anything changes: its records are one group with
//! all others of that moment, and its answer may leave when that group is durable. A receive may
//! wait for its message (`receive`).

mod receive;
#[cfg(test)]
mod tests;

use super::Gateway;
use super::denied::host_shown;
use super::request::{Request, Requester};
use jitney_base::address::{Address, EntityAddress};
use jitney_base::ids::{EntityId, LockToken, SequenceNumber};
use jitney_base::rights::Right;
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::namespace::{Denied, DeniedKind, LostLock, StepContext};
use jitney_message::Message;
use jitney_queue::{ReceiveMode, Settlement};

pub use receive::{HandedOut, ReceiveOutcome, ReceiveReply};
pub(crate) use receive::{Receives, is_receive};

/// Send messages: all are taken, or none. Paths are as clients write them, and may be percent-encoded.
#[derive(Debug)]
pub struct SendMessages {
    /// The path of a queue or a topic.
    pub path: String,
    /// The messages.
    pub messages: Vec<Message>,
    /// Whether the messages are one batch.
    pub sent_as: SentAs,
}

/// How a request sends its messages: as one batch or one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentAs {
    /// One batch, which is for one partition of an entity that has several.
    Batch,
    /// Messages, each for itself.
    Messages,
}

/// Complete or give back one locked message.
#[derive(Debug)]
pub struct SettleOne {
    /// The path of the queue or the subscription that it is in.
    pub path: String,
    /// Its lock.
    pub token: LockToken,
    /// How.
    pub settlement: Settlement,
}

/// Renew the lock of one message.
#[derive(Debug)]
pub struct RenewOne {
    /// The path of the queue or the subscription that it is in.
    pub path: String,
    /// Its lock.
    pub token: LockToken,
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

impl Request for SendMessages {
    /// Their numbers; 0 for a duplicate.
    type Answer = Vec<SequenceNumber>;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<Vec<SequenceNumber>, Denied> {
        gateway.create_for_request(cx, requester, &self.path)?;
        let queue = gateway.sendable(requester, &self.path)?;
        gateway.with_namespaces(cx, |namespaces, cx| {
            if self.sent_as == SentAs::Batch {
                namespaces.check_batch(queue, &self.messages)?;
            }
            namespaces.take_messages(cx, queue, self.messages)
        })
    }
}

impl Request for SettleOne {
    type Answer = ();

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<(), Denied> {
        let (queue, _) = gateway.named(requester, &self.path, Right::Listen)?;
        gateway.namespaces.record_access(cx.now, queue);
        gateway.with_namespaces(cx, |namespaces, cx| {
            namespaces.settle(cx, queue, self.token, LostLock::Session, self.settlement)
        })
    }
}

impl Request for RenewOne {
    /// Until when the lock holds.
    type Answer = Timestamp;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<Timestamp, Denied> {
        let (queue, address) = gateway.named(requester, &self.path, Right::Listen)?;
        gateway.namespaces.record_access(cx.now, queue);
        let renewed = gateway.with_queue(cx, queue, |queue, cx| {
            if queue.has_sessions() {
                return None;
            }
            Some(queue.renew(cx.now, self.token))
        });
        let (kind, text) = match renewed.flatten() {
            Some(Ok(until)) => return Ok(until),
            Some(Err(lost)) => (DeniedKind::MessageLockLost, lost.to_string()),
            None => (
                DeniedKind::NotAllowed,
                "The lock of a message in a session is renewed with the session's.".to_owned(),
            ),
        };
        Err(Denied::new(kind, text, &address.path))
    }
}

impl Gateway {
    /// Finds the queue or topic that a peer may send to.
    fn sendable(&self, requester: &Requester, path: &str) -> Result<EntityId, Denied> {
        let (queue, address) = self.named(requester, path, Right::Send)?;
        self.namespaces.check_sendable(queue, &address)?;
        Ok(queue)
    }

    /// Finds the entity at a path, for a client that has a right to it. A client without one does not
    /// learn whether it is there.
    pub(super) fn named(
        &self,
        requester: &Requester,
        path: &str,
        right: Right,
    ) -> Result<(EntityId, EntityAddress), Denied> {
        let host = requester.host.as_deref();
        let prefix = self.namespaces.directory().namespace_of(host);
        // A literal percent sign in a name is rare: decoded first, then as it is written.
        for address in [Address::parse_path(path), Address::of_path(path)] {
            let Ok(Address::Entity(address)) = address else {
                continue;
            };
            let path = format!("{prefix}{}", address.path);
            let address = EntityAddress { path, ..address };
            let checked = requester
                .authority
                .check_messages(&address.resource(), right);
            checked.map_err(|text| Denied::new(DeniedKind::Unauthorized, &text, &address.path))?;
            if let Some(id) = self.namespaces.resolve(&address) {
                return Ok((id, address));
            }
        }
        Err(Denied::not_found(host_shown(host), path))
    }
}
