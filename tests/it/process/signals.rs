//! Signals: those that ask the broker to end, and the one of files that are too long.

use std::io::Write as _;
use std::os::unix::net::UnixDatagram;

use super::descriptors::signed_in;
use super::{PATIENCE, Process, connect};

#[test]
fn a_second_signal_ends_a_broker_that_still_waits() {
    let data = tempfile::tempdir().unwrap();
    let mut broker = Process::start("", data.path(), &[]);
    // A peer that does not answer the broker's close: it is waited for.
    let _peer = signed_in(broker.amqp);
    broker.signal("TERM");
    broker.wait_for_line("stopping");
    broker.signal("TERM");
    let (status, log) = broker.end();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("a second signal"), "{log}");
}

#[test]
fn one_signal_ends_a_broker_in_order() {
    let data = tempfile::tempdir().unwrap();
    let mut broker = Process::start("", data.path(), &[]);
    let mut peer = connect(broker.amqp);
    peer.write_all(b"AMQP").unwrap();
    broker.signal("INT");
    broker.wait_for_line("stopping");
    let (status, log) = broker.end();
    assert!(status.success(), "{log}");
}

#[test]
fn a_service_manager_is_told_of_the_start_and_of_the_stop() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let received = || {
        let mut bytes = [0; 64];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    let set = format!("export NOTIFY_SOCKET={}", path.display());
    let broker = Process::start(&set, data.path(), &[]);
    assert_eq!(received(), "READY=1");
    broker.signal("TERM");
    assert_eq!(received(), "STOPPING=1");
    let (status, log) = broker.end();
    assert!(status.success(), "{log}");
}

/// The limit of file sizes: the write fails, and the broker says which.
#[test]
fn a_write_beyond_the_limit_of_file_sizes_is_reported() {
    let data = tempfile::tempdir().unwrap();
    let child = Process::spawn("ulimit -f 64", data.path(), &[]);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let expected = "the limit of file sizes (ulimit -f)";
    assert!(text.contains(expected), "{text}");
}
