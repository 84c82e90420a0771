//! Output of commands to their standard streams. A closed pipe, as after `head`, is no fault of the
//! command.
//!
//! Texts of others are in most of it: names, properties, bodies, reasons, errors of brokers. What would steer a terminal, or would
//! let one text look like another, is written as an escape: [`visible`] is the only function for it, and everything that commands
//! write goes through it. JSON has escapes of its own for the same characters: [`json`].

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, ErrorKind, Write};

use serde_json::Value;

/// Writes a line, or several, to standard output. If the pipe is closed the process ends in silence.
pub(crate) fn line(text: impl Display) {
    out(&visible(&text.to_string()));
}

/// Writes a value to standard output, over several lines.
pub(crate) fn json(value: &Value) {
    out(&pretty(value));
}

/// Writes a value to standard output, in one line.
pub(crate) fn json_line(value: &Value) {
    out(&compact(value));
}

/// Writes a text to standard output as it is: what steers a terminal must be the command's own.
pub(crate) fn control(text: impl Display) {
    let mut stream = io::stdout().lock();
    let written = write!(stream, "{text}").and_then(|()| stream.flush());
    if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// Writes a text to a terminal that is standard error as it is: what steers the terminal must be the command's own.
pub(crate) fn control_error(text: impl Display) {
    let _ = write!(io::stderr().lock(), "{text}");
}

/// Writes a line, or several, to standard error; a closed pipe is ignored.
pub(crate) fn complain(text: impl Display) {
    let text = text.to_string();
    let _ = write_line(&mut io::stderr().lock(), &visible(&text));
}

/// Returns a value as JSON of several lines. Characters that are hidden are escaped, so that it is the same value.
pub(crate) fn pretty(value: &Value) -> String {
    escaped_in_json(&format!("{value:#}")).into_owned()
}

/// Returns a value as JSON of one line, likewise.
pub(crate) fn compact(value: &Value) -> String {
    escaped_in_json(&value.to_string()).into_owned()
}

/// Returns a text in which characters that steer a terminal, change the direction of text or have no width are escapes: `\x1b`,
/// `\u{202e}`. Tabs and ends of lines stay. The console shows the same characters in the same way (`console/lib/visible.js`).
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |escape, c| {
        let code = u32::from(c);
        // Writing to a string does not fail.
        let _ = match c {
            '\r' => write!(escape, "\\r"),
            _ if code < 0x100 => write!(escape, "\\x{code:02x}"),
            _ => write!(escape, "\\u{{{code:x}}}"),
        };
    })
}

/// Returns a JSON text in which those characters are escapes of JSON. They are only within its strings.
pub(crate) fn escaped_in_json(text: &str) -> Cow<'_, str> {
    escaped(text, |escape, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(escape, "\\u{unit:04x}");
        }
    })
}

fn escaped(text: &str, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut all = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            escape(&mut all, c);
        } else {
            all.push(c);
        }
    }
    Cow::Owned(all)
}

/// Returns whether a character steers a terminal or cannot be seen: C0 (but tab and line feed), DEL, C1, the soft hyphen, marks of
/// direction, characters without width, separators of lines, interlinear annotations, tags.
const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{0}'..='\u{8}'
            | '\u{b}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

fn out(text: &str) {
    match write_line(&mut io::stdout().lock(), text) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => complain(format_args!("jitney: standard output: {error}")),
    }
}

fn write_line(stream: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(stream, "{text}")?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_steers_a_terminal_or_hides_is_an_escape() {
        for (text, shown) in [
            (
                "plain, ä, 語, 👍\tand\nlines",
                "plain, ä, 語, 👍\tand\nlines",
            ),
            ("\u{1b}[2J\u{7}\rx\u{0}", "\\x1b[2J\\x07\\rx\\x00"),
            ("\u{9b}31m\u{7f}", "\\x9b31m\\x7f"),
            (
                "a\u{202e}b\u{2066}c\u{200b}d",
                "a\\u{202e}b\\u{2066}c\\u{200b}d",
            ),
            ("\u{feff}\u{ad}\u{e0041}", "\\u{feff}\\xad\\u{e0041}"),
        ] {
            assert_eq!(visible(text), shown);
            // Nothing is left to be escaped.
            assert_eq!(visible(shown), shown);
        }
    }

    #[test]
    fn json_with_escapes_is_the_same_value() {
        let value = json!({"a\u{202e}": "\u{1b}]0;t\u{7}\u{9b}\u{7f}\u{200d}\u{e0041}", "b": ["\u{2028}", 1]});
        for text in [pretty(&value), compact(&value)] {
            assert!(!text.contains(is_hidden), "{text:?}");
            assert_eq!(
                serde_json::from_str::<Value>(&text).ok(),
                Some(value.clone())
            );
        }
        assert!(compact(&value).contains("\\udb40\\udc41"), "{value}");
    }
}
