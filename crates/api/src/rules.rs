//! Rules of subscriptions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A rule.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Rule {
    pub name: String,
    pub filter: RuleFilter,
    /// Statements that change the subscription's copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    pub created_at: String,
}

/// A rule to be made.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleRequest {
    pub filter: RuleFilter,
    #[serde(default)]
    pub action: Option<String>,
}

/// Which messages a rule takes.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RuleFilter {
    /// All.
    True,
    /// None.
    False,
    /// Those for which an expression is true.
    Sql {
        #[schema(example = "color = 'red' AND sys.Label LIKE 'order%'")]
        expression: String,
    },
    /// Those whose properties have these values.
    Correlation(Correlation),
}

/// Values that a correlation filter compares.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Correlation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to_session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Texts, numbers, booleans.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, serde_json::Value>,
}

/// Rules of a subscription.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Rules {
    /// Written one by one, before the rest.
    #[schema(required)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// What `skip` is to be for the next page; without it there is none. A page has 1 MiB of rules at most, or one that is
    /// longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_skip: Option<usize>,
}
