//! What happened last, for people who look for what went wrong.

use std::collections::VecDeque;

/// The last things that happened.
#[derive(Debug, Default)]
pub(in crate::sim) struct Trace {
    pub(super) lines: VecDeque<String>,
    /// Everything is printed at once.
    pub(in crate::sim) loud: bool,
}

impl Trace {
    pub(in crate::sim) fn note(&mut self, line: impl FnOnce() -> String) {
        const LINES: usize = 60;
        let line = line();
        if self.loud {
            println!("{line}");
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(in crate::sim) fn tail(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}
