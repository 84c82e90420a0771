//! The name of a message session.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// A message session's id: the group-id of its messages. One word of memory, shared by all that
/// name it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageSession(Arc<Box<str>>);

impl MessageSession {
    /// Returns the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for MessageSession {
    fn from(id: &str) -> Self {
        Self(Arc::new(id.into()))
    }
}

impl Borrow<str> for MessageSession {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for MessageSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl fmt::Display for MessageSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
