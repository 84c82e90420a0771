//! A broker and its end of a connection, for tests at the level of bytes.

use bytes::BytesMut;
use jitney_amqp::{Config, Connection};
use jitney_base::ids::ConnectionId;
use jitney_base::rights::{AuthorizationRule, Key, Rights};
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::access::Profile;
use jitney_gateway::Gateway;
use jitney_queue::{Description, EntityKind};
use jitney_shard::inline::Inline;

pub struct Rig {
    pub now: Timestamp,
    server: Inline,
    connection: ConnectionId,
}

pub fn config() -> Config {
    Config::server("jitney")
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
        Self::with(Gateway::new(1, Profile::Development), config())
    }

    /// The same, with keys that are verified: the key of the rule `root` is `key`.
    pub fn verified() -> Self {
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
        let mut gateway = Gateway::new(1, Profile::Verified);
        gateway.set_authorization("", vec![rule]);
        let config = Config {
            trusts_peer: false,
            ..config()
        };
        Self::with(gateway, config)
    }

    fn with(gateway: Gateway, config: Config) -> Self {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let description = Description {
            max_delivery_count: 3,
            default_time_to_live: Millis::from_secs(3_600),
            ..Description::default()
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
        let entities = [
            ("queue.1", description),
            ("sessions.1", sessions),
            ("topic.1", topic),
            ("topic.1/Subscriptions/subscription.1", subscription),
        ];
        let mut server = Inline::start(gateway, now, |gateway, cx| {
            for (path, description) in entities {
                let made = gateway.ensure_entity(cx, path, description);
                made.expect("an entity can be made");
            }
        });
        let connection = ConnectionId(1);
        server.connect(now, connection, config);
        Self {
            now,
            server,
            connection,
        }
    }

    /// Replaces the connection by a new one.
    pub fn reconnect(&mut self) {
        self.server.cut(self.now, self.connection);
        self.connection.0 += 1;
        self.server.connect(self.now, self.connection, config());
    }

    /// Hands bytes to the server, and returns its output.
    pub fn exchange(&mut self, bytes: &[u8]) -> BytesMut {
        self.server.receive(self.connection, bytes);
        self.server.turn(self.now);
        let output = self.server.output(self.connection);
        output.expect("it is there").split()
    }

    /// Advances the clock, and returns the output of the server.
    pub fn wait(&mut self, millis: i64) -> BytesMut {
        self.now = self.now.after(Millis::from_millis(millis));
        let output = self.exchange(&[]);
        let next = self.engine().poll_timeout();
        assert!(next.is_none_or(|next| self.now < next));
        output
    }

    /// Returns the number of bytes of the peer's incomplete frame.
    pub fn unread(&self) -> usize {
        self.server.unread(self.connection)
    }

    /// The server's engine.
    pub fn engine(&mut self) -> &mut Connection {
        self.server.engine(self.connection).expect("it is there")
    }
}
