//! The clients: connections with links, what they do, and what they make of what they are told.
//!
//! Each connection also plays the protocol engine that stands between it and the broker: it
//! counts deliveries against the credit that the client gave last, and hands back what came too
//! late.

mod collect;
mod hear;
mod send;

use std::collections::{BTreeMap, VecDeque};

use jitney_base::ids::LockToken;
use jitney_gateway::limits;
use jitney_queue::EntityKind;

use super::acts::{
    Ask, ClientAction, LinkKey, LinkKind, Part, Place, SESSIONS, Session, TransactionId, Verdict,
    Wish, session_name,
};
use super::audit::ClientObservation;
use super::ledger::{Copy, Ledger};
use super::plan::{DOINGS, Doing, Plan};
use super::random::Stream;
use super::wire::{Answer, Draft, IdFrom, Seen, Value, read_message};

/// All clients.
pub(super) struct Clients {
    random: Stream,
    /// Which messages have no message-id of their sender's.
    ids: Stream,
    plan: Plan,
    pub(super) ledger: Ledger,
    connections: BTreeMap<u32, Connection>,
    next_connection: u32,
    next_id: u64,
    next_request: u64,
    /// Locks that somebody holds or held, the newest last.
    held: Vec<Held>,
    /// Numbers that somebody was told.
    scheduled: Vec<(Place, i64)>,
    deferred: Vec<(Place, i64)>,
    asked: BTreeMap<String, (Place, Ask)>,
}

#[derive(Debug, Default)]
struct Connection {
    links: BTreeMap<u32, Link>,
    next_link: u32,
    next_delivery: u32,
    /// Transactions that are open.
    open: Vec<TransactionId>,
    /// Those that are being discharged, and whether to roll back.
    discharging: BTreeMap<(LinkKey, u32), (TransactionId, bool)>,
    /// Inputs that have not reached the broker.
    inbox: VecDeque<ClientAction>,
}

#[derive(Debug)]
struct Link {
    place: Place,
    kind: LinkKind,
    let_in: bool,
    /// The message session that it has.
    session: Option<Session>,
    limit: u32,
    /// Deliveries that went to the client.
    received: u32,
    /// Came without credit, and are deleted already.
    stalled: VecDeque<(Copy, u64)>,
    unwritten: u64,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    place: Place,
    token: LockToken,
    id: Copy,
    number: i64,
    /// The link it came on, and its delivery.
    on: Option<(LinkKey, u32)>,
    settled: bool,
}

/// How often clients complete, abandon, defer, dead-letter and release. Over the management node, nothing is released.
const VERDICTS_OF_LINKS: [u64; 5] = [30, 20, 15, 15, 10];
const VERDICTS_OF_REQUESTS: [u64; 5] = [30, 20, 15, 15, 0];

const LINKS: usize = 8;
const HELD: usize = 60;

impl Clients {
    pub(super) fn new(seed: u64, plan: &Plan) -> Self {
        Self {
            random: Stream::new(seed, "clients"),
            ids: Stream::new(seed, "ids"),
            plan: plan.clone(),
            ledger: Ledger::default(),
            connections: BTreeMap::new(),
            next_connection: 1,
            next_id: 1,
            next_request: 1,
            held: Vec::new(),
            scheduled: Vec::new(),
            deferred: Vec::new(),
            asked: BTreeMap::new(),
        }
    }

    /// Somebody does something. There are so many messages: nobody sends more of them where there are enough.
    pub(super) fn act(&mut self, now: i64, messages: usize) {
        let doing = DOINGS[self.random.weighted(&self.plan.doings)];
        let sends = matches!(doing, Doing::Send | Doing::SendBatch | Doing::Schedule);
        if self.connections.is_empty() || doing == Doing::Open {
            if self.connections.len() < self.plan.connections {
                self.open();
            }
            return;
        }
        if sends && self.plan.crowd < messages {
            return;
        }
        match doing {
            Doing::Attach => self.attach(),
            Doing::Cancel => self.cancel(),
            Doing::Credit => self.credit(),
            Doing::Cut => self.cut(),
            Doing::Deferred => self.receive_deferred(),
            Doing::Detach => self.detach(),
            Doing::Dispose => self.dispose(),
            Doing::Drain => self.drain(),
            Doing::Open => {}
            Doing::Peek => self.peek(),
            Doing::Purge => self.purge(now),
            Doing::Renew => self.renew(),
            Doing::Schedule => self.schedule(now),
            Doing::Send => self.send(now, 1),
            Doing::SendBatch => {
                let is_large = 6 < self.plan.batch && self.is_calm() && self.random.percent(25);
                let most = if is_large { self.plan.batch } else { 6 };
                let count = 1 + self.random.index(most);
                self.send(now, count);
            }
            Doing::SessionWork => self.work_in_session(now),
            Doing::Settle => self.settle(|held| !held.settled),
            Doing::SettleAgain => self.settle(|held| held.settled),
            Doing::Transact => self.transact(),
            Doing::Unknown => {
                let place = self.place();
                self.ask(place, Ask::Unknown);
            }
            Doing::Written => self.written(),
        }
    }

    /// Takes an input that has reached the broker now.
    pub(super) fn pump(&mut self) -> Option<ClientAction> {
        let ids: Vec<u32> = self.connections.keys().copied().collect();
        let id = *self.random.pick(&ids)?;
        let connection = self.connections.get_mut(&id)?;
        let act = connection.inbox.pop_front()?;
        if matches!(act, ClientAction::Close { .. }) {
            self.connections.remove(&id);
        }
        Some(act)
    }

    /// Returns whether some inputs have not reached the broker.
    pub(super) fn is_busy(&self) -> bool {
        self.connections
            .values()
            .any(|connection| !connection.inbox.is_empty())
    }

    /// Returns whether few inputs have not reached the broker: what they send may come to be due at once, and the broker
    /// does so much in one step and no more.
    fn is_calm(&self) -> bool {
        let connections = self.connections.values();
        let waiting: usize = connections.map(|connection| connection.inbox.len()).sum();
        waiting < 30
    }

    /// The broker has gone, and with it all connections.
    pub(super) fn lost(&mut self) {
        self.connections.clear();
        self.asked.clear();
        self.ledger.lost();
    }

    /// Every connection ends.
    pub(super) fn leave(&mut self) -> Vec<ClientAction> {
        let ids = std::mem::take(&mut self.connections).into_keys();
        ids.map(close).collect()
    }

    fn take_inbox(&mut self, id: u32) -> Vec<ClientAction> {
        let connection = self.connections.get_mut(&id).expect("it was opened");
        connection.inbox.drain(..).collect()
    }

    fn open(&mut self) -> u32 {
        let id = self.next_connection;
        self.next_connection += 1;
        self.connections.insert(id, Connection::default());
        id
    }

    fn connection(&mut self) -> u32 {
        let ids: Vec<u32> = self.connections.keys().copied().collect();
        *self.random.pick(&ids).expect("there is one")
    }

    fn place(&mut self) -> Place {
        let queue = self.random.index(self.plan.entities.len());
        let part = match self.random.below(100) {
            0..30 => Part::Dead,
            30..33 => Part::Transfer,
            _ => Part::Main,
        };
        Place { queue, part }
    }

    fn has_sessions(&self, place: Place) -> bool {
        let description = &self.plan.entities[place.queue].description;
        place.part == Part::Main && description.requires_session
    }

    /// Returns whether messages do not go on from a place.
    fn is_received(&self, place: Place) -> bool {
        let description = &self.plan.entities[place.queue].description;
        let goes_on = match place.part {
            Part::Main => description.kind == EntityKind::Topic || description.forward_to.is_some(),
            Part::Dead => description.forward_dead_letters_to.is_some(),
            Part::Transfer => false,
        };
        // Somewhere there must be something to receive.
        !goes_on || self.plan.entities.len() == 1
    }

    fn session(&mut self) -> Session {
        let session = self.random.below(u64::from(SESSIONS));
        Session::try_from(session).expect("few")
    }

    /// Picks the message session that a receiver wants; seldom where there is none to want.
    fn wish(&mut self, place: Place) -> Option<Wish> {
        if self.has_sessions(place) == self.random.percent(4) {
            return None;
        }
        if self.random.percent(50) {
            return Some(Wish::Named(self.session()));
        }
        let patience = self.random.within(0, self.plan.horizon);
        Some(Wish::Next(u32::try_from(patience).expect("it fits")))
    }

    fn push(&mut self, id: u32, act: ClientAction) {
        let connection = self.connections.get_mut(&id).expect("it is open");
        connection.inbox.push_back(act);
    }

    fn attach(&mut self) {
        let id = self.connection();
        if LINKS <= self.connections[&id].links.len() {
            return self.detach();
        }
        let place = self.place();
        match self.random.weighted(&[40, 12, 30, 15, 3]) {
            0 | 1 if !self.is_received(place) && self.random.percent(95) => self.attach(),
            way @ (0 | 1) => {
                let (delete, wish) = (way == 1, self.wish(place));
                self.attach_to(id, place, LinkKind::Receiver { delete, wish });
            }
            2 => {
                let dead = self.random.percent(5);
                let part = if dead { Part::Dead } else { Part::Main };
                let topic = self.plan.entities[place.queue].topic;
                let queue = match topic {
                    Some(topic) if self.random.percent(95) => topic,
                    _ => place.queue,
                };
                self.attach_to(id, Place { queue, part }, LinkKind::Sender);
            }
            3 => self.manage(id, place),
            _ => {
                let nowhere = Place::main(self.plan.entities.len());
                self.attach_to(id, nowhere, LinkKind::Sender);
            }
        }
    }

    fn attach_to(&mut self, id: u32, place: Place, kind: LinkKind) -> LinkKey {
        let connection = self.connections.get_mut(&id).expect("it is open");
        let at = LinkKey {
            connection: id,
            link: connection.next_link,
        };
        connection.next_link += 1;
        let link = Link {
            place,
            kind,
            let_in: false,
            session: None,
            limit: 0,
            received: 0,
            stalled: VecDeque::new(),
            unwritten: 0,
        };
        connection.links.insert(at.link, link);
        self.push(id, ClientAction::Attach { at, place, kind });
        at
    }

    /// Attaches a pair of links to a management node, in this order or that.
    fn manage(&mut self, id: u32, place: Place) {
        let requests_first = self.random.percent(50);
        if requests_first {
            self.attach_to(id, place, LinkKind::Requests);
        }
        let at = self.attach_to(id, place, LinkKind::Responses);
        self.set_credit(at, 1_000);
        if !requests_first {
            self.attach_to(id, place, LinkKind::Requests);
        }
    }

    fn detach(&mut self) {
        if let Some(at) = self.some_link(|_| true) {
            self.drop_link(at);
        }
    }

    fn drop_link(&mut self, at: LinkKey) {
        self.forget_link(at);
        let kept = Vec::new();
        self.push(at.connection, ClientAction::Detach { at, kept });
    }

    /// A link has gone; what was sent on it is written all the same, and counts to its connection.
    fn forget_link(&mut self, at: LinkKey) {
        let connection = self.connections.get_mut(&at.connection);
        let link = connection.and_then(|connection| connection.links.remove(&at.link));
        if let Some(link) = link.filter(|link| 0 < link.unwritten) {
            self.tell_written(at, link.unwritten);
        }
    }

    fn tell_written(&mut self, at: LinkKey, bytes: u64) {
        if self.plan.bytes {
            return;
        }
        if let Some(connection) = self.connections.get_mut(&at.connection) {
            connection
                .inbox
                .push_front(ClientAction::Written { at, bytes });
        }
    }

    /// Writes all that a connection was sent before it is so much that the broker sends it nothing
    /// more: its auditor knows the windows of links only.
    fn write_in_time(&mut self, id: u32) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let links = connection.links.iter_mut();
        let all: u64 = links.map(|(_, link)| link.unwritten).sum();
        if all < limits::CONNECTION_WINDOW_BYTES / 2 {
            return;
        }
        for (&link, state) in &mut connection.links {
            let at = LinkKey {
                connection: id,
                link,
            };
            let bytes = std::mem::take(&mut state.unwritten);
            connection
                .inbox
                .push_front(ClientAction::Written { at, bytes });
        }
    }

    fn cut(&mut self) {
        let id = self.connection();
        let connection = self.connections.get_mut(&id).expect("it is open");
        let kept = self.random.index(connection.inbox.len() + 1);
        connection.inbox.truncate(kept);
        connection.links.clear();
        self.push(id, close(id));
    }

    fn some_link(&mut self, fits: impl Fn(&Link) -> bool) -> Option<LinkKey> {
        let connections = self.connections.iter();
        let all: Vec<LinkKey> = connections
            .flat_map(|(&connection, of)| {
                let fitting = of.links.iter().filter(|(_, link)| fits(link));
                fitting.map(move |(&link, _)| LinkKey { connection, link })
            })
            .collect();
        self.random.pick(&all).copied()
    }

    fn link(&mut self, at: LinkKey) -> Option<&mut Link> {
        let connection = self.connections.get_mut(&at.connection)?;
        connection.links.get_mut(&at.link)
    }

    fn set_credit(&mut self, at: LinkKey, credit: u32) {
        if let Some(limit) = self.set_limit(at, credit) {
            let drain = false;
            self.push(at.connection, ClientAction::Credit { at, limit, drain });
        }
    }

    /// Gives a link so much credit; returns the limit that its receiver has to send.
    fn set_limit(&mut self, at: LinkKey, credit: u32) -> Option<u32> {
        let link = self.link(at)?;
        link.limit = link.received.wrapping_add(credit);
        let limit = link.limit;
        // What was deleted already and waits for credit goes first.
        while let Some(link) = self.link(at)
            && link.received != link.limit
            && let Some((id, told)) = link.stalled.pop_front()
        {
            link.received = link.received.wrapping_add(1);
            self.ledger.hears(told);
            self.ledger.got(id).expect("it was kept here");
        }
        Some(limit)
    }

    fn credit(&mut self) {
        let wants =
            |link: &Link| matches!(link.kind, LinkKind::Receiver { .. } | LinkKind::Responses);
        let Some(at) = self.some_link(wants) else {
            return self.attach();
        };
        let credit = match self.random.below(8) {
            0 => 0,
            1 => 1,
            2 => u32::MAX / 2,
            3 => 200,
            _ => u32::try_from(1 + self.random.below(5)).expect("few"),
        };
        self.set_credit(at, credit);
    }

    fn drain(&mut self) {
        let wants = |link: &Link| link.let_in && matches!(link.kind, LinkKind::Receiver { .. });
        let Some(at) = self.some_link(wants) else {
            return;
        };
        let credit = u32::try_from(self.random.below(6)).expect("few");
        if let Some(limit) = self.set_limit(at, credit) {
            let drain = true;
            self.push(at.connection, ClientAction::Credit { at, limit, drain });
        }
    }

    /// Asks the management node of a place something, over any connection that can.
    fn ask(&mut self, place: Place, ask: Ask) {
        let can = |link: &Link| link.place == place && link.kind == LinkKind::Requests;
        let found = self.some_link(can).map(|at| at.connection);
        let id = found.unwrap_or_else(|| self.connection());
        self.ask_over(id, place, None, ask);
    }

    /// Asks the management node of a place something over this connection, if it can.
    fn ask_over(&mut self, id: u32, place: Place, about: Option<LinkKey>, ask: Ask) {
        let links = &self.connections[&id].links;
        let can = |link: &Link| link.place == place && link.kind == LinkKind::Requests;
        if !links.values().any(can) {
            if LINKS + 4 <= links.len() {
                return self.detach();
            }
            self.manage(id, place);
        }
        self.ask_on(id, place, about, ask);
    }

    fn ask_on(&mut self, connection: u32, place: Place, about: Option<LinkKey>, ask: Ask) {
        let links = &self.connections[&connection].links;
        let links = links.iter().filter(|(_, link)| link.place == place);
        let find = |kind: LinkKind| {
            let found = links.clone().find(|(_, link)| link.kind == kind);
            found.map(|(&link, _)| LinkKey { connection, link })
        };
        let Some(at) = find(LinkKind::Requests) else {
            return;
        };
        let answers = find(LinkKind::Responses).unwrap_or(at);
        let id = format!("r{}", self.next_request);
        self.next_request += 1;
        let transaction = match &ask {
            Ask::Cancel { .. } | Ask::Dispose { .. } => self.transaction(connection),
            _ => None,
        };
        if let Ask::Dispose {
            tokens,
            verdict: Verdict::Complete,
        } = &ask
            && transaction.is_none()
        {
            let held = self.held.iter().filter(|held| tokens.contains(&held.token));
            self.ledger.asked(&id, held.map(|held| held.id).collect());
        }
        self.asked.insert(id.clone(), (place, ask.clone()));
        let act = ClientAction::Request {
            at,
            id,
            reply_to: answers.reply_to(),
            about,
            transaction,
            ask,
        };
        self.push(connection, act);
    }

    fn peek(&mut self) {
        let place = self.place();
        let rolls_over = self.plan.entities.iter().any(|planned| planned.first != 1);
        let from = if rolls_over || self.random.percent(50) {
            0
        } else {
            self.random.within(0, 60)
        };
        let count = *self.random.pick(&[1, 3, 20, 250, 1_000]).expect("some");
        let session = self.random.percent(30).then(|| self.session());
        let ask = Ask::Peek {
            from,
            count,
            session,
        };
        self.ask(place, ask);
    }

    /// The holder of a message session asks something about it, or somebody who is not.
    fn work_in_session(&mut self, now: i64) {
        let held = self.some_link(|link| link.session.is_some());
        let Some(at) = held else {
            return self.attach();
        };
        let link = self.link(at).expect("it was found");
        let (place, held) = (link.place, link.session.expect("it has one"));
        let session = if self.random.percent(5) {
            self.session()
        } else {
            held
        };
        let about = if self.random.percent(3) {
            self.some_link(|link| link.session.is_some())
        } else {
            self.random.percent(70).then_some(at)
        };
        let random = &mut self.random;
        let ask = match random.below(8) {
            0..3 => Ask::RenewSession { session },
            3 => Ask::GetState { session },
            4 | 5 => {
                let length = random.index(40);
                let state = random.percent(70).then(|| vec![7; length]);
                // No bytes are no state.
                let state = state.filter(|bytes| !bytes.is_empty());
                Ask::SetState { session, state }
            }
            6 => {
                let since = random.percent(50);
                let skip = if since { 0 } else { random.within(0, 2) };
                let horizon = self.plan.horizon;
                Ask::ListSessions {
                    skip: i32::try_from(skip).expect("few"),
                    top: 100,
                    since: since.then(|| now - random.within(0, horizon)),
                }
            }
            _ => {
                let told = self.deferred.clone();
                let told: Vec<_> = told.into_iter().filter(|(of, _)| *of == place).collect();
                let Some((_, numbers)) = self.numbers(&told) else {
                    return;
                };
                Ask::Deferred {
                    numbers: numbers[..1].to_vec(),
                    delete: self.random.percent(25),
                    session: Some(session),
                }
            }
        };
        self.ask_over(at.connection, place, about, ask);
    }

    fn purge(&mut self, now: i64) {
        let place = self.place();
        let count = *self.random.pick(&[1, 3, 4_000]).expect("some");
        let before = now + self.random.within(-self.plan.horizon, 1);
        let session = self.random.percent(30).then(|| self.session());
        let ask = Ask::Purge {
            count,
            before,
            session,
        };
        self.ask(place, ask);
    }

    /// A transaction begins, or ends.
    fn transact(&mut self) {
        let coordinates = |link: &Link| link.let_in && link.kind == LinkKind::Coordinator;
        let found = self.some_link(coordinates);
        let Some(at) = found.filter(|_| self.random.percent(90)) else {
            let id = self.connection();
            let links = self.connections[&id].links.values();
            let there = links.filter(|link| link.kind == LinkKind::Coordinator);
            if there.count() < 2 {
                self.attach_to(id, Place::main(0), LinkKind::Coordinator);
            }
            return;
        };
        let random = &mut self.random;
        let connection = self.connections.get_mut(&at.connection);
        let connection = connection.expect("it has one");
        let delivery = connection.next_delivery;
        connection.next_delivery += 1;
        let ends = random.percent(60);
        let some = (0..connection.open.len()).collect::<Vec<usize>>();
        let act = match random.pick(&some).filter(|_| ends) {
            Some(&which) => {
                let (id, fail) = (connection.open.remove(which), random.percent(30));
                let discharged = (id.clone(), fail);
                connection.discharging.insert((at, delivery), discharged);
                ClientAction::Discharge {
                    at,
                    delivery,
                    id,
                    fail,
                }
            }
            None => ClientAction::Declare { at, delivery },
        };
        self.push(at.connection, act);
    }

    /// Picks a transaction of a connection, sometimes; seldom one that nobody declared.
    fn transaction(&mut self, connection: u32) -> Option<TransactionId> {
        let open = &self.connections[&connection].open;
        let picked = self.random.pick(open).cloned()?;
        match self.random.below(100) {
            0..60 => Some(picked),
            60..63 => Some(vec![9; 8]),
            _ => None,
        }
    }

    /// Picks numbers that somebody was told, the newest most often, and sometimes others.
    fn numbers(&mut self, told: &[(Place, i64)]) -> Option<(Place, Vec<i64>)> {
        let recent = &told[told.len().saturating_sub(12)..];
        let &(place, first) = self.random.pick(recent)?;
        let mut numbers = vec![first];
        for &(of, number) in recent {
            if of == place && self.random.percent(25) {
                numbers.push(number);
            }
        }
        if self.random.percent(8) {
            numbers.push(self.random.within(0, 200));
        }
        Some((place, numbers))
    }

    fn cancel(&mut self) {
        let told = self.scheduled.clone();
        if let Some((place, numbers)) = self.numbers(&told) {
            if self.random.percent(15) {
                let numbers = numbers.clone();
                self.ask(place, Ask::Cancel { numbers });
            }
            self.ask(place, Ask::Cancel { numbers });
        }
    }

    fn receive_deferred(&mut self) {
        let told = self.deferred.clone();
        if let Some((place, numbers)) = self.numbers(&told) {
            let delete = self.random.percent(25);
            let ask = Ask::Deferred {
                numbers,
                delete,
                session: None,
            };
            self.ask(place, ask);
        }
    }

    fn verdict(&mut self, often: [u64; 5]) -> Verdict {
        let random = &mut self.random;
        let mut properties = BTreeMap::new();
        if random.percent(25) {
            properties.insert("color".to_owned(), format!("n{}", random.below(4)));
        }
        if random.percent(10) {
            properties.insert("again".to_owned(), "yes".to_owned());
        }
        match random.weighted(&often) {
            0 => Verdict::Complete,
            1 => Verdict::Abandon(properties),
            2 => Verdict::Defer(properties),
            3 => Verdict::DeadLetter {
                reason: random.percent(60).then(|| "because".to_owned()),
                description: random.percent(40).then(|| "it is so".to_owned()),
                properties,
            },
            _ => Verdict::Release,
        }
    }

    fn settle(&mut self, fits: impl Fn(&Held) -> bool) {
        let usable: Vec<usize> = (0..self.held.len())
            .filter(|&at| fits(&self.held[at]))
            .filter(|&at| {
                let on = self.held[at].on.map(|(at, _)| at);
                let connection = on.and_then(|at| self.connections.get(&at.connection));
                connection.is_some_and(|of| on.is_some_and(|at| of.links.contains_key(&at.link)))
            })
            .collect();
        let Some(&at) = self.random.pick(&usable) else {
            return;
        };
        let verdict = self.verdict(VERDICTS_OF_LINKS);
        let held = &mut self.held[at];
        held.settled = true;
        let held = *held;
        let (on, delivery) = held.on.expect("it came on a link");
        let transaction = self.transaction(on.connection);
        let settled = transaction.is_none() && self.random.percent(15);
        if transaction.is_some() {
            self.held[at].settled = self.random.percent(50);
        }
        self.note_verdict(&held, &verdict);
        if matches!(verdict, Verdict::Complete) && !settled {
            self.ledger.completing(on, delivery, held.id);
        }
        let act = ClientAction::Settle {
            at: on,
            delivery,
            token: held.token,
            settled,
            verdict,
            transaction,
        };
        self.push(on.connection, act);
    }

    fn note_verdict(&mut self, held: &Held, verdict: &Verdict) {
        if matches!(verdict, Verdict::Defer(_)) {
            self.deferred.push((held.place, held.number));
        }
    }

    /// Picks locks of one place: mostly those that hold.
    fn some_locks(&mut self) -> Option<(Place, Vec<LockToken>)> {
        let recent = self.held[self.held.len().saturating_sub(10)..].to_vec();
        let live: Vec<Held> = recent
            .iter()
            .copied()
            .filter(|held| !held.settled)
            .collect();
        let from = if self.random.percent(15) {
            &recent
        } else {
            &live
        };
        let first = *self.random.pick(from)?;
        let mut tokens = vec![first.token];
        for held in from {
            let joins = held.place == first.place && held.token != first.token;
            if joins && self.random.percent(20) {
                tokens.push(held.token);
            }
        }
        if self.random.percent(3) {
            tokens.push(first.token);
        }
        if self.random.percent(3) {
            tokens.push(LockToken::from_uuid([7; 16]));
        }
        let place = if self.random.percent(2) {
            self.place()
        } else {
            first.place
        };
        Some((place, tokens))
    }

    fn dispose(&mut self) {
        let Some((place, tokens)) = self.some_locks() else {
            return;
        };
        let verdict = self.verdict(VERDICTS_OF_REQUESTS);
        for at in 0..self.held.len() {
            if tokens.contains(&self.held[at].token) {
                self.held[at].settled = true;
                let held = self.held[at];
                self.note_verdict(&held, &verdict);
            }
        }
        self.ask(place, Ask::Dispose { tokens, verdict });
    }

    fn renew(&mut self) {
        if let Some((place, tokens)) = self.some_locks() {
            self.ask(place, Ask::Renew { tokens });
        }
    }

    fn written(&mut self) {
        if let Some(at) = self.some_link(|link| link.unwritten > 0) {
            let link = self.link(at).expect("it was found");
            let bytes = std::mem::take(&mut link.unwritten);
            self.push(at.connection, ClientAction::Written { at, bytes });
        }
    }
}

/// Closes a connection.
fn close(connection: u32) -> ClientAction {
    ClientAction::Close {
        connection,
        unsent: Vec::new(),
        kept: Vec::new(),
    }
}
