//! A broker and its end of a connection, without a shell: what is decided is carried out at once.

use bytes::{Bytes, BytesMut};
use jitney::amqp::{Config, Connection, Delivery, Identity, SettleMode};
use jitney::broker::{Broker, ConnectionId, Input, Profile, Reply, Surroundings};
use jitney::entity::queue::{Description, EntityKind, ReceiveMode};
use jitney::entity::{AuthorizationRule, BodyRef, Journal, Key, Record, Rights};
use jitney::limits;
use jitney::message;
use jitney::time::{Millis, Timestamp};

/// A journal that keeps bodies and forgets the rest.
#[derive(Default)]
pub struct Bodies(Vec<Bytes>);

impl Journal for Bodies {
    fn append(&mut self, record: &Record<'_>) -> Option<BodyRef> {
        let (Record::Enqueued { body, .. } | Record::Relocated { body, .. }) = record else {
            return None;
        };
        self.0.push(Bytes::copy_from_slice(body));
        let position = u64::try_from(self.0.len() - 1).unwrap();
        Some(BodyRef {
            position,
            length: u32::try_from(body.len()).unwrap(),
        })
    }

    fn release(&mut self, _: BodyRef) {}
}

impl Bodies {
    fn get(&self, body: BodyRef) -> Bytes {
        self.0[usize::try_from(body.position).unwrap()].clone()
    }
}

pub struct Rig {
    pub now: Timestamp,
    pub broker: Broker,
    pub server: Connection,
    bodies: Bodies,
    connection: u32,
    input: BytesMut,
}

pub fn config() -> Config {
    Config {
        container_id: "jitney".to_owned(),
        hostname: None,
        frame_size_max: limits::FRAME_SIZE_MAX,
        channel_max: limits::CHANNEL_MAX,
        handle_max: limits::HANDLE_MAX,
        idle_timeout: limits::IDLE_TIMEOUT,
        identity: Identity::Anonymous,
        has_certificate: false,
        trusts_peer: true,
    }
}

/// Takes the bytes that an engine has to send.
pub fn said_by(engine: &mut Connection, now: Timestamp) -> BytesMut {
    let mut output = BytesMut::new();
    engine.take_output(now, &mut output);
    output
}

impl Rig {
    /// A broker with the queue `queue.1`: locks of a minute, three deliveries, an hour to live; the
    /// same with message sessions, `sessions.1`; and a topic `topic.1` with a subscription.
    pub fn new() -> Self {
        Self::with(Profile::Development, true)
    }

    /// The same, with a broker that verifies keys and has one: that of `root` is `key`.
    pub fn verified() -> Self {
        let mut rig = Self::with(Profile::Verified, false);
        let rule = AuthorizationRule {
            name: "root".to_owned(),
            rights: Rights {
                send: true,
                listen: true,
                manage: true,
            },
            primary_key: Key::new("key".to_owned()),
            secondary_key: None,
            created_at: None,
            modified_at: None,
        };
        rig.broker.set_authorization("", vec![rule]);
        rig
    }

    fn with(profile: Profile, trusts_peer: bool) -> Self {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let mut broker = Broker::new(1, profile);
        let mut bodies = Bodies::default();
        let description = Description {
            max_delivery_count: 3,
            default_time_to_live: Millis::from_secs(3_600),
            ..Description::default()
        };
        let mut replies = Vec::new();
        let mut around = Surroundings {
            now,
            journal: &mut bodies,
            group: 1,
            replies: &mut replies,
        };
        let sessions = Description {
            requires_session: true,
            ..description.clone()
        };
        let topic = Description {
            kind: EntityKind::Topic,
            ..Description::default()
        };
        let subscription = Description {
            kind: EntityKind::Subscription,
            ..description.clone()
        };
        for (path, description) in [
            ("queue.1", description),
            ("sessions.1", sessions),
            ("topic.1", topic),
            ("topic.1/Subscriptions/subscription.1", subscription),
        ] {
            broker
                .ensure_entity(&mut around, path, description)
                .expect("an entity can be made");
        }
        let config = Config {
            trusts_peer,
            ..config()
        };
        let server = Connection::server(config, now);
        Self {
            now,
            broker,
            server,
            bodies,
            connection: 1,
            input: BytesMut::new(),
        }
    }

    /// Puts another connection in the place of the one there is.
    pub fn reconnect(&mut self) {
        self.server.handle_eof(self.now);
        self.turn();
        self.connection += 1;
        self.input.clear();
        self.server = Connection::server(config(), self.now);
    }

    /// Hands bytes to the server, and returns what it answers.
    pub fn exchange(&mut self, bytes: &[u8]) -> BytesMut {
        self.input.extend_from_slice(bytes);
        self.server.handle_bytes(self.now, &mut self.input);
        self.turn();
        said_by(&mut self.server, self.now)
    }

    /// Moves the clock, and returns what the server says by itself.
    pub fn wait(&mut self, millis: i64) -> BytesMut {
        self.now = self.now.after(Millis::from_millis(millis));
        self.server.handle_timeout(self.now);
        assert!(
            self.server
                .poll_timeout()
                .is_none_or(|next| self.now < next)
        );
        self.turn();
        said_by(&mut self.server, self.now)
    }

    /// Bytes of the peer's that wait for the rest of their frame.
    pub fn unread(&self) -> usize {
        self.input.len()
    }

    fn turn(&mut self) {
        loop {
            let inputs: Vec<Input> = std::iter::from_fn(|| self.server.poll_event())
                .map(Input::Event)
                .collect();
            let more = !inputs.is_empty();
            self.apply(inputs);
            if !more {
                return;
            }
        }
    }

    fn apply(&mut self, mut inputs: Vec<Input>) {
        loop {
            let mut replies = Vec::new();
            let mut around = Surroundings {
                now: self.now,
                journal: &mut self.bodies,
                group: 1,
                replies: &mut replies,
            };
            for input in inputs.drain(..) {
                self.broker
                    .apply(&mut around, ConnectionId(self.connection), input);
            }
            self.broker.handle_timeout(&mut around);
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
            for routed in replies {
                if routed.connection == ConnectionId(self.connection) {
                    inputs.extend(self.carry_out(routed.reply));
                }
            }
            if inputs.is_empty() {
                return;
            }
        }
    }

    fn carry_out(&mut self, reply: Reply) -> Option<Input> {
        match reply {
            Reply::AcceptLink(link, accept) => self.server.accept_link(link, accept),
            Reply::RefuseLink(link, refusal) => self.server.refuse_link(link, refusal),
            Reply::Drained(link, limit) => self.server.drained(link, limit),
            Reply::SettleIncoming {
                link,
                delivery,
                outcome,
                settled,
            } => {
                self.server
                    .settle_incoming(link, delivery, &outcome, settled);
            }
            Reply::SettleOutgoing(link, delivery, outcome) => {
                self.server.settle_outgoing(link, delivery, &outcome);
            }
            Reply::Detach(link, refusal) => self.server.detach(link, Some(refusal)),
            Reply::Close(_) => self.server.close(self.now, None),
            Reply::Authenticated(is_genuine) => {
                self.server.authenticated(is_genuine);
                self.server.handle_bytes(self.now, &mut self.input);
            }
            Reply::Admitted => self.server.trust(),
            Reply::Respond(link, response) => {
                let bodies: Vec<Bytes> = response
                    .bodies()
                    .map(|body| self.bodies.get(body))
                    .collect();
                let encoded = response.encode(&bodies);
                let payload: &[&[u8]] = &[&encoded];
                let settle_mode = SettleMode::OnSend;
                let delivery = Delivery {
                    tag: [0; 16],
                    settle_mode,
                    message_format: 0,
                    payload,
                };
                let _ = self.server.deliver(link, delivery);
                return Some(Input::Answered(response.bytes()));
            }
            Reply::Deliver(link, handover) => {
                let mut rendered = Vec::new();
                message::render(
                    &mut rendered,
                    &self.bodies.get(handover.body),
                    &handover.stamps,
                );
                let settle_mode = match handover.mode {
                    ReceiveMode::PeekLock => SettleMode::OnReceipt,
                    ReceiveMode::ReceiveAndDelete => SettleMode::OnSend,
                };
                let payload: &[&[u8]] = &[&rendered];
                let tag = handover.token.to_tag();
                let delivery = Delivery {
                    tag,
                    settle_mode,
                    message_format: handover.stamps.message_format(),
                    payload,
                };
                if self.server.deliver(link, delivery).is_err() {
                    return Some(Input::Returned {
                        token: handover.token,
                        link,
                    });
                }
            }
        }
        None
    }
}
