//! Logs: text for people, JSON for machines, by `RUST_LOG`.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};

use clap::{Args, ValueEnum};
use tracing::{Level, enabled, error};
use tracing_subscriber::EnvFilter;

use super::print;
use jitney_gateway::request_log;

/// The target of the lines of a start.
pub(crate) const START: &str = "jitney";

/// The version of the broker.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A JSON object a line.
    Json,
    /// For people.
    Text,
}

/// What is logged, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogArgs {
    /// The format of log lines.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// Log a line for each message that is sent, delivered or settled, for each link and for each request: who, what, which
    /// entity and sequence numbers, and the outcome.
    #[arg(long)]
    pub(crate) log_requests: bool,
}

/// What is written to standard error as log lines. Names and texts of others are in them: nothing stays that could steer a terminal
/// or hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// With the escape sequences of colours. In texts of others they are escaped already.
    Coloured,
    /// JSON, which has escapes of its own.
    Json,
    Plain,
}

impl Lines {
    /// Returns lines as they are written.
    fn shown(self, lines: &str) -> String {
        match self {
            Self::Coloured => {
                let parts = lines.split('\u{1b}').map(print::visible);
                parts.collect::<Vec<_>>().join("\u{1b}")
            }
            Self::Json => print::escaped_in_json(lines).into_owned(),
            Self::Plain => print::visible(lines).into_owned(),
        }
    }
}

impl Write for Lines {
    /// Takes whole lines: one call has one event.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = self.shown(&String::from_utf8_lossy(bytes));
        io::stderr().write_all(lines.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Writes why the process ends to standard error, whatever `RUST_LOG` is.
pub(crate) fn fatal(text: impl Display) {
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
pub(crate) fn start(args: &LogArgs) -> Result<(), String> {
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
    let is_coloured = io::stderr().is_terminal() && args.log_format == LogFormat::Text;
    let lines = match (args.log_format, is_coloured) {
        (LogFormat::Json, _) => Lines::Json,
        (LogFormat::Text, true) => Lines::Coloured,
        (LogFormat::Text, false) => Lines::Plain,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(is_coloured)
        .with_writer(move || lines)
        // Standard error may be closed.
        .log_internal_errors(false);
    match args.log_format {
        LogFormat::Json => subscriber.json().init(),
        LogFormat::Text => subscriber.init(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_line_hides_or_steers_a_terminal() {
        for (lines, given, written) in [
            (
                Lines::Plain,
                "a\u{1b}[31m\u{202e}b\n",
                "a\\x1b[31m\\u{202e}b\n",
            ),
            (
                Lines::Coloured,
                "\u{1b}[2ma\u{1b}[0m\u{9b}\u{200b}\n",
                "\u{1b}[2ma\u{1b}[0m\\x9b\\u{200b}\n",
            ),
            (
                Lines::Json,
                "{\"a\":\"\u{202e}\u{7f}\"}\n",
                "{\"a\":\"\\u202e\\u007f\"}\n",
            ),
        ] {
            assert_eq!(lines.shown(given), written);
        }
    }
}
