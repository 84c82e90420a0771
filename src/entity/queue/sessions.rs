//! The message sessions of one queue: which messages they have, and who holds them.
//!
//! Promises: a session is held by at most one receiver; it gets the session's messages in the order
//! of their numbers, the ones given back first; a session that nobody holds, that has no message
//! and no state is forgotten.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{ConsumerId, LockToken, MessageSession, Timestamp};

#[derive(Debug, Default)]
pub(super) struct Sessions {
    all: BTreeMap<MessageSession, Session>,
    /// Sessions that nobody holds and that have a message to deliver, by the oldest such message.
    free: BTreeSet<(u64, MessageSession)>,
    held: BTreeMap<ConsumerId, MessageSession>,
    /// When the locks of sessions end.
    ends: BTreeSet<(Timestamp, MessageSession)>,
    /// Those who wait for any session, in the order in which they came.
    waiting: BTreeMap<u64, Waiting>,
    /// Their places in that order.
    waits: BTreeMap<ConsumerId, u64>,
    /// When they give up.
    wait_ends: BTreeSet<(Timestamp, u64)>,
    next_wait: u64,
    /// Holders that may be able to take a message.
    due: BTreeSet<ConsumerId>,
    /// Bytes of all states.
    state_bytes: u64,
    /// Messages, and those that can be delivered.
    messages: usize,
    available: usize,
}

/// What a session takes, with its name and a node of each tree that it stands in.
const SESSION_BYTES: usize = 640;
/// What a message takes in one of a session's trees.
const MESSAGE_BYTES: usize = 20;

#[derive(Debug, Default)]
struct Session {
    /// All its messages.
    messages: BTreeSet<u64>,
    /// Those that can be delivered.
    available: BTreeSet<u64>,
    /// Under which message it stands among the free ones.
    free_at: Option<u64>,
    holder: Option<Holder>,
    state: Option<Bytes>,
    /// When the state was last set or cleared.
    updated: Option<Timestamp>,
}

/// Who holds a session.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) consumer: ConsumerId,
    pub(super) until: Timestamp,
    /// The messages it has locked.
    pub(super) locked: BTreeMap<u64, LockToken>,
}

/// A receiver that waits for any session.
#[derive(Debug)]
struct Waiting {
    consumer: ConsumerId,
    until: Timestamp,
}

impl Sessions {
    /// Returns the name of a session that is known.
    pub(super) fn name(&self, id: &str) -> Option<MessageSession> {
        self.all.get_key_value(id).map(|(name, _)| name.clone())
    }

    /// Adds a message.
    pub(super) fn add(&mut self, name: &MessageSession, ordinal: u64) {
        let session = self.all.entry(name.clone()).or_default();
        self.messages += usize::from(session.messages.insert(ordinal));
    }

    /// Takes a message out.
    pub(super) fn remove(&mut self, name: &MessageSession, ordinal: u64) {
        if let Some(session) = self.all.get_mut(name) {
            self.messages -= usize::from(session.messages.remove(&ordinal));
            self.available -= usize::from(session.available.remove(&ordinal));
            if let Some(holder) = &mut session.holder {
                holder.locked.remove(&ordinal);
            }
            self.refresh(name);
        }
    }

    /// Says that a message can be delivered, or cannot any more.
    pub(super) fn set_available(&mut self, name: &MessageSession, ordinal: u64, available: bool) {
        let Some(session) = self.all.get_mut(name) else {
            return;
        };
        if available {
            self.available += usize::from(session.available.insert(ordinal));
            self.due
                .extend(session.holder.as_ref().map(|holder| holder.consumer));
        } else {
            self.available -= usize::from(session.available.remove(&ordinal));
        }
        self.refresh(name);
    }

    /// Returns the bytes that all of it takes, about.
    pub(super) fn memory(&self) -> usize {
        let states = usize::try_from(self.state_bytes).unwrap_or(usize::MAX);
        let messages = (self.messages + self.available) * MESSAGE_BYTES;
        states.saturating_add(messages + self.all.len() * SESSION_BYTES)
    }

    /// Returns the lowest message that can be delivered.
    pub(super) fn next(&self, name: &MessageSession) -> Option<u64> {
        self.all.get(name)?.available.first().copied()
    }

    /// Returns the session that a receiver holds.
    pub(super) fn held_by(&self, consumer: ConsumerId) -> Option<&MessageSession> {
        self.held.get(&consumer)
    }

    pub(super) fn holder(&self, name: &str) -> Option<&Holder> {
        self.all.get(name)?.holder.as_ref()
    }

    /// Gives a session to a receiver; the caller has seen that nobody holds it.
    pub(super) fn grant(&mut self, name: &MessageSession, consumer: ConsumerId, until: Timestamp) {
        let session = self.all.entry(name.clone()).or_default();
        debug_assert!(session.holder.is_none(), "a session has two holders");
        session.holder = Some(Holder {
            consumer,
            until,
            locked: BTreeMap::new(),
        });
        self.held.insert(consumer, name.clone());
        self.ends.insert((until, name.clone()));
        self.due.insert(consumer);
        self.refresh(name);
    }

    /// Moves the end of a session's lock; returns whether there is one.
    pub(super) fn renew(&mut self, name: &str, until: Timestamp) -> bool {
        let Some(key) = self.name(name) else {
            return false;
        };
        let session = self.all.get_mut(name);
        let Some(holder) = session.and_then(|session| session.holder.as_mut()) else {
            return false;
        };
        self.ends.remove(&(holder.until, key.clone()));
        holder.until = until;
        self.ends.insert((until, key));
        true
    }

    /// Takes a session from its holder.
    pub(super) fn release(&mut self, name: &MessageSession) -> Option<Holder> {
        let holder = self.all.get_mut(name)?.holder.take()?;
        self.held.remove(&holder.consumer);
        self.due.remove(&holder.consumer);
        self.ends.remove(&(holder.until, name.clone()));
        self.refresh(name);
        Some(holder)
    }

    /// Notes that the holder of a session has locked a message.
    pub(super) fn lock(&mut self, name: &MessageSession, ordinal: u64, token: LockToken) {
        let session = self.all.get_mut(name);
        if let Some(holder) = session.and_then(|session| session.holder.as_mut()) {
            holder.locked.insert(ordinal, token);
        }
    }

    /// Notes that a message of a session is not locked any more.
    pub(super) fn unlock(&mut self, name: &MessageSession, ordinal: u64) {
        let session = self.all.get_mut(name);
        if let Some(holder) = session.and_then(|session| session.holder.as_mut()) {
            holder.locked.remove(&ordinal);
        }
    }

    /// Lets a receiver wait for any session.
    pub(super) fn wait(&mut self, consumer: ConsumerId, until: Timestamp) {
        let place = self.next_wait;
        self.next_wait += 1;
        self.waiting.insert(place, Waiting { consumer, until });
        self.waits.insert(consumer, place);
        self.wait_ends.insert((until, place));
    }

    /// Ends the wait of a receiver that has gone.
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
        let Waiting { consumer, until } = self.waiting.remove(&place)?;
        self.waits.remove(&consumer);
        self.wait_ends.remove(&(until, place));
        Some(consumer)
    }

    /// Returns the free session with the oldest message.
    pub(super) fn first_free(&self) -> Option<MessageSession> {
        self.free.first().map(|(_, name)| name.clone())
    }

    /// Takes the receiver out that has waited longest, if there is a session for it.
    pub(super) fn match_waiting(&mut self) -> Option<(ConsumerId, MessageSession)> {
        let name = self.first_free()?;
        let (&place, _) = self.waiting.first_key_value()?;
        let consumer = self.end_wait(place)?;
        Some((consumer, name))
    }

    /// Returns a session whose lock is over at `now`.
    pub(super) fn expired(&self, now: Timestamp) -> Option<MessageSession> {
        let (at, name) = self.ends.first()?;
        (*at <= now).then(|| name.clone())
    }

    /// Returns the time at which a lock or a wait ends.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let lock = self.ends.first().map(|&(at, _)| at);
        let wait = self.wait_ends.first().map(|&(at, _)| at);
        lock.into_iter().chain(wait).min()
    }

    /// Notes that a receiver's credit has changed.
    pub(super) fn set_due(&mut self, consumer: ConsumerId) {
        if self.held.contains_key(&consumer) {
            self.due.insert(consumer);
        }
    }

    /// Takes out a holder that may be able to take a message, with its session.
    pub(super) fn pop_due(&mut self) -> Option<(ConsumerId, MessageSession)> {
        while let Some(consumer) = self.due.pop_first() {
            if let Some(name) = self.held.get(&consumer) {
                return Some((consumer, name.clone()));
            }
        }
        None
    }

    /// Sets or clears a session's state; returns how many bytes the one before had.
    pub(super) fn set_state(&mut self, name: &str, state: Option<Bytes>, at: Timestamp) -> usize {
        let key = self.name(name).unwrap_or_else(|| name.into());
        let session = self.all.entry(key.clone()).or_default();
        session.updated = Some(at);
        let length = state.as_ref().map_or(0, Bytes::len);
        let before = std::mem::replace(&mut session.state, state);
        let bytes = |length| u64::try_from(length).unwrap_or(u64::MAX);
        let before = before.map_or(0, |state| state.len());
        self.state_bytes = self.state_bytes - bytes(before) + bytes(length);
        self.refresh(&key);
        before
    }

    /// Returns the bytes of all states.
    pub(super) fn state_bytes(&self) -> u64 {
        self.state_bytes
    }

    pub(super) fn state(&self, name: &str) -> Option<&Bytes> {
        self.all.get(name)?.state.as_ref()
    }

    /// Returns the messages of a session, in order, from one on.
    pub(super) fn messages(&self, name: &str, from: u64) -> impl Iterator<Item = u64> {
        let session = self.all.get(name);
        session
            .into_iter()
            .flat_map(move |session| session.messages.range(from..).copied())
    }

    /// Returns the sessions that have messages or a state, in the order of their names.
    pub(super) fn in_use(&self) -> impl Iterator<Item = &str> {
        let in_use = |session: &Session| session.state.is_some() || !session.messages.is_empty();
        self.all
            .iter()
            .filter(move |(_, session)| in_use(session))
            .map(|(name, _)| name.as_str())
    }

    /// Returns the sessions whose state was set after a time, in the order of their names.
    pub(super) fn updated_after(&self, time: Timestamp) -> impl Iterator<Item = &str> {
        self.all
            .iter()
            .filter(move |(_, session)| session.updated.is_some_and(|at| time < at))
            .map(|(name, _)| name.as_str())
    }

    /// Returns the states that are set, with their times.
    pub(super) fn states(&self) -> impl Iterator<Item = (&MessageSession, Timestamp, &Bytes)> {
        self.all.iter().filter_map(|(name, session)| {
            let state = session.state.as_ref()?;
            Some((name, session.updated.unwrap_or_default(), state))
        })
    }

    /// Puts a session where it belongs among the free ones, or forgets it.
    fn refresh(&mut self, name: &MessageSession) {
        let Some(session) = self.all.get_mut(name) else {
            return;
        };
        let wanted = match session.holder {
            Some(_) => None,
            None => session.available.first().copied(),
        };
        if session.free_at != wanted {
            if let Some(at) = session.free_at {
                self.free.remove(&(at, name.clone()));
            }
            session.free_at = wanted;
            self.free.extend(wanted.map(|at| (at, name.clone())));
        }
        if session.messages.is_empty() && session.holder.is_none() && session.state.is_none() {
            self.all.remove(name);
        }
    }
}
