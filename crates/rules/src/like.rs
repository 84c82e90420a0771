//! `LIKE`: whether a text has the form of a pattern.
//!
//! A pattern is split at each `%`. The first part must be at the beginning of the text, the last at
//! its end, and each of the others after the one before it: the first match is as good as any later
//! one. Literal parts are searched for in linear time; those with a `_` are tried at each position,
//! which the meter bounds.

use super::evaluate::EvaluationError;
use super::work::Meter;
use crate::limits;

/// Bytes of a text that are searched in one step.
const SEARCHED_PER_STEP: usize = 8;
/// Characters that are compared in one step where a part has a `_`.
const COMPARED_PER_STEP: usize = 4;

/// A part of a pattern, without a `%`.
#[derive(Debug, Default)]
struct PatternPart {
    /// Its characters; `_` is `None`.
    pieces: Vec<Option<char>>,
    /// The same as a text, if there is no `_` in it.
    literal: String,
}

pub(super) fn is_like(
    meter: &Meter,
    text: &str,
    pattern: &str,
    escape: Option<char>,
) -> Result<bool, EvaluationError> {
    if limits::SQL_TEXT_BYTES_MAX < text.len() {
        return Err(EvaluationError::TooLong(
            "the text of a LIKE",
            limits::SQL_TEXT_BYTES_MAX,
        ));
    }
    let parts = parts(pattern, escape)?;
    meter.charge_bytes(pattern.len(), COMPARED_PER_STEP)?;
    let (first, last, between) = match parts.as_slice() {
        [] => return Ok(text.is_empty()),
        [whole] => return Ok(whole.strip_from(meter, text)?.is_some_and(str::is_empty)),
        [first, between @ .., last] => (first, last, between),
    };
    let Some(text) = first.strip_from(meter, text)? else {
        return Ok(false);
    };
    let Some(mut rest) = last.strip_end(meter, text)? else {
        return Ok(false);
    };
    for part in between {
        match part.find(meter, rest)? {
            None => return Ok(false),
            Some(behind) => rest = behind,
        }
    }
    Ok(true)
}

/// Takes a pattern apart at each `%`.
fn parts(pattern: &str, escape: Option<char>) -> Result<Vec<PatternPart>, EvaluationError> {
    let mut parts = vec![PatternPart::default()];
    let mut characters = pattern.chars();
    let mut count = 0;
    while let Some(character) = characters.next() {
        if limits::LIKE_PATTERN_MAX <= count {
            return Err(EvaluationError::TooLong(
                "the pattern of a LIKE",
                limits::LIKE_PATTERN_MAX,
            ));
        }
        count += 1;
        let piece = match character {
            _ if Some(character) == escape => {
                Some(characters.next().ok_or(EvaluationError::EscapeAtEnd)?)
            }
            '%' => {
                parts.push(PatternPart::default());
                continue;
            }
            '_' => None,
            _ => Some(character),
        };
        if let Some(part) = parts.last_mut() {
            part.pieces.push(piece);
            part.literal.extend(piece);
        }
    }
    Ok(parts)
}

impl PatternPart {
    /// Returns its text, if it has no wildcard.
    fn literal(&self) -> Option<&str> {
        let is_literal = self.pieces.iter().all(Option::is_some);
        is_literal.then_some(self.literal.as_str())
    }

    /// Returns the rest of a text that begins with it.
    fn strip_from<'t>(
        &self,
        meter: &Meter,
        text: &'t str,
    ) -> Result<Option<&'t str>, EvaluationError> {
        let mut rest = text.chars();
        let mut compared = 0;
        let is_there = self.pieces.iter().all(|piece| {
            compared += 1;
            let found = rest.next();
            found.is_some_and(|found| piece.is_none_or(|wanted| wanted == found))
        });
        meter.charge_bytes(COMPARED_PER_STEP + compared, COMPARED_PER_STEP)?;
        Ok(is_there.then_some(rest.as_str()))
    }

    /// Returns the front of a text that ends with it.
    fn strip_end<'t>(
        &self,
        meter: &Meter,
        text: &'t str,
    ) -> Result<Option<&'t str>, EvaluationError> {
        let Some(last) = self.pieces.len().checked_sub(1) else {
            return Ok(Some(text));
        };
        let Some((at, _)) = text.char_indices().rev().nth(last) else {
            return Ok(None);
        };
        let (before, end) = text.split_at_checked(at).unwrap_or((text, ""));
        let is_there = self.strip_from(meter, end)?.is_some();
        Ok(is_there.then_some(before))
    }

    /// Returns the rest of a text after the first match.
    fn find<'t>(&self, meter: &Meter, text: &'t str) -> Result<Option<&'t str>, EvaluationError> {
        if let Some(literal) = self.literal() {
            let behind = text.split_once(literal).map(|(_, behind)| behind);
            let searched = text.len() - behind.map_or(0, str::len);
            meter.charge_bytes(SEARCHED_PER_STEP + searched, SEARCHED_PER_STEP)?;
            return Ok(behind);
        }
        let mut rest = text.chars();
        loop {
            if let Some(behind) = self.strip_from(meter, rest.as_str())? {
                return Ok(Some(behind));
            }
            if rest.next().is_none() {
                return Ok(None);
            }
        }
    }
}
