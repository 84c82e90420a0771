//! Addresses of nodes: what clients write, taken apart.
//!
//! `orders`, `/orders`, `amqps://host:5672/orders/$DeadLetterQueue` and
//! `orders/Subscriptions/eu/$management` all name a node of an entity (`addressing.md#grammar`).
//! Names compare without case, and entity names may hold slashes, so only the suffixes are read
//! here; which entities exist is not known.

use std::fmt;

use percent_encoding::percent_decode_str;

use crate::limits;

/// A node that a link can attach to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `$cbs`: tokens are sent to it.
    Cbs,
    /// A queue, a topic, a subscription, or one of their sub-queues.
    Entity(EntityAddress),
    /// The management node of such an entity: `.../$management`.
    Management(EntityAddress),
}

/// An entity's path and one of its queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityAddress {
    /// The entity's path as it was written, without suffixes.
    pub path: String,
    /// The queue.
    pub queue: SubQueue,
}

/// The queues of one entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubQueue {
    /// The entity itself.
    Main,
    /// `$DeadLetterQueue`.
    DeadLetter,
    /// `$Transfer/$DeadLetterQueue`.
    TransferDeadLetter,
}

/// Why text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddress {
    /// It is empty.
    #[error("the address is empty; it must name an entity, for example 'orders'")]
    Empty,
    /// It is longer than any entity's path.
    #[error("the address is longer than {} characters", limits::ADDRESS_LENGTH_MAX)]
    TooLong,
}

const SUBSCRIPTIONS: &str = "/subscriptions/";
const MANAGEMENT: &str = "/$management";
const DEAD_LETTER: &str = "/$deadletterqueue";
const TRANSFER_DEAD_LETTER: &str = "/$transfer/$deadletterqueue";

impl Address {
    /// Parses the address of a source or target, as a client wrote it.
    ///
    /// Percent-encoding is decoded: .NET and Python send URIs, and a literal `%` in a name is rare
    /// (`addressing.md#forms-that-clients-send`). [`Address::parse_literal`] leaves it alone.
    pub fn parse(text: &str) -> Result<Self, InvalidAddress> {
        Self::parse_path(without_authority(text))
    }

    /// Parses the path of a URL: anything in it that looks like another URL is part of the name.
    pub fn parse_path(path: &str) -> Result<Self, InvalidAddress> {
        match percent_decode_str(path).decode_utf8() {
            Ok(decoded) => Self::of_path(&decoded),
            Err(_) => Self::of_path(path),
        }
    }

    /// Parses an address whose percent signs are part of the name.
    pub fn parse_literal(text: &str) -> Result<Self, InvalidAddress> {
        Self::of_path(without_authority(text))
    }

    /// Parses a path, percent-encoded or not.
    pub fn of_path(path: &str) -> Result<Self, InvalidAddress> {
        let path = path.trim_matches('/');
        if path.is_empty() {
            return Err(InvalidAddress::Empty);
        }
        if path.chars().count() > limits::ADDRESS_LENGTH_MAX {
            return Err(InvalidAddress::TooLong);
        }
        if path.eq_ignore_ascii_case("$cbs") {
            return Ok(Self::Cbs);
        }
        if let Some(entity) = strip_suffix(path, MANAGEMENT) {
            return Ok(Self::Management(EntityAddress::of_path(entity)));
        }
        Ok(Self::Entity(EntityAddress::of_path(path)))
    }
}

impl EntityAddress {
    fn of_path(path: &str) -> Self {
        let (path, queue) = if let Some(entity) = strip_suffix(path, TRANSFER_DEAD_LETTER) {
            (entity, SubQueue::TransferDeadLetter)
        } else if let Some(entity) = strip_suffix(path, DEAD_LETTER) {
            (entity, SubQueue::DeadLetter)
        } else {
            (path, SubQueue::Main)
        };
        Self {
            path: path.to_owned(),
            queue,
        }
    }

    /// Returns the path with the suffix of its queue, in its namespace: the path for which rights
    /// are checked.
    #[must_use]
    pub fn resource(&self) -> String {
        format!("{}{}", self.path, self.queue.suffix())
    }

    /// Returns the form under which the entity is found: names compare without case.
    #[must_use]
    pub fn key(&self) -> String {
        key(&self.path)
    }
}

impl SubQueue {
    fn suffix(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::DeadLetter => "/$DeadLetterQueue",
            Self::TransferDeadLetter => "/$Transfer/$DeadLetterQueue",
        }
    }
}

impl fmt::Display for EntityAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}",
            without_namespace(&self.path),
            self.queue.suffix()
        )
    }
}

/// Returns the label of a host name by which clients name their namespace: the first one. It is empty without
/// a host.
#[must_use]
pub fn namespace_label(host: Option<&str>) -> &str {
    let label = host.unwrap_or_default().split(['.', ':']).next();
    label.unwrap_or_default()
}

/// Returns the case-folded form of an entity's path.
#[must_use]
pub fn key(path: &str) -> String {
    path.to_lowercase()
}

/// Returns an entity's path as every protocol tells it: the names of queues and topics are in lower case, as the service has them
/// wherever it tells one; those of subscriptions are as they were made (`addressing.md#names-of-entities`).
#[must_use]
pub fn with_lower_case(path: &str) -> String {
    match split_subscription(path) {
        Some((topic, name)) => subscription(&key(topic), name),
        None => key(path),
    }
}

/// Takes the path of a subscription apart: its topic's path, and its name.
#[must_use]
pub fn split_subscription(path: &str) -> Option<(&str, &str)> {
    let at = path.to_ascii_lowercase().rfind(SUBSCRIPTIONS)?;
    let (topic, rest) = path.split_at_checked(at)?;
    let name = rest.get(SUBSCRIPTIONS.len()..)?;
    (!topic.is_empty() && !name.is_empty() && !name.contains('/')).then_some((topic, name))
}

/// Returns the prefix of the paths of a namespace's entities, except the first namespace's: no
/// client can write it, because leading slashes are dropped.
#[must_use]
pub fn namespace_prefix(name: &str) -> String {
    format!("//{}/", key(name))
}

/// Returns the namespace prefix of a path.
#[must_use]
pub fn namespace_of(path: &str) -> &str {
    let known = without_namespace(path);
    path.strip_suffix(known).unwrap_or_default()
}

/// Returns a path without its namespace prefix, as clients write it.
#[must_use]
pub fn without_namespace(path: &str) -> &str {
    match path
        .strip_prefix("//")
        .and_then(|rest| rest.split_once('/'))
    {
        Some((_, path)) => path,
        None => path,
    }
}

/// Returns the path of a subscription.
#[must_use]
pub fn subscription(topic: &str, name: &str) -> String {
    format!("{topic}/Subscriptions/{name}")
}

/// The rule of [`is_entity_name`], for errors: "allowed: …".
pub const ENTITY_NAME_RULE: &str = "1 to 260 characters, which are letters, digits and any of . - _ ~, in parts between \
                                    slashes, none of which is empty, '.', '..' or 'subscriptions'";

/// The rule of [`is_part_name`], for errors: "allowed: …".
pub const PART_NAME_RULE: &str =
    "1 to 50 letters, digits and any of . - _ ~ $, not beginning with $";

/// Returns whether a queue or a topic may have a name (`addressing.md#names-of-entities`). Every character may be the first
/// or the last of a part, as `MassTransit`'s `Fault--Order--` needs it.
#[must_use]
pub fn is_entity_name(name: &str) -> bool {
    name.chars().count() <= limits::PATH_LENGTH_MAX
        && name
            .chars()
            .all(|c| c == '/' || c.is_alphanumeric() || ".-_~".contains(c))
        && !name.split('/').any(is_reserved)
}

/// Returns whether no part of a name between slashes may be this: clients resolve dots before they send a URL
/// (RFC 3986, 5.2.4).
fn is_reserved(part: &str) -> bool {
    matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case("subscriptions")
}

/// Returns whether a subscription or a rule may have a name.
#[must_use]
pub fn is_part_name(name: &str) -> bool {
    // A name with this prefix is a node of the entity, except for the rule that every subscription
    // has.
    let is_node = name.starts_with('$') && !name.eq_ignore_ascii_case("$default");
    !name.is_empty()
        && !is_node
        && name.chars().count() <= limits::PART_NAME_LENGTH_MAX
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || ".-_~$".contains(c))
}

/// Drops `scheme://authority` from the start, and one leading slash.
///
/// Only from the start: the path that rights are checked for must be the path that is looked up.
#[must_use]
pub fn without_authority(text: &str) -> &str {
    let path = match behind_scheme(text) {
        Some(rest) => rest.split_once('/').map_or("", |(_, path)| path),
        None => text,
    };
    path.strip_prefix('/').unwrap_or(path)
}

/// Returns what follows `scheme://`, if the text begins with a scheme (RFC 3986, 3.1).
#[must_use]
pub fn behind_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme.then_some(rest)
}

fn strip_suffix<'a>(path: &'a str, suffix: &str) -> Option<&'a str> {
    let at = path.len().checked_sub(suffix.len())?;
    let (head, tail) = path.split_at_checked(at)?;
    (!head.is_empty() && tail.eq_ignore_ascii_case(suffix)).then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match Address::parse(text) {
            Ok(Address::Cbs) => "cbs".to_owned(),
            Ok(Address::Entity(entity)) => format!("entity {entity}"),
            Ok(Address::Management(entity)) => format!("management {entity}"),
            Err(error) => format!("{error:?}"),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn every_client_s_spelling_is_understood() {
        check("orders", "entity orders");
        check("/orders", "entity orders");
        check("amqps://localhost:5672/orders", "entity orders");
        check("/queue%20name", "entity queue name");
        check("a/b/$deadletterqueue", "entity a/b/$DeadLetterQueue");
        check(
            "q/$Transfer/$DeadLetterQueue",
            "entity q/$Transfer/$DeadLetterQueue",
        );
        check(
            "q/$DeadLetterQueue/$management",
            "management q/$DeadLetterQueue",
        );
        check(
            "t/Subscriptions/s/$Management",
            "management t/Subscriptions/s",
        );
        check("$cbs", "cbs");
        check("amqp://host", "Empty");
        check("q/x://host/other", "entity q/x://host/other");
        check("a b://host/other", "entity a b://host/other");
        check("sb://host/q/x://host/other", "entity q/x://host/other");
        check("", "Empty");
        check("/$management", "entity $management");
        check("caf\u{e9}", "entity caf\u{e9}");
    }

    #[test]
    fn a_name_may_begin_and_end_with_any_of_its_characters() {
        let long = "a".repeat(limits::PATH_LENGTH_MAX);
        for name in [
            "MassTransit/Fault--My.Namespace/Order--",
            "batcheditem__",
            "_some/-name-",
            ".a",
            "a~",
            "a/b/c",
            "caf\u{e9}",
            &long,
        ] {
            assert!(is_entity_name(name), "{name}");
        }
        let too_long = "a".repeat(limits::PATH_LENGTH_MAX + 1);
        for name in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            "a/../b",
            ".",
            "a b",
            "a?",
            "a#b",
            "a*",
            "$a",
            "a@b",
            "t/subscriptions/s",
            &too_long,
        ] {
            assert!(!is_entity_name(name), "{name}");
        }
    }

    #[test]
    fn a_subscription_s_path_is_taken_apart() {
        assert_eq!(
            split_subscription("a/b/SubScriptions/s"),
            Some(("a/b", "s"))
        );
        assert_eq!(split_subscription("a/subscriptions/"), None);
        assert_eq!(split_subscription("a"), None);
        assert_eq!(subscription("a/b", "s"), "a/b/Subscriptions/s");
    }

    #[test]
    fn a_literal_percent_sign_can_be_kept() {
        let Ok(Address::Entity(entity)) = Address::parse_literal("a%41") else {
            panic!()
        };
        assert_eq!(entity.path, "a%41");
    }
}
