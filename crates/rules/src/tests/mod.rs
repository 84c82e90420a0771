//! The rule language by examples and laws, and what a publish costs.

mod actions;
mod cost;
mod examples;
mod explanations;
mod laws;
mod sets;
mod work;

use std::cell::RefCell;

use super::evaluate::View;
use super::work::Meter;
use super::*;
use crate::limits;
use jitney_base::ids::Random;
use jitney_message::{Amendments, Field, Message, Scalar};

/// A message in the making.
#[derive(Debug, Clone, Default)]
struct Sent {
    fields: Vec<(Field, Scalar<'static>)>,
    properties: Vec<(String, Scalar<'static>)>,
    annotations: Vec<(String, Scalar<'static>)>,
}

impl Sent {
    fn field(mut self, field: Field, value: &str) -> Self {
        self.fields
            .push((field, Scalar::Text(value.to_owned().into())));
        self
    }

    fn property(mut self, name: &str, value: impl Into<Given>) -> Self {
        self.properties.push((name.to_owned(), value.into().0));
        self
    }

    fn message(&self) -> Message {
        let mut section = vec![vec![0x40]; 13];
        for (field, value) in &self.fields {
            section[place(*field)] = encoded(value);
        }
        let mut bytes = vec![0x00, 0x53, 0x72];
        bytes.extend(compound(0xd1, &map(&self.annotations, 0xa3)));
        bytes.extend([0x00, 0x53, 0x73]);
        bytes.extend(compound(0xd0, &section));
        bytes.extend([0x00, 0x53, 0x74]);
        bytes.extend(compound(0xd1, &map(&self.properties, 0xa1)));
        bytes.extend([0x00, 0x53, 0x75, 0xa0, 0x02, b'h', b'i']);
        Message::parse(bytes.into()).unwrap()
    }
}

/// A value of a property, of a Rust type.
struct Given(Scalar<'static>);

impl From<&str> for Given {
    fn from(text: &str) -> Self {
        Self(Scalar::Text(text.to_owned().into()))
    }
}

impl From<i64> for Given {
    fn from(value: i64) -> Self {
        Self(Scalar::Long(value))
    }
}

impl From<bool> for Given {
    fn from(value: bool) -> Self {
        Self(Scalar::Boolean(value))
    }
}

impl From<f64> for Given {
    fn from(value: f64) -> Self {
        Self(Scalar::Double(value))
    }
}

impl From<Scalar<'static>> for Given {
    fn from(value: Scalar<'static>) -> Self {
        Self(value)
    }
}

fn place(field: Field) -> usize {
    match field {
        Field::MessageId => 0,
        Field::To => 2,
        Field::Label => 3,
        Field::ReplyTo => 4,
        Field::CorrelationId => 5,
        Field::ContentType => 6,
        Field::SessionId => 10,
        Field::ReplyToSessionId => 12,
    }
}

fn encoded(value: &Scalar<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

fn map(entries: &[(String, Scalar<'static>)], key: u8) -> Vec<Vec<u8>> {
    let entries = entries.iter();
    let entries = entries.flat_map(|(name, value)| {
        let length = u8::try_from(name.len()).unwrap();
        let key = [&[key, length], name.as_bytes()].concat();
        [key, encoded(value)]
    });
    entries.collect()
}

fn compound(code: u8, items: &[Vec<u8>]) -> Vec<u8> {
    let body = items.concat();
    let size = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    let count = u32::try_from(items.len()).unwrap().to_be_bytes();
    [&[code][..], &size, &count, &body].concat()
}

fn facts() -> Facts {
    Facts {
        sequence_number: SequenceNumber(42),
        enqueued_time: Timestamp::from_millis(1_700_000_000_000),
        time_to_live: Millis::from_secs(60),
        seed: 7,
    }
}

impl RuleSet {
    /// Replaces `out` by the copies that subscriptions get of a message, as a topic does
    /// it when there is time enough.
    fn matches(&self, message: &Message, facts: &Facts, out: &mut Vec<Match>) {
        self.matches_amended(message, &Amendments::default(), facts, out);
    }

    /// Does so for a message that has been changed before.
    fn matches_amended(
        &self,
        message: &Message,
        changed: &Amendments,
        facts: &Facts,
        out: &mut Vec<Match>,
    ) {
        let (mut evaluation, mut share) = (Evaluation::default(), Share::default());
        self.begin(&mut evaluation, message, changed, &mut share);
        while self.evaluate(&mut evaluation, message, changed, facts, &mut share)
            == Progress::Paused
        {
            share = Share::default();
        }
        self.copies(&mut evaluation, message, changed, facts, out);
    }
}

/// The value of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Truth {
    True,
    False,
    Unknown,
    EvaluationError(String),
}

fn truth_with(text: &str, parameters: Parameters, message: &Message) -> Truth {
    let matches = |text: &str| {
        let filter = SqlFilter::parse_with(text, parameters.clone());
        let filter = filter.unwrap_or_else(|error| panic!("{text}: {error}"));
        let meter = Meter::default();
        meter.begin(limits::FILTER_STEPS_MAX);
        filter.matches(&View {
            message,
            changed: &Amendments::default(),
            facts: &facts(),
            random: &RefCell::new(Random::new(1)),
            meter: &meter,
        })
    };
    match (matches(text), matches(&format!("NOT ({text})"))) {
        (Ok(true), Ok(false)) => Truth::True,
        (Ok(false), Ok(true)) => Truth::False,
        (Ok(false), Ok(false)) => Truth::Unknown,
        (Err(failure), Err(_)) => Truth::EvaluationError(failure.to_string()),
        other => panic!("{text} and its negation are {other:?}"),
    }
}

fn truth(text: &str, message: &Message) -> Truth {
    truth_with(text, Parameters::new(), message)
}

fn rule(name: &str, filter: Filter) -> Rule {
    Rule {
        name: name.to_owned(),
        filter,
        action: None,
        created_at: Timestamp::from_millis(1),
    }
}

fn sql(text: &str) -> Filter {
    Filter::Sql(SqlFilter::parse(text).unwrap())
}

fn correlation(fields: CorrelationFields) -> Filter {
    Filter::Correlation(CorrelationFilter::new(fields).unwrap())
}

fn wants(name: &str, value: impl Into<Given>) -> Filter {
    correlation(CorrelationFields {
        properties: vec![(name.to_owned(), value.into().0.into())],
        ..CorrelationFields::default()
    })
}
