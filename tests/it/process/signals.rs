//! Signals: those that ask the broker to end, and the one of files that are too long.

use std::io::Write as _;

use super::descriptors::signed_in;
use super::{Process, connect};

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
