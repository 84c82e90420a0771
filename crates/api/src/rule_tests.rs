//! Tests of a message against the rules of subscriptions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which subscriptions take the message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RuleTests {
    /// Written one by one, before the rest.
    #[schema(required)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscriptions: Vec<SubscriptionTest>,
    /// The values of the properties that the conditions read; null for those that are absent. Of a text there are 256 characters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, serde_json::Value>,
    /// What `skip` is to be for further subscriptions; without it there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_skip: Option<usize>,
}

/// Whether one subscription takes the message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SubscriptionTest {
    /// Its path.
    pub path: String,
    /// At least one of its rules takes the message.
    pub takes: bool,
    pub rules: Vec<RuleTest>,
    /// It has more rules than one answer has: 1,000, or a MiB.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// Whether one rule takes the message, and why.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RuleTest {
    pub name: String,
    #[serde(flatten)]
    pub condition: TestedCondition,
}

/// The result of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConditionResult {
    True,
    False,
    /// A value that it needs is absent, or its values do not compare: the message is not taken.
    Unknown,
    /// It cannot be evaluated: the message is not taken.
    Failed,
}

/// A condition with its parts.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TestedCondition {
    /// The condition as SQL.
    pub text: String,
    pub result: ConditionResult,
    /// Why it cannot be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The conditions that `AND`, `OR` or `NOT` makes it of.
    #[schema(no_recursion)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Self>,
    /// The properties that a condition without parts reads; `values` of the answer has their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<String>,
}
