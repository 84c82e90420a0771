//! Forwarding: from topics to subscriptions, along `ForwardTo` and `ForwardDeadLetteredMessagesTo`.
//!
//! Messages of one entity are forwarded in their order. Rules, duplicate detection and partitions need a
//! message's bytes: they are in memory when the message has just been sent. Otherwise they are read back from
//! the log ([`Namespaces::wanted`]), and the messages behind it wait. A crash loses nothing of this: a message
//! that has not been forwarded yet is in its entity still.
//!
//! What a target does not take becomes a dead letter of the source. A dead letter that its own target does not take
//! stays where it is; [`super::forward_waits`] says when it is tried again.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::bodies::LoadedBodies;
use super::denied::disabled_text;
use super::forward_waits::Blocked;
use super::{Namespaces, StepContext};
use crate::limits;
use jitney_base::address::{self, EntityAddress, SubQueue};
use jitney_base::ids::{BodyRef, EntityId, SequenceNumber};
use jitney_base::time::Timestamp;
use jitney_message::{Amendments, Field, Message};
use jitney_queue::{
    Arrival, Arriving, DeadLetter, Departure, Description, EntityKind, ForwardFacts, Queue,
};
use jitney_rules::{Evaluation, Match, Progress, Share};

/// Where an entity's messages are forwarded to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForwardingTarget {
    /// The subscriptions whose rules match.
    Subscriptions,
    /// The entity at a path.
    Entity(Arc<str>),
}

/// Why a message goes to another entity, which says what becomes of one that is not taken there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forward {
    /// `ForwardTo`: it becomes a dead letter of the source.
    Message,
    /// `ForwardDeadLetteredMessagesTo`: it stays a dead letter of the source.
    DeadLetter,
    /// A transaction sent it by way of the source: it goes to the source's transfer dead-letter queue.
    Via,
}

impl Forward {
    /// Returns the sub-queue to which a message goes that its target has refused.
    const fn aside(self, from: EntityId) -> EntityId {
        match self {
            Self::Via => from.transfer_dead_letters(),
            Self::Message | Self::DeadLetter => from.dead_letters(),
        }
    }

    /// Returns when a message becomes active where it comes to, if not at once: at the time that an action set on its way,
    /// and what went by way of another entity at the one that its sender gave it. A dead letter has had its time.
    fn due(self, set: Option<Timestamp>, message: Option<&Message>) -> Option<Timestamp> {
        match self {
            Self::Message => set,
            Self::DeadLetter => None,
            Self::Via => set.or_else(|| message?.scheduled_enqueue_time()),
        }
    }
}

/// Why an entity does not take a message that is forwarded to it.
#[derive(Debug)]
pub(super) struct NotTaken {
    /// The reason that the message gets as a dead letter.
    pub(super) reason: DeadLetter,
    /// Whether it is the message that is not taken, or any message.
    of: Cause,
}

/// What a refusal to take a message comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// This message is not taken, others may be.
    Message,
    /// The target takes no message as it is now.
    Target,
}

/// What became of the first message of a queue that forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progressed {
    /// It went, or will not go: the next one has its turn.
    Done,
    /// Its bytes are to be read first, or it is for another group of records.
    Stalled,
    /// Its target takes nothing now.
    Blocked,
}

/// The state of forwarding: queues whose messages wait for their bytes, and bytes that are in memory.
#[derive(Debug)]
pub(super) struct Forwarding {
    /// Queues from which messages cannot be forwarded, or be given to receivers with selectors, before their
    /// bytes have been read.
    pub(super) stalled: BTreeSet<EntityId>,
    /// Dead-letter queues whose target takes nothing, or not all of them.
    pub(super) blocked: Blocked,
    /// Queues of `blocked` whose turn it is, at the end of this step.
    pub(super) ready: BTreeSet<EntityId>,
    /// Queues that messages are being forwarded from in this step, each one behind the one that forwards to it.
    active: Vec<EntityId>,
    /// The queue of `stalled` whose bytes were read last: each has its turn.
    last_stalled: EntityId,
    /// For how many messages bytes are read at a time: as many as the share of a turn lasts for.
    read_back_count: usize,
    /// The bytes of messages that were just sent, or just read.
    pub(super) loaded: LoadedBodies,
    /// The rest of this turn's budget for filters and selectors.
    share: Share,
    /// Kept from message to message for its memory.
    matches: Vec<Match>,
    /// Likewise.
    evaluation: Evaluation,
}

impl Default for Forwarding {
    fn default() -> Self {
        Self {
            stalled: BTreeSet::new(),
            blocked: Blocked::default(),
            ready: BTreeSet::new(),
            active: Vec::new(),
            last_stalled: EntityId(0),
            read_back_count: limits::READ_BACK_MESSAGES,
            loaded: LoadedBodies::default(),
            share: Share::default(),
            matches: Vec::new(),
            evaluation: Evaluation::default(),
        }
    }
}

impl Forwarding {
    /// Gives filters and selectors their share of a turn.
    pub(super) fn begin_turn(&mut self) {
        self.share = Share::default();
    }

    /// Forgets that a queue waits for bytes, or for room.
    pub(super) fn forget(&mut self, id: EntityId) {
        self.stalled.remove(&id);
        self.unblock(id);
        self.ready.remove(&id);
    }

    /// Notes that a queue does not wait for its target: the next one that does has its turn.
    pub(super) fn unblock(&mut self, id: EntityId) {
        let next = self.blocked.remove(id);
        self.ready.extend(next);
    }

    /// Returns whose turn it is among the stalled queues.
    fn next_stalled(&self) -> Option<EntityId> {
        let after = (Bound::Excluded(self.last_stalled), Bound::Unbounded);
        let next = self.stalled.range(after).next();
        next.or_else(|| self.stalled.first()).copied()
    }

    /// Checks what holds between steps.
    pub(super) fn check(&self) {
        assert!(self.active.is_empty(), "forwarding ends with its step");
        assert!(self.ready.is_empty(), "whose turn it is has it in the step");
        assert!(self.read_back_count > 0, "at least one message is read");
    }
}

/// A message whose bytes are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedBody {
    /// The queue that it waits in.
    pub entity: EntityId,
    /// Its number there.
    pub number: SequenceNumber,
    /// Where its bytes are.
    pub body: BodyRef,
}

/// A topic's first message, some of whose rules have been looked at.
#[derive(Debug)]
pub(super) struct Paused {
    number: SequenceNumber,
    evaluation: Evaluation,
}

/// A subscription's copy of a topic's message.
#[derive(Debug)]
struct TopicCopy {
    subscription: EntityId,
    /// What the action of a rule changes.
    amendments: Option<Arc<Amendments>>,
    /// It is a dead letter there: a rule could not be evaluated.
    dead_letter: Option<DeadLetter>,
}

impl NotTaken {
    fn message(reason: DeadLetter) -> Self {
        let of = Cause::Message;
        Self { reason, of }
    }

    fn target(reason: DeadLetter) -> Self {
        let of = Cause::Target;
        Self { reason, of }
    }

    /// Returns whether the target takes no message as it is now.
    pub(super) fn is_of_target(&self) -> bool {
        self.of == Cause::Target
    }
}

impl ForwardingTarget {
    /// Returns where messages of one of an entity's queues are forwarded to, if they are.
    pub(super) fn of(description: &Description, queue: SubQueue) -> Option<Self> {
        let forward = |path: &Option<String>| Some(Self::Entity(path.as_deref()?.into()));
        match queue {
            SubQueue::Main if description.kind == EntityKind::Topic => Some(Self::Subscriptions),
            SubQueue::Main => forward(&description.forward_to),
            SubQueue::DeadLetter => forward(&description.forward_dead_letters_to),
            SubQueue::TransferDeadLetter => None,
        }
    }
}

impl Namespaces {
    /// Returns whether [`Namespaces::wanted`] has something.
    #[must_use]
    pub fn has_wanted(&self) -> bool {
        !self.forwarding.stalled.is_empty()
    }

    /// Returns messages whose bytes are wanted, a few at a time; they are given to
    /// [`Namespaces::read_back`].
    #[must_use]
    pub fn wanted(&mut self) -> Vec<WantedBody> {
        while let Some(entity) = self.forwarding.next_stalled() {
            let count = self.forwarding.read_back_count;
            let waiting = self.node(entity).map(|node| match node.forwards_to {
                Some(_) => node.queue.waiting_to_go(count),
                None => node.queue.undecided(count),
            });
            let waiting = waiting.unwrap_or_default();
            if !waiting.is_empty() {
                self.forwarding.last_stalled = entity;
                let waiting = waiting.into_iter();
                let wanted = waiting.map(|(number, body)| WantedBody {
                    entity,
                    number,
                    body,
                });
                return wanted.collect();
            }
            // They were settled, cancelled or deleted meanwhile.
            self.forwarding.stalled.remove(&entity);
            self.forwarding.unblock(entity);
        }
        Vec::new()
    }

    /// Forwards messages whose bytes have been read.
    pub fn read_back(&mut self, cx: &mut StepContext<'_>, found: Vec<(WantedBody, bytes::Bytes)>) {
        let Some(entity) = found.first().map(|(wanted, _)| wanted.entity) else {
            return;
        };
        for (wanted, bytes) in found {
            // It was parsed when it came in.
            if let Ok(message) = Message::parse(bytes) {
                self.forwarding.loaded.insert(wanted.body.position, message);
            }
        }
        self.forwarding.share = Share::default();
        self.poke(cx, entity);
        self.forwarding.loaded.clear();
        // Messages that the budget does not reach are read again.
        self.forwarding.read_back_count = if self.forwarding.share.is_spent() {
            (self.forwarding.read_back_count / 2).max(1)
        } else {
            (self.forwarding.read_back_count * 2).min(limits::READ_BACK_MESSAGES)
        };
    }

    /// Forwards what can be forwarded from a queue, one message after the other. What comes to the same
    /// queue meanwhile waits for its turn, so that a circle of entities is a loop here, and ends
    /// when the messages have gone as far as they may.
    pub(super) fn forward_all(&mut self, cx: &mut StepContext<'_>, id: EntityId) {
        if self.forwarding.active.contains(&id) {
            return;
        }
        self.forwarding.active.push(id);
        while self.forward_next(cx, id) {}
        self.forwarding.active.pop();
    }

    /// Forwards the first message, if there is one and it can be forwarded now.
    fn forward_next(&mut self, cx: &mut StepContext<'_>, id: EntityId) -> bool {
        let Some(node) = self.queues.get_mut(id) else {
            return false;
        };
        let (first, target) = (node.queue.first_to_go(), node.forwards_to.clone());
        let (Some((number, body)), Some(target)) = (first, target) else {
            self.forwarding.stalled.remove(&id);
            self.forwarding.unblock(id);
            return false;
        };
        // The rest is for another group: this one must not grow with the subscriptions.
        let progressed = if cx.journal.open_bytes() < limits::GROUP_BYTES {
            match target {
                ForwardingTarget::Subscriptions => self.publish(cx, id, number, body),
                ForwardingTarget::Entity(path) => {
                    let why = if id == id.dead_letters() {
                        Forward::DeadLetter
                    } else {
                        Forward::Message
                    };
                    self.forward(cx, id, number, body, &path, why)
                }
            }
        } else {
            Progressed::Stalled
        };
        match progressed {
            Progressed::Done => return true,
            Progressed::Stalled => self.forwarding.stalled.insert(id),
            Progressed::Blocked => self.forwarding.stalled.remove(&id),
        };
        false
    }

    /// Gives a topic's message to the subscriptions that want it, unless its bytes are missing, or not all rules have
    /// been looked at.
    fn publish(
        &mut self,
        cx: &mut StepContext<'_>,
        topic: EntityId,
        number: SequenceNumber,
        body: BodyRef,
    ) -> Progressed {
        let Some(message) = self.forwarding.loaded.get(body.position).cloned() else {
            return Progressed::Stalled;
        };
        let mut matches = std::mem::take(&mut self.forwarding.matches);
        let progress = self.find_matches(topic, number, &message, &mut matches);
        let (mut next, mut copied): (Option<TopicCopy>, bool) = (None, false);
        for found in matches.drain(..) {
            for copy in self.copies(found) {
                if let Some(copy) = next.replace(copy) {
                    self.give_copy(cx, topic, number, &message, copy);
                    copied = true;
                }
            }
        }
        self.forwarding.matches = matches;
        if progress == Progress::Paused {
            return Progressed::Stalled;
        }
        // What the topic does is not a step of it, which would send on what is being sent on.
        match next {
            // The only one gets the message itself: one record and one change of the topic less than a copy.
            Some(copy) if !copied => {
                let departure = self.step(cx, topic, |queue, _| {
                    queue.depart_to_subscription(number, copy.subscription)
                });
                if let Some(departure) = departure.flatten() {
                    self.give(cx, topic, &message, departure, copy);
                }
            }
            Some(copy) => {
                self.give_copy(cx, topic, number, &message, copy);
                self.step(cx, topic, |queue, cx| queue.published(cx, number));
            }
            None => {
                self.step(cx, topic, |queue, cx| queue.published_to_none(cx, number));
            }
        }
        Progressed::Done
    }

    /// Gives a subscription a copy of a topic's message.
    fn give_copy(
        &mut self,
        cx: &mut StepContext<'_>,
        topic: EntityId,
        number: SequenceNumber,
        message: &Message,
        copy: TopicCopy,
    ) {
        let node = self.queues.get_mut(topic);
        if let Some(departure) = node.and_then(|it| it.queue.copy(number, copy.subscription)) {
            self.give(cx, topic, message, departure, copy);
        }
    }

    /// Finds what subscriptions get of a topic's message, as far as this turn's share goes: what has
    /// been found by then is kept, and no subscription gets anything yet.
    fn find_matches(
        &mut self,
        id: EntityId,
        number: SequenceNumber,
        message: &Message,
        matches: &mut Vec<Match>,
    ) -> Progress {
        let seed = self.random.next_u64();
        let queue = self.queues.get(id).map(|node| &node.queue);
        let facts = queue.and_then(|queue| queue.facts(number, seed));
        let (Some(topic), Some(facts)) = (self.topics.get_mut(&id), facts) else {
            return Progress::Done;
        };
        // A dead letter that was forwarded here, or a copy of another topic's, has been changed.
        let changed = queue.and_then(|queue| queue.amendments(number));
        let unchanged = Amendments::default();
        let changed = changed.as_deref().unwrap_or(&unchanged);
        let (rules, share) = (&topic.rules, &mut self.forwarding.share);
        let paused = topic.paused.take().filter(|paused| paused.number == number);
        let mut evaluation = if let Some(paused) = paused {
            paused.evaluation
        } else {
            let mut evaluation = std::mem::take(&mut self.forwarding.evaluation);
            rules.begin(&mut evaluation, message, changed, share);
            evaluation
        };
        let progress = rules.evaluate(&mut evaluation, message, changed, &facts, share);
        match progress {
            Progress::Done => {
                rules.copies(&mut evaluation, message, changed, &facts, matches);
                self.forwarding.evaluation = evaluation;
            }
            Progress::Paused => topic.paused = Some(Box::new(Paused { number, evaluation })),
        }
        progress
    }

    /// Returns the copies that a subscription's rules make of a message.
    fn copies(&self, found: Match) -> impl Iterator<Item = TopicCopy> + use<> {
        let subscription = EntityId(found.subscription);
        let wants_errors = self
            .queue(subscription)
            .is_some_and(|queue| queue.description().dead_letter_on_filter_error);
        let failed = found.error.filter(|_| wants_errors).map(|text| TopicCopy {
            subscription,
            amendments: None,
            dead_letter: Some(DeadLetter::broker("FilterEvaluationException", text)),
        });
        let copies = found.copies.into_iter().map(move |amendments| TopicCopy {
            subscription,
            amendments,
            dead_letter: None,
        });
        copies.chain(failed)
    }

    /// Gives a subscription a topic's message, or a copy of it.
    fn give(
        &mut self,
        cx: &mut StepContext<'_>,
        topic: EntityId,
        message: &Message,
        mut departure: Departure,
        copy: TopicCopy,
    ) {
        // What the message was changed to before it came to the topic decides here, and what this rule changes does not.
        let arriving = self.arriving(departure.to, Some(message));
        let arriving = Arriving {
            dead_letter: copy.dead_letter,
            due: None,
            ..self.as_changed(arriving, &departure, Some(message))
        };
        if let Some(amendments) = copy.amendments {
            if amendments.field(Field::SessionId).is_some() {
                departure.set_message_session(amendments.group_id());
            }
            if let Some(life) = amendments.time_to_live() {
                departure.set_time_to_live(life);
            }
            departure.amend(amendments);
        }
        if departure.is_copy() {
            self.bodies.share_copy(departure.body(), topic);
        } else {
            self.bodies.share(departure.body(), topic);
        }
        self.arrive(cx, departure, arriving);
    }

    /// Forwards a message that a transaction sent by way of an entity.
    pub(super) fn forward_via(
        &mut self,
        cx: &mut StepContext<'_>,
        from: EntityId,
        number: SequenceNumber,
        body: BodyRef,
        path: &str,
    ) {
        // Its bytes are in memory.
        self.forward(cx, from, number, body, path, Forward::Via);
    }

    /// Forwards a message.
    fn forward(
        &mut self,
        cx: &mut StepContext<'_>,
        from: EntityId,
        number: SequenceNumber,
        body: BodyRef,
        path: &str,
        why: Forward,
    ) -> Progressed {
        let target = self.resolve_path(path);
        if self.forwarding.blocked.contains(from) && !self.has_room_for(from, number, path, why) {
            return Progressed::Blocked;
        }
        let message = self.forwarding.loaded.get(body.position).cloned();
        let needs_bytes = target.and_then(|id| self.queue(id)).is_some_and(|queue| {
            let description = queue.description();
            description.detects_duplicates || description.partitioned
        });
        if needs_bytes && message.is_none() {
            return Progressed::Stalled;
        }
        if let Some(target) = target {
            // Expiry there may make room.
            self.poke(cx, target);
        }
        // What was due there may have changed what is here.
        let Some(facts) = self.queue(from).and_then(|it| it.forward_facts(number)) else {
            return Progressed::Done;
        };
        let refused = self.refusal_to_forward(target, path, &facts, why);
        match (why, refused.as_ref().map(|it| it.of)) {
            (Forward::DeadLetter, Some(Cause::Target)) => {
                self.forwarding.blocked.block(path, from);
                return Progressed::Blocked;
            }
            (Forward::DeadLetter, Some(Cause::Message)) => {
                self.forwarding.blocked.pass_over(path, from);
                if let Some(node) = self.queues.get_mut(from) {
                    node.queue.leave_behind(number);
                }
                return Progressed::Done;
            }
            (Forward::DeadLetter, None) => self.forwarding.unblock(from),
            (Forward::Message | Forward::Via, _) => {}
        }
        let refused = refused.map(|it| it.reason);
        let source = self.node(from).map(|node| node.address.path.clone());
        let to = target.unwrap_or_else(|| why.aside(from));
        let departure = self
            .step(cx, from, |queue, _| queue.depart(number, to))
            .flatten();
        let Some(mut departure) = departure else {
            return Progressed::Done;
        };
        if let Some(node) = self.queues.get_mut(from) {
            match refused {
                None => node.queue.count_forwarded(),
                Some(_) => node.queue.count_refused(),
            }
        }
        match refused {
            None => {
                departure.hop();
                if why == Forward::DeadLetter {
                    let source = source.unwrap_or_default();
                    departure.set_dead_letter_source(address::without_namespace(&source));
                }
                self.record_access(cx.now, to);
                let arriving = self.arriving(to, message.as_ref());
                let mut arriving = self.as_changed(arriving, &departure, message.as_ref());
                arriving.due = why.due(arriving.due, message.as_ref());
                self.arrive(cx, departure, arriving);
            }
            Some(reason) => {
                departure.redirect(why.aside(from), reason);
                self.arrive(cx, departure, Arriving::default());
            }
        }
        Progressed::Done
    }

    /// Returns why a message cannot be forwarded (`entities.md#forwarding`).
    pub(super) fn refusal_to_forward(
        &self,
        target: Option<EntityId>,
        path: &str,
        facts: &ForwardFacts,
        why: Forward,
    ) -> Option<NotTaken> {
        let name = address::without_namespace(path);
        // One that has gone as often as it may is a dead letter, which may go once more: to where dead letters are
        // collected.
        let hops_max = match why {
            Forward::Message | Forward::Via => jitney_base::limits::FORWARD_HOPS_MAX,
            Forward::DeadLetter => jitney_base::limits::FORWARD_HOPS_MAX + 1,
        };
        if hops_max <= facts.hops {
            let text = format!(
                "The message was forwarded {} times, which is the most.",
                facts.hops
            );
            let reason = DeadLetter::broker("MaxTransferHopCountExceeded", text);
            return Some(NotTaken::message(reason));
        }
        let Some(queue) = target.and_then(|id| self.queue(id)) else {
            let text = format!("The messaging entity '{name}' could not be found.");
            let reason = DeadLetter::broker("TransferDestinationNotFound", text);
            return Some(NotTaken::target(reason));
        };
        let description = queue.description();
        let size = facts.bytes;
        let refused = |text| DeadLetter::broker("TransferDestinationRefused", text);
        // Dead letters go to a target that takes nothing from senders (`entities.md#forwarding`).
        if !description.status.can_send() && why != Forward::DeadLetter {
            return Some(NotTaken::target(refused(disabled_text(name))));
        }
        if description.max_message_bytes < size {
            let text = format!("The message has {size} bytes, more than '{name}' takes.");
            return Some(NotTaken::message(refused(text)));
        }
        if queue.has_sessions() && !facts.has_session {
            return Some(NotTaken::message(DeadLetter::without_session()));
        }
        if description.max_bytes < self.held_bytes(queue.id()).saturating_add(size) {
            let text = format!("'{name}' has reached its maximum size.");
            return Some(NotTaken::target(refused(text)));
        }
        None
    }

    /// Returns the properties of a message that its target entity needs.
    fn arriving(&self, to: EntityId, message: Option<&Message>) -> Arriving {
        let (Some(queue), Some(message)) = (self.queue(to), message) else {
            return Arriving::default();
        };
        let arrival = Arrival::of(message, queue.description());
        Arriving {
            duplicate_key: arrival.duplicate_key,
            partition_hash: arrival.partition_hash,
            due: None,
            dead_letter: None,
        }
    }

    /// Returns what the target of a forward needs of a message that was changed on its way: an action's ids, keys and
    /// times hold where the copy is forwarded to, and not before (`rules.md#actions`).
    fn as_changed(
        &self,
        arriving: Arriving,
        departure: &Departure,
        message: Option<&Message>,
    ) -> Arriving {
        let (Some(changes), Some(queue)) = (departure.amendments(), self.queue(departure.to))
        else {
            return arriving;
        };
        let description = queue.description();
        let due = changes.scheduled_enqueue_time();
        let Some(message) = message else {
            return Arriving { due, ..arriving };
        };
        Arriving {
            duplicate_key: description
                .detects_duplicates
                .then(|| changes.duplicate_key_of(message, description.duplicate_scope()))
                .flatten(),
            partition_hash: description
                .partitioned
                .then(|| changes.partition_hash_of(message, description.partitioned_by()))
                .flatten(),
            due,
            ..arriving
        }
    }

    /// Brings a message to the queue it goes to, and on from there.
    pub(super) fn arrive(
        &mut self,
        cx: &mut StepContext<'_>,
        departure: Departure,
        arriving: Arriving,
    ) {
        let to = departure.to;
        self.with_queue(cx, to, |queue, cx| {
            queue.arrive(cx, departure, arriving);
            queue.dispatch(cx);
        });
    }

    /// Gives messages whose bytes are in memory to the receivers with selectors that take them. The bytes of
    /// the others are to be read.
    pub(super) fn evaluate_selectors(&mut self, cx: &mut StepContext<'_>, id: EntityId) {
        let loaded = std::mem::take(&mut self.forwarding.loaded);
        let mut share = std::mem::take(&mut self.forwarding.share);
        self.step(cx, id, |queue, cx| {
            queue.evaluate_selectors(cx, &|position| loaded.get(position), &mut share);
        });
        self.forwarding.loaded = loaded;
        self.forwarding.share = share;
        if self.queue(id).is_some_and(Queue::is_undecided) {
            self.forwarding.stalled.insert(id);
        } else {
            self.forwarding.stalled.remove(&id);
        }
    }

    /// Returns the bytes that count to an entity: its messages', its dead letters included; a topic's
    /// subscriptions' too, but each message once.
    pub fn held_bytes(&self, id: EntityId) -> u64 {
        let queues = id.all().into_iter().filter_map(|id| self.queue(id));
        let own: u64 = queues.map(Queue::bytes).sum();
        own + self.bodies.held(id.base())
    }
}

/// Returns the address of one of an entity's queues.
pub(super) fn address_of(path: &str, queue: SubQueue) -> EntityAddress {
    EntityAddress {
        path: path.to_owned(),
        queue,
    }
}
