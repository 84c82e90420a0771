//! Dialogues with the server's end of a connection, one in each file of `dialogues/`.
//!
//! The first word of a line is its kind:
//!
//! - `C:` input of the peer: a frame in words (`words.rs`), `header amqp|sasl`, or `raw` bytes
//!   in hexadecimal. Lines that follow each other arrive in one read.
//! - `O:` a command of the connection's owner. Commands in lines that follow each other are sent
//!   together.
//! - `T:` time passes: `T: 30 s`.
//! - `E:` an event for the owner, `S:` output for the peer, `X:` nothing more will be read: these are
//!   the recorded answers, compared to the letter.
//!
//! Anything else is a comment. `UPDATE=1 cargo test dialogue` writes the answers anew; commit
//! only a difference that you understand.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, BytesMut};

use jitney_amqp::{
    Accept, Capability, Condition, Config, Connection, CreditLost, Delivery, DeliveryId, Event,
    Identity, IncomingDisposition, IncomingTransfer, LinkCredit, LinkId, LinkTarget, Outcome,
    Refusal, Rejection, SettleMode,
};
use jitney_base::time::{Millis, Timestamp};

use super::words;

#[test]
fn dialogues_hold() {
    let mut differ = Vec::new();
    for path in paths() {
        let recorded = fs::read_to_string(&path).expect("a dialogue");
        let played = std::panic::catch_unwind(|| Player::new().play(&recorded));
        let played = played.unwrap_or_else(|_| panic!("{} cannot be played", path.display()));
        if played == recorded {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &played).expect("a dialogue is written");
        } else {
            differ.push(format!(
                "{}:\n{}",
                path.display(),
                difference(&recorded, &played)
            ));
        }
    }
    assert!(differ.is_empty(), "\n{}", differ.join("\n"));
}

/// The lines around the first difference.
fn difference(recorded: &str, played: &str) -> String {
    let (recorded, played): (Vec<_>, Vec<_>) =
        (recorded.lines().collect(), played.lines().collect());
    let same = recorded
        .iter()
        .zip(&played)
        .take_while(|(a, b)| a == b)
        .count();
    let show = |lines: &[&str], sign| -> String {
        let lines = lines.iter().skip(same).take(6);
        lines.map(|line| format!("{sign} {line}\n")).collect()
    };
    format!(
        "line {}\n{}{}",
        same + 1,
        show(&recorded, '-'),
        show(&played, '+')
    )
}

struct Player {
    now: Timestamp,
    engine: Connection,
    input: BytesMut,
    finished: bool,
}

/// The broker's configuration of the engine, with smaller numbers.
pub fn config() -> Config {
    Config {
        channel_max: 99,
        handle_max: 7,
        identity: Identity::Unnamed,
        ..Config::server("jitney")
    }
}

impl Player {
    fn new() -> Self {
        let now = Timestamp::EPOCH;
        let engine = Connection::server(config(), now);
        Self {
            now,
            engine,
            input: BytesMut::new(),
            finished: false,
        }
    }

    /// Plays the input of a dialogue, and returns the dialogue with the engine's answers.
    fn play(mut self, recorded: &str) -> String {
        let mut text = String::new();
        let mut lines = recorded.lines().filter(|line| !is_answer(line)).peekable();
        while let Some(line) = lines.next() {
            text.push_str(line);
            text.push('\n');
            let Some((who, said)) = line.split_once(": ") else {
                continue;
            };
            match who {
                "C" => {
                    self.input.extend(encode(said.trim()));
                    if lines.peek().is_some_and(|next| next.starts_with("C: ")) {
                        continue;
                    }
                    self.engine.handle_bytes(self.now, &mut self.input);
                }
                "O" => {
                    if let Some(told) = self.decide(said.trim()) {
                        text.push_str(&format!("E: {told}\n"));
                    }
                    // Decisions that follow each other go out together.
                    if lines.peek().is_some_and(|next| next.starts_with("O: ")) {
                        continue;
                    }
                }
                "T" => self.pass(said.trim()),
                _ => continue,
            }
            self.answer(&mut text);
        }
        text
    }

    /// Lets time pass, as the server would: each timer when it is due.
    fn pass(&mut self, said: &str) {
        let (count, unit) = said.split_once(' ').expect("a number and a unit");
        let count: i64 = count.parse().expect("a number");
        let factor = if unit == "s" { 1_000 } else { 1 };
        let end = self.now.after(Millis::from_millis(count * factor));
        while let Some(due) = self.engine.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.engine.handle_timeout(self.now);
            let next = self.engine.poll_timeout();
            assert!(
                next.is_none_or(|next| self.now < next),
                "a timer that is never done"
            );
        }
        self.now = end;
    }

    /// Carries out a command of the owner; returns its immediate answer.
    fn decide(&mut self, said: &str) -> Option<String> {
        let mut said = said.splitn(3, ' ');
        let (command, link) = (
            said.next().expect("a command"),
            said.next().unwrap_or_default(),
        );
        let rest = said.next().unwrap_or_default();
        let engine = &mut self.engine;
        if command == "close" {
            let refusal = format!("{link} {rest}");
            engine.close(self.now, refusal_from(refusal.trim()));
            return None;
        }
        if command == "authenticated" {
            if link == "genuine" {
                engine.authenticated();
            } else {
                engine.refuse_authentication();
            }
            engine.handle_bytes(self.now, &mut self.input);
            return None;
        }
        let link = LinkId(link.parse().expect("a link"));
        match command {
            "accept" => {
                let number = |name| word(rest, name).map(|n| n.parse().expect("a number"));
                let accept = Accept {
                    message_size_max: number("max=").unwrap_or(0),
                    credit: word(rest, "credit=").map_or(0, |n| n.parse().expect("a number")),
                    capabilities: word(rest, "capabilities=").map_or(Vec::new(), capabilities),
                    is_durable: rest.contains("durable"),
                    ..Accept::default()
                };
                engine.accept_link(link, accept);
            }
            "refuse" => engine.refuse_link(link, refusal_from(rest).expect("a reason")),
            "settle-in" | "settle-out" => {
                let (delivery, outcome) = rest.split_once(' ').expect("a delivery and an outcome");
                let delivery = DeliveryId(delivery.parse().expect("a delivery"));
                if command == "settle-out" {
                    engine.settle_outgoing(link, delivery, &outcome_from(outcome));
                } else if outcome == "settled" {
                    engine.return_credit(link);
                } else {
                    engine.settle_incoming(link, delivery, &outcome_from(outcome));
                }
            }
            "deliver" => {
                let (mode, payload) = match rest.strip_prefix("settled ") {
                    Some(payload) => (SettleMode::OnSend, payload),
                    None => (SettleMode::OnReceipt, rest),
                };
                let payload = words::read_payload(payload);
                let (front, back) = payload.split_at(payload.len() / 2);
                let delivery = Delivery {
                    tag: *b"0123456789abcdef",
                    settle_mode: mode,
                    message_format: 0,
                    payload: &[front, back],
                };
                if let Err(CreditLost) = engine.deliver(link, delivery) {
                    return Some("no credit".to_owned());
                }
            }
            "drained" => engine.drained(link, rest.parse().expect("a limit")),
            "detach" => engine.detach(link, refusal_from(rest)),
            other => panic!("{other:?} is no command"),
        }
        None
    }

    fn answer(&mut self, text: &mut String) {
        while let Some(event) = self.engine.poll_event() {
            text.push_str(&format!("E: {}\n", event_words(&event)));
        }
        let mut output = crate::rig::said_by(&mut self.engine, self.now);
        while !output.is_empty() {
            text.push_str(&format!("S: {}\n", take_frame(&mut output)));
        }
        if self.engine.is_finished() && !self.finished {
            self.finished = true;
            text.push_str("X: finished\n");
        }
    }
}

/// Encodes the input of a peer in a line.
pub fn encode(said: &str) -> Vec<u8> {
    if let Some(hex) = said.strip_prefix("raw ") {
        return words::from_hex(hex);
    }
    match said {
        "header amqp" => return b"AMQP\x00\x01\x00\x00".to_vec(),
        "header sasl" => return b"AMQP\x03\x01\x00\x00".to_vec(),
        _ => {}
    }
    let (channel, said) = match said.strip_prefix("ch=") {
        Some(rest) => rest.split_once(' ').expect("a frame on a channel"),
        None => ("0", said),
    };
    let channel: u16 = channel.parse().expect("a channel");
    let body = words::body(said);
    let size = u32::try_from(body.len() + 8).expect("a frame");
    let mut frame = size.to_be_bytes().to_vec();
    frame.extend([2, u8::from(said.starts_with("sasl"))]);
    frame.extend(channel.to_be_bytes());
    frame.extend(body);
    frame
}

/// Returns the input of the peers in all dialogues, a list of encoded lines for each.
pub fn corpus() -> Vec<Vec<Vec<u8>>> {
    let said = |recorded: String| -> Vec<Vec<u8>> {
        let lines = recorded.lines();
        let said = lines.filter_map(|line| line.strip_prefix("C: "));
        said.map(|said| encode(said.trim())).collect()
    };
    let paths = paths().into_iter();
    paths
        .map(|path| said(fs::read_to_string(path).expect("a dialogue")))
        .collect()
}

fn paths() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/core/engine/dialogues");
    let mut paths: Vec<_> = fs::read_dir(&directory)
        .expect("the directory of dialogues")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

fn is_answer(line: &str) -> bool {
    ["E: ", "S: ", "X: "]
        .iter()
        .any(|who| line.starts_with(who))
}

/// Returns what follows `name` in a line of words.
fn word<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split(' ').find_map(|word| word.strip_prefix(name))
}

/// Reads capabilities with commas between them.
fn capabilities(text: &str) -> Vec<Capability> {
    let named = |name: &str| match name {
        "global" => Capability::Global,
        "queue" => Capability::Queue,
        "shared" => Capability::Shared,
        "topic" => Capability::Topic,
        other => panic!("{other:?} is no capability"),
    };
    text.split(',').map(named).collect()
}

fn refusal_from(text: &str) -> Option<Refusal> {
    if text.is_empty() {
        return None;
    }
    let (condition, description) = text.split_once(' ').unwrap_or((text, ""));
    let description = description.trim_matches('"').to_owned();
    Some(Refusal {
        condition: Condition::from(condition),
        description,
    })
}

fn outcome_from(text: &str) -> Outcome {
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    match name {
        "accepted" => Outcome::Accepted,
        "released" => Outcome::Released,
        "abandoned" | "deferred" => Outcome::Modified {
            delivery_failed: false,
            undeliverable_here: name == "deferred",
            annotations: None,
        },
        "rejected" => Outcome::Rejected(refusal_from(rest).map(|refusal| {
            Arc::new(Rejection {
                refusal,
                info: None,
            })
        })),
        other => panic!("{other:?} is no outcome"),
    }
}

/// Takes a header or a frame off the engine's output, in words.
fn take_frame(output: &mut BytesMut) -> String {
    match &output[..8] {
        b"AMQP\x00\x01\x00\x00" | b"AMQP\x03\x01\x00\x00" => {
            let header = output.split_to(8);
            return format!("header {}", if header[4] == 3 { "sasl" } else { "amqp" });
        }
        _ => {}
    }
    let size = usize::try_from(u32::from_be_bytes(output[..4].try_into().expect("four")));
    let mut frame = output.split_to(size.expect("a size"));
    assert_eq!(frame[4], 2, "Python knows no other data offset");
    let kind = frame[5];
    let channel = u16::from_be_bytes([frame[6], frame[7]]);
    frame.advance(8);
    let words = words::describe(&frame);
    assert_eq!(
        kind == 1,
        words.starts_with("sasl"),
        "a frame of the other layer"
    );
    if channel == 0 {
        words
    } else {
        format!("ch={channel} {words}")
    }
}

#[expect(clippy::too_many_lines, reason = "a table of events")]
fn event_words(event: &Event) -> String {
    let because = |error: &Option<Refusal>| match error {
        Some(error) => format!(" {} {:?}", error.condition.as_str(), error.description),
        None => String::new(),
    };
    match event {
        Event::Authenticating { .. } => "authenticating".to_owned(),
        Event::RefusedInTransaction { reason, .. } => format!("refused-in-transaction {reason:?}"),
        Event::Opened {
            container_id,
            hostname,
            identity,
            ..
        } => {
            let hostname = hostname.as_deref().unwrap_or("-");
            let identity = match identity {
                Identity::Unnamed => "unnamed".to_owned(),
                Identity::Anonymous => "anonymous".to_owned(),
                Identity::External => "external".to_owned(),
                Identity::Plain { user, password } => format!("plain {user}:{}", password.expose()),
            };
            format!("opened {container_id:?} host={hostname} as {identity}")
        }
        Event::AttachRequested(link, attach) => {
            let source = attach
                .source
                .as_ref()
                .and_then(|source| source.address.as_deref());
            let target = match &attach.target {
                LinkTarget::Node(target) => {
                    target.as_ref().and_then(|node| node.address.as_deref())
                }
                LinkTarget::Coordinator => Some("(coordinator)"),
            };
            let (role, name) = (attach.role, &attach.name);
            format!(
                "attach-requested {} {role:?} {name:?} {} -> {}",
                link.0,
                source.unwrap_or("-"),
                target.unwrap_or("-")
            )
        }
        Event::AttachAnswered(link, _) => format!("attach-answered {}", link.0),
        Event::Transfer(IncomingTransfer {
            link,
            delivery,
            payload,
            message_format,
            settled,
            transaction,
        }) => {
            let mut text = format!("transfer {} delivery={}", link.0, delivery.0);
            if *message_format != 0 {
                text.push_str(&format!(" format={message_format:#x}"));
            }
            if *settled {
                text.push_str(" settled");
            }
            if let Some(transaction) = transaction {
                text.push_str(&format!(" transaction={}", words::to_hex(transaction)));
            }
            format!("{text} {}", words::write_payload(payload))
        }
        Event::Credit(LinkCredit { link, limit, drain }) => {
            format!(
                "credit {} up to {limit}{}",
                link.0,
                if *drain { " drain" } else { "" }
            )
        }
        Event::Disposition(IncomingDisposition {
            link,
            delivery,
            settled,
            outcome,
            transaction,
            ..
        }) => {
            let settled = if *settled { " settled" } else { "" };
            let transaction = transaction
                .as_ref()
                .map_or_else(String::new, |transaction| {
                    format!(" transaction={}", words::to_hex(transaction))
                });
            format!(
                "disposition {} delivery={}{settled} {outcome:?}{transaction}",
                link.0, delivery.0
            )
        }
        Event::Detached {
            link,
            error,
            unsent,
        } => format!(
            "detached {}{}{}",
            link.0,
            because(error),
            unsent_of(unsent.len())
        ),
        Event::Unsent { link, tags } => format!("unsent {}{}", link.0, unsent_of(tags.len())),
        Event::Closed { error, unsent } => {
            format!("closed{}{}", because(error), unsent_of(unsent.len()))
        }
    }
}

/// How many deliveries the peer's window kept back, where there are any.
fn unsent_of(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!(", {count} unsent"),
    }
}
