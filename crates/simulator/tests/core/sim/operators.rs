//! The operators: they begin jobs, look at them, cancel some, and settle what clients have left.

use jitney_base::ids::LockToken;

use super::acts::{Part, Place, SESSIONS, Session, Verdict};
use super::audit::{Auditor, Outcome};
use super::operations::{Body, Change, Chosen, Paint, Request, Work};
use super::plan::Plan;
use super::random::Stream;

/// All operators.
pub(super) struct Operators {
    random: Stream,
    plan: Plan,
    /// Jobs that somebody was told of, the newest last.
    jobs: Vec<u64>,
    /// Locks of theirs.
    locked: Vec<(Place, LockToken)>,
}

impl Operators {
    pub(super) fn new(seed: u64, plan: &Plan) -> Self {
        Self {
            random: Stream::new(seed, "operators"),
            plan: plan.clone(),
            jobs: Vec::new(),
            locked: Vec::new(),
        }
    }

    /// Somebody may ask something, by what there is.
    pub(super) fn act(&mut self, now: i64, auditor: &Auditor) -> Option<Request> {
        if self.plan.jobs <= self.random.below(1_000) {
            return None;
        }
        match self.random.weighted(&[50, 20, 5, 12, 10, 10]) {
            0 => Some(Request::Begin(Box::new(self.work(now, auditor)))),
            1 => Some(Request::Look(self.job(auditor))),
            2 => Some(Request::Jobs),
            3 => Some(Request::Cancel(self.job(auditor))),
            4 => self.receive(&auditor.deferred()),
            _ => self.settle(),
        }
    }

    /// Takes what somebody was answered.
    pub(super) fn hear(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Nothing => {}
            Outcome::Jobs(jobs) => {
                self.jobs.retain(|id| !jobs.contains(id));
                self.jobs.extend(jobs);
            }
            Outcome::Locked(place, locked) => {
                let tokens = locked.into_iter().map(|(_, token)| (place, token));
                self.locked.extend(tokens);
            }
        }
    }

    /// Picks a job, most often one that runs; seldom one that was never begun.
    fn job(&mut self, auditor: &Auditor) -> u64 {
        let running = auditor.running_jobs();
        let from = if self.random.percent(70) && !running.is_empty() {
            &running
        } else {
            &self.jobs
        };
        let picked = self.random.pick(from).copied();
        picked.unwrap_or_else(|| self.random.below(4))
    }

    /// Picks a queue, most often one with messages, and among these one with many.
    fn place(&mut self, auditor: &Auditor) -> Place {
        let rolls_over = self.plan.entities.iter().any(|planned| planned.first != 1);
        let filled = auditor.filled();
        // A dead-letter queue that begins with numbers before a roll-over knows of none that come first.
        let filled = filled
            .iter()
            .filter(|(place, _)| !rolls_over || !place.is_dead());
        let (places, weights): (Vec<Place>, Vec<u64>) = filled.copied().unzip();
        if !places.is_empty() && self.random.percent(90) {
            return places[self.random.weighted(&weights)];
        }
        let queue = self.random.index(self.plan.entities.len());
        let part = match self.random.below(100) {
            _ if rolls_over => Part::Main,
            0..45 => Part::Dead,
            45..50 => Part::Transfer,
            _ => Part::Main,
        };
        Place { queue, part }
    }

    fn work(&mut self, now: i64, auditor: &Auditor) -> Work {
        let place = self.place(auditor);
        let work = Work {
            place,
            chosen: self.chosen(now, place, auditor),
            change: self.change(now, place),
            most: self.random.percent(15).then(|| 1 + self.random.below(6)),
        };
        // What a job does that meets damaged bytes depends on where they are: in memory they are whole.
        if 0 < self.plan.damage && work.needs_bytes() {
            let chosen = Chosen::default();
            let change = Change::Activate;
            return Work {
                chosen,
                change,
                ..work
            };
        }
        work
    }

    fn change(&mut self, now: i64, place: Place) -> Change {
        let weights = if place.is_dead() {
            [15, 70, 5, 5, 5]
        } else {
            [10, 25, 15, 25, 15]
        };
        let random = &mut self.random;
        match random.weighted(&weights) {
            0 => Change::Delete,
            1 => self.moved(place),
            2 => Change::DeadLetter {
                reason: random.percent(70).then(|| "because".to_owned()),
                description: random.percent(50).then(|| "an operator says so".to_owned()),
            },
            3 => Change::Activate,
            _ => {
                let horizon = self.plan.horizon;
                Change::Reschedule(now + random.within(-horizon / 4, horizon))
            }
        }
    }

    fn moved(&mut self, place: Place) -> Change {
        let random = &mut self.random;
        let stays = if place.is_dead() { 50 } else { 5 };
        let to = (!random.percent(stays)).then(|| random.index(self.plan.entities.len()));
        let paint = match random.below(10) {
            0..2 => Some(Paint::Set(format!("c{}", random.below(4)))),
            2 => Some(Paint::Strip),
            _ => None,
        };
        // How large a message is that the broker has written is not said, and must not matter.
        let body = match random.below(8) {
            0 => Some(Body::Text("again")),
            1 => Some(Body::Color),
            _ => None,
        };
        Change::Move {
            to,
            paint,
            body: body.filter(|_| self.plan.has_room()),
        }
    }

    /// Chooses messages: all of a queue, or those that meet one or two conditions.
    fn chosen(&mut self, now: i64, place: Place, auditor: &Auditor) -> Chosen {
        let mut chosen = Chosen::default();
        let conditions = *self.random.pick(&[0, 0, 1, 1, 2]).expect("some");
        for _ in 0..conditions {
            let horizon = self.plan.horizon;
            let random = &mut self.random;
            match random.below(9) {
                0 => chosen.states = vec![0],
                1 => chosen.states = vec![1, 2],
                2 => {
                    let there = auditor.numbers(place);
                    let some = (0..6).filter_map(|_| random.pick(&there).copied());
                    chosen.numbers.extend(some);
                    chosen.numbers.push(random.within(1, 60));
                }
                3 => {
                    let session = random.below(u64::from(SESSIONS));
                    chosen.session = Session::try_from(session).ok();
                }
                4 => chosen.from = Some(now - random.within(0, horizon)),
                5 => chosen.before = Some(now - random.within(0, horizon)),
                6 => chosen.color = Some(format!("c{}", random.below(4))),
                7 if place.is_dead() => chosen.reason = Some("because".to_owned()),
                7 => chosen.message_id = Some(format!("m{}", 1 + random.below(60))),
                // A search in large bodies ends a turn early.
                _ if 1_000 < self.plan.padding => {}
                _ => chosen.text = Some("again".to_owned()).filter(|_| random.percent(30)),
            }
        }
        chosen
    }

    fn receive(&mut self, deferred: &[(Place, i64)]) -> Option<Request> {
        let recent = &deferred[deferred.len().saturating_sub(12)..];
        let &(place, number) = self.random.pick(recent)?;
        let mut numbers = vec![number];
        for &(of, number) in recent {
            if of == place && self.random.percent(25) {
                numbers.push(number);
            }
        }
        // One beside it, which may be active, scheduled, locked or gone.
        if self.random.percent(40) {
            numbers.push(number + self.random.within(1, 3));
        }
        Some(Request::Lock { place, numbers })
    }

    fn settle(&mut self) -> Option<Request> {
        let recent = &self.locked[self.locked.len().saturating_sub(8)..];
        let &(place, _) = self.random.pick(recent)?;
        let of_place = recent.iter().filter(|(of, _)| *of == place);
        let tokens: Vec<LockToken> = of_place.map(|(_, token)| *token).collect();
        let verdicts = tokens.into_iter().map(|token| {
            let verdict = match self.random.below(4) {
                0 => Verdict::Abandon([("again".to_owned(), "yes".to_owned())].into()),
                1 => Verdict::Defer([].into()),
                2 => Verdict::DeadLetter {
                    reason: Some("because".to_owned()),
                    description: None,
                    properties: [].into(),
                },
                _ => Verdict::Complete,
            };
            (token, verdict)
        });
        let settlements = verdicts.collect();
        Some(Request::Settle { place, settlements })
    }
}

impl Plan {
    /// Returns whether no queue is ever full, and takes messages of any size that there are.
    fn has_room(&self) -> bool {
        let usual = jitney_queue::Description::default();
        let mut entities = self.entities.iter().map(|planned| &planned.description);
        let is_usual = entities.all(|it| {
            let bounds = (it.max_bytes, it.max_message_bytes);
            bounds == (usual.max_bytes, usual.max_message_bytes)
        });
        is_usual && self.padding < 1_000 && !self.describes()
    }
}
