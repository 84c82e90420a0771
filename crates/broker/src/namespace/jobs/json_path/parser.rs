//! The grammar [RFC 9535, appendix A], read from left to right: what is next is told by the next characters, and nothing is
//! read twice but blanks.

use super::{
    Comparable, Condition, Number, Operator, PathError, PathSelector, Query, Reach, Segment, Start,
};
use crate::limits;

/// Reads a query.
pub(super) fn parse(text: &str) -> Result<Query, PathError> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
    };
    let query = match parser.peek() {
        Some('$') => parser.query()?,
        Some(_) | None => return Err(parser.expected("'$' at the beginning")),
    };
    match parser.peek() {
        None => Ok(query),
        Some(_) => Err(parser.expected("'.', '[' or the end")),
    }
}

struct Parser<'t> {
    text: &'t str,
    /// The byte that is next.
    at: usize,
    /// Filters, parentheses and functions that it is in.
    depth: usize,
}

/// The largest integer [RFC 9535, 2.1]: 2^53 - 1.
const INTEGER_MAX: i64 = (1 << 53) - 1;

type Read<T> = Result<T, PathError>;

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Passes a text, if it is next.
    fn pass(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    fn require(&mut self, text: &'static str) -> Read<()> {
        if self.pass(text) {
            return Ok(());
        }
        Err(self.expected(&format!("'{text}'")))
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        let behind = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.at += rest.len() - behind.len();
    }

    fn expected(&self, what: &str) -> PathError {
        let found = match self.peek() {
            Some(found) => format!("'{}' is there", found.escape_debug()),
            None => "the text ends".to_owned(),
        };
        self.wrong(self.at, format!("{what} is expected, and {found}"))
    }

    fn wrong(&self, at: usize, problem: String) -> PathError {
        let before = self.text.get(..at).unwrap_or_default();
        PathError {
            column: before.chars().count() + 1,
            problem,
        }
    }

    /// Reads what is within a filter, parentheses or a function.
    fn within<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        let max = limits::JSON_PATH_DEPTH_MAX;
        if max <= self.depth {
            let text = format!(
                "filters, parentheses and functions are more than {max} deep in one another"
            );
            return Err(self.wrong(self.at, text));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// `$` or `@`, which is next, and segments.
    fn query(&mut self) -> Read<Query> {
        let start = match self.next() {
            Some('$') => Start::Root,
            Some(_) | None => Start::Current,
        };
        let mut segments = Vec::new();
        loop {
            let end = self.at;
            self.skip_blanks();
            let segment = if self.pass("..") {
                self.segment(Reach::Descendants)?
            } else if self.pass(".") {
                self.shorthand(Reach::Children)?
            } else if self.peek() == Some('[') {
                self.bracketed(Reach::Children)?
            } else {
                // Blanks behind a query are not its own.
                self.at = end;
                return Ok(Query { start, segments });
            };
            segments.push(segment);
        }
    }

    fn segment(&mut self, reach: Reach) -> Read<Segment> {
        match self.peek() {
            Some('[') => self.bracketed(reach),
            Some(_) | None => self.shorthand(reach),
        }
    }

    /// `*` or a name, behind dots.
    fn shorthand(&mut self, reach: Reach) -> Read<Segment> {
        let selector = if self.pass("*") {
            PathSelector::Wildcard
        } else {
            let rest = self.rest();
            let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
            let end = rest.find(|c: char| !is_first(c) && !c.is_ascii_digit());
            let name = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            if !name.starts_with(is_first) {
                return Err(self.expected("a name or '*'"));
            }
            let name = name.to_owned();
            self.at += name.len();
            PathSelector::Name(name)
        };
        Ok(Segment {
            reach,
            selectors: vec![selector],
        })
    }

    fn bracketed(&mut self, reach: Reach) -> Read<Segment> {
        self.require("[")?;
        let mut selectors = Vec::new();
        loop {
            self.skip_blanks();
            selectors.push(self.selector()?);
            self.skip_blanks();
            if self.pass("]") {
                return Ok(Segment { reach, selectors });
            }
            if !self.pass(",") {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    fn selector(&mut self) -> Read<PathSelector> {
        match self.peek() {
            Some('*') => {
                self.next();
                Ok(PathSelector::Wildcard)
            }
            Some('\'' | '"') => Ok(PathSelector::Name(self.string()?)),
            Some('?') => {
                self.next();
                self.skip_blanks();
                Ok(PathSelector::Filter(self.within(Self::any)?))
            }
            Some('-' | ':' | '0'..='9') => self.index_or_slice(),
            Some(_) | None => Err(self.expected("a name in quotes, '*', a number, ':' or '?'")),
        }
    }

    fn index_or_slice(&mut self) -> Read<PathSelector> {
        let start = self.integer_if_any()?;
        let before = self.at;
        self.skip_blanks();
        if !self.pass(":") {
            self.at = before;
            let index = start.ok_or_else(|| self.expected("a number"))?;
            return Ok(PathSelector::Index(index));
        }
        self.skip_blanks();
        let end = self.integer_if_any()?;
        let before = self.at;
        self.skip_blanks();
        let step = if self.pass(":") {
            let before = self.at;
            self.skip_blanks();
            let step = self.integer_if_any()?;
            if step.is_none() {
                self.at = before;
            }
            step
        } else {
            self.at = before;
            None
        };
        Ok(PathSelector::Slice {
            start,
            end,
            step: step.unwrap_or(1),
        })
    }

    fn integer_if_any(&mut self) -> Read<Option<i64>> {
        match self.peek() {
            Some('-' | '0'..='9') => self.integer().map(Some),
            Some(_) | None => Ok(None),
        }
    }

    fn integer(&mut self) -> Read<i64> {
        let from = self.at;
        self.pass("-");
        self.digits()?;
        let text = self.text.get(from..self.at).unwrap_or_default();
        let is_canonical = text != "-0" && !has_leading_zero(text);
        let number = text.parse::<i64>().ok();
        let number = number.filter(|number| (-INTEGER_MAX..=INTEGER_MAX).contains(number));
        number.filter(|_| is_canonical).ok_or_else(|| {
            let text = format!(
                "'{text}' is no integer between {} and {INTEGER_MAX} without leading zeros",
                -INTEGER_MAX
            );
            self.wrong(from, text)
        })
    }

    fn digits(&mut self) -> Read<()> {
        let rest = self.rest();
        let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = rest.len() - behind.len();
        if digits == 0 {
            return Err(self.expected("a digit"));
        }
        self.at += digits;
        Ok(())
    }

    fn number(&mut self) -> Read<Number> {
        let from = self.at;
        self.pass("-");
        self.digits()?;
        let is_wrong = has_leading_zero(self.text.get(from..self.at).unwrap_or_default());
        let mut is_integer = true;
        if self.pass(".") {
            is_integer = false;
            self.digits()?;
        }
        if self.pass("e") || self.pass("E") {
            is_integer = false;
            if !self.pass("-") {
                self.pass("+");
            }
            self.digits()?;
        }
        let text = self.text.get(from..self.at).unwrap_or_default();
        if is_integer && let Ok(number) = text.parse() {
            if is_wrong {
                return Err(self.wrong(from, format!("'{text}' has leading zeros")));
            }
            return Ok(Number::Signed(number));
        }
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.filter(|_| !is_wrong).map(Number::Float);
        number.ok_or_else(|| self.wrong(from, format!("'{text}' is no number of JSON")))
    }

    /// A text in quotes, of which the first is next.
    fn string(&mut self) -> Read<String> {
        let from = self.at;
        let quote = self.next();
        let mut out = String::new();
        loop {
            let at = self.at;
            match self.next() {
                None => return Err(self.wrong(from, "the text has no closing quote".to_owned())),
                Some('\\') => out.push(self.escaped(quote)?),
                next if next == quote => return Ok(out),
                Some(control @ '\0'..='\u{1f}') => {
                    let text = format!(
                        "'{}' is not allowed in a text; \\u{:04x} is",
                        control.escape_debug(),
                        u32::from(control)
                    );
                    return Err(self.wrong(at, text));
                }
                Some(other) => out.push(other),
            }
        }
    }

    fn escaped(&mut self, quote: Option<char>) -> Read<char> {
        let at = self.at;
        match self.next() {
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some(same @ ('/' | '\\')) => Ok(same),
            Some('u') => self.code_point(at),
            Some(same) if Some(same) == quote => Ok(same),
            Some(_) | None => {
                let text = "a backslash is followed by b, f, n, r, t, /, \\, u or the quote";
                Err(self.wrong(at, text.to_owned()))
            }
        }
    }

    /// The digits behind `\u`, and a second half if they are the first of a surrogate pair.
    fn code_point(&mut self, at: usize) -> Read<char> {
        let first = self.four_digits()?;
        let code = match first {
            0xd800..0xdc00 => {
                let second = if self.pass("\\u") {
                    self.four_digits()?
                } else {
                    0
                };
                match second {
                    0xdc00..0xe000 => 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => first,
                }
            }
            _ => first,
        };
        let text = "a surrogate has no second one behind it, or no first one before it";
        char::from_u32(code).ok_or_else(|| self.wrong(at, text.to_owned()))
    }

    fn four_digits(&mut self) -> Read<u32> {
        let digits = self.rest().get(..4).unwrap_or_default();
        let is_hexadecimal = digits.chars().all(|c| c.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok();
        let code = code.filter(|_| is_hexadecimal);
        let code = code.ok_or_else(|| self.expected("four hexadecimal digits"))?;
        self.at += 4;
        Ok(code)
    }

    /// Conditions with `||` between them.
    fn any(&mut self) -> Read<Condition> {
        self.joined("||", Self::all, Condition::Any)
    }

    /// Conditions with `&&` between them.
    fn all(&mut self) -> Read<Condition> {
        self.joined("&&", Self::basic, Condition::All)
    }

    fn joined(
        &mut self,
        between: &'static str,
        read: impl Fn(&mut Self) -> Read<Condition>,
        join: impl FnOnce(Vec<Condition>) -> Condition,
    ) -> Read<Condition> {
        let first = read(self)?;
        let mut all = vec![first];
        loop {
            let end = self.at;
            self.skip_blanks();
            if !self.pass(between) {
                self.at = end;
                break;
            }
            self.skip_blanks();
            all.push(read(self)?);
        }
        Ok(match all.pop() {
            Some(only) if all.is_empty() => only,
            last => {
                all.extend(last);
                join(all)
            }
        })
    }

    fn basic(&mut self) -> Read<Condition> {
        if self.pass("!") {
            self.skip_blanks();
            let denied = match self.peek() {
                Some('(') => self.parenthesized()?,
                Some('@' | '$') => Condition::Exists(self.query()?),
                Some(_) | None => return Err(self.expected("'(', '@' or '$' behind '!'")),
            };
            return Ok(Condition::Not(Box::new(denied)));
        }
        match self.peek() {
            Some('(') => self.parenthesized(),
            Some('@' | '$') => {
                let from = self.at;
                let query = self.query()?;
                let Some(operator) = self.operator_if_any() else {
                    return Ok(Condition::Exists(query));
                };
                let left = self.singular(from, query)?;
                Ok(Condition::Compare(left, operator, self.comparable()?))
            }
            Some(_) | None => {
                let left = self.comparable()?;
                let operator = self.operator_if_any();
                let operator = operator.ok_or_else(|| self.expected("a comparison"))?;
                Ok(Condition::Compare(left, operator, self.comparable()?))
            }
        }
    }

    fn parenthesized(&mut self) -> Read<Condition> {
        self.require("(")?;
        self.skip_blanks();
        let condition = self.within(Self::any)?;
        self.skip_blanks();
        self.require(")")?;
        Ok(condition)
    }

    /// An operator with the blanks around it, if one is next.
    fn operator_if_any(&mut self) -> Option<Operator> {
        const OPERATORS: [(&str, Operator); 6] = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let end = self.at;
        self.skip_blanks();
        let found = OPERATORS.iter().find(|(text, _)| self.pass(text));
        if found.is_some() {
            self.skip_blanks();
        } else {
            self.at = end;
        }
        found.map(|&(_, operator)| operator)
    }

    fn singular(&self, from: usize, query: Query) -> Read<Comparable> {
        if query.is_singular() {
            return Ok(Comparable::Singular(query));
        }
        let text = "a query that may find more than one value cannot be compared; value(…) or count(…) of it can";
        Err(self.wrong(from, text.to_owned()))
    }

    fn comparable(&mut self) -> Read<Comparable> {
        match self.peek() {
            Some('\'' | '"') => Ok(Comparable::Text(self.string()?)),
            Some('-' | '0'..='9') => Ok(Comparable::Number(self.number()?)),
            Some('@' | '$') => {
                let from = self.at;
                let query = self.query()?;
                self.singular(from, query)
            }
            Some('a'..='z') => self.word(),
            Some(_) | None => Err(self.expected("'@', '$', '(', a text, a number or a function")),
        }
    }

    /// `true`, `false`, `null` or a function.
    fn word(&mut self) -> Read<Comparable> {
        let from = self.at;
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let word = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let word = rest.get(..word).unwrap_or_default().to_owned();
        self.at += word.len();
        match word.as_str() {
            "true" => Ok(Comparable::Boolean(true)),
            "false" => Ok(Comparable::Boolean(false)),
            "null" => Ok(Comparable::Null),
            "length" => self.argument(|parser| {
                let of = parser.comparable()?;
                Ok(Comparable::Length(Box::new(of)))
            }),
            "count" => self.argument(|parser| Ok(Comparable::Count(parser.nodes()?))),
            "value" => self.argument(|parser| Ok(Comparable::Value(parser.nodes()?))),
            _ => {
                let text = format!(
                    "'{word}' is no function that is known; length(…), count(…) and value(…) are"
                );
                Err(self.wrong(from, text))
            }
        }
    }

    fn argument(&mut self, read: impl FnOnce(&mut Self) -> Read<Comparable>) -> Read<Comparable> {
        self.require("(")?;
        self.skip_blanks();
        let argument = self.within(read)?;
        self.skip_blanks();
        self.require(")")?;
        Ok(argument)
    }

    /// An argument that is a query.
    fn nodes(&mut self) -> Read<Query> {
        match self.peek() {
            Some('@' | '$') => self.query(),
            Some(_) | None => Err(self.expected("'@' or '$'")),
        }
    }
}

fn has_leading_zero(number: &str) -> bool {
    let digits = number.trim_start_matches('-');
    1 < digits.len() && digits.starts_with('0')
}
