//! The standard streams of the process, also when their readers have closed them.

use std::io::{BufReader, Write as _, pipe};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{ChildStderr, Command, Stdio};

use super::Process;

#[test]
fn the_reason_of_an_exit_is_on_standard_error_at_every_log_level() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for filter in ["jitney_amqp::frame=trace", "off"] {
        let data = tempfile::tempdir().unwrap();
        let before = format!("export RUST_LOG={filter}");
        let child = Process::spawn(&before, data.path(), &["--amqp", &address]);
        let output = child.wait_with_output().unwrap();
        assert!(!output.status.success());
        let text = String::from_utf8(output.stderr).unwrap();
        let expected = format!("--amqp: cannot listen on {address}");
        assert!(text.contains(&expected), "{filter}: {text:?}");
    }
}

#[test]
fn commands_end_quietly_when_their_output_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let certs = directory.path().join("certs").display().to_string();
    let config = directory.path().join("c.json").display().to_string();
    let text = r#"{"UserConfig":{"Namespaces":[{"Name":"n","Queues":[{"Name":"q"}]}]}}"#;
    std::fs::write(&config, text).unwrap();
    for arguments in [
        ["certs", &certs].as_slice(),
        ["config", "check", &config].as_slice(),
        ["--help"].as_slice(),
    ] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_jitney"))
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (text.as_str(), output.status.code()),
            ("", Some(0)),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_broker_continues_when_its_log_output_is_closed() {
    let data = tempfile::tempdir().unwrap();
    let mut broker = Process::start("export RUST_LOG=debug", data.path(), &[]);
    let (reader, _) = pipe().unwrap();
    // The reader of the log has gone.
    broker.log = BufReader::new(ChildStderr::from(OwnedFd::from(reader)));
    for _ in 0..3 {
        assert!(broker.get("/health").starts_with("HTTP/1.1 200"));
    }
}

#[test]
fn a_broker_stops_in_order_at_the_end_of_its_input_if_that_is_asked() {
    let data = tempfile::tempdir().unwrap();
    let (reader, mut writer) = pipe().unwrap();
    let mut command = Process::command("", data.path(), &["--stop-on-stdin-close"]);
    let mut broker = Process::serving(command.stdin(reader).spawn().unwrap());
    // What it is given is read, and has no effect.
    writer.write_all(&vec![b'\n'; 1 << 20]).unwrap();
    assert!(broker.get("/health").starts_with("HTTP/1.1 200"));
    drop(writer);
    broker.wait_for_line("standard input has ended");
    let (status, log) = broker.end();
    assert!(status.success(), "{log}");
}

#[test]
fn a_broker_without_input_serves_if_nothing_else_is_asked() {
    let data = tempfile::tempdir().unwrap();
    let mut command = Process::command("", data.path(), &[]);
    let broker = Process::serving(command.stdin(Stdio::null()).spawn().unwrap());
    assert!(broker.get("/health").starts_with("HTTP/1.1 200"));
    broker.signal("TERM");
    let (status, log) = broker.end();
    assert!(status.success(), "{log}");
    assert!(!log.contains("standard input"), "{log}");
}
