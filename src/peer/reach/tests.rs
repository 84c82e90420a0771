//! Namespaces whose servers are here, elsewhere, away, and coming.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use crate::limits;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::net::scheme::Scheme;
use crate::peer::authority::make_authority;
use crate::peer::owners::FakeOwners;
use jitney_shard::routing::{KnownNamespaces, Routes};

/// Longer than any test takes.
const LONG: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_millis(200);
const HERE: ShardIndex = ShardIndex(0);

/// This server, which has the namespace `here`, and another, which is to have `there`.
struct Bench {
    owners: Arc<FakeOwners>,
    peers: Arc<Peers>,
    shards: Arc<Shards>,
    slots: ConnectionSlots,
    /// Where the other server listens.
    other: TcpListener,
    other_tls: PeerTls,
    stop: watch::Sender<bool>,
}

impl Bench {
    async fn new(places: usize, wait: Duration) -> Self {
        let authority = make_authority().unwrap();
        let tls = || PeerTls::new(&authority).unwrap();
        let owners = Arc::new(FakeOwners::default());
        let (owner, _) = mpsc::channel(1);
        let shards = Shards::of(vec![("here", owner)]);
        let routes = Routes::shared().with("here", HERE);
        shards.set_routes(routes.with_known(
            "here",
            ["here", "there", "third"],
            KnownNamespaces::All,
        ));
        Self {
            peers: Arc::new(Peers::with_places(
                Arc::<FakeOwners>::clone(&owners),
                tls(),
                WaitingPlaces::new(places, places),
                wait,
            )),
            slots: ConnectionSlots::new(limits::DESCRIPTORS_MIN),
            owners,
            shards: Arc::new(shards),
            other: TcpListener::bind("127.0.0.1:0").await.unwrap(),
            other_tls: tls(),
            stop: watch::Sender::new(false),
        }
    }

    fn other_owns(&self, namespace: &str) -> OwningServer {
        let owner = OwningServer::other("two", self.other.local_addr().unwrap());
        self.owners.set(namespace, owner.clone());
        owner
    }

    async fn reach(&self, host: &str, hop: Hop) -> Result<Reached, NotPassed> {
        let lookup = Lookup {
            shards: &self.shards,
            slots: &self.slots,
            host: Some(host),
            client: &client(),
            hop,
        };
        self.peers.reach(lookup, self.stop.subscribe()).await
    }

    /// Accepts a connection as the other server; returns the client that it is passed on for.
    async fn accept(&self) -> OriginalClient {
        let (stream, _) = self.other.accept().await.unwrap();
        let mut stream = self.other_tls.accept(stream).await.unwrap();
        OriginalClient::read(&mut stream).await.unwrap()
    }
}

fn client() -> OriginalClient {
    OriginalClient {
        address: "192.0.2.7".parse().unwrap(),
        server_name: Some("there.example".to_owned()),
        certificate: Some("sender".to_owned()),
        scheme: Scheme::Https,
    }
}

async fn is_pending(future: Pin<&mut impl Future>) -> bool {
    let mut future = future;
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

fn is_here(reached: Result<Reached, NotPassed>) -> bool {
    matches!(reached, Ok(Reached::Here(HERE)))
}

#[tokio::test]
async fn a_namespace_that_is_here_takes_no_place_among_those_that_wait() {
    let bench = Bench::new(0, LONG).await;
    for hop in [Hop::First, Hop::Last] {
        assert!(is_here(bench.reach("here.example", hop).await));
    }
}

#[tokio::test]
async fn the_other_server_is_told_who_the_client_is() {
    let bench = Bench::new(1, LONG).await;
    let owner = bench.other_owns("there");
    let (reached, told) = tokio::join!(bench.reach("there.example", Hop::First), bench.accept());
    let Ok(Reached::Elsewhere(connection)) = reached else {
        panic!("the other server has it");
    };
    assert_eq!((&*connection.namespace, connection.owner), ("there", owner));
    assert_eq!(told, client());
}

#[tokio::test]
async fn a_connection_that_was_passed_on_is_not_passed_on_again() {
    let bench = Bench::new(1, SHORT).await;
    bench.other_owns("there");
    let reached = tokio::select! {
        reached = bench.reach("there.example", Hop::Last) => reached,
        _ = bench.other.accept() => panic!("that would be a second hop"),
    };
    assert!(matches!(reached, Err(NotPassed::NoServer)));
}

#[tokio::test]
async fn a_connection_that_was_passed_on_does_not_wait_for_a_third_server() {
    let bench = Bench::new(1, LONG).await;
    bench.other_owns("there");
    let begun = Instant::now();
    let reached = bench.reach("there.example", Hop::Last).await;
    assert!(matches!(reached, Err(NotPassed::Moved)));
    // This server may have taken it since its last look.
    assert!(limits::OTHER_OWNER_WAIT.as_duration() <= begun.elapsed());
    assert!(begun.elapsed() < limits::OWNER_WAIT.as_duration());
}

#[tokio::test]
async fn a_namespace_without_a_server_is_waited_for_until_the_time_is_over() {
    let bench = Bench::new(1, SHORT).await;
    let begun = Instant::now();
    let reached = bench.reach("there.example", Hop::First).await;
    assert!(matches!(reached, Err(NotPassed::NoServer)));
    assert!(SHORT <= begun.elapsed());
}

#[tokio::test]
async fn a_namespace_that_is_taken_here_meanwhile_is_served_here() {
    for hop in [Hop::First, Hop::Last] {
        let bench = Bench::new(1, LONG).await;
        bench
            .owners
            .set("there", OwningServer::other(FakeOwners::THIS, ""));
        let take = async {
            // The connection waits.
            while bench.peers.places.count() == 0 {
                tokio::task::yield_now().await;
            }
            bench
                .shards
                .change_routes(|routes| routes.with("there", HERE));
        };
        let (reached, ()) = tokio::join!(bench.reach("there.example", hop), take);
        assert!(is_here(reached));
    }
}

#[tokio::test]
async fn a_host_is_looked_up_again_when_the_namespaces_are_known() {
    let bench = Bench::new(1, LONG).await;
    let known = bench.shards.routes().clone();
    bench.shards.set_routes(Routes::shared());
    let learn = async {
        while bench.peers.places.count() == 0 {
            tokio::task::yield_now().await;
        }
        bench.shards.set_routes(Routes::clone(&known));
    };
    let (reached, ()) = tokio::join!(bench.reach("here.example", Hop::First), learn);
    assert!(is_here(reached));
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_waited_out() {
    let bench = Bench::new(1, LONG).await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    bench
        .owners
        .set("there", OwningServer::other("three", address));
    let take = async {
        while bench.peers.places.count() == 0 {
            tokio::task::yield_now().await;
        }
        bench.other_owns("there");
        bench.accept().await
    };
    let (reached, _) = tokio::join!(bench.reach("there.example", Hop::First), take);
    assert!(matches!(reached, Ok(Reached::Elsewhere(it)) if it.owner.server == "two"));
}

#[tokio::test]
async fn a_bounded_number_waits_and_the_next_one_is_refused_at_once() {
    let bench = Bench::new(2, LONG).await;
    let mut waiting: Vec<_> = (0..2)
        .map(|_| Box::pin(bench.reach("there.example", Hop::First)))
        .collect();
    for wait in &mut waiting {
        assert!(is_pending(wait.as_mut()).await, "no server has it");
    }
    assert!(matches!(
        bench.reach("there.example", Hop::First).await,
        Err(NotPassed::TooMany(TooMany::Waiting))
    ));
    drop(waiting);
    assert_eq!(bench.peers.places.count(), 0);
}

#[tokio::test]
async fn connections_that_wait_keep_none_from_a_namespace_that_has_a_server() {
    let bench = Bench::new(1, LONG).await;
    bench.other_owns("third");
    let mut waits = Box::pin(bench.reach("there.example", Hop::First));
    assert!(is_pending(waits.as_mut()).await, "no server has it");
    assert_eq!(bench.peers.places.count(), 1, "that was the last place");
    let (reached, _) = tokio::join!(bench.reach("third.example", Hop::First), bench.accept());
    assert!(matches!(reached, Ok(Reached::Elsewhere(it)) if it.namespace == "third"));
}

#[tokio::test]
async fn a_connection_to_another_server_has_a_slot_for_as_long_as_it_lives() {
    let bench = Bench::new(1, LONG).await;
    bench.other_owns("there");
    let all = bench.slots.count();
    let (reached, _) = tokio::join!(bench.reach("there.example", Hop::First), bench.accept());
    assert_eq!(bench.slots.count(), all - 1);
    drop(reached);
    assert_eq!(bench.slots.count(), all);
    let taken: Vec<_> = std::iter::from_fn(|| bench.slots.try_take()).collect();
    let refused = bench.reach("there.example", Hop::First).await;
    let refused = refused.expect_err("there is no slot");
    assert!(matches!(refused, NotPassed::TooMany(TooMany::Open)));
    assert!(refused.to_string().contains("descriptors"), "{refused}");
    drop(taken);
    assert!(bench.slots.try_take().is_some());
}

#[tokio::test]
async fn a_stop_ends_the_wait() {
    let bench = Bench::new(1, LONG).await;
    let stop = async {
        while bench.peers.places.count() == 0 {
            tokio::task::yield_now().await;
        }
        bench.stop.send_replace(true);
    };
    let (reached, ()) = tokio::join!(bench.reach("there.example", Hop::First), stop);
    assert!(matches!(reached, Err(NotPassed::Stopping)));
}

/// Passes a connection on to a server that accepts it and answers nothing, until something happens.
async fn pass_to_a_silent_server(happens: impl FnOnce(&Bench)) -> Result<(), NotPassed> {
    let bench = Bench::new(1, LONG).await;
    bench.other_owns("there");
    let accept = async {
        let (stream, _) = bench.other.accept().await.unwrap();
        bench.other_tls.accept(stream).await.unwrap()
    };
    let (reached, _silent) = tokio::join!(bench.reach("there.example", Hop::First), accept);
    let Ok(Reached::Elsewhere(connection)) = reached else {
        panic!("the other server has it");
    };
    let (_client, mut stream) = tokio::io::duplex(64);
    let stopped = bench.stop.subscribe();
    let pass = bench
        .peers
        .pass(&mut stream, b"AMQP", None, *connection, stopped);
    let mut pass = Box::pin(pass);
    assert!(is_pending(pass.as_mut()).await, "it is not answered");
    happens(&bench);
    pass.await
}

#[tokio::test]
async fn a_stop_ends_the_wait_for_the_other_servers_answer() {
    let passed = pass_to_a_silent_server(|bench| {
        bench.stop.send_replace(true);
    });
    assert!(matches!(passed.await, Err(NotPassed::Stopping)));
}

#[tokio::test]
async fn a_take_over_ends_the_wait_for_the_other_servers_answer() {
    let passed = pass_to_a_silent_server(|bench| {
        let third = OwningServer::other("three", "127.0.0.1:1");
        bench.owners.set("there", third);
    });
    assert!(matches!(passed.await, Err(NotPassed::Moved)));
}

#[tokio::test]
async fn a_take_over_ends_the_wait_for_a_server_that_hangs() {
    let bench = Bench::new(1, LONG).await;
    // It listens, and does no more.
    bench.other_owns("there");
    let begun = Instant::now();
    let mut reached = Box::pin(bench.reach("there.example", Hop::First));
    assert!(is_pending(reached.as_mut()).await, "it is not answered");
    let routes = Routes::shared().with("here", HERE).with("there", HERE);
    bench.shards.set_routes(routes);
    bench
        .owners
        .set("there", OwningServer::other(FakeOwners::THIS, ""));
    assert!(is_here(reached.await));
    assert!(begun.elapsed() < limits::PEER_CONNECT_WAIT.as_duration());
}

#[tokio::test]
async fn a_connection_is_cut_when_its_namespace_has_another_server_or_none() {
    let bench = Bench::new(1, LONG).await;
    let beat = jitney_cluster::limits::HEARTBEAT.as_duration();
    let owner = bench.other_owns("there");
    // For as long as the server has it, nothing is cut.
    let stays = timeout(3 * beat, bench.peers.until_moved("there", &owner));
    assert!(stays.await.is_err());
    let again = OwningServer {
        incarnation: "2".to_owned(),
        ..owner.clone()
    };
    let own = OwningServer::other(FakeOwners::THIS, "");
    for next in [again, OwningServer::other("three", ""), own] {
        bench.owners.set("there", owner.clone());
        let mut moved = Box::pin(bench.peers.until_moved("there", &owner));
        assert!(is_pending(moved.as_mut()).await, "the server has it");
        bench.owners.set("there", next);
        moved.await;
    }
    bench.owners.remove("there");
    let begun = Instant::now();
    bench.peers.until_moved("there", &owner).await;
    assert!(
        beat < begun.elapsed(),
        "its last server closes it by itself"
    );
    assert_eq!(
        bench.owners.copied(),
        0,
        "this is done for each connection at each change"
    );
}
