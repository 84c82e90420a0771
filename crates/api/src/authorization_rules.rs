//! Authorization rules of queues and topics: shared access keys.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An authorization rule with its keys.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AuthorizationRuleShown {
    pub name: String,
    pub rights: Vec<RightName>,
    pub primary_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_at: Option<String>,
}

/// Authorization rules.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AuthorizationRules {
    pub authorization_rules: Vec<AuthorizationRuleShown>,
}

/// A right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RightName {
    Send,
    Listen,
    /// Includes the others.
    Manage,
}

/// An authorization rule to be made or changed.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthorizationRuleRequest {
    #[schema(min_items = 1)]
    pub rights: Vec<RightName>,
    /// Without it, the rule keeps its key, or a new rule gets a random one.
    #[serde(default)]
    pub primary_key: Option<String>,
    /// Likewise.
    #[serde(default)]
    pub secondary_key: Option<String>,
}

/// The key to be replaced.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateRequest {
    pub key: Which,
}

/// One of the two keys of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    Primary,
    Secondary,
}
