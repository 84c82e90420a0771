//! What the documentation says a namespace is: queues, messages, locks, receivers. No index, no
//! cursor, no timer: everything is looked for.

mod jobs;
mod onward;
mod sessions;
mod shown;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jitney_base::ids::LockToken;
use jitney_base::time::Timestamp;
use jitney_queue::{Description, EntityKind};

use super::receives::Receive;
use super::round::{ClientObservation, Round};
use crate::sim::acts::{
    Ask, LinkKey, LinkKind, Part, Place, Session, TransactionId, Verdict, session_name,
};
use crate::sim::wire::{Draft, Seen};

pub(super) use self::jobs::{Job, Jobs};

/// A time to live, or a time, without end.
pub(super) const NEVER: i64 = i64::MAX;
/// Sequence numbers have 48 bits below the partition's 16 (`entities.md#sequence-numbers`).
const NUMBERS: u64 = 1 << 48;
/// Ordinals have the partition in front of its numbers, which do not roll over.
const PARTITION: u32 = 56;
const PARTITIONS: u64 = 16;

/// A namespace as it should be.
#[derive(Debug, Clone, Default)]
pub(in crate::sim) struct Model {
    pub(super) entities: Vec<Entity>,
    pub(super) links: BTreeMap<LinkKey, Link>,
    /// Receives without a link that are not answered; those that wait are among the links too.
    pub(super) receives: BTreeMap<LinkKey, Receive>,
    /// Where receivers without a message session received that have gone, the last one at the end. Of those that were detached, the shard
    /// remembers the last [`jitney_gateway::limits::DEPARTED_LINKS_MAX`] of each connection.
    pub(super) departed: Vec<(LinkKey, Place)>,
    pub(super) orphans: BTreeMap<u32, Vec<Call>>,
    /// Messages that have gone as the documentation allows, by their ids.
    pub(super) gone: BTreeSet<u64>,
    /// Messages that were taken for duplicates. Also after a crash: nothing of them was kept.
    pub(super) dropped: BTreeSet<u64>,
    /// Messages whose bytes on the disk are damaged: whoever reads them there finds that.
    pub(super) damaged: BTreeSet<u64>,
    /// Messages that were received and deleted, where that is kept.
    pub(super) deleted: BTreeMap<(Place, i64), Arc<Message>>,
    pub(super) keeps_deleted: bool,
    pub(super) room: bool,
    pub(super) locks: u64,
    /// What is open, by its connection.
    pub(super) transactions: BTreeMap<(u32, TransactionId), Transaction>,
    /// The entity of the first link that came after a coordinator, by its connection: all links of one
    /// are in one AMQP session.
    pub(super) groups: BTreeMap<u32, usize>,
    pub(super) jobs: Arc<Jobs>,
    /// How many messages have been forwarded, or could not be.
    pub(super) forwards: u64,
    /// Duplicates have numbers: messages are being scheduled.
    pub(super) numbers_dropped: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Transaction {
    /// The link over which it was declared.
    pub(super) by: LinkKey,
    pub(super) scope: Option<Scope>,
    pub(super) parts: Vec<Operation>,
    /// Some part of it was refused.
    pub(super) spoiled: bool,
    pub(super) ends: i64,
}

/// Where a transaction takes place: an entity, and one of its partitions.
pub(super) type Scope = (usize, Option<u64>);

/// Something that is done when its transaction is committed.
#[derive(Debug, Clone)]
pub enum Operation {
    Cancel(Place, BTreeSet<i64>),
    Send(usize, Vec<Draft>),
    /// With the delivery that is settled at the commit, if it was decided over a link.
    Settle(Place, LockToken, Verdict, Option<(LinkKey, u32)>),
}

#[derive(Debug, Clone)]
pub(super) struct Entity {
    pub(super) description: Description,
    pub(super) path: String,
    /// Of a subscription.
    pub(super) topic: Option<usize>,
    pub(super) rules: Vec<Option<u64>>,
    pub(super) main: Queue,
    pub(super) dead: Queue,
    pub(super) transfer: Queue,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    /// In the order of acceptance, numbers without roll-over.
    pub(super) messages: BTreeMap<u64, Message>,
    /// The next number of each partition that has given any; the only one's is 0.
    pub(super) next: BTreeMap<u64, u64>,
    /// Counts messages that go to any partition.
    pub(super) turn: u64,
    /// Message-ids that were accepted, where duplicates are dropped: when, and in which group.
    pub(super) known: BTreeMap<String, (i64, u64)>,
    pub(super) receivers: BTreeMap<LinkKey, Receiver>,
    pub(super) holders: BTreeMap<Session, Holder>,
    /// Who held a message session until its lock ended, with no message locked, and when it is told.
    pub(super) lapsed: BTreeMap<Session, Holder>,
    /// Those that wait for a message session, the first first, and until when.
    pub(super) waiting: Vec<(LinkKey, i64)>,
    /// The states of message sessions, also of those whose state was cleared.
    pub(super) states: BTreeMap<Session, SessionState>,
    /// Its dead letters wait for their target.
    pub(super) waits: bool,
}

/// Who has a message session.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    pub(super) at: LinkKey,
    pub(super) until: i64,
}

#[derive(Debug, Clone)]
pub(super) struct SessionState {
    pub(super) state: Option<Vec<u8>>,
    pub(super) set_at: i64,
    pub(super) changed: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) place: Place,
    pub(super) kind: LinkKind,
    /// By way of which entity a sender sends in transactions.
    pub(super) group: Option<usize>,
    /// Of a response link.
    pub(super) limit: u32,
    pub(super) sent: u32,
    pub(super) waiting: VecDeque<Call>,
}

/// A request that waits for the link of its response, or for credit there.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) reply_to: String,
    pub(super) about: Option<LinkKey>,
    pub(super) transaction: Option<TransactionId>,
    pub(super) place: Place,
    pub(super) ask: Ask,
    /// The link that it came on.
    pub(super) at: LinkKey,
    /// Its content was kept: it is not answered "busy".
    pub(super) has_room: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Receiver {
    pub(super) delete: bool,
    pub(super) limit: u32,
    pub(super) delivered: u32,
    pub(super) drain: bool,
    pub(super) window: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) draft: Arc<Draft>,
    pub(super) size: u64,
    pub(super) enqueued_at: i64,
    pub(super) time_to_live: i64,
    pub(super) state: State,
    pub(super) lock: Option<Lock>,
    pub(super) delivery_count: u32,
    pub(super) properties: BTreeMap<String, String>,
    /// Those that others than its sender gave it.
    pub(super) amended: BTreeMap<String, String>,
    /// The number that it had where it was sent to; 0 if that is here.
    pub(super) enqueued_number: i64,
    pub(super) hops: u32,
    /// It is a dead letter that its target does not take.
    pub(super) stays: bool,
    pub(super) source: Option<String>,
    /// The group with the newest change that must outlive a crash once somebody was told of it.
    pub(super) changed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Active,
    Deferred,
    Scheduled { due: i64 },
}

#[derive(Debug, Clone)]
pub(super) struct Lock {
    pub(super) until: i64,
    /// Not known before the response that carries it is seen.
    pub(super) token: Option<LockToken>,
    pub(super) serial: u64,
}

/// What somebody who looks at a message must see.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) draft: Arc<Draft>,
    pub(super) number: i64,
    pub(super) enqueued_at: i64,
    pub(super) delivery_count: u32,
    pub(super) state: i32,
    pub(super) locked_until: Option<i64>,
    /// A message that is peeked at has no token, though a deferred one may show the end of a lock.
    pub(super) is_peeked: bool,
    /// The end of its life; not checked where the documentation is silent.
    pub(super) time_to_live: Option<i64>,
    pub(super) enqueued_number: i64,
    pub(super) source: Option<String>,
    pub(super) properties: BTreeMap<String, String>,
}

/// A text that is not documented.
pub(super) const ANY: &str = "*";

/// Where messages of a queue go on to.
enum Onward {
    Publish,
    Forward(String),
}

/// The number that an ordinal shows.
pub(super) fn number(ordinal: u64) -> i64 {
    let partition = ordinal >> PARTITION;
    i64::try_from((partition << 48) | (ordinal % NUMBERS)).expect("52 bits fit")
}

/// Returns the partition of an ordinal.
pub(super) fn partition_of(ordinal: u64) -> u64 {
    ordinal >> PARTITION
}

/// Returns whether two messages of a queue have an order.
pub(super) fn same_partition(one: u64, other: u64) -> bool {
    one >> PARTITION == other >> PARTITION
}

impl Call {
    pub(super) fn bytes(&self) -> usize {
        if self.has_room {
            let message = self.ask.message(&self.id, &self.reply_to, self.about);
            return message.len() + jitney_gateway::limits::REQUEST_BYTES;
        }
        // What the answer needs is kept: the encoded message-id, reply-to and the operation's name.
        let id = 2 + self.id.len();
        id + self.reply_to.len()
            + self.ask.operation().len()
            + jitney_gateway::limits::REQUEST_BYTES
    }
}

impl Receiver {
    pub(super) fn credit(&self) -> u32 {
        let credit = self.limit.wrapping_sub(self.delivered);
        if credit < 1 << 31 { credit } else { 0 }
    }

    pub(super) fn can_take(&self) -> bool {
        self.credit() > 0 && self.window > 0
    }
}

impl Message {
    pub(super) fn is_over(&self, now: i64) -> bool {
        self.time_to_live != NEVER && self.enqueued_at.saturating_add(self.time_to_live) <= now
    }

    pub(super) fn is_scheduled(&self) -> bool {
        matches!(self.state, State::Scheduled { .. })
    }

    pub(super) fn is_available(&self) -> bool {
        self.lock.is_none() && self.state == State::Active
    }

    pub(super) fn shown(&self, place: Place, ordinal: u64) -> Shown {
        let silent = place.is_dead() || matches!(self.state, State::Scheduled { .. });
        Shown {
            draft: Arc::clone(&self.draft),
            number: number(ordinal),
            enqueued_at: self.enqueued_at,
            delivery_count: self.delivery_count,
            state: match self.state {
                State::Active => 0,
                State::Deferred => 1,
                State::Scheduled { .. } => 2,
            },
            locked_until: None,
            is_peeked: false,
            time_to_live: (!silent).then_some(self.time_to_live),
            enqueued_number: self.enqueued_number,
            source: self.source.clone(),
            properties: self.properties.clone(),
        }
    }
}

impl Queue {
    pub(super) fn ordinal_of(&self, wanted: i64) -> Option<u64> {
        let mut all = self.messages.keys().copied();
        all.find(|&ordinal| number(ordinal) == wanted)
    }

    /// Gives the next number of a partition.
    pub(super) fn take(&mut self, partition: u64) -> u64 {
        let next = self.next.entry(partition).or_insert(1);
        let ordinal = (partition << PARTITION) | *next;
        *next += 1;
        ordinal
    }

    /// Returns the group in which a message-id was accepted within the window; if it was not, it
    /// is accepted now.
    fn knows(&mut self, round: &Round, window: i64, id: String) -> Option<u64> {
        let now = round.now;
        self.known
            .retain(|_, (at, _)| now < at.saturating_add(window));
        let known = self.known.get(&id).map(|(_, group)| *group);
        self.known.entry(id).or_insert((now, round.group));
        known
    }

    pub(super) fn locked_by(&self, token: LockToken) -> Option<u64> {
        let mut all = self.messages.iter();
        let found = all.find(|(_, message)| {
            message
                .lock
                .as_ref()
                .is_some_and(|lock| lock.token == Some(token))
        });
        found.map(|(&ordinal, _)| ordinal)
    }

    pub(super) fn bytes(&self) -> u64 {
        let states = self.states.values().filter_map(|kept| kept.state.as_ref());
        let states: usize = states.map(Vec::len).sum();
        let messages: u64 = self.messages.values().map(|message| message.size).sum();
        messages + u64::try_from(states).expect("fits")
    }

    /// Returns the oldest message to be delivered of each message session that nobody has.
    pub(super) fn free_sessions(&self) -> BTreeMap<Session, u64> {
        let mut free = BTreeMap::new();
        for (&ordinal, message) in self.messages.iter().filter(|(_, m)| m.is_available()) {
            if let Some(session) = message.draft.session
                && !self.holders.contains_key(&session)
            {
                free.entry(session).or_insert(ordinal);
            }
        }
        free
    }
}

impl Model {
    pub(super) fn queue(&self, place: Place) -> &Queue {
        let entity = &self.entities[place.queue];
        match place.part {
            Part::Main => &entity.main,
            Part::Dead => &entity.dead,
            Part::Transfer => &entity.transfer,
        }
    }

    pub(super) fn queue_mut(&mut self, place: Place) -> &mut Queue {
        let entity = &mut self.entities[place.queue];
        match place.part {
            Part::Main => &mut entity.main,
            Part::Dead => &mut entity.dead,
            Part::Transfer => &mut entity.transfer,
        }
    }

    pub(super) fn description(&self, place: Place) -> &Description {
        &self.entities[place.queue].description
    }

    pub(super) fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let queues = 0..self.entities.len();
        queues.flat_map(Place::all)
    }

    /// Returns whether messages are received through message sessions only.
    pub(super) fn has_sessions(&self, place: Place) -> bool {
        place.part == Part::Main && self.description(place).requires_session
    }

    /// Returns the bytes that count to an entity. What a topic's subscriptions have counts to the
    /// topic too, and is not counted here: topics have room enough.
    pub(super) fn held(&self, queue: usize) -> u64 {
        let places = Place::all(queue).into_iter();
        places.map(|place| self.queue(place).bytes()).sum()
    }

    /// A crash forgets locks and links, and nothing else that was kept.
    pub(super) fn restart(&mut self) {
        self.links.clear();
        self.receives.clear();
        self.departed.clear();
        self.orphans.clear();
        self.transactions.clear();
        self.groups.clear();
        // What was looked up is looked up again.
        let jobs = Arc::make_mut(&mut self.jobs);
        (jobs.last, jobs.page) = (None, None);
        for place in self.places() {
            let queue = self.queue_mut(place);
            queue.receivers.clear();
            queue.holders.clear();
            queue.lapsed.clear();
            queue.waiting.clear();
            queue.turn = 0;
            queue.waits = false;
            for message in queue.messages.values_mut() {
                message.lock = None;
                message.stays = false;
            }
        }
    }

    /// The clock was set. Locks, waits and transactions last as long as they would have; schedules and
    /// ends of life are by the clock.
    pub(super) fn follow_clock(&mut self, millis: i64) {
        for open in self.transactions.values_mut() {
            open.ends += millis;
        }
        for receive in self.receives.values_mut() {
            receive.until = receive.until.saturating_add(millis);
        }
        for place in self.places() {
            let queue = self.queue_mut(place);
            for holder in queue.holders.values_mut().chain(queue.lapsed.values_mut()) {
                holder.until += millis;
            }
            for (_, until) in &mut queue.waiting {
                *until += millis;
            }
            let locks = queue.messages.values_mut();
            for lock in locks.filter_map(|message| message.lock.as_mut()) {
                if lock.until != NEVER {
                    lock.until += millis;
                }
            }
        }
    }

    /// Returns when time alone changes something.
    pub(super) fn next_due(&self) -> Option<i64> {
        let places = self.places().filter_map(|place| self.next_due_at(place));
        let transactions = self.transactions.values().map(|open| open.ends);
        let receives = self.next_end_of_wait();
        places.chain(transactions).chain(receives).min()
    }

    /// Returns what is due at a time, for people.
    pub(super) fn due_there(&self, due: i64) -> String {
        let mut places = self.places();
        let place = places.find(|&place| self.next_due_at(place) == Some(due));
        place.map_or_else(
            || "a transaction".to_owned(),
            |place| {
                let messages = self.queue(place).messages.iter();
                let near = messages.filter(|(_, message)| match message.state {
                    State::Scheduled { due: at } => at == due,
                    State::Active => {
                        message.enqueued_at.saturating_add(message.time_to_live) == due
                    }
                    State::Deferred => false,
                });
                let near: Vec<_> = near
                    .map(|(at, message)| (at, &message.state, &message.lock))
                    .collect();
                format!("something of {place}, perhaps {near:?},")
            },
        )
    }

    pub(super) fn next_due_at(&self, place: Place) -> Option<i64> {
        let queue = self.queue(place);
        let locks = queue.holders.values().map(|holder| holder.until);
        let locks = locks.chain(queue.lapsed.values().map(|holder| holder.until));
        let sessions = locks.chain(queue.waiting.iter().map(|&(_, until)| until));
        let times = queue
            .messages
            .values()
            .map(|message| match (&message.lock, message.state) {
                (Some(lock), _) => lock.until,
                (None, State::Scheduled { due }) => due,
                (None, State::Active) => message.enqueued_at.saturating_add(message.time_to_live),
                (None, State::Deferred) => NEVER,
            });
        times.chain(sessions).min().filter(|&at| at != NEVER)
    }

    /// Does what is due at a place: locks end, scheduled messages become active, lives end.
    pub(super) fn due(&mut self, round: &mut Round, place: Place) -> Result<(), String> {
        let now = round.now;
        let messages = &self.queue(place).messages;
        let mut over: Vec<(i64, u64, u64)> = messages
            .iter()
            .filter_map(|(&at, message)| {
                let lock = message.lock.as_ref().filter(|lock| lock.until <= now)?;
                Some((lock.until, lock.serial, at))
            })
            .collect();
        over.sort_unstable();
        for (_, _, ordinal) in over {
            self.fail(round, place, ordinal, &BTreeMap::new());
        }
        self.end_sessions(round, place)?;
        let mut ready: Vec<(i64, u64)> = self
            .queue(place)
            .messages
            .iter()
            .filter_map(|(&at, message)| match message.state {
                State::Scheduled { due } if due <= now => Some((due, at)),
                _ => None,
            })
            .collect();
        ready.sort_unstable();
        for (_, ordinal) in ready {
            self.activate(round, place, ordinal);
        }
        let expired: Vec<u64> = self
            .queue(place)
            .messages
            .iter()
            .filter(|(_, message)| message.is_available() && message.is_over(now))
            .map(|(&at, _)| at)
            .collect();
        for ordinal in expired {
            self.end_of_life(round, place, ordinal);
        }
        self.dispatch(round, place, &BTreeSet::new())
    }

    /// A scheduled message becomes active, as if it were sent now.
    pub(super) fn activate(&mut self, round: &Round, place: Place, ordinal: u64) {
        let queue = self.queue_mut(place);
        let mut message = queue.messages.remove(&ordinal).expect("it was found");
        message.state = State::Active;
        message.enqueued_at = round.now;
        message.changed = round.group;
        let ordinal = queue.take(ordinal >> PARTITION);
        queue.messages.insert(ordinal, message);
    }

    /// Locks of message sessions end, and waits for them.
    fn end_sessions(&mut self, round: &mut Round, place: Place) -> Result<(), String> {
        let now = round.now;
        let holders = self.queue(place).holders.iter();
        let over = holders.filter(|(_, holder)| holder.until <= now);
        let mut over: Vec<(i64, Session)> = over.map(|(&id, holder)| (holder.until, id)).collect();
        over.sort_unstable();
        for (_, session) in over {
            let holder = self.queue_mut(place).holders.remove(&session);
            let Holder { at, until } = holder.expect("it was found");
            let locked = self.locked_in(place, session);
            let until = until.saturating_add(jitney_queue::limits::SESSION_LINGER.as_millis());
            if locked.is_empty() && now < until {
                let lapsed = &mut self.queue_mut(place).lapsed;
                lapsed.insert(session, Holder { at, until });
                continue;
            }
            self.lose_session(round, place, at)?;
            for ordinal in locked {
                self.fail(round, place, ordinal, &BTreeMap::new());
            }
        }
        let lapsed = self.queue(place).lapsed.iter();
        let over = lapsed.filter(|(_, holder)| holder.until <= now);
        for session in over.map(|(&id, _)| id).collect::<Vec<Session>>() {
            self.oust(round, place, session)?;
        }
        let waiting = self.queue(place).waiting.iter();
        let over: Vec<LinkKey> = waiting
            .filter(|(_, until)| *until <= now)
            .map(|(at, _)| *at)
            .collect();
        for at in over {
            let queue = self.queue_mut(place);
            queue.waiting.retain(|(other, _)| *other != at);
            queue.receivers.remove(&at);
            self.links.remove(&at);
            round.answer(&format!("{at:?} waited in vain"), |sight| {
                matches!(sight, ClientObservation::Refused(link, condition)
                    if *link == at && condition == "com.microsoft:timeout")
            })?;
        }
        Ok(())
    }

    /// Returns the messages of a session that its holder has.
    pub(super) fn locked_in(&self, place: Place, session: Session) -> Vec<u64> {
        let messages = self.queue(place).messages.iter();
        let locked = messages.filter(|(_, m)| m.lock.is_some() && m.draft.session == Some(session));
        locked.map(|(&ordinal, _)| ordinal).collect()
    }

    /// A delivery failed: it counts, and the message is available again, or dead-lettered.
    pub(super) fn fail(
        &mut self,
        round: &mut Round,
        place: Place,
        ordinal: u64,
        properties: &BTreeMap<String, String>,
    ) {
        if self.count(round, place, ordinal, properties) {
            self.unlock(round, place, ordinal);
        }
    }

    /// Counts a delivery that did not complete its message. Returns whether the message stays, and is
    /// not dead-lettered.
    pub(super) fn count(
        &mut self,
        round: &mut Round,
        place: Place,
        ordinal: u64,
        properties: &BTreeMap<String, String>,
    ) -> bool {
        let max = self.description(place).max_delivery_count;
        let group = round.group;
        let queue = self.queue_mut(place);
        let message = queue.messages.get_mut(&ordinal).expect("it was found");
        message.delivery_count += u32::from(!place.is_dead());
        message.lock = None;
        message.modify(properties, group);
        if !place.is_dead() && max <= message.delivery_count {
            let text = format!("Message could not be consumed after {max} delivery attempts.");
            let reason = [
                ("DeadLetterReason", "MaxDeliveryCountExceeded"),
                ("DeadLetterErrorDescription", text.as_str()),
            ];
            self.depart(round, place, ordinal, &reason);
            return false;
        }
        true
    }

    /// Makes a message what it was before it was locked.
    pub(super) fn unlock(&mut self, round: &mut Round, place: Place, ordinal: u64) {
        let queue = self.queue_mut(place);
        let message = queue.messages.get_mut(&ordinal).expect("it was found");
        message.lock = None;
        if message.state == State::Active && message.is_over(round.now) {
            self.end_of_life(round, place, ordinal);
        }
    }

    fn end_of_life(&mut self, round: &mut Round, place: Place, ordinal: u64) {
        if self.description(place).dead_letter_on_expiration && !place.is_dead() {
            let reason = [
                ("DeadLetterReason", "TTLExpiredException"),
                (
                    "DeadLetterErrorDescription",
                    "The message expired and was dead lettered.",
                ),
            ];
            self.depart(round, place, ordinal, &reason);
        } else {
            self.remove(place, ordinal);
        }
    }

    /// Returns whether a message is at some place.
    pub(super) fn has(&self, id: u64) -> bool {
        self.places().any(|place| {
            let mut messages = self.queue(place).messages.values();
            messages.any(|message| message.draft.id == id)
        })
    }

    /// One of the copies of a message has gone as a duplicate: it is accounted for, unless another is left.
    pub(super) fn gone_if_last(&mut self, id: u64) {
        if !self.has(id) {
            self.gone.insert(id);
        }
    }

    pub(super) fn remove(&mut self, place: Place, ordinal: u64) -> Message {
        let message = self.queue_mut(place).messages.remove(&ordinal);
        let message = message.expect("it was found");
        self.gone.insert(message.draft.id);
        message
    }

    /// Removes a message that was received and deleted in one.
    pub(super) fn delete(&mut self, place: Place, ordinal: u64) {
        let message = self.remove(place, ordinal);
        if self.keeps_deleted {
            let at = (place, number(ordinal));
            self.deleted.insert(at, Arc::new(message));
        }
    }

    /// A message leaves for the dead-letter queue: with its number and its count, and to live on.
    pub(super) fn depart(
        &mut self,
        round: &mut Round,
        place: Place,
        ordinal: u64,
        reason: &[(&str, &str)],
    ) {
        let message = self.queue_mut(place).messages.remove(&ordinal);
        let mut message = message.expect("it was found");
        message.lock = None;
        message.state = State::Active;
        message.time_to_live = NEVER;
        message.changed = round.group;
        for (name, text) in reason {
            message.amend(name, text);
        }
        round.arrivals.push((place.queue, ordinal, message));
    }

    /// Takes in what left for dead-letter queues.
    pub(super) fn arrive(&mut self, round: &mut Round) -> Result<(), String> {
        let arrivals = std::mem::take(&mut round.arrivals);
        let queues: BTreeSet<usize> = arrivals.iter().map(|(queue, ..)| *queue).collect();
        for queue in queues {
            let place = Place::dead(queue);
            self.due(round, place)?;
            let goes_on = self.onward(place).is_some();
            let mut fresh = BTreeSet::new();
            for (at, ordinal, message) in &arrivals {
                if *at == queue {
                    fresh.insert(*ordinal);
                    let dead = self.queue_mut(place);
                    dead.messages.insert(*ordinal, message.clone());
                    dead.pass(*ordinal);
                    if goes_on {
                        self.go_on(round, place)?;
                    }
                }
            }
            self.dispatch(round, place, &fresh)?;
        }
        Ok(())
    }

    /// Returns the place where something has been due for longest.
    pub(super) fn most_due(&self, now: i64) -> Option<Place> {
        let due = self.places().filter_map(|place| {
            let at = self.next_due_at(place).filter(|&at| at <= now)?;
            Some((at, place))
        });
        due.min().map(|(_, place)| place)
    }

    /// Whoever can take a message has got one, as long as there are any; then drains end.
    ///
    /// Messages that are `fresh` came one after the other, and an earlier one may have gone out
    /// before a lower one came.
    pub(super) fn dispatch(
        &mut self,
        round: &mut Round,
        place: Place,
        fresh: &BTreeSet<u64>,
    ) -> Result<(), String> {
        self.grant_sessions(round, place, fresh)?;
        while let Some((at, first)) = self.can_deliver(place) {
            let waiting = format!(
                "{at:?} waits at {place}, and message {} is there",
                number(first)
            );
            round.delivery(self, place, fresh, &waiting)?;
        }
        let queue = self.queue(place);
        let ended = queue.receivers.iter().filter(|(_, receiver)| {
            receiver.drain && (receiver.credit() == 0 || 0 < receiver.window)
        });
        let ended: BTreeMap<LinkKey, u32> =
            ended.map(|(&at, receiver)| (at, receiver.limit)).collect();
        round.drained(&ended, place)?;
        for at in ended.into_keys() {
            let queue = self.queue_mut(place);
            let receiver = queue.receivers.get_mut(&at).expect("it was found");
            receiver.drain = false;
            if receiver.credit() > 0 {
                receiver.delivered = receiver.limit;
            }
            self.end_receive(at);
        }
        Ok(())
    }

    /// Returns somebody who can take a message, and the first one for them.
    fn can_deliver(&self, place: Place) -> Option<(LinkKey, u64)> {
        let queue = self.queue(place);
        let mut able = queue.receivers.iter().filter(|(_, it)| it.can_take());
        let mut available = queue.messages.iter().filter(|(_, m)| m.is_available());
        if !self.has_sessions(place) {
            return Some((*able.next()?.0, *available.next()?.0));
        }
        available.find_map(|(&ordinal, message)| {
            let holder = queue.holders.get(&message.draft.session?)?;
            let receiver = queue.receivers.get(&holder.at);
            let takes = receiver.is_some_and(Receiver::can_take);
            takes.then_some((holder.at, ordinal))
        })
    }

    /// Locks a message; the token is filled in when somebody sees it.
    pub(super) fn lock(&mut self, now: i64, place: Place, ordinal: u64) -> (i64, u64) {
        let until = now.saturating_add(self.description(place).lock_duration.as_millis());
        self.locks += 1;
        let serial = self.locks;
        let has_sessions = self.has_sessions(place);
        let queue = self.queue_mut(place);
        let message = queue.messages.get_mut(&ordinal).expect("it was found");
        // In a message session, a lock ends with the session's, and the message shows the greatest date.
        let shown = has_sessions.then(|| Timestamp::END_OF_9999.as_millis());
        message.lock = Some(Lock {
            until: if has_sessions { NEVER } else { until },
            token: None,
            serial,
        });
        (shown.unwrap_or(until), serial)
    }

    /// Takes a message in, and returns its number and the group that it is in; of a duplicate no
    /// number, and the group of the first.
    pub(super) fn enqueue(&mut self, round: &Round, queue: usize, draft: &Draft) -> (i64, u64) {
        let place = Place::main(queue);
        let longest = self.description(place).default_time_to_live.as_millis();
        let own = draft.time_to_live.filter(|&millis| millis > 0);
        let state = match draft.due {
            Some(due) if round.now < due => State::Scheduled { due },
            _ => State::Active,
        };
        let message = Message {
            draft: Arc::new(draft.clone()),
            size: u64::try_from(draft.encode().len()).expect("fits"),
            enqueued_at: round.now,
            time_to_live: own.map_or(longest, |own| longest.min(i64::from(own))),
            state,
            lock: None,
            delivery_count: 0,
            properties: draft.properties.clone(),
            amended: BTreeMap::new(),
            enqueued_number: 0,
            hops: 0,
            stays: false,
            source: None,
            changed: round.group,
        };
        if let Some(group) = self.duplicate(round, place, draft) {
            self.dropped.insert(draft.id);
            if !self.numbers_dropped {
                return (0, group);
            }
            // Of a message that is scheduled a number is told, though it is dropped.
            let partition = self.partition(place, draft);
            let ordinal = self.queue_mut(place).take(partition);
            return (number(ordinal), round.group);
        }
        let partition = self.partition(place, draft);
        let queue = self.queue_mut(place);
        let ordinal = queue.take(partition);
        queue.messages.insert(ordinal, message);
        (number(ordinal), round.group)
    }

    /// Returns the window that a receiver begins with, bytes.
    pub(super) fn window() -> i64 {
        jitney_queue::limits::RECEIVER_WINDOW_BYTES
    }
}
