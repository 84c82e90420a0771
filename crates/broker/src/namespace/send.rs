//! Messages come into queues: whether they are admitted, and how they are put in.

use std::sync::Arc;

use super::{Denied, DeniedKind, Namespaces, StepContext};
use jitney_base::ids::{EntityId, SequenceNumber};
use jitney_base::time::Timestamp;
use jitney_message::{DuplicateScope, Message, PartitionedBy, PropertiesRefused};
use jitney_queue::{Arrival, Queue, Taken};
use jitney_rules::limits;

/// Whether a message that is dropped as a duplicate has a number.
#[derive(Debug, Clone, Copy)]
enum Dropped {
    /// It has one, by which its sender may ask to cancel it.
    Numbered,
    /// It has none.
    Unnumbered,
}

impl Namespaces {
    /// Takes messages into a queue, all or none, and returns their numbers; 0 for a duplicate.
    pub fn take_messages(
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

    /// Takes messages that wait for their time into a queue, all or none, and returns their numbers. A duplicate is
    /// dropped, and has a number all the same, which stays unused.
    pub fn schedule_messages(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        messages: Vec<Message>,
    ) -> Result<Vec<SequenceNumber>, Denied> {
        self.admit(cx, id, &messages)?;
        let mut numbers = Vec::with_capacity(messages.len());
        let dropped = Dropped::Numbered;
        self.put_in(cx, id, None, dropped, messages, |number| {
            numbers.push(number);
        });
        Ok(numbers)
    }

    /// Checks whether a queue takes these messages.
    pub fn admit(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        messages: &[Message],
    ) -> Result<(), Denied> {
        self.check_room_of(
            id,
            "messages are received and settled, and none are taken until there is room again",
        )?;
        for message in messages {
            check_properties(message)?;
            check_keys(message)?;
        }
        self.check_partition_keys(id, messages)?;
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

    /// Checks that each message has what its partition depends on, where duplicates are detected in partitions.
    fn check_partition_keys(&self, id: EntityId, messages: &[Message]) -> Result<(), Denied> {
        let description = self.queue(id).map(Queue::description);
        if !description.is_some_and(|it| it.partitioned && it.detects_duplicates) {
            return Ok(());
        }
        if messages
            .iter()
            .all(|it| it.partition_hash(PartitionedBy::KeysOrMessageId).is_some())
        {
            return Ok(());
        }
        let text = "Message to a partitioned entity with duplicate detection enabled must have either \
                    PartitionKey or MessageId.";
        Err(Denied::new(DeniedKind::NotAllowed, text, &self.name_of(id)))
    }

    /// Checks that the messages of one batch are of one partition, as the service has it
    /// (`messaging.md#answers-to-sends`).
    pub fn check_batch(&self, id: EntityId, messages: &[Message]) -> Result<(), Denied> {
        let description = self.queue(id).map(Queue::description);
        let Some(description) = description.filter(|it| it.partitioned) else {
            return Ok(());
        };
        let detects = description.detects_duplicates;
        let mut keys = messages.iter().map(|message| {
            let session_or_key = message.group_id().or_else(|| message.partition_key());
            let via = message.via_partition_key();
            let id = (detects && session_or_key.is_none() && via.is_none())
                .then(|| message.duplicate_key(DuplicateScope::Entity));
            (session_or_key, via, id)
        });
        let first = keys.next();
        if keys.all(|key| Some(key) == first) {
            return Ok(());
        }
        let text = if detects {
            "Batching brokered messages with distinct SessionId, PartitionKey, or MessageId is not \
             supported for an entity with partitioning and duplicate detection enabled."
        } else {
            "Batching brokered messages with distinct SessionId or PartitionKey is not supported for an \
             entity with partitioning enabled."
        };
        Err(Denied::new(DeniedKind::NotAllowed, text, &self.name_of(id)))
    }

    /// Puts messages that were admitted into a queue, or through it to where they are forwarded. Calls
    /// `numbered` with each number; 0 for a duplicate, and also for a message after the rollover. Returns how many are duplicates.
    pub fn put(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        destination: Option<&Arc<str>>,
        messages: impl IntoIterator<Item = Message>,
        numbered: impl FnMut(SequenceNumber),
    ) -> usize {
        let dropped = Dropped::Unnumbered;
        self.put_in(cx, id, destination, dropped, messages, numbered)
    }

    fn put_in(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        destination: Option<&Arc<str>>,
        dropped: Dropped,
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
                let mut arrival = Arrival::of(&message, queue.description());
                if destination.is_some() {
                    // Its time is its destination's.
                    arrival.due = None;
                }
                let taken = queue.enqueue(cx, arrival);
                if is_traced && let (Some(taken), Some(context)) = (taken, message.trace_context())
                {
                    accepted.push((context, taken.number));
                }
                duplicates += usize::from(taken.is_none());
                numbered(match (taken, dropped) {
                    (Some(taken), _) => taken.number,
                    (None, Dropped::Numbered) => queue.reserve(cx, arrival.partition_hash),
                    (None, Dropped::Unnumbered) => SequenceNumber(0),
                });
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
                    self.forward_via(cx, id, taken.number, taken.body, path);
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

/// Checks what a message has beside its body.
fn check_properties(message: &Message) -> Result<(), Denied> {
    message.check_properties().map_err(|refused| {
        let kind = match refused {
            PropertiesRefused::Name => DeniedKind::Decode,
            PropertiesRefused::NullAnnotation(_)
            | PropertiesRefused::Property { .. }
            | PropertiesRefused::Properties(_) => DeniedKind::Argument,
        };
        let field = match &refused {
            PropertiesRefused::Property { name, .. } => Some(format!("properties.{name}")),
            PropertiesRefused::Name
            | PropertiesRefused::NullAnnotation(_)
            | PropertiesRefused::Properties(_) => None,
        };
        let denied = Denied::new(kind, format!("The message cannot be taken: {refused}."), "");
        match field {
            Some(field) => denied.about(field),
            None => denied,
        }
    })
}

/// Checks what has a length limit (`entities.md#quotas`), and keys that contradict each other.
fn check_keys(message: &Message) -> Result<(), Denied> {
    let max = limits::MESSAGE_ID_LENGTH_MAX;
    let characters = |text: Option<&str>| text.map_or(0, |text| text.chars().count());
    let lengths = [
        ("message-id", "message_id", message.message_id_length()),
        (
            "group-id (session id)",
            "session_id",
            characters(message.group_id()),
        ),
        (
            "x-opt-partition-key",
            "partition_key",
            characters(message.partition_key()),
        ),
    ];
    for (name, field, length) in lengths {
        if max < length {
            let text = format!("The {name} has {length} characters, and {max} are the most.");
            return Err(Denied::new(DeniedKind::Argument, text, "").about(field));
        }
    }
    match (message.group_id(), message.partition_key()) {
        (Some(id), Some(key)) if id != key => {
            let text = format!(
                "The partition key '{key}' differs from the session id '{id}': with both set, they \
                 must be the same."
            );
            Err(Denied::new(DeniedKind::NotAllowed, text, "").about("partition_key"))
        }
        _ => Ok(()),
    }
}
