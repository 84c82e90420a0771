//! The real binary as a process: what depends on descriptors, signals and standard streams.

mod balancers;
mod client;
mod commands;
mod descriptors;
mod http;
mod privacy;
mod receives;
mod shards;
mod signals;
mod stored;
mod streams;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long an answer may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A broker with ports of its own; it is killed when it is dropped.
struct Process {
    child: Child,
    log: BufReader<ChildStderr>,
    /// The log before it served.
    told: String,
    amqp: SocketAddr,
    http: SocketAddr,
}

impl Process {
    /// Starts a broker in a shell that has run `before`, and waits until it serves.
    fn start(before: &str, data: &Path, arguments: &[&str]) -> Self {
        Self::serving(Self::spawn(before, data, arguments))
    }

    /// Waits until a broker serves.
    fn serving(mut child: Child) -> Self {
        let mut log = BufReader::new(child.stderr.take().expect("it is a pipe"));
        let (mut amqp, mut http) = (None, None);
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let count = log.read_line(&mut line).unwrap();
            assert!(count != 0, "the broker has ended: {all}");
            if line.contains(": listening ") {
                amqp = first_of(&line, " amqp=");
                http = first_of(&line, " http=");
            }
            if line.contains("Successfully Up") {
                break;
            }
            all.push_str(&line);
        }
        Self {
            child,
            log,
            told: all,
            amqp: amqp.expect("it is told"),
            http: http.expect("it is told"),
        }
    }

    /// Starts a broker in a shell that has run `before`.
    fn spawn(before: &str, data: &Path, arguments: &[&str]) -> Child {
        let mut command = Self::command(before, data, arguments);
        command.spawn().unwrap()
    }

    /// Returns the command of a shell that runs `before`, and then a broker.
    fn command(before: &str, data: &Path, arguments: &[&str]) -> Command {
        let ports = ["--amqp", "127.0.0.1:0", "--http", "127.0.0.1:0"];
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{before}\nexec \"$0\" \"$@\"")])
            .args([env!("CARGO_BIN_EXE_jitney"), "serve", "--data-dir"])
            .arg(data)
            .args(ports)
            .args(arguments)
            .env_remove("RUST_LOG")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Returns the answer to a request, as text.
    fn get(&self, path: &str) -> String {
        let mut stream = connect(self.http);
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        read.unwrap_or_else(|error| panic!("{path} is not answered: {error}"));
        answer
    }

    /// Sends a signal: a name as `kill` knows it.
    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.unwrap().success(), "{signal}");
    }

    /// Waits until the log has a line with this text, and returns it.
    fn wait_for_line(&mut self, text: &str) -> String {
        let mut line = String::new();
        while self.log.read_line(&mut line).unwrap() != 0 {
            if line.contains(text) {
                return line;
            }
            line.clear();
        }
        panic!("the log has ended without {text:?}");
    }

    /// Waits for the end; returns it with the rest of the log.
    fn end(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the first address of a kind in the line of the log that has all.
fn first_of(line: &str, kind: &str) -> Option<SocketAddr> {
    let (_, all) = line.split_once(kind)?;
    let first = all.split([',', ' ', '\n']).next()?;
    Some(first.parse().unwrap())
}

/// Connects, with a time-out for reads.
fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}
