//! Few descriptors: open connections keep theirs, and health is answered.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use super::{Process, connect};

/// The head of a handshake, without the last line.
const UPGRADE: &str = "GET /$servicebus/websocket HTTP/1.1\r\nHost: localhost\r\n\
    Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: AMQPWSB10\r\n\r\n";

/// SASL ANONYMOUS and an open, in one piece.
const SIGN_IN: &[u8] = b"AMQP\x03\x01\x00\x00\
    \x00\x00\x00\x19\x02\x01\x00\x00\x00\x53\x41\xc0\x0c\x01\xa3\x09ANONYMOUS\
    AMQP\x00\x01\x00\x00\
    \x00\x00\x00\x11\x02\x00\x00\x00\x00\x53\x10\xc0\x04\x01\xa1\x01c";

/// Opens a connection with SASL ANONYMOUS.
pub(super) fn signed_in(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    sign_in(&mut stream, SIGN_IN);
    stream
}

fn sign_in(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // The broker's open names its container.
    while !answer.windows(8).any(|part| part == b"jitney_G") {
        let mut part = [0; 512];
        let count = stream.read(&mut part).unwrap();
        assert_ne!(count, 0, "it is refused");
        answer.extend_from_slice(&part[..count]);
    }
}

/// Opens a connection over a WebSocket.
fn web_socket(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    stream.write_all(UPGRADE.as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 101");
    // One binary message, masked with zeros [RFC 6455 5.2].
    let length = u8::try_from(SIGN_IN.len()).unwrap();
    assert!(length < 126);
    let message = [&[0x82, 0x80 | length, 0, 0, 0, 0], SIGN_IN].concat();
    sign_in(&mut stream, &message);
    stream
}

#[test]
fn websockets_keep_their_slots_and_health_its_own() {
    let data = tempfile::tempdir().unwrap();
    let broker = Process::start("ulimit -n 160", data.path(), &[]);
    let mut inside: Vec<TcpStream> = (0..60).map(|_| signed_in(broker.amqp)).collect();
    inside.extend((0..40).map(|_| web_socket(broker.amqp)));
    // More than there are descriptors: those beyond the last place wait where the system keeps them.
    for _ in 0..80 {
        let mut stream = connect(broker.amqp);
        stream.write_all(SIGN_IN).unwrap();
        inside.push(stream);
    }
    // Meanwhile all places are taken.
    for _ in 0..50 {
        assert!(broker.get("/health").starts_with("HTTP/1.1 200"));
    }
    // 112 of 160 are for connections, of which two or three are at other listeners for the next peer
    // there. A place is for the next one when its WebSocket has ended.
    inside.drain(60..100);
    for stream in &mut inside[72..100] {
        let mut header = [0; 8];
        stream.read_exact(&mut header).unwrap();
        assert_eq!(&header, b"AMQP\x03\x01\x00\x00");
    }
}

#[test]
fn a_websocket_at_the_address_of_health_takes_no_reserved_slot() {
    /// Of 96 descriptors, half are for connections.
    const PLACES: usize = 48;
    let data = tempfile::tempdir().unwrap();
    let broker = Process::start("ulimit -n 96", data.path(), &[]);
    // Each listener has a place for its next connection: that of the listener at `--amqp` is used
    // here. Each peer has signed in before the next one comes, for of those that have not, one
    // address may have few.
    let listening = broker.told.lines().find(|it| it.contains(": listening "));
    let listeners = listening.map_or(0, |line| line.matches("127.0.0.1:").count());
    assert!(2 <= listeners, "{}", broker.told);
    let signed_in = (listeners..=PLACES).map(|_| signed_in(broker.amqp));
    let mut inside: Vec<TcpStream> = signed_in.collect();
    // The listener at `--http` has a place too, if it began before all were taken.
    let ask = || {
        let mut stream = connect(broker.http);
        stream.write_all(UPGRADE.as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (stream, status)
    };
    let let_in = |(stream, status)| (&status == b"HTTP/1.1 101").then_some(stream);
    inside.extend((0..3).map_while(|_| let_in(ask())));
    let refused = || assert_eq!(&ask().1, b"HTTP/1.1 503");
    refused();
    // A queued connection gets the next slot, although other peers connect repeatedly meanwhile.
    let mut waiting = connect(broker.amqp);
    waiting.write_all(SIGN_IN).unwrap();
    inside.pop();
    (0..20).for_each(|_| refused());
    let mut header = [0; 8];
    waiting.read_exact(&mut header).unwrap();
    assert_eq!(&header, b"AMQP\x03\x01\x00\x00");
    assert!(broker.get("/health").starts_with("HTTP/1.1 200"));
}

#[test]
fn too_few_descriptors_are_refused_with_what_is_enough() {
    let data = tempfile::tempdir().unwrap();
    let child = Process::spawn("ulimit -n 40", data.path(), &[]);
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("open files is 40") && text.contains("at least 64"),
        "{text}"
    );
}

/// The fewest descriptors with which the broker starts are enough for health when all else is taken.
#[test]
fn with_the_fewest_descriptors_health_is_answered() {
    let data = tempfile::tempdir().unwrap();
    let broker = Process::start("ulimit -n 64", data.path(), &[]);
    let _crowd: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut stream = connect(broker.amqp);
            stream.write_all(SIGN_IN).unwrap();
            stream
        })
        .collect();
    for _ in 0..4 {
        assert!(broker.get("/health").starts_with("HTTP/1.1 200"));
    }
    // The broker has descriptors left.
    let open = format!("/proc/{}/fd", broker.child.id());
    let count = std::fs::read_dir(&open).unwrap().count();
    assert!(count < 64, "{count} of 64");
}
