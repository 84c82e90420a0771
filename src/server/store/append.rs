//! The committer of a namespace in a store: appends groups as rows, several at a time on one session, and finds out
//! what became of those whose answer did not come.
//!
//! A row is appended only behind the row before it: by that row's place and its random number, because two logs that
//! diverged have the same places. What is unknown is resolved before anything else is answered: the epoch is raised, so
//! that no statement of an old session changes anything any more; then the rows that are there are compared, and the
//! others are appended again.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tokio_postgres::Statement;
use tracing::{error, info, warn};

use super::connect::{Session, Store};
use super::fence::{Fence, random_id};
use super::log::StoreLog;
use super::{StoreError, chain, ownership, schema};
use crate::histogram::Histogram;
use crate::journal::rows::{self, Row, RowPlace};
use crate::journal::{Frame, SegmentId};
use crate::limits;
use crate::server::committer::{LogCommand, LogSink, SyncProgress};
use crate::server::supervisor::{self, Task};

/// What a namespace's owner is to know of the store: the latest is what counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum StoreEvent {
    /// It is unknown whether this group was appended.
    Unknown {
        /// The group.
        group: u64,
    },
    /// It is known what was appended.
    Back,
    /// Another server owns the namespace, or its log is not what was acknowledged.
    Fenced,
}

/// The owner's handle of the committer.
pub(in crate::server) struct StoreCommitter {
    orders: Arc<Orders>,
    progress: watch::Receiver<SyncProgress>,
    times: Arc<Mutex<Histogram>>,
}

/// What is ordered and not taken yet. The bytes in flight bound it.
#[derive(Default)]
struct Orders {
    queue: Mutex<(Vec<LogCommand>, bool)>,
    /// Something was ordered, or nothing will be any more.
    changed: Notify,
}

impl Orders {
    fn push(&self, order: LogCommand) {
        self.locked().0.push(order);
        self.changed.notify_one();
    }

    fn close(&self) {
        self.locked().1 = true;
        self.changed.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.locked().1
    }

    fn take(&self) -> Vec<LogCommand> {
        std::mem::take(&mut self.locked().0)
    }

    fn locked(&self) -> MutexGuard<'_, (Vec<LogCommand>, bool)> {
        // No state here is partial when a thread panics.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StoreCommitter {
    fn drop(&mut self) {
        self.orders.close();
    }
}

/// A row of a log, and its random number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Appended {
    pub(super) place: RowPlace,
    pub(super) id: i64,
}

impl StoreCommitter {
    /// Starts the committer behind the log's last row. Its task ends when it is dropped and all that was ordered is appended, or
    /// cannot be.
    pub(super) fn start(
        store: Arc<Store>,
        log: Arc<StoreLog>,
        last: Appended,
        events: watch::Sender<StoreEvent>,
    ) -> (Self, Task) {
        let orders = Arc::new(Orders::default());
        let durable = last.place.frame;
        let (report, progress) = watch::channel(SyncProgress {
            durable,
            synced: durable,
        });
        let times = Arc::new(Mutex::default());
        let appender = Appender {
            fence: Arc::clone(log.fence()),
            store,
            log,
            orders: Arc::clone(&orders),
            report,
            events,
            times: Arc::clone(&times),
            session: None,
            warnings: 0,
            statements: BTreeMap::new(),
            durable: last,
            tail: last,
            made: last.place.segment(),
            again: VecDeque::new(),
            waiting: VecDeque::new(),
            sent: VecDeque::new(),
            owners: Vec::new(),
        };
        let task = supervisor::spawn("committer of a namespace", appender.run());
        task.allow_end();
        let committer = Self {
            orders,
            progress,
            times,
        };
        (committer, task)
    }
}

impl LogSink for StoreCommitter {
    fn order(&mut self, order: LogCommand) {
        self.orders.push(order);
    }

    fn flush(&mut self) -> Option<SyncProgress> {
        None
    }

    fn hand_over(&mut self) {}

    fn progress(&self) -> watch::Receiver<SyncProgress> {
        self.progress.clone()
    }

    fn sync_times(&self) -> Histogram {
        *self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<u64, tokio_postgres::Error>> + Send>>;

/// A row whose answer has not come.
struct Sent {
    row: Row,
    id: i64,
    began: Instant,
    answer: Answer,
    /// The answer, if it has come early.
    done: Option<Result<u64, tokio_postgres::Error>>,
}

/// Why the committer cannot continue as it is.
enum Trouble {
    /// What became of the rows that were sent is unknown.
    Unknown(String),
    /// Nothing is ordered any more, and everything is appended.
    Finished,
}

struct Appender {
    store: Arc<Store>,
    log: Arc<StoreLog>,
    fence: Arc<Fence>,
    orders: Arc<Orders>,
    report: watch::Sender<SyncProgress>,
    events: watch::Sender<StoreEvent>,
    times: Arc<Mutex<Histogram>>,
    session: Option<Arc<Session>>,
    /// Warnings of the session that were there before its first append.
    warnings: u64,
    /// By the segment of the row, and that of the row before.
    statements: BTreeMap<(SegmentId, SegmentId), Statement>,
    /// The last row that is durable.
    durable: Appended,
    /// The last row that was sent.
    tail: Appended,
    /// The newest segment that has a table.
    made: SegmentId,
    /// Rows that are to be sent again, as they were.
    again: VecDeque<(Row, i64)>,
    waiting: VecDeque<Frame>,
    sent: VecDeque<Sent>,
    /// The owners that this server may have become, of acquisitions whose answer did not come.
    owners: Vec<String>,
}

impl Appender {
    async fn run(mut self) {
        loop {
            match self.append().await {
                Trouble::Finished => return,
                Trouble::Unknown(what) => {
                    warn!(
                        namespace = self.fence.name(),
                        "what became of an append is unknown: {what}"
                    );
                    if !Box::pin(self.resolve()).await {
                        return;
                    }
                }
            }
        }
    }

    /// Appends what is ordered, until something is in the way.
    async fn append(&mut self) -> Trouble {
        let orders = Arc::clone(&self.orders);
        let mut is_open = true;
        loop {
            if let Err(error) = self.fill().await {
                return Trouble::Unknown(error.to_string());
            }
            if !is_open && self.sent.is_empty() && self.waiting.is_empty() {
                return Trouble::Finished;
            }
            tokio::select! {
                biased;
                answer = next_answer(&mut self.sent) => {
                    if let Some(trouble) = self.take(answer) {
                        return trouble;
                    }
                }
                () = orders.changed.notified(), if is_open => {
                    is_open = !orders.is_closed();
                    for order in orders.take() {
                        self.obey(order);
                    }
                }
            }
        }
    }

    fn obey(&mut self, order: LogCommand) {
        match order {
            LogCommand::Commit(frame) => self.waiting.push_back(frame),
            // Every append is synced.
            LogCommand::Sync => {}
            LogCommand::Remove(segments) => {
                let log = Arc::clone(&self.log);
                let remove = async move {
                    for segment in segments {
                        if let Err(error) = log.remove(segment).await {
                            warn!(%segment, "a segment could not be removed from the store: {error}");
                        }
                    }
                };
                supervisor::spawn("removal of segments", remove).allow_end();
            }
        }
    }

    /// Sends rows while few are unanswered. Groups that come meanwhile gather, and become one row.
    async fn fill(&mut self) -> Result<(), StoreError> {
        while self.sent.len() < limits::STORE_APPENDS {
            let (row, id) = match self.again.pop_front() {
                Some(row) => row,
                None => {
                    let frames = self.waiting.make_contiguous();
                    let count = rows::fit(frames, limits::STORE_ROW_BYTES);
                    let Some(now) = frames.get(..count).filter(|now| !now.is_empty()) else {
                        return Ok(());
                    };
                    let row = Row::of(self.fence.log_store(), now);
                    self.waiting.drain(..count);
                    (row, random_id())
                }
            };
            if let Err(error) = self.send(&row, id).await {
                self.again.push_front((row, id));
                return Err(error);
            }
        }
        Ok(())
    }

    async fn send(&mut self, row: &Row, id: i64) -> Result<(), StoreError> {
        let session = self.session().await?;
        let segment = row.place().segment();
        if self.made < segment {
            schema::make_segment(&self.store, &self.fence, segment).await?;
            self.made = segment;
        }
        self.make_next(row);
        let parts = send_parts(&session, &self.fence, row).await?;
        let before = self.tail;
        let statement = self
            .statement(&session, segment, before.place.segment())
            .await?;
        let (namespace, (epoch, owner)) = (self.fence.namespace(), self.fence.current());
        let row_sent = row.clone();
        let work = async move {
            let place = row_sent.place();
            let (at, frame) = (signed(place.position), signed(place.frame));
            let (span, previous) = (signed(place.span), signed(before.place.position));
            let meta: &[u8] = &row_sent.meta;
            let body: Option<&[u8]> = (parts == 0).then_some(&row_sent.body);
            let statement = &statement;
            session
                .client()
                .execute(
                    statement,
                    &[
                        &at, &span, &frame, &epoch, &id, &parts, &meta, &body, &namespace, &owner,
                        &previous, &before.id,
                    ],
                )
                .await
        };
        let mut answer: Answer = Box::pin(work);
        // The first poll hands it to the session: rows are sent in their order.
        let done = match poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        };
        self.tail = Appended {
            place: row.place(),
            id,
        };
        self.sent.push_back(Sent {
            row: row.clone(),
            id,
            began: Instant::now(),
            answer,
            done,
        });
        Ok(())
    }

    /// Makes the next segment's table ahead, when half of this one is used.
    fn make_next(&mut self, row: &Row) {
        let (segment, offset) = rows::place(row.position);
        let next = SegmentId(segment.0 + 1);
        if self.made == segment && limits::STORE_SEGMENT_BYTES / 2 < offset {
            let (store, fence) = (Arc::clone(&self.store), Arc::clone(&self.fence));
            let make = async move {
                // It is made when it is needed, if not now.
                let _ = schema::make_segment(&store, &fence, next).await;
            };
            supervisor::spawn("next segment", make).allow_end();
        }
    }

    async fn session(&mut self) -> Result<Arc<Session>, StoreError> {
        if let Some(session) = &self.session {
            return Ok(Arc::clone(session));
        }
        let session = self.store.append_session(self.fence.namespace()).await?;
        self.use_session(&session);
        Ok(session)
    }

    fn use_session(&mut self, session: &Arc<Session>) {
        self.statements.clear();
        self.warnings = session.warnings();
        self.session = Some(Arc::clone(session));
    }

    async fn statement(
        &mut self,
        session: &Session,
        segment: SegmentId,
        before: SegmentId,
    ) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.get(&(segment, before)) {
            return Ok(statement.clone());
        }
        let namespace = self.fence.namespace();
        let (table, previous) = (
            schema::table(namespace, segment),
            schema::table(namespace, before),
        );
        let sql = format!(
            "insert into {table} (at, span, frame, epoch, id, parts, meta, body) \
             select $1, $2, $3, $4, $5, $6, $7, $8 from namespace f \
             where f.id = $9 and f.epoch = $4 and f.owner = $10::text::uuid \
             and exists (select from {previous} p where p.at = $11 and p.id = $12) \
             for share of f"
        );
        let statement = session.prepare(&sql).await?;
        self.statements.insert((segment, before), statement.clone());
        Ok(statement)
    }

    /// Takes the answer to the oldest row.
    fn take(&mut self, answer: Result<u64, String>) -> Option<Trouble> {
        let has_warned = self
            .session
            .as_ref()
            .is_none_or(|session| session.warnings() != self.warnings);
        match answer {
            Ok(1) if !has_warned => {}
            Ok(1) => {
                let what = "the wait for a standby was cancelled".to_owned();
                return Some(Trouble::Unknown(what));
            }
            Ok(_) => {
                let what = "the row before it is missing, or another server has the namespace";
                return Some(Trouble::Unknown(what.to_owned()));
            }
            Err(what) => return Some(Trouble::Unknown(what)),
        }
        let sent = self.sent.pop_front()?;
        let took = u64::try_from(sent.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.times
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .record(took);
        self.is_durable(Appended {
            place: sent.row.place(),
            id: sent.id,
        });
        None
    }

    fn is_durable(&mut self, row: Appended) {
        self.durable = row;
        let (durable, synced) = (row.place.frame, row.place.frame);
        self.report.send_replace(SyncProgress { durable, synced });
    }

    /// Finds out what became of the rows that were sent; returns whether the namespace is still this server's.
    async fn resolve(&mut self) -> bool {
        let group = self.durable.place.frame + 1;
        self.events.send_replace(StoreEvent::Unknown { group });
        // An append is never tried again on its session. Other namespaces that have it take another, too.
        if let Some(session) = self.session.take() {
            session.condemn();
        }
        let sent = std::mem::take(&mut self.sent);
        for sent in sent.into_iter().rev() {
            self.again.push_front((sent.row, sent.id));
        }
        let mut wait = limits::STORE_RETRY_FIRST.as_duration();
        let mut is_reported = false;
        loop {
            let lost = match self.find_out().await {
                Ok(()) => {
                    info!(
                        namespace = self.fence.name(),
                        "the store is back, and it is known what was appended"
                    );
                    self.events.send_replace(StoreEvent::Back);
                    return true;
                }
                Err(StoreError::Fenced) => {
                    info!(
                        namespace = self.fence.name(),
                        "another server has taken a namespace"
                    );
                    true
                }
                Err(StoreError::Lost(what)) => {
                    error!(
                        namespace = self.fence.name(),
                        "a namespace is stopped: {what}"
                    );
                    // Otherwise it would be taken over, and served without what was acknowledged.
                    let namespace = self.fence.namespace();
                    ownership::quarantine(&self.store, namespace, &what)
                        .await
                        .is_ok()
                }
                Err(error) => {
                    if !is_reported {
                        warn!(
                            namespace = self.fence.name(),
                            "suspended until the store answers: {error}"
                        );
                        is_reported = true;
                    }
                    self.orders.is_closed()
                }
            };
            if lost {
                self.fence.lose();
                self.events.send_replace(StoreEvent::Fenced);
                return false;
            }
            sleep(wait).await;
            wait = (2 * wait).min(limits::STORE_RETRY_MAX.as_duration());
        }
    }

    async fn find_out(&mut self) -> Result<(), StoreError> {
        let session = self.store.append_session(self.fence.namespace()).await?;
        // From here on no statement of an old session changes anything.
        ownership::raise_own(&self.store, &session, &self.fence, &mut self.owners).await?;
        let found = self.log.rows_after(&session, self.durable).await?;
        let mut is_there = Vec::new();
        for row in found {
            let sent = self.again.get(is_there.len());
            let sent = sent.map(|(row, id)| Appended {
                place: row.place(),
                id: *id,
            });
            if sent != Some(row) {
                return Err(StoreError::Lost(format!(
                    "its log has a row at position {:#x} that this server has not appended: the database was \
                     restored, or a standby was promoted that had not what was acknowledged",
                    row.place.position
                )));
            }
            is_there.push(row);
        }
        ownership::barrier(&session, &self.fence).await?;
        for row in is_there {
            self.again.pop_front();
            self.is_durable(row);
        }
        self.tail = self.durable;
        self.use_session(&session);
        Ok(())
    }
}

/// Writes the bodies of a large row first, in parts; returns how many.
async fn send_parts(session: &Session, fence: &Fence, row: &Row) -> Result<i32, StoreError> {
    if row.body.len() <= limits::STORE_PART_BYTES {
        return Ok(0);
    }
    let (namespace, (epoch, owner)) = (fence.namespace(), fence.current());
    let at = signed(row.position);
    let mut parts = 0;
    for bytes in row.body.chunks(limits::STORE_PART_BYTES) {
        let sql = "insert into body_part (namespace, at, part, bytes) select $1, $2, $3, $4 from namespace f \
                   where f.id = $1 and f.epoch = $5 and f.owner = $6::text::uuid for share of f \
                   on conflict (namespace, at, part) do update set bytes = excluded.bytes";
        let done = session
            .execute(sql, &[&namespace, &at, &parts, &bytes, &epoch, &owner])
            .await?;
        if done == 0 {
            return Err(StoreError::Fenced);
        }
        parts += 1;
    }
    Ok(parts)
}

/// Waits for the answer to the oldest row; for ever if there is none.
async fn next_answer(sent: &mut VecDeque<Sent>) -> Result<u64, String> {
    let Some(oldest) = sent.front_mut() else {
        return std::future::pending().await;
    };
    if let Some(done) = oldest.done.take() {
        return done.map_err(|error| chain(&error));
    }
    let wait: Duration = limits::STORE_APPEND_WAIT.as_duration();
    match timeout(wait, oldest.answer.as_mut()).await {
        Ok(done) => done.map_err(|error| chain(&error)),
        Err(_) => Err(format!("no answer within {} s", wait.as_secs())),
    }
}

/// Converts a position or a number to the database's type.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("positions and numbers of groups have 63 bits")
}
