//! The audit log: administrative operations that were carried out, by whom, and what they changed.
//!
//! An entry is a record of the step that made the change, so it is durable if the change is. The last ones of a shard are kept,
//! and each is written to the log of the process, too. Equal operations within seconds are one entry with a count. Where there
//! are too many entries, the oldest of the namespace with most of them goes: no namespace can erase what others did.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::info;

use super::{Namespaces, StepContext};
use crate::access::Actor;
use crate::limits;
use jitney_base::address;
use jitney_base::ids::EntityId;
use jitney_base::time::{Millis, Timestamp};
use jitney_queue::{Description, Record};
use jitney_rules::Rule;

/// The target of the lines in the log of the process.
pub const TARGET: &str = "jitney::audit";

/// An administrative operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When it was carried out first.
    pub at: Timestamp,
    /// How often.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub count: u64,
    /// When it was carried out last, if that was more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
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

const fn once() -> u64 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands the field over like this"
)]
const fn is_once(count: &u64) -> bool {
    *count == 1
}

/// The entries of a shard.
#[derive(Debug, Default)]
pub(super) struct Audit {
    /// The oldest first, with their numbers.
    entries: VecDeque<(u64, AuditEntry)>,
    /// How many each namespace has.
    of_namespaces: BTreeMap<String, usize>,
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

    /// Adds an entry, or replaces the one with its number.
    fn push(&mut self, number: u64, entry: AuditEntry) {
        self.next = self.next.max(number + 1);
        let known = self.entries.iter_mut().rev();
        if let Some((_, known)) = { known }.find(|(known, _)| *known == number) {
            *known = entry;
            return;
        }
        let own = self.of_namespaces.entry(entry.namespace.clone());
        *own.or_default() += 1;
        self.entries.push_back((number, entry));
        if limits::AUDIT_ENTRIES < self.entries.len() {
            self.forget_one();
        }
    }

    /// Forgets the oldest entry of the namespace that has most.
    fn forget_one(&mut self) {
        let most = self.of_namespaces.iter().max_by_key(|(_, count)| **count);
        let Some(namespace) = most.map(|(namespace, _)| namespace.clone()) else {
            return;
        };
        let mut entries = self.entries.iter();
        let oldest = entries.position(|(_, entry)| entry.namespace == namespace);
        self.entries.remove(oldest.unwrap_or_default());
        if let Some(count) = self.of_namespaces.get_mut(&namespace) {
            *count -= 1;
        }
        self.of_namespaces.retain(|_, count| 0 < *count);
    }

    /// Returns the entry that an equal operation had a short while ago, counted once more.
    fn repeated(&self, new: &AuditEntry) -> Option<(u64, AuditEntry)> {
        let newest = self.entries.iter().rev().take(limits::AUDIT_JOINED_LOOKS);
        let recent = |entry: &AuditEntry| new.at <= entry.at.after(limits::AUDIT_JOINED);
        let mut recent = newest.filter(|(_, entry)| recent(entry));
        let (number, entry) = recent.find(|(_, entry)| {
            let same = (&entry.namespace, &entry.actor, &entry.operation);
            same == (&new.namespace, &new.actor, &new.operation)
                && (&entry.entity, &entry.detail) == (&new.entity, &new.detail)
        })?;
        let repeated = AuditEntry {
            count: entry.count + 1,
            last_at: Some(new.at),
            ..entry.clone()
        };
        Some((*number, repeated))
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
            && self
                .since
                .is_none_or(|since| since <= entry.last_at.unwrap_or(entry.at))
    }
}

impl AuditEntry {
    /// Writes it to the log of the process; one of many equal ones at 1, 10, 100 and so on.
    fn log(&self) {
        if 10_u64.pow(self.count.ilog10()) != self.count {
            return;
        }
        let (actor, peer, entity) = (&self.actor.name, &self.actor.peer, &self.entity);
        let namespace = address::namespace_label(Some(&self.namespace));
        let (operation, detail, count) = (&self.operation, &self.detail, self.count);
        info!(target: TARGET, actor, peer, namespace, entity, detail, count, "{operation}");
    }

    fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and texts are JSON")
    }
}

impl Namespaces {
    /// Returns the entries of a namespace that are older than a number, the newest first.
    pub fn audit_entries(
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
    pub fn audit(
        &mut self,
        cx: &mut StepContext<'_>,
        actor: &Actor,
        operation: &str,
        path: &str,
        detail: &str,
    ) {
        let entry = AuditEntry {
            at: cx.now,
            count: 1,
            last_at: None,
            namespace: address::namespace_of(path).to_owned(),
            actor: actor.clone(),
            operation: operation.to_owned(),
            entity: address::without_namespace(path).to_owned(),
            detail: detail.chars().take(limits::AUDIT_DETAIL_LENGTH).collect(),
        };
        let repeated = self.audit.repeated(&entry);
        let (number, entry) = repeated.unwrap_or((self.audit.next, entry));
        entry.log();
        cx.journal.append(&Record::Audit {
            number,
            entry: &entry.to_json(),
        });
        self.audit.push(number, entry);
    }
}

impl Namespaces {
    /// Adds an entry about an entity: it was made, changed or deleted.
    pub fn audit_entity(
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

    /// Adds an entry about a rule of a topic's subscription.
    pub fn audit_rule(
        &mut self,
        cx: &mut StepContext<'_>,
        actor: &Actor,
        operation: &str,
        topic: EntityId,
        subscription: EntityId,
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
            "authorization" => format!("{name}: {}", changed_rules(old, new)),
            "auto_delete_on_idle"
            | "default_time_to_live"
            | "duplicate_window"
            | "lock_duration" => {
                format!("{name}: {} → {}", duration(old), duration(new))
            }
            _ => format!("{name}: {} → {}", shown(old), shown(new)),
        });
    }
    texts.join(", ")
}

/// Returns a duration as everywhere else: in ISO 8601, and not in milliseconds.
fn duration(value: Option<&Value>) -> String {
    let millis = value.and_then(Value::as_i64);
    match millis.map(Millis::from_millis) {
        None => "null".to_owned(),
        Some(Millis::MAX) => "never".to_owned(),

        Some(length) => length.to_iso_text(),
    }
}

/// Says which authorization rules differ, and in what, without their keys.
fn changed_rules(before: Option<&Value>, after: Option<&Value>) -> String {
    let by_name = |rules: Option<&Value>| -> BTreeMap<String, Value> {
        let rules = rules.and_then(Value::as_array).into_iter().flatten();
        let named =
            rules.filter_map(|rule| Some((rule.get("name")?.as_str()?.to_owned(), rule.clone())));
        named.collect()
    };
    let (before, mut after) = (by_name(before), by_name(after));
    let mut texts = Vec::new();
    for (name, old) in before {
        let Some(new) = after.remove(&name) else {
            texts.push(format!("{name} deleted"));
            continue;
        };
        if old.get("rights") != new.get("rights") {
            texts.push(format!("{name} has {}", rights_of(&new)));
        }
        for (field, key) in [("primary_key", "primary"), ("secondary_key", "secondary")] {
            if old.get(field) != new.get(field) {
                texts.push(format!("{key} key of {name} changed"));
            }
        }
    }
    for (name, new) in after {
        texts.push(format!("{name} created with {}", rights_of(&new)));
    }
    texts.join(", ")
}

/// Names the rights of an authorization rule.
fn rights_of(rule: &Value) -> String {
    let rights = rule.get("rights").and_then(Value::as_object);
    let rights = rights.into_iter().flatten();
    let has = rights.filter(|(_, has)| has.as_bool() == Some(true));
    let names: Vec<&str> = has.map(|(name, _)| name.as_str()).collect();
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitney_base::rights::{AuthorizationRule, Key, Rights};

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
        assert!(text.contains("lock_duration: PT1M → PT30S"), "{text}");
        assert!(
            text.contains("user_metadata: null → \"for orders\""),
            "{text}"
        );
        assert!(
            text.contains("authorization: readers created with listen manage send"),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(changed(&before, &before), "");
        let mut rotated = after.clone();
        if let Some(rule) = rotated.authorization.first_mut() {
            rule.secondary_key = Some(Key::new("another".to_owned()));
        }
        let text = changed(&after, &rotated);
        assert_eq!(text, "authorization: secondary key of readers changed");
        let text = changed(&rotated, &before);
        assert!(text.contains("authorization: readers deleted"), "{text}");
    }

    #[test]
    fn a_duration_is_told_in_iso_8601_and_the_greatest_one_as_never() {
        let before = Description::default();
        let after = Description {
            auto_delete_on_idle: Millis::from_millis(36_892_800_000),
            default_time_to_live: Millis::from_secs(90),
            duplicate_window: Millis::from_secs(20),
            ..Description::default()
        };
        let text = "auto_delete_on_idle: never → P427D, default_time_to_live: never → PT1M30S, \
                    duplicate_window: PT10M → PT20S";
        assert_eq!(changed(&before, &after), text);
        let back = changed(&after, &before);
        assert!(
            back.contains("auto_delete_on_idle: P427D → never"),
            "{back}"
        );
    }

    fn entry(namespace: &str, entity: &str, at: i64) -> AuditEntry {
        AuditEntry {
            at: Timestamp::from_millis(at),
            count: 1,
            last_at: None,
            namespace: namespace.to_owned(),
            actor: Actor::default(),
            operation: "delete".to_owned(),
            entity: entity.to_owned(),
            detail: String::new(),
        }
    }

    #[test]
    fn the_oldest_entries_go() {
        let mut audit = Audit::default();
        for number in 0..=limits::AUDIT_ENTRIES as u64 {
            audit.restore(number, &entry("", "a", 0).to_json()).unwrap();
        }
        let kept = audit.snapshot();
        assert_eq!((kept.len(), kept[0].0), (limits::AUDIT_ENTRIES, 1));
        assert_eq!(audit.restore(7, b"{}"), None);
    }

    #[test]
    fn a_namespace_erases_no_entries_of_another_that_has_fewer() {
        let mut audit = Audit::default();
        let few = limits::AUDIT_ENTRIES as u64 / 10;
        for number in 0..few {
            audit.push(number, entry("victim", "a", 0));
        }
        for number in few..3 * limits::AUDIT_ENTRIES as u64 {
            audit.push(number, entry("other", &number.to_string(), 0));
        }
        let count = |namespace| {
            let entries = audit.entries.iter();
            entries.filter(|(_, it)| it.namespace == namespace).count() as u64
        };
        assert_eq!(count("victim"), few);
        assert_eq!(count("other"), limits::AUDIT_ENTRIES as u64 - few);
    }

    #[test]
    fn equal_operations_within_seconds_are_one_entry() {
        let mut audit = Audit::default();
        audit.push(0, entry("", "a", 0));
        audit.push(1, entry("", "b", 1_000));
        let (number, again) = audit.repeated(&entry("", "a", 9_000)).unwrap();
        assert_eq!((number, again.count), (0, 2));
        assert_eq!(again.last_at, Some(Timestamp::from_millis(9_000)));
        audit.push(number, again.clone());
        assert_eq!(audit.entries.len(), 2);
        // Recovery reads the same.
        let mut restored = Audit::default();
        for (number, entry) in audit.snapshot() {
            restored.restore(number, &entry).unwrap();
        }
        assert_eq!(restored.entries[0], (0, again));
        for other in [
            entry("", "a", 10_001),
            entry("x", "a", 1),
            entry("", "c", 1),
        ] {
            assert_eq!(audit.repeated(&other), None, "{other:?}");
        }
    }
}
