//! One load: senders, receivers, and what it took.

use std::fmt;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use super::LoadArgs;
use super::client::{Client, Work};
use super::process::Usage;
use crate::amqp::{Connection, Delivery, Event, Identity, LinkId, LinkRole, Outcome, SettleMode};

/// What a load took.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) messages: u64,
    pub(super) seconds: f64,
    /// From due to received, microseconds.
    pub(super) end_to_end: Histogram<u64>,
    /// From due to accepted, microseconds.
    pub(super) acknowledged: Histogram<u64>,
    pub(super) usage: Option<(f64, u64)>,
}

/// Runs a load.
pub(super) async fn run(args: &LoadArgs) -> Result<Report, String> {
    if args.size < STAMP_BYTES {
        return Err(format!(
            "--size is {}, and {STAMP_BYTES} is the least",
            args.size
        ));
    }
    let before = args.pid.map(Usage::of).transpose()?;
    let mut receivers = Vec::new();
    let mut senders = Vec::new();
    for pair in 0..args.pairs {
        if !args.send_only {
            receivers.push(connect(args, LinkRole::Incoming, pair).await?);
        }
        if !args.receive_only {
            senders.push(connect(args, LinkRole::Outgoing, pair).await?);
        }
    }
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    let share = |pair: usize| share(args.messages, args.pairs, pair);
    let counted = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    for (pair, client) in receivers.into_iter().enumerate() {
        // On one queue, who receives how many is the broker's choice.
        let (all, limit) = if args.each {
            (None, share(pair))
        } else {
            (Some(counted.clone()), args.messages)
        };
        let work = Receiver::new(args, began, limit, all);
        tasks.spawn(async move { receive(client, work).await });
    }
    for (pair, client) in senders.into_iter().enumerate() {
        let work = Sender::new(args, began, share(pair));
        tasks.spawn(async move { send(client, work).await });
    }
    let mut report = Report {
        messages: args.messages,
        seconds: 0.0,
        end_to_end: histogram()?,
        acknowledged: histogram()?,
        usage: None,
    };
    while let Some(done) = tasks.join_next().await {
        match done.map_err(|error| error.to_string())?? {
            Done::Received(latency) => report.end_to_end.add(latency).map_err(|e| e.to_string())?,
            Done::Sent(latency) => report
                .acknowledged
                .add(latency)
                .map_err(|e| e.to_string())?,
        }
    }
    report.seconds = began.elapsed().as_secs_f64();
    if let (Some(pid), Some(before)) = (args.pid, before) {
        let after = Usage::of(pid)?;
        report.usage = Some((after.cpu_seconds - before.cpu_seconds, after.resident_bytes));
    }
    Ok(report)
}

enum Done {
    Received(Histogram<u64>),
    Sent(Histogram<u64>),
}

async fn connect(args: &LoadArgs, role: LinkRole, pair: usize) -> Result<Client, String> {
    let identity = match (&args.user, &args.password) {
        (Some(user), Some(password)) => Identity::Plain {
            user: user.clone(),
            password: password.clone(),
        },
        _ => Identity::Anonymous,
    };
    let node = if let (LinkRole::Incoming, Some(source)) = (role, &args.source) {
        source.clone()
    } else if args.each {
        format!("{}{pair}", args.node)
    } else {
        args.node.clone()
    };
    let name = match role {
        LinkRole::Incoming => format!("receiver-{pair}"),
        LinkRole::Outgoing => format!("sender-{pair}"),
    };
    Client::attach(args.broker, identity, role, &node, &name).await
}

async fn receive(mut client: Client, mut work: Receiver) -> Result<Done, String> {
    client.run(&mut work).await?;
    client.close().await?;
    Ok(Done::Received(work.latency))
}

async fn send(mut client: Client, mut work: Sender) -> Result<Done, String> {
    client.run(&mut work).await?;
    client.close().await?;
    Ok(Done::Sent(work.latency))
}

/// Bytes at a body's begin that say when it was due: microseconds since the load began.
const STAMP_BYTES: usize = 8;
/// How often a load with a rate looks at the clock.
const TICK: Duration = Duration::from_millis(1);
/// How often a receiver looks whether others have received the rest.
const LOOK: Duration = Duration::from_millis(20);

struct Sender {
    began: Instant,
    left: u64,
    /// Messages not settled yet, by when they were due, in their order.
    due: std::collections::VecDeque<u64>,
    window: usize,
    interval: Option<Duration>,
    made: u32,
    head: Vec<u8>,
    body: Vec<u8>,
    latency: Histogram<u64>,
}

impl Sender {
    fn new(args: &LoadArgs, began: Instant, messages: u64) -> Self {
        let mut head = properties(args.subject.as_deref());
        head.extend_from_slice(&[0x00, 0x53, 0x75, 0xb0]);
        head.extend_from_slice(&u32::try_from(args.size).unwrap_or(u32::MAX).to_be_bytes());
        let pairs = u32::try_from(args.pairs).unwrap_or(u32::MAX);
        Self {
            began,
            left: messages,
            due: std::collections::VecDeque::new(),
            window: usize::try_from(args.credit).unwrap_or(usize::MAX),
            interval: args
                .rate
                .map(|rate| Duration::from_secs(1) * pairs / rate.max(1)),
            made: 0,
            head,
            body: vec![b'x'; args.size],
            latency: histogram().unwrap_or_else(|_| unreachable!("the bounds are valid")),
        }
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Work for Sender {
    fn handle(&mut self, _: &mut Connection, _: LinkId, event: Event) -> Result<(), String> {
        if let Event::Disposition { outcome, .. } = event {
            if outcome != Outcome::Accepted {
                return Err(format!("a message was not accepted: {outcome:?}"));
            }
            if let Some(due) = self.due.pop_front() {
                self.latency
                    .saturating_record(self.micros().saturating_sub(due));
            }
        }
        Ok(())
    }

    fn turn(&mut self, engine: &mut Connection, link: LinkId) -> Option<Duration> {
        let now = self.micros();
        while self.left > 0 && self.due.len() < self.window {
            if let Some(interval) = self.interval
                && self.began.elapsed() < interval * self.made
            {
                return Some(TICK);
            }
            for (slot, byte) in self.body.iter_mut().zip(now.to_be_bytes()) {
                *slot = byte;
            }
            let mut tag = [0; 16];
            for (slot, byte) in tag.iter_mut().zip(self.left.to_be_bytes()) {
                *slot = byte;
            }
            let payload: &[&[u8]] = &[&self.head, &self.body];
            let settle_mode = SettleMode::OnReceipt;
            let delivery = Delivery {
                tag,
                settle_mode,
                message_format: 0,
                payload,
            };
            if engine.deliver(link, delivery).is_err() {
                break;
            }
            self.due.push_back(now);
            self.left -= 1;
            self.made = self.made.saturating_add(1);
        }
        self.interval.filter(|_| self.left > 0).map(|_| TICK)
    }

    fn is_done(&self) -> bool {
        self.left == 0 && self.due.is_empty()
    }
}

/// Encodes the properties section of a message with a subject.
fn properties(subject: Option<&str>) -> Vec<u8> {
    let Some(subject) = subject else {
        return Vec::new();
    };
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    let mut section = vec![0x00, 0x53, 0x73, 0xd0];
    // Message-id, user-id and to are null; a string is five bytes longer than its text.
    section.extend_from_slice(&length(subject.len() + 12));
    section.extend_from_slice(&length(4));
    section.extend_from_slice(&[0x40, 0x40, 0x40, 0xb1]);
    section.extend_from_slice(&length(subject.len()));
    section.extend_from_slice(subject.as_bytes());
    section
}

struct Receiver {
    began: Instant,
    received: u64,
    limit: u64,
    /// Counts what all receivers of the same queue have.
    all: Option<std::sync::Arc<std::sync::atomic::AtomicU64>>,
    credit: u32,
    left: u32,
    size: usize,
    latency: Histogram<u64>,
}

impl Receiver {
    fn new(
        args: &LoadArgs,
        began: Instant,
        limit: u64,
        all: Option<std::sync::Arc<std::sync::atomic::AtomicU64>>,
    ) -> Self {
        Self {
            began,
            received: 0,
            limit,
            all,
            credit: args.credit,
            left: 0,
            size: args.size,
            latency: histogram().unwrap_or_else(|_| unreachable!("the bounds are valid")),
        }
    }
}

impl Work for Receiver {
    fn handle(
        &mut self,
        engine: &mut Connection,
        link: LinkId,
        event: Event,
    ) -> Result<(), String> {
        if let Event::Transfer {
            delivery,
            payload,
            settled,
            ..
        } = event
        {
            let start = payload.len().checked_sub(self.size);
            let stamp = start.and_then(|start| payload.get(start..)?.first_chunk::<STAMP_BYTES>());
            if let Some(stamp) = stamp {
                let now = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
                self.latency
                    .saturating_record(now.saturating_sub(u64::from_be_bytes(*stamp)));
            }
            engine.settle_incoming(link, delivery, &Outcome::Accepted, settled);
            self.received += 1;
            self.left = self.left.saturating_sub(1);
            if let Some(all) = &self.all {
                all.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn turn(&mut self, engine: &mut Connection, link: LinkId) -> Option<Duration> {
        if self.left <= self.credit / 2 && !self.is_done() {
            self.left = self.credit;
            engine.grant_credit(link, self.credit);
        }
        self.all.as_ref().map(|_| LOOK)
    }

    fn is_done(&self) -> bool {
        let received = match &self.all {
            Some(all) => all.load(std::sync::atomic::Ordering::Relaxed),
            None => self.received,
        };
        self.limit <= received
    }
}

impl Report {
    /// Messages a second.
    pub(super) fn rate(&self) -> f64 {
        float(self.messages) / self.seconds
    }

    /// The broker's CPU seconds per million messages.
    pub(super) fn cpu_per_million(&self) -> Option<f64> {
        self.usage.map(|(cpu, _)| cpu * 1e6 / float(self.messages))
    }
}

impl Report {
    /// Returns the report for programs; latencies are in microseconds.
    pub(super) fn json(&self) -> serde_json::Value {
        let latency = |histogram: &Histogram<u64>| {
            if histogram.is_empty() {
                return serde_json::Value::Null;
            }
            serde_json::json!({
                "count": histogram.len(),
                "mean": histogram.mean(),
                "p50": histogram.value_at_quantile(0.5),
                "p99": histogram.value_at_quantile(0.99),
                "p999": histogram.value_at_quantile(0.999),
                "max": histogram.max(),
            })
        };
        let broker = self.usage.map(|(cpu_seconds, resident_bytes)| {
            serde_json::json!({
                "cpu_seconds": cpu_seconds,
                "cpu_seconds_per_million": self.cpu_per_million(),
                "resident_bytes": resident_bytes,
            })
        });
        serde_json::json!({
            "messages": self.messages,
            "seconds": self.seconds,
            "rate": self.rate(),
            "acknowledged": latency(&self.acknowledged),
            "end_to_end": latency(&self.end_to_end),
            "broker": broker,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "messages            {}", self.messages)?;
        writeln!(f, "seconds             {:.3}", self.seconds)?;
        writeln!(f, "messages a second   {:.0}", self.rate())?;
        for (what, latency) in [
            ("sent to accepted", &self.acknowledged),
            ("sent to received", &self.end_to_end),
        ] {
            if !latency.is_empty() {
                let at = |quantile: f64| float(latency.value_at_quantile(quantile)) / 1e3;
                let (p50, p99, p999) = (at(0.5), at(0.99), at(0.999));
                writeln!(
                    f,
                    "{what}    p50 {p50:.2} ms, p99 {p99:.2} ms, p99.9 {p999:.2} ms"
                )?;
            }
        }
        if let (Some((_, resident)), Some(cpu)) = (self.usage, self.cpu_per_million()) {
            writeln!(f, "broker              {cpu:.2} CPU s per million messages")?;
            write!(
                f,
                "broker's memory     {:.0} MiB",
                float(resident) / 1024.0 / 1024.0
            )?;
        }
        Ok(())
    }
}

/// One microsecond to ten minutes, to three figures.
fn histogram() -> Result<Histogram<u64>, String> {
    Histogram::new_with_bounds(1, 600_000_000, 3).map_err(|error| error.to_string())
}

fn share(all: u64, parts: usize, part: usize) -> u64 {
    let (parts, part) = (
        u64::try_from(parts).unwrap_or(1),
        u64::try_from(part).unwrap_or(0),
    );
    all / parts + u64::from(part < all % parts)
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}
