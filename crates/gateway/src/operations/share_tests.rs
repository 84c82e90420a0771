//! Pages, and what one namespace leaves to others.

use super::tests::{all, connections_from};
use super::*;
use crate::amqp::tests::{Bench, inquiry, message};
use jitney_amqp::LinkId;
use jitney_base::memory::{Budget, Memory};
use jitney_broker::access::Authority;
use jitney_broker::namespace::{JobAction, JobDescription};
use jitney_queue::Description;

#[test]
fn connections_have_pages_of_links() {
    let mut bench = Bench::new();
    for (connection, links) in [(4, 1..2), (5, 0..5), (7, 9..10)] {
        for link in links {
            let (connection, link) = (ConnectionId(connection), LinkId(link));
            bench.run(|gateway, cx| gateway.attach_receiver(cx, connection, link, "q"));
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
    let operator = |bench: &mut Bench, host: &str, request: StartJob| {
        let requester = Requester {
            host: Some(host.to_owned()),
            authority: Authority::everything(),
        };
        bench.run(|gateway, cx| gateway.serve(cx, &requester, request))
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
            let description = JobDescription {
                selection: all(),
                action: JobAction::Delete,
                most: None,
            };
            let path = "q".to_owned();
            match operator(bench, host, StartJob { path, description }) {
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

#[test]
fn the_states_of_a_namespace_leave_memory_to_others() {
    const MIB: usize = 1 << 20;
    let mut bench = Bench::new();
    let budget = Budget {
        total: 9 * MIB,
        ..Budget::default()
    };
    let namespaces = bench.gateway.namespaces_mut();
    namespaces.replace_memory(Memory::new(budget, None));
    namespaces.set_namespaces(["quiet", "greedy"].into_iter());
    bench.run(|gateway, cx| {
        let sessions = Description {
            requires_session: true,
            ..Description::default()
        };
        gateway
            .ensure_entity(cx, "//greedy/sessions", sessions)
            .unwrap();
        let queue = Description::default;
        gateway.ensure_entity(cx, "quiet", queue()).unwrap();
        gateway
            .ensure_entity(cx, "//greedy/queue", queue())
            .unwrap();
    });
    let mut set = |number: usize, state: Option<usize>| {
        let operation = SetSessionState {
            path: "sessions".to_owned(),
            id: format!("s{number}"),
            state: state.map(|bytes| vec![0; bytes]),
        };
        bench.run(|gateway, cx| {
            let inquiry = inquiry(Some("greedy"), None, "");
            let authority = gateway.authorize(cx.now, &inquiry);
            let requester = Requester {
                host: Some("greedy".to_owned()),
                authority: authority.unwrap(),
            };
            gateway.serve(cx, &requester, operation)
        })
    };
    let taken = (0..16).take_while(|&number| set(number, Some(MIB)).is_ok());
    assert_eq!(taken.count(), 6, "two thirds of 9 MiB");
    let refused = set(6, Some(MIB)).unwrap_err();
    assert_eq!(
        (refused.kind, refused.text.as_str()),
        (
            DeniedKind::Full,
            "The namespace has its share of the broker's memory (6 MiB are counted, 6 MiB may be): no state is set until there is room again."
        )
    );
    assert!(set(5, None).is_ok(), "a state is taken away");
    assert!(set(6, Some(MIB)).is_ok(), "and another has its room");
    let mut send = |path: &str| {
        bench.run(|gateway, cx| {
            let queue = gateway.namespaces.resolve_path(path).unwrap();
            let sent = gateway
                .namespaces
                .take_messages(cx, queue, vec![message("a")]);
            let made = gateway.namespaces.check_entity_count(path, None);
            (sent.map_err(|it| it.kind), made.map_err(|it| it.kind))
        })
    };
    let full = Err(DeniedKind::Full);
    assert_eq!(send("//greedy/queue"), (full.map(|()| vec![]), full));
    let (sent, made) = send("quiet");
    assert!(sent.is_ok() && made.is_ok(), "others have room");
}
