//! What is asked of a queue's management node, one at a time: scheduled messages that are cancelled,
//! deferred ones that are received by their numbers.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::RequestArgs;
use super::client::{Client, Peer, Wanted};
use super::encode::{self, Map, Scheduled, unix_micros};
use super::load::identity;
use super::report::{float, histogram, latency, write_latency};
use crate::amqp::{Delivery, Event, LinkId, LinkRole, Outcome, SettleMode};
use crate::message::Message;

/// Messages in one request that schedules.
const SCHEDULED_AT_ONCE: usize = 100;
/// Unsettled messages of the sender.
const WINDOW: usize = 500;
/// Credit of the links that receive; topped up at half.
const CREDIT: u32 = 1_000;

/// Schedules messages, and cancels them one by one in another order.
pub(super) fn cancel(args: &RequestArgs) -> Result<Report, String> {
    super::block_on(async {
        let mut desk = Desk::open(args).await?;
        let mut scheduling = Phase::begin("schedule");
        let mut numbers = Vec::with_capacity(args.messages);
        while numbers.len() < args.messages {
            let count = SCHEDULED_AT_ONCE.min(args.messages - numbers.len());
            let messages = (numbers.len()..numbers.len() + count).map(|at| {
                let id = format!("bench-{at}");
                let message = message(args.size, Some(due(args, at)));
                Map::default()
                    .text("message-id", &id)
                    .binary("message", &message)
            });
            let body = Map::default().maps("messages", messages);
            let answer = desk.ask("schedule-message", &body, &mut scheduling).await?;
            let given = encode::entry(&answer, BODY, "sequence-numbers").and_then(encode::longs);
            let given = given.ok_or("the answer has no sequence-numbers")?;
            if given.len() != count {
                return Err(format!(
                    "{count} were scheduled, and {} numbers given",
                    given.len()
                ));
            }
            numbers.extend(given);
        }
        scheduling.end(args.messages);
        let mut cancelling = Phase::begin("cancel");
        for number in shuffled(numbers) {
            let body = Map::default().longs("sequence-numbers", &[number]);
            desk.ask("cancel-scheduled-message", &body, &mut cancelling)
                .await?;
        }
        cancelling.end(args.messages);
        desk.client.close().await?;
        Ok(Report(vec![scheduling, cancelling]))
    })?
}

/// Sends messages, defers them, and receives them by their numbers in another order.
pub(super) fn deferred(args: &RequestArgs) -> Result<Report, String> {
    super::block_on(async {
        let mut desk = Desk::open(args).await?;
        let mut deferring = Phase::begin("defer");
        let numbers = desk.defer(args).await?;
        deferring.end(args.messages);
        let mut receiving = Phase::begin("receive");
        for number in shuffled(numbers) {
            let body = Map::default()
                .longs("sequence-numbers", &[number])
                .uint("receiver-settle-mode", 0);
            desk.ask("receive-by-sequence-number", &body, &mut receiving)
                .await?;
        }
        receiving.end(args.messages);
        desk.client.close().await?;
        Ok(Report(vec![deferring, receiving]))
    })?
}

/// The sections of an answer that say something.
const PROPERTIES: u8 = 0x74;
const BODY: u8 = 0x77;

/// A connection with links for a queue and its management node.
struct Desk {
    client: Client,
    requests: LinkId,
    answers: LinkId,
    /// Credit of the answers that is left.
    left: u32,
    node: String,
}

impl Desk {
    async fn open(args: &RequestArgs) -> Result<Self, String> {
        let peer = Peer {
            broker: args.broker,
            identity: identity(args.user.as_deref(), args.password.as_deref()),
            patience: Duration::ZERO,
        };
        let mut client = Client::open(&peer, "requests").await?;
        let node = format!("{}/$management", args.node);
        let link = |role, name: &str| Wanted {
            role,
            node: node.clone(),
            name: name.to_owned(),
            message_session: None,
        };
        let wanted = [
            link(LinkRole::Outgoing, "requests"),
            link(LinkRole::Incoming, "answers"),
        ];
        let links = client.attach(&wanted).await?;
        let &[requests, answers] = links.as_slice() else {
            return Err("there are not two links".to_owned());
        };
        Ok(Self {
            client,
            requests,
            answers,
            left: 0,
            node: args.node.clone(),
        })
    }

    /// Sends a request, waits for the answer, and notes how long that took.
    async fn ask(
        &mut self,
        operation: &str,
        body: &Map,
        phase: &mut Phase,
    ) -> Result<Vec<u8>, String> {
        let request = encode::request(operation, body);
        if self.left < 2 {
            self.left = CREDIT;
            self.client.engine().grant_credit(self.answers, CREDIT);
        }
        let began = Instant::now();
        self.send(self.requests, 0, &request).await?;
        let answers = self.answers;
        let mine =
            |event: &Event| matches!(event, Event::Transfer { link, .. } if *link == answers);
        let answer = self.client.wait_for(mine).await?;
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        phase.latency.saturating_record(micros);
        let Event::Transfer {
            delivery,
            payload,
            settled,
            ..
        } = answer
        else {
            return Err("the answer is no transfer".to_owned());
        };
        self.left -= 1;
        let engine = self.client.engine();
        engine.settle_incoming(answers, delivery, &Outcome::Accepted, settled);
        match encode::entry(&payload, PROPERTIES, "statusCode").and_then(encode::integer) {
            Some(200) => Ok(payload.to_vec()),
            status => Err(format!("{operation} was answered with {status:?}")),
        }
    }

    /// Sends a message, as soon as there is credit.
    async fn send(&mut self, link: LinkId, number: u64, message: &[u8]) -> Result<(), String> {
        let mut tag = [0; 16];
        encode::patch(&mut tag, 0, number);
        loop {
            let delivery = Delivery {
                tag,
                settle_mode: SettleMode::OnReceipt,
                message_format: 0,
                payload: &[message],
            };
            if self.client.engine().deliver(link, delivery).is_ok() {
                return Ok(());
            }
            let credit = |event: &Event| matches!(event, Event::Credit { .. });
            self.client.wait_for(credit).await?;
        }
    }

    /// Sends messages and defers as many; returns their numbers.
    async fn defer(&mut self, args: &RequestArgs) -> Result<Vec<i64>, String> {
        let link = |role, name: &str| Wanted {
            role,
            node: self.node.clone(),
            name: name.to_owned(),
            message_session: None,
        };
        let wanted = [
            link(LinkRole::Outgoing, "sender"),
            link(LinkRole::Incoming, "receiver"),
        ];
        let links = self.client.attach(&wanted).await?;
        let &[sender, receiver] = links.as_slice() else {
            return Err("there are not two links".to_owned());
        };
        let message = message(args.size, None);
        let mut numbers = BTreeSet::new();
        let (mut made, mut accepted, mut left) = (0, 0, 0);
        while numbers.len() < args.messages || accepted < args.messages {
            if left <= CREDIT / 2 {
                left = CREDIT;
                self.client.engine().grant_credit(receiver, CREDIT);
            }
            while made < args.messages && made < accepted + WINDOW {
                let number = u64::try_from(made).unwrap_or(0);
                self.send(sender, number, &message).await?;
                made += 1;
            }
            let heard =
                |event: &Event| matches!(event, Event::Transfer { .. } | Event::Disposition { .. });
            match self.client.wait_for(heard).await? {
                Event::Transfer {
                    link,
                    delivery,
                    payload,
                    settled,
                    ..
                } if numbers.len() < args.messages => {
                    left -= 1;
                    numbers.insert(number_of(payload)?);
                    let outcome = Outcome::Modified {
                        delivery_failed: false,
                        undeliverable_here: true,
                        annotations: None,
                    };
                    let engine = self.client.engine();
                    engine.settle_incoming(link, delivery, &outcome, settled);
                }
                Event::Disposition { outcome, .. } if outcome != Outcome::Accepted => {
                    return Err(format!("a message was not accepted: {outcome:?}"));
                }
                Event::Disposition { .. } => accepted += 1,
                // More than was to be deferred: it stays locked.
                _ => {}
            }
        }
        // Decisions are gathered until something is written; a request would go before them.
        self.client.write()?;
        Ok(numbers.into_iter().collect())
    }
}

/// Reads the sequence number of a message that was received.
fn number_of(payload: Bytes) -> Result<i64, String> {
    let message = Message::parse(payload).map_err(|error| error.to_string())?;
    let number = message.message_annotation("x-opt-sequence-number");
    let number = number.and_then(encode::integer);
    number.ok_or_else(|| "a message has no sequence number".to_owned())
}

/// Encodes a message, scheduled for a time in milliseconds since 1970.
fn message(size: usize, due: Option<u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size + 128);
    let scheduled = match due {
        Some(_) => Scheduled::Yes,
        None => Scheduled::No,
    };
    let at = encode::head(&mut bytes, scheduled, None, None);
    if let (Some(at), Some(due)) = (at, due) {
        encode::patch(&mut bytes, at, due);
    }
    encode::data_head(&mut bytes, size);
    bytes.resize(bytes.len() + size, b'x');
    bytes
}

/// Times all over the span that messages are scheduled for, so that they come from all over a heap.
fn due(args: &RequestArgs, at: usize) -> u64 {
    let spread = scattered(u64::try_from(at).unwrap_or(0)) >> 32;
    let span = args.due_in.saturating_mul(1_000);
    // A day at least: nothing is to come due meanwhile.
    let later = 86_400_000 + ((u128::from(span) * u128::from(spread)) >> 32);
    unix_micros() / 1_000 + u64::try_from(later).unwrap_or(u64::MAX)
}

fn shuffled(mut numbers: Vec<i64>) -> Vec<i64> {
    numbers.sort_by_key(|number| scattered(number.cast_unsigned()));
    numbers
}

/// Fibonacci hashing: neighbours end up far apart, each time in the same way.
const fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// One kind of request, and what it took.
#[derive(Debug)]
struct Phase {
    name: &'static str,
    began: Instant,
    messages: usize,
    seconds: f64,
    latency: Histogram<u64>,
}

impl Phase {
    fn begin(name: &'static str) -> Self {
        Self {
            name,
            began: Instant::now(),
            messages: 0,
            seconds: 0.0,
            latency: histogram(),
        }
    }

    fn end(&mut self, messages: usize) {
        self.messages = messages;
        self.seconds = self.began.elapsed().as_secs_f64();
    }

    fn rate(&self) -> f64 {
        float(u64::try_from(self.messages).unwrap_or(u64::MAX)) / self.seconds
    }
}

/// What the requests took, kind by kind.
#[derive(Debug)]
pub(super) struct Report(Vec<Phase>);

impl Report {
    /// Returns the report for programs.
    pub(super) fn json(&self) -> Value {
        let phases = self.0.iter().map(|phase| {
            let value = json!({
                "messages": phase.messages,
                "seconds": phase.seconds,
                "rate": phase.rate(),
                "latency": latency(&phase.latency),
            });
            (phase.name.to_owned(), value)
        });
        Value::Object(phases.collect())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for phase in &self.0 {
            write_latency(f, phase.name, &phase.latency)?;
            let name = phase.name;
            writeln!(f, "{name:<19} {:.0} messages a second", phase.rate())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffled_numbers_are_the_same_numbers_in_another_order() {
        let numbers: Vec<i64> = (1..=1_000).collect();
        let other = shuffled(numbers.clone());
        assert_ne!(other, numbers);
        let back: BTreeSet<i64> = other.into_iter().collect();
        assert_eq!(back.into_iter().collect::<Vec<_>>(), numbers);
    }
}
