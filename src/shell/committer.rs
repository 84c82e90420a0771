//! The committer: the thread that writes and syncs the log.
//!
//! A thread of its own, because a sync blocks: shared with tasks, one-message commits fell to a
//! twentieth on two busy cores (`storage.md`). It takes all frames that have gathered during one
//! sync into the next.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tracing::{error, warn};

use crate::storage::{self, Frame, SegmentId};

/// When records are synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    /// Before anybody is told of them.
    Always,
    /// Now and then: what was told in between can be lost with the machine's power.
    Interval,
    /// When the system likes.
    Never,
}

/// How often [`Sync::Interval`] syncs.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);
/// How long to wait before a write is tried again for which the disk had no space.
const RETRY: Duration = Duration::from_millis(200);

/// What the committer is to do, in order.
#[derive(Debug)]
pub(super) enum Order {
    /// Make this group of records durable.
    Commit(Frame),
    /// Remove segments that nothing needs.
    Remove(Vec<SegmentId>),
    /// Sync what was ordered so far, whatever the policy.
    Sync,
}

/// How far the committer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Progress {
    /// The newest group that is durable, as the policy has it.
    pub(super) durable: u64,
    /// The newest group that is synced.
    pub(super) synced: u64,
}

/// The owner's hold on the committer's thread.
pub(super) struct Committer {
    orders: Option<mpsc::Sender<Order>>,
    progress: watch::Receiver<Progress>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Committer {
    /// Starts the thread.
    ///
    /// When a write or a sync fails for good the process ends: nobody knows then what is on the
    /// disk, and the next start finds out.
    pub(super) fn start(
        committer: storage::Committer,
        sync: Sync,
        durable: u64,
    ) -> std::io::Result<Self> {
        let (orders, taken) = mpsc::channel();
        let (report, progress) = watch::channel(Progress {
            durable,
            synced: durable,
        });
        let work = move || run(committer, sync, &taken, &report);
        let thread = thread::Builder::new()
            .name("committer".to_owned())
            .spawn(work)?;
        Ok(Self {
            orders: Some(orders),
            progress,
            thread: Some(thread),
        })
    }

    /// Passes an order on. The orders waiting are bounded by the owner's bytes in flight.
    pub(super) fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // The thread ends only with the process, or after `drop`.
            let _ = orders.send(order);
        }
    }

    pub(super) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }
}

impl Drop for Committer {
    /// Waits until all orders are carried out and the log is synced.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(
    mut committer: storage::Committer,
    sync: Sync,
    orders: &mpsc::Receiver<Order>,
    report: &watch::Sender<Progress>,
) {
    let mut frames = Vec::new();
    let mut removals = Vec::new();
    let mut durable = committer.synced();
    let mut unsynced = false;
    let mut synced_at = Instant::now();
    loop {
        let first = if unsynced && sync == Sync::Interval {
            match orders.recv_timeout(SYNC_INTERVAL.saturating_sub(synced_at.elapsed())) {
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
                Order::Commit(frame) => frames.push(frame),
                Order::Remove(segments) => removals.extend(segments),
                Order::Sync => must_sync = true,
            }
        }
        if let Some(last) = frames.last().map(|frame: &Frame| frame.number) {
            write(&mut committer, &frames);
            (durable, unsynced) = (last, true);
            frames.clear();
            if sync != Sync::Always {
                tell(report, durable, committer.synced());
            }
        }
        if sync == Sync::Interval && SYNC_INTERVAL <= synced_at.elapsed() {
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

fn tell(report: &watch::Sender<Progress>, durable: u64, synced: u64) {
    let now = Progress { durable, synced };
    report.send_if_modified(|progress| std::mem::replace(progress, now) != now);
}

/// Writes frames, however long it takes until there is space for them.
fn write(committer: &mut storage::Committer, frames: &[Frame]) {
    let mut told = false;
    loop {
        match committer.write(frames) {
            Ok(()) => return,
            Err(storage::Error::Full) => {
                if !told {
                    warn!(
                        "the disk is full, its reserve too: everything waits until there is space"
                    );
                    told = true;
                }
                thread::park_timeout(RETRY);
            }
            Err(error) => end(&error),
        }
    }
}

fn sync_or_end(committer: &mut storage::Committer) {
    if let Err(error) = committer.sync() {
        end(&error);
    }
}

fn end(error: &storage::Error) -> ! {
    error!(%error, "the log cannot be kept; the broker ends, and the next start recovers it");
    std::process::exit(1);
}

/// Shares a disk between the threads that read and write it.
pub(super) type SharedDisk = Arc<dyn storage::Disk>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::{EntityId, Journal, Record};
    use crate::storage::memory::MemoryDisk;

    #[tokio::test]
    async fn whatever_the_policy_a_sync_that_is_ordered_is_done() {
        for policy in [Sync::Always, Sync::Interval, Sync::Never] {
            let disk: SharedDisk = Arc::new(MemoryDisk::new());
            let options = storage::Options::new(1);
            let mut log = storage::recover(disk, options, &mut |_, _| Ok(())).unwrap();
            let entity = EntityId(1);
            log.writer.append(&Record::EntityDeleted { entity });
            let frame = log.writer.seal().unwrap();
            let committer = Committer::start(log.committer, policy, 0).unwrap();
            committer.order(Order::Commit(frame));
            let mut progress = committer.progress();
            let told = progress.wait_for(|progress| progress.durable == 1).await;
            assert!(told.is_ok(), "{policy:?}");
            drop(told);
            committer.order(Order::Sync);
            let synced = progress.wait_for(|progress| progress.synced == 1).await;
            assert!(synced.is_ok(), "{policy:?}");
        }
    }
}
