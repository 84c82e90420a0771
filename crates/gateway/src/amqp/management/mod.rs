//! The management node of an entity, and the requests and responses of all service nodes.
//!
//! A request is a message with an operation among its application-properties; its response goes
//! out on a link that the request names in its reply-to (`management.md#the-management-node`).

mod envelope;
mod message_sessions;
mod operations;
mod response;
mod rules;
mod scans;
#[cfg(test)]
mod tests;
mod values;

use std::collections::VecDeque;

use bytes::Bytes;
use serde_amqp::Value;

use super::connections::Connection;
use super::windows::Load;
use super::{Link, QueuedReply, Reply, ResponseLink, ServiceNode, consumer_id};
use crate::Gateway;
use crate::limits;
use jitney_amqp::{Fields, IncomingTransfer, LinkCredit, LinkId, SessionId};
use jitney_base::ids::ConnectionId;
use jitney_base::time::{TICKS_PER_MILLI, Timestamp, UNIX_EPOCH_TICKS};
use jitney_broker::namespace::{Denied, DeniedKind, StepContext};

pub(super) use envelope::RequestMessage;
pub(super) use response::Body;
pub use response::Response;
pub(crate) use response::Status;
pub(crate) use scans::Scans;

/// The link property from which clients take the size of a batch: a `long`
/// (`messaging.md#sender-links`).
pub(super) fn batch_size_property(bytes: u64) -> Fields {
    let size =
        i64::try_from(bytes.min(jitney_message::limits::MESSAGE_SIZE_DEFAULT)).unwrap_or(i64::MAX);
    let mut properties = Fields::new();
    properties.insert(
        "com.microsoft:max-message-batch-size".into(),
        Value::Long(size),
    );
    properties
}

/// The link property that tells when a message session's lock ends: .NET's ticks, in eight bytes
/// (`receiving.md#session-filter`).
pub(super) fn locked_until_property(until: Timestamp) -> Fields {
    let ticks = until
        .as_millis()
        .saturating_mul(TICKS_PER_MILLI)
        .saturating_add(UNIX_EPOCH_TICKS);
    let mut properties = Fields::new();
    properties.insert("com.microsoft:locked-until-utc".into(), Value::Long(ticks));
    properties
}

impl Gateway {
    /// Takes a request in; [`Gateway::submit`] has it carried out when its answer can leave, and not before: an answer
    /// that waited could tell of messages that are gone. Its credit comes back with its answer.
    ///
    /// # Errors
    ///
    /// When so much waits already that not even the answer "busy" may wait.
    pub(super) fn take_request(
        &mut self,
        id: ConnectionId,
        incoming: &IncomingTransfer,
        node: ServiceNode,
        session: SessionId,
    ) -> Result<Call, Denied> {
        let payload = incoming.payload.clone();
        let (request, fault) = match RequestMessage::read(&payload) {
            Ok(request) => (request, None),
            Err(invalid) => {
                let (request, text) = *invalid;
                (request, Some(CallFault::Invalid(text)))
            }
        };
        let call = Call {
            node,
            link: incoming.link,
            session,
            request,
            fault,
            transaction: incoming.transaction.clone(),
            payload,
            progress: operations::Progress::default(),
        };
        Ok(match self.room_for(id, &call) {
            CallRoom::Whole => call,
            CallRoom::Answer => {
                if let Some(transaction) = &call.transaction {
                    self.abort(id, transaction, NO_ROOM);
                }
                call.without_content()
            }
            CallRoom::None => return Err(Denied::new(DeniedKind::Limit, NO_ROOM, "")),
        })
    }

    /// Returns whether a small call need not wait, as most need not: the link for its answer has
    /// credit, and no other call is before it. What others have waiting is no reason to refuse it.
    fn is_answered_at_once(&mut self, id: ConnectionId, call: &Call) -> bool {
        let size = u64::try_from(call.payload.len()).unwrap_or(u64::MAX);
        if limits::CBS_MESSAGE_BYTES_MAX < size
            || self.has_unfinished()
            || !self.connections.takes_answers(id, &call.node)
        {
            return false;
        }
        let connection = self.connection(id);
        let reply_to = call.request.reply_to.as_deref();
        let link = find(&connection.links, &call.node, call.session, reply_to);
        match link.and_then(|link| connection.links.get(&link)) {
            Some(Link::Responses(state)) => state.has_credit() && state.waiting.is_empty(),
            Some(_) | None => false,
        }
    }

    /// Returns how much of another call may wait on a connection. One that is as small as a token may always be
    /// its first: Java sends it while it attaches the link for the answer.
    fn room_for(&mut self, id: ConnectionId, call: &Call) -> CallRoom {
        let bytes = call.bytes();
        let waiting = self.connection(id).waiting;
        let has_share =
            self.connections.windows.may_wait(bytes) || self.is_answered_at_once(id, call);
        let is_first = waiting == 0;
        let fits = is_first || waiting + bytes <= limits::REQUESTS_WAITING_BYTES_MAX;
        if fits && has_share || is_first && call.payload.len() <= limits::FIRST_REQUEST_BYTES {
            return CallRoom::Whole;
        }
        let bytes = call.request.bytes() + limits::REQUEST_BYTES;
        if waiting + bytes <= 2 * limits::REQUESTS_WAITING_BYTES_MAX
            && self.connections.windows.may_wait_without_content(bytes)
        {
            CallRoom::Answer
        } else {
            CallRoom::None
        }
    }

    /// Lets a call wait where its answer will leave, or for that link to be attached.
    pub(super) fn submit(&mut self, cx: &mut StepContext<'_>, id: ConnectionId, call: Call) {
        self.answer_at_dynamic_node(cx, id, &call);
        let connection = self.connection(id);
        let reply_to = call.request.reply_to.as_deref();
        let link = find(&connection.links, &call.node, call.session, reply_to);
        let bytes = call.bytes();
        match link.and_then(|link| Some((link, connection.links.get_mut(&link)?))) {
            Some((link, Link::Responses(state))) => {
                state.waiting.push_back(call);
                self.connections.count_waiting(id, 0, bytes);
                self.answer_waiting(cx, id, link);
            }
            Some(_) | None => {
                connection.orphans.push_back(call);
                self.connections.count_waiting(id, 0, bytes);
            }
        }
    }

    /// Makes the receiver of a dynamic node the link for answers, if a request of its connection names that node as
    /// its reply-to: Proton's `SyncRequestResponse` asks so. Nothing else can have come into the node by then.
    fn answer_at_dynamic_node(&mut self, cx: &mut StepContext<'_>, id: ConnectionId, call: &Call) {
        let Some(reply_to) = &call.request.reply_to else {
            return;
        };
        let Some((link, queue)) = self.connection(id).receiver_of_dynamic(reply_to) else {
            return;
        };
        let consumer = consumer_id(id, link);
        let position = self.namespaces.queue(queue);
        let position = position.and_then(|queue| queue.credit_position(consumer));
        let Some((limit, sent)) = position else {
            return;
        };
        self.namespaces.remove_consumer(cx.now, queue, consumer);
        let answers = ResponseLink {
            node: call.node.clone(),
            session: call.session,
            name: String::new(),
            target: Some(reply_to.clone()),
            limit,
            sent,
            waiting: VecDeque::new(),
        };
        let links = &mut self.connection(id).links;
        links.insert(link, Link::Responses(answers));
    }

    /// Gives calls that had no link for their answers to one that has just been attached.
    pub(super) fn adopt_orphans(
        &mut self,
        cx: &mut StepContext<'_>,
        id: ConnectionId,
        link: LinkId,
    ) {
        if matches!(self.link(id, link), Some(Link::Responses(_))) {
            for call in std::mem::take(&mut self.connection(id).orphans) {
                self.connections.count_waiting(id, call.bytes(), 0);
                self.submit(cx, id, call);
            }
        }
    }

    pub(super) fn respond_credit(
        &mut self,
        cx: &mut StepContext<'_>,
        id: ConnectionId,
        credit: LinkCredit,
    ) {
        let LinkCredit { link, limit, drain } = credit;
        if let Some(Link::Responses(state)) = self.connection(id).links.get_mut(&link) {
            state.limit = limit;
        }
        self.answer_waiting(cx, id, link);
        if drain {
            if let Some(Link::Responses(state)) = self.connection(id).links.get_mut(&link) {
                state.sent = state.limit;
            }
            let reply = Reply::Drained(link, limit);
            self.replies.push(QueuedReply {
                connection: id,
                durable_after: cx.group,
                reply,
            });
        }
    }

    /// Carries out the calls whose answers can leave on a link.
    fn answer_waiting(&mut self, cx: &mut StepContext<'_>, id: ConnectionId, link: LinkId) {
        while let Some(mut call) = self.next_call(id, link) {
            let node = call.node.clone();
            let (durable_after, status, body) = match (&call.fault, &node) {
                (Some(CallFault::Invalid(text)), _) => (0, Status::invalid(text), Body::Empty),
                (Some(CallFault::NoRoom), _) => (0, Status::busy(NO_ROOM.to_owned()), Body::Empty),
                (None, ServiceNode::Cbs) => {
                    let (status, body) = self.cbs_request(cx, id, &call.request);
                    (0, status, body)
                }
                (None, ServiceNode::Management(address)) => {
                    match self.operate(cx, id, address, &mut call) {
                        Ok(answer) => answer,
                        Err(progress) => {
                            call.progress = progress;
                            return self.leave_unfinished(id, link, call);
                        }
                    }
                }
            };
            self.log_answered(id, &node, &call.request.operation, &status);
            let response = Response::new(&call.request, status, body);
            let fills = self
                .connections
                .load(cx.now, id, Load::Answers(response.bytes()));
            let reply = Reply::Respond(link, Box::new(response));
            self.replies.push(QueuedReply {
                connection: id,
                durable_after,
                reply,
            });
            self.return_credit(id, call.link, durable_after);
            let filled = fills.then_some(id).into_iter().collect();
            self.stop_filled(cx, filled);
        }
    }

    /// Gives the credit of a request back to the link that it came on.
    fn return_credit(&mut self, id: ConnectionId, link: LinkId, durable_after: u64) {
        self.replies.push(QueuedReply {
            connection: id,
            durable_after,
            reply: Reply::ReturnCredit(link),
        });
    }

    /// Forgets the calls whose answers were to leave on a link that has ended.
    pub(super) fn drop_calls(&mut self, id: ConnectionId, link: &Link) {
        if let Link::Responses(state) = link {
            for call in &state.waiting {
                self.connections.count_waiting(id, call.bytes(), 0);
                self.return_credit(id, call.link, 0);
            }
        }
    }

    /// Puts a call back that continues in another turn.
    fn leave_unfinished(&mut self, id: ConnectionId, link: LinkId, call: Call) {
        let bytes = call.bytes();
        if let Some(Link::Responses(state)) = self.connection(id).links.get_mut(&link) {
            state.waiting.push_front(call);
            state.sent = state.sent.wrapping_sub(1);
            self.connections.count_waiting(id, 0, bytes);
            self.scans.leave_unfinished(id, link);
        }
    }

    /// Returns whether calls are unfinished that wait only for their turn.
    #[must_use]
    pub fn has_unfinished(&self) -> bool {
        0 < self.scans.unfinished()
    }

    /// Continues unfinished calls, one link after the other.
    pub(crate) fn resume_unfinished(&mut self, cx: &mut StepContext<'_>) {
        for _ in 0..self.scans.unfinished() {
            if self.scans.is_spent() {
                return;
            }
            if let Some((id, link)) = self.scans.next_unfinished()
                && self.link(id, link).is_some()
            {
                self.answer_waiting(cx, id, link);
            }
        }
    }

    /// Carries out the calls of a connection whose answers can leave.
    pub(super) fn answer_all(&mut self, cx: &mut StepContext<'_>, id: ConnectionId) {
        let Some(connection) = self.connections.get(id) else {
            return;
        };
        let links = connection.links.iter();
        let waiting = links.filter(|(_, link)| match link {
            Link::Responses(state) => !state.waiting.is_empty(),
            Link::Sender { .. }
            | Link::Receiver { .. }
            | Link::Waiting { .. }
            | Link::Coordinator { .. }
            | Link::Requests { .. } => false,
        });
        let waiting: Vec<LinkId> = waiting.map(|(&id, _)| id).collect();
        for link in waiting {
            self.answer_waiting(cx, id, link);
        }
    }

    /// Takes the next call for which a link has credit, and the credit.
    fn next_call(&mut self, id: ConnectionId, link: LinkId) -> Option<Call> {
        let Some(Link::Responses(state)) = self.link(id, link) else {
            return None;
        };
        let node = &state.waiting.front()?.node;
        if !state.has_credit() || !self.connections.takes_answers(id, node) {
            return None;
        }
        let Some(Link::Responses(state)) = self.connection(id).links.get_mut(&link) else {
            return None;
        };
        let call = state.waiting.pop_front()?;
        state.sent = state.sent.wrapping_add(1);
        self.connections.count_waiting(id, call.bytes(), 0);
        Some(call)
    }
}

impl ResponseLink {
    fn has_credit(&self) -> bool {
        let credit = self.limit.wrapping_sub(self.sent);
        credit != 0 && credit < 1 << 31
    }
}

impl Connection {
    /// Returns the bytes of the calls that wait.
    pub(super) fn waiting_calls(&self) -> usize {
        let waiting = self.links.values().filter_map(|link| match link {
            Link::Responses(state) => Some(&state.waiting),
            Link::Sender { .. }
            | Link::Receiver { .. }
            | Link::Waiting { .. }
            | Link::Coordinator { .. }
            | Link::Requests { .. } => None,
        });
        let waiting = waiting.flatten().chain(&self.orphans);
        waiting.map(Call::bytes).sum()
    }
}

/// A request that waits until its answer can leave. Its link may not be there yet: Java attaches it
/// concurrently with its request.
#[derive(Debug)]
pub(crate) struct Call {
    node: ServiceNode,
    /// The link that it came on.
    link: LinkId,
    session: SessionId,
    request: RequestMessage,
    /// The reason why it cannot be carried out at all, if there is one.
    fault: Option<CallFault>,
    /// The transaction that it is part of.
    transaction: Option<Bytes>,
    /// As it came.
    payload: Bytes,
    /// How far it has come.
    progress: operations::Progress,
}

/// Why a call cannot be carried out at all.
#[derive(Debug)]
enum CallFault {
    /// It is no request that the node knows.
    Invalid(String),
    /// There was no room for its content.
    NoRoom,
}

/// How much of a call may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallRoom {
    /// All of it.
    Whole,
    /// What its answer needs: it is refused by that.
    Answer,
    /// Nothing.
    None,
}

/// The answer to a call for whose content there was no room.
const NO_ROOM: &str =
    "Too many requests wait for their responses to be received. Try again when some have come.";

impl Call {
    /// Returns the bytes with which it is counted.
    fn bytes(&self) -> usize {
        match self.fault {
            Some(CallFault::NoRoom) => self.request.bytes() + limits::REQUEST_BYTES,
            Some(CallFault::Invalid(_)) | None => self.payload.len() + limits::REQUEST_BYTES,
        }
    }

    /// Keeps what the answer "busy" needs.
    fn without_content(self) -> Self {
        Self {
            request: self.request.without_content(),
            fault: Some(CallFault::NoRoom),
            transaction: None,
            payload: Bytes::new(),
            ..self
        }
    }
}

/// Finds the link that a reply-to names: by its target's address, else by its own name, else,
/// where nothing is named or Python names the node itself, the node's link in the request's
/// session (`cbs.md#links`).
fn find(
    links: &std::collections::BTreeMap<LinkId, Link>,
    node: &ServiceNode,
    session: SessionId,
    reply_to: Option<&str>,
) -> Option<LinkId> {
    let of_node = || {
        links.iter().filter_map(|(&id, link)| match link {
            Link::Responses(state) => (state.node == *node).then_some((id, state)),
            Link::Sender { .. }
            | Link::Receiver { .. }
            | Link::Waiting { .. }
            | Link::Coordinator { .. }
            | Link::Requests { .. } => None,
        })
    };
    let by_target = || of_node().filter(|(_, link)| link.target.as_deref() == reply_to);
    let Some(name) = reply_to else {
        return of_node()
            .find(|(_, link)| link.session == session)
            .map(|(id, _)| id);
    };
    by_target()
        .find(|(_, link)| link.session == session)
        .or_else(|| by_target().next())
        .or_else(|| of_node().find(|(_, link)| link.name == name))
        .map(|(id, _)| id)
}
