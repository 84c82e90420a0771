//! The bytes of answers over HTTP: reserved before they are made, and held until they are written or their connection ends.
//!
//! The answers of one namespace have at most half of what those of the others leave. One answer at a time may be longer than
//! that: it has room of its own. While an answer waits for room, connections whose peers read too little are closed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::limits;

/// The bytes of all answers.
#[derive(Debug, Clone)]
pub(crate) struct Answers {
    shared: Arc<SharedState>,
}

#[derive(Debug)]
struct SharedState {
    bounds: AnswerLimits,
    state: Mutex<AnswersState>,
    /// Notified when some are given back.
    released: Notify,
    /// Answers that had no room.
    refused: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct AnswerLimits {
    /// Bytes of all but the one that is longer.
    max: usize,
    /// Bytes of that one.
    long_max: usize,
}

#[derive(Debug, Default)]
struct AnswersState {
    /// Bytes of all answers but the longer one.
    bytes: usize,
    by_namespace: BTreeMap<String, usize>,
    /// The longer one.
    long: Option<u64>,
    answers: BTreeMap<u64, AnswerBytes>,
    next: u64,
}

/// What one answer has.
#[derive(Debug)]
struct AnswerBytes {
    namespace: String,
    bytes: usize,
    /// Since when it is written, and how much was taken of it.
    written: Option<(Instant, u64)>,
    /// Closes its connection.
    close: Arc<Notify>,
}

/// There is no room for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoRoom;

impl Answers {
    /// Takes the bytes of all answers together, and those of one that is longer than it may be among the others.
    pub(crate) fn new(max: usize, long_max: usize) -> Self {
        Self {
            shared: Arc::new(SharedState {
                bounds: AnswerLimits { max, long_max },
                state: Mutex::default(),
                released: Notify::new(),
                refused: AtomicU64::new(0),
            }),
        }
    }

    /// Begins an answer of a namespace without any bytes. `close` is notified when its connection is to end, because its peer
    /// reads too little.
    pub(super) fn begin(&self, namespace: String, close: Arc<Notify>) -> Reservation {
        let mut state = self.shared.state();
        let id = state.next;
        state.next += 1;
        let held = AnswerBytes {
            namespace,
            bytes: 0,
            written: None,
            close,
        };
        state.answers.insert(id, held);
        drop(state);
        Reservation {
            shared: Arc::clone(&self.shared),
            id,
        }
    }

    /// Returns the bytes of all answers.
    pub(crate) fn bytes(&self) -> usize {
        let state = self.shared.state();
        state.answers.values().map(|held| held.bytes).sum()
    }

    /// Returns how many answers had no room.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }
}

impl SharedState {
    fn state(&self) -> MutexGuard<'_, AnswersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnswersState {
    /// Gives an answer more bytes, if there is room for them.
    fn grow(&mut self, id: u64, more: usize, bounds: AnswerLimits) -> Result<(), NoRoom> {
        let AnswerLimits { max, long_max } = bounds;
        let held = self.answers.get(&id).ok_or(NoRoom)?;
        let bytes = held.bytes.saturating_add(more);
        if self.long == Some(id) {
            if long_max < bytes {
                return Err(NoRoom);
            }
            return self.set(id, bytes);
        }
        let own = self.by_namespace.get(&held.namespace).copied();
        let own = own.unwrap_or_default();
        let others = self.bytes.saturating_sub(own);
        if own.saturating_add(more) <= jitney_base::limits::part_for_one(max, others) {
            return self.set(id, bytes);
        }
        // It is too long for its part, or has to wait for others of its namespace.
        let is_long = jitney_base::limits::part_for_one(max, 0) < bytes;
        if !is_long || self.long.is_some() || long_max < bytes {
            return Err(NoRoom);
        }
        self.set(id, 0)?;
        self.long = Some(id);
        self.set(id, bytes)
    }

    fn set(&mut self, id: u64, bytes: usize) -> Result<(), NoRoom> {
        let held = self.answers.get_mut(&id).ok_or(NoRoom)?;
        let before = std::mem::replace(&mut held.bytes, bytes);
        if self.long != Some(id) {
            let own = self.by_namespace.entry(held.namespace.clone()).or_default();
            *own = *own - before + bytes;
            if *own == 0 {
                self.by_namespace.remove(&held.namespace);
            }
            self.bytes = self.bytes - before + bytes;
        }
        Ok(())
    }

    fn end(&mut self, id: u64) {
        let _ = self.set(id, 0);
        self.answers.remove(&id);
        self.long = self.long.filter(|long| *long != id);
    }

    /// Closes the connections whose peers read too little.
    fn close_slow(&self, now: Instant) {
        let slow = self.answers.values().filter(|held| held.is_slow(now));
        for held in slow {
            held.close.notify_one();
        }
    }
}

impl AnswerBytes {
    fn is_slow(&self, now: Instant) -> bool {
        let Some((since, taken)) = self.written else {
            return false;
        };
        let time = now.saturating_duration_since(since);
        let late = time.saturating_sub(jitney_gateway::limits::UNREAD_WAIT_MAX.as_duration());
        let wanted = late.as_millis() * u128::from(limits::ANSWER_RATE_MIN) / 1_000;
        u128::from(taken) < wanted
    }
}

/// The bytes of one answer; they are given back when this is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    shared: Arc<SharedState>,
    id: u64,
}

impl Reservation {
    /// Adds bytes, at once.
    pub(super) fn grow(&self, bytes: usize) -> Result<(), NoRoom> {
        let grown = self.try_grow(bytes);
        if grown.is_err() {
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
        }
        grown
    }

    /// Adds bytes; waits for a while until there is room for them.
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<(), NoRoom> {
        let deadline = Instant::now() + limits::ANSWER_WAIT.as_duration();
        loop {
            let released = self.shared.released.notified();
            if self.try_grow(bytes).is_ok() {
                return Ok(());
            }
            let now = Instant::now();
            self.shared.state().close_slow(now);
            let left = deadline.saturating_duration_since(now);
            if left.is_zero() {
                return self.grow(bytes);
            }
            // Time passes for those that read too little, too.
            let _ = timeout(left.min(limits::ANSWER_LOOK.as_duration()), released).await;
        }
    }

    fn try_grow(&self, bytes: usize) -> Result<(), NoRoom> {
        let bounds = self.shared.bounds;
        self.shared.state().grow(self.id, bytes, bounds)
    }

    /// Adds bytes whether there is room for them or not: the answer says what is done, and must not be refused any more. Others wait
    /// until there is room again.
    pub(super) fn add(&self, bytes: usize) {
        let mut state = self.shared.state();
        if let Some(held) = state.answers.get(&self.id).map(|held| held.bytes) {
            let _ = state.set(self.id, held.saturating_add(bytes));
        }
    }

    /// Gives back what is beyond so many bytes.
    pub(super) fn shrink(&self, bytes: usize) {
        let mut state = self.shared.state();
        if state
            .answers
            .get(&self.id)
            .is_some_and(|held| bytes < held.bytes)
        {
            let _ = state.set(self.id, bytes);
        }
        drop(state);
        self.shared.released.notify_waiters();
    }

    /// Returns how many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        let state = self.shared.state();
        state.answers.get(&self.id).map_or(0, |held| held.bytes)
    }

    /// Returns the body of an answer, which holds the bytes until they are written.
    pub(crate) fn body(self: Arc<Self>, bytes: Vec<u8>) -> Body {
        self.shrink(bytes.capacity());
        if let Some(held) = self.shared.state().answers.get_mut(&self.id) {
            held.written = Some((Instant::now(), 0));
        }
        let bytes = Bytes::from_owner(Written {
            bytes,
            _reservation: Arc::clone(&self),
        });
        Body::new(Pieces {
            rest: bytes,
            reservation: Some(self),
        })
    }

    fn note_taken(&self, bytes: usize) {
        if let Some(held) = self.shared.state().answers.get_mut(&self.id)
            && let Some((_, taken)) = &mut held.written
        {
            *taken += u64::try_from(bytes).unwrap_or(u64::MAX);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shared.state().end(self.id);
        self.shared.released.notify_waiters();
    }
}

/// The bytes of an answer with their reservation, which every piece of them keeps.
struct Written {
    bytes: Vec<u8>,
    _reservation: Arc<Reservation>,
}

impl AsRef<[u8]> for Written {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// An answer in pieces: a connection that copies what it writes copies one at a time.
struct Pieces {
    rest: Bytes,
    reservation: Option<Arc<Reservation>>,
}

/// Returns a body of bytes that are in memory once for all answers, and need no reservation.
pub(super) fn shared_body(bytes: Bytes) -> Body {
    Body::new(Pieces {
        rest: bytes,
        reservation: None,
    })
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(limits::ANSWER_PIECE_BYTES);
        let piece = self.rest.split_to(length);
        if let Some(reservation) = &self.reservation {
            reservation.note_taken(length);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.rest.len()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::time::Duration;

    use super::*;

    fn begin(answers: &Answers, namespace: &str) -> Arc<Reservation> {
        let close = Arc::new(Notify::new());
        Arc::new(answers.begin(namespace.to_owned(), close))
    }

    #[test]
    fn the_answers_of_a_namespace_have_half_of_what_others_leave() {
        let answers = Answers::new(1_000, 0);
        let (one, other) = (begin(&answers, "a"), begin(&answers, "a"));
        assert_eq!(one.grow(400), Ok(()));
        assert_eq!(other.grow(101), Err(NoRoom));
        assert_eq!(other.grow(100), Ok(()));
        let neighbour = begin(&answers, "b");
        assert_eq!(neighbour.grow(251), Err(NoRoom));
        assert_eq!(neighbour.grow(250), Ok(()));
        assert_eq!((answers.bytes(), answers.refused()), (750, 2));
        drop((one, other));
        assert_eq!(neighbour.grow(250), Ok(()));
        drop(neighbour);
        assert_eq!(answers.bytes(), 0);
        assert!(answers.shared.state().by_namespace.is_empty());
    }

    #[test]
    fn one_answer_at_a_time_may_be_longer() {
        let answers = Answers::new(1_000, 2_000);
        let (long, next) = (begin(&answers, "a"), begin(&answers, "b"));
        assert_eq!(long.grow(300), Ok(()));
        assert_eq!(long.grow(1_700), Ok(()));
        assert_eq!(long.grow(1), Err(NoRoom));
        // It leaves the others what they have.
        assert_eq!(begin(&answers, "a").grow(500), Ok(()));
        assert_eq!(next.grow(501), Err(NoRoom));
        long.shrink(10);
        assert_eq!(next.grow(501), Err(NoRoom), "it is still the longer one");
        drop(long);
        assert_eq!(next.grow(501), Ok(()));
        assert_eq!(answers.bytes(), 501);
    }

    #[test]
    fn an_answer_to_what_is_done_counts_and_is_not_refused() {
        let answers = Answers::new(1_000, 0);
        let (done, next) = (begin(&answers, "a"), begin(&answers, "b"));
        assert_eq!(done.grow(400), Ok(()));
        done.add(600);
        assert_eq!((answers.bytes(), done.bytes()), (1_000, 1_000));
        assert_eq!(next.grow(1), Err(NoRoom));
        drop(done);
        assert_eq!(next.grow(500), Ok(()));
        assert_eq!(answers.bytes(), 500);
    }

    #[tokio::test]
    async fn a_body_holds_its_bytes_until_its_last_piece_is_gone() {
        let answers = Answers::new(1 << 20, 0);
        let reservation = begin(&answers, "a");
        reservation.grow(200_000).unwrap();
        let mut body = reservation.body(vec![b'x'; 100_000]);
        assert_eq!(answers.bytes(), 100_000);
        let mut pieces = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            pieces.push(frame.into_data().unwrap());
        }
        assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), 100_000);
        drop(body);
        let last = pieces.pop().unwrap();
        drop(pieces);
        assert_eq!(answers.bytes(), 100_000, "a piece is still to be written");
        drop(last);
        assert_eq!(answers.bytes(), 0);
    }

    /// Returns whether a connection was told to end.
    async fn is_closed(close: &Notify) -> bool {
        timeout(Duration::ZERO, close.notified()).await.is_ok()
    }

    #[tokio::test]
    async fn who_reads_too_little_is_closed_when_another_waits_for_room() {
        let answers = Answers::new(1 << 20, 0);
        let close = Arc::new(Notify::new());
        let unread = Arc::new(answers.begin("a".to_owned(), Arc::clone(&close)));
        unread.grow(400_000).unwrap();
        let mut body = Arc::clone(&unread).body(vec![0; 400_000]);
        let patience = jitney_gateway::limits::UNREAD_WAIT_MAX.as_duration();
        let begun = Instant::now();
        answers.shared.state().close_slow(begun + patience);
        assert!(!is_closed(&close).await);
        let late = begun + patience + Duration::from_millis(100);
        answers.shared.state().close_slow(late);
        assert!(is_closed(&close).await);
        // Who reads fast enough is not.
        body.frame().await.unwrap().unwrap();
        answers.shared.state().close_slow(late);
        assert!(!is_closed(&close).await);
        answers.shared.state().close_slow(late + patience);
        assert!(is_closed(&close).await);
    }
}
