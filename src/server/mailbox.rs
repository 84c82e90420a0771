//! The owner's mailbox: inputs and requests, and bounds on how much of them may wait.
//!
//! Invariant: waiting input is bounded in bytes, and connections are served in turn: one with much
//! input waits for room like one with little, and their order differs by one read at most.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Duration, Instant};

use super::outbox::Outbox;
use super::quota::Quota;
use super::reload::{Reload, Reloaded};
use crate::server::limits;
use jitney_base::histogram::Histogram;
use jitney_base::ids::{ConnectionId, RequestId};
use jitney_base::time::Millis;
use jitney_broker::access::{Authority, Inquiry, Origin, TokenRefused};
use jitney_journal::LogEnd;
use jitney_shard::{
    Administered, Administration, Input, MessageRequest, Messaged, OperationAnswer,
    OperationRequest, Pressure, ReceiveAnswer, ReceiveRequest, Report, Shortage, Statistics,
};

/// A message to the owner.
#[derive(Debug)]
pub(super) enum Mail {
    /// A connection was opened, from this origin.
    Connected(ConnectionId, Arc<Outbox>, Origin),
    /// A connection's task has ended.
    Disconnected(ConnectionId),
    /// Everything that one read of a connection produced, and its room in the mailbox.
    Reports(ConnectionId, Vec<Report>, MailboxPermit),
    /// Verify a token.
    Authorize(
        Box<Inquiry>,
        oneshot::Sender<Result<Authority, TokenRefused>>,
    ),
    /// An operation on entities.
    Administer(Box<Administration>, oneshot::Sender<Administered>),
    /// An operation on messages. A message that is sent has its room in the mailbox.
    Message(
        Box<MessageRequest>,
        oneshot::Sender<Messaged>,
        Option<MailboxPermit>,
    ),
    /// A receive without a link, which waits for its message until then.
    Receive(
        RequestId,
        Box<ReceiveRequest>,
        Instant,
        oneshot::Sender<ReceiveAnswer>,
    ),
    /// An operator's operation.
    Operate(Box<OperationRequest>, oneshot::Sender<OperationAnswer>),
    /// Say where the durable log ends.
    LogEnd(oneshot::Sender<LogEnd>),
    /// Say which of the entities at these paths do not exist, in the namespace of a host name.
    Missing(String, Vec<String>, oneshot::Sender<Vec<String>>),
    /// Make and change the entities that the configuration names.
    Reload(Box<Reload>, oneshot::Sender<Reloaded>),
    /// An input of the shard that needs nothing of the owner.
    Input(Input),
}

/// What the owner takes at any time, also while it takes no input because the disk is slow or the store is away.
#[derive(Debug)]
pub(super) enum Control {
    /// Report what the shard has and has done, with so many entities one by one.
    Report(usize, oneshot::Sender<ShardReport>),
    /// Keep to this much memory.
    Pressure(Pressure),
}

/// What a shard has and has done, for an operator.
#[derive(Debug, Clone)]
pub(super) struct ShardReport {
    pub(super) statistics: Statistics,
    /// From the end of a group of records until it is durable.
    pub(super) commit_times: Histogram,
    /// How long writes of groups with their syncs took.
    pub(super) sync_times: Histogram,
    /// AMQP sessions.
    pub(super) sessions: usize,
}

/// Room in the mailbox that a batch takes until the owner has processed it.
pub(super) type MailboxPermit = OwnedSemaphorePermit;

/// The sender's end of the owner's mailbox.
#[derive(Debug, Clone)]
pub(super) struct Mailbox {
    mail: mpsc::Sender<Mail>,
    control: mpsc::Sender<Control>,
    /// In units of [`UNIT`] bytes.
    room: Arc<Semaphore>,
    /// All of it.
    units: usize,
}

/// Bytes of messages that are not whole yet, of all connections.
#[derive(Debug, Clone)]
pub(super) struct PartialBytes {
    all: Arc<AtomicUsize>,
    max: usize,
}

impl PartialBytes {
    /// Takes how many bytes all connections may have together.
    pub(super) fn new(max: usize) -> Self {
        Self {
            all: Arc::default(),
            max,
        }
    }

    /// Returns a new connection's part.
    pub(super) fn part(&self) -> Partials {
        Partials {
            all: Arc::clone(&self.all),
            max: self.max,
            own: 0,
        }
    }
}

/// A connection's share of the bytes of messages that are partially received, or wait to be sent to
/// the owner.
#[derive(Debug)]
pub(super) struct Partials {
    all: Arc<AtomicUsize>,
    max: usize,
    own: usize,
}

impl Partials {
    /// Returns how many bytes this connection may have.
    pub(super) fn room(&self) -> usize {
        let others = self.all.load(Ordering::Relaxed).saturating_sub(self.own);
        self.max.saturating_sub(others)
    }

    /// Sets how many it has.
    pub(super) fn set(&mut self, bytes: usize) {
        if bytes != self.own {
            self.all.fetch_add(bytes, Ordering::Relaxed);
            self.all.fetch_sub(self.own, Ordering::Relaxed);
            self.own = bytes;
        }
    }
}

impl Drop for Partials {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Returns the name of a request that no other has in the life of the process.
pub(super) fn next_request() -> RequestId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    RequestId(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The unit of room, in bytes.
const UNIT: usize = 1024;

impl Mailbox {
    /// Takes the number of bytes of batches that may wait.
    pub(super) fn new(
        mail: mpsc::Sender<Mail>,
        control: mpsc::Sender<Control>,
        bytes: usize,
    ) -> Self {
        let units = (bytes / UNIT).max(1);
        Self {
            mail,
            control,
            room: Arc::new(Semaphore::new(units)),
            units,
        }
    }

    /// Waits until the owner has ended.
    pub(super) async fn closed(&self) {
        self.mail.closed().await;
    }

    /// Sends something when there is room for it; `None` if the owner has ended.
    pub(super) async fn send(&self, mail: Mail) -> Option<()> {
        self.mail.send(mail).await.ok()
    }

    /// Hands the owner something that it takes at any time; `None` if it has ended.
    pub(super) async fn control(&self, control: Control) -> Option<()> {
        self.control.send(control).await.ok()
    }

    /// Asks what the shard has and has done, with so many entities one by one; `None` if the owner has ended.
    pub(super) async fn report(&self, most: usize) -> Option<ShardReport> {
        let (answer, answered) = oneshot::channel();
        self.control(Control::Report(most, answer)).await?;
        answered.await.ok()
    }

    /// Sends a request when there is room for it, and waits for its answer; `None` if the owner has ended.
    pub(super) async fn ask<T>(&self, mail: impl FnOnce(oneshot::Sender<T>) -> Mail) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.send(mail(answer)).await?;
        answered.await.ok()
    }

    /// Sends the reports of a connection, of a number of bytes, in turn and when there is room;
    /// `None` if the owner has ended.
    pub(super) async fn send_reports(
        &self,
        id: ConnectionId,
        reports: Vec<Report>,
        bytes: usize,
    ) -> Option<()> {
        let weight = bytes + reports.len() * size_of::<Report>();
        let permit = self.reserve(weight).await?;
        self.send(Mail::Reports(id, reports, permit)).await
    }

    /// Waits for room for a number of bytes.
    pub(super) async fn reserve(&self, bytes: usize) -> Option<MailboxPermit> {
        let units = u32::try_from(bytes.div_ceil(UNIT).clamp(1, self.units)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room);
        room.acquire_many_owned(units).await.ok()
    }
}

/// Health of the owner and the disk, readable without a request.
#[derive(Debug)]
pub(super) struct Vitals {
    began: Instant,
    /// Messages are admitted.
    has_room: AtomicBool,
    /// Why they are not.
    shortage: Mutex<Option<Shortage>>,
    /// When the owner's current turn began; 0 between turns.
    turn: AtomicU64,
    /// When the oldest pending group was given to the disk; 0 if there is none.
    sync: AtomicU64,
    /// AMQP sessions of the connections in the shard.
    sessions: AtomicUsize,
    /// Since when the namespace's store is away; 0 while it is not.
    suspended: AtomicU64,
    /// Of the namespace, where a shard has one.
    quota: Quota,
}

impl Vitals {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            has_room: AtomicBool::new(true),
            shortage: Mutex::new(None),
            turn: AtomicU64::new(0),
            sync: AtomicU64::new(0),
            sessions: AtomicUsize::new(0),
            suspended: AtomicU64::new(0),
            quota: Quota::new(),
        }
    }

    /// Returns what clients may send.
    pub(super) const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Records that the namespace's store is away, or back. While it is away, clients get no answers.
    pub(super) fn set_suspended(&self, is_suspended: bool) {
        let since = if is_suspended {
            self.stamp(Instant::now())
        } else {
            0
        };
        self.suspended.store(since, Ordering::Relaxed);
    }

    /// Returns for how long the namespace's store has been away, if it is.
    pub(super) fn suspended_for(&self) -> Option<Duration> {
        let since = self.suspended.load(Ordering::Relaxed);
        let span = self.stamp(Instant::now()).saturating_sub(since);
        (since != 0).then(|| Duration::from_millis(span))
    }

    /// Returns how many AMQP sessions the connections in the shard have.
    pub(super) fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// A connection in the shard has `now` sessions, and had `before`.
    pub(super) fn change_sessions(&self, before: usize, now: usize) {
        self.sessions.fetch_add(now, Ordering::Relaxed);
        self.sessions.fetch_sub(before, Ordering::Relaxed);
    }

    /// Returns whether a send to some entity would be accepted now, or after a bounded wait.
    pub(super) fn are_good(&self) -> bool {
        let now = Instant::now();
        let lasts = |since| self.lasts(since, limits::HEALTH_DELAY_MAX, now);
        self.has_room.load(Ordering::Relaxed) && !lasts(&self.turn) && !lasts(&self.sync)
    }

    /// Returns whether the owner's turn lasts for too long, so that its server is not to say that it is alive.
    pub(super) fn hangs(&self, now: Instant) -> bool {
        self.lasts(&self.turn, limits::OWNER_TURN_MAX, now)
    }

    /// Returns whether something that began then, if it did, lasts longer than it may.
    fn lasts(&self, since: &AtomicU64, max: Millis, now: Instant) -> bool {
        let max = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
        let since = since.load(Ordering::Relaxed);
        since != 0 && max < self.stamp(now).saturating_sub(since)
    }

    /// Records why no messages are accepted; none if they are.
    pub(super) fn set_shortage(&self, shortage: Option<Shortage>) {
        let had_room = self.has_room.swap(shortage.is_none(), Ordering::Relaxed);
        if !had_room || shortage.is_some() {
            *self.shortage.lock().unwrap_or_else(PoisonError::into_inner) = shortage;
        }
    }

    /// Returns why no messages are accepted; none if they are.
    pub(super) fn shortage(&self) -> Option<Shortage> {
        *self.shortage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner begins a turn.
    pub(super) fn turns(&self) {
        self.turn
            .store(self.stamp(Instant::now()), Ordering::Relaxed);
    }

    /// The owner has ended a turn; a group waits for the disk since then.
    pub(super) fn rests(&self, syncs_since: Option<Instant>) {
        let since = syncs_since.map_or(0, |since| self.stamp(since));
        self.sync.store(since, Ordering::Relaxed);
        self.turn.store(0, Ordering::Relaxed);
    }

    /// Milliseconds since the start, and never 0.
    fn stamp(&self, at: Instant) -> u64 {
        let millis = at.saturating_duration_since(self.began).as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
impl Mailbox {
    /// Makes one whose owner takes mail only.
    pub(super) fn of_mail(mail: mpsc::Sender<Mail>) -> Self {
        let (control, _) = mpsc::channel(1);
        Self::new(mail, control, limits::MAILBOX_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_hangs_whose_turn_does_not_end() {
        let vitals = Vitals::new();
        let (begun, long) = (Instant::now(), limits::OWNER_TURN_MAX.as_duration());
        let later = begun + 2 * long;
        assert!(!vitals.hangs(later), "it waits for something to do");
        vitals.turns();
        assert!(!vitals.hangs(begun + long / 2));
        assert!(vitals.hangs(later));
        vitals.rests(None);
        assert!(!vitals.hangs(later));
        // A group that waits for the store is no turn: the namespace is suspended, and its server is alive.
        vitals.rests(Some(begun));
        assert!(!vitals.hangs(later));
    }
}
