//! Logs: text for people, JSON for machines, by `RUST_LOG`.

use std::fmt::Display;
use std::io::IsTerminal as _;

use clap::ValueEnum;
use tracing::{Level, enabled, error};
use tracing_subscriber::EnvFilter;

use super::print;

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

/// Begins to write logs to standard error; `RUST_LOG` filters them, the default is `info`.
///
/// # Errors
///
/// The fault of `RUST_LOG`.
pub(super) fn start(format: LogFormat) -> Result<(), String> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(directives) if !directives.is_empty() => {
            EnvFilter::try_new(&directives).map_err(|error| {
                format!("RUST_LOG: {error}; for example: info,jitney::amqp::frame=trace")
            })?
        }
        Ok(_) | Err(_) => EnvFilter::new("info"),
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        // Standard error may be closed.
        .log_internal_errors(false);
    match format {
        LogFormat::Json => subscriber.json().init(),
        LogFormat::Text => subscriber.init(),
    }
    Ok(())
}
