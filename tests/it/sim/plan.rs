//! What a seed makes of a run: which queues there are, what clients do how often, what fails.

use jitney::entity::queue::Description;
use jitney::time::Millis;

use super::random::Stream;

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) turns: usize,
    pub(super) queues: Vec<(Description, u64)>,
    pub(super) connections: usize,
    pub(super) segment_bytes: u64,
    /// How often clients do what, by [`Doing`].
    pub(super) doings: Vec<u64>,
    /// How often, in a thousand turns, something goes wrong, by [`Fault`].
    pub(super) faults: Vec<u64>,
    /// Bytes of a message's body at most.
    pub(super) padding: u64,
    /// Milliseconds that messages live at most, and that schedules lie ahead.
    pub(super) horizon: i64,
    /// Chances in a hundred of a turn.
    pub(super) seal: u64,
    pub(super) sync: u64,
    pub(super) jump: u64,
    /// Inputs wait for each other up to so many in a turn.
    pub(super) pump: u64,
}

/// What clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Attach,
    Cancel,
    Credit,
    Cut,
    Deferred,
    Detach,
    Dispose,
    Drain,
    Open,
    Peek,
    Purge,
    Renew,
    Schedule,
    Send,
    SendBatch,
    SessionWork,
    Settle,
    SettleAgain,
    Unknown,
    Written,
}

pub(super) const DOINGS: [Doing; 20] = [
    Doing::Attach,
    Doing::Cancel,
    Doing::Credit,
    Doing::Cut,
    Doing::Deferred,
    Doing::Detach,
    Doing::Dispose,
    Doing::Drain,
    Doing::Open,
    Doing::Peek,
    Doing::Purge,
    Doing::Renew,
    Doing::Schedule,
    Doing::Send,
    Doing::SendBatch,
    Doing::SessionWork,
    Doing::Settle,
    Doing::SettleAgain,
    Doing::Unknown,
    Doing::Written,
];

/// What goes wrong, or is done by an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The power goes.
    Crash,
    /// New properties for a queue.
    Describe,
    /// The disk has no space, or has it again.
    Full,
    /// After some more changes, the disk does nothing.
    Fuse,
    /// The process is killed; what it wrote stays.
    Kill,
    /// Stopped in order, and started again.
    Stop,
    /// A sync fails.
    SyncFails,
}

pub(super) const FAULTS: [Fault; 7] = [
    Fault::Crash,
    Fault::Describe,
    Fault::Full,
    Fault::Fuse,
    Fault::Kill,
    Fault::Stop,
    Fault::SyncFails,
];

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Stream::new(seed, "plan");
        let queues = 1 + random.below(3);
        let horizon = *random.pick(&[30, 200, 1_000, 20_000]).expect("some");
        let rolls_over = random.percent(10);
        let queues = (0..queues).map(|_| {
            let first = if rolls_over {
                (1 << 48) - 1 - random.below(20)
            } else {
                1
            };
            (describe(&mut random, horizon), first)
        });
        let queues = queues.collect();
        let doings = DOINGS.iter().map(|doing| {
            let usual = match doing {
                Doing::Send | Doing::Settle => 30,
                Doing::Credit | Doing::Attach => 20,
                Doing::Dispose | Doing::Peek | Doing::Schedule | Doing::SessionWork => 10,
                Doing::Drain
                | Doing::Deferred
                | Doing::Renew
                | Doing::SendBatch
                | Doing::Cancel
                | Doing::SettleAgain => 6,
                Doing::Open | Doing::Detach => 4,
                Doing::Purge | Doing::Cut | Doing::Unknown | Doing::Written => 1,
            };
            // Swarm: each seed leaves some out, and does others far too often.
            match random.below(10) {
                0 | 1 => 0,
                2 => usual * 5,
                3 => usual * 20,
                _ => usual,
            }
        });
        let mut doings: Vec<u64> = doings.collect();
        for (weight, doing) in doings.iter_mut().zip(DOINGS) {
            if matches!(doing, Doing::Open | Doing::Attach | Doing::Send) {
                *weight = (*weight).max(3);
            }
        }
        let faults = FAULTS.iter().map(|_| {
            if random.percent(40) {
                random.below(15)
            } else {
                0
            }
        });
        let faults = faults.collect();
        let big = random.percent(3);
        Self {
            turns: if big { 150 } else { 300 + random.index(500) },
            queues,
            connections: 1 + random.index(4),
            segment_bytes: if big {
                8 * 1024 * 1024
            } else {
                *random.pick(&[2_048, 8_192, 65_536]).expect("some")
            },
            doings,
            faults,
            padding: if big {
                700_000
            } else {
                *random.pick(&[1, 40, 600]).expect("some")
            },
            horizon,
            seal: *random.pick(&[20, 60, 100]).expect("some"),
            sync: *random.pick(&[10, 40, 90]).expect("some"),
            jump: *random.pick(&[5, 20, 50]).expect("some"),
            pump: *random.pick(&[1, 4, 16]).expect("some"),
        }
    }
}

/// Makes properties that make things happen.
pub(super) fn describe(random: &mut Stream, horizon: i64) -> Description {
    let usual = Description::default();
    let lock = random.within(1, horizon);
    Description {
        lock_duration: Millis::from_millis(lock),
        default_time_to_live: if random.percent(50) {
            Millis::MAX
        } else {
            Millis::from_millis(random.within(1, horizon * 3))
        },
        requires_session: random.percent(35),
        max_delivery_count: *random.pick(&[1, 2, 3, 10]).expect("some"),
        dead_letter_on_expiration: random.percent(60),
        max_bytes: if random.percent(15) {
            2_000
        } else {
            usual.max_bytes
        },
        max_message_bytes: if random.percent(10) {
            120
        } else {
            usual.max_message_bytes
        },
        ..usual
    }
}
