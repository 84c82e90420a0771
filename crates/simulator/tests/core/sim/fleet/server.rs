//! One server of a fleet: the crate `cluster` decides, and this does what `src/store` does, without sessions and tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jitney_cluster::heartbeat::{
    HeartbeatEffect, HeartbeatRequest, HeartbeatStep, Moment, Progress,
};
use jitney_cluster::lease::Lease;
use jitney_cluster::member::{MemberState, counted_death};
use jitney_cluster::planner::{NamespaceKey, Planner};
use jitney_cluster::poll::Correction;
use jitney_cluster::view::{FleetView, StoreView, cluster_view};
use jitney_cluster::{clocks, deaths, limits};

use super::database::{Answer, Statement};

/// How long it takes to read a log that is taken over.
const READ: u64 = 120;
/// How long it takes to close the connections of a namespace that is released.
const CLOSE: u64 = 60;
/// The time between two appends of one namespace.
const APPEND: u64 = 150;

/// The process of a server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: String,
    /// The identity of the database that it has met at its start.
    pub(super) identity: Option<u64>,
    /// How far its clock is ahead of the time, in milliseconds.
    pub(super) clock_offset: i64,
    pub(super) state: MemberState,
    lease: Arc<Lease>,
    planner: Planner,
    view: Arc<StoreView>,
    served: BTreeMap<i64, Served>,
    /// Namespaces that wait for others to be taken over.
    waiting: BTreeSet<i64>,
    taking: BTreeSet<i64>,
    is_polling: bool,
    sends_heartbeat: bool,
    is_leaving: bool,
    /// How often it has entered, so that incarnations differ.
    entered: u64,
    process: u64,
    pub(super) outputs: Vec<Output>,
}

#[derive(Debug, Clone, Copy)]
struct Served {
    epoch: i64,
    next: u64,
    is_appending: bool,
}

/// What a server does.
#[derive(Debug)]
pub(super) enum Output {
    Ask(Purpose, Statement),
    After(u64, Timer),
    Acknowledged(i64, u64),
    /// It has left in good order.
    Left,
}

#[derive(Debug, Clone)]
pub(super) enum Timer {
    Append(i64, i64),
    Close(i64, i64),
    Heartbeat,
    Poll,
    /// The log of a namespace is read: its number, its epoch, the last number in it, and the lease of the incarnation that took it.
    Read(i64, i64, u64, Arc<Lease>),
}

/// What an answer is for.
#[derive(Debug, Clone)]
pub(super) enum Purpose {
    Append(i64, i64, u64),
    /// The first group of a new owner: its number, its epoch, the last number of its log, and the lease of the incarnation that took
    /// it.
    Barrier(i64, i64, u64, Arc<Lease>),
    /// After it, the store is polled again.
    DeclareDead,
    Follow,
    Forgive,
    /// When it was asked.
    Heartbeat(HeartbeatRequest, u64),
    Leave,
    /// When it was asked.
    Poll(u64),
    PollAgain,
    Release(i64),
    Take(i64, Arc<Lease>),
}

impl Server {
    pub(super) fn new(name: String, process: u64, clock_offset: i64) -> Self {
        Self {
            name,
            identity: None,
            clock_offset,
            state: MemberState::default(),
            lease: Arc::new(Lease::default()),
            planner: Planner::default(),
            view: Arc::default(),
            served: BTreeMap::new(),
            waiting: BTreeSet::new(),
            taking: BTreeSet::new(),
            is_polling: false,
            sends_heartbeat: false,
            is_leaving: false,
            entered: 0,
            process,
            outputs: vec![
                Output::After(0, Timer::Heartbeat),
                Output::After(7, Timer::Poll),
            ],
        }
    }

    /// Returns the namespaces for which it answers clients.
    pub(super) fn answers_for(&self, now: u64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let holds = self.lease.holds(now);
        let served = self.served.iter().filter(move |_| holds);
        served.map(|(id, it)| (*id, it.epoch))
    }

    pub(super) fn has(&self, id: i64) -> bool {
        self.served.contains_key(&id)
    }

    fn ask(&mut self, purpose: Purpose, statement: Statement) {
        self.outputs.push(Output::Ask(purpose, statement));
    }

    fn after(&mut self, millis: u64, timer: Timer) {
        self.outputs.push(Output::After(millis, timer));
    }

    /// Begins to leave in good order.
    pub(super) fn leave(&mut self) {
        self.is_leaving = true;
        self.state.has_left = true;
        self.served.clear();
        self.ask(
            Purpose::Leave,
            Statement::Leave(self.state.incarnation.clone()),
        );
    }

    pub(super) fn timer(&mut self, now: u64, timer: Timer) {
        match timer {
            Timer::Append(id, epoch) => {
                let Some(served) = self.served.get_mut(&id).filter(|it| it.epoch == epoch) else {
                    return;
                };
                if !served.is_appending && self.lease.holds(now) {
                    served.is_appending = true;
                    let number = served.next;
                    self.ask(
                        Purpose::Append(id, epoch, number),
                        Statement::Append { id, epoch, number },
                    );
                }
                self.after(APPEND, Timer::Append(id, epoch));
            }
            Timer::Close(id, epoch) => {
                self.ask(Purpose::Release(id), Statement::Release { id, epoch });
            }
            Timer::Heartbeat => {
                self.after(millis(limits::HEARTBEAT.as_duration()), Timer::Heartbeat);
                if self.sends_heartbeat {
                    return;
                }
                if let Some(request) = self.state.next_heartbeat(Progress::Made) {
                    self.sends_heartbeat = true;
                    self.heartbeat(now, request);
                }
            }
            Timer::Poll => {
                self.after(millis(limits::HEARTBEAT.as_duration()), Timer::Poll);
                if !self.is_polling && !self.is_leaving {
                    self.is_polling = true;
                    self.ask(Purpose::Poll(now), Statement::Poll);
                }
            }
            Timer::Read(id, epoch, last, lease) => {
                let statement = Statement::Barrier { id, epoch };
                self.ask(Purpose::Barrier(id, epoch, last, lease), statement);
            }
        }
        self.take_waiting();
    }

    fn heartbeat(&mut self, now: u64, request: HeartbeatRequest) {
        let statement = Statement::Heartbeat(request.clone());
        self.ask(Purpose::Heartbeat(request, now), statement);
    }

    /// Takes an answer; `clock` is the database's time when it answered.
    pub(super) fn answered(&mut self, now: u64, clock: i64, purpose: Purpose, answer: Answer) {
        if matches!(answer, Answer::Replaced) {
            self.failed(now, &purpose);
            let step = self.state.replaced();
            self.follow(now, step);
            return;
        }
        match (purpose, answer) {
            (Purpose::Append(id, epoch, number), Answer::Appended(is_current)) => {
                let Some(served) = self.served.get_mut(&id).filter(|it| it.epoch == epoch) else {
                    return;
                };
                served.is_appending = false;
                served.next = number + 1;
                if !is_current {
                    self.served.remove(&id);
                } else if self.lease.holds(now) {
                    self.outputs.push(Output::Acknowledged(id, number));
                }
            }
            (Purpose::Barrier(id, epoch, last, lease), Answer::Appended(is_current)) => {
                self.planner.acquired(key(id));
                self.taking.remove(&id);
                if is_current && self.state.may_serve(&lease) {
                    let served = Served {
                        epoch,
                        next: last + 1,
                        is_appending: false,
                    };
                    self.served.insert(id, served);
                    self.after(APPEND, Timer::Append(id, epoch));
                }
            }
            (Purpose::DeclareDead, Answer::Done) => {
                self.ask(Purpose::PollAgain, Statement::Poll);
            }
            (Purpose::Heartbeat(request, sent), answer) => {
                self.heard(request, sent, now, answer);
            }
            (Purpose::Leave, Answer::Done) => self.outputs.push(Output::Left),
            (Purpose::Poll(asked), Answer::Polled(view)) => self.polled(now, asked, clock, view),
            (Purpose::PollAgain, Answer::Polled(view)) => self.publish(now, view),
            (Purpose::Release(id), Answer::Done) => self.planner.released(key(id)),
            (Purpose::Take(id, lease), Answer::Taken(taken)) => self.taken(id, lease, taken),
            (Purpose::Follow, _) => {}
            (Purpose::Forgive, _) => self.state.forgiven(),
            (purpose, answer) => panic!("{purpose:?} is not answered by {answer:?}"),
        }
        self.take_waiting();
    }

    /// No answer has come in time.
    pub(super) fn failed(&mut self, now: u64, purpose: &Purpose) {
        match purpose {
            Purpose::Append(id, epoch, _) => {
                // It is found out on another session what became of it: it is asked again.
                if let Some(served) = self.served.get_mut(id)
                    && served.epoch == *epoch
                {
                    served.is_appending = false;
                }
            }
            Purpose::Heartbeat(request, _) => {
                let step = self.state.heartbeat_failed(request);
                self.follow(now, step);
            }
            Purpose::DeclareDead | Purpose::Poll(_) | Purpose::PollAgain => {
                self.is_polling = false;
                let mut view = StoreView::clone(&self.view);
                view.is_reached = false;
                self.view = Arc::new(view);
            }
            Purpose::Release(id) => self.planner.released(key(*id)),
            Purpose::Barrier(id, ..) | Purpose::Take(id, _) => {
                self.planner.acquired(key(*id));
                self.taking.remove(id);
            }
            // It has done what it could.
            Purpose::Leave => self.outputs.push(Output::Left),
            Purpose::Follow | Purpose::Forgive => {}
        }
    }

    fn heard(&mut self, request: HeartbeatRequest, sent: u64, now: u64, answer: Answer) {
        let step = match (request, answer) {
            (HeartbeatRequest::ReadName, Answer::Name(row)) => {
                self.entered += 1;
                let incarnation = format!("{}/{}/{}", self.name, self.process, self.entered);
                self.state.name_read(since(now), row, incarnation)
            }
            (HeartbeatRequest::Enter(entry), Answer::Entered(Some(deaths))) => {
                self.state.entered(since(now), entry, deaths)
            }
            (request @ HeartbeatRequest::Enter(_), Answer::Entered(None)) => {
                self.state.heartbeat_failed(&request)
            }
            (HeartbeatRequest::Beat(_), Answer::Heartbeat(found)) => {
                let at = Moment {
                    sent,
                    now,
                    server: &self.name,
                    view: &self.view,
                };
                self.state.beaten(at, found)
            }
            (HeartbeatRequest::ReleaseAll(_), Answer::ReleasedAll(deaths)) => {
                self.state.all_released(since(now), deaths)
            }
            (request, answer) => panic!("{request:?} is not answered by {answer:?}"),
        };
        self.follow(now, step);
    }

    /// Does what follows from an answer to a heartbeat.
    fn follow(&mut self, now: u64, step: HeartbeatStep) {
        match step.effect {
            None | Some(HeartbeatEffect::Waits(_)) => {}
            Some(HeartbeatEffect::Joined(_)) => self.lease = Arc::new(Lease::begun()),
            Some(HeartbeatEffect::Renew(sent) | HeartbeatEffect::RenewWell(sent)) => {
                self.lease.renew(sent);
            }
            Some(HeartbeatEffect::Released(_)) => self.served.clear(),
            Some(HeartbeatEffect::Lost) => {
                self.lease.end();
                self.served.clear();
            }
            Some(HeartbeatEffect::Replaced) => {
                self.lease.end();
                self.served.clear();
                self.view = Arc::default();
            }
        }
        match step.next {
            Some(request) => self.heartbeat(now, request),
            None => self.sends_heartbeat = false,
        }
    }

    fn polled(&mut self, now: u64, asked: u64, clock: i64, mut view: StoreView) {
        let own_clock = i64::try_from(asked).unwrap() + self.clock_offset;
        let took = i64::try_from(now - asked).unwrap();
        let offset = clocks::offset_of(own_clock, clock, took);
        self.state.clock.compare(offset);
        let fitness = self.state.fitness_to_tell(since(now), &mut view.servers);
        if let Some((incarnation, fitness)) = fitness {
            self.ask(Purpose::Follow, Statement::Fitness(incarnation, fitness));
        }
        let dead = self.state.silent(since(now), &self.name, &view.servers);
        if dead.is_empty() {
            self.publish(now, view);
            return;
        }
        let dead = dead.into_iter();
        let dead = dead.map(|it| (it.name.clone(), it.incarnation.clone(), it.beat));
        self.ask(Purpose::DeclareDead, Statement::DeclareDead(dead.collect()));
    }

    /// Takes what a poll has found, and decides.
    fn publish(&mut self, now: u64, view: StoreView) {
        self.is_polling = false;
        if self.state.is_replaced || self.is_leaving {
            return;
        }
        self.served.retain(|id, served| {
            let row = view.namespaces.values().find(|it| it.id == *id);
            row.is_some_and(|row| !row.is_taken_from(&self.name, served.epoch))
        });
        let served: Vec<i64> = self.served.keys().copied().collect();
        for correction in self.state.corrections(since(now), &view, &served) {
            let purpose = match correction {
                Correction::Forgive(_) => Purpose::Forgive,
                Correction::Forget(_) | Correction::EndPause(..) | Correction::CountAnew { .. } => {
                    Purpose::Follow
                }
            };
            self.ask(purpose, Statement::Correct(correction));
        }
        self.view = Arc::new(view);
        self.decide(now);
    }

    fn decide(&mut self, now: u64) {
        let view = FleetView {
            stores: vec![Arc::clone(&self.view)],
        };
        let view = cluster_view(&view);
        let own = view.members.iter().position(|it| it.name == self.name);
        let served = self.served.keys().map(|id| key(*id)).collect();
        let decision = self.planner.decide(since(now), own, view, &served);
        for key in decision.acquire {
            if self.state.may_take() {
                self.waiting.insert(key.id);
            } else {
                self.planner.acquired(key);
            }
        }
        for NamespaceKey { id, .. } in decision.give_back {
            let incarnation = self.state.incarnation.clone();
            self.ask(Purpose::Release(id), Statement::GiveBack(id, incarnation));
        }
        for NamespaceKey { id, .. } in decision.release {
            if let Some(served) = self.served.remove(&id) {
                self.after(CLOSE, Timer::Close(id, served.epoch));
            }
        }
        self.take_waiting();
    }

    /// Takes over as many at a time as a server does.
    fn take_waiting(&mut self) {
        while self.taking.len() < limits::TAKEOVERS_AT_ONCE
            && let Some(id) = self.waiting.pop_first()
        {
            let view = Arc::clone(&self.view);
            let Some(row) = self.state.acquirable(&self.name, &view, id) else {
                self.planner.acquired(key(id));
                continue;
            };
            self.taking.insert(id);
            let statement = Statement::Take {
                id,
                epoch: row.epoch,
                incarnation: self.state.incarnation.clone(),
                dead: counted_death(&self.name, row).map(str::to_owned),
            };
            self.ask(Purpose::Take(id, Arc::clone(&self.lease)), statement);
        }
    }

    fn taken(&mut self, id: i64, lease: Arc<Lease>, taken: Option<(i64, i32, u64)>) {
        match taken {
            Some((_, deaths, _)) if deaths::is_deadly(deaths) => {
                let incarnation = self.state.incarnation.clone();
                self.ask(Purpose::Follow, Statement::Quarantine(id, incarnation));
            }
            Some((epoch, _, last)) => {
                self.after(READ, Timer::Read(id, epoch, last, lease));
                return;
            }
            None => {}
        }
        self.planner.acquired(key(id));
        self.taking.remove(&id);
    }
}

fn key(id: i64) -> NamespaceKey {
    NamespaceKey { store: 0, id }
}

pub(super) fn since(now: u64) -> Duration {
    Duration::from_millis(now)
}

pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap()
}
