//! Clients and servers that end, and that do not read.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::net::socket::Socket;
use crate::peer::authority::{PeerTls, make_authority};

/// Longer than any test takes.
const LONG: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_millis(200);
/// Waits that no test reaches.
const NEVER: CopyWaits = CopyWaits {
    last: LONG,
    look: LONG,
    unread: LONG,
};
/// More than the buffers of all sockets between a client and its server hold.
const MUCH: usize = 32 * 1024 * 1024;

/// A connection that is passed on.
struct Bench {
    client: TcpStream,
    server: tokio_rustls::server::TlsStream<TcpStream>,
    copied: JoinHandle<io::Result<()>>,
}

impl Bench {
    async fn new(waits: CopyWaits) -> Self {
        let tls = PeerTls::new(&make_authority().unwrap()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(4 * 1024).unwrap();
        let (client, accepted) = tokio::join!(client.connect(address), listener.accept());
        let mut near = Socket::new(accepted.unwrap().0);
        let text = address.to_string();
        let accept = async { tls.accept(listener.accept().await.unwrap().0).await };
        let (connected, server) = tokio::join!(tls.connect(&text), accept);
        let mut far = connected.unwrap();
        let copied = tokio::spawn(async move { copy(&mut near, &mut far, waits).await });
        Self {
            client: client.unwrap(),
            server: server.unwrap(),
            copied,
        }
    }

    /// Returns how the copying ends.
    async fn ended(copied: JoinHandle<io::Result<()>>) -> Result<(), io::ErrorKind> {
        let ended = timeout(LONG, copied).await.expect("it ends").unwrap();
        ended.map_err(|error| error.kind())
    }
}

/// Lets a server write until nothing takes more.
async fn fill(server: &mut (impl AsyncWrite + Unpin)) {
    let bytes = vec![7; MUCH];
    let written = timeout(SHORT, server.write_all(&bytes)).await;
    assert!(written.is_err(), "the client reads nothing");
}

#[tokio::test]
async fn the_end_of_the_other_server_ends_the_connection_of_a_silent_client() {
    let mut bench = Bench::new(NEVER).await;
    bench.server.write_all(b"the last").await.unwrap();
    bench.server.shutdown().await.unwrap();
    assert_eq!(Bench::ended(bench.copied).await, Ok(()));
    let mut rest = Vec::new();
    bench.client.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"the last");
    let mut rest = [0; 1];
    let closed = timeout(LONG, bench.server.read(&mut rest)).await;
    assert!(!matches!(closed.unwrap(), Ok(1..)), "it is closed");
}

#[tokio::test]
async fn a_client_that_has_ended_gets_the_last_answers() {
    let mut bench = Bench::new(NEVER).await;
    bench.client.write_all(b"close").await.unwrap();
    bench.client.shutdown().await.unwrap();
    let mut asked = Vec::new();
    bench.server.read_to_end(&mut asked).await.unwrap();
    assert_eq!(asked, b"close");
    bench.server.write_all(b"closed").await.unwrap();
    bench.server.shutdown().await.unwrap();
    let mut answer = Vec::new();
    bench.client.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"closed");
    assert_eq!(Bench::ended(bench.copied).await, Ok(()));
}

#[tokio::test]
async fn a_client_that_has_ended_does_not_wait_long_for_the_other_server() {
    let mut bench = Bench::new(CopyWaits {
        last: SHORT,
        ..NEVER
    })
    .await;
    bench.client.shutdown().await.unwrap();
    let ended = Bench::ended(bench.copied).await;
    assert_eq!(ended, Err(io::ErrorKind::TimedOut));
}

#[tokio::test]
async fn the_end_of_the_other_server_is_noticed_while_the_client_does_not_read() {
    let mut bench = Bench::new(CopyWaits {
        unread: LONG,
        last: SHORT,
        look: SHORT,
    })
    .await;
    fill(&mut bench.server).await;
    // So does a server end a connection whose bytes are not taken.
    bench.server.get_ref().0.set_zero_linger().unwrap();
    drop(bench.server);
    let ended = Bench::ended(bench.copied).await;
    assert_eq!(ended, Err(io::ErrorKind::TimedOut));
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_not_waited_for_without_an_end() {
    let mut bench = Bench::new(CopyWaits {
        unread: 2 * SHORT,
        look: SHORT,
        last: LONG,
    })
    .await;
    fill(&mut bench.server).await;
    let ended = Bench::ended(bench.copied).await;
    assert_eq!(ended, Err(io::ErrorKind::TimedOut));
}

#[tokio::test]
async fn a_client_that_reads_slowly_gets_everything() {
    let mut bench = Bench::new(CopyWaits {
        last: LONG,
        look: Duration::from_millis(1),
        unread: LONG,
    })
    .await;
    let bytes: Vec<u8> = (0_u32..200_000).flat_map(u32::to_be_bytes).collect();
    let sent = bytes.clone();
    let echo = tokio::spawn(async move {
        let mut received = vec![0; sent.len()];
        bench.server.write_all(&sent).await.unwrap();
        bench.server.flush().await.unwrap();
        bench.server.read_exact(&mut received).await.unwrap();
        bench.server.shutdown().await.unwrap();
        received
    });
    let mut answer = vec![0; bytes.len()];
    for part in answer.chunks_mut(1_000) {
        bench.client.read_exact(part).await.unwrap();
    }
    assert_eq!(answer, bytes);
    bench.client.write_all(&answer).await.unwrap();
    assert_eq!(echo.await.unwrap(), bytes);
    assert_eq!(Bench::ended(bench.copied).await, Ok(()));
}
