//! What a seed makes of a run: which queues there are, what clients do how often, what fails.

use jitney_base::time::Millis;
use jitney_queue::{Description, EntityKind};

use super::random::Stream;

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) turns: usize,
    pub(super) entities: Vec<Planned>,
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
    /// How often, in a thousand turns, the clock is set, and how often that is while the broker is
    /// down.
    pub(super) clock_steps: u64,
    /// By how many milliseconds at most.
    pub(super) clock_step_max: i64,
    /// How often, in a thousand times that the broker reads the log, the disk does not.
    pub(super) unreadable: u64,
    /// How often, in a thousand turns, bytes of a message are damaged on the disk.
    pub(super) damage: u64,
    /// Connections go by bytes, through engines.
    pub(super) bytes: bool,
    pub(super) log: LogPlace,
    /// How often, in a thousand turns, an operator asks something.
    pub(super) jobs: u64,
    /// How often, in a thousand turns, something happens to a receive over HTTP.
    pub(super) receives: u64,
    /// How many of a hundred messages have no message-id of their sender's.
    pub(super) without_id: u64,
    /// Messages in a batch at most.
    pub(super) batch: usize,
    /// Messages from which on no more are sent.
    pub(super) crowd: usize,
}

/// An entity that there is to be.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) path: String,
    pub(super) description: Description,
    /// The number of its first message.
    pub(super) first: u64,
    /// Of a subscription: its topic, and the colors that it takes, where none means all.
    pub(super) topic: Option<usize>,
    pub(super) rules: Vec<Option<u64>>,
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
    Transact,
    Unknown,
    Written,
}

pub(super) const DOINGS: [Doing; 21] = [
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
    Doing::Transact,
    Doing::Unknown,
    Doing::Written,
];

/// Where the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogPlace {
    /// On a disk.
    Disk,
    /// In rows of a database.
    Rows,
}

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
    /// The journal's store cannot be reached, or it is not known what it has; or it is back.
    Store,
    /// Another server has the journal: this one's shard ends, and the next start is the other's.
    Fenced,
}

pub(super) const FAULTS: [Fault; 9] = [
    Fault::Crash,
    Fault::Describe,
    Fault::Full,
    Fault::Fuse,
    Fault::Kill,
    Fault::Stop,
    Fault::SyncFails,
    Fault::Store,
    Fault::Fenced,
];

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Stream::new(seed, "plan");
        let horizon = *random.pick(&[30, 200, 1_000, 20_000]).expect("some");
        let rolls_over = random.percent(10);
        let big = random.percent(3);
        // With big messages, what goes on may wait for the next group.
        let ways = if big || !random.percent(50) {
            Ways::None
        } else if random.percent(20) {
            Ways::Chain
        } else {
            Ways::Some
        };
        let mut entities = plan_entities(&mut random, horizon, ways);
        for entity in &mut entities {
            if rolls_over {
                entity.first = (1 << 48) - 1 - random.below(20);
                // Of what expires in one step, it is not said which goes on first.
                entity.description.forward_dead_letters_to = None;
            }
        }
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
                | Doing::Transact
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
        // Of their own, so that older seeds are what they were.
        let mut clock = Stream::new(seed, "clock plan");
        let clock_steps = if clock.percent(25) {
            1 + clock.below(15)
        } else {
            0
        };
        if 0 < clock_steps {
            for entity in &mut entities {
                // How much is left of a window after a step back is not said.
                entity.description.detects_duplicates = false;
            }
        }
        let mut reads = Stream::new(seed, "reads plan");
        let unreadable = if reads.percent(40) {
            5 + reads.below(60)
        } else {
            0
        };
        let log = if Stream::new(seed, "rows plan").percent(30) {
            LogPlace::Rows
        } else {
            LogPlace::Disk
        };
        let unreadable = match log {
            LogPlace::Rows => 0,
            LogPlace::Disk => unreadable,
        };
        let mut damage = Stream::new(seed, "damage plan");
        let damage = if log == LogPlace::Rows {
            0
        } else if damage.percent(15) {
            5 + damage.below(95)
        } else {
            0
        };
        let mut jobs = Stream::new(seed, "jobs plan");
        let floods = !big && jobs.percent(30);
        let jobs = if jobs.percent(25) {
            20 + jobs.below(130)
        } else {
            0
        };
        let mut receives = Stream::new(seed, "receives plan");
        let receives = if receives.percent(40) {
            20 + receives.below(300)
        } else {
            0
        };
        // With this name, the seeds of `seeds.txt` are what they were.
        let mut ids = Stream::new(seed, "made-up ids plan");
        let without_id = if ids.percent(12) {
            *ids.pick(&[5, 40, 100]).expect("some")
        } else {
            0
        };
        if 0 < without_id && 0 < jobs {
            for entity in &mut entities {
                // To which partition a message goes whose id was made up and written down is not known.
                entity.description.detects_duplicates &= !entity.description.partitioned;
            }
        }
        // So many that a job has several turns.
        let floods = floods && 0 < jobs;
        Self {
            jobs,
            receives,
            without_id,
            batch: if floods { 100 } else { 6 },
            crowd: if floods { 200 } else { 150 },
            damage,
            log,
            clock_steps,
            unreadable,
            bytes: Stream::new(seed, "bytes plan").percent(17),
            clock_step_max: *clock.pick(&[2, 40, 5_000, 2_592_000_000]).expect("some"),
            turns: if big { 150 } else { 300 + random.index(500) },
            entities,
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

impl Plan {
    /// Returns whether queues get new properties.
    pub(super) fn describes(&self) -> bool {
        let mut faults = FAULTS.iter().zip(&self.faults);
        faults.any(|(fault, often)| *fault == Fault::Describe && 0 < *often)
    }
}

/// How messages go from one entity to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ways {
    /// They stay.
    None,
    /// Some entities forward to others.
    Some,
    /// Nearly all do, each to the next one.
    Chain,
}

/// Queues; where there are ways from one to another, topics with subscriptions too.
fn plan_entities(random: &mut Stream, horizon: i64, ways: Ways) -> Vec<Planned> {
    let mut entities = Vec::new();
    let queues = match ways {
        Ways::Chain => 7,
        Ways::None | Ways::Some => 1 + random.below(3),
    };
    let topics = match ways {
        Ways::None => 0,
        Ways::Some | Ways::Chain => random.below(3),
    };
    let mut wanted: Vec<EntityKind> = Vec::new();
    wanted.extend((0..queues).map(|_| EntityKind::Queue));
    for _ in 0..topics {
        let at = random.index(wanted.len() + 1);
        wanted.insert(at, EntityKind::Topic);
    }
    for kind in wanted {
        let at = entities.len();
        let name = if kind == EntityKind::Topic {
            "topic"
        } else {
            "queue"
        };
        let path = format!("{name}-{at}");
        entities.push(Planned::new(random, horizon, path.clone(), kind));
        let subscriptions = if kind == EntityKind::Topic {
            random.below(4)
        } else {
            0
        };
        for _ in 0..subscriptions {
            let path = format!("{path}/Subscriptions/sub-{}", entities.len());
            let mut planned = Planned::new(random, horizon, path, EntityKind::Subscription);
            planned.topic = Some(at);
            let colors = random.below(3);
            planned.rules = match random.below(3) {
                0 => vec![None],
                1 => (0..=colors).map(Some).collect(),
                _ => vec![Some(colors), None],
            };
            entities.push(planned);
        }
    }
    match ways {
        Ways::None => {}
        Ways::Some => link(random, &mut entities, 40),
        Ways::Chain => link(random, &mut entities, 95),
    }
    entities
}

/// Lets entities forward to later ones. Only what is on its way to somewhere together, from
/// subscriptions of one topic, comes from two: when two things happen at the same millisecond,
/// which one is first is not said.
fn link(random: &mut Stream, entities: &mut [Planned], often: u64) {
    let mut taken = vec![None; entities.len()];
    for from in 0..entities.len() {
        let topic = entities[from].topic;
        let mut pick = |random: &mut Stream, source: (usize, bool)| {
            if random.percent(3) {
                return Some("nowhere".to_owned());
            }
            let fits = |&to: &usize| {
                let is_target = entities[to].description.kind != EntityKind::Subscription;
                is_target && (taken[to].is_none() || taken[to] == Some(source))
            };
            let all: Vec<usize> = (from + 1..entities.len()).filter(fits).collect();
            let to = if often > 50 {
                all.first()
            } else {
                random.pick(&all)
            };
            let to = *to?;
            taken[to] = Some(source);
            Some(entities[to].path.clone())
        };
        let kind = entities[from].description.kind;
        let forward = kind != EntityKind::Topic && random.percent(often);
        let forward = if forward {
            pick(random, (topic.unwrap_or(from), false))
        } else {
            None
        };
        let dead = random.percent(often / 2);
        let dead = if dead {
            pick(random, (from, true))
        } else {
            None
        };
        let description = &mut entities[from].description;
        description.requires_session &= forward.is_none();
        // Between partitions there is no order in which messages go on.
        description.partitioned &= forward.is_none() && dead.is_none();
        description.forward_to = forward;
        description.forward_dead_letters_to = dead;
        fit_order(description);
    }
}

impl Planned {
    fn new(random: &mut Stream, horizon: i64, path: String, kind: EntityKind) -> Self {
        let description = describe(random, horizon);
        let is_topic = kind == EntityKind::Topic;
        let mut description = Description {
            kind,
            requires_session: description.requires_session && !is_topic,
            ..description
        };
        fit_topic(&mut description);
        Self {
            path,
            description,
            first: 1,
            topic: None,
            rules: Vec::new(),
        }
    }
}

/// Of what expires in one step, it is not said what is a dead letter first: so none of it goes on.
pub(super) fn fit_order(description: &mut Description) {
    description.dead_letter_on_expiration &= description.forward_dead_letters_to.is_none();
}

/// Gives topics room: how much they have is not audited.
pub(super) fn fit_topic(description: &mut Description) {
    if description.kind == EntityKind::Topic {
        description.max_bytes = Description::default().max_bytes;
    }
}

/// Makes properties that make things happen.
pub(super) fn describe(random: &mut Stream, horizon: i64) -> Description {
    let usual = Description::default();
    let lock = random.within(1, horizon);
    let default_time_to_live = if random.percent(50) {
        Millis::MAX
    } else {
        Millis::from_millis(random.within(1, horizon * 3))
    };
    let requires_session = random.percent(35);
    let window = random
        .percent(20)
        .then(|| Millis::from_millis(random.within(1, horizon * 2)));
    Description {
        lock_duration: Millis::from_millis(lock),
        default_time_to_live,
        requires_session,
        detects_duplicates: window.is_some(),
        duplicate_window: window.unwrap_or(usual.duplicate_window),
        partitioned: random.percent(15),
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
