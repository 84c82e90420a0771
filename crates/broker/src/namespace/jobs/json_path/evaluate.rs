//! The evaluation of a query, in counted steps of about 10 ns: a value that is visited, a name or eight bytes that are compared.
//!
//! It looks for the first value that the query finds, and keeps no lists. It recurses as deep as the query and the document are
//! nested, which both are bounded.

use std::cell::Cell;
use std::cmp::Ordering;

use super::document::{At, Document, Seen};
use super::{Comparable, Condition, Number, Operator, PathSelector, Query, Reach, Segment, Start};

/// An evaluation takes more steps than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::namespace::jobs) struct TooSlow;

/// Why a walk through a document ends before its end.
enum End {
    /// What it was for is known.
    Known,
    TooSlow,
}

impl From<TooSlow> for End {
    fn from(TooSlow: TooSlow) -> Self {
        Self::TooSlow
    }
}

/// What is done with each value that is found.
type Visit<'v> = dyn FnMut(At) -> Result<(), End> + 'v;

/// The root of a document.
const ROOT: At = 0;
/// Bytes that are compared in a step.
const BYTES_PER_STEP: usize = 8;

/// Returns whether a query finds something.
pub(super) fn finds(query: &Query, document: &Document, left: &mut u64) -> Result<bool, TooSlow> {
    let evaluation = Evaluation {
        document,
        left: Cell::new(*left),
    };
    let found = evaluation.exists(query, ROOT);
    *left = evaluation.left.get();
    found
}

struct Evaluation<'a> {
    document: &'a Document,
    left: Cell<u64>,
}

/// A value that is compared.
#[derive(Clone, Copy)]
enum Operand<'a> {
    /// There is none.
    Nothing,
    /// A number or a text, and the place of what is neither.
    Value(Seen<'a>, At),
}

impl Evaluation<'_> {
    fn charge(&self, steps: u64) -> Result<(), TooSlow> {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or_default());
        left.map(drop).ok_or(TooSlow)
    }

    fn charge_bytes(&self, bytes: usize) -> Result<(), TooSlow> {
        self.charge(u64::try_from(bytes / BYTES_PER_STEP).unwrap_or(u64::MAX))
    }

    fn exists(&self, query: &Query, current: At) -> Result<bool, TooSlow> {
        match self.walk(query, current, &mut |_| Err(End::Known)) {
            Ok(()) => Ok(false),
            Err(End::Known) => Ok(true),
            Err(End::TooSlow) => Err(TooSlow),
        }
    }

    fn walk(&self, query: &Query, current: At, visit: &mut Visit<'_>) -> Result<(), End> {
        let start = match query.start {
            Start::Root => ROOT,
            Start::Current => current,
        };
        self.follow(&query.segments, start, visit)
    }

    fn follow(&self, segments: &[Segment], at: At, visit: &mut Visit<'_>) -> Result<(), End> {
        self.charge(1)?;
        let Some((segment, rest)) = segments.split_first() else {
            return visit(at);
        };
        match segment.reach {
            Reach::Children => self.select(segment, rest, at, visit),
            Reach::Descendants => {
                for at in at..self.document.end(at) {
                    self.charge(1)?;
                    self.select(segment, rest, at, visit)?;
                }
                Ok(())
            }
        }
    }

    fn select(
        &self,
        segment: &Segment,
        rest: &[Segment],
        at: At,
        visit: &mut Visit<'_>,
    ) -> Result<(), End> {
        let is_array = matches!(self.document.see(at), Seen::Array);
        for selector in &segment.selectors {
            self.charge(1)?;
            match selector {
                PathSelector::Name(name) => {
                    if let Some(member) = self.member(at, name)? {
                        self.follow(rest, member, visit)?;
                    }
                }
                PathSelector::Wildcard => {
                    for child in self.document.children(at) {
                        self.follow(rest, child, visit)?;
                    }
                }
                PathSelector::Index(index) if is_array => {
                    if let Some(element) = self.element(at, *index)? {
                        self.follow(rest, element, visit)?;
                    }
                }
                PathSelector::Slice { start, end, step } if is_array => {
                    let count = i64::from(self.document.count(at));
                    let slice = Slice::of(*start, *end, *step, count);
                    for (index, child) in (0..).zip(self.document.children(at)) {
                        self.charge(1)?;
                        if slice.has(index) {
                            self.follow(rest, child, visit)?;
                        }
                    }
                }
                PathSelector::Index(_) | PathSelector::Slice { .. } => {}
                PathSelector::Filter(condition) => {
                    for child in self.document.children(at) {
                        self.charge(1)?;
                        if self.is_true(condition, child)? {
                            self.follow(rest, child, visit)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the last member of this name: what receivers make of an object that has two is mostly the last.
    fn member(&self, at: At, name: &str) -> Result<Option<At>, TooSlow> {
        if !matches!(self.document.see(at), Seen::Object) {
            return Ok(None);
        }
        let mut found = None;
        for child in self.document.children(at) {
            self.charge(1)?;
            let other = self.document.name(child);
            if other.len() == name.len() {
                self.charge_bytes(name.len())?;
                if other == name {
                    found = Some(child);
                }
            }
        }
        Ok(found)
    }

    fn element(&self, at: At, index: i64) -> Result<Option<At>, TooSlow> {
        let count = i64::from(self.document.count(at));
        let index = if index < 0 { count + index } else { index };
        if !(0..count).contains(&index) {
            return Ok(None);
        }
        let index = u64::try_from(index).unwrap_or_default();
        self.charge(index)?;
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        Ok(self.document.children(at).nth(index))
    }

    fn is_true(&self, condition: &Condition, current: At) -> Result<bool, TooSlow> {
        self.charge(1)?;
        match condition {
            Condition::Any(conditions) => {
                for condition in conditions {
                    if self.is_true(condition, current)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Condition::All(conditions) => {
                for condition in conditions {
                    if !self.is_true(condition, current)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::Not(condition) => Ok(!self.is_true(condition, current)?),
            Condition::Exists(query) => self.exists(query, current),
            Condition::Compare(left, operator, right) => {
                let left = self.operand(left, current)?;
                let right = self.operand(right, current)?;
                match operator {
                    Operator::Equal => self.are_equal(left, right),
                    Operator::NotEqual => Ok(!self.are_equal(left, right)?),
                    Operator::Less => self.is_less(left, right),
                    Operator::LessOrEqual => {
                        Ok(self.is_less(left, right)? || self.are_equal(left, right)?)
                    }
                    Operator::Greater => self.is_less(right, left),
                    Operator::GreaterOrEqual => {
                        Ok(self.is_less(right, left)? || self.are_equal(left, right)?)
                    }
                }
            }
        }
    }

    fn operand<'s>(
        &'s self,
        comparable: &'s Comparable,
        current: At,
    ) -> Result<Operand<'s>, TooSlow> {
        self.charge(1)?;
        let value = |value| Ok(Operand::Value(value, ROOT));
        match comparable {
            Comparable::Null => value(Seen::Null),
            Comparable::Boolean(it) => value(Seen::Boolean(*it)),
            Comparable::Number(it) => value(Seen::Number(*it)),
            Comparable::Text(it) => value(Seen::Text(it)),
            Comparable::Singular(query) | Comparable::Value(query) => {
                Ok(match self.only(query, current)? {
                    Some(at) => Operand::Value(self.document.see(at), at),
                    None => Operand::Nothing,
                })
            }
            Comparable::Length(of) => {
                let length = match self.operand(of, current)? {
                    Operand::Value(Seen::Text(text), _) => {
                        self.charge_bytes(text.len())?;
                        u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
                    }
                    Operand::Value(Seen::Array | Seen::Object, at) => {
                        self.document.count(at).into()
                    }
                    Operand::Nothing
                    | Operand::Value(Seen::Null | Seen::Boolean(_) | Seen::Number(_), _) => {
                        return Ok(Operand::Nothing);
                    }
                };
                value(Seen::Number(Number::Unsigned(length)))
            }
            Comparable::Count(query) => {
                let mut count = 0;
                let counted = self.walk(query, current, &mut |_| {
                    count += 1;
                    Ok(())
                });
                match counted {
                    Ok(()) | Err(End::Known) => value(Seen::Number(Number::Unsigned(count))),
                    Err(End::TooSlow) => Err(TooSlow),
                }
            }
        }
    }

    /// Returns the value that a query finds, if it finds only one.
    fn only(&self, query: &Query, current: At) -> Result<Option<At>, TooSlow> {
        let mut found = None;
        let walked = self.walk(query, current, &mut |at| match found {
            None => {
                found = Some(at);
                Ok(())
            }
            Some(_) => Err(End::Known),
        });
        match walked {
            Ok(()) => Ok(found),
            Err(End::Known) => Ok(None),
            Err(End::TooSlow) => Err(TooSlow),
        }
    }

    fn are_equal(&self, left: Operand<'_>, right: Operand<'_>) -> Result<bool, TooSlow> {
        match (left, right) {
            (Operand::Nothing, Operand::Nothing) => Ok(true),
            (Operand::Nothing, Operand::Value(..)) | (Operand::Value(..), Operand::Nothing) => {
                Ok(false)
            }
            (Operand::Value(left, left_at), Operand::Value(right, right_at)) => {
                self.are_same(left, left_at, right, right_at)
            }
        }
    }

    fn are_same(
        &self,
        left: Seen<'_>,
        left_at: At,
        right: Seen<'_>,
        right_at: At,
    ) -> Result<bool, TooSlow> {
        self.charge(1)?;
        match (left, right) {
            (Seen::Null, Seen::Null) => Ok(true),
            (Seen::Boolean(left), Seen::Boolean(right)) => Ok(left == right),
            (Seen::Number(left), Seen::Number(right)) => Ok(left == right),
            (Seen::Text(left), Seen::Text(right)) => {
                self.charge_bytes(left.len().min(right.len()))?;
                Ok(left == right)
            }
            (Seen::Array, Seen::Array) => {
                if self.document.count(left_at) != self.document.count(right_at) {
                    return Ok(false);
                }
                let others = self.document.children(right_at);
                for (at, other) in self.document.children(left_at).zip(others) {
                    if !self.are_values_same(at, other)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Seen::Object, Seen::Object) => {
                if self.document.count(left_at) != self.document.count(right_at) {
                    return Ok(false);
                }
                for member in self.document.children(left_at) {
                    let Some(other) = self.member(right_at, self.document.name(member))? else {
                        return Ok(false);
                    };
                    if !self.are_values_same(member, other)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (
                Seen::Null
                | Seen::Boolean(_)
                | Seen::Number(_)
                | Seen::Text(_)
                | Seen::Array
                | Seen::Object,
                _,
            ) => Ok(false),
        }
    }

    fn are_values_same(&self, at: At, other: At) -> Result<bool, TooSlow> {
        let (left, right) = (self.document.see(at), self.document.see(other));
        self.are_same(left, at, right, other)
    }

    /// Returns whether both are numbers or both are texts, and the first is less.
    fn is_less(&self, left: Operand<'_>, right: Operand<'_>) -> Result<bool, TooSlow> {
        self.charge(1)?;
        match (left, right) {
            (Operand::Value(Seen::Number(left), _), Operand::Value(Seen::Number(right), _)) => {
                Ok(left.order(right) == Some(Ordering::Less))
            }
            (Operand::Value(Seen::Text(left), _), Operand::Value(Seen::Text(right), _)) => {
                self.charge_bytes(left.len().min(right.len()))?;
                Ok(left < right)
            }
            (Operand::Nothing | Operand::Value(..), _) => Ok(false),
        }
    }
}

/// The elements that a slice selects [RFC 9535, 2.3.4.2].
struct Slice {
    /// The first and the last that it may select, whichever way it goes.
    lowest: i64,
    highest: i64,
    /// One that it selects, if it selects any.
    first: i64,
    step: i64,
}

impl Slice {
    fn of(start: Option<i64>, end: Option<i64>, step: i64, count: i64) -> Self {
        let from_start = |index: i64| if index < 0 { count + index } else { index };
        if 0 < step {
            let first = from_start(start.unwrap_or(0)).clamp(0, count);
            let end = from_start(end.unwrap_or(count)).clamp(0, count);
            return Self {
                lowest: first,
                highest: end - 1,
                first,
                step,
            };
        }
        let first = start.map_or(count - 1, from_start).clamp(-1, count - 1);
        let end = end.map_or(-1, from_start).clamp(-1, count - 1);
        Self {
            lowest: end + 1,
            highest: first,
            first,
            step,
        }
    }

    fn has(&self, index: i64) -> bool {
        let distance = (index - self.first).checked_rem(self.step);
        (self.lowest..=self.highest).contains(&index) && distance == Some(0)
    }
}
