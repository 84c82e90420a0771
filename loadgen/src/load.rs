//! `loadgen load`: senders and receivers, and their report.
//!
//! The senders share one thread and event loop, and the receivers another, as two programs would.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use hdrhistogram::Histogram;
use jitney_amqp::LinkRole;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cli::LoadArgs;
use crate::client::{Client, LinkSpec};
use crate::progress::{LoadEvent, Plan, Progress};
use crate::receiver::{LatencyOf, Receiver, ReceiverConfig};
use crate::report::{BrokerUsage, LoadReport, float, histogram};
use crate::sender::{EnqueueAt, SendSchedule, Sender, SenderConfig};

/// Runs a load.
pub(crate) fn run(args: &LoadArgs) -> Result<LoadReport, String> {
    let (event_sender, events) = mpsc::channel();
    let progress = Arc::new(Progress::new(plan(args), event_sender));
    let (start_sender, start) = watch::channel(false);
    let (outcome_sender, outcomes) = mpsc::channel();
    let mut threads = 0;
    let mut spawn = |direction: Direction| -> Result<(), String> {
        let (args, progress, start) = (args.clone(), progress.clone(), start.clone());
        let outcome_sender = outcome_sender.clone();
        let thread = thread::Builder::new().name(direction.name().to_owned());
        let body = move || {
            let outcome = crate::block_on(run_direction(direction, args, progress.clone(), start));
            // After a failure, the main thread must not wait for the connections.
            progress.report(LoadEvent::Ready);
            let _ = outcome_sender.send(outcome.and_then(|outcome| outcome));
        };
        thread.spawn(body).map_err(|error| error.to_string())?;
        threads += 1;
        events.recv().map_err(|error| error.to_string())?;
        match outcomes.try_recv() {
            Ok(Err(error)) => Err(error),
            _ => Ok(()),
        }
    };
    // The receivers come first, so that each message has a receiver when it is sent.
    if !args.send_only {
        spawn(Direction::Receiving)?;
    }
    if !args.receive_only {
        spawn(Direction::Sending)?;
    }
    progress.start();
    start_sender.send_replace(true);
    let duration = args.duration;
    let timed = progress.clone();
    thread::spawn(move || {
        for event in events {
            if let (LoadEvent::CountingStarted, Some(duration)) = (event, duration) {
                thread::sleep(duration);
                timed.stop();
            }
        }
    });
    let mut measured = Vec::with_capacity(threads);
    for _ in 0..threads {
        measured.push(outcomes.recv().map_err(|error| error.to_string())??);
    }
    report(args, &progress, measured)
}

/// Combines the measurements of both directions.
fn report(
    args: &LoadArgs,
    progress: &Progress,
    directions: Vec<Measurements>,
) -> Result<LoadReport, String> {
    let (mut acknowledged, mut end_to_end, mut early) = (histogram(), histogram(), 0);
    for measured in directions {
        let latency = match measured.direction {
            Direction::Sending => &mut acknowledged,
            Direction::Receiving => &mut end_to_end,
        };
        latency
            .add(measured.latency)
            .map_err(|error| error.to_string())?;
        early += measured.early;
    }
    let (started, ended) = progress.snapshots().ok_or("no message was counted")?;
    let (accepted, received) = (
        ended.accepted - started.accepted,
        ended.received - started.received,
    );
    let messages = if args.send_only {
        float(accepted)
    } else {
        float(received) / float(args.copies)
    };
    let (first_accepted, first_received) = progress.first_times();
    let seconds = |micros: u64| float(micros) / 1e6;
    let usage = started.usage.clone()?.zip(ended.usage.clone()?);
    Ok(LoadReport {
        messages,
        accepted,
        received,
        received_total: progress.received_total(),
        early,
        seconds: ended.at.duration_since(started.at).as_secs_f64(),
        acknowledged,
        end_to_end,
        first_accepted_at: first_accepted.map(seconds),
        first_received_at: first_received.map(seconds),
        broker: usage.map(|(before, after)| BrokerUsage::between(before, after)),
    })
}

fn plan(args: &LoadArgs) -> Plan {
    Plan {
        messages: match args.duration {
            None => Some(args.warm_up + args.messages),
            Some(_) => None,
        },
        warm_up: args.warm_up,
        copies: args.copies,
        senders: if args.receive_only { 0 } else { args.pairs },
        receives: !args.send_only,
        pid: args.pid,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Receiving,
    Sending,
}

impl Direction {
    /// Returns the name, for threads, containers and links.
    fn name(self) -> &'static str {
        match self {
            Self::Receiving => "receiver",
            Self::Sending => "sender",
        }
    }
}

/// The measurements of one direction, or of one of its connections.
struct Measurements {
    direction: Direction,
    latency: Histogram<u64>,
    early: u64,
}

/// Runs one direction of the load: opens its connections, waits for the start, and runs its drivers.
async fn run_direction(
    direction: Direction,
    args: LoadArgs,
    progress: Arc<Progress>,
    start: watch::Receiver<bool>,
) -> Result<Measurements, String> {
    let endpoint = args.endpoint.endpoint()?;
    let mut connecting = JoinSet::new();
    for pair in 0..args.pairs {
        let (endpoint, links) = (endpoint.clone(), links(&args, direction, pair));
        connecting.spawn(async move {
            let name = format!("{}-{pair}", direction.name());
            let mut client = Client::open(&endpoint, &name).await?;
            let links = client.attach(&links).await?;
            Ok::<_, String>((pair, client, links))
        });
    }
    let mut clients = Vec::with_capacity(args.pairs);
    while let Some(connected) = connecting.join_next().await {
        clients.push(connected.map_err(|error| error.to_string())??);
    }
    progress.report(LoadEvent::Ready);
    let mut running = JoinSet::new();
    for (pair, client, links) in clients {
        let (progress, mut start) = (progress.clone(), start.clone());
        match direction {
            Direction::Receiving => {
                let receiver = Receiver::new(receiver_config(&args), links, progress.clone());
                running.spawn(async move {
                    // The channel is closed only when the program ends.
                    let _ = start.wait_for(|started| *started).await;
                    receive(client, receiver, &progress).await
                });
            }
            Direction::Sending => {
                let sender = Sender::new(sender_config(&args, pair), links, progress.clone());
                running.spawn(async move {
                    let _ = start.wait_for(|started| *started).await;
                    send(client, sender, &progress).await
                });
            }
        }
    }
    let mut all = Measurements {
        direction,
        latency: histogram(),
        early: 0,
    };
    while let Some(measured) = running.join_next().await {
        let measured = measured.map_err(|error| error.to_string())??;
        all.latency
            .add(measured.latency)
            .map_err(|error| error.to_string())?;
        all.early += measured.early;
    }
    Ok(all)
}

async fn receive(
    mut client: Client,
    mut receiver: Receiver,
    progress: &Progress,
) -> Result<Measurements, String> {
    client
        .run(&mut receiver, &mut progress.completion())
        .await?;
    client.close().await?;
    Ok(Measurements {
        direction: Direction::Receiving,
        latency: receiver.latency,
        early: receiver.early,
    })
}

async fn send(
    mut client: Client,
    mut sender: Sender,
    progress: &Progress,
) -> Result<Measurements, String> {
    client.run(&mut sender, &mut progress.completion()).await?;
    client.close().await?;
    Ok(Measurements {
        direction: Direction::Sending,
        latency: sender.latency,
        early: 0,
    })
}

/// Returns the links of one connection: its share of the nodes, or of the message sessions.
fn links(args: &LoadArgs, direction: Direction, pair: usize) -> Vec<LinkSpec> {
    let role = match direction {
        Direction::Receiving => LinkRole::Incoming,
        Direction::Sending => LinkRole::Outgoing,
    };
    let link = |at: usize, node: String, message_session: Option<String>| LinkSpec {
        role,
        node,
        name: format!("{}-{pair}-{at}", direction.name()),
        message_session,
    };
    let receives = direction == Direction::Receiving;
    let sources = args.source.as_ref().filter(|_| receives);
    let nodes: Vec<String> = match sources {
        Some(source) => (0..args.sources)
            .map(|at| source.replace("{}", &at.to_string()))
            .collect(),
        None => args.node_names(),
    };
    if receives
        && let Some(sessions) = args.message_sessions
        && let Some(node) = nodes.first()
    {
        let mine = (pair..sessions).step_by(args.pairs);
        return mine
            .map(|at| link(at, node.clone(), Some(session_name(at))))
            .collect();
    }
    let count = nodes.len();
    let named = nodes.into_iter().enumerate();
    if args.pairs <= count {
        let mine = named.filter(|(at, _)| at % args.pairs == pair);
        mine.map(|(at, node)| link(at, node, None)).collect()
    } else {
        // With more connections than nodes, each connection has one link.
        let mine = named.filter(|(at, _)| *at == pair % count);
        mine.map(|(at, node)| link(at, node, None)).collect()
    }
}

fn session_name(at: usize) -> String {
    format!("session-{at}")
}

fn receiver_config(args: &LoadArgs) -> ReceiverConfig {
    ReceiverConfig {
        credit: args.credit,
        size: args.size,
        defer_every: args.defer_every,
        latency_of: if args.receive_only {
            LatencyOf::AllMessages
        } else {
            LatencyOf::ThisLoad
        },
    }
}

fn sender_config(args: &LoadArgs, pair: usize) -> SenderConfig {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (pairs, batch) = (number(args.pairs), number(args.batch));
    let schedule = args.rate.map(|rate| {
        let interval = Duration::from_secs(1) * batch / rate;
        SendSchedule {
            offset: interval * number(pair),
            interval: interval * pairs,
        }
    });
    let sessions = args.message_sessions.unwrap_or(0);
    SenderConfig {
        messages: plan(args).messages.map(|all| share(all, args.pairs, pair)),
        warm_up: share(args.warm_up, args.pairs, pair),
        size: args.size,
        batch: args.batch,
        window: args.window,
        schedule,
        subject: args.subject.clone(),
        message_sessions: (0..sessions).map(session_name).collect(),
        enqueue_at: match (args.due_in, args.due_at) {
            (Some(delay), _) => EnqueueAt::Delay(millis(delay)),
            (None, Some(millis)) => EnqueueAt::Time(millis),
            (None, None) => EnqueueAt::Arrival,
        },
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the share of one part in a total that is divided as evenly as possible.
fn share(all: u64, parts: usize, part: usize) -> u64 {
    let (parts, part) = (
        u64::try_from(parts).unwrap_or(1),
        u64::try_from(part).unwrap_or(0),
    );
    all / parts + u64::from(part < all % parts)
}

impl LoadArgs {
    fn node_names(&self) -> Vec<String> {
        let count = if self.node_per_pair {
            self.pairs
        } else {
            self.nodes
        };
        if !self.node_per_pair && count == 1 {
            return vec![self.node.clone()];
        }
        (0..count).map(|at| format!("{}{at}", self.node)).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn load(flags: &[&str]) -> LoadArgs {
        let words = ["loadgen", "load"].iter().chain(flags);
        let Command::Load(args) = Cli::parse_from(words).command else {
            panic!("it is a load");
        };
        *args
    }

    fn nodes(args: &LoadArgs, direction: Direction, pair: usize) -> Vec<String> {
        let links = links(args, direction, pair).into_iter();
        links.map(|link| link.node).collect()
    }

    #[test]
    fn links_are_distributed_over_the_connections() {
        let args = load(&["--node", "q", "--nodes", "5", "--pairs", "2"]);
        assert_eq!(nodes(&args, Direction::Sending, 0), ["q0", "q2", "q4"]);
        assert_eq!(nodes(&args, Direction::Receiving, 1), ["q1", "q3"]);
        let args = load(&["--node", "q", "--nodes", "2", "--pairs", "3"]);
        assert_eq!(nodes(&args, Direction::Sending, 2), ["q0"]);
        let args = load(&["--node", "q", "--pairs", "3", "--node-per-pair"]);
        assert_eq!(nodes(&args, Direction::Receiving, 2), ["q2"]);
        let args = load(&["--node", "t", "--source", "t/{}", "--sources", "2"]);
        assert_eq!(nodes(&args, Direction::Sending, 0), ["t"]);
        assert_eq!(nodes(&args, Direction::Receiving, 0), ["t/0", "t/1"]);
    }

    #[test]
    fn each_message_session_has_one_receiving_link() {
        let args = load(&["--message-sessions", "3", "--pairs", "2"]);
        let sessions = |pair| -> Vec<_> {
            let links = links(&args, Direction::Receiving, pair).into_iter();
            links.filter_map(|link| link.message_session).collect()
        };
        assert_eq!(sessions(0), ["session-0", "session-2"]);
        assert_eq!(sessions(1), ["session-1"]);
        let sending = links(&args, Direction::Sending, 1);
        assert!(sending.iter().all(|link| link.message_session.is_none()));
    }

    #[test]
    fn senders_share_the_messages_and_the_rate() {
        let flags = ["--messages", "10", "--pairs", "3", "--rate", "1000"];
        let args = load(&flags);
        let configs: Vec<_> = (0..3).map(|pair| sender_config(&args, pair)).collect();
        let messages: Vec<_> = configs.iter().map(|config| config.messages).collect();
        assert_eq!(messages, [Some(4), Some(3), Some(3)]);
        let second = SendSchedule {
            offset: Duration::from_millis(1),
            interval: Duration::from_millis(3),
        };
        assert_eq!(configs[1].schedule, Some(second));
    }
}
