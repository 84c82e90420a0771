//! Why a filter takes a message, or does not: the value of each part of its condition.

use std::fmt;

use super::evaluate::{
    Arithmetic, Comparison, EvaluationError, Expression, Property, Sign, View, evaluate_alone,
};
use super::system::hyphenated;
use super::work::Share;
use super::{CorrelationFilter, Facts, Filter};
use crate::limits;
use jitney_message::{Amendments, Message, Scalar};

/// The value of a condition, or of a part of one, for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// A value that it needs is absent, or its values do not compare. A filter that is unknown does not take the message.
    Unknown,
    /// It cannot be evaluated, for this reason. A filter that cannot be evaluated does not take the message.
    Failed(String),
}

/// A condition, and its value for a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The condition as SQL; the short form of its parts is not that of its author.
    pub text: String,
    /// Its value for the message.
    pub truth: Truth,
    /// The conditions that `AND`, `OR` or `NOT` makes it of. All are evaluated, also those that the broker leaves out
    /// because those before them decide.
    pub parts: Vec<Self>,
    /// The properties that a condition without parts reads, with their values; `None` for those that are absent. Texts and
    /// binary values have their first [`limits::EXPLAINED_VALUE_LENGTH`] characters or bytes only.
    pub values: Vec<(String, Option<Scalar<'static>>)>,
}

impl Filter {
    /// Explains whether it takes a message. The steps are taken from a share.
    #[must_use]
    pub fn explain(
        &self,
        message: &Message,
        changed: &Amendments,
        facts: &Facts,
        share: &mut Share,
    ) -> Explanation {
        let always = |text: &str, truth| Explanation {
            text: text.to_owned(),
            truth,
            parts: Vec::new(),
            values: Vec::new(),
        };
        match self {
            Self::True => always("TRUE", Truth::True),
            Self::False => always("FALSE", Truth::False),
            Self::Sql(filter) => {
                let mut explained = evaluate_alone(message, changed, facts, share, |view| {
                    view.explain(filter.condition())
                });
                filter.text().clone_into(&mut explained.text);
                explained
            }
            Self::Correlation(filter) => evaluate_alone(message, changed, facts, share, |view| {
                view.explain_correlation(filter)
            }),
        }
    }
}

impl<'a> View<'a> {
    fn explain(&self, condition: &'a Expression) -> Explanation {
        let truth = self.truth_for_reader(condition);
        let mut parts = Vec::new();
        let mut values = Vec::new();
        match condition {
            Expression::And(_) | Expression::Or(_) => {
                let mut conditions = Vec::new();
                chain(condition, condition, &mut conditions);
                parts.extend(conditions.into_iter().map(|part| self.explain(part)));
            }
            Expression::Not(inner) => parts.push(self.explain(inner)),
            Expression::Arithmetic(..)
            | Expression::Compare(..)
            | Expression::Constant(_)
            | Expression::Exists(_)
            | Expression::In { .. }
            | Expression::IsNull { .. }
            | Expression::Like { .. }
            | Expression::Missing(_)
            | Expression::NewId
            | Expression::Property(_)
            | Expression::Sign(..) => self.read_properties(condition, &mut values),
        }
        Explanation {
            text: condition.to_string(),
            truth,
            parts,
            values,
        }
    }

    fn truth_for_reader(&self, condition: &'a Expression) -> Truth {
        match self.truth(condition) {
            Ok(Scalar::Boolean(true)) => Truth::True,
            Ok(Scalar::Boolean(false)) => Truth::False,
            Ok(_) => Truth::Unknown,
            // The author of the rule gave a value, and does not know that it did not come.
            Err(EvaluationError::Parameter(name)) => Truth::Failed(format!(
                "{name} has no value: no SDK sends parameters over AMQP"
            )),
            Err(error) => Truth::Failed(error.to_string()),
        }
    }

    /// Adds the properties of an expression with their values, each once.
    fn read_properties(
        &self,
        expression: &'a Expression,
        values: &mut Vec<(String, Option<Scalar<'static>>)>,
    ) {
        let mut add = |property: &'a Property| {
            let name = property.to_string();
            let known = values.iter().any(|(other, _)| *other == name);
            if !known && let Ok(value) = self.property(property) {
                values.push((name, value.map(shortened)));
            }
        };
        match expression {
            Expression::Exists(property)
            | Expression::IsNull { property, .. }
            | Expression::Property(property) => add(property),
            Expression::And(both)
            | Expression::Or(both)
            | Expression::Arithmetic(_, both)
            | Expression::Compare(_, both) => {
                self.read_properties(&both.0, values);
                self.read_properties(&both.1, values);
            }
            Expression::In { value, list, .. } => {
                self.read_properties(value, values);
                for item in list {
                    self.read_properties(item, values);
                }
            }
            Expression::Like { operands, .. } => {
                for operand in operands.all() {
                    self.read_properties(operand, values);
                }
            }
            Expression::Not(inner) | Expression::Sign(_, inner) => {
                self.read_properties(inner, values);
            }
            Expression::Constant(_) | Expression::Missing(_) | Expression::NewId => {}
        }
    }

    fn explain_correlation(&self, filter: &'a CorrelationFilter) -> Explanation {
        let parts = filter.tests().map(|(selector, wanted)| {
            let tested = selector.test(self, &wanted);
            let name = selector.to_string();
            let (truth, values) = match tested {
                Ok((is_same, value)) => {
                    let truth = if is_same { Truth::True } else { Truth::False };
                    (truth, vec![(name.clone(), value.map(shortened))])
                }
                Err(error) => (Truth::Failed(error.to_string()), Vec::new()),
            };
            Explanation {
                text: format!("{name} = {}", Literal(&wanted)),
                truth,
                parts: Vec::new(),
                values,
            }
        });
        let parts: Vec<Explanation> = parts.collect();
        let truth = match filter.matches(self) {
            Ok(true) => Truth::True,
            Ok(false) => Truth::False,
            Err(error) => Truth::Failed(error.to_string()),
        };
        let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        Explanation {
            text: texts.join(" AND "),
            truth,
            parts,
            values: Vec::new(),
        }
    }
}

/// Returns the beginning of a value: many conditions may read a long one.
fn shortened(value: Scalar<'_>) -> Scalar<'static> {
    let most = limits::EXPLAINED_VALUE_LENGTH;
    match value {
        Scalar::Text(text) if most < text.len() => {
            let shown: String = text.chars().take(most).collect();
            let mark = if shown.len() < text.len() { "…" } else { "" };
            Scalar::Text(format!("{shown}{mark}").into())
        }
        Scalar::Opaque(bytes) if most < bytes.len() => {
            let shown = bytes.get(..most).unwrap_or_default().to_vec();
            Scalar::Opaque(shown.into())
        }
        value @ (Scalar::Boolean(_)
        | Scalar::Double(_)
        | Scalar::Duration(_)
        | Scalar::Long(_)
        | Scalar::Null
        | Scalar::Opaque(_)
        | Scalar::Text(_)
        | Scalar::Timestamp(_)
        | Scalar::Ulong(_)
        | Scalar::Uuid(_)) => value.into_owned(),
    }
}

/// Collects the conditions of a chain of `AND`, or one of `OR`, in their order.
fn chain<'e>(first: &Expression, condition: &'e Expression, conditions: &mut Vec<&'e Expression>) {
    match (first, condition) {
        (Expression::And(_), Expression::And(both)) | (Expression::Or(_), Expression::Or(both)) => {
            chain(first, &both.0, conditions);
            chain(first, &both.1, conditions);
        }
        _ => conditions.push(condition),
    }
}

/// A value as SQL writes it.
struct Literal<'a>(&'a Scalar<'a>);

impl fmt::Display for Literal<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Scalar::Boolean(true) => out.write_str("TRUE"),
            Scalar::Boolean(false) => out.write_str("FALSE"),
            Scalar::Double(value) => write!(out, "{value:?}"),
            Scalar::Duration(ticks) => write!(out, "<{ticks} ticks>"),
            Scalar::Long(value) => write!(out, "{value}"),
            Scalar::Null => out.write_str("NULL"),
            Scalar::Opaque(_) => out.write_str("<binary or compound value>"),
            Scalar::Text(text) => write!(out, "'{}'", text.replace('\'', "''")),
            Scalar::Timestamp(ticks) => write!(out, "<time {ticks} ticks>"),
            Scalar::Ulong(value) => write!(out, "{value}"),
            Scalar::Uuid(uuid) => write!(out, "'{}'", hyphenated(*uuid)),
        }
    }
}

/// An operand, in parentheses if it is made of others.
struct Operand<'a>(&'a Expression);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expression::Constant(_)
            | Expression::Exists(_)
            | Expression::Missing(_)
            | Expression::NewId
            | Expression::Property(_) => self.0.fmt(out),
            Expression::And(_)
            | Expression::Arithmetic(..)
            | Expression::Compare(..)
            | Expression::In { .. }
            | Expression::IsNull { .. }
            | Expression::Like { .. }
            | Expression::Not(_)
            | Expression::Or(_)
            | Expression::Sign(..) => write!(out, "({})", self.0),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        match self {
            Self::And(_) | Self::Or(_) => {
                let between = if matches!(self, Self::And(_)) {
                    " AND "
                } else {
                    " OR "
                };
                let mut conditions = Vec::new();
                chain(self, self, &mut conditions);
                for (at, condition) in conditions.into_iter().enumerate() {
                    let before = if at == 0 { "" } else { between };
                    if matches!(condition, Self::And(_) | Self::Or(_)) {
                        write!(out, "{before}({condition})")?;
                    } else {
                        write!(out, "{before}{condition}")?;
                    }
                }
                Ok(())
            }
            Self::Arithmetic(operator, both) => {
                write!(out, "{} {operator} {}", Operand(&both.0), Operand(&both.1))
            }
            Self::Compare(operator, both) => {
                write!(out, "{} {operator} {}", Operand(&both.0), Operand(&both.1))
            }
            Self::Constant(value) => Literal(value).fmt(out),
            Self::Exists(property) => write!(out, "EXISTS({property})"),
            Self::In {
                negated,
                value,
                list,
            } => {
                write!(out, "{} {}IN (", Operand(value), not(negated))?;
                for (at, item) in list.iter().enumerate() {
                    let before = if at == 0 { "" } else { ", " };
                    write!(out, "{before}{item}")?;
                }
                out.write_str(")")
            }
            Self::IsNull { negated, property } => write!(out, "{property} IS {}NULL", not(negated)),
            Self::Like { negated, operands } => {
                let (value, pattern) = (Operand(&operands.value), Operand(&operands.pattern));
                write!(out, "{value} {}LIKE {pattern}", not(negated))?;
                match &operands.escape {
                    Some(escape) => write!(out, " ESCAPE {}", Operand(escape)),
                    None => Ok(()),
                }
            }
            Self::Missing(name) => out.write_str(name),
            Self::NewId => out.write_str("newid()"),
            Self::Not(inner) => write!(out, "NOT {}", Operand(inner)),
            Self::Property(property) => property.fmt(out),
            Self::Sign(sign, inner) => {
                let sign = match sign {
                    Sign::Minus => '-',
                    Sign::Plus => '+',
                };
                write!(out, "{sign}{}", Operand(inner))
            }
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Computed(name) => write!(out, "property({name})"),
            Self::System(system) => write!(out, "sys.{}", system.name()),
            Self::User(name) => write!(out, "{}", Name(name)),
        }
    }
}

/// The name of one of the sender's properties, in brackets if it needs them.
pub(super) struct Name<'a>(pub(super) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        let first = characters.next();
        let is_plain = first.is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|other| other.is_ascii_alphanumeric() || other == '_');
        if is_plain {
            out.write_str(self.0)
        } else {
            write!(out, "[{}]", self.0.replace(']', "]]"))
        }
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.symbol())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Equal => "=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::NotEqual => "<>",
        })
    }
}
