//! All rules of a topic, and which of them a message matches.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::compare::whole;
use super::correlation::{CorrelationFilter, Selector};
use super::evaluate::{EvaluationError, View};
use super::system::identity;
use super::work::{Meter, Share, StepBudget};
use super::{Facts, Filter, Rule};
use crate::limits;
use jitney_base::ids::Random;
use jitney_base::memory::{Held, Memory, Purpose};
use jitney_base::time::Timestamp;
use jitney_message::{Amendments, Field, Message, Part, Scalar};

/// The copies of a message that one subscription gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// The subscription.
    pub subscription: u32,
    /// Its copies (`rules.md#copies`), each with its amendments: at most one plain one, which comes
    /// first, and one for each matching rule with an action.
    pub copies: Vec<Option<Arc<Amendments>>>,
    /// Why the first of its rules that could not be evaluated could not be; it counts as one that
    /// does not match.
    pub error: Option<String>,
}

/// The search for the rules that one message matches. It is made once, and begun again for each
/// message, for its memory.
#[derive(Debug, Default)]
pub struct Evaluation {
    /// The rules that may match.
    candidates: Vec<RuleKey>,
    /// The place of the first that has not been looked at.
    next: usize,
    /// Those that match, and those that cannot be evaluated.
    found: Vec<(RuleKey, Option<EvaluationError>)>,
    allowance: StepBudget,
}

/// How far an evaluation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All rules have been looked at.
    Done,
    /// Others have their turn first.
    Paused,
}

/// Why a rule cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleRefused {
    /// Its name is empty, too long, or has other characters.
    #[error(
        "the name of a rule has 1 to {} characters: letters, digits and any of . - _",
        jitney_base::limits::PART_NAME_LENGTH_MAX
    )]
    Name,
    /// The subscription has a rule of this name.
    #[error("the subscription already has a rule of this name")]
    NameTaken,
    /// It is too large.
    #[error(
        "a rule with its texts, values and parameters has {} bytes at most",
        limits::RULE_BYTES_MAX
    )]
    TooLarge,
    /// The topic has as many other rules as it may have.
    #[error(
        "the subscriptions of a topic have {} correlation filters at most",
        limits::CORRELATION_RULES_MAX
    )]
    TooManyCorrelation,
    /// The topic has as many rules with SQL filters as it may have.
    #[error(
        "the subscriptions of a topic have {} SQL filters at most",
        limits::SQL_RULES_MAX
    )]
    TooManySql,
}

/// The rules of all subscriptions of one topic.
///
/// A publish costs by the number of rules that may match: those with a correlation filter are
/// found by one of their values, those that take nothing not at all, and only the rest one by one.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    rules: BTreeMap<RuleKey, (Rule, RuleLocation)>,
    names: BTreeMap<(u32, String), RuleKey>,
    /// Rules that any message may match.
    open: BTreeSet<RuleKey>,
    /// Rules by the hash of one property and the value they want it to have.
    by_value: BTreeSet<(u64, RuleKey)>,
    /// How many rules of `by_value` go by which fields.
    by_field: BTreeMap<Field, usize>,
    /// How many of them go by an application-property.
    by_property: usize,
    sql: usize,
    /// The serial number of the next rule.
    next: u64,
    /// The share of the namespace's memory that the rules take.
    held: Option<Held>,
}

/// A rule's place: subscriptions in order, in each the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleKey {
    subscription: u32,
    created_at: Timestamp,
    serial: u64,
}

/// The key by which a rule is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleLocation {
    Field(Field, u64),
    Nowhere,
    Open,
    Property(u64),
}

/// Rules that are counted to find out which of a filter's values is rarest.
const RIVALS_COUNTED: usize = 64;

impl RuleSet {
    /// Makes an empty set whose rules are counted.
    #[must_use]
    pub fn counted(memory: &Memory) -> Self {
        Self {
            held: Some(memory.hold(Purpose::Other, 0)),
            ..Self::default()
        }
    }

    /// Adds a rule to a subscription.
    ///
    /// # Errors
    ///
    /// [`RuleRefused`] says why not.
    pub fn insert(&mut self, subscription: u32, rule: Rule) -> Result<(), RuleRefused> {
        let name = (subscription, fold(&rule.name));
        if self.names.contains_key(&name) {
            return Err(RuleRefused::NameTaken);
        }
        self.check_room(&rule.filter, None)?;
        let is_sql = matches!(rule.filter, Filter::Sql(_));
        let key = RuleKey {
            subscription,
            created_at: rule.created_at,
            serial: self.next,
        };
        self.next += 1;
        let place = match &rule.filter {
            Filter::Correlation(filter) => self.rarest(filter),
            Filter::False => RuleLocation::Nowhere,
            Filter::Sql(_) | Filter::True => RuleLocation::Open,
        };
        self.sql += usize::from(is_sql);
        match place {
            RuleLocation::Field(field, hash) => {
                *self.by_field.entry(field).or_default() += 1;
                self.by_value.insert((hash, key));
            }
            RuleLocation::Nowhere => {}
            RuleLocation::Open => {
                self.open.insert(key);
            }
            RuleLocation::Property(hash) => {
                self.by_property += 1;
                self.by_value.insert((hash, key));
            }
        }
        self.names.insert(name, key);
        if let Some(held) = &mut self.held {
            held.resize(held.bytes() + rule.kept_bytes());
        }
        self.rules.insert(key, (rule, place));
        Ok(())
    }

    /// Checks that there is room for one more rule with a filter, once the rules of a subscription are
    /// gone.
    ///
    /// # Errors
    ///
    /// [`RuleRefused`] names the limit that is exceeded.
    pub fn check_room(&self, filter: &Filter, without: Option<u32>) -> Result<(), RuleRefused> {
        let gone = || without.into_iter().flat_map(|gone| self.rules(gone));
        let gone_sql = gone().filter(|rule| matches!(rule.filter, Filter::Sql(_)));
        let gone_sql = gone_sql.count();
        let sql = self.sql - gone_sql;
        if matches!(filter, Filter::Sql(_)) {
            if limits::SQL_RULES_MAX <= sql {
                return Err(RuleRefused::TooManySql);
            }
        } else if limits::CORRELATION_RULES_MAX + sql <= self.rules.len() - gone().count() {
            return Err(RuleRefused::TooManyCorrelation);
        }
        Ok(())
    }

    /// Takes a rule out of a subscription; `false` if it has none of this name.
    pub fn remove(&mut self, subscription: u32, name: &str) -> bool {
        let Some(key) = self.names.remove(&(subscription, fold(name))) else {
            return false;
        };
        let (rule, place) = self.rules.remove(&key).expect("names are those of rules");
        if let Some(held) = &mut self.held {
            held.resize(held.bytes() - rule.kept_bytes());
        }
        self.sql -= usize::from(matches!(rule.filter, Filter::Sql(_)));
        match place {
            RuleLocation::Field(field, hash) => {
                self.by_value.remove(&(hash, key));
                let count = self.by_field.get_mut(&field).expect("it was counted");
                *count -= 1;
                if *count == 0 {
                    self.by_field.remove(&field);
                }
            }
            RuleLocation::Nowhere => {}
            RuleLocation::Open => {
                self.open.remove(&key);
            }
            RuleLocation::Property(hash) => {
                self.by_value.remove(&(hash, key));
                self.by_property -= 1;
            }
        }
        true
    }

    /// Takes all rules of a subscription out.
    pub fn remove_subscription(&mut self, subscription: u32) {
        let names: Vec<String> = self
            .rules(subscription)
            .map(|rule| rule.name.clone())
            .collect();
        for name in names {
            self.remove(subscription, &name);
        }
    }

    /// Returns a subscription's rules, the oldest first.
    pub fn rules(&self, subscription: u32) -> impl Iterator<Item = &Rule> {
        let from = RuleKey {
            subscription,
            created_at: Timestamp::from_millis(i64::MIN),
            serial: 0,
        };
        let rules = self.rules.range(from..);
        let rules = rules.take_while(move |(key, _)| key.subscription == subscription);
        rules.map(|(_, (rule, _))| rule)
    }

    /// Returns a subscription's rules by their names, as the service lists them.
    pub fn rules_by_name(&self, subscription: u32) -> impl Iterator<Item = &Rule> {
        let names = self.names.range((subscription, String::new())..);
        let names = names.take_while(move |((of, _), _)| *of == subscription);
        names.filter_map(|(_, key)| self.rules.get(key).map(|(rule, _)| rule))
    }

    /// Returns a subscription's rule of this name.
    #[must_use]
    pub fn rule(&self, subscription: u32, name: &str) -> Option<&Rule> {
        let key = self.names.get(&(subscription, fold(name)))?;
        self.rules.get(key).map(|(rule, _)| rule)
    }

    /// Begins to find the rules that a message matches.
    pub fn begin(
        &self,
        evaluation: &mut Evaluation,
        message: &Message,
        changed: &Amendments,
        share: &mut Share,
    ) {
        /// Finding out whether a rule goes by a property.
        const STEPS_PER_PROPERTY: u64 = 16;
        if 0 < self.by_property {
            let properties = message.steps_to_search(Part::ApplicationProperties);
            share.spend(properties.saturating_mul(STEPS_PER_PROPERTY));
        }
        self.candidates(message, changed, &mut evaluation.candidates);
        evaluation.next = 0;
        evaluation.found.clear();
        let subscriptions = evaluation.candidates.iter().map(|key| key.subscription);
        evaluation.allowance = StepBudget::new(limits::FILTERS_STEPS_MAX, subscriptions);
    }

    /// Finds rules that a message matches, until all are found or the share is spent. Rules that
    /// come about meanwhile are not looked at.
    pub fn evaluate(
        &self,
        evaluation: &mut Evaluation,
        message: &Message,
        changed: &Amendments,
        facts: &Facts,
        share: &mut Share,
    ) -> Progress {
        let (random, meter) = (RefCell::new(Random::new(facts.seed)), Meter::default());
        let view = View {
            message,
            changed,
            facts,
            random: &random,
            meter: &meter,
        };
        while let Some(&key) = evaluation.candidates.get(evaluation.next) {
            if share.is_spent() {
                return Progress::Paused;
            }
            evaluation.next += 1;
            let Some((rule, _)) = self.rules.get(&key) else {
                continue;
            };
            let allowed = evaluation.allowance.of(key.subscription);
            meter.begin(allowed.min(limits::FILTER_STEPS_MAX));
            let matched = match &rule.filter {
                Filter::Correlation(filter) => filter.matches(&view),
                Filter::False => Ok(false),
                Filter::Sql(filter) => filter.matches(&view),
                Filter::True => Ok(true),
            };
            evaluation.allowance.spend(meter.spent());
            // Finding it takes a step too.
            share.spend(meter.spent() + 1);
            match matched {
                Ok(false) => {}
                Ok(true) => evaluation.found.push((key, None)),
                Err(failure) => evaluation.found.push((key, Some(failure))),
            }
        }
        Progress::Done
    }

    /// Replaces `out` by the copies that subscriptions get of a message, by the matching rules, in
    /// the order of their numbers. A subscription without copy and without failed rule is left out.
    /// If the message was amended before, by a rule of another topic or as a dead letter that was
    /// forwarded, the amendments of its copies include these.
    pub fn copies(
        &self,
        evaluation: &mut Evaluation,
        message: &Message,
        changed: &Amendments,
        facts: &Facts,
        out: &mut Vec<Match>,
    ) {
        out.clear();
        let (random, meter) = (RefCell::new(Random::new(facts.seed)), Meter::default());
        let view = View {
            message,
            changed,
            facts,
            random: &random,
            meter: &meter,
        };
        let subscriptions = evaluation.found.iter().map(|(key, _)| key.subscription);
        let mut allowance = StepBudget::new(limits::ACTIONS_STEPS_MAX, subscriptions);
        for (key, failure) in evaluation.found.drain(..) {
            let Some((rule, _)) = self.rules.get(&key) else {
                continue;
            };
            let allowed = allowance.of(key.subscription);
            meter.begin(allowed.min(limits::FILTER_STEPS_MAX));
            let copy = match (failure, &rule.action) {
                (Some(failure), _) => Err(failure),
                (None, None) => Ok(None),
                (None, Some(action)) => action.apply(&view).map(Some),
            };
            allowance.spend(meter.spent());
            let found = entry(out, key.subscription);
            match copy {
                Ok(None) if matches!(found.copies.first(), Some(None)) => {}
                Ok(None) => found.copies.insert(0, None),
                Ok(Some(mut changes)) => {
                    changes.set_string("RuleName", &rule.name);
                    found.copies.push(Some(Arc::new(changes)));
                }
                Err(error) => {
                    let text = || format!("rule '{}': {error}", rule.name);
                    found.error.get_or_insert_with(text);
                }
            }
        }
    }

    /// Finds the rules that may match a message, in order.
    pub(super) fn candidates(
        &self,
        message: &Message,
        changed: &Amendments,
        found: &mut Vec<RuleKey>,
    ) {
        found.clear();
        found.extend(&self.open);
        if self.by_value.is_empty() {
            return;
        }
        let mut add = |hash| {
            let rules = self
                .by_value
                .range((hash, RuleKey::MIN)..=(hash, RuleKey::MAX));
            found.extend(rules.map(|(_, key)| *key));
        };
        for &field in self.by_field.keys() {
            if let Some(value) = changed.field_of(message, field) {
                add(hash(
                    Selector::Field(field),
                    &identity(Scalar::decode(value)),
                ));
            }
        }
        if 0 < self.by_property {
            for (name, value) in changed.properties_of(message) {
                add(hash(Selector::Property(name), &Scalar::decode(value)));
            }
        }
        found.sort_unstable();
        // Two properties of a message may have one name but for its case.
        found.dedup();
    }

    /// Returns the place of a filter by that of its values for which the fewest other rules ask.
    fn rarest(&self, filter: &CorrelationFilter) -> RuleLocation {
        let places = filter.tests().map(|(selector, value)| {
            let hash = hash(selector, &value);
            let rivals = self
                .by_value
                .range((hash, RuleKey::MIN)..=(hash, RuleKey::MAX));
            let place = match selector {
                Selector::Field(field) => RuleLocation::Field(field, hash),
                Selector::Property(_) => RuleLocation::Property(hash),
            };
            (rivals.take(RIVALS_COUNTED).count(), place)
        });
        let rarest = places.min_by_key(|(rivals, _)| *rivals);
        rarest.map_or(RuleLocation::Open, |(_, place)| place)
    }
}

impl RuleKey {
    const MIN: Self = Self {
        subscription: 0,
        created_at: Timestamp::from_millis(i64::MIN),
        serial: 0,
    };
    const MAX: Self = Self {
        subscription: u32::MAX,
        created_at: Timestamp::MAX,
        serial: u64::MAX,
    };
}

/// Returns the entry of a subscription; rules come in the order of theirs.
fn entry(out: &mut Vec<Match>, subscription: u32) -> &mut Match {
    if out
        .last()
        .is_none_or(|last| last.subscription != subscription)
    {
        out.push(Match {
            subscription,
            copies: Vec::new(),
            error: None,
        });
    }
    out.last_mut().expect("it is there now")
}

fn fold(name: &str) -> String {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// Returns the same hash for values that [`super::compare::same`] and [`jitney_message::same_name`]
/// consider equal: FNV-1a. Different values may collide, so matches are compared afterwards.
fn hash(selector: Selector<'_>, value: &Scalar<'_>) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    match selector {
        Selector::Field(field) => hash.write(field.name().as_bytes()),
        Selector::Property(name) if name.is_ascii() => {
            for byte in name.bytes() {
                hash.write(&[byte.to_ascii_lowercase()]);
            }
        }
        Selector::Property(name) => hash.write(fold(name).as_bytes()),
    }
    match (value.integer(), value) {
        (Some(integer), _) => hash.write(&integer.to_be_bytes()),
        (None, Scalar::Boolean(value)) => hash.write(&[0xfe, u8::from(*value)]),
        (None, Scalar::Double(value)) => match whole(*value) {
            Some(integer) => hash.write(&integer.to_be_bytes()),
            None => hash.write(&value.to_be_bytes()),
        },
        (None, Scalar::Duration(ticks) | Scalar::Timestamp(ticks)) => {
            hash.write(&ticks.to_be_bytes());
        }
        (None, Scalar::Opaque(value)) => hash.write(value),
        (None, Scalar::Text(text)) => hash.write(text.as_bytes()),
        (None, Scalar::Uuid(uuid)) => hash.write(uuid),
        (None, Scalar::Long(_) | Scalar::Ulong(_) | Scalar::Null) => hash.write(&[0xff]),
    }
    hash.0
}

struct Fnv(u64);

impl Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
