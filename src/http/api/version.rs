//! The version of an entity that a request names.

use axum::http::header;

use super::call::Call;
use super::problem::Problem;

/// What a request says in `If-Match`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// Nothing.
    Unsaid,
    /// Any version that is there.
    Any,
    /// This one.
    Is(u64),
}

impl Version {
    pub(super) fn read(call: &Call<'_>) -> Result<Self, Problem> {
        let Some(value) = call.parts.headers.get(header::IF_MATCH) else {
            return Ok(Self::Unsaid);
        };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(Self::Any);
        }
        let number = text.trim_start_matches("W/").trim_matches('"').parse();
        number.map(Self::Is).map_err(|_| {
            let text = format!("If-Match is '{text}'; a version as in ETag, or * is allowed.");
            Problem::bad_request(text)
        })
    }

    /// Returns the version that must be there, if it must be a certain one.
    pub(super) const fn required(self) -> Option<u64> {
        match self {
            Self::Unsaid | Self::Any => None,
            Self::Is(revision) => Some(revision),
        }
    }
}
