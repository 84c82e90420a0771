//! Output on the standard streams.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use serde_json::Value;

use crate::cli::FormatArgs;

/// A report of a command, as text and as JSON.
pub(crate) trait Report: Display {
    /// Returns the report as a JSON object. Latencies are in microseconds.
    fn json(&self) -> Value;
}

/// Prints a report on standard output.
pub(crate) fn print(report: &impl Report, format: FormatArgs) {
    if format.json {
        line(report.json());
    } else {
        line(report);
    }
}

/// Writes a line to standard output. If the reader has closed the pipe, the process ends with success.
fn line(text: impl Display) {
    match write_line(&mut io::stdout().lock(), text) {
        Ok(()) => {}
        Err(problem) if problem.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(problem) => error(format_args!("standard output: {problem}")),
    }
}

/// Writes an error to standard error.
pub(crate) fn error(text: impl Display) {
    // An error that cannot be written cannot be reported either.
    let _ = write_line(&mut io::stderr().lock(), format_args!("loadgen: {text}"));
}

fn write_line(stream: &mut impl Write, text: impl Display) -> io::Result<()> {
    writeln!(stream, "{text}")?;
    stream.flush()
}
