//! Errors: `application/problem+json` [RFC 9457].

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not carried out.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The HTTP status.
    #[schema(example = 404)]
    pub status: u16,
    /// The status as a word.
    #[schema(example = "Not Found")]
    pub title: Cow<'static, str>,
    /// What is wrong, where, and what would be right.
    #[schema(example = "The messaging entity 'orders' could not be found.")]
    pub detail: String,
    /// The kind of the reason, as in the metric `jitney_refusals_total`.
    #[schema(example = "not_found")]
    pub reason: Cow<'static, str>,
    /// The parameter of the query or the field of the body that is wrong, if that is known.
    #[schema(example = "selection.filter")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}
