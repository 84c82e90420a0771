//! A gateway without a server: what entities do with one another, and what the records say.

use crate::messages::ReceiveReply;
use crate::{Gateway, StepReply};
use bytes::Bytes;
use jitney_amqp::Outcome;
use jitney_amqp::SessionId;
use jitney_amqp::{DeliveryId, IncomingTransfer};
use jitney_base::address::EntityAddress;
use jitney_base::address::SubQueue;
use jitney_base::ids::BodyRef;
use jitney_base::ids::SequenceNumber;
use jitney_base::secret::Secret;
use jitney_base::time::Timestamp;
use jitney_broker::access::Inquiry;
use jitney_broker::access::PeerAddress;
use jitney_broker::access::Profile;
use jitney_broker::namespace::DeniedKind;
use jitney_broker::namespace::FoundBody;
use jitney_broker::namespace::LostLock;
use jitney_broker::namespace::Operation;
use jitney_broker::namespace::SearchPosition;
use jitney_broker::namespace::StepContext;
use jitney_broker::namespace::WantedBody;
use jitney_queue::Journal;
use jitney_queue::Record;
use jitney_rules::limits;

use super::*;
pub(crate) use crate::testing::message;
use jitney_base::time::Millis;
use jitney_message::{Amendments, Message, Scalar};
use jitney_queue::{Description, Doomed, EntityKind, ReceiveMode, ScanBudget, Settlement};
use jitney_rules::{CorrelationFields, CorrelationFilter, Filter, Rule, RuleRefused, SqlFilter};

/// A broker, and another one that is made of the records of the first.
pub(crate) struct Bench {
    pub(crate) now: Timestamp,
    pub(crate) gateway: Gateway,
    /// What connections were told.
    pub(crate) told: Vec<QueuedReply>,
    /// What receives without a link were told.
    pub(crate) received: Vec<ReceiveReply>,
    journal: Replayed,
}

struct Replayed {
    again: Gateway,
    bodies: Vec<Bytes>,
    released: Vec<u64>,
}

impl Journal for Replayed {
    fn append(&mut self, record: &Record<'_>) -> Option<BodyRef> {
        let body = match record {
            Record::Enqueued { body, .. } | Record::Relocated { body, .. } => Some(*body),
            _ => None,
        };
        let place = body.map(|body| {
            self.bodies.push(Bytes::copy_from_slice(body));
            BodyRef {
                position: u64::try_from(self.bodies.len()).unwrap(),
                length: u32::try_from(body.len()).unwrap(),
            }
        });
        self.again.namespaces.replay(record, place).unwrap();
        place
    }

    fn release(&mut self, body: BodyRef) {
        self.released.push(body.position);
    }
}

/// A journal of what follows a restart, which no test reads.
struct Forgetful;

impl Journal for Forgetful {
    fn append(&mut self, _: &Record<'_>) -> Option<BodyRef> {
        None
    }

    fn release(&mut self, _: BodyRef) {}
}

/// A request over HTTP of some peer.
pub(crate) fn inquiry(host: Option<&str>, token: Option<&str>, path: &str) -> Inquiry {
    Inquiry {
        peer: PeerAddress(1),
        host: host.map(str::to_owned),
        nowhere: None,
        token: token.map(Secret::new),
        path: path.to_owned(),
        supplementary: Vec::new(),
    }
}

/// A message for a time, whose body is one byte.
pub(crate) fn scheduled(at: i64, body: u8) -> Message {
    // Message-annotations with x-opt-scheduled-enqueue-time.
    let mut bytes = vec![0x00, 0x53, 0x72, 0xc1, 40, 2, 0xa3, 28];
    bytes.extend_from_slice(b"x-opt-scheduled-enqueue-time");
    bytes.push(0x83);
    bytes.extend_from_slice(&at.to_be_bytes());
    bytes.extend_from_slice(&[0x00, 0x53, 0x75, 0xa0, 1, body]);
    Message::parse(bytes.into()).unwrap()
}

impl Bench {
    /// A topic `t` with subscriptions `a` and `b`, and queues `q`, `one`, `two`, `three`.
    pub(crate) fn new() -> Self {
        let mut bench = Self {
            now: Timestamp::from_millis(1_000),
            gateway: Gateway::new(1, Profile::Development),
            told: Vec::new(),
            received: Vec::new(),
            journal: Replayed {
                again: Gateway::new(2, Profile::Development),
                bodies: Vec::new(),
                released: Vec::new(),
            },
        };
        let forward = |to: &str| Description {
            forward_to: Some(to.to_owned()),
            ..Description::default()
        };
        let of = |kind| Description {
            kind,
            ..Description::default()
        };
        for (path, description) in [
            ("t", of(EntityKind::Topic)),
            ("t/Subscriptions/a", of(EntityKind::Subscription)),
            ("t/Subscriptions/b", of(EntityKind::Subscription)),
            ("q", Description::default()),
            ("one", forward("two")),
            ("two", forward("q")),
        ] {
            bench.run(|gateway, cx| {
                gateway.ensure_entity(cx, path, description).unwrap();
            });
        }
        for path in ["one", "two"] {
            bench.gateway.namespaces().check_forwards(path).unwrap();
        }
        bench
    }

    pub(crate) fn run<T>(
        &mut self,
        step: impl FnOnce(&mut Gateway, &mut StepContext<'_>) -> T,
    ) -> T {
        let result = self.step(step);
        while self.gateway.namespaces().has_wanted() {
            self.go_on();
        }
        result
    }

    /// Runs a step alone: messages whose bytes must be read wait.
    pub(crate) fn step<T>(
        &mut self,
        step: impl FnOnce(&mut Gateway, &mut StepContext<'_>) -> T,
    ) -> T {
        let mut cx = StepContext {
            now: self.now,
            journal: &mut self.journal,
            group: 1,
        };
        self.gateway.handle_timeout(&mut cx);
        let result = step(&mut self.gateway, &mut cx);
        self.hear();
        result
    }

    fn hear(&mut self) {
        for reply in self.gateway.replies().drain(..) {
            match reply {
                StepReply::Connection(routed) => self.told.push(routed),
                StepReply::Receive(reply) => self.received.push(reply),
            }
        }
    }

    /// Forwards some messages that wait for their bytes.
    fn go_on(&mut self) {
        let wanted = self.gateway.namespaces_mut().wanted().into_iter();
        let body = |wanted: WantedBody| {
            let at = usize::try_from(wanted.body.position - 1).unwrap();
            (wanted, self.journal.bodies[at].clone())
        };
        let found = wanted.map(body).collect();
        let mut cx = StepContext {
            now: self.now,
            journal: &mut self.journal,
            group: 1,
        };
        self.gateway.read_back(&mut cx, found);
        self.gateway.replies().clear();
    }

    /// Returns a message's bytes.
    pub(crate) fn bytes(&self, body: BodyRef) -> Bytes {
        self.journal.bodies[usize::try_from(body.position - 1).unwrap()].clone()
    }

    /// Returns the positions of bytes that no message has any more.
    pub(crate) fn released(&self) -> &[u64] {
        &self.journal.released
    }

    /// Returns the broker that the records make when they have all been replayed.
    pub(crate) fn restarted(self) -> Self {
        let mut again = Gateway::new(3, Profile::Development);
        let snapshot = self.journal.again.namespaces().snapshot();
        snapshot.records(&mut |record| again.namespaces.replay(record, None).unwrap());
        again.namespaces.count_shared();
        let journal = Replayed {
            again,
            bodies: self.journal.bodies,
            released: Vec::new(),
        };
        let mut restarted = Self {
            now: self.now,
            gateway: self.journal.again,
            told: Vec::new(),
            received: Vec::new(),
            journal,
        };
        let mut cx = StepContext {
            now: restarted.now,
            journal: &mut Forgetful,
            group: 1,
        };
        restarted.gateway.replayed(&mut cx);
        restarted
    }

    pub(crate) fn id(&self, path: &str) -> EntityId {
        let (path, queue) = if let Some(path) = path.strip_suffix("/transfer") {
            (path, SubQueue::TransferDeadLetter)
        } else if let Some(path) = path.strip_suffix("/dead") {
            (path, SubQueue::DeadLetter)
        } else {
            (path, SubQueue::Main)
        };
        let path = path.to_owned();
        self.gateway
            .namespaces
            .resolve(&EntityAddress { path, queue })
            .unwrap()
    }

    pub(crate) fn send(&mut self, path: &str, message: Message) {
        let id = self.id(path);
        let taken = self.run(|gateway, cx| gateway.take_messages(cx, id, vec![message]));
        assert!(taken.is_ok(), "{taken:?}");
    }

    /// Returns numbers and enqueued numbers of what is in a queue.
    pub(crate) fn seen(&self, path: &str) -> Vec<(i64, i64)> {
        seen(&self.gateway, self.id(path))
    }

    /// Checks that the records made the same broker again.
    pub(crate) fn check_replay(&self) {
        let ids = 0..self.gateway.namespaces.next_id().0;
        for id in ids.map(EntityId) {
            let both = [&self.gateway, &self.journal.again].map(|gateway| {
                let queue = gateway.namespaces.queue(id);
                let known =
                    queue.map(|queue| (queue.bytes(), queue.next_number(), seen(gateway, id)));
                let description = queue.map(|queue| queue.description().clone());
                let rules = gateway.namespaces.rules_of(id);
                (known, description, rules)
            });
            assert_eq!(both[0], both[1], "{id:?}");
        }
    }
}

fn seen(gateway: &Gateway, id: EntityId) -> Vec<(i64, i64)> {
    let queue = gateway.namespaces.queue(id).unwrap();
    let all = queue.browse(SequenceNumber(0), 100).into_iter();
    let numbers = all.map(|found| found.stamps);
    numbers
        .map(|stamps| (stamps.sequence_number, stamps.enqueued_sequence_number))
        .collect()
}

#[test]
fn a_topic_s_message_is_stored_once_and_gone_when_all_subscriptions_are_done_with_it() {
    let mut bench = Bench::new();
    bench.send("t", message("x"));
    assert_eq!(bench.seen("t/Subscriptions/a"), [(1, 1)]);
    assert_eq!(bench.seen("t/Subscriptions/b"), [(1, 1)]);
    assert!(bench.seen("t").is_empty());
    let held = bench.gateway.namespaces.held_bytes(bench.id("t"));
    assert_eq!((held, bench.journal.bodies.len()), (6, 1));
    bench.check_replay();
    for path in ["t/Subscriptions/a", "t/Subscriptions/b"] {
        assert!(bench.journal.released.is_empty(), "a message has it");
        let id = bench.id(path);
        bench.run(|gateway, cx| {
            gateway.with_queue(cx, id, |queue, cx| {
                let doomed = Doomed {
                    count: 1,
                    before: Timestamp::MAX,
                    message_session: None,
                };
                queue
                    .delete_batch(cx, &doomed, 0, &mut ScanBudget::default())
                    .0
            })
        });
    }
    assert_eq!(bench.journal.released, [1]);
    assert_eq!(bench.gateway.namespaces.held_bytes(bench.id("t")), 0);
    bench.check_replay();
}

#[test]
fn shared_bytes_are_moved_once() {
    let mut bench = Bench::new();
    bench.send("t", message("x"));
    let (found, _) = bench.gateway.namespaces().search_bodies(
        &std::iter::once(0..9).collect(),
        SearchPosition::default(),
        100,
    );
    assert!(found.is_empty(), "the topic has it no more");
    let body = bench.journal.bodies[0].clone();
    for path in ["t/Subscriptions/a", "t/Subscriptions/b"] {
        let entity = bench.id(path);
        let number = SequenceNumber(1);
        let place = bench
            .gateway
            .namespaces
            .queue(entity)
            .unwrap()
            .body_of(number)
            .unwrap();
        let found = FoundBody {
            entity,
            number,
            body: place,
        };
        bench.run(|gateway, cx| gateway.namespaces_mut().relocate(cx, &found, &body));
    }
    assert_eq!(bench.journal.bodies.len(), 2, "one more place, not two");
    assert_eq!(bench.journal.released, [1]);
    bench.check_replay();
}

#[test]
fn what_is_scheduled_on_a_topic_is_published_when_its_time_has_come() {
    let mut bench = Bench::new();
    bench.send("t", scheduled(2_000, b'x'));
    assert!(bench.seen("t/Subscriptions/a").is_empty());
    bench.send("t", message("y"));
    bench.now = Timestamp::from_millis(2_000);
    bench.run(|_, _| ());
    assert_eq!(bench.seen("t/Subscriptions/a"), [(1, 2), (2, 3)]);
    bench.check_replay();
}

#[test]
fn a_chain_of_forwards_keeps_the_first_number_and_ends_where_there_is_no_way_on() {
    let mut bench = Bench::new();
    bench.send("q", message("before"));
    bench.send("one", message("x"));
    assert_eq!(bench.seen("q"), [(1, 0), (2, 1)]);
    let disabled = Description {
        status: jitney_queue::Status::Disabled,
        ..Description::default()
    };
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "q", disabled))
        .unwrap();
    bench.send("one", message("y"));
    assert_eq!(bench.seen("two/dead"), [(2, 2)]);
    bench.check_replay();
}

/// Gives an entity a target of its messages.
fn forward(bench: &mut Bench, path: &str, to: &str, of: Description) {
    let description = Description {
        forward_to: Some(to.to_owned()),
        ..of
    };
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, path, description))
        .unwrap();
    bench.gateway.namespaces().check_forwards(path).unwrap();
}

/// Checks that one message is among the dead letters, and why.
fn check_hops_exceeded(bench: &Bench, path: &str, number: u64) {
    let dead_letters = bench.id(path).dead_letters();
    let queue = bench.gateway.namespaces.queue(dead_letters).unwrap();
    assert_eq!(queue.len(), 1, "{path}");
    let why = queue.amendments(SequenceNumber(number)).unwrap();
    let plain = message("");
    let reason = why.property_of(&plain, "DeadLetterReason").unwrap().1;
    let expected = Scalar::Text("MaxTransferHopCountExceeded".into());
    assert_eq!(Scalar::decode(reason), expected);
}

#[test]
fn what_is_forwarded_in_a_circle_ends_after_four_forwards() {
    let mut bench = Bench::new();
    forward(&mut bench, "q", "one", Description::default());
    bench.send("q", message("x"));
    // To `one`, `two`, `q`, `one`, where it stays.
    check_hops_exceeded(&bench, "one", 2);
    bench.check_replay();
    assert_eq!(bench.restarted().seen("one"), []);
}

#[test]
fn what_is_forwarded_to_its_own_queue_ends_after_four_forwards() {
    let mut bench = Bench::new();
    forward(&mut bench, "q", "q", Description::default());
    assert!(bench.gateway.namespaces.forwards_back(bench.id("q")));
    bench.send("q", message("x"));
    check_hops_exceeded(&bench, "q", 5);
    bench.check_replay();
    assert_eq!(bench.restarted().seen("q"), []);
}

#[test]
fn what_a_subscription_forwards_to_its_own_topic_ends_after_four_forwards() {
    let mut bench = Bench::new();
    let of = Description {
        kind: EntityKind::Subscription,
        ..Description::default()
    };
    forward(&mut bench, "t/Subscriptions/a", "t", of);
    assert!(
        bench
            .gateway
            .namespaces
            .forwards_back(bench.id("t/Subscriptions/a"))
    );
    bench.send("t", message("x"));
    check_hops_exceeded(&bench, "t/Subscriptions/a", 5);
    let other = bench.seen("t/Subscriptions/b");
    assert_eq!(
        other.len(),
        5,
        "that which was sent, and four that came again"
    );
    bench.check_replay();
}

#[test]
fn a_queue_with_message_sessions_forwards() {
    let mut bench = Bench::new();
    let of = Description {
        requires_session: true,
        ..Description::default()
    };
    forward(&mut bench, "sessions", "q", of);
    assert!(!bench.gateway.namespaces.forwards_back(bench.id("sessions")));
    // Properties with a group-id.
    let bytes = b"\0\x53\x73\xc0\x0e\x0b@@@@@@@@@@\xa1\x01s\0\x53\x75\xa0\x01x";
    bench.send(
        "sessions",
        Message::parse(Bytes::from_static(bytes)).unwrap(),
    );
    assert_eq!(bench.seen("q"), [(1, 1)]);
    assert_eq!(bench.seen("sessions"), []);
    bench.check_replay();
}

#[test]
fn a_deleted_entity_leaves_nothing_and_its_ids_are_not_given_again() {
    let mut bench = Bench::new();
    bench.send("t", message("x"));
    assert!(bench.run(|gateway, cx| gateway.delete_entity(cx, "T")));
    assert_eq!(bench.journal.released, [1]);
    let count = bench.gateway.namespaces.next_id().0;
    let made = bench.run(|gateway, cx| gateway.ensure_entity(cx, "t", Description::default()));
    assert_eq!(made, Ok(true));
    assert_eq!(bench.gateway.namespaces.next_id().0, count + 3);
    assert!(
        bench
            .gateway
            .namespaces()
            .resolve_path("t/subscriptions/a")
            .is_none()
    );
    bench.check_replay();
}

#[test]
fn an_entity_that_is_not_used_is_deleted() {
    let mut bench = Bench::new();
    let idle = Description {
        auto_delete_on_idle: Millis::from_secs(300),
        ..Description::default()
    };
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "idle", idle))
        .unwrap();
    bench.now = Timestamp::from_millis(200_000);
    bench.send("idle", message("x"));
    bench.now = Timestamp::from_millis(499_000);
    bench.run(|_, _| ());
    assert!(
        bench.gateway.namespaces().resolve_path("idle").is_some(),
        "a send is a use"
    );
    bench.now = Timestamp::from_millis(500_000);
    bench.run(|_, _| ());
    assert!(bench.gateway.namespaces().resolve_path("idle").is_none());
    bench.check_replay();
}

#[test]
fn an_entity_that_forwards_is_never_idle() {
    let mut bench = Bench::new();
    let idle = Description {
        auto_delete_on_idle: Millis::from_secs(300),
        ..Description::default()
    };
    forward(&mut bench, "passes-on", "q", idle.clone());
    bench.now = Timestamp::from_millis(500_000);
    bench.run(|_, _| ());
    let kept = bench.gateway.namespaces().description("passes-on").unwrap();
    assert_eq!(kept.auto_delete_on_idle, Millis::from_secs(300));
    // From when on it does not, its time counts.
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "passes-on", idle))
        .unwrap();
    bench.now = Timestamp::from_millis(800_000);
    bench.run(|_, _| ());
    assert!(
        bench
            .gateway
            .namespaces()
            .resolve_path("passes-on")
            .is_none()
    );
}

/// A message to the coordinator: a declare or a discharge.
pub(crate) fn to_coordinator(link: LinkId, payload: Vec<u8>) -> IncomingTransfer {
    IncomingTransfer {
        link,
        delivery: DeliveryId(0),
        payload: payload.into(),
        message_format: 0,
        settled: false,
        transaction: None,
    }
}

#[test]
fn a_transaction_is_done_as_a_whole_or_not_at_all() {
    let mut bench = Bench::new();
    let (queue, connection) = (bench.id("q"), ConnectionId(1));
    for fail in [true, false] {
        bench.run(|gateway, cx| {
            let link = LinkId(1);
            gateway.connection(connection).links.insert(
                link,
                Link::Coordinator {
                    session: SessionId(0),
                },
            );
            let control = |payload| to_coordinator(link, payload);
            let declare = control(vec![0x00, 0x53, 0x77, 0x00, 0x53, 0x31, 0x45]);
            let Ok((Outcome::Declared(id), 0)) = gateway.control(cx, connection, &declare) else {
                panic!("it was not declared");
            };
            let send = Operation::Send {
                queue,
                destination: None,
                group: None,
                messages: vec![message("x")],
            };
            gateway.enlist(cx, connection, &id, send, None).unwrap();
            assert!(seen(gateway, queue).is_empty());
            let mut discharge = vec![0x00, 0x53, 0x77, 0x00, 0x53, 0x32, 0xc0, 12, 2, 0xa0, 8];
            discharge.extend_from_slice(&id);
            discharge.push(if fail { 0x41 } else { 0x42 });
            let outcome = gateway.control(cx, connection, &control(discharge));
            assert!(matches!(outcome, Ok((Outcome::Accepted, _))));
        });
        let expected: &[(i64, i64)] = if fail { &[] } else { &[(1, 0)] };
        assert_eq!(bench.seen("q"), expected);
    }
    bench.check_replay();
}

#[test]
fn what_a_transaction_changes_counts_as_memory_until_it_ends() {
    const CHANGED: usize = 60_000;
    let mut bench = Bench::new();
    let (queue, connection) = (bench.id("q"), ConnectionId(1));
    bench.send("q", message("x"));
    let consumer = consumer_id(connection, LinkId(9));
    bench.run(|gateway, cx| {
        gateway.with_queue(cx, queue, |queue, cx| {
            queue.add_consumer(consumer, ReceiveMode::PeekLock);
            queue.set_credit(cx, consumer, 1);
        });
    });
    let token = bench.told.drain(..).find_map(|routed| match routed.reply {
        Reply::Deliver(_, handover) => Some(handover.token),
        _ => None,
    });
    let token = token.unwrap();
    let counted = |bench: &Bench| bench.gateway.namespaces.memory().counted();
    let before = counted(&bench);
    bench.run(|gateway, cx| {
        let link = LinkId(1);
        let control = |payload| to_coordinator(link, payload);
        let declare = control(vec![0x00, 0x53, 0x77, 0x00, 0x53, 0x31, 0x45]);
        let Ok((Outcome::Declared(id), 0)) = gateway.control(cx, connection, &declare) else {
            panic!("it was not declared");
        };
        let mut changes = Amendments::default();
        changes.set_string("p", &"x".repeat(CHANGED));
        let settle = Operation::Settle {
            queue,
            token,
            settlement: Settlement::Abandon(Some(Arc::new(changes))),
            lost: LostLock::Message,
        };
        gateway.enlist(cx, connection, &id, settle, None).unwrap();
    });
    assert!(before + CHANGED < counted(&bench));
    bench.run(|gateway, _| gateway.roll_back(connection, None));
    assert_eq!(counted(&bench), before);
}

#[test]
fn a_rule_of_many_bytes_is_refused_and_the_others_are_counted() {
    let mut bench = Bench::new();
    let (topic, subscription) = (bench.id("t"), bench.id("t/Subscriptions/a"));
    let counted = |bench: &Bench| bench.gateway.namespaces.memory().counted();
    let before = counted(&bench);
    let keep = |bench: &mut Bench, bytes: usize| {
        let fields = CorrelationFields {
            label: Some("l".repeat(bytes)),
            ..CorrelationFields::default()
        };
        let rule = Rule {
            name: "large".to_owned(),
            filter: Filter::Correlation(CorrelationFilter::new(fields).unwrap()),
            action: None,
            created_at: bench.now,
        };
        bench.run(|gateway, cx| gateway.namespaces.keep_rule(cx, topic, subscription, rule))
    };
    let refused = keep(&mut bench, limits::RULE_BYTES_MAX);
    assert_eq!(refused, Err(RuleRefused::TooLarge));
    assert_eq!(counted(&bench), before);
    assert_eq!(keep(&mut bench, 60_000), Ok(()));
    assert!(before + 60_000 < counted(&bench));
    bench.run(|gateway, cx| {
        assert!(
            gateway
                .namespaces
                .drop_rule(cx, topic, subscription, "large")
        );
    });
    assert_eq!(counted(&bench), before);
}

#[test]
fn a_host_name_s_first_label_chooses_the_namespace() {
    let mut gateway = Gateway::new(1, Profile::Development);
    gateway
        .namespaces_mut()
        .set_namespaces(["first", "Second"].into_iter());
    assert_eq!(
        gateway
            .namespaces
            .directory()
            .namespace_of(Some("second.example.org:5671")),
        "//second/"
    );
    for host in [None, Some("first"), Some("localhost"), Some("127.0.0.1")] {
        assert_eq!(gateway.namespaces.directory().namespace_of(host), "");
    }
}

#[test]
fn a_send_that_goes_on_at_once_hides_nothing_of_the_queue_it_goes_through() {
    let mut bench = Bench::new();
    let id = bench.id("q");
    for _ in 0..3 {
        bench.send("q", message("x"));
    }
    let to = Arc::from("t");
    bench.run(|gateway, cx| {
        gateway
            .namespaces
            .put(cx, id, Some(&to), vec![message("y")], |_| ());
    });
    assert_eq!(bench.seen("t/Subscriptions/a"), [(1, 4)]);
    let available = bench
        .run(|gateway, cx| gateway.with_queue(cx, id, |queue, _| queue.waiting_to_go(9).len()));
    assert_eq!(available, Some(3));
    let first = bench.run(|gateway, cx| {
        gateway.with_queue(cx, id, |queue, cx| {
            let consumer = consumer_id(ConnectionId(1), LinkId(1));
            queue.add_consumer(consumer, ReceiveMode::PeekLock);
            queue.drain(cx, consumer, 9);
            queue.waiting_to_go(9).len()
        })
    });
    assert_eq!(first, Some(0), "all three were given out");
    bench.check_replay();
}

#[test]
fn a_circle_of_dead_letters_ends() {
    let mut bench = Bench::new();
    let round = |to: &str| Description {
        kind: EntityKind::Subscription,
        forward_dead_letters_to: Some(to.to_owned()),
        max_delivery_count: 1,
        ..Description::default()
    };
    let failing = || {
        let filter = SqlFilter::parse("1 / 0 = 1").unwrap();
        vec![Rule {
            name: "fails".to_owned(),
            filter: Filter::Sql(filter),
            action: None,
            created_at: Timestamp::EPOCH,
        }]
    };
    let other = Description {
        kind: EntityKind::Topic,
        ..Description::default()
    };
    bench.run(|gateway, cx| {
        gateway.ensure_entity(cx, "u", other).unwrap();
        for (path, to) in [("t/Subscriptions/c", "u"), ("u/Subscriptions/c", "t")] {
            gateway
                .ensure_subscription(cx, path, round(to), failing())
                .unwrap();
        }
    });
    bench.send("t", message("x"));
    let held = ["t", "u"].map(|path| {
        bench
            .gateway
            .namespaces
            .queue(bench.id(path))
            .unwrap()
            .len()
    });
    assert_eq!(held, [0, 0], "nothing goes round any more");
    bench.check_replay();
}

#[test]
fn rules_that_take_long_are_looked_at_in_shares_while_others_are_served() {
    let mut bench = Bench::new();
    let (a, t, q) = (bench.id("t/Subscriptions/a"), bench.id("t"), bench.id("q"));
    let costly = ["p LIKE '%x_xxxxy%'"; 33].join(" OR ");
    for number in 0..100 {
        let rule = Rule {
            name: format!("r{number}"),
            filter: Filter::Sql(SqlFilter::parse(&costly).unwrap()),
            action: None,
            created_at: bench.now,
        };
        bench.run(|gateway, cx| gateway.namespaces.keep_rule(cx, t, a, rule).unwrap());
    }
    let mut bytes = vec![0x00, 0x53, 0x74, 0xd1];
    let text = vec![b'x'; 30_000];
    bytes.extend((4 + 3 + 5 + 30_000_u32).to_be_bytes());
    bytes.extend(2_u32.to_be_bytes());
    bytes.extend([0xa1, 1, b'p', 0xb1]);
    bytes.extend(30_000_u32.to_be_bytes());
    bytes.extend(text);
    bytes.extend([0x00, 0x53, 0x75, 0xa0, 0]);
    let costly = Message::parse(bytes.into()).unwrap();
    // Each share is a turn of its own, and in each of them another client is served.
    bench.step(|gateway, cx| gateway.take_messages(cx, t, vec![costly]).unwrap());
    let mut turns = 0;
    while bench.gateway.namespaces().has_wanted() {
        turns += 1;
        assert_eq!(
            bench.seen("t/Subscriptions/b"),
            [],
            "it is given to all at once"
        );
        bench.step(|gateway, cx| {
            let sent = gateway.take_messages(cx, q, vec![message("x")]);
            assert_eq!(sent.unwrap().len(), 1);
        });
        assert_eq!(bench.seen("q").len(), turns);
        bench.go_on();
    }
    assert!((10..30).contains(&turns), "{turns} turns");
    assert_eq!(bench.seen("t/Subscriptions/b").len(), 1);
    bench.check_replay();
}

#[test]
fn a_session_receiver_of_a_plain_entity_is_told_what_to_set() {
    let mut bench = Bench::new();
    for (path, session) in [("q", Some("a")), ("t/Subscriptions/a", None)] {
        let (id, link) = (ConnectionId(1), LinkId(9));
        let attached = crate::testing::attach_session(link, path, session);
        bench.run(|gateway, cx| gateway.apply(cx, id, attached));
        let told = std::mem::take(&mut bench.told);
        let [
            QueuedReply {
                reply: Reply::RefuseLink(refused, denied),
                ..
            },
        ] = &told[..]
        else {
            panic!("{told:?}");
        };
        assert_eq!((*refused, denied.kind), (link, DeniedKind::NotAllowed));
        let words = "A sessionful message receiver cannot be created on an entity that does not require \
                     sessions. Ensure RequiresSession is set to true when creating a Queue or \
                     Subscription to enable sessionful behavior.";
        assert!(denied.text.starts_with(words), "{}", denied.text);
    }
}
