//! Messages that go on: from topics to subscriptions, and along forwards.

use jitney_message::{PartitionedBy, partition_hash_of_key};

use super::*;

/// Whose fault it is that a message cannot be forwarded.
#[derive(Clone, Copy)]
enum Whose {
    Messages,
    Targets,
}

impl Model {
    /// Returns where messages of a queue go on to, if they do.
    pub(super) fn onward(&self, place: Place) -> Option<Onward> {
        let description = self.description(place);
        let path = match place.part {
            Part::Main if description.kind == EntityKind::Topic => return Some(Onward::Publish),
            Part::Main => &description.forward_to,
            Part::Dead => &description.forward_dead_letters_to,
            Part::Transfer => return None,
        };
        path.clone().map(Onward::Forward)
    }

    /// An entity has other properties than before: what waits for it elsewhere is tried again, and so is what waits here,
    /// if it is to go elsewhere.
    pub(in crate::sim::audit) fn described(&mut self, entity: usize, before: &Description) {
        let path = self.entities[entity].path.clone();
        for (at, source) in self.entities.iter_mut().enumerate() {
            let target = &source.description.forward_dead_letters_to;
            let moved = at == entity && *target != before.forward_dead_letters_to;
            if moved || target.as_ref() == Some(&path) {
                source.dead.waits = false;
                for message in source.dead.messages.values_mut() {
                    message.stays = false;
                }
            }
        }
    }

    /// Returns the partition of a message for a partitioned queue, if something in it decides it.
    pub(in crate::sim::audit) fn decided_partition(
        &self,
        place: Place,
        draft: &Draft,
    ) -> Option<u64> {
        if draft.bare {
            // The session is all that is left of what decides: the broker keeps it with the message, without its bytes.
            let session = draft.session?;
            return Some(partition_hash_of_key(&session_name(session)) % PARTITIONS);
        }
        // What the entity's description says is the broker's own.
        let by = if self.description(place).detects_duplicates {
            PartitionedBy::KeysOrMessageId
        } else {
            PartitionedBy::Keys
        };
        let message = jitney_message::Message::parse(draft.encode().into());
        let message = message.expect("it was taken");
        Some(message.partition_hash(by)? % PARTITIONS)
    }

    /// Returns the group of an earlier message for which this one is dropped; it is remembered.
    pub(super) fn duplicate(&mut self, round: &Round, place: Place, draft: &Draft) -> Option<u64> {
        // Of a message without its bytes, the message-id was among them.
        let id = draft.message_id()?;
        let window = self.description(place).duplicates()?.as_millis();
        let queue = self.queue_mut(place);
        queue.knows(round, window, id)
    }

    /// Returns the partition of a message. Which one it is is not documented, but that it is always
    /// the same for a session, and for a message-id where duplicates are dropped: so the broker's
    /// own hash is asked, and its turns are counted.
    pub(in crate::sim::audit) fn partition(&mut self, place: Place, draft: &Draft) -> u64 {
        let description = self.description(place);
        if !description.partitioned {
            return 0;
        }
        let decided = self.decided_partition(place, draft);
        let queue = self.queue_mut(place);
        decided.unwrap_or_else(|| {
            queue.turn += 1;
            queue.turn % PARTITIONS
        })
    }

    /// Returns whether receivers are not let in, because messages go on.
    pub(in crate::sim) fn goes_on(&self, place: Place) -> bool {
        self.onward(place).is_some()
    }

    /// Returns whether messages go on to another entity.
    pub(in crate::sim) fn forwards(&self, place: Place) -> bool {
        matches!(self.onward(place), Some(Onward::Forward(_)))
    }

    /// Lets messages go on from a queue, in their order, as long as the bytes are there of those
    /// whose bytes are needed: of a topic's, for its rules, and where the target drops duplicates
    /// or has partitions.
    pub(in crate::sim) fn go_on(&mut self, round: &mut Round, place: Place) -> Result<(), String> {
        let mut did_due = false;
        while let Some(onward) = self.onward(place) {
            let mut messages = self.queue(place).messages.iter();
            let goes = |message: &Message| message.is_available() && !message.stays;
            let Some((&ordinal, message)) = messages.find(|(_, message)| goes(message)) else {
                self.queue_mut(place).waits = false;
                break;
            };
            let is_there = round.at_hand.contains(&message.draft.id);
            let needs_bytes = match &onward {
                Onward::Publish => true,
                Onward::Forward(path) => {
                    let mut entities = self.entities.iter();
                    let target = entities.find(|entity| entity.path == *path);
                    let target = target.map(|entity| &entity.description);
                    target.is_some_and(|it| it.partitioned || it.detects_duplicates)
                }
            };
            // A step of the queue does what is due in it first: an operator may have scheduled something for a time that is over.
            let is_overdue = self.next_due_at(place).is_some_and(|at| at <= round.now);
            match onward {
                Onward::Forward(path)
                    if self.queue(place).waits && self.is_blocked(place, ordinal, &path) =>
                {
                    break;
                }
                _ if needs_bytes && !is_there => break,
                _ if is_overdue && !did_due => {
                    did_due = true;
                    self.due(round, place)?;
                    self.arrive(round)?;
                }
                Onward::Publish => self.publish(round, place, ordinal)?,
                Onward::Forward(path) => {
                    if !self.forward(round, place, ordinal, &path)? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets messages go on from all queues, until none can.
    pub(in crate::sim) fn all_go_on(&mut self, round: &mut Round) -> Result<(), String> {
        loop {
            let before = self.forwards;
            for place in self.places() {
                self.go_on(round, place)?;
            }
            if self.forwards == before {
                return Ok(());
            }
        }
    }

    fn named(&self, path: &str) -> Option<usize> {
        let mut entities = self.entities.iter();
        entities.position(|entity| entity.path == path)
    }

    /// Returns whether dead letters stay because of what their target is now.
    fn is_blocked(&self, place: Place, ordinal: u64, path: &str) -> bool {
        let message = &self.queue(place).messages[&ordinal];
        matches!(
            self.not_taken(place, message, self.named(path)),
            Some((_, Whose::Targets))
        )
    }

    /// Says why a message cannot be forwarded.
    fn not_taken(
        &self,
        place: Place,
        message: &Message,
        target: Option<usize>,
    ) -> Option<(&'static str, Whose)> {
        const REFUSED: &str = "TransferDestinationRefused";
        let is_dead = place.part == Part::Dead;
        // A dead letter may go once more than others.
        if 4 + u32::from(is_dead) <= message.hops {
            return Some(("MaxTransferHopCountExceeded", Whose::Messages));
        }
        let Some(to) = target else {
            return Some(("TransferDestinationNotFound", Whose::Targets));
        };
        let description = &self.entities[to].description;
        if !description.status.can_send() && !is_dead {
            Some((REFUSED, Whose::Targets))
        } else if description.max_message_bytes < message.size {
            Some((REFUSED, Whose::Messages))
        } else if self.has_sessions(Place::main(to)) && message.draft.session.is_none() {
            Some(("Session ID is null.", Whose::Messages))
        } else if description.max_bytes < self.held(to) + message.size {
            Some((REFUSED, Whose::Targets))
        } else {
            None
        }
    }

    /// A topic's message goes to each subscription that wants it, once.
    pub(super) fn publish(
        &mut self,
        round: &mut Round,
        place: Place,
        ordinal: u64,
    ) -> Result<(), String> {
        let message = self.queue(place).messages[&ordinal].clone();
        let entities = self.entities.iter().enumerate();
        let wanting = entities.filter(|(_, entity)| {
            let wants = |rule: &Option<u64>| match rule {
                None => true,
                Some(color) => message.properties.get("color") == Some(&format!("c{color}")),
            };
            entity.topic == Some(place.queue) && entity.rules.iter().any(wants)
        });
        let wanting: Vec<usize> = wanting.map(|(at, _)| at).collect();
        for at in &wanting {
            self.settle_in(round, Place::main(*at), message.clone(), number(ordinal))?;
        }
        self.remove(place, ordinal);
        Ok(())
    }

    /// Forwards a message; `false` if those behind it wait, too.
    fn forward(
        &mut self,
        round: &mut Round,
        place: Place,
        ordinal: u64,
        path: &str,
    ) -> Result<bool, String> {
        let target = self.named(path);
        if let Some(to) = target {
            let to = Place::main(to);
            self.due(round, to)?;
            self.arrive(round)?;
            self.go_on(round, to)?;
        }
        let is_dead = place.part == Part::Dead;
        let message = &self.queue(place).messages[&ordinal];
        let refused = self.not_taken(place, message, target);
        let queue = self.queue_mut(place);
        match refused {
            Some((_, Whose::Targets)) if is_dead => {
                queue.waits = true;
                return Ok(false);
            }
            Some((_, Whose::Messages)) if is_dead => {
                let message = queue.messages.get_mut(&ordinal).expect("it was found");
                message.stays = true;
                return Ok(true);
            }
            _ => queue.waits = false,
        }
        self.forwards += 1;
        let source = is_dead.then(|| self.entities[place.queue].path.clone());
        let queue = self.queue_mut(place);
        let mut message = queue.messages.remove(&ordinal).expect("it was found");
        match (refused, target) {
            (None, Some(to)) => {
                message.source = source.or(message.source);
                message.hops += 1;
                self.settle_in(round, Place::main(to), message, number(ordinal))?;
            }
            (reason, _) => {
                let (reason, _) = reason.expect("it is not taken");
                let texts = [
                    ("DeadLetterReason", reason),
                    ("DeadLetterErrorDescription", ANY),
                ];
                for (name, text) in texts {
                    message.amend(name, text);
                }
                message.time_to_live = NEVER;
                message.changed = round.group;
                round.arrivals.push((place.queue, ordinal, message));
                self.arrive(round)?;
            }
        }
        Ok(true)
    }

    /// A message comes from another entity: with a number, a time and a life of its own here.
    pub(super) fn settle_in(
        &mut self,
        round: &mut Round,
        place: Place,
        message: Message,
        number: i64,
    ) -> Result<(), String> {
        self.due(round, place)?;
        if self.duplicate(round, place, &message.draft).is_some() {
            self.gone_if_last(message.draft.id);
            return self.go_on(round, place);
        }
        self.add(round, place, message, number)
    }

    /// A message that is no duplicate comes from another queue.
    pub(in crate::sim::audit) fn add(
        &mut self,
        round: &mut Round,
        place: Place,
        message: Message,
        number: i64,
    ) -> Result<(), String> {
        self.due(round, place)?;
        let longest = self.description(place).default_time_to_live.as_millis();
        let has_sessions = self.has_sessions(place);
        let message = Message {
            enqueued_at: round.now,
            time_to_live: message.time_to_live.min(longest),
            state: State::Active,
            lock: None,
            delivery_count: 0,
            enqueued_number: if message.enqueued_number == 0 {
                number
            } else {
                message.enqueued_number
            },
            changed: round.group,
            ..message
        };
        let lost = has_sessions && message.draft.session.is_none();
        let partition = self.partition(place, &message.draft);
        let queue = self.queue_mut(place);
        let ordinal = queue.take(partition);
        queue.messages.insert(ordinal, message);
        if lost {
            let reason = [
                ("DeadLetterReason", "Session ID is null."),
                ("DeadLetterErrorDescription", ANY),
            ];
            self.depart(round, place, ordinal, &reason);
        }
        self.dispatch(round, place, &BTreeSet::new())?;
        self.arrive(round)?;
        self.go_on(round, place)
    }
}
