//! One run: turns of clients, time, faults, and the log; then everything is collected and counted.

use std::collections::BTreeSet;
use std::fmt;

use jitney_shard::limits;

use super::acts::ClientAction;
use super::clients::Clients;
use super::operations::Request;
use super::operators::Operators;
use super::plan::{self, FAULTS, Fault, LogPlace, Plan};
use super::random::Stream;
use super::receives::{Receivers, is_receive};
use super::sights::at_of;
use super::world::{Failed, Harness, Mode, Stop};

/// A run of one seed.
pub(super) struct Run {
    pub(super) turn: usize,
    pub(super) plan: Plan,
    pub(super) world: Harness,
    clients: Clients,
    operators: Operators,
    receivers: Receivers,
    random: Stream,
    /// When the clock is set, and by how much.
    clock: Stream,
    /// Which messages' bytes are damaged, and when.
    damage: Stream,
    restarts: usize,
    steps: usize,
    clock_steps: usize,
}

/// How much happened.
#[derive(Debug, Default)]
pub(super) struct Figures {
    runs: usize,
    turns: usize,
    steps: usize,
    restarts: usize,
    accepted: usize,
    checkpoints: usize,
    segments_removed: usize,
    relocated: usize,
    reads: usize,
    failed_reads: usize,
    clock_steps: usize,
    /// Runs in which bytes were damaged, the messages whose bytes were, and how often some lost them.
    damaged_runs: usize,
    damaged: usize,
    contained: usize,
    /// Runs that went by bytes, frames that their clients read, and acts that were no input in them.
    by_bytes: usize,
    frames: usize,
    unsaid: usize,
    /// Things that were kept back because a window was closed, or a client did not read.
    kept_back: usize,
    /// Jobs, messages that they changed, and messages that they left, of those that are remembered.
    jobs: u64,
    changed: u64,
    skipped: u64,
    /// Receives over HTTP that were begun, had a message, had one that came back, and were abandoned.
    received: [usize; 4],
    made_up: MadeUpIds,
}

/// The message-ids that were made up: those of different logs differ.
#[derive(Default)]
struct MadeUpIds(BTreeSet<u128>);

impl fmt::Debug for MadeUpIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.len())
    }
}

impl Figures {
    /// Adds what happened in a run with another log.
    pub(super) fn add(&mut self, other: &Self) -> Result<(), String> {
        for id in &other.made_up.0 {
            if !self.made_up.0.insert(*id) {
                return Err(format!(
                    "another log has made up the message-id {id:032x}, too"
                ));
            }
        }
        self.runs += other.runs;
        self.turns += other.turns;
        self.steps += other.steps;
        self.restarts += other.restarts;
        self.accepted += other.accepted;
        self.checkpoints += other.checkpoints;
        self.segments_removed += other.segments_removed;
        self.relocated += other.relocated;
        self.reads += other.reads;
        self.failed_reads += other.failed_reads;
        self.clock_steps += other.clock_steps;
        self.damaged_runs += other.damaged_runs;
        self.damaged += other.damaged;
        self.contained += other.contained;
        self.by_bytes += other.by_bytes;
        self.frames += other.frames;
        self.unsaid += other.unsaid;
        self.kept_back += other.kept_back;
        self.jobs += other.jobs;
        self.changed += other.changed;
        self.skipped += other.skipped;
        for (sum, more) in self.received.iter_mut().zip(other.received) {
            *sum += more;
        }
        Ok(())
    }
}

impl Run {
    pub(super) fn new(seed: u64, mode: Mode) -> Result<Self, String> {
        let plan = Plan::new(seed);
        if mode == Mode::Loud {
            println!("{plan:#?}");
        }
        Self::with(seed, plan, mode)
    }

    fn with(seed: u64, plan: Plan, mode: Mode) -> Result<Self, String> {
        let world = Harness::new(seed, plan.segment_bytes, &plan.entities, mode, plan.log);
        let mut world = world.map_err(|stop| format!("{stop:?}"))?;
        world.fail_reads(plan.unreadable);
        if 0 < plan.damage {
            world.expect_damage();
        }
        if plan.bytes {
            world.go_by_bytes(seed);
        }
        Ok(Self {
            turn: 0,
            clients: Clients::new(seed, &plan),
            operators: Operators::new(seed, &plan),
            receivers: Receivers::new(seed, &plan),
            random: Stream::new(seed, "run"),
            clock: Stream::new(seed, "clock"),
            damage: Stream::new(seed, "damage"),
            plan,
            world,
            restarts: 0,
            steps: 0,
            clock_steps: 0,
        })
    }

    /// Runs a seed's first turns with nothing going wrong but clients, and records all of it.
    pub(super) fn recorded(seed: u64, turns: usize) -> Result<Self, String> {
        let mut plan = Plan::new(seed);
        plan.faults.fill(0);
        plan.clock_steps = 0;
        plan.unreadable = 0;
        plan.damage = 0;
        plan.bytes = false;
        plan.log = LogPlace::Disk;
        plan.segment_bytes = plan.segment_bytes.min(8_192);
        plan.padding = plan.padding.min(600);
        let mut run = Self::with(seed, plan, Mode::Recorded)?;
        for _ in 0..turns {
            run.turn += 1;
            let turn = run.take_turn();
            run.survive(turn)?;
        }
        Ok(run)
    }

    pub(super) fn tail(&self) -> String {
        self.world.trace.tail()
    }

    pub(super) fn go(&mut self) -> Result<Figures, String> {
        while self.turn < self.plan.turns {
            self.turn += 1;
            let turn = self.take_turn();
            self.survive(turn)?;
        }
        // The end itself may be cut short.
        for _ in 0..10 {
            self.world.disk.kill();
            let end = self.collect();
            let ended = matches!(end, Err(Stop::Ends | Stop::Unreadable));
            self.survive(end)?;
            if !ended {
                break;
            }
            // It reads often, and is to come to its end.
            self.world.fail_reads(0);
        }
        self.account()?;
        let [frames, unsaid, kept_back] = self.world.by_bytes();
        let [jobs, changed, skipped] = self.world.auditor.jobs_done();
        let [checkpoints, segments_removed, relocated, reads] = self.world.maintenance();
        Ok(Figures {
            runs: 1,
            turns: self.turn,
            steps: self.steps,
            restarts: self.restarts,
            accepted: self.clients.ledger.accepted.len(),
            checkpoints,
            segments_removed,
            relocated,
            reads,
            failed_reads: self.world.disk.failed_reads(),
            clock_steps: self.clock_steps,
            damaged_runs: usize::from(0 < self.plan.damage),
            damaged: self.world.damage[0],
            contained: self.world.damage[1],
            by_bytes: usize::from(self.plan.bytes),
            frames,
            unsaid,
            kept_back,
            jobs,
            changed,
            skipped,
            received: self.world.received_figures(),
            made_up: MadeUpIds(self.clients.ledger.made_up.ids().collect()),
        })
    }

    /// A failed disk ends the process, and it starts again.
    fn survive(&mut self, result: Result<(), Stop>) -> Result<(), String> {
        match result {
            Ok(()) => Ok(()),
            Err(Stop::Wrong(error)) => Err(error),
            Err(Stop::Ends) => {
                let crashed = self.crash();
                self.survive(crashed)
            }
            Err(Stop::Unreadable) => {
                self.world.disk.kill();
                let restarted = self.restart();
                self.survive(restarted)
            }
        }
    }

    fn take_turn(&mut self) -> Result<(), Stop> {
        self.pass_time();
        self.set_clock()?;
        if self.random.percent(30) {
            self.step(&ClientAction::Timeout)?;
        }
        for _ in 0..self.random.below(4) {
            let messages = self.world.auditor.count();
            self.clients.act(self.world.now, messages);
        }
        self.operate()?;
        if let Some(act) = self.receivers.act()
            && self.world.takes_input()
        {
            self.world.receive(&act)?;
        }
        self.report()?;
        for _ in 0..self.random.below(self.plan.pump + 1) {
            if self.world.takes_input()
                && let Some(act) = self.clients.pump()
            {
                self.step(&act)?;
            }
        }
        if self.random.percent(90) {
            self.step(&ClientAction::Timeout)?;
        }
        if self.random.percent(self.plan.seal) {
            self.world.finish_turn()?;
        }
        if self.random.percent(self.plan.seal) {
            self.world.work()?;
        }
        self.advance_log()?;
        self.hear()?;
        self.go_wrong()
    }

    /// Time stands still, goes on a little, or is at what is due next, or a little before or after.
    fn pass_time(&mut self) {
        let now = self.world.now;
        let then = if self.random.percent(self.plan.jump) {
            let due = self.world.auditor.next_due();
            let due = due.or_else(|| self.world.wanted()).unwrap_or(now);
            match self.random.below(10) {
                0 => now + self.random.within(0, self.plan.horizon),
                1..=3 => due - 1,
                4..=6 => due,
                _ => due + 1,
            }
        } else {
            now + self.random.within(0, 2)
        };
        self.world.now = now.max(then);
    }

    /// Sets the clock now and then, ahead or back: while the broker runs, or while it is down.
    fn set_clock(&mut self) -> Result<(), Stop> {
        if self.clock.below(1_000) >= self.plan.clock_steps {
            return Ok(());
        }
        self.clock_steps += 1;
        let max = self.plan.clock_step_max;
        let millis = self.clock.within(1, max);
        let millis = if self.clock.percent(50) {
            -millis
        } else {
            millis
        };
        if self.clock.percent(70) {
            self.world.set_clock(millis);
            return Ok(());
        }
        self.world.set_clock_while_down(millis);
        self.crash()
    }

    /// The servers' ends of connections report what they have done by themselves.
    fn report(&mut self) -> Result<(), Stop> {
        while self.world.takes_input()
            && let Some(act) = self.world.reported()
        {
            self.step(&act)?;
        }
        while self.world.takes_input()
            && let Some(act) = self.world.returned()
        {
            self.world.receive(&act)?;
        }
        Ok(())
    }

    /// An operator may ask something.
    fn operate(&mut self) -> Result<(), Stop> {
        let request = self.operators.act(self.world.now, &self.world.auditor);
        match request {
            Some(request) if self.world.takes_input() => self.world.operate(&request),
            Some(_) | None => Ok(()),
        }
    }

    fn step(&mut self, act: &ClientAction) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps.is_multiple_of(limits::MAILBOX_DRAIN) {
            // The server ends a turn after so many inputs.
            self.world.finish_turn()?;
        }
        self.world.step(act)
    }

    fn advance_log(&mut self) -> Result<(), Stop> {
        if self.random.percent(self.plan.sync) {
            let count = 1 + self.random.index(4);
            self.world.write(count)?;
        }
        if self.random.percent(self.plan.sync) {
            self.world.sync()?;
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<(), Stop> {
        for (told, sight) in std::mem::take(&mut self.world.released) {
            let at = at_of(&sight);
            if is_receive(at) {
                self.receivers.hear(at);
                let place = self.world.place_of(at).expect("it was begun");
                self.clients.receive_unlinked(told, place, sight)?;
            } else {
                self.clients.hear(told, sight)?;
            }
        }
        for (_, outcome) in std::mem::take(&mut self.world.answers) {
            self.operators.hear(outcome);
        }
        Ok(())
    }

    fn go_wrong(&mut self) -> Result<(), Stop> {
        if self.damage.below(1_000) < self.plan.damage {
            self.world.damage_some(&mut self.damage);
        }
        for (at, fault) in FAULTS.iter().enumerate() {
            if self.random.below(1_000) < self.plan.faults[at] {
                self.world.trace.note(|| format!("fault: {fault:?}"));
                self.fault(*fault)?;
            }
        }
        Ok(())
    }

    fn fault(&mut self, fault: Fault) -> Result<(), Stop> {
        if self.world.is_in_rows() {
            match self.world.fail_rows(fault)? {
                Failed::Goes => return Ok(()),
                Failed::Ends => return self.restart(),
                Failed::Other => {}
            }
        }
        let disk = &self.world.disk;
        match fault {
            Fault::Crash => self.crash(),
            Fault::Kill => {
                disk.kill();
                self.restart()
            }
            Fault::Full => {
                if disk.is_full() {
                    disk.make_room();
                } else {
                    disk.fill();
                }
                Ok(())
            }
            Fault::Fuse => {
                disk.light_fuse(self.random.below(25));
                Ok(())
            }
            Fault::SyncFails => {
                disk.fail_next_sync();
                Ok(())
            }
            Fault::Store => self.world.lose_store(),
            Fault::Fenced => {
                self.world.fence()?;
                self.world.disk.kill();
                self.restart()
            }
            Fault::Stop => {
                self.world.finish_turn()?;
                self.world.sync_all()?;
                self.world.finish_turn()?;
                if self.world.is_clean() {
                    self.hear()?;
                    self.restart()?;
                }
                Ok(())
            }
            Fault::Describe if self.world.is_away() => Ok(()),
            Fault::Describe => {
                let at = self.random.index(self.plan.entities.len());
                let mut description = self.world.entities[at].description.clone();
                if self.random.percent(20) {
                    let planned = &self.plan.entities[at].description;
                    let forward = planned.forward_to.clone();
                    let forward_dead = planned.forward_dead_letters_to.clone();
                    let goes = self.random.percent(50);
                    description.forward_to = forward.filter(|_| goes);
                    description.forward_dead_letters_to = forward_dead.filter(|_| goes);
                    plan::fit_order(&mut description);
                } else if self.random.percent(50) {
                    use jitney_queue::Status;
                    let all = [
                        Status::Active,
                        Status::Disabled,
                        Status::ReceiveDisabled,
                        Status::SendDisabled,
                    ];
                    description.status = *self.random.pick(&all).expect("some");
                } else {
                    let before = description;
                    description = plan::describe(&mut self.random, self.plan.horizon);
                    description.status = before.status;
                    description.requires_session = before.requires_session;
                    description.partitioned = before.partitioned;
                    if !description.detects_duplicates {
                        description.duplicate_window = before.duplicate_window;
                    }
                    description.detects_duplicates = before.detects_duplicates;
                    description.kind = before.kind;
                    plan::fit_topic(&mut description);
                    plan::fit_order(&mut description);
                    description.forward_to = before.forward_to;
                    description.forward_dead_letters_to = before.forward_dead_letters_to;
                }
                self.world.describe(at, description)
            }
        }
    }

    fn crash(&mut self) -> Result<(), Stop> {
        self.world.disk.crash();
        self.restart()
    }

    /// Starts again until it lasts, and looks at everything.
    fn restart(&mut self) -> Result<(), Stop> {
        self.restarts += 1;
        loop {
            // Those who looked at everything when the last start ended are gone, too.
            self.hear()?;
            self.clients.lost();
            self.receivers.lost();
            if self.random.percent(5) {
                self.world.disk.light_fuse(self.random.below(4));
            }
            let started = self.world.restart().and_then(|()| self.inspect());
            match started {
                Err(Stop::Ends) => self.world.disk.crash(),
                Err(Stop::Unreadable) => self.world.disk.kill(),
                other => return other,
            }
        }
    }

    fn inspect(&mut self) -> Result<(), Stop> {
        for act in self.clients.inspect() {
            self.step(&act)?;
        }
        if 0 < self.plan.jobs {
            self.world.operate(&Request::Jobs)?;
        }
        Ok(())
    }

    /// Lets everything come to its end, and takes everything out.
    fn collect(&mut self) -> Result<(), Stop> {
        let world = &mut self.world;
        world.trace.note(|| "everything is collected".to_owned());
        world.disk.make_room();
        if world.is_in_rows() {
            world.sync_all()?;
        } else if world.is_away() {
            world.lose_store()?;
        }
        let world = &mut self.world;
        for at in 0..world.entities.len() {
            let mut description = world.entities[at].description.clone();
            description.status = jitney_queue::Status::Active;
            world.describe(at, description)?;
        }
        while self.clients.is_busy() {
            if let Some(act) = self.clients.pump() {
                self.step(&act)?;
            }
        }
        self.settle_log()?;
        for act in self.receivers.leave() {
            self.world.receive(&act)?;
        }
        for act in self.clients.leave() {
            self.step(&act)?;
        }
        self.inspect()?;
        while let Some(due) = self.world.auditor.next_due() {
            self.world.now = self.world.now.max(due);
            self.step(&ClientAction::Timeout)?;
            self.world.work_all()?;
            if self.random.percent(5) {
                self.settle_log()?;
            }
        }
        self.world.work_all()?;
        // Dead letters that their target does not take can be received where they are, if they have none.
        for at in 0..self.plan.entities.len() {
            let mut description = self.world.entities[at].description.clone();
            if description.forward_dead_letters_to.take().is_some() {
                self.world.describe(at, description)?;
            }
        }
        self.settle_log()?;
        self.inspect()?;
        self.settle_log()?;
        for act in self.clients.collect() {
            self.step(&act)?;
        }
        self.settle_log()?;
        loop {
            let acts = self.clients.read_all();
            let is_silent = !self.world.has_reports()
                && !self.world.has_returned()
                && !self.world.has_unwritten();
            self.report()?;
            if acts.is_empty() && is_silent {
                self.inspect()?;
                return self.settle_log();
            }
            for act in acts {
                self.step(&act)?;
            }
            self.settle_log()?;
        }
    }

    /// Everything that was done becomes durable, and everybody is told.
    fn settle_log(&mut self) -> Result<(), Stop> {
        self.world.work_all()?;
        self.world.sync_all()?;
        // What was durable has left; what comes of that is made durable too.
        self.world.work_all()?;
        self.world.sync_all()?;
        self.world.finish_turn()?;
        self.world.read_all()?;
        self.hear()
    }

    fn account(&mut self) -> Result<(), String> {
        self.world.check_released()?;
        let left = self.world.auditor.count();
        if left > 0 {
            return Err(format!("{left} messages cannot be collected"));
        }
        for &id in &self.clients.ledger.accepted {
            if !self.world.auditor.accounts_for(id) {
                return Err(format!(
                    "message m{id} was accepted, and nobody knows where it is"
                ));
            }
        }
        let running = self.world.auditor.running_jobs();
        if !running.is_empty() {
            return Err(format!("jobs that never end: {running:?}"));
        }
        let unanswered = self.world.auditor.unanswered();
        if unanswered.is_empty() {
            Ok(())
        } else {
            Err(format!("requests without an answer: {unanswered:?}"))
        }
    }
}
