//! Balancers that send the PROXY protocol: the clients behind one are counted one by one.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use super::{Process, connect, first_of};

/// SASL's protocol header, which the broker answers with its own.
const SASL: &[u8] = b"AMQP\x03\x01\0\0";

/// A header of the PROXY protocol, version 2, for a client.
fn header(client: Ipv4Addr) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    header.extend(client.octets());
    header.extend(Ipv4Addr::LOCALHOST.octets());
    header.extend([0x12, 0x67, 0x16, 0x28]);
    header
}

/// Connects to a broker for a client, and begins SASL.
fn begin(broker: &Process, client: Ipv4Addr) -> TcpStream {
    let mut stream = connect(broker.amqp);
    stream.write_all(&header(client)).unwrap();
    stream.write_all(SASL).unwrap();
    stream
}

/// Waits until the broker takes part in SASL.
fn answered(stream: &mut TcpStream) {
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, SASL);
}

#[test]
fn clients_behind_one_balancer_do_not_take_one_anothers_places() {
    /// A quarter of the slots for connections that so many descriptors leave.
    const EACH: usize = 48;
    let data = tempfile::tempdir().unwrap();
    let arguments = [
        "--auth",
        "sas",
        "--proxy-protocol-from",
        "10.0.0.0/8,127.0.0.1",
    ];
    let broker = Process::start("ulimit -n 256", data.path(), &arguments);
    let (many, other) = (Ipv4Addr::new(192, 0, 2, 7), Ipv4Addr::new(192, 0, 2, 8));
    let mut taken: Vec<TcpStream> = (0..EACH)
        .map(|_| {
            let mut stream = begin(&broker, many);
            answered(&mut stream);
            stream
        })
        .collect();
    let mut next = begin(&broker, many);
    answered(&mut begin(&broker, other));
    // It waits for one of its own address.
    next.set_nonblocking(true).unwrap();
    let early = next.read(&mut [0; 8]);
    assert_eq!(early.unwrap_err().kind(), ErrorKind::WouldBlock);
    next.set_nonblocking(false).unwrap();
    taken.pop();
    answered(&mut next);
}

#[test]
fn a_balancer_without_a_header_is_named_in_the_log() {
    let data = tempfile::tempdir().unwrap();
    let arguments = ["--proxy-protocol-from", "127.0.0.0/8"];
    let mut broker = Process::start("", data.path(), &arguments);
    let mut stream = connect(broker.amqp);
    stream.write_all(SASL).unwrap();
    let mut answer = Vec::new();
    // A reset is an end, too.
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(answer, b"");
    let line = broker.wait_for_line("connection refused");
    assert!(line.contains("balancer=127.0.0.1"), "{line}");
    assert!(line.contains("but with AMQP"), "{line}");
    assert!(line.contains("--proxy-protocol-from"), "{line}");
}

#[test]
fn metrics_are_fetched_without_a_header() {
    let data = tempfile::tempdir().unwrap();
    let arguments = [
        "--proxy-protocol-from",
        "127.0.0.1",
        "--metrics",
        "127.0.0.1:0",
    ];
    let broker = Process::start("", data.path(), &arguments);
    let line = broker
        .told
        .lines()
        .find(|line| line.contains(": listening "));
    let address = line.and_then(|line| first_of(line, " metrics="));
    let mut stream = connect(address.unwrap());
    stream
        .write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}
