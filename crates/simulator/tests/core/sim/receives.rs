//! Clients without links, who receive over HTTP: some leave, some must end, and operators end the receives of some.

use jitney_base::ids::LockToken;

use super::acts::{LinkKey, Part, Place};
use super::plan::Plan;
use super::random::Stream;

/// What stands for a connection where there is none.
pub(super) const NO_CONNECTION: u32 = 0;

/// The number of the first receive: operators' requests have others.
const FIRST: u32 = 1 << 20;

/// Receives that clients remember.
const REMEMBERED: usize = 8;

/// Something that happens to a receive, which goes by the link that it would have.
#[derive(Debug, Clone, Copy)]
pub(super) enum Receiving {
    Begin {
        at: LinkKey,
        place: Place,
        delete: bool,
        /// How long it waits, in milliseconds.
        wait: i64,
    },
    /// It is to wait no longer: its client has left, or only its connection ends.
    Cancel { at: LinkKey, has_left: bool },
    /// An operator ends it.
    End { at: LinkKey },
    /// Its message has not reached its client.
    Return {
        at: LinkKey,
        place: Place,
        token: LockToken,
    },
}

/// All clients without links.
pub(super) struct Receivers {
    random: Stream,
    plan: Plan,
    /// Receives that may wait still, the newest last.
    begun: Vec<LinkKey>,
    next: u32,
}

/// Returns whether something is told to a receive.
pub(super) fn is_receive(at: LinkKey) -> bool {
    at.connection == NO_CONNECTION
}

impl Receivers {
    pub(super) fn new(seed: u64, plan: &Plan) -> Self {
        Self {
            random: Stream::new(seed, "receives"),
            plan: plan.clone(),
            begun: Vec::new(),
            next: FIRST,
        }
    }

    /// Somebody may do something.
    pub(super) fn act(&mut self) -> Option<Receiving> {
        if self.plan.receives <= self.random.below(1_000) {
            return None;
        }
        let random = &mut self.random;
        match random.weighted(&[60, 25, 15]) {
            0 => Some(self.begin()),
            1 => {
                let at = *random.pick(&self.begun)?;
                let has_left = random.percent(50);
                Some(Receiving::Cancel { at, has_left })
            }
            _ => Some(Receiving::End {
                at: *random.pick(&self.begun)?,
            }),
        }
    }

    /// All clients leave.
    pub(super) fn leave(&mut self) -> Vec<Receiving> {
        let begun = self.begun.drain(..);
        let leave = begun.map(|at| Receiving::Cancel { at, has_left: true });
        leave.collect()
    }

    /// The broker has gone, and with it all receives.
    pub(super) fn lost(&mut self) {
        self.begun.clear();
    }

    /// A receive is answered.
    pub(super) fn hear(&mut self, at: LinkKey) {
        self.begun.retain(|it| *it != at);
    }

    fn begin(&mut self) -> Receiving {
        let random = &mut self.random;
        // Seldom one that is not there.
        let beyond = usize::from(random.percent(3));
        let queue = random.index(self.plan.entities.len() + beyond);
        let part = match random.below(20) {
            0..6 => Part::Dead,
            6 => Part::Transfer,
            _ => Part::Main,
        };
        let at = LinkKey {
            connection: NO_CONNECTION,
            link: self.next,
        };
        self.next += 1;
        if self.begun.len() == REMEMBERED {
            self.begun.remove(0);
        }
        self.begun.push(at);
        let is_short = random.percent(20);
        Receiving::Begin {
            at,
            place: Place { queue, part },
            delete: random.percent(30),
            wait: if is_short {
                0
            } else {
                random.within(0, self.plan.horizon)
            },
        }
    }
}
