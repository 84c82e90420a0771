//! The committer: the thread that writes and syncs the log.
//!
//! A thread of its own, because a sync blocks: shared with tasks, one-message commits fell to a
//! twentieth on two busy cores (`docs/decisions/001-own-journal.md#measurements`). It takes all
//! frames that have gathered during one sync into the next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use tokio::sync::watch;
use tracing::{error, warn};

use super::logging;
use super::supervisor::{self, Thread};
use crate::journal::{self, Frame, SegmentId};
use crate::limits;

/// When records are synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    /// Before they are acknowledged.
    Always,
    /// Periodically: acknowledged records since the last sync can be lost with the machine's power.
    Interval,
    /// When the operating system decides.
    Never,
}

/// The committer's commands, in order.
#[derive(Debug)]
pub(super) enum LogCommand {
    /// Make this group of records durable.
    Commit(Frame),
    /// Remove segments that are no longer needed.
    Remove(Vec<SegmentId>),
    /// Sync all writes so far, whatever the policy.
    Sync,
}

/// The committer's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SyncProgress {
    /// The newest group that is durable under the policy.
    pub(super) durable: u64,
    /// The newest group that is synced.
    pub(super) synced: u64,
}

/// The owner's handle of the committer's thread.
pub(super) struct CommitterThread {
    orders: Option<mpsc::Sender<LogCommand>>,
    progress: watch::Receiver<SyncProgress>,
    /// Writes must stop waiting for free space.
    stop: Arc<AtomicBool>,
    thread: Option<Thread>,
}

impl CommitterThread {
    /// Starts the thread.
    ///
    /// When a write or a sync fails for good the process ends: the state of the disk is unknown,
    /// and the next start recovers it.
    pub(super) fn start(
        committer: journal::Committer,
        sync: Sync,
        durable: u64,
    ) -> std::io::Result<Self> {
        let (orders, taken) = mpsc::channel();
        let (report, progress) = watch::channel(SyncProgress {
            durable,
            synced: durable,
        });
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let work = move || run(committer, sync, &taken, &report, &is_stopped);
        let thread = supervisor::spawn_thread("committer", work)?;
        Ok(Self {
            orders: Some(orders),
            progress,
            stop,
            thread: Some(thread),
        })
    }

    /// Sends a command. The bytes in flight bound the queue of commands.
    pub(super) fn order(&self, order: LogCommand) {
        if let Some(orders) = &self.orders {
            // The thread ends only with the process, or after `drop`.
            let _ = orders.send(order);
        }
    }

    pub(super) fn progress(&self) -> watch::Receiver<SyncProgress> {
        self.progress.clone()
    }
}

impl Drop for CommitterThread {
    /// Waits until all commands are carried out and the log is synced. Writes that find the disk
    /// full are dropped: they were not acknowledged.
    fn drop(&mut self) {
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
    mut committer: journal::Committer,
    sync: Sync,
    orders: &mpsc::Receiver<LogCommand>,
    report: &watch::Sender<SyncProgress>,
    stop: &AtomicBool,
) {
    let mut frames = Vec::new();
    let mut removals = Vec::new();
    let mut durable = committer.synced();
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
        for order in first.into_iter().chain(orders.try_iter()) {
            match order {
                LogCommand::Commit(frame) => frames.push(frame),
                LogCommand::Remove(segments) => removals.extend(segments),
                LogCommand::Sync => must_sync = true,
            }
        }
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
        }
        tell(report, durable, committer.synced());
        for segment in removals.drain(..) {
            if let Err(error) = committer.remove(segment) {
                end(&error);
            }
        }
    }
    if unsynced {
        sync_or_end(&mut committer);
    }
}

fn tell(report: &watch::Sender<SyncProgress>, durable: u64, synced: u64) {
    let now = SyncProgress { durable, synced };
    report.send_if_modified(|progress| std::mem::replace(progress, now) != now);
}

/// Writes frames, and waits for free space as long as it takes; returns whether they were written
/// before the stop.
fn write(committer: &mut journal::Committer, frames: &[Frame], stop: &AtomicBool) -> bool {
    let mut is_reported = false;
    loop {
        match committer.write(frames) {
            Ok(()) => return true,
            Err(journal::Error::Full) if stop.load(Ordering::Relaxed) => {
                error!(
                    groups = frames.len(),
                    "the disk is full, and the broker stops: the groups that waited for space are \
                     dropped; none of them was acknowledged"
                );
                return false;
            }
            Err(journal::Error::Full) => {
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

fn sync_or_end(committer: &mut journal::Committer) {
    if let Err(error) = committer.sync() {
        end(&error);
    }
}

fn end(error: &journal::Error) -> ! {
    logging::fatal(format_args!(
        "the log cannot be kept; the broker ends, and the next start recovers it: {error}"
    ));
    std::process::exit(1);
}

/// Shares a disk between the threads that read and write it.
pub(super) type SharedDisk = Arc<dyn journal::Disk>;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ids::EntityId;
    use crate::journal::faulty::FaultyDisk;
    use crate::journal::memory::MemoryDisk;
    use crate::queue::{Journal, Record};

    #[test]
    fn a_full_disk_keeps_nobody_from_stopping() {
        let disk = Arc::new(FaultyDisk::new());
        let shared: SharedDisk = Arc::<FaultyDisk>::clone(&disk);
        let options = journal::Options::new(1);
        let mut log = journal::recover(shared, options, &mut |_, _| Ok(())).unwrap();
        disk.set_room(Some(0));
        let entity = EntityId(1);
        log.writer.append(&Record::EntityDeleted { entity });
        let frame = log.writer.seal().unwrap();
        let committer = CommitterThread::start(log.committer, Sync::Always, 0).unwrap();
        let progress = committer.progress();
        committer.order(LogCommand::Commit(frame));
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
            let disk: SharedDisk = Arc::new(MemoryDisk::new());
            let options = journal::Options::new(1);
            let mut log = journal::recover(disk, options, &mut |_, _| Ok(())).unwrap();
            let entity = EntityId(1);
            log.writer.append(&Record::EntityDeleted { entity });
            let frame = log.writer.seal().unwrap();
            let committer = CommitterThread::start(log.committer, policy, 0).unwrap();
            committer.order(LogCommand::Commit(frame));
            let mut progress = committer.progress();
            let told = progress.wait_for(|progress| progress.durable == 1).await;
            assert!(told.is_ok(), "{policy:?}");
            drop(told);
            committer.order(LogCommand::Sync);
            let synced = progress.wait_for(|progress| progress.synced == 1).await;
            assert!(synced.is_ok(), "{policy:?}");
        }
    }
}
