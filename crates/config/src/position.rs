//! Where something is in the file.

use std::fmt;

/// A line and a column, counted from 1; both are 0 for what is in no file.
///
/// All positions are equal: a configuration is the same wherever its entities are in the file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl PartialEq for Position {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Position {}

impl fmt::Display for Position {
    /// Writes it as compilers do, with a colon behind it for what is told of it; nothing for what is in no file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column } = self;
        if *line == 0 {
            return Ok(());
        }
        write!(f, "{line}:{column}: ")
    }
}
