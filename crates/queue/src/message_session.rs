//! The name of a message session.

use std::fmt;
use std::sync::Arc;

/// A message session's id: the group-id of its messages. One word of memory, shared by all that
/// name it.
#[derive(Clone)]
pub struct MessageSession(Arc<Name>);

struct Name {
    id: Box<str>,
    /// The slot in which its queue keeps the session, unless that was forgotten meanwhile.
    place: u32,
}

impl MessageSession {
    /// The slot of a name that no queue has assigned one.
    const NOWHERE: u32 = u32::MAX;

    /// Makes the name of a session that a queue keeps at a place.
    pub(super) fn at(id: &str, place: u32) -> Self {
        let id = id.into();
        Self(Arc::new(Name { id, place }))
    }

    /// Returns the slot that it was made for. This is a hint: the queue may be another, or may have
    /// another session there.
    pub(super) fn place(&self) -> u32 {
        self.0.place
    }

    /// Returns whether this is the same allocation, and not only an equal name.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.id
    }
}

impl PartialEq for MessageSession {
    fn eq(&self, other: &Self) -> bool {
        self.is(other) || self.as_str() == other.as_str()
    }
}

impl Eq for MessageSession {}

impl From<&str> for MessageSession {
    fn from(id: &str) -> Self {
        Self::at(id, Self::NOWHERE)
    }
}

impl fmt::Debug for MessageSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for MessageSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
