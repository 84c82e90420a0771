//! Paths of the JSON API.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Encodes a segment of a path.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
