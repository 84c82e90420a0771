//! Messages as an operator sees them: in whatever state, found by what their index entries tell.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::consumers::NO_ONE;
use super::scan::Scan;
use super::{
    BodyRef, ConsumerId, MessageSession, Millis, Queue, ScanBudget, ScanPosition, Seen,
    SequenceNumber, Stamps, StoredState, Timestamp, number, numbers, stamps,
};
use crate::limits;
use jitney_message::MessageState;

/// The conditions that index entries decide: a message must meet all that are given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Its state is one of these; if there are none, any.
    pub states: Vec<MessageState>,
    /// Its number is one of these, in ascending order; if there are none, any.
    pub numbers: Vec<SequenceNumber>,
    /// The message session that it belongs to.
    pub message_session: Option<String>,
    /// It was enqueued at this time or later.
    pub enqueued_from: Option<Timestamp>,
    /// It was enqueued before this time.
    pub enqueued_before: Option<Timestamp>,
    /// It is scheduled for this time or later.
    pub due_from: Option<Timestamp>,
    /// It is scheduled for a time before this.
    pub due_before: Option<Timestamp>,
}

/// How much is returned at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageBounds {
    /// The number of messages.
    pub messages_max: usize,
    /// Their bytes.
    pub bytes_max: usize,
}

/// A message as an operator sees it.
#[derive(Debug, Clone)]
pub struct Inspected {
    /// Its number.
    pub number: SequenceNumber,
    /// Where its bytes are.
    pub body: BodyRef,
    /// Its annotations. The end of a lock is among them, its token is not.
    pub stamps: Stamps,
    /// A receiver has it locked.
    pub is_locked: bool,
    /// The receiver that has it locked, if that is known: of what was received by number it is not.
    pub holder: Option<ConsumerId>,
    /// When a scheduled message becomes active.
    pub due: Option<Timestamp>,
    /// When its life ends: never for deferred, scheduled and dead-lettered messages.
    pub expires_at: Option<Timestamp>,
    /// The message session it belongs to.
    pub message_session: Option<Arc<str>>,
    /// How often it was forwarded.
    pub hops: u8,
}

/// A receiver as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverState {
    /// How many more messages it takes.
    pub credit: u32,
    /// How many messages were handed to it.
    pub delivered: u64,
    /// How many messages it has locked.
    pub locked: usize,
    /// The lowest number of these, if all locks of the queue were looked at.
    pub oldest_locked: Option<SequenceNumber>,
    /// When the oldest of its locks was made, if it was found.
    pub oldest_lock: Option<Timestamp>,
    /// Since when nothing has happened to it.
    pub idle_since: Option<Timestamp>,
    /// Messages that it may get and that none has; not known of one that reads at its own position, by a selector or to
    /// browse.
    pub waiting: Option<usize>,
    /// The text of its selector.
    pub selector: Option<String>,
}

/// What a receiver has, and what waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverProgress {
    /// How many messages it has locked.
    pub locked: usize,
    /// Messages that it may get and that none has; 0 where that is not known.
    pub waiting: usize,
    /// Since when nothing has happened to it.
    pub idle_since: Option<Timestamp>,
}

/// Why a receiver is stuck: messages wait for it, and nothing has happened to it for ten seconds
/// (`docs/console.md#what-waits-and-what-is-stuck`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stuck {
    /// It has messages locked.
    Holding,
    /// It has none, and no other receiver can take what waits, or works on the queue.
    Silent,
}

/// A receiver to which nothing has happened for so long is stuck, if messages wait for it: the time that one message takes is
/// shorter.
const STUCK_AFTER: Millis = Millis::from_millis(10_000);

/// Up to where a long look goes: the numbers that the queue had given when it began.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Until(Vec<u64>);

/// A message session as an operator sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionInspected {
    /// Its messages, [`limits::SESSION_MESSAGES_COUNTED`] at most.
    pub messages: usize,
    /// Bytes of its state, if it has one.
    pub state_bytes: Option<usize>,
    /// The receiver that holds it, and until when.
    pub holder: Option<(ConsumerId, Timestamp)>,
}

/// Equal spans of time in which scheduled messages are counted.
#[derive(Debug, Clone, Copy)]
pub struct Spans {
    /// The beginning; that of the first message if it is not given.
    pub from: Option<Timestamp>,
    /// The end; behind the last message if it is not given.
    pub before: Option<Timestamp>,
    /// As many spans.
    pub count: usize,
    /// The position to continue at.
    pub position: Option<(Timestamp, u64)>,
}

/// Scheduled messages by the time when they become active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The beginning of the first span.
    pub from: Timestamp,
    /// The end of the last span, which it does not contain.
    pub before: Timestamp,
    /// Messages that become active in each of the equal spans.
    pub counts: Vec<usize>,
    /// All scheduled messages of the queue.
    pub total: usize,
    /// The position to continue to count at; `None` if all are counted.
    pub next: Option<(Timestamp, u64)>,
}

/// Locks that cost as much as one entry that is looked at.
const LOCKS_PER_LOOK: usize = 8;

impl Schedule {
    /// Returns when a span begins: the first time that is counted in it.
    #[must_use]
    pub fn beginning_of(&self, span: usize) -> Timestamp {
        let (length, spans) = self.scale();
        let span = i128::try_from(span).unwrap_or(spans);
        let offset = (length * span + spans - 1) / spans;
        let offset = i64::try_from(offset).unwrap_or(i64::MAX);
        self.from.after(Millis::from_millis(offset))
    }

    /// Counts a message in its span.
    fn count(&mut self, due: Timestamp) {
        let (length, spans) = self.scale();
        let place = i128::from(due.since(self.from).as_millis()) * spans / length;
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
    }

    /// Returns the milliseconds of the whole time, and the number of spans; both at least 1.
    fn scale(&self) -> (i128, i128) {
        let length = i128::from(self.before.since(self.from).as_millis());
        let spans = i128::try_from(self.counts.len()).unwrap_or(i128::MAX);
        (length.max(1), spans.max(1))
    }

    /// Adds the counts of a further step.
    #[must_use]
    pub fn with(mut self, further: &Self) -> Self {
        for (count, more) in self.counts.iter_mut().zip(&further.counts) {
            *count += more;
        }
        self.total = further.total;
        self.next = further.next;
        self
    }
}

impl Until {
    fn covers(&self, ordinal: u64) -> bool {
        let partition = if self.0.len() == 1 {
            0
        } else {
            numbers::partition(ordinal)
        };
        self.0.get(partition).is_some_and(|&next| ordinal < next)
    }
}

impl Conditions {
    fn hold_for(&self, entry: &Seen<'_>) -> bool {
        let name = entry.message_session.as_ref();
        let is_of_session =
            |wanted: &String| name.is_some_and(|name: &MessageSession| name.as_str() == wanted);
        (self.states.is_empty() || self.states.contains(&state_of(entry.state)))
            && self.message_session.as_ref().is_none_or(is_of_session)
            && self
                .enqueued_from
                .is_none_or(|from| from <= entry.enqueued_at)
            && self
                .enqueued_before
                .is_none_or(|before| entry.enqueued_at < before)
            && self.is_due(entry.state)
    }

    fn is_due(&self, state: StoredState) -> bool {
        match state {
            StoredState::Scheduled { due } => {
                self.due_from.is_none_or(|from| from <= due)
                    && self.due_before.is_none_or(|before| due < before)
            }
            StoredState::Active | StoredState::Deferred => {
                self.due_from.is_none() && self.due_before.is_none()
            }
        }
    }
}

const fn state_of(state: StoredState) -> MessageState {
    match state {
        StoredState::Active => MessageState::Active,
        StoredState::Deferred => MessageState::Deferred,
        StoredState::Scheduled { .. } => MessageState::Scheduled,
    }
}

impl Queue {
    /// Returns the numbers that it has given so far.
    #[must_use]
    pub fn until_now(&self) -> Until {
        Until(self.numbers.iter().collect())
    }

    /// Returns the numbers that it had given, as [`Queue::until_now`] has told before a restart: how often numbers had rolled
    /// over by then is not known any more.
    #[must_use]
    pub fn until_again(&self, until: &Until) -> Until {
        let again = until.0.iter().map(|&next| self.ordinal(number(next)));
        Until(again.collect())
    }

    /// Returns a position as it is after a restart; likewise.
    #[must_use]
    pub fn position_again(&self, ScanPosition(position): ScanPosition) -> ScanPosition {
        match position {
            0 => ScanPosition(0),
            position => ScanPosition(self.ordinal(number(position))),
        }
    }

    /// Returns messages from a position on that meet some conditions, within the bounds but one at least, and the position to
    /// continue at, or `None` at the end. It stops when its share of entries is used up.
    pub fn inspect(
        &self,
        start: u64,
        until: Option<&Until>,
        conditions: &Conditions,
        bounds: PageBounds,
        budget: &mut ScanBudget,
    ) -> (Vec<Inspected>, Option<ScanPosition>) {
        let mut found = Vec::new();
        let mut bytes = 0_usize;
        let entries: Box<dyn Iterator<Item = Seen<'_>>> = if conditions.numbers.is_empty() {
            Box::new(self.index.from(start))
        } else {
            let numbers = conditions.numbers.iter();
            let ordinals = numbers.map(|&number| self.ordinal(number));
            let ordinals = ordinals.filter(move |&at| start <= at);
            Box::new(ordinals.filter_map(|at| self.index.get(at)))
        };
        for entry in entries {
            if found.len() == bounds.messages_max || !budget.take() {
                self.tell_locks(&mut found, budget);
                return (found, Some(ScanPosition(entry.ordinal)));
            }
            let is_covered = until.is_none_or(|until| until.covers(entry.ordinal));
            if !is_covered || !conditions.hold_for(&entry) {
                continue;
            }
            bytes = bytes.saturating_add(usize::try_from(entry.body.length).unwrap_or(usize::MAX));
            if bounds.bytes_max < bytes && !found.is_empty() {
                self.tell_locks(&mut found, budget);
                return (found, Some(ScanPosition(entry.ordinal)));
            }
            found.push(self.inspected(&entry));
        }
        self.tell_locks(&mut found, budget);
        (found, None)
    }

    /// Returns a message that meets some conditions, as it is now; who has it locked is not said.
    #[must_use]
    pub fn inspect_one(
        &self,
        number: SequenceNumber,
        conditions: &Conditions,
    ) -> Option<Inspected> {
        let entry = self.index.get(self.ordinal(number))?;
        conditions.hold_for(&entry).then(|| self.inspected(&entry))
    }

    fn inspected(&self, entry: &Seen<'_>) -> Inspected {
        let stamps = stamps(self.origin(), entry);
        let may_expire = entry.state == StoredState::Active && entry.time_to_live != Millis::MAX;
        Inspected {
            number: number(entry.ordinal),
            body: entry.body,
            stamps,
            is_locked: entry.locked,
            holder: None,
            due: match entry.state {
                StoredState::Scheduled { due } => Some(due),
                StoredState::Active | StoredState::Deferred => None,
            },
            expires_at: may_expire.then(|| entry.expires_at()),
            message_session: entry
                .message_session
                .as_ref()
                .map(|name| name.as_str().into()),
            hops: entry.hops,
        }
    }

    /// Adds to messages when their locks end, with those of their message sessions if they are in one, and who has
    /// them. Locks are found by their tokens alone, so all are looked at, once.
    fn tell_locks(&self, found: &mut [Inspected], budget: &mut ScanBudget) {
        let locked = found.iter_mut().filter(|message| message.is_locked);
        let mut locked: BTreeMap<u64, &mut Inspected> = locked
            .map(|message| (self.ordinal(message.number), message))
            .collect();
        if locked.is_empty() {
            return;
        }
        budget.spend(self.locks.len() / LOCKS_PER_LOOK);
        for lock in self.locks.iter() {
            let Some(message) = locked.get_mut(&lock.ordinal) else {
                continue;
            };
            let sessions = self.sessions.as_ref();
            let name = message.message_session.as_deref();
            let holder = sessions
                .zip(name)
                .and_then(|(sessions, name)| sessions.holder(name));
            message.stamps.locked_until = Some(holder.map_or(lock.until, |holder| holder.until));
            message.holder = (lock.holder != NO_ONE).then_some(lock.holder);
        }
    }

    /// Returns the states of receivers, which are in the order of their ids. Locks are looked at in the order in which they were made, as many
    /// as `budget` allows: a queue may have more, and then the ages of recent ones are not known.
    #[must_use]
    pub fn receiver_states(
        &self,
        receivers: &[ConsumerId],
        budget: &mut usize,
    ) -> Vec<ReceiverState> {
        let mut locks: BTreeMap<ConsumerId, (Timestamp, u64)> = BTreeMap::new();
        let holders = receivers.iter().map(|&id| self.consumers.locked(id));
        let mut left = holders.fold(0_usize, usize::saturating_add);
        for lock in self.locks.in_order() {
            if left == 0 || *budget == 0 {
                break;
            }
            *budget -= 1;
            if receivers.binary_search(&lock.holder).is_ok() {
                left -= 1;
                let found = locks.entry(lock.holder);
                let (_, lowest) = found.or_insert((lock.made, lock.ordinal));
                *lowest = lock.ordinal.min(*lowest);
            }
        }
        let states = receivers.iter().map(|receiver| {
            let found = locks.get(receiver);
            let oldest = found.filter(|_| left == 0);
            let selection = self.consumers.scans().get(receiver).map(Scan::selection);
            let selector = selection.and_then(|it| it.selector.as_deref());
            ReceiverState {
                credit: self.consumers.credit(*receiver).unwrap_or_default(),
                delivered: self.consumers.handed_out(*receiver),
                locked: self.consumers.locked(*receiver),
                oldest_locked: oldest.map(|&(_, lowest)| number(lowest)),
                oldest_lock: found.map(|&(made, _)| made),
                idle_since: self.consumers.idle_since(*receiver),
                waiting: self.waiting_for(*receiver),
                selector: selector.map(|selector| selector.text().to_owned()),
            }
        });
        states.collect()
    }

    /// Returns how many messages a receiver may get that none has; not known of one that reads at its own position.
    fn waiting_for(&self, receiver: ConsumerId) -> Option<usize> {
        if self.consumers.scans().contains_key(&receiver) {
            return None;
        }
        let sessions = self.sessions.as_ref();
        Some(sessions.map_or_else(|| self.waiting(), |all| all.waiting_for(receiver)))
    }

    /// Returns why a receiver is stuck, if it is. One whose messages are not counted is not judged.
    #[must_use]
    pub fn stuck(&self, now: Timestamp, receiver: ConsumerId) -> Option<Stuck> {
        let idle_since = self.consumers.idle_since(receiver)?;
        let waits = self
            .waiting_for(receiver)
            .is_some_and(|waiting| waiting != 0);
        if !waits || now.since(idle_since) < STUCK_AFTER {
            return None;
        }
        if self.consumers.locked(receiver) != 0 {
            return Some(Stuck::Holding);
        }
        let is_alone = self.sessions.is_some() || self.locks.len() == 0;
        is_alone.then_some(Stuck::Silent)
    }

    /// Returns what a stuck receiver has and waits for.
    #[must_use]
    pub fn receiver_progress(&self, receiver: ConsumerId) -> ReceiverProgress {
        ReceiverProgress {
            locked: self.consumers.locked(receiver),
            waiting: self.waiting_for(receiver).unwrap_or_default(),
            idle_since: self.consumers.idle_since(receiver),
        }
    }

    /// Returns when the oldest lock was made, if that is `age` ago or longer, and how many locks are that old: as many as `budget`
    /// allows are counted beside the first.
    #[must_use]
    pub fn old_locks(
        &self,
        now: Timestamp,
        age: Millis,
        budget: &mut usize,
    ) -> Option<(Timestamp, usize)> {
        let mut found: Option<(Timestamp, usize)> = None;
        for lock in self.locks.in_order() {
            let is_counted = found.is_none() || *budget != 0;
            if !is_counted || now.since(lock.made) < age {
                break;
            }
            *budget = budget.saturating_sub(1);
            let (_, count) = found.get_or_insert((lock.made, 0));
            *count += 1;
        }
        found
    }

    /// Returns how many receivers are stuck. The time that it takes grows with the receivers of a queue in which messages wait.
    #[must_use]
    pub fn stuck_receivers(&self, now: Timestamp) -> usize {
        if self.waiting() == 0 {
            return 0;
        }
        let stuck = self
            .consumers
            .ids()
            .filter(|&id| self.stuck(now, id).is_some());
        stuck.count()
    }

    /// Returns a message session: its messages, its state, its holder and the end of the lock.
    #[must_use]
    pub fn inspect_session(&self, id: &str) -> SessionInspected {
        let sessions = self.sessions.as_ref();
        let holder = sessions.and_then(|sessions| sessions.holder(id));
        SessionInspected {
            messages: sessions.map_or(0, |sessions| {
                sessions
                    .messages(id, 0)
                    .take(limits::SESSION_MESSAGES_COUNTED)
                    .count()
            }),
            state_bytes: self.session_state(id).map(Bytes::len),
            holder: holder.map(|holder| (holder.consumer, holder.until)),
        }
    }

    /// Counts scheduled messages in equal spans of time, [`limits::SCHEDULED_COUNTED`] at most, from a position on. Without
    /// a beginning and an end, the spans reach from the first of them to the last.
    #[must_use]
    pub fn schedule(&self, spans: Spans) -> Schedule {
        let Spans {
            from,
            before,
            count,
            position,
        } = spans;
        let first = self.scheduled.first().map(|&(due, _)| due);
        let last = self.scheduled.last().map(|&(due, _)| due);
        let from = from.or(first).unwrap_or(Timestamp::EPOCH);
        let behind_last = last.map_or(from, |last| last.after(Millis::from_millis(1)));
        let before = before.unwrap_or(behind_last).max(from);
        let mut schedule = Schedule {
            from,
            before,
            counts: vec![0; count],
            total: self.scheduled.len(),
            next: None,
        };
        let start = position.unwrap_or((from, 0));
        let all = self.scheduled.range(start..);
        let all = all.take_while(|(due, _)| *due < before);
        for (looked, &(due, ordinal)) in all.enumerate() {
            if looked == limits::SCHEDULED_COUNTED {
                schedule.next = Some((due, ordinal));
                break;
            }
            schedule.count(due);
        }
        schedule
    }

    /// Returns the position of a number.
    #[must_use]
    pub fn position_of(&self, number: SequenceNumber) -> ScanPosition {
        ScanPosition(self.ordinal(number))
    }

    /// Returns a number in the form in which [`Queue::inspect`] takes a position.
    #[must_use]
    pub fn number_at(&self, position: ScanPosition) -> SequenceNumber {
        number(position.0)
    }
}
