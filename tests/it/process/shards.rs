//! Several shards in one process: the placement of namespaces, also after the process was killed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::client::Client;
use super::{Process, connect};

/// Writes a configuration with these namespaces, each with a queue `q`.
fn config(directory: &Path, namespaces: &[String]) -> PathBuf {
    let namespaces = namespaces.iter();
    let namespaces = namespaces.map(|it| format!(r#"{{"Name":"{it}","Queues":[{{"Name":"q"}}]}}"#));
    let namespaces: Vec<String> = namespaces.collect();
    let text = format!(
        r#"{{"UserConfig":{{"Namespaces":[{}]}}}}"#,
        namespaces.join(",")
    );
    let file = directory.join("Config.json");
    fs::write(&file, text).unwrap();
    file
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Starts a server with some namespaces on the data of a directory, by `start`.
fn run<T>(
    directory: &Path,
    namespaces: &[&str],
    shards: &str,
    start: impl FnOnce(&str, &Path, &[&str]) -> T,
) -> T {
    let config = config(directory, &names(namespaces));
    let config = config.to_str().unwrap();
    let arguments = [
        "--config",
        config,
        "--auth",
        "development",
        "--shards",
        shards,
    ];
    start("", &directory.join("data"), &arguments)
}

fn start(directory: &Path, namespaces: &[&str], shards: &str) -> Process {
    run(directory, namespaces, shards, Process::start)
}

/// Returns the error of a start that is refused.
fn refused(directory: &Path, namespaces: &[&str], shards: &str) -> String {
    let child = run(directory, namespaces, shards, Process::spawn);
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

fn host(namespace: &str) -> String {
    format!("{namespace}.example")
}

async fn bodies(process: &Process, namespace: &str) -> Vec<String> {
    let mut client = Client::connect(process.amqp, &host(namespace)).await;
    let found = client.peek("q").await.into_iter();
    found
        .map(|it| String::from_utf8(it.body).unwrap())
        .collect()
}

async fn send(process: &Process, namespace: &str, body: &str) {
    let mut client = Client::connect(process.amqp, &host(namespace)).await;
    client.send("q", &[body]).await;
}

/// Sends one request over HTTP to a namespace, and returns the answer.
fn ask(process: &Process, method: &str, namespace: &str, path: &str, body: &str) -> String {
    let mut stream = connect(process.http);
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {namespace}.localhost\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn namespaces_stay_in_their_shards_with_all_that_is_in_them() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let all = ["a", "b", "c"];
    for life in 0..3_usize {
        // Of more shards the further ones are empty; of fewer, those with namespaces are served.
        let shards = ["2", "3", "1"][life];
        let process = start(directory.path(), &all, shards);
        for namespace in all {
            let before: Vec<String> = (0..life)
                .map(|life| format!("{namespace} {life}"))
                .collect();
            assert_eq!(bodies(&process, namespace).await, before);
            send(&process, namespace, &format!("{namespace} {life}")).await;
        }
        assert!(process.get("/health").starts_with("HTTP/1.1 200 "));
        // It is killed here.
    }
    let record = fs::read_to_string(data.join("shards.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let expected = serde_json::json!({
        "version": 1, "first": "a", "namespaces": { "a": 0, "b": 1, "c": 0 }
    });
    assert_eq!(record, expected);
    assert!(data.join("shard-1").join("0000000000000001.seg").exists());
    let error = refused(directory.path(), &["b", "a"], "2");
    assert!(error.contains("put 'a' first again"), "{error}");
    fs::rename(data.join("shard-1"), directory.path().join("aside")).unwrap();
    let error = refused(directory.path(), &all, "2");
    assert!(
        error.contains("'b' is in shard 1, but") && error.contains("does not exist"),
        "{error}"
    );
    fs::rename(directory.path().join("aside"), data.join("shard-1")).unwrap();
    fs::remove_file(data.join("shards.json")).unwrap();
    let error = refused(directory.path(), &all, "2");
    assert!(error.contains("shards.json is missing, but"), "{error}");
}

#[tokio::test]
async fn requests_over_http_go_to_the_shard_of_their_host() {
    let directory = tempfile::tempdir().unwrap();
    let process = start(directory.path(), &["a", "b"], "2");
    for namespace in ["a", "b", "unknown"] {
        let answer = ask(&process, "POST", namespace, "/q/messages", namespace);
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    }
    assert_eq!(bodies(&process, "a").await, ["a", "unknown"]);
    assert_eq!(bodies(&process, "b").await, ["b"]);
    let answer = ask(&process, "GET", "b", "/q", "");
    assert!(
        answer.contains("<MessageCount>1</MessageCount>"),
        "{answer}"
    );
    let answer = ask(&process, "DELETE", "b", "/q/messages/head", "");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(bodies(&process, "b").await.is_empty());
    let answer = ask(&process, "GET", "a", "/q", "");
    assert!(
        answer.contains("<MessageCount>2</MessageCount>"),
        "{answer}"
    );
}

#[tokio::test]
async fn random_host_names_make_no_threads_files_or_segments() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut process = start(directory.path(), &["a", "b"], "2");
    let before = fs::read_to_string(data.join("shards.json")).unwrap();
    let threads = threads(&process);
    for count in 0..200 {
        drop(Client::connect(process.amqp, &host(&format!("random{count}"))).await);
        let answer = ask(&process, "GET", &format!("other{count}"), "/q", "");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    assert_eq!(
        before,
        fs::read_to_string(data.join("shards.json")).unwrap()
    );
    // The runtime's threads for blocking work begin and end; none is started for a host.
    assert!(self::threads(&process) <= threads + 4);
    assert!(!data.join("shard-2").exists());
    process.signal("TERM");
    process.wait_for_line("stopped");
    let (status, log) = process.end();
    assert!(status.success(), "{log}");
}

fn threads(process: &Process) -> usize {
    let tasks = format!("/proc/{}/task", process.child.id());
    fs::read_dir(tasks).unwrap().count()
}

fn files(process: &Process) -> usize {
    let descriptors = format!("/proc/{}/fd", process.child.id());
    fs::read_dir(descriptors).unwrap().count()
}

fn segments(data: &Path) -> usize {
    let names = fs::read_dir(data).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with('0') && name.contains(".seg"))
        .count()
}

#[tokio::test]
async fn a_thousand_namespaces_in_a_shard_have_no_threads_files_or_segments_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let one = start(directory.path(), &["n0"], "1");
    let (threads_of_one, files_of_one) = (threads(&one), files(&one));
    drop(one);
    let directory = tempfile::tempdir().unwrap();
    let all: Vec<String> = (0..1_000).map(|count| format!("n{count}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    for life in 0..2_usize {
        let process = start(directory.path(), &all, "1");
        // The runtime's threads for blocking work begin and end, and a file that is being prepared is open for a while: a few more
        // at one moment are not one for each namespace.
        let (threads, files) = (threads(&process), files(&process));
        assert!(threads <= threads_of_one + 8, "{threads}");
        assert!(files <= files_of_one + 8, "{files}");
        for namespace in [0, 1, 500, 999] {
            let name = all[namespace];
            assert_eq!(bodies(&process, name).await.len(), life);
            send(&process, name, name).await;
        }
        assert_eq!(segments(&directory.path().join("data")), 1);
    }
}
