//! Messages come into queues: whether they are admitted, and how they are put in.

use std::sync::Arc;

use super::{Denied, DeniedKind, Namespaces, StepContext};
use crate::ids::{EntityId, SequenceNumber};
use crate::limits;
use crate::message::Message;
use crate::queue::{Arrival, Taken};
use crate::time::Timestamp;

impl Namespaces {
    /// Takes messages into a queue, all or none, and returns their numbers; 0 for a duplicate.
    pub(crate) fn take_messages(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        messages: Vec<Message>,
    ) -> Result<Vec<SequenceNumber>, Denied> {
        self.admit(cx, id, &messages)?;
        let mut numbers = Vec::with_capacity(messages.len());
        self.put(cx, id, None, messages, |number| numbers.push(number));
        Ok(numbers)
    }

    /// Checks whether a queue takes these messages.
    pub(crate) fn admit(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        messages: &[Message],
    ) -> Result<(), Denied> {
        self.check_room(
            "messages are received and settled, and none are taken until there is room again",
        )?;
        for message in messages {
            check_keys(message)?;
        }
        // Expiry may move bytes to the dead letters, where they count too.
        if self.is_due(cx.now, id) {
            self.poke(cx, id);
        }
        let held = self.held_bytes(id);
        let admitted = self.queue(id).map(|queue| {
            let description = queue.description();
            let arrivals = messages.iter();
            let arrivals = arrivals.map(|message| Arrival::of(message, description));
            queue.admit(arrivals, held.saturating_sub(queue.bytes()))
        });
        match admitted {
            Some(Ok(())) => Ok(()),
            Some(Err(reason)) => Err(Denied::send(reason, &self.name_of(id))),
            None => Err(Denied::gone("")),
        }
    }

    /// Puts messages that were admitted into a queue, or through it to where they are forwarded. Calls
    /// `numbered` with each number; 0 for a duplicate, and also for a message after the rollover. Returns how many are duplicates.
    pub(crate) fn put(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        destination: Option<&Arc<str>>,
        messages: impl IntoIterator<Item = Message>,
        mut numbered: impl FnMut(SequenceNumber),
    ) -> usize {
        self.record_access(cx.now, id);
        let Some(node) = self.node(id) else {
            return 0;
        };
        let keeps = destination.is_some() || node.forwards_to.is_some();
        let selects = node.queue.has_scans();
        let mut loaded = std::mem::take(&mut self.forwarding.loaded);
        let mut leaving: Vec<Taken> = Vec::new();
        let is_traced = self.is_traced();
        let mut accepted = Vec::new();
        let mut duplicates = 0;
        self.step(cx, id, |queue, cx| {
            for message in messages {
                let arrival = Arrival::of(&message, queue.description());
                let taken = queue.enqueue(cx, arrival);
                if is_traced && let (Some(taken), Some(context)) = (taken, message.trace_context())
                {
                    accepted.push((context, taken.number));
                }
                duplicates += usize::from(taken.is_none());
                numbered(taken.map_or(SequenceNumber(0), |taken| taken.number));
                if let Some(taken) = taken.filter(|_| keeps || selects) {
                    loaded.insert(taken.body.position, message);
                    leaving.push(taken);
                }
            }
            if !keeps {
                queue.dispatch(cx);
            }
        });
        self.trace_accepted(cx.group, id, accepted);
        self.forwarding.loaded = loaded;
        match destination {
            Some(path) => {
                for taken in leaving {
                    self.forward_via(cx, id, (taken.number, taken.body), path);
                }
            }
            None if keeps => self.forward_all(cx, id),
            None if selects => self.evaluate_selectors(cx, id),
            None => {}
        }
        self.forwarding.loaded.clear();
        duplicates
    }

    /// Puts a message into a queue that was admitted, and is scheduled with a number that was
    /// reserved for it.
    pub(crate) fn put_reserved(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        number: SequenceNumber,
        message: Message,
    ) {
        self.record_access(cx.now, id);
        self.with_queue(cx, id, |queue, cx| {
            let arrival = Arrival::of(&message, queue.description());
            queue.enqueue_reserved(cx, arrival, number)
        });
        if self.is_traced() {
            let accepted = message.trace_context().map(|context| (context, number));
            self.trace_accepted(cx.group, id, accepted.into_iter().collect());
        }
    }
}

/// Returns whether a message is scheduled for a time to come.
pub(crate) fn is_ahead(now: Timestamp, message: &Message) -> bool {
    let due = message.scheduled_enqueue_time();
    due.is_some_and(|due| now < due)
}

/// Checks what has a length limit (`entities.md#quotas`), and keys that contradict each other.
fn check_keys(message: &Message) -> Result<(), Denied> {
    let max = limits::MESSAGE_ID_LENGTH_MAX;
    let characters = |text: Option<&str>| text.map_or(0, |text| text.chars().count());
    let lengths = [
        ("message-id", message.message_id_length()),
        ("group-id (session id)", characters(message.group_id())),
        ("x-opt-partition-key", characters(message.partition_key())),
    ];
    for (name, length) in lengths {
        if max < length {
            let text = format!("The {name} has {length} characters, and {max} are the most.");
            return Err(Denied::new(DeniedKind::Argument, text, ""));
        }
    }
    match (message.group_id(), message.partition_key()) {
        (Some(id), Some(key)) if id != key => {
            let text = format!(
                "The partition key '{key}' differs from the session id '{id}': with both set, they \
                 must be the same."
            );
            Err(Denied::new(DeniedKind::NotAllowed, text, ""))
        }
        _ => Ok(()),
    }
}
