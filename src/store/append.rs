//! The committer of a namespace in a store: executes by statements what its [`Appender`] decides.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout_at};
use tracing::{error, info, warn};

use crate::host::committer::{CommitterCommand, LogSink, SyncProgress};
use crate::host::owner::StoreEvent;
use crate::limits;
use crate::system::supervisor::{self, Task};
use jitney_base::histogram::Histogram;
use jitney_base::time::Millis;
use jitney_journal::appender::{
    Answer, Append, AppendAnswer, Appender, Command, End, Event, Question,
};
use jitney_journal::rows::{self, Row, RowPlace};
use jitney_journal::{Frame, SegmentId};
use jitney_postgres::{
    Fence, Session, Statement, Store, StoreError, StoreLog, Uuid, chain, ownership,
    ownership::QuarantinedBy, schema, signed,
};

/// The owner's handle of the committer.
pub(super) struct StoreCommitter {
    orders: Arc<Orders>,
    progress: watch::Receiver<SyncProgress>,
    times: Arc<Mutex<Histogram>>,
}

/// What is ordered and not taken yet. The bytes in flight bound it.
#[derive(Default)]
struct Orders {
    queue: Mutex<(Vec<CommitterCommand>, bool)>,
    /// Something was ordered, or nothing will be any more.
    changed: Notify,
}

impl Orders {
    fn push(&self, order: CommitterCommand) {
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

    fn take(&self) -> Vec<CommitterCommand> {
        std::mem::take(&mut self.locked().0)
    }

    fn locked(&self) -> MutexGuard<'_, (Vec<CommitterCommand>, bool)> {
        // No state here is partial when a thread panics.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StoreCommitter {
    fn drop(&mut self) {
        self.orders.close();
    }
}

impl StoreCommitter {
    /// Starts the committer of a log that was read. Its task ends when it is dropped and all that was ordered is appended, or
    /// cannot be.
    pub(super) fn start(
        store: Arc<Store>,
        log: Arc<StoreLog>,
        appender: Appender,
        last: RowPlace,
        events: watch::Sender<StoreEvent>,
    ) -> (Self, Task) {
        let orders = Arc::new(Orders::default());
        let durable = appender.durable();
        let (report, progress) = watch::channel(SyncProgress {
            durable,
            synced: durable,
        });
        let times = Arc::new(Mutex::default());
        let driver = Driver {
            fence: Arc::clone(log.fence()),
            promotions: store.promotions(),
            store,
            log,
            orders: Arc::clone(&orders),
            report,
            events,
            times: Arc::clone(&times),
            appender,
            session: Weak::new(),
            warnings: 0,
            statements: BTreeMap::new(),
            made: Arc::new(AtomicU64::new(last.segment().0)),
            ahead: last.segment().0,
            sent: VecDeque::new(),
            wait: jitney_postgres::limits::STORE_RETRY_FIRST.as_duration(),
            pause: Duration::ZERO,
        };
        let task = supervisor::spawn("committer of a namespace", driver.run());
        task.allow_end();
        let committer = Self {
            orders,
            progress,
            times,
        };
        (committer, task)
    }

    /// Orders a group, and waits until it is durable.
    ///
    /// # Errors
    ///
    /// Those of [`wait_durable`].
    pub(super) async fn commit(&mut self, frame: Frame) -> Result<(), StoreError> {
        let number = frame.number;
        self.order(CommitterCommand::Commit(frame));
        wait_durable(&mut self.progress(), number).await
    }
}

/// Waits until a group is durable.
///
/// # Errors
///
/// [`StoreError::Fenced`] if the committer ends before: the namespace was taken from it.
pub(super) async fn wait_durable(
    progress: &mut watch::Receiver<SyncProgress>,
    group: u64,
) -> Result<(), StoreError> {
    let durable = progress.wait_for(|progress| group <= progress.durable);
    durable.await.map(drop).map_err(|_| StoreError::Fenced)
}

impl LogSink for StoreCommitter {
    fn order(&mut self, order: CommitterCommand) {
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

type PendingAppend =
    Pin<Box<dyn Future<Output = Result<u64, jitney_postgres::StatementError>> + Send>>;

/// The answer to a question that the store did not answer, with the reason.
type NoAnswer = fn(String) -> Answer;

/// A row whose answer has not come.
struct Sent {
    session: Arc<Session>,
    began: Instant,
    answer: PendingAppend,
    /// The answer, if it has come early.
    done: Option<Result<u64, jitney_postgres::StatementError>>,
}

struct Driver {
    store: Arc<Store>,
    log: Arc<StoreLog>,
    fence: Arc<Fence>,
    orders: Arc<Orders>,
    report: watch::Sender<SyncProgress>,
    events: watch::Sender<StoreEvent>,
    times: Arc<Mutex<Histogram>>,
    appender: Appender,
    /// How many other primaries the database has had.
    promotions: watch::Receiver<u64>,
    /// That of the last append. It ends when appends of no namespace use it any more.
    session: Weak<Session>,
    /// Warnings of the session that were there before its first append.
    warnings: u64,
    /// By the segment of the row, and that of the row before.
    statements: BTreeMap<(SegmentId, SegmentId), Statement>,
    /// The newest segment that has a table.
    made: Arc<AtomicU64>,
    /// The newest segment whose table was begun ahead.
    ahead: u64,
    sent: VecDeque<Sent>,
    /// Before the next question, if one is not answered.
    wait: Duration,
    /// Before the next epoch: none if a row was inserted since the last one.
    pause: Duration,
}

impl Driver {
    async fn run(mut self) {
        let orders = Arc::clone(&self.orders);
        loop {
            while let Some(command) = self.appender.poll() {
                self.execute(command).await;
            }
            if self.appender.is_over() {
                return;
            }
            tokio::select! {
                biased;
                answer = next_answer(&mut self.sent) => self.take(answer),
                // Before new rows, which would be unanswered then.
                Ok(()) = self.promotions.changed() => {
                    self.pause = Duration::ZERO;
                    self.appender.check("the database has another primary".to_owned());
                }
                () = orders.changed.notified() => self.take_orders(),
            }
        }
    }

    fn take_orders(&mut self) {
        // In this order: what was ordered before the end is carried out.
        let is_closed = self.orders.is_closed();
        for order in self.orders.take() {
            self.execute_order(order);
        }
        if is_closed {
            self.appender.close();
        }
    }

    fn execute_order(&mut self, order: CommitterCommand) {
        match order {
            CommitterCommand::Commit(frame) => self.appender.commit(frame),
            // Every append is synced.
            CommitterCommand::Sync => {}
            CommitterCommand::Remove(segments) => {
                let log = Arc::clone(&self.log);
                let remove = async move {
                    for segment in segments {
                        log.remove(segment).await;
                    }
                };
                supervisor::spawn("removal of segments", remove).allow_end();
            }
        }
    }

    async fn execute(&mut self, command: Command) {
        match command {
            Command::Append(append) => {
                if let Err(error) = self.send(append).await {
                    self.appender
                        .appended(AppendAnswer::Failed(error.to_string()));
                }
            }
            Command::Ask(question) => {
                if matches!(question, Question::Barrier(_)) {
                    // It is answered by the newest primary.
                    self.promotions.mark_unchanged();
                }
                let answer = Box::pin(self.ask(&question)).await;
                self.appender.answered(answer);
                self.fence.set(self.appender.claim());
                self.report();
            }
            Command::Tell(event) => self.tell(event),
        }
    }

    fn tell(&self, event: Event) {
        let namespace = self.fence.name();
        let event = match event {
            Event::Unknown { group, why } => {
                warn!(namespace, "what became of an append is unknown: {why}");
                StoreEvent::Unknown { group }
            }
            Event::Back => {
                info!(
                    namespace,
                    "the store is back, and it is known what was appended"
                );
                StoreEvent::Back
            }
            Event::Ended(end) => {
                match end {
                    End::Fenced => info!(namespace, "another server has taken a namespace"),
                    End::Lost(what) => error!(namespace, "a namespace is stopped: {what}"),
                    End::GivenUp(why) => {
                        warn!(
                            namespace,
                            "what became of an append is unknown at the end: {why}"
                        );
                    }
                }
                self.fence.lose();
                StoreEvent::Fenced
            }
        };
        tell_owner(&self.events, event);
    }

    /// Asks the store, on a session that no unanswered append has.
    async fn ask(&mut self, question: &Question) -> Answer {
        if !self.sent.is_empty() || matches!(question, Question::Raise { .. }) {
            self.sent.clear();
            self.leave_session();
        }
        if matches!(question, Question::Raise { .. }) {
            // The store may answer questions and refuse the same row again and again, such as with a full disk.
            sleep(self.pause).await;
        }
        let store = Arc::clone(&self.store);
        let asked = tokio::select! {
            asked = self.try_ask(question) => asked,
            () = store.until_closed() => {
                Err((store.unfit("this server stops".to_owned()), Answer::Failed as NoAnswer))
            }
        };
        match asked {
            Ok(answer) => {
                self.wait = jitney_postgres::limits::STORE_RETRY_FIRST.as_duration();
                if matches!(question, Question::Raise { .. }) {
                    self.pause = longer(self.pause);
                }
                answer
            }
            Err((why, answer)) => {
                self.wait_for_store(&why).await;
                answer(why.to_string())
            }
        }
    }

    /// Returns the answer, or why there is none and what the appender is to know of that.
    async fn try_ask(&mut self, question: &Question) -> Result<Answer, (StoreError, NoAnswer)> {
        let session = self.session().await;
        let session = session.map_err(|why| (why, Answer::Unasked as NoAnswer))?;
        let answered = self.answer(&session, question).await;
        answered.map_err(|why| (why, Answer::Failed as NoAnswer))
    }

    /// Waits before the next question after one that the store did not answer, longer each time.
    async fn wait_for_store(&mut self, why: &StoreError) {
        let is_first = self.wait == jitney_postgres::limits::STORE_RETRY_FIRST.as_duration();
        if is_first && self.pause.is_zero() && !self.store.is_closed() {
            let namespace = self.fence.name();
            warn!(namespace, "suspended until the store answers: {why}");
        }
        // Other namespaces that have the session take another, too.
        self.leave_session();
        sleep(self.wait).await;
        self.wait = longer(self.wait);
        // The server may stop meanwhile: the appender then gives up at the next answer that does not come.
        self.take_orders();
    }

    /// It takes the whole driver: a future with a shared reference to it could not leave its thread.
    async fn answer(
        &mut self,
        session: &Arc<Session>,
        question: &Question,
    ) -> Result<Answer, StoreError> {
        Ok(match question {
            Question::Take { .. } | Question::Read => {
                Answer::Unasked("the log was taken before".to_owned())
            }
            Question::Raise { from, to } => Answer::Raised(
                ownership::raise(&self.store, session, &self.fence, *from, *to).await?,
            ),
            Question::Claim => {
                let found = ownership::claim(&self.store, session, self.fence.namespace()).await?;
                // One that was removed has no owner, and its number is not used again.
                let (epoch, owner) = found.unwrap_or((i64::MAX, None));
                Answer::Claim(epoch, owner)
            }
            Question::Rows { from } => Answer::Rows(self.log.rows_from(session, *from).await?),
            Question::Barrier(claim) => {
                if ownership::barrier(session, self.fence.namespace(), *claim).await? {
                    Answer::Done
                } else {
                    Answer::Refused
                }
            }
            Question::Quarantine { why } => {
                let namespace = self.fence.namespace();
                ownership::quarantine(&self.store, namespace, why, QuarantinedBy::Owner).await?;
                Answer::Done
            }
        })
    }

    /// An append is never tried again on its session, nor is anything else after an answer that did not come.
    fn leave_session(&mut self) {
        if let Some(session) = std::mem::take(&mut self.session).upgrade() {
            session.condemn();
        }
    }

    async fn send(&mut self, append: Append) -> Result<(), StoreError> {
        let session = self.session().await?;
        let Append {
            row,
            id,
            previous,
            claim,
        } = append;
        let segment = row.place().segment();
        if self.made.load(Ordering::Acquire) < segment.0 {
            schema::make_segment(&self.store, &self.fence, segment).await?;
            self.made.fetch_max(segment.0, Ordering::AcqRel);
        }
        self.make_next(&row);
        let parts = send_parts(&session, &self.fence, &row).await?;
        let statement = self
            .statement(&session, segment, previous.place.segment())
            .await?;
        let namespace = self.fence.namespace();
        let of_row = Arc::clone(&session);
        let work = async move {
            let place = row.place();
            let (at, frame) = (signed(place.position), signed(place.frame));
            let (span, before) = (signed(place.span), signed(previous.place.position));
            let meta: &[u8] = &row.meta;
            let body: Option<&[u8]> = (parts == 0).then_some(&row.body);
            let statement = &statement;
            let owner = Uuid(claim.owner);
            session
                .client()
                .execute(
                    statement,
                    &[
                        &at,
                        &span,
                        &frame,
                        &claim.epoch,
                        &id,
                        &parts,
                        &meta,
                        &body,
                        &namespace,
                        &owner,
                        &before,
                        &previous.id,
                    ],
                )
                .await
        };
        let mut answer: PendingAppend = Box::pin(work);
        // The first poll hands it to the session: rows are sent in their order.
        let done = match poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        };
        self.sent.push_back(Sent {
            session: of_row,
            began: Instant::now(),
            answer,
            done,
        });
        Ok(())
    }

    /// Makes the next segment's table ahead, once, when half of this one is used.
    fn make_next(&mut self, row: &Row) {
        let (segment, offset) = rows::place(row.position);
        let next = SegmentId(segment.0 + 1);
        if self.ahead < next.0 && limits::STORE_SEGMENT_BYTES / 2 < offset {
            self.ahead = next.0;
            let (store, fence) = (Arc::clone(&self.store), Arc::clone(&self.fence));
            let made = Arc::clone(&self.made);
            let make = async move {
                // It is made when it is needed, if not now.
                if schema::make_segment(&store, &fence, next).await.is_ok() {
                    made.fetch_max(next.0, Ordering::AcqRel);
                }
            };
            supervisor::spawn("next segment", make).allow_end();
        }
    }

    async fn session(&mut self) -> Result<Arc<Session>, StoreError> {
        if let Some(session) = self.session.upgrade() {
            if self.sent.is_empty() {
                if self.store.is_usable(&session) {
                    return Ok(session);
                }
            } else if self.store.is_current(&session) {
                return Ok(session);
            } else {
                return Err(self
                    .store
                    .unfit("appends are unanswered at a former primary".to_owned()));
            }
        }
        let session = self.store.append_session(self.fence.namespace()).await?;
        self.use_session(&session);
        Ok(session)
    }

    fn use_session(&mut self, session: &Arc<Session>) {
        self.statements.clear();
        self.warnings = session.warnings();
        self.session = Arc::downgrade(session);
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
             where f.id = $9 and f.epoch = $4 and f.owner = $10 \
             and exists (select from {previous} p where p.at = $11 and p.id = $12) \
             for share of f"
        );
        let statement = session.prepare(&sql).await?;
        self.statements.insert((segment, before), statement.clone());
        Ok(statement)
    }

    /// Takes the answer to the oldest row.
    fn take(&mut self, answer: Result<u64, String>) {
        let sent = self.sent.pop_front();
        let has_warned = sent
            .as_ref()
            .is_none_or(|sent| sent.session.warnings() != self.warnings);
        let answer = match answer {
            Ok(1) if has_warned => AppendAnswer::Warned,
            Ok(1) => AppendAnswer::Inserted,
            Ok(_) => AppendAnswer::Refused,
            Err(what) => AppendAnswer::Failed(what),
        };
        if let Some(sent) = sent
            && answer == AppendAnswer::Inserted
        {
            self.pause = Duration::ZERO;
            let took = u64::try_from(sent.began.elapsed().as_micros()).unwrap_or(u64::MAX);
            let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
            times.record(took);
        }
        self.appender.appended(answer);
        self.report();
    }

    fn report(&self) {
        let durable = self.appender.durable();
        let synced = durable;
        self.report.send_if_modified(|progress| {
            let is_new = progress.durable < durable;
            *progress = SyncProgress { durable, synced };
            is_new
        });
    }
}

/// Replaces the event that the owner reads next. [`StoreEvent::Fenced`] stays: the owner may not have read it yet.
fn tell_owner(events: &watch::Sender<StoreEvent>, event: StoreEvent) {
    events.send_if_modified(|last| {
        let is_served = *last != StoreEvent::Fenced;
        if is_served {
            *last = event;
        }
        is_served
    });
}

/// Returns how long to wait the next time.
fn longer(wait: Duration) -> Duration {
    let [first, max] = [
        jitney_postgres::limits::STORE_RETRY_FIRST,
        jitney_postgres::limits::STORE_RETRY_MAX,
    ]
    .map(Millis::as_duration);
    (2 * wait).clamp(first, max)
}

/// Writes the bodies of a large row first, in parts; returns how many.
async fn send_parts(session: &Session, fence: &Fence, row: &Row) -> Result<i32, StoreError> {
    if row.body.len() <= jitney_postgres::limits::STORE_PART_BYTES {
        return Ok(0);
    }
    let (namespace, (epoch, owner)) = (fence.namespace(), fence.current());
    let at = signed(row.position);
    let mut parts = 0;
    for bytes in row.body.chunks(jitney_postgres::limits::STORE_PART_BYTES) {
        let sql = "insert into body_part (namespace, at, part, bytes) select $1, $2, $3, $4 from namespace f \
                   where f.id = $1 and f.epoch = $5 and f.owner = $6 for share of f \
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
    let until = tokio::time::Instant::from_std(oldest.began) + wait;
    match timeout_at(until, oldest.answer.as_mut()).await {
        Ok(done) => done.map_err(|error| chain(&error)),
        Err(_) => Err(format!("no answer within {} s", wait.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_that_is_fenced_is_told_nothing_else() {
        let (events, owner) = watch::channel(StoreEvent::Back);
        tell_owner(&events, StoreEvent::Unknown { group: 7 });
        assert_eq!(*owner.borrow(), StoreEvent::Unknown { group: 7 });
        // The server is declared dead while its committer finds out what was appended.
        events.send_replace(StoreEvent::Fenced);
        tell_owner(&events, StoreEvent::Back);
        assert_eq!(*owner.borrow(), StoreEvent::Fenced);
    }
}
