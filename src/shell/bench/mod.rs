//! `jitney bench`: loads on any AMQP 1.0 broker.
//!
//! The generator is the engine's client end, so it costs the machine little beside the broker. A
//! message's latency counts from the moment at which it was due, not from when there was credit
//! for it. What is measured with it, and on which brokers, is `interop-tests/bench`.

mod client;
mod encode;
mod hold;
mod load;
mod pace;
mod process;
mod progress;
mod receiver;
mod report;
mod requests;
mod sender;

use std::fmt::Display;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;

use super::print;

/// `jitney bench`.
#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    /// Send messages through a broker and receive them, and tell what that took.
    Load(LoadArgs),
    /// Open connections and hold them until the standard input ends.
    Hold(HoldArgs),
    /// Schedule messages and cancel each again, and tell how long that takes.
    Cancel(RequestArgs),
    /// Defer messages and receive each by its number, and tell how long that takes.
    Deferred(RequestArgs),
}

/// What a load is made of.
#[derive(Debug, Clone, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(super) struct LoadArgs {
    /// The broker.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:5672")]
    pub broker: SocketAddr,
    /// The node; with --each or --nodes, its name has the number of the node behind it.
    #[arg(long, default_value = "queue.1")]
    pub node: String,
    /// Nodes in all, whose links are spread over the pairs' connections.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "each")]
    pub nodes: usize,
    /// Give each pair a node of its own.
    #[arg(long)]
    pub each: bool,
    /// The node to receive from, if it is another: a topic's subscription. {} stands for its number.
    #[arg(long, value_name = "NODE")]
    pub source: Option<String>,
    /// How many nodes there are to receive from.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "source")]
    pub sources: usize,
    /// How often each message arrives.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub copies: u64,
    /// The subject of each message, for rules.
    #[arg(long)]
    pub subject: Option<String>,
    /// Send to so many message sessions in turn, and receive from each with a link of its own.
    #[arg(long, value_name = "N")]
    pub message_sessions: Option<usize>,
    /// Messages in all.
    #[arg(long, default_value_t = 100_000)]
    pub messages: u64,
    /// Seconds instead of a number of messages.
    #[arg(long, value_name = "SECONDS", conflicts_with = "messages")]
    pub duration: Option<f64>,
    /// Messages before them that are not counted.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub warm_up: u64,
    /// Bytes of a message's body; 8 at least.
    #[arg(long, default_value_t = 1024)]
    pub size: usize,
    /// Messages in one transfer, in Service Bus's batch format.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        conflicts_with = "message_sessions"
    )]
    pub batch: usize,
    /// Senders, and as many receivers, each with its own connection.
    #[arg(long, default_value_t = 1)]
    pub pairs: usize,
    /// Messages a second in all; without it, as many as the broker takes.
    #[arg(long)]
    pub rate: Option<u32>,
    /// Credit of each link that receives.
    #[arg(long, default_value_t = 1000)]
    pub credit: u32,
    /// Messages that a sender has unsettled at most.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub window: usize,
    /// Schedule each message for so many seconds after it was sent; its latency counts from then.
    #[arg(long, value_name = "SECONDS", conflicts_with = "due_at")]
    pub due_in: Option<f64>,
    /// Schedule all messages for one moment, in milliseconds since 1970.
    #[arg(long, value_name = "MILLIS")]
    pub due_at: Option<u64>,
    /// Defer one message in so many, and complete the others.
    #[arg(long, value_name = "N")]
    pub defer_every: Option<u64>,
    /// Send only.
    #[arg(long, conflicts_with = "receive_only")]
    pub send_only: bool,
    /// Receive only; then the latency of all that is there counts.
    #[arg(long)]
    pub receive_only: bool,
    /// User for SASL PLAIN; ANONYMOUS without one.
    #[arg(long, requires = "password")]
    pub user: Option<String>,
    /// Password for SASL PLAIN.
    #[arg(long)]
    pub password: Option<String>,
    /// Wait so many seconds for a broker that does not listen yet.
    #[arg(long = "await", value_name = "SECONDS", default_value_t = 0.0)]
    pub patience: f64,
    /// The broker's process on this machine: its CPU time and memory, with its children's, are told
    /// too.
    #[arg(long)]
    pub pid: Option<u32>,
    /// Print one JSON object, latencies in microseconds.
    #[arg(long)]
    pub json: bool,
}

/// Which connections are held.
#[derive(Debug, Clone, Args)]
pub(super) struct HoldArgs {
    /// The broker.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:5672")]
    pub broker: SocketAddr,
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub connections: usize,
    /// Attach a link in each.
    #[arg(long, value_enum)]
    pub link: Option<LinkArg>,
    /// The link's node.
    #[arg(long, default_value = "queue.1")]
    pub node: String,
    /// Credit of a link that receives. What comes is neither settled nor followed by more credit.
    #[arg(long, value_name = "N")]
    pub credit: Option<u32>,
    /// Read nothing from the moment on at which all is open.
    #[arg(long)]
    pub deaf: bool,
    /// Hold them for so long, and not until the standard input ends.
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// User for SASL PLAIN; ANONYMOUS without one.
    #[arg(long, requires = "password")]
    pub user: Option<String>,
    /// Password for SASL PLAIN.
    #[arg(long)]
    pub password: Option<String>,
    /// The broker's process on this machine: its memory is told too.
    #[arg(long)]
    pub pid: Option<u32>,
    /// Print one JSON object when all are open.
    #[arg(long)]
    pub json: bool,
}

/// Which way messages would go on a held connection's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LinkArg {
    /// To the broker.
    Sending,
    /// From the broker.
    Receiving,
}

/// What is asked of a management node.
#[derive(Debug, Clone, Args)]
pub(super) struct RequestArgs {
    /// The broker.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:5672")]
    pub broker: SocketAddr,
    /// The queue.
    #[arg(long, default_value = "queue.1")]
    pub node: String,
    /// Messages in all.
    #[arg(long, default_value_t = 1_000)]
    pub messages: usize,
    /// Bytes of a message's body.
    #[arg(long, default_value_t = 1024)]
    pub size: usize,
    /// Scheduled messages are due between a day from now and so many seconds later.
    #[arg(long, value_name = "SECONDS", default_value_t = 864_000)]
    pub due_in: u64,
    /// User for SASL PLAIN; ANONYMOUS without one.
    #[arg(long, requires = "password")]
    pub user: Option<String>,
    /// Password for SASL PLAIN.
    #[arg(long)]
    pub password: Option<String>,
    /// Print one JSON object, latencies in microseconds.
    #[arg(long)]
    pub json: bool,
}

/// Runs a benchmark.
pub(super) fn run(command: &BenchCommand) -> ExitCode {
    let result = match command {
        BenchCommand::Load(args) => {
            load::run(args).map(|report| tell(&report, args.json.then(|| report.json())))
        }
        BenchCommand::Hold(args) => hold::run(args),
        BenchCommand::Cancel(args) => {
            requests::cancel(args).map(|report| tell(&report, args.json.then(|| report.json())))
        }
        BenchCommand::Deferred(args) => {
            requests::deferred(args).map(|report| tell(&report, args.json.then(|| report.json())))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            print::complain(text);
            ExitCode::FAILURE
        }
    }
}

/// Prints a report, for programs if there is one for them.
fn tell(report: &impl Display, json: Option<Value>) {
    match json {
        Some(json) => print::line(json),
        None => print::line(report),
    }
}

/// Runs something in an event loop of this thread.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| format!("the runtime cannot be started: {error}"))?;
    Ok(runtime.block_on(work))
}
