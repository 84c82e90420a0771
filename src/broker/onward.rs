//! Messages that go on: from topics to subscriptions, along `ForwardTo` and
//! `ForwardDeadLetteredMessagesTo`.
//!
//! Messages of one entity go on in their order. For rules, duplicates and partitions a message's
//! bytes are needed: at hand when it has just been sent, else they are read back from the log
//! ([`Broker::wanted`]), and what comes behind waits. Nothing of this is lost by a crash: what has
//! not gone on yet is in its entity still.

use std::ops::Bound;
use std::sync::Arc;

use super::{Broker, StepContext, node_mut};
use crate::address::{self, EntityAddress, SubQueue};
use crate::ids::{BodyRef, EntityId, SequenceNumber};
use crate::limits;
use crate::message::{Amendments, Field, Message};
use crate::queue::{Arrival, Arriving, DeadLetter, Departure, Description, EntityKind};
use crate::rules::{Evaluation, Match, Progress, Share};

/// Where an entity's messages go on to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Onward {
    /// To the subscriptions whose rules match.
    Publish,
    /// To the entity at a path.
    Forward(Arc<str>),
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

impl Onward {
    /// Returns where messages of one of an entity's queues go on to, if they do.
    pub(super) fn of(description: &Description, queue: SubQueue) -> Option<Self> {
        let forward = |path: &Option<String>| Some(Self::Forward(path.as_deref()?.into()));
        match queue {
            SubQueue::Main if description.kind == EntityKind::Topic => Some(Self::Publish),
            SubQueue::Main => forward(&description.forward_to),
            SubQueue::DeadLetter => forward(&description.forward_dead_letters_to),
            SubQueue::TransferDeadLetter => None,
        }
    }
}

impl Broker {
    /// Returns whether [`Broker::wanted`] has something.
    #[must_use]
    pub fn has_wanted(&self) -> bool {
        !self.stalled.is_empty()
    }

    /// Returns messages whose bytes are wanted, a few at a time; they are given to
    /// [`Broker::read_back`].
    #[must_use]
    pub fn wanted(&mut self) -> Vec<WantedBody> {
        while let Some(entity) = self.next_stalled() {
            let count = self.read_back_count;
            let waiting = self.node(entity).map(|node| match node.onward {
                Some(_) => node.queue.waiting_to_go(count),
                None => node.queue.undecided(count),
            });
            let waiting = waiting.unwrap_or_default();
            if !waiting.is_empty() {
                self.last_stalled = entity;
                let waiting = waiting.into_iter();
                let wanted = waiting.map(|(number, body)| WantedBody {
                    entity,
                    number,
                    body,
                });
                return wanted.collect();
            }
            // They were settled, cancelled or deleted meanwhile.
            self.stalled.remove(&entity);
        }
        Vec::new()
    }

    /// Returns whose turn it is among the queues that cannot go on: each has one after the other.
    fn next_stalled(&self) -> Option<EntityId> {
        let after = (Bound::Excluded(self.last_stalled), Bound::Unbounded);
        let next = self.stalled.range(after).next();
        next.or_else(|| self.stalled.first()).copied()
    }

    /// Lets messages go on whose bytes have been read.
    pub fn read_back(&mut self, cx: &mut StepContext<'_>, found: Vec<(WantedBody, bytes::Bytes)>) {
        let Some(entity) = found.first().map(|(wanted, _)| wanted.entity) else {
            return;
        };
        for (wanted, bytes) in found {
            // It was parsed when it came in.
            if let Ok(message) = Message::parse(bytes) {
                self.at_hand.insert(wanted.body.position, message);
            }
        }
        self.share = Share::default();
        self.with_queue(cx, entity, |_, _| ());
        self.at_hand.clear();
        // What a share does not come to is read again.
        self.read_back_count = if self.share.is_spent() {
            (self.read_back_count / 2).max(1)
        } else {
            (self.read_back_count * 2).min(limits::READ_BACK_MESSAGES)
        };
    }

    /// Sends on what can go on from a queue, one message after the other. What comes to the same
    /// queue meanwhile waits for its turn, so that a circle of entities is a loop here, and ends
    /// when the messages have gone as far as they may.
    pub(super) fn send_on(&mut self, cx: &mut StepContext<'_>, id: EntityId) {
        if !self.sending_on.insert(id) {
            return;
        }
        while self.send_one_on(cx, id) {}
        self.sending_on.remove(&id);
    }

    /// Sends the first message on, if there is one and it can go on now.
    fn send_one_on(&mut self, cx: &mut StepContext<'_>, id: EntityId) -> bool {
        let Some(node) = self.node_mut(id) else {
            return false;
        };
        let (first, onward) = (node.queue.first_to_go(), node.onward.clone());
        let (Some((number, body)), Some(onward)) = (first, onward) else {
            self.stalled.remove(&id);
            return false;
        };
        // The rest is for another group: this one must not grow with the subscriptions.
        let went = cx.journal.open_bytes() < limits::GROUP_BYTES
            && match onward {
                Onward::Publish => self.publish(cx, id, number, body),
                Onward::Forward(path) => self.forward(cx, id, number, body, &path),
            };
        if !went {
            self.stalled.insert(id);
        }
        went
    }

    /// Gives a topic's message to the subscriptions that want it; `false` if its bytes are missing, or
    /// not all rules have been looked at.
    fn publish(
        &mut self,
        cx: &mut StepContext<'_>,
        topic: EntityId,
        number: SequenceNumber,
        body: BodyRef,
    ) -> bool {
        let Some(message) = self.at_hand.get(body.position).cloned() else {
            return false;
        };
        let mut matches = std::mem::take(&mut self.matches);
        let progress = self.find_matches(topic, number, &message, &mut matches);
        for found in matches.drain(..) {
            self.give(cx, topic, number, &message, found);
        }
        self.matches = matches;
        if progress == Progress::Paused {
            return false;
        }
        // Not by a step of the topic, which would send on what is being sent on.
        self.step(cx, topic, |queue, cx| queue.published(cx, number));
        true
    }

    /// Finds what subscriptions get of a topic's message, as far as this turn's share goes: what has
    /// been found by then is kept, and nobody gets anything yet.
    fn find_matches(
        &mut self,
        id: EntityId,
        number: SequenceNumber,
        message: &Message,
        matches: &mut Vec<Match>,
    ) -> Progress {
        let seed = self.random.next_u64();
        let queue = node_mut(&mut self.queues, id).map(|node| &node.queue);
        let facts = queue.and_then(|queue| queue.facts(number, seed));
        let (Some(topic), Some(facts)) = (self.topics.get_mut(&id), facts) else {
            return Progress::Done;
        };
        // A dead letter that was forwarded here, or a copy of another topic's, has been changed.
        let changed = queue.and_then(|queue| queue.amendments(number));
        let unchanged = Amendments::default();
        let changed = changed.as_deref().unwrap_or(&unchanged);
        let (rules, share) = (&topic.rules, &mut self.share);
        let paused = topic.paused.take().filter(|paused| paused.number == number);
        let mut evaluation = if let Some(paused) = paused {
            paused.evaluation
        } else {
            let mut evaluation = std::mem::take(&mut self.evaluation);
            rules.begin(&mut evaluation, message, changed, share);
            evaluation
        };
        let progress = rules.evaluate(&mut evaluation, message, changed, &facts, share);
        match progress {
            Progress::Done => {
                rules.copies(&mut evaluation, message, changed, &facts, matches);
                self.evaluation = evaluation;
            }
            Progress::Paused => topic.paused = Some(Box::new(Paused { number, evaluation })),
        }
        progress
    }

    /// Gives a subscription the copies that its rules make of a message.
    fn give(
        &mut self,
        cx: &mut StepContext<'_>,
        topic: EntityId,
        number: SequenceNumber,
        message: &Message,
        found: Match,
    ) {
        let subscription = EntityId(found.subscription);
        let wants_errors = self
            .queue(subscription)
            .is_some_and(|queue| queue.description().dead_letter_on_filter_error);
        let failed = found.error.filter(|_| wants_errors);
        let failed = failed.map(|text| {
            (
                None,
                Some(DeadLetter::broker("FilterEvaluationException", text)),
            )
        });
        let copies = found
            .copies
            .into_iter()
            .map(|amendments| (amendments, None));
        for (amendments, dead_letter) in copies.chain(failed) {
            let copy = self
                .queue(topic)
                .and_then(|queue| queue.copy(number, subscription));
            let Some(mut copy) = copy else { return };
            if let Some(amendments) = amendments {
                if amendments.field(Field::SessionId).is_some() {
                    copy.set_message_session(amendments.group_id());
                }
                copy.amend(amendments);
            }
            let arriving = Arriving {
                dead_letter,
                ..self.arriving(subscription, Some(message))
            };
            self.bodies.share(copy.body(), topic);
            self.arrive(cx, copy, arriving);
        }
    }

    /// Forwards a message; `false` if its bytes are missing.
    pub(super) fn forward(
        &mut self,
        cx: &mut StepContext<'_>,
        from: EntityId,
        number: SequenceNumber,
        body: BodyRef,
        path: &str,
    ) -> bool {
        let target = self.resolve_path(path);
        let message = self.at_hand.get(body.position).cloned();
        let needs_bytes = target.and_then(|id| self.queue(id)).is_some_and(|queue| {
            let description = queue.description();
            description.detects_duplicates || description.partitioned
        });
        if needs_bytes && message.is_none() {
            return false;
        }
        if let Some(target) = target {
            // What is due there may make room.
            self.with_queue(cx, target, |_, _| ());
        }
        let transfer = from.transfer_dead_letters();
        let source = self.node(from).map(|node| node.address.path.clone());
        let to = target.unwrap_or(transfer);
        let departure = self
            .step(cx, from, |queue, _| queue.depart(number, to))
            .flatten();
        let Some(mut departure) = departure else {
            return true;
        };
        if from == from.dead_letters() {
            let source = source.unwrap_or_default();
            departure.set_dead_letter_source(address::without_namespace(&source));
        }
        let hops = departure.hop();
        match self.refusal_to_forward(target, path, hops, body) {
            None => {
                self.note_use(cx.now, to);
                let arriving = self.arriving(to, message.as_ref());
                self.arrive(cx, departure, arriving);
            }
            Some(reason) => {
                departure.redirect(transfer, reason);
                self.arrive(cx, departure, Arriving::default());
            }
        }
        true
    }

    /// Returns why a message cannot be forwarded (`entities.md#forwarding`).
    fn refusal_to_forward(
        &self,
        target: Option<EntityId>,
        path: &str,
        hops: u8,
        body: BodyRef,
    ) -> Option<DeadLetter> {
        if limits::FORWARD_HOPS_MAX < hops {
            let text = format!(
                "The message was forwarded {} times, which is the most.",
                limits::FORWARD_HOPS_MAX
            );
            return Some(DeadLetter::broker("MaxTransferHopCountExceeded", text));
        }
        let Some(queue) = target.and_then(|id| self.queue(id)) else {
            let text = format!("The messaging entity '{path}' could not be found.");
            return Some(DeadLetter::broker("TransferDestinationNotFound", text));
        };
        let description = queue.description();
        let size = u64::from(body.length);
        let refused = if !description.status.can_send() {
            format!("Messaging entity '{path}' is currently disabled.")
        } else if description.max_message_bytes < size {
            format!("The message has {size} bytes, more than '{path}' takes.")
        } else if description.max_bytes < self.held_bytes(queue.id()).saturating_add(size) {
            format!("'{path}' has reached its maximum size.")
        } else {
            return None;
        };
        Some(DeadLetter::broker("TransferDestinationRefused", refused))
    }

    /// Returns what the entity that a message goes to must be told.
    fn arriving(&self, to: EntityId, message: Option<&Message>) -> Arriving {
        let (Some(queue), Some(message)) = (self.queue(to), message) else {
            return Arriving::default();
        };
        let arrival = Arrival::of(message, queue.description());
        Arriving {
            duplicate_key: arrival.duplicate_key,
            partition_hash: arrival.partition_hash,
            dead_letter: None,
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

    /// Returns the bytes that count to an entity: its messages', its dead letters included; a topic's
    /// subscriptions' too, but each message once.
    pub(super) fn held_bytes(&self, id: EntityId) -> u64 {
        let queues = id.all().into_iter().filter_map(|id| self.queue(id));
        let own: u64 = queues.map(super::Queue::bytes).sum();
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
