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
}

/// How far the committer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Progress {
    /// The newest group that is durable, as the policy has it.
    pub(super) durable: u64,
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
        let (report, progress) = watch::channel(Progress { durable });
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
        for order in first.into_iter().chain(orders.try_iter()) {
            match order {
                Order::Commit(frame) => frames.push(frame),
                Order::Remove(segments) => removals.extend(segments),
            }
        }
        if let Some(last) = frames.last().map(|frame: &Frame| frame.number) {
            write(&mut committer, &frames);
            unsynced = true;
            if sync == Sync::Always {
                sync_or_end(&mut committer);
                unsynced = false;
            }
            report.send_replace(Progress { durable: last });
            frames.clear();
        }
        if unsynced && sync == Sync::Interval && SYNC_INTERVAL <= synced_at.elapsed() {
            sync_or_end(&mut committer);
            unsynced = false;
            synced_at = Instant::now();
        }
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
