//! The audit log: administrative operations that were carried out, by whom, and what they changed.
//!
//! An entry is a record of the step that made the change, so it is durable if the change is. The last ones of a shard are kept,
//! and each is written to the log of the process, too.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::info;

use super::{Namespaces, StepContext};
use crate::access::Actor;
use crate::address;
use crate::ids::EntityId;
use crate::limits;
use crate::queue::{Description, Record};
use crate::rules::Rule;
use crate::time::Timestamp;

/// The target of the lines in the log of the process.
pub const TARGET: &str = "jitney::audit";

/// An administrative operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When it was carried out.
    pub at: Timestamp,
    /// The prefix of its namespace.
    pub namespace: String,
    /// The client.
    pub actor: Actor,
    /// Its name, such as `create_queue`.
    pub operation: String,
    /// The path of the entity, without its namespace; empty if it is about none.
    pub entity: String,
    /// What it changed. Keys are left out.
    pub detail: String,
}

/// The entries of a shard.
#[derive(Debug, Default)]
pub(super) struct Audit {
    /// The oldest first, with their numbers.
    entries: VecDeque<(u64, AuditEntry)>,
    /// The number of the next.
    next: u64,
}

impl Audit {
    /// Takes an entry as a record has it; `None` if it cannot be read.
    pub(super) fn restore(&mut self, number: u64, entry: &[u8]) -> Option<()> {
        let entry = serde_json::from_slice(entry).ok()?;
        self.push(number, entry);
        Some(())
    }

    fn push(&mut self, number: u64, entry: AuditEntry) {
        self.next = self.next.max(number + 1);
        self.entries.push_back((number, entry));
        if limits::AUDIT_ENTRIES < self.entries.len() {
            self.entries.pop_front();
        }
    }

    /// Returns the records of all entries.
    pub(super) fn snapshot(&self) -> Vec<(u64, Vec<u8>)> {
        let entries = self.entries.iter();
        entries
            .map(|(number, entry)| (*number, entry.to_json()))
            .collect()
    }
}

/// Conditions on entries: all that are given must be met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// The name of the one who asked contains this text, whatever its case.
    pub actor: Option<String>,
    /// The operation.
    pub operation: Option<String>,
    /// The path of the entity, whatever its case.
    pub entity: Option<String>,
    /// At this time or later.
    pub since: Option<Timestamp>,
}

impl AuditFilter {
    /// Returns whether an entry meets them.
    #[must_use]
    pub fn holds_for(&self, entry: &AuditEntry) -> bool {
        let actor = |wanted: &String| {
            let name = entry.actor.name.to_lowercase();
            name.contains(&wanted.to_lowercase())
        };
        let is_entity = |wanted: &String| address::key(wanted) == address::key(&entry.entity);
        self.actor.as_ref().is_none_or(actor)
            && self
                .operation
                .as_ref()
                .is_none_or(|wanted| *wanted == entry.operation)
            && self.entity.as_ref().is_none_or(is_entity)
            && self.since.is_none_or(|since| since <= entry.at)
    }
}

impl AuditEntry {
    fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and texts are JSON")
    }
}

impl Namespaces {
    /// Returns the entries of a namespace that are older than a number, the newest first.
    pub(crate) fn audit_entries(
        &self,
        prefix: &str,
        before: u64,
    ) -> impl Iterator<Item = (u64, &AuditEntry)> {
        let entries = self.audit.entries.iter().rev();
        entries
            .filter(move |(number, entry)| *number < before && entry.namespace == prefix)
            .map(|(number, entry)| (*number, entry))
    }

    /// Adds an entry about an entity, or about a namespace if that is the prefix only. It is a record of this step.
    pub(crate) fn audit(
        &mut self,
        cx: &mut StepContext<'_>,
        actor: &Actor,
        operation: &str,
        path: &str,
        detail: &str,
    ) {
        let entry = AuditEntry {
            at: cx.now,
            namespace: address::namespace_of(path).to_owned(),
            actor: actor.clone(),
            operation: operation.to_owned(),
            entity: address::without_namespace(path).to_owned(),
            detail: detail.chars().take(limits::AUDIT_DETAIL_LENGTH).collect(),
        };
        let (actor, peer, entity) = (&entry.actor.name, &entry.actor.peer, &entry.entity);
        let (namespace, detail) = (
            address::namespace_label(Some(&entry.namespace)),
            &entry.detail,
        );
        info!(target: TARGET, ?actor, peer, namespace, ?entity, ?detail, "{operation}");
        let number = self.audit.next;
        cx.journal.append(&Record::Audit {
            number,
            entry: &entry.to_json(),
        });
        self.audit.push(number, entry);
    }
}

impl Namespaces {
    /// Adds an entry about an entity: it was made, changed or deleted.
    pub(crate) fn audit_entity(
        &mut self,
        cx: &mut StepContext<'_>,
        actor: &Actor,
        path: &str,
        before: Option<&Description>,
        after: Option<&Description>,
    ) {
        let (operation, detail) = match (before, after) {
            (None, Some(after)) => {
                let default = Description {
                    kind: after.kind,
                    ..Description::default()
                };
                ("create", changed(&default, after))
            }
            (Some(before), Some(after)) => ("update", changed(before, after)),
            (_, None) => ("delete", String::new()),
        };
        self.audit(cx, actor, operation, path, &detail);
    }

    /// Adds an entry about a rule of a subscription, of which the topic and the subscription are given.
    pub(crate) fn audit_rule(
        &mut self,
        cx: &mut StepContext<'_>,
        actor: &Actor,
        operation: &str,
        (topic, subscription): (EntityId, EntityId),
        name: &str,
    ) {
        let rule = self.topic(topic).rules.rule(subscription.0, name);
        let detail = match rule.map(Rule::to_json) {
            Some(rule) => format!("{name}: {}", String::from_utf8_lossy(&rule)),
            None => name.to_owned(),
        };
        let path = self.name_of(subscription);
        self.audit(cx, actor, operation, &path, &detail);
    }
}

/// Returns the properties in which two descriptions differ, as `name: before → after`.
fn changed(before: &Description, after: &Description) -> String {
    let fields = |description: &Description| match serde_json::to_value(description) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let (before, after) = (fields(before), fields(after));
    let mut texts = Vec::new();
    for name in before
        .keys()
        .chain(after.keys().filter(|name| !before.contains_key(*name)))
    {
        let (old, new) = (before.get(name), after.get(name));
        if old == new || name == "history" {
            continue;
        }
        let shown =
            |value: Option<&Value>| value.map_or_else(|| "null".to_owned(), Value::to_string);
        texts.push(match name.as_str() {
            // They have keys.
            "authorization" => format!("{name}: {}", rules_of(new)),
            _ => format!("{name}: {} → {}", shown(old), shown(new)),
        });
    }
    texts.join(", ")
}

/// Names authorization rules, without their keys.
fn rules_of(rules: Option<&Value>) -> String {
    let rules = rules.and_then(Value::as_array).map(Vec::as_slice);
    let names = rules.unwrap_or_default().iter();
    let names = names.filter_map(|rule| rule.get("name")?.as_str());
    format!("now {}", names.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::{AuthorizationRule, Key, Rights};
    use crate::time::Millis;

    #[test]
    fn what_has_changed_is_named_and_keys_are_left_out() {
        let before = Description::default();
        let after = Description {
            lock_duration: Millis::from_secs(30),
            user_metadata: Some("for orders".to_owned()),
            authorization: vec![AuthorizationRule {
                name: "readers".to_owned(),
                rights: Rights::ALL,
                primary_key: Key::new("a secret".to_owned()),
                secondary_key: None,
                created_at: None,
                modified_at: None,
            }],
            ..Description::default()
        };
        let text = changed(&before, &after);
        assert!(text.contains("lock_duration: 60000 → 30000"), "{text}");
        assert!(
            text.contains("user_metadata: null → \"for orders\""),
            "{text}"
        );
        assert!(text.contains("authorization: now readers"), "{text}");
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(changed(&before, &before), "");
    }

    #[test]
    fn the_oldest_entries_go() {
        let mut audit = Audit::default();
        let entry = AuditEntry {
            at: Timestamp::EPOCH,
            namespace: String::new(),
            actor: Actor::default(),
            operation: "delete".to_owned(),
            entity: "a".to_owned(),
            detail: String::new(),
        };
        for number in 0..=limits::AUDIT_ENTRIES as u64 {
            audit.restore(number, &entry.to_json()).unwrap();
        }
        let kept = audit.snapshot();
        assert_eq!((kept.len(), kept[0].0), (limits::AUDIT_ENTRIES, 1));
        assert_eq!(audit.restore(7, b"{}"), None);
    }
}
