//! The message sessions of one queue: their messages and their holders.
//!
//! Promises: a session is held by at most one receiver; its messages are delivered in the order of
//! their numbers, returned ones first; a session without holder, message and state is forgotten.
//!
//! Sessions are in slots, and their names know the slot, so that the work for each message compares
//! no text. A name that was made elsewhere is looked up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Bound;

use bytes::Bytes;
use hashbrown::HashTable;

use super::id_map::IdMap;
use super::ordinals::Ordinals;
use super::{ConsumerId, LockToken, MessageSession, Timestamp};
use crate::limits;
use jitney_base::time::ClockStep;

#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// By slot; a forgotten session leaves one word, to be used again.
    all: Vec<Option<Box<SessionState>>>,
    vacant: Vec<u32>,
    /// The slots of all sessions, in the order of their names.
    places: BTreeMap<Box<str>, u32>,
    /// The hashes of all names with the slots. With thousands of sessions a search in a tree touches a
    /// dozen cache lines, and a search here one. Nothing depends on its order.
    hashes: HashTable<(u64, u32)>,
    /// Sessions without a holder that have a message to deliver, by the oldest such message.
    free: BTreeSet<(u64, u32)>,
    /// The slots of the sessions that receivers hold.
    held: IdMap<u32>,
    /// When the locks of sessions end, and when receivers whose locks have ended are removed.
    ends: BTreeSet<(Timestamp, u32)>,
    /// Receivers that wait for any session, in the order in which they attached.
    waiting: BTreeMap<u64, WaitingReceiver>,
    /// Their keys in that order.
    waits: BTreeMap<ConsumerId, u64>,
    /// The deadlines of their waits.
    wait_ends: BTreeSet<(Timestamp, u64)>,
    next_wait: u64,
    /// Slots of sessions whose holders may be able to take a message, in the order in which they became so. A slot
    /// that is no longer due is passed over.
    due: VecDeque<u32>,
    /// Bytes of all states.
    state_bytes: u64,
    /// Messages, and those that can be delivered.
    messages: usize,
    available: usize,
    /// Messages that can be delivered of sessions without a holder.
    unheld: usize,
}

/// The bytes of a session, with its name and a node of each tree that it is in.
const SESSION_BYTES: usize = 660;
/// The bytes of a message in one of a session's trees.
const MESSAGE_BYTES: usize = 20;

#[derive(Debug)]
struct SessionState {
    name: MessageSession,
    /// All its messages.
    messages: Ordinals<()>,
    /// Those that can be delivered.
    available: Ordinals<()>,
    /// The message that it is filed under among the free sessions.
    free_at: Option<u64>,
    /// Its messages that are counted among those of sessions without a holder.
    unheld: usize,
    holder: Option<Holder>,
    state: Option<Bytes>,
    /// When the state was last set or cleared.
    updated: Option<Timestamp>,
}

/// The holder of a session, until its link ends.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) consumer: ConsumerId,
    /// When its lock ends; after that, when its link is ended.
    pub(super) until: Timestamp,
    /// The messages it has locked.
    pub(super) locked: Ordinals<LockToken>,
    /// Its lock has ended: it gets nothing more, and any receiver may take the session.
    lapsed: bool,
    /// Its session is among those that are due.
    due: bool,
}

/// A receiver that waits for any session.
#[derive(Debug)]
struct WaitingReceiver {
    consumer: ConsumerId,
    until: Timestamp,
}

impl Sessions {
    /// Returns the name of a session that is known.
    pub(super) fn name(&self, id: &str) -> Option<MessageSession> {
        Some(self.named(id)?.name.clone())
    }

    /// Adds a message, and returns the name that its session is found by.
    pub(super) fn add(&mut self, name: &MessageSession, ordinal: u64) -> Option<MessageSession> {
        let place = self.enter(name);
        let session = self.at_mut(place)?;
        let added = session.messages.insert(ordinal, ()).is_none();
        let name = session.name.clone();
        self.messages += usize::from(added);
        Some(name)
    }

    /// Takes a message out.
    pub(super) fn remove(&mut self, name: &MessageSession, ordinal: u64) {
        let Some((place, session)) = self.known_mut(name) else {
            return;
        };
        let removed = session.messages.remove(ordinal).is_some();
        let was_available = session.available.remove(ordinal).is_some();
        if let Some(holder) = &mut session.holder {
            holder.locked.remove(ordinal);
        }
        self.messages -= usize::from(removed);
        self.available -= usize::from(was_available);
        self.refresh(place);
    }

    /// Says that a message can be delivered.
    pub(super) fn add_available(&mut self, name: &MessageSession, ordinal: u64) {
        let Some((place, session)) = self.known_mut(name) else {
            return;
        };
        let added = session.available.insert(ordinal, ()).is_none();
        let due = session.make_due();
        self.available += usize::from(added);
        self.due.extend(due.then_some(place));
        self.refresh(place);
    }

    /// Says that a message cannot be delivered any more.
    pub(super) fn remove_available(&mut self, name: &MessageSession, ordinal: u64) {
        let Some((place, session)) = self.known_mut(name) else {
            return;
        };
        let removed = session.available.remove(ordinal).is_some();
        self.available -= usize::from(removed);
        self.refresh(place);
    }

    /// Returns the bytes that all of it takes, about.
    pub(super) fn memory(&self) -> usize {
        let states = usize::try_from(self.state_bytes).unwrap_or(usize::MAX);
        let messages = (self.messages + self.available) * MESSAGE_BYTES;
        states.saturating_add(messages + self.places.len() * SESSION_BYTES)
    }

    /// Returns the number of sessions, and of those that a receiver holds.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.places.len(), self.held.len())
    }

    /// Returns how many messages can be delivered to a receiver: those of its session, or, while it waits for any session,
    /// those of all sessions without a holder.
    pub(super) fn waiting_for(&self, consumer: ConsumerId) -> usize {
        if self.waits.contains_key(&consumer) {
            return self.unheld;
        }
        let held = self.held.get(consumer.0).and_then(|&place| self.at(place));
        let held = held.filter(|session| session.holder().is_some());
        held.map_or(0, |session| session.available.len())
    }

    /// Returns the lowest message that can be delivered.
    pub(super) fn next(&self, name: &MessageSession) -> Option<u64> {
        self.at(self.place(name)?)?.available.first()
    }

    /// Returns the session that a receiver holds.
    pub(super) fn held_by(&self, consumer: ConsumerId) -> Option<&MessageSession> {
        let session = self.at(*self.held.get(consumer.0)?)?;
        session.holder().map(|_| &session.name)
    }

    /// Returns the session that a receiver was granted, though its lock may have ended.
    pub(super) fn of(&self, consumer: ConsumerId) -> Option<&MessageSession> {
        Some(&self.at(*self.held.get(consumer.0)?)?.name)
    }

    pub(super) fn holder(&self, name: &str) -> Option<&Holder> {
        self.named(name)?.holder()
    }

    /// Gives a session to a receiver, and returns the session's name; the caller has checked that
    /// it is free.
    pub(super) fn grant(
        &mut self,
        name: &MessageSession,
        consumer: ConsumerId,
        until: Timestamp,
    ) -> MessageSession {
        let place = self.enter(name);
        self.held.insert(consumer.0, place);
        self.ends.insert((until, place));
        self.due.push_back(place);
        let Some(session) = self.at_mut(place) else {
            return name.clone();
        };
        debug_assert!(session.holder.is_none(), "a session has two holders");
        session.holder = Some(Holder {
            consumer,
            until,
            locked: Ordinals::default(),
            lapsed: false,
            due: true,
        });
        let name = session.name.clone();
        self.refresh(place);
        name
    }

    /// Moves the end of a session's lock; returns whether there is one.
    pub(super) fn renew(&mut self, name: &str, until: Timestamp) -> bool {
        let Some(place) = self.find(name) else {
            return false;
        };
        let session = self.at_mut(place);
        let holder = session.and_then(|session| session.holder.as_mut());
        let Some(holder) = holder.filter(|holder| !holder.lapsed) else {
            return false;
        };
        let before = std::mem::replace(&mut holder.until, until);
        self.ends.remove(&(before, place));
        self.ends.insert((until, place));
        true
    }

    /// Takes a session from its holder.
    pub(super) fn release(&mut self, name: &MessageSession) -> Option<Holder> {
        let place = self.place(name)?;
        let holder = self.at_mut(place)?.holder.take()?;
        self.held.remove(holder.consumer.0);
        self.ends.remove(&(holder.until, place));
        self.refresh(place);
        Some(holder)
    }

    /// Ends the lock of a session whose holder has no message locked. Its receiver keeps its link for
    /// a while longer, unless another wants the session. Returns whether it is so.
    pub(super) fn lapse(&mut self, name: &MessageSession) -> bool {
        let Some(place) = self.place(name) else {
            return false;
        };
        let session = self.at_mut(place);
        let holder = session.and_then(|session| session.holder.as_mut());
        let Some(holder) = holder.filter(|it| !it.lapsed && it.locked.is_empty()) else {
            return false;
        };
        let until = holder.until.after(limits::SESSION_LINGER);
        let before = std::mem::replace(&mut holder.until, until);
        holder.lapsed = true;
        self.ends.remove(&(before, place));
        self.ends.insert((until, place));
        self.refresh(place);
        true
    }

    /// Notes that the holder of a session has locked a message, and returns until when it may.
    pub(super) fn lock(
        &mut self,
        name: &MessageSession,
        ordinal: u64,
        token: LockToken,
    ) -> Option<Timestamp> {
        let holder = self.holder_mut(name)?;
        holder.locked.insert(ordinal, token);
        Some(holder.until)
    }

    /// Notes that a message of a session is not locked any more.
    pub(super) fn unlock(&mut self, name: &MessageSession, ordinal: u64) {
        if let Some(holder) = self.holder_mut(name) {
            holder.locked.remove(ordinal);
        }
    }

    fn holder_mut(&mut self, name: &MessageSession) -> Option<&mut Holder> {
        let place = self.place(name)?;
        self.at_mut(place)?.holder.as_mut()
    }

    /// Lets a receiver wait for any session.
    pub(super) fn wait(&mut self, consumer: ConsumerId, until: Timestamp) {
        let place = self.next_wait;
        self.next_wait += 1;
        self.waiting
            .insert(place, WaitingReceiver { consumer, until });
        self.waits.insert(consumer, place);
        self.wait_ends.insert((until, place));
    }

    /// Returns whether a receiver waits for any session.
    pub(super) fn is_waiting(&self, consumer: ConsumerId) -> bool {
        self.waits.contains_key(&consumer)
    }

    /// Ends the wait of a receiver that was removed.
    pub(super) fn cancel_wait(&mut self, consumer: ConsumerId) {
        if let Some(&place) = self.waits.get(&consumer) {
            self.end_wait(place);
        }
    }

    /// Takes a receiver out whose wait is over at `now`.
    pub(super) fn pop_timed_out(&mut self, now: Timestamp) -> Option<ConsumerId> {
        let &(until, place) = self.wait_ends.first()?;
        if now < until {
            return None;
        }
        self.end_wait(place)
    }

    fn end_wait(&mut self, place: u64) -> Option<ConsumerId> {
        let WaitingReceiver { consumer, until } = self.waiting.remove(&place)?;
        self.waits.remove(&consumer);
        self.wait_ends.remove(&(until, place));
        Some(consumer)
    }

    /// Returns the free session with the oldest message.
    pub(super) fn first_free(&self) -> Option<MessageSession> {
        let &(_, place) = self.free.first()?;
        Some(self.at(place)?.name.clone())
    }

    /// Removes the receiver that has waited longest, if there is a session for it.
    pub(super) fn match_waiting(&mut self) -> Option<(ConsumerId, MessageSession)> {
        let name = self.first_free()?;
        let (&place, _) = self.waiting.first_key_value()?;
        let consumer = self.end_wait(place)?;
        Some((consumer, name))
    }

    /// Moves the ends of locks and waits with the clock.
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        fn moved<T: Ord>(ends: &mut BTreeSet<(Timestamp, T)>, step: ClockStep) {
            let before = std::mem::take(ends).into_iter();
            *ends = before.map(|(at, of)| (at.moved(step), of)).collect();
        }
        moved(&mut self.ends, step);
        moved(&mut self.wait_ends, step);
        for waiting in self.waiting.values_mut() {
            waiting.until = waiting.until.moved(step);
        }
        for session in self.all.iter_mut().flatten() {
            if let Some(holder) = &mut session.holder {
                holder.until = holder.until.moved(step);
            }
        }
    }

    /// Returns a session whose lock is over at `now`, or whose last holder's link is to be ended.
    pub(super) fn expired(&self, now: Timestamp) -> Option<MessageSession> {
        let &(at, place) = self.ends.first()?;
        let session = self.at(place).filter(|_| at <= now)?;
        Some(session.name.clone())
    }

    /// Returns the time at which a lock or a wait ends.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let lock = self.ends.first().map(|&(at, _)| at);
        let wait = self.wait_ends.first().map(|&(at, _)| at);
        lock.into_iter().chain(wait).min()
    }

    /// Notes that a receiver's credit has changed.
    pub(super) fn set_due(&mut self, consumer: ConsumerId) {
        if let Some(&place) = self.held.get(consumer.0)
            && self.at_mut(place).is_some_and(SessionState::make_due)
        {
            self.due.push_back(place);
        }
    }

    /// Takes out a holder that may be able to take a message, with its session.
    pub(super) fn pop_due(&mut self) -> Option<(ConsumerId, MessageSession)> {
        while let Some(place) = self.due.pop_front() {
            let Some(session) = self.at_mut(place) else {
                continue;
            };
            if let Some(holder) = &mut session.holder
                && std::mem::take(&mut holder.due)
                && !holder.lapsed
            {
                return Some((holder.consumer, session.name.clone()));
            }
        }
        None
    }

    /// Sets or clears a session's state; returns how many bytes the one before had.
    pub(super) fn set_state(&mut self, name: &str, state: Option<Bytes>, at: Timestamp) -> usize {
        let place = self.enter(&name.into());
        let length = state.as_ref().map_or(0, Bytes::len);
        let before = self.at_mut(place).and_then(|session| {
            session.updated = Some(at);
            std::mem::replace(&mut session.state, state)
        });
        let bytes = |length| u64::try_from(length).unwrap_or(u64::MAX);
        let before = before.map_or(0, |state| state.len());
        self.state_bytes = self.state_bytes - bytes(before) + bytes(length);
        self.refresh(place);
        before
    }

    /// Returns the bytes of all states.
    pub(super) fn state_bytes(&self) -> u64 {
        self.state_bytes
    }

    pub(super) fn state(&self, name: &str) -> Option<&Bytes> {
        self.named(name)?.state.as_ref()
    }

    /// Returns the messages of a session, in order, from one on.
    pub(super) fn messages(&self, name: &str, from: u64) -> impl Iterator<Item = u64> {
        let session = self.named(name).into_iter();
        session.flat_map(move |session| session.messages.from(from))
    }

    /// Returns the sessions after a name, in the order of their names, each with whether it has
    /// messages or a state, or with a time whether its state was set after it.
    pub(super) fn listed(
        &self,
        after: Option<&str>,
        updated_after: Option<Timestamp>,
    ) -> impl Iterator<Item = (&str, bool)> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let places = self.places.range::<str, _>((after, Bound::Unbounded));
        let sessions = places.filter_map(|(_, &place)| self.at(place));
        sessions.map(move |session| {
            let is_listed = match updated_after {
                Some(time) => session.updated.is_some_and(|at| time < at),
                None => session.state.is_some() || !session.messages.is_empty(),
            };
            (session.id(), is_listed)
        })
    }

    /// Returns the states that are set, with their times.
    pub(super) fn states(&self) -> impl Iterator<Item = (&MessageSession, Timestamp, &Bytes)> {
        self.in_order().filter_map(|session| {
            let state = session.state.as_ref()?;
            Some((&session.name, session.updated.unwrap_or_default(), state))
        })
    }

    fn in_order(&self) -> impl Iterator<Item = &SessionState> {
        self.places.values().filter_map(|&place| self.at(place))
    }

    fn at(&self, place: u32) -> Option<&SessionState> {
        self.all.get(usize::try_from(place).ok()?)?.as_deref()
    }

    fn at_mut(&mut self, place: u32) -> Option<&mut SessionState> {
        self.all
            .get_mut(usize::try_from(place).ok()?)?
            .as_deref_mut()
    }

    /// Returns the state of a session that is known, and its place.
    fn known_mut(&mut self, name: &MessageSession) -> Option<(u32, &mut SessionState)> {
        let place = self.place(name)?;
        Some((place, self.at_mut(place)?))
    }

    fn named(&self, id: &str) -> Option<&SessionState> {
        self.at(self.find(id)?)
    }

    fn find(&self, id: &str) -> Option<u32> {
        let hash = hash(id);
        let is_it = |place| self.at(place).is_some_and(|session| session.id() == id);
        let found = self
            .hashes
            .find(hash, |&(of, place)| of == hash && is_it(place));
        found.map(|&(_, place)| place)
    }

    /// Finds a session: where its name says, or by its text.
    fn place(&self, name: &MessageSession) -> Option<u32> {
        let there = self.at(name.place());
        if there.is_some_and(|session| session.name.is(name)) {
            return Some(name.place());
        }
        self.find(name.as_str())
    }

    /// Finds a session, or makes it known.
    fn enter(&mut self, name: &MessageSession) -> u32 {
        if let Some(place) = self.place(name) {
            return place;
        }
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.all.push(None);
            u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX)
        });
        let id = name.as_str();
        self.places.insert(id.into(), place);
        let hash = hash(id);
        self.hashes
            .insert_unique(hash, (hash, place), |&(of, _)| of);
        let slot = usize::try_from(place).ok();
        if let Some(slot) = slot.and_then(|place| self.all.get_mut(place)) {
            let session = SessionState::new(MessageSession::at(id, place));
            *slot = Some(Box::new(session));
        }
        place
    }

    /// Files a session among the free ones, or forgets it.
    fn refresh(&mut self, place: u32) {
        let Some(session) = self.at_mut(place) else {
            return;
        };
        let (wanted, unheld) = match session.holder() {
            Some(_) => (None, 0),
            None => (session.available.first(), session.available.len()),
        };
        let before = std::mem::replace(&mut session.free_at, wanted);
        let unheld_before = std::mem::replace(&mut session.unheld, unheld);
        let is_over =
            session.messages.is_empty() && session.holder.is_none() && session.state.is_none();
        if before != wanted {
            if let Some(at) = before {
                self.free.remove(&(at, place));
            }
            self.free.extend(wanted.map(|at| (at, place)));
        }
        self.unheld = self.unheld - unheld_before + unheld;
        if is_over {
            self.forget(place);
        }
    }

    fn forget(&mut self, place: u32) {
        let slot = usize::try_from(place).ok();
        let session = slot.and_then(|place| self.all.get_mut(place)?.take());
        if let Some(session) = session {
            self.places.remove(session.id());
            let hash = hash(session.id());
            if let Ok(found) = self.hashes.find_entry(hash, |&(_, at)| at == place) {
                found.remove();
            }
            self.vacant.push(place);
        }
    }
}

impl SessionState {
    fn new(name: MessageSession) -> Self {
        Self {
            name,
            messages: Ordinals::default(),
            available: Ordinals::default(),
            free_at: None,
            unheld: 0,
            holder: None,
            state: None,
            updated: None,
        }
    }

    fn id(&self) -> &str {
        self.name.as_str()
    }

    /// Makes it due if a receiver holds it; returns whether it was not due before.
    fn make_due(&mut self) -> bool {
        let holder = self.holder.as_mut().filter(|holder| !holder.lapsed);
        holder.is_some_and(|holder| !std::mem::replace(&mut holder.due, true))
    }

    /// Returns the receiver that holds it, if there is one.
    fn holder(&self) -> Option<&Holder> {
        self.holder.as_ref().filter(|holder| !holder.lapsed)
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
