//! Logs: text for people, JSON for machines, by `RUST_LOG`.

use std::fmt::Display;
use std::io::IsTerminal as _;

use clap::ValueEnum;
use tracing::{Level, enabled, error};
use tracing_subscriber::EnvFilter;

use super::cli::LogArgs;
use super::print;
use crate::gateway::request_log;

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Writes why the process ends to standard error, whatever `RUST_LOG` is.
pub(super) fn fatal(text: impl Display) {
    if enabled!(Level::ERROR) {
        error!("{text}");
    } else {
        print::complain(format_args!("jitney: {text}"));
    }
}

/// Begins to write logs to standard error; `RUST_LOG` filters them, the default is `info`. Requests are logged only if that is
/// asked for.
///
/// # Errors
///
/// The fault of `RUST_LOG`.
pub(super) fn start(args: &LogArgs) -> Result<(), String> {
    let directives = std::env::var("RUST_LOG");
    let names_requests = directives
        .as_ref()
        .is_ok_and(|directives| directives.contains(request_log::TARGET));
    let mut filter = match directives {
        Ok(directives) if !directives.is_empty() => {
            EnvFilter::try_new(&directives).map_err(|error| {
                format!("RUST_LOG: {error}; for example: info,jitney::amqp::frame=trace")
            })?
        }
        Ok(_) | Err(_) => EnvFilter::new("info"),
    };
    if args.log_requests || !names_requests {
        let level = if args.log_requests { "info" } else { "off" };
        let directive = format!("{}={level}", request_log::TARGET).parse();
        filter = filter.add_directive(directive.expect("a target and a level are a directive"));
    }
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        // Standard error may be closed.
        .log_internal_errors(false);
    match args.log_format {
        LogFormat::Json => subscriber.json().init(),
        LogFormat::Text => subscriber.init(),
    }
    Ok(())
}
