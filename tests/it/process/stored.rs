//! A data directory of an older release opens with all its messages.
//!
//! `tests/it/stored/make.py` wrote it; a change of the log's format that this test cannot read would
//! lose what operators have.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Process;
use super::client::{Client, Peeked};

/// A data directory that a release has written.
struct Stored {
    /// Its files, without their zeros.
    files: &'static [u8],
    count: usize,
    /// The messages of each queue: numbers, states, counts of deliveries, and bodies.
    messages: &'static str,
    /// How many shards it may be started with.
    shards: [&'static str; 3],
}

/// Of a release before data directories had shards: two segments and a checkpoint.
const PLAIN: Stored = Stored {
    files: include_bytes!("../stored/plain/data.bin"),
    count: 3,
    messages: include_str!("../stored/plain/expected.txt"),
    shards: ["1", "2", "1"],
};

/// Two shards, with messages that a job has changed, the job and entries of the audit log: three segments, a checkpoint and the
/// record of the shards.
const SHARDS: Stored = Stored {
    files: include_bytes!("../stored/shards/data.bin"),
    count: 5,
    messages: include_str!("../stored/shards/expected.txt"),
    shards: ["2", "3", "2"],
};

const QUEUES: [(&str, &str); 15] = [
    ("first", "orders"),
    ("first", "orders/$DeadLetterQueue"),
    ("first", "sessions"),
    ("first", "unique"),
    ("first", "target"),
    ("first", "parts"),
    ("first", "filler"),
    ("first", "news/Subscriptions/all"),
    ("first", "news/Subscriptions/red"),
    ("first", "news/Subscriptions/blue"),
    ("second", "orders"),
    ("second", "orders/$DeadLetterQueue"),
    ("second", "news/Subscriptions/all"),
    ("third", "orders"),
    ("third", "orders/$DeadLetterQueue"),
];

/// Takes the next bytes.
fn take<'a>(left: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = left.split_at(count);
    *left = rest;
    taken
}

fn number(left: &mut &[u8], bytes: usize) -> u64 {
    let mut number = [0; 8];
    number[..bytes].copy_from_slice(take(left, bytes));
    u64::from_le_bytes(number)
}

/// Writes the files as they were, and returns how many there are.
fn unpack(stored: &Stored, directory: &Path) -> usize {
    let mut left = stored.files;
    let mut files = 0;
    while !left.is_empty() {
        let name = usize::from(take(&mut left, 1)[0]);
        let name = std::str::from_utf8(take(&mut left, name)).unwrap();
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = File::create_new(path).unwrap();
        file.set_len(number(&mut left, 8)).unwrap();
        for _ in 0..number(&mut left, 4) {
            let offset = number(&mut left, 8);
            let length = usize::try_from(number(&mut left, 4)).unwrap();
            file.write_all_at(take(&mut left, length), offset).unwrap();
        }
        files += 1;
    }
    files
}

fn unpacked(stored: &Stored) -> TempDir {
    let data = tempfile::tempdir().unwrap();
    assert_eq!(unpack(stored, data.path()), stored.count);
    data
}

fn config() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/stored/Config.json")
}

fn start(data: &Path, arguments: &[&str]) -> Process {
    let config = config();
    let ours = [
        "--config",
        config.to_str().unwrap(),
        "--auth",
        "development",
    ];
    Process::start("", data, &[&ours, arguments].concat())
}

/// Describes all messages, a line each.
async fn describe(process: &Process) -> String {
    let mut text = String::new();
    for (namespace, queue) in QUEUES {
        let host = format!("{namespace}.example");
        let mut client = Client::connect(process.amqp, &host).await;
        for Peeked {
            number,
            state,
            delivery_count,
            body,
        } in client.peek(queue).await
        {
            let body = if body.iter().all(|byte| *byte == 0) {
                format!("{} zeros", body.len())
            } else {
                String::from_utf8(body).unwrap()
            };
            writeln!(
                text,
                "{namespace} {queue} {number:#x} state {state} deliveries {delivery_count}: {body}"
            )
            .unwrap();
        }
        if queue == "sessions" {
            for session in ["one", "two", "three"] {
                let state = client.session_state(queue, session).await;
                let state = state.map(|state| String::from_utf8(state).unwrap());
                writeln!(text, "{namespace} {queue} {session}: {state:?}").unwrap();
            }
        }
    }
    text
}

async fn check(stored: &Stored) {
    let data = unpacked(stored);
    for (life, shards) in stored.shards.into_iter().enumerate() {
        let mut process = start(data.path(), &["--shards", shards]);
        let found = describe(&process).await;
        assert_eq!(found, stored.messages, "life {life}");
        assert!(!process.told.contains("ERROR"), "{}", process.told);
        process.signal("TERM");
        process.wait_for_line("stopped");
        let (status, log) = process.end();
        assert!(status.success(), "{log}");
    }
    let left = fs::read_dir(data.path()).unwrap().count();
    assert!(3 < left, "a lock and a prepared segment are there too");
}

#[tokio::test]
async fn a_data_directory_of_an_older_release_has_all_that_was_in_it() {
    check(&PLAIN).await;
}

#[tokio::test]
async fn so_has_one_with_shards_jobs_and_an_audit_log() {
    check(&SHARDS).await;
}

#[tokio::test]
async fn new_messages_follow_those_of_the_older_release() {
    let data = unpacked(&PLAIN);
    let process = start(data.path(), &[]);
    let mut client = Client::connect(process.amqp, "first.example").await;
    let before = client.peek("orders").await;
    client.send("orders", &["now"]).await;
    client.send("unique", &["now"]).await;
    let after = client.peek("orders").await;
    assert_eq!(after[..before.len()], before[..]);
    let newest = after.last().unwrap();
    let expected = before.last().unwrap().number + 1;
    assert_eq!((&newest.body[..], newest.number), (&b"now"[..], expected));
}
