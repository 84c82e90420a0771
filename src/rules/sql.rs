//! SQL filters, and what is said about a text that is none.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use super::evaluate::{Expression, Failure, View};
use super::parser::Parser;
use super::work::{Meter, Share};
use super::{Facts, Value};
use crate::ids::Random;
use crate::limits;
use crate::message::{Amendments, Message, Scalar};

/// Values for the `@names` of an expression, by their names with the `@`.
pub type Parameters = BTreeMap<String, Value>;

/// A condition on a message's properties (`rules.md#sql-filters`), compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlFilter {
    text: String,
    parameters: Parameters,
    condition: Expression,
}

/// Why a text is no expression, or no action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    /// Where: the number of a character, the first is 1.
    column: usize,
    problem: String,
    /// The text before and behind that place.
    cx: (String, String),
}

/// Characters of the text that are shown on each side of the place of an error.
const SHOWN: usize = 24;

impl SqlFilter {
    /// Compiles a condition without parameters.
    ///
    /// # Errors
    ///
    /// [`SqlError`] says what is wrong and where.
    pub fn parse(text: &str) -> Result<Self, SqlError> {
        Self::parse_with(text, Parameters::new())
    }

    /// Compiles a condition. One that names a parameter that is not given is none the less one: it
    /// fails when it is evaluated, as in the service.
    ///
    /// # Errors
    ///
    /// [`SqlError`] says what is wrong and where.
    pub fn parse_with(text: &str, parameters: Parameters) -> Result<Self, SqlError> {
        let condition = Parser::new(text, &parameters)?.condition()?;
        Ok(Self {
            text: text.to_owned(),
            parameters,
            condition,
        })
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the parameters.
    #[must_use]
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns whether the condition is true of a message; one that cannot be evaluated is not. What
    /// it takes is spent of a share.
    #[must_use]
    pub fn is_true_of(
        &self,
        message: &Message,
        changed: &Amendments,
        facts: &Facts,
        share: &mut Share,
    ) -> bool {
        let random = RefCell::new(Random::new(facts.seed));
        let meter = Meter::default();
        let view = View {
            message,
            changed,
            facts,
            random: &random,
            meter: &meter,
        };
        meter.begin(limits::FILTER_STEPS_MAX);
        let is_true = self.matches(&view).unwrap_or(false);
        share.spend(meter.spent());
        is_true
    }

    /// Returns whether the condition is true of a message: unknown is not.
    pub(super) fn matches(&self, view: &View<'_>) -> Result<bool, Failure> {
        Ok(view.truth(&self.condition)? == Scalar::Boolean(true))
    }
}

impl SqlError {
    /// Says what is wrong at a byte of a text.
    pub(super) fn new(text: &str, at: usize, problem: String) -> Self {
        let (before, behind) = text.split_at_checked(at).unwrap_or((text, ""));
        let skipped = before.chars().count().saturating_sub(SHOWN);
        Self {
            column: before.chars().count() + 1,
            problem,
            cx: (
                before.chars().skip(skipped).collect(),
                behind.chars().take(SHOWN).collect(),
            ),
        }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            column,
            problem,
            cx: (before, behind),
        } = self;
        write!(
            f,
            "{problem} (character {column}, at ==> in: {before}==>{behind})"
        )
    }
}

impl std::error::Error for SqlError {}
