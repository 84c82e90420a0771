//! What an owner of a log in a store does, without the store: takes the log over, appends groups as rows, several at
//! a time, and finds out what became of those whose answer did not come.
//!
//! A row is appended only behind the row before it: by that row's place and its random number, because two logs that
//! diverged have the same places. What is unknown is resolved before anything else is answered: the epoch is raised, so
//! that no statement of an old session changes anything any more; then the rows that are there are compared; then
//! something is committed, which carries them to a standby; and the others are appended again.
//!
//! ```text
//!  Take ──► Read ──► appending ──unknown──► Raise ──► Rows ──► Barrier ──┐
//!                        ▲                    ▲ no answer: again         │
//!                        └────────────────────┴──────────────────────────┘
//! ```
//!
//! The server executes the commands by statements (`src/store/append.rs`), the simulation by a model of the
//! database.

use std::collections::VecDeque;
use std::fmt;

use super::Frame;
use super::rows::{self, Row, RowPlace};
use crate::limits;

/// The right to change a log: every statement that changes something of it names both, and changes nothing if the
/// store has others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Raised by each acquisition. After the loss of committed transactions two owners can have the same.
    pub epoch: i64,
    /// A random number of the acquisition.
    pub owner: u128,
}

/// A row of a log, and its random number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Where it is.
    pub place: RowPlace,
    /// Its random number.
    pub id: i64,
}

impl Appended {
    /// The row before the first one of a log.
    pub const ROOT: Self = Self {
        place: RowPlace::ROOT,
        id: 0,
    };
}

/// A row that is to be appended, if the claim is the store's and the row before is there.
#[derive(Debug, Clone)]
pub struct Append {
    /// The row.
    pub row: Row,
    /// Its random number.
    pub id: i64,
    /// The row before it.
    pub previous: Appended,
    /// By which right.
    pub claim: Claim,
}

/// What is to be done.
#[derive(Debug)]
pub enum Command {
    /// Append a row, on the session of the appends before, without waiting for their answers. The answers are handed to
    /// [`Appender::appended`] in the order of the commands.
    Append(Append),
    /// Ask the store, and hand the answer to [`Appender::answered`]. The session of unanswered appends is not used again, and
    /// their answers are not handed over.
    Ask(Question),
    /// Something that the owner of the shard has to know.
    Tell(Event),
}

/// A question to the store; some of them change something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Raise the epoch, if it is this one still, and set the owner: [`Answer::Raised`].
    Take {
        /// The epoch that was seen.
        epoch: i64,
        /// The new owner.
        to: u128,
    },
    /// Read the whole log: [`Answer::Read`].
    Read,
    /// Raise the epoch, if it and the owner are these still, and set the owner: [`Answer::Raised`].
    Raise {
        /// The last claim that this server knows.
        from: Claim,
        /// The new owner.
        to: u128,
    },
    /// Read the epoch and the owner: [`Answer::Claim`].
    Claim,
    /// Read the rows from a position on, in their order: [`Answer::Rows`].
    Rows {
        /// The position of the last row that is durable.
        from: u64,
    },
    /// Commit something by this claim, and wait until it is on a standby with all that was committed before:
    /// [`Answer::Done`], or [`Answer::Refused`] if the store has another claim.
    Barrier(Claim),
    /// Let no server take the namespace: [`Answer::Done`].
    Quarantine {
        /// For the operator.
        why: String,
    },
}

/// What became of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendAnswer {
    /// It was committed, and is on a standby.
    Inserted,
    /// It was committed, and the database has warned: the wait for a standby was cancelled.
    Warned,
    /// Nothing was inserted: the claim is another, or the row before is missing.
    Refused,
    /// An error, or no answer.
    Failed(String),
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The new epoch; none if nothing was changed.
    Raised(Option<i64>),
    /// The last row of the log that was read.
    Read(Appended),
    /// The epoch, and the owner if the namespace has one.
    Claim(i64, Option<u128>),
    /// The rows.
    Rows(Vec<Appended>),
    /// It is done.
    Done,
    /// Nothing was changed.
    Refused,
    /// It was not asked: nothing was sent.
    Unasked(String),
    /// An error, or no answer: it may have been done.
    Failed(String),
}

/// Something that the owner of the shard has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It is unknown whether this group, and those after it, were appended: nothing may be answered.
    Unknown {
        /// The group.
        group: u64,
        /// What has happened.
        why: String,
    },
    /// It is known what was appended.
    Back,
    /// The namespace is this server's no more.
    Ended(End),
}

/// Why a log is this server's no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Another server has taken it.
    Fenced,
    /// It has not what was acknowledged. The namespace is in quarantine.
    Lost(String),
    /// The store did not answer until the end of the server.
    GivenUp(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fenced => f.write_str("another server owns the namespace"),
            Self::Lost(what) | Self::GivenUp(what) => f.write_str(what),
        }
    }
}

/// The owner of a log, as far as the log goes.
pub struct Appender {
    /// The number of the log's store, with which checksums begin.
    store: u64,
    claim: Claim,
    /// The claim of the last acquisition that was answered: a standby has it. A later one that was only seen may be lost with
    /// the primary.
    answered_claim: Claim,
    /// The owners that this server may have become: of acquisitions whose answer did not come.
    tried: Vec<u128>,
    /// The last row that is durable.
    durable: Appended,
    /// The last row that was sent.
    tail: Appended,
    /// Rows that are to be sent again, as they were.
    again: VecDeque<(Row, i64)>,
    /// Groups that are in no row yet.
    waiting: VecDeque<Frame>,
    /// Their bytes.
    waiting_bytes: usize,
    /// While a row is unanswered, groups of fewer bytes wait.
    gathered_bytes: usize,
    /// Rows whose answer has not come.
    sent: VecDeque<(Row, i64)>,
    random: Box<dyn FnMut() -> u128 + Send>,
    state: State,
    told: Option<Event>,
    /// Why something that was acknowledged seems to be missing: the rows may be another server's, too.
    suspicion: Option<String>,
    /// What became of an append is unknown, and the owner was told so.
    is_unknown: bool,
    is_closed: bool,
}

#[derive(Debug)]
enum State {
    Appending,
    /// This is to be asked.
    Asking(Question),
    /// This was asked.
    Asked(Question),
    Ended,
}

impl fmt::Debug for Appender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appender")
            .field("claim", &self.claim)
            .field("durable", &self.durable)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Appender {
    /// Begins with the acquisition of a log whose epoch was seen. `random` makes the owners and the numbers of rows.
    #[must_use]
    pub fn new(store: u64, epoch: i64, mut random: Box<dyn FnMut() -> u128 + Send>) -> Self {
        let to = random();
        let claim = Claim { epoch, owner: to };
        Self {
            store,
            claim,
            answered_claim: claim,
            tried: Vec::new(),
            durable: Appended::ROOT,
            tail: Appended::ROOT,
            again: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            gathered_bytes: limits::STORE_GATHERED_BYTES,
            sent: VecDeque::new(),
            random,
            state: State::Asking(Question::Take { epoch, to }),
            told: None,
            suspicion: None,
            is_unknown: false,
            is_closed: false,
        }
    }

    /// Begins with a log that was taken already, and read up to its last row.
    #[must_use]
    pub fn of_taken(
        store: u64,
        claim: Claim,
        last: Appended,
        random: Box<dyn FnMut() -> u128 + Send>,
    ) -> Self {
        Self {
            claim,
            answered_claim: claim,
            durable: last,
            tail: last,
            state: State::Appending,
            ..Self::new(store, claim.epoch, random)
        }
    }

    /// While a row is unanswered, lets groups wait until they have so many bytes together, instead of
    /// [`limits::STORE_GATHERED_BYTES`].
    #[must_use]
    pub fn gathering(self, bytes: usize) -> Self {
        Self {
            gathered_bytes: bytes,
            ..self
        }
    }

    /// Returns the right by which the log is changed.
    #[must_use]
    pub fn claim(&self) -> Claim {
        self.claim
    }

    /// Returns the number of the last group that is durable.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.durable.place.frame
    }

    /// Returns whether nothing will be done any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self.state {
            State::Ended => self.told.is_none(),
            State::Appending => {
                let is_done =
                    self.sent.is_empty() && self.waiting.is_empty() && self.again.is_empty();
                self.is_closed && is_done && self.told.is_none()
            }
            State::Asking(_) | State::Asked(_) => false,
        }
    }

    /// Appends a group, behind those before it.
    pub fn commit(&mut self, frame: Frame) {
        self.waiting_bytes += frame.bytes.len();
        self.waiting.push_back(frame);
    }

    /// Nothing is committed any more.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns the next command. After none, there is none until a group is committed, or an answer is handed over.
    pub fn poll(&mut self) -> Option<Command> {
        if let Some(event) = self.told.take() {
            return Some(Command::Tell(event));
        }
        match &self.state {
            State::Appending => self.next_row().map(Command::Append),
            State::Asking(question) => {
                let question = question.clone();
                self.state = State::Asked(question.clone());
                Some(Command::Ask(question))
            }
            State::Asked(_) | State::Ended => None,
        }
    }

    /// Returns a row to be sent, while few are unanswered. Groups that come meanwhile gather, and become one row.
    ///
    /// The database commits the rows of a session one after the other. So a small row would wait there for those before it, and the
    /// groups behind it in a third row: it is sent when none is unanswered. Only large rows are sent ahead.
    fn next_row(&mut self) -> Option<Append> {
        if limits::STORE_APPENDS <= self.sent.len() {
            return None;
        }
        let (row, id) = match self.again.pop_front() {
            Some(row) => row,
            None if !self.sent.is_empty() && self.waiting_bytes < self.gathered_bytes => {
                return None;
            }
            None => {
                let frames = self.waiting.make_contiguous();
                let count = rows::fit(frames, limits::STORE_ROW_BYTES);
                let now = frames.get(..count).filter(|now| !now.is_empty())?;
                let row = Row::of(self.store, now);
                self.waiting_bytes -= now.iter().map(|frame| frame.bytes.len()).sum::<usize>();
                self.waiting.drain(..count);
                (row, self.random_id())
            }
        };
        let previous = self.tail;
        self.tail = Appended {
            place: row.place(),
            id,
        };
        self.sent.push_back((row.clone(), id));
        Some(Append {
            row,
            id,
            previous,
            claim: self.claim,
        })
    }

    fn random_id(&mut self) -> i64 {
        let high = (self.random)() >> 64;
        u64::try_from(high).unwrap_or_default().cast_signed()
    }

    /// Takes the answer to the oldest row that was sent.
    pub fn appended(&mut self, answer: AppendAnswer) {
        if !matches!(self.state, State::Appending) {
            return;
        }
        let why = match answer {
            AppendAnswer::Inserted => {
                if let Some((row, id)) = self.sent.pop_front() {
                    self.durable = Appended {
                        place: row.place(),
                        id,
                    };
                }
                return;
            }
            AppendAnswer::Warned => "the wait for a standby was cancelled".to_owned(),
            AppendAnswer::Refused => {
                "the row before it is missing, or another server has the namespace".to_owned()
            }
            AppendAnswer::Failed(why) => why,
        };
        self.find_out(why);
    }

    /// The database has another primary: finds out whether that has what was acknowledged, and what became of the rows that are
    /// unanswered. A namespace without appends would not notice before it is given to another server.
    ///
    /// What is being found out already ends with a commit by the raised epoch. A primary that takes it has all that was committed
    /// before the epoch was raised.
    pub fn check(&mut self, why: String) {
        if !matches!(self.state, State::Appending) {
            return;
        }
        if self.sent.is_empty() {
            self.raise();
        } else {
            self.find_out(why);
        }
    }

    fn find_out(&mut self, why: String) {
        // In their order, before those that wait.
        while let Some(sent) = self.sent.pop_back() {
            self.again.push_front(sent);
        }
        let group = self.durable() + 1;
        self.is_unknown = true;
        self.told = Some(Event::Unknown { group, why });
        self.raise();
    }

    /// From the raised epoch on, no statement of an old session changes anything.
    fn raise(&mut self) {
        let to = (self.random)();
        self.tried.push(to);
        self.suspicion = None;
        let from = self.claim;
        self.state = State::Asking(Question::Raise { from, to });
    }

    /// Takes the answer to the question.
    pub fn answered(&mut self, answer: Answer) {
        let State::Asked(question) = std::mem::replace(&mut self.state, State::Ended) else {
            return;
        };
        match (question, answer) {
            (Question::Take { to, .. }, Answer::Raised(Some(epoch))) => {
                self.has_claim(Claim { epoch, owner: to });
                // Only now: what the owner before has appended until then is there, and nothing more of it comes.
                self.state = State::Asking(Question::Read);
            }
            (Question::Read, Answer::Read(last)) => {
                (self.durable, self.tail) = (last, last);
                self.state = State::Appending;
            }
            (Question::Raise { to, .. }, Answer::Raised(Some(epoch))) => {
                self.has_claim(Claim { epoch, owner: to });
                self.tried.clear();
                let from = self.durable.place.position;
                self.state = State::Asking(Question::Rows { from });
            }
            (Question::Raise { to, .. }, Answer::Raised(None)) => {
                self.tried.retain(|owner| *owner != to);
                // The answer to an earlier raise may not have come.
                self.state = State::Asking(Question::Claim);
            }
            (Question::Claim, Answer::Claim(epoch, owner)) => self.compare_claim(epoch, owner),
            (Question::Rows { .. }, Answer::Rows(found)) => self.compare_rows(&found),
            (Question::Barrier(_), Answer::Done) => {
                while self.durable != self.tail
                    && let Some((row, id)) = self.again.pop_front()
                {
                    self.durable = Appended {
                        place: row.place(),
                        id,
                    };
                }
                self.told = std::mem::take(&mut self.is_unknown).then_some(Event::Back);
                self.state = State::Appending;
            }
            (Question::Barrier(_), Answer::Refused) => {
                self.state = State::Asking(Question::Claim);
            }
            (Question::Quarantine { why }, Answer::Done) => self.end(End::Lost(why)),
            (Question::Take { .. }, Answer::Raised(None)) => self.end(End::Fenced),
            (Question::Take { .. } | Question::Read, answer) => self.end(End::GivenUp(
                reason_of(answer).unwrap_or_else(|| "an answer of another kind".to_owned()),
            )),
            (question, answer) => self.ask_again(&question, answer),
        }
    }

    /// An acquisition was answered.
    fn has_claim(&mut self, claim: Claim) {
        (self.claim, self.answered_claim) = (claim, claim);
    }

    /// The store did not answer: everything is found out anew.
    fn ask_again(&mut self, question: &Question, answer: Answer) {
        if let (Question::Raise { to, .. }, Answer::Unasked(_)) = (question, &answer) {
            self.tried.retain(|owner| owner != to);
        }
        let why = reason_of(answer).unwrap_or_else(|| "an answer of another kind".to_owned());
        if self.is_closed {
            self.end(End::GivenUp(why));
        } else {
            self.raise();
        }
    }

    fn compare_claim(&mut self, epoch: i64, owner: Option<u128>) {
        let found = owner.map(|owner| Claim { epoch, owner });
        let is_owner = found == Some(self.claim);
        if let Some(why) = self.suspicion.take().filter(|_| is_owner) {
            self.is_lost(why);
            return;
        }
        let before = self.answered_claim.epoch;
        if epoch < before {
            self.is_lost(format!(
                "the database has epoch {epoch}, and this server had epoch {before}: it was restored, or a standby was \
                 promoted that had not what was acknowledged"
            ));
            return;
        }
        let is_own = |it: &Claim| *it == self.answered_claim || self.tried.contains(&it.owner);
        match found.filter(is_own) {
            Some(claim) => {
                self.claim = claim;
                self.raise();
            }
            None => self.end(End::Fenced),
        }
    }

    fn compare_rows(&mut self, found: &[Appended]) {
        let Some((first, found)) = found.split_first().filter(|it| *it.0 == self.durable) else {
            let group = self.durable();
            self.suspect(format!(
                "its log ends before group {group}, which was acknowledged: the database was restored, or a standby was \
                 promoted that had not that group"
            ));
            return;
        };
        let mut last = *first;
        for (at, row) in found.iter().enumerate() {
            let sent = self.again.get(at);
            let is_sent = sent.is_some_and(|(sent, id)| sent.place() == row.place && *id == row.id);
            if !is_sent {
                let at = row.place.position;
                self.suspect(format!(
                    "its log has a row at position {at:#x} that this server has not appended: the database was restored, or a \
                     standby was promoted that had not what was acknowledged"
                ));
                return;
            }
            last = *row;
        }
        self.tail = last;
        self.state = State::Asking(Question::Barrier(self.claim));
    }

    /// The rows are not those that this server has appended: another server may have taken the log since the epoch was raised.
    fn suspect(&mut self, why: String) {
        self.suspicion = Some(why);
        self.state = State::Asking(Question::Claim);
    }

    /// The log has not what was acknowledged: it would be served without that by the server that takes it next.
    fn is_lost(&mut self, why: String) {
        self.state = State::Asking(Question::Quarantine { why });
    }

    fn end(&mut self, end: End) {
        self.state = State::Ended;
        self.told = Some(Event::Ended(end));
    }
}

fn reason_of(answer: Answer) -> Option<String> {
    match answer {
        Answer::Unasked(why) | Answer::Failed(why) => Some(why),
        Answer::Raised(_)
        | Answer::Read(_)
        | Answer::Claim(..)
        | Answer::Rows(_)
        | Answer::Done
        | Answer::Refused => None,
    }
}
