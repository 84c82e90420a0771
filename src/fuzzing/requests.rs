//! Requests to `$management` and `$cbs`, and messages to queues, topics and the coordinator: a whole broker without a wire.

use bytes::Bytes;
use fe2o3_amqp_types::definitions::{ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp_types::messaging::{Source, Target};

use super::parts;
use crate::amqp::{Attach, DeliveryId, Event, Identity, LinkId, LinkRole, LinkTarget, SessionId};
use crate::broker::{Broker, ConnectionId, Input, Profile, Reply, Surroundings};
use crate::entity::queue::{Description, EntityKind};
use crate::entity::{BodyRef, Journal, Record};
use crate::message::{self, BATCH_FORMAT};
use crate::time::{Millis, Timestamp};

const CONNECTION: ConnectionId = ConnectionId(1);
/// Steps of the broker that one message may cause at most.
const STEPS_MAX: usize = 1_000;

/// Where the parts of an input go, by their first bytes: pairs of a node, each with a link to it and one from it.
const NODES: [&str; 6] = [
    "queue.1/$management",
    "$cbs",
    "topic.1/Subscriptions/subscription.1/$management",
    "queue.1",
    "topic.1",
    "sessions.1/$management",
];

/// Sends each part of an input to a node: the first byte's last three bits name it. The bit above asks for a batch.
pub(super) fn run(input: &[u8]) {
    let mut client = Client::new();
    for (number, part) in (0..).zip(parts(input)) {
        let Some((&first, payload)) = part.split_first() else {
            continue;
        };
        let node = u32::from(first & 7) % 6;
        client.step(Input::Event(Event::Transfer {
            link: LinkId(2 * node),
            delivery: DeliveryId(number),
            payload: Bytes::copy_from_slice(payload),
            message_format: if first & 8 == 0 { 0 } else { BATCH_FORMAT },
            settled: first & 16 != 0,
            transaction: None,
        }));
        if first & 32 != 0 {
            client.now = client.now.after(Millis::from_secs(61));
        }
    }
    client.step(Input::Event(Event::Closed {
        error: None,
        unsent: Vec::new(),
    }));
}

/// Keeps bodies and forgets the rest.
#[derive(Default)]
struct Bodies(Vec<Bytes>);

impl Journal for Bodies {
    fn append(&mut self, record: &Record<'_>) -> Option<BodyRef> {
        let (Record::Enqueued { body, .. } | Record::Relocated { body, .. }) = record else {
            return None;
        };
        self.0.push(Bytes::copy_from_slice(body));
        Some(BodyRef {
            position: u64::try_from(self.0.len()).ok()? - 1,
            length: u32::try_from(body.len()).ok()?,
        })
    }

    fn release(&mut self, _: BodyRef) {}
}

impl Bodies {
    fn get(&self, body: BodyRef) -> Bytes {
        let position = usize::try_from(body.position).ok();
        let found = position.and_then(|position| self.0.get(position)).cloned();
        found.unwrap_or_default()
    }
}

/// A broker, and the one connection that it has.
struct Client {
    now: Timestamp,
    broker: Broker,
    bodies: Bodies,
}

impl Client {
    fn new() -> Self {
        let mut client = Self {
            now: Timestamp::from_millis(1_800_000_000_000),
            broker: Broker::new(1, Profile::Development),
            bodies: Bodies::default(),
        };
        client.make_entities();
        client.step(Input::Event(Event::Opened {
            container_id: "client".to_owned(),
            hostname: None,
            identity: Identity::Anonymous,
            is_client_provider: false,
        }));
        for (node, address) in (0..).zip(NODES) {
            for (link, role) in [
                (LinkId(2 * node), LinkRole::Incoming),
                (LinkId(2 * node + 1), LinkRole::Outgoing),
            ] {
                let attach = attach(address, link, role);
                client.step(Input::Event(Event::AttachRequested(link, Box::new(attach))));
                if role == LinkRole::Outgoing {
                    let (limit, drain) = (50, false);
                    client.step(Input::Event(Event::Credit { link, limit, drain }));
                }
            }
        }
        client
    }

    fn make_entities(&mut self) {
        let queue = Description {
            max_delivery_count: 3,
            ..Description::default()
        };
        let of = |kind| Description {
            kind,
            ..queue.clone()
        };
        let sessions = Description {
            requires_session: true,
            ..queue.clone()
        };
        let mut replies = Vec::new();
        let mut around = Surroundings {
            now: self.now,
            journal: &mut self.bodies,
            group: 1,
            replies: &mut replies,
        };
        for (path, description) in [
            ("queue.1", queue.clone()),
            ("sessions.1", sessions),
            ("topic.1", of(EntityKind::Topic)),
            (
                "topic.1/Subscriptions/subscription.1",
                of(EntityKind::Subscription),
            ),
        ] {
            let made = self.broker.ensure_entity(&mut around, path, description);
            assert!(made.is_ok(), "{path} cannot be made");
        }
    }

    /// Lets the broker do a step, and all that follows from it.
    fn step(&mut self, input: Input) {
        let mut inputs = vec![input];
        let mut steps = 0;
        while !inputs.is_empty() {
            let mut replies = Vec::new();
            for input in inputs.drain(..) {
                steps += 1;
                assert!(steps < STEPS_MAX, "no end of steps");
                let mut around = Surroundings {
                    now: self.now,
                    journal: &mut self.bodies,
                    group: 1,
                    replies: &mut replies,
                };
                self.broker.apply(&mut around, CONNECTION, input);
                self.broker.handle_timeout(&mut around);
            }
            while self.broker.has_wanted() {
                let wanted = self.broker.wanted().into_iter();
                let found = wanted.map(|wanted| (wanted, self.bodies.get(wanted.body)));
                let found = found.collect();
                let mut around = Surroundings {
                    now: self.now,
                    journal: &mut self.bodies,
                    group: 1,
                    replies: &mut replies,
                };
                self.broker.read_back(&mut around, found);
            }
            let replies = replies.into_iter();
            inputs.extend(replies.filter_map(|routed| self.carry_out(routed.reply)));
        }
    }

    /// Writes what the broker says. Answers and messages are well formed.
    fn carry_out(&self, reply: Reply) -> Option<Input> {
        match reply {
            Reply::Respond(_, response) => {
                let bodies: Vec<Bytes> = response
                    .bodies()
                    .map(|body| self.bodies.get(body))
                    .collect();
                let encoded = Bytes::from(response.encode(&bodies));
                let parsed = message::Message::parse(encoded);
                assert!(parsed.is_ok(), "an answer is no message: {parsed:?}");
                Some(Input::Answered(response.bytes()))
            }
            Reply::Deliver(link, handover) => {
                let mut rendered = Vec::new();
                let body = self.bodies.get(handover.body);
                message::render(&mut rendered, &body, &handover.stamps);
                let parsed = message::Message::parse(Bytes::from(rendered));
                assert!(parsed.is_ok(), "a delivery is no message: {parsed:?}");
                let bytes = u64::from(handover.body.length);
                Some(Input::Written { link, bytes })
            }
            Reply::AcceptLink(..)
            | Reply::Admitted
            | Reply::Authenticated(_)
            | Reply::Close(_)
            | Reply::Detach(..)
            | Reply::Drained(..)
            | Reply::RefuseLink(..)
            | Reply::SettleIncoming { .. }
            | Reply::SettleOutgoing(..) => None,
        }
    }
}

/// Asks for a link to a node, or from it.
fn attach(address: &str, link: LinkId, role: LinkRole) -> Attach {
    let (mut source, mut target) = (Source::default(), Target::default());
    match role {
        LinkRole::Incoming => target.address = Some(address.to_owned()),
        LinkRole::Outgoing => source.address = Some(address.to_owned()),
    }
    Attach {
        name: format!("link {}", link.0),
        role,
        session: SessionId(0),
        source: Some(source),
        target: LinkTarget::Node(Some(target)),
        snd_settle_mode: SenderSettleMode::Unsettled,
        rcv_settle_mode: ReceiverSettleMode::First,
        message_size_max: 0,
        properties: None,
    }
}
