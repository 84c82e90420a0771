//! Deliveries, and the outcomes that receivers settle them with.

use std::sync::{Arc, LazyLock};

use super::consumers::NO_ONE;
use super::locks::Lock;
use super::{
    Acquired, Allowance, Amendments, ConsumerId, Context, DeadLetterCause, Delivery, Handover,
    Kind, LockToken, MessageSession, Queue, ReceiveMode, SequenceNumber, StoredState, Timestamp,
    numbers, stamps,
};
use crate::limits;
use jitney_rules::Share;

/// Changes to a message, if there are any. Messages that are changed alike share them.
pub type Changes = Option<Arc<Amendments>>;

/// The outcome that a receiver settles a message with.
#[derive(Debug, Clone)]
pub enum Settlement {
    /// Completed: the message is removed.
    Complete,
    /// Abandoned: the message is returned, and the delivery counts as failed.
    Abandon(Changes),
    /// It goes to the dead-letter queue, with its reason and description among the changes.
    DeadLetter(Changes),
    /// Deferred: the message is received by its number only.
    Defer(Changes),
    /// Released: the message is returned as if it had never been delivered.
    Release,
}

impl Settlement {
    /// Returns the state in which it leaves the message, for logs.
    #[must_use]
    pub const fn outcome(&self) -> &'static str {
        match self {
            Self::Complete => "completed",
            Self::Abandon(_) => "abandoned",
            Self::DeadLetter(_) => "dead-lettered",
            Self::Defer(_) => "deferred",
            Self::Release => "released",
        }
    }

    /// Returns how many bytes of the peer's are in it.
    #[must_use]
    pub fn size(&self) -> usize {
        self.changes().map_or(0, Amendments::weight)
    }

    /// Returns the changes to the message.
    #[must_use]
    pub fn changes(&self) -> Option<&Amendments> {
        match self {
            Self::Abandon(changes) | Self::Defer(changes) | Self::DeadLetter(changes) => {
                changes.as_deref()
            }
            Self::Complete | Self::Release => None,
        }
    }
}

/// Why a message goes to the dead-letter queue.
#[derive(Debug, Clone, Default)]
pub struct DeadLetter {
    /// The application-property `DeadLetterReason`.
    pub reason: Option<String>,
    /// The application-property `DeadLetterErrorDescription`.
    pub description: Option<String>,
    /// Other changes to the application-properties.
    pub amendments: Amendments,
}

/// There is no such lock: it ended, or the message is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{LOCK_LOST}")]
pub struct LockLost;

const LOCK_LOST: &str = "The lock supplied is invalid. Either the lock expired, or the \
     message has already been removed from the queue, or was received by a different receiver \
     instance.";

/// Why a settlement did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettlementRefused {
    /// There is no such lock.
    #[error(transparent)]
    LockLost(#[from] LockLost),
    /// A dead letter cannot be dead-lettered; it stays locked.
    #[error("a message in a dead-letter queue cannot be dead-lettered")]
    DeadLetterAlready,
    /// A property is no simple value; the message stays locked.
    #[error("a property to modify is a list, a map or an array, and not a simple value")]
    NotSimple,
    /// The message's changed properties would grow too large; it stays locked.
    #[error("the properties to modify, with those modified before, have more than {max} bytes", max = jitney_rules::limits::AMENDMENTS_BYTES_MAX)]
    TooManyProperties,
}

/// Why deferred messages were not handed out: none of them was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "Failed to lock one or more specified messages. Either the message is already locked or does \
     not exist."
)]
pub struct DeferredRefused;

/// The application-property that has the reason.
pub const DEAD_LETTER_REASON: &str = "DeadLetterReason";
/// The application-property that has the error description.
pub const DEAD_LETTER_DESCRIPTION: &str = "DeadLetterErrorDescription";
/// The application-properties that a dead letter has.
pub(super) const DEAD_LETTER_PROPERTIES: [&str; 2] = [DEAD_LETTER_REASON, DEAD_LETTER_DESCRIPTION];
/// The reason of a dead letter whose bytes are damaged.
const DAMAGED: &str = "MessageDamaged";

/// The error description of a dead letter that expired.
static EXPIRED: LazyLock<Arc<Amendments>> =
    LazyLock::new(|| Arc::new(DeadLetter::expired().into_amendments()));

impl DeadLetter {
    /// Makes one of the broker's own reasons.
    #[must_use]
    pub fn broker(reason: &str, description: String) -> Self {
        let (reason, amendments) = (Some(reason.to_owned()), Amendments::default());
        Self {
            reason,
            description: Some(description),
            amendments,
        }
    }

    /// The bytes of a message are damaged.
    #[must_use]
    pub fn damaged(place: &str) -> Self {
        let text = format!(
            "The bytes of the message in the log are not what was written ({place}). The message is \
             here without them."
        );
        Self::broker(DAMAGED, text)
    }

    /// Adds the existing reason of a message that was dead-lettered before.
    pub(super) fn after(mut self, amendments: Option<&Amendments>) -> Self {
        let mut amendments = amendments.cloned().unwrap_or_default();
        if let (Some(earlier), Some(text)) = (
            amendments.take_string(DEAD_LETTER_REASON),
            self.description.as_mut(),
        ) {
            text.push_str(" It was dead-lettered before: ");
            text.push_str(&earlier);
        }
        self
    }

    fn expired() -> Self {
        Self::broker(
            "TTLExpiredException",
            "The message expired and was dead lettered.".to_owned(),
        )
    }

    fn too_many_deliveries(count: u32) -> Self {
        let text = format!("Message could not be consumed after {count} delivery attempts.");
        Self::broker("MaxDeliveryCountExceeded", text)
    }

    /// Its entity requires message sessions, and it belongs to none.
    #[must_use]
    pub fn without_session() -> Self {
        Self::broker(
            "Session ID is null.",
            "The entity requires message sessions, and the message belongs to none.".to_owned(),
        )
    }

    /// Returns the annotations of its message.
    #[must_use]
    pub fn amended(self) -> Arc<Amendments> {
        Arc::new(self.into_amendments())
    }

    /// Returns the changes to a message that goes there, its reason and description among them.
    #[must_use]
    pub fn into_amendments(self) -> Amendments {
        let mut amendments = self.amendments;
        let texts = [
            (DEAD_LETTER_REASON, self.reason),
            (DEAD_LETTER_DESCRIPTION, self.description),
        ];
        for (name, text) in texts {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                let end = text.char_indices().nth(limits::DEAD_LETTER_TEXT_MAX);
                let text = end.and_then(|(end, _)| text.get(..end)).unwrap_or(&text);
                amendments.set_string(name, text);
            }
        }
        amendments
    }
}

impl Queue {
    /// Adds a receiver, without credit.
    pub fn add_consumer(&mut self, id: ConsumerId, mode: ReceiveMode) {
        self.consumers.add(id, mode);
    }

    /// Notes when a receiver was attached.
    pub fn note_attached(&mut self, now: Timestamp, id: ConsumerId) {
        self.consumers.attached(now, id);
    }

    /// Ends all locks of a receiver that was removed, as if their time were over: each counts as a failed delivery. They
    /// end in the next step, in shares. Returns how many there are.
    pub fn end_locks_of(&mut self, now: Timestamp, id: ConsumerId) -> usize {
        self.locks.end_of(id, now)
    }

    /// Removes a receiver. Its locks stay until they end or are settled
    /// (`receiving.md#lost-links`); [`Queue::release_session`] frees its message session.
    pub fn remove_consumer(&mut self, id: ConsumerId) {
        self.consumers.remove(id);
        if let Some(sessions) = &mut self.sessions {
            sessions.cancel_wait(id);
        }
    }

    /// Returns all receivers.
    pub fn consumers(&self) -> impl Iterator<Item = ConsumerId> {
        self.consumers.ids()
    }

    /// Sets the number of deliveries that a receiver takes since its attach.
    pub fn set_credit(&mut self, cx: &mut Context<'_>, id: ConsumerId, limit: u32) {
        self.consumers.set_credit(cx.now, id, limit);
        self.set_due(id);
        self.dispatch(cx);
    }

    /// Sets the number of deliveries that a receiver takes since its attach; it wants the messages available now, and then
    /// [`Delivery::Drained`].
    pub fn drain(&mut self, cx: &mut Context<'_>, id: ConsumerId, limit: u32) {
        self.consumers.drain(cx.now, id, limit);
        self.set_due(id);
        self.dispatch(cx);
    }

    /// Says that bytes of messages for a receiver were written to its peer.
    pub fn written(&mut self, cx: &mut Context<'_>, id: ConsumerId, bytes: u64) {
        if self
            .consumers
            .written(id, i64::try_from(bytes).unwrap_or(i64::MAX))
        {
            self.set_due(id);
            self.dispatch(cx);
        }
    }

    /// Sets the allowance of a receiver.
    pub fn allow(&mut self, cx: &mut Context<'_>, id: ConsumerId, allowance: Allowance) {
        if self.consumers.allow(id, allowance) {
            self.set_due(id);
            self.dispatch(cx);
        }
    }

    fn set_due(&mut self, id: ConsumerId) {
        if let Some(sessions) = &mut self.sessions {
            sessions.set_due(id);
        }
    }

    /// Takes a message back that could not be sent for want of credit, as if it had not been
    /// delivered. If its lock has ended meanwhile, it is back already.
    pub fn take_back(&mut self, cx: &mut Context<'_>, id: ConsumerId, token: LockToken) {
        self.consumers.return_credit(id);
        self.set_due(id);
        if let Some(ordinal) = self.end_lock(cx.now, token) {
            self.unlock(cx, ordinal);
        }
        self.dispatch(cx);
    }

    /// Takes an unsent message back from a receiver whose credit is used up all the same.
    pub fn free(&mut self, cx: &mut Context<'_>, token: LockToken) {
        self.give_all_back(cx, [token]);
    }

    /// Takes unsent messages back from a receiver that was removed, as if they had not been
    /// delivered.
    pub fn give_all_back(
        &mut self,
        cx: &mut Context<'_>,
        tokens: impl IntoIterator<Item = LockToken>,
    ) {
        for token in tokens {
            if let Some(ordinal) = self.end_lock(cx.now, token) {
                self.unlock(cx, ordinal);
            }
        }
        self.dispatch(cx);
    }

    /// Delivers messages while there are messages and credit.
    pub fn dispatch(&mut self, cx: &mut Context<'_>) {
        if self.is_behind {
            return;
        }
        if self.sessions.is_some() {
            self.dispatch_sessions(cx);
            self.scan_at_once(cx);
            self.end_drains(cx);
            return;
        }
        while self.consumers.is_ready() {
            let Some((ordinal, bytes)) = self.next_available() else {
                break;
            };
            let Some((consumer, mode)) = self.consumers.next_turn(bytes) else {
                break;
            };
            if ordinal < self.cursor {
                self.returned.remove(&ordinal);
            } else {
                self.cursor = ordinal + 1;
            }
            if let Some(handover) = self.hand_over(cx, ordinal, consumer, mode) {
                cx.effects
                    .deliveries
                    .push(Delivery::Message(consumer, handover));
            }
        }
        self.scan_at_once(cx);
        self.end_drains(cx);
    }

    /// Delivers the messages that scanning receivers find without reading bodies.
    fn scan_at_once(&mut self, cx: &mut Context<'_>) {
        if !self.consumers.scans().is_empty() {
            self.scan(cx, &|_| None, &mut Share::default());
        }
    }

    pub(super) fn end_drains(&mut self, cx: &mut Context<'_>) {
        if self.consumers.is_draining() {
            let drained = self.consumers.end_drains().into_iter();
            let drained = drained.map(|(id, limit)| Delivery::Drained(id, limit));
            cx.effects.deliveries.extend(drained);
        }
        self.check();
    }

    /// Ends a lock before its time, and returns its message.
    pub(super) fn end_lock(&mut self, now: Timestamp, token: LockToken) -> Option<u64> {
        let lock = self.locks.remove(token)?;
        let ordinal = lock.ordinal;
        self.consumers.unlocked(now, lock.holder);
        if let Some(sessions) = &mut self.sessions {
            let entry = self.index.get(ordinal);
            if let Some(name) = entry.as_ref().and_then(|e| e.message_session.as_ref()) {
                sessions.unlock(name, ordinal);
            }
        }
        Some(ordinal)
    }

    /// Settles a message with the outcome that the holder of its lock gives.
    ///
    /// # Errors
    ///
    /// Nothing changes if the lock is over or unknown, nor if a dead letter is to be dead-lettered.
    pub fn settle(
        &mut self,
        cx: &mut Context<'_>,
        token: LockToken,
        settlement: Settlement,
    ) -> Result<(), SettlementRefused> {
        self.check_settlement(token, &settlement)?;
        let ordinal = self.end_lock(cx.now, token).ok_or(LockLost)?;
        match settlement {
            Settlement::Complete => {
                if let Some(entry) = self.remove(cx, ordinal) {
                    self.count_completed(cx.now, entry.enqueued_at);
                }
            }
            Settlement::Abandon(changes) => {
                self.count().abandoned += 1;
                self.fail(cx, ordinal, changes);
            }
            Settlement::DeadLetter(changes) => {
                self.dead_letter(cx, ordinal, DeadLetterCause::Receiver, changes);
            }
            Settlement::Defer(changes) => self.defer(cx, ordinal, changes),
            Settlement::Release => self.unlock(cx, ordinal),
        }
        self.dispatch(cx);
        Ok(())
    }

    /// Checks whether [`Queue::settle`] would succeed.
    pub fn check_settlement(
        &self,
        token: LockToken,
        settlement: &Settlement,
    ) -> Result<(), SettlementRefused> {
        self.locks.get(token).ok_or(LockLost)?;
        if self.kind == Kind::DeadLetter && matches!(settlement, Settlement::DeadLetter(_)) {
            return Err(SettlementRefused::DeadLetterAlready);
        }
        self.check_amendments(token, settlement)
    }

    /// Checks that a message's changed properties stay within their bound.
    fn check_amendments(
        &self,
        token: LockToken,
        settlement: &Settlement,
    ) -> Result<(), SettlementRefused> {
        let Some(more) = settlement.changes() else {
            return Ok(());
        };
        if more.compound().is_some() {
            return Err(SettlementRefused::NotSimple);
        }
        let lock = self.locks.get(token).ok_or(LockLost)?;
        let entry = self.index.get(lock.ordinal);
        let before = entry
            .as_ref()
            .and_then(|entry| entry.amendments.as_deref())
            .map_or(0, Amendments::weight);
        if jitney_rules::limits::AMENDMENTS_BYTES_MAX < before + more.weight() {
            return Err(SettlementRefused::TooManyProperties);
        }
        Ok(())
    }

    /// Counts a lock from `now` anew, and returns its end.
    ///
    /// # Errors
    ///
    /// [`LockLost`] if it has ended, even if no other receiver has the message yet.
    pub fn renew(&mut self, now: Timestamp, token: LockToken) -> Result<Timestamp, LockLost> {
        let until = now.after(self.description.lock_duration);
        if self.locks.renew(token, until) {
            Ok(until)
        } else {
            Err(LockLost)
        }
    }

    /// Returns the number of the message that a lock holds.
    #[must_use]
    pub fn number_of_lock(&self, token: LockToken) -> Option<SequenceNumber> {
        let lock = self.locks.get(token)?;
        Some(super::number(lock.ordinal))
    }

    /// Returns whether a lock holds.
    #[must_use]
    pub fn is_locked(&self, token: LockToken) -> bool {
        self.locks.get(token).is_some()
    }

    /// Hands out deferred messages by their numbers: all, or none if one is not there.
    ///
    /// In a queue with message sessions, only messages of a session that a receiver holds.
    pub fn receive_deferred(
        &mut self,
        cx: &mut Context<'_>,
        numbers: &[SequenceNumber],
        mode: ReceiveMode,
        message_session: Option<&str>,
    ) -> Result<Vec<Handover>, DeferredRefused> {
        let mut ordinals: Vec<u64> = numbers.iter().map(|&number| self.ordinal(number)).collect();
        ordinals.sort_unstable();
        ordinals.dedup();
        let mut all_there = true;
        self.index.look_at(&ordinals, |entry| {
            all_there &= entry.is_some_and(|entry| {
                let name = entry.message_session.as_ref();
                entry.state == StoredState::Deferred
                    && !entry.locked
                    && (self.sessions.is_none()
                        || name.map(MessageSession::as_str) == message_session)
            });
        });
        if !all_there || ordinals.is_empty() {
            return Err(DeferredRefused);
        }
        let handed = ordinals
            .into_iter()
            .filter_map(|at| self.hand_over(cx, at, NO_ONE, mode));
        Ok(handed.map(|handover| *handover).collect())
    }

    /// Ends the locks that are over: each counts as a failed delivery.
    pub(super) fn end_locks(&mut self, cx: &mut Context<'_>, left: &mut usize) {
        while 0 < *left
            && let Some(lock) = self.locks.pop_expired(cx.now)
        {
            *left -= 1;
            self.consumers.unlocked(cx.now, lock.holder);
            self.count().locks_expired += 1;
            self.fail(cx, lock.ordinal, None);
        }
    }

    /// Expires the messages whose life is over.
    pub(super) fn expire(&mut self, cx: &mut Context<'_>, left: &mut usize) {
        while 0 < *left {
            let expired = self.index.expired(cx.now);
            if expired.is_empty() {
                return;
            }
            *left = left.saturating_sub(expired.len());
            for ordinal in expired {
                self.expire_one(cx, ordinal);
            }
        }
    }

    /// Finds the lowest deliverable message, and its length in bytes; in a partitioned queue, of
    /// the next partition that has one.
    fn next_available(&mut self) -> Option<(u64, u32)> {
        if self.description.partitioned {
            let after = |last: u64| self.returned.range(last..).next();
            let next = after(numbers::first_of(self.last_partition + 1));
            let ordinal = *next.or_else(|| self.returned.first())?;
            self.last_partition = numbers::partition(ordinal);
            return Some((ordinal, self.index.get(ordinal)?.body.length));
        }
        // All returned messages are below the cursor.
        if let Some(&ordinal) = self.returned.first() {
            return Some((ordinal, self.index.get(ordinal)?.body.length));
        }
        let fresh = self.index.first_available(self.cursor);
        // Skipped messages are skipped once.
        self.cursor = fresh.map_or_else(|| self.numbers.peek(0), |(ordinal, _)| ordinal);
        fresh.map(|(ordinal, body)| (ordinal, body.length))
    }

    /// Locks or removes a message for its receiver.
    pub(super) fn hand_over(
        &mut self,
        cx: &mut Context<'_>,
        ordinal: u64,
        receiver: ConsumerId,
        mode: ReceiveMode,
    ) -> Option<Box<Handover>> {
        match mode {
            ReceiveMode::PeekLock => {
                let origin = self.origin();
                let has_sessions = self.sessions.is_some();
                let (mut handover, name, is_deferred) = self.index.update(ordinal, |entry| {
                    entry.locked = true;
                    let is_deferred = entry.state == StoredState::Deferred;
                    let name = entry.message_session.as_ref();
                    let name = name.filter(|_| has_sessions).cloned();
                    let handover = Box::new(Handover {
                        token: LockToken::NIL,
                        mode,
                        body: entry.body,
                        stamps: stamps(origin, entry),
                    });
                    entry.acquired = Acquired::Perhaps;
                    (handover, name, is_deferred)
                })?;
                self.deferred_locked += usize::from(is_deferred);
                self.count_delivered(cx.now, handover.stamps.enqueued_time);
                let (token, until) = self.lock(cx, ordinal, receiver, name.as_ref());
                handover.token = token;
                // The message session has the lock. .NET takes a message for lost at this time, without a request.
                let message_until = if name.is_some() {
                    Timestamp::END_OF_9999
                } else {
                    until
                };
                let stamps = &mut handover.stamps;
                stamps.locked_until = Some(message_until);
                stamps.lock_token = Some(token.to_uuid());
                stamps.delivered = true;
                Some(handover)
            }
            ReceiveMode::ReceiveAndDelete => {
                let entry = self.remove(cx, ordinal)?;
                self.count_delivered(cx.now, entry.enqueued_at);
                self.count_completed(cx.now, entry.enqueued_at);
                self.consumers.handed(cx.now, receiver, 0);
                let token = LockToken::new(cx.random.next_u64(), cx.random.next_u64());
                let mut stamps = stamps(self.origin(), &entry);
                stamps.delivered = true;
                Some(Box::new(Handover {
                    token,
                    mode,
                    body: entry.body,
                    stamps,
                }))
            }
        }
    }

    fn count_delivered(&mut self, now: Timestamp, enqueued_at: Timestamp) {
        let counters = self.count();
        counters.delivered += 1;
        counters
            .delivery_delay
            .record_millis(now.since(enqueued_at));
    }

    /// Makes the lock of a message. In a message session it ends with the session's.
    fn lock(
        &mut self,
        cx: &mut Context<'_>,
        ordinal: u64,
        receiver: ConsumerId,
        name: Option<&MessageSession>,
    ) -> (LockToken, Timestamp) {
        let (made, nonce) = (cx.now, cx.random.next_u64());
        let lock = |until| Lock {
            ordinal,
            until,
            holder: receiver,
            made,
            nonce,
        };
        self.consumers.handed(cx.now, receiver, 1);
        if let (Some(sessions), Some(name)) = (&mut self.sessions, name) {
            let token = self.locks.insert(lock(Timestamp::MAX));
            sessions.remove_available(name, ordinal);
            let until = sessions.lock(name, ordinal, token);
            return (token, until.unwrap_or(cx.now));
        }
        let until = cx.now.after(self.description.lock_duration);
        (self.locks.insert(lock(until)), until)
    }

    /// A delivery failed: the message is counted, and given back or dead-lettered.
    pub(super) fn fail(&mut self, cx: &mut Context<'_>, ordinal: u64, changes: Changes) {
        if self.count_delivery(cx, ordinal, changes) {
            self.record_change(cx, ordinal);
            self.unlock(cx, ordinal);
        }
    }

    /// Counts a delivery that did not complete its message, and dead-letters the message with the
    /// last that it may have. Returns whether it is still here.
    fn count_delivery(&mut self, cx: &mut Context<'_>, ordinal: u64, changes: Changes) -> bool {
        // Deliveries of a dead letter are not counted, as Go's own tests show.
        let counts = matches!(self.kind, Kind::Main { .. });
        let count = self.index.update(ordinal, |entry| {
            entry.delivery_count = entry.delivery_count.saturating_add(u32::from(counts));
            amend(&mut entry.amendments, changes);
            entry.delivery_count
        });
        let Some(count) = count else { return false };
        let max = self.description.max_delivery_count;
        if max <= count && counts {
            let reason = DeadLetter::too_many_deliveries(max).into_amendments();
            let cause = DeadLetterCause::DeliveryCount;
            self.dead_letter(cx, ordinal, cause, Some(Arc::new(reason)));
            return false;
        }
        true
    }

    /// Makes a message available again, unless its life has ended meanwhile.
    pub(super) fn unlock(&mut self, cx: &mut Context<'_>, ordinal: u64) {
        let now = cx.now;
        let unlocked = self.index.update(ordinal, |entry| {
            let was_locked = std::mem::take(&mut entry.locked);
            let was_deferred = was_locked && entry.state == StoredState::Deferred;
            ((entry.state, entry.expires_at() <= now), was_deferred)
        });
        let was_deferred = unlocked.is_some_and(|(_, was_deferred)| was_deferred);
        self.deferred_locked -= usize::from(was_deferred);
        match unlocked.map(|(unlocked, _)| unlocked) {
            Some((StoredState::Active, true)) => self.expire_one(cx, ordinal),
            Some((StoredState::Active, false)) => self.give_back(ordinal),
            // A deferred message stays deferred.
            Some((StoredState::Deferred | StoredState::Scheduled { .. }, _)) | None => {}
        }
    }

    /// Defers a message. The delivery counts, as with the service.
    fn defer(&mut self, cx: &mut Context<'_>, ordinal: u64, changes: Changes) {
        if !self.count_delivery(cx, ordinal, changes) {
            return;
        }
        let was = self.index.update(ordinal, |entry| {
            let was_locked = std::mem::take(&mut entry.locked);
            let was = std::mem::replace(&mut entry.state, StoredState::Deferred);
            (was, was_locked)
        });
        match was {
            Some((StoredState::Active, _)) => self.deferred += 1,
            Some((StoredState::Deferred, true)) => self.deferred_locked -= 1,
            Some((StoredState::Deferred | StoredState::Scheduled { .. }, _)) | None => {}
        }
        self.count().deferred += 1;
        self.record_change(cx, ordinal);
    }

    fn expire_one(&mut self, cx: &mut Context<'_>, ordinal: u64) {
        self.count().expired += 1;
        if self.description.dead_letter_on_expiration && matches!(self.kind, Kind::Main { .. }) {
            let reason = Some(Arc::clone(&EXPIRED));
            self.dead_letter(cx, ordinal, DeadLetterCause::Expired, reason);
        } else {
            self.remove(cx, ordinal);
        }
    }
}

/// Adds changes to those that a message has already.
pub(super) fn amend(all: &mut Changes, more: Changes) {
    let Some(more) = more.filter(|more| !more.is_empty()) else {
        return;
    };
    match all {
        None => *all = Some(more),
        Some(all) => Arc::make_mut(all).merge(&more),
    }
}
