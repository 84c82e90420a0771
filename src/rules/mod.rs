//! The rules of subscriptions: which messages of a topic they get, and how changed.
//!
//! A [`Rule`] is a [`Filter`] and perhaps an [`Action`]. The [`RuleSet`] of a topic holds those of
//! all its subscriptions, and finds the matching ones without a look at each: correlation filters
//! are indexed by one of the values that they ask for.
//!
//! Leaves to others: what a copy's way to its subscription is, and whether a subscription wants
//! messages whose rules cannot be evaluated.

mod action;
mod compare;
mod correlation;
mod evaluate;
mod kept;
mod lexer;
mod like;
mod parser;
mod selector;
mod set;
mod sql;
mod system;
#[cfg(test)]
mod tests;
mod value;
mod work;

use crate::time::{Millis, Timestamp};

use crate::ids::SequenceNumber;

pub use action::Action;
pub use correlation::{CorrelationFields, CorrelationFilter, EmptyFilter};
pub use kept::KeptError;
pub use selector::selector;
pub use set::{Evaluation, Match, Progress, RuleRefused, RuleSet};
pub use sql::{Parameters, SqlError, SqlFilter};
pub use value::{Given, Value};
pub use work::Share;

/// What a subscription takes, and what it makes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its name in its subscription; case does not matter.
    pub name: String,
    /// Which messages it takes.
    pub filter: Filter,
    /// What it changes: a matching rule without an action gives its subscription the one plain
    /// copy, one with an action a copy of its own.
    pub action: Option<Action>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Which messages a rule takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// Those whose properties have these values.
    Correlation(CorrelationFilter),
    /// None.
    False,
    /// Those for which an expression is true.
    Sql(SqlFilter),
    /// All.
    True,
}

/// What rules may ask about a message and its bytes do not say.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Its number in the topic.
    pub sequence_number: SequenceNumber,
    /// When the topic took it.
    pub enqueued_time: Timestamp,
    /// How long it lives from then on; [`Millis::MAX`] for ever.
    pub time_to_live: Millis,
    /// Random bits, others for each message: `newid()` is made of them.
    pub seed: u64,
}
