//! `jitney bench`: a load on any AMQP 1.0 broker, and the table of this one's figures.
//!
//! The generator is the engine's client end, so it costs the machine little beside the broker. A
//! message's latency counts from the moment at which it was due, not from when there was credit
//! for it.

mod client;
mod load;
mod process;
mod table;

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Args, Subcommand};

/// `jitney bench`.
#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    /// Send messages through one broker and receive them, and print what that took.
    Load(LoadArgs),
    /// Start this broker on fresh data for each row of the table of budgets, and print it.
    Table(TableArgs),
}

/// What a load is made of.
#[derive(Debug, Clone, Args)]
pub(super) struct LoadArgs {
    /// The broker.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:5672")]
    pub broker: SocketAddr,
    /// The node; with --each, pair N uses the node's name with N behind it.
    #[arg(long, default_value = "queue.1")]
    pub node: String,
    /// The node to receive from, if it is another: a topic's subscription.
    #[arg(long, value_name = "NODE")]
    pub source: Option<String>,
    /// The subject of each message, for rules.
    #[arg(long)]
    pub subject: Option<String>,
    /// Give each pair a node of its own.
    #[arg(long)]
    pub each: bool,
    /// Messages in all.
    #[arg(long, default_value_t = 100_000)]
    pub messages: u64,
    /// Bytes of a message's body; 8 at least.
    #[arg(long, default_value_t = 1024)]
    pub size: usize,
    /// Senders, and as many receivers, each with its own connection.
    #[arg(long, default_value_t = 1)]
    pub pairs: usize,
    /// Messages a second in all; without it, as many as the broker takes.
    #[arg(long)]
    pub rate: Option<u32>,
    /// Credit of a receiver, and messages that a sender has unsettled at most.
    #[arg(long, default_value_t = 1000)]
    pub credit: u32,
    /// Send only.
    #[arg(long, conflicts_with = "receive_only")]
    pub send_only: bool,
    /// Receive only.
    #[arg(long)]
    pub receive_only: bool,
    /// User for SASL PLAIN; ANONYMOUS without one.
    #[arg(long, requires = "password")]
    pub user: Option<String>,
    /// Password for SASL PLAIN.
    #[arg(long)]
    pub password: Option<String>,
    /// The broker's process on this machine: its CPU time and memory are told too.
    #[arg(long)]
    pub pid: Option<u32>,
    /// Print one JSON object, latencies in microseconds.
    #[arg(long)]
    pub json: bool,
}

/// What the table is made with.
#[derive(Debug, Clone, Args)]
pub(super) struct TableArgs {
    /// Messages in each run for throughput.
    #[arg(long, default_value_t = 300_000)]
    pub messages: u64,
    /// Messages that wait in the rows about memory and recovery.
    #[arg(long, default_value_t = 1_000_000)]
    pub backlog: u64,
    /// Runs of each row; the median is told.
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
}

/// Runs a benchmark.
#[expect(clippy::print_stdout, reason = "it is what the command is for")]
pub(super) fn run(command: &BenchCommand) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("the runtime cannot be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(async {
        match command {
            BenchCommand::Load(args) => load::run(args).await.map(|report| {
                if args.json {
                    report.json().to_string()
                } else {
                    report.to_string()
                }
            }),
            BenchCommand::Table(args) => table::run(args).await,
        }
    });
    match result {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}
