//! Correlation filters: a message matches if its properties have given values.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Value;
use super::compare::same;
use super::evaluate::{EvaluationError, View};
use super::explain::Name;
use super::system::System;
use jitney_message::{Field, Scalar};

/// The properties that a correlation filter compares. `None` and empty ones are not compared.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CorrelationFields {
    /// correlation-id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// message-id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// reply-to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// group-id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// reply-to-group-id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to_session_id: Option<String>,
    /// content-type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Application-properties: names, whose case does not matter, and values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<(String, Value)>,
}

/// A correlation filter that asks for something.
#[derive(Debug, Clone, PartialEq)]
pub struct CorrelationFilter(CorrelationFields);

/// A correlation filter would take every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a correlation filter must ask for at least one property; to take every message, use a true filter"
)]
pub struct EmptyFilter;

/// The property that one comparison of a filter reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Selector<'a> {
    Field(Field),
    Property(&'a str),
}

impl CorrelationFilter {
    /// Makes a filter.
    ///
    /// # Errors
    ///
    /// [`EmptyFilter`] if nothing is asked for.
    pub fn new(fields: CorrelationFields) -> Result<Self, EmptyFilter> {
        let filter = Self(fields);
        if filter.tests().next().is_none() {
            return Err(EmptyFilter);
        }
        Ok(filter)
    }

    /// Returns the property and the value that it is compared to.
    #[must_use]
    pub const fn fields(&self) -> &CorrelationFields {
        &self.0
    }

    /// Returns whether a message with its amendments has all values of the filter.
    pub(super) fn matches(&self, view: &View<'_>) -> Result<bool, EvaluationError> {
        for (selector, wanted) in self.tests() {
            let (is_same, _) = selector.test(view, &wanted)?;
            if !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the tests that a message must pass.
    pub(super) fn tests(&self) -> impl Iterator<Item = (Selector<'_>, Scalar<'_>)> {
        let asked = &self.0;
        let fields = [
            (Field::CorrelationId, &asked.correlation_id),
            (Field::MessageId, &asked.message_id),
            (Field::To, &asked.to),
            (Field::ReplyTo, &asked.reply_to),
            (Field::Label, &asked.label),
            (Field::SessionId, &asked.session_id),
            (Field::ReplyToSessionId, &asked.reply_to_session_id),
            (Field::ContentType, &asked.content_type),
        ];
        let fields = fields.into_iter().filter_map(|(field, text)| {
            let text = text.as_deref().filter(|text| !text.is_empty())?;
            Some((Selector::Field(field), Scalar::Text(text.into())))
        });
        let properties = asked.properties.iter();
        fields.chain(
            properties.map(|(name, value)| (Selector::Property(name), value.scalar().borrowed())),
        )
    }
}

impl Selector<'_> {
    /// Returns whether the property of a message has the value that is wanted, and its value.
    pub(super) fn test<'v>(
        self,
        view: &View<'v>,
        wanted: &Scalar<'_>,
    ) -> Result<(bool, Option<Scalar<'v>>), EvaluationError> {
        let value = match self {
            Self::Field(field) => view.system(System::Field(field))?,
            Self::Property(name) => view.user(name)?,
        };
        let is_same = value.as_ref().is_some_and(|value| same(value, wanted));
        Ok((is_same, value))
    }
}

impl fmt::Display for Selector<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(field) => write!(out, "sys.{}", System::Field(*field).name()),
            Self::Property(name) => write!(out, "{}", Name(name)),
        }
    }
}
