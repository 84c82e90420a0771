//! Actions: what a rule changes in its copy of a message (`rules.md#actions`).

use super::Facts;
use super::evaluate::{EvaluationError, Expression, Property, View, evaluate_alone, kind, text};
use super::parser::Parser;
use super::sql::{Parameters, SqlError};
use super::work::Share;
use crate::limits;
use jitney_base::time::TICKS_PER_MILLI;
use jitney_message::{Amendments, Field, Message, Part, Scalar, Setting, same_name};

/// Statements that change a copy, compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    text: String,
    parameters: Parameters,
    statements: Vec<Statement>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Statement {
    Remove(ActionTarget),
    Set(ActionTarget, Expression),
}

/// The property that a statement changes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ActionTarget {
    Field(Field),
    Setting(Setting),
    User(String),
}

/// Bytes of changes that are put into a copy in one step.
const KEPT_PER_STEP: usize = 8;

impl Action {
    /// Compiles statements without parameters.
    ///
    /// # Errors
    ///
    /// [`SqlError`] names the fault and its position.
    pub fn parse(text: &str) -> Result<Self, SqlError> {
        Self::parse_with(text, Parameters::new())
    }

    /// Compiles statements.
    ///
    /// # Errors
    ///
    /// [`SqlError`] names the fault and its position.
    pub fn parse_with(text: &str, parameters: Parameters) -> Result<Self, SqlError> {
        let statements = Parser::new(text, &parameters)?.statements()?;
        Ok(Self {
            text: text.to_owned(),
            parameters,
            statements,
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

    /// Returns the changes of a message with those that the statements make. The steps are taken from a share.
    ///
    /// # Errors
    ///
    /// A sentence that says why a statement cannot be carried out.
    pub fn changes(
        &self,
        message: &Message,
        changed: &Amendments,
        facts: &Facts,
        share: &mut Share,
    ) -> Result<Amendments, String> {
        let changes = evaluate_alone(message, changed, facts, share, |view| self.apply(view));
        changes.map_err(|error| error.to_string())
    }

    /// Returns the changes that the statements make to a message. Each statement sees the changes
    /// before it.
    pub(super) fn apply(&self, view: &View<'_>) -> Result<Amendments, EvaluationError> {
        let mut changes = view.changed.clone();
        for statement in &self.statements {
            let changed = &changes;
            let part = Part::ApplicationProperties;
            view.meter.charge_search(view.message, changed, part)?;
            match statement {
                Statement::Remove(target) => remove(&mut changes, view.message, target),
                Statement::Set(target, expression) => {
                    let now = View {
                        changed: &changes,
                        ..*view
                    };
                    let change = Change::of(&now, target, expression)?;
                    change.make(&mut changes);
                }
            }
        }
        view.meter.charge_bytes(changes.size(), KEPT_PER_STEP)?;
        if limits::AMENDMENTS_BYTES_MAX < changes.size() {
            return Err(EvaluationError::TooLong(
                "the property that the action sets",
                limits::AMENDMENTS_BYTES_MAX,
            ));
        }
        Ok(changes)
    }
}

/// The result of a `SET`.
enum Change {
    Field(Field, Option<String>),
    /// With its encoded value.
    Setting(Setting, Vec<u8>),
    /// The name as it is spelled in the message, and the encoded value.
    User(String, Vec<u8>),
}

impl Change {
    fn of(
        view: &View<'_>,
        target: &ActionTarget,
        expression: &Expression,
    ) -> Result<Self, EvaluationError> {
        let value = view.value(expression)?;
        match target {
            ActionTarget::Field(field) => {
                if value == Scalar::Null {
                    return Ok(Self::Field(*field, None));
                }
                let text = text(&value)
                    .ok_or_else(|| EvaluationError::NoText(kind(&value), field.name()))?;
                let is_id = matches!(field, Field::MessageId | Field::SessionId);
                if is_id && limits::MESSAGE_ID_LENGTH_MAX < text.chars().count() {
                    return Err(EvaluationError::TooLong(
                        field.name(),
                        limits::MESSAGE_ID_LENGTH_MAX,
                    ));
                }
                Ok(Self::Field(*field, Some(text)))
            }
            ActionTarget::Setting(setting) => {
                Ok(Self::Setting(*setting, encoded(*setting, &value)?))
            }
            ActionTarget::User(name) => {
                let mut encoded = Vec::new();
                let found = |name: &str| view.changed.property_of(view.message, name);
                let copied = if let Expression::Property(Property::User(other)) = expression {
                    found(other)
                } else {
                    None
                };
                match (found(name), copied) {
                    (Some((_, before)), _) => value.encode_like(before, &mut encoded),
                    // In the type that it has there.
                    (None, Some((_, copied))) => encoded.extend_from_slice(copied),
                    (None, None) => value.encode(&mut encoded),
                }
                let spelled = found(name).map_or(name.as_str(), |(spelled, _)| spelled);
                Ok(Self::User(spelled.to_owned(), encoded))
            }
        }
    }

    fn make(self, changes: &mut Amendments) {
        match self {
            Self::Field(field, text) => changes.set_field(field, text.as_deref()),
            Self::Setting(setting, encoded) => changes.set_setting(setting, encoded),
            Self::User(name, encoded) => changes.set_encoded(&name, encoded),
        }
    }
}

/// The constructor of null, and all of it.
const NULL: u8 = 0x40;

/// Encodes what a statement sets a setting to. Texts are read as what they are for.
fn encoded(setting: Setting, value: &Scalar<'_>) -> Result<Vec<u8>, EvaluationError> {
    let mut out = Vec::new();
    if *value == Scalar::Null {
        return Ok(vec![NULL]);
    }
    let wrong = |wanted| EvaluationError::NoSetting(kind(value), wanted);
    match setting {
        Setting::PartitionKey | Setting::ViaPartitionKey => {
            let text = text(value).ok_or_else(|| wrong("a text"))?;
            if limits::MESSAGE_ID_LENGTH_MAX < text.chars().count() {
                let max = limits::MESSAGE_ID_LENGTH_MAX;
                return Err(EvaluationError::TooLong(setting.name(), max));
            }
            Scalar::Text(text.into()).encode(&mut out);
        }
        Setting::TimeToLive => {
            let ticks = match value {
                Scalar::Duration(ticks) => Some(*ticks),
                Scalar::Text(text) => span(text),
                Scalar::Boolean(_)
                | Scalar::Double(_)
                | Scalar::Long(_)
                | Scalar::Ulong(_)
                | Scalar::Null
                | Scalar::Opaque(_)
                | Scalar::Uuid(_)
                | Scalar::Timestamp(_) => None,
            };
            let ticks = ticks.filter(|ticks| 0 <= *ticks);
            let ticks = ticks.ok_or_else(|| wrong("a span of time, such as '0:2:0'"))?;
            out.push(0x81);
            out.extend_from_slice(&(ticks / TICKS_PER_MILLI).to_be_bytes());
        }
        Setting::ScheduledEnqueueTime => {
            let millis = match value {
                Scalar::Timestamp(ticks) => Some(ticks.div_euclid(TICKS_PER_MILLI)),
                Scalar::Text(text) => {
                    let at = text.parse::<jiff::Timestamp>().ok();
                    at.map(jiff::Timestamp::as_millisecond)
                }
                Scalar::Boolean(_)
                | Scalar::Double(_)
                | Scalar::Long(_)
                | Scalar::Ulong(_)
                | Scalar::Null
                | Scalar::Opaque(_)
                | Scalar::Uuid(_)
                | Scalar::Duration(_) => None,
            };
            let millis = millis.ok_or_else(|| wrong("a time, such as '2030-01-31T12:00:00Z'"))?;
            out.push(0x83);
            out.extend_from_slice(&millis.to_be_bytes());
        }
    }
    Ok(out)
}

/// Reads a span of time as .NET writes it, `[d.]hh:mm[:ss[.fffffff]]`; in units of 100 ns.
fn span(text: &str) -> Option<i64> {
    const TICKS_PER_SECOND: i64 = 1_000 * TICKS_PER_MILLI;
    let number = |text: &str, most: i64| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<i64>().ok().filter(|_| digits);
        number.filter(|number: &i64| *number <= most)
    };
    let (hours, rest) = text.trim().split_once(':')?;
    let (days, hours) = match hours.split_once('.') {
        Some((days, hours)) => (number(days, i64::from(i32::MAX))?, hours),
        None => (0, hours),
    };
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let ticks = number(fraction, 9_999_999).filter(|_| fraction.len() <= 7)?;
    let ticks = ticks * 10_i64.pow(7 - u32::try_from(fraction.len()).ok()?);
    let hours = days * 24 + number(hours, 23)?;
    let seconds = (hours * 60 + number(minutes, 59)?) * 60 + number(seconds, 59)?;
    seconds.checked_mul(TICKS_PER_SECOND)?.checked_add(ticks)
}

fn remove(changes: &mut Amendments, message: &Message, target: &ActionTarget) {
    match target {
        ActionTarget::Field(field) => changes.set_field(*field, None),
        ActionTarget::Setting(setting) => changes.set_setting(*setting, vec![NULL]),
        ActionTarget::User(name) => {
            let names = message.application_properties().map(|(name, _)| name);
            let names = names.filter(|found| same_name(found, name));
            for found in names {
                changes.remove(found);
            }
            while let Some((found, _)) = changes.property_of(message, name) {
                let found = found.to_owned();
                changes.remove(&found);
            }
        }
    }
}
