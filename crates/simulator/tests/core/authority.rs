//! A client reaches only entities in the scope of its token: over AMQP, over the REST interface and
//! over the administration API, for paths of any spelling.
//!
//! Paths are combined from pieces that a parser may misread. The test looks for the message in the
//! queues, and does not rely on the broker's answers.

use base64::Engine as _;
use bytes::Bytes;
use fe2o3_amqp_types::definitions::{ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp_types::messaging::{Source, Target};
use jitney_amqp::{
    Attach, DeliveryId, Event, IncomingTransfer, LinkCredit, LinkId, LinkRole, LinkTarget,
    SessionId,
};
use jitney_base::address::{EntityAddress, SubQueue};
use jitney_base::ids::BodyRef;
use jitney_base::ids::ConnectionId;
use jitney_base::rights::{AuthorizationRule, Key, Rights};
use jitney_base::secret::Secret;
use jitney_base::time::Timestamp;
use jitney_broker::access::{Authority, Inquiry, PeerAddress, Profile};
use jitney_broker::namespace::StepContext;
use jitney_gateway::admin;
use jitney_gateway::admin::{AdminAnswer, AdminOperation};
use jitney_gateway::messages::{SendMessages, SentAs};
use jitney_gateway::request::Requester;
use jitney_gateway::rest;
use jitney_gateway::{Gateway, QueuedReply, Reply, Report, StepReply};
use jitney_message::{Draft, Message};
use jitney_queue::{Description, EntityKind};
use jitney_queue::{Journal, Record};
use proptest::prelude::*;

/// Queues, topics and subscriptions, by their paths in the first namespace or, with `//other/`
/// before them, in the second one.
const QUEUES: [&str; 6] = ["q1", "q1/below", "q2", "x", "messages", "//other/vault"];
const TOPIC: &str = "t";
const SUBSCRIPTION: &str = "t/Subscriptions/s";

/// Scopes of tokens; all are signed by the namespace's key.
const SCOPES: [&str; 6] = ["q1", "q2", "t", "t/Subscriptions/s", "x", "messages"];

const PIECES: [&str; 27] = [
    "q1",
    "Q1",
    "q2",
    "x",
    "t",
    "s",
    "vault",
    "other",
    "below",
    "h",
    "/",
    "//",
    "%2F",
    "%2f%2F",
    "%252F",
    "://",
    ":%2F%2F",
    "sb://h/",
    "messages",
    "head",
    "Subscriptions",
    "..",
    "%2e%2e",
    "$management",
    "$DeadLetterQueue",
    "?",
    "#",
];

struct NullJournal;

impl Journal for NullJournal {
    fn append(&mut self, record: &Record<'_>) -> Option<BodyRef> {
        let Record::Enqueued { body, .. } = record else {
            return None;
        };
        let length = u32::try_from(body.len()).unwrap();
        Some(BodyRef {
            position: 1,
            length,
        })
    }

    fn release(&mut self, _: BodyRef) {}
}

struct World {
    gateway: Gateway,
    replies: Vec<QueuedReply>,
}

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const GUEST: ConnectionId = ConnectionId(1);

impl World {
    fn new() -> Self {
        let mut gateway = Gateway::new(1, Profile::Verified);
        gateway
            .namespaces_mut()
            .set_namespaces(["first", "other"].into_iter());
        for name in ["first", "other"] {
            let rule = AuthorizationRule {
                name: "root".to_owned(),
                rights: Rights::ALL,
                primary_key: Key::new(format!("key of {name}")),
                secondary_key: None,
                created_at: None,
                modified_at: None,
            };
            gateway.set_authorization(name, vec![rule]);
        }
        let replies = Vec::new();
        let mut world = Self { gateway, replies };
        let of = |kind| Description {
            kind,
            ..Description::default()
        };
        let queues = QUEUES.iter().map(|path| (*path, EntityKind::Queue));
        let rest = [
            (TOPIC, EntityKind::Topic),
            (SUBSCRIPTION, EntityKind::Subscription),
        ];
        for (path, kind) in queues.chain(rest) {
            world.step(|gateway, cx| gateway.ensure_entity(cx, path, of(kind)).unwrap());
        }
        world
    }

    fn step<T>(&mut self, step: impl FnOnce(&mut Gateway, &mut StepContext<'_>) -> T) -> T {
        let mut cx = StepContext {
            now: NOW,
            journal: &mut NullJournal,
            group: 1,
        };
        let result = step(&mut self.gateway, &mut cx);
        let replies = self.gateway.replies().drain(..);
        self.replies.extend(replies.filter_map(|reply| match reply {
            StepReply::Connection(routed) => Some(routed),
            StepReply::Receive(_) => None,
        }));
        result
    }

    /// Returns the entities that have received a message, as paths that compare without case.
    fn reached(&self) -> Vec<String> {
        let queues = QUEUES.iter().chain(&[SUBSCRIPTION]);
        let full = queues.filter(|path| {
            let address = EntityAddress {
                path: (**path).to_owned(),
                queue: SubQueue::Main,
            };
            self.gateway
                .namespaces()
                .find(&address)
                .is_some_and(|it| !it.is_empty())
        });
        full.map(|path| path.to_lowercase()).collect()
    }

    fn authorize(&mut self, scope: &str, path: &str) -> Option<Authority> {
        let token = sas(&format!("https://h/{scope}"));
        let inquiry = Inquiry {
            peer: PeerAddress(1),
            host: Some("first".to_owned()),
            nowhere: None,
            token: Some(Secret::new(token)),
            path: path.to_owned(),
            supplementary: Vec::new(),
        };
        let authorized = self.gateway.authorize(NOW, &inquiry);
        authorized.ok()
    }
}

fn sas(resource: &str) -> String {
    let encode = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    let (resource, ends) = (encode(resource), 1_800_000_060);
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, b"key of first");
    let tag = aws_lc_rs::hmac::sign(&key, format!("{resource}\n{ends}").as_bytes());
    let signature = base64::engine::general_purpose::STANDARD.encode(tag.as_ref());
    let signature = encode(&signature);
    format!("SharedAccessSignature sr={resource}&sig={signature}&se={ends}&skn=root")
}

fn message() -> Message {
    Message::parse(Draft::default().begin(NOW).finish()).unwrap()
}

/// Returns whether an entity is in the scope of a token.
fn is_below(entity: &str, scope: &str) -> bool {
    let scope = scope.to_lowercase();
    entity == scope || entity.starts_with(&format!("{scope}/"))
}

fn check(world: &World, scope: &str, path: &str) {
    for entity in world.reached() {
        assert!(
            is_below(&entity, scope),
            "{path} with a token for {scope} reached {entity}"
        );
    }
}

/// A path that begins with a scope, so that many are authorized, or any path.
fn paths() -> impl Strategy<Value = (usize, String)> {
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..7);
    (0..SCOPES.len(), any::<bool>(), pieces).prop_map(|(scope, is_below, pieces)| {
        let rest = pieces.concat();
        let path = if is_below {
            format!("{}/{rest}", SCOPES[scope])
        } else {
            rest
        };
        (scope, path)
    })
}

fn requester(authority: Authority) -> Requester {
    Requester {
        host: Some("first".to_owned()),
        authority,
    }
}

/// Sends one message to a path over the REST interface; returns whether it was taken.
fn send_over_http(world: &mut World, scope: &str, path: &str) -> bool {
    let path = format!("/{path}/messages");
    let Some(authority) = world.authorize(scope, &path) else {
        return false;
    };
    let Ok(Some(rest::RequestLine::Send { path })) = rest::RequestLine::read("POST", &path, None)
    else {
        return false;
    };
    let sent = SendMessages {
        path,
        messages: vec![message()],
        sent_as: SentAs::Messages,
    };
    let requester = requester(authority);
    world
        .step(|gateway, cx| gateway.serve(cx, &requester, sent))
        .is_ok()
}

/// Sends one message to an address over AMQP, with a token that was put for an audience.
fn send_over_amqp(world: &mut World, scope: &str, audience: &str, address: &str) {
    let token = sas(&format!("sb://h/{scope}"));
    world.step(|gateway, cx| {
        let opened = Event::Opened {
            container_id: "guest".to_owned(),
            hostname: Some("first".to_owned()),
            identity: jitney_amqp::Identity::Anonymous,
            is_client_provider: false,
            product: Box::default(),
        };
        gateway.apply(cx, GUEST, Report::Event(opened));
    });
    // A request is carried out when there is a link for its answer.
    world.step(|gateway, cx| {
        for event in attach(LinkId(3), LinkRole::Outgoing, "$cbs") {
            gateway.apply(cx, GUEST, Report::Event(event));
        }
    });
    send(world, LinkId(1), "$cbs", put_token(audience, &token));
    let message = Bytes::copy_from_slice(message().bytes());
    send(world, LinkId(2), address, message);
}

/// Returns the events of a link that is attached to an address, and has credit.
fn attach(link: LinkId, role: LinkRole, address: &str) -> Vec<Event> {
    let attach = Attach {
        name: format!("link {}", link.0),
        role,
        session: SessionId(0),
        source: Some(Source::builder().address(address).build()),
        target: LinkTarget::Node(Some(Target::builder().address(address).build())),
        snd_settle_mode: SenderSettleMode::default(),
        rcv_settle_mode: ReceiverSettleMode::default(),
        message_size_max: 0,
        properties: None,
    };
    let credit = Event::Credit(LinkCredit {
        link,
        limit: 10,
        drain: false,
    });
    let mut events = vec![Event::AttachRequested(link, Box::new(attach))];
    events.extend((role == LinkRole::Outgoing).then_some(credit));
    events
}

/// Attaches a sender to an address; sends a message if the link is accepted.
fn send(world: &mut World, link: LinkId, address: &str, payload: Bytes) {
    let transfer = Event::Transfer(IncomingTransfer {
        link,
        delivery: DeliveryId(link.0),
        payload,
        message_format: 0,
        settled: false,
        transaction: None,
    });
    world.step(|gateway, cx| {
        for event in attach(link, LinkRole::Incoming, address) {
            gateway.apply(cx, GUEST, Report::Event(event));
        }
        let let_in = |reply: &StepReply| match reply {
            StepReply::Connection(routed) => {
                matches!(routed.reply, Reply::AcceptLink(it, _) if it == link)
            }
            StepReply::Receive(_) => false,
        };
        if gateway.replies().iter().any(let_in) {
            gateway.apply(cx, GUEST, Report::Event(transfer));
        }
    });
}

/// Encodes a request to `$cbs`: application-properties, and the token as the value.
fn put_token(audience: &str, token: &str) -> Bytes {
    let text = |text: &str| {
        let length = u32::try_from(text.len()).unwrap().to_be_bytes();
        [&[0xb1], &length[..], text.as_bytes()].concat()
    };
    let properties = [
        ("operation", "put-token"),
        ("type", "servicebus.windows.net:sastoken"),
        ("name", audience),
    ];
    let mut map = 6_u32.to_be_bytes().to_vec();
    for (name, value) in properties {
        map.extend(text(name));
        map.extend(text(value));
    }
    let size = u32::try_from(map.len()).unwrap().to_be_bytes();
    let head: &[u8] = &[0x00, 0x53, 0x74, 0xd1];
    let value = [&[0x00, 0x53, 0x77], &text(token)[..]].concat();
    [head, &size, &map, &value].concat().into()
}

/// Asks the administration API for the entity at a path; returns the path of the entity in the answer.
fn read_over_http(world: &mut World, scope: &str, path: &str) -> Option<String> {
    let path = format!("/{path}");
    let authority = world.authorize(scope, &path)?;
    let asked = admin::AdminRequest::read(&admin::RequestHead {
        method: "GET",
        path: &path,
        query: None,
        host: "first",
        if_match: None,
    });
    let operation: AdminOperation = asked.ok()?.operation(&[]).ok()?;
    let requester = requester(authority);
    let answer = world.step(|gateway, cx| gateway.serve(cx, &requester, operation));
    match answer {
        Ok(AdminAnswer::Entity(view)) => Some(view.path.to_lowercase()),
        _ => None,
    }
}

#[test]
fn a_token_reaches_entities_of_its_scope_only() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(3_000));
    runner
        .run(&(paths(), paths()), |((scope, path), (_, address))| {
            let scope = SCOPES[scope];
            let mut world = World::new();
            send_over_http(&mut world, scope, &path);
            check(&world, scope, &path);
            if let Some(entity) = read_over_http(&mut world, scope, &path) {
                assert!(
                    is_below(&entity, scope),
                    "{path} with a token for {scope}: {entity}"
                );
            }
            let audience = format!("sb://h/{path}");
            send_over_amqp(&mut world, scope, &audience, &path);
            check(&world, scope, &path);
            let mut world = World::new();
            send_over_amqp(&mut world, scope, &audience, &address);
            check(&world, scope, &address);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_token_put_over_amqp_opens_its_queue() {
    let mut world = World::new();
    send_over_amqp(&mut world, "q1", "sb://h/q1", "q1");
    assert_eq!(world.reached(), ["q1"]);
    let told = read_over_http(&mut world, "t", "t/Subscriptions/s");
    assert_eq!(told.as_deref(), Some("t/subscriptions/s"));
}

#[test]
fn a_token_for_one_queue_sends_to_no_other() {
    for (path, taken) in [
        ("q1", true),
        ("Q1", true),
        ("q1/below", true),
        ("q1/x://h/q2", false),
        ("q1/x:%2F%2Fh/q2", false),
        ("q1/sb://h/q2", false),
        ("x://h/q2", false),
        ("q2", false),
    ] {
        let mut world = World::new();
        assert_eq!(send_over_http(&mut world, "q1", path), taken, "{path}");
        check(&world, "q1", path);
    }
}
