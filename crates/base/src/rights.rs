//! Rights, and the keys that grant them (`cbs.md#rights`).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// A right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// To send, to schedule, and to cancel scheduled messages.
    Send,
    /// To receive, to peek at messages, to settle them, and all operations of message sessions.
    Listen,
    /// To make, change, read and delete entities.
    Manage,
}

/// A set of rights. `Manage` includes the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rights {
    /// [`Right::Send`]
    pub send: bool,
    /// [`Right::Listen`]
    pub listen: bool,
    /// [`Right::Manage`]
    pub manage: bool,
}

impl Rights {
    /// Everything.
    pub const ALL: Self = Self {
        send: true,
        listen: true,
        manage: true,
    };

    /// Returns whether a right is in the set.
    #[must_use]
    pub fn allow(self, right: Right) -> bool {
        self.manage
            || match right {
                Right::Send => self.send,
                Right::Listen => self.listen,
                Right::Manage => false,
            }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Send => "Send",
            Self::Listen => "Listen",
            Self::Manage => "Manage",
        })
    }
}

/// A shared access key as its text, which is not shown to debuggers and logs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(String);

impl Key {
    /// Wraps a key.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the text, which is to be compared in constant time only.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// A shared access authorization rule: a key of it grants its rights, on the entity that it belongs
/// to and on all below.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizationRule {
    /// Its name, unique in its entity; compared exactly.
    pub name: String,
    /// The rights that its keys grant.
    pub rights: Rights,
    /// One key.
    pub primary_key: Key,
    /// Another, so that one can be replaced while the other is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secondary_key: Option<Key>,
    /// When it was made, according to the administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When it was last changed, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_at: Option<Timestamp>,
}

impl AuthorizationRule {
    /// Returns its keys.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        [Some(&self.primary_key), self.secondary_key.as_ref()]
            .into_iter()
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_manages_may_do_all() {
        let manages = Rights {
            manage: true,
            ..Rights::default()
        };
        for right in [Right::Send, Right::Listen, Right::Manage] {
            assert!(manages.allow(right), "{right}");
            assert!(!Rights::default().allow(right), "{right}");
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        let shown = format!("{:?}", Key::new("secret".to_owned()));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
