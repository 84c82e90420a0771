//! Expressions, and their values for a message.
//!
//! Logic has three values. The third, unknown, is null: the value of an absent property, or of a
//! comparison between types that do not compare.

use std::cell::RefCell;
use std::cmp::Ordering;

use super::Facts;
use super::compare::{equal, is_nan, order};
use super::like::is_like;
use super::system::{System, hyphenated};
use super::work::{Meter, Share};
use crate::limits;
use jitney_base::ids::Random;
use jitney_message::{Amendments, Message, Part, Scalar};

/// An expression, or a condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    And(Box<(Self, Self)>),
    Arithmetic(Arithmetic, Box<(Self, Self)>),
    Compare(Comparison, Box<(Self, Self)>),
    Constant(Scalar<'static>),
    Exists(Property),
    In {
        negated: bool,
        value: Box<Self>,
        list: Vec<Self>,
    },
    IsNull {
        negated: bool,
        property: Property,
    },
    Like {
        negated: bool,
        operands: Box<LikeOperands>,
    },
    /// A parameter that is not given.
    Missing(String),
    NewId,
    Not(Box<Self>),
    Or(Box<(Self, Self)>),
    Property(Property),
    Sign(Sign, Box<Self>),
}

impl Expression {
    /// Adds the parameters that are not given, each once.
    pub(super) fn missing_parameters<'e>(&'e self, names: &mut Vec<&'e str>) {
        match self {
            Self::Missing(name) => {
                if !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
            Self::And(both)
            | Self::Or(both)
            | Self::Arithmetic(_, both)
            | Self::Compare(_, both) => {
                both.0.missing_parameters(names);
                both.1.missing_parameters(names);
            }
            Self::In { value, list, .. } => {
                value.missing_parameters(names);
                for item in list {
                    item.missing_parameters(names);
                }
            }
            Self::Like { operands, .. } => {
                for operand in operands.all() {
                    operand.missing_parameters(names);
                }
            }
            Self::Not(inner) | Self::Sign(_, inner) => inner.missing_parameters(names),
            Self::Exists(property) | Self::IsNull { property, .. } | Self::Property(property) => {
                match property {
                    Property::Computed(name) => name.missing_parameters(names),
                    Property::System(_) | Property::User(_) => {}
                }
            }
            Self::Constant(_) | Self::NewId => {}
        }
    }
}

/// What LIKE compares.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LikeOperands {
    pub(super) value: Expression,
    pub(super) pattern: Expression,
    /// The escape character of the pattern.
    pub(super) escape: Option<Expression>,
}

impl LikeOperands {
    pub(super) fn all(&self) -> impl Iterator<Item = &Expression> {
        [&self.value, &self.pattern].into_iter().chain(&self.escape)
    }
}

/// The name of a property.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Property {
    /// An expression whose value is a property's name.
    Computed(Box<Expression>),
    System(System),
    User(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Divide,
    Multiply,
    Remainder,
    Subtract,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    NotEqual,
}

/// What joins two conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connective {
    /// One that is false decides.
    And,
    /// One that is true decides.
    Or,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Minus,
    Plus,
}

/// Why an expression has no value for a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EvaluationError {
    #[error("division by zero")]
    DivisionByZero,
    #[error("ESCAPE wants a text of one character")]
    Escape,
    #[error("the pattern of LIKE ends with its escape character")]
    EscapeAtEnd,
    #[error("{0} cannot have a sign")]
    NoSign(&'static str),
    #[error("{0} is no text, as {1} wants it")]
    NoText(&'static str, &'static str),
    #[error("{0} where {1} must be")]
    NoSetting(&'static str, &'static str),
    #[error("{0} where a condition must be")]
    NotBoolean(&'static str),
    #[error("the result does not fit into 64 bits")]
    Overflow,
    #[error("the parameter {0} has no value")]
    Parameter(String),
    #[error("there is no system property '{0}'")]
    System(String),
    #[error("{0} is longer than {1} characters")]
    TooLong(&'static str, usize),
    #[error("it takes more than the {0} steps that it may take for one message")]
    TooSlow(u64),
    #[error("{0} and {1} cannot be computed with '{2}'")]
    Unlike(&'static str, &'static str, &'static str),
}

/// A message, as an expression sees it.
pub(super) struct View<'a> {
    pub(super) message: &'a Message,
    /// The message's amendments so far.
    pub(super) changed: &'a Amendments,
    pub(super) facts: &'a Facts,
    /// The seed of `newid()`.
    pub(super) random: &'a RefCell<Random>,
    /// The meter of its evaluation.
    pub(super) meter: &'a Meter,
}

/// Evaluates one filter or action of a message, with the steps that one may take. They are taken from a share.
pub(super) fn evaluate_alone<T>(
    message: &Message,
    changed: &Amendments,
    facts: &Facts,
    share: &mut Share,
    evaluate: impl FnOnce(&View<'_>) -> T,
) -> T {
    let (random, meter) = (RefCell::new(Random::new(facts.seed)), Meter::default());
    meter.begin(limits::FILTER_STEPS_MAX);
    let result = evaluate(&View {
        message,
        changed,
        facts,
        random: &random,
        meter: &meter,
    });
    share.spend(meter.spent());
    result
}

/// Bytes of a text that are read, or compared with another, in one step.
const READ_PER_STEP: usize = 32;
/// Bytes of a text that are made in one step.
const MADE_PER_STEP: usize = 8;

impl<'a> View<'a> {
    /// Returns the value of an expression; a condition is true, false or null.
    pub(super) fn value(&self, expression: &'a Expression) -> Result<Scalar<'a>, EvaluationError> {
        self.meter.charge(1)?;
        match expression {
            Expression::And(both) => self.joined(Connective::And, &both.0, &both.1),
            Expression::Arithmetic(arithmetic, both) => {
                let result = arithmetic.compute(self.value(&both.0)?, self.value(&both.1)?);
                self.made(result)
            }
            Expression::Compare(comparison, both) => {
                let (a, b) = (self.value(&both.0)?, self.value(&both.1)?);
                self.compare(*comparison, &a, &b)
            }
            Expression::Constant(value) => Ok(value.borrowed()),
            Expression::Exists(property) => Ok(Scalar::Boolean(self.property(property)?.is_some())),
            Expression::In {
                negated: false,
                value,
                list,
            } => self.is_in(value, list),
            Expression::In {
                negated: true,
                value,
                list,
            } => negated(self.is_in(value, list)),
            Expression::IsNull { negated, property } => {
                let value = self.property(property)?.unwrap_or(Scalar::Null);
                Ok(Scalar::Boolean((value == Scalar::Null) != *negated))
            }
            Expression::Like {
                negated: false,
                operands,
            } => self.like(operands),
            Expression::Like {
                negated: true,
                operands,
            } => negated(self.like(operands)),
            Expression::Missing(name) => Err(EvaluationError::Parameter(name.clone())),
            Expression::NewId => Ok(Scalar::Uuid(self.new_id())),
            Expression::Not(inner) => negated(self.truth(inner)),
            Expression::Or(both) => self.joined(Connective::Or, &both.0, &both.1),
            Expression::Property(property) => Ok(self.property(property)?.unwrap_or(Scalar::Null)),
            Expression::Sign(sign, inner) => sign.apply(self.value(inner)?),
        }
    }

    /// Returns the value of a condition: true, false or null.
    pub(super) fn truth(&self, expression: &'a Expression) -> Result<Scalar<'a>, EvaluationError> {
        let value = self.value(expression)?;
        if matches!(value, Scalar::Boolean(_) | Scalar::Null) {
            Ok(value)
        } else {
            Err(EvaluationError::NotBoolean(kind(&value)))
        }
    }

    /// Returns the value of two conditions: the second is not evaluated if the first decides.
    fn joined(
        &self,
        connective: Connective,
        left: &'a Expression,
        right: &'a Expression,
    ) -> Result<Scalar<'a>, EvaluationError> {
        let deciding = connective == Connective::Or;
        let first = self.truth(left)?;
        if first == Scalar::Boolean(deciding) {
            return Ok(first);
        }
        let second = self.truth(right)?;
        if first == Scalar::Null && second != Scalar::Boolean(deciding) {
            return Ok(first);
        }
        Ok(second)
    }

    // The rest is not inlined: `value` calls itself, and long expressions need its frame often.

    /// Returns a value that was made, and counts the steps for it.
    #[inline(never)]
    fn made(
        &self,
        value: Result<Scalar<'a>, EvaluationError>,
    ) -> Result<Scalar<'a>, EvaluationError> {
        let value = value?;
        self.meter.charge_bytes(size(&value), MADE_PER_STEP)?;
        Ok(value)
    }

    /// Returns whether a comparison holds; null for unknown.
    #[inline(never)]
    fn compare(
        &self,
        comparison: Comparison,
        a: &Scalar<'_>,
        b: &Scalar<'_>,
    ) -> Result<Scalar<'a>, EvaluationError> {
        self.meter
            .charge_bytes(size(a).min(size(b)), READ_PER_STEP)?;
        Ok(truth_value(comparison.holds(a, b)))
    }

    #[inline(never)]
    fn is_in(
        &self,
        value: &'a Expression,
        list: &'a [Expression],
    ) -> Result<Scalar<'a>, EvaluationError> {
        let value = self.value(value)?;
        let mut found = Some(false);
        for item in list {
            let item = self.value(item)?;
            self.meter
                .charge_bytes(size(&value).min(size(&item)), READ_PER_STEP)?;
            match Comparison::Equal.holds(&value, &item) {
                Some(true) => return Ok(Scalar::Boolean(true)),
                Some(false) => {}
                None => found = None,
            }
        }
        Ok(truth_value(found))
    }

    #[inline(never)]
    fn like(&self, operands: &'a LikeOperands) -> Result<Scalar<'a>, EvaluationError> {
        let value = self.value(&operands.value)?;
        let pattern = self.value(&operands.pattern)?;
        let escape = match &operands.escape {
            None => None,
            Some(escape) => {
                let escape = self.value(escape)?;
                if matches!(escape, Scalar::Null) {
                    return Ok(Scalar::Null);
                }
                let Scalar::Text(text) = escape else {
                    return Err(EvaluationError::Escape);
                };
                Some(one_character(&text).ok_or(EvaluationError::Escape)?)
            }
        };
        let (Scalar::Text(value), Scalar::Text(pattern)) = (value, pattern) else {
            return Ok(Scalar::Null);
        };
        let is_like = is_like(self.meter, &value, &pattern, escape)?;
        Ok(Scalar::Boolean(is_like))
    }

    /// Returns the value of a property; `None` if it is not there.
    #[inline(never)]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a name is a text; any other value is an error"
    )]
    pub(super) fn property(
        &self,
        property: &'a Property,
    ) -> Result<Option<Scalar<'a>>, EvaluationError> {
        match property {
            Property::User(name) => self.user(name),
            Property::System(name) => self.system(*name),
            Property::Computed(name) => match self.value(name)? {
                Scalar::Null => Ok(None),
                Scalar::Text(name) => match name.split_once('.') {
                    Some((scope, name)) if scope.eq_ignore_ascii_case("sys") => {
                        let named = System::named(name);
                        self.system(named.ok_or_else(|| {
                            EvaluationError::System(name.chars().take(64).collect())
                        })?)
                    }
                    Some((scope, name)) if scope.eq_ignore_ascii_case("user") => self.user(name),
                    _ => self.user(&name),
                },
                other => Err(EvaluationError::NoText(kind(&other), "property()")),
            },
        }
    }

    /// Returns one of the message's properties that Service Bus knows.
    pub(super) fn system(&self, system: System) -> Result<Option<Scalar<'a>>, EvaluationError> {
        self.meter
            .charge_search(self.message, self.changed, system.part())?;
        let value = system.of(self.message, self.changed, self.facts);
        self.meter.charge_bytes(size(&value), READ_PER_STEP)?;
        Ok(Some(value).filter(|value| *value != Scalar::Null))
    }

    /// Returns one of the sender's own properties.
    pub(super) fn user(&self, name: &str) -> Result<Option<Scalar<'a>>, EvaluationError> {
        let part = Part::ApplicationProperties;
        self.meter.charge_search(self.message, self.changed, part)?;
        let found = self.changed.property_of(self.message, name);
        let value = found.map(|(_, value)| Scalar::decode(value));
        let bytes = value.as_ref().map_or(0, size);
        self.meter.charge_bytes(bytes, READ_PER_STEP)?;
        Ok(value)
    }

    /// Makes a random UUID [RFC 4122 §4.4].
    fn new_id(&self) -> [u8; 16] {
        let mut random = self.random.borrow_mut();
        let bits = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
        let versioned = bits & !(0xf << 76) | 0x4 << 76;
        (versioned & !(0x3 << 62) | 0x2 << 62).to_be_bytes()
    }
}

impl Comparison {
    /// Returns whether it holds; `None` for unknown.
    fn holds(self, a: &Scalar<'_>, b: &Scalar<'_>) -> Option<bool> {
        match self {
            Self::Equal => equal(a, b),
            Self::NotEqual => equal(a, b).map(|equal| !equal),
            _ if (is_nan(a) || is_nan(b)) && equal(a, b).is_some() => Some(false),
            Self::Greater => order(a, b).map(Ordering::is_gt),
            Self::GreaterOrEqual => order(a, b).map(Ordering::is_ge),
            Self::Less => order(a, b).map(Ordering::is_lt),
            Self::LessOrEqual => order(a, b).map(Ordering::is_le),
        }
    }
}

impl Sign {
    fn apply(self, value: Scalar<'_>) -> Result<Scalar<'_>, EvaluationError> {
        let fits = |value: Option<i64>| value.ok_or(EvaluationError::Overflow);
        match (self, value) {
            (_, Scalar::Null) => Ok(Scalar::Null),
            (
                Self::Plus,
                value @ (Scalar::Double(_)
                | Scalar::Duration(_)
                | Scalar::Long(_)
                | Scalar::Ulong(_)),
            ) => Ok(value),
            (Self::Minus, Scalar::Double(value)) => Ok(Scalar::Double(-value)),
            (Self::Minus, Scalar::Duration(value)) => {
                fits(value.checked_neg()).map(Scalar::Duration)
            }
            (Self::Minus, Scalar::Long(value)) => fits(value.checked_neg()).map(Scalar::Long),
            (Self::Minus, Scalar::Ulong(value)) => integer(-i128::from(value)),
            (_, other) => Err(EvaluationError::NoSign(kind(&other))),
        }
    }
}

impl Arithmetic {
    #[inline(never)]
    fn compute<'a>(self, a: Scalar<'a>, b: Scalar<'a>) -> Result<Scalar<'a>, EvaluationError> {
        let ticks = |result: Option<i64>| result.ok_or(EvaluationError::Overflow);
        if a == Scalar::Null || b == Scalar::Null {
            return Ok(Scalar::Null);
        }
        if let (Scalar::Long(a), Scalar::Long(b)) = (&a, &b) {
            let result = self.integers((*a).into(), (*b).into())?;
            let result = i64::try_from(result).map_err(|_| EvaluationError::Overflow)?;
            return Ok(Scalar::Long(result));
        }
        if let (Some(a), Some(b)) = (a.integer(), b.integer()) {
            return integer(self.integers(a, b)?);
        }
        if let (Some(a), Some(b)) = (number(&a), number(&b)) {
            return Ok(Scalar::Double(self.doubles(a, b)));
        }
        match (self, &a, &b) {
            (Self::Add, Scalar::Text(_), _) | (Self::Add, _, Scalar::Text(_)) => {
                match (text(&a), text(&b)) {
                    (Some(a), Some(b)) if limits::SQL_TEXT_BYTES_MAX < a.len() + b.len() => {
                        Err(EvaluationError::TooLong(
                            "the sum of two texts",
                            limits::SQL_TEXT_BYTES_MAX,
                        ))
                    }
                    (Some(a), Some(b)) => Ok(Scalar::Text((a + &b).into())),
                    _ => Err(self.unlike(&a, &b)),
                }
            }
            (Self::Add, Scalar::Duration(a), Scalar::Duration(b)) => {
                ticks(a.checked_add(*b)).map(Scalar::Duration)
            }
            (Self::Subtract, Scalar::Duration(a), Scalar::Duration(b))
            | (Self::Subtract, Scalar::Timestamp(a), Scalar::Timestamp(b)) => {
                ticks(a.checked_sub(*b)).map(Scalar::Duration)
            }
            (Self::Add, Scalar::Timestamp(a), Scalar::Duration(b))
            | (Self::Add, Scalar::Duration(b), Scalar::Timestamp(a)) => {
                ticks(a.checked_add(*b)).map(Scalar::Timestamp)
            }
            (Self::Subtract, Scalar::Timestamp(a), Scalar::Duration(b)) => {
                ticks(a.checked_sub(*b)).map(Scalar::Timestamp)
            }
            _ => Err(self.unlike(&a, &b)),
        }
    }

    fn integers(self, a: i128, b: i128) -> Result<i128, EvaluationError> {
        let result = match self {
            Self::Add => a.checked_add(b),
            Self::Subtract => a.checked_sub(b),
            Self::Multiply => a.checked_mul(b),
            Self::Divide | Self::Remainder if b == 0 => {
                return Err(EvaluationError::DivisionByZero);
            }
            Self::Divide => a.checked_div(b),
            Self::Remainder => a.checked_rem(b),
        };
        result.ok_or(EvaluationError::Overflow)
    }

    fn doubles(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide => a / b,
            Self::Remainder => a % b,
        }
    }

    fn unlike(self, a: &Scalar<'_>, b: &Scalar<'_>) -> EvaluationError {
        EvaluationError::Unlike(kind(a), kind(b), self.symbol())
    }

    /// Returns the operator as SQL writes it.
    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Divide => "/",
            Self::Multiply => "*",
            Self::Remainder => "%",
            Self::Subtract => "-",
        }
    }
}

/// Returns a value as a text, as C#'s `+` does; `None` for values without such a form.
pub(super) fn text(value: &Scalar<'_>) -> Option<String> {
    match value {
        Scalar::Boolean(true) => Some("True".to_owned()),
        Scalar::Boolean(false) => Some("False".to_owned()),
        Scalar::Double(value) => Some(value.to_string()),
        Scalar::Long(value) => Some(value.to_string()),
        Scalar::Text(text) => Some(text.clone().into_owned()),
        Scalar::Ulong(value) => Some(value.to_string()),
        Scalar::Uuid(uuid) => Some(hyphenated(*uuid)),
        Scalar::Duration(_) | Scalar::Null | Scalar::Opaque(_) | Scalar::Timestamp(_) => None,
    }
}

/// Returns the name of a value's type in an error.
pub(super) const fn kind(value: &Scalar<'_>) -> &'static str {
    match value {
        Scalar::Boolean(_) => "a boolean",
        Scalar::Double(_) => "a double",
        Scalar::Duration(_) => "a time span",
        Scalar::Long(_) | Scalar::Ulong(_) => "an integer",
        Scalar::Null => "null",
        Scalar::Opaque(_) => "a binary or compound value",
        Scalar::Text(_) => "a text",
        Scalar::Timestamp(_) => "a time",
        Scalar::Uuid(_) => "a UUID",
    }
}

/// Returns how many bytes a value has that may have many.
fn size(value: &Scalar<'_>) -> usize {
    match value {
        Scalar::Opaque(bytes) => bytes.len(),
        Scalar::Text(text) => text.len(),
        Scalar::Boolean(_)
        | Scalar::Double(_)
        | Scalar::Duration(_)
        | Scalar::Long(_)
        | Scalar::Null
        | Scalar::Timestamp(_)
        | Scalar::Ulong(_)
        | Scalar::Uuid(_) => 0,
    }
}

fn truth_value(truth: Option<bool>) -> Scalar<'static> {
    truth.map_or(Scalar::Null, Scalar::Boolean)
}

/// Returns the opposite of a condition's value. Not inlined, because the frame of [`View::value`] is to be small.
#[inline(never)]
fn negated(truth: Result<Scalar<'_>, EvaluationError>) -> Result<Scalar<'_>, EvaluationError> {
    if let Ok(Scalar::Boolean(value)) = truth {
        Ok(Scalar::Boolean(!value))
    } else {
        truth
    }
}

fn integer<'a>(value: i128) -> Result<Scalar<'a>, EvaluationError> {
    Scalar::from_integer(value).ok_or(EvaluationError::Overflow)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "C# computes an integer and a double as doubles"
)]
fn number(value: &Scalar<'_>) -> Option<f64> {
    if let Scalar::Double(value) = value {
        Some(*value)
    } else {
        value.integer().map(|value| value as f64)
    }
}

fn one_character(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}
