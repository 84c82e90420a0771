//! The commands of the command line: against a broker, and against a peer that means harm.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};

use super::Process;

/// Runs a command in a directory, without what the environment says of brokers.
fn run(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitney"));
    for variable in [
        "JITNEY_URL",
        "JITNEY_OPERATOR_KEY",
        "SERVICEBUS_CONNECTION_STRING",
        "CONFIG_PATH",
        "CONFIG_JSON",
    ] {
        command.env_remove(variable);
    }
    command
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs a command that must succeed, and returns what it prints.
fn printed(directory: &Path, arguments: &[&str]) -> String {
    let done = run(directory, arguments);
    assert!(
        done.status.success(),
        "{arguments:?}: {}",
        text(&done.stderr)
    );
    text(&done.stdout)
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// Returns configurations, each with the number of its mistakes.
fn files() -> Vec<(String, usize)> {
    let of = |namespace: &str| {
        format!(r#"{{"UserConfig":{{"Namespaces":[{{"Name":"sbemulatorns",{namespace}}}]}}}}"#)
    };
    let queue = |properties: &str| {
        of(&format!(
            r#""Queues":[{{"Name":"a"}},{{"Name":"q","Properties":{{{properties}}}}}]"#
        ))
    };
    let rule = |properties: &str| {
        of(&format!(
            r#""Topics":[{{"Name":"t","Subscriptions":[{{"Name":"s","Rules":[{{"Name":"r","Properties":{{{properties}}}}}]}}]}}]"#
        ))
    };
    let sql = r#""FilterType":"Sql","SqlFilter":{"SqlExpression":"#;
    let keys = r#""AuthorizationRules":[{"Name":"r","Rights":["Send"],"PrimaryKey":"k"}]"#;
    vec![
        (queue(""), 0),
        (queue(r#""ForwardTo":"A","MaxDeliverCount":3"#), 0),
        (rule(r#""FilterType":"TrueFilter""#), 0),
        (rule(&format!(r#"{sql}"color = 'red'"}}"#)), 0),
        (format!("\u{feff}{}", queue("")), 0),
        (queue(r#""LockDuration":"PT9M","ForwardTo":"none""#), 2),
        (
            queue(r#""ForwardTo":"none","ForwardDeadLetteredMessagesTo":"nor""#),
            2,
        ),
        (
            rule(&format!(
                r#"{sql}"color ="}},"Action":{{"SqlExpression":"SET"}}"#
            )),
            2,
        ),
        (rule(&format!(r#"{sql}"sys.Nothing = 1"}}"#)), 1),
        (queue(keys), 1),
        (queue(r#""LockDuration":"PT30S" "MaxDeliveryCount":3"#), 1),
        (
            r#"{"UserConfig":{"Namespaces":[{"Name":"n"}],"Logging":{"Type":"Syslog"}}}"#
                .to_owned(),
            1,
        ),
    ]
}

#[test]
fn what_a_check_passes_a_start_takes_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    for (at, (contents, mistakes)) in files().into_iter().enumerate() {
        let file = place.path().join(format!("{at}.json"));
        fs::write(&file, &contents).unwrap();
        let name = file.to_str().unwrap();
        let checked = run(place.path(), &["config", "check", name]);
        let told = text(&checked.stderr);
        let (warnings, told): (Vec<&str>, Vec<&str>) =
            told.lines().partition(|line| line.contains(": warning: "));
        assert!(warnings.len() <= 1, "{contents}: {warnings:?}");
        assert_eq!(told.len(), mistakes, "{contents}: {told:?}");
        assert_eq!(checked.status.success(), mistakes == 0, "{contents}");
        for line in &told {
            assert!(line.starts_with(&format!("{name}:1:")), "{line}");
        }
        let data = place.path().join(format!("data-{at}"));
        let arguments = ["--config", name];
        if mistakes == 0 {
            drop(Process::start("", &data, &arguments));
            continue;
        }
        let ended = Process::spawn("", &data, &arguments)
            .wait_with_output()
            .unwrap();
        assert!(!ended.status.success(), "{contents}");
        // All mistakes, each at its place: of a forwarding target at least that of its entity.
        let log = text(&ended.stderr);
        let lines = log
            .lines()
            .filter(|line| line.contains(&format!("{name}:1:")));
        assert!(0 < lines.clone().count(), "{log}");
        if !contents.contains("ForwardTo") {
            for line in &told {
                assert!(log.contains(line), "{line} is not in {log}");
            }
        }
    }
}

#[test]
fn a_name_that_is_not_known_ends_a_strict_start_only() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("c.json");
    let contents =
        r#"{"Custom":1,"UserConfig":{"Namespaces":[{"Name":"n","Queues":[{"Name":"q"}]}]}}"#;
    fs::write(&file, contents).unwrap();
    let name = file.to_str().unwrap();
    let checked = run(place.path(), &["config", "check", name]);
    assert!(checked.status.success());
    assert!(text(&checked.stdout).contains("1 warning"), "{checked:?}");
    let strict = run(place.path(), &["config", "check", "--strict", name]);
    assert!(!strict.status.success(), "{strict:?}");
    let broker = Process::start("", &place.path().join("data"), &["--config", name]);
    assert!(broker.told.contains("warning: Custom: "), "{}", broker.told);
    assert!(
        broker
            .told
            .contains("entities have the emulator's defaults"),
        "{}",
        broker.told
    );
    drop(broker);
    let data = place.path().join("more");
    let ended = Process::spawn("", &data, &["--config", name, "--strict-config"])
        .wait_with_output()
        .unwrap();
    assert!(text(&ended.stderr).contains(":1:2: Custom: "), "{ended:?}");
    // The whole text, with the service's defaults, of which nothing is told.
    let before = format!("CONFIG_JSON='{contents}'; export CONFIG_JSON");
    let broker = Process::start(&before, &data, &["--config-defaults", "service"]);
    assert!(
        !broker.told.contains("the emulator's defaults"),
        "{}",
        broker.told
    );
    let shown = ["queues", "show", "q", "--url", &url(broker.http)];
    let shown = printed(place.path(), &shown);
    let mut lines = shown.lines().filter_map(|line| line.trim().split_once(' '));
    let lasts = lines.find(|(name, _)| *name == "properties.default_time_to_live");
    assert_eq!(
        lasts.map(|(_, value)| value.trim()),
        Some("never"),
        "{shown}"
    );
}

#[test]
fn an_update_changes_what_it_names() {
    let place = tempfile::tempdir().unwrap();
    let broker = Process::start("", &place.path().join("data"), &[]);
    let url = url(broker.http);
    let run = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--url", &url, "--output", "json"]);
        let text = printed(place.path(), &all);
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let set = [
        "--set",
        "lock_duration=PT30S",
        "--set",
        "max_delivery_count=4",
    ];
    for (kind, path) in [
        ("queues", "made"),
        ("topics", "news"),
        ("subscriptions", "news/Subscriptions/all"),
    ] {
        let mut create = vec![kind, "create", path, "--set", "user_metadata=mine"];
        if kind != "topics" {
            create.extend(set);
        }
        let before = run(&create);
        let after = run(&[kind, "update", path, "--set", "default_time_to_live=PT5M"]);
        let mut wanted = before["properties"].clone();
        wanted["default_time_to_live"] = "PT5M".into();
        assert_eq!(after["properties"], wanted, "{kind}");
        // A value that is taken away is the default.
        let after = run(&[kind, "update", path, "--set", "user_metadata="]);
        wanted.as_object_mut().unwrap().remove("user_metadata");
        assert_eq!(after["properties"], wanted, "{kind}");
        let replaced = run(&[kind, "update", path, "--replace"]);
        assert_eq!(
            replaced["properties"]["default_time_to_live"],
            "P10675199DT2H48M5.4775807S"
        );
        assert_eq!(replaced["properties"]["max_delivery_count"], 10, "{kind}");
    }
}

#[test]
fn a_connection_string_s_own_port_takes_http() {
    let place = tempfile::tempdir().unwrap();
    let broker = Process::start("", &place.path().join("data"), &[]);
    let string = format!(
        "Endpoint=sb://{};SharedAccessKeyName=R;SharedAccessKey=k;UseDevelopmentEmulator=true",
        broker.amqp
    );
    let listed = printed(place.path(), &["queues", "list", "--connection", &string]);
    assert!(listed.contains("queue.1"), "{listed}");
}

#[test]
fn texts_in_json_logs_are_quoted_once() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let mut child = Process::spawn("", &data, &["--log-format", "json", "--log-requests"]);
    let mut log = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut lines = Vec::new();
    let mut read = |until: &str| -> serde_json::Value {
        loop {
            let mut line = String::new();
            let count = std::io::BufRead::read_line(&mut log, &mut line).unwrap();
            assert!(count != 0, "the log has ended: {lines:?}");
            lines.push(line.clone());
            if line.contains(until) {
                return serde_json::from_str(&line).unwrap();
            }
        }
    };
    let http = read("\"listening\"")["fields"]["http"]
        .as_str()
        .unwrap()
        .to_owned();
    let started = read("\"started\"");
    let connect = started["fields"]["connect"].as_str().unwrap_or_default();
    let port = http.trim_start_matches("127.0.0.1");
    assert!(
        connect.starts_with(&format!("Endpoint=sb://localhost{port};")),
        "{started}"
    );
    read("Successfully Up");
    let url = format!("http://{http}");
    printed(place.path(), &["queues", "create", "a.b", "--url", &url]);
    let audited = read("jitney::audit");
    assert_eq!(audited["fields"]["entity"], "a.b", "{audited}");
    let request = read("\"PUT\"");
    assert_eq!(
        request["fields"]["path"], "/api/v1/entities/a%2Eb",
        "{request}"
    );
    let _ = child.kill();
    let _ = child.wait();
    for line in &lines {
        assert!(!line.contains(r#":"\""#), "{line}");
    }
}

/// Answers every request with a status and a body, until it is dropped with the last one.
fn answering(
    status: &'static str,
    body: String,
    requests: usize,
) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answering = thread::spawn(move || {
        let mut all = String::new();
        for _ in 0..requests {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).unwrap();
            all.push_str(&String::from_utf8_lossy(&bytes[..count]));
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).unwrap();
        }
        all
    });
    (address, answering)
}

#[test]
fn nothing_that_a_broker_answers_steers_the_terminal() {
    const HIDDEN: [char; 8] = [
        '\u{1b}', '\u{7}', '\r', '\u{7f}', '\u{9b}', '\u{202e}', '\u{200b}', '\u{2066}',
    ];
    let evil: String = HIDDEN.iter().collect();
    let place = tempfile::tempdir().unwrap();
    let message = serde_json::json!({
        "sequence_number": 1, "state": "active", "message_id": evil, "session_id": evil,
        "enqueued_at": evil, "delivery_count": 0, "size_bytes": 1,
        "properties": {&evil: evil}, "body": {"size_bytes": 1, "text": evil}, "dead_letter": {"reason": evil},
    });
    let counts = serde_json::json!({
        "active": 0, "deferred": 0, "locked": 0, "scheduled": 0, "dead_letters": 0, "transfer": 0,
        "transfer_dead_letters": 0,
    });
    let entity = serde_json::json!({
        "path": evil, "kind": "queue", "properties": {}, "counts": counts, "size_bytes": 0,
        "created_at": evil, "updated_at": evil,
    });
    let list = serde_json::json!({"messages": [message], "entities": [entity]});
    let problem = serde_json::json!({"status": 409, "detail": evil, "reason": "x"});
    let cases: [(&'static str, String, &[&str]); 6] = [
        (
            "200 OK",
            message.to_string(),
            &["messages", "show", "q", "1"],
        ),
        (
            "200 OK",
            message.to_string(),
            &["messages", "show", "q", "1", "--output", "json"],
        ),
        ("200 OK", list.to_string(), &["messages", "list", "q"]),
        (
            "200 OK",
            list.to_string(),
            &["queues", "list", "--output", "json"],
        ),
        (
            "409 Conflict",
            problem.to_string(),
            &["queues", "show", "q"],
        ),
        ("200 OK", list.to_string(), &["export", "messages", "q"]),
    ];
    for (status, body, arguments) in cases {
        let (address, peer) = answering(status, body, 1);
        let mut all = arguments.to_vec();
        let url = url(address);
        all.extend(["--url", &url]);
        let done = run(place.path(), &all);
        peer.join().unwrap();
        for stream in [&done.stdout, &done.stderr] {
            let shown = text(stream);
            assert!(!shown.contains(HIDDEN), "{arguments:?}: {shown:?}");
        }
        let shown = text(&done.stdout) + &text(&done.stderr);
        let escape = if arguments.contains(&"json") || arguments[0] == "export" {
            "\\u202e"
        } else {
            "\\u{202e}"
        };
        assert!(shown.contains(escape), "{arguments:?}: {shown:?}");
    }
}

#[test]
fn the_key_of_a_data_directory_goes_to_this_machine() {
    let place = tempfile::tempdir().unwrap();
    let key = "the-key-of-the-operator";
    fs::create_dir(place.path().join("jitney-data")).unwrap();
    fs::write(place.path().join("jitney-data/operator.key"), key).unwrap();
    let (address, peer) = answering("401 Unauthorized", r#"{"detail":"no"}"#.to_owned(), 1);
    let done = run(place.path(), &["queues", "list", "--url", &url(address)]);
    assert!(peer.join().unwrap().contains(key));
    let told = text(&done.stderr);
    assert!(told.starts_with("jitney: no; the key was "), "{told}");
    assert!(told.contains("operator.key, of another broker"), "{told}");
    // Without one, the command says which there are.
    let (address, peer) = answering("401 Unauthorized", r#"{"detail":"no"}"#.to_owned(), 1);
    let elsewhere = [
        "queues",
        "list",
        "--data-dir",
        "none",
        "--url",
        &url(address),
    ];
    let done = run(place.path(), &elsewhere);
    assert!(
        !peer
            .join()
            .unwrap()
            .to_lowercase()
            .contains("authorization")
    );
    let told = text(&done.stderr);
    for option in ["--connection", "--operator-key-file", "--data-dir"] {
        assert!(told.contains(option), "{told}");
    }
}
