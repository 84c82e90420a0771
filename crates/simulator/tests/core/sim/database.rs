//! A model of the database that a log in rows is in: a primary, two standbys of which one must have a transaction before
//! it is answered, and sessions that outlive their clients.
//!
//! It knows of PostgreSQL what logs depend on. A session executes its statements in their order, each as a transaction
//! that reads what was committed before it began. A statement that needs a namespace's claim holds it until its commit is
//! answered, and one that changes the claim waits for those that hold it. A commit is in the primary's own log before it
//! is seen by others: it waits for a standby between. A wait that is cancelled ends with a warning, and a session that is
//! terminated in it has committed without an answer. A standby that is promoted has a prefix of the primary's log.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard};

use jitney_journal::SegmentId;
use jitney_journal::appender::{Answer, Append, AppendAnswer, Appended, Claim};
use jitney_journal::rows::{Row, RowPlace};

use super::random::Stream;

/// A number of a session.
pub(super) type SessionId = u32;

/// The database with its standbys.
#[derive(Debug)]
pub(super) struct Database {
    inner: Mutex<Inner>,
}

/// A statement of a session.
#[derive(Debug, Clone)]
pub(super) enum Statement {
    Append(Append),
    Take { epoch: i64, to: u128 },
    Raise { from: Claim, to: u128 },
    Claim,
    Rows { from: u64 },
    Barrier(Claim),
    Quarantine(String),
}

/// What a session was answered.
#[derive(Debug)]
pub(super) enum Said {
    ToAppend(AppendAnswer),
    ToQuestion(Answer),
}

/// A change that was committed.
#[derive(Debug, Clone)]
enum Change {
    Claim(Claim),
    Row(Row, i64),
    Chunk(u64, usize, Vec<u8>),
    Checkpoint(u64),
    RemoveCheckpoint(u64),
    RemoveSegment(SegmentId),
    Barrier,
    Quarantine(String),
}

/// What the tables have.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    pub(super) claim: Claim,
    rows: BTreeMap<u64, (Row, i64)>,
    chunks: BTreeMap<u64, BTreeMap<usize, Vec<u8>>>,
    pub(super) checkpoints: BTreeSet<u64>,
    pub(super) quarantined: Option<String>,
}

#[derive(Debug)]
struct Inner {
    random: Stream,
    /// What was committed, in the order of the primary's log.
    log: Vec<Change>,
    /// How much of it each standby has.
    standbys: [usize; 2],
    /// What statements see.
    tables: Tables,
    sessions: BTreeMap<SessionId, Session>,
    next: SessionId,
}

#[derive(Debug, Default)]
struct Session {
    waiting: VecDeque<Statement>,
    /// A statement whose commit waits for a standby: its place in the log, and its answer.
    committing: Option<(usize, Said)>,
    /// It holds the claim until then, or it changes the claim.
    holds: Hold,
    answers: VecDeque<Said>,
    /// Its client is gone, and it does not know that.
    is_deserted: bool,
    /// It has stopped in the middle of a statement, and holds what that locked.
    is_stuck: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Hold {
    #[default]
    Nothing,
    Shared,
    Exclusive,
}

impl Tables {
    fn new() -> Self {
        Self {
            claim: Claim { epoch: 0, owner: 0 },
            rows: BTreeMap::new(),
            chunks: BTreeMap::new(),
            checkpoints: BTreeSet::new(),
            quarantined: None,
        }
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Claim(claim) => self.claim = *claim,
            Change::Row(row, id) => drop(self.rows.insert(row.position, (row.clone(), *id))),
            Change::Chunk(number, part, bytes) => {
                let parts = self.chunks.entry(*number).or_default();
                parts.insert(*part, bytes.clone());
            }
            Change::Checkpoint(number) => drop(self.checkpoints.insert(*number)),
            Change::RemoveCheckpoint(number) => {
                self.checkpoints = self.checkpoints.split_off(&(number + 1));
                self.chunks = self.chunks.split_off(&(number + 1));
            }
            Change::RemoveSegment(segment) => {
                self.rows
                    .retain(|_, (row, _)| row.place().segment() != *segment);
            }
            Change::Barrier => {}
            Change::Quarantine(why) => self.quarantined = Some(why.clone()),
        }
    }

    /// Returns whether a row is there, by its place and its number.
    fn has(&self, row: Appended) -> bool {
        if row == Appended::ROOT {
            return true;
        }
        let found = self.rows.get(&row.place.position);
        found.is_some_and(|(_, id)| *id == row.id)
    }

    fn appended(&self, from: u64) -> Vec<Appended> {
        let root = Some(Appended::ROOT).filter(|root| from <= root.place.position);
        let rows = self.rows.range(from..).map(|(_, (row, id))| Appended {
            place: row.place(),
            id: *id,
        });
        root.into_iter().chain(rows).collect()
    }

    pub(super) fn rows_from(&self, from: u64) -> Vec<(Row, i64)> {
        self.rows
            .range(from..)
            .map(|(_, row)| row.clone())
            .collect()
    }

    pub(super) fn last_before(&self, position: u64) -> Option<Appended> {
        let (_, (row, id)) = self.rows.range(..position).next_back()?;
        Some(Appended {
            place: row.place(),
            id: *id,
        })
    }

    pub(super) fn segments(&self) -> BTreeMap<SegmentId, u64> {
        let mut ends = BTreeMap::new();
        for (row, _) in self.rows.values() {
            let RowPlace { position, span, .. } = row.place();
            let (segment, offset) = jitney_journal::rows::place(position);
            ends.insert(segment, offset + span);
        }
        ends
    }

    pub(super) fn checkpoint(&self, number: u64) -> Vec<u8> {
        let parts = self.chunks.get(&number);
        parts.map_or_else(Vec::new, |parts| {
            parts.values().flatten().copied().collect()
        })
    }
}

impl Inner {
    /// Returns how much of the log is on a standby.
    fn replicated(&self) -> usize {
        self.standbys.iter().copied().max().unwrap_or_default()
    }

    fn holds(&self, other_than: SessionId, hold: Hold) -> bool {
        let mut others = self.sessions.iter().filter(|(id, _)| **id != other_than);
        others.any(|(_, session)| session.holds == hold)
    }

    /// Executes a statement as far as its commit; returns nothing if it has to wait for another session.
    fn execute(
        &mut self,
        id: SessionId,
        statement: &Statement,
    ) -> Option<(Option<Change>, Hold, Said)> {
        let tables = &self.tables;
        let refused = |said| Some((None, Hold::Nothing, said));
        match statement {
            Statement::Append(append) => {
                if self.holds(id, Hold::Exclusive) {
                    return None;
                }
                if append.claim != tables.claim || !tables.has(append.previous) {
                    return refused(Said::ToAppend(AppendAnswer::Refused));
                }
                if tables.rows.contains_key(&append.row.position) {
                    let why = "duplicate key value violates unique constraint".to_owned();
                    return refused(Said::ToAppend(AppendAnswer::Failed(why)));
                }
                let change = Change::Row(append.row.clone(), append.id);
                let said = Said::ToAppend(AppendAnswer::Inserted);
                Some((Some(change), Hold::Shared, said))
            }
            Statement::Take { .. } | Statement::Raise { .. } => {
                let (is_right, to) = match statement {
                    Statement::Take { epoch, to } => (*epoch == tables.claim.epoch, *to),
                    Statement::Raise { from, to } => (*from == tables.claim, *to),
                    _ => return None,
                };
                if self.holds(id, Hold::Exclusive) || self.holds(id, Hold::Shared) {
                    return None;
                }
                if !is_right {
                    return refused(Said::ToQuestion(Answer::Raised(None)));
                }
                let epoch = tables.claim.epoch + 1;
                let change = Change::Claim(Claim { epoch, owner: to });
                let said = Said::ToQuestion(Answer::Raised(Some(epoch)));
                Some((Some(change), Hold::Exclusive, said))
            }
            Statement::Claim => {
                let Claim { epoch, owner } = tables.claim;
                refused(Said::ToQuestion(Answer::Claim(epoch, Some(owner))))
            }
            Statement::Rows { from } => {
                let rows = tables.appended(*from);
                refused(Said::ToQuestion(Answer::Rows(rows)))
            }
            Statement::Barrier(claim) => {
                if self.holds(id, Hold::Exclusive) {
                    return None;
                }
                if *claim != tables.claim {
                    return refused(Said::ToQuestion(Answer::Refused));
                }
                let said = Said::ToQuestion(Answer::Done);
                Some((Some(Change::Barrier), Hold::Shared, said))
            }
            Statement::Quarantine(why) => {
                let said = Said::ToQuestion(Answer::Done);
                Some((Some(Change::Quarantine(why.clone())), Hold::Nothing, said))
            }
        }
    }

    /// Lets a session do its next thing, if it can.
    fn advance(&mut self, id: SessionId) -> bool {
        let replicated = self.replicated();
        let Some(session) = self.sessions.get_mut(&id).filter(|it| !it.is_stuck) else {
            return false;
        };
        if let Some((place, _)) = &session.committing {
            if replicated <= *place {
                return false;
            }
            self.complete(id);
            return true;
        }
        let Some(statement) = session.waiting.front().cloned() else {
            return false;
        };
        let Some((change, hold, said)) = self.execute(id, &statement) else {
            return false;
        };
        let place = self.log.len();
        let is_change = change.is_some();
        self.log.extend(change);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.waiting.pop_front();
            if is_change {
                (session.committing, session.holds) = (Some((place, said)), hold);
            } else {
                session.answers.push_back(said);
            }
        }
        true
    }

    /// A commit is seen by others, and answered.
    fn complete(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let Some((place, said)) = session.committing.take() else {
            return;
        };
        session.holds = Hold::Nothing;
        session.answers.push_back(said);
        self.tables.change(&self.log[place]);
    }

    /// Every session ends. What is in the primary's own log is committed.
    fn end_all(&mut self, kept: usize) {
        self.log.truncate(kept);
        for standby in &mut self.standbys {
            *standby = (*standby).min(kept);
        }
        self.sessions.clear();
        self.tables = Tables::new();
        for change in &self.log {
            self.tables.change(change);
        }
    }
}

impl Database {
    pub(super) fn new(random: Stream) -> Self {
        let inner = Inner {
            random,
            log: Vec::new(),
            standbys: [0; 2],
            tables: Tables::new(),
            sessions: BTreeMap::new(),
            next: 1,
        };
        Self {
            inner: Mutex::new(inner),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("one thread uses it")
    }

    /// Looks at the tables as a session that begins now does.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Tables) -> T) -> T {
        look(&self.lock().tables)
    }

    pub(super) fn open(&self) -> SessionId {
        let mut inner = self.lock();
        let id = inner.next;
        inner.next += 1;
        inner.sessions.insert(id, Session::default());
        id
    }

    /// Sends a statement; returns whether the session is there still.
    pub(super) fn send(&self, id: SessionId, statement: Statement) -> bool {
        let mut inner = self.lock();
        let Some(session) = inner.sessions.get_mut(&id).filter(|it| !it.is_deserted) else {
            return false;
        };
        session.waiting.push_back(statement);
        true
    }

    /// Takes the next answer of a session; an error if it has ended.
    pub(super) fn answer(&self, id: SessionId) -> Result<Option<Said>, String> {
        let mut inner = self.lock();
        match inner.sessions.get_mut(&id).filter(|it| !it.is_deserted) {
            Some(session) => Ok(session.answers.pop_front()),
            None => Err("the connection was lost".to_owned()),
        }
    }

    /// The client leaves a session: what it has sent may be executed all the same, at some time.
    pub(super) fn desert(&self, id: SessionId) {
        let mut inner = self.lock();
        let keeps = inner.random.percent(60);
        match inner.sessions.get_mut(&id) {
            Some(session) if keeps => session.is_deserted = true,
            Some(_) => drop(inner.terminated(id)),
            None => {}
        }
    }

    /// A session does its next thing, if it can.
    pub(super) fn advance(&self, id: SessionId) {
        self.lock().advance(id);
    }

    /// Both standbys have all that was committed.
    pub(super) fn replicate(&self) {
        self.let_lag(0, 0);
    }

    /// The client of a session is gone, and what it has sent waits to be executed.
    pub(super) fn leave_waiting(&self, id: SessionId) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            session.is_deserted = true;
        }
    }

    /// Sessions and standbys continue, some of them, in any order.
    pub(super) fn pass(&self, times: u64) {
        let mut inner = self.lock();
        for _ in 0..times {
            if inner.random.percent(40) {
                let standby = inner.random.index(2);
                let end = inner.log.len();
                let has = inner.standbys[standby];
                let more = inner.random.index(end - has + 1);
                inner.standbys[standby] = has + more;
                continue;
            }
            let ids: Vec<SessionId> = inner.sessions.keys().copied().collect();
            if let Some(&id) = inner.random.pick(&ids) {
                inner.advance(id);
            }
        }
    }

    /// Everything continues as far as it can: standbys follow, and sessions that hold up others are ended.
    pub(super) fn pass_all(&self) {
        let mut inner = self.lock();
        let stuck = inner.sessions.iter().filter(|(_, it)| it.is_stuck);
        let stuck: Vec<SessionId> = stuck.map(|(id, _)| *id).collect();
        for id in stuck {
            inner.terminated(id);
        }
        loop {
            inner.standbys = [inner.log.len(); 2];
            let ids: Vec<SessionId> = inner.sessions.keys().copied().collect();
            let mut has_changed = false;
            for id in ids {
                has_changed |= inner.advance(id);
            }
            if !has_changed {
                break;
            }
        }
        // Those whose clients are gone find that out.
        inner.sessions.retain(|_, session| !session.is_deserted);
    }
}

/// What goes wrong.
impl Database {
    /// A statement of a session is cancelled: its wait for a standby ends, or it is not executed.
    pub(super) fn cancel(&self, id: SessionId) {
        let mut inner = self.lock();
        let Some(session) = inner.sessions.get_mut(&id) else {
            return;
        };
        if let Some((_, said)) = &mut session.committing {
            *said = match said {
                Said::ToAppend(_) => Said::ToAppend(AppendAnswer::Warned),
                Said::ToQuestion(_) => {
                    Said::ToQuestion(Answer::Failed("there was a warning".to_owned()))
                }
            };
            inner.complete(id);
        } else if let Some(statement) = session.waiting.pop_front() {
            let why = "canceling statement due to user request".to_owned();
            session.answers.push_back(match statement {
                Statement::Append(_) => Said::ToAppend(AppendAnswer::Failed(why)),
                _ => Said::ToQuestion(Answer::Failed(why)),
            });
        }
    }

    /// A session is terminated.
    pub(super) fn terminate(&self, id: SessionId) {
        self.lock().terminated(id);
    }

    /// A session is cut off in the middle of a statement, and holds what that has locked.
    pub(super) fn cut_in_the_middle(&self, id: SessionId) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            (session.is_deserted, session.is_stuck) = (true, true);
            if session.committing.is_none() && session.holds == Hold::Nothing {
                session.holds = Hold::Shared;
            }
        }
    }

    /// Ends the sessions that hold up one that changes the claim.
    pub(super) fn end_blocking(&self, id: SessionId) {
        let mut inner = self.lock();
        let others = inner.sessions.iter();
        let others = others.filter(|(other, it)| **other != id && it.holds != Hold::Nothing);
        let others: Vec<SessionId> = others.map(|(id, _)| *id).collect();
        for other in others {
            inner.terminated(other);
        }
    }

    /// The primary stops at once, and starts again.
    pub(super) fn restart(&self) {
        let mut inner = self.lock();
        let kept = inner.log.len();
        inner.end_all(kept);
    }

    /// The primary is lost, and the standby that has more is promoted.
    pub(super) fn promote(&self) {
        let mut inner = self.lock();
        let kept = inner.replicated();
        inner.end_all(kept);
    }

    /// The primary is lost, and the standby that has less is promoted. Returns the last group that is left.
    pub(super) fn promote_wrongly(&self) -> u64 {
        let mut inner = self.lock();
        let kept = inner.standbys.iter().copied().min().unwrap_or_default();
        inner.end_all(kept);
        let last = inner.tables.rows.values().next_back();
        last.map_or(0, |(row, _)| row.frame)
    }

    /// The database is restored from a log that has another row in the place of a group, and all else.
    pub(super) fn diverge(&self, group: u64) {
        let mut inner = self.lock();
        for change in &mut inner.log {
            if let Change::Row(row, id) = change
                && row.frame == group
            {
                *id ^= 1;
            }
        }
        let kept = inner.log.len();
        inner.end_all(kept);
    }

    /// One of the standbys stops following, for as long as the other one is alive.
    pub(super) fn let_lag(&self, standby: usize, by: usize) {
        let mut inner = self.lock();
        let end = inner.log.len();
        inner.standbys = [end; 2];
        inner.standbys[standby] = end.saturating_sub(by);
    }
}

impl Inner {
    fn terminated(&mut self, id: SessionId) -> Option<Session> {
        // Its commit is in the log; only the wait is over.
        self.complete(id);
        self.sessions.remove(&id)
    }
}

/// What threads of the server do, one statement after the other. Returns whether something was changed; it is not, if the
/// claim is another.
impl Database {
    fn run(&self, claim: Claim, change: Change) -> bool {
        let mut inner = self.lock();
        if inner.tables.claim != claim {
            return false;
        }
        inner.tables.change(&change);
        inner.log.push(change);
        // It is answered when a standby has it.
        let (standby, end) = (inner.random.index(2), inner.log.len());
        inner.standbys[standby] = end;
        true
    }

    pub(super) fn write_chunk(&self, claim: Claim, number: u64, part: usize, bytes: &[u8]) -> bool {
        self.run(claim, Change::Chunk(number, part, bytes.to_vec()))
    }

    pub(super) fn finish_checkpoint(&self, claim: Claim, number: u64) -> bool {
        let newest = self.look(|tables| tables.checkpoints.last().copied());
        newest <= Some(number) && self.run(claim, Change::Checkpoint(number))
    }

    pub(super) fn remove_checkpoint(&self, claim: Claim, number: u64) -> bool {
        self.run(claim, Change::RemoveCheckpoint(number))
    }

    pub(super) fn remove_segment(&self, claim: Claim, segment: SegmentId) -> bool {
        self.run(claim, Change::RemoveSegment(segment))
    }
}
