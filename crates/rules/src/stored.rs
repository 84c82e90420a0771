//! Rules as they are kept in the log: JSON with the texts of filter and action.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};

use super::{
    Action, CorrelationFields, CorrelationFilter, EmptyFilter, Filter, Parameters, Rule,
    RuleRefused, SqlError, SqlFilter,
};
use crate::limits;
use jitney_base::time::Timestamp;

/// Why bytes are not a rule.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// They are not the JSON that we write.
    #[error("a rule that is kept is not to be read")]
    Json(#[from] serde_json::Error),
    /// A text is no expression or no action.
    #[error("a rule that is kept has a text that is refused")]
    Sql(#[from] SqlError),
    /// A correlation filter asks for nothing.
    #[error("a rule that is kept has no use")]
    Empty(#[from] EmptyFilter),
}

#[derive(Serialize, Deserialize)]
struct KeptRule {
    name: String,
    filter: KeptFilter,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action: Option<KeptText>,
    created_at: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptFilter {
    Correlation(CorrelationFields),
    False,
    Sql(KeptText),
    True,
}

#[derive(Serialize, Deserialize)]
struct KeptText {
    text: String,
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    parameters: Parameters,
}

impl Rule {
    /// Checks its name and its size.
    ///
    /// # Errors
    ///
    /// If it cannot be kept so.
    pub fn check(&self) -> Result<(), RuleRefused> {
        let length = self.name.chars().count();
        let has_length = (1..=jitney_base::limits::PART_NAME_LENGTH_MAX).contains(&length);
        if !has_length || self.name.contains(['/', '\\']) {
            return Err(RuleRefused::Name);
        }
        if limits::RULE_BYTES_MAX < self.size() {
            return Err(RuleRefused::TooLarge);
        }
        Ok(())
    }

    /// Returns how many bytes it takes in the log.
    #[must_use]
    pub fn size(&self) -> usize {
        self.to_json().len()
    }

    /// Returns about how many bytes of memory it takes: its source and its compiled form.
    pub(super) fn kept_bytes(&self) -> usize {
        const FIXED: usize = 512;
        FIXED + 2 * self.size()
    }

    /// Returns a version that any change of the rule changes.
    #[must_use]
    pub fn version(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.to_json().hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the form in which the log keeps it.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let kept = |text: &str, parameters: &Parameters| KeptText {
            text: text.to_owned(),
            parameters: parameters.clone(),
        };
        let rule = KeptRule {
            name: self.name.clone(),
            filter: match &self.filter {
                Filter::Correlation(filter) => KeptFilter::Correlation(filter.fields().clone()),
                Filter::False => KeptFilter::False,
                Filter::Sql(filter) => KeptFilter::Sql(kept(filter.text(), filter.parameters())),
                Filter::True => KeptFilter::True,
            },
            action: self
                .action
                .as_ref()
                .map(|action| kept(action.text(), action.parameters())),
            created_at: self.created_at.as_millis(),
        };
        serde_json::to_vec(&rule).expect("texts and numbers are JSON")
    }

    /// Reads the form in which the log keeps it.
    ///
    /// # Errors
    ///
    /// [`StoredError`] if [`Rule::to_json`] cannot have written it.
    pub fn from_json(json: &[u8]) -> Result<Self, StoredError> {
        let kept: KeptRule = serde_json::from_slice(json)?;
        let action = kept
            .action
            .map(|kept| Action::parse_with(&kept.text, kept.parameters));
        Ok(Self {
            name: kept.name,
            filter: match kept.filter {
                KeptFilter::Correlation(fields) => {
                    Filter::Correlation(CorrelationFilter::new(fields)?)
                }
                KeptFilter::False => Filter::False,
                KeptFilter::Sql(kept) => {
                    Filter::Sql(SqlFilter::parse_with(&kept.text, kept.parameters)?)
                }
                KeptFilter::True => Filter::True,
            },
            action: action.transpose()?,
            created_at: Timestamp::from_millis(kept.created_at),
        })
    }
}
