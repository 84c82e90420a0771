//! The tables of a store by which a fleet decides, and what the statements of `src/store` do to them.

use std::collections::BTreeMap;
use std::time::Duration;

use jitney_cluster::heartbeat::{Entry, HeartbeatRequest, OwnRow, Replaces};
use jitney_cluster::limits;
use jitney_cluster::name::NameRow;
use jitney_cluster::planner::Fitness;
use jitney_cluster::poll::Correction;
use jitney_cluster::view::{NamespaceRow, ServerRow, StoreView};

/// Epochs that are left out after the database was restored to an earlier time, as `src/store` leaves them out.
const RESTORED_EPOCHS: i64 = 1 << 32;

/// The database of a store.
#[derive(Debug, Clone)]
pub(super) struct Database {
    /// Another one after the database was restored to an earlier time.
    pub(super) identity: u64,
    /// By their names.
    pub(super) servers: BTreeMap<String, ServerRecord>,
    pub(super) namespaces: Vec<NamespaceRecord>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ServerRecord {
    pub(super) incarnation: String,
    heartbeat: i64,
    pub(super) is_alive: bool,
    is_leaving: bool,
    pub(super) deaths: i32,
    /// The incarnation that takes no namespaces.
    skewed: Option<String>,
    /// The incarnation that rests.
    resting: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct NamespaceRecord {
    pub(super) epoch: i64,
    /// The name and the incarnation of the server that acquired it.
    pub(super) owner: Option<(String, String)>,
    pub(super) deaths: i32,
    died_at: Option<String>,
    pub(super) is_quarantined: bool,
    pauses: i32,
    /// The numbers that are in its log.
    pub(super) log: Vec<u64>,
}

/// What a server asks of the database. A server is known by its incarnation.
#[derive(Debug, Clone)]
pub(super) enum Statement {
    Append {
        id: i64,
        epoch: i64,
        number: u64,
    },
    Barrier {
        id: i64,
        epoch: i64,
    },
    DeclareDead(Vec<(String, String, i64)>),
    Correct(Correction),
    Fitness(String, Fitness),
    GiveBack(i64, String),
    Heartbeat(HeartbeatRequest),
    Leave(String),
    Poll,
    Quarantine(i64, String),
    Release {
        id: i64,
        epoch: i64,
    },
    Take {
        id: i64,
        epoch: i64,
        incarnation: String,
        dead: Option<String>,
    },
}

/// What the database answers.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// Whether the row was written: the epoch is still the one of the append.
    Appended(bool),
    Done,
    /// The deaths that are counted of the server; none if the row of its name is not the one that it has seen.
    Entered(Option<i32>),
    Heartbeat(OwnRow),
    Name(Option<NameRow>),
    Polled(StoreView),
    ReleasedAll(Option<i32>),
    /// The database is another one than the server knows.
    Replaced,
    /// The epoch, the deaths that are counted, and the last number of the log; none if another server was faster.
    Taken(Option<(i64, i32, u64)>),
}

impl Database {
    pub(super) fn new(namespaces: usize) -> Self {
        Self {
            identity: 1,
            servers: BTreeMap::new(),
            namespaces: vec![NamespaceRecord::default(); namespaces],
        }
    }

    /// Becomes what it was at an earlier time.
    pub(super) fn restore(&mut self, earlier: &Self) {
        let identity = self.identity + 1;
        *self = earlier.clone();
        self.identity = identity;
        for namespace in &mut self.namespaces {
            namespace.epoch += RESTORED_EPOCHS;
        }
    }

    fn namespace(&mut self, id: i64) -> &mut NamespaceRecord {
        &mut self.namespaces[usize::try_from(id).unwrap()]
    }

    fn is_alive(&self, name: &str, incarnation: &str) -> bool {
        let server = self.servers.get(name);
        server.is_some_and(|it| it.is_alive && it.incarnation == incarnation)
    }

    /// Carries out a statement of the server of that name.
    pub(super) fn execute(&mut self, name: &str, now: Duration, statement: &Statement) -> Answer {
        match statement {
            Statement::Append { id, epoch, number } => {
                let namespace = self.namespace(*id);
                let is_current = namespace.epoch == *epoch;
                if is_current && !namespace.log.contains(number) {
                    namespace.log.push(*number);
                }
                Answer::Appended(is_current)
            }
            Statement::Barrier { id, epoch } => {
                Answer::Appended(self.namespace(*id).epoch == *epoch)
            }
            Statement::DeclareDead(servers) => {
                for (name, incarnation, heartbeat) in servers {
                    if self.is_alive(name, incarnation)
                        && let Some(server) = self.servers.get_mut(name)
                        && server.heartbeat == *heartbeat
                    {
                        (server.is_alive, server.is_leaving) = (false, false);
                        server.deaths += 1;
                    }
                }
                Answer::Done
            }
            Statement::Correct(correction) => {
                self.correct(name, correction);
                Answer::Done
            }
            Statement::Fitness(incarnation, fitness) => {
                if let Some(server) = self.servers.get_mut(name)
                    && server.incarnation == *incarnation
                {
                    let of = |holds: bool| holds.then(|| incarnation.clone());
                    server.skewed = of(*fitness != Fitness::Fit);
                    server.resting = of(*fitness == Fitness::Resting);
                }
                Answer::Done
            }
            Statement::GiveBack(id, incarnation) => {
                let own = Some((name.to_owned(), incarnation.clone()));
                let namespace = self.namespace(*id);
                if namespace.owner == own {
                    namespace.give_back();
                }
                Answer::Done
            }
            Statement::Heartbeat(request) => self.heartbeat(name, request),
            Statement::Leave(incarnation) => {
                if let Some(server) = self.servers.get_mut(name)
                    && server.incarnation == *incarnation
                {
                    (server.is_alive, server.is_leaving, server.deaths) = (false, true, 0);
                    self.give_back_all(name, incarnation);
                }
                Answer::Done
            }
            Statement::Poll => Answer::Polled(self.view(now)),
            Statement::Quarantine(id, incarnation) => {
                let own = Some((name.to_owned(), incarnation.clone()));
                let namespace = self.namespace(*id);
                if namespace.owner == own && !namespace.is_quarantined {
                    namespace.is_quarantined = true;
                    namespace.pauses += 1;
                }
                Answer::Done
            }
            Statement::Release { id, epoch } => {
                let namespace = self.namespace(*id);
                if namespace.epoch == *epoch {
                    namespace.give_back();
                }
                Answer::Done
            }
            Statement::Take {
                id,
                epoch,
                incarnation,
                dead,
            } => Answer::Taken(self.take(name, *id, *epoch, incarnation, dead.as_ref())),
        }
    }

    fn correct(&mut self, name: &str, correction: &Correction) {
        match correction {
            Correction::Forget(incarnations) => {
                let namespaces = &self.namespaces;
                let owns = |incarnation: &str| {
                    let mut owners = namespaces.iter().filter_map(|it| it.owner.as_ref());
                    owners.any(|(_, owner)| owner == incarnation)
                };
                self.servers.retain(|_, it| {
                    it.is_alive || !incarnations.contains(&it.incarnation) || owns(&it.incarnation)
                });
            }
            Correction::EndPause(id, number) => {
                let namespace = self.namespace(*id);
                if namespace.is_quarantined && namespace.pauses == *number {
                    namespace.is_quarantined = false;
                    namespace.give_back();
                    (namespace.deaths, namespace.died_at) = (limits::TAKEOVERS_MAX, None);
                }
            }
            Correction::Forgive(incarnation) => {
                if let Some(server) = self.servers.get_mut(name)
                    && server.incarnation == *incarnation
                {
                    server.deaths = 0;
                }
            }
            Correction::CountAnew {
                incarnation,
                deaths,
                pauses,
            } => {
                let own = Some((name.to_owned(), incarnation.clone()));
                for (namespace, id) in self.namespaces.iter_mut().zip(0..) {
                    if namespace.owner == own && deaths.contains(&id) {
                        (namespace.deaths, namespace.died_at) = (0, None);
                    }
                    if namespace.owner == own && pauses.contains(&id) {
                        namespace.pauses = 0;
                    }
                }
            }
        }
    }

    fn heartbeat(&mut self, name: &str, request: &HeartbeatRequest) -> Answer {
        match request {
            HeartbeatRequest::ReadName => Answer::Name(self.servers.get(name).map(|it| NameRow {
                incarnation: it.incarnation.clone(),
                beat: it.heartbeat,
                is_alive: it.is_alive,
            })),
            HeartbeatRequest::Enter(entry) => Answer::Entered(self.enter(name, entry)),
            HeartbeatRequest::Beat(incarnation) => {
                let is_alive = self.is_alive(name, incarnation);
                let Some(server) = self.servers.get_mut(name).filter(|_| is_alive) else {
                    return Answer::Heartbeat(OwnRow::Gone);
                };
                server.heartbeat += 1;
                Answer::Heartbeat(OwnRow::Alive)
            }
            HeartbeatRequest::ReleaseAll(incarnation) => {
                let is_alive = self.is_alive(name, incarnation);
                let Some(server) = self.servers.get_mut(name).filter(|_| is_alive) else {
                    return Answer::ReleasedAll(None);
                };
                server.heartbeat += 1;
                server.deaths += 1;
                server.skewed = Some(incarnation.clone());
                server.resting = Some(incarnation.clone());
                let deaths = server.deaths;
                self.give_back_all(name, incarnation);
                Answer::ReleasedAll(Some(deaths))
            }
        }
    }

    fn enter(&mut self, name: &str, entry: &Entry) -> Option<i32> {
        let Entry {
            incarnation,
            seen,
            replaces,
            is_late,
        } = entry;
        let has_died = *replaces == Replaces::Another;
        let before = self.servers.get(name);
        let is_as_seen =
            before.is_none_or(|it| (&it.incarnation, it.heartbeat) == (&seen.0, seen.1));
        if !is_as_seen {
            return None;
        }
        let deaths = before.map_or(0, |it| it.deaths + i32::from(it.is_alive && has_died));
        let rests = *is_late || before.is_some() && limits::SERVER_DEATHS_MAX <= deaths;
        let of = rests.then(|| incarnation.clone());
        let entered = ServerRecord {
            incarnation: incarnation.clone(),
            heartbeat: 1,
            is_alive: true,
            is_leaving: false,
            deaths,
            skewed: of.clone(),
            resting: of,
        };
        self.servers.insert(name.to_owned(), entered);
        Some(deaths)
    }

    fn take(
        &mut self,
        name: &str,
        id: i64,
        epoch: i64,
        incarnation: &str,
        dead: Option<&String>,
    ) -> Option<(i64, i32, u64)> {
        let is_alive = self.is_alive(name, incarnation);
        let namespace = self.namespace(id);
        if namespace.epoch != epoch || !is_alive {
            return None;
        }
        namespace.epoch += 1;
        namespace.owner = Some((name.to_owned(), incarnation.to_owned()));
        if let Some(dead) = dead {
            namespace.deaths += 1;
            namespace.died_at = Some(dead.clone());
        }
        let deaths = if dead.is_some() { namespace.deaths } else { 0 };
        let last = namespace.log.last().copied().unwrap_or_default();
        Some((namespace.epoch, deaths, last))
    }

    fn give_back_all(&mut self, name: &str, incarnation: &str) {
        let own = (name.to_owned(), incarnation.to_owned());
        for namespace in &mut self.namespaces {
            if namespace.owner.as_ref() == Some(&own) {
                namespace.give_back();
            }
        }
    }

    fn view(&self, now: Duration) -> StoreView {
        let servers = self.servers.iter().map(|(name, it)| {
            let is_own = |of: &Option<String>| of.as_ref() == Some(&it.incarnation);
            ServerRow {
                name: name.clone(),
                incarnation: it.incarnation.clone(),
                beat: it.heartbeat,
                is_alive: it.is_alive,
                address: String::new(),
                is_leaving: it.is_leaving,
                fitness: match (is_own(&it.skewed), is_own(&it.resting)) {
                    (false, _) => Fitness::Fit,
                    (true, true) => Fitness::Resting,
                    (true, false) => Fitness::Unfit,
                },
                formats: 17,
            }
        });
        let namespaces = self.namespaces.iter().zip(0..).map(|(it, id)| {
            let owner = it.owner.as_ref();
            let live = owner.filter(|(name, incarnation)| self.is_alive(name, incarnation));
            let name = |owner: &(String, String)| owner.0.clone();
            let row = NamespaceRow {
                id,
                epoch: it.epoch,
                server: live.filter(|_| !it.is_quarantined).map(name),
                quarantined: it.is_quarantined.then(|| "its owners have died".to_owned()),
                rate: 0,
                quota: None,
                log_store: 0,
                name: format!("ns-{id}"),
                died: owner.filter(|_| live.is_none()).map(name),
                deaths: it.deaths,
                died_before: it.died_at.clone(),
                pauses: it.pauses,
                timeline: None,
                is_paused: it.is_quarantined,
                applied: None,
                formats: 17,
            };
            (row.name.clone(), row)
        });
        StoreView {
            name: "store".to_owned(),
            servers: servers.collect(),
            namespaces: namespaces.collect(),
            looked: Some(now),
            is_reached: true,
            ..StoreView::default()
        }
    }
}

impl NamespaceRecord {
    fn give_back(&mut self) {
        self.epoch += 1;
        self.owner = None;
    }
}
