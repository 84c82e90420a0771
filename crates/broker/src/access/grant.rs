//! Grants: rights on entities, for a time.

use serde::{Deserialize, Serialize};

use super::PeerAddress;
use jitney_base::address;
use jitney_base::rights::{AuthorizationRule, Right, Rights};
use jitney_base::secret::Secret;
use jitney_base::time::Timestamp;

/// Rights that were proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The key of the path of the entity for which they hold, and for all below; with nothing after
    /// the prefix of a namespace, for all of that.
    pub scope: String,
    /// The rights.
    pub rights: Rights,
    /// When it ends.
    pub expires_at: Timestamp,
    /// A token gave it, and another may take its place.
    pub is_of_token: bool,
    /// Whose credentials gave it to a connection, as [`Actor::name`] says it; empty if none were verified.
    pub whose: String,
}

/// The credentials of a request over HTTP.
#[derive(Debug, Clone)]
pub struct Inquiry {
    /// Where it comes from.
    pub peer: PeerAddress,
    /// The host that it names, if it is known.
    pub host: Option<String>,
    /// The namespace that it names beside the host, if there is none of this name: no key of another is one of it.
    pub nowhere: Option<String>,
    /// Its token, if it has one.
    pub token: Option<Secret>,
    /// The path for which the token must hold.
    pub path: String,
    /// Further tokens, for entities that another one is to forward to.
    pub supplementary: Vec<Secret>,
}

/// A client, as the audit log names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// Whose credentials it has: `operator`, `key NAME`, `identity SUBJECT`; `anyone` if none are verified.
    pub name: String,
    /// Its machine, if it is a client on the network.
    pub peer: String,
}

/// The rights of a client that makes a request over HTTP.
///
/// Clients sign a token for the URL of one request, or for anything above it. Whatever a request is
/// about must be covered by what its *token* is for; what its key is for is more, and says only
/// whether an operation may look at what is above it, as the topic of a new subscription is.
#[derive(Debug, Clone)]
pub struct Authority {
    /// It is the operator's: everything is allowed, in every namespace.
    pub(super) is_operator: bool,
    /// The rights of its token, and the entities for which they hold.
    pub(super) grant: Grant,
    /// The scope of its key: the path of an entity, or the prefix of a namespace.
    pub(super) owner: String,
    /// Where its tokens hold, for entities that another forwards to: that of the request, and those
    /// that clients send for the targets.
    pub(super) target_grants: Vec<Grant>,
    pub(super) actor: Actor,
}

impl Grant {
    /// Everything, for ever.
    #[must_use]
    pub fn all() -> Self {
        Self {
            scope: String::new(),
            rights: Rights::ALL,
            expires_at: Timestamp::MAX,
            is_of_token: false,
            whose: String::new(),
        }
    }

    /// The rights of a rule on its entity, for as long as a connection lasts.
    pub(super) fn of_rule(scope: String, rule: &AuthorizationRule) -> Self {
        Self {
            scope,
            rights: rule.rights,
            whose: format!("key {}", rule.name),
            ..Self::all()
        }
    }

    /// Returns how many bytes it keeps.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.scope.len() + self.whose.len()
    }

    /// Says whether it holds for the entity with this path.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        is_within(path, &self.scope)
    }

    /// Checks that it gives a right on a path.
    ///
    /// # Errors
    ///
    /// A sentence for the client.
    fn check(&self, path: &str, right: Right) -> Result<(), String> {
        if self.covers(&address::key(path)) && self.rights.allow(right) {
            return Ok(());
        }
        Err(lacks(path, right))
    }
}

impl Authority {
    /// Returns whether they are the operator's.
    #[must_use]
    pub const fn is_operator(&self) -> bool {
        self.is_operator
    }

    /// Returns the rights of the operator: everything in every namespace.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            is_operator: true,
            grant: Grant::all(),
            owner: String::new(),
            target_grants: Vec::new(),
            actor: Actor {
                name: "operator".to_owned(),
                peer: String::new(),
            },
        }
    }

    /// Names the machine of its client.
    #[must_use]
    pub fn from_peer(mut self, peer: PeerAddress) -> Self {
        self.actor.peer = peer.to_string();
        self
    }

    /// Returns its client.
    #[must_use]
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Returns when its token ends.
    #[must_use]
    pub const fn ends_at(&self) -> Timestamp {
        self.grant.expires_at
    }

    /// Checks that its token gives a right on what a request names.
    ///
    /// # Errors
    ///
    /// A sentence for the client.
    pub fn check(&self, path: &str, right: Right) -> Result<(), String> {
        if self.is_operator {
            return Ok(());
        }
        self.grant.check(path, right)
    }

    /// Checks that its key gives a right on what is above that a request names, or beside it.
    ///
    /// # Errors
    ///
    /// A sentence for the client.
    pub fn check_above(&self, path: &str, right: Right) -> Result<(), String> {
        let is_within = is_within(&address::key(path), &self.owner);
        if self.is_operator || (is_within && self.grant.rights.allow(right)) {
            return Ok(());
        }
        Err(lacks(path, right))
    }

    /// Checks that its token gives a right on an entity's messages. Clients sign for the entity, for
    /// what is above it, or for the URL of the request, which is below: `orders/messages/head`.
    ///
    /// # Errors
    ///
    /// A sentence for the client.
    pub fn check_messages(&self, entity: &str, right: Right) -> Result<(), String> {
        self.check_above(entity, right)?;
        let messages = format!("{}/messages", address::key(entity));
        let is_for = |messages: &str, scope: &str| {
            is_within(messages, scope) || (!scope.is_empty() && is_within(scope, messages))
        };
        if self.is_operator || is_for(&messages, &self.grant.scope) {
            return Ok(());
        }
        Err(lacks(entity, right))
    }

    /// Checks that messages may be sent to an entity, in the name of one that forwards to it.
    ///
    /// # Errors
    ///
    /// A sentence for the client.
    pub fn check_target(&self, path: &str) -> Result<(), String> {
        let mut checked = Ok(());
        for grant in &self.target_grants {
            checked = grant.check(path, Right::Send);
            if checked.is_ok() {
                break;
            }
        }
        checked
    }

    /// Makes the authority over an entity and what is below it, without an end.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn of(scope: &str, rights: Rights) -> Self {
        let grant = Grant {
            scope: scope.to_owned(),
            rights,
            ..Grant::all()
        };
        Self {
            is_operator: false,
            owner: grant.scope.clone(),
            target_grants: vec![grant.clone()],
            grant,
            actor: Actor::default(),
        }
    }
}

/// Returns whether a path is an entity's, or below it; both are keys.
pub(super) fn is_within(path: &str, scope: &str) -> bool {
    if scope.is_empty() {
        // The first namespace's: no other's paths.
        return !path.starts_with("//");
    }
    match path.strip_prefix(scope) {
        Some(rest) => rest.is_empty() || rest.starts_with('/') || scope.ends_with('/'),
        None => false,
    }
}

fn lacks(path: &str, right: Right) -> String {
    format!(
        "'{right}' claim is required to perform this operation on '{}'.",
        address::without_namespace(path)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_may_do_everything_in_every_namespace() {
        let operator = Authority::everything();
        for path in ["orders", "//other/orders", ""] {
            for right in [Right::Listen, Right::Send, Right::Manage] {
                assert_eq!(operator.check(path, right), Ok(()));
                assert_eq!(operator.check_above(path, right), Ok(()));
                assert_eq!(operator.check_messages(path, right), Ok(()));
            }
        }
        // A key of the first namespace is for that one.
        let key = Authority::of("", Rights::ALL);
        assert!(key.check_messages("orders", Right::Send).is_ok());
        assert!(key.check_messages("//other/orders", Right::Send).is_err());
    }
}
