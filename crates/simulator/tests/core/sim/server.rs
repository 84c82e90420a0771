//! An owner of a log in the modelled database: it executes the commands of an [`Appender`] as the server does, but each
//! answer comes when the run lets the database continue.

use std::sync::Arc;

use jitney_journal::appender::{Answer, AppendAnswer, Appender, Command, End, Event, Question};

use super::database::{Database, Said, SessionId, Statement};
use super::random::Stream;
use super::rowlog::ModelLog;

/// Bytes of a few groups.
const GATHERED: usize = 2_000;

/// The server, as far as its log goes.
#[derive(Debug)]
pub(super) struct Server {
    database: Arc<Database>,
    pub(super) log: Arc<ModelLog>,
    pub(super) appender: Appender,
    session: Option<SessionId>,
    /// Appends that are unanswered.
    unanswered: usize,
    question: Option<Question>,
    random: Stream,
}

impl Server {
    /// Begins to take the log over.
    pub(super) fn new(database: &Arc<Database>, store: u64, mut random: Stream) -> Self {
        let claim = database.look(|tables| tables.claim);
        let mut of_appender = random.fork();
        let bits = move || u128::from(of_appender.next()) << 64 | u128::from(of_appender.next());
        // Every second one sends row behind row, as only large ones are sent otherwise.
        let gathered = if claim.epoch % 2 == 0 { 0 } else { GATHERED };
        let appender = Appender::new(store, claim.epoch, Box::new(bits)).gathering(gathered);
        let log = ModelLog::new(Arc::clone(database), store, appender.claim());
        Self {
            database: Arc::clone(database),
            log: Arc::new(log),
            appender,
            session: None,
            unanswered: 0,
            question: None,
            random,
        }
    }

    /// Returns whether the log is to be read now; the answer is told to [`Server::answered`].
    pub(super) fn is_reading(&self) -> bool {
        self.question == Some(Question::Read)
    }

    /// Returns whether nothing of it can still be done by the database.
    pub(super) fn is_idle(&self) -> bool {
        self.question.is_none() && self.unanswered == 0
    }

    /// Returns the session of its appends.
    pub(super) fn session(&self) -> Option<SessionId> {
        self.session
    }

    pub(super) fn answered(&mut self, answer: Answer) {
        self.question = None;
        self.appender.answered(answer);
        self.log.set_claim(self.appender.claim());
    }

    /// The connection to the database is lost; what was sent may be executed all the same.
    pub(super) fn lose_session(&mut self) {
        if let Some(session) = self.session {
            self.database.desert(session);
        }
    }

    /// Executes what is to be done, and takes the answers that have come.
    pub(super) fn drive(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            while let Some(command) = self.appender.poll() {
                match command {
                    Command::Append(append) => self.send(Statement::Append(append)),
                    Command::Ask(question) => self.ask(question),
                    Command::Tell(event) => events.push(event),
                }
            }
            if !self.take_answer() {
                break;
            }
        }
        if let (Some(Question::Raise { .. } | Question::Take { .. }), Some(session)) =
            (&self.question, self.session)
            && self.random.percent(10)
        {
            self.database.end_blocking(session);
        }
        events
    }

    fn send(&mut self, statement: Statement) {
        let database = &self.database;
        let session = *self.session.get_or_insert_with(|| database.open());
        if matches!(statement, Statement::Append(_)) {
            self.unanswered += 1;
        }
        // If the session has ended, that is found out when its answer is taken.
        database.send(session, statement);
    }

    fn ask(&mut self, question: Question) {
        let is_raise = matches!(question, Question::Raise { .. });
        if (0 < self.unanswered || is_raise)
            && let Some(session) = self.session.take()
        {
            self.unanswered = 0;
            self.database.desert(session);
        }
        self.question = Some(question.clone());
        self.send(match question {
            Question::Take { epoch, to } => Statement::Take { epoch, to },
            Question::Raise { from, to } => Statement::Raise { from, to },
            Question::Claim => Statement::Claim,
            Question::Rows { from } => Statement::Rows { from },
            Question::Barrier(claim) => Statement::Barrier(claim),
            Question::Quarantine { why } => Statement::Quarantine(why),
            Question::Read => return,
        });
    }

    /// Takes an answer, if one has come.
    fn take_answer(&mut self) -> bool {
        let Some(session) = self.session.filter(|_| !self.is_idle()) else {
            return false;
        };
        match self.database.answer(session) {
            Ok(None) => false,
            Ok(Some(Said::ToAppend(answer))) => {
                self.unanswered -= 1;
                self.appender.appended(answer);
                true
            }
            Ok(Some(Said::ToQuestion(answer))) => {
                self.answered(answer);
                true
            }
            Err(_) if self.is_reading() => false,
            Err(why) => {
                self.session = None;
                self.unanswered = 0;
                match self.question {
                    Some(_) => self.answered(Answer::Failed(why)),
                    None => self.appender.appended(AppendAnswer::Failed(why)),
                }
                true
            }
        }
    }
}

/// Returns why a server has ended, if it has.
pub(super) fn end_of(events: &[Event]) -> Option<&End> {
    events.iter().find_map(|event| match event {
        Event::Ended(end) => Some(end),
        Event::Unknown { .. } | Event::Back => None,
    })
}
