//! The committer: what writes and syncs the log.
//!
//! It has a thread, because a sync blocks. While one sync lasts, the owner continues; the thread takes all
//! frames that have gathered meanwhile into the next.
//!
//! When little is written to a fast disk, the thread costs more than it saves: to wake it, and to wake
//! the owner when it is done, takes as long as a part of the sync, and there is nothing to do meanwhile. So the
//! owner's own thread writes and syncs what is small if the thread has nothing to do
//! (`docs/performance.md`).

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use tokio::sync::watch;
use tracing::{error, warn};

use crate::limits;
use crate::system::logging;
use crate::system::supervisor::{self, Thread};
use jitney_base::histogram::Histogram;
use jitney_journal::{Frame, SegmentId};

/// When records are synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// Before they are acknowledged.
    Always,
    /// Periodically: acknowledged records since the last sync can be lost with the machine's power.
    Interval,
    /// When the operating system decides.
    Never,
}

/// `--sync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyncArg {
    /// Before a message is acknowledged.
    Always,
    /// Every 100 ms; a crash of the machine can lose messages acknowledged since the last sync.
    Interval,
    /// The operating system decides; a crash of the machine can lose acknowledged messages.
    Never,
}

impl From<SyncArg> for Sync {
    fn from(sync: SyncArg) -> Self {
        match sync {
            SyncArg::Always => Self::Always,
            SyncArg::Interval => Self::Interval,
            SyncArg::Never => Self::Never,
        }
    }
}

/// The committer's commands, in order.
#[derive(Debug)]
pub(crate) enum CommitterCommand {
    /// Make this group of records durable.
    Commit(Frame),
    /// Remove segments that are no longer needed.
    Remove(Vec<SegmentId>),
    /// Sync all writes so far, whatever the policy.
    Sync,
}

/// The committer's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SyncProgress {
    /// The newest group that is durable under the policy.
    pub(crate) durable: u64,
    /// The newest group that is synced.
    pub(crate) synced: u64,
}

/// What carries out the commands about the log, as the owner sees it.
pub(crate) trait LogSink: Send {
    /// Takes a command, to be carried out at [`LogSink::flush`] at the latest. The bytes in flight bound the queue of commands.
    fn order(&mut self, order: CommitterCommand);

    /// Lets what was ordered be carried out. Returns the progress, if that was done at once by the caller's thread.
    fn flush(&mut self) -> Option<SyncProgress>;

    /// Hands over what was ordered, without waiting for it.
    fn hand_over(&mut self);

    /// Returns how far the log is.
    fn progress(&self) -> watch::Receiver<SyncProgress>;

    /// Returns how long writes with their syncs took.
    fn sync_times(&self) -> Histogram;
}

/// The owner's handle of the committer.
pub(crate) struct CommitterHandle {
    log: Arc<Log>,
    sync: Sync,
    /// What was ordered since the last [`CommitterHandle::flush`], and its bytes.
    waiting: Vec<CommitterCommand>,
    waiting_bytes: usize,
    orders: Option<mpsc::Sender<CommitterCommand>>,
    progress: watch::Receiver<SyncProgress>,
    /// Writes must stop waiting for free space.
    stop: Arc<AtomicBool>,
    thread: Option<Thread>,
}

/// The log, as the owner and the committer's thread share it.
struct Log {
    committer: Mutex<jitney_journal::Committer>,
    /// Commands that the thread has and has not carried out.
    ordered: AtomicUsize,
    /// How long a write with its sync takes, of the last ones, in microseconds.
    sync_micros: AtomicU64,
    /// How long writes with their syncs took.
    sync_times: Mutex<Histogram>,
}

impl Log {
    /// The thread and the owner never wait for each other: the owner takes it while the thread has nothing to do.
    fn committer(&self) -> MutexGuard<'_, jitney_journal::Committer> {
        let committer = self.committer.lock();
        committer.unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns how long a write with its sync took.
    fn learn(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let before = self.sync_micros.load(Ordering::Relaxed);
        let mean = (before.saturating_mul(3).saturating_add(took)) / 4;
        self.sync_micros.store(mean, Ordering::Relaxed);
        self.sync_times().record(took);
    }

    fn sync_times(&self) -> MutexGuard<'_, Histogram> {
        let times = self.sync_times.lock();
        times.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the owner may write and sync by itself: the disk is fast, and the thread has nothing to do.
    fn may_commit_in_place(&self) -> bool {
        let is_idle = self.ordered.load(Ordering::Acquire) == 0;
        is_idle && self.sync_micros.load(Ordering::Relaxed) < limits::SYNC_IN_PLACE_MICROS
    }
}

impl CommitterHandle {
    /// Starts the thread.
    ///
    /// When a write or a sync fails for good the process ends: the state of the disk is unknown,
    /// and the next start recovers it.
    pub(crate) fn start(
        committer: jitney_journal::Committer,
        sync: Sync,
        durable: u64,
    ) -> std::io::Result<Self> {
        let (orders, taken) = mpsc::channel();
        let (report, progress) = watch::channel(SyncProgress {
            durable,
            synced: durable,
        });
        let stop = Arc::new(AtomicBool::new(false));
        let log = Arc::new(Log {
            committer: Mutex::new(committer),
            ordered: AtomicUsize::new(0),
            sync_micros: AtomicU64::new(0),
            sync_times: Mutex::default(),
        });
        let (shared, is_stopped) = (Arc::clone(&log), Arc::clone(&stop));
        let work = move || run(&shared, sync, &taken, &report, &is_stopped);
        let thread = supervisor::spawn_thread("committer", work)?;
        Ok(Self {
            log,
            sync,
            waiting: Vec::new(),
            waiting_bytes: 0,
            orders: Some(orders),
            progress,
            stop,
            thread: Some(thread),
        })
    }

    /// Writes and syncs what was ordered; hands it to the thread if there is no space for it.
    fn commit_in_place(&mut self) -> Option<SyncProgress> {
        let began = Instant::now();
        let frames = self.waiting.iter().filter_map(|order| match order {
            CommitterCommand::Commit(frame) => Some(frame.clone()),
            CommitterCommand::Remove(_) | CommitterCommand::Sync => None,
        });
        let frames: Vec<Frame> = frames.collect();
        let mut committer = self.log.committer();
        match committer.write(&frames) {
            Ok(()) => {}
            Err(jitney_journal::Error::Full) => {
                drop(committer);
                self.hand_over();
                return None;
            }
            Err(error) => end(&error),
        }
        sync_or_end(&mut committer);
        let synced = committer.synced();
        drop(committer);
        self.log.learn(began.elapsed());
        self.waiting.clear();
        self.waiting_bytes = 0;
        let durable = synced;
        Some(SyncProgress { durable, synced })
    }
}

impl LogSink for CommitterHandle {
    fn order(&mut self, order: CommitterCommand) {
        if let CommitterCommand::Commit(frame) = &order {
            self.waiting_bytes += frame.bytes.len();
        }
        self.waiting.push(order);
        if limits::SYNC_IN_PLACE_BYTES < self.waiting_bytes {
            self.hand_over();
        }
    }

    fn flush(&mut self) -> Option<SyncProgress> {
        let is_small = |order: &CommitterCommand| match order {
            CommitterCommand::Commit(_) | CommitterCommand::Sync => true,
            CommitterCommand::Remove(_) => false,
        };
        let is_wanted = !self.waiting.is_empty() && self.sync == Sync::Always;
        if is_wanted && self.waiting.iter().all(is_small) && self.log.may_commit_in_place() {
            return self.commit_in_place();
        }
        self.hand_over();
        None
    }

    fn hand_over(&mut self) {
        self.waiting_bytes = 0;
        let Some(orders) = &self.orders else {
            return;
        };
        self.log
            .ordered
            .fetch_add(self.waiting.len(), Ordering::Relaxed);
        for order in self.waiting.drain(..) {
            // The thread ends only with the process, or after `drop`.
            let _ = orders.send(order);
        }
    }

    fn sync_times(&self) -> Histogram {
        *self.log.sync_times()
    }

    fn progress(&self) -> watch::Receiver<SyncProgress> {
        self.progress.clone()
    }
}

impl Drop for CommitterHandle {
    /// Waits until all commands are carried out and the log is synced. Writes that find the disk
    /// full are dropped: they were not acknowledged.
    fn drop(&mut self) {
        self.hand_over();
        let Some(thread) = self.thread.take() else {
            return;
        };
        thread.allow_end();
        self.stop.store(true, Ordering::Relaxed);
        self.orders = None;
        thread.join();
    }
}

fn run(
    log: &Log,
    sync: Sync,
    orders: &mpsc::Receiver<CommitterCommand>,
    report: &watch::Sender<SyncProgress>,
    stop: &AtomicBool,
) {
    let mut frames = Vec::new();
    let mut removals = Vec::new();
    let mut durable = log.committer().synced();
    let mut unsynced = false;
    let mut synced_at = Instant::now();
    loop {
        let first = if unsynced && sync == Sync::Interval {
            match orders.recv_timeout(
                limits::SYNC_INTERVAL
                    .as_duration()
                    .saturating_sub(synced_at.elapsed()),
            ) {
                Ok(order) => Some(order),
                Err(mpsc::RecvTimeoutError::Timeout) => None,
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        } else {
            match orders.recv() {
                Ok(order) => Some(order),
                Err(mpsc::RecvError) => break,
            }
        };
        let mut must_sync = sync == Sync::Always;
        let mut taken = 0;
        for order in first.into_iter().chain(orders.try_iter()) {
            taken += 1;
            match order {
                CommitterCommand::Commit(frame) => frames.push(frame),
                CommitterCommand::Remove(segments) => removals.extend(segments),
                CommitterCommand::Sync => must_sync = true,
            }
        }
        let began = Instant::now();
        let mut committer = log.committer();
        if let Some(last) = frames.last().map(|frame: &Frame| frame.number) {
            if !write(&mut committer, &frames, stop) {
                break;
            }
            (durable, unsynced) = (last, true);
            frames.clear();
            if sync != Sync::Always {
                tell(report, durable, committer.synced());
            }
        }
        if sync == Sync::Interval && limits::SYNC_INTERVAL.as_duration() <= synced_at.elapsed() {
            must_sync = true;
        }
        if unsynced && must_sync {
            sync_or_end(&mut committer);
            unsynced = false;
            synced_at = Instant::now();
            log.learn(synced_at.saturating_duration_since(began));
        }
        tell(report, durable, committer.synced());
        for segment in removals.drain(..) {
            if let Err(error) = committer.remove(segment) {
                end(&error);
            }
        }
        drop(committer);
        log.ordered.fetch_sub(taken, Ordering::Release);
    }
    if unsynced {
        sync_or_end(&mut log.committer());
    }
}

fn tell(report: &watch::Sender<SyncProgress>, durable: u64, synced: u64) {
    let now = SyncProgress { durable, synced };
    report.send_if_modified(|progress| std::mem::replace(progress, now) != now);
}

/// Writes frames, and waits for free space as long as it takes; returns whether they were written
/// before the stop.
fn write(committer: &mut jitney_journal::Committer, frames: &[Frame], stop: &AtomicBool) -> bool {
    let mut is_reported = false;
    loop {
        match committer.write(frames) {
            Ok(()) => return true,
            Err(jitney_journal::Error::Full) if stop.load(Ordering::Relaxed) => {
                error!(
                    groups = frames.len(),
                    "the disk is full, and the broker stops: the groups that waited for space are \
                     dropped; none of them was acknowledged"
                );
                return false;
            }
            Err(jitney_journal::Error::Full) => {
                if !is_reported {
                    warn!("the disk and its reserve are full: writes wait until there is space");
                    is_reported = true;
                }
                thread::park_timeout(limits::COMMIT_RETRY.as_duration());
            }
            Err(error) => end(&error),
        }
    }
}

fn sync_or_end(committer: &mut jitney_journal::Committer) {
    if let Err(error) = committer.sync() {
        end(&error);
    }
}

fn end(error: &jitney_journal::Error) -> ! {
    logging::fatal(format_args!(
        "the log cannot be kept; the broker ends, and the next start recovers it: {error}"
    ));
    std::process::exit(1);
}

/// Shares a disk between the threads that read and write it.
pub(crate) type SharedDisk = Arc<dyn jitney_journal::Disk>;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use jitney_base::ids::EntityId;
    use jitney_journal::faulty::FaultyDisk;
    use jitney_journal::memory::MemoryDisk;
    use jitney_queue::{Journal, Record};

    #[test]
    fn a_full_disk_keeps_no_broker_from_stopping() {
        let disk = Arc::new(FaultyDisk::new());
        let shared: SharedDisk = Arc::<FaultyDisk>::clone(&disk);
        let options = jitney_journal::Options::new(1);
        let mut log = jitney_journal::recover(shared, options, &mut |_, _| Ok(())).unwrap();
        disk.set_room(Some(0));
        let entity = EntityId(1);
        log.writer.append(&Record::EntityDeleted { entity });
        let frame = log.writer.seal().unwrap();
        let mut committer = CommitterHandle::start(log.committer, Sync::Always, 0).unwrap();
        let progress = committer.progress();
        committer.order(CommitterCommand::Commit(frame));
        assert_eq!(committer.flush(), None);
        let (tell, told) = mpsc::channel();
        let stopping = thread::spawn(move || {
            drop(committer);
            tell.send(()).unwrap();
        });
        told.recv_timeout(Duration::from_secs(20)).unwrap();
        stopping.join().unwrap();
        assert_eq!(progress.borrow().durable, 0);
    }

    #[tokio::test]
    async fn whatever_the_policy_a_sync_that_is_ordered_is_done() {
        for policy in [Sync::Always, Sync::Interval, Sync::Never] {
            let (mut committer, frame) = committer_of(1, policy);
            committer.order(CommitterCommand::Commit(frame));
            committer.hand_over();
            let mut progress = committer.progress();
            let told = progress.wait_for(|progress| progress.durable == 1).await;
            assert!(told.is_ok(), "{policy:?}");
            drop(told);
            committer.order(CommitterCommand::Sync);
            committer.hand_over();
            let synced = progress.wait_for(|progress| progress.synced == 1).await;
            assert!(synced.is_ok(), "{policy:?}");
        }
    }

    /// A log in memory with a frame of so many bytes of records, and its committer.
    fn committer_of(bytes: usize, policy: Sync) -> (CommitterHandle, Frame) {
        let disk: SharedDisk = Arc::new(MemoryDisk::new());
        let mut log =
            jitney_journal::recover(disk, jitney_journal::Options::new(1), &mut |_, _| Ok(()))
                .unwrap();
        let entity = EntityId(1);
        while log.writer.open_bytes() < bytes {
            log.writer.append(&Record::EntityDeleted { entity });
        }
        let frame = log.writer.seal().unwrap();
        let committer = CommitterHandle::start(log.committer, policy, 0).unwrap();
        (committer, frame)
    }

    #[test]
    fn what_is_small_is_synced_by_the_caller_and_the_rest_by_the_thread() {
        let (mut committer, frame) = committer_of(1, Sync::Always);
        assert_eq!(committer.flush(), None, "there is nothing to do");
        committer.order(CommitterCommand::Commit(frame));
        let (durable, synced) = (1, 1);
        let progress = SyncProgress { durable, synced };
        assert_eq!(committer.flush(), Some(progress));
        let (mut committer, frame) = committer_of(limits::SYNC_IN_PLACE_BYTES + 1, Sync::Always);
        committer.order(CommitterCommand::Commit(frame));
        assert_eq!(committer.flush(), None, "it is large");
        let (mut committer, frame) = committer_of(1, Sync::Always);
        let slow = Duration::from_micros(4 * limits::SYNC_IN_PLACE_MICROS);
        committer.log.learn(slow);
        committer.order(CommitterCommand::Commit(frame));
        assert_eq!(committer.flush(), None, "the disk is slow");
        let (mut committer, frame) = committer_of(1, Sync::Interval);
        committer.order(CommitterCommand::Commit(frame));
        assert_eq!(committer.flush(), None, "it is not to be synced now");
    }
}
