//! Connections and the shards that they belong to.

use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::time::Duration;

use crate::limits;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use super::*;
use crate::host::owner_message::OwnerMessage;
use crate::net::admission::{Admission, ConnectionSlots};
use crate::peer::{FakeOwners, PeerTls, make_authority};
use jitney_amqp::Identity;
use jitney_base::time::Timestamp;
use jitney_gateway::Reply;
use jitney_shard::Outgoing;
use jitney_shard::routing::{KnownNamespaces, Routes};

const HEADER: &[u8] = b"AMQP\x00\x01\x00\x00";
const OPEN: &[u8] = b"\0\0\0\x11\x02\0\0\0\0\x53\x10\xc0\x04\x01\xa1\x01c";

/// A stream on which a connection is opened, and then is a bug.
struct Panics {
    is_open: bool,
}

impl Stream for Panics {}

impl AsyncRead for Panics {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        assert!(!std::mem::replace(&mut self.is_open, true), "as it is to");
        buffer.put_slice(HEADER);
        buffer.put_slice(OPEN);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Panics {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn alone(shards: Arc<Shards>) -> Servers {
    Servers {
        shards,
        peers: None,
        slots: ConnectionSlots::new(limits::DESCRIPTORS_MIN),
        hop: Hop::First,
    }
}

/// A server of a fleet: it has the namespace `one`, and `away` has no server.
fn in_fleet(shards: Arc<Shards>) -> Servers {
    let routes = Routes::shared().with("one", ShardIndex(0));
    shards.set_routes(routes.with_known("one", ["away", "one"], KnownNamespaces::All));
    let tls = PeerTls::new(&make_authority().unwrap()).unwrap();
    Servers {
        peers: Some(Arc::new(
            Peers::new(Arc::<FakeOwners>::default(), tls).waiting(Duration::from_millis(50)),
        )),
        ..alone(shards)
    }
}

fn accepted() -> AcceptedPeer {
    AcceptedPeer {
        id: ConnectionId(7),
        origin: Origin::default(),
        permit: Admission::new(100)
            .try_admit(IpAddr::V4(Ipv4Addr::LOCALHOST))
            .unwrap(),
        is_trusted: true,
    }
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_cut_off_when_its_connection_is_closed() {
    let (sender, mut mail) = mpsc::channel(limits::MAILBOX_LENGTH);
    let clock = Arc::new(Clock::new(Timestamp::EPOCH));
    // Fewer bytes than the answers to the input.
    let (mut peer, stream) = tokio::io::duplex(16);
    let shards = Arc::new(Shards::of(vec![("one", sender)]));
    let (_stop, stopped) = watch::channel(false);
    let served = tokio::spawn(serve(stream, accepted(), clock, alone(shards), stopped));
    peer.write_all(HEADER).await.unwrap();
    peer.write_all(OPEN).await.unwrap();
    let Some(OwnerMessage::Connected(_, outbox, _)) = mail.recv().await else {
        panic!("its begin is reported first");
    };
    assert!(matches!(mail.recv().await, Some(OwnerMessage::Reports(..))));
    outbox.close();
    timeout(2 * limits::LAST_WRITE_WAIT.as_duration(), served)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn the_end_of_a_connection_that_was_passed_on_overtakes_bytes_that_are_not_taken() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let passer = tokio::net::TcpStream::connect(address);
    let (passer, accepted) = tokio::join!(passer, listener.accept());
    let (mut passer, mut socket) = (passer.unwrap(), Socket::new(accepted.unwrap().0));
    let bytes = vec![0; 32 * 1024 * 1024];
    let short = Duration::from_millis(200);
    let written = timeout(short, socket.write_all(&bytes)).await;
    assert!(written.is_err(), "the other server takes nothing");
    socket.shutdown().await.unwrap();
    let (_stop, stopped) = watch::channel(false);
    close_for_passer(&mut socket, short, stopped).await;
    drop(socket);
    let mut rest = Vec::new();
    let read = passer.read_to_end(&mut rest).await;
    let is_reset = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionReset;
    assert!(read.as_ref().is_err_and(is_reset), "{read:?}");
}

#[tokio::test]
async fn a_connection_that_was_passed_on_ends_in_order_when_all_bytes_are_taken() {
    let (mut passer, mut stream) = tokio::io::duplex(DUPLEX_BYTES);
    let (_stop, stopped) = watch::channel(false);
    let begun = Instant::now();
    let close = async {
        stream.shutdown().await.unwrap();
        close_for_passer(&mut stream, Duration::from_mins(1), stopped).await;
    };
    let take = async {
        let mut rest = Vec::new();
        passer.read_to_end(&mut rest).await.unwrap();
        drop(passer);
    };
    tokio::join!(close, take);
    assert!(begun.elapsed() < Duration::from_mins(1));
}

#[tokio::test]
async fn a_connection_whose_task_panics_is_taken_out_of_the_broker() {
    let (sender, mut mail) = mpsc::channel(limits::MAILBOX_LENGTH);
    let clock = Arc::new(Clock::new(Timestamp::EPOCH));
    let shards = Arc::new(Shards::of(vec![("one", sender)]));
    let (_stop, stopped) = watch::channel(false);
    let panics = Panics { is_open: false };
    let served = tokio::spawn(serve(panics, accepted(), clock, alone(shards), stopped));
    assert!(matches!(
        mail.recv().await,
        Some(OwnerMessage::Connected(ConnectionId(7), ..))
    ));
    assert!(matches!(mail.recv().await, Some(OwnerMessage::Reports(..))));
    let Some(OwnerMessage::Reports(ConnectionId(7), reports, _)) = mail.recv().await else {
        panic!("its end is reported");
    };
    assert!(matches!(
        reports.as_slice(),
        [Report::Event(Event::Closed { .. })]
    ));
    assert!(matches!(
        mail.recv().await,
        Some(OwnerMessage::Disconnected(ConnectionId(7)))
    ));
    assert!(served.await.unwrap_err().is_panic());
}

#[tokio::test]
async fn a_stop_closes_a_connection_that_waits_for_its_store() {
    let (sender, _mail) = mpsc::channel(limits::MAILBOX_LENGTH);
    let shards = Arc::new(Shards::of(vec![("one", sender)]));
    shards.vitals(ShardIndex(0)).unwrap().suspend();
    let clock = Arc::new(Clock::new(Timestamp::EPOCH));
    let (mut peer, stream) = tokio::io::duplex(DUPLEX_BYTES);
    peer.write_all(HEADER).await.unwrap();
    peer.write_all(OPEN).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let mut served = Box::pin(serve(stream, accepted(), clock, alone(shards), stopped));
    // It reads all of that at once, and waits.
    let polled = poll_fn(|cx| Poll::Ready(served.as_mut().poll(cx))).await;
    assert!(polled.is_pending(), "the store is away");
    stop.send_replace(true);
    let reason = jitney_shard::stopping().description;
    // The peer sends nothing more before it has the answer.
    let read = async {
        read_until(&mut peer, reason.as_bytes()).await;
        drop(peer);
    };
    tokio::join!(served, read);
}

/// A peer that says who it is, and the shards that it is served by.
struct Bench {
    peer: tokio::io::DuplexStream,
    partials: Partials,
    shards: Vec<mpsc::Receiver<OwnerMessage>>,
    stop: watch::Sender<bool>,
    served: tokio::task::JoinHandle<()>,
}

/// Bytes in each direction that the peer's stream holds.
const DUPLEX_BYTES: usize = 64 * 1024;

fn bench(namespaces: &[&str]) -> Bench {
    bench_of(namespaces, accepted(), alone)
}

fn bench_of(
    namespaces: &[&str],
    accepted: AcceptedPeer,
    servers: impl FnOnce(Arc<Shards>) -> Servers,
) -> Bench {
    let (peer, stream) = tokio::io::duplex(DUPLEX_BYTES);
    let channels = namespaces
        .iter()
        .map(|_| mpsc::channel(limits::MAILBOX_LENGTH));
    let (mail, shards): (Vec<_>, Vec<_>) = channels.unzip();
    let owners = namespaces.iter().copied().zip(mail).collect();
    let owners = Arc::new(Shards::of(owners));
    let partials = owners.partials();
    let clock = Arc::new(Clock::new(Timestamp::EPOCH));
    let (stop, stopped) = watch::channel(false);
    let served = tokio::spawn(serve(stream, accepted, clock, servers(owners), stopped));
    Bench {
        peer,
        partials,
        shards,
        stop,
        served,
    }
}

/// SASL PLAIN with the key `k` of `u`.
const PLAIN: &[u8] = b"AMQP\x03\x01\x00\x00\
    \0\0\0\x1b\x02\x01\0\0\0\x53\x41\xc0\x0e\x02\xa3\x05PLAIN\xa0\x04\0u\0k";

fn opens(host: &str) -> Vec<u8> {
    let host_length = u8::try_from(host.len()).unwrap();
    let list = [&[0xa1, 1, b'c', 0xa1, host_length], host.as_bytes()].concat();
    let list_length = u8::try_from(list.len() + 1).unwrap();
    let head = [
        0,
        0,
        0,
        13 + list_length - 1 + 1,
        2,
        0,
        0,
        0,
        0,
        0x53,
        0x10,
        0xc0,
    ];
    [&head[..], &[list_length, 2], &list].concat()
}

async fn next(shard: &mut mpsc::Receiver<OwnerMessage>) -> OwnerMessage {
    timeout(Duration::from_secs(20), shard.recv())
        .await
        .unwrap()
        .unwrap()
}

async fn connected(shard: &mut mpsc::Receiver<OwnerMessage>) -> Arc<Outbox> {
    match next(shard).await {
        OwnerMessage::Connected(_, outbox, _) => outbox,
        other => panic!("its begin is reported first: {other:?}"),
    }
}

async fn reports(shard: &mut mpsc::Receiver<OwnerMessage>) -> Vec<Report> {
    match next(shard).await {
        OwnerMessage::Reports(_, reports, _) => reports,
        other => panic!("{other:?}"),
    }
}

async fn left(shard: &mut mpsc::Receiver<OwnerMessage>) {
    let mut last = reports(shard).await;
    loop {
        match next(shard).await {
            OwnerMessage::Reports(_, more, _) => last.extend(more),
            OwnerMessage::Disconnected(_) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(
        matches!(last[..], [Report::Event(Event::Closed { .. })]),
        "{last:?}"
    );
}

fn says_who(reports: &[Report]) -> bool {
    matches!(
        reports.first(),
        Some(
            Report::Event(Event::Authenticating { identity: Identity::Plain { user, .. } })
                | Report::TryIdentity(Identity::Plain { user, .. })
        ) if user == "u"
    )
}

fn answer(outbox: &Outbox, reply: Reply) {
    outbox.put(&mut [Outgoing::Reply(reply)].into());
}

#[tokio::test]
async fn a_connection_is_in_the_shard_of_the_host_that_it_names() {
    let mut bench = bench(&["one", "two"]);
    bench.peer.write_all(HEADER).await.unwrap();
    bench.peer.write_all(&opens("two.example")).await.unwrap();
    connected(&mut bench.shards[1]).await;
    let opened = reports(&mut bench.shards[1]).await;
    assert!(
        matches!(opened[..], [Report::Event(Event::Opened { .. })]),
        "{opened:?}"
    );
    drop(bench.peer);
    left(&mut bench.shards[1]).await;
    bench.served.await.unwrap();
    assert!(
        bench.shards[0].try_recv().is_err(),
        "it has nothing to do with it"
    );
}

#[tokio::test]
async fn one_that_names_no_host_is_unknown_to_all_shards_and_closed_at_the_end() {
    let mut bench = bench(&["one", "two"]);
    bench.peer.write_all(HEADER).await.unwrap();
    bench.stop.send(true).unwrap();
    let mut answer = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut bench.peer, &mut answer);
    timeout(Duration::from_secs(20), read)
        .await
        .unwrap()
        .unwrap();
    bench.served.await.unwrap();
    for shard in &mut bench.shards {
        assert!(shard.recv().await.is_none(), "no shard is asked");
    }
}

#[tokio::test]
async fn a_key_is_shown_to_shards_until_one_has_it_and_to_the_one_that_open_names() {
    for (host, shard) in [("two.example", 1), ("three.example", 2)] {
        let mut bench = bench(&["one", "two", "three"]);
        bench.peer.write_all(PLAIN).await.unwrap();
        for (at, is_genuine) in [(0, false), (1, true)] {
            let outbox = connected(&mut bench.shards[at]).await;
            assert!(says_who(&reports(&mut bench.shards[at]).await));
            answer(&outbox, Reply::Authenticated(is_genuine));
            if !is_genuine {
                left(&mut bench.shards[at]).await;
            }
        }
        bench.peer.write_all(HEADER).await.unwrap();
        bench.peer.write_all(&opens(host)).await.unwrap();
        if shard == 2 {
            left(&mut bench.shards[1]).await;
            connected(&mut bench.shards[2]).await;
        }
        let opened = reports(&mut bench.shards[shard]).await;
        assert_eq!(says_who(&opened), shard == 2);
        let last = opened.last();
        assert!(
            matches!(last, Some(Report::Event(Event::Opened { .. }))),
            "{last:?}"
        );
        drop(bench.peer);
        left(&mut bench.shards[shard]).await;
        bench.served.await.unwrap();
    }
}

/// Reads until some bytes have come; the peer writes nothing meanwhile.
async fn read_until(peer: &mut tokio::io::DuplexStream, wanted: &[u8]) {
    let mut read = Vec::new();
    let has_come = async {
        while !read.windows(wanted.len()).any(|it| it == wanted) {
            let mut some = [0; 512];
            let count = peer.read(&mut some).await.unwrap();
            assert!(0 < count, "the end came first");
            read.extend_from_slice(&some[..count]);
        }
    };
    // The connection's own timer would wake it, much later.
    let come = timeout(Duration::from_secs(8), has_come).await;
    assert!(come.is_ok(), "{}", String::from_utf8_lossy(&read));
}

/// SASL EXTERNAL.
const EXTERNAL: &[u8] = b"AMQP\x03\x01\x00\x00\
    \0\0\0\x1b\x02\x01\0\0\0\x53\x41\xc0\x0e\x02\xa3\x08EXTERNAL\xa0\x01\0";

#[tokio::test]
async fn an_identity_that_is_accepted_for_now_has_its_outcome_though_the_peer_sends_nothing_more() {
    for (sasl, certificate) in [(PLAIN, None), (EXTERNAL, Some("u".to_owned()))] {
        let mut peer = accepted();
        peer.is_trusted = false;
        peer.origin.certificate = certificate;
        let mut bench = bench_of(&["one"], peer, in_fleet);
        bench.peer.write_all(sasl).await.unwrap();
        read_until(&mut bench.peer, b"Welcome!").await;
        assert!(bench.shards[0].try_recv().is_err(), "it is not asked yet");
        bench.peer.write_all(HEADER).await.unwrap();
        bench.peer.write_all(&opens("one.example")).await.unwrap();
        connected(&mut bench.shards[0]).await;
        let opened = reports(&mut bench.shards[0]).await;
        assert!(matches!(opened[..], [Report::TryIdentity(_), _]));
    }
}

#[tokio::test]
async fn an_open_that_was_held_is_answered_though_no_shard_replies_and_the_peer_sends_nothing_more()
{
    let mut bench = bench_of(&["one"], accepted(), in_fleet);
    bench.peer.write_all(HEADER).await.unwrap();
    bench.peer.write_all(&opens("one.example")).await.unwrap();
    read_until(&mut bench.peer, b"jitney_G7").await;
    connected(&mut bench.shards[0]).await;
}

#[tokio::test]
async fn a_refusal_of_a_namespace_without_a_server_is_written_though_the_peer_sends_nothing_more() {
    let mut bench = bench_of(&["one"], accepted(), in_fleet);
    bench.peer.write_all(HEADER).await.unwrap();
    bench.peer.write_all(&opens("away.example")).await.unwrap();
    read_until(&mut bench.peer, b"The namespace is not served").await;
    drop(bench.peer);
    bench.served.await.unwrap();
}

/// Writes bytes until they are all written, or the connection's task reads no more; returns how many
/// were written.
async fn write_until_stuck(peer: &mut tokio::io::DuplexStream, bytes: &[u8]) -> usize {
    let (mut written, mut waits) = (0, 0);
    while written < bytes.len() && waits < 1_000 {
        let rest = &bytes[written..];
        let write = poll_fn(|cx| Poll::Ready(Pin::new(&mut *peer).poll_write(cx, rest))).await;
        if let Poll::Ready(count) = write {
            written += count.unwrap();
            waits = 0;
        } else {
            waits += 1;
            tokio::task::yield_now().await;
        }
    }
    written
}

#[tokio::test]
async fn a_connection_without_a_shard_keeps_few_bytes_and_refuses_a_large_frame() {
    const MANY: usize = 1024 * 1024;
    let mut bench = bench(&["one", "two"]);
    let all = bench.partials.room();
    bench.peer.write_all(PLAIN).await.unwrap();
    let outbox = connected(&mut bench.shards[0]).await;
    assert!(says_who(&reports(&mut bench.shards[0]).await));
    // A frame before `open` of more than its bound, while the identity is not accepted yet.
    let frame = u32::try_from(jitney_shard::limits::UNROUTED_BYTES_MAX + 1).unwrap();
    let mut hostile = [HEADER, &frame.to_be_bytes(), &[2, 0, 0, 0]].concat();
    hostile.resize(MANY, 0);
    let written = write_until_stuck(&mut bench.peer, &hostile).await;
    let read = written.saturating_sub(DUPLEX_BYTES);
    assert!(read <= jitney_shard::limits::UNROUTED_BYTES_MAX, "{read}");
    assert_eq!(all - bench.partials.room(), 2, "the identity is counted");
    answer(&outbox, Reply::Authenticated(true));
    let mut refusal = Vec::new();
    let end = tokio::io::AsyncReadExt::read_to_end(&mut bench.peer, &mut refusal);
    timeout(Duration::from_secs(20), end)
        .await
        .unwrap()
        .unwrap();
    let condition = b"amqp:connection:framing-error";
    let is_there = refusal.windows(condition.len()).any(|it| it == condition);
    assert!(is_there, "{refusal:?}");
    left(&mut bench.shards[0]).await;
    bench.served.await.unwrap();
    assert_eq!(bench.partials.room(), all);
    assert!(
        bench.shards[1].recv().await.is_none(),
        "the other shard is not asked"
    );
}

#[tokio::test]
async fn a_key_that_no_shard_has_is_refused_once_by_all() {
    let mut bench = bench(&["one", "two"]);
    bench.peer.write_all(PLAIN).await.unwrap();
    for shard in &mut bench.shards {
        let outbox = connected(shard).await;
        assert!(says_who(&reports(shard).await));
        answer(&outbox, Reply::Authenticated(false));
        left(shard).await;
    }
    let mut answer = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut bench.peer, &mut answer);
    timeout(Duration::from_secs(20), read)
        .await
        .unwrap()
        .unwrap();
    let outcome = b"\0\x53\x44\xd0\0\0\0\x07\0\0\0\x02\x50\x01\x40";
    assert!(answer.ends_with(outcome), "{answer:?}");
}

#[tokio::test]
async fn a_peer_that_still_sends_reads_all_that_was_written_to_it() {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.unwrap();
    let address = listener.local_addr().unwrap();
    let client = tokio::spawn(async move {
        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        client.write_all(&[7; 100]).await.unwrap();
        let mut read = Vec::new();
        let ended = client.read_to_end(&mut read).await;
        (ended.map_err(|error| error.kind()), read)
    });
    let (mut server, _) = listener.accept().await.unwrap();
    server.readable().await.unwrap();
    server.write_all(b"close").await.unwrap();
    server.shutdown().await.unwrap();
    let (_stop, stopped) = watch::channel(false);
    drop_rest(&mut server, stopped).await;
    drop(server);
    assert_eq!(client.await.unwrap(), (Ok(5), b"close".to_vec()));
}
