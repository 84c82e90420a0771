//! Receivers of message sessions: which receiver holds a session, and for how long.

use bytes::Bytes;

use super::sessions::{Holder, Sessions};
use super::{
    ConsumerId, Context, Delivery, MessageSession, Queue, ReceiveMode, Record, ScanBudget,
    Timestamp,
};
use crate::limits;

/// The message session that a receiver wants.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    /// This one, whether it has messages or not.
    Named(&'a str),
    /// Any free session that has a message to deliver. The receiver waits for one until this time.
    Next(Timestamp),
}

/// A message session that a receiver holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionGrant {
    /// Its id.
    pub message_session: MessageSession,
    /// When the lock ends.
    pub until: Timestamp,
}

/// The outcome of a request for a message session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// The receiver holds it.
    Granted(SessionGrant),
    /// The outcome follows as [`Delivery::SessionGranted`] or [`Delivery::NoSession`].
    Waiting,
}

/// Another receiver holds the message session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message session is held by another receiver")]
pub struct SessionTaken;

/// The receiver does not hold the message session any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The session lock has expired on the MessageSession. Accept a new MessageSession.")]
pub struct SessionLost;

/// Why a session's state was not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StateRefused {
    /// It is longer than a state may be.
    #[error("the state has {0} bytes, and {max} are the most", max = limits::SESSION_STATE_BYTES_MAX)]
    TooLarge(usize),
    /// The entity would hold more bytes than it may.
    #[error("the entity is full")]
    Full,
}

/// A list of message sessions in the making.
#[derive(Debug, Default)]
pub struct SessionList {
    /// Those that are in it.
    pub names: Vec<String>,
    /// As many as it has at most.
    top: usize,
    /// Sessions that are still to be skipped.
    skip: usize,
    /// The list is complete.
    pub is_complete: bool,
    /// The session that was looked at last.
    after: Option<Box<str>>,
}

impl SessionList {
    /// Begins a list of `top` sessions, after those that are skipped.
    #[must_use]
    pub fn new(skip: usize, top: usize) -> Self {
        Self {
            top,
            skip,
            ..Self::default()
        }
    }

    /// Begins a list of `top` sessions, of those behind a name.
    #[must_use]
    pub fn behind(name: Option<&str>, top: usize) -> Self {
        Self {
            top,
            after: name.map(Into::into),
            ..Self::default()
        }
    }

    /// Returns the session behind which the list continues when its share of the budget is used up.
    #[must_use]
    pub fn continues_behind(&self) -> Option<&str> {
        self.after.as_deref()
    }
}

impl Queue {
    /// Returns whether messages are received through message sessions only.
    #[must_use]
    pub fn has_sessions(&self) -> bool {
        self.sessions.is_some()
    }

    /// Lets a receiver in to a message session, without credit.
    ///
    /// # Errors
    ///
    /// [`SessionTaken`] if another receiver holds the session, or the entity has no message
    /// sessions.
    pub fn accept_session(
        &mut self,
        cx: &mut Context<'_>,
        consumer: ConsumerId,
        mode: ReceiveMode,
        wanted: Wanted<'_>,
    ) -> Result<Accepted, SessionTaken> {
        let sessions = self.sessions.as_mut().ok_or(SessionTaken)?;
        let name = match wanted {
            Wanted::Named(id) if sessions.holder(id).is_some() => return Err(SessionTaken),
            Wanted::Named(id) => Some(sessions.name(id).unwrap_or_else(|| id.into())),
            Wanted::Next(_) => sessions.first_free(),
        };
        self.consumers.add(consumer, mode);
        self.consumers.attached(cx.now, consumer);
        match (name, wanted) {
            (Some(name), _) => {
                let grant = self.grant_session(cx, &name, consumer);
                grant.map(Accepted::Granted).ok_or(SessionTaken)
            }
            (None, Wanted::Next(give_up)) => {
                sessions.wait(consumer, give_up);
                Ok(Accepted::Waiting)
            }
            (None, Wanted::Named(_)) => Err(SessionTaken),
        }
    }

    /// Grants a free message session to a receiver. If the lock of its last holder has ended and the
    /// holder's link has not, that link ends now.
    fn grant_session(
        &mut self,
        cx: &mut Context<'_>,
        name: &MessageSession,
        consumer: ConsumerId,
    ) -> Option<SessionGrant> {
        let until = cx.now.after(self.description.lock_duration);
        let sessions = self.sessions.as_mut()?;
        if let Some(lapsed) = sessions.release(name) {
            debug_assert!(lapsed.locked.is_empty(), "a lock outlives its session's");
            self.consumers.remove(lapsed.consumer);
            cx.effects
                .deliveries
                .push(Delivery::SessionLost(lapsed.consumer));
        }
        Some(SessionGrant {
            message_session: sessions.grant(name, consumer, until),
            until,
        })
    }

    /// Returns the receiver that holds a message session.
    #[must_use]
    pub fn session_holder(&self, id: &str) -> Option<ConsumerId> {
        Some(self.sessions.as_ref()?.holder(id)?.consumer)
    }

    /// Returns the message session that a receiver holds.
    #[must_use]
    pub fn session_held_by(&self, consumer: ConsumerId) -> Option<&str> {
        Some(self.sessions.as_ref()?.held_by(consumer)?.as_str())
    }

    /// Restarts the lock of a message session at `now`, and returns its end.
    pub fn renew_session(&mut self, now: Timestamp, id: &str) -> Result<Timestamp, SessionLost> {
        let until = now.after(self.description.lock_duration);
        let sessions = self.sessions.as_mut().ok_or(SessionLost)?;
        if sessions.renew(id, until) {
            Ok(until)
        } else {
            Err(SessionLost)
        }
    }

    /// Returns a message session's state.
    #[must_use]
    pub fn session_state(&self, id: &str) -> Option<&Bytes> {
        self.sessions.as_ref()?.state(id)
    }

    /// Sets or clears a message session's state. It counts to the entity's bytes; `elsewhere` are
    /// those in its dead-letter queues.
    pub fn set_session_state(
        &mut self,
        cx: &mut Context<'_>,
        id: &str,
        state: Option<Bytes>,
        elsewhere: u64,
    ) -> Result<(), StateRefused> {
        let length = state.as_ref().map_or(0, Bytes::len);
        self.check_session_state(id, length, elsewhere)?;
        self.put_session_state(cx, id, state);
        Ok(())
    }

    /// Checks that a message session's state may have so many bytes.
    pub fn check_session_state(
        &self,
        id: &str,
        length: usize,
        elsewhere: u64,
    ) -> Result<(), StateRefused> {
        if limits::SESSION_STATE_BYTES_MAX < length {
            return Err(StateRefused::TooLarge(length));
        }
        let before = self.session_state(id).map_or(0, Bytes::len);
        let grows = u64::try_from(length.saturating_sub(before)).unwrap_or(u64::MAX);
        let states = self.sessions.as_ref().map_or(0, Sessions::state_bytes);
        let full = self.description.max_bytes < (self.bytes + elsewhere).saturating_add(grows)
            || limits::SESSION_STATES_BYTES_MAX < states.saturating_add(grows);
        if 0 < grows && full {
            return Err(StateRefused::Full);
        }
        Ok(())
    }

    /// Sets or clears a message session's state, which was checked.
    pub fn put_session_state(&mut self, cx: &mut Context<'_>, id: &str, state: Option<Bytes>) {
        cx.journal.append(&Record::SessionState {
            entity: self.id,
            message_session: id,
            at: cx.now,
            state: state.as_deref(),
        });
        self.keep_session_state(id, state, cx.now);
    }

    pub(super) fn keep_session_state(&mut self, id: &str, state: Option<Bytes>, at: Timestamp) {
        let Some(sessions) = self.sessions.as_mut() else {
            return;
        };
        let length = state.as_ref().map_or(0, Bytes::len);
        let before = sessions.set_state(id, state, at);
        let bytes = |length| u64::try_from(length).unwrap_or(u64::MAX);
        self.bytes = self.bytes - bytes(before) + bytes(length);
    }

    /// Adds message sessions to a list until it is complete or the share is spent: those that have
    /// messages or a state, or with a time those whose state was set after it.
    pub fn list_sessions(
        &self,
        updated_after: Option<Timestamp>,
        list: &mut SessionList,
        budget: &mut ScanBudget,
    ) {
        let Some(sessions) = &self.sessions else {
            list.is_complete = true;
            return;
        };
        let after = list.after.take();
        for (id, is_listed) in sessions.listed(after.as_deref(), updated_after) {
            if list.names.len() == list.top {
                break;
            }
            if is_listed && 0 < list.skip {
                list.skip -= 1;
            } else if is_listed {
                list.names.push(id.to_owned());
            }
            if !budget.take() {
                list.after = Some(id.into());
                return;
            }
        }
        list.is_complete = true;
    }

    /// Ends the locks and the waits of sessions that are due.
    pub(super) fn end_sessions(&mut self, cx: &mut Context<'_>) {
        while let Some(name) = self.sessions.as_ref().and_then(|all| all.expired(cx.now)) {
            if self.sessions.as_mut().is_some_and(|all| all.lapse(&name)) {
                continue;
            }
            let Some(holder) = self.sessions.as_mut().and_then(|all| all.release(&name)) else {
                return;
            };
            let consumer = holder.consumer;
            self.consumers.remove(consumer);
            cx.effects.deliveries.push(Delivery::SessionLost(consumer));
            self.return_locked(cx, holder, Self::fail_delivery);
        }
        let timed_out = |sessions: &mut Sessions| sessions.pop_timed_out(cx.now);
        while let Some(consumer) = self.sessions.as_mut().and_then(timed_out) {
            self.consumers.remove(consumer);
            cx.effects.deliveries.push(Delivery::NoSession(consumer));
        }
    }

    /// Takes the message session of a receiver that goes: its messages are given back uncounted
    /// (`receiving.md#message-sessions`).
    pub fn release_session(&mut self, cx: &mut Context<'_>, consumer: ConsumerId) {
        let Some(sessions) = self.sessions.as_mut() else {
            return;
        };
        let Some(name) = sessions.of(consumer).cloned() else {
            return;
        };
        if let Some(holder) = sessions.release(&name) {
            self.return_locked(cx, holder, Self::unlock);
        }
        self.dispatch(cx);
    }

    fn return_locked(
        &mut self,
        cx: &mut Context<'_>,
        holder: Holder,
        give_back: fn(&mut Self, &mut Context<'_>, u64),
    ) {
        for (ordinal, token) in holder.locked {
            let Some(lock) = self.locks.remove(token) else {
                continue;
            };
            self.consumers.unlocked(cx.now, lock.holder);
            give_back(self, cx, ordinal);
        }
    }

    /// A delivery of a message has failed.
    fn fail_delivery(&mut self, cx: &mut Context<'_>, ordinal: u64) {
        self.fail(cx, ordinal, None);
    }

    /// Gives free sessions to waiting receivers, and messages to holders of sessions.
    pub(super) fn dispatch_sessions(&mut self, cx: &mut Context<'_>) {
        while let Some(sessions) = self.sessions.as_mut()
            && let Some((consumer, name)) = sessions.match_waiting()
            && let Some(grant) = self.grant_session(cx, &name, consumer)
        {
            cx.effects
                .deliveries
                .push(Delivery::SessionGranted(consumer, grant));
        }
        while let Some((consumer, name)) = self.sessions.as_mut().and_then(Sessions::pop_due) {
            while self.consumers.can_take(consumer)
                && let Some(ordinal) = self.sessions.as_ref().and_then(|all| all.next(&name))
                && let Some(entry) = self.index.get(ordinal)
            {
                let Some(mode) = self.consumers.take(consumer, entry.body.length) else {
                    break;
                };
                if let Some(handover) = self.hand_over(cx, ordinal, consumer, mode) {
                    cx.effects
                        .deliveries
                        .push(Delivery::Message(consumer, handover));
                }
            }
        }
    }
}
