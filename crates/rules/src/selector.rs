//! Selectors of JMS, said in the language of rules.
//!
//! The two differ in names and in one operator. A bare name is a property of the sender's own; those
//! that begin with `JMS` are the message's: `sys.` here. `a BETWEEN x AND y` is two comparisons.

use super::sql::{SqlError, SqlFilter};
use crate::limits;

/// The names of a message's own properties in a selector, and in a rule.
const HEADERS: [(&str, &str); 12] = [
    ("JMSCorrelationID", "sys.CorrelationId"),
    ("JMSDeliveryMode", "sys.JMSDeliveryMode"),
    ("JMSDestination", "sys.To"),
    ("JMSExpiration", "sys.JMSExpiration"),
    ("JMSMessageID", "sys.MessageId"),
    ("JMSPriority", "sys.JMSPriority"),
    ("JMSReplyTo", "sys.ReplyTo"),
    ("JMSTimestamp", "sys.JMSTimestamp"),
    ("JMSType", "sys.Label"),
    ("JMSXDeliveryCount", "sys.DeliveryCount"),
    ("JMSXGroupID", "sys.SessionId"),
    ("JMS_AMQP_REPLY_TO_GROUP_ID", "sys.ReplyToSessionId"),
];

const KEYWORDS: [&str; 10] = [
    "AND", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE",
];

/// The tokens of operators and lists.
const OPERATORS: &str = "()=<>!,+-*/%";

/// A part of a selector.
#[derive(Debug, Clone)]
struct Piece {
    kind: PieceKind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    And,
    Between,
    Close,
    Comma,
    Not,
    Open,
    Or,
    Other,
}

/// Compiles a selector of JMS.
///
/// # Errors
///
/// [`SqlError`] names the fault, in the terms of the rule that the selector was translated to.
pub fn selector(text: &str) -> Result<SqlFilter, SqlError> {
    if limits::SQL_LENGTH_MAX < text.chars().count() {
        // It says so itself.
        return SqlFilter::parse(text);
    }
    let mut pieces = pieces(text)?;
    while let Some(at) = pieces
        .iter()
        .position(|piece| piece.kind == PieceKind::Between)
    {
        if !expand(&mut pieces, at) {
            let problem = "BETWEEN wants two values, as in 'price BETWEEN 1 AND 10'";
            return Err(SqlError::new(text, 0, problem.to_owned()));
        }
    }
    let texts: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
    SqlFilter::parse(&texts.join(" "))
}

/// Replaces `x [NOT] BETWEEN a AND b` by two comparisons; `false` if it is not complete.
fn expand(pieces: &mut Vec<Piece>, at: usize) -> bool {
    let kind = |at: usize| pieces.get(at).map(|piece| piece.kind);
    let negated = at.checked_sub(1).and_then(kind) == Some(PieceKind::Not);
    let end_of_value = at - usize::from(negated);
    let mut start = end_of_value;
    let mut depth = 0_usize;
    while let Some(before) = start.checked_sub(1).and_then(kind) {
        match before {
            PieceKind::Close => depth += 1,
            PieceKind::And | PieceKind::Not | PieceKind::Open | PieceKind::Or if depth == 0 => {
                break;
            }
            PieceKind::Open => depth -= 1,
            PieceKind::And
            | PieceKind::Between
            | PieceKind::Comma
            | PieceKind::Not
            | PieceKind::Or
            | PieceKind::Other => {}
        }
        start -= 1;
    }
    let end_of = |from: usize| {
        let mut depth = 0_usize;
        let mut end = from;
        while let Some(next) = kind(end) {
            match next {
                PieceKind::Open => depth += 1,
                PieceKind::And | PieceKind::Close | PieceKind::Or if depth == 0 => break,
                PieceKind::Close => depth -= 1,
                PieceKind::And
                | PieceKind::Between
                | PieceKind::Comma
                | PieceKind::Not
                | PieceKind::Or
                | PieceKind::Other => {}
            }
            end += 1;
        }
        end
    };
    let low_end = end_of(at + 1);
    let high_end = end_of(low_end + 1);
    let is_complete = start < end_of_value
        && at + 1 < low_end
        && kind(low_end) == Some(PieceKind::And)
        && low_end + 1 < high_end;
    if !is_complete {
        return false;
    }
    let joined = |from: usize, to: usize| {
        let texts = pieces.get(from..to).unwrap_or_default().iter();
        let texts: Vec<&str> = texts.map(|piece| piece.text.as_str()).collect();
        texts.join(" ")
    };
    let value = joined(start, end_of_value);
    let (low, high) = (joined(at + 1, low_end), joined(low_end + 1, high_end));
    let both = format!("({value} >= {low} AND {value} <= {high})");
    let text = if negated {
        format!("(NOT {both})")
    } else {
        both
    };
    let kind = PieceKind::Other;
    pieces.splice(start..high_end, [Piece { kind, text }]);
    true
}

/// Translates a selector to the tokens of a rule. Tokens with a meaning in rules only are refused;
/// other faults are found by the rule's parser.
fn pieces(text: &str) -> Result<Vec<Piece>, SqlError> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let error = |problem| SqlError::new(text, text.len() - rest.len(), problem);
        let begins_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let (piece, length) = match first {
            _ if first.is_whitespace() => (None, first.len_utf8()),
            '\'' => {
                let length = quoted(rest);
                (other(rest.get(..length)), length)
            }
            '.' | '0'..='9' if begins_number(rest.trim_start_matches('.')) => {
                let length = number(rest);
                let literal = rest.get(..length).unwrap_or_default();
                let decimal = decimal(literal).map_err(error)?;
                (other(Some(&decimal)), length)
            }
            _ if first == '_' || first == '$' || first.is_alphabetic() => {
                let end = rest.find(|c: char| !(c == '_' || c == '$' || c.is_alphanumeric()));
                let length = end.unwrap_or(rest.len());
                (rest.get(..length).map(word), length)
            }
            _ if !OPERATORS.contains(first) => {
                let problem = format!(
                    "the character '{}' has no meaning in a selector: names are made of letters, \
                     digits, _ and $, and texts are in 'single quotes'",
                    first.escape_debug()
                );
                return Err(error(problem));
            }
            _ => {
                let kind = match first {
                    '(' => PieceKind::Open,
                    ')' => PieceKind::Close,
                    ',' => PieceKind::Comma,
                    _ => PieceKind::Other,
                };
                // An operator of two characters stays one.
                let two = rest
                    .get(..2)
                    .filter(|two| ["<>", "<=", ">=", "!="].contains(two));
                let text = two.map_or_else(|| first.to_string(), str::to_owned);
                let length = text.len();
                (Some(Piece { kind, text }), length)
            }
        };
        found.extend(piece);
        rest = rest.get(length.max(1)..).unwrap_or_default();
    }
    Ok(found)
}

/// Returns a number as rules write it. Java's may be hexadecimal or octal, and have a suffix that says
/// nothing that the digits do not (JMS 3.8.1.1).
fn decimal(literal: &str) -> Result<String, String> {
    let no_number = || format!("{literal} is no number");
    let (digits, radix) = match literal.as_bytes() {
        [b'0', b'x' | b'X', ..] => (literal.get(2..), 16),
        [b'0', _, ..] if !literal.contains(['.', 'e', 'E', 'f', 'F', 'd', 'D']) => {
            (literal.get(1..), 8)
        }
        _ => (Some(literal), 10),
    };
    let digits = digits.unwrap_or_default();
    if radix == 10 {
        let digits = digits.trim_end_matches(['l', 'L', 'f', 'F', 'd', 'D']);
        let is_number = digits.parse::<f64>().is_ok();
        return is_number.then(|| digits.to_owned()).ok_or_else(no_number);
    }
    let digits = digits.trim_end_matches(['l', 'L']);
    if digits.is_empty() && radix == 8 {
        return Ok("0".to_owned());
    }
    let number = i64::from_str_radix(digits, radix).map_err(|_| no_number())?;
    Ok(number.to_string())
}

fn other(text: Option<&str>) -> Option<Piece> {
    let (kind, text) = (PieceKind::Other, text?.to_owned());
    Some(Piece { kind, text })
}

/// Returns the length of a text in quotes, a doubled quote within it included.
fn quoted(text: &str) -> usize {
    let mut at = 1;
    while let Some(end) = text.get(at..).and_then(|rest| rest.find('\'')) {
        at += end + 1;
        if !text.get(at..).is_some_and(|rest| rest.starts_with('\'')) {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// Returns the length of a number, its exponent with a sign included.
fn number(text: &str) -> usize {
    let is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let mut before = '0';
    let end = text.find(|c: char| {
        let signed = (c == '+' || c == '-') && (before == 'e' || before == 'E') && !is_hexadecimal;
        before = c;
        !(signed || c == '.' || c.is_ascii_alphanumeric())
    });
    end.unwrap_or(text.len())
}

fn word(name: &str) -> Piece {
    let upper = name.to_ascii_uppercase();
    let kind = match upper.as_str() {
        "AND" => PieceKind::And,
        "BETWEEN" => PieceKind::Between,
        "NOT" => PieceKind::Not,
        "OR" => PieceKind::Or,
        _ => PieceKind::Other,
    };
    let header = HEADERS.iter().find(|(known, _)| *known == name);
    let text = match header {
        Some((_, system)) => (*system).to_owned(),
        None if kind != PieceKind::Other || KEYWORDS.contains(&upper.as_str()) => upper,
        None => format!("[{name}]"),
    };
    Piece { kind, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &str, rule: &str) {
        let found = selector(given).map(|filter| filter.text().to_owned());
        assert_eq!(found.as_deref(), Ok(rule), "{given}");
    }

    #[test]
    fn a_selector_is_said_in_the_language_of_rules() {
        check("color = 'red'", "[color] = 'red'");
        check(
            "JMSType = 'it''s' and jmstype is null",
            "sys.Label = 'it''s' AND [jmstype] IS NULL",
        );
        check(
            "n BETWEEN 1 AND 2 + m AND NOT b",
            "([n] >= 1 AND [n] <= 2 + [m]) AND NOT [b]",
        );
        check(
            "a OR (n - 1) not between -1.5e-3D and 7L",
            "[a] OR (NOT (( [n] - 1 ) >= - 1.5e-3 AND ( [n] - 1 ) <= 7))",
        );
        check(
            "_x LIKE 'a!_%' ESCAPE '!' AND $y IN ('p', 'q')",
            "[_x] LIKE 'a!_%' ESCAPE '!' AND [$y] IN ( 'p' , 'q' )",
        );
        check("JMSPriority>=8", "sys.JMSPriority >= 8");
    }

    #[test]
    fn numbers_are_java_s() {
        for (given, rule) in [
            ("n = .5", "[n] = .5"),
            ("n = -.5", "[n] = - .5"),
            ("n=-.5E1d", "[n] = - .5E1"),
            ("n = 5.", "[n] = 5."),
            ("n = 0x7B", "[n] = 123"),
            ("n = 0X7bL", "[n] = 123"),
            ("n = 0xDF", "[n] = 223"),
            ("n = 0xE-1", "[n] = 14 - 1"),
            ("n = 0173", "[n] = 123"),
            ("n = 0", "[n] = 0"),
            ("n = 0L", "[n] = 0"),
            ("n = 0.5F", "[n] = 0.5"),
            ("n = 09.5", "[n] = 09.5"),
            ("n = 1e3", "[n] = 1e3"),
        ] {
            check(given, rule);
        }
        for text in [
            "n = 08",
            "n = 0x",
            "n = 0xG",
            "n = 1x",
            "n = 1a",
            "n = 0xFFFFFFFFFFFFFFFFF",
        ] {
            let error = selector(text).unwrap_err().to_string();
            assert!(error.contains("is no number"), "{error}");
        }
    }

    #[test]
    fn what_only_rules_have_is_not_proposed() {
        for text in [
            "a.b = 1",
            "a#b = 1",
            "[a] = 1",
            "\"a\" = 1",
            "a = @p",
            "1a = 1",
            "a = 1;",
            "NULL.b = 1",
        ] {
            let error = selector(text).unwrap_err().to_string();
            assert!(!error.contains("bracket"), "{text}: {error}");
            assert!(
                error.contains("selector") || error.contains("number"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for text in [
            "",
            "n BETWEEN 1",
            "n BETWEEN",
            "BETWEEN 1 AND 2",
            "n =",
            "'open",
        ] {
            assert!(selector(text).is_err(), "{text}");
        }
    }
}
