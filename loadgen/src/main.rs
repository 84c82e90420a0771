//! `loadgen`: generates load on an AMQP 1.0 broker and reports throughput and latency.
//!
//! The generator uses the client role of `jitney_amqp`, so it takes little CPU time from a broker on
//! the same machine. `interop-tests/bench` uses it to measure Jitney and other brokers.
#![allow(
    clippy::disallowed_methods,
    reason = "the bans hold the broker's core pure; this program reads clocks and starts tasks"
)]

mod cli;
mod client;
mod clock;
mod encode;
mod hold;
mod load;
mod management;
mod output;
mod process;
mod progress;
mod receiver;
mod report;
mod sender;
mod stream;
mod timer;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};

/// The default allocator takes more CPU time for each message.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Load(args) => load::run(&args).map(|report| output::print(&report, args.format)),
        Command::Hold(args) => hold::run(&args),
        Command::Cancel(args) => {
            management::cancel(&args).map(|report| output::print(&report, args.format))
        }
        Command::Deferred(args) => {
            management::receive_deferred(&args).map(|report| output::print(&report, args.format))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            output::error(text);
            ExitCode::FAILURE
        }
    }
}

/// Runs a future on an event loop of the current thread.
fn block_on<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| format!("the runtime cannot be started: {error}"))?;
    Ok(runtime.block_on(future))
}
