//! The words of the rule language.

use super::sql::SqlError;

/// A word, and where it begins in the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) at: usize,
}

/// The kind of a token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    Double(f64),
    /// Behind the last word.
    End,
    /// Without its sign.
    Integer(u64),
    Keyword(Keyword),
    /// A name after an `@`, with it.
    Parameter(String),
    /// A name in brackets or double quotes.
    Quoted(String),
    Symbol(&'static str),
    Text(String),
    Word(String),
}

/// A word that is no name unless it is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Escape,
    Exists,
    False,
    In,
    Is,
    Like,
    Not,
    Null,
    Or,
    Remove,
    Set,
    True,
}

const KEYWORDS: [(&str, Keyword); 13] = [
    ("AND", Keyword::And),
    ("ESCAPE", Keyword::Escape),
    ("EXISTS", Keyword::Exists),
    ("FALSE", Keyword::False),
    ("IN", Keyword::In),
    ("IS", Keyword::Is),
    ("LIKE", Keyword::Like),
    ("NOT", Keyword::Not),
    ("NULL", Keyword::Null),
    ("OR", Keyword::Or),
    ("REMOVE", Keyword::Remove),
    ("SET", Keyword::Set),
    ("TRUE", Keyword::True),
];

/// The longer of two that begin alike first.
const SYMBOLS: [&str; 17] = [
    "<>", "!=", "<=", ">=", "<", ">", "=", "(", ")", ",", ";", ".", "+", "-", "*", "/", "%",
];

impl Keyword {
    /// Returns how it is written.
    pub(super) fn name(self) -> &'static str {
        let mut keywords = KEYWORDS.iter();
        let found = keywords.find(|(_, keyword)| *keyword == self);
        found.map(|(name, _)| *name).unwrap_or_default()
    }
}

impl TokenKind {
    /// Returns its name in an error.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Double(value) => format!("the number {value}"),
            Self::End => "the end".to_owned(),
            Self::Integer(value) => format!("the number {value}"),
            Self::Keyword(keyword) => format!("the keyword {}", keyword.name()),
            Self::Parameter(name) => format!("the parameter {name}"),
            Self::Quoted(name) => format!("the name [{name}]"),
            Self::Symbol(symbol) => format!("'{symbol}'"),
            Self::Text(_) => "a text".to_owned(),
            Self::Word(name) => format!("the name {name}"),
        }
    }
}

/// Splits a text into tokens; an [`TokenKind::End`] follows the last one.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, SqlError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.take_while(char::is_whitespace);
        let at = lexer.at;
        let kind = lexer.next()?;
        let is_end = kind == TokenKind::End;
        tokens.push(Token { kind, at });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Result<TokenKind, SqlError> {
        let start = self.at;
        let Some(first) = self.peek() else {
            return Ok(TokenKind::End);
        };
        let second = self.rest().chars().nth(1);
        match first {
            '\'' => self.quoted('\'', '\'', "text").map(TokenKind::Text),
            '"' => self.name_in('"', '"'),
            '[' => self.name_in('[', ']'),
            '@' => {
                self.at += 1;
                if self.take_while(is_parameter).is_empty() {
                    return Err(self.error(
                        start,
                        "an @ begins the name of a parameter, as in @limit".to_owned(),
                    ));
                }
                Ok(TokenKind::Parameter(self.since(start).to_owned()))
            }
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|next| next.is_ascii_digit()) => self.number(),
            first if first.is_alphabetic() => {
                let word = self.take_while(|c| c == '_' || c.is_alphanumeric());
                let keyword = KEYWORDS
                    .iter()
                    .find(|(name, _)| name.eq_ignore_ascii_case(word));
                Ok(keyword.map_or_else(
                    || TokenKind::Word(word.to_owned()),
                    |(_, keyword)| TokenKind::Keyword(*keyword),
                ))
            }
            first => {
                let found = SYMBOLS
                    .iter()
                    .find(|symbol| self.rest().starts_with(**symbol));
                let Some(symbol) = found else {
                    let problem = match first {
                        '_' | '$' => format!(
                            "a name does not begin with '{first}': write it in brackets, as in [{first}name]"
                        ),
                        _ => format!(
                            "the character '{}' has no meaning here: quote texts in 'single quotes', names with special characters in [brackets]",
                            first.escape_debug()
                        ),
                    };
                    return Err(self.error(start, problem));
                };
                self.at += symbol.len();
                Ok(TokenKind::Symbol(symbol))
            }
        }
    }

    /// Takes a number: an integer, unless it has a point or an exponent.
    fn number(&mut self) -> Result<TokenKind, SqlError> {
        let start = self.at;
        self.take_while(|c| c.is_ascii_digit());
        let mut is_integer = true;
        if self.peek() == Some('.') {
            is_integer = false;
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            is_integer = false;
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            if self.take_while(|c| c.is_ascii_digit()).is_empty() {
                return Err(self.error(start, "an exponent has digits, as in 1E5".to_owned()));
            }
        }
        if self.peek().is_some_and(|c| c == '_' || c.is_alphanumeric()) {
            let problem = "a number ends where a name begins: quote a name that begins with a digit in [brackets]";
            return Err(self.error(start, problem.to_owned()));
        }
        let digits = self.since(start);
        let kind = if is_integer {
            digits.parse().map(TokenKind::Integer).ok()
        } else {
            digits.parse().map(TokenKind::Double).ok()
        };
        kind.ok_or_else(|| self.error(start, too_large(digits)))
    }

    fn name_in(&mut self, open: char, close: char) -> Result<TokenKind, SqlError> {
        let start = self.at;
        let name = self.quoted(open, close, "name")?;
        if name.is_empty() {
            return Err(self.error(start, "a name has at least one character".to_owned()));
        }
        Ok(TokenKind::Quoted(name))
    }

    /// Takes a quoted text; a doubled closing quote is part of it.
    fn quoted(&mut self, open: char, close: char, what: &str) -> Result<String, SqlError> {
        let start = self.at;
        self.at += open.len_utf8();
        let mut found = String::new();
        loop {
            found.push_str(self.take_while(|c| c != close));
            if self.peek().is_none() {
                return Err(self.error(
                    start,
                    format!("the {what} that begins here has no closing {close}"),
                ));
            }
            self.at += close.len_utf8();
            if self.peek() != Some(close) {
                return Ok(found);
            }
            self.at += close.len_utf8();
            found.push(close);
        }
    }

    fn take_while(&mut self, holds: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !holds(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn error(&self, at: usize, problem: String) -> SqlError {
        SqlError::new(self.text, at, problem)
    }
}

pub(super) fn too_large(digits: &str) -> String {
    format!("{digits} is more than a 64-bit integer holds: write {digits}.0 for a double")
}

fn is_parameter(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}
