//! Receives over HTTP: who sees them, who may end them, and what becomes of them when their client or the broker leaves.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread::{self, JoinHandle};

use serde_json::Value;

use super::{Process, connect};

/// Starts a broker with the namespaces `first` and `second`, whose queues are `q` and `secret`.
fn start(directory: &Path) -> Process {
    let config = directory.join("Config.json");
    let namespaces = r#"{"Name":"first","Queues":[{"Name":"q"}]},{"Name":"second","Queues":[{"Name":"secret"}]}"#;
    let text = format!(r#"{{"UserConfig":{{"Namespaces":[{namespaces}]}}}}"#);
    std::fs::write(&config, text).unwrap();
    let config = config.to_str().unwrap();
    let arguments = ["--config", config, "--auth", "development"];
    Process::start("", &directory.join("data"), &arguments)
}

/// Sends the head of a request.
fn send(process: &Process, method: &str, path: &str, more: &str) -> TcpStream {
    let mut stream = connect(process.http);
    let request = format!("{method} {path} HTTP/1.1\r\nHost: second\r\n{more}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn read(mut stream: TcpStream) -> (u16, String) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.get(9..12).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    (status.unwrap(), body.unwrap().to_owned())
}

fn ask(process: &Process, method: &str, path: &str) -> (u16, String) {
    read(send(process, method, path, "Connection: close\r\n"))
}

fn json(process: &Process, path: &str) -> Value {
    let (status, body) = ask(process, "GET", path);
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Begins to receive and delete from the queue of `second`; returns what reads the answer.
fn receive(process: &Process) -> JoinHandle<(u16, String)> {
    let path = "/secret/messages/head?timeout=60";
    let stream = send(process, "DELETE", path, "Connection: close\r\n");
    while receives(process, "second").is_empty() {
        thread::yield_now();
    }
    thread::spawn(|| read(stream))
}

fn receives(process: &Process, namespace: &str) -> Vec<Value> {
    let page = json(process, &format!("/api/v1/receives?namespace={namespace}"));
    page["receives"].as_array().unwrap().clone()
}

/// Sends a message, and returns how many there are then.
fn messages(process: &Process) -> Value {
    let head = "Content-Length: 1\r\nConnection: close\r\n\r\nx";
    let (status, body) = read(send(process, "POST", "/secret/messages", head));
    assert_eq!(status, 201, "{body}");
    json(process, "/api/v1/entities/secret")["counts"]["active"].clone()
}

#[test]
fn a_receive_is_seen_and_ended_in_its_own_namespace_only() {
    let directory = tempfile::tempdir().unwrap();
    let process = start(directory.path());
    let answer = receive(&process);
    let waiting = receives(&process, "second");
    let [waiting] = waiting.as_slice() else {
        panic!("{waiting:?}");
    };
    assert_eq!(waiting["entity"], "secret");
    assert_eq!(waiting["host"], "second");
    assert_eq!(waiting["peer"], "127.0.0.1");
    assert_eq!(waiting["mode"], "receive_and_delete");
    assert_eq!(receives(&process, "first"), Vec::<Value>::new());
    for namespace in ["first", "second"] {
        let path = format!("/api/v1/connections?namespace={namespace}");
        assert_eq!(json(&process, &path)["connections"], Value::Array(vec![]));
    }
    let end = |namespace| {
        let path = format!("/api/v1/receives/{}?namespace={namespace}", waiting["id"]);
        ask(&process, "DELETE", &path).0
    };
    assert_eq!(end("first"), 404);
    assert_eq!(receives(&process, "second").len(), 1);
    assert_eq!(end("second"), 204);
    let (status, body) = answer.join().unwrap();
    assert_eq!(status, 503, "{body}");
    assert!(
        body.contains("An operator has ended the receive."),
        "{body}"
    );
    assert_eq!(end("second"), 404);
    // What is sent later stays.
    assert_eq!(messages(&process), 1);
}

#[test]
fn a_client_that_leaves_takes_no_message() {
    let directory = tempfile::tempdir().unwrap();
    let process = start(directory.path());
    let path = "/secret/messages/head?timeout=60";
    let stream = send(&process, "DELETE", path, "");
    while receives(&process, "second").is_empty() {
        thread::yield_now();
    }
    drop(stream);
    while !receives(&process, "second").is_empty() {
        thread::yield_now();
    }
    assert_eq!(messages(&process), 1);
}

#[test]
fn a_receive_that_waits_is_answered_when_the_broker_stops() {
    let directory = tempfile::tempdir().unwrap();
    let process = start(directory.path());
    let answer = receive(&process);
    process.signal("TERM");
    assert_eq!(answer.join().unwrap().0, 204);
    let (status, log) = process.end();
    assert!(status.success(), "{log}");
    assert!(!log.contains("did not close in time"), "{log}");
}
