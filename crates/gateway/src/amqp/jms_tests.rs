//! What goes by itself.

use crate::Gateway;
use fe2o3_amqp_types::definitions::{ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp_types::messaging::{Source, TerminusDurability};
use jitney_base::address;
use jitney_broker::namespace::DeniedKind;
use jitney_broker::namespace::{Lack, Room};
use serde_amqp::Value;
use serde_amqp::primitives::Symbol;

use super::*;
use crate::amqp::tests::Bench;
use crate::{Reply, Report};
use jitney_amqp::{Attach, DynamicNode, Event, Identity, LinkRole, LinkTarget, SessionId};
use jitney_base::rights::{AuthorizationRule, Key, Rights};
use jitney_base::secret::Secret;
use jitney_broker::access::{Attempt, Profile};
use jitney_queue::EntityKind;

const CONNECTION: ConnectionId = ConnectionId(7);

fn make(bench: &mut Bench, link: u32, node: DynamicNode) -> String {
    bench
        .run(|gateway, cx| gateway.make_dynamic(cx, CONNECTION, LinkId(link), node))
        .unwrap()
}

fn kind(gateway: &Gateway, path: &str) -> Option<EntityKind> {
    Some(gateway.namespaces().description(path)?.kind)
}

#[test]
fn temporary_nodes_go_with_their_connection() {
    let mut bench = Bench::new();
    let queue = make(&mut bench, 1, DynamicNode::Queue);
    let topic = make(&mut bench, 2, DynamicNode::Topic);
    assert_ne!(queue, topic);
    assert_eq!(kind(&bench.gateway, &queue), Some(EntityKind::Queue));
    assert_eq!(kind(&bench.gateway, &topic), Some(EntityKind::Topic));
    bench.check_replay();
    bench.run(|gateway, cx| gateway.closed(cx, CONNECTION, &[]));
    assert_eq!(kind(&bench.gateway, &queue), None);
    assert_eq!(kind(&bench.gateway, &topic), None);
    bench.check_replay();
}

#[test]
fn a_dynamic_node_is_found_by_its_address_while_its_link_lives() {
    let mut bench = Bench::new();
    let nodes: Vec<String> = (1..=3)
        .map(|link| make(&mut bench, link, DynamicNode::Queue))
        .collect();
    for (link, node) in (1..=3).zip(&nodes) {
        bench.run(|gateway, cx| gateway.attach_receiver(cx, CONNECTION, LinkId(link), node));
    }
    let found = |bench: &Bench, address: &str| {
        let connection = bench.gateway.connections.get(CONNECTION).unwrap();
        connection
            .receiver_of_dynamic(address)
            .map(|(link, _)| link)
    };
    for (link, node) in (1..=3).zip(&nodes) {
        assert_eq!(found(&bench, node), Some(LinkId(link)));
    }
    assert_eq!(found(&bench, "q"), None);
    bench.run(|gateway, cx| gateway.detached(cx, CONNECTION, LinkId(2), &[]));
    let links = nodes.iter().map(|node| found(&bench, node));
    let expected = [Some(LinkId(1)), None, Some(LinkId(3))];
    assert_eq!(links.collect::<Vec<_>>(), expected);
    bench.gateway.connections.check();
}

#[test]
fn temporary_nodes_are_gone_after_a_restart() {
    let mut bench = Bench::new();
    let queue = make(&mut bench, 1, DynamicNode::Queue);
    let again = bench.restarted();
    assert_eq!(kind(&again.gateway, &queue), None);
    assert_eq!(kind(&again.gateway, "q"), Some(EntityKind::Queue));
}

#[test]
fn no_administrator_makes_what_is_called_like_a_temporary_node() {
    let name = make(&mut Bench::new(), 1, DynamicNode::Queue);
    assert!(!address::is_entity_name(&name), "{name}");
}

/// A broker that verifies keys: `root` may do all, `ears` may listen.
fn guarded() -> Bench {
    let mut bench = Bench::new();
    bench.gateway.access = jitney_broker::access::Access::new(Profile::Verified);
    let rule = |name: &str, rights| AuthorizationRule {
        name: name.to_owned(),
        rights,
        primary_key: Key::new(name.to_owned()),
        secondary_key: None,
        created_at: None,
        modified_at: None,
    };
    let ears = Rights {
        send: false,
        listen: true,
        manage: false,
    };
    let rules = vec![rule("root", Rights::ALL), rule("ears", ears)];
    bench.gateway.set_authorization("", rules);
    bench
}

/// Lets a client of JMS in that is called `mine`, with a key.
fn enter(bench: &mut Bench, id: ConnectionId, key: &str) {
    let identity = Identity::Plain {
        user: key.to_owned(),
        password: Secret::new(key),
    };
    bench.run(|gateway, cx| gateway.authenticate(cx.now, id, &identity, Attempt::Last));
    let connection = bench.gateway.connection(id);
    connection.container_id = "mine".to_owned();
    connection.brings_jms = true;
}

/// Subscribes to `t` as `news`, durably; returns the condition of a refusal.
fn subscribe(
    bench: &mut Bench,
    (id, link): (ConnectionId, u32),
    selector: Option<&str>,
) -> Option<DeniedKind> {
    let mut source = Source::builder()
        .address("t")
        .durable(TerminusDurability::UnsettledState)
        .build();
    let filter = selector.map(|text| {
        let name = Symbol::from("apache.org:selector-filter:string");
        [(name, Value::String(text.to_owned()))]
    });
    source.filter = filter.map(|filter| filter.into_iter().collect());
    attach(bench, (id, link), Some(source))
}

/// Asks for the durable subscription `news` to be given up; returns the condition of a refusal.
fn unsubscribe(bench: &mut Bench, id: ConnectionId, link: u32) -> Option<DeniedKind> {
    attach(bench, (id, link), None)
}

fn attach(
    bench: &mut Bench,
    (id, link): (ConnectionId, u32),
    source: Option<Source>,
) -> Option<DeniedKind> {
    let attach = Attach {
        name: "news".to_owned(),
        role: LinkRole::Outgoing,
        session: SessionId(0),
        source,
        target: LinkTarget::Node(None),
        snd_settle_mode: SenderSettleMode::default(),
        rcv_settle_mode: ReceiverSettleMode::default(),
        message_size_max: 0,
        properties: None,
    };
    bench.told.clear();
    bench.run(|gateway, cx| {
        let event = Event::AttachRequested(LinkId(link), Box::new(attach));
        gateway.apply(cx, id, Report::Event(event));
    });
    bench.told.drain(..).find_map(|routed| match routed.reply {
        Reply::RefuseLink(_, refusal) => Some(refusal.kind),
        _ => None,
    })
}

fn detach(bench: &mut Bench, id: ConnectionId, link: u32) {
    let event = Event::Detached {
        link: LinkId(link),
        error: None,
        unsent: Vec::new(),
    };
    bench.run(|gateway, cx| gateway.apply(cx, id, Report::Event(event)));
}

const SUBSCRIPTION: &str = "t/Subscriptions/news$mine$D";
const ROOT: ConnectionId = ConnectionId(1);
const EARS: ConnectionId = ConnectionId(2);

/// Returns which subscription there is, by the id of its queue.
fn subscription(bench: &Bench) -> Option<EntityId> {
    bench.gateway.namespaces().resolve_path(SUBSCRIPTION)
}

#[test]
fn a_durable_subscription_that_may_not_be_replaced_stays() {
    let mut bench = guarded();
    enter(&mut bench, ROOT, "root");
    enter(&mut bench, EARS, "ears");
    assert_eq!(subscribe(&mut bench, (ROOT, 1), None), None);
    detach(&mut bench, ROOT, 1);
    let made = subscription(&bench);
    assert!(made.is_some(), "it outlives its receiver");
    let refused = subscribe(&mut bench, (EARS, 1), Some("a = 1"));
    assert_eq!(refused, Some(DeniedKind::Unauthorized));
    assert_eq!(subscription(&bench), made);
    // It can be received from with the right to listen, as it is.
    assert_eq!(subscribe(&mut bench, (EARS, 2), None), None);
    detach(&mut bench, EARS, 2);
    assert_eq!(subscription(&bench), made);
    // Who may manage, and finds no room, deletes nothing either.
    bench
        .gateway
        .namespaces_mut()
        .set_room(Room::None(Lack::Disk));
    let refused = subscribe(&mut bench, (ROOT, 2), Some("a = 1"));
    assert_eq!(refused, Some(DeniedKind::Full));
    assert_eq!(subscription(&bench), made);
    bench.gateway.namespaces_mut().set_room(Room::Enough);
    assert_eq!(subscribe(&mut bench, (ROOT, 3), Some("a = 1")), None);
    assert_ne!(subscription(&bench), made);
    bench.check_replay();
}

#[test]
fn a_durable_subscription_is_given_up_only_by_who_may() {
    let mut bench = guarded();
    enter(&mut bench, ROOT, "root");
    enter(&mut bench, EARS, "ears");
    assert_eq!(subscribe(&mut bench, (ROOT, 1), None), None);
    detach(&mut bench, ROOT, 1);
    let made = subscription(&bench);
    let refused = unsubscribe(&mut bench, EARS, 1);
    assert_eq!(refused, Some(DeniedKind::Unauthorized));
    // A receiver comes while the link is there by which it is given up: it stays.
    assert_eq!(unsubscribe(&mut bench, ROOT, 2), None);
    assert_eq!(subscribe(&mut bench, (EARS, 3), None), None);
    detach(&mut bench, ROOT, 2);
    assert_eq!(subscription(&bench), made);
    detach(&mut bench, EARS, 3);
    // The broker ends the link, as it does when a token ends: it stays.
    assert_eq!(unsubscribe(&mut bench, ROOT, 3), None);
    bench.run(|gateway, cx| {
        let refusal = gateway.unauthorized(ROOT, SUBSCRIPTION, None, "");
        gateway.end_link(cx, ROOT, LinkId(3), refusal);
    });
    assert_eq!(subscription(&bench), made);
    assert_eq!(unsubscribe(&mut bench, ROOT, 4), None);
    detach(&mut bench, ROOT, 4);
    assert_eq!(subscription(&bench), None);
    bench.check_replay();
}
