//! SQL filters, and the errors of texts that are none.

use std::collections::BTreeMap;
use std::fmt;

use super::evaluate::{EvaluationError, Expression, View, evaluate_alone};
use super::parser::Parser;
use super::work::Share;
use super::{Facts, Value};
use crate::limits;
use jitney_message::{Amendments, Message, Scalar};

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
    /// The text before and after that position.
    cx: (String, String),
}

impl SqlFilter {
    /// Compiles a condition without parameters.
    ///
    /// # Errors
    ///
    /// [`SqlError`] names the fault and its position.
    pub fn parse(text: &str) -> Result<Self, SqlError> {
        Self::parse_with(text, Parameters::new())
    }

    /// Compiles a condition. One that names a parameter that is not given is none the less one: it
    /// fails when it is evaluated, as in the service.
    ///
    /// # Errors
    ///
    /// [`SqlError`] names the fault and its position.
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

    /// Returns the condition.
    pub(super) const fn condition(&self) -> &Expression {
        &self.condition
    }

    /// Returns the parameters.
    #[must_use]
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns the parameters that the condition names and that are not given, each once.
    #[must_use]
    pub fn missing_parameters(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.condition.missing_parameters(&mut names);
        names
    }

    /// Returns whether the condition is true of a message; a condition that cannot be evaluated is
    /// not. The steps are taken from a share.
    #[must_use]
    pub fn is_true_of(
        &self,
        message: &Message,
        changed: &Amendments,
        facts: &Facts,
        share: &mut Share,
    ) -> bool {
        let is_true = evaluate_alone(message, changed, facts, share, |view| self.matches(view));
        is_true.unwrap_or(false)
    }

    /// Returns whether the condition is true of a message: unknown is not.
    pub(super) fn matches(&self, view: &View<'_>) -> Result<bool, EvaluationError> {
        Ok(view.truth(&self.condition)? == Scalar::Boolean(true))
    }
}

impl SqlError {
    /// Makes the error of a fault at a byte of a text.
    pub(super) fn new(text: &str, at: usize, problem: String) -> Self {
        let (before, behind) = text.split_at_checked(at).unwrap_or((text, ""));
        let skipped = before
            .chars()
            .count()
            .saturating_sub(limits::SQL_EXCERPT_MAX);
        Self {
            column: before.chars().count() + 1,
            problem,
            cx: (
                before.chars().skip(skipped).collect(),
                behind.chars().take(limits::SQL_EXCERPT_MAX).collect(),
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
