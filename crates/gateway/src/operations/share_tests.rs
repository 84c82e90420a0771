//! Pages, and what one namespace leaves to others.

use super::tests::{all, connections_from};
use super::*;
use crate::amqp::tests::Bench;
use jitney_broker::namespace::JobAction;
use jitney_queue::Description;

#[test]
fn connections_have_pages_of_links() {
    let mut bench = Bench::new();
    for (connection, links) in [(4, 1..2), (5, 0..5), (7, 9..10)] {
        for link in links {
            let receiver = (ConnectionId(connection), LinkId(link));
            bench.run(|gateway, cx| gateway.attach_receiver(cx, receiver, "q"));
        }
    }
    let mut from = (ConnectionId(0), LinkId(0));
    let mut pages = Vec::new();
    loop {
        let (found, next) = connections_from(&mut bench, from, 3);
        let links = found
            .iter()
            .map(|it| (it.id.0, it.links.iter().map(|link| link.id.0).collect()));
        pages.push(links.collect::<Vec<(u32, Vec<u32>)>>());
        let Some(next) = next else { break };
        from = next;
    }
    assert_eq!(
        pages,
        [
            vec![(4, vec![1]), (5, vec![0, 1])],
            vec![(5, vec![2, 3, 4])],
            vec![(7, vec![9])],
        ]
    );
}

#[test]
fn the_jobs_of_a_namespace_leave_room_for_those_of_others() {
    let mut bench = Bench::new();
    let operator = |bench: &mut Bench, host: &str, operation| {
        let authority = Authority::everything();
        bench.run(|gateway, cx| gateway.perform(cx, Some(host), &authority, operation))
    };
    let path = format!("{}q", address::namespace_prefix("second"));
    bench.run(|gateway, cx| {
        // The one that is added first is the one without a prefix.
        for name in ["first", "second"] {
            gateway.namespaces_mut().add_namespace(name);
        }
        let description = Description::default();
        gateway.ensure_entity(cx, &path, description).unwrap();
    });
    let begun = |bench: &mut Bench, host: &str| {
        let mut begun = 0;
        loop {
            let description = Box::new(JobDescription {
                selection: all(),
                action: JobAction::Delete,
                most: None,
            });
            let path = "q".to_owned();
            match operator(bench, host, Operation::StartJob { path, description }) {
                Ok(_) => begun += 1,
                Err(denied) => {
                    assert_eq!(denied.kind, DeniedKind::Limit, "{denied}");
                    return begun;
                }
            }
        }
    };
    let begun = ["first", "second"].map(|host| begun(&mut bench, host));
    assert_eq!(begun, [8, 4]);
}
