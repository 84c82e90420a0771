//! Attaches that wait for a token: which do, for how long, and how many.

use super::grants_tests::{GUEST, NOW, attach, attach_from, guarded, later, put, sas, told};
use super::tests::Bench;
use super::*;
use crate::Report;
use crate::limits;
use jitney_amqp::{Event, Identity, LinkCredit, LinkRole, LinkTarget};
use jitney_base::secret::Secret;
use jitney_broker::access::Attempt;

#[test]
fn an_attach_to_a_management_node_waits_for_a_token_that_holds_for_it() {
    let mut bench = guarded();
    attach(&mut bench, 1, LinkRole::Incoming, "q/$management");
    attach(&mut bench, 2, LinkRole::Outgoing, "Q/$management");
    // The peer gives credit before it is answered.
    let credit = Event::Credit(LinkCredit {
        link: LinkId(2),
        limit: 7,
        drain: false,
    });
    bench.run(|gateway, cx| gateway.apply(cx, GUEST, Report::Event(credit)));
    assert!(told(&mut bench).is_empty());
    let put_for = |bench: &mut Bench, path: &str| {
        let audience = format!("sb://h/{path}");
        let token = sas(&audience, "root", "r", NOW + 60);
        put(bench, &audience, &token).unwrap();
    };
    put_for(&mut bench, "two");
    assert!(told(&mut bench).is_empty(), "it holds for another entity");
    put_for(&mut bench, "q");
    assert_eq!(told(&mut bench), ["+1", "+2"]);
    let Some(Link::Responses(answers)) = bench.gateway.link(GUEST, LinkId(2)) else {
        panic!("it is the link for answers");
    };
    assert_eq!(answers.limit, 7);
    // An attach that was answered is not refused when its time ends.
    later(&mut bench, limits::EARLY_ATTACH_WAIT);
    assert!(told(&mut bench).is_empty());
    // With a token of another entity it waits as long, and with the node's own it does not wait.
    attach(&mut bench, 3, LinkRole::Incoming, "three/$management");
    attach(&mut bench, 4, LinkRole::Incoming, "q/$management");
    assert_eq!(told(&mut bench), ["+4"]);
    later(&mut bench, limits::EARLY_ATTACH_WAIT);
    assert_eq!(told(&mut bench), ["-3"]);
    // What the peer gives up is not answered.
    attach(&mut bench, 5, LinkRole::Incoming, "three/$management");
    bench.run(|gateway, cx| gateway.detached(cx, GUEST, LinkId(5), &[]));
    put_for(&mut bench, "three");
    assert!(told(&mut bench).is_empty());
    // Neither is the connection that has ended.
    attach(&mut bench, 6, LinkRole::Incoming, "one/$management");
    bench.run(|gateway, cx| gateway.closed(cx, GUEST, &[]));
    later(&mut bench, limits::EARLY_ATTACH_WAIT);
    assert!(told(&mut bench).is_empty());
    assert_eq!(bench.gateway.connections.poll_timeout(), None);
}

#[test]
fn a_peer_without_a_key_has_few_attaches_that_wait_and_their_memory_is_counted() {
    let mut bench = guarded();
    let held = |bench: &Bench| bench.gateway.namespaces().memory().counted();
    let before = held(&bench);
    let most = u32::try_from(limits::EARLY_ATTACHES_MAX).unwrap();
    for link in 0..1_000 {
        attach(&mut bench, link, LinkRole::Outgoing, "q/$management");
    }
    // All others are refused at once.
    let refused: Vec<String> = (most..1_000).map(|link| format!("-{link}")).collect();
    assert_eq!(told(&mut bench), refused);
    assert!(before < held(&bench), "they are counted");
    // There is room for the tokens all the same.
    attach(&mut bench, 2_000, LinkRole::Incoming, "$cbs");
    attach(&mut bench, 2_001, LinkRole::Outgoing, "$cbs");
    assert_eq!(told(&mut bench), ["+2000", "+2001"]);
    // Nor does one wait whose name or address is long.
    later(&mut bench, limits::EARLY_ATTACH_WAIT);
    let ended: Vec<String> = (0..most).map(|link| format!("-{link}")).collect();
    assert_eq!(told(&mut bench), ended);
    let long = LinkTarget::Node(Some(
        fe2o3_amqp_types::messaging::Target::builder()
            .address("x".repeat(jitney_amqp::limits::LINK_NAME_BYTES_MAX))
            .build(),
    ));
    attach_from(&mut bench, 3_000, LinkRole::Outgoing, "q/$management", long);
    assert_eq!(told(&mut bench), ["-3000"]);
    for link in [2_000, 2_001] {
        bench.run(|gateway, cx| gateway.detached(cx, GUEST, LinkId(link), &[]));
    }
    assert_eq!(held(&bench), before);
}

#[test]
fn who_has_a_right_by_sasl_is_refused_at_once() {
    let mut bench = guarded();
    let identity = Identity::Plain {
        user: "mouth".to_owned(),
        password: Secret::new("m"),
    };
    bench.run(|gateway, cx| gateway.authenticate(cx.now, GUEST, &identity, Attempt::Last));
    bench.told.clear();
    attach(&mut bench, 1, LinkRole::Incoming, "two/$management");
    assert_eq!(told(&mut bench), ["-1"]);
}
