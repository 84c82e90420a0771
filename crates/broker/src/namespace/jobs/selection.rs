//! Which messages an operator means: by what their index entries tell, and by their bytes.

use super::json_path::{Document, JsonPath, TooSlow};
use crate::limits;
use jitney_base::time::Timestamp;
use jitney_message::{Amendments, Field, Message, MessageState, Scalar, Stamps};
use jitney_queue::{Conditions, DEAD_LETTER_DESCRIPTION, DEAD_LETTER_REASON};
use jitney_rules::{Facts, Share, SqlFilter, hyphenated};
use serde::{Deserialize, Serialize};

/// Conditions on messages, as they are written. A message must meet all that are given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// States; none means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<MessageState>,
    /// Sequence numbers; none means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<u64>,
    /// The message session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Enqueued at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enqueued_from: Option<Timestamp>,
    /// Enqueued before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enqueued_before: Option<Timestamp>,
    /// Scheduled for this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_from: Option<Timestamp>,
    /// Scheduled for a time before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_before: Option<Timestamp>,
    /// The message id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The correlation id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The reason of a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Without a reason of a dead letter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_reason: bool,
    /// The error description of a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Without an error description of a dead letter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_description: bool,
    /// A SQL filter over properties, as rules have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// A text that the body contains, within its first MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A `JSONPath` [RFC 9535] that finds something in the body, which must be JSON of at most a MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_path: Option<String>,
}

/// A selection, compiled.
#[derive(Debug, Clone)]
pub struct Selector {
    /// What index entries decide.
    pub conditions: Conditions,
    message_id: Option<String>,
    correlation_id: Option<String>,
    reason: Option<String>,
    without_reason: bool,
    description: Option<String>,
    without_description: bool,
    filter: Option<SqlFilter>,
    text: Option<String>,
    json_path: Option<JsonPath>,
}

/// Why a selection is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// Its SQL filter cannot be read.
    #[error("filter: {0}")]
    Filter(String),
    /// Its `JSONPath` cannot be read.
    #[error("json_path: {0}")]
    JsonPath(String),
    /// A text of it is too long.
    #[error("{field} has {length} characters, and {max} are the most")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Its length.
        length: usize,
        /// The longest that it may be.
        max: usize,
    },
    /// It names too many messages.
    #[error("numbers has {0} numbers, and {max} are the most", max = crate::limits::SELECTED_NUMBERS_MAX)]
    TooMany(usize),
}

/// A message's bytes do not decide in the time that there is whether the message is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "json_path takes more than {max} steps in the body of the message, so that it is not known whether it is meant",
    max = limits::JSON_PATH_STEPS_MAX
)]
pub struct Undecided;

impl SelectionError {
    /// Returns the field of the selection that is wrong.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Filter(_) => "filter",
            Self::JsonPath(_) => "json_path",
            Self::TooLong { field, .. } => field,
            Self::TooMany(_) => "numbers",
        }
    }
}

impl Selection {
    /// Compiles it.
    ///
    /// # Errors
    ///
    /// Which part of it cannot be read.
    pub fn compile(&self) -> Result<Selector, SelectionError> {
        use crate::limits::{SELECTED_NUMBERS_MAX, SELECTION_TEXT_MAX};
        use jitney_queue::limits::DEAD_LETTER_TEXT_MAX;
        use jitney_rules::limits::SQL_LENGTH_MAX;
        let texts = [
            ("session_id", &self.session_id, SELECTION_TEXT_MAX),
            ("message_id", &self.message_id, SELECTION_TEXT_MAX),
            ("correlation_id", &self.correlation_id, SELECTION_TEXT_MAX),
            ("reason", &self.reason, DEAD_LETTER_TEXT_MAX),
            ("description", &self.description, DEAD_LETTER_TEXT_MAX),
            ("text", &self.text, SELECTION_TEXT_MAX),
            ("json_path", &self.json_path, SELECTION_TEXT_MAX),
            ("filter", &self.filter, SQL_LENGTH_MAX),
        ];
        for (field, text, max) in texts {
            let length = text.as_ref().map_or(0, |text| text.chars().count());
            if max < length {
                return Err(SelectionError::TooLong { field, length, max });
            }
        }
        if SELECTED_NUMBERS_MAX < self.numbers.len() {
            return Err(SelectionError::TooMany(self.numbers.len()));
        }
        let mut numbers: Vec<_> = self
            .numbers
            .iter()
            .copied()
            .map(jitney_base::ids::SequenceNumber)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let filter = self.filter.as_deref().map(SqlFilter::parse).transpose();
        let json_path = self.json_path.as_deref().map(JsonPath::parse).transpose();
        Ok(Selector {
            conditions: Conditions {
                states: self.states.clone(),
                numbers,
                message_session: self.session_id.clone(),
                enqueued_from: self.enqueued_from,
                enqueued_before: self.enqueued_before,
                due_from: self.scheduled_from,
                due_before: self.scheduled_before,
            },
            message_id: self.message_id.clone(),
            correlation_id: self.correlation_id.clone(),
            reason: self.reason.clone(),
            without_reason: self.without_reason,
            description: self.description.clone(),
            without_description: self.without_description,
            filter: filter.map_err(|error| SelectionError::Filter(error.to_string()))?,
            text: self.text.clone(),
            json_path: json_path.map_err(|error| SelectionError::JsonPath(error.to_string()))?,
        })
    }
}

impl Selector {
    /// Returns whether a message's bytes decide, too.
    #[must_use]
    pub const fn needs_bytes(&self) -> bool {
        self.message_id.is_some()
            || self.correlation_id.is_some()
            || self.reason.is_some()
            || self.without_reason
            || self.description.is_some()
            || self.without_description
            || self.filter.is_some()
            || self.text.is_some()
            || self.json_path.is_some()
    }

    /// Returns whether a message that meets [`Selector::conditions`] is selected. A filter that cannot be evaluated
    /// selects nothing.
    ///
    /// # Errors
    ///
    /// The `JSONPath` takes more than [`limits::JSON_PATH_STEPS_MAX`] steps.
    pub fn selects(
        &self,
        message: &Message,
        stamps: &Stamps,
        facts: &Facts,
        share: &mut Share,
    ) -> Result<bool, Undecided> {
        let unchanged = Amendments::default();
        let changed = stamps.amendments.as_deref().unwrap_or(&unchanged);
        let is_field = |wanted: &Option<String>, field| {
            wanted.as_ref().is_none_or(|wanted| {
                let value = changed.field_of(message, field);
                value.is_some_and(|value| shown(value) == *wanted)
            })
        };
        // A message without an id has the one that receivers see.
        let is_made_up = |wanted: &String| {
            let value = changed.field_of(message, Field::MessageId);
            let is_absent = value.is_none_or(|value| Scalar::decode(value) == Scalar::Null);
            is_absent && *wanted == stamps.default_message_id_text()
        };
        let is_told = |wanted: &Option<String>, without: bool, name| {
            let told = dead_letter_text(Some(changed), name);
            (wanted.is_none() || *wanted == told) && !(without && told.is_some())
        };
        let is_meant = (is_field(&self.message_id, Field::MessageId)
            || self.message_id.as_ref().is_some_and(is_made_up))
            && is_field(&self.correlation_id, Field::CorrelationId)
            && is_told(&self.reason, self.without_reason, DEAD_LETTER_REASON)
            && is_told(
                &self.description,
                self.without_description,
                DEAD_LETTER_DESCRIPTION,
            )
            && (self.filter.as_ref())
                .is_none_or(|filter| filter.is_true_of(message, changed, facts, share));
        Ok(is_meant && self.is_in_body(message, share)?)
    }

    fn is_in_body(&self, message: &Message, share: &mut Share) -> Result<bool, Undecided> {
        if self.text.is_none() && self.json_path.is_none() {
            return Ok(true);
        }
        let body = message.plain_body();
        let searched = body.len().min(limits::SEARCHED_BYTES_MAX);
        let is_whole = searched == body.len();
        let body = body.get(..searched).unwrap_or_default();
        // Reading a byte takes about a step.
        share.spend(u64::try_from(body.len()).unwrap_or(u64::MAX));
        let has_text = |text: &String| String::from_utf8_lossy(body).contains(text.as_str());
        if !self.text.as_ref().is_none_or(has_text) {
            return Ok(false);
        }
        let Some(path) = &self.json_path else {
            return Ok(true);
        };
        if !is_whole {
            return Ok(false);
        }
        let Ok(document) = Document::read(body) else {
            return Ok(false);
        };
        let mut left = limits::JSON_PATH_STEPS_MAX;
        let found = path.finds(&document, &mut left);
        share.spend(limits::JSON_PATH_STEPS_MAX - left);
        found.map_err(|TooSlow| Undecided)
    }
}

/// Returns the reason or the description that a message was dead-lettered with, by the name of its property; none if it is
/// empty. Groups of dead letters and selections have the same: a property of its sender is none.
#[must_use]
pub fn dead_letter_text(changed: Option<&Amendments>, name: &str) -> Option<String> {
    let text = changed.and_then(|changed| changed.string(name));
    text.filter(|text| !text.is_empty()).map(ToOwned::to_owned)
}

/// Returns a simple value as a person writes it.
fn shown(value: &[u8]) -> String {
    match Scalar::decode(value) {
        Scalar::Text(text) => text.into_owned(),
        Scalar::Long(number) => number.to_string(),
        Scalar::Ulong(number) => number.to_string(),
        Scalar::Uuid(bytes) => hyphenated(bytes),
        Scalar::Boolean(_)
        | Scalar::Double(_)
        | Scalar::Duration(_)
        | Scalar::Null
        | Scalar::Opaque(_)
        | Scalar::Timestamp(_) => String::new(),
    }
}
