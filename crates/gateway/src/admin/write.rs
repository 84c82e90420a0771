//! Writing XML.

use std::fmt::{Display, Write as _};

/// A document that is being written.
pub(super) struct Writer {
    out: String,
}

impl Writer {
    /// Begins a document.
    pub(super) fn document() -> Self {
        Self {
            out: "<?xml version=\"1.0\" encoding=\"utf-8\"?>".to_owned(),
        }
    }

    /// Writes an element with children. `attributes` are written as they are, with a leading space.
    pub(super) fn within(&mut self, name: &str, attributes: &str, content: impl FnOnce(&mut Self)) {
        self.push(format_args!("<{name}{attributes}>"));
        content(self);
        self.push(format_args!("</{name}>"));
    }

    /// Writes an element that holds a text.
    pub(super) fn leaf(&mut self, name: &str, text: impl Display) {
        self.leaf_with(name, "", text);
    }

    /// Writes an element that holds a text, if there is one.
    pub(super) fn optional(&mut self, name: &str, text: Option<impl Display>) {
        if let Some(text) = text {
            self.leaf(name, text);
        }
    }

    /// Writes an element that holds a text and has attributes.
    pub(super) fn leaf_with(&mut self, name: &str, attributes: &str, text: impl Display) {
        self.push(format_args!("<{name}{attributes}>"));
        self.escaped(&text.to_string());
        self.push(format_args!("</{name}>"));
    }

    /// Writes an empty element.
    pub(super) fn empty(&mut self, name: &str, attributes: &str) {
        self.push(format_args!("<{name}{attributes}/>"));
    }

    /// Writes a link.
    pub(super) fn link(&mut self, relation: &str, url: &str) {
        self.push(format_args!("<link rel=\"{relation}\" href=\""));
        self.escaped(url);
        self.push(format_args!("\"/>"));
    }

    /// Returns the document.
    pub(super) fn finish(self) -> String {
        self.out
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        let written = self.out.write_fmt(text);
        debug_assert!(written.is_ok(), "strings take all that is written to them");
    }

    /// Writes a text so that it reads the same in an element, or a URL between double quotes.
    /// Characters that XML cannot represent become the replacement character.
    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                // As a literal character, readers would normalize it as the end of a line. No other
                // character is written by its number, because JavaScript's reader leaves numbers as
                // they are.
                '\r' => self.out.push_str("&#13;"),
                c if is_character(c) => self.out.push(c),
                _ => self.out.push(char::REPLACEMENT_CHARACTER),
            }
        }
    }
}

/// Returns whether XML can carry a character.
pub(super) const fn is_character(c: char) -> bool {
    !matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}')
}
