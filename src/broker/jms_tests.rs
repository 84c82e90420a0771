//! What goes by itself.

use super::*;
use crate::amqp::DynamicNode;
use crate::broker::tests::Bench;
use crate::entity::queue::EntityKind;

const CONNECTION: ConnectionId = ConnectionId(7);

fn make(bench: &mut Bench, link: u32, node: DynamicNode) -> String {
    bench
        .run(|broker, around| broker.make_dynamic(around, CONNECTION, LinkId(link), node))
        .unwrap()
}

fn kind(broker: &Broker, path: &str) -> Option<EntityKind> {
    Some(broker.description(path)?.kind)
}

#[test]
fn temporary_nodes_go_with_their_connection() {
    let mut bench = Bench::new();
    let queue = make(&mut bench, 1, DynamicNode::Queue);
    let topic = make(&mut bench, 2, DynamicNode::Topic);
    assert_ne!(queue, topic);
    assert_eq!(kind(&bench.broker, &queue), Some(EntityKind::Queue));
    assert_eq!(kind(&bench.broker, &topic), Some(EntityKind::Topic));
    bench.check_replay();
    bench.run(|broker, around| broker.closed(around, CONNECTION));
    assert_eq!(kind(&bench.broker, &queue), None);
    assert_eq!(kind(&bench.broker, &topic), None);
    bench.check_replay();
}

#[test]
fn temporary_nodes_are_gone_after_a_restart() {
    let mut bench = Bench::new();
    let queue = make(&mut bench, 1, DynamicNode::Queue);
    let again = bench.restarted();
    assert_eq!(kind(&again.broker, &queue), None);
    assert_eq!(kind(&again.broker, "q"), Some(EntityKind::Queue));
}

#[test]
fn no_administrator_makes_what_is_called_like_a_temporary_node() {
    let name = make(&mut Bench::new(), 1, DynamicNode::Queue);
    assert!(!address::is_entity_name(&name), "{name}");
}
