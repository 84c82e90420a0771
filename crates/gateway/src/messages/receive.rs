//! Receives without a link: each is a receiver of its queue for one message.
//!
//! A receive is open from [`Gateway::receive_one`] until [`Gateway::receive_answered`]. While it waits, it has credit for
//! one message, as a receiver that has a link. At its deadline it drains: it takes what is available, or nothing. A message that
//! it is handed is on its way while the group that it rests on becomes durable and its bytes are read; then the answer leaves.
//!
//! Promises: a receive is told one [`ReceiveOutcome`], unless it is abandoned; one that is cancelled while it waits takes no
//! message.

use std::collections::{BTreeMap, BTreeSet};

use super::Receive;
use crate::denied::host_shown;
use crate::request::Requester;
use crate::{Gateway, request_log};
use jitney_base::address::EntityAddress;
use jitney_base::ids::{EntityId, LockToken, RequestId};
use jitney_base::rights::Right;
use jitney_base::time::{ClockStep, Timestamp};
use jitney_broker::access::Actor;
use jitney_broker::namespace::{Contained, Damage, Denied, StepContext};
use jitney_queue::{ConsumerId, Handover, ReceiveMode};

/// Something that a receive is told.
#[derive(Debug)]
pub struct ReceiveReply {
    /// The receive.
    pub request: RequestId,
    /// The group of records that must be durable first; 0 for none.
    pub durable_after: u64,
    /// What comes of it.
    pub outcome: ReceiveOutcome,
}

/// What comes of a receive.
#[derive(Debug)]
pub enum ReceiveOutcome {
    /// A message.
    Message(Box<HandedOut>),
    /// There was none in time.
    Nothing,
    /// It was refused, or has ended for this reason.
    Refused(Denied),
}

/// A message that was handed to a receive.
#[derive(Debug)]
pub struct HandedOut {
    /// The queue that it was in.
    pub queue: EntityId,
    /// The message and its lock.
    pub handover: Handover,
}

/// The receives that are open.
#[derive(Debug, Default)]
pub(crate) struct Receives {
    open: BTreeMap<RequestId, OpenReceive>,
    /// Those that are receivers of a queue.
    consumers: BTreeMap<ConsumerId, RequestId>,
    /// When those that wait begin to drain.
    deadlines: BTreeSet<(Timestamp, RequestId)>,
    /// The newest number of a receiver.
    last: u32,
}

/// A receive that is open.
#[derive(Debug)]
pub(crate) struct OpenReceive {
    pub(crate) queue: EntityId,
    /// The prefix of the paths of its namespace's entities.
    pub(crate) prefix: String,
    /// The host by which its client calls the namespace.
    pub(crate) host: String,
    pub(crate) client: Actor,
    pub(crate) mode: ReceiveMode,
    /// When it came, and until when it waits.
    pub(crate) began: Timestamp,
    pub(crate) until: Timestamp,
    state: State,
}

/// The state of a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It waits for a message, as this receiver.
    Waiting(ConsumerId),
    /// It takes an available message, or nothing, as this receiver.
    Draining(ConsumerId),
    /// A message is on its way to it.
    HandedOut,
    /// As before; if that comes to nothing, it takes no other.
    Cancelled,
}

/// Returns whether a receiver of a queue is a receive: no connection has the number 0, which a link's would have in its
/// place.
pub(crate) const fn is_receive(consumer: ConsumerId) -> bool {
    consumer.0 >> 32 == 0
}

impl OpenReceive {
    /// Returns whether it is a receiver of its queue.
    pub(crate) const fn waits(&self) -> bool {
        matches!(self.state, State::Waiting(_) | State::Draining(_))
    }
}

impl Receives {
    /// Returns a receive that is open.
    pub(crate) fn get(&self, request: RequestId) -> Option<&OpenReceive> {
        self.open.get(&request)
    }

    /// Returns the receives that are receivers of a queue, in the order of their numbers.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (RequestId, &OpenReceive)> {
        let open = self
            .open
            .iter()
            .map(|(&request, receive)| (request, receive));
        open.filter(|(_, receive)| receive.waits())
    }

    /// Returns how many are receivers of a queue.
    pub(crate) fn count(&self) -> usize {
        self.consumers.len()
    }

    /// Returns whether one is open in a namespace, whose entities' paths have this prefix.
    pub(crate) fn are_in(&self, prefix: &str) -> bool {
        self.open.values().any(|receive| receive.prefix == prefix)
    }

    /// Returns when the next one begins to drain.
    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// Takes the next one that has waited for long enough.
    fn next_due(&mut self, now: Timestamp) -> Option<RequestId> {
        let is_due = self.poll_timeout().is_some_and(|at| at <= now);
        let (_, request) = is_due.then(|| self.deadlines.pop_first()).flatten()?;
        Some(request)
    }

    /// The clock was set: receives wait for as long as before.
    pub(crate) fn follow_clock(&mut self, step: ClockStep) {
        for receive in self.open.values_mut() {
            receive.began = receive.began.moved(step);
            receive.until = receive.until.moved(step);
        }
        let deadlines = std::mem::take(&mut self.deadlines).into_iter();
        let moved = deadlines.map(|(at, request)| (at.moved(step), request));
        self.deadlines = moved.collect();
    }

    /// Makes a receive a receiver of its queue: its number, and whether it drains at once.
    fn enlist(&mut self, now: Timestamp, request: RequestId) -> Option<(ConsumerId, bool)> {
        let receive = self.open.get_mut(&request)?;
        let consumer = loop {
            self.last = self.last.wrapping_add(1);
            let consumer = ConsumerId(u64::from(self.last));
            if !self.consumers.contains_key(&consumer) {
                break consumer;
            }
        };
        let drains = receive.until <= now;
        if drains {
            receive.state = State::Draining(consumer);
        } else {
            receive.state = State::Waiting(consumer);
            self.deadlines.insert((receive.until, request));
        }
        self.consumers.insert(consumer, request);
        Some((consumer, drains))
    }

    /// Notes that a receive drains from now on; returns its queue and its number there, if it has waited until now.
    fn drain(&mut self, request: RequestId) -> Option<(EntityId, ConsumerId)> {
        let receive = self.open.get_mut(&request)?;
        let State::Waiting(consumer) = receive.state else {
            return None;
        };
        receive.state = State::Draining(consumer);
        self.deadlines.remove(&(receive.until, request));
        Some((receive.queue, consumer))
    }

    /// Notes that a receiver of a queue was handed a message; returns its receive and the queue.
    fn hand_out(&mut self, consumer: ConsumerId) -> Option<(RequestId, EntityId)> {
        let request = self.consumers.remove(&consumer)?;
        let receive = self.open.get_mut(&request)?;
        receive.state = State::HandedOut;
        self.deadlines.remove(&(receive.until, request));
        Some((request, receive.queue))
    }

    /// Ends a receive that is a receiver of a queue; returns it and its number there.
    fn end(&mut self, request: RequestId) -> Option<(ConsumerId, OpenReceive)> {
        let (State::Waiting(consumer) | State::Draining(consumer)) = self.open.get(&request)?.state
        else {
            return None;
        };
        let receive = self.open.remove(&request)?;
        self.consumers.remove(&consumer);
        self.deadlines.remove(&(receive.until, request));
        Some((consumer, receive))
    }
}

impl Gateway {
    /// Begins a receive of one message. What comes of it is told in a [`ReceiveReply`].
    pub fn receive_one(
        &mut self,
        cx: &mut StepContext<'_>,
        request: RequestId,
        requester: &Requester,
        receive: &Receive,
    ) {
        let found = self.named(requester, &receive.path, Right::Listen);
        let found = found.and_then(|(queue, address)| {
            self.namespaces.check_receivable(queue, &address)?;
            self.namespaces.check_without_session(queue, &address)?;
            Ok(queue)
        });
        let queue = match found {
            Ok(queue) => queue,
            Err(denied) => {
                let denied = self.tracked(cx.now, denied);
                return self.tell(request, 0, ReceiveOutcome::Refused(denied));
            }
        };
        self.namespaces.record_access(cx.now, queue);
        let host = requester.host.as_deref();
        let open = OpenReceive {
            queue,
            prefix: self.namespaces.directory().namespace_of(host),
            host: host_shown(host).to_owned(),
            client: requester.authority.actor().clone(),
            mode: receive.mode,
            began: cx.now,
            until: cx.now.after(receive.wait),
            state: State::HandedOut,
        };
        self.receives.open.insert(request, open);
        self.enlist_receive(cx, request);
    }

    /// Makes a receive a receiver of its queue, with credit for one message.
    fn enlist_receive(&mut self, cx: &mut StepContext<'_>, request: RequestId) {
        let known = self.receives.open.get(&request);
        let Some((queue, mode)) = known.map(|receive| (receive.queue, receive.mode)) else {
            return;
        };
        let Some((consumer, drains)) = self.receives.enlist(cx.now, request) else {
            return;
        };
        self.with_queue(cx, queue, |queue, cx| {
            queue.add_consumer(consumer, mode);
            if drains {
                queue.drain(cx, consumer, 1);
            } else {
                queue.set_credit(cx, consumer, 1);
            }
        });
    }

    /// A receive is to wait no longer. It takes no message any more, unless one is on its way to it.
    pub fn cancel_receive(&mut self, cx: &mut StepContext<'_>, request: RequestId) {
        if let Some((consumer, receive)) = self.receives.end(request) {
            self.namespaces
                .remove_consumer(cx.now, receive.queue, consumer);
            self.tell(request, 0, ReceiveOutcome::Nothing);
        } else if let Some(receive) = self.receives.open.get_mut(&request) {
            receive.state = State::Cancelled;
        }
    }

    /// The answer to a receive has left.
    pub fn receive_answered(&mut self, request: RequestId) {
        self.receives.open.remove(&request);
    }

    /// A message was not brought to the client of a receive: it is as if it had not been delivered. If its lock has ended meanwhile,
    /// it is back already.
    pub fn return_received(&mut self, cx: &mut StepContext<'_>, queue: EntityId, token: LockToken) {
        self.with_queue(cx, queue, |queue, cx| queue.free(cx, token));
    }

    /// Contains the damage of a message that was on its way to a receive, which waits for another one.
    pub fn received_damaged(
        &mut self,
        cx: &mut StepContext<'_>,
        request: RequestId,
        handed_out: &HandedOut,
        damage: &Damage,
    ) -> Option<Contained> {
        let HandedOut { queue, handover } = handed_out;
        let contained = self.namespaces.queue(*queue).is_some().then(|| {
            let contained = self.contain_handed_out(cx, *queue, handover.mode, handover, damage);
            self.return_received(cx, *queue, handover.token);
            contained
        });
        match self
            .receives
            .open
            .get(&request)
            .map(|receive| receive.state)
        {
            Some(State::HandedOut) => self.enlist_receive(cx, request),
            Some(State::Waiting(_) | State::Draining(_) | State::Cancelled) | None => {
                self.receives.open.remove(&request);
                self.tell(request, 0, ReceiveOutcome::Nothing);
            }
        }
        contained.flatten()
    }

    /// Lets all receives take what is available, or nothing.
    pub fn drain_receives(&mut self, cx: &mut StepContext<'_>) {
        let waiting = self.receives.deadlines.iter();
        let waiting: Vec<RequestId> = waiting.map(|&(_, request)| request).collect();
        for request in waiting {
            self.drain_receive(cx, request);
        }
    }

    /// Lets the receives take what is available, or nothing, that have waited for as long as they may.
    pub(crate) fn end_waits(&mut self, cx: &mut StepContext<'_>) {
        while let Some(request) = self.receives.next_due(cx.now) {
            self.drain_receive(cx, request);
        }
    }

    fn drain_receive(&mut self, cx: &mut StepContext<'_>, request: RequestId) {
        let Some((queue, consumer)) = self.receives.drain(request) else {
            return;
        };
        self.with_queue(cx, queue, |queue, cx| {
            queue.drain(cx, consumer, 1);
        });
    }

    /// Forgets the receives that no message is on its way to: they are not answered.
    pub fn abandon_receives(&mut self, now: Timestamp) -> Vec<RequestId> {
        let waiting: Vec<RequestId> = self.receives.consumers.values().copied().collect();
        for &request in &waiting {
            if let Some((consumer, receive)) = self.receives.end(request) {
                self.namespaces
                    .remove_consumer(now, receive.queue, consumer);
            }
        }
        waiting
    }

    /// Returns whether a receive is open.
    #[must_use]
    pub fn has_open_receives(&self) -> bool {
        !self.receives.open.is_empty()
    }

    /// Ends the receives that wait and for which there is a reason.
    pub(crate) fn end_receives(
        &mut self,
        cx: &StepContext<'_>,
        reason: impl Fn(&Self, RequestId, &OpenReceive) -> Option<Denied>,
    ) {
        let waiting = self.receives.waiting();
        let doomed = waiting
            .filter_map(|(request, receive)| Some((request, reason(self, request, receive)?)));
        for (request, denied) in doomed.collect::<Vec<_>>() {
            if let Some((consumer, receive)) = self.receives.end(request) {
                self.namespaces
                    .remove_consumer(cx.now, receive.queue, consumer);
                let denied = self.tracked(cx.now, denied);
                self.tell(request, cx.group, ReceiveOutcome::Refused(denied));
            }
        }
    }

    /// Ends the receives that an entity's new properties forbid.
    pub(crate) fn end_forbidden_receives(&mut self, cx: &StepContext<'_>, base: EntityId) {
        self.end_receives(cx, |gateway, _, receive| {
            let node = gateway.namespaces.node(receive.queue)?;
            let is_of = receive.queue.base() == base;
            let checked = gateway
                .namespaces
                .check_receivable(receive.queue, &node.address);
            checked.err().filter(|_| is_of)
        });
    }

    /// Ends the receives of an entity that was deleted.
    pub(crate) fn end_receives_of(
        &mut self,
        cx: &StepContext<'_>,
        base: EntityId,
        address: &EntityAddress,
    ) {
        let address = address.to_string();
        self.end_receives(cx, |_, _, receive| {
            let is_of = receive.queue.base() == base;
            is_of.then(|| Denied::not_found(&receive.host, &address))
        });
    }

    /// Passes a message on that a queue has handed to a receive.
    pub(crate) fn hand_to_receive(
        &mut self,
        cx: &StepContext<'_>,
        consumer: ConsumerId,
        durable_after: u64,
        handover: Handover,
    ) {
        let Some((request, queue)) = self.receives.hand_out(consumer) else {
            debug_assert!(false, "{consumer:?} is no receive");
            return;
        };
        if request_log::is_on() {
            self.log_received(request, queue, &handover);
        }
        if self.namespaces.is_traced() {
            self.namespaces.trace_handed_out(Some(queue), &handover);
        }
        self.namespaces.remove_consumer(cx.now, queue, consumer);
        let handed_out = Box::new(HandedOut { queue, handover });
        self.tell(request, durable_after, ReceiveOutcome::Message(handed_out));
    }

    /// A receive has drained, and there was no message for it.
    pub(crate) fn receive_drained(&mut self, cx: &StepContext<'_>, consumer: ConsumerId) {
        let Some(&request) = self.receives.consumers.get(&consumer) else {
            // It has taken its message before.
            return;
        };
        if let Some((_, receive)) = self.receives.end(request) {
            self.namespaces
                .remove_consumer(cx.now, receive.queue, consumer);
            self.tell(request, 0, ReceiveOutcome::Nothing);
        }
    }

    fn tell(&mut self, request: RequestId, durable_after: u64, outcome: ReceiveOutcome) {
        self.replies.push(ReceiveReply {
            request,
            durable_after,
            outcome,
        });
    }

    /// Checks what holds between steps.
    pub(crate) fn check_receives(&self) {
        for (request, receive) in self.receives.waiting() {
            let (State::Waiting(consumer) | State::Draining(consumer)) = receive.state else {
                continue;
            };
            assert_eq!(self.receives.consumers.get(&consumer), Some(&request));
            let queue = self.namespaces.queue(receive.queue);
            let mut consumers = queue.into_iter().flat_map(jitney_queue::Queue::consumers);
            assert!(consumers.any(|it| it == consumer), "{request:?} waits");
            let deadline = (receive.until, request);
            let has_deadline = self.receives.deadlines.contains(&deadline);
            assert_eq!(has_deadline, receive.state == State::Waiting(consumer));
        }
        assert_eq!(
            self.receives.waiting().count(),
            self.receives.consumers.len()
        );
        assert!(self.receives.deadlines.len() <= self.receives.consumers.len());
    }
}
