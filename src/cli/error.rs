//! Why a command has failed.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

/// Why a command has failed.
#[derive(Debug)]
pub(super) enum CommandError {
    /// It was called wrongly.
    Usage(String),
    /// The broker cannot be reached, or does not answer as it should.
    Unreachable(String),
    /// There is no such thing.
    NotFound(String),
    /// The broker has refused it.
    Refused(String),
    /// The broker has refused it, as what it changes has changed meanwhile.
    Changed(String),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(text)
        | Self::Unreachable(text)
        | Self::NotFound(text)
        | Self::Refused(text)
        | Self::Changed(text)) = self;
        f.write_str(text)
    }
}

impl CommandError {
    /// Adds to its text.
    pub(super) fn with(self, more: &str) -> Self {
        match self {
            Self::Usage(text) => Self::Usage(text + more),
            Self::Unreachable(text) => Self::Unreachable(text + more),
            Self::NotFound(text) => Self::NotFound(text + more),
            Self::Refused(text) => Self::Refused(text + more),
            Self::Changed(text) => Self::Changed(text + more),
        }
    }

    /// The fault of a file that was named.
    pub(super) fn of_file(file: &Path, error: &std::io::Error) -> Self {
        let place = file.display();
        if error.kind() == ErrorKind::NotFound {
            return Self::NotFound(format!("There is no file {place}."));
        }
        Self::Usage(format!("{place}: {error}"))
    }

    /// Returns the exit code: 1 refused, 2 wrongly called, 3 unreachable, 4 not found.
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(_) | Self::Changed(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
            Self::NotFound(_) => 4,
        }
    }
}
