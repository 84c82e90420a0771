//! Windows: how much may wait to be written to peers, of messages for receivers and of responses.
//!
//! One connection may have [`limits::CONNECTION_WINDOW_BYTES`] of messages waiting, and all
//! connections together have a share of the memory: the less is left of it, the less one connection
//! may have. The first [`limits::UNREPORTED_BYTES_MAX`] of a connection do not count: it does not
//! report at once what it has written of them.
//!
//! Peers that read little leave room for others that window. Where many do not read at all, what waits
//! reaches twice the share: then a connection is handed no more than what does not count, and
//! connections that have written nothing for [`limits::UNREAD_WAIT_MAX`] are closed. A connection whose
//! peer reads is served all the time.
//!
//! Answers have a third share then. One namespace has at most five sixths of what the others leave of all three: its clients that
//! read nothing leave an answer to those of others.

use std::collections::BTreeMap;

use tracing::warn;

use super::connections::{Connection, Connections};
use super::{Link, QueuedReply, Reply, ServiceNode, consumer_id};
use crate::Gateway;
use crate::limits;
use jitney_amqp::LinkId;
use jitney_base::ids::ConnectionId;
use jitney_base::time::{ClockStep, Timestamp};
use jitney_broker::namespace::{Denied, DeniedKind, StepContext};
use jitney_queue::Allowance;

/// Namespaces with nothing that waits are kept up to so many namespaces in all: most have something again at once.
const EMPTY_NAMESPACES: usize = 64;

/// The bytes that wait to be written on one connection.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Bytes of messages.
    messages: u64,
    /// Bytes of answers.
    answers: u64,
    /// There is so much that nothing more is handed out.
    is_full: bool,
    /// When some of it was written last, or when it became so much that it counts.
    moved_at: Timestamp,
    /// It is being closed, because nothing of it was written for too long.
    is_closing: bool,
}

impl Window {
    fn bytes(&self) -> u64 {
        self.messages + self.answers
    }

    fn counted(&self) -> u64 {
        self.bytes().saturating_sub(limits::UNREPORTED_BYTES_MAX)
    }

    /// Returns whether some of it has not been written for as long as may be.
    fn is_stuck(&self, now: Timestamp) -> bool {
        !self.is_closing
            && 0 < self.counted()
            && self.moved_at.after(limits::UNREAD_WAIT_MAX) <= now
    }
}

/// The bytes that wait to be written on all connections.
#[derive(Debug)]
pub(crate) struct Windows {
    /// Bytes that all connections may have waiting together.
    share: u64,
    /// Bytes that all connections have waiting, without the first ones of each, which do not count.
    counted: u64,
    /// Those of each namespace that has some, by the prefix of its entities' paths, and of some that had some before.
    by_namespace: BTreeMap<String, u64>,
    /// While a connection is handed only what does not count: when connections are closed.
    closes_at: Option<Timestamp>,
    /// Bytes of requests that wait until their answers can be written.
    requests: usize,
}

impl Windows {
    pub(crate) fn new(share: usize) -> Self {
        Self {
            share: u64::try_from(share).unwrap_or(u64::MAX),
            counted: 0,
            by_namespace: BTreeMap::new(),
            closes_at: None,
            requests: 0,
        }
    }

    /// Returns what one connection may have waiting now.
    fn size(&self) -> u64 {
        let left = self.share.saturating_sub(self.counted);
        (left / 2).clamp(
            2 * limits::UNREPORTED_BYTES_MAX,
            limits::CONNECTION_WINDOW_BYTES,
        )
    }

    /// Returns whether a connection is handed only what does not count, for peers do not read.
    fn is_short(&self) -> bool {
        self.closes_at.is_some()
    }

    /// Ends that, if there is room again; returns whether it ended.
    fn end_shortage(&mut self) -> bool {
        let ends = self.is_short() && self.counted < self.share;
        if ends {
            self.closes_at = None;
        }
        ends
    }

    fn is_over(&self) -> bool {
        self.share.saturating_mul(2) <= self.counted
    }

    /// Returns whether answers of a namespace have room yet where messages have none. Its first one needs none of its own part,
    /// and each further one may be large.
    fn has_reserve(&self, prefix: &str) -> bool {
        let all = self.share.saturating_mul(3);
        let own = self.by_namespace.get(prefix).copied().unwrap_or_default();
        if own == 0 {
            return self.counted < all;
        }
        let left = all.saturating_sub(self.counted.saturating_sub(own));
        own.saturating_add(self.share / 2) <= left / 6 * 5
    }

    fn count(&mut self, prefix: &str, before: u64, now: u64) {
        if before == now {
            return;
        }
        self.counted = self.counted.saturating_sub(before).saturating_add(now);
        let Some(own) = self.by_namespace.get_mut(prefix) else {
            self.by_namespace.insert(prefix.to_owned(), now);
            return;
        };
        *own = own.saturating_sub(before).saturating_add(now);
        if *own == 0 && EMPTY_NAMESPACES < self.by_namespace.len() {
            self.by_namespace.remove(prefix);
        }
    }

    /// Checks that what is counted is what waits.
    pub(crate) fn check(&self, connections: &Connections) {
        let counted: u64 = connections.iter().map(|(_, it)| it.window.counted()).sum();
        assert_eq!(counted, self.counted);
        assert_eq!(counted, self.by_namespace.values().sum::<u64>());
        let requests: usize = connections.iter().map(|(_, it)| it.waiting).sum();
        assert_eq!(requests, self.requests);
    }

    /// Returns when connections are to be closed.
    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        self.closes_at
    }

    pub(crate) fn follow_clock(&mut self, step: ClockStep) {
        self.closes_at = self.closes_at.map(|at| at.moved(step));
    }

    /// Counts the requests of a connection that wait, in the place of those that waited before.
    pub(crate) fn count_requests(&mut self, before: usize, now: usize) {
        self.requests = self.requests.saturating_sub(before).saturating_add(now);
    }

    /// Returns whether so many bytes of requests may wait that are answered "busy", after others have taken their share.
    pub(crate) fn may_wait_without_content(&self, bytes: usize) -> bool {
        let all = self.requests.saturating_add(bytes);
        u64::try_from(all).is_ok_and(|all| all <= self.share.saturating_mul(2))
    }

    /// Returns whether a request of so many bytes may wait.
    pub(crate) fn may_wait(&self, bytes: usize) -> bool {
        u64::try_from(self.requests.saturating_add(bytes)).is_ok_and(|all| all <= self.share)
    }
}

/// Bytes that are to be written, or were.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Load {
    Messages(u64),
    Answers(u64),
}

impl Window {
    /// Follows a clock that was set.
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        self.moved_at = self.moved_at.moved(step);
    }
}

/// What a connection may be handed after some of what it had was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unloaded {
    /// It was full, and is not any more.
    Freed,
    /// As much as before.
    Same,
}

impl Connections {
    /// Counts what a connection has to write; returns whether it is to be handed nothing more.
    pub(super) fn load(&mut self, now: Timestamp, id: ConnectionId, load: Load) -> bool {
        let Self { open, windows, .. } = self;
        let Some(connection) = open.get_mut(&id) else {
            return false;
        };
        let window = &mut connection.window;
        let before = window.counted();
        match load {
            Load::Messages(bytes) => window.messages += bytes,
            Load::Answers(bytes) => window.answers += bytes,
        }
        if before == 0 {
            window.moved_at = now;
        }
        windows.count(&connection.prefix, before, window.counted());
        let fills = !window.is_full && windows.size() <= window.bytes();
        window.is_full |= fills;
        fills || (windows.is_short() && 0 < window.counted())
    }

    /// Counts what a connection has written.
    fn unload(&mut self, now: Timestamp, id: ConnectionId, load: Load) -> Option<Unloaded> {
        let Self { open, windows, .. } = self;
        let connection = open.get_mut(&id)?;
        let window = &mut connection.window;
        let before = window.counted();
        match load {
            Load::Messages(bytes) => window.messages = window.messages.saturating_sub(bytes),
            Load::Answers(bytes) => window.answers = window.answers.saturating_sub(bytes),
        }
        window.moved_at = now;
        windows.count(&connection.prefix, before, window.counted());
        let enough = (windows.size() / 2).max(limits::UNREPORTED_BYTES_MAX);
        if window.is_full && window.bytes() <= enough {
            window.is_full = false;
            return Some(Unloaded::Freed);
        }
        Some(Unloaded::Same)
    }

    /// Counts what waited on a connection no more, for it has ended.
    pub(super) fn forget_waiting(&mut self, ended: &Connection) {
        self.windows.count_requests(ended.waiting, 0);
        self.windows.count(&ended.prefix, ended.window.counted(), 0);
    }

    /// Counts so many bytes of calls of a connection that wait now, in the place of those before.
    pub(super) fn count_waiting(&mut self, id: ConnectionId, before: usize, now: usize) {
        if let Some(connection) = self.open.get_mut(&id) {
            connection.waiting = connection.waiting.saturating_sub(before) + now;
            self.windows.count_requests(before, now);
        }
    }

    /// Takes the connections to be closed, when it is time: their peers read nothing, and memory is short.
    fn take_stuck(&mut self, now: Timestamp) -> Vec<ConnectionId> {
        if self.windows.closes_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.windows.closes_at = Some(now.after(limits::UNREAD_WAIT_MAX));
        let open = self.open.iter_mut();
        let stuck = open.filter(|(_, connection)| connection.window.is_stuck(now));
        let stuck = stuck.map(|(&id, connection)| {
            connection.window.is_closing = true;
            id
        });
        stuck.collect()
    }

    /// Returns how much each receiver of a connection may be handed.
    pub(super) fn allowance(&self, id: ConnectionId) -> Allowance {
        let Some(Connection { window, .. }) = self.open.get(&id) else {
            return Allowance::Stopped;
        };
        let is_short = self.windows.is_short();
        let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        if window.is_full || (is_short && 0 < window.counted()) {
            Allowance::Stopped
        } else if is_short {
            let left = limits::UNREPORTED_BYTES_MAX.saturating_sub(window.bytes());
            Allowance::Within(bytes(left))
        } else {
            Allowance::UpTo(
                bytes(self.windows.size() / 2).min(jitney_queue::limits::RECEIVER_WINDOW_BYTES),
            )
        }
    }

    /// Returns whether another request of a connection to a node may be carried out: its peer reads the
    /// answers. While peers do not read what they are sent, answers of other connections have a share
    /// more than messages; those of `$cbs` are small, and always leave.
    pub(super) fn takes_answers(&self, id: ConnectionId, node: &ServiceNode) -> bool {
        let connection = self.open.get(&id);
        connection.is_some_and(|Connection { window, prefix, .. }| {
            let has_reserve = || *node == ServiceNode::Cbs || self.windows.has_reserve(prefix);
            !window.is_full
                && window.answers < limits::ANSWERS_WINDOW_BYTES
                && (!self.windows.is_short() || window.counted() == 0 && has_reserve())
        })
    }
}

impl Gateway {
    /// Stops what the connections that were filled are handed, and what all are if there is too much.
    pub(crate) fn stop_filled(&mut self, cx: &mut StepContext<'_>, filled: Vec<ConnectionId>) {
        for connection in filled {
            self.allow_receivers(cx, connection);
        }
        let connections = self.connections.len();
        let windows = &mut self.connections.windows;
        if !windows.is_short() && windows.is_over() {
            windows.closes_at = Some(cx.now.after(limits::UNREAD_WAIT_MAX));
            warn!(
                bytes = windows.counted,
                connections,
                "peers do not read what is sent to them: connections get little until they do, or are \
                 closed"
            );
            self.allow_all(cx);
        }
    }

    /// Counts what a connection has written, and lets it have more.
    pub(crate) fn unload(&mut self, cx: &mut StepContext<'_>, id: ConnectionId, load: Load) {
        let Some(unloaded) = self.connections.unload(cx.now, id, load) else {
            return;
        };
        let frees = unloaded == Unloaded::Freed;
        let is_short = self.connections.windows.is_short();
        if is_short {
            self.resume_sending(cx);
        }
        if frees || is_short {
            self.allow_receivers(cx, id);
        }
        if frees || matches!(load, Load::Answers(_)) {
            self.answer_all(cx, id);
        }
    }

    /// Hands out messages and answers again, if nothing was and there is room.
    pub(super) fn resume_sending(&mut self, cx: &mut StepContext<'_>) {
        if !self.connections.windows.end_shortage() {
            return;
        }
        self.allow_all(cx);
        for id in self.connections.ids() {
            self.answer_all(cx, id);
        }
    }

    /// Closes the connections whose peers do not read, when it is time.
    pub(crate) fn close_stuck(&mut self, cx: &StepContext<'_>) {
        for id in self.connections.take_stuck(cx.now) {
            warn!(
                connection = id.0,
                "the peer does not read what is sent to it, and memory is short: closing"
            );
            let text = "The connection is closed: its peer has read nothing for some seconds, and \
                        the broker has too much to write to those that do not read.";
            let refusal = self.refusal(cx.now, Denied::new(DeniedKind::Limit, text, ""));
            self.replies.push(QueuedReply {
                connection: id,
                durable_after: 0,
                reply: Reply::Close(refusal),
            });
        }
    }

    fn allow_all(&mut self, cx: &mut StepContext<'_>) {
        for id in self.connections.ids() {
            self.allow_receivers(cx, id);
        }
    }

    /// Stops the receivers of a connection that has too much to write, or resumes them.
    fn allow_receivers(&mut self, cx: &mut StepContext<'_>, id: ConnectionId) {
        let Some(connection) = self.connections.get(id) else {
            return;
        };
        let receivers = connection
            .links
            .iter()
            .filter_map(|(&id, link)| match link {
                &Link::Receiver { queue, .. } => Some((id, queue)),
                Link::Sender { .. }
                | Link::Waiting { .. }
                | Link::Coordinator { .. }
                | Link::Requests { .. }
                | Link::Responses(_) => None,
            });
        for (link, queue) in receivers.collect::<Vec<(LinkId, _)>>() {
            // Deliveries on the links before may have filled it.
            let allowance = self.connections.allowance(id);
            let consumer = consumer_id(id, link);
            self.with_queue(cx, queue, |queue, cx| {
                queue.allow(cx, consumer, allowance);
            });
        }
    }
}
