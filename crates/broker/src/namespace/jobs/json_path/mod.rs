//! `JSONPath` queries over the JSON in a body [RFC 9535].
//!
//! Promises: a query is read in a time that is linear in its length; its nesting is bounded, and so is the recursion of all that
//! walks through it. An evaluation counts its steps, per node that it visits and per comparison, and ends when there are too
//! many. A document takes 32 bytes for each value, and its texts once.
//!
//! The functions `length`, `count` and `value` are known. `match` and `search` are not: they bring regular expressions.

mod document;
mod evaluate;
mod parser;
#[cfg(test)]
mod tests;

pub(super) use document::Document;
pub(super) use evaluate::TooSlow;

/// A query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath {
    query: Query,
}

/// Why a text is no query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at character {column}: {problem}")]
pub(super) struct PathError {
    /// Where, from 1 on.
    column: usize,
    problem: String,
}

/// Where a query begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// `$`: at the root of the document.
    Root,
    /// `@`: at the value that a filter is asked about.
    Current,
}

#[derive(Debug, Clone, PartialEq)]
struct Query {
    start: Start,
    segments: Vec<Segment>,
}

/// What a segment selects from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// From a value.
    Children,
    /// From a value and all that is in it.
    Descendants,
}

#[derive(Debug, Clone, PartialEq)]
struct Segment {
    reach: Reach,
    selectors: Vec<PathSelector>,
}

#[derive(Debug, Clone, PartialEq)]
enum PathSelector {
    Name(String),
    Wildcard,
    Index(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    Filter(Condition),
}

#[derive(Debug, Clone, PartialEq)]
enum Condition {
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
    /// The query finds something.
    Exists(Query),
    Compare(Comparable, Operator, Comparable),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Comparable {
    Null,
    Boolean(bool),
    Number(Number),
    Text(String),
    /// A query that finds one value at most.
    Singular(Query),
    /// The length of a text, an array or an object.
    Length(Box<Self>),
    /// How many values a query finds.
    Count(Query),
    /// The value that a query finds, if it finds only one.
    Value(Query),
}

#[derive(Debug, Clone, Copy)]
enum Number {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

impl JsonPath {
    /// Reads a query.
    ///
    /// # Errors
    ///
    /// Where it is none, and why.
    pub(super) fn parse(text: &str) -> Result<Self, PathError> {
        let query = parser::parse(text)?;
        Ok(Self { query })
    }

    /// Returns whether it finds something in a document, and takes the steps of that from those that are left.
    ///
    /// # Errors
    ///
    /// It needs more steps than were left.
    pub(super) fn finds(&self, document: &Document, left: &mut u64) -> Result<bool, TooSlow> {
        evaluate::finds(&self.query, document, left)
    }
}

impl Query {
    /// Returns whether it finds one value at most [RFC 9535, 2.3.5.1].
    fn is_singular(&self) -> bool {
        let is_one = |selectors: &[PathSelector]| {
            matches!(selectors, [PathSelector::Name(_) | PathSelector::Index(_)])
        };
        let mut segments = self.segments.iter();
        segments.all(|segment| segment.reach == Reach::Children && is_one(&segment.selectors))
    }
}

impl Number {
    fn order(self, other: Self) -> Option<std::cmp::Ordering> {
        match (self.integer(), other.integer()) {
            (Some(one), Some(other)) => Some(one.cmp(&other)),
            (None, _) | (_, None) => self.float().partial_cmp(&other.float()),
        }
    }

    fn integer(self) -> Option<i128> {
        match self {
            Self::Signed(number) => Some(number.into()),
            Self::Unsigned(number) => Some(number.into()),
            Self::Float(_) => None,
        }
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "numbers of JSON are compared as the doubles that receivers make of them"
    )]
    const fn float(self) -> f64 {
        match self {
            Self::Signed(number) => number as f64,
            Self::Unsigned(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.order(*other) == Some(std::cmp::Ordering::Equal)
    }
}
