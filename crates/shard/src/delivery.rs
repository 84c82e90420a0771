//! Replies with the bytes that they need, on their way to connections.

use bytes::Bytes;

use super::{ReadDone, Shard, reads};
use crate::limits;
use jitney_amqp::{LinkId, Refusal, Tag};
use jitney_base::ids::{BodyRef, ConnectionId, LockToken};
use jitney_broker::namespace::TraceEvent;
use jitney_gateway::{QueuedReply, Reply, Response};
use jitney_journal::Writer;
use jitney_message::Message;
use jitney_queue::{Handover, ReceiveMode};

/// A reply with the bytes that it needs.
#[derive(Debug)]
pub enum Outgoing {
    /// Close the connection, for this reason.
    Close(Refusal),
    /// Send a message, whose bytes these are.
    Deliver(LinkId, Box<Handover>, Bytes),
    /// Anything else.
    Reply(Reply),
    /// Answer a request with these messages.
    Respond(LinkId, Box<Response>, Vec<Bytes>),
}

/// What a connection has of the output that it was given before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backlog {
    /// Nothing: all of it is written.
    #[default]
    Empty,
    /// Some that is not written yet.
    Unwritten,
}

impl Outgoing {
    /// Returns the link and the delivery-tag of a message whose receiver is to settle it.
    #[must_use]
    pub fn locked(&self) -> Option<(LinkId, Tag)> {
        match self {
            Self::Deliver(link, handover, _) => locked_by(*link, handover),
            Self::Close(_) | Self::Reply(_) | Self::Respond(..) => None,
        }
    }
}

/// Returns the link and the delivery-tag of a message that a reply delivers, if its receiver is to
/// settle it.
pub(super) fn locked(routed: &QueuedReply) -> Option<(LinkId, Tag)> {
    if let Reply::Deliver(link, handover) = &routed.reply {
        locked_by(*link, handover)
    } else {
        None
    }
}

fn locked_by(link: LinkId, handover: &Handover) -> Option<(LinkId, Tag)> {
    (handover.mode == ReceiveMode::PeekLock).then(|| (link, handover.token.to_tag()))
}

/// Returns what a trace has of a reply that leaves.
pub(super) fn traced(outgoing: &Outgoing) -> Option<TraceEvent> {
    let Outgoing::Deliver(_, handover, bytes) = outgoing else {
        return None;
    };
    Some(released(handover.token, bytes))
}

/// Returns what a trace has of a message that leaves.
pub(super) fn released(token: LockToken, bytes: &Bytes) -> TraceEvent {
    // What is kept was parsed when it came.
    let message = Message::parse(bytes.clone()).ok();
    TraceEvent::Released {
        token,
        context: message.and_then(|message| message.trace_context()),
    }
}

impl Shard {
    /// A reply may leave: it does, unless bytes must be read first, for it or one before it.
    pub(super) fn release(&mut self, routed: QueuedReply) {
        let id = routed.connection;
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.held.is_empty() {
            reads::for_each_body(&routed.reply, |body| self.journal.pin(body));
            connection.held.push_back(routed);
            return;
        }
        match resolve(&self.journal, None, connection.backlog, routed) {
            Ok(outgoing) => self.queue(id, outgoing),
            Err(routed) => {
                reads::for_each_body(&routed.reply, |body| self.journal.pin(body));
                connection.held.push_back(*routed);
                self.read_for(id);
            }
        }
    }

    /// Asks for the bytes that a connection's held replies need.
    pub(super) fn read_for(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        let mut wanted = Vec::new();
        let (mut bytes, mut stretch) = (0, None);
        for routed in &connection.held {
            reads::for_each_body(&routed.reply, |body| {
                bytes += reads::cost(&mut stretch, body);
                wanted.push(body);
            });
            if limits::READ_BYTES_MAX <= bytes {
                break;
            }
        }
        self.read(reads::ReadPurpose::Deliver(id), wanted);
    }
}

/// Adds its bytes to a reply, or returns it if some are not in memory.
///
/// For a connection with a backlog, small bodies are copied: a slice would keep its whole log frame in
/// memory until the connection has written it.
pub(super) fn resolve(
    journal: &Writer,
    read: Option<&ReadDone>,
    backlog: Backlog,
    routed: QueuedReply,
) -> Result<Outgoing, Box<QueuedReply>> {
    let find = |body: BodyRef| -> Option<Bytes> {
        let found = journal
            .cached(body)
            .or_else(|| read.and_then(|read| read.keep(body)))?;
        let is_small = found.len() < jitney_journal::limits::COPIED_BODY_BYTES;
        let is_copied = is_small && backlog == Backlog::Unwritten;
        Some(if is_copied {
            Bytes::copy_from_slice(&found)
        } else {
            found
        })
    };
    let QueuedReply {
        connection,
        durable_after,
        reply,
    } = routed;
    match reply {
        Reply::Deliver(link, handover) => match find(handover.body) {
            Some(bytes) => Ok(Outgoing::Deliver(link, handover, bytes)),
            None => Err(Box::new(QueuedReply {
                connection,
                durable_after,
                reply: Reply::Deliver(link, handover),
            })),
        },
        Reply::Respond(link, response) => {
            match response.bodies().map(find).collect::<Option<Vec<Bytes>>>() {
                Some(bodies) => Ok(Outgoing::Respond(link, response, bodies)),
                None => Err(Box::new(QueuedReply {
                    connection,
                    durable_after,
                    reply: Reply::Respond(link, response),
                })),
            }
        }
        Reply::Close(refusal) => Ok(Outgoing::Close(refusal)),
        reply @ (Reply::AcceptLink(..)
        | Reply::RefuseLink(..)
        | Reply::Drained(..)
        | Reply::SettleIncoming { .. }
        | Reply::ReturnCredit(_)
        | Reply::SettleOutgoing(..)
        | Reply::Detach(..)
        | Reply::Authenticated(_)
        | Reply::Admitted) => Ok(Outgoing::Reply(reply)),
    }
}
