//! The namespace: entities by their addresses, links to them, and the nodes `$management` and
//! `$cbs`.
//!
//! A [`Broker`] has one owner, who calls [`Broker::apply`] with what connections report and passes
//! the replies on. Each reply says which group of records it rests on, and may leave only when
//! that group is durable.
//!
//! Promises: what one entity tells one link comes in the order in which it happened; a reply about
//! a link that has gone is harmless.
//!
//! Leaves to others: bytes on the wire ([`crate::amqp`]), what happens to a message
//! ([`crate::entity`]), where records are kept.

mod access;
mod cbs;
mod delivery;
mod errors;
mod links;
pub mod management;
pub mod recovery;
mod send;
mod settle;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::address::{self, EntityAddress, SubQueue};
use crate::amqp::{Accept, DeliveryId, Event, LinkId, Outcome, Refusal, SessionId};
use crate::entity::queue::{
    ConsumerId, Context, Departure, Description, Effects, Handover, Kind, Queue, ReceiveMode,
};
use crate::entity::{BodyRef, EntityId, Journal, LockToken, Random, Record, SequenceNumber};
use crate::time::Timestamp;

pub use access::Profile;
pub use management::Response;
pub use recovery::Snapshot;

/// A connection, for the life of the broker; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// What a connection reports.
#[derive(Debug)]
pub enum Input {
    /// What its engine reported.
    Event(Event),
    /// A delivery could not be sent, for its link has no credit any more.
    Returned {
        /// The message's lock.
        token: LockToken,
        /// The link it was for.
        link: LinkId,
    },
    /// Messages for a receiver were written to its peer.
    Written {
        /// The receiver's link.
        link: LinkId,
        /// Bytes of the messages as they are kept.
        bytes: u64,
    },
}

/// What a connection is to do.
#[derive(Debug)]
pub enum Reply {
    /// Let a link in.
    AcceptLink(LinkId, Accept),
    /// Turn a link away.
    RefuseLink(LinkId, Refusal),
    /// Send a message.
    Deliver(LinkId, Handover),
    /// All that a drain was to bring has been sent: credit up to this limit is used up.
    Drained(LinkId, u32),
    /// Say what became of a message that came in.
    SettleIncoming {
        /// The link it came on.
        link: LinkId,
        /// The delivery.
        delivery: DeliveryId,
        /// What became of it.
        outcome: Outcome,
        /// The peer settled it already: only credit is told.
        settled: bool,
    },
    /// Say what became of a decision about a message that went out.
    SettleOutgoing(LinkId, DeliveryId, Outcome),
    /// Answer a request.
    Respond(LinkId, Box<Response>),
    /// End a link.
    Detach(LinkId, Refusal),
    /// End the connection, because the broker stops.
    Close,
}

/// A reply and when it may leave.
#[derive(Debug)]
pub struct Routed {
    /// For whom.
    pub connection: ConnectionId,
    /// The group of records that must be durable first; 0 for none.
    pub rests_on: u64,
    /// What to do.
    pub reply: Reply,
}

/// What surrounds a step.
pub struct Surroundings<'a> {
    /// The time.
    pub now: Timestamp,
    /// Where records go.
    pub journal: &'a mut dyn Journal,
    /// The number of the group of records that the journal is putting together; at least 1, and
    /// never smaller than in the step before.
    pub group: u64,
    /// Where replies go, in order.
    pub replies: &'a mut Vec<Routed>,
}

/// A namespace and all that is in it.
#[derive(Debug)]
pub struct Broker {
    /// By the form of the path that compares without case.
    by_path: BTreeMap<String, Entity>,
    queues: Vec<Option<Node>>,
    /// When queues have something to do; a time may be too early, never too late.
    deadlines: BTreeSet<(Timestamp, EntityId)>,
    connections: BTreeMap<ConnectionId, Connection>,
    random: Random,
    profile: Profile,
    room: Room,
    /// Kept from step to step for its memory.
    effects: Effects,
}

/// Whether the store can take more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It can.
    Enough,
    /// What is there can be settled, and nothing be added.
    None,
}

/// A queue as an entity: itself and its dead letters.
#[derive(Debug, Clone)]
struct Entity {
    path: String,
    main: EntityId,
    dead_letters: EntityId,
}

#[derive(Debug)]
struct Node {
    queue: Queue,
    /// The group of its newest record.
    group: u64,
    /// The time for which it stands in `deadlines`.
    armed: Option<Timestamp>,
    /// As clients know it, for error texts.
    address: EntityAddress,
}

#[derive(Debug, Default)]
struct Connection {
    links: BTreeMap<LinkId, Link>,
    /// Calls whose answers have no link yet.
    orphans: VecDeque<management::Call>,
}

#[derive(Debug)]
enum Link {
    /// Messages come in for a queue.
    Sender { queue: EntityId },
    /// Messages go out of a queue.
    Receiver { queue: EntityId, mode: ReceiveMode },
    /// Requests come in.
    Requests {
        node: links::ServiceNode,
        session: SessionId,
    },
    /// Responses go out.
    Responses(links::ResponseLink),
}

impl Broker {
    /// Makes an empty namespace.
    #[must_use]
    pub fn new(seed: u64, profile: Profile) -> Self {
        Self {
            by_path: BTreeMap::new(),
            queues: Vec::new(),
            deadlines: BTreeSet::new(),
            connections: BTreeMap::new(),
            random: Random::new(seed),
            profile,
            room: Room::Enough,
            effects: Effects::default(),
        }
    }

    /// Makes a queue, or gives the one at this path these properties.
    ///
    /// Returns whether anything changed.
    pub fn ensure_queue(
        &mut self,
        around: &mut Surroundings<'_>,
        path: &str,
        description: Description,
    ) -> bool {
        let key = address::key(path);
        if let Some(entity) = self.by_path.get(&key) {
            let (main, dead_letters) = (entity.main, entity.dead_letters);
            let unchanged = self
                .queue(main)
                .is_some_and(|queue| *queue.description() == description);
            if unchanged {
                return false;
            }
            record_entity(around, main, path, &description);
            for id in [main, dead_letters] {
                if let Some(node) = self.node_mut(id) {
                    node.queue.describe(description.clone());
                }
            }
            self.detach_forbidden(around, main);
            return true;
        }
        let main =
            EntityId(u32::try_from(self.queues.len()).expect("entities are counted in 32 bits"));
        record_entity(around, main, path, &description);
        self.install(main, path, &description);
        true
    }

    /// Does what a connection's report asks for.
    pub fn apply(&mut self, around: &mut Surroundings<'_>, connection: ConnectionId, input: Input) {
        match input {
            Input::Event(event) => self.apply_event(around, connection, event),
            Input::Returned { token, link } => self.returned(around, connection, link, token),
            Input::Written { link, bytes } => self.written(around, connection, link, bytes),
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, around: &mut Surroundings<'_>) {
        while let Some(&(at, id)) = self.deadlines.first() {
            if around.now < at {
                return;
            }
            self.with_queue(around, id, |_, _| ());
        }
    }

    /// Returns the time at which [`Broker::handle_timeout`] may have something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// Says whether the store can take more messages.
    pub fn set_room(&mut self, room: Room) {
        self.room = room;
    }

    /// Ends every link, because the broker stops.
    pub fn detach_all(&mut self, around: &mut Surroundings<'_>, refusal: &Refusal) {
        for (&connection, state) in &self.connections {
            for &link in state.links.keys() {
                let reply = Reply::Detach(link, refusal.clone());
                around.replies.push(Routed {
                    connection,
                    rests_on: around.group,
                    reply,
                });
            }
        }
    }

    /// Returns whether a send to some entity would be taken now.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.room == Room::Enough
    }

    /// Returns the queue at an address, as tests and tools see it.
    #[must_use]
    pub fn find(&self, address: &EntityAddress) -> Option<&Queue> {
        self.queue(self.resolve(address)?)
    }

    fn apply_event(
        &mut self,
        around: &mut Surroundings<'_>,
        connection: ConnectionId,
        event: Event,
    ) {
        match event {
            Event::Transfer {
                link,
                delivery,
                payload,
                message_format,
                settled,
                transaction,
            } => {
                let incoming = send::Incoming {
                    link,
                    delivery,
                    payload,
                    message_format,
                    settled,
                    transaction,
                };
                self.transfer(around, connection, incoming);
            }
            Event::Disposition {
                link,
                delivery,
                tag,
                settled,
                outcome,
                transaction,
            } => {
                let token = LockToken::from_tag(tag);
                let decision = settle::Decision {
                    link,
                    delivery,
                    token,
                    settled,
                    outcome,
                    transaction,
                };
                self.disposition(around, connection, decision);
            }
            Event::Credit { link, limit, drain } => {
                self.credit(around, connection, link, limit, drain);
            }
            Event::AttachRequested(link, attach) => self.attach(around, connection, link, &attach),
            Event::Detached { link, .. } => self.detached(connection, link),
            Event::Opened { .. } => {
                self.connections.entry(connection).or_default();
            }
            Event::Closed { .. } => self.closed(connection),
            Event::AttachAnswered(..) => {}
        }
    }

    /// Runs a step of one queue: first what is due, then `step`, then all that comes of it.
    fn with_queue<T>(
        &mut self,
        around: &mut Surroundings<'_>,
        id: EntityId,
        step: impl FnOnce(&mut Queue, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let mut effects = std::mem::take(&mut self.effects);
        let node = node_mut(&mut self.queues, id)?;
        let mut journal = Watched {
            inner: &mut *around.journal,
            wrote: false,
        };
        let mut cx = Context {
            now: around.now,
            journal: &mut journal,
            random: &mut self.random,
            effects: &mut effects,
        };
        if node.armed.is_some_and(|at| at <= around.now) {
            node.queue.handle_timeout(&mut cx);
        }
        let result = step(&mut node.queue, &mut cx);
        // A departure is recorded where it arrives, in this same group.
        if journal.wrote || !effects.departures.is_empty() {
            node.group = around.group;
        }
        let group = node.group;
        self.rearm(around.now, id);
        Self::deliver(around, group, &mut effects);
        for departure in std::mem::take(&mut effects.departures) {
            self.effects = effects;
            self.arrive(around, departure);
            effects = std::mem::take(&mut self.effects);
        }
        self.effects = effects;
        Some(result)
    }

    /// Brings a message to the queue it goes to. Not generic, as the step it is part of is.
    fn arrive(&mut self, around: &mut Surroundings<'_>, departure: Departure) {
        let to = departure.to;
        self.with_queue(around, to, |queue, cx| {
            queue.arrive(cx, departure);
            queue.dispatch(cx);
        });
    }

    /// Keeps a queue's place among the deadlines; one that lies too early is left alone, so that
    /// settling the next lock to end costs nothing.
    fn rearm(&mut self, now: Timestamp, id: EntityId) {
        let Some(node) = node_mut(&mut self.queues, id) else {
            return;
        };
        let next = node.queue.poll_timeout();
        let stands = match (node.armed, next) {
            (Some(armed), Some(next)) => armed <= next && now < armed,
            (Some(armed), None) => now < armed,
            (None, None) => true,
            (None, Some(_)) => false,
        };
        if !stands {
            if let Some(armed) = node.armed {
                self.deadlines.remove(&(armed, id));
            }
            node.armed = next;
            if let Some(next) = next {
                self.deadlines.insert((next, id));
            }
        }
    }

    /// Adds an entity with its two queues to the namespace.
    fn install(&mut self, main: EntityId, path: &str, description: &Description) {
        let dead_letters = EntityId(main.0 + 1);
        let end = usize::try_from(dead_letters.0).expect("32 bits fit") + 1;
        if self.queues.len() < end {
            self.queues.resize_with(end, || None);
        }
        let kinds = [
            (main, Kind::Main { dead_letters }, SubQueue::Main),
            (dead_letters, Kind::DeadLetter, SubQueue::DeadLetter),
        ];
        for (id, kind, sub_queue) in kinds {
            let queue = Queue::new(id, kind, description.clone(), SequenceNumber(1));
            let address = EntityAddress {
                path: path.to_owned(),
                queue: sub_queue,
            };
            let node = Node {
                queue,
                group: 0,
                armed: None,
                address,
            };
            if let Some(slot) = usize::try_from(id.0)
                .ok()
                .and_then(|at| self.queues.get_mut(at))
            {
                *slot = Some(node);
            }
        }
        let entity = Entity {
            path: path.to_owned(),
            main,
            dead_letters,
        };
        self.by_path.insert(address::key(path), entity);
    }

    fn resolve(&self, address: &EntityAddress) -> Option<EntityId> {
        let entity = self.by_path.get(&address.key())?;
        match address.queue {
            SubQueue::Main => Some(entity.main),
            SubQueue::DeadLetter => Some(entity.dead_letters),
            SubQueue::TransferDeadLetter => None,
        }
    }

    fn queue(&self, id: EntityId) -> Option<&Queue> {
        Some(&self.node(id)?.queue)
    }

    fn node(&self, id: EntityId) -> Option<&Node> {
        self.queues.get(usize::try_from(id.0).ok()?)?.as_ref()
    }

    fn node_mut(&mut self, id: EntityId) -> Option<&mut Node> {
        node_mut(&mut self.queues, id)
    }

    fn link(&self, connection: ConnectionId, link: LinkId) -> Option<&Link> {
        self.connections.get(&connection)?.links.get(&link)
    }
}

/// A journal that remembers whether it was written to.
struct Watched<'a> {
    inner: &'a mut dyn Journal,
    wrote: bool,
}

impl Journal for Watched<'_> {
    fn append(&mut self, record: &Record<'_>) -> Option<BodyRef> {
        self.wrote = true;
        self.inner.append(record)
    }

    fn release(&mut self, body: BodyRef) {
        self.inner.release(body);
    }
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("now", &self.now)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

fn node_mut(queues: &mut [Option<Node>], id: EntityId) -> Option<&mut Node> {
    queues.get_mut(usize::try_from(id.0).ok()?)?.as_mut()
}

fn record_entity(
    around: &mut Surroundings<'_>,
    entity: EntityId,
    path: &str,
    description: &Description,
) {
    let description = serde_json::to_vec(description).expect("numbers and words are JSON");
    around.journal.append(&Record::Entity {
        entity,
        path,
        description: &description,
    });
}

/// The name that a link has as a receiver of a queue.
fn consumer_id(connection: ConnectionId, link: LinkId) -> ConsumerId {
    ConsumerId(u64::from(connection.0) << 32 | u64::from(link.0))
}

/// The link behind a receiver of a queue.
fn link_of(consumer: ConsumerId) -> (ConnectionId, LinkId) {
    let low = u32::try_from(consumer.0 & u64::from(u32::MAX)).expect("masked to 32 bits");
    let high = u32::try_from(consumer.0 >> 32).expect("32 bits are left");
    (ConnectionId(high), LinkId(low))
}
