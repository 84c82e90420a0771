//! Refusals of HTTP connections: by count, by lines of the log, by host.

use std::io::{Read as _, Write as _};

use super::{Process, connect};

/// Sends requests over one connection, and returns all answers.
fn ask(process: &Process, request: &str, count: usize) -> String {
    let mut stream = connect(process.http);
    // The broker may have closed the connection before it has read them all.
    let _ = stream.write_all(request.repeat(count).as_bytes());
    let mut answers = Vec::new();
    let _ = stream.read_to_end(&mut answers);
    String::from_utf8_lossy(&answers).into_owned()
}

#[test]
fn an_unauthorized_http_connection_is_closed_and_logged_in_few_lines() {
    let data = tempfile::tempdir().unwrap();
    let process = Process::start("", data.path(), &["--auth", "sas"]);
    let request = "GET /q HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answers = ask(&process, request, 2 * jitney::limits::HTTP_REFUSALS_MAX);
    let refused = answers.matches("HTTP/1.1 401 ").count();
    assert_eq!(refused, jitney::limits::HTTP_REFUSALS_MAX);
    process.signal("TERM");
    let (_, log) = process.end();
    let told = log.matches("HTTP request refused").count();
    assert_eq!(
        told,
        usize::try_from(jitney_broker::limits::REFUSALS_LOGGED_MAX).unwrap()
    );
}

#[test]
fn an_unknown_host_is_refused_where_any_key_is_accepted() {
    let data = tempfile::tempdir().unwrap();
    let process = Process::start("", data.path(), &["--auth", "development"]);
    for (path, host, status) in [
        ("/queue.1", "localhost", "200"),
        ("/queue.1", "127.0.0.1:5300", "200"),
        ("/queue.1", "rebound.example", "403"),
        ("/queue.1/messages/head", "rebound.example:5300", "403"),
        ("/$servicebus/websocket", "rebound.example", "403"),
        ("/health", "rebound.example", "200"),
        ("/health/live", "rebound.example", "200"),
        ("/health/ready?entity=queue.1", "localhost", "200"),
        ("/health/ready?entity=queue.1", "rebound.example", "403"),
        ("/metrics", "localhost", "200"),
        ("/metrics", "rebound.example", "403"),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = ask(&process, &request, 1);
        let line = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&line), "{path} of {host}: {answer}");
    }
}

#[test]
fn a_list_of_messages_is_read_up_to_its_bound() {
    let data = tempfile::tempdir().unwrap();
    let process = Process::start("", data.path(), &["--auth", "development"]);
    let list = |bytes: usize| {
        let (begin, end) = ("[{\"Body\":\"x\"}", "]");
        let spaces = " ".repeat(bytes - begin.len() - end.len());
        let body = [begin, &spaces, end].concat();
        let request = format!(
            "POST /queue.1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/vnd.microsoft.servicebus.json\r\n\
             Content-Length: {bytes}\r\n\r\n{body}"
        );
        ask(&process, &request, 1)
    };
    let answer = list(jitney::limits::REST_BATCH_BYTES_MAX);
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let answer = list(jitney::limits::REST_BATCH_BYTES_MAX + 1);
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let why = format!("more than {} bytes", jitney::limits::REST_BATCH_BYTES_MAX);
    assert!(answer.contains(&why), "{answer}");
}
