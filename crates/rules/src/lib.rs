//! The rules of subscriptions: which messages of a topic they get, and how changed.
//!
//! A [`Rule`] is a [`Filter`] and perhaps an [`Action`]. The [`RuleSet`] of a topic holds those of
//! all its subscriptions, and finds the matching ones without a look at each: correlation filters
//! are indexed by one of the values that they ask for.
//!
//! Leaves to others: the delivery of a copy to its subscription, and whether a subscription wants
//! messages whose rules cannot be evaluated.

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

mod action;
mod compare;
mod correlation;
mod evaluate;
mod explain;
mod lexer;
mod like;
pub mod limits;
mod parser;
mod selector;
mod set;
mod sql;
mod stored;
mod system;
#[cfg(test)]
mod tests;
mod value;
mod work;

use jitney_base::time::{Millis, Timestamp};

use jitney_base::ids::SequenceNumber;

pub use action::Action;
pub use correlation::{CorrelationFields, CorrelationFilter, EmptyFilter};
pub use explain::{Explanation, Truth};
pub use selector::selector;
pub use set::{Evaluation, Match, Progress, RuleRefused, RuleSet};
pub use sql::{Parameters, SqlError, SqlFilter};
pub use stored::StoredError;
pub use system::hyphenated;
pub use value::{Given, Value};
pub use work::Share;

/// A rule of a subscription: its filter and its action.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its name in its subscription; case does not matter.
    pub name: String,
    /// Which messages it takes.
    pub filter: Filter,
    /// The action. A matching rule without one gives its subscription the one plain copy, a rule
    /// with one a copy of its own.
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

/// Facts about a message that rules read and its bytes do not have.
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
