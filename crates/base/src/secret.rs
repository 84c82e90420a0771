//! Secrets: texts that prove a right, such as passwords and tokens.

use std::fmt;

/// A secret as its text, which is not shown to debuggers and logs.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text, which is to be compared in constant time only.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_secret_is_not_in_what_is_printed() {
        let shown = format!("{:?}", Some(Secret::new("password")));
        assert_eq!(shown, "Some(Secret(..))");
    }
}
