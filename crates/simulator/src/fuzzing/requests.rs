//! Requests to `$management` and `$cbs`, and messages to queues, topics and the coordinator: a whole shard without a wire.

use bytes::Bytes;
use fe2o3_amqp_types::definitions::{ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp_types::messaging::{Source, Target};

use super::{NOW, make_entities, parts};
use jitney_amqp::{
    Attach, DeliveryId, Event, Identity, IncomingTransfer, LinkCredit, LinkId, LinkRole,
    LinkTarget, SessionId,
};
use jitney_base::ids::ConnectionId;
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::access::{Origin, Profile};
use jitney_gateway::Gateway;
use jitney_message::BATCH_FORMAT;
use jitney_shard::inline::Inline;
use jitney_shard::{Input, Outgoing, Report};

const CONNECTION: ConnectionId = ConnectionId(1);
/// Steps of the broker that one message may cause at most.
const STEPS_MAX: usize = 1_000;

/// The nodes that the parts of an input go to, by their first bytes: for each node a link to it and
/// one from it.
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
        client.step(Report::Event(Event::Transfer(IncomingTransfer {
            link: LinkId(2 * node),
            delivery: DeliveryId(number),
            payload: Bytes::copy_from_slice(payload),
            message_format: if first & 8 == 0 { 0 } else { BATCH_FORMAT },
            settled: first & 16 != 0,
            transaction: None,
        })));
        if first & 32 != 0 {
            client.now = client.now.after(Millis::from_secs(61));
        }
    }
    client.step(Report::Event(Event::Closed {
        error: None,
        unsent: Vec::new(),
    }));
}

/// A shard, and the one connection that it has.
struct Client {
    now: Timestamp,
    server: Inline,
}

impl Client {
    fn new() -> Self {
        let gateway = Gateway::new(1, Profile::Development);
        let mut server = Inline::start(gateway, NOW, make_entities);
        let connected = Input::Connected(CONNECTION, Origin::default());
        server.shard.handle(NOW, connected);
        let mut client = Self { now: NOW, server };
        client.step(Report::Event(Event::Opened {
            container_id: "client".to_owned(),
            hostname: None,
            identity: Identity::Anonymous,
            is_client_provider: false,
            product: Box::default(),
        }));
        for (node, address) in (0..).zip(NODES) {
            for (link, role) in [
                (LinkId(2 * node), LinkRole::Incoming),
                (LinkId(2 * node + 1), LinkRole::Outgoing),
            ] {
                let attach = attach(address, link, role);
                client.step(Report::Event(Event::AttachRequested(
                    link,
                    Box::new(attach),
                )));
                if role == LinkRole::Outgoing {
                    let (limit, drain) = (50, false);
                    client.step(Report::Event(Event::Credit(LinkCredit {
                        link,
                        limit,
                        drain,
                    })));
                }
            }
        }
        client
    }

    /// Runs a step of the shard, and all that follows from it.
    fn step(&mut self, report: Report) {
        let mut reports = vec![report];
        let mut steps = 0;
        while !reports.is_empty() {
            steps += 1;
            assert!(steps < STEPS_MAX, "no end of steps");
            let shard = &mut self.server.shard;
            shard.handle(self.now, Input::Reports(CONNECTION, reports));
            self.server.turn(self.now);
            let outgoing = self.server.shard.outgoing(CONNECTION);
            let outgoing = outgoing.map(std::mem::take).unwrap_or_default();
            reports = outgoing.into_iter().filter_map(write).collect();
        }
    }
}

/// Encodes the output for a client. Answers and messages must be well formed.
fn write(outgoing: Outgoing) -> Option<Report> {
    match outgoing {
        Outgoing::Respond(_, response, bodies) => {
            let encoded = Bytes::from(response.encode(&bodies));
            let parsed = jitney_message::Message::parse(encoded);
            assert!(parsed.is_ok(), "an answer is no message: {parsed:?}");
            Some(Report::Answered(response.bytes()))
        }
        Outgoing::Deliver(link, handover, body) => {
            let mut rendered = Vec::new();
            jitney_message::render(&mut rendered, &body, &handover.stamps);
            let parsed = jitney_message::Message::parse(Bytes::from(rendered));
            assert!(parsed.is_ok(), "a delivery is no message: {parsed:?}");
            let bytes = u64::from(handover.body.length);
            Some(Report::Written { link, bytes })
        }
        Outgoing::Close(_) | Outgoing::Reply(_) => None,
    }
}

/// Attaches a link to a node, or from it.
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
