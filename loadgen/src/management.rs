//! `loadgen cancel` and `loadgen deferred`: requests to the management node of a queue, one at a time.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Instant;

use bytes::Bytes;
use hdrhistogram::Histogram;
use jitney_amqp::{
    Delivery, Event, IncomingDisposition, IncomingTransfer, LinkId, LinkRole, Outcome, SettleMode,
};
use jitney_message::Message;
use serde_json::{Value, json};

use crate::cli::RequestArgs;
use crate::client::{Client, LinkSpec};
use crate::clock::unix_micros;
use crate::encode::{self, MapBuilder, Scheduled};
use crate::output::Report;
use crate::report::{float, histogram, latency_json, write_latency};

/// The number of messages in one request to schedule.
const SCHEDULE_BATCH: usize = 100;
/// The maximum number of unsettled messages of the sender.
const WINDOW: usize = 500;
/// The credit of receiving links.
const CREDIT: u32 = 1_000;
const DAY_MILLIS: u64 = 86_400_000;

/// Schedules messages, and cancels them one by one in another order.
pub(crate) fn cancel(args: &RequestArgs) -> Result<ManagementReport, String> {
    crate::block_on(async {
        let mut management = ManagementClient::open(args).await?;
        let mut scheduling = Phase::start("schedule");
        let mut numbers = Vec::with_capacity(args.messages);
        while numbers.len() < args.messages {
            let count = SCHEDULE_BATCH.min(args.messages - numbers.len());
            let messages = (numbers.len()..numbers.len() + count).map(|at| {
                let id = format!("loadgen-{at}");
                let message = message(args.size, Some(enqueue_time(args, at)));
                MapBuilder::default()
                    .text("message-id", &id)
                    .binary("message", &message)
            });
            let body = MapBuilder::default().maps("messages", messages);
            let response = management
                .request("schedule-message", &body, &mut scheduling)
                .await?;
            let assigned = encode::map_entry(&response, BODY, "sequence-numbers");
            let assigned = assigned.and_then(encode::longs);
            let assigned = assigned.ok_or("the response has no sequence-numbers")?;
            if assigned.len() != count {
                let numbers = assigned.len();
                return Err(format!(
                    "the response to {count} scheduled messages has {numbers} sequence numbers"
                ));
            }
            numbers.extend(assigned);
        }
        scheduling.finish(args.messages);
        let mut cancelling = Phase::start("cancel");
        for number in shuffled(numbers) {
            let body = MapBuilder::default().longs("sequence-numbers", &[number]);
            management
                .request("cancel-scheduled-message", &body, &mut cancelling)
                .await?;
        }
        cancelling.finish(args.messages);
        management.client.close().await?;
        Ok(ManagementReport(vec![scheduling, cancelling]))
    })?
}

/// Sends messages, defers them, and receives them by their sequence numbers in another order.
pub(crate) fn receive_deferred(args: &RequestArgs) -> Result<ManagementReport, String> {
    crate::block_on(async {
        let mut management = ManagementClient::open(args).await?;
        let mut deferring = Phase::start("defer");
        let numbers = management.defer(args).await?;
        deferring.finish(args.messages);
        let mut receiving = Phase::start("receive");
        for number in shuffled(numbers) {
            let body = MapBuilder::default()
                .longs("sequence-numbers", &[number])
                .uint("receiver-settle-mode", 0);
            management
                .request("receive-by-sequence-number", &body, &mut receiving)
                .await?;
        }
        receiving.finish(args.messages);
        management.client.close().await?;
        Ok(ManagementReport(vec![deferring, receiving]))
    })?
}

/// The descriptors of two sections of a response: application-properties and amqp-value.
const PROPERTIES: u8 = 0x74;
const BODY: u8 = 0x77;

/// A connection with links to the management node of a queue.
struct ManagementClient {
    client: Client,
    requests: LinkId,
    responses: LinkId,
    /// The remaining credit of the link for responses.
    credit_left: u32,
    node: String,
}

impl ManagementClient {
    async fn open(args: &RequestArgs) -> Result<Self, String> {
        let mut client = Client::open(&args.endpoint.endpoint()?, "management").await?;
        let node = format!("{}/$management", args.node);
        let link = |role, name: &str| LinkSpec {
            role,
            node: node.clone(),
            name: name.to_owned(),
            message_session: None,
        };
        let links = [
            link(LinkRole::Outgoing, "requests"),
            link(LinkRole::Incoming, "responses"),
        ];
        let links = client.attach(&links).await?;
        let &[requests, responses] = links.as_slice() else {
            return Err("two links are expected".to_owned());
        };
        Ok(Self {
            client,
            requests,
            responses,
            credit_left: 0,
            node: args.node.clone(),
        })
    }

    /// Sends a request, waits for the response, and records the latency.
    async fn request(
        &mut self,
        operation: &str,
        body: &MapBuilder,
        phase: &mut Phase,
    ) -> Result<Vec<u8>, String> {
        let request = encode::request(operation, body);
        if self.credit_left < 2 {
            self.credit_left = CREDIT;
            self.client.engine().grant_credit(self.responses, CREDIT);
        }
        let started = Instant::now();
        self.send(self.requests, 0, &request).await?;
        let responses = self.responses;
        let is_response = |event: &Event| matches!(event, Event::Transfer(IncomingTransfer { link, .. }) if *link == responses);
        let response = self.client.wait_for(is_response).await?;
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        phase.latency.saturating_record(micros);
        let Event::Transfer(IncomingTransfer {
            delivery,
            payload,
            settled,
            ..
        }) = response
        else {
            return Err("a transfer is expected".to_owned());
        };
        self.credit_left -= 1;
        let engine = self.client.engine();
        if settled {
            engine.return_credit(responses);
        } else {
            engine.settle_incoming(responses, delivery, &Outcome::Accepted);
        }
        match encode::map_entry(&payload, PROPERTIES, "statusCode").and_then(encode::integer) {
            Some(200) => Ok(payload.to_vec()),
            Some(status) => Err(format!("{operation} failed with status code {status}")),
            None => Err(format!("the response to {operation} has no status code")),
        }
    }

    /// Sends a message when the link has credit.
    async fn send(&mut self, link: LinkId, number: u64, message: &[u8]) -> Result<(), String> {
        let mut tag = [0; 16];
        encode::overwrite(&mut tag, 0, number);
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
            let credit = |event: &Event| matches!(event, Event::Credit(_));
            self.client.wait_for(credit).await?;
        }
    }

    /// Sends messages, and defers the same number; returns the sequence numbers of the deferred ones.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other events need no reaction of this client"
    )]
    async fn defer(&mut self, args: &RequestArgs) -> Result<Vec<i64>, String> {
        let link = |role, name: &str| LinkSpec {
            role,
            node: self.node.clone(),
            name: name.to_owned(),
            message_session: None,
        };
        let links = [
            link(LinkRole::Outgoing, "sender"),
            link(LinkRole::Incoming, "receiver"),
        ];
        let links = self.client.attach(&links).await?;
        let &[sender, receiver] = links.as_slice() else {
            return Err("two links are expected".to_owned());
        };
        let message = message(args.size, None);
        let mut numbers = BTreeSet::new();
        let (mut sent, mut accepted, mut credit_left) = (0, 0, 0);
        while numbers.len() < args.messages || accepted < args.messages {
            if credit_left <= CREDIT / 2 {
                credit_left = CREDIT;
                self.client.engine().grant_credit(receiver, CREDIT);
            }
            while sent < args.messages && sent < accepted + WINDOW {
                let number = u64::try_from(sent).unwrap_or(0);
                self.send(sender, number, &message).await?;
                sent += 1;
            }
            let is_expected =
                |event: &Event| matches!(event, Event::Transfer(_) | Event::Disposition(_));
            match self.client.wait_for(is_expected).await? {
                Event::Transfer(IncomingTransfer {
                    link,
                    delivery,
                    payload,
                    settled,
                    ..
                }) if numbers.len() < args.messages => {
                    credit_left -= 1;
                    numbers.insert(sequence_number(payload)?);
                    let outcome = Outcome::Modified {
                        delivery_failed: false,
                        undeliverable_here: true,
                        annotations: None,
                    };
                    let engine = self.client.engine();
                    if settled {
                        engine.return_credit(link);
                    } else {
                        engine.settle_incoming(link, delivery, &outcome);
                    }
                }
                Event::Disposition(IncomingDisposition { outcome, .. })
                    if outcome != Outcome::Accepted =>
                {
                    return Err(format!("a message was not accepted: {outcome:?}"));
                }
                Event::Disposition(_) => accepted += 1,
                // A message beyond the number to defer stays locked.
                _ => {}
            }
        }
        // The engine collects dispositions until output is taken; a request would overtake them.
        self.client.write()?;
        Ok(numbers.into_iter().collect())
    }
}

/// Reads the sequence number of a received message.
fn sequence_number(payload: Bytes) -> Result<i64, String> {
    let message = Message::parse(payload).map_err(|error| error.to_string())?;
    let number = message.message_annotation("x-opt-sequence-number");
    let number = number.and_then(encode::integer);
    number.ok_or_else(|| "a message has no sequence number".to_owned())
}

/// Encodes a message; a scheduled one has its enqueue time in milliseconds since 1970.
fn message(size: usize, enqueue_at: Option<u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size + 128);
    let scheduled = match enqueue_at {
        Some(_) => Scheduled::Yes,
        None => Scheduled::No,
    };
    let offset = encode::sections_before_body(&mut bytes, scheduled, None, None);
    if let (Some(offset), Some(millis)) = (offset, enqueue_at) {
        encode::overwrite(&mut bytes, offset, millis);
    }
    encode::data_section_head(&mut bytes, size);
    bytes.resize(bytes.len() + size, b'x');
    bytes
}

/// Returns the enqueue time of a scheduled message in milliseconds since 1970. The times are spread
/// over the whole period, so that cancellations reach all parts of the broker's schedule.
fn enqueue_time(args: &RequestArgs, index: usize) -> u64 {
    let fraction = scattered(u64::try_from(index).unwrap_or(0)) >> 32;
    let into_period = (args.due_in.as_millis() * u128::from(fraction)) >> 32;
    // No message may become due during the measurement.
    let delay = DAY_MILLIS + u64::try_from(into_period).unwrap_or(u64::MAX);
    unix_micros() / 1_000 + delay
}

fn shuffled(mut numbers: Vec<i64>) -> Vec<i64> {
    numbers.sort_by_key(|number| scattered(number.cast_unsigned()));
    numbers
}

/// Fibonacci hashing: maps neighbouring numbers far apart, always in the same way.
const fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The measurements of one kind of request.
#[derive(Debug)]
struct Phase {
    name: &'static str,
    started: Instant,
    messages: usize,
    seconds: f64,
    latency: Histogram<u64>,
}

impl Phase {
    fn start(name: &'static str) -> Self {
        Self {
            name,
            started: Instant::now(),
            messages: 0,
            seconds: 0.0,
            latency: histogram(),
        }
    }

    fn finish(&mut self, messages: usize) {
        self.messages = messages;
        self.seconds = self.started.elapsed().as_secs_f64();
    }

    fn rate(&self) -> f64 {
        float(u64::try_from(self.messages).unwrap_or(u64::MAX)) / self.seconds
    }
}

/// The report on requests, by kind.
#[derive(Debug)]
pub(crate) struct ManagementReport(Vec<Phase>);

impl Report for ManagementReport {
    fn json(&self) -> Value {
        let phases = self.0.iter().map(|phase| {
            let value = json!({
                "messages": phase.messages,
                "seconds": phase.seconds,
                "rate": phase.rate(),
                "latency": latency_json(&phase.latency),
            });
            (phase.name.to_owned(), value)
        });
        Value::Object(phases.collect())
    }
}

impl fmt::Display for ManagementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for phase in &self.0 {
            f.write_str(separator)?;
            write_latency(f, phase.name, &phase.latency)?;
            let name = phase.name;
            write!(f, "{name:<21} {:.0} messages per second", phase.rate())?;
            separator = "\n";
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
