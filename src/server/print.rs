//! Output of commands to their standard streams. A closed pipe, as after `head`, is no fault of the
//! command.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// Writes a line to standard output. If the pipe is closed the process ends in silence.
pub(super) fn line(text: impl Display) {
    match write_line(&mut io::stdout().lock(), text) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => complain(format_args!("jitney: standard output: {error}")),
    }
}

/// Writes a text to standard output as it is.
pub(super) fn text(text: impl Display) {
    let mut stream = io::stdout().lock();
    let written = write!(stream, "{text}").and_then(|()| stream.flush());
    if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// Writes a line to standard error; a closed pipe is ignored.
pub(super) fn complain(text: impl Display) {
    let _ = write_line(&mut io::stderr().lock(), text);
}

fn write_line(stream: &mut impl Write, text: impl Display) -> io::Result<()> {
    writeln!(stream, "{text}")?;
    stream.flush()
}
